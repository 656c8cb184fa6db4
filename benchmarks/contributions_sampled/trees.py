"""Contributions to probabilities of boosted trees: time and errors of rows, by walks over the read form."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1

import limes
from benchmarks.progress import say

ROWS, COLUMNS = 20, 20


def _xgboost(**options: Any) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=300, max_depth=6, random_state=0, n_jobs=1, **options)


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=300, random_state=0, n_jobs=1, verbose=-1)


def _catboost() -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        iterations=300, depth=6, random_state=0, thread_count=1, verbose=False, allow_writing_files=False
    )


MODELS: dict[str, Callable[[], Any]] = {
    "XGBoost 300 x depth 6": _xgboost,
    "XGBoost 300 x depth 6, learning rate 0.1": lambda: _xgboost(learning_rate=0.1),
    "LightGBM 300 x 31 leaves": _lightgbm,
    "CatBoost 300 x depth 6": _catboost,
}


def measure() -> list[dict[str, Any]]:
    """Return a record for each model, of two and of four classes."""
    X, y = make_friedman1(5000, COLUMNS, noise=1.0, random_state=0)
    return [
        _measured(f"{name}, {classes} classes", make().fit(X, _classes(y, classes)), X)
        for classes in (2, 4)
        for name, make in MODELS.items()
    ]


def _classes(y: np.ndarray, count: int) -> np.ndarray:
    return np.digitize(y, np.quantile(y, np.arange(1, count) / count))


def _measured(name: str, model: Any, X: np.ndarray) -> dict[str, Any]:
    say(name)
    explainer = limes.TabularExplainer(model, X, contributions=False)
    _ = explainer(X[:1], progress=False).contributions
    milliseconds, errors = [], []
    for row in X[1 : ROWS + 1, None]:
        explanation = explainer(row, progress=False)
        clock, cpu = time.perf_counter(), time.process_time()
        account = explanation.contributions
        milliseconds.append((1e3 * (time.perf_counter() - clock), 1e3 * (time.process_time() - cpu)))
        largest = np.abs(account.values[0]).max(axis=0)
        errors.append(float((account.standard_errors[0].max(axis=0) / largest).max()))
    return {
        "model": name,
        "ms": np.median(milliseconds, axis=0).tolist(),
        "most_ms": np.max(milliseconds, axis=0).tolist(),
        "error": float(np.median(errors)),
        "largest_error": float(max(errors)),
    }
