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
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limes import _kernels
from limes._arrays import ROUNDING, Bools, Floats, Ints, is_constant, padded, streams
from limes._sampling.least_squares import (
    AnswerStatistics,
    Clusters,
    SandwichVariance,
    between_sequences,
    mean_ratio_error,
    rare_variances,
    variance_is_known,
)
from limes._threads import in_threads
from limes.designs._product import ProductFamily
from limes.designs._weights import BinWeights
from limes.exceptions import InputError

# Scrambled sequences of rows, which are independent
SEQUENCES = 8
# Sequences may agree by chance on which side of a jump a point lies: their variance is at least this part of
# that of independent rows
_LEAST_REDUCTION = 1.0 / 64.0
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
    # (m,) number of the scrambled sequence of each row, which are independent; None of a single one
    sequences: Ints | None = None

    @classmethod
    def drawn(
        cls, h: Floats, f: Floats, cells: Ints, weights: Floats | None = None, sequences: Ints | None = None
    ) -> WeightedRows:
        """Rows that were drawn from w, with features h (m, d), answers (m, k) and cells (d, m).

        Those of another law have ``weights`` (m,).
        """
        weights = np.ones(len(h)) if weights is None else weights
        h = np.ascontiguousarray(h.T)
        return cls(h, f, weights / weights.sum(), cells=cells, sequences=sequences)

    @classmethod
    def around(
        cls, same: Bools, weights: Floats, f: Floats, cells: NDArray[Any], sequences: int
    ) -> WeightedRows:
        """Rows in cells (m, d), which are the ``same`` as those of one row or not, (m, d).

        They are those of a number of ``sequences`` of one length, side by side.
        """
        h, each = np.ascontiguousarray(same.T, dtype=np.float64), len(f) // sequences
        of_sequence = np.repeat(np.arange(sequences), each)
        cells = cells.T.astype(np.int64)
        return cls(h, f, weights / weights.sum(), cells=cells, sequences=of_sequence)

    @cached_property
    def clusters(self) -> Clusters:
        return Clusters(np.arange(len(self.f)) if self.groups is None else self.groups, self.sequences)

    def mean(self, values: Floats) -> tuple[Floats, Floats]:
        """Weighted means of values (m, k), and their standard errors, (k,) each."""
        mean = self.weights @ values
        influence = values - mean
        influence *= self.weights[:, None]
        return mean, self.error(influence)

    def mean_square(self, residuals: Floats) -> tuple[Floats, Floats]:
        """Mean squares of what a fit leaves of answers, (m, k), and errors, (k,) each, as of coefficients.

        They count rows that a sample of few may have missed, which the fit does not explain.
        """
        mean, error = self.mean(residuals**2)
        unseen = AnswerStatistics.from_rows(self.f).unseen_squares(self.weights, residuals**2)
        return mean, np.sqrt(error**2 + unseen)

    def few_decide(self, squares: Floats, heavy: Bools | bool = False) -> Bools:
        """Whether few rows decide the means of squares (m, k), whose tails are ``heavy`` or not, (k,)."""
        parts = self.weights[:, None] * squares
        total, fourth = parts.sum(axis=0), (parts**2).sum(axis=0)
        number = np.divide(total**2, fourth, out=np.full_like(total, np.inf), where=fourth > 0)
        return np.asarray(~variance_is_known(number, np.asarray(heavy)))

    def error(self, influence: Floats) -> Floats:
        """Standard errors (k,) of sums of influences (m, k), independent from group to group."""
        if self.sequences is not None:
            return np.asarray(self.errors(np.ones((1, len(influence))), influence)[0][0])
        if self.groups is None:
            return np.asarray(np.sqrt(np.einsum("mk,mk->k", influence, influence)))
        sums = np.stack([np.bincount(self.groups, column) for column in influence.T], axis=1)
        return np.asarray(np.sqrt((sums**2).sum(axis=0)))

    def errors(
        self, influence: Floats, residuals: Floats, unseen: UnseenAnswers | None = None
    ) -> tuple[Floats, SandwichVariance]:
        """Standard errors (s, k) of sums of influences (s, m) times residuals (m, k), as of coefficients."""
        sandwich = SandwichVariance.from_rows(influence, residuals, self.clusters)
        least = np.zeros(sandwich.within.shape) if unseen is None else unseen.variances(influence, residuals)
        reduction = np.maximum(sandwich.variance_reduction, _LEAST_REDUCTION)
        return np.sqrt(sandwich.variances(reduction, least)), sandwich

    def miss(self, gamma: Floats, inclusion: Floats) -> Bools:
        """For which outputs, (k,), the rows cannot be what the exact Γ (d, k) was made of."""
        # their own Γ differs from it by more than its error and what rows that they may have missed can add:
        # rare rows decide the variance then, and none of them was drawn
        centred, f = (self.h.T - inclusion) * self.weights[:, None], self.f - self.weights @ self.f
        errors = np.sqrt((centred**2).T @ f**2)
        unseen = UNSEEN_ROWS * float(self.weights @ self.weights)
        largest = np.abs(self.h.T - inclusion).max(axis=0, initial=0.0)[:, None]
        rounding = ROUNDING * np.abs(self.f).max(axis=0)
        missed = np.abs(gamma - centred.T @ f) - ERRORS * errors - largest * rounding
        # what adds this to Γ, with the probability of rows that were not drawn, has a variance of at least
        # the square over that: it must not exceed the error of the rows' own
        variance = np.maximum(missed, 0.0) ** 2 / (np.maximum(largest, np.finfo(float).tiny) ** 2 * unseen)
        is_off = (missed > largest * unseen * np.ptp(self.f, axis=0)) | (variance > self.mean(f**2)[1])
        return np.asarray(is_off.any(axis=0))

    def residuals(self, mean: Floats, inclusion: Floats, coef: Floats) -> Floats:
        """Answers less mean + Σ_j coef_j (h_j - α_j), (m, k), for means (k,) and coefficients (d, k)."""
        return np.asarray(self.f - (mean - inclusion @ coef) - self.h.T @ coef)


