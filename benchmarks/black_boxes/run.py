"""limes with its defaults for a thousand rows, ``lime`` with its defaults for twenty of them.

The truth is weighted least squares of 2¹⁷ rows of the law that both share, in eight independent sequences of
Sobol' points, whose spread bounds its error. ``lime``'s coefficients are those of lime's ridge.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats.qmc import Sobol

import limes
from benchmarks.accuracy.lime_sampled import Codes
from benchmarks.black_boxes.cases import NAMES, Case, build
from benchmarks.progress import say
from benchmarks.speed.cases import AbsentError
from benchmarks.speed.run import machine

BANDWIDTHS = (0.75, 0.25)
# A thousand rows share the calls that it takes
TOLERANCE = "1.5%"
ROWS, LIME_ROWS, LIME_CALLS = 1000, 20, 5000
SEQUENCES, TRUTH_ROWS = 8, 2**17


def measure(seeds: int = LIME_ROWS, cases: str = "") -> dict:
    """All cases, or those with ``cases`` in their name; ``seeds`` rows for ``lime``."""
    result = []
    for name in NAMES:
        if cases.lower() in name.lower():
            result.extend(_case(name, seeds))
            say(name)
    return {"machine": machine(), "rows": ROWS, "lime_rows": seeds, "lime_calls": LIME_CALLS, "cases": result}


def _case(name: str, lime_rows: int) -> list[dict[str, Any]]:
    try:
        case = build(name)
    except AbsentError as reason:
        return [{"case": name, "absent": str(reason)}]
    X = case.table.X
    places = np.random.default_rng(0).integers(len(X), size=ROWS)
    rows = X.iloc[places].reset_index(drop=True)
    size = X.shape[1]
    explainers = {
        b: limes.TabularExplainer(case.ask, X, bandwidth=b * np.sqrt(size), tolerance=TOLERANCE)
        for b in BANDWIDTHS
    }
    exact = truths(case, explainers, rows.iloc[:lime_rows])
    return [_compared(name, case, b, explainers[b], rows, exact[b], lime_rows) for b in BANDWIDTHS]


def _compared(
    name: str,
    case: Case,
    bandwidth: float,
    explainer: limes.TabularExplainer,
    rows: pd.DataFrame,
    truth: tuple[np.ndarray, float],
    lime_rows: int,
) -> dict[str, Any]:
    before, start = case.ask.rows, time.perf_counter()
    explanation = explainer(rows, progress=False)
    seconds, calls = time.perf_counter() - start, case.ask.rows - before
    before, start = case.ask.rows, time.perf_counter()
    lime = _lime(case, bandwidth * np.sqrt(rows.shape[1]), rows.iloc[:lime_rows])
    lime_seconds, lime_calls = time.perf_counter() - start, case.ask.rows - before
    coef, squared = truth
    values = explanation.coefficients.values[:lime_rows]
    inside = np.abs(values - coef) <= 1.96 * np.hypot(
        explanation.coefficients.standard_errors[:lime_rows], np.sqrt(squared)
    )
    return {
        "case": name,
        "columns": rows.shape[1],
        "bandwidth": bandwidth,
        "limes": {
            "calls": calls,
            "seconds": seconds,
            "mse": float(((values - coef) ** 2).mean()),
            "coverage": float(inside.mean()),
            "shared": float((explanation.shared_calls > 0).mean()),
        },
        # its time and calls for as many rows
        "lime": {
            "calls": lime_calls / lime_rows * len(rows),
            "seconds": lime_seconds / lime_rows * len(rows),
            "mse": float(((lime - coef) ** 2).mean()),
        },
        "truth_mse": float(squared.mean()),
    }


def truths(
    case: Case, explainers: dict[float, limes.TabularExplainer], rows: pd.DataFrame
) -> dict[float, tuple[np.ndarray, np.ndarray]]:
    """Coefficients (rows, d) at each bandwidth, and the squares of their standard errors."""
    codes, size = Codes(case.table.X), rows.shape[1]
    family = explainers[BANDWIDTHS[0]].design(rows.iloc[0]).family
    count = TRUTH_ROWS // SEQUENCES
    levels = np.concatenate([Sobol(size, rng=1000 + s).random(count) for s in range(SEQUENCES)])
    x, cells = family.draw(levels)
    table = codes.decode(x)
    f = np.concatenate([case.ask(table.iloc[i : i + 8192]) for i in range(0, len(x), 8192)])
    truths = {}
    for b, explainer in explainers.items():
        fits = []
        for i in range(len(rows)):
            z = (cells == explainer.design(rows.iloc[i]).cells).astype(float)
            w = explainer.design(rows.iloc[i]).family.weights.ratio ** (size - z.sum(axis=1))
            fits.append([_least_squares(z[s], w[s], f[s]) for s in _parts(count)])
        fits = np.array(fits)
        truths[b] = fits.mean(axis=1), fits.var(axis=1, ddof=1) / SEQUENCES
    return truths


def _parts(count: int) -> list[slice]:
    return [slice(s * count, (s + 1) * count) for s in range(SEQUENCES)]


def _least_squares(z: np.ndarray, w: np.ndarray, f: np.ndarray) -> np.ndarray:
    a = np.column_stack([np.ones(len(z)), z])
    weighted = a * w[:, None]
    return np.linalg.lstsq(weighted.T @ a, weighted.T @ f, rcond=None)[0][1:]


def _lime(case: Case, bandwidth: float, rows: pd.DataFrame) -> np.ndarray:
    from lime.lime_tabular import LimeTabularExplainer

    codes = Codes(case.table.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        explainer = LimeTabularExplainer(
            codes.encode(case.table.X),
            mode="regression",
            categorical_features=list(codes.levels),
            kernel_width=bandwidth,
            feature_selection="none",
            random_state=0,
        )
    result = [
        explainer.explain_instance(
            row, lambda x: case.ask(codes.decode(x)), num_features=len(row), num_samples=LIME_CALLS
        )
        for row in codes.encode(rows)
    ]
    # of regressions, local_exp[0] has the sign turned
    return np.array([[value for _, value in sorted(one.local_exp[1])] for one in result])
