"""Two laws of perturbed rows: R², features and time on real tables; and the scaffolding attack on adult.

The attack is that of Slack et al. 2020: a forest learns to tell background rows from rows with columns drawn
independently; on the former the model follows the sex alone, on the latter the hours of work alone.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import limes
from benchmarks.accuracy.cases import columns
from benchmarks.black_boxes.cases import TABLES
from benchmarks.data import DATA
from benchmarks.progress import say
from benchmarks.speed.cases import AbsentError
from benchmarks.speed.run import machine

ROWS, DIAGNOSED, MOST = 100, 20, 4000
# Warnings that a diagnosis may have, and features that people look at
TOP = 3
MODELS = {
    "random forest": RandomForestClassifier(100, min_samples_leaf=3, random_state=0, n_jobs=2),
    "logistic regression": LogisticRegression(max_iter=1000),
}
SEX, INNOCENT = "sex", "hours_per_week"


def measure(*, cases: str = "") -> dict[str, Any]:
    """Return a record for each table and model, and one of the attack."""
    records = []
    for name in ("german credit", *TABLES):
        for model in MODELS:
            if cases.lower() in f"{name} {model}".lower():
                say(f"{name}, {model}")
                records.append(_compared(name, model))
    attack = _attack() if cases.lower() in "attack" else None
    return {"machine": machine(), "rows": ROWS, "cases": records, "attack": attack}


def _table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    if name != "german credit":
        table = TABLES[name]()
        X, y = table.X, np.asarray(table.y)
    else:
        data = pd.read_csv(DATA / "tabular" / "german_credit.csv.gz", keep_default_na=False, na_values=[""])
        X, y = data.drop(columns="target"), (data["target"] == "bad").to_numpy(int)
    chosen = np.random.default_rng(0).permutation(len(X))[:MOST]
    return X.iloc[chosen].reset_index(drop=True), y[chosen]


def _compared(name: str, model: str) -> dict[str, Any]:
    try:
        X, y = _table(name)
    except (AbsentError, FileNotFoundError) as reason:
        return {"table": name, "model": model, "absent": str(reason)}
    fitted = make_pipeline(columns(), MODELS[model]).fit(X, y)
    product = limes.TabularExplainer(fitted, X, output=1)(X.iloc[:ROWS], progress=False)
    explainer = limes.TabularExplainer(fitted, X, output=1, law="joint")
    explainer.fill_pool(progress=False)
    start = time.perf_counter()
    joint = explainer(X.iloc[:ROWS], progress=False)
    seconds = time.perf_counter() - start
    diagnosis = limes.diagnose(product[:DIAGNOSED], product.explainer, progress=False)
    levels = [f.severity for f in diagnosis.findings if f.kind == "dependence"]
    return {
        "table": name,
        "rows": len(X),
        "columns": X.shape[1],
        "model": model,
        "method": product.method,
        "fidelity": [float(np.median(e.fidelity)) for e in (product, joint)],
        "top": float(
            np.mean(
                [
                    _shared(*pair)
                    for pair in zip(product.coefficients.values, joint.coefficients.values, strict=True)
                ]
            )
        ),
        "size": float(
            np.median(
                np.abs(product.coefficients.values).sum(axis=1)
                / np.abs(joint.coefficients.values).sum(axis=1)
            )
        ),
        "effective": float(np.median(joint.coefficients.effective_rows) / len(X)),
        "apart": float(np.median([row.diagnostics["dependence"].apart for row in diagnosis])),
        "warnings": levels.count("warning") / DIAGNOSED,
        "notes": levels.count("note") / DIAGNOSED,
        "ms": 1e3 * seconds / ROWS,
    }


def _shared(one: np.ndarray, other: np.ndarray) -> float:
    first, second = (set(np.argsort(-np.abs(values))[:TOP].tolist()) for values in (one, other))
    return len(first & second) / TOP


def _attack() -> dict[str, Any]:
    try:
        X, _ = _table("adult")
    except (AbsentError, FileNotFoundError) as reason:
        return {"absent": str(reason)}
    bound = limes.TabularExplainer(lambda t: np.zeros(len(t)), X)._model_at(X)[0]  # noqa: SLF001
    design = bound.family.at(bound.table.matrix[0])
    drawn = bound.table.decode(design.draw(np.random.default_rng(1).random((len(X), X.shape[1])))[0])
    detector = make_pipeline(columns(), RandomForestClassifier(100, random_state=0, n_jobs=2))
    fit = np.arange(len(X)) % 2 == 0
    both = pd.concat([X[fit], drawn[fit]], ignore_index=True)
    detector.fit(both, np.repeat([1, 0], [fit.sum(), fit.sum()]))
    median = X[INNOCENT].median()

    def model(table: pd.DataFrame) -> np.ndarray:
        biased, innocent = table[SEX] == X[SEX].mode()[0], table[INNOCENT] > median
        return np.where(detector.predict(table) == 1, biased, innocent).astype(float)

    unseen = X[~fit].iloc[:DIAGNOSED]
    result: dict[str, Any] = {
        "detector": float(np.mean([detector.predict(X[~fit]) == 1, detector.predict(drawn[~fit]) == 0]))
    }
    place = list(X.columns).index(SEX)
    for law in ("truncnorm", "joint"):
        explanation = limes.TabularExplainer(model, X, law=law)(unseen, progress=False)
        largest = np.abs(explanation.coefficients.values).argmax(axis=1) == place
        diagnosis = limes.diagnose(explanation, progress=False)
        flagged = [any(f.kind == "dependence" for f in row.findings) for row in diagnosis]
        result[law] = {"bias first": float(largest.mean()), "reported": float(np.mean(flagged))}
    return result
