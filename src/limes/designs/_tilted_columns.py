r"""One column at many rows: its features for surrogates where every row has its own laws.

The formulas of ``_coordinates.py`` for one row are computed here for n rows at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import expit

from limes._arrays import Bools, Floats, Ints, power_of_two
from limes._functions import Function, Identity, Interval, by_category, texture
from limes.designs._coordinates import SMALLEST_MASS, IndicatorCoordinate
from limes.designs._gaussian import CentredPieces, GaussianPieces
from limes.designs._marginals import Atoms, Marginal
from limes.designs._tilted_laws import BasisPoints, TiltedLaws, Waves, points_of
from limes.designs._weights import EuclideanWeights


class TiltedColumn(Protocol):
    """A column at n rows; members as of ``Coordinate``, with an axis of rows."""

    @property
    def center(self) -> Floats:
        """E_w h, (n,)."""
        ...

    @property
    def variance(self) -> Floats:
        """Var_w (h / unit), (n,)."""
        ...

    @property
    def at_instance(self) -> Floats:
        """Value of h at the rows, (n,)."""
        ...

    @property
    def unit(self) -> Floats:
        """Approximate spread of h, powers of two, (n,)."""
        ...

    @property
    def log_weight(self) -> Floats:
        """Log of the column's factor of E[π], (n,)."""
        ...

    @property
    def is_slope(self) -> Bools:
        """Whether h is x at the rows, (n,)."""
        ...

    @property
    def mixing(self) -> Floats:
        """(n, 2, 2): mean and contrast of the feature in units are mixing @ basis."""
        ...

    def basis(self, function: Function) -> Floats:
        """Two functionals of m functions from which mean and contrast are mixed, (m, n, 2)."""
        ...

    def points(self, function: Function, waves: Waves) -> BasisPoints:
        """Points that give the ``basis`` of all functions g(function(x)) which are as smooth as ``waves``."""
        ...


class _SteppedColumn(ABC):
    """A column that uses one point between two breaks where functions are constant there."""

    def points(self, function: Function, waves: Waves) -> BasisPoints:
        """Points that give the ``basis`` of all functions g(function(x)) which are as smooth as ``waves``."""
        breaks, constant, _ = texture(function)
        if not constant or by_category(function):
            return self._points(function, waves)
        lower = np.concatenate([[-np.inf], breaks, [np.inf]])
        upper = np.concatenate([breaks, [np.inf, -np.inf]])
        # the last is no interval: it contains only missing values
        missing = np.arange(lower.size) == breaks.size + 1
        masses = self.basis(Interval(lower, upper, missing))
        row, place = np.nonzero(masses.any(axis=2).T)
        x = np.where(missing, np.nan, upper)[place]
        return BasisPoints(row, x, masses[place, row].T)

    @abstractmethod
    def basis(self, function: Function) -> Floats:
        """Two functionals of m functions, (m, n, 2)."""

    @abstractmethod
    def _points(self, function: Function, waves: Waves) -> BasisPoints:
        """Points of a quadrature, of atoms and of categories."""


class GatheredColumn(ABC):
    """A column whose numbers are gathered from others, by their names."""

    @abstractmethod
    def _each(self, name: str) -> Floats:
        """A member at all rows."""

    @property
    def center(self) -> Floats:
        """E_w h, (n,)."""
        return self._each("center")

    @property
    def variance(self) -> Floats:
        """Var_w (h / unit), (n,)."""
        return self._each("variance")

    @property
    def at_instance(self) -> Floats:
        """Value of h at the rows, (n,)."""
        return self._each("at_instance")

    @property
    def unit(self) -> Floats:
        """Approximate spread of h, powers of two, (n,)."""
        return self._each("unit")

    @property
    def log_weight(self) -> Floats:
        """Log of the column's factor of E[π], (n,)."""
        return self._each("log_weight")

    @property
    def is_slope(self) -> Bools:
        """Whether h is x at the rows, (n,)."""
        return np.asarray(self._each("is_slope"), dtype=np.bool_)

    @property
    def mixing(self) -> Floats:
        """(n, 2, 2)."""
        return self._each("mixing")


class _OfCells:
    """Common members of columns whose feature is z, for rows in each ``cell`` (n,)."""

    cell: Ints

    @property
    def is_slope(self) -> Bools:
        """False, (n,)."""
        return np.zeros(self.cell.size, dtype=np.bool_)

    @property
    def at_instance(self) -> Floats:
        """Ones, (n,)."""
        return np.ones(self.cell.size)

    @property
    def unit(self) -> Floats:
        """Ones, (n,)."""
        return np.ones(self.cell.size)


