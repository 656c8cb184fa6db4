"""Contributions beside shap's, and of models that shap has no exact values for."""
