"""Points of a column at which the model is evaluated, and their probabilities in each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.laws import Law
from fuzz.normal import log_density, log_interval

Array = Any
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_HALVINGS = 14


@dataclass(frozen=True)
class EvaluationPoints:
    """Points of a column at which the model is evaluated.

    Attributes
    ----------
    values
        (m,) single values first, then a value inside each interval between cuts.
    single
        The number of single values.
    cuts
        Sorted values of this column at which the model may change.
    """

    values: Array
    single: int
    cuts: Array


def evaluation_points(law: Law, cuts: Array, extra: Array = ()) -> EvaluationPoints:
    """A value inside each interval between cuts, and single values that lie on cuts or stand for themselves.

    Points of the law strictly between two cuts share one evaluation, because the model is constant there.
    Points on a cut, or within a float32 rounding of one, are evaluated themselves.
    """
    cuts = np.unique(np.asarray(cuts, dtype=float))
    points = np.unique(np.concatenate([law.mean[law.points], np.asarray(extra, dtype=float)]))
    if law.inner is None:
        return EvaluationPoints(points, points.size, np.zeros(0))
    at = np.searchsorted(cuts, points)
    near = np.isnan(points) | (points == 0)
    for side in (np.clip(at - 1, 0, None), np.clip(at, None, max(cuts.size - 1, 0))):
        if cuts.size:
            near |= np.abs(points - cuts[side]) <= 3e-7 * np.maximum(np.abs(points), 1e-30)
    single = points[near]
    reach = max(law.scale, 1e-3 * float(np.abs(cuts).max(initial=0.0)))
    bounds = (
        np.concatenate([[cuts[0] - reach], cuts, [cuts[-1] + reach]]) if cuts.size else np.array([0.0, 1.0])
    )
    # an odd share, so that the value is no threshold, no zero and no float32 number
    inside = bounds[:-1] + 0.4871 * np.diff(bounds)
    return EvaluationPoints(np.concatenate([single, inside]), single.size, cuts)


def probabilities(law: Law, at: EvaluationPoints) -> Array:
    """(cells, m) P(point | cell), exact integrals of the law between cuts."""
    result = np.zeros((law.log_mass.size, at.values.size))
    low = np.concatenate([[-np.inf], at.cuts])
    high = np.concatenate([at.cuts, [np.inf]])
    spread = np.flatnonzero(~law.points)
    if spread.size:
        m, s, a, b = (v[spread, None] for v in (law.mean, law.std, law.low, law.high))
        total = log_interval(a, b, m, s)
        part = log_interval(np.maximum(low, a), np.minimum(high, b), m, s)
        share = np.exp(part - total + law.log_weight[spread, None])
        np.add.at(result[:, at.single :], law.cell[spread], share)
    for piece in np.flatnonzero(law.points):
        result[law.cell[piece], _place(at, law.mean[piece])] += np.exp(law.log_weight[piece])
    return result


def _place(at: EvaluationPoints, value: float) -> int:
    same = np.isnan(at.values[: at.single]) if np.isnan(value) else at.values[: at.single] == value
    if same.any():
        return int(np.argmax(same))
    return at.single + int(np.searchsorted(at.cuts, value, side="left"))


def quadrature(law: Law, kinks: Array, width: float) -> tuple[Array, Array]:
    """Values (m,) and P(value | cell), (cells, m), that integrate functions smooth but at kinks.

    Gauss-Legendre nodes in panels no wider than ``width``, halved until the law's own mass comes out to 13
    digits of its piece.
    """
    values, rows = [], []
    for piece in range(law.cell.size):
        if law.points[piece]:
            x, p = law.mean[piece : piece + 1], np.ones(1)
        else:
            x, p = _piece(law, piece, kinks, width)
        values.append(x)
        rows.append((law.cell[piece], p * np.exp(law.log_weight[piece])))
    result = np.zeros((law.log_mass.size, sum(v.size for v in values)))
    start = 0
    for cell, p in rows:
        result[cell, start : start + p.size] = p
        start += p.size
    return np.concatenate(values), result


def _piece(law: Law, piece: int, kinks: Array, width: float) -> tuple[Array, Array]:
    m, s, low, high = (float(v[piece]) for v in (law.mean, law.std, law.low, law.high))
    if np.isfinite(s):  # what lies further out than 9.5 standard deviations is below 1e-20
        nearest = min(max(m, low), high)
        low, high = max(low, min(nearest, m) - 9.5 * s), min(high, max(nearest, m) + 9.5 * s)
    cuts = np.asarray(kinks, dtype=float)
    ends = np.unique(np.concatenate([[low, high], cuts[(cuts > low) & (cuts < high)]]))
    count = np.maximum(np.ceil(np.diff(ends) / width), 1).astype(int)
    panels = np.concatenate(
        [np.linspace(a, b, c + 1)[:-1] for a, b, c in zip(ends[:-1], ends[1:], count, strict=True)]
        + [ends[-1:]]
    )
    total = float(log_interval(low, high, m, s))
    # a log mass of -z²/2 has z²/2 times the rounding error
    far = 1.0 if np.isinf(s) else max(abs(low - m), abs(high - m)) / s
    allowed = 1e-13 + 1e-15 * far**2
    for _ in range(_HALVINGS):
        half = 0.5 * np.diff(panels)
        middle = panels[:-1] + half
        x = middle[:, None] + half[:, None] * _NODES
        p = np.exp(log_density(x, m, s) - total) * half[:, None] * _WEIGHTS
        true = np.exp(log_interval(panels[:-1], panels[1:], m, s) - total)
        rough = np.abs(p.sum(axis=1) - true) > allowed
        if not rough.any():
            break
        panels = np.sort(np.concatenate([panels, middle[rough]]))
    return x.ravel(), p.ravel()