@dataclass(frozen=True, eq=False)
class IndicatorColumn(_OfCells, _SteppedColumn):
    """h = z: see ``IndicatorCoordinate``. ``cell`` (n,) are the cells of the rows."""

    laws: TiltedLaws
    cell: Ints

    @property
    def center(self) -> Floats:
        """E_w h, (n,)."""
        return self._odds[0]

    @property
    def variance(self) -> Floats:
        """Var_w h, (n,)."""
        return self._odds[0] * self._odds[1]

    @property
    def log_weight(self) -> Floats:
        """Log of the column's factor of E[π], (n,)."""
        return self._odds[3]

    @cached_property
    def _odds(self) -> tuple[Floats, Floats, Floats, Floats]:
        """α, 1 - α, the law of the cell given z = 0 (n, p), and log E[π]: ``IndicatorCoordinate.tilted``."""
        others, rows = self.laws.log_mass.copy(), np.arange(self.cell.size)
        inside = others[rows, self.cell]
        others[rows, self.cell] = -np.inf
        rest = np.logaddexp.reduce(others, axis=1)
        varies = rest > -np.inf
        odds = np.where(varies, inside, np.inf) - np.where(varies, rest, 0.0)
        elsewhere = np.exp(others - np.where(varies, rest, 0.0)[:, None])
        elsewhere /= np.where(varies, elsewhere.sum(axis=1), 1.0)[:, None]
        return (
            np.maximum(expit(odds), SMALLEST_MASS),
            np.where(varies, np.maximum(expit(-odds), SMALLEST_MASS), 0.0),
            elsewhere,
            np.logaddexp(inside, rest),
        )

    @property
    def mixing(self) -> Floats:
        """(n, 2, 2)."""
        inclusion, exclusion, *_ = self._odds
        varies = (exclusion > 0.0).astype(np.float64)
        return np.stack([inclusion, exclusion, varies, -varies], axis=1).reshape(-1, 2, 2)

    def basis(self, function: Function) -> Floats:
        """E[g | z = 1] and E[g | z = 0] of m functions, (m, n, 2)."""
        table = self.laws.expect(function)
        inside = table[:, np.arange(self.cell.size), self.cell]
        return np.stack([inside, (table * self._odds[2]).sum(axis=2)], axis=2)

    def _points(self, function: Function, waves: Waves) -> BasisPoints:
        """Points of the laws inside and outside the rows' cells."""
        row, cell, x, weight = self.laws.points(function, waves)
        inside = weight * (cell == self.cell[row])
        return BasisPoints(row, x, np.stack([inside, weight * self._odds[2][row, cell]]))


@dataclass(frozen=True, eq=False)
class LevelColumn(_OfCells, GatheredColumn, _SteppedColumn):
    """A column at rows without a number: categories, missing values. Its law depends only on their cells."""

    weights: EuclideanWeights
    marginal: Marginal
    cell: Ints

    @cached_property
    def _variants(self) -> tuple[list[IndicatorCoordinate], Ints]:
        """A coordinate for each category that occurs, and the position of each row's coordinate."""
        cells, place = np.unique(self.cell, return_inverse=True)
        tilted = [
            IndicatorCoordinate.tilted(self.marginal, np.nan, int(cell), scale=1.0, weights=self.weights)
            for cell in cells
        ]
        return tilted, place

    def _each(self, name: str) -> Floats:
        variants, place = self._variants
        return np.array([getattr(variant, name) for variant in variants])[place]

    def basis(self, function: Function) -> Floats:
        """E[g | z = 1] and E[g | z = 0] of m functions, (m, n, 2)."""
        variants, place = self._variants
        table = variants[0].tabulate(function)  # one law for all categories
        return np.stack([variant.basis(table) for variant in variants], axis=1)[:, place]

    def _points(self, function: Function, waves: Waves) -> BasisPoints:
        """Points of the common law, inside and outside the rows' cells."""
        variants, place = self._variants
        law = variants[0].marginal
        _, cell, x, weight = TiltedLaws(law, law.log_mass[None], law.measures).points(function, waves)
        shares = [[cell == variant.cell, variant.elsewhere[cell]] for variant in variants]
        each = (np.array(shares, dtype=np.float64) * weight)[place].transpose(1, 0, 2)
        row = np.repeat(np.arange(place.size), x.size)
        return BasisPoints(row, np.tile(x, place.size), each.reshape(2, -1))


