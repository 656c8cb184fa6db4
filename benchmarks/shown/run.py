"""Deletion and stability: what is left of the answer without the features that a library ranks first.

Deletion removes the five superpixels, or ten words, with the largest coefficients in favour of the answer; a
share of 0 means that nothing of the probability is left. Stability compares two seeds: the correlation of the
coefficients, and the share of the first ten features, by size, that are in both.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.progress import say
from benchmarks.speed.run import machine

PARTS = {"photographs": 5, "reviews": 10}
_TOP = 10


def measure(cases: str = "") -> dict[str, Any]:
    """Rows of figures: a part, a library, its medians."""
    rows = []
    for part, removed in PARTS.items():
        if cases in part:
            rows += _part(part, removed)
    say("done\n")
    return {"machine": machine(), "rows": rows}


def _part(part: str, removed: int) -> list[dict[str, Any]]:
    module = import_module(f"benchmarks.shown.{part}")
    ways = {name: way for name, way in module.WAYS.items() if find_spec(name.partition(".")[0])}
    figures: dict[str, list[tuple[float, ...]]] = {name: [] for name in ("by chance", *ways)}
    items = list(module.items())
    for i, item in enumerate(items):
        say(f"{part}: {i + 1} of {len(items)}")
        whole = float(item.masked(np.ones((1, item.size)))[0])
        rng = np.random.default_rng(i)
        chance = [_without(item, rng.choice(item.size, removed, replace=False)) / whole for _ in range(50)]
        figures["by chance"].append((float(np.mean(chance)), np.nan, np.nan))
        for name, way in ways.items():
            first, second = way(item, 1), way(item, 2)
            share = _without(item, np.argsort(-first)[:removed]) / whole
            figures[name].append((share, _correlation(first, second), _overlap(first, second)))
    return [
        {
            "part": part,
            "calls": module.CALLS,
            "library": name,
            "items": len(values),
            "left": float(np.mean([row[0] for row in values])),
            "correlation": float(np.nanmedian([row[1] for row in values])) if name != "by chance" else None,
            "shared": float(np.nanmedian([row[2] for row in values])) if name != "by chance" else None,
        }
        for name, values in figures.items()
    ]


def _without(item: Any, features: Any) -> float:
    z = np.ones((1, item.size))
    z[0, features] = 0
    return float(item.masked(z)[0])


def _correlation(first: Any, second: Any) -> float:
    """0 where coefficients are all the same, as of a lasso that leaves none."""
    return float(np.corrcoef(first, second)[0, 1]) if first.std() > 0 and second.std() > 0 else 0.0


def _overlap(first: Any, second: Any) -> float:
    one, other = (
        set(np.argsort(-np.abs(values), kind="stable")[:_TOP].tolist()) for values in (first, second)
    )
    return len(one & other) / _TOP
