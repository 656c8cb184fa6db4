r"""Pieces of Gaussians on intervals: the only density that tabular LIME needs.

One piece has the density ∝ exp(-slope t - precision t² / 2), t = (x - anchor) / scale, on [lower, upper]. Its
cases:

- a truncated normal: precision = (scale / σ)², the anchor is the mean moved into the interval;
- a uniform law: precision = 0;
- either of them multiplied by a smooth weight or by an RBF kernel: again a piece (``times``).

Anchor and slope are kept instead of a mean because they survive every extreme. A narrow bandwidth far from
a bin puts the mean of the product thousands of standard deviations away, where Φ(b) - Φ(a) is 0 - 0; at the
anchor, the point of the interval where the density is largest, everything is of order one. The scale is about
the length over which the density changes, so that columns of 1e-300 and of 1e300 are as good as any others:
no square of a raw value is ever taken. It is a power of two, and dividing by it rounds nothing.

Integrals are computed in steps t, where the density is 1 at t = 0, its largest value on the piece, so that
nothing under- or overflows. Three kinds of integrands:

- 1 and t on an interval (``gaussian_area``, ``gaussian_moment``): closed forms. Φ(b) - Φ(a) is 0 - 0 far out
  and a difference of equals where an interval is narrow, so that erfcx is used in place of Φ, and narrow
  intervals are integrated by Gauss-Legendre;
- exp(-rate |x - center|) (``decay_integrals``): on each side of the center the product with the density is
  again the exponential of a concave polynomial of degree two. It is integrated by Gauss-Legendre from the
  point where the product is largest to both sides, as far as it matters: closed forms would subtract equals
  for steep kernels, and divide 0 by 0 on uniform pieces;
- any other function (``adaptive_quadrature``): Gauss-Legendre on panels that are halved. All panels of all
  pieces are evaluated in one call of the function. A panel is finished when its rule agrees with the rule on
  its two halves; the others are replaced by their halves. A function that is smooth between its breaks needs
  two or three rounds, however many breaks there are; one that bends or jumps elsewhere costs a round
  for each binary digit of the position. Pieces are independent: an integral has the same bits whatever the
  other pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from types import EllipsisType
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr, ndtri, ndtri_exp

from limes._arrays import Bools, Floats, Ints, power_of_two
from limes._functions import Function
from limes.exceptions import InputError

# A kernel this many widths away is 0, and its exponent is still finite.
_FARTHEST = 1e150
_PANEL_NODES, _PANEL_WEIGHTS = np.polynomial.legendre.leggauss(64)

# exp(-45) = 3e-20: beyond this exponent a density cannot change a float64 sum.
NEGLIGIBLE_EXPONENT = 45.0

# Closed forms lose digits to cancellation below this drop of the exponent; there eight nodes give all digits.
_NARROW = 0.1
_NARROW_NODES, _NARROW_WEIGHTS = np.polynomial.legendre.leggauss(8)

# Decays: 64 nodes integrate exp(-45 t) on [0, 1] to the last digit.
_DECAY_NODES, _DECAY_WEIGHTS = np.polynomial.legendre.leggauss(64)
# Numbers computed at once: 16 MB of float64
_DECAY_BLOCK = 2_000_000

# Quadrature: the tolerance of each panel and that of the sum, relative to ∫ |function|. The second is one
# digit more than what is promised to users.
_PANEL_TOLERANCE, _SUM_TOLERANCE = 1e-13, 1e-10
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
# Panels on each side of an anchor to begin with, rounds of halving, and the most panels of a piece before an
# error
_FIRST_PANELS, _ROUNDS, _MOST_PANELS = 4, 60, 20_000
# Values of functions computed at once: 32 MB of float64; panels before the number of functions is known
_BLOCK, _FIRST_BLOCK = 4_000_000, 4096
# Columns whose means are computed at once
_COLUMNS = 256
# Probabilities below this are computed in logarithms
_FAR = 1e-280


@dataclass(frozen=True, eq=False)
class GaussianPieces:
    """P densities, each normalised to its weight; arrays (P,), or anything that broadcasts together."""

    # lengths are the column's own; slope and precision are in units of the scale
    anchor: Floats  # maximises the density on [lower, upper]
    slope: Floats  # 0 inside the interval, >= 0 at its lower end and <= 0 at its upper end
    precision: Floats
    lower: Floats  # bounds may be infinite where the precision is positive
    upper: Floats
    weight: Floats
    scale: Floats

    @classmethod
    def truncated_normal(
        cls, mean: Floats, std: Floats, lower: Floats, upper: Floats, *, weight: Floats
    ) -> GaussianPieces:
        """Normal(mean, std) cut to [lower, upper]; std = inf makes it uniform."""
        anchor = np.clip(mean, lower, upper)
        with np.errstate(over="ignore"):
            scale = power_of_two(np.minimum(std, upper - lower))
        share = scale / std
        return cls(anchor, share * ((anchor - mean) / std), share**2, lower, upper, weight, scale)

    @classmethod
    def joined(cls, many: Sequence[GaussianPieces]) -> GaussianPieces:
        """The pieces of several columns, (P,) each, one column's after the other."""
        return cls(*(np.concatenate([getattr(its, each.name) for its in many]) for each in fields(cls)))

    def split(self, ends: Ints) -> list[GaussianPieces]:
        """Cut the pieces (P,) of several columns apart at these positions."""
        arrays = zip(*(np.split(getattr(self, each.name), ends) for each in fields(self)), strict=True)
        return [GaussianPieces(*its) for its in arrays]

    def take(self, at: Bools) -> GaussianPieces:
        return GaussianPieces(*(getattr(self, each.name)[at] for each in fields(self)))

    @cached_property
    def area(self) -> Floats:
        """∫ exp(-slope t - precision t²/2) dt over [lower, upper]."""
        start, end = self.steps(self.lower), self.steps(self.upper)
        return gaussian_area(start, end, self.slope, self.precision)

    def steps(self, x: Floats, piece: Ints | EllipsisType = ...) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray((x - self.anchor[piece]) / self.scale[piece])

    def times(
        self, center: Floats | float, precision: float, unit: float = 1.0
    ) -> tuple[GaussianPieces, Floats]:
        """Multiply by exp(-precision ((x - center) / unit)²/2): normalised, and the log of its mass."""
        with np.errstate(divide="ignore", over="ignore"):
            width = unit / np.sqrt(np.float64(precision))
            scale = power_of_two(np.minimum(self.scale, width))
        ratio, other = scale / self.scale, scale / width
        flatness, drift = self.precision * ratio**2, self.slope * ratio
        total = flatness + other**2
        away = _widths(self.anchor - center, width)
        peak = self._peak(center, flatness, drift, total, other, away, scale)
        anchor = np.clip(peak, self.lower, self.upper)
        with np.errstate(over="ignore"):
            step = (anchor - self.anchor) / scale
        distance = _widths(anchor - center, width)
        slope = np.where(anchor == peak, 0.0, drift + flatness * step + other * distance)
        arrays = np.broadcast_arrays(anchor, slope, total, self.lower, self.upper, self.weight, scale)
        product = GaussianPieces(*arrays)
        exponent = -0.5 * distance**2 - step * (drift + 0.5 * flatness * step)
        return product, exponent + np.log(product.area) - np.log(self.area) + np.log(ratio)

    def _peak(
        self,
        center: Floats | float,
        flatness: Floats,
        drift: Floats,
        total: Floats,
        other: Floats,
        away: Floats,
        scale: Floats,
    ) -> Floats:
        """Place where a product would be largest without bounds."""
        # from the anchor or from the center, whichever is nearer: a sum of two long steps of opposite signs
        # would lose the digits of the peak
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            from_anchor = -(drift + other * away) / total
            from_center = (flatness * (away / other) - drift) / total
            near = np.where(
                np.abs(from_center) < np.abs(from_anchor),
                center + scale * from_center,
                self.anchor + scale * from_anchor,
            )
        return np.where(total > 0, near, self.anchor)

    # -- the Density protocol of limes._functions --------------------------------------------------------

    def expect(self, function: Function) -> Floats:
        return np.asarray(function.integrate(self))

    def interval(self, lower: Floats, upper: Floats) -> Floats:
        return self.partly(lower, upper, self.weight, _interval_mass)

    def bump(self, center: Floats, precision: float) -> Floats:
        product, log_mass = self.times(center[:, None], precision)
        return np.asarray(product.weight * np.exp(log_mass))

    def decay(self, center: Floats, rate: float) -> Floats:
        return decay_integrals(self, center, rate)

    def identity(self, center: float = 0.0) -> Floats:
        return (self.weight * self.mean_from(center))[None, :]

    def square(self, center: float = 0.0) -> Floats:
        return (self.weight * (self.variance + self.mean_from(center) ** 2))[None, :]

    def mean_from(self, center: float) -> Floats:
        """Mean of each piece less a center, (P,), without the rounding of the mean itself."""
        return self.offset + (self.anchor - center)

    def quadrature(self, shape: Callable[[Floats], Floats], breaks: Sequence[float]) -> Floats:
        return adaptive_quadrature(self, shape, breaks)

    def points(
        self, shape: Callable[[Floats], Floats], breaks: Floats, panels: int
    ) -> tuple[Ints, Floats, Floats]:
        return quadrature_points(self, shape, breaks, panels)

    def centred(self, origin: Floats, unit: Floats | float = 1.0) -> CentredPieces:
        """The signed measures (x - origin) / unit · d(piece)."""
        return CentredPieces(self, origin, unit)

    def quantile(self, piece: Ints, level: Floats) -> Floats:
        """Inverse distribution function of pieces at levels, both (n,)."""
        step = self._tails.quantile(piece, level)
        x = self.anchor[piece] + self.scale[piece] * step
        flat = self.precision == 0
        if flat.any():
            its = flat[piece]
            at = piece[its]
            x[its] = self.lower[at] + level[its] * (self.upper[at] - self.lower[at])
        return np.asarray(np.clip(x, self.lower[piece], self.upper[piece]))

    @cached_property
    def _tails(self) -> _Tails:
        """The pieces as standard normal laws; a piece without precision has a separate quantile."""
        width = 1.0 / np.sqrt(np.where(self.precision > 0, self.precision, 1.0))
        shift = self.slope * width
        lower, upper = (self.steps(end) / width + shift for end in (self.lower, self.upper))
        return _Tails.of(width, shift, lower, upper)

    # -- moments ---------------------------------------------------------------------------------------

    @cached_property
    def _rule(self) -> tuple[Floats, Floats]:
        """Steps t and normalised weights of a quadrature rule for each piece, (..., 128)."""
        left, right = self.reach
        offset, weight = [], []
        for start, end in ((left, np.zeros_like(left)), (np.zeros_like(right), right)):
            half = 0.5 * (end - start)[..., None]
            t = start[..., None] + half * (1.0 + _PANEL_NODES)
            exponent = -t * (self.slope[..., None] + 0.5 * self.precision[..., None] * t)
            offset.append(t)
            weight.append(half * _PANEL_WEIGHTS * np.exp(exponent))
        t, w = np.concatenate(offset, axis=-1), np.concatenate(weight, axis=-1)
        return t, w / w.sum(axis=-1, keepdims=True)

    @cached_property
    def reach(self) -> tuple[Floats, Floats]:
        """Steps t <= 0 and t >= 0 up to which the density matters on both sides of the anchor."""

        def distance(slope: Floats) -> Floats:
            # the positive root of slope t + precision t²/2 = 45, written so that either term may vanish
            with np.errstate(divide="ignore"):
                discriminant = np.sqrt(slope**2 + 2.0 * self.precision * NEGLIGIBLE_EXPONENT)
                return 2.0 * NEGLIGIBLE_EXPONENT / (slope + discriminant)

        left = np.maximum(self.steps(self.lower), -distance(np.maximum(-self.slope, 0.0)))
        right = np.minimum(self.steps(self.upper), distance(np.maximum(self.slope, 0.0)))
        return left, right

    @cached_property
    def mean_step(self) -> Floats:
        if np.isinf(self.lower).all() and np.isinf(self.upper).all():
            return np.zeros(np.shape(self.anchor))  # symmetric about the anchor
        t, w = self._rule
        return np.asarray((w * t).sum(axis=-1))

    @property
    def offset(self) -> Floats:
        """Mean of each piece less its anchor, (P,): keeps digits that rounding of the mean would lose."""
        return self.scale * self.mean_step

    @property
    def mean(self) -> Floats:
        return self.anchor + self.offset

    @property
    def variance(self) -> Floats:
        return self.central(2)

    def central(self, power: int, unit: Floats | float = 1.0) -> Floats:
        """E(x - mean) ** power / unit of each piece, (P,); infinite only where that is."""
        t, w = self._rule
        centred = t - self.mean_step[..., None]
        moment = (w * centred**power).sum(axis=-1) * (self.scale / unit)
        for _ in range(power - 1):
            # one factor at a time: a power of the scale may overflow float64 where the moment does not
            moment = moment * self.scale
        return np.asarray(moment)

    # -- plumbing --------------------------------------------------------------------------------------

    def partly(
        self,
        lower: Floats,
        upper: Floats,
        whole: Floats,
        part: Callable[[GaussianPieces, Ints, Floats, Floats], Floats],
    ) -> Floats:
        """Integrals over intervals: ``whole`` where one covers a piece, 0 where it misses it, or ``part``."""
        # a tree's interval covers or misses most bins: only the others need special functions
        lower, upper = lower[:, None], upper[:, None]
        covers = (lower <= self.lower) & (self.upper <= upper)
        integral = np.where(covers, whole, 0.0)
        row, piece = np.nonzero(~covers & (upper > self.lower) & (lower < self.upper) & (lower < upper))
        start = np.maximum(lower[row, 0], self.lower[piece])
        end = np.minimum(upper[row, 0], self.upper[piece])
        integral[row, piece] = part(self, piece, start, end)
        return integral


