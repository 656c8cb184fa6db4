r"""Columns of product designs: the weighted law w of one column at V rows, and the column's feature h.

Columns are independent under w, so β_j = Cov_w(h_j, f) / Var_w(h_j) for whatever feature h_j a column offers
to the surrogate: the indicator z_j of the row's cell, or x_j itself. A column is then two linear functionals
of one-dimensional functions g,

    mean(g) = E_w g     and     contrast(g) = Cov_w(h, g) / Var_w(h),

and a sum or a product of such functions is explained by these two alone. For an indicator the contrast is
E_w[g | z = 1] - E_w[g | z = 0], and is computed as that difference: the equal forms with (1 - α) below a
fraction are 0/0 for narrow bandwidths.

A column has V laws at once: under bin weights one for each of its cells, which all rows share; under smooth
weights one for each row. Numbers of a law are computed from it alone, and added up in one order: they are the
same to the last bit whatever the other laws.

A slope may have missing values. Where x is missing its feature is its mean m = E_w[x | present]. The
indicator of missing values is a second feature, and with m as the filling the two are uncorrelated, so that
both keep their own coefficients,

    slope      Cov_w(x, f | present) / Var_w(x | present)
    indicator  E_w[f | missing] - E_w[f | present],

and Σ stays diagonal. A row is explained by the feature that is not 0 there: at a row whose value is missing
by the indicator; the other feature appears in the column's effects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
from scipy.special import expit

from limes._arrays import Bools, Floats, Ints
from limes._functions import (
    BoxesOfTuples,
    Function,
    Identity,
    Interval,
    Members,
    by_category,
    texture,
)
from limes.designs._gaussian import GaussianPieces
from limes.designs._marginals import (
    Atoms,
    BinCells,
    Laws,
    Levels,
    Marginal,
    Measure,
    TupleCells,
    Waves,
    marginal,
    sides,
    split_level,
)
from limes.designs._stacks import learn_sides
from limes.designs._tuples import has_new_tuples, shares_of_rows
from limes.designs._weights import BinWeights, EuclideanWeights, Weights

# A cell with less probability than this still has an exact conditional law, while products of two such masses
# stay above the smallest float64.
SMALLEST_MASS = 1e-100
# If all values but one have less probability than this, 1 less the probability of that one has too few digits
_FIXED = 1e-6
# Cells from which on a shared law has no table of the others' probabilities; a row's cell is heavy if all
# others together have less than this share of its probability
_MANY, _HEAVY = 256, 1e-3
# Values that are multiplied by probabilities at once
_NUMBERS = 1 << 22
# Slices of a slope's law in which a model has effects
_SLICES = 10
_MISSING = np.array([np.nan])


class BasisPoints(NamedTuple):
    """K points; the ends of a law are among them, if necessary with weights of 0."""

    law: Ints  # (K,), ascending
    x: Floats  # (K,)
    weight: Floats  # (2, K), in both functionals


class FeatureMoments(NamedTuple):
    """The feature h under V laws, (V,) each."""

    center: Floats  # E_w h
    variance: Floats  # Var_w (h / unit); 0 where the column cannot vary
    at_row: Floats  # h at the row
    unit: Floats  # the approximate spread of h, a power of two; 1 for indicators
    log_weight: Floats  # log of the column's factor of E[π]
    is_slope: Bools
    nearly_fixed: Bools  # whether differences of distribution functions lose the digits of a contrast


class Column(ABC):
    """V laws of one column under w, and their features h."""

    @property
    @abstractmethod
    def feature_moments(self) -> FeatureMoments: ...

    @property
    @abstractmethod
    def mixing(self) -> Floats:
        """(V, 2, 2): mean and contrast for h / unit are mixing @ basis."""

    @abstractmethod
    def basis(self, function: Function) -> Floats:
        """Two functionals of m functions, (m, V, 2)."""

    @abstractmethod
    def points(self, function: Function, waves: Waves) -> BasisPoints:
        """Points that give the ``basis`` of all functions g(function(x)) which are as smooth as ``waves``."""

    @property
    def size(self) -> int:
        return len(self.feature_moments.center)

    def functionals(self, function: Function) -> tuple[Any, Any]:
        """Return mean(g) and contrast(g) of m functions for the feature h / unit, (V, m) each."""
        return self.mixed(self.basis(function))

    def mixed(self, basis: Floats) -> tuple[Any, Any]:
        """Return mean and contrast, (V, m) each, from the basis."""
        mixed = basis.transpose(1, 0, 2) @ self.mixing.transpose(0, 2, 1)
        return mixed[:, :, 0], mixed[:, :, 1]


class ColumnOfLaws(Column):
    """A column of one kind. Rows are drawn from one law; where all rows share it, it is the first."""

    @property
    @abstractmethod
    def marginal(self) -> Marginal:
        """The law."""

    @property
    @abstractmethod
    def masses(self) -> Floats:
        """P_w(cell), (V, p)."""

    @abstractmethod
    def feature(self, x: Floats) -> Floats:
        """Return h of the first law at values x (n,), (n,)."""

    @property
    def probability(self) -> Floats:
        """P_w(cell) of the first law, (p,)."""
        return np.asarray(self.masses[0])

    def draw(self, level: Floats) -> Floats:
        """Values x at levels in (0, 1), by the first law's inverse distribution function."""
        return self.marginal.quantile(*split_level(level, self.probability))

    def points(self, function: Function, waves: Waves) -> BasisPoints:
        breaks, constant, _ = texture(function)
        if not constant or by_category(function):
            return self._points(function, waves)
        # one point between two breaks
        lower = np.concatenate([[-np.inf], breaks, [np.inf]])
        upper = np.concatenate([breaks, [np.inf, -np.inf]])
        # the last is no interval: it contains only missing values
        missing = np.arange(lower.size) == breaks.size + 1
        masses = self.basis(Interval(lower, upper, missing))
        law, place = np.nonzero(masses.any(axis=2).T)
        return BasisPoints(law, np.where(missing, np.nan, upper)[place], masses[place, law].T)

    @abstractmethod
    def _points(self, function: Function, waves: Waves) -> BasisPoints: ...


