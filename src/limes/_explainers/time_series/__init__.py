"""A series, its segments or frequency bands, and what is in their place where they are hidden."""
