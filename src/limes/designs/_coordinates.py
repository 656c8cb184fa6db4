r"""One column of a product design, tilted at the instance.

Columns are independent under the weighted law w, so β_j = Cov_w(h_j, f) / Var_w(h_j) for whatever feature
h_j a column offers to the surrogate: the indicator z_j of the instance's cell, or x_j itself. A column is
then two linear functionals of a one-dimensional function g,

    mean(g) = E_w g     and     contrast(g) = Cov_w(h, g) / Var_w(h),

and a sum or a product of such functions is explained by these two functionals alone. For an indicator the
contrast is E_w[g | z = 1] - E_w[g | z = 0], and is computed as that difference: the equal forms with (1 - α)
below a fraction are 0/0 for narrow bandwidths.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from scipy.special import expit, logsumexp

from limes._arrays import Floats
from limes._functions import Function, Identity
from limes.designs._marginals import Atoms, Levels, Marginal, split_level
from limes.designs._weights import Weights

# A cell with less probability than this still has an exact conditional law, while products of two such masses
# stay above the smallest float64.
SMALLEST_MASS = 1e-100
# If all values but one have less probability than this, 1 less the probability of that one has too few digits
_FIXED = 1e-6


@dataclass(frozen=True, eq=False)
class CellMeans:
    """E[g | cell] of m functions, (m, p), and the numbers from which a covariance with x itself is computed.

    These are E[(x - mean) / unit · g | cell], (m, p), or Cov(x / unit, g), (m,), if it was computed directly.
    """

    values: Floats
    moments: Floats | None = None
    covariance: Floats | None = None


class Coordinate(Protocol):
    """A column's feature for surrogates; rows that share a tilted law (the same object) share its tables.

    ``log_weight`` is the log of the column's factor of C = E[π].
    """

    @property
    def marginal(self) -> Marginal:
        """The tilted law."""
        ...

    @property
    def probability(self) -> Floats:
        """P_w(cell), (p,)."""
        ...

    @property
    def log_weight(self) -> float: ...

    @property
    def unit(self) -> float:
        """Approximate spread of h, a power of two; 1 for indicators."""
        ...

    def in_units(self) -> Self:
        """Return the column with the feature h / unit, whose variance is of order one."""
        ...

    @property
    def center(self) -> float:
        """E_w h."""
        ...

    @property
    def at_instance(self) -> float:
        """Value of h at the instance."""
        ...

    @property
    def variance(self) -> float:
        """Var_w h; 0 where the column cannot vary."""
        ...

    @property
    def nearly_fixed(self) -> bool:
        """Whether differences of distribution functions lose the digits of a contrast."""
        ...

    def feature(self, x: Floats) -> Floats:
        """Return h of values x (n,), (n,)."""
        ...

    def tabulate(self, function: Function) -> CellMeans:
        """Return the table of m functions that ``basis`` uses."""
        ...

    @property
    def mixing(self) -> Floats:
        """(2, 2): mean and contrast are mixing @ basis."""
        ...

    def basis(self, table: CellMeans) -> Floats:
        """Two functionals from which mean and contrast are mixed, (m, 2)."""
        ...

    def draw(self, level: Floats) -> tuple[Floats, Floats]:
        """Values x and features h at levels in (0, 1), by the inverse distribution function."""
        ...


@dataclass(frozen=True, eq=False)
class IndicatorCoordinate:
    """h = z = 1[x lies in the instance's cell].

    Attributes
    ----------
    marginal
        The tilted law.
    cell
        The instance's cell.
    inclusion, exclusion
        α = P_w(z = 1) and 1 - α, stored separately.
    elsewhere
        The law of the cell given z = 0: none of the three numbers loses digits when another is tiny.
    at_instance
        Value of h at the instance.
    """

    marginal: Marginal
    cell: int
    inclusion: float
    exclusion: float
    elsewhere: Floats
    log_weight: float
    at_instance: float = 1.0

    @classmethod
    def tilted(
        cls, marginal: Marginal, x: float, cell: int, *, scale: float, weights: Weights
    ) -> IndicatorCoordinate:
        """Tilt a column's law at the instance."""
        law, penalty = weights.tilt(marginal, x, scale)
        others = law.log_mass.copy()
        log_inside = float(others[cell])
        others[cell] = -np.inf
        rest = float(np.logaddexp.reduce(others)) if others.size > 1 else -np.inf
        if rest == -np.inf:
            return cls(law, cell, 1.0, 0.0, np.zeros(others.size), log_inside)
        odds = log_inside - (rest - penalty)
        return cls(
            law,
            cell,
            max(float(expit(odds)), SMALLEST_MASS),
            max(float(expit(-odds)), SMALLEST_MASS),
            normalised(others, rest),
            float(np.logaddexp(log_inside, rest - penalty)),
        )

    @classmethod
    def held(cls, x: float) -> IndicatorCoordinate:
        """Return the column that keeps the instance's value: one cell, of one value."""
        value = np.array([x])
        law = Marginal(Levels(value), np.zeros(1), (Atoms(value, np.ones(1)),), np.zeros(1, dtype=np.int64))
        return cls(law, 0, 1.0, 0.0, np.zeros(1), 0.0)

    @property
    def unit(self) -> float:
        """Approximate spread of h, a power of two; 1 for indicators."""
        return 1.0

    def in_units(self) -> IndicatorCoordinate:
        """Return the column with the feature h / unit, whose variance is of order one."""
        return self

    @property
    def center(self) -> float:
        """E_w h."""
        return self.inclusion

    @property
    def variance(self) -> float:
        """Var_w h; 0 where the column cannot vary."""
        return self.inclusion * self.exclusion

    @property
    def nearly_fixed(self) -> bool:
        """Whether differences of distribution functions lose the digits of a contrast; see ``elsewhere``."""
        return False

    def tabulate(self, function: Function) -> CellMeans:
        """Return the table of m functions that ``basis`` uses."""
        return CellMeans(self.marginal.expect(function))

    @property
    def mixing(self) -> Floats:
        """(2, 2): mean and contrast are mixing @ basis."""
        varies = float(self.exclusion > 0.0)
        return np.array([[self.inclusion, self.exclusion], [varies, -varies]])

    def basis(self, table: CellMeans) -> Floats:
        """Two functionals from which mean and contrast are mixed, (m, 2): E[g | z = 1] and E[g | z = 0]."""
        return np.stack([table.values[:, self.cell], table.values @ self.elsewhere], axis=1)

    def feature(self, x: Floats) -> Floats:
        """Return h of values x (n,), (n,)."""
        return np.asarray(self.marginal.cells.locate(x) == self.cell, dtype=np.float64)

    @cached_property
    def probability(self) -> Floats:
        """P_w(cell), (p,)."""
        probability = self.exclusion * self.elsewhere
        probability[self.cell] = self.inclusion
        return probability

    def draw(self, level: Floats) -> tuple[Floats, Floats]:
        """Values x and features h at levels in (0, 1), by the inverse distribution function."""
        cell, inside = split_level(level, self.probability)
        return self.marginal.quantile(cell, inside), (cell == self.cell).astype(np.float64)


@dataclass(frozen=True, eq=False)
class SlopeCoordinate:
    """h = x / divisor; with divisor 1 the surrogate's coefficient is a slope in the units of the column.

    ``scatter`` is Var_w(x / unit), with the unit of the law: Var_w x itself may overflow float64.
    """

    marginal: Marginal
    instance: float
    probability: Floats
    mean: float
    scatter: float
    log_weight: float
    divisor: float = 1.0

    @classmethod
    def tilted(cls, marginal: Marginal, x: float, *, scale: float, weights: Weights) -> SlopeCoordinate:
        """Tilt a column's law at the instance."""
        law, _ = weights.tilt(marginal, x, scale)
        total = float(logsumexp(law.log_mass))
        probability = normalised(law.log_mass, total)
        mean = float(probability @ law.means)
        table = _slope_table(law, _IDENTITY)
        scatter = float(_covariance(table, law, probability, mean)[0]) / law.unit
        return cls(law, x, probability, mean, scatter, total)

    @property
    def unit(self) -> float:
        return self.marginal.unit

    def in_units(self) -> SlopeCoordinate:
        return replace(self, divisor=self.unit)

    @property
    def center(self) -> float:
        return self.mean / self.divisor

    @property
    def at_instance(self) -> float:
        return self.instance / self.divisor

    @property
    def variance(self) -> float:
        ratio = np.float64(self.unit / self.divisor)
        with np.errstate(over="ignore"):
            return float(self.scatter * ratio * ratio)

    @property
    def nearly_fixed(self) -> bool:
        (measure, *others) = self.marginal.measures
        return not others and isinstance(measure, Atoms) and measure.weight.max() > 1.0 - _FIXED

    def feature(self, x: Floats) -> Floats:
        return np.asarray(x / self.divisor)

    def tabulate(self, function: Function) -> CellMeans:
        return _slope_table(self.marginal, function)

    @property
    def mixing(self) -> Floats:
        return np.eye(2)

    def basis(self, table: CellMeans) -> Floats:
        """Mean and contrast, (m, 2)."""
        mean = table.values @ self.probability
        if self.scatter <= 0:
            return np.stack([mean, 0.0 * mean], axis=1)
        covariance = _covariance(table, self.marginal, self.probability, self.mean)
        with np.errstate(over="ignore"):
            contrast = covariance / self.scatter / (self.unit / self.divisor)
        return np.stack([mean, contrast], axis=1)

    def draw(self, level: Floats) -> tuple[Floats, Floats]:
        cell, inside = split_level(level, self.probability)
        x = self.marginal.quantile(cell, inside)
        return x, self.feature(x)


_IDENTITY = Identity()


def normalised(log_mass: Floats, total: float) -> Floats:
    """Probabilities that add up to 1, even where their logarithms are so large that they lose digits."""
    probability = np.exp(log_mass - total)
    return np.asarray(probability / probability.sum())


def _slope_table(law: Marginal, function: Function) -> CellMeans:
    if law.cells.count == 1 and isinstance(law.measures[0], Atoms):
        return _atoms_table(law.measures[0], law.unit, function)
    return CellMeans(law.expect(function), law.expect_centred(function))


def _atoms_table(atoms: Atoms, unit: float, function: Function) -> CellMeans:
    """Cov(x, g) = E[(x - x₀)(g - g₀)] - E[x - x₀] E[g - g₀], x₀ the likeliest atom and g₀ = g(x₀).

    x₀ adds exactly 0: for a narrow bandwidth it has nearly all of the probability, and the contributions of
    the others would be lost in the rounding of x₀ less a mean.
    """
    values = function(atoms.value)
    first = int(np.argmax(atoms.weight))
    away, change = (atoms.value - atoms.value[first]) / unit, values - values[:, first, None]
    covariance = change @ (atoms.weight * away) - (change @ atoms.weight) * (away @ atoms.weight)
    mean = values[:, first] + change @ atoms.weight
    return CellMeans(mean[:, None], covariance=covariance)


def _covariance(table: CellMeans, law: Marginal, probability: Floats, center: float) -> Floats:
    """Cov(x / unit, g) = Σ_b q_b (E[(x - m_b) g | b] + (m_b - m) E[g | b]) / unit."""
    if table.covariance is not None:
        return table.covariance
    assert table.moments is not None  # noqa: S101 - a slope's table has one or the other
    away = (law.means - center) / law.unit
    within = table.moments @ probability + table.values @ (probability * away)
    # means are rounded, so that x less its mean has a mean too: it must not count as a covariance
    drift = probability @ (law.drifts + away)
    return np.asarray(within - drift * (table.values @ probability))


def functionals(coordinate: Coordinate, table: CellMeans) -> tuple[Floats, Floats]:
    """mean(g) and contrast(g) of m functions, both (m,)."""
    mixed = coordinate.basis(table) @ coordinate.mixing.T
    return mixed[:, 0], mixed[:, 1]
