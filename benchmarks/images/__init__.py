"""Images: overhead, memory, and error at fewer calls, beside ``lime``."""
