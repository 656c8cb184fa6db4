"""How much of a model LIME's coefficients capture, and how much effects and a few pairs add, on real tables."""
