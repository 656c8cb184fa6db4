"""What a sparse explanation costs besides the model's answers."""
