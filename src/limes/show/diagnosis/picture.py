"""The geometry of pictures: which lines are drawn, where they and their labels lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from limes._arrays import Floats

if TYPE_CHECKING:
    from limes.diagnostics.bandwidth import Path

# Okabe and Ito's, told apart by the colour-blind
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#777777")


def largest(path: Path, most: int) -> list[int]:
    """The features whose coefficients get largest at any bandwidth, up to as many as there are colours."""
    sizes = np.nanmax(np.abs(np.nan_to_num(path.values)), axis=0)
    order = np.argsort(-sizes, kind="stable")[: min(most, len(COLOURS))]
    return [int(j) for j in order if sizes[j] > 0]


def spread_labels(wanted: Sequence[float], gap: float) -> list[float]:
    """Places for labels near where they are wanted, none nearer to another than the gap."""
    order = np.argsort(wanted, kind="stable")
    places = np.array([wanted[k] for k in order], dtype=np.float64)
    steps = gap * np.arange(places.size)
    # the nearest ascending places with gaps: an isotonic fit of what is left when gaps are taken out
    fitted = _ascending(places - steps) + steps
    found = np.empty(places.size)
    found[order] = fitted
    return [float(y) for y in found]


def _ascending(values: Floats) -> Floats:
    """The nearest values that do not descend: neighbours that do are pooled."""
    pools: list[list[float]] = []
    for value in values:
        pools.append([float(value)])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    return np.array([np.mean(pool) for pool in pools for _ in pool])


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two ends, with 0 among them if it is between."""
    from matplotlib.ticker import MaxNLocator

    found = MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(t) for t in found if low <= t <= high]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 or 5 times a power of ten between two ends."""
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    every = sorted(float(m * p) for p in powers for m in (1, 2, 5))
    inside = [t for t in every if low <= t <= high]
    return inside if len(inside) <= 9 else [t for t in inside if f"{t:.0e}".startswith("1")]
