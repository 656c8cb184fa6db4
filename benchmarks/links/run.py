"""Logistic regression on 30 columns: seconds a row, alone and in a batch, and the error of samples."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import limes
from benchmarks.progress import say

SAMPLES = (1024, 4096, 16384)
LIME_SAMPLES = 5000
BATCH = 1000


def measure(rounds: int = 7) -> list[dict]:
    """One line a way: milliseconds of wall clock and of processor a row, and the error of coefficients."""
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    rows = X[np.random.default_rng(0).integers(len(X), size=BATCH)] * 1.0
    rows += 1e-3 * X.std(axis=0) * np.random.default_rng(1).normal(size=rows.shape)
    explainer = limes.TabularExplainer(model, X, output=1, method="exact")
    exact = explainer(rows[:1]).values[0]
    found = [
        {"way": f"exact, {BATCH:,} rows", **_timed(lambda: explainer(rows, progress=False), BATCH, rounds)},
        {"way": "exact, one row", **_timed(lambda: explainer(rows[:1]), 1, rounds)},
    ]
    for calls in SAMPLES:
        say(f"sampled, {calls:,} calls")
        sampled = limes.TabularExplainer(
            model, X, output=1, method="sampled", max_calls=calls, control="none", rng=0
        )
        error = float(np.abs(sampled(rows[:1]).values[0] - exact).max() / np.abs(exact).max())
        timed = _timed(lambda s=sampled: s(rows[:1]), 1, min(rounds, 3))
        found.append({"way": f"limes sampled, {calls:,} calls", **timed, "error": error})
    found += _lime(model, X, rows[0], exact, min(rounds, 3))
    say("done\n")
    return found


def _timed(work: Any, rows: int, rounds: int) -> dict[str, float]:
    work()
    wall, processor = [], []
    for _ in range(rounds):
        start, started = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - start)
        processor.append(time.process_time() - started)
    return {"ms": 1e3 * min(wall) / rows, "processor_ms": 1e3 * min(processor) / rows}


def _lime(model: Any, X: Any, row: Any, exact: Any, rounds: int) -> list[dict]:
    try:
        from lime.lime_tabular import LimeTabularExplainer
    except ImportError:
        return []
    explainer = LimeTabularExplainer(X, random_state=0)

    def explain() -> Any:
        return explainer.explain_instance(row, model.predict_proba, num_features=X.shape[1])

    coef = np.zeros(X.shape[1])
    for j, value in explain().local_exp[1]:
        coef[j] = value
    error = float(np.abs(coef - exact).max() / np.abs(exact).max())
    return [{"way": f"lime, {LIME_SAMPLES:,} samples", **_timed(explain, 1, rounds), "error": error}]