class UnseenAnswers(NamedTuple):
    """A bound of the answers that a sample may have missed: the rule of three (``least_squares.py``)."""

    statistics: AnswerStatistics  # of the answers
    prediction: Floats  # at the row, (k,)
    unit: Floats  # of residuals, (k,)

    def variances(self, influence: Floats, residuals: Floats) -> Floats:
        """The least variances (s, k) of sums of influences (s, m) times residuals (m, k)."""
        least = self.statistics.least_variances(influence, residuals * self.unit, self.prediction)
        return np.asarray(least / self.unit**2)

    @property
    def reach(self) -> Floats:
        """The range of answers, (k,); infinite where all are alike."""
        reach = self.statistics.reach_around(self.prediction)
        return np.asarray(np.where(reach > 0, reach, np.inf) / self.unit)


class FormPool:
    """Rows of a background's law without weights, and a form's answers, for all designs that count cells.

    Around a row they have the weights exp(-#changed / (2ν²)). The rows are a function of the family and the
    seed alone.
    """

    def __init__(self, family: ProductFamily, predict: Callable[[Floats], Floats], seed: int) -> None:
        # without weights all designs are the same law, whatever the row
        row = [law.quantile(np.zeros(1, dtype=np.int64), np.full(1, 0.5))[0] for law in family.marginals]
        design = replace(family, weights=BinWeights(np.inf)).at(np.array(row))
        sampler = design.sampler(streams(seed, _POOL_KEY, SEQUENCES))
        parts, each = POOL_ROWS // _FIRST_ROWS, _FIRST_ROWS // SEQUENCES
        x = np.concatenate([sampler.draw(each)[0] for _ in range(parts)])
        self._cells = np.ascontiguousarray(family.cells(x), dtype=np.uint32)
        self._f = predict(x)
        self._sequence = np.tile(np.repeat(np.arange(SEQUENCES), each), parts)
        # the rows of each sequence of each part, (parts, sequences, rows, d) and (parts, sequences, k, rows)
        shape = parts, SEQUENCES, each, -1
        self._cells_of = self._cells.reshape(shape)
        self._answers_of = np.ascontiguousarray(self._f.reshape(shape).swapaxes(2, 3))
        self._width = padded(max(marginal.cells.count for marginal in family.marginals))
        with np.errstate(over="ignore"):
            self._ratio = float(np.exp(-0.5 / np.float64(family.weights.bandwidth) ** 2))

    def at(self, cells: Ints) -> WeightedRows | None:
        """The rows around a row with these cells (d,); None if too few count."""
        same = self._cells == cells
        weights = self._ratio ** np.count_nonzero(~same, axis=1)
        if not _enough(weights.sum(), weights @ weights):
            return None
        rows = WeightedRows.around(same, weights, self._f, self._cells, 1)
        return replace(rows, sequences=self._sequence)

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
        parts = size // _FIRST_ROWS
        weights = np.zeros((parts, SEQUENCES, n, 2))
        squares = np.zeros((parts, SEQUENCES, n, k, 3))
        factors = np.full((n, d, self._width), self._ratio)
        np.put_along_axis(factors, cells[:, :, None], 1.0, axis=2)
        tables = np.zeros((n, d, k, self._width))
        tables[..., :widest] = curves.swapaxes(2, 3)

        def block(start: int) -> None:
            rows = slice(start, start + _BLOCK)
            for part in np.ndindex(parts, SEQUENCES):
                into = weights[part][rows], squares[part][rows]
                add = partial(_kernels.squares_of_pool, self._cells_of[part], self._answers_of[part])
                add(factors[rows], tables[rows], bases[rows], *into, "")

        in_threads(block, range(0, n, _BLOCK))
        weights, squares = weights.sum(axis=0), squares.sum(axis=0)
        total, square = weights.sum(axis=0).T
        enough = _enough(total, square)
        total, square = (np.where(enough, numbers, 1.0)[:, None] for numbers in (total, square))
        first, second, fourth = np.moveaxis(squares.sum(axis=0), 2, 0)
        mean = first / total
        # Σ w² (r² - mean)²
        spread = np.maximum(fourth - 2.0 * mean * second + mean**2 * square, 0.0)
        of_sequences = squares[..., 0] - mean * weights[..., :1]
        sandwich = SandwichVariance(
            spread[:, None],
            np.full((n, 1, k), np.inf),
            between_sequences(of_sequences, axis=0)[:, None],
            SEQUENCES,
        )
        variance = sandwich.seen(np.maximum(sandwich.variance_reduction, _LEAST_REDUCTION))[:, 0]
        return mean, np.sqrt(variance) / total, enough


