r"""Pieces of Gaussians on intervals: the only density that tabular LIME needs.

One piece has the density ∝ exp(-slope (x - anchor) - precision (x - anchor)² / 2) on [lower, upper]. Its
cases:

- a truncated normal: precision = 1/σ², the anchor is the mean moved into the interval;
- a uniform law: precision = 0;
- either of them multiplied by a smooth weight or by an RBF kernel: again a piece (``times``).

Anchor and slope are kept instead of a mean because they survive every extreme. A narrow bandwidth far from
a bin puts the mean of the product thousands of standard deviations away, where Φ(b) - Φ(a) is 0 - 0; at the
anchor, the point of the interval where the density is largest, everything is of order one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Floats, Ints
from limes.designs.decays import decays
from limes.designs.gaussian_integrals import gaussian_area, gaussian_moment
from limes.designs.quadrature import integrals
from limes.functions import Function

# exp(-45) = 3e-20: beyond it a density cannot change a float64 sum.
_NEGLIGIBLE_EXPONENT = 45.0
_PANEL_NODES, _PANEL_WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True, eq=False)
class GaussianPieces:
    """P densities, each normalised to its weight; arrays (P,), or anything that broadcasts together.

    Attributes
    ----------
    anchor, slope, precision, lower, upper, weight
        As above. ``anchor`` maximises the density on [lower, upper], so slope is 0 inside the interval,
        >= 0 at its lower end and <= 0 at its upper end. Bounds may be infinite where precision > 0.
    """

    anchor: Floats
    slope: Floats
    precision: Floats
    lower: Floats
    upper: Floats
    weight: Floats

    @classmethod
    def truncated_normal(
        cls, mean: Floats, std: Floats, lower: Floats, upper: Floats, *, weight: Floats
    ) -> GaussianPieces:
        """Normal(mean, std) cut to [lower, upper]; std = inf makes it uniform."""
        precision = 1.0 / std**2
        anchor = np.clip(mean, lower, upper)
        return cls(anchor, precision * (anchor - mean), precision, lower, upper, weight)

    @property
    def scale(self) -> Floats:
        """The unit of slope, precision and reach, (P,)."""
        return np.ones_like(self.anchor)

    @cached_property
    def area(self) -> Floats:
        """∫ exp(-slope (x - anchor) - precision (x - anchor)²/2) dx over [lower, upper]."""
        return gaussian_area(self.lower - self.anchor, self.upper - self.anchor, self.slope, self.precision)

    def times(self, center: Floats | float, precision: float) -> tuple[GaussianPieces, Floats]:
        """Multiply by exp(-precision (x - center)²/2): the normalised product, and the log of its mass.

        ``center`` broadcasts against the pieces: (m, 1) gives m products of each.
        """
        total = self.precision + precision
        pull = self.slope + precision * (self.anchor - center)
        with np.errstate(divide="ignore", invalid="ignore"):
            peak = np.where(total > 0, self.anchor - pull / total, self.anchor)
        anchor = np.clip(peak, self.lower, self.upper)
        step = anchor - self.anchor
        at_anchor = self.slope + self.precision * step + precision * (anchor - center)
        slope = np.where(anchor == peak, 0.0, at_anchor)
        lower, upper, total, weight = np.broadcast_arrays(self.lower, self.upper, total, self.weight, anchor)[
            :4
        ]
        product = GaussianPieces(anchor, slope, total, lower, upper, weight)
        exponent = (
            -0.5 * precision * (anchor - center) ** 2 - self.slope * step - 0.5 * self.precision * step**2
        )
        return product, exponent + np.log(product.area) - np.log(self.area)

    # -- what a one-dimensional function may ask of a density ------------------------------------------

    def expect(self, function: Function) -> Floats:
        """∫ function d(piece), (m, P)."""
        return function.integrate(self)

    def interval(self, lower: Floats, upper: Floats) -> Floats:
        """Mass of (lower, upper], (m, P)."""
        return self._partly(lower, upper, self.weight, _interval_mass)

    def bump(self, center: Floats, precision: float) -> Floats:
        """∫ exp(-precision (x - center)²/2), (m, P)."""
        product, log_mass = self.times(center[:, None], precision)
        return np.asarray(product.weight * np.exp(log_mass))

    def decay(self, center: Floats, rate: float) -> Floats:
        """∫ exp(-rate |x - center|), (m, P)."""
        return decays(self, center, rate)

    def identity(self) -> Floats:
        """∫ x, (1, P)."""
        return (self.weight * self.mean)[None, :]

    def square(self) -> Floats:
        """∫ x², (1, P)."""
        return (self.weight * (self.variance + self.mean**2))[None, :]

    def quadrature(self, shape: Callable[[Floats], Floats], breaks: Sequence[float]) -> Floats:
        """∫ shape(x) for a callable (n,) -> (n,) or (m, n): (1, P) or (m, P)."""
        return integrals(self, shape, breaks)

    def centred(self, origin: Floats) -> CentredPieces:
        """The signed measures (x - origin) d(piece)."""
        return CentredPieces(self, origin)

    def quantile(self, piece: Ints, level: Floats) -> Floats:
        """Inverse distribution function of the given pieces at the given levels, both (n,)."""
        from scipy.stats import truncnorm

        found = np.empty(level.shape)
        flat = self.precision[piece] == 0
        at = piece[flat]
        found[flat] = self.lower[at] + level[flat] * (self.upper[at] - self.lower[at])
        at = piece[~flat]
        scale = 1.0 / np.sqrt(self.precision[at])
        shift = self.slope[at] * scale
        lower = (self.lower[at] - self.anchor[at]) / scale + shift
        upper = (self.upper[at] - self.anchor[at]) / scale + shift
        found[~flat] = self.anchor[at] + scale * (truncnorm.ppf(level[~flat], lower, upper) - shift)
        return np.asarray(np.clip(found, self.lower[piece], self.upper[piece]))

    # -- moments ---------------------------------------------------------------------------------------

    @cached_property
    def _rule(self) -> tuple[Floats, Floats]:
        """Offsets from the anchor and normalised weights of a quadrature rule for each piece, (..., 128)."""
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
        """How far to both sides of the anchor the density matters: offsets <= 0 and >= 0."""

        def distance(slope: Floats) -> Floats:
            # the positive root of slope t + precision t²/2 = 45, written so that either term may vanish
            with np.errstate(divide="ignore"):
                discriminant = np.sqrt(slope**2 + 2.0 * self.precision * _NEGLIGIBLE_EXPONENT)
                return 2.0 * _NEGLIGIBLE_EXPONENT / (slope + discriminant)

        left = np.maximum(self.lower - self.anchor, -distance(np.maximum(-self.slope, 0.0)))
        right = np.minimum(self.upper - self.anchor, distance(np.maximum(self.slope, 0.0)))
        return left, right

    @cached_property
    def offset(self) -> Floats:
        """Mean of each piece less its anchor, (P,): keeps the digits that the mean itself rounds off."""
        t, w = self._rule
        return np.asarray((w * t).sum(axis=-1))

    @property
    def mean(self) -> Floats:
        """Mean of each piece, (P,)."""
        return self.anchor + self.offset

    @cached_property
    def variance(self) -> Floats:
        """Variance of each piece, (P,)."""
        return self.central(2)

    def central(self, power: int) -> Floats:
        """E(x - mean) ** power of each piece, (P,)."""
        t, w = self._rule
        centred = t - self.offset[..., None]
        return np.asarray((w * centred**power).sum(axis=-1))

    # -- plumbing --------------------------------------------------------------------------------------

    def _partly(
        self,
        lower: Floats,
        upper: Floats,
        whole: Floats,
        part: Callable[[GaussianPieces, Ints, Floats, Floats], Floats],
    ) -> Floats:
        """Integrals over intervals: ``whole`` where one covers a piece, 0 where they miss, else ``part``.

        A tree's interval covers or misses most bins; only the others need special functions.
        """
        lower, upper = lower[:, None], upper[:, None]
        covers = (lower <= self.lower) & (self.upper <= upper)
        found = np.where(covers, whole, 0.0)
        row, piece = np.nonzero(~covers & (upper > self.lower) & (lower < self.upper) & (lower < upper))
        start = np.maximum(lower[row, 0], self.lower[piece])
        end = np.minimum(upper[row, 0], self.upper[piece])
        found[row, piece] = part(self, piece, start, end)
        return found


@dataclass(frozen=True, eq=False)
class CentredPieces:
    """The signed measures (x - origin) d(piece): what a slope, Cov(x, f) / Var(x), integrates against."""

    pieces: GaussianPieces
    origin: Floats

    @property
    def _mean(self) -> Floats:
        return self.pieces.offset + (self.pieces.anchor - self.origin)

    def expect(self, function: Function) -> Floats:
        """∫ (x - origin) function d(piece), (m, P)."""
        return function.integrate(self)

    def interval(self, lower: Floats, upper: Floats) -> Floats:
        """∫ (x - origin) 1[lower < x <= upper], (m, P)."""
        whole = self.pieces.weight * self._mean
        return self.pieces._partly(lower, upper, whole, self._interval_moment)  # noqa: SLF001

    def _interval_moment(self, pieces: GaussianPieces, piece: Ints, start: Floats, end: Floats) -> Floats:
        anchor = pieces.anchor[piece]
        area, moment = gaussian_moment(
            start - anchor, end - anchor, pieces.slope[piece], pieces.precision[piece]
        )
        centred = moment + (anchor - self.origin[piece]) * area
        return np.asarray(pieces.weight[piece] * centred / pieces.area[piece])

    def bump(self, center: Floats, precision: float) -> Floats:
        """∫ (x - origin) exp(-precision (x - center)²/2), (m, P)."""
        product, log_mass = self.pieces.times(center[:, None], precision)
        centred_mean = product.offset + (product.anchor - self.origin)
        return np.asarray(product.weight * np.exp(log_mass) * centred_mean)

    def decay(self, center: Floats, rate: float) -> Floats:
        """∫ (x - origin) exp(-rate |x - center|), (m, P)."""
        return decays(self.pieces, center, rate, (self.origin, 1.0))

    def identity(self) -> Floats:
        """∫ (x - origin) x, (1, P)."""
        pieces = self.pieces
        second = pieces.variance + self._mean * pieces.mean
        return (pieces.weight * second)[None, :]

    def square(self) -> Floats:
        """∫ (x - origin) x², (1, P)."""
        pieces, mean, variance = self.pieces, self.pieces.mean, self.pieces.variance
        third = pieces.central(3) + 2.0 * mean * variance + (mean - self.origin) * (variance + mean**2)
        return (pieces.weight * third)[None, :]

    def quadrature(self, shape: Callable[[Floats], Floats], breaks: Sequence[float]) -> Floats:
        """∫ (x - origin) shape(x), (1, P) or (m, P)."""
        return integrals(self.pieces, shape, breaks, (self.origin, 1.0))


def _interval_mass(pieces: GaussianPieces, piece: Ints, start: Floats, end: Floats) -> Floats:
    anchor = pieces.anchor[piece]
    area = gaussian_area(start - anchor, end - anchor, pieces.slope[piece], pieces.precision[piece])
    return np.asarray(pieces.weight[piece] * area / pieces.area[piece])
