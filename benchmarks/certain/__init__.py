"""Facts that hold for certain, beside an optimiser that looks for what contradicts them."""
