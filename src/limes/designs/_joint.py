r"""The joint law: the background's rows as they are, with the dependence between their columns.

A row i of the background has the weight w_i ∝ t^#changed, t = exp(-1/(2ν²)), around an explained row, where
#changed counts cells. Under this law w the indicators z_j = 1[column j lies in the explained row's cell] are
correlated,

    α = Σ_i w_i z_i,     Σ = Σ_i w_i (z_i - α)(z_i - α)ᵀ,

and β = Σ⁺Γ, the coefficients of least norm where indicators are collinear: the limit of a ridge regression as
its penalty vanishes. `ProductFamily` describes the model where columns vary independently, including rows
that do not occur; this law describes it on rows that occur.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._functions import Function
from limes.designs._column import IndicatorColumn
from limes.designs._marginals import Atoms, Levels, Marginal
from limes.designs._product import FeatureNumbers, ProductFamily
from limes.designs._weights import BinWeights

# Eigenvalues of Σ below this share of the largest one are rounding errors: indicators are collinear
_COLLINEAR = 1e-12
# A feature with a smaller part in a null vector of Σ does not belong to it
_PART = 1e-6


@dataclass(frozen=True, eq=False)
class OccurringRows:
    """Rows of a background around one explained row."""

    z: Floats  # (n, d), indicators
    weights: Floats  # (n,), with sum 1
    log_weight: float  # log E[π], the mean of the weights before they were divided by their sum

    @property
    def effective(self) -> float:
        """Effective number of rows, 1 / Σ w²."""
        return float(1.0 / (self.weights @ self.weights))

    @cached_property
    def inclusion(self) -> Floats:
        return np.asarray(self.weights @ self.z)

    @cached_property
    def departures(self) -> Floats:
        """Centred features z - α, (n, d)."""
        return self.z - self.inclusion

    @cached_property
    def alike(self) -> Bools:
        """Which features are those of the first row, (n, d)."""
        return np.asarray(self.z == self.z[0])

    def design(self) -> JointDesign:
        """Return the moments of z."""
        sigma = self.departures.T @ (self.weights[:, None] * self.departures)
        # a feature that never changes among rows with weight has variance 0, whatever rounding adds
        fixed = self.alike.all(axis=0, where=(self.weights > 0)[:, None])
        sigma[fixed] = sigma[:, fixed] = 0.0
        return JointDesign(self.inclusion, sigma, np.array(self.log_weight))


@dataclass(frozen=True, eq=False)
class JointDesign:
    """Moments of correlated features: the indicators z of one row's cells under the joint law.

    Attributes
    ----------
    inclusion
        α = E_w z, (d,).
    sigma
        Cov_w z, (d, d).
    log_weight
        log E[π], ().

    Examples
    --------
    >>> import numpy as np, limes
    >>> X = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    >>> explainer = limes.TabularExplainer(lambda x: x[:, 0], X, law="joint", categorical=[0, 1])
    >>> explainer.design(X[0]).sigma.round(2)
    array([[0.23, 0.09],
           [0.09, 0.12]])
    """

    inclusion: Floats
    sigma: Floats
    log_weight: Floats

    @property
    def size(self) -> int:
        """Number of columns d."""
        return self.inclusion.size

    @property
    def variance(self) -> Floats:
        """Var_w z_j, (d,)."""
        return np.diagonal(self.sigma)

    @property
    def at_instance(self) -> Floats:
        """Features z at the explained row: ones, (d,)."""
        return np.ones(self.size)

    @cached_property
    def departure(self) -> Floats:
        """Features z at the explained row - α; 0 for a column that cannot vary."""
        return np.where(self.variance > 0, 1.0 - self.inclusion, 0.0)

    def numbers(self) -> FeatureNumbers:
        """Return the moments of each feature by itself, without the matrix."""
        return FeatureNumbers(self.inclusion, self.variance.copy(), self.at_instance, self.log_weight)

    @cached_property
    def _eigen(self) -> tuple[Floats, Floats]:
        """Eigenvalues (d,) of Σ, 0 where they are rounding, and its eigenvectors in columns."""
        sizes, axes = np.linalg.eigh(self.sigma)
        return np.where(sizes > _COLLINEAR * sizes[-1], sizes, 0.0), axes

    @cached_property
    def inverse(self) -> Floats:
        """Σ⁺, (d, d)."""
        sizes, axes = self._eigen
        return np.asarray((axes * _reciprocal(sizes)) @ axes.T)

    @cached_property
    def collinear(self) -> Bools:
        """Columns (d,) that vary and whose coefficients are not determined: Σ⁺ shares the effect."""
        sizes, axes = self._eigen
        blind = np.sqrt((axes[:, sizes == 0.0] ** 2).sum(axis=1))
        return np.asarray((self.variance > 0) & (blind > _PART))

    def solve(self, gamma: Floats) -> Floats:
        """β = Σ⁺Γ, (d, ...)."""
        return self.spectral(_reciprocal, gamma)

    def gamma(self, coef: Floats) -> Floats:
        """Γ = Σβ, (d, ...)."""
        return np.asarray(self.sigma @ coef)

    def spectral(self, function: Callable[[Floats], Floats], values: Floats) -> Floats:
        """g(Σ) · values, (d, ...)."""
        sizes, axes = self._eigen
        turned = axes.T @ values
        return np.asarray(axes @ (function(sizes).reshape(-1, *(1,) * (turned.ndim - 1)) * turned))

    def largest(self, function: Callable[[Floats], Floats]) -> Floats:
        """The largest g(eigenvalue) among the eigenvectors that involve a feature, (d,)."""
        sizes, axes = self._eigen
        return np.asarray(np.where(np.abs(axes) > _PART, function(sizes), 0.0).max(axis=1))


@dataclass(frozen=True, eq=False)
class JointFamily:
    """The joint laws of one background, one around each row."""

    product: ProductFamily  # the background's cells, and its law with independent columns
    rows: Floats  # the background, (n, d)
    population: int = 0  # rows that these were drawn from, without replacement; 0 where they are all

    @property
    def omitted(self) -> float:
        """Share of the background that was left out."""
        return 1.0 - len(self.rows) / max(self.population, len(self.rows))

    @cached_property
    def codes(self) -> Ints:
        """Cells of the background, (n, d), in the smallest integers that hold them."""
        cells = self.product.cells(self.rows)
        return np.asarray(cells, dtype=np.min_scalar_type(int(cells.max(initial=0))))

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        return self.product.marginals

    @property
    def weights(self) -> BinWeights:
        """Weights of rows, by the number of cells that they change."""
        assert isinstance(self.product.weights, BinWeights)  # noqa: S101 - `JointLaw` refuses others
        return self.product.weights

    @property
    def slopes(self) -> None:
        return

    @property
    def by_cell(self) -> bool:
        return True

    def cells(self, rows: Floats) -> Ints:
        return self.product.cells(rows)

    @cached_property
    def _log_weights(self) -> Floats:
        """Log π of a row that changes 0, ..., d cells, (d + 1,)."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            changed = np.arange(len(self.marginals) + 1)
            return np.nan_to_num(-0.5 * changed / np.float64(self.weights.bandwidth) ** 2)

    def around(self, cells: Ints) -> OccurringRows:
        """Return the background's rows with their weights around a row with these cells (d,)."""
        z = (self.codes == cells.astype(self.codes.dtype)).astype(np.float64)
        changed = cells.size - z.sum(axis=1).astype(np.int64)
        # the nearest row has weight 1 before normalisation, however far it is
        nearest = self._log_weights[changed.min()]
        weights = np.exp(np.minimum(self._log_weights - nearest, 0.0))[changed]
        total = float(weights.sum())
        return OccurringRows(z, weights / total, float(nearest + np.log(total / len(z))))

    def at(self, row: Floats) -> JointDesign:
        return self.around(self.cells(row[None])[0]).design()


