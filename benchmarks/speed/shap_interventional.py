"""shap.TreeExplainer against a background of 100 rows: the mode whose question is nearest to LIME's."""

import shap

NAME = "shap, 100 background rows"
ROWS = 20


def prepare(case):
    explainer = shap.TreeExplainer(case.model, case.X[:100], feature_perturbation="interventional")
    return lambda rows: explainer.shap_values(rows, check_additivity=False)