def learn_mean_steps(many: Sequence[GaussianPieces]) -> None:
    """Compute and keep the mean steps of many columns' pieces, (P,) each, to the same bits as one by one."""
    missing = [its for its in many if "mean_step" not in vars(its) and np.isfinite(its.lower).any()]
    for first in range(0, len(missing), _COLUMNS):
        block = missing[first : first + _COLUMNS]
        ends = np.cumsum([its.anchor.size for its in block])[:-1]
        parts = np.split(GaussianPieces.joined(block).mean_step, ends)
        for its, steps in zip(block, parts, strict=True):
            vars(its)["mean_step"] = steps


@dataclass(frozen=True, eq=False)
class CentredPieces:
    """The signed measures (x - origin) / unit · d(piece), for slopes Cov(x, f) / Var(x)."""

    pieces: GaussianPieces
    origin: Floats
    unit: Floats | float  # there may be a unit for each piece

    @property
    def mean(self) -> Floats:
        """E(x - origin) / unit of each piece, (P,)."""
        return self._centred_mean(self.pieces)

    @property
    def mass(self) -> Floats:
        return self.pieces.weight * self.mean

    def _centred_mean(self, pieces: GaussianPieces) -> Floats:
        return pieces.mean_step * (pieces.scale / self.unit) + (pieces.anchor - self.origin) / self.unit

    def expect(self, function: Function) -> Floats:
        return np.asarray(function.integrate(self))

    def interval(self, lower: Floats, upper: Floats) -> Floats:
        return self.pieces.partly(lower, upper, self.mass, self._interval_moment)

    def _interval_moment(self, pieces: GaussianPieces, piece: Ints, start: Floats, end: Floats) -> Floats:
        area, moment = gaussian_moment(
            pieces.steps(start, piece),
            pieces.steps(end, piece),
            pieces.slope[piece],
            pieces.precision[piece],
        )
        unit = np.broadcast_to(self.unit, self.origin.shape)[piece]
        shift = (pieces.anchor[piece] - self.origin[piece]) / unit
        centred = moment * (pieces.scale[piece] / unit) + shift * area
        return np.asarray(pieces.weight[piece] * centred / pieces.area[piece])

    def bump(self, center: Floats, precision: float) -> Floats:
        product, log_mass = self.pieces.times(center[:, None], precision)
        return np.asarray(product.weight * np.exp(log_mass) * self._centred_mean(product))

    def identity(self, center: float = 0.0) -> Floats:
        pieces = self.pieces
        second = pieces.central(2, self.unit) + self.mean * pieces.mean_from(center)
        return (pieces.weight * second)[None, :]

    def square(self, center: float = 0.0) -> Floats:
        pieces, mean = self.pieces, self.pieces.mean_from(center)
        third = pieces.central(3, self.unit) + 2.0 * mean * pieces.central(2, self.unit)
        third = third + self.mean * (pieces.variance + mean**2)
        return (pieces.weight * third)[None, :]

    def decay(self, center: Floats, rate: float) -> Floats:
        return decay_integrals(self.pieces, center, rate, (self.origin, self.unit))

    def points(
        self, shape: Callable[[Floats], Floats], breaks: Floats, panels: int
    ) -> tuple[Ints, Floats, Floats]:
        piece, x, weight = self.pieces.points(shape, breaks, panels)
        return piece, x, weight * ((x - self.origin[piece]) / self.unit)

    def quadrature(self, shape: Callable[[Floats], Floats], breaks: Sequence[float]) -> Floats:
        return adaptive_quadrature(self.pieces, shape, breaks, (self.origin, self.unit))


