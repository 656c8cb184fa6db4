"""Explainable boosting machines with few and many pairs, on real tables: exact, or sampled and why."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import limes
from benchmarks.data import DATA
from benchmarks.progress import say

TABLES = ("german_credit", "adult", "titanic", "wine_quality_white", "california_housing")
# The last is the default: three pairs a column
PAIRS = (5, 10, "3x")
ROWS, LEARNT = 10, 6000


def measure(timed: Callable[[Any, int, int], dict], rounds: int) -> list[dict]:
    """One line a table and number of pairs; none without interpret or without the tables."""
    try:
        from interpret.glassbox import ExplainableBoostingClassifier
    except ImportError:
        return []
    result = []
    for name in TABLES:
        path = DATA / "tabular" / f"{name}.csv.gz"
        if not path.exists():
            continue
        X, y = _table(path)
        for pairs in PAIRS:
            say(f"{name}, {pairs} pairs")
            options = {"max_rounds": 50, "outer_bags": 2, "n_jobs": 1, "random_state": 0}
            model = ExplainableBoostingClassifier(interactions=pairs, **options).fit(X, y)
            explainer = limes.TabularExplainer(model, X, output=model.classes_[1])
            rows = X.iloc[:ROWS]
            explanation = explainer(rows, progress=False)
            count = sum(len(term) == 2 for term in model.term_features_)
            result.append(
                {
                    "model": f"explainable boosting machine, {name}, {X.shape[1]} columns, {count} pairs",
                    "way": f"{_way(explanation)}, {ROWS} rows",
                    **timed(lambda e=explainer, x=rows: e(x, progress=False), ROWS, rounds),
                    "error": float(
                        explanation.coefficients.standard_errors.max()
                        / np.abs(explanation.coefficients.values).max()
                    ),
                }
            )
    return result


def _table(path: Any) -> tuple[pd.DataFrame, Any]:
    """A table without missing values; its target, in two classes."""
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    table = table.sample(min(len(table), LEARNT), random_state=0).reset_index(drop=True)
    X, y = table.drop(columns="target"), table["target"]
    for name in X:
        numeric = pd.api.types.is_numeric_dtype(X[name])
        X[name] = X[name].fillna(X[name].median() if numeric else "none")
    return X, y if y.nunique() == 2 else (y > y.median()).astype(int)


def _way(explanation: Any) -> str:
    if explanation.method == "exact":
        return "exact"
    cells = re.search(r"tables of ([\d,]+) cells", explanation.reason)
    return "sampled" if cells is None else f"sampled ({cells[1]} cells and more)"
