"""The law of one column: cells, what is drawn inside them, and the weight's factor at a row.

By definition (MATHEMATICS, section 2): cells are bins (q_{b-1}, q_b], categories, and "missing"; a cell has
its frequency in the background; inside a bin lies a truncated normal with the bin's mean and standard
deviation, a uniform law, or the bin's own values. Weights "bins" count another cell e^{-1/(2ν²)}; "euclidean"
multiplies the law by e^{-(x - ξ)²/(2ν²)}, in standard deviations of the column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.normal import log_interval, log_sum

Array = Any


@dataclass(frozen=True)
class Law:
    """Pieces of cells. A piece with std 0 is a point, one with infinite std is flat before it is weighted.

    Attributes
    ----------
    inner
        (p - 1,) inner edges; None for categories, whose points are the cells.
    cell, mean, std, low, high, log_weight
        (m,) of the pieces: owner, parameters, limits, log P(piece | cell).
    log_mass
        (cells,) log P(cell), up to a constant.
    scale
        Unit of distance.
    slope
        Whether the feature is x itself.
    """

    inner: Array | None
    cell: Array
    mean: Array
    std: Array
    low: Array
    high: Array
    log_weight: Array
    log_mass: Array
    scale: float
    slope: bool = False

    @property
    def points(self) -> Array:
        """Which pieces are points."""
        return self.std == 0

    def locate(self, x: float) -> int:
        """The cell of a value."""
        if self.inner is None or np.isnan(x):
            same = np.isnan(self.mean) if np.isnan(x) else self.mean == x
            return int(self.cell[np.flatnonzero(same & self.points)[0]])
        return int(np.searchsorted(self.inner, x, side="left"))

    def weighted(self, x: float, weights: str, bandwidth: float) -> Law:
        """The law times the weight's factor at the instance's value x."""
        with np.errstate(divide="ignore"):
            penalty = float(np.minimum(0.5 / np.float64(bandwidth) ** 2, 1e300))
        if weights == "bins" or self.inner is None or np.isnan(x):
            others = np.arange(self.log_mass.size) != self.locate(x)
            return replace(self, log_mass=self.log_mass - penalty * others)
        return self._gaussian(x, bandwidth * self.scale, penalty)

    def _gaussian(self, x: float, nu: float, penalty: float) -> Law:
        if np.isinf(nu):
            return self
        mean, std, factor = _product(self.mean, self.std, x, nu)
        spread = ~self.points
        before = log_interval(self.low, self.high, self.mean, self.std)
        after = log_interval(self.low, self.high, mean, std)
        factor = np.where(spread, factor + after - np.where(spread, before, 0.0), factor)
        factor = np.where(np.isnan(self.mean), -penalty, factor)
        piece = self.log_weight + factor
        cell = np.array([log_sum(piece[self.cell == c]) for c in range(self.log_mass.size)])
        return replace(
            self, mean=mean, std=std, log_weight=piece - cell[self.cell], log_mass=self.log_mass + cell
        )


def _product(mean: Array, std: Array, x: float, nu: float) -> tuple[Array, Array, Array]:
    """Normal(mean, std) times e^{-(· - x)²/(2ν²)}: mean, std and log of the constant in front.

    A flat piece becomes that normal curve itself, whose constant is ν √(2π); a point loses its weight.
    """
    flat, point = np.isinf(std), std == 0
    s = np.where(flat | point, 1.0, std)
    m = np.where(flat | np.isnan(mean), x, mean)
    total = nu**2 + s**2
    new_mean = np.where(flat, x, np.where(point, mean, (nu**2 * m + s**2 * x) / total))
    new_std = np.where(flat, nu, np.where(point, 0.0, nu * s / np.sqrt(total)))
    curved = np.log(nu / np.sqrt(total)) - (x - m) ** 2 / (2 * total)
    factor = np.where(
        flat, np.log(nu * np.sqrt(2 * np.pi)), np.where(point, -((x - m) ** 2) / (2 * nu**2), curved)
    )
    return new_mean, new_std, factor


def edges_of(x: Array, bins: Any) -> Array:
    """Full edges (p + 1,) of a column: its quantiles, or those that are given.

    A last bin without values is one with the bin before it, as the last edge is the largest value.
    """
    present = x[~np.isnan(x)]
    if not isinstance(bins, str | int):
        return np.asarray(bins, dtype=float)
    count = {"quartile": 4, "decile": 10}.get(bins, bins) if isinstance(bins, str) else bins
    inner = np.unique(np.percentile(present, [100 * i / count for i in range(1, count)]))
    if inner[-1] >= present.max():
        inner = inner[:-1]
    return np.concatenate([[present.min()], inner, [present.max()]])


def categories(x: Array, scale: float = 1.0) -> Law:
    """A column of categories: every value is a cell and a point, missing among them."""
    values, counts = np.unique(x, return_counts=True)
    zero = np.zeros(values.size)
    return Law(
        None, np.arange(values.size), values, zero, values, values, zero, np.log(counts / counts.sum()), scale
    )


def numbers(x: Array, bins: Any, law: str) -> Law:
    """A column of numbers, cut into bins; ``bins`` None for one piece whose feature is x itself."""
    present = x[~np.isnan(x)]
    scale = float(present.std()) or 1.0
    if present.min() == present.max():
        scale = 1.0
    if bins is None:
        return _whole(present, law, scale)
    edges = edges_of(x, bins)
    inner = edges[1:-1]
    owner = np.searchsorted(inner, present, side="left")
    pieces: list[tuple[float, ...]] = []
    for b in range(edges.size - 1):
        pieces += _inside(present[owner == b], edges[b], edges[b + 1], law, b)
    counts = np.bincount(owner, minlength=edges.size - 1).astype(float)
    if present.size < x.size:
        pieces.append((edges.size - 1, np.nan, 0.0, np.nan, np.nan, 1.0))
        counts = np.append(counts, x.size - present.size)
    return _assembled(inner, pieces, counts, scale)


def _assembled(
    inner: Array, pieces: list[tuple[float, ...]], counts: Array, scale: float, *, slope: bool = False
) -> Law:
    cell, mean, std, low, high, weight = np.array(pieces, dtype=float).T
    with np.errstate(divide="ignore"):
        log_mass = np.log(counts / counts.sum())
    return Law(inner, cell.astype(int), mean, std, low, high, np.log(weight), log_mass, scale, slope)


def _whole(x: Array, law: str, scale: float) -> Law:
    one = np.ones(1)
    if law == "truncnorm" and x.min() < x.max():
        pieces: list[tuple[float, ...]] = [(0, x.mean(), x.std(), -np.inf, np.inf, 1.0)]
    else:
        pieces = _inside(x, x.min(), x.max(), law, 0)
    return _assembled(np.zeros(0), pieces, one, scale, slope=True)


def _inside(x: Array, low: float, high: float, law: str, b: int) -> list[tuple[float, ...]]:
    """Pieces of one bin; uniform in an empty one."""
    if x.size == 0:
        return [(b, 0.0, np.inf, low, high, 1.0)]
    if x.min() == x.max():
        return [(b, x[0], 0.0, x[0], x[0], 1.0)]
    if law == "empirical":
        values, counts = np.unique(x, return_counts=True)
        return [(b, v, 0.0, v, v, c / x.size) for v, c in zip(values, counts, strict=True)]
    if law == "uniform":
        return [
            (
                b,
                0.0,
                np.inf,
                low if np.isfinite(low) else x.min(),
                high if np.isfinite(high) else x.max(),
                1.0,
            )
        ]
    return [(b, x.mean(), x.std(), low, high, 1.0)]