# -- one row of the background -------------------------------------------------------------------------------


class _PointColumn(IndicatorColumn):
    """A column with a law for each of its values, which it then has for certain."""

    @classmethod
    def of_levels(cls, law: Marginal) -> _PointColumn:
        """The column whose laws are those inside the cells of one law."""
        ones = np.ones(law.all_cells.size)
        return cls(law, law.all_cells, inclusion=ones, exclusion=0.0 * ones, log_weight=0.0 * ones)

    @property
    def by_means_in_cells(self) -> bool:
        # the function is asked for its values: there is nothing to average
        return False

    def basis(self, function: Function) -> Floats:
        [atoms] = self.marginal.measures
        assert isinstance(atoms, Atoms)  # noqa: S101 - `SingleRowFamily.of`
        # inside a value's cell; nothing is outside
        return np.asarray(function(atoms.value)[:, :, None])

    def mixed(self, basis: Floats) -> tuple[Any, Any]:
        mean = basis[:, :, 0].T
        return mean, np.zeros_like(mean)


@dataclass(frozen=True, eq=False)
class SingleRowFamily(ProductFamily):
    """The laws of single rows: independent columns that have one value each. Cells are values."""

    @classmethod
    def of(cls, rows: Floats) -> SingleRowFamily:
        """The laws of rows (n, d)."""
        laws = []
        for values in map(np.unique, rows.T):
            ones = np.ones(values.size)
            laws.append(Marginal(Levels(values), 0.0 * ones, (Atoms(values, ones),), np.arange(values.size)))
        return cls(tuple(laws), BinWeights(np.inf))

    @cached_property
    def columns(self) -> tuple[IndicatorColumn, ...]:
        return tuple(map(_PointColumn.of_levels, self.marginals))


def _reciprocal(sizes: Floats) -> Floats:
    return np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
