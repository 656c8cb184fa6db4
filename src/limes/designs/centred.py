"""Pieces of Gaussians times x less an origin: the signed measures that slopes are integrals against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limes._arrays import Floats, Ints
from limes.designs.decays import decays
from limes.designs.gaussian_integrals import gaussian_moment
from limes.designs.quadrature import integrals
from limes.functions import Function

if TYPE_CHECKING:
    from limes.designs.gaussian import GaussianPieces


@dataclass(frozen=True, eq=False)
class CentredPieces:
    """The signed measures (x - origin) / unit · d(piece): what a slope, Cov(x, f) / Var(x), needs."""

    pieces: GaussianPieces
    origin: Floats
    unit: float

    @property
    def _mean(self) -> Floats:
        return self._centred_mean(self.pieces)

    def _centred_mean(self, pieces: GaussianPieces) -> Floats:
        """E(x - origin) / unit."""
        return pieces.mean_step * (pieces.scale / self.unit) + (pieces.anchor - self.origin) / self.unit

    def expect(self, function: Function) -> Floats:
        """∫ (x - origin) / unit · function d(piece), (m, P)."""
        return function.integrate(self)

    def interval(self, lower: Floats, upper: Floats) -> Floats:
        """∫ (x - origin) / unit · 1[lower < x <= upper], (m, P)."""
        whole = self.pieces.weight * self._mean
        return self.pieces.partly(lower, upper, whole, self._interval_moment)

    def _interval_moment(self, pieces: GaussianPieces, piece: Ints, start: Floats, end: Floats) -> Floats:
        area, moment = gaussian_moment(
            pieces.steps(start, piece),
            pieces.steps(end, piece),
            pieces.slope[piece],
            pieces.precision[piece],
        )
        shift = (pieces.anchor[piece] - self.origin[piece]) / self.unit
        centred = moment * (pieces.scale[piece] / self.unit) + shift * area
        return np.asarray(pieces.weight[piece] * centred / pieces.area[piece])

    def bump(self, center: Floats, precision: float) -> Floats:
        """∫ (x - origin) / unit · exp(-precision (x - center)²/2), (m, P)."""
        product, log_mass = self.pieces.times(center[:, None], precision)
        return np.asarray(product.weight * np.exp(log_mass) * self._centred_mean(product))

    def identity(self, center: float = 0.0) -> Floats:
        """∫ (x - origin) / unit · (x - center), (1, P)."""
        pieces = self.pieces
        second = pieces.central(2, self.unit) + self._mean * pieces.mean_from(center)
        return (pieces.weight * second)[None, :]

    def square(self, center: float = 0.0) -> Floats:
        """∫ (x - origin) / unit · (x - center)², (1, P)."""
        pieces, mean = self.pieces, self.pieces.mean_from(center)
        third = pieces.central(3, self.unit) + 2.0 * mean * pieces.central(2, self.unit)
        third = third + self._mean * (pieces.variance + mean**2)
        return (pieces.weight * third)[None, :]

    def decay(self, center: Floats, rate: float) -> Floats:
        """∫ (x - origin) / unit · exp(-rate |x - center|), (m, P)."""
        return decays(self.pieces, center, rate, (self.origin, self.unit))

    def quadrature(self, shape: Callable[[Floats], Floats], breaks: Sequence[float]) -> Floats:
        """∫ (x - origin) / unit · shape(x), (1, P) or (m, P)."""
        return integrals(self.pieces, shape, breaks, (self.origin, self.unit))
