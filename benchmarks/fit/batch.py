"""CPU time of a batch of 1,000 rows with R² and effects: ``python -m benchmarks.fit.batch``.

Beside coefficients alone, by this version and by the earlier one (``kernels/earlier.py``), in turn,
each in a process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

import limes

ROWS, REPEATS, ROUNDS = 1000, 5, 3
FOREST = {"n_estimators": 100, "max_depth": 10, "random_state": 0}
MODELS: dict[str, tuple[Any, str]] = {
    "random forest, 100 trees × depth 10, diabetes (d = 10)": (RandomForestRegressor(**FOREST), "diabetes"),
    "the same, friedman1 (d = 20)": (RandomForestRegressor(**FOREST), "friedman1"),
    "gradient boosting, 100 trees × depth 3, diabetes": (
        GradientBoostingRegressor(random_state=0),
        "diabetes",
    ),
    "histogram boosting, diabetes": (HistGradientBoostingRegressor(random_state=0), "diabetes"),
}
# What is looked at beside the coefficients
LOOKS: dict[str, Callable[[Any], Any]] = {
    "coefficients": lambda _: None,
    "R²": lambda e: e.fidelity,
    "effects": lambda e: (e.fidelity, e.additive_fidelity, e.effects[0]),
    "objects": lambda e: (e.fidelity, e.additive_fidelity, list(e.effects)),
}


def _table(name: str) -> tuple[pd.DataFrame, Any]:
    if name == "diabetes":
        return load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X, y = make_friedman1(1000, 20, random_state=0)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(20)]), y


def _milliseconds(explainer: Any, batch: pd.DataFrame, look: Callable[[Any], Any]) -> float:
    """CPU time of all threads, the least of some calls: others' work only adds to them."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        look(explainer(batch))
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def times(looks: list[str]) -> dict[str, dict[str, float]]:
    """Return milliseconds of each model and look, by the version of limes that is imported."""
    result: dict[str, dict[str, float]] = {}
    for name, (model, table) in MODELS.items():
        X, y = _table(table)
        model.fit(X, y)
        rng = np.random.default_rng(0)
        columns = [rng.permutation(np.resize(column, ROWS)) for column in X.to_numpy(float).T]
        batch = pd.DataFrame(np.column_stack(columns), columns=X.columns)
        explainer = limes.TabularExplainer(model, X)
        for look in looks:
            LOOKS[look](explainer(batch))  # what all rows share
        result[name] = {look: _milliseconds(explainer, batch, LOOKS[look]) for look in looks}
    return result


def _in_process(path: str, looks: list[str]) -> dict[str, dict[str, float]]:
    command = [sys.executable, "-m", "benchmarks.fit.batch", *looks]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([path, "."])}
    result = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    return json.loads(result.stdout.splitlines()[-1])


def text() -> str:
    """Return the table: medians over rounds, of both versions in turn."""
    from benchmarks.kernels.earlier import COMMIT, current, packages

    rounds = [
        (_in_process(str(packages()), ["coefficients"]), _in_process(str(current()), [*LOOKS]))
        for _ in range(ROUNDS)
    ]
    lines = [
        "| model | coefficients, ms | with R² | with R² and effects | and all as objects "
        f"| coefficients by {COMMIT}, ms | R² and effects over these |",
        "|---" * 7 + "|",
    ]
    for name in MODELS:
        before = np.median([old[name]["coefficients"] for old, _ in rounds])
        alone, *more = (np.median([new[name][look] for _, new in rounds]) for look in LOOKS)
        ratios = " | ".join(f"{ms / alone:.1f}" for ms in more)
        lines.append(f"| {name} | {alone:.0f} | {ratios} | {before:.0f} | {more[1] / before:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(times(sys.argv[1:])))
    else:
        from benchmarks import readme

        readme.replace("fit of batches", text(), by="benchmarks.fit.batch")
