"""Shapley values by the trees' covers: limes beside shap and the libraries' own."""
