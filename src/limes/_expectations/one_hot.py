r"""Effects of cells from rows of w: weighted least squares on one indicator a cell.

Columns are independent under w and their cells' masses q are known, so that with

    f = μ + Σ_j Σ_b θ_jb 1[x_j in cell b] + rest,    Σ_b q_jb θ_jb = 0,

the θ of least squares estimate E_w[f | cell b] - E_w f, with less noise than the means of f in each cell:
other columns' effects are removed. Standard errors are sandwich estimates, which hold whatever the rest is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._expectations.weighted_rows import WeightedRows
from limes.exceptions import InputError

# Largest number of floats in one array of a fit, 1 GB: rows times cells, and the square of the cells
_MOST_NUMBERS = 1 << 27
# A cell needs an effective number of rows of at least this
_FEWEST = 8.0


@dataclass(frozen=True, eq=False)
class OneHotFit:
    """Effects of all cells, fitted to rows of w with known cells, given their masses (p_j,)."""

    rows: WeightedRows
    masses: list[Floats]

    @property
    def _cells(self) -> Ints:
        assert self.rows.cells is not None  # noqa: S101 - rows of tables have cells
        return self.rows.cells

    @cached_property
    def _basis(self) -> list[tuple[Floats, Floats]]:
        """Functions (m, r) that span each column's effects, and their values in every cell, (p, r).

        φ_b = 1[cell b] - (q_b / q_a) 1[cell a], with a the likeliest cell: its mean is 0.
        """
        basis = []
        for cells, q in self._columns:
            likeliest, free = int(np.argmax(q)), self._free(cells, q)
            values = np.zeros((q.size, free.size))
            values[free, np.arange(free.size)] = 1.0
            values[likeliest] = -q[free] / q[likeliest]
            basis.append((values[cells], values))
        return basis

    @property
    def _columns(self) -> Iterator[tuple[Ints, Floats]]:
        """Cells (m,) and masses (p,) of each column."""
        return zip(self._cells, self.masses, strict=True)

    def _free(self, cells: Ints, q: Floats) -> Ints:
        """Return the cells of a column that have a function: those with enough rows but the likeliest one."""
        return np.flatnonzero(self._visible(cells, q.size) & (np.arange(q.size) != np.argmax(q)))

    def _visible(self, cells: Ints, count: int) -> Bools:
        """Return which cells contain enough rows, (p,)."""
        weights = self.rows.weights
        total, squares = np.bincount(cells, weights, count), np.bincount(cells, weights**2, count)
        return total**2 > _FEWEST * squares

    @cached_property
    def _fit(self) -> tuple[Floats, Floats, Floats]:
        """Coefficients (q, k), the influence of each row on them (q, m), and the residuals (m, k).

        Raises
        ------
        InputError
            If there are more cells than rows, or too many for the memory.
        """
        count, rows = 1 + sum(self._free(*each).size for each in self._columns), len(self.rows.f)
        if count >= rows:
            raise InputError(
                f"effects of {count:,} cells cannot be estimated from {rows:,} rows: raise max_calls, or "
                "explain fewer columns"
            )
        if count * max(count, rows) > _MOST_NUMBERS:
            raise InputError(
                f"effects of {count:,} cells on {rows:,} rows take more than 1 GB: explain fewer columns, or "
                "use wider bins"
            )
        x = np.column_stack([np.ones(len(self.rows.f)), *(functions for functions, _ in self._basis)])
        weighted = x * self.rows.weights[:, None]
        influence = np.linalg.solve(weighted.T @ x, weighted.T)
        coef = influence @ self.rows.f
        return np.asarray(coef[1:]), np.asarray(influence[1:]), np.asarray(self.rows.f - x @ coef)

    @property
    def residuals(self) -> Floats:
        """Residuals of the effects, (m, k)."""
        return self._fit[2]

    def effects(self) -> tuple[list[Floats], list[Floats]]:
        """Effects of each column's cells (p_j, k), and standard errors.

        Where a cell has too few rows the effect is NaN, and the error infinite.
        """
        coef, influence, residuals = self._fit
        effects, errors, first = [], [], 0
        for (_, values), cells, q in zip(self._basis, self._cells, self.masses, strict=True):
            part = slice(first, first + values.shape[1])
            first = part.stop
            moved = values @ influence[part]  # (p, m)
            error = np.stack([self.rows.error(row[:, None] * residuals) for row in moved])
            blind = ~self._visible(cells, q.size)
            effects.append(np.where(blind[:, None], np.nan, values @ coef[part]))
            errors.append(np.where(blind[:, None], np.inf, error))
        return effects, errors

    def additive(self) -> tuple[Floats, Floats, Floats]:
        """Variance between cells, mean square of the rest, and the error of R² = between / (between + rest).

        Each is (k,); both variances are corrected for noise.
        """
        coef, influence, residuals = self._fit
        rows = self.rows
        columns = zip(self._basis, self.masses, strict=True)
        gram = [values.T @ (values * q[:, None]) for (_, values), q in columns]
        sizes = np.cumsum([len(part) for part in gram])[:-1]
        parts = list(zip(gram, np.split(coef, sizes), np.split(influence, sizes), strict=True))
        between, slope = np.zeros(rows.f.shape[1]), np.zeros(rows.f.T.shape)
        for g, theta, moved in parts:
            between += (theta * (g @ theta)).sum(axis=0)
            slope += 2.0 * (g @ theta).T @ moved
        # noise of the coefficients raises the variance between cells, and lowers that of the rest
        noise = np.stack([self._noise(parts, residuals[:, k]) for k in range(residuals.shape[1])])
        between = np.maximum(between - noise, 0.0)
        rest, _ = rows.mean(residuals**2)
        rest = rest + noise
        total = np.where(between + rest > 0, between + rest, 1.0)
        share = between / total
        change = (1.0 - share) * slope.T * residuals - share * rows.weights[:, None] * (residuals**2 - rest)
        return between, rest, rows.error(change / total)

    def _noise(self, parts: list[tuple[Floats, Floats, Floats]], residuals: Floats) -> float:
        """Return the part of the variance between cells that is noise: Σ q_b se_b², with covariances."""
        moved = [(influence * residuals, g) for g, _, influence in parts]
        return float(sum((g * (m @ m.T)).sum() for m, g in moved))


@dataclass(frozen=True, eq=False)
class PairEstimate:
    """Effects of pairs of cells of two columns, (p, q, k), their errors, and the variance that they explain.

    That variance (k,) is corrected for noise, at least 0.
    """

    values: Floats
    errors: Floats
    variance: Floats
    variance_error: Floats


def pair_estimate(
    rows: WeightedRows, residuals: Floats, masses: tuple[Floats, Floats], columns: tuple[int, int]
) -> PairEstimate:
    """Estimate the effects of pairs of cells: centred means of the residuals (m, k) of columns' effects."""
    assert rows.cells is not None  # noqa: S101 - rows of tables have cells
    (p, q), (first, second) = (mass.size for mass in masses), (rows.cells[j] for j in columns)
    cell = first.astype(np.int64) * q + second
    total = np.bincount(cell, rows.weights, p * q)
    enough = total**2 > _FEWEST * np.bincount(cell, rows.weights**2, p * q)
    safe = np.where(total > 0, total, 1.0)
    sums = np.stack([np.bincount(cell, rows.weights * r, p * q) for r in residuals.T], axis=1)
    mean = np.where(enough[:, None], sums / safe[:, None], 0.0)
    away = (rows.weights / safe[cell])[:, None] * (residuals - mean[cell])
    error = np.sqrt(np.stack([np.bincount(cell, a**2, p * q) for a in away.T], axis=1))
    values = centred(mean.reshape(p, q, -1), *masses)
    both = np.multiply.outer(*masses)[:, :, None]
    finite = np.where(enough[:, None], error, 0.0).reshape(p, q, -1)
    variance = (both * (values**2 - finite**2)).sum(axis=(0, 1))
    spread = np.sqrt(((2.0 * both * values * finite) ** 2 + 2.0 * (both * finite**2) ** 2).sum(axis=(0, 1)))
    errors = np.where(enough[:, None], error, np.inf).reshape(p, q, -1)
    return PairEstimate(values, errors, np.maximum(variance, 0.0), spread)


def centred(values: Floats, row_mass: Floats, column_mass: Floats) -> Floats:
    """Values (p, q, k) less the parts of either cell alone."""
    values = values - np.tensordot(row_mass, values, axes=1)
    return np.asarray(values - np.einsum("q,pqk->pk", column_mass, values)[:, None])