@dataclass(frozen=True, eq=False)
class IndicatorColumn(ColumnOfLaws):
    """h = z = 1[x lies in the row's cell]; all rows may share one law, a `Marginal`."""

    law: Marginal | Laws
    cell: Ints  # (V,)
    # none of these three loses digits where another is tiny
    inclusion: Floats  # (V,) α = P_w(z = 1)
    exclusion: Floats  # (V,) 1 - α
    log_weight: Floats
    complement: Floats | None = None  # `elsewhere`, but for shared laws of many cells

    @classmethod
    def of(cls, law: Marginal | Laws, cell: Ints, penalty: float = 0.0) -> IndicatorColumn:
        """Weigh all cells but the rows' by a further factor exp(-penalty)."""
        # given apart, the factor leaves the law of the other cells exact, however small it is
        if isinstance(law, Marginal) and law.log_mass.size > _MANY:
            inside, rest = law.log_mass[cell], law.log_mass.max() + np.log(_rest(law, cell))
            odds = inside - (rest - penalty)
            inclusion, exclusion = (np.maximum(expit(side), SMALLEST_MASS) for side in (odds, -odds))
            return cls(law, cell, inclusion, exclusion, np.logaddexp(inside, rest - penalty))
        apart = sides(law.log_mass, cell)
        return cls(law, cell, *_weighted(apart.inside, apart.rest, penalty), apart.elsewhere)

    @classmethod
    def of_all_cells(cls, laws: Sequence[Marginal], penalty: float) -> tuple[IndicatorColumn, ...]:
        """The same for all cells of some laws."""
        few = [law for law in laws if law.log_mass.size <= _MANY]
        learn_sides(few)
        none = [np.zeros(0)]
        inside, rest = (np.concatenate([law.sides[i] for law in few] or none) for i in (0, 1))
        # all laws at once: there may be thousands, at dozens of bandwidths
        ends = np.cumsum([law.log_mass.size for law in few])[:-1]
        each = zip(*(np.split(numbers, ends) for numbers in _weighted(inside, rest, penalty)), strict=True)
        columns = []
        for law in laws:
            if law.log_mass.size > _MANY:
                columns.append(cls.of(law, law.all_cells, penalty))
                continue
            inclusion, exclusion, log_weight = next(each)
            columns.append(cls(law, law.all_cells, inclusion, exclusion, log_weight, law.sides.elsewhere))
        return tuple(columns)

    @cached_property
    def elsewhere(self) -> Floats:
        """The law of the cell given z = 0, (V, p)."""
        if self.complement is not None:
            return self.complement
        assert isinstance(self.law, Marginal)  # noqa: S101 - others do not share a law
        others = np.tile(_sizes(self.law), (self.cell.size, 1))
        others[np.arange(self.cell.size), self.cell] = 0.0
        return np.asarray(others / others.sum(axis=1, keepdims=True))

    @classmethod
    def held(cls, x: Floats) -> IndicatorColumn:
        """The column that keeps the rows' values x (V,): one cell, of one value."""
        owners = np.zeros(1, dtype=np.int64)
        one = Marginal(Levels(x[:1]), np.zeros(1), (Atoms(x[:1], np.ones(1)),), owners)
        return cls.of(
            Laws(one, np.zeros((x.size, 1)), (Atoms(x, np.ones(x.size)),)), np.zeros(x.size, dtype=np.int64)
        )

    @property
    def law_of_all_cells(self) -> Marginal | None:
        """The law that rows share, if the column is one of `of_all_cells` with few cells; else None."""
        if not isinstance(self.law, Marginal) or self.complement is None:
            return None
        return self.law if self.cell is self.law.all_cells else None

    @property
    def by_means_in_cells(self) -> bool:
        """Whether a smooth function is asked for its means in the cells alone, of a law that rows share."""
        return isinstance(self.law, Marginal) and not isinstance(self.law.cells, TupleCells)

    def select(self, at: Ints) -> IndicatorColumn:
        """Some laws of a column whose rows share one."""
        complement = None if self.complement is None else self.complement[at]
        masses = (self.inclusion[at], self.exclusion[at], self.log_weight[at])
        return IndicatorColumn(self.law, self.cell[at], *masses, complement)

    @cached_property
    def feature_moments(self) -> FeatureMoments:
        one, none = np.ones(self.cell.size), np.zeros(self.cell.size, dtype=np.bool_)
        variance = self.inclusion * self.exclusion
        return FeatureMoments(self.inclusion, variance, one, one, self.log_weight, none, none)

    @property
    def mixing(self) -> Floats:
        varies = (self.exclusion > 0.0).astype(np.float64)
        return np.stack([self.inclusion, self.exclusion, varies, -varies], axis=1).reshape(-1, 2, 2)

    def basis(self, function: Function) -> Floats:
        """E[g | z = 1] and E[g | z = 0] of m functions, (m, V, 2)."""
        cells = self.law.cells if isinstance(self.law, Marginal) else None
        if isinstance(cells, TupleCells) and isinstance(function, BoxesOfTuples):
            return shares_of_rows(cells, function, self.cell)
        if self.complement is None and isinstance(cells, Levels) and isinstance(function, Members):
            # the function tells fewer groups apart than there are levels
            return self._basis_of_many(function.table, function.places(cells.values))
        return self.basis_of_cells(self.law.expect(function))

    def basis_of_cells(self, values: Floats) -> Floats:
        """The basis of functions with these means in cells, (m, p) where rows share a law, else (m, V, p)."""
        if values.ndim == 2 and self.complement is None:
            return self._basis_of_many(values, np.arange(values.shape[1]))
        if values.ndim == 2:
            outside = np.stack([values @ elsewhere for elsewhere in self.elsewhere], axis=1)
            return np.stack([values[:, self.cell], outside], axis=2)
        inside = values[:, np.arange(self.cell.size), self.cell]
        return np.stack([inside, (values * self.elsewhere).sum(axis=2)], axis=2)

    def _basis_of_many(self, values: Any, places: Ints) -> Floats:
        """The basis where rows share a law of many cells: all cells at once, less the row's own.

        ``values`` (m, G) are those of groups of cells, ``places`` (p,) the group of each cell.
        """
        assert isinstance(self.law, Marginal)  # noqa: S101 - others do not share a law
        sizes, rest, groups = _sizes(self.law), _rest(self.law, self.cell), values.shape[1]

        def total(sizes: Floats) -> Any:
            of_groups, step = np.bincount(places, sizes, minlength=groups), 1 + _NUMBERS // groups
            starts = range(0, len(values), step)
            return np.concatenate([values[start : start + step] @ of_groups for start in starts])

        inside = values[:, places[self.cell]] * 1.0
        outside = (total(sizes)[:, None] - inside * sizes[self.cell]) / rest
        # the difference has no digits where the row's cell has nearly all of the probability
        for law in np.flatnonzero(rest < _HEAVY * sizes[self.cell]).tolist():
            others = np.where(np.arange(sizes.size) == self.cell[law], 0.0, sizes)
            outside[:, law] = total(others) / rest[law]
        # a rounding error below 0 is no probability
        outside = np.maximum(outside, 0.0) if values.dtype == np.bool_ else outside
        return np.stack([inside, outside], axis=2)

    def _points(self, function: Function, waves: Waves) -> BasisPoints:
        if isinstance(self.law, Marginal):
            _, cell, x, weight = self.law.laws.points(function, waves)
            count = self.cell.size
            law, cell = np.repeat(np.arange(count), x.size), np.tile(cell, count)
            x, weight = np.tile(x, count), np.tile(weight, count)
        else:
            law, cell, x, weight = self.law.points(function, waves)
        inside = weight * (cell == self.cell[law])
        return BasisPoints(law, x, np.stack([inside, weight * self.elsewhere[law, cell]]))

    @cached_property
    def marginal(self) -> Marginal:
        return self.law if isinstance(self.law, Marginal) else _alone(self.law)

    @cached_property
    def masses(self) -> Floats:
        masses = self.exclusion[:, None] * self.elsewhere
        masses[np.arange(self.cell.size), self.cell] = self.inclusion
        return masses

    def feature(self, x: Floats) -> Floats:
        return np.asarray(self.marginal.cells.locate(x) == self.cell[0], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SlopeColumn(ColumnOfLaws):
    """h = x at rows that hold a number, and its mean where x is missing."""

    law: Laws
    x: Floats  # (V,)

    @cached_property
    def feature_moments(self) -> FeatureMoments:
        rows, weights = np.ones(self.x.size, dtype=np.bool_), self._weights
        one_value = weights is None or weights.shape[1] == 1
        return FeatureMoments(
            self._center,
            self.scatter * self._present,
            self.x,
            self.numbers.unit,
            np.logaddexp.reduce(self.law.log_mass, axis=1),
            rows,
            ~rows if weights is None or one_value else weights.max(axis=1) > 1.0 - _FIXED,
        )

    @property
    def mixing(self) -> Floats:
        return np.broadcast_to(np.eye(2), (self.x.size, 2, 2))

    @cached_property
    def masses(self) -> Floats:
        return _normalised(self.law.log_mass)

    @cached_property
    def marginal(self) -> Marginal:
        return _alone(self.law)

    @property
    def has_missing(self) -> bool:
        return self.law.marginal.cells.of_missing >= 0

    @cached_property
    def numbers(self) -> Laws:
        """The laws of x given that it is present."""
        if not self.has_missing:
            return self.law
        # missing values are the last cell, and one atom
        whole, measures = self.law.marginal, self.law.measures[:-1]
        assert isinstance(whole.cells, BinCells)  # noqa: S101 - only numbers have slopes
        cells = BinCells(whole.cells.edges)
        one = Marginal(cells, whole.log_mass[:-1], whole.measures[:-1], whole.owners[:-1])
        return Laws(one, self.law.log_mass[:, :-1], measures)

    @cached_property
    def _present(self) -> Floats:
        """P_w(present), (V,)."""
        return self.masses[:, :-1].sum(axis=1) if self.has_missing else np.ones(self.x.size)

    @cached_property
    def _shares(self) -> Floats:
        """P_w(cell | present), (V, p)."""
        return _normalised(self.numbers.log_mass)

    @cached_property
    def _center(self) -> Floats:
        if self.numbers.means.shape[1] == 1:
            return self.numbers.means[:, 0]
        return np.asarray((self._shares * self.numbers.means).sum(axis=1))

    @cached_property
    def scatter(self) -> Floats:
        """Var_w(x / unit | present), (V,): Var_w x itself may overflow float64."""
        if self._weights is None:
            moments = self.numbers.expect_centred(Identity())
            _, covariance = self._covariance_in_cells(self.numbers.means[None], moments)
        else:
            _, covariance = self._covariance(Identity())
        return np.asarray(covariance[0] / self.numbers.unit)

    def basis(self, function: Function) -> Floats:
        """Mean and contrast of m functions, (m, V, 2)."""
        return self._mixed(*self._covariance(function), function(_MISSING) if self.has_missing else None)

    def basis_of_cells(self, values: Floats, moments: Floats) -> Floats:
        """The basis of functions with these E[g | cell] and E[(x - mean) / unit · g | cell], (m, p) each."""
        if not self.has_missing:
            return self._mixed(*self._covariance_in_cells(values[:, None], moments[:, None]), None)
        present = self._covariance_in_cells(values[:, None, :-1], moments[:, None, :-1])
        return self._mixed(*present, values[:, -1:])

    def _mixed(self, mean: Floats, covariance: Floats, at_missing: Floats | None) -> Floats:
        if at_missing is not None:
            mean = mean * self._present + at_missing * self.masses[:, -1]
        contrast = np.divide(covariance, self.scatter, out=np.zeros_like(covariance), where=self.scatter > 0)
        return np.stack([mean, contrast], axis=2)

    def _covariance(self, function: Function) -> tuple[Floats, Floats]:
        """E_w[g | present] and Cov_w(x / unit, g | present) of m functions, (m, V) each."""
        if self._weights is None:
            return self._covariance_in_cells(
                self.numbers.expect(function), self.numbers.expect_centred(function)
            )
        # Cov(x, g) = E[(x - x₀)(g - g₀)] - E[x - x₀] E[g - g₀], x₀ the likeliest atom and g₀ = g(x₀): x₀ adds
        # exactly 0. For a narrow bandwidth it has nearly all of the probability, and the contributions of the
        # others would be lost in the rounding of x₀ less a mean.
        weights, away = self._weights, self._from_likeliest
        values = function(self.numbers.measures[0].value[: away.shape[1]])  # type: ignore[union-attr]
        mean, covariance = np.empty((2, len(values), self.x.size), dtype=values.dtype)
        for law, (weight, distance) in enumerate(zip(weights, away, strict=True)):
            first = values[:, np.argmax(weight)]
            change = values - first[:, None]
            rise = change @ weight
            mean[:, law] = first + rise
            covariance[:, law] = change @ (weight * distance) - rise * (weight @ distance)
        return mean, covariance

    def _covariance_in_cells(self, values: Floats, moments: Floats) -> tuple[Floats, Floats]:
        """Cov(x / unit, g) = Σ_b q_b (E[(x - m_b) g | b] + (m_b - m) E[g | b]) / unit."""
        if values.shape[2] == 1:
            return values[:, :, 0], moments[:, :, 0] - self.numbers.drifts[:, 0] * values[:, :, 0]
        shares = self._shares
        mean = (values * shares).sum(axis=2)
        within = (moments * shares).sum(axis=2) + (values * (shares * self._away)).sum(axis=2)
        return mean, within - self._drift * mean

    @cached_property
    def _away(self) -> Floats:
        """(m_b - m) / unit, (V, p)."""
        return np.asarray((self.numbers.means - self._center[:, None]) / self.numbers.unit[:, None])

    @cached_property
    def _drift(self) -> Floats:
        """E_w (x - m) / unit, (V,): means are rounded, and that must not count as a covariance."""
        return np.asarray((self._shares * (self.numbers.drifts + self._away)).sum(axis=1))

    @property
    def _weights(self) -> Floats | None:
        """Weights (V, P) of the values of a column in one cell without a density; None of another."""
        (measure, *_) = self.numbers.measures
        atoms = self.numbers.log_mass.shape[1] == 1 and isinstance(measure, Atoms)
        return measure.weight.reshape(self.x.size, -1) if atoms else None

    @cached_property
    def _from_likeliest(self) -> Floats:
        """(x - x₀) / unit of these values, (V, P), x₀ being the likeliest."""
        weights, (measure, *_) = self._weights, self.numbers.measures
        assert weights is not None and isinstance(measure, Atoms)  # noqa: S101, PT018 - asked only then
        value = measure.value.reshape(weights.shape)
        likeliest = np.argmax(weights, axis=1)[:, None]
        return np.asarray((value - np.take_along_axis(value, likeliest, axis=1)) / self.numbers.unit[:, None])

    def _points(self, function: Function, waves: Waves) -> BasisPoints:
        law, cell, x, weight = self.numbers.points(function, waves)
        if self._weights is not None:
            away = self._from_likeliest
            away = (away - (away * self._weights).sum(axis=1)[:, None]).ravel()
        else:
            away = (x - self._center[law]) / self.numbers.unit[law] - self._drift[law]
            weight = weight * self._shares[law, cell]
        moving = np.where(self.scatter > 0, self.scatter, np.inf)
        points = BasisPoints(law, x, np.stack([weight * self._present[law], weight * away / moving[law]]))
        if not self.has_missing:
            return points
        rows, missing = np.arange(self.x.size), self.masses[:, -1]
        absent = BasisPoints(rows, np.full(rows.size, np.nan), np.stack([missing, 0.0 * missing]))
        return _joined([points, absent])

    def feature(self, x: Floats) -> Floats:
        return np.where(np.isnan(x), self._center[0], x)


@dataclass(frozen=True, eq=False)
class NewTuples(IndicatorColumn):
    """The column of a group at rows whose cell holds nothing but the row's own tuple, which is new."""

    tuple_codes: Floats = None  # type: ignore[assignment]  # (V,), a field after one with a default

    @classmethod
    def at(cls, law: Marginal, x: Floats, weights: Weights) -> NewTuples:
        """The laws at rows with codes x (V,)."""
        shared = IndicatorColumn.of(law, np.full(x.size, law.cells.count - 1), weights.penalty)
        return cls(**vars(shared), tuple_codes=x)

    def basis(self, function: Function) -> Floats:
        _, outside = np.moveaxis(super().basis(function), 2, 0)
        return np.stack([function(self.tuple_codes), outside], axis=2)

    @cached_property
    def marginal(self) -> Marginal:
        """The law of the first, which has its tuple where others have any."""
        law = super().marginal
        (atoms,) = law.measures
        assert isinstance(atoms, Atoms)  # noqa: S101 - the law of a group
        return replace(
            law, measures=(replace(atoms, value=np.append(atoms.value[:-1], self.tuple_codes[0])),)
        )

    def _points(self, function: Function, waves: Waves) -> BasisPoints:
        law, x, weight = super()._points(function, waves)
        inside = weight[0] > 0.0
        return BasisPoints(law, np.where(inside, self.tuple_codes[law], x), weight)


@dataclass(frozen=True, eq=False)
class JoinedColumn(Column):
    """The laws of several columns, one column's after the other's: rows with numbers, and rows without."""

    parts: Sequence[Column]

    @cached_property
    def feature_moments(self) -> FeatureMoments:
        return FeatureMoments(
            *map(np.concatenate, zip(*(part.feature_moments for part in self.parts), strict=True))
        )

    @property
    def mixing(self) -> Floats:
        return np.concatenate([part.mixing for part in self.parts])

    def basis(self, function: Function) -> Floats:
        return np.concatenate([part.basis(function) for part in self.parts], axis=1)

    def points(self, function: Function, waves: Waves) -> BasisPoints:
        starts = np.cumsum([0, *(part.size for part in self.parts)])
        each = [part.points(function, waves) for part in self.parts]
        return _joined([p._replace(law=p.law + start) for p, start in zip(each, starts, strict=False)])


@dataclass(frozen=True, eq=False)
class KeptColumn(Column):
    """The value ξ of a row is kept with probability t, else drawn from the row's law; z = 1[kept].

        mean(g) = t g(ξ) + (1 - t) E_w g,    contrast(g) = g(ξ) - E_w g

    It has a law for each row and each t, those of a row side by side. The feature is z / Var z, so that
    Cov(h, g) is the contrast, for t = 0 and 1 as well.
    """

    inner: ColumnOfLaws
    law: Ints  # (U,), the row's law of the inner column
    x: Floats  # (U,)
    # (T, 2), t and 1 - t; neither is 0, as products are divided by probabilities
    t: Floats

    @cached_property
    def feature_moments(self) -> FeatureMoments:
        ones = np.ones(self.law.size * len(self.t))
        none = np.zeros(ones.size, dtype=np.bool_)
        return FeatureMoments(np.tile(self.t[:, 0], self.law.size), ones, ones, ones, 0.0 * ones, none, none)

    @property
    def mixing(self) -> Floats:
        contrast = np.broadcast_to([1.0, -1.0], self.t.shape)
        return np.tile(np.stack([self.t, contrast], axis=1), (self.law.size, 1, 1))

    def basis(self, function: Function) -> Floats:
        """g(ξ) and E_w g of m functions, (m, V, 2)."""
        mean, _ = self.inner.functionals(function)
        both = np.stack([function(self.x), mean.T[:, self.law]], axis=2)
        return np.repeat(both, len(self.t), axis=1)

    def points(self, function: Function, waves: Waves) -> BasisPoints:
        law, x, weight = self.inner.points(function, waves)
        mean = np.einsum("kb,bk->k", self.inner.mixing[law, 0], weight)
        start = np.searchsorted(law, np.arange(self.inner.size + 1))
        each = []
        for u, (place, value) in enumerate(zip(self.law.tolist(), self.x.tolist(), strict=True)):
            its = slice(start[place], start[place + 1])
            values, weights = np.append(x[its], value), np.zeros((2, its.stop - its.start + 1))
            weights[0, -1], weights[1, :-1] = 1.0, mean[its]
            each += [
                BasisPoints(np.full(values.size, u * len(self.t) + i), values, weights)
                for i in range(len(self.t))
            ]
        return _joined(each)

    @cached_property
    def marginal(self) -> Marginal:
        """All values that the laws may have, whatever their probabilities."""
        law = self.inner.marginal
        kept = Atoms(self.x, np.ones(self.x.size))
        return replace(
            law, measures=(*law.measures, kept), owners=np.append(law.owners, np.zeros_like(self.law))
        )


@dataclass(frozen=True, eq=False)
class KeptColumns(Sequence[KeptColumn]):
    """The columns of n rows, each made when it is first asked for: thousands take a while."""

    inner: Sequence[ColumnOfLaws]
    law: Ints  # (n, d), the rows' laws
    x: Floats  # (n, d)
    t: Floats

    def __len__(self) -> int:
        return len(self.inner)

    @overload
    def __getitem__(self, at: int) -> KeptColumn: ...
    @overload
    def __getitem__(self, at: slice) -> list[KeptColumn]: ...
    def __getitem__(self, at: int | slice) -> KeptColumn | list[KeptColumn]:
        if isinstance(at, slice):
            return [self[j] for j in range(len(self))[at]]
        if at not in self._columns:
            self._columns[at] = KeptColumn(self.inner[at], self.law[:, at], self.x[:, at], self.t)
        return self._columns[at]

    @cached_property
    def _columns(self) -> dict[int, KeptColumn]:
        return {}


class CellColumn(IndicatorColumn):
    """The V laws of a column with the indicator of each cell as the feature, and its law inside each cell.

    Laws of p cells are V p + p: those of one law side by side, then those inside a cell.
    """

    @property
    def law_of_all_cells(self) -> None:
        """None: the other cells are weighted by several laws."""

    def basis_of_cells(self, values: Floats) -> Floats:
        # all laws at once: none is computed without the others
        return np.stack([values[:, self.cell], values @ self.elsewhere.T], axis=2)


def of_each_cell(column: ColumnOfLaws) -> CellColumn:
    """Make the `CellColumn` of a column."""
    law, masses = column.marginal, column.masses
    v, p = masses.shape
    cell, rows = np.tile(np.arange(p), v + 1), np.arange(v * p)
    others = np.concatenate([np.repeat(masses, p, axis=0), np.zeros((p, p))])
    inside = others[rows, cell[rows]]
    others[rows, cell[rows]] = 0.0
    outside = others.sum(axis=1)
    varies = outside > 0.0
    inclusion = np.concatenate([np.maximum(inside, SMALLEST_MASS), np.ones(p)])
    exclusion = np.where(varies, np.maximum(outside, SMALLEST_MASS), 0.0)
    elsewhere = others / np.where(varies, outside, 1.0)[:, None]
    return CellColumn(law, cell, inclusion, exclusion, np.zeros(cell.size), elsewhere)


@dataclass(frozen=True, eq=False)
class SpreadColumn:
    """A column with one law, a share of which is drawn from all its cells and values alike."""

    column: IndicatorColumn
    values: Floats  # those that have a probability, ascending, (m,)
    ratios: Floats  # of the column's probabilities over the ones here, (m,)
    ratios_of_cells: Floats  # the same of what has a density in each cell, (p,)

    @classmethod
    def of(cls, column: ColumnOfLaws, share: float) -> SpreadColumn:
        law, q = column.marginal, column.probability
        weight = np.concatenate([measure.weight for measure in law.measures])
        mass = q[law.owners] * weight
        is_atom = np.concatenate([np.full(m.weight.size, isinstance(m, Atoms)) for m in law.measures])
        value = np.concatenate(
            [m.value if isinstance(m, Atoms) else np.zeros(m.weight.size) for m in law.measures]
        )
        values, place = np.unique(value[is_atom], return_inverse=True)
        # one number for each value, and for all pieces of a density in a cell
        unit = values.size + law.owners
        unit[is_atom] = place
        of_units = np.bincount(unit, mass, values.size + q.size)
        present = of_units > 0
        mixed = (1.0 - share) * of_units + share * present / present.sum()
        ratios = np.divide(of_units, mixed, out=np.zeros_like(mixed), where=present)
        spread = np.divide(mass, ratios[unit], out=np.zeros_like(mass), where=mass > 0)
        cells = np.bincount(law.owners, spread, q.size)
        weight = np.where(cells[law.owners] > 0, spread / np.where(cells > 0, cells, 1.0)[law.owners], weight)
        ends = np.cumsum([0, *(measure.weight.size for measure in law.measures)])
        measures = tuple(
            replace(measure, weight=weight[first:last])
            for measure, first, last in zip(law.measures, ends[:-1], ends[1:], strict=True)
        )
        with np.errstate(divide="ignore"):
            drawn = Marginal(law.cells, np.log(cells), measures, law.owners)
        cell = column.cell if isinstance(column, IndicatorColumn) else np.zeros(1, dtype=np.int64)
        return cls(IndicatorColumn.of(drawn, cell), values, ratios[: values.size], ratios[values.size :])

    def weights(self, x: Floats, cell: Ints) -> Floats:
        """The ratios at values x (n,) in these cells (n,)."""
        if not self.values.size:
            return self.ratios_of_cells[cell]
        at = np.minimum(np.searchsorted(self.values, x), self.values.size - 1)
        same = (self.values[at] == x) | (np.isnan(self.values[at]) & np.isnan(x))
        return np.where(same, self.ratios[at], self.ratios_of_cells[cell])


# Columns whose values are known, with the ranges of functions of them
RangedColumn: TypeAlias = ColumnOfLaws | KeptColumn


def _joined(parts: Sequence[BasisPoints]) -> BasisPoints:
    law, x = (np.concatenate([getattr(part, name) for part in parts]) for name in ("law", "x"))
    order = np.argsort(law, kind="stable")
    return BasisPoints(law[order], x[order], np.concatenate([p.weight for p in parts], axis=1)[:, order])


def _weighted(inside: Floats, rest: Floats, penalty: float) -> tuple[Floats, Floats, Floats]:
    """Inclusion, exclusion and log weight, where all cells outside have a further factor exp(-penalty)."""
    varies = rest > -np.inf
    odds = np.where(varies, inside, np.inf) - (np.where(varies, rest, 0.0) - penalty)
    return (
        np.maximum(expit(odds), SMALLEST_MASS),
        np.where(varies, np.maximum(expit(-odds), SMALLEST_MASS), 0.0),
        np.logaddexp(inside, rest - penalty),
    )


def _sizes(law: Marginal) -> Floats:
    """P(cell) over the largest, (p,)."""
    return np.asarray(np.exp(law.log_mass - law.log_mass.max()))


def _rest(law: Marginal, cell: Ints) -> Floats:
    """The sizes of all cells but each of these, (V,)."""
    sizes = _sizes(law)
    rest = sizes.sum() - sizes[cell]
    for at in np.flatnonzero(rest < _HEAVY * sizes[cell]).tolist():
        rest[at] = np.delete(sizes, cell[at]).sum()
    return np.asarray(rest)


def _normalised(log_mass: Floats) -> Floats:
    # the logarithms may be so large that they lose digits: probabilities (V, p) must still add up to 1
    probability = np.exp(log_mass - np.logaddexp.reduce(log_mass, axis=1, keepdims=True))
    return np.asarray(probability / probability.sum(axis=1, keepdims=True))


def _alone(laws: Laws) -> Marginal:
    """The law at the only row."""
    (log_mass,) = laws.log_mass
    return Marginal(laws.marginal.cells, log_mass, laws.measures, laws.marginal.owners)


# -- columns at rows -----------------------------------------------------------------------------------------


def column_at(
    law: Marginal, x: Floats, cell: Ints, *, scale: float, weights: Weights, slope: bool
) -> tuple[Column, Ints]:
    """A column at rows with values x (n,) in cells (n,), and the law of each row; some rows may share one."""
    if (is_new := has_new_tuples(law, cell)).any():
        return _of_new_tuples(law, x, cell, is_new, weights)
    numbers = ~np.isnan(x) & isinstance(law.cells, BinCells)
    if isinstance(weights, BinWeights) or not numbers.any():
        return _of_cells(law, cell, weights)
    laws = _tilted(law, x[numbers], scale, weights)
    column: Column = SlopeColumn(laws, x[numbers]) if slope else IndicatorColumn.of(laws, cell[numbers])
    index = np.cumsum(numbers) - 1
    if numbers.all():
        return column, index
    others, place = _of_cells(law, cell[~numbers], weights)
    index[~numbers] = column.size + place
    return JoinedColumn((column, others)), index


def _of_cells(law: Marginal, cell: Ints, weights: Weights) -> tuple[IndicatorColumn, Ints]:
    """A column whose law depends on the rows' cells (n,) alone."""
    distinct, index = np.unique(cell, return_inverse=True)
    return IndicatorColumn.of(law, distinct, weights.penalty), index.reshape(-1)


def _of_new_tuples(
    law: Marginal, x: Floats, cell: Ints, is_new: Bools, weights: Weights
) -> tuple[Column, Ints]:
    """The column of a group at rows some of whose tuples ``are new``."""
    new: Column = NewTuples.at(law, x[is_new], weights)
    index = np.cumsum(is_new) - 1
    if is_new.all():
        return new, index
    others, place = _of_cells(law, cell[~is_new], weights)
    index[~is_new] = new.size + place
    return JoinedColumn((new, others)), index


def _tilted(law: Marginal, x: Floats, scale: float, weights: EuclideanWeights) -> Laws:
    """Tilt a law at the values x (V,)."""
    products = [weights.times(measure, x[:, None], scale) for measure in law.measures]
    with np.errstate(divide="ignore"):
        each = [factor + np.log(m.weight) for m, (_, factor) in zip(law.measures, products, strict=True)]
    weight, log_cell = law.normalized(np.concatenate(each, axis=1))
    pairs = zip(products, law.split(weight), strict=True)
    return Laws(
        law, law.log_mass + log_cell, tuple(_with_weight(product, share) for (product, _), share in pairs)
    )


def _with_weight(measure: Measure, weight: Floats) -> Measure:
    """Lay pieces (V, P) one law after the other, with weights (V, P)."""
    if isinstance(measure, Atoms):
        return Atoms(np.tile(measure.value, len(weight)), weight.ravel())
    names = ("anchor", "slope", "precision", "lower", "upper", "scale")
    arrays = {name: np.ascontiguousarray(getattr(measure, name)).ravel() for name in names}
    return GaussianPieces(**arrays, weight=weight.ravel())


def sliced(column: ColumnOfLaws) -> ColumnOfLaws:
    """A slope's column with one law, its feature replaced by the indicator of the slice that the row lies in.

    Slices are tenths of the law around the row: cells in which a model has effects.
    """
    if not isinstance(column, SlopeColumn) or column.marginal.is_point:
        return column
    numbers = _alone(column.numbers)
    cut = numbers if numbers.is_point else _cut(numbers)
    if column.has_missing:
        cut = _with_missing(cut, column.probability)
    # the law around the row is weighted already
    return IndicatorColumn.of(cut, cut.cells.locate(column.x))


def _cut(law: Marginal) -> Marginal:
    """Cut the law of a column with one cell into slices of about the same probability."""
    levels = np.arange(1, _SLICES) / _SLICES
    inner = np.unique(law.quantile(np.zeros(levels.size, dtype=np.int64), levels))
    ends = [m.value if isinstance(m, Atoms) else m.upper for m in law.measures]
    inner = inner[inner < max(end.max() for end in ends)]
    cells = BinCells(np.concatenate([[-np.inf], inner, [np.inf]]))
    cuts = [_cut_measure(measure, cells) for measure in law.measures]
    mass = np.sum([np.bincount(owner, part.weight, cells.count) for part, owner in cuts], axis=0)
    return marginal(
        cells, mass, [(replace(part, weight=part.weight / mass[owner]), owner) for part, owner in cuts]
    )


def _with_missing(law: Marginal, probability: Floats) -> Marginal:
    """Append the cell of missing values to a law of numbers, given the probabilities of both, (2,)."""
    assert isinstance(law.cells, BinCells)  # noqa: S101 - only numbers have slopes
    present, missing = np.log(probability)
    inside = law.log_mass - np.logaddexp.reduce(law.log_mass)
    return Marginal(
        BinCells(law.cells.edges, missing=True),
        np.append(inside + present, missing),
        (*law.measures, Atoms(_MISSING, np.ones(1))),
        np.append(law.owners, law.cells.count),
    )


def _cut_measure(measure: Measure, cells: BinCells) -> tuple[Measure, Ints]:
    """Cut pieces at edges: parts with their probabilities as weights, and the cell of each."""
    if isinstance(measure, Atoms):
        return measure, cells.locate(measure.value)
    whole = GaussianPieces(*(getattr(measure, each.name).reshape(-1, 1) for each in fields(measure)))
    lower, upper = np.maximum(cells.edges[:-1], whole.lower), np.minimum(cells.edges[1:], whole.upper)
    anchor = np.clip(whole.anchor, lower, np.maximum(lower, upper))
    step = whole.steps(anchor)
    slope = whole.slope + whole.precision * step
    arrays = np.broadcast_arrays(anchor, slope, whole.precision, lower, upper, whole.weight, whole.scale)
    inside = (lower < upper).ravel()
    parts = GaussianPieces(*(each.ravel()[inside] for each in arrays))
    density = np.exp(-step * (whole.slope + 0.5 * whole.precision * step)) / whole.area
    owner = np.tile(np.arange(cells.count), measure.weight.size)[inside]
    return replace(parts, weight=parts.weight * parts.area * density.ravel()[inside]), owner
