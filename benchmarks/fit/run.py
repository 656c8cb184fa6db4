"""R² of LIME, of effects, and with three pairs; times; suggested designs: five models on real tables."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import limes
from benchmarks.data import DATA
from benchmarks.progress import say

# Rows that are explained of each table, rows that models are fitted to, rows of the batch that is timed, and
# those whose effects are timed
ROWS, FITTED, BATCH, CURVES = 20, 1000, 1000, 1000
# Rows whose suggested design is judged, the number of fresh draws, and the tolerated gap to the best R²
SUGGESTED, DRAWS, TIE = 4, 1 << 14, 0.01
TABLES = (
    "airfoil_self_noise",
    "bike_sharing",
    "california_housing",
    "medical_charges_part",
    "wine_quality_white",
)
MODELS: dict[str, Any] = {
    "random forest": RandomForestRegressor(50, random_state=0, n_jobs=2),
    "extra trees": ExtraTreesRegressor(50, random_state=0, n_jobs=2),
    "gradient boosting": GradientBoostingRegressor(random_state=0),
    "histogram boosting": HistGradientBoostingRegressor(random_state=0),
    "kernels": make_pipeline(StandardScaler(), SVR(C=10.0)),
}


def measure(*, cases: str = "") -> list[dict]:
    """Return a record for each table and model."""
    result = []
    for table in TABLES:
        for name, model in MODELS.items():
            if cases in f"{table} {name}":
                say(f"{table}, {name}")
                result.append(_measure(table, name, model))
    return result


def _measure(table: str, name: str, model: Any) -> dict:
    data = pd.read_csv(DATA / "tabular" / f"{table}.csv.gz").select_dtypes("number").dropna()
    data = data.sample(min(FITTED, len(data)), random_state=0)
    X, y = data.iloc[:, :-1].astype(float), data.iloc[:, -1].astype(float)
    model.fit(X, (y - y.mean()) / y.std())
    explainer = limes.TabularExplainer(model, X)
    batch = X.iloc[np.arange(BATCH) % len(X)]
    first = explainer(batch.iloc[:20], progress=False)
    _ = first.fidelity, first.additive_fidelity  # what all rows share
    explained = _seconds(lambda: explainer(batch, progress=False))
    explanation = explainer(batch, progress=False)
    fidelity = _seconds(lambda: explanation.fidelity)
    part = explanation[:ROWS]
    curves = explanation[:CURVES]
    effects = _seconds(lambda: (curves.additive_fidelity, list(curves.effects)))
    pairs = [0.0] * ROWS

    def interactions() -> None:
        for pair in part.interactions(3):
            pairs[pair.row] += pair.share

    seconds = _seconds(interactions)
    return {
        "table": table,
        "model": name,
        "columns": X.shape[1],
        "method": explanation.method,
        "lime": float(np.median(part.fidelity)),
        "additive": float(np.median(part.additive_fidelity)),
        "pairs": float(np.median(part.additive_fidelity + pairs)),
        "explain_ms": 1e3 * explained / BATCH,
        "fidelity_ms": 1e3 * fidelity / BATCH,
        "effects_ms": 1e3 * effects / CURVES,
        "pairs_ms": 1e3 * seconds / ROWS,
        "suggested": [_suggestion_wins(explainer, model, X.iloc[[row]]) for row in range(SUGGESTED)],
    }


def _suggestion_wins(explainer: Any, model: Any, row: pd.DataFrame) -> bool:
    """Whether the suggested design has the best R² of those offered, or within a tie, on fresh draws."""
    suggestion = limes.suggest_design(explainer, row)
    design = explainer.design(row)
    x, _ = design.draw(np.random.default_rng(0).random((DRAWS, row.shape[1])))
    f, scores = model.predict(pd.DataFrame(x, columns=row.columns)), {}
    for name, options in zip(suggestion.names, suggestion.candidates, strict=True):
        other = explainer._with_design(**options)  # noqa: SLF001
        explanation, (bound, (instance,)) = other(row, progress=False), other._model_at(row)  # noqa: SLF001
        g = (
            explanation.coefficients.intercepts[0]
            + bound.features_at(instance, x) @ explanation.coefficients.values[0]
        )
        scores[name] = 1.0 - np.mean((f - g) ** 2) / f.var()
    return bool(scores[suggestion.name] >= max(scores.values()) - TIE)


def _seconds(work: Any) -> float:
    """CPU seconds, of all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start
