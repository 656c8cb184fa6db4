"""Calling the user's model: its method and outputs, batches, and the input of networks for an image."""