def _enough(total: Floats, squares: Floats) -> Any:
    """Whether the effective number of rows is enough, given sums of weights and of their squares."""
    return total**2 >= _ENOUGH * np.maximum(squares, np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class OneHotFit:
    """Effects of all cells, fitted to rows of w with known cells, given their masses (p_j,)."""

    rows: WeightedRows
    masses: list[Floats]
    unseen: UnseenAnswers | None = None  # of a model that was sampled

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
    def _fit(self) -> _Fit:
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
        influence = np.asarray(np.linalg.solve(weighted.T @ x, weighted.T), dtype=np.float64)
        coef = np.asarray(influence @ self.rows.f, dtype=np.float64)
        residuals = np.asarray(self.rows.f - x @ coef, dtype=np.float64)
        errors = self.rows.clusters.bias_reduced(residuals, x, influence)
        # of each column
        parts = [slice(1 + first, 1 + last) for first, last in pairwise(_starts(self._free))]
        return _Fit([coef[part] for part in parts], [influence[part] for part in parts], residuals, errors)

    @property
    def residuals(self) -> Floats:
        return self._fit.residuals

    @cached_property
    def _moved(self) -> tuple[Floats, SandwichVariance]:
        """Standard errors of the effects of all cells, (cells, k), and their variances."""
        pairs = zip(self._basis, self._fit.influence, strict=True)
        moved = np.concatenate([values @ influence for (_, values), influence in pairs])
        return self.rows.errors(moved, self._fit.errors, self.unseen)

    def effects(self) -> tuple[list[Floats], list[Floats]]:
        """Effects of each column's cells (p_j, k) and their errors; NaN and inf in cells with few rows."""
        errors = np.split(self._moved[0], _starts(self.masses)[1:-1])
        values = [values @ coef for (_, values), coef in zip(self._basis, self._fit.coef, strict=True)]
        visible = [each[:, None] for each in self._visible]
        return (
            [np.where(seen, each, np.nan) for seen, each in zip(visible, values, strict=True)],
            [np.where(seen, each, np.inf) for seen, each in zip(visible, errors, strict=True)],
        )

    def additive(self) -> AdditiveEstimate:
        """Return what the effects explain of Var_w f, corrected for noise."""
        fit, rows = self._fit, self.rows
        gram = [
            values.T @ (values * q[:, None]) for (_, values), q in zip(self._basis, self.masses, strict=True)
        ]
        parts = list(zip(gram, fit.coef, fit.influence, strict=True))
        # noise of the coefficients raises the variance between cells, and lowers that of the rest
        noise, second = np.stack([self._noise(j, g, moved) for j, (g, _, moved) in enumerate(parts)], axis=1)
        each = np.stack([(theta * (g @ theta)).sum(axis=0) for g, theta, _ in parts]) - noise
        between = np.maximum(each.sum(axis=0), 0.0)
        rest = rows.weights @ fit.residuals**2 + noise.sum(axis=0)
        total = np.where(between + rest > 0, between + rest, 1.0)
        scatter = rows.weights[:, None] * (fit.residuals**2 - rest)
        slopes = np.stack([2.0 * (fit.errors * ((g @ theta).T @ moved).T) for g, theta, moved in parts])
        slope, one = slopes.sum(axis=0), np.ones((1, len(rows.f)))
        # what rows move the total by, and each share of it
        grown = slope + scatter
        of_each = [
            rows.errors(one, (moved - share * grown) / total)[0][0]
            for moved, share in zip(slopes, each / total, strict=True)
        ]
        error, second = rows.errors(one, (slope - between / total * grown) / total)[0][0], second / total**2
        heavy = False if self.unseen is None else self.unseen.statistics.heavy
        few = rows.few_decide((rows.f - rows.weights @ rows.f) ** 2, heavy)
        return AdditiveEstimate(
            between,
            rest,
            np.where(few, np.inf, np.sqrt(error**2 + second.sum(axis=0))),
            np.where(few, np.inf, rows.errors(one, grown)[0][0]),
            np.maximum(each, 0.0),
            np.sqrt(np.stack(of_each) ** 2 + second),
        )

    def _noise(self, j: int, gram: Floats, influence: Floats) -> tuple[Floats, Floats]:
        """Get what errors of column j's coefficients add to the variance between cells, and its variance."""
        sandwich, first = self._moved[1], _starts(self.masses)
        cells, q = slice(first[j], first[j + 1]), self.masses[j]
        within = q @ sandwich.within[cells]
        # sequences change it by as much as that of the cells' effects
        seen = q @ sandwich.seen(sandwich.variance_reduction)[cells]
        factor = np.divide(seen, within, out=np.ones_like(within), where=within > 0)
        noise, second = np.zeros((2, within.size))
        for k, error in enumerate(self._fit.errors.T):
            moved = influence * error
            spread = gram @ (moved @ moved.T) * factor[k]
            noise[k], second[k] = np.trace(spread), 2.0 * (spread * spread.T).sum()
        return noise, second


class _Fit(NamedTuple):
    coef: list[Floats]  # of each column, (r, k)
    influence: list[Floats]  # of the rows on them, (r, m)
    residuals: Floats  # (m, k)
    errors: Floats  # residuals, enlarged by what the fit took from them


class AdditiveEstimate(NamedTuple):
    """The part of Var_w f = between + rest that effects of columns explain."""

    between: Floats  # (k,)
    rest: Floats
    error: Floats  # of their share, infinite where few rows decide it
    total_error: Floats  # of Var_w f
    each: Floats  # by each column, (d, k)
    share_errors: Floats  # (d, k)


def _starts(parts: Sequence[Floats | Ints]) -> Ints:
    """Where each of several arrays starts in their concatenation, and its end."""
    return np.cumsum([0, *(len(part) for part in parts)])


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


class Total(NamedTuple):
    """Var_w f, and its standard error, (k,) each: what shares are divided by."""

    value: Floats
    error: Floats

    def share(self, explained: Floats, error: Floats | float = 0.0) -> tuple[Floats, Floats]:
        """A part of it with its error as a share, and the share's error; NaN where it is unknown."""
        share, unknown = explained / self.value, np.isinf(self.error)
        error = np.hypot(error, share * np.where(unknown, 0.0, self.error)) / self.value
        error = np.where(unknown, np.inf, error)
        return np.where(np.isinf(error), np.nan, share), error


def exact_pair(
    columns: tuple[int, int], values: Floats, masses: Sequence[Floats], total: Total
) -> PairEffect:
    """Exact effects (p, q, k) of a pair, which explain a part of Var_w f (k,)."""
    both = np.multiply.outer(*masses)
    explained = np.tensordot(both, values**2, axes=2)
    return PairEffect(columns, values, np.zeros_like(values), both, *total.share(explained))


def pair_estimate(
    rows: WeightedRows,
    residuals: Floats,
    masses: tuple[Floats, Floats],
    columns: tuple[int, int],
    total: Total,
    unseen: UnseenAnswers | None = None,
) -> PairEffect:
    """Estimate the effects of pairs of cells: centred means of the residuals (m, k) of columns' effects."""
    assert rows.cells is not None  # noqa: S101 - rows of tables have cells
    (p, q), (first, second) = (mass.size for mass in masses), (rows.cells[j] for j in columns)
    means, variances = _means_of_cells(rows, first.astype(np.int64) * q + second, p * q, residuals, unseen)
    means, variances = means.reshape(p, q, -1), variances.reshape(p, q, -1)
    both, blind = np.multiply.outer(*masses), np.isnan(means)
    # a mean that no row shows is no larger than the range of the answers
    reach = np.ptp(rows.f, axis=0) if unseen is None else unseen.reach
    bounded = np.where(np.isinf(reach), 0.0, reach)
    spread = np.where(blind, bounded**2, variances)
    # the parts of either cell alone are taken off: squares of these projections
    off = [(np.eye(mass.size) - mass) ** 2 for mass in masses]
    errors = np.sqrt(np.einsum("ab,bck,dc->adk", off[0], spread, off[1]))
    # nothing bounds what rows are missed where all answers are alike
    boundless = blind.any(axis=(0, 1)) & np.isinf(reach)
    values, errors = centred(np.nan_to_num(means), *masses), np.where(blind | boundless, np.inf, errors)
    hidden = np.where(
        boundless, np.inf, (both[:, :, None] * np.where(blind, bounded**2, 0.0)).sum(axis=(0, 1))
    )
    values = np.where(blind, np.nan, values)
    return _noisy_pair(columns, values, errors, both, total, hidden)


def _means_of_cells(
    rows: WeightedRows, cells: Ints, count: int, f: Floats, unseen: UnseenAnswers | None
) -> tuple[Floats, Floats]:
    """Weighted means of f (m, k), whose mean is 0, in each cell, and their variances, (count, k) each.

    Where too few rows lie in a cell they are NaN.
    """

    def sums(values: Floats, cells: Ints = cells, count: int = count) -> Floats:
        return np.stack([np.bincount(cells, column, count) for column in values.T], axis=1)

    weights = rows.weights
    masses, squares = sums(np.stack([weights, weights**2], axis=1)).T
    enough, safe = masses**2 > _FEWEST * squares, np.where(masses > 0, masses, 1.0)[:, None]
    means = sums(weights[:, None] * f) / safe
    away = f - means[cells]
    moved = weights[:, None] / safe[cells] * away
    squared = moved**2
    within, fourth = sums(squared), sums(squared**2)
    effective = np.divide(within**2, fourth, out=np.full_like(within, np.inf), where=fourth > 0)
    between, parts = None, 1
    if rows.sequences is not None:
        parts = int(rows.sequences.max()) + 1
        each = sums(moved, cells + count * rows.sequences, count * parts).reshape(parts, count, -1)
        between = between_sequences(each, axis=0)
    sandwich, least = SandwichVariance(within, effective, between, parts), np.zeros_like(within)
    if unseen is not None:
        n = np.maximum(np.bincount(cells, minlength=count), 1)
        rare = sums((np.abs(away) > ROUNDING * np.abs(rows.f).max(axis=0)).astype(np.float64))
        least = rare_variances(squares / safe[:, 0] ** 2 / n, rare, unseen.reach)
    variances = sandwich.variances(sandwich.variance_reduction, least)
    return np.where(enough[:, None], means, np.nan), variances


def _noisy_pair(
    columns: tuple[int, int],
    values: Floats,
    errors: Floats,
    masses: Floats,
    total: Total,
    hidden: Floats | float = 0.0,
) -> PairEffect:
    """A pair of estimated effects (p, q, k), whose squares are too large by those of their errors.

    Cells without rows may explain up to ``hidden`` (k,) beyond.
    """
    both, noise = masses[:, :, None], np.where(np.isfinite(errors), errors, 0.0)
    seen = np.nan_to_num(values)
    explained = (both * (seen**2 - noise**2)).sum(axis=(0, 1))
    error = np.sqrt(((2.0 * both * seen * noise) ** 2 + 2.0 * (both * noise**2) ** 2).sum(axis=(0, 1)))
    share = total.share(np.maximum(explained, 0.0), error + hidden)
    return PairEffect(columns, values, errors, masses, *share)


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

    @cached_property
    def _total(self) -> Total:
        away = self.weights[:, None] * (self._centred**2 - self.weights @ self._centred**2)
        return Total(self._variance, np.sqrt((away**2).sum(axis=0)))

    def column(self, j: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Effects and their errors (p, k), masses (p,), and the share of Var_w f and its error (k,)."""
        means, errors, masses = _cell_means(
            self.weights, self.cells[:, j], self.counts[j], self._centred, self._centred
        )
        seen, noise = np.nan_to_num(means), np.where(np.isfinite(errors), errors, 0.0)
        error = np.sqrt(((2.0 * masses[:, None] * seen * noise) ** 2).sum(axis=0))
        return means, errors, masses, *self._total.share(masses @ seen**2, error)

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
        return _noisy_pair((i, j), values, errors, masses.reshape(p, q), self._total)


def largest_pairs(
    rows: WeightedRows,
    rest: Floats,
    masses: Floats,
    top: int,
    features: Sequence[int],
    total: Total,
    *,
    exact: bool,
    error_of: Callable[[Floats], Floats] | None = None,
) -> Sequence[PairEffect]:
    """The ``top`` pairs of words or superpixels that explain most of one output, largest first.

    ``rest`` (m,) are the residuals of least squares on rows of w, ``masses`` (2, 2) is the law of two
    features, ``total`` Var_w f, and ``exact`` states whether the rows are all states of the design.
    ``error_of`` is that of a sum of residuals by weights (m,), (1,), where rows do not tell it.
    """
    if exact:
        error_of = _no_error
    every = (rows.h * (rows.weights * rest)) @ rows.h.T
    first, second = np.array(list(combinations(features, 2))).T
    order = np.argsort(-np.abs(every[first, second]), kind="stable")[: 4 * top]
    pairs = [
        _switch_pair(rows, rest, masses, (int(first[o]), int(second[o])), total, error_of) for o in order
    ]
    return sorted(pairs, key=lambda pair: -pair.share[0])[:top]


def _no_error(weights: Floats) -> Floats:  # noqa: ARG001 - of any
    return np.zeros(1)


def _switch_pair(
    rows: WeightedRows,
    rest: Floats,
    masses: Floats,
    columns: tuple[int, int],
    total: Total,
    error_of: Callable[[Floats], Floats] | None,
) -> PairEffect:
    one, other = (rows.h[j] for j in columns)
    both, alpha = masses[1, 1], masses[1].sum()
    # least squares of z_j z_k on 1, z_j and z_k, by symmetry
    variance, covariance = alpha * (1.0 - alpha), both - alpha**2
    slope = both * (1.0 - alpha) / (variance + covariance) if variance + covariance > 0 else 0.0
    beside = one * other - both - slope * (one + other - 2.0 * alpha)
    weights = rows.weights * beside
    influence = (weights * rest)[:, None]
    size = influence.sum(axis=0)
    error = rows.error(influence) if error_of is None else error_of(weights)
    inverse = np.divide(1.0, masses, out=np.zeros((2, 2)), where=masses > 0)
    factor = inverse.sum()
    squares = np.sqrt((2.0 * size * error) ** 2 + 2.0 * error**4) * factor
    return PairEffect(
        columns,
        (np.array([[1.0, -1.0], [-1.0, 1.0]]) * inverse)[:, :, None] * size,
        inverse[:, :, None] * error,
        masses,
        *total.share(np.maximum(size**2 - error**2, 0.0) * factor, squares),
    )
