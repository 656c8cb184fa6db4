"""Forests, linear models and boosted trees on eight real tables, judged at rows that were not fitted to."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR

import limes
from benchmarks.data import DATA
from benchmarks.progress import say
from benchmarks.speed.run import machine

# Rows of a table at most, rows that are judged, and rows by which a design is suggested
_MOST, ROWS, BY = 4000, 400, 100
_CLASSES = ("titanic", "adult", "german_credit")
_AMOUNTS = ("california_housing", "bike_sharing", "student_performance")
# A miss that does not matter, as a share of the largest bar
_SMALL = 0.25


def measure(cases: str = "") -> dict:
    """All cases, or those with ``cases`` in their name."""
    results = []
    for name, X, y in tables():
        for kind in ("forest", "linear", "boosting"):
            case = f"{name}, {kind}"
            if cases.lower() in case:
                say(case)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of fits that could go on
                    results.append({"case": case, **_measured(X, y, kind)})
    say("done\n")
    return {"machine": machine(), "rows": ROWS, "by": BY, "cases": results}


def tables() -> Iterator[tuple[str, pd.DataFrame, Any]]:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    yield "breast_cancer", X, y.astype(str)
    yield "diabetes", *load_diabetes(return_X_y=True, as_frame=True)
    for name in (*_CLASSES, *_AMOUNTS):
        table = pd.read_csv(DATA / "tabular" / f"{name}.csv.gz")
        table = table.sample(min(_MOST, len(table)), random_state=0)
        target = table.iloc[:, -1]
        yield name, table.iloc[:, :-1], target.astype(str) if name in _CLASSES else target


def _measured(X: pd.DataFrame, y: Any, kind: str) -> dict:
    train, test, answers, _ = train_test_split(X, y, random_state=0)
    is_class = not pd.api.types.is_numeric_dtype(y)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    before = make_column_transformer(
        (levels, make_column_selector(dtype_exclude=np.number)), remainder=numbers
    )
    model = make_pipeline(before, _model(kind, is_class)).fit(train, answers)
    # the margin, which is read exactly
    options = {"output": "margin"} if is_class and kind == "boosting" else {}
    explainer, rows = limes.TabularExplainer(model, train, **options), test.iloc[:ROWS]
    suggestion = limes.suggest_design(explainer, train.iloc[:BY])
    suggested = limes.TabularExplainer(model, train, **suggestion.options, **options)
    explanation = explainer(rows, progress=False)
    return {
        "exact": explainer.method == "exact",
        **(_warned(explanation, is_margin=bool(options)) if is_class else {}),
        "suggestion": suggestion.name,
        "default": _at_rows(explanation),
        "suggested": _at_rows(suggested(rows, progress=False)),
    }


def _model(kind: str, is_class: bool) -> Any:
    if kind == "forest":
        forest = RandomForestClassifier if is_class else RandomForestRegressor
        return forest(100, min_samples_leaf=3, random_state=0)
    if kind == "linear":
        return LogisticRegression(max_iter=2000) if is_class else SVR(C=10)
    return (GradientBoostingClassifier if is_class else GradientBoostingRegressor)(random_state=0)


def _outputs(explanation: Any) -> tuple[np.ndarray, np.ndarray]:
    """Predictions and surrogates of the last output, the positive class."""
    n = len(explanation)
    both = (explanation.predictions, explanation.coefficients.surrogate_predictions)
    return tuple(numbers.reshape(n, -1)[:, -1] for numbers in both)


def _warned(explanation: Any, *, is_margin: bool) -> dict:
    """Shares of misleading rows, of those with a warning, and of the other rows with a warning."""
    f, g = _outputs(explanation)
    threshold = 0.0 if is_margin else 0.5
    misleading = (f > threshold) != (g > threshold)
    if not is_margin:
        misleading |= (g < 0.0) | (g > 1.0)
    is_warned = np.array([bool(record) for record in explanation.row_warnings])
    largest = np.abs(
        explanation.coefficients.values.reshape(len(f), explanation.coefficients.values.shape[1], -1)[..., -1]
    ).max(axis=1)
    fine = (np.abs(f - g) < _SMALL * largest) & ~misleading
    return {
        "misleading": float(misleading.mean()),
        "misleading and warned": float(is_warned[misleading].mean()) if misleading.any() else 1.0,
        "fine": float(fine.mean()),
        "fine and warned": float(is_warned[fine].mean()) if fine.any() else 0.0,
    }


def _at_rows(explanation: Any) -> dict:
    f, g = _outputs(explanation)
    sides = [any(w.code == "other side" for w in record) for record in explanation.row_warnings]
    return {"miss": float(np.median(np.abs(f - g))), "other side": float(np.mean(sides))}
