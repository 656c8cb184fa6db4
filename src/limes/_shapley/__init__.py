"""Shapley values: exact, of subsets of an input's features, and by permutations of a table's columns."""