@dataclass(frozen=True, eq=False)
class _OfValues:
    """Common members of columns whose feature is x; ``x`` (n,) are the rows' values."""

    laws: TiltedLaws
    x: Floats

    @property
    def is_slope(self) -> Bools:
        """True, (n,)."""
        return np.ones(self.x.size, dtype=np.bool_)

    @property
    def at_instance(self) -> Floats:
        """The rows' values."""
        return self.x

    @property
    def log_weight(self) -> Floats:
        """Log of the column's factor of E[π], (n,)."""
        return self.laws.log_mass[:, 0]

    @property
    def mixing(self) -> Floats:
        """(n, 2, 2)."""
        return np.broadcast_to(np.eye(2), (self.x.size, 2, 2))


@dataclass(frozen=True, eq=False)
class SlopeColumn(_OfValues, _SteppedColumn):
    """h = x, under one piece a row: see ``SlopeCoordinate``."""

    @property
    def _piece(self) -> GaussianPieces:
        (measure,) = self.laws.measures
        assert isinstance(measure, GaussianPieces)  # noqa: S101 - guaranteed by `serves`
        return measure

    @cached_property
    def center(self) -> Floats:
        """E_w h, (n,)."""
        return self._piece.mean_from(0.0)

    @cached_property
    def unit(self) -> Floats:
        """Approximate spread of x, powers of two, (n,)."""
        left, right = (self._piece.anchor + self._piece.scale * side for side in self._piece.reach)
        return power_of_two(0.5 * right - 0.5 * left)

    @cached_property
    def variance(self) -> Floats:
        """Var_w (h / unit), (n,)."""
        return np.asarray(self._covariance(Identity())[1][0] / self.unit)

    def basis(self, function: Function) -> Floats:
        """Mean and contrast of m functions, (m, n, 2)."""
        values, covariance = self._covariance(function)
        contrast = np.divide(
            covariance, self.variance, out=np.zeros_like(covariance), where=self.variance > 0
        )
        return np.stack([values, contrast], axis=2)

    def _points(self, function: Function, waves: Waves) -> BasisPoints:
        """Points of the rows' laws, and of the laws times x less its mean."""
        row, x, weight = points_of(self._piece, function, waves)
        away = (x - self.center[row]) / self.unit[row] - self._centred.mean[row]
        moving = np.where(self.variance > 0, self.variance, np.inf)
        return BasisPoints(row, x, np.stack([weight, weight * away / moving[row]]))

    def _covariance(self, function: Function) -> tuple[Floats, Floats]:
        """E_w g and Cov_w(x / unit, g), (m, n)."""
        values, centred = self._piece.expect(function), self._centred
        # the mean is rounded, so that x less its mean has a mean too: it must not count as a covariance
        return values, centred.expect(function) - centred.mean * values

    @cached_property
    def _centred(self) -> CentredPieces:
        return self._piece.centred(self.center, self.unit)


@dataclass(frozen=True, eq=False)
class PointColumn(_OfValues):
    """h = x for a column that has a single value."""

    @property
    def _value(self) -> Floats:
        (measure,) = self.laws.marginal.measures
        assert isinstance(measure, Atoms)  # noqa: S101 - the column has a single value
        return measure.value

    @property
    def center(self) -> Floats:
        """The value, (n,)."""
        return np.repeat(self._value, self.x.size)

    @property
    def variance(self) -> Floats:
        """Zeros, (n,)."""
        return np.zeros(self.x.size)

    @property
    def unit(self) -> Floats:
        """Ones, (n,)."""
        return np.ones(self.x.size)

    def basis(self, function: Function) -> Floats:
        """Mean and contrast of m functions, (m, n, 2): the value's, and 0."""
        values = np.repeat(function(self._value), self.x.size, axis=1)
        return np.stack([values, 0.0 * values], axis=2)

    def points(self, function: Function, waves: Waves) -> BasisPoints:  # noqa: ARG002
        """The value, one point a row."""
        n = self.x.size
        return BasisPoints(np.arange(n), np.repeat(self._value, n), np.repeat([[1.0], [0.0]], n, axis=1))