def _interval_mass(pieces: GaussianPieces, piece: Ints, start: Floats, end: Floats) -> Floats:
    area = gaussian_area(
        pieces.steps(start, piece), pieces.steps(end, piece), pieces.slope[piece], pieces.precision[piece]
    )
    return np.asarray(pieces.weight[piece] * area / pieces.area[piece])


def _widths(distance: Floats, width: Floats | float) -> Floats:
    """A distance in widths of a kernel."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(distance / width, -_FARTHEST, _FARTHEST))


# -- integrals -----------------------------------------------------------------------------------------------


def gaussian_area(start: Floats, end: Floats, slope: Floats, precision: Floats) -> Floats:
    """∫ exp(-slope t - precision t²/2) dt over [start, end]; at its largest, 1, at t = 0."""
    start, end, slope, precision = np.broadcast_arrays(start, end, slope, precision)
    sign, near, far = _folded(start, end)
    area = _one_sided(near, far, sign * slope, precision)
    both = (start < 0) & (end > 0)
    if both.any():
        area[both] += _one_sided(np.zeros(1), -start[both], -slope[both], precision[both])
    return area


def gaussian_moment(start: Floats, end: Floats, slope: Floats, precision: Floats) -> tuple[Floats, Floats]:
    """Return :func:`gaussian_area`, and ∫ t exp(-slope t - precision t²/2) dt over the same interval."""
    start, end, slope, precision = np.broadcast_arrays(start, end, slope, precision)
    sign, near, far = _folded(start, end)
    area, moment = _one_sided_moment(near, far, sign * slope, precision)
    moment = sign * moment
    both = (start < 0) & (end > 0)
    if both.any():
        left = _one_sided_moment(np.zeros(1), -start[both], -slope[both], precision[both])
        area[both] += left[0]
        moment[both] -= left[1]
    return area, moment


def _folded(start: Floats, end: Floats) -> tuple[Floats, Floats, Floats]:
    """Mirror intervals left of 0: -1 for these, near and far end; if on both sides the right part."""
    left = end <= 0
    near = np.where(left, -end, np.maximum(start, 0.0))
    return np.where(left, -1.0, 1.0), near, np.where(left, -start, end)


class _Tails(NamedTuple):
    """P normal laws cut to intervals, (P,) each: steps are width · (quantile - shift).

    With Φ(x) = (1 - level) Φ(lower) + level Φ(upper), mirrored where the interval lies more to the right:
    probabilities of left tails keep their digits.
    """

    width: Floats
    shift: Floats
    mirrored: Bools
    start: Floats
    end: Floats
    first: Floats  # Φ(start)
    span: Floats  # Φ(end) - Φ(start)
    far: Bools  # whether Φ(end) underflows

    @classmethod
    def of(cls, width: Floats, shift: Floats, lower: Floats, upper: Floats) -> _Tails:
        mirrored = -lower < upper
        start, end = np.where(mirrored, -upper, lower), np.where(mirrored, -lower, upper)
        first, last = ndtr(start), ndtr(end)
        return cls(width, shift, mirrored, start, end, first, last - first, last < _FAR)

    def quantile(self, piece: Ints, level: Floats) -> Floats:
        mirrored = self.mirrored[piece]
        share = np.where(mirrored, 1.0 - level, level)
        quantile = ndtri(np.minimum(self.first[piece] + share * self.span[piece], 1.0))
        if self.far.any():
            far = self.far[piece]
            at = piece[far]
            quantile[far] = _tail_quantile(share[far], self.start[at], self.end[at])
        np.negative(quantile, out=quantile, where=mirrored)
        return np.asarray(self.width[piece] * (quantile - self.shift[piece]))


def _tail_quantile(share: Floats, start: Floats, end: Floats) -> Floats:
    """Return quantiles of intervals so far to the left that their probabilities underflow."""
    with np.errstate(divide="ignore"):
        log_p = np.logaddexp(log_ndtr(start) + np.log1p(-share), log_ndtr(end) + np.log(share))
    return np.asarray(ndtri_exp(np.minimum(log_p, 0.0)))


def _one_sided(start: Floats, end: Floats, slope: Floats, precision: Floats) -> Floats:
    """Return the area over [start, end] with 0 <= start <= end."""
    with np.errstate(over="ignore", under="ignore"):
        height = np.exp(-start * (slope + 0.5 * precision * start))
    return np.asarray(height * _area_from_edge(end - start, slope + precision * start, precision))


def _area_from_edge(width: Floats, slope: Floats, precision: Floats) -> Floats:
    """Return ∫ exp(-slope t - precision t²/2) dt over [0, width], for slope >= 0, precision >= 0."""
    width, slope, precision = np.broadcast_arrays(width, np.maximum(slope, 0.0), precision)
    area = np.zeros(width.shape)
    narrow = width * (slope + np.sqrt(precision)) < _NARROW
    w, a, p = width[narrow], slope[narrow], precision[narrow]
    t = 0.5 * w[:, None] * (1.0 + _NARROW_NODES)
    # not a matrix product, which would add up in an order that depends on the number of pieces
    height = np.exp(-t * (a[:, None] + 0.5 * p[:, None] * t))
    area[narrow] = 0.5 * w * (height * _NARROW_WEIGHTS).sum(axis=1)
    w, a, p = width[~narrow], slope[~narrow], precision[~narrow]
    root = np.sqrt(0.5 * p)
    with np.errstate(over="ignore"):
        drop = np.exp(-w * (a + 0.5 * p * w))
    near, far = a / (2.0 * root), a / (2.0 * root) + w * root
    area[~narrow] = (erfcx(near) - drop * erfcx(far)) * np.sqrt(np.pi) / (2.0 * root)
    return area


def _one_sided_moment(start: Floats, end: Floats, slope: Floats, precision: Floats) -> tuple[Floats, Floats]:
    """Return the area and ∫ t ... dt over [start, end] with 0 <= start <= end."""
    width, edge = end - start, slope + precision * start
    height = np.exp(-start * (slope + 0.5 * precision * start))
    area = _area_from_edge(width, edge, precision)
    width, edge, precision = np.broadcast_arrays(width, np.maximum(edge, 0.0), precision)
    moment = np.zeros(width.shape)
    narrow = width * (edge + np.sqrt(precision)) < _NARROW
    w, a, p = width[narrow], edge[narrow], precision[narrow]
    t = 0.5 * w[:, None] * (1.0 + _NARROW_NODES)
    height_at = t * np.exp(-t * (a[:, None] + 0.5 * p[:, None] * t))
    moment[narrow] = 0.5 * w * (height_at * _NARROW_WEIGHTS).sum(axis=1)
    w, a, p = width[~narrow], edge[~narrow], precision[~narrow]
    # d/dt exp(-a t - p t²/2) = -(a + p t) exp(...)
    moment[~narrow] = (-np.expm1(-w * (a + 0.5 * p * w)) - a * area[~narrow]) / p
    with np.errstate(invalid="ignore"):
        from_start = np.where(height > 0, start * area, 0.0)
    return np.asarray(height * area), np.asarray(height * (from_start + moment))


def decay_integrals(
    pieces: GaussianPieces, center: Floats, rate: float, centred: tuple[Floats, Floats | float] | None = None
) -> Floats:
    """∫ exp(-rate |x - center|) [(x - origin) / unit] d(piece), (m, P); the factor is 1 by default."""
    step = max(1, _DECAY_BLOCK // (_DECAY_NODES.size * pieces.anchor.size))
    blocks = [
        _decay_block(pieces, center[i : i + step, None], rate, centred) for i in range(0, center.size, step)
    ]
    return np.concatenate(blocks) if blocks else np.zeros((0, pieces.anchor.size))


def _decay_block(
    pieces: GaussianPieces, center: Floats, rate: float, centred: tuple[Floats, Floats | float] | None
) -> Floats:
    """Return the integrals of one block of centers, (m, 1)."""
    ends = [(side - pieces.anchor) / pieces.scale for side in (pieces.lower, pieces.upper)]
    middle = (center - pieces.anchor) / pieces.scale
    turn = np.clip(middle, *ends)
    pull = rate * pieces.scale
    below = _one_side(pieces, (ends[0], turn), middle, -pull, centred)
    above = _one_side(pieces, (turn, ends[1]), middle, pull, centred)
    return np.asarray((below + above) * (pieces.weight / pieces.area))


def _one_side(
    pieces: GaussianPieces,
    ends: tuple[Floats, Floats],
    middle: Floats,
    pull: Floats,
    centred: tuple[Floats, Floats | float] | None,
) -> Floats:
    """Return ∫ exp(-slope t - precision t²/2 - pull (t - middle)) [...] dt between the ends."""
    start, end = np.broadcast_arrays(*ends)
    slope, precision = pieces.slope + pull, pieces.precision
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.where(precision > 0, -slope / precision, np.where(slope > 0, -np.inf, np.inf))
    peak = np.clip(free, start, end)
    steepness = np.abs(slope + precision * peak) * (peak != free)
    # at most 0 wherever the side is not empty: both the density and the kernel are at most 1
    exponent = -peak * (pieces.slope + 0.5 * precision * peak) - pull * (peak - middle)
    height = np.exp(np.where(start < end, exponent, 0.0))
    with np.errstate(divide="ignore"):
        root = np.sqrt(steepness**2 + 2.0 * precision * NEGLIGIBLE_EXPONENT)
        far = 2.0 * NEGLIGIBLE_EXPONENT / (steepness + root)
    total = np.zeros(peak.shape)
    for sign, length in ((-1.0, np.minimum(peak - start, far)), (1.0, np.minimum(end - peak, far))):
        s = 0.5 * length[..., None] * (1.0 + _DECAY_NODES)
        weight = 0.5 * length[..., None] * _DECAY_WEIGHTS
        weight = weight * np.exp(-s * (steepness[..., None] + 0.5 * precision[..., None] * s))
        if centred is not None:
            origin, unit = centred
            shift, step = (pieces.anchor - origin) / unit, pieces.scale / unit
            weight = weight * ((peak[..., None] + sign * s) * step[..., None] + shift[..., None])
        total += weight.sum(axis=-1)
    return total * height


@dataclass(frozen=True, eq=False)
class _Panels:
    """K intervals [start, end] in steps of their pieces, and the integrals over them, (m, K)."""

    piece: Ints
    start: Floats
    end: Floats
    value: Floats
    size: Floats

    def pick(self, chosen: Bools) -> _Panels:
        return _Panels(
            self.piece[chosen],
            self.start[chosen],
            self.end[chosen],
            self.value[:, chosen],
            self.size[:, chosen],
        )


def adaptive_quadrature(
    pieces: GaussianPieces,
    shape: Callable[[Floats], Floats],
    breaks: Sequence[float] | Floats,
    centred: tuple[Floats, Floats | float] | None = None,
) -> Floats:
    """∫ shape(x) [(x - origin) / unit] d(piece), (m, P); shape may jump or bend at the breaks."""
    value, _ = _integrate(_Rule(pieces, shape, centred), np.asarray(breaks, dtype=np.float64))
    return np.asarray(value * (pieces.weight / pieces.area))


def quadrature_points(
    pieces: GaussianPieces, shape: Callable[[Floats], Floats], breaks: Floats, panels: int
) -> tuple[Ints, Floats, Floats]:
    """Piece, x and weight, (K,), of points that integrate functions as smooth as these."""
    rule = _Rule(pieces, shape, None)
    _, finished = _integrate(rule, breaks, panels)
    piece, start, end = (np.concatenate(each) for each in zip(*finished, strict=True))
    order = np.lexsort((start, piece))
    piece = piece[order]
    t, factor = rule.nodes(piece, start[order], end[order])
    x = pieces.anchor[piece][:, None] + pieces.scale[piece][:, None] * t
    weight = factor * (pieces.weight / pieces.area)[piece][:, None]
    return np.repeat(piece, _NODES.size), x.ravel(), weight.ravel()


def _integrate(
    rule: _Rule, breaks: Floats, first: int = _FIRST_PANELS
) -> tuple[Floats, list[tuple[Ints, Floats, Floats]]]:
    """Integrals, (m, P), and the panels that they were added up from: piece, start and end."""
    pieces = rule.pieces
    pending = rule.panels(*_first_panels(pieces, breaks, first))
    count = pieces.anchor.size
    evaluated = np.bincount(pending.piece, minlength=count)
    value, size, error = (np.zeros((len(pending.value), count)) for _ in range(3))
    panels = []
    for _ in range(_ROUNDS):
        halves = rule.halves(pending)
        evaluated += np.bincount(halves.piece, minlength=count)
        difference = np.abs(pending.value - _pairs(halves.value))
        whole = size + _by_piece(halves.piece, halves.size, count)
        finished: Bools = np.asarray((difference <= _PANEL_TOLERANCE * whole[:, pending.piece]).all(axis=0))
        finished |= evaluated[pending.piece] > _MOST_PANELS + 8 * len(breaks)
        accepted = halves.pick(np.repeat(finished, 2))
        panels.append((accepted.piece, accepted.start, accepted.end))
        value += _by_piece(accepted.piece, accepted.value, count)
        size += _by_piece(accepted.piece, accepted.size, count)
        error += _by_piece(pending.piece[finished], difference[:, finished], count)
        pending = halves.pick(np.repeat(~finished, 2))
        if pending.piece.size == 0:
            break
    panels.append((pending.piece, pending.start, pending.end))
    value += _by_piece(pending.piece, pending.value, count)
    error += _by_piece(pending.piece, np.abs(pending.value), count)
    bad = np.flatnonzero((error > _SUM_TOLERANCE * size).any(axis=0))
    if bad.size:
        raise InputError(
            f"a one-dimensional function could not be integrated to {_SUM_TOLERANCE:g} "
            f"{_where(pieces, bad[0])}; pass breaks= with the points where it jumps or bends"
        )
    return value, panels


@dataclass(frozen=True, eq=False)
class _Rule:
    """Gauss-Legendre sums of the functions times the density, which is 1 at the anchor."""

    pieces: GaussianPieces
    shape: Callable[[Floats], Floats]
    centred: tuple[Floats, Floats | float] | None

    def panels(self, piece: Ints, start: Floats, end: Floats) -> _Panels:
        first, step, sums = 0, _FIRST_BLOCK, []
        while first < piece.size:
            block = slice(first, first + step)
            sums.append(self._sums(piece[block], start[block], end[block]))
            step = max(1, _BLOCK // (_NODES.size * len(sums[0][0])))
            first = block.stop
        value, size = (np.concatenate(each, axis=1) for each in zip(*sums, strict=True))
        return _Panels(piece, start, end, value, size)

    def halves(self, panels: _Panels) -> _Panels:
        middle = 0.5 * (panels.start + panels.end)
        start, end = np.stack([panels.start, middle], axis=1), np.stack([middle, panels.end], axis=1)
        return self.panels(np.repeat(panels.piece, 2), start.ravel(), end.ravel())

    def nodes(self, piece: Ints, start: Floats, end: Floats) -> tuple[Floats, Floats]:
        """Return the nodes t of panels, and their weights times the density, (K, 16) each."""
        p = self.pieces
        half = 0.5 * (end - start)[:, None]
        t = start[:, None] + half * (1.0 + _NODES)
        factor = half * _NODE_WEIGHTS
        return t, factor * np.exp(-t * (p.slope[piece][:, None] + 0.5 * p.precision[piece][:, None] * t))

    def _sums(self, piece: Ints, start: Floats, end: Floats) -> tuple[Floats, Floats]:
        p = self.pieces
        t, factor = self.nodes(piece, start, end)
        if self.centred is not None:
            origin, unit = self.centred
            shift, length = (p.anchor - origin) / unit, p.scale / unit
            factor = factor * (t * length[piece][:, None] + shift[piece][:, None])
        x = p.anchor[piece][:, None] + p.scale[piece][:, None] * t
        values = np.asarray(self.shape(x.ravel()), dtype=np.float64).reshape(-1, *x.shape)
        terms = values * factor
        if not np.isfinite(terms).all():
            bad = piece[~np.isfinite(terms).all(axis=(0, 2))]
            raise InputError(f"a one-dimensional function is not finite somewhere {_where(p, bad[0])}")
        return terms.sum(axis=2), np.abs(terms).sum(axis=2)


def _first_panels(pieces: GaussianPieces, breaks: Floats, count: int) -> tuple[Ints, Floats, Floats]:
    """Return piece, start and end of panels between the breaks, at least some on each side of an anchor."""
    left, right = (side[:, None] for side in pieces.reach)
    share = np.linspace(0.0, 1.0, count + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        inside = (breaks[None, :] - pieces.anchor[:, None]) / pieces.scale[:, None]
    ends = np.concatenate([left * share, right * share, np.clip(inside, left, right)], axis=1)
    ends.sort(axis=1)
    piece, place = np.nonzero(ends[:, :-1] < ends[:, 1:])
    return piece, ends[piece, place], ends[piece, place + 1]


def _pairs(values: Floats) -> Floats:
    return np.asarray(values[:, 0::2] + values[:, 1::2])


def _by_piece(piece: Ints, values: Floats, count: int) -> Floats:
    """Add up the panels of each piece: (m, K) -> (m, P)."""
    sums = np.zeros((count, len(values)))
    np.add.at(sums, piece, values.T)
    return sums.T


def _where(pieces: GaussianPieces, piece: int) -> str:
    start, end = (pieces.anchor[piece] + pieces.scale[piece] * side[piece] for side in pieces.reach)
    return f"on [{start:.6g}, {end:.6g}]"
