"""Prompts of a language model: contributions from few calls against all subsets of the sources."""
