"""Many classes, long texts and long frames: time and memory in new processes, before and now."""
