"""Contributions of black boxes at equal rows asked, beside shap's samplers of the same game."""
