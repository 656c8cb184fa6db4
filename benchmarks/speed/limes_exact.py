"""limes.TabularExplainer, exact; tables for all rows are made when it is prepared, not in the first batch."""

NAME = "limes"
ANSWERS = "LIME, exact"
PACKAGE = "limes"
ROWS = 1000


def prepare(case):
    import limes

    explainer = limes.TabularExplainer(case.model, case.X, method="exact")
    explainer(case.X[:1])
    return lambda rows: explainer(rows, progress=False).coefficients.values
