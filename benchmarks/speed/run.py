"""Measure: competitors in turn, round after round, in one process; medians, and ratios within a round."""

from __future__ import annotations

import platform
import resource
import time
from importlib.metadata import version
from types import ModuleType

import numpy as np

from benchmarks.speed import (
    lime_default,
    limes_exact,
    limes_one,
    predict,
    shap_interventional,
    shap_path,
)
from benchmarks.speed.cases import CASES, ROWS, build

COMPETITORS: list[ModuleType] = [
    limes_exact,
    limes_one,
    predict,
    shap_path,
    shap_interventional,
    lime_default,
]
ROUNDS = 5
# A competitor that takes longer for its rows in the first round is asked for one row in the others.
PATIENCE = 20.0


def measure() -> dict:
    """All cases; prints as it goes."""
    libraries = ("limes", "shap", "lime", "scikit-learn", "xgboost-cpu", "lightgbm", "numpy", "numba")
    return {
        "machine": f"{platform.machine()}, {platform.python_implementation()} {platform.python_version()}, "
        "2 shared cores: compare ratios, not seconds",
        "versions": {name: version(name) for name in libraries},
        "rounds": ROUNDS,
        "cases": [_case(name) for name in CASES],
    }


def _case(name: str) -> dict:
    case = build(name)
    ready, preparation = {}, {}
    for competitor in COMPETITORS:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        ready[competitor.NAME] = competitor.prepare(case)
        preparation[competitor.NAME] = {
            "seconds": time.perf_counter() - start,
            "memory_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
        }
    seconds: dict[str, list[float]] = {c.NAME: [] for c in COMPETITORS}
    rows = {c.NAME: c.ROWS for c in COMPETITORS}
    rng = np.random.default_rng(0)
    for round_ in range(ROUNDS + 1):
        for competitor in COMPETITORS:
            taken = _time(ready[competitor.NAME], case.X, rng.integers(ROWS, size=rows[competitor.NAME]))
            if round_ > 0:  # the first round warms up
                seconds[competitor.NAME].append(taken)
            elif taken * rows[competitor.NAME] > PATIENCE:
                rows[competitor.NAME] = 1
    medians = {who: float(np.median(times)) for who, times in seconds.items()}
    ratios = {
        who: float(np.median(np.array(times) / np.array(seconds["limes"]))) for who, times in seconds.items()
    }
    result = {"case": name, "preparation": preparation, "seconds_a_row": medians, "times_limes": ratios}
    print(name, {who: f"{1e3 * s:.3g} ms" for who, s in medians.items()}, flush=True)
    return result


def _time(explain, X: np.ndarray, rows: np.ndarray) -> float:
    batch = X[rows]
    start = time.perf_counter()
    explain(batch)
    return (time.perf_counter() - start) / len(rows)
