r"""One column of a product design with a slope that may have missing values.

At a row with a number the surrogate's feature is h = x, with the mean m = E_w[x | present] in place of a
missing value. The indicator of missing values is a second feature: with m as the filling the two are
uncorrelated, so that both keep their own coefficients,

    slope      Cov_w(x, f | present) / Var_w(x | present)
    indicator  E_w[f | missing] - E_w[f | present],

and Σ stays diagonal. A row is explained by the feature that is not 0 there: at a row whose value is missing
by the indicator (``IndicatorCoordinate``); the other feature appears in the column's effects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from limes._arrays import Floats
from limes._functions import Function
from limes.designs._coordinates import CellMeans, SlopeCoordinate, normalised
from limes.designs._marginals import Atoms, BinCells, Marginal, split_level
from limes.designs._weights import Weights

_MISSING = np.array([np.nan])


@dataclass(frozen=True, eq=False)
class PartialSlopeCoordinate:
    """h = x / divisor, and its mean where x is missing; for the members see ``IndicatorCoordinate``.

    Attributes
    ----------
    marginal
        The tilted law, in two cells: present and missing.
    present
        The slope under the law of present values.
    probability
        P_w of the two cells.
    """

    marginal: Marginal
    present: SlopeCoordinate
    probability: Floats
    log_weight: float

    @classmethod
    def tilted(
        cls, marginal: Marginal, x: float, *, scale: float, weights: Weights
    ) -> PartialSlopeCoordinate:
        """Tilt a column's law at an instance that holds a number."""
        law, _ = weights.tilt(marginal, x, scale)
        total = float(logsumexp(law.log_mass))
        present = SlopeCoordinate.tilted(numbers_alone(marginal), x, scale=scale, weights=weights)
        return cls(law, present, normalised(law.log_mass, total), total)

    @property
    def unit(self) -> float:
        return self.present.unit

    def in_units(self) -> PartialSlopeCoordinate:
        return replace(self, present=self.present.in_units())

    @property
    def center(self) -> float:
        return self.present.center

    @property
    def at_instance(self) -> float:
        return self.present.at_instance

    @property
    def variance(self) -> float:
        return float(self.probability[0]) * self.present.variance

    @property
    def nearly_fixed(self) -> bool:
        return self.present.nearly_fixed

    def feature(self, x: Floats) -> Floats:
        return np.where(np.isnan(x), self.center, self.present.feature(x))

    def tabulate(self, function: Function) -> CellMeans:
        table, missing = self.present.tabulate(function), function(_MISSING)
        return CellMeans(
            np.concatenate([table.values, missing], axis=1),
            None if table.moments is None else np.concatenate([table.moments, 0.0 * missing], axis=1),
            table.covariance,
        )

    @property
    def mixing(self) -> Floats:
        return self.present.mixing

    def basis(self, table: CellMeans) -> Floats:
        """Mean and contrast, (m, 2)."""
        moments = None if table.moments is None else table.moments[:, :1]
        numbers = self.present.basis(CellMeans(table.values[:, :1], moments, table.covariance))
        return np.stack([table.values @ self.probability, numbers[:, 1]], axis=1)

    def draw(self, level: Floats) -> tuple[Floats, Floats]:
        cell, inside = split_level(level, self.probability)
        x = self.marginal.quantile(cell, inside)
        return x, self.feature(x)


def numbers_alone(law: Marginal) -> Marginal:
    """Return the law of a column with two cells, present and missing, given that it is present."""
    (*measures, missing) = law.measures
    assert isinstance(missing, Atoms)  # noqa: S101 - missing values are the last part
    assert isinstance(law.cells, BinCells)  # noqa: S101 - only numbers have slopes
    owners = law.owners[: law.owners.size - missing.value.size]
    return Marginal(BinCells(law.cells.edges), np.zeros(1), tuple(measures), owners)
