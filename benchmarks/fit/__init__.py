"""How much of a model LIME, effects and a few pairs capture, on real tables."""
