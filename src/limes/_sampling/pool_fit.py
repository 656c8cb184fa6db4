r"""Weighted least squares on the rows of a pool, for a block of explained rows: the sums are compiled.

Under bin weights an explained row is its cells: with z_j = 1 where a pool's row lies in the explained row's
cell of column j, and t the weight of a changed cell, a pool's row i weighs

    w_i = t^#{j: z_ij = 0} / E t^#{j: z_j = 0}.

With features a = (1, z - α) and residuals r = f - (g - L) of a control variate (``least_squares.py``)

    b = (Σ_i w_i a_i a_iᵀ)⁻¹ Σ_i w_i a_i r_i.

In standard errors Σ is the exact one, which is diagonal: row i with residual e_i moves b_j by
w_i e_i / n · (z_ij - α_j) / v_j. The last factor has two values, one inside the cell and one outside.
Standard errors therefore need only sums over the rows inside each cell and over all rows: of c = w e / n, of
its powers, and of its products with other columns. Two compiled passes over the pool make all sums of a row
(``kernels/pool.h``, ``kernels/pool_errors.h``), separately and in one order: they are the same to the last
bit whatever the other rows, and however many cores.

*Many columns.* Normal equations of d columns take d² sums a row, and need more answers than coefficients.
From 1,024 columns on each coefficient is a sum by itself, with Σ the exact one in the fit as well:

    b_j = β_j(g) + Σ_i w_i (z_ij - α_j) (f_i - g_i - m) / (n v_j),    m = Σ_i w_i (f_i - g_i) / Σ_i w_i.

What the control leaves of other columns is then noise in b_j, and counts in its error.

Arrays have an axis of explained rows first, then the features, intercept first, then the outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limes import _kernels
from limes._arrays import Floats, Ints
from limes._sampling.least_squares import (
    MIN_CHANGED_ROWS,
    SEPARATE,
    AnswerStatistics,
    ControlMoments,
    FeatureSupport,
    LeastSquares,
    SandwichVariance,
    between_sequences,
    r_squared_errors,
    rare_variances,
    simulated_errors,
    variance_is_known,
)
from limes.designs._product import FeatureTable, ProductDesign, ProductFamily
from limes.designs._weights import BinWeights

# Number of cells that a byte can distinguish
_BYTE = 256
# Cells as bytes, unless a column has more cells than a byte can distinguish
CellCodes: TypeAlias = NDArray[np.unsignedinteger[Any]]


def cell_codes(family: ProductFamily, cells: Ints) -> CellCodes:
    """Return cells as bytes, where these can distinguish a column's cells."""
    return cells.astype(np.uint8) if family.widest <= _BYTE else cells.astype(np.uint32)


def changed_weight(family: ProductFamily) -> float:
    """t, the weight of a changed cell."""
    assert isinstance(family.weights, BinWeights)  # noqa: S101 - true of all families that are by_cell
    return family.weights.ratio


@dataclass(frozen=True, eq=False)
class ExplainedRows:
    """Explained rows of one background, by their cells (n, d)."""

    family: ProductFamily
    cells: Ints

    def __len__(self) -> int:
        return len(self.cells)

    @cached_property
    def features(self) -> FeatureTable:
        return self.family.features(self.cells)

    @cached_property
    def codes(self) -> CellCodes:
        return np.ascontiguousarray(cell_codes(self.family, self.cells))

    @cached_property
    def weights(self) -> Floats:
        """Weights w of a pool's row, by the number of columns that match: (n, 1 + d)."""
        d = self.cells.shape[1]
        powers = np.float64(changed_weight(self.family)) ** np.arange(d, -1, -1)
        return np.asarray(powers / np.exp(self.features.log_weight)[:, None])

    def designs(self) -> list[ProductDesign]:
        return [self.family.of_cells(cells) for cells in self.cells]

    def sums(self, cells: CellCodes, values: Floats, parts: int) -> Floats:
        """Σ_i w_i z_ij v_iq over equal parts of a pool's rows, given cells (d, m): (n, parts, 1 + d, q)."""
        return self.weighted_sums(self.weights, cells, values, parts)

    def weighted_sums(self, weights: Floats, cells: CellCodes, values: Floats, parts: int) -> Floats:
        """The same with other weights w, by the number of columns that match, (n, 1 + d)."""
        sums = np.empty((len(self), parts, 1 + len(cells), values.shape[1]))
        _kernels.pool_sums(cells, self.codes, weights, np.ascontiguousarray(values), sums)
        return sums


