"""Measure: a process a case; in each, limes and ``lime`` in turn, seed after seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from benchmarks.accuracy import lime_sampled, limes_sampled
from benchmarks.accuracy.cases import NAMES, Case, build
from benchmarks.accuracy.sample import Sample
from benchmarks.accuracy.truth import truth
from benchmarks.pool import processes
from benchmarks.progress import say
from benchmarks.speed.cases import AbsentError
from benchmarks.speed.run import machine
from limes._sampling.controls import CONTROLS

CALLS = (256, 1024, 4096)
# of √d
BANDWIDTHS = (0.75, 0.25)
LIMES_SEEDS = 8
_RESAMPLES = 2000
# Cases and bandwidths of the picture, where every control is measured by itself
DRAWN = (
    ("random forest, diabetes", 0.75),
    ("MLP, breast cancer", 0.75),
    ("torch network, wine", 0.75),
    ("SVM, California", 0.25),
    ("boosted trees, California", 0.25),
    ("boosted trees, adult", 0.25),
)


def measure(
    seeds: int = LIMES_SEEDS, cases: str = "", *, drawn: Container[tuple[str, float]] = DRAWN
) -> dict:
    """All cases, or those so called; ``lime``, quicker and noisier, has twice the seeds."""
    names = [name for name in NAMES if cases.lower() in name.lower()]
    result: dict[str, list[dict] | str] = {}
    with processes() as pool:
        futures = {pool.submit(_case, name, seeds, drawn): name for name in names}
        for future in as_completed(futures):
            result[futures[future]] = future.result()
            say(f"{len(result)} of {len(names)} cases, {futures[future]}")
    say("done\n")
    return {
        "machine": machine(),
        "versions": _versions(),
        "seeds": {"limes": seeds, "lime": 2 * seeds},
        "cases": [entry for name in names if isinstance(result[name], list) for entry in result[name]],
        "absent": {name: result[name] for name in names if isinstance(result[name], str)},
    }


def _versions() -> dict[str, str]:
    result = {}
    for package in ("limes", "lime", "scikit-learn", "torch", "numpy"):
        with suppress(PackageNotFoundError):
            result[package] = version(package)
    return result


def _case(name: str, seeds: int, drawn: Container[tuple[str, float]]) -> list[dict] | str:
    """Both bandwidths, or why the case is absent."""
    try:
        case = build(name)
    except AbsentError as reason:
        return str(reason)
    return [
        {
            **_entry(case, factor, seeds),
            "controls": _controls(case, factor, seeds) if (name, factor) in drawn else {},
        }
        for factor in BANDWIDTHS
    ]


def _entry(case: Case, factor: float, seeds: int) -> dict:
    bandwidth = factor * np.sqrt(case.size)
    limit = truth(case, bandwidth)
    ours, theirs = limes_sampled.prepare(case, bandwidth), lime_sampled.prepare(case, bandwidth)
    ours(min(CALLS), 0)  # loads and compiles
    misplaced = lime_sampled.misplaced(case)
    calls = {}
    for n in CALLS:
        limes_samples = [ours(n, seed) for seed in range(seeds)]
        pairs = [theirs(n, seed) for seed in range(2 * seeds)]
        lime_samples, plain = zip(*pairs, strict=True)
        calls[str(n)] = _compared(limit.coef, limes_samples, lime_samples, plain, misplaced)
    return {
        "case": case.name,
        "columns": case.size,
        "bandwidth": factor,
        "truth": {"exact": case.readable is not None, "squared_error": limit.squared_error},
        "size": float((limit.coef**2).sum()),
        "misplaced": [case.table.X.columns[j] for j in misplaced],
        "calls": calls,
    }


def _compared(
    limit: np.ndarray,
    ours: Sequence[Sample],
    theirs: Sequence[Sample],
    plain: Sequence[Sample],
    misplaced: Sequence[int],
) -> dict:
    """Mean squared errors, and the ratios of others' to limes's."""
    kept = np.setdiff1d(np.arange(limit.size), misplaced)
    others = {"lime": theirs, "lime, no penalty": plain}
    squares = {"limes": _squares(limit, ours), **{who: _squares(limit, s) for who, s in others.items()}}
    rest = {who: _squares(limit, s, kept) for who, s in {"limes": ours, **others}.items()}
    return {
        "mse": {who: float(s.mean()) for who, s in squares.items()},
        "ratio": {who: _ratio(squares[who], squares["limes"]) for who in others},
        "ratio_rest": {who: _ratio(rest[who], rest["limes"]) for who in others} if misplaced else {},
        "control": dict(Counter(sample.control for sample in ours).most_common()),
        "seconds": {
            "limes": float(np.median([s.seconds for s in ours])),
            "lime": float(np.median([s.seconds for s in theirs])),
        },
    }


def _squares(limit: np.ndarray, samples: Sequence[Sample], kept: Any = slice(None)) -> np.ndarray:
    """Sum over the coefficients of squared errors, one a sample."""
    return np.array([((sample.coef - limit)[kept] ** 2).sum() for sample in samples])


def _ratio(others: np.ndarray, ours: np.ndarray) -> dict[str, float]:
    """Ratio of the means, and its standard error by bootstrap over seeds."""
    rng = np.random.default_rng(0)
    means = [rng.choice(s, size=(_RESAMPLES, s.size)).mean(axis=1) for s in (others, ours)]
    return {"value": float(others.mean() / ours.mean()), "error": float((means[0] / means[1]).std())}


def _controls(case: Case, factor: float, seeds: int) -> dict[str, dict[str, float]]:
    """Mean squared error with each control by itself, by calls."""
    bandwidth = factor * np.sqrt(case.size)
    limit = truth(case, bandwidth).coef
    result = {}
    for control in _there_are(case):
        explain = limes_sampled.prepare(case, bandwidth, control=control)
        samples = {n: [explain(n, seed) for seed in range(seeds)] for n in CALLS}
        result[control] = {str(n): float(_squares(limit, ours).mean()) for n, ours in samples.items()}
    return result


def _there_are(case: Case) -> Iterator[str]:
    yield from CONTROLS
    if case.readable is None and hasattr(case.subject, "decision_function"):
        yield "margin"
