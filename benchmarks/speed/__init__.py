"""Time a row of exact explanations of tree ensembles: limes, shap, lime, and the model's own predict."""