@dataclass(frozen=True, eq=False)
class CellMoments:
    """Moments of a sum of effects of cells around rows in each cell of a column, (d, widest, k)."""

    mean: Floats  # E_w of a column's effect
    contrast: Floats  # the effect's mean inside the explained row's cell less that outside it

    @classmethod
    def of(cls, family: ProductFamily, effects: Sequence[Floats]) -> CellMoments:
        ratio, widest = changed_weight(family), max(len(column) for column in effects)
        mean, contrast = np.zeros((2, len(effects), widest, effects[0].shape[1]))
        for j, (law, effect) in enumerate(zip(family.marginals, effects, strict=True)):
            p = np.exp(law.log_mass)[:, None]
            others, rest = (_without_each(column) for column in (p, p * effect))
            mean[j, : len(p)] = (p * effect + ratio * rest) / (p + ratio * others)
            outside = np.divide(rest, others, out=effect.astype(np.float64), where=others > 0)
            contrast[j, : len(p)] = effect - outside
        return cls(mean, contrast)

    def at(self, cells: Ints) -> tuple[Floats, Floats]:
        """E_w g (n, k) and β (n, d, k) of the sum g around rows with these cells (n, d)."""
        columns = np.arange(cells.shape[1])
        return self.mean[columns, cells].sum(axis=1), self.contrast[columns, cells]


def _without_each(values: Floats) -> Floats:
    """Sums of all entries (n, k) but each in turn; a difference from the total would lose digits."""
    zero = np.zeros((1, values.shape[1]))
    before = np.concatenate([zero, np.cumsum(values[:-1], axis=0)])
    after = np.concatenate([np.cumsum(values[:0:-1], axis=0)[::-1], zero])
    return np.asarray(before + after)


# -- least squares -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PoolSample:
    """Rows of a pool, equal sequences one after the other: answers f, and residuals f - g of a control."""

    cells: CellCodes  # (d, n)
    answers: Floats  # (n, k)
    residuals: Floats  # (n, k)
    n_sequences: int

    def __len__(self) -> int:
        return len(self.answers)

    @cached_property
    def statistics(self) -> AnswerStatistics:
        return AnswerStatistics.from_rows(self.answers)

    @cached_property
    def values(self) -> Floats:
        """Residuals and answers, (n, 2 k)."""
        return np.hstack([self.residuals, self.answers])


