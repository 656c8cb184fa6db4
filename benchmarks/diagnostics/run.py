"""Diagnose fifty rows of real tables behind everyday models: what is found, how often, in which CPU time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import limes
from benchmarks.data import DATA
from benchmarks.progress import say
from benchmarks.tables.run import encoded

ROWS = 50
KINDS = (
    *("cancellation", "alignment", "bandwidth", "edge", "fidelity", "local error"),
    *("dependence", "shrinkage", "sample size"),
)
Table = tuple[pd.DataFrame, pd.Series]


def _read(name: str) -> Table | None:
    path = DATA / "tabular" / f"{name}.csv.gz"
    if not path.exists():
        return None
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    return table.drop(columns="target"), table["target"]


def _kernel() -> Any:
    return make_pipeline(StandardScaler(), KernelRidge(kernel="rbf", gamma=0.02, alpha=0.1))


def _network() -> Any:
    return make_pipeline(
        StandardScaler(),
        MLPRegressor(hidden_layer_sizes=(50,), max_iter=100, early_stopping=True, random_state=0),
    )


def _forest() -> Any:
    return RandomForestRegressor(100, max_depth=10, max_samples=0.3, random_state=0)


# table, name of the model, model, output, n: every n-th row is a training row
CASES: list[tuple[str, str, Callable[[], Any], str | None, int]] = [
    (
        "california_housing",
        "random forest",
        lambda: RandomForestRegressor(100, max_depth=10, max_samples=0.3, random_state=0),
        None,
        1,
    ),
    ("california_housing", "boosting", lambda: HistGradientBoostingRegressor(random_state=0), None, 1),
    ("california_housing", "network (sampled)", _network, None, 1),
    ("wine_quality_white", "kernel ridge", _kernel, None, 5),
    ("adult", "boosting", lambda: encoded(GradientBoostingClassifier(random_state=0)), "margin", 1),
    ("breast_cancer", "random forest", lambda: RandomForestClassifier(100, random_state=0), None, 1),
    ("breast_cancer", "logistic", lambda: make_pipeline(StandardScaler(), LogisticRegression()), "margin", 1),
]


def measure() -> list[dict]:
    """All cases whose table is there."""
    result = list(_measured())
    say("done\n")
    return result


def _measured() -> Iterator[dict]:
    for name, label, make, output, every in CASES:
        table = load_breast_cancer(return_X_y=True, as_frame=True) if name == "breast_cancer" else _read(name)
        if table is not None:
            say(f"{name}: {label}")
            X, y = table
            yield _case(name, label, make().fit(X.iloc[::every], y.iloc[::every]), X, output)


def _case(name: str, label: str, model: Any, X: pd.DataFrame, output: str | None) -> dict:
    rows = X.iloc[np.random.default_rng(0).choice(len(X), ROWS, replace=False)]
    explainer = limes.TabularExplainer(model, X, output=output, control="additive")
    explainer(rows.iloc[:1], progress=False)
    start = time.process_time()
    explanation = explainer(rows, progress=False)
    explained = time.process_time()
    diagnosis = limes.diagnose(explanation)
    diagnosed = time.process_time()
    counts = diagnosis.counts()
    return {
        "table": name,
        "model": label,
        "explain_s": explained - start,
        "diagnose_s": diagnosed - explained,
        "warned": sum(any(f.severity == "warning" for f in row.findings) for row in diagnosis),
        "warnings": {kind: counts.get((kind, "warning"), 0) for kind in KINDS},
        "notes": {kind: counts.get((kind, "note"), 0) for kind in KINDS},
        "cautions": sum(bool(w) for w in explanation.row_warnings),
        "without_advice": sum(not (f.advice and np.isfinite(f.number)) for f in diagnosis.findings),
    }
