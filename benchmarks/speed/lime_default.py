"""lime.LimeTabularExplainer at its defaults (5,000 model calls a row)."""

from lime.lime_tabular import LimeTabularExplainer

NAME = "lime"
ROWS = 5


def prepare(case):
    explainer = LimeTabularExplainer(case.X, mode="regression", random_state=0)

    def explain(rows):
        for row in rows:
            explainer.explain_instance(row, case.model.predict)

    return explain