def least_squares_of_pool(
    sample: PoolSample, rows: ExplainedRows, controls: Sequence[ControlMoments], predictions: Floats | None
) -> LeastSquares:
    """Fit the residuals of controls, one for each equal part of the sample's rows, around n explained rows.

    ``predictions`` (n, k) are the model's at the explained rows, if available.
    """
    normal = NormalEquations.of(sample, rows, len(controls))
    support, features, statistics = normal.support, rows.features, sample.statistics
    live = np.insert(support.used, 0, True, axis=1)[:, :, None]
    linear = [np.concatenate([its.mean[:, None], its.coef], axis=1) * live for its in controls]
    fitted, uncontrolled = normal.solve(np.stack(linear, axis=1))
    sums = _ErrorSums.of(normal, np.stack(linear, axis=1), fitted, uncontrolled)
    simulated, sandwich = simulated_errors(controls) * live, sums.sandwich
    coef = np.where(support.used[..., None], fitted[:, 1:], np.mean([its.coef for its in controls], axis=0))
    coef[features.variance == 0] = 0.0
    gamma = features.gamma(coef)
    explained, variance = (coef * gamma).sum(axis=1), sums.totals["mean_square"]
    variance = variance if normal.is_separate else explained + variance
    noise = np.where(support.used, features.variance, 0.0)[..., None] * (
        sandwich.seen(sandwich.variance_reduction)[:, 1:] + simulated[:, 1:] ** 2
    )
    reach = np.broadcast_to(statistics.reach_around(predictions), fitted[:, 0].shape)
    reach = np.where(reach > 0, reach, np.inf)
    variances = sandwich.variances(sandwich.variance_reduction, sums.least_variances(reach))[:, 1:]
    live_gamma = np.where(support.used[..., None], gamma, 0.0)
    first = sums.share_variances(coef, live_gamma, explained, variance)
    fidelity, shares = r_squared_errors(*first, live_gamma, variance, simulated[:, 1:], noise)
    # answers that are all the same show nothing of the fit
    blind = (statistics.n_unlike == 0) & np.asarray(support.used.any(axis=1))[:, None]
    # nor do few answers that decide Var_w f
    number = _number(variance, sums.squared_variance, empty=np.inf)
    blind |= (variance > 0) & ~variance_is_known(number, statistics.heavy)
    return LeastSquares(
        mean=fitted[:, 0],
        coef=coef,
        gamma=gamma,
        coef_errors=support.coef_errors(variances, simulated[:, 1:]),
        variance=variance,
        surrogate_errors=support.surrogate_errors(features, sums.variance_at_row(reach), simulated),
        fidelity_errors=np.where(blind, np.inf, fidelity),
        share_errors=np.where(support.used[..., None], shares, np.nan),
        noise=noise,
        n_unlike=statistics.n_unlike,
        effective_clusters=support.effective_clusters(
            sandwich.effective[:, 1:], sums.effective_of_answers[:, 1:]
        ),
        effective=normal.effective,
        answers_differ=support.answers_differ(statistics.n_unlike),
    )


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Normal equations of explained rows, in each equal part of a sample's rows."""

    sample: PoolSample
    rows: ExplainedRows
    gram: Floats | None  # Σ_i w_i z_i z_iᵀ, (rows, parts, 1 + d, 1 + d); None of many columns
    totals: Floats  # Σ_i w_i z_i, (rows, parts, 1 + d)
    squares: Floats  # Σ_i w_i² z_i over all parts, (rows, 1 + d)
    numbers: Floats  # Σ_i z_i over all parts, (rows, 1 + d)
    sums: Floats  # Σ_i w_i z_i y_i for residuals and answers y, (rows, parts, 1 + d, 2 k)

    @classmethod
    def of(cls, sample: PoolSample, rows: ExplainedRows, parts: int) -> NormalEquations:
        n, size, cells = len(rows), 1 + len(sample.cells), sample.cells
        sums = rows.sums(cells, sample.values, parts)
        if size - 1 < SEPARATE:
            gram, squares, numbers = np.empty((n, parts, size, size)), *np.empty((2, n, size))
            _kernels.pool_gram(cells, rows.codes, rows.weights, gram, squares, numbers)
            return cls(sample, rows, gram, gram[:, :, 0], squares, numbers, sums)
        one, weights = np.ones((len(sample), 1)), rows.weights
        totals = rows.weighted_sums(weights, cells, one, parts)[..., 0]
        squares, numbers = (
            rows.weighted_sums(its, cells, one, 1)[:, 0, :, 0] for its in (weights**2, np.ones_like(weights))
        )
        return cls(sample, rows, None, totals, squares, numbers, sums)

    @property
    def is_separate(self) -> bool:
        """Whether each coefficient is fitted by itself."""
        return self.gram is None

    @property
    def effective(self) -> Floats:
        return np.asarray(self.totals[:, :, 0].sum(axis=1) ** 2 / self.squares[:, 0])

    @cached_property
    def support(self) -> FeatureSupport:
        """Effective rows inside or outside each column's cell, whichever are fewer, (n, d)."""
        totals, varies = self.totals.sum(axis=1), self.rows.features.variance > 0
        inside, outside = (_number(side(totals), side(self.squares)) for side in (_inside, _outside))
        numbers = np.minimum(inside, outside)
        used = varies & (numbers >= MIN_CHANGED_ROWS)
        return FeatureSupport(numbers, used, varies & ~used)

    @cached_property
    def column(self) -> tuple[Floats, Floats]:
        """α and v of columns, (n, d); v is infinite where a column is not fitted."""
        features = self.rows.features
        return features.inclusion, np.where(self.support.used, features.variance, np.inf)

    def solve(self, linear: Floats) -> tuple[Floats, Floats]:
        """Weighted least squares of residuals and of answers on (1, z - α), (n, 1 + d, k) each.

        Linear parts (n, parts, 1 + d, k) of the controls are added to the residuals. Coefficients of columns
        that are not fitted are 0.
        """
        if self.gram is None:
            return self._each_by_itself(linear)
        alpha, k = self.rows.features.inclusion[:, None, :, None], linear.shape[3]
        live = np.insert(self.support.used, 0, True, axis=1)
        gram, moments = self.gram.copy(), self.sums.copy()
        gram[:, :, 1:] -= alpha * gram[:, :, :1]
        gram[:, :, :, 1:] -= alpha[..., 0][:, :, None] * gram[:, :, :, :1]
        moments[:, :, 1:] -= alpha * moments[:, :, :1]
        gram *= (live[:, :, None] & live[:, None, :])[:, None]
        moments[..., :k] += gram @ linear
        moments *= live[:, None, :, None]
        whole = gram.sum(axis=1) + np.eye(live.shape[1]) * ~live[:, None]
        solution = np.asarray(np.linalg.solve(whole, moments.sum(axis=1)), dtype=np.float64)
        return solution[..., :k], solution[..., k:]

    def _each_by_itself(self, linear: Floats) -> tuple[Floats, Floats]:
        (alpha, v), k = self.column, linear.shape[3]
        sums, totals = self.sums.sum(axis=1), self.totals.sum(axis=1)[..., None]
        mean = sums[:, :1] / totals[:, :1]
        moved = sums[:, 1:] - mean * totals[:, 1:] - alpha[..., None] * (sums[:, :1] - mean * totals[:, :1])
        solution = np.concatenate([mean, moved / (len(self.sample) * v[..., None])], axis=1)
        return solution[..., :k] + linear.mean(axis=1), solution[..., k:]

    def typical(self) -> tuple[Floats, Floats, Floats]:
        """Mean square of a row's influence on the intercept, and on coefficients, inside and outside cells.

        Influences are w / n and w (z - α) / (n v); (rows, 1), (rows, d) and (rows, d).
        """
        (alpha, v), n = self.column, len(self.sample)
        inside = _inside(self.squares) / np.maximum(_inside(self.numbers), 1)
        outside = _outside(self.squares) / np.maximum(_outside(self.numbers), 1)
        return (
            self.squares[:, :1] / n**3,
            inside * ((1.0 - alpha) / (n * v)) ** 2,
            outside * (alpha / (n * v)) ** 2,
        )


