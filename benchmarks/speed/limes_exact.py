"""limes.TabularExplainer, exact."""

import limes

NAME = "limes"
ROWS = 1000


def prepare(case):
    explainer = limes.TabularExplainer(case.model, case.X, method="exact")
    explainer(case.X[:1])
    return lambda rows: explainer(rows, progress=False)
