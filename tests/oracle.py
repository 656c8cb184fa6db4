"""Oracles: direct computations of what limes computes in closed form.

Nothing here imports the library. A column is a list of points with masses, obtained by Gauss-Legendre panels
that are halved until the density is smooth on each; an expectation is the plain sum over the grid of all
columns; the surrogate is either the definition of its coefficients on that grid (``explain``), or weighted
least squares by the normal equations, which needs no theory at all (``least_squares``). Sums run in extended
precision and masses are kept as logarithms, so that a bandwidth of 0.01, where weights are exp(-5000), is no
exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

# -- tolerances: each is named once -----------------------------------------------------------------------

# Exact results against oracles: the promise to users.
EXACT = 1e-9
# Two ways to the same number that differ only in the order of a few thousand roundings.
ROUNDING = 1e-12
# Where a coefficient may truly be 0, errors are judged against this share of the largest value of f: together
# with EXACT, a thousand roundings of f itself.
VANISHING = 1e-4
# |z| of a mean over seeds: a correct program fails one such test in 150,000.
Z_LIMIT = 4.5
# The normal equations lose digits: the condition number of a Gram matrix of indicators at moderate bandwidths
# is below 1e4.
NORMAL_EQUATIONS = 1e-11

_NODES, _WEIGHTS = (a.astype(np.longdouble) for a in np.polynomial.legendre.leggauss(16))
# exp(-60) = 1e-26 of the peak density cannot be seen in any sum
_NEGLIGIBLE = 60.0
# 16 nodes integrate exp(-8 t) on [0, 1] to the last digit
_SMOOTH = 8.0


# -- comparing --------------------------------------------------------------------------------------------


def error(result, expected, size=0.0):
    """Largest error, relative to the largest expected value or to a vanishing share of the size of f."""
    result, expected = np.asarray(result, dtype=np.longdouble), np.asarray(expected, dtype=np.longdouble)
    assert result.shape == expected.shape, (result.shape, expected.shape)
    scale = max(np.abs(expected).max(initial=0), VANISHING * float(size))
    gap = np.abs(result - expected).max(initial=0)
    if not np.isfinite(gap):
        return np.inf
    return float(gap / scale) if scale > 0 else float(gap)


def relative_errors(result, expected):
    """Elementwise relative errors, 0 where both are 0."""
    result, expected = np.asarray(result, dtype=np.longdouble), np.asarray(expected, dtype=np.longdouble)
    assert result.shape == expected.shape, (result.shape, expected.shape)
    gap = np.abs(result - expected)
    return np.where(gap == 0, 0.0, gap / np.where(expected == 0, 1e-300, np.abs(expected))).astype(float)


# -- columns ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """Points x with masses probability · exp(log_weight), not normalised, and the cell of each."""

    x: np.ndarray
    probability: np.ndarray
    cell: np.ndarray
    log_weight: np.ndarray | float = 0.0

    @property
    def log_mass(self):
        with np.errstate(divide="ignore"):
            return np.log(np.asarray(self.probability, dtype=np.longdouble)) + self.log_weight

    @property
    def log_total(self):
        return log_sum(self.log_mass)

    def law(self, chosen=slice(None)):
        """Probabilities of the chosen points given that one of them happens."""
        part = self.log_mass[chosen]
        mass = np.exp(part - part.max())
        return mass / mass.sum()

    def weighted(self, log_weight):
        """Multiply by a weight, given by its log: an array (n,) or a function of x."""
        extra = log_weight(self.x) if callable(log_weight) else log_weight
        return Column(self.x, self.probability, self.cell, self.log_weight + extra)

    def collapsed(self, breaks):
        """One point between any two breaks in a cell: the same law for piecewise constant functions."""
        part = np.searchsorted(np.unique(breaks), self.x, side="left")
        part = np.where(np.isnan(self.x), -1, part)
        keys, first, group = np.unique(
            np.stack([self.cell, part]), axis=1, return_index=True, return_inverse=True
        )
        log_mass, group = self.log_mass, group.ravel()
        masses = np.array([log_sum(log_mass[group == g]) for g in range(keys.shape[1])])
        return Column(self.x[first], np.ones(first.size), self.cell[first], masses)


def normal(mean, std):
    """Log density of a normal law, up to a constant; std = inf is uniform."""
    return lambda x: -0.5 * ((np.asarray(x, dtype=np.longdouble) - mean) / std) ** 2


@dataclass(frozen=True)
class Smooth:
    """Log of a smooth weight exp(-(x - ξ)² / (2ν²))."""

    instance: float
    bandwidth: float

    def __call__(self, x):
        return -0.5 * ((np.asarray(x, dtype=np.longdouble) - self.instance) / self.bandwidth) ** 2


def cell_points(mean, std, lower, upper, *, log_weight=None, breaks=(), resolution=np.inf):
    """Points and log masses of normal(mean, std) cut to [lower, upper], normalised, times a weight.

    Panels are split at the breaks and are no longer than the resolution, for functions that need it.
    """
    if std == 0 or lower == upper:
        x = np.array([min(max(mean, lower), upper)], dtype=np.longdouble)
        return x, np.zeros(1, dtype=np.longdouble) + (0 if log_weight is None else log_weight(x))
    density = normal(mean, std)
    _, whole = panels(density, *_reach(lower, upper, std, mean))
    if log_weight is None:
        tilted, ends = density, _reach(lower, upper, std, mean)
    else:
        # the product of law and weight is largest between the mean and the instance
        tilted = lambda x: density(x) + log_weight(x)  # noqa: E731
        ends = _reach(lower, upper, std, mean, log_weight.instance)
    x, masses = panels(tilted, *ends, breaks, resolution)
    return x, masses - log_sum(whole)


def cell_mean(mean, std, lower, upper):
    """Mean of normal(mean, std) cut to [lower, upper]."""
    x, log_mass = cell_points(mean, std, lower, upper)
    return float((x.astype(np.longdouble) * np.exp(log_mass)).sum())


def _reach(lower, upper, std, *peaks):
    """Replace infinite ends by finite ones, 40 standard deviations beyond all that attracts the law."""
    start = lower if np.isfinite(lower) else min(*peaks, upper, max(peaks)) - 40 * std
    end = upper if np.isfinite(upper) else max(*peaks, lower, min(peaks)) + 40 * std
    return start, end


def binned_column(edges, means, stds, frequencies=None, *, log_weight=None, breaks=(), resolution=np.inf):
    """A column of bins with truncated normals inside, times a weight that is a function of x."""
    count = len(edges) - 1
    mass = np.ones(count) if frequencies is None else np.asarray(frequencies, float)
    xs, ms, cs = [], [], []
    for b in range(count):
        if mass[b] == 0:
            continue
        x, log_mass = cell_points(
            means[b],
            stds[b],
            edges[b],
            edges[b + 1],
            log_weight=log_weight,
            breaks=breaks,
            resolution=resolution,
        )
        xs.append(x)
        ms.append(log_mass + np.log(np.longdouble(mass[b] / mass.sum())))
        cs.append(np.full(x.size, b))
    x = np.concatenate(xs).astype(float)
    return Column(x, np.ones(x.size), np.concatenate(cs), np.concatenate(ms))


def atoms_column(values, masses, cells=None):
    """Point masses; each its own cell if not said otherwise."""
    values = np.asarray(values, dtype=float)
    cells = np.arange(values.size) if cells is None else np.asarray(cells)
    return Column(values, np.asarray(masses, dtype=float), cells)


def bin_weighted(column, cell, bandwidth):
    """Multiply by LIME's weight for bins: exp(-1/(2ν²)) outside the instance's cell."""
    return column.weighted(np.where(column.cell == cell, 0.0, -0.5 / np.longdouble(bandwidth) ** 2))


def bin_of(edges, x):
    """The bin (q_{b-1}, q_b] that x lies in, by counting inner edges below x."""
    return sum(1 for edge in edges[1:-1] if edge < x)


def panels(log_density, lower, upper, breaks=(), resolution=np.inf):
    """Points and log masses of a log-concave density between finite or infinite ends that hold its peak."""
    cuts = np.array([lower, *sorted({b for b in breaks if lower < b < upper}), upper], dtype=np.longdouble)
    ends = np.stack([cuts[:-1], cuts[1:]], axis=1)
    finished = []
    while len(ends):
        half = 0.5 * (ends[:, 1:] - ends[:, :1])
        x = np.concatenate([ends[:, :1], ends[:, :1] + half * (1 + _NODES), ends[:, 1:]], axis=1)
        height = log_density(x)
        # the panel with the peak shares an end with its neighbour: it is never the one that is dropped
        peak = max([height.max(), *(h.max() for _, h, _ in finished)])
        matters = height.max(axis=1) > peak - _NEGLIGIBLE
        fine = (height.max(axis=1) - height.min(axis=1) <= _SMOOTH) & (2 * half[:, 0] <= resolution)
        fine |= half[:, 0] <= 1e-18 * np.abs(ends).max(axis=1)
        finished += list(zip(x[fine], height[fine], half[fine], strict=True))
        rest = ends[matters & ~fine]
        middle = rest.mean(axis=1)
        ends = np.concatenate(
            [np.stack([rest[:, 0], middle], axis=1), np.stack([middle, rest[:, 1]], axis=1)]
        )
    peak = max(h.max() for _, h, _ in finished)
    finished = [panel for panel in finished if panel[1].max() > peak - _NEGLIGIBLE]
    points = np.concatenate([x[1:-1] for x, _, _ in finished])
    masses = np.concatenate([h[1:-1] + np.log(w * _WEIGHTS) for _, h, w in finished])
    return points, masses


def log_sum(log_mass):
    peak = log_mass.max()
    return peak + np.log(np.exp(log_mass - peak).sum())


# -- surrogates -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """The surrogate, what it is made of, and the largest |f| on the grid."""

    intercept: np.ndarray
    coef: np.ndarray
    mean: np.ndarray
    inclusion: np.ndarray
    variance: np.ndarray
    size: float


def explain(
    columns: Sequence[Column],
    f: Callable[[np.ndarray], np.ndarray],
    cells: Sequence[int],
    *,
    log_weight: Sequence[np.ndarray] | None = None,
    slopes: Sequence[bool] | None = None,
):
    """The surrogate of f as (intercept, coef); ``log_weight`` as by ``bin_log_weights``."""
    if log_weight is not None:
        columns = [c.weighted(w) for c, w in zip(columns, log_weight, strict=True)]
    surrogate = truth(columns, f, cells, slopes=slopes)
    return surrogate.intercept, surrogate.coef


def bin_log_weights(columns, cells, bandwidth):
    """Log of LIME's weight for bins, one array a column."""
    return [np.where(c.cell == b, 0.0, -0.5 / bandwidth**2) for c, b in zip(columns, cells, strict=True)]


