"""Ways to show a diagnosis; nothing here asks a model."""
