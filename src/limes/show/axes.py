"""What all pictures share: axes, colours, frames, and where lines, ticks and labels lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limes.explanation.wording import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from limes._arrays import Floats
    from limes.diagnostics.bandwidth import Path

# Safe for the colour-blind
RAISES, LOWERS, UNKNOWN = "#2b7bba", "#e07b21", "#9a9a9a"
# By Okabe and Ito
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#777777")


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return `ax`, or if it is None the axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    axes: Any = plt.subplots(figsize=size, layout="constrained")[1]
    return axes  # type: ignore[no-any-return]


def plain_frame(axes: Axes, labelsize: float) -> None:
    """Draw a pale grid and neither spines nor tick marks."""
    axes.grid(color="#e3e7ec", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=labelsize)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)


def bandwidth_axis(axes: Axes, bandwidths: Floats) -> None:
    """Make x a logarithmic axis over these bandwidths."""
    low, high = float(bandwidths[0]), float(bandwidths[-1])
    ticks = log_ticks(low, high)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_xticks(ticks, labels=[number(t, 2) for t in ticks])
    axes.minorticks_off()


def largest(path: Path, most: int) -> list[int]:
    """Return the features with the largest coefficients at any bandwidth, at most one for each colour."""
    sizes = np.nanmax(np.abs(np.nan_to_num(path.values)), axis=0)
    order = np.argsort(-sizes, kind="stable")[: min(most, len(COLOURS))]
    return [int(j) for j in order if sizes[j] > 0]


def spread_labels(targets: Sequence[float], gap: float) -> list[float]:
    """Return label positions near their targets that are at least `gap` apart."""
    order = np.argsort(targets, kind="stable")
    ascending = np.array([targets[k] for k in order], dtype=np.float64)
    steps = gap * np.arange(ascending.size)
    # the nearest ascending positions with gaps: an isotonic fit of the positions less all gaps below them
    positions = np.empty(ascending.size)
    positions[order] = _isotonic(ascending - steps) + steps
    return [float(y) for y in positions]


def _isotonic(values: Floats) -> Floats:
    """Return the nearest values that do not descend, by pooling adjacent violators."""
    pools: list[list[float]] = []
    for value in values:
        pools.append([float(value)])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    return np.array([np.mean(pool) for pool in pools for _ in pool])


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers between two ends, with 0 if it lies between."""
    from matplotlib.ticker import MaxNLocator

    values = MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(t) for t in values if low <= t <= high]


def log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 or 5 times a power of ten between two ends."""
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    every = sorted(float(m * p) for p in powers for m in (1, 2, 5))
    inside = [t for t in every if low <= t <= high]
    return inside if len(inside) <= 9 else [t for t in inside if f"{t:.0e}".startswith("1")]