def truth(
    columns: Sequence[Column],
    f: Callable[[np.ndarray], np.ndarray],
    cells: Sequence[int],
    *,
    slopes: Sequence[bool] | None = None,
) -> Truth:
    """The surrogate of f on the full grid of the weighted columns.

    f maps (n, d) to (n, ...). An indicator's coefficient is the difference of two conditional means, a
    slope's is covariance over variance. The conditional laws of a column are made from log masses, so no
    bandwidth is too narrow.
    """
    d = len(columns)
    slopes = slopes or [False] * d
    x, _ = grid(columns)
    values = np.asarray(f(x)).astype(np.longdouble)
    outputs = values.shape[1:]
    table = values.reshape(*(c.x.size for c in columns), -1)
    whole = [c.law() for c in columns]
    coef, center, variance = [], [], []
    for j, column in enumerate(columns):
        profile = table
        for k in reversed(range(d)):
            if k != j:
                profile = np.tensordot(whole[k], profile, axes=(0, k))
        measure, middle, spread = _slope(column) if slopes[j] else _contrast(column, column.cell == cells[j])
        coef.append(np.tensordot(measure, profile, axes=(0, 0)))
        center.append(middle)
        variance.append(spread)
    mean = table
    for law in whole:
        mean = np.tensordot(law, mean, axes=(0, 0))
    coef, center = np.stack(coef), np.array(center)
    return Truth(
        intercept=(mean - center @ coef).reshape(outputs).astype(float),
        coef=coef.reshape(d, *outputs).astype(float),
        mean=mean.reshape(outputs).astype(float),
        inclusion=center.astype(float),
        variance=np.array(variance).astype(float),
        size=float(np.abs(values).max()),
    )


