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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import EllipsisType

import numpy as np

from limes._arrays import Floats, Ints, power_of_two
from limes._functions import Function
from limes.designs._integrals import (
    NEGLIGIBLE_EXPONENT,
    adaptive_quadrature,
    decay_integrals,
    gaussian_area,
    gaussian_moment,
    normal_quantile,
    quadrature_points,
)

# A kernel this many widths away is 0, and its exponent is still finite.
_FARTHEST = 1e150
_PANEL_NODES, _PANEL_WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True, eq=False)
class GaussianPieces:
    """P densities, each normalised to its weight; arrays (P,), or anything that broadcasts together.

    Attributes
    ----------
    anchor, slope, precision, lower, upper, weight, scale
        See the module's docstring. ``anchor`` maximises the density on [lower, upper], so slope is 0 inside
        the interval, >= 0 at its lower end and <= 0 at its upper end. Bounds may be infinite where the
        precision is positive. Slope and precision are in units of the scale; the other lengths are the
        column's own.
    """

    anchor: Floats
    slope: Floats
    precision: Floats
    lower: Floats
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

    @cached_property
    def area(self) -> Floats:
        """∫ exp(-slope t - precision t²/2) dt over [lower, upper]."""
        start, end = self.steps(self.lower), self.steps(self.upper)
        return gaussian_area(start, end, self.slope, self.precision)

    def steps(self, x: Floats, piece: Ints | EllipsisType = ...) -> Floats:
        """Return t = (x - anchor) / scale, of all pieces or of some."""
        with np.errstate(over="ignore"):
            return np.asarray((x - self.anchor[piece]) / self.scale[piece])

    def times(
        self, center: Floats | float, precision: float, unit: float = 1.0
    ) -> tuple[GaussianPieces, Floats]:
        """Multiply by exp(-precision ((x - center) / unit)²/2): the normalised product, the log of its mass.

        ``center`` broadcasts against the pieces: (m, 1) gives m products of each.
        """
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
        """Place where a product would be largest without bounds: a step from the anchor, or from the center.

        The shorter step is used: a sum of two long ones of opposite signs would lose the digits of the peak.
        """
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
        """∫ function d(piece), (m, P)."""
        return np.asarray(function.integrate(self))

    def interval(self, lower: Floats, upper: Floats) -> Floats:
        """Mass of (lower, upper], (m, P)."""
        return self.partly(lower, upper, self.weight, _interval_mass)

    def bump(self, center: Floats, precision: float) -> Floats:
        """∫ exp(-precision (x - center)²/2), (m, P)."""
        product, log_mass = self.times(center[:, None], precision)
        return np.asarray(product.weight * np.exp(log_mass))

    def decay(self, center: Floats, rate: float) -> Floats:
        """∫ exp(-rate |x - center|), (m, P)."""
        return decay_integrals(self, center, rate)

    def identity(self, center: float = 0.0) -> Floats:
        """∫ (x - center), (1, P)."""
        return (self.weight * self.mean_from(center))[None, :]

    def square(self, center: float = 0.0) -> Floats:
        """∫ (x - center)², (1, P)."""
        return (self.weight * (self.variance + self.mean_from(center) ** 2))[None, :]

    def mean_from(self, center: float) -> Floats:
        """Mean of each piece less a center, (P,), without the rounding of the mean itself."""
        return self.offset + (self.anchor - center)

    def quadrature(self, shape: Callable[[Floats], Floats], breaks: Sequence[float]) -> Floats:
        """∫ shape(x) for a callable (n,) -> (n,) or (m, n): (1, P) or (m, P)."""
        return adaptive_quadrature(self, shape, breaks)

    def points(
        self, shape: Callable[[Floats], Floats], breaks: Floats, panels: int
    ) -> tuple[Ints, Floats, Floats]:
        """Points x with weights, (K,) each after their piece, that integrate functions as smooth as shape."""
        return quadrature_points(self, shape, breaks, panels)

    def centred(self, origin: Floats, unit: Floats | float = 1.0) -> CentredPieces:
        """The signed measures (x - origin) / unit · d(piece)."""
        return CentredPieces(self, origin, unit)

    def quantile(self, piece: Ints, level: Floats) -> Floats:
        """Inverse distribution function of pieces at levels, both (n,)."""
        x = np.empty(level.shape)
        flat = self.precision[piece] == 0
        at = piece[flat]
        x[flat] = self.lower[at] + level[flat] * (self.upper[at] - self.lower[at])
        at = piece[~flat]
        width = 1.0 / np.sqrt(self.precision[at])
        shift = self.slope[at] * width
        lower = self.steps(self.lower[at], at) / width + shift
        upper = self.steps(self.upper[at], at) / width + shift
        step = width * (normal_quantile(level[~flat], lower, upper) - shift)
        x[~flat] = self.anchor[at] + self.scale[at] * step
        return np.asarray(np.clip(x, self.lower[piece], self.upper[piece]))

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
        """Mean of t, (P,)."""
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
        """Mean of each piece, (P,)."""
        return self.anchor + self.offset

    @property
    def variance(self) -> Floats:
        """Variance of each piece, (P,)."""
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
        """Integrals over intervals: ``whole`` where one covers a piece, 0 where it misses it, else ``part``.

        A tree's interval covers or misses most bins; only the others need special functions.
        """
        lower, upper = lower[:, None], upper[:, None]
        covers = (lower <= self.lower) & (self.upper <= upper)
        integral = np.where(covers, whole, 0.0)
        row, piece = np.nonzero(~covers & (upper > self.lower) & (lower < self.upper) & (lower < upper))
        start = np.maximum(lower[row, 0], self.lower[piece])
        end = np.minimum(upper[row, 0], self.upper[piece])
        integral[row, piece] = part(self, piece, start, end)
        return integral


