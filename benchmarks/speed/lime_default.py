"""lime.LimeTabularExplainer at its defaults (5,000 model calls a row)."""

NAME = "lime"
ANSWERS = "LIME, sampled"
PACKAGE = "lime"
ROWS = 5


def prepare(case):
    from lime.lime_tabular import LimeTabularExplainer

    explainer = LimeTabularExplainer(case.X, mode="regression", random_state=0)

    def explain(rows):
        for row in rows:
            explainer.explain_instance(row, case.model.predict)

    return explain