def _contrast(column, in_cell):
    """The signed measure E[. | z = 1] - E[. | z = 0], and mean and variance of z."""
    measure = np.zeros(column.x.size, dtype=np.longdouble)
    if in_cell.all() or not in_cell.any():
        return measure, np.longdouble(in_cell.all()), np.longdouble(0)
    measure[in_cell], measure[~in_cell] = column.law(in_cell), -column.law(~in_cell)
    inside = np.exp(log_sum(column.log_mass[in_cell]) - column.log_total)
    outside = np.exp(log_sum(column.log_mass[~in_cell]) - column.log_total)
    return measure, inside, inside * outside


def _slope(column):
    """The signed measure (x - m) / Var x, and mean and variance of x."""
    law = column.law()
    # as offsets from the likeliest point: a narrow law far from 0 keeps its digits
    origin = np.longdouble(column.x[np.argmax(law)])
    x = column.x - origin
    center = law @ x
    variance = law @ (x - center) ** 2
    if variance == 0:
        return np.zeros_like(x), origin + center, variance
    return law * (x - center) / variance, origin + center, variance


def grid(columns):
    """All combinations of the columns' points, (n, d), and their probabilities (n,)."""
    index = np.indices([c.x.size for c in columns]).reshape(len(columns), -1)
    x = np.stack([c.x[i] for c, i in zip(columns, index, strict=True)], axis=1)
    weights = np.prod([c.law()[i] for c, i in zip(columns, index, strict=True)], axis=0)
    return x, weights


