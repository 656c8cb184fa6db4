"""Oracles: what limes computes in closed form, computed the long way.

Nothing here imports a formula of the library. A law is a list of (probability, values, weights) cells obtained by
Gauss-Legendre panels so fine that they are exact to 1e-13; the expectation of f is the plain sum over the grid of all
columns; the surrogate is weighted least squares on that grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

# Exact results against oracles: the promise to users.
EXACT = 1e-9

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


@dataclass
class Column:
    """Points x with probabilities under the *unweighted* law, and the cell of each."""

    x: np.ndarray
    probability: np.ndarray
    cell: np.ndarray


def truncated_normal_cell(mean, std, lower, upper, breaks=(), scale=None):
    """Points and weights of normal(mean, std) on [lower, upper], split at breaks; weights add up to 1."""
    if std == 0 or lower == upper:
        return np.array([min(max(mean, lower), upper)]), np.ones(1)
    lower, upper = max(lower, mean - 40 * std), min(upper, mean + 40 * std)
    cuts = [lower, *sorted(b for b in breaks if lower < b < upper), upper]
    x, w = _panels(cuts, min(std, scale or std))
    log = -0.5 * ((x - mean) / std) ** 2
    w = w * np.exp(log - log.max())
    return x, w / w.sum()


def uniform_cell(lower, upper, breaks=()):
    cuts = [lower, *sorted(b for b in breaks if lower < b < upper), upper]
    x, w = _panels(cuts, upper - lower)
    return x, w / w.sum()


def _panels(cuts, scale):
    """Gauss-Legendre points between the cuts, in panels no longer than three scales."""
    xs, ws = [], []
    for a, b in zip(cuts, cuts[1:], strict=False):
        count = max(1, int(np.ceil((b - a) / (3.0 * scale))))
        ends = np.linspace(a, b, count + 1)
        half = 0.5 * np.diff(ends)[:, None]
        xs.append((ends[:-1, None] + half * (1 + _NODES)).ravel())
        ws.append((half * _WEIGHTS).ravel())
    return np.concatenate(xs), np.concatenate(ws)


def binned_column(edges, means, stds, frequencies=None, breaks=(), scale=None):
    count = len(edges) - 1
    mass = np.ones(count) if frequencies is None else np.asarray(frequencies, float)
    xs, ps, cs = [], [], []
    for b in range(count):
        x, w = truncated_normal_cell(means[b], stds[b], edges[b], edges[b + 1], breaks, scale)
        xs.append(x)
        ps.append(w * mass[b] / mass.sum())
        cs.append(np.full(x.size, b))
    return Column(np.concatenate(xs), np.concatenate(ps), np.concatenate(cs))


def explain(
    columns: Sequence[Column],
    f: Callable[[np.ndarray], np.ndarray],
    instance_cells: Sequence[int],
    *,
    log_weight: Sequence[np.ndarray],
    slopes: Sequence[bool] | None = None,
):
    """The surrogate of f on the full grid: (intercept, coef).

    ``log_weight[j]`` is the log of column j's factor of π at its points. Coefficients are differences of conditional
    means (slopes: covariance over variance) under the weighted law; ``least_squares`` below, which does without
    that theory, agrees wherever its normal equations are not singular.
    """
    d = len(columns)
    slopes = slopes or [False] * d
    tilted, features = [], []
    for j, column in enumerate(columns):
        p = column.probability.astype(np.longdouble) * np.exp(log_weight[j].astype(np.longdouble))
        tilted.append(p / p.sum())
        features.append(
            column.x.astype(np.longdouble)
            if slopes[j]
            else (column.cell == instance_cells[j]).astype(np.longdouble)
        )
    grids = np.meshgrid(*[np.arange(c.x.size) for c in columns], indexing="ij")
    index = np.stack([g.ravel() for g in grids], axis=1)
    x = np.stack([columns[j].x[index[:, j]] for j in range(d)], axis=1)
    w = np.prod(np.stack([tilted[j][index[:, j]] for j in range(d)], axis=1), axis=1)
    values = np.asarray(f(x)).astype(np.longdouble)
    coef = np.stack(
        [
            (_slope if slopes[j] else _contrast)(w, tilted[j], features[j], index[:, j], values)
            for j in range(d)
        ]
    )
    mean = np.tensordot(w, values, axes=(0, 0))
    centers = np.array([(tilted[j] * features[j]).sum() for j in range(d)])
    intercept = mean - np.tensordot(centers, coef, axes=(0, 0))
    return np.asarray(intercept, dtype=np.float64), coef.astype(np.float64)


def _contrast(w, tilted, feature, index, values):
    on = feature[index] == 1
    # the law of the other columns is the same on both sides, so w may be divided by this column's own part
    others = w / tilted[index]
    means = []
    for side, cells in ((on, feature == 1), (~on, feature == 0)):
        mass = tilted[cells].sum()
        if mass == 0:
            return np.zeros(values.shape[1:])
        weight = others[side] * (tilted[index[side]] / mass)
        means.append(np.tensordot(weight, values[side], axes=(0, 0)))
    return means[0] - means[1]


def _slope(w, tilted, feature, index, values):
    center = (tilted * feature).sum()
    variance = (tilted * (feature - center) ** 2).sum()
    if feature.min() == feature.max():
        return np.zeros(values.shape[1:])
    return np.tensordot(w * (feature[index] - center) / variance, values, axes=(0, 0))


def least_squares(z, f, weights):
    """Weighted least squares by the normal equations: (intercept, coef)."""
    design = np.column_stack([np.ones(len(z)), z])
    gram = design.T @ (weights[:, None] * design)
    solution = np.linalg.solve(gram, design.T @ (weights[:, None] * f.reshape(len(f), -1)))
    return solution[0], solution[1:]


def bin_log_weights(columns, instance_cells, bandwidth):
    return [
        np.where(c.cell == b, 0.0, -0.5 / bandwidth**2)
        for c, b in zip(columns, instance_cells, strict=True)
    ]


def smooth_log_weights(columns, instance, bandwidth, scales=None):
    scales = np.ones(len(columns)) if scales is None else scales
    return [
        -0.5 * ((c.x - x) / (bandwidth * s)) ** 2
        for c, x, s in zip(columns, instance, scales, strict=True)
    ]
