"""Samples: pools of answers, draws for a row, controls that reduce variance, and fits with errors."""
