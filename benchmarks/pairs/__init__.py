"""Pairs, groups and differences: limes beside shap and the libraries' own."""