def _numbers(names: str) -> np.dtype[Any]:
    return np.dtype([(name, np.float64) for name in names.split()])


# Sums in the order and the notation of ``kernels/pool_errors.h``. Over the rows of a column: c², c⁴, o², o⁴,
# c (A + B), and numbers of rows whose answer and e differ from the usual ones, and whose e is not negligible
_COLUMN_SUMS = _numbers("squared fourth other_squared other_fourth moved_grown differs unexplained")
# Over all rows: the mean square of the surrogate's residuals, A², A B, B²; g² and g⁴; and numbers of rows as
# above, on either side of the influence on the surrogate
_TOTALS = _numbers(
    "mean_square explained mixed scattered within fourth "
    "differs_above differs_below unexplained_above unexplained_below"
)


@dataclass(frozen=True, eq=False)
class _ErrorSums:
    normal: NormalEquations
    columns: NDArray[Any]  # `_COLUMN_SUMS`, (n, 1 + d, k)
    totals: NDArray[Any]  # `_TOTALS`, (n, k)
    moved: Floats  # c over each sequence, and what moves the surrogate at the row, (n, sequences, 2 + d, k)
    sides: Floats  # rows, and their squared influences on the surrogate, above and below 0, (n, 4)

    @classmethod
    def of(cls, normal: NormalEquations, linear: Floats, fitted: Floats, uncontrolled: Floats) -> _ErrorSums:
        """Add up, given linear parts (n, parts, 1 + d, k) of controls, and coefficients (n, 1 + d, k)."""
        sample, rows, used = normal.sample, normal.rows, normal.support.used
        (alpha, v), statistics = normal.column, sample.statistics
        n, parts, size, k = linear.shape
        # leverage w (1 + Σ_j (z_j - α_j)² / v_j) / n is a function a · coef too
        odds = np.where(used, alpha / (1.0 - np.where(used, alpha, 0.0)), 1.0)
        leverage = np.column_stack([1.0 + used.sum(axis=1), 1.0 / odds - odds])
        steps = np.column_stack([np.ones(n), rows.features.departure / v])
        surrogates = np.empty((n, k, parts, size, 5))
        rest = fitted[:, None] - linear
        if normal.is_separate:
            # other columns are not fitted: they are noise of a coefficient, and no row decides its own fit
            constant = (np.arange(size) == 0)[:, None]
            rest, uncontrolled, leverage = rest * constant, uncontrolled * constant, np.zeros_like(leverage)
        surrogates[..., 0] = rest.transpose(0, 3, 1, 2)
        surrogates[..., 1], surrogates[..., 2] = (
            values.transpose(0, 2, 1)[:, :, None] for values in (uncontrolled, fitted)
        )
        surrogates[..., 3], surrogates[..., 4] = leverage[:, None, None], steps[:, None, None]
        # intercepts for z in place of z - α
        surrogates[..., 0, :] -= (alpha[:, None, None, :, None] * surrogates[..., 1:, :]).sum(axis=3)
        columns, totals = np.empty((n, k, size), _COLUMN_SUMS), np.empty((n, k), _TOTALS)
        moved, sides = np.empty((n, k, sample.n_sequences, 1 + size)), np.empty((n, 4))
        _kernels.pool_errors(
            sample.cells,
            rows.codes,
            rows.weights / len(sample),
            sample.answers,
            sample.residuals,
            statistics.differs.view(np.uint8),
            np.stack([statistics.rounding, statistics.negligible]),
            surrogates,
            np.ascontiguousarray(fitted[:, 0]),
            columns.view(np.float64).reshape(n, k, size, -1),
            moved,
            totals.view(np.float64).reshape(n, k, -1),
            sides,
            normal.is_separate,
        )
        return cls(normal, columns.swapaxes(1, 2), totals, moved.transpose(0, 2, 3, 1), sides)

    @cached_property
    def sandwich(self) -> SandwichVariance:
        """Variances of intercept and coefficients; row i contributes c_i and c_i (z_ij - α_j) / v_j."""
        within = self._powered("squared", 2)
        effective = _number(within, self._powered("fourth", 4), empty=np.inf)
        (alpha, v), total = self.normal.column, self.moved[:, :, :1]
        columns = (self.moved[:, :, 1:-1] - alpha[:, None, :, None] * total) / v[:, None, :, None]
        between = between_sequences(np.concatenate([total, columns], axis=2), axis=1)
        return SandwichVariance(within, effective, between, self.normal.sample.n_sequences)

    @property
    def effective_of_answers(self) -> Floats:
        """Effective clusters behind errors of coefficients without a control, (n, 1 + d, k)."""
        squares, fourths = self._powered("other_squared", 2), self._powered("other_fourth", 4)
        return _number(squares, fourths, empty=np.inf)

    def _powered(self, name: str, power: int) -> Floats:
        """Σ_i |c_i s_ij|^power from the sums of |c|^power, s = 1 and (z - α) / v: (n, 1 + d, k)."""
        (alpha, v), sums = (a[..., None] for a in self.normal.column), self.columns[name]
        columns = ((1.0 - alpha) / v) ** power * _inside(sums) + (alpha / v) ** power * _outside(sums)
        return np.concatenate([sums[:, :1], columns], axis=1)

    def least_variances(self, reach: Floats) -> Floats:
        """Least variances that unseen answers add to the intercept and the coefficients, (n, 1 + d, k)."""
        whole, inside, outside = self.normal.typical()

        def least(rare: Floats, size: Floats) -> Floats:
            columns = rare_variances(inside, _inside(rare), size)
            columns = columns + rare_variances(outside, _outside(rare), size)
            return np.concatenate([rare_variances(whole, rare[:, :1], size), columns], axis=1)

        std = self.normal.sample.statistics.std
        return np.maximum(least(self.columns["differs"], reach), least(self.columns["unexplained"], std))

    def variance_at_row(self, reach: Floats) -> Floats:
        """Variance of the surrogate at the explained rows, (n, k)."""
        totals, n_sequences = self.totals, self.normal.sample.n_sequences
        effective = _number(totals["within"], totals["fourth"], empty=np.inf)
        between = between_sequences(self.moved[:, :, -1], axis=1)
        within, effective, between = (v[:, None] for v in (totals["within"], effective, between))
        typical = self.sides[:, 2:] / np.maximum(self.sides[:, :2], 1.0)

        def least(rare: str, size: Floats) -> Floats:
            sides = np.stack([totals[f"{rare}_above"], totals[f"{rare}_below"]], axis=1)
            return np.asarray(rare_variances(typical, sides, size).sum(axis=1, keepdims=True))

        unseen = np.maximum(least("differs", reach), least("unexplained", self.normal.sample.statistics.std))
        sandwich = SandwichVariance(within, effective, between, n_sequences)
        return sandwich.variances(self.sandwich.variance_reduction, unseen)[:, 0]

    @property
    def squared_variance(self) -> Floats:
        """Squares of what rows add to Var_w f, (n, k)."""
        of_fit = 0.0 if self.normal.is_separate else self.totals["explained"] + 2.0 * self.totals["mixed"]
        return np.asarray(of_fit + self.totals["scattered"])

    def share_variances(
        self, coef: Floats, gamma: Floats, explained: Floats, variance: Floats
    ) -> tuple[Floats, Floats]:
        """Variances of R² (n, k) and of the features' shares of it (n, d, k) by the delta method.

        Row i moves β_j Γ_j by 2 β_j c_i (z_ij - α_j), and their sum by A_i = 2 c_i b · (z_i - α). Var_w f
        moves by A_i + B_i, with B_i the row's part of the residuals' mean square. Where coefficients are
        fitted by themselves, Var_w f moves by B_i alone, the row's part of the answers' mean square.
        """
        alpha, totals = self.normal.column[0][..., None], self.totals
        total = np.where(variance > 0, variance, 1.0)
        sums = self.columns["moved_grown"]
        moved_grown = 2.0 * coef * (_inside(sums) - alpha * sums[:, :1])
        moved_squared = (2.0 * gamma) ** 2 * self.sandwich.within[:, 1:]
        grown_squared = self.squared_variance[:, None]
        share, fidelity = coef * gamma / total[:, None], explained / total
        shares = moved_squared - 2.0 * share * moved_grown + share**2 * grown_squared
        rest = np.ones_like(fidelity) if self.normal.is_separate else 1.0 - fidelity
        change = rest**2 * totals["explained"] - 2.0 * fidelity * rest * totals["mixed"]
        change = change + fidelity**2 * totals["scattered"]
        return change / total / total, shares / total[:, None] / total[:, None]


def _inside(sums: Floats) -> Floats:
    """Sums over the rows inside the cell of each column, from those of all features."""
    return sums[:, 1:]


def _outside(sums: Floats) -> Floats:
    return sums[:, :1] - sums[:, 1:]


def _number(total: Floats, squares: Floats, *, empty: float = 0.0) -> Floats:
    """Effective number of terms, (Σ s)² / Σ s², given both sums; ``empty`` where there is no term."""
    return np.divide(total**2, squares, out=np.full_like(total, empty), where=squares > 0)
