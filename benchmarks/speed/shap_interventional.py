"""shap.TreeExplainer against a background of 100 rows: the mode whose question is nearest to LIME's."""

NAME = "shap, 100 background rows"
ANSWERS = "Shapley values against 100 rows"
PACKAGE = "shap"
ROWS = 20


def prepare(case):
    from shap import TreeExplainer

    explainer = TreeExplainer(case.model, case.X[:100], feature_perturbation="interventional")
    return lambda rows: explainer.shap_values(rows, check_additivity=False)
