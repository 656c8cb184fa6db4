r"""Effects of cells under the joint law, where columns depend on each other.

    effect_j(b) = E_w[f | x_j in cell b] - E_w f,

the mean over the rows of the cell, whatever else those rows have in common: the effects' shares of Var_w f
overlap and do not add up. All effects together are the best sum of functions of the cells, by least squares
with least norm; a pair's effect is the mean residual of that sum. Standard errors refer to the population.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Floats, Ints, is_constant
from limes._expectations.least_squares import mean_ratio_error

# A cell needs an effective number of rows of at least this
_FEWEST = 8.0


@dataclass(frozen=True, eq=False)
class ColumnEffect:
    """Effects of a column's cells and their errors (p, k), P_w(cell) (p,), and the share of Var_w f (k,).

    NaN values and infinite errors where too few rows lie in a cell.
    """

    values: Floats
    errors: Floats
    masses: Floats
    share: Floats


@dataclass(frozen=True, eq=False)
class PairEffect:
    """Effects of pairs of cells and errors (p, q, k), masses (p, q), share of Var_w f and its error (k,)."""

    values: Floats
    errors: Floats
    masses: Floats
    share: Floats
    share_error: Floats


@dataclass(frozen=True, eq=False)
class JointEffects:
    """Effects around one explained row.

    Attributes
    ----------
    cells
        Cells of the background's rows, (n, d).
    counts
        Number of cells of each column.
    weights
        w, (n,), with sum 1.
    f
        Answers, (n, k).
    """

    cells: Ints
    counts: Sequence[int]
    weights: Floats
    f: Floats

    @cached_property
    def _centred(self) -> Floats:
        return self.f - self.weights @ self.f

    @cached_property
    def _variance(self) -> Floats:
        variance = self.weights @ self._centred**2
        return np.where(is_constant(variance, np.abs(self.f).max(axis=0)), np.inf, variance)

    def column(self, j: int) -> ColumnEffect:
        """Effects of one column."""
        means = self._means(self.cells[:, j], self.counts[j], self._centred, of_all=self._centred)
        between = means.masses @ np.nan_to_num(means.values) ** 2
        return ColumnEffect(means.values, means.errors, means.masses, between / self._variance)

    @cached_property
    def _rest(self) -> Floats:
        """Residuals of the best sum of functions of the cells, (n, k)."""
        basis = np.concatenate(
            [
                (self.cells[:, j, None] == np.arange(count)).astype(np.float64)
                for j, count in enumerate(self.counts)
            ],
            axis=1,
        )
        basis -= self.weights @ basis
        weighted = basis * self.weights[:, None]
        return np.asarray(
            self._centred
            - basis @ (np.linalg.pinv(basis.T @ weighted, hermitian=True) @ (weighted.T @ self._centred))
        )

    @property
    def additive(self) -> tuple[Floats, Floats]:
        """R² of all effects together, and its standard errors, (k,) each."""
        rest = self.weights @ self._rest**2
        error = mean_ratio_error(self.weights, self._rest**2, self._centred**2)
        return np.where(np.isinf(self._variance), 1.0, 1.0 - rest / self._variance), error

    def pair(self, i: int, j: int) -> PairEffect:
        """Effects of two columns' pairs of cells beyond all effects of columns."""
        sizes = self.counts[i], self.counts[j]
        both = self.cells[:, i] * sizes[1] + self.cells[:, j]
        means = self._means(both, sizes[0] * sizes[1], self._rest)
        values = np.nan_to_num(means.values)
        noise = np.where(np.isfinite(means.errors), means.errors, 0.0)
        explained = means.masses @ (values**2 - noise**2)
        error = np.sqrt(means.masses**2 @ ((2.0 * values * noise) ** 2 + 2.0 * noise**4))
        return PairEffect(
            values.reshape(*sizes, -1),
            means.errors.reshape(*sizes, -1),
            means.masses.reshape(sizes),
            np.maximum(explained, 0.0) / self._variance,
            error / self._variance,
        )

    def _means(self, cells: Ints, count: int, f: Floats, of_all: Floats | float = 0.0) -> ColumnEffect:
        """Weighted means of f (n, k), whose mean is 0, in each cell; ``of_all`` is subtracted from them."""
        masses, squares = self._sums(cells, count, np.stack([self.weights, self.weights**2], axis=1)).T
        safe = np.where(masses > 0, masses, 1.0)[:, None]
        means = self._sums(cells, count, self.weights[:, None] * f) / safe
        # row i moves the mean of its cell by w_i (f_i - mean) / mass, and the mean of all by w_i f_i
        away = self.weights[:, None] * (f - means[cells]) / safe[cells]
        whole = self.weights[:, None] * of_all
        everywhere = (whole**2).sum(axis=0) if np.ndim(whole) else 0.0
        variances = (
            self._sums(cells, count, away**2) - 2.0 * self._sums(cells, count, away * whole) + everywhere
        )
        enough = (masses**2 > _FEWEST * squares)[:, None]
        return ColumnEffect(
            np.where(enough, means, np.nan),
            np.where(enough, np.sqrt(np.maximum(variances, 0.0)), np.inf),
            masses,
            np.zeros(f.shape[1]),
        )

    def _sums(self, cells: Ints, count: int, values: Floats) -> Floats:
        """Sums of values (n, k) over each cell, (count, k)."""
        return np.stack([np.bincount(cells, column, count) for column in values.T], axis=1)
