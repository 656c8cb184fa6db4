"""How much of a model's variance coefficients and effects explain: exact, and on rows of w."""
