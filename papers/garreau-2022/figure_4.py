"""Figure 4: what LIME shows, a hundred times."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

import limes
from papers.common.boxes import boxes
from papers.common.drawn import Drawn, panels
from papers.common.expected import Sampled
from papers.common.tabular import agreement

from .settings import table

# A row with a low lstat, as in the paper's example
ROW = 4


def draw(runs: int) -> Drawn:
    """Boxes of ``lime`` itself."""
    explanation, result = explained(), lime_runs(runs)
    figure, (ax,) = panels(height=4.4)
    boxes(
        ax,
        explanation.conditions[0],
        result,
        theory=explanation.coefficients.values[0],
        theory_label="exact (limes)",
    )
    ax.set_ylabel("coefficient", fontsize=9)
    ax.legend(frameon=False, fontsize=8)
    numbers = {"exact": explanation.coefficients.values[0], "runs": Sampled.of(result)}
    return Drawn(
        figure, numbers, f"{_TEXT}{_order(result)} {agreement(result, explanation.coefficients.values[0])}"
    )


@cache
def forest() -> tuple[RandomForestRegressor, pd.DataFrame]:
    """The model, and its table."""
    X, y = table("boston_housing")
    return RandomForestRegressor(100, random_state=0).fit(X, y), X


@cache
def explained() -> limes.Explanation:
    """Return what ``lime``'s runs converge to, its ridge included: exactly."""
    model, X = forest()
    return limes.TabularExplainer(model, X, ridge=1.0)(X.iloc[[ROW]])


def lime_runs(runs: int) -> np.ndarray:
    """Coefficients of ``runs`` runs of the ``lime`` package, (runs, d)."""
    from lime.lime_tabular import LimeTabularExplainer

    model, X = forest()
    rows, names = X.to_numpy(), list(X)
    lime = LimeTabularExplainer(rows, mode="regression", feature_selection="none", random_state=0)
    result = np.empty((runs, len(names)))
    for run in result:
        explanation = lime.explain_instance(
            rows[ROW], lambda x: model.predict(pd.DataFrame(x, columns=names)), num_features=len(names)
        )
        for j, value in explanation.local_exp[1]:
            run[j] = value
    return result


def _order(result: np.ndarray) -> str:
    tops = {tuple(np.sort(np.argsort(-np.abs(run))[:5])) for run in result}
    return f"The five largest coefficients are {len(tops)} different sets in {len(result)} runs."


_TEXT = """**Claim.** Repeated runs differ, because rows are drawn; so boxes of 100 runs are shown.

**Here.** `lime` 0.2.0.1 itself on a random forest, Boston housing, defaults. """