def features(columns, cells):
    """z on the same grid, (n, d)."""
    index = np.indices([c.x.size for c in columns]).reshape(len(columns), -1)
    z = [c.cell[i] == b for c, i, b in zip(columns, index, cells, strict=True)]
    return np.stack(z, axis=1).astype(float)


def least_squares(z, f, weights, penalty=0.0):
    """Weighted ridge with an unpenalised intercept, by the normal equations: (intercept, coef)."""
    design = np.column_stack([np.ones(len(z)), z])
    gram = (design.T @ (weights[:, None] * design)).astype(float)
    gram[np.arange(1, len(gram)), np.arange(1, len(gram))] += penalty
    right = design.T @ (weights[:, None] * f.reshape(len(f), -1))
    solution = np.linalg.solve(gram, right.astype(float))
    return solution[0].reshape(f.shape[1:]), solution[1:].reshape(-1, *f.shape[1:])


# -- neighbourhoods of literals: all rows --------------------------------------------------------------------


def all_rows(d: int) -> np.ndarray:
    """All rows of d literals, the one of +1 alone first, (2^d, d)."""
    return 1.0 - 2.0 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)


def row_law(rows: np.ndarray, instance: np.ndarray, spread: float, law: str = "literal") -> np.ndarray:
    """Probability of each of all rows: e^{-σ flips} shared by rows ("literal"), or by numbers of flips."""
    flips = (rows != instance).sum(axis=1)
    weights = np.exp(-spread * flips)
    if law == "count":
        weights /= np.bincount(flips)[flips]  # the rows with this number of flips
    return weights / weights.sum()
