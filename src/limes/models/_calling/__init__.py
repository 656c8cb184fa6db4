"""Calling the user's model: its method and outputs, in batches, and what networks take for an image."""