@dataclass(frozen=True, eq=False)
class CentredPieces:
    """The signed measures (x - origin) / unit · d(piece), for slopes Cov(x, f) / Var(x).

    There may be a unit for each piece.
    """

    pieces: GaussianPieces
    origin: Floats
    unit: Floats | float

    @property
    def mean(self) -> Floats:
        """E(x - origin) / unit of each piece, (P,)."""
        return self._centred_mean(self.pieces)

    @property
    def mass(self) -> Floats:
        return self.pieces.weight * self.mean

    def _centred_mean(self, pieces: GaussianPieces) -> Floats:
        """E(x - origin) / unit."""
        return pieces.mean_step * (pieces.scale / self.unit) + (pieces.anchor - self.origin) / self.unit

    def expect(self, function: Function) -> Floats:
        """∫ (x - origin) / unit · function d(piece), (m, P)."""
        return np.asarray(function.integrate(self))

    def interval(self, lower: Floats, upper: Floats) -> Floats:
        """∫ (x - origin) / unit · 1[lower < x <= upper], (m, P)."""
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
        """∫ (x - origin) / unit · exp(-precision (x - center)²/2), (m, P)."""
        product, log_mass = self.pieces.times(center[:, None], precision)
        return np.asarray(product.weight * np.exp(log_mass) * self._centred_mean(product))

    def identity(self, center: float = 0.0) -> Floats:
        """∫ (x - origin) / unit · (x - center), (1, P)."""
        pieces = self.pieces
        second = pieces.central(2, self.unit) + self.mean * pieces.mean_from(center)
        return (pieces.weight * second)[None, :]

    def square(self, center: float = 0.0) -> Floats:
        """∫ (x - origin) / unit · (x - center)², (1, P)."""
        pieces, mean = self.pieces, self.pieces.mean_from(center)
        third = pieces.central(3, self.unit) + 2.0 * mean * pieces.central(2, self.unit)
        third = third + self.mean * (pieces.variance + mean**2)
        return (pieces.weight * third)[None, :]

    def decay(self, center: Floats, rate: float) -> Floats:
        """∫ (x - origin) / unit · exp(-rate |x - center|), (m, P)."""
        return decay_integrals(self.pieces, center, rate, (self.origin, self.unit))

    def points(
        self, shape: Callable[[Floats], Floats], breaks: Floats, panels: int
    ) -> tuple[Ints, Floats, Floats]:
        """Points of the pieces, their weights times (x - origin) / unit."""
        piece, x, weight = self.pieces.points(shape, breaks, panels)
        return piece, x, weight * ((x - self.origin[piece]) / self.unit)

    def quadrature(self, shape: Callable[[Floats], Floats], breaks: Sequence[float]) -> Floats:
        """∫ (x - origin) / unit · shape(x), (1, P) or (m, P)."""
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
