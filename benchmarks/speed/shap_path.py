"""shap.TreeExplainer, path-dependent: its fastest exact mode."""

NAME = "shap"
ANSWERS = "path-dependent Shapley values"
PACKAGE = "shap"
ROWS = 20


def prepare(case):
    from shap import TreeExplainer

    explainer = TreeExplainer(case.model)
    return lambda rows: explainer.shap_values(rows, check_additivity=False)
