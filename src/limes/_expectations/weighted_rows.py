r"""Rows of the weighted law w with a model's answers: R², effects of cells and of pairs of cells on them.

The rows are drawn from w, or are those of a pool or of the background, weighted around a row, or all states
of a design. No call of the model is made. For a form that was read, with g = E_w f + Σ_j b_j (h_j - α_j), b
any coefficients, and Γ exact,

    Var_w f = 2 b·Γ - b·Σb + E_w (f - g)²,

so that only the mean square of the surrogate's residuals is estimated: R² = 1 where they are 0, whatever the
rows are. Effects of cells are θ_j(b) = E_w[f | x_j in cell b] - E_w f:

- `OneHotFit`, columns independent under w and their cells' masses q known: least squares of

      f = μ + Σ_j Σ_b θ_jb 1[x_j in cell b] + rest,    Σ_b q_jb θ_jb = 0,

  estimate θ with less noise than the means of f in each cell, as other columns' effects are removed. Standard
  errors are sandwich estimates, which hold whatever the rest is.
- `JointEffects`, columns dependent: θ is the mean over the rows of the cell, whatever else those rows have in
  common, so that the effects' shares of Var_w f overlap and do not add up. All effects together are the best
  sum of functions of the cells, by least squares with least norm. Errors refer to the population.
- `largest_pairs`, words or superpixels: features z are 0 or 1, and all pairs have one joint law,
  P_w(z_j = z_k = 1) = p, P_w(z_j = 1) = α. The rest r of least squares has the mean 0 wherever one feature is
  fixed, so that a pair adds a single number

      c_jk = E_w[r z_j z_k]        E_w[r | z_j = a, z_k = b] = (-1)^(a + b) c_jk / P_w(a, b)

  which explains c_jk² Σ_ab 1 / P_w(a, b) of Var_w f. z_j z_k may be replaced by its residuals from a fit on
  z_j and z_k: the expectation is the same, and less noisy on drawn rows.

A pair's effect is a mean of what the effects of columns leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limes import _kernels
from limes._arrays import ROUNDING, Bools, Floats, Ints, is_constant, padded, streams
from limes._expectations.least_squares import mean_ratio_error
from limes._threads import in_threads
from limes.designs._product import ProductFamily
from limes.designs._weights import BinWeights
from limes.exceptions import InputError

# Rows of a pool, those of its first that are used alone where enough of them count, and the effective number
# that is enough
POOL_ROWS, _FIRST_ROWS, _ENOUGH = 4096, 2048, 1024.0
# Designs of one call of the kernel: few enough that all threads have work
_BLOCK = 64
# Fingerprint of a pool's stream, which belongs to no row
_POOL_KEY = 0
# An exact number may differ from a mean over n draws by this number of standard errors, and by about this
# number of extreme values, divided by n, which the draws may have missed
ERRORS, UNSEEN_ROWS = 6.0, 3.0
# Largest number of floats in one array of a fit, 1 GB: rows times cells, and the square of the cells
_MOST_NUMBERS = 1 << 27
# A cell needs an effective number of rows of at least this
_FEWEST = 8.0


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """m rows of w."""

    h: Floats  # features, (d, m)
    f: Floats  # answers, (m, k)
    weights: Floats  # (m,), with sum 1
    # (m,) number of the group of rows that depend on each other; None if every row is a group
    groups: Ints | None = None
    cells: Ints | None = None  # of the columns, (d, m); None for words and superpixels

    @classmethod
    def drawn(cls, h: Floats, f: Floats, cells: Ints) -> WeightedRows:
        """Rows that were drawn from w, with features h (m, d), answers (m, k) and cells (d, m)."""
        return cls(np.ascontiguousarray(h.T), f, np.full(len(h), 1.0 / len(h)), cells=cells)

    @classmethod
    def around(cls, same: Bools, weights: Floats, f: Floats, cells: NDArray[Any]) -> WeightedRows:
        """Rows in cells (m, d), which are the ``same`` as those of one row or not, (m, d)."""
        h = np.ascontiguousarray(same.T, dtype=np.float64)
        return cls(h, f, weights / weights.sum(), cells=cells.T.astype(np.int64))

    def mean(self, values: Floats) -> tuple[Floats, Floats]:
        """Weighted means of values (m, k), and their standard errors, (k,) each."""
        mean = self.weights @ values
        influence = values - mean
        influence *= self.weights[:, None]
        return mean, self.error(influence)

    def error(self, influence: Floats) -> Floats:
        """Standard errors (k,) of sums of influences (m, k), independent from group to group."""
        if self.groups is None:
            return np.asarray(np.sqrt(np.einsum("mk,mk->k", influence, influence)))
        sums = np.stack([np.bincount(self.groups, column) for column in influence.T], axis=1)
        return np.asarray(np.sqrt((sums**2).sum(axis=0)))

    def miss(self, gamma: Floats, inclusion: Floats) -> Bools:
        """For which outputs, (k,), the rows cannot be what the exact Γ (d, k) was made of."""
        # their own Γ differs from it by more than its error and what rows that they may have missed can add:
        # rare rows decide the variance then, and none of them was drawn
        centred, f = (self.h.T - inclusion) * self.weights[:, None], self.f - self.weights @ self.f
        errors = np.sqrt((centred**2).T @ f**2)
        unseen = UNSEEN_ROWS * (self.weights @ self.weights) * np.ptp(self.f, axis=0)
        largest = np.abs(self.h.T - inclusion).max(axis=0, initial=0.0)[:, None]
        allowed = ERRORS * errors + largest * (unseen + ROUNDING * np.abs(self.f).max(axis=0))
        return np.asarray((np.abs(gamma - centred.T @ f) > allowed).any(axis=0))

    def residuals(self, mean: Floats, inclusion: Floats, coef: Floats) -> Floats:
        """Answers less mean + Σ_j coef_j (h_j - α_j), (m, k), for means (k,) and coefficients (d, k)."""
        return np.asarray(self.f - (mean - inclusion @ coef) - self.h.T @ coef)


class FormPool:
    """Rows of a background's law without weights, and a form's answers, for all designs that count cells.

    Around a row they have the weights exp(-#changed / (2ν²)). The rows are a function of the family and the
    seed alone.
    """

    def __init__(self, family: ProductFamily, predict: Callable[[Floats], Floats], seed: int) -> None:
        # without weights all designs are the same law, whatever the row
        row = [law.quantile(np.zeros(1, dtype=np.int64), np.full(1, 0.5))[0] for law in family.marginals]
        design = replace(family, weights=BinWeights(np.inf)).at(np.array(row))
        x, _, _ = design.sampler(streams(seed, _POOL_KEY, 1)).draw(POOL_ROWS)
        self._cells = np.ascontiguousarray(family.cells(x), dtype=np.uint32)
        self._f = predict(x)
        self._answers = np.ascontiguousarray(self._f.T)
        self._width = padded(max(marginal.cells.count for marginal in family.marginals))
        with np.errstate(over="ignore"):
            self._ratio = float(np.exp(-0.5 / np.float64(family.weights.bandwidth) ** 2))

    def at(self, cells: Ints) -> WeightedRows | None:
        """The rows around a row with these cells (d,); None if too few count."""
        same = self._cells == cells
        weights = self._ratio ** np.count_nonzero(~same, axis=1)
        if not _enough(weights.sum(), weights @ weights):
            return None
        return WeightedRows.around(same, weights, self._f, self._cells)

    def squares(self, cells: Ints, curves: Floats, bases: Floats) -> tuple[Floats, Floats, Bools]:
        """Mean squares of f - base - Σ_j curve_j(cell of x_j) around rows with cells (n, d).

        Curves are (n, d, B, k) and bases (n, k). Returns them and their errors, (n, k) each, and where enough
        rows count, (n,). Where half of the pool is enough the other half is skipped.
        """
        mean, error, enough = self._squares(cells, curves, bases, _FIRST_ROWS)
        few = ~enough
        if few.any():
            mean[few], error[few], enough[few] = self._squares(cells[few], curves[few], bases[few], POOL_ROWS)
        return mean, error, enough

    def _squares(self, cells: Ints, curves: Floats, bases: Floats, size: int) -> tuple[Floats, Floats, Bools]:
        n, d, widest, k = curves.shape
        weights, squares = np.zeros((n, 2)), np.zeros((n, k, 3))
        factors = np.full((n, d, self._width), self._ratio)
        np.put_along_axis(factors, cells[:, :, None], 1.0, axis=2)
        tables = np.zeros((n, d, k, self._width))
        tables[..., :widest] = curves.swapaxes(2, 3)
        answers = np.ascontiguousarray(self._answers[:, :size])
        add = partial(_kernels.squares_of_pool, self._cells[:size], answers)

        def block(start: int) -> None:
            rows = slice(start, start + _BLOCK)
            add(factors[rows], tables[rows], bases[rows], weights[rows], squares[rows], "")

        in_threads(block, range(0, n, _BLOCK))
        total, square = weights.T
        enough = _enough(total, square)
        total, square = (np.where(enough, numbers, 1.0)[:, None] for numbers in (total, square))
        first, second, fourth = np.moveaxis(squares, 2, 0)
        mean = first / total
        # Σ w² (r² - mean)²
        spread = np.maximum(fourth - 2.0 * mean * second + mean**2 * square, 0.0)
        return mean, np.sqrt(spread) / total, enough


def _enough(total: Floats, squares: Floats) -> Any:
    """Whether the effective number of rows is enough, given sums of weights and of their squares."""
    return total**2 >= _ENOUGH * np.maximum(squares, np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class OneHotFit:
    """Effects of all cells, fitted to rows of w with known cells, given their masses (p_j,)."""

    rows: WeightedRows
    masses: list[Floats]

    @cached_property
    def _cells(self) -> Ints:
        assert self.rows.cells is not None  # noqa: S101 - rows of tables have cells
        return self.rows.cells

    @cached_property
    def _visible(self) -> list[Bools]:
        """Which cells of each column contain enough rows, (p,)."""
        weights, each = self.rows.weights, zip(self._cells, self.masses, strict=True)
        sums = [[np.bincount(cells, weights**m, q.size) for m in (1, 2)] for cells, q in each]
        return [total**2 > _FEWEST * squares for total, squares in sums]

    @cached_property
    def _free(self) -> list[Ints]:
        """The cells of each column that have a function: those with enough rows but the likeliest one."""
        each = zip(self._visible, self.masses, strict=True)
        return [np.flatnonzero(visible & (np.arange(q.size) != np.argmax(q))) for visible, q in each]

    @cached_property
    def _basis(self) -> list[tuple[Floats, Floats]]:
        """Functions (m, r) that span each column's effects, and their values in every cell, (p, r)."""
        basis = []
        for cells, q, free in zip(self._cells, self.masses, self._free, strict=True):
            # φ_b = 1[cell b] - (q_b / q_a) 1[cell a], with a the likeliest cell: its mean is 0
            likeliest, values = int(np.argmax(q)), np.zeros((q.size, free.size))
            values[free, np.arange(free.size)] = 1.0
            values[likeliest] = -q[free] / q[likeliest]
            basis.append((values[cells], values))
        return basis

    @cached_property
    def _fit(self) -> tuple[Floats, Floats, Floats]:
        """Coefficients (q, k), the influence of each row on them (q, m), and the residuals (m, k)."""
        count, rows = 1 + sum(free.size for free in self._free), len(self.rows.f)
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
        return self._fit[2]

    def effects(self) -> tuple[list[Floats], list[Floats]]:
        """Effects of each column's cells (p_j, k) and their errors; NaN and inf in cells with few rows."""
        coef, influence, residuals = self._fit
        effects, errors, first = [], [], 0
        for (_, values), visible in zip(self._basis, self._visible, strict=True):
            part = slice(first, first + values.shape[1])
            first = part.stop
            moved = values @ influence[part]  # (p, m)
            error = np.stack([self.rows.error(row[:, None] * residuals) for row in moved])
            effects.append(np.where(visible[:, None], values @ coef[part], np.nan))
            errors.append(np.where(visible[:, None], error, np.inf))
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
        noise = np.stack([_noise(parts, column) for column in residuals.T])
        between = np.maximum(between - noise, 0.0)
        rest, _ = rows.mean(residuals**2)
        rest = rest + noise
        total = np.where(between + rest > 0, between + rest, 1.0)
        share = between / total
        change = (1.0 - share) * slope.T * residuals - share * rows.weights[:, None] * (residuals**2 - rest)
        return between, rest, rows.error(change / total)


def _noise(parts: Sequence[tuple[Floats, Floats, Floats]], residuals: Floats) -> float:
    """The part of the variance between cells that is noise: Σ q_b se_b², with covariances."""
    moved = [(influence * residuals, gram) for gram, _, influence in parts]
    return float(sum((gram * (m @ m.T)).sum() for m, gram in moved))


def _cell_means(
    weights: Floats, cells: Ints, count: int, f: Floats, of_all: Floats | float = 0.0
) -> tuple[Floats, Floats, Floats]:
    """Weighted means of f (m, k), whose mean is 0, in each cell, less ``of_all``; errors (p, k); masses (p,).

    Where too few rows lie in a cell they are NaN, and their errors infinite.
    """

    def sums(values: Floats) -> Floats:
        return np.stack([np.bincount(cells, column, count) for column in values.T], axis=1)

    masses, squares = sums(np.stack([weights, weights**2], axis=1)).T
    safe = np.where(masses > 0, masses, 1.0)[:, None]
    means = sums(weights[:, None] * f) / safe
    # row i moves the mean of its cell by w_i (f_i - mean) / mass, and the mean of all by w_i f_i
    away = weights[:, None] * (f - means[cells]) / safe[cells]
    whole = weights[:, None] * of_all
    everywhere = (whole**2).sum(axis=0) if np.ndim(of_all) else 0.0
    variances = sums(away**2) - 2.0 * sums(away * whole) + everywhere
    enough = (masses**2 > _FEWEST * squares)[:, None]
    errors = np.where(enough, np.sqrt(np.maximum(variances, 0.0)), np.inf)
    return np.where(enough, means, np.nan), errors, masses


class PairEffect(NamedTuple):
    """Effects of pairs of cells of two columns beyond those of the columns, and their share of Var_w f."""

    columns: tuple[int, int]
    values: Floats  # (p, q, k)
    errors: Floats  # (p, q, k)
    masses: Floats  # P_w of both cells, (p, q)
    share: Floats  # corrected for noise, at least 0, (k,)
    share_error: Floats  # (k,)

    def of_output(self, k: int, unit: float = 1.0) -> PairEffect:
        """The effects on one output, (p, q), in units."""
        values, errors = self.values[:, :, k] * unit, self.errors[:, :, k] * unit
        return PairEffect(self.columns, values, errors, self.masses, self.share[k], self.share_error[k])


def exact_pair(
    columns: tuple[int, int], values: Floats, masses: Sequence[Floats], total: Floats
) -> PairEffect:
    """Exact effects (p, q, k) of a pair, which explain a part of Var_w f = ``total`` (k,)."""
    both = np.multiply.outer(*masses)
    share = np.tensordot(both, values**2, axes=2) / total
    return PairEffect(columns, values, np.zeros_like(values), both, share, np.zeros_like(share))


def pair_estimate(
    rows: WeightedRows,
    residuals: Floats,
    masses: tuple[Floats, Floats],
    columns: tuple[int, int],
    total: Floats | float = 1.0,
) -> PairEffect:
    """Estimate the effects of pairs of cells: centred means of the residuals (m, k) of columns' effects."""
    assert rows.cells is not None  # noqa: S101 - rows of tables have cells
    (p, q), (first, second) = (mass.size for mass in masses), (rows.cells[j] for j in columns)
    cell = first.astype(np.int64) * q + second
    means, errors, _ = _cell_means(rows.weights, cell, p * q, residuals)
    values = centred(np.nan_to_num(means).reshape(p, q, -1), *masses)
    return _noisy_pair(columns, values, errors.reshape(p, q, -1), np.multiply.outer(*masses), total)


def _noisy_pair(
    columns: tuple[int, int], values: Floats, errors: Floats, masses: Floats, total: Floats | float
) -> PairEffect:
    """A pair of estimated effects (p, q, k), whose squares are too large by those of their errors."""
    both, noise = masses[:, :, None], np.where(np.isfinite(errors), errors, 0.0)
    explained = (both * (values**2 - noise**2)).sum(axis=(0, 1))
    error = np.sqrt(((2.0 * both * values * noise) ** 2 + 2.0 * (both * noise**2) ** 2).sum(axis=(0, 1)))
    return PairEffect(columns, values, errors, masses, np.maximum(explained, 0.0) / total, error / total)


def centred(values: Floats, row_mass: Floats, column_mass: Floats) -> Floats:
    """Values (p, q, k) less the parts of either cell alone."""
    values = values - np.tensordot(row_mass, values, axes=1)
    return np.asarray(values - np.einsum("q,pqk->pk", column_mass, values)[:, None])


@dataclass(frozen=True, eq=False)
class JointEffects:
    """Effects of cells around one explained row, whose columns depend on each other."""

    cells: Ints  # of the background's rows, (n, d)
    counts: Sequence[int]  # numbers of cells
    weights: Floats  # w, (n,), with sum 1
    f: Floats  # answers, (n, k)

    @cached_property
    def _centred(self) -> Floats:
        return self.f - self.weights @ self.f

    @cached_property
    def _variance(self) -> Floats:
        variance = self.weights @ self._centred**2
        return np.where(is_constant(variance, np.abs(self.f).max(axis=0)), np.inf, variance)

    def column(self, j: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Effects and their errors (p, k), masses (p,), and the share of Var_w f (k,)."""
        means, errors, masses = _cell_means(
            self.weights, self.cells[:, j], self.counts[j], self._centred, self._centred
        )
        return means, errors, masses, masses @ np.nan_to_num(means) ** 2 / self._variance

    @cached_property
    def _rest(self) -> Floats:
        """Residuals of the best sum of functions of the cells, (n, k)."""
        columns = zip(self.cells.T, self.counts, strict=True)
        indicators = [cells[:, None] == np.arange(count) for cells, count in columns]
        basis = np.concatenate(indicators, axis=1).astype(np.float64)
        basis -= self.weights @ basis
        weighted = basis * self.weights[:, None]
        inverse = np.linalg.pinv(basis.T @ weighted, hermitian=True)
        return np.asarray(self._centred - basis @ (inverse @ (weighted.T @ self._centred)))

    @property
    def additive(self) -> tuple[Floats, Floats]:
        """R² of all effects together, and its standard errors, (k,) each."""
        rest = self.weights @ self._rest**2
        error = mean_ratio_error(self.weights, self._rest**2, self._centred**2)
        return np.where(np.isinf(self._variance), 1.0, 1.0 - rest / self._variance), error

    def pair(self, i: int, j: int) -> PairEffect:
        p, q = self.counts[i], self.counts[j]
        cells = self.cells[:, i] * q + self.cells[:, j]
        means, errors, masses = _cell_means(self.weights, cells, p * q, self._rest)
        values, errors = np.nan_to_num(means).reshape(p, q, -1), errors.reshape(p, q, -1)
        return _noisy_pair((i, j), values, errors, masses.reshape(p, q), self._variance)


def largest_pairs(
    rows: WeightedRows,
    rest: Floats,
    masses: Floats,
    top: int,
    features: Sequence[int],
    total: float,
    *,
    exact: bool,
) -> Sequence[PairEffect]:
    """The ``top`` pairs of words or superpixels that explain most of one output, largest first.

    ``rest`` (m,) are the residuals of least squares on rows of w, ``masses`` (2, 2) is the law of two
    features, ``total`` is Var_w f, and ``exact`` states whether the rows are all states of the design.
    """
    every = (rows.h * (rows.weights * rest)) @ rows.h.T
    first, second = np.array(list(combinations(features, 2))).T
    order = np.argsort(-np.abs(every[first, second]), kind="stable")[: 4 * top]
    pairs = [
        _switch_pair(rows, rest, masses, (int(first[o]), int(second[o])), total, exact=exact) for o in order
    ]
    return sorted(pairs, key=lambda pair: -pair.share[0])[:top]


def _switch_pair(
    rows: WeightedRows, rest: Floats, masses: Floats, columns: tuple[int, int], total: float, *, exact: bool
) -> PairEffect:
    one, other = (rows.h[j] for j in columns)
    both, alpha = masses[1, 1], masses[1].sum()
    # least squares of z_j z_k on 1, z_j and z_k, by symmetry
    variance, covariance = alpha * (1.0 - alpha), both - alpha**2
    slope = both * (1.0 - alpha) / (variance + covariance) if variance + covariance > 0 else 0.0
    beside = one * other - both - slope * (one + other - 2.0 * alpha)
    influence = (rows.weights * rest * beside)[:, None]
    size = influence.sum(axis=0)
    error = np.zeros(1) if exact else rows.error(influence)
    inverse = np.divide(1.0, masses, out=np.zeros((2, 2)), where=masses > 0)
    factor = inverse.sum() / total
    return PairEffect(
        columns,
        (np.array([[1.0, -1.0], [-1.0, 1.0]]) * inverse)[:, :, None] * size,
        inverse[:, :, None] * error,
        masses,
        np.maximum(size**2 - error**2, 0.0) * factor,
        np.sqrt((2.0 * size * error) ** 2 + 2.0 * error**4) * factor,
    )
