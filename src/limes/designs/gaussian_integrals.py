"""Integrals of exp(-slope t - precision t²/2) over intervals, without loss of digits.

Φ(b) - Φ(a) is 0 - 0 far out and a difference of equals where an interval is narrow. Here the integrand is 1
at t = 0, its largest point on the piece, so that nothing under- or overflows, and narrow intervals go by
Gauss-Legendre.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtri_exp

from limes._arrays import Floats

# Below this drop of the exponent the closed form loses digits to cancellation, and eight nodes give them all.
_NARROW = 0.1
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)


def gaussian_area(start: Floats, end: Floats, slope: Floats, precision: Floats) -> Floats:
    """∫ exp(-slope t - precision t²/2) dt over [start, end].

    Needs the maximum of the integrand over the piece at t = 0: slope >= 0 where the piece lies right of 0,
    <= 0 where it lies left, 0 where it lies on both sides.
    """
    right = _one_sided(np.maximum(start, 0.0), np.maximum(end, 0.0), slope, precision)
    left = _one_sided(np.maximum(-end, 0.0), np.maximum(-start, 0.0), -slope, precision)
    return right + left


def gaussian_moment(start: Floats, end: Floats, slope: Floats, precision: Floats) -> tuple[Floats, Floats]:
    """The area as above, and ∫ t exp(-slope t - precision t²/2) dt over the same interval."""
    right = _one_sided_moment(np.maximum(start, 0.0), np.maximum(end, 0.0), slope, precision)
    left = _one_sided_moment(np.maximum(-end, 0.0), np.maximum(-start, 0.0), -slope, precision)
    return right[0] + left[0], right[1] - left[1]


def normal_quantile(level: Floats, lower: Floats, upper: Floats) -> Floats:
    """Quantiles of the standard normal law cut to [lower, upper], all (n,).

    Φ(x) = (1 - level) Φ(lower) + level Φ(upper), in logarithms, and mirrored where the interval lies more to
    the right: probabilities of left tails keep their digits.
    """
    mirrored = -lower < upper
    start, end = np.where(mirrored, -upper, lower), np.where(mirrored, -lower, upper)
    share = np.where(mirrored, 1.0 - level, level)
    with np.errstate(divide="ignore"):
        log_p = np.logaddexp(log_ndtr(start) + np.log1p(-share), log_ndtr(end) + np.log(share))
    found = ndtri_exp(np.minimum(log_p, 0.0))
    return np.asarray(np.where(mirrored, -found, found))


def _one_sided(start: Floats, end: Floats, slope: Floats, precision: Floats) -> Floats:
    """The area over [start, end] with 0 <= start <= end."""
    with np.errstate(over="ignore", under="ignore"):
        height = np.exp(-start * (slope + 0.5 * precision * start))
    return np.asarray(height * _from_edge(end - start, slope + precision * start, precision))


def _from_edge(width: Floats, slope: Floats, precision: Floats) -> Floats:
    """∫ exp(-slope t - precision t²/2) dt over [0, width], for slope >= 0, precision >= 0."""
    width, slope, precision = np.broadcast_arrays(width, np.maximum(slope, 0.0), precision)
    found = np.zeros(width.shape)
    narrow = width * (slope + np.sqrt(precision)) < _NARROW
    w, a, p = width[narrow], slope[narrow], precision[narrow]
    t = 0.5 * w[:, None] * (1.0 + _NODES)
    found[narrow] = 0.5 * w * (np.exp(-t * (a[:, None] + 0.5 * p[:, None] * t)) @ _NODE_WEIGHTS)
    w, a, p = width[~narrow], slope[~narrow], precision[~narrow]
    root = np.sqrt(0.5 * p)
    with np.errstate(over="ignore"):
        drop = np.exp(-w * (a + 0.5 * p * w))
    near, far = a / (2.0 * root), a / (2.0 * root) + w * root
    found[~narrow] = (erfcx(near) - drop * erfcx(far)) * np.sqrt(np.pi) / (2.0 * root)
    return found


def _one_sided_moment(start: Floats, end: Floats, slope: Floats, precision: Floats) -> tuple[Floats, Floats]:
    """Area and ∫ t ... dt over [start, end] with 0 <= start <= end."""
    width, edge = end - start, slope + precision * start
    height = np.exp(-start * (slope + 0.5 * precision * start))
    area = _from_edge(width, edge, precision)
    width, edge, precision = np.broadcast_arrays(width, np.maximum(edge, 0.0), precision)
    moment = np.zeros(width.shape)
    narrow = width * (edge + np.sqrt(precision)) < _NARROW
    w, a, p = width[narrow], edge[narrow], precision[narrow]
    t = 0.5 * w[:, None] * (1.0 + _NODES)
    height_at = t * np.exp(-t * (a[:, None] + 0.5 * p[:, None] * t))
    moment[narrow] = 0.5 * w * (height_at @ _NODE_WEIGHTS)
    w, a, p = width[~narrow], edge[~narrow], precision[~narrow]
    # d/dt exp(-a t - p t²/2) = -(a + p t) exp(...)
    moment[~narrow] = (-np.expm1(-w * (a + 0.5 * p * w)) - a * area[~narrow]) / p
    with np.errstate(invalid="ignore"):
        from_start = np.where(height > 0, start * area, 0.0)
    return np.asarray(height * area), np.asarray(height * (from_start + moment))
