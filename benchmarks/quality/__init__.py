"""lime, shap and limes on the same rows by the same measures of ``limes.evaluate``."""
