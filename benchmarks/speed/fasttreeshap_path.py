"""FastTreeSHAP, path-dependent, in the fork that runs with numpy 2."""

NAME = "fasttreeshap (fork)"
ANSWERS = "path-dependent Shapley values"
PACKAGE = "fasttreeshap-fixed"
# Each call prepares: few rows would show it slower than it is.
ROWS = 200


def prepare(case):
    from fasttreeshap_fixed import TreeExplainer

    explainer = TreeExplainer(case.model)
    return lambda rows: explainer.shap_values(rows, check_additivity=False)
