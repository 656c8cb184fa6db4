"""Three models on two tables under two bandwidths, each explained from many pools of 2,048 answers.

A pool this small leaves errors far above those of the truth, which is that of ``black_boxes``. An interval
of a difference takes the errors of two rows as independent; answers that they share make them alike.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import limes
from benchmarks.black_boxes.cases import build
from benchmarks.black_boxes.run import BANDWIDTHS, truths
from benchmarks.pool import processes
from benchmarks.progress import say
from benchmarks.speed.run import machine

MODELS, TABLES = ("network", "nearest neighbours", "XGBoost"), ("iris", "wine recognition")
ROWS, CALLS, SEEDS = 4, 2048, 200
NORMAL = 1.96


def measure(seeds: int = SEEDS, cases: str = "") -> dict:
    """All cases, or those with ``cases`` in their name; ``seeds`` pools each."""
    names = [f"{model}, {table}" for table in TABLES for model in MODELS]
    names = [name for name in names if cases.lower() in name.lower()]
    measured = []
    with processes() as pool:
        for name, its in zip(names, pool.map(_case, names, [seeds] * len(names)), strict=True):
            measured.extend(its)
            say(name)
    return {"machine": machine(), "rows": ROWS, "calls": CALLS, "seeds": seeds, "cases": measured}


def _case(name: str, seeds: int) -> list[dict[str, Any]]:
    case = build(name)
    X = case.table.X
    rows = X.iloc[np.random.default_rng(0).integers(len(X), size=ROWS)].reset_index(drop=True)
    widths = {b: b * np.sqrt(X.shape[1]) for b in BANDWIDTHS}
    explainers = {b: limes.TabularExplainer(case.ask, X, bandwidth=width) for b, width in widths.items()}
    exact = truths(case, explainers, rows)
    lines = []
    for bandwidth, width in widths.items():
        coef, squared = exact[bandwidth]
        values, errors = [], []
        for seed in range(seeds):
            explainer = limes.TabularExplainer(case.ask, X, bandwidth=width, max_calls=CALLS, rng=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                explanation = explainer(rows, progress=False)
            if (explanation.shared_calls > 0).all():
                values.append(explanation.coefficients.values)
                errors.append(explanation.coefficients.standard_errors)
        lines.append(
            {
                "case": name,
                "bandwidth": bandwidth,
                "pools": len(values),
                "coefficients": _coverage(np.array(values), np.hypot(errors, np.sqrt(squared)), coef),
                "differences": _coverage(
                    _apart(np.array(values)),
                    np.hypot(np.hypot(*_two(np.array(errors))), np.hypot(*_two(np.sqrt(squared)))),
                    _apart(coef),
                ),
            }
        )
    return lines


def _two(of_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every second row, and of the row after it."""
    return of_rows[..., ::2, :], of_rows[..., 1::2, :]


def _apart(of_rows: np.ndarray) -> np.ndarray:
    one, other = _two(of_rows)
    return one - other


def _coverage(values: np.ndarray, errors: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Share of intervals that hold the truth, and its standard error over pools; none where none is left."""
    if not len(values):
        return {"covered": float("nan"), "error": float("nan")}
    each = (np.abs(values - truth) <= NORMAL * errors).mean(axis=(1, 2))
    return {"covered": float(each.mean()), "error": float(each.std(ddof=1) / np.sqrt(len(each)))}
