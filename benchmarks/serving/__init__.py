"""One row as services explain it: compiled explainers, explanations, shap; a service with many clients."""
