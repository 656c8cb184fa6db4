"""woodelf.WoodelfExplainer, path-dependent."""

from benchmarks.speed.cases import AbsentError

NAME = "woodelf"
ANSWERS = "path-dependent Shapley values"
PACKAGE = "woodelf-explainer"
# A call's time hardly depends on its rows.
ROWS = 20_000
MOST_NODES = 1_000_000


def prepare(case):
    import pandas as pd
    from woodelf import WoodelfExplainer

    nodes = sum(member.tree_.node_count for member in getattr(case.model, "estimators_", ()))
    if nodes > MOST_NODES:
        raise AbsentError(
            f"15 s a tree where this was tried, 25 minutes a call; the forest has {nodes:,} nodes"
        )
    explainer = WoodelfExplainer(case.model)
    return lambda rows: explainer.shap_values(pd.DataFrame(rows), verbose=False)
