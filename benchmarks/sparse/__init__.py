"""The cost of a sparse explanation besides the model's answers."""
