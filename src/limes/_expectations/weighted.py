r"""Weighted least squares on a pool's rows: the moments of explained rows, with standard errors.

A pool's row i has the weight w_i = t^#changed / E t^#changed, by the columns in which its cell is not the
explained row's. With features a = (1, z - α), z_j = 1 where column j lies in the explained row's cell,

    b = (Σ_i w_i a_i a_iᵀ)⁻¹ Σ_i w_i a_i r_i,        r = f - (h - L)

for a control variate h and its linear part L (``estimate.py``). In standard errors Σ is the exact one, which
is diagonal: row i with residual e_i moves b_j by w_i e_i / n · (z_ij - α_j) / v_j. The last factor has two
values, one inside the cell and one outside. Standard errors therefore need only sums over the rows inside
each cell and over all rows: of c = w e / n, of its powers, and of its products with other columns. Two
compiled passes over the pool make all sums of a row (``explained.py``, ``kernels/pool_errors.h``);
``residual.py`` defines the estimators that they go into.

Arrays have an axis of explained rows first, then the features, intercept first, then the outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from limes import _kernels
from limes._arrays import Bools, Floats
from limes._expectations.controls.control import ControlMoments
from limes._expectations.explained import CellCodes, ExplainedRows
from limes._expectations.residual import FEWEST_CHANGED, Quality, SandwichVariance, student_factors
from limes._expectations.rule_of_three import AnswerStatistics, rare_variances


@dataclass(frozen=True, eq=False)
class PoolSample:
    """Rows of a pool with their answers and the residuals of a control.

    Attributes
    ----------
    cells
        (d, n).
    answers, residuals
        f and f - h, (n, k).
    n_sequences
        Number of independent sequences of equal length, which the rows hold one after the other.
    """

    cells: CellCodes
    answers: Floats
    residuals: Floats
    n_sequences: int

    def __len__(self) -> int:
        return len(self.answers)

    @cached_property
    def statistics(self) -> AnswerStatistics:
        """Statistics of the answers, which bound rare ones."""
        return AnswerStatistics.from_rows(self.answers)

    @cached_property
    def values(self) -> Floats:
        """Residuals and answers, (n, 2 k)."""
        return np.hstack([self.residuals, self.answers])


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Normal equations of explained rows, in each equal part of a sample's rows.

    Attributes
    ----------
    gram
        Σ_i w_i z_i z_iᵀ, (rows, parts, 1 + d, 1 + d).
    squares, numbers
        Σ_i w_i² z_i and Σ_i z_i over all parts, (rows, 1 + d).
    sums
        Σ_i w_i z_i y_i for residuals and answers y, (rows, parts, 1 + d, 2 k).
    """

    rows: ExplainedRows
    gram: Floats
    squares: Floats
    numbers: Floats
    sums: Floats

    @classmethod
    def of(cls, sample: PoolSample, rows: ExplainedRows, parts: int) -> NormalEquations:
        """Add up the normal equations."""
        return cls(rows, *rows.gram(sample.cells, parts), rows.sums(sample.cells, sample.values, parts))

    @property
    def effective(self) -> Floats:
        """Effective number of rows, (Σ w)² / Σ w²."""
        return np.asarray(self.gram[:, :, 0, 0].sum(axis=1) ** 2 / self.squares[:, 0])

    @cached_property
    def support(self) -> Floats:
        """Effective number of rows inside or outside each column's cell, whichever is smaller, (n, d)."""
        totals = self.gram[:, :, 0].sum(axis=1)
        inside, outside = (_number(side(totals), side(self.squares)) for side in (_inside, _outside))
        return np.minimum(inside, outside)

    @cached_property
    def used(self) -> Bools:
        """Columns that are fitted, (n, d)."""
        return (self.rows.features.variance > 0) & (self.support >= FEWEST_CHANGED)

    @property
    def unidentified(self) -> Bools:
        """Columns that vary under w, but in too few of the rows that have weight, (n, d)."""
        return (self.rows.features.variance > 0) & ~self.used

    def solve(self, linear: Floats) -> tuple[Floats, Floats]:
        """Weighted least squares of residuals and of answers on (1, z - α), (n, 1 + d, k) each.

        Linear parts (n, parts, 1 + d, k) of the controls are added to the residuals. Coefficients of columns
        that are not fitted are 0.
        """
        alpha, k = self.rows.features.inclusion[:, None, :, None], linear.shape[3]
        live = np.insert(self.used, 0, True, axis=1)
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

    def typical(self, n: int) -> tuple[Floats, Floats, Floats]:
        """Mean square of a row's influence on the intercept, and on coefficients, inside and outside cells.

        Influences are w / n and w (z - α) / (n v); (rows, 1), (rows, d) and (rows, d).
        """
        alpha, v = self.rows.features.inclusion, np.where(self.used, self.rows.features.variance, np.inf)
        inside = _inside(self.squares) / np.maximum(_inside(self.numbers), 1)
        outside = _outside(self.squares) / np.maximum(_outside(self.numbers), 1)
        return (
            self.squares[:, :1] / n**3,
            inside * ((1.0 - alpha) / (n * v)) ** 2,
            outside * (alpha / (n * v)) ** 2,
        )


class _Powers(NamedTuple):
    """Sums over the rows of each column, (n, 1 + d, k): see ``kernels/pool_errors.h``."""

    squared: Floats
    fourth: Floats
    other_squared: Floats
    other_fourth: Floats
    moved_grown: Floats
    differs: Floats
    unexplained: Floats


class _Totals(NamedTuple):
    """Sums over all rows, (n, k); of rows that differ on either side of influence, (n, k) each."""

    mean_square: Floats
    explained: Floats
    mixed: Floats
    scattered: Floats
    within: Floats
    fourth: Floats
    differs_above: Floats
    differs_below: Floats
    unexplained_above: Floats
    unexplained_below: Floats


@dataclass(frozen=True, eq=False)
class WeightedFits:
    """Weighted least squares of a pool's answers for explained rows, with errors.

    Attributes
    ----------
    sample, normal
        The pool's rows, and the normal equations.
    coef
        b, intercept first, (n, 1 + d, k); 0 for columns that are not fitted.
    simulated
        Standard errors of the controls' moments, (n, 1 + d, k).
    reach
        Range that the answers can have, (n, k).
    powers, totals
        Sums over the pool's rows.
    moved
        c over each sequence, (n, sequences, 1 + d, k), and in the end what moves the surrogate at the row.
    sides
        Number of rows, and sum of squared influences on the surrogate, above and below 0: (n, 4).
    """

    sample: PoolSample
    normal: NormalEquations
    coef: Floats
    simulated: Floats
    reach: Floats
    powers: _Powers
    totals: _Totals
    moved: Floats
    sides: Floats

    @classmethod
    def fit(
        cls,
        sample: PoolSample,
        rows: ExplainedRows,
        controls: Sequence[ControlMoments],
        predictions: Floats | None,
    ) -> WeightedFits:
        """Fit the residuals of controls, one for each equal part of the sample's rows.

        ``predictions`` (n, k) are the model's at the explained rows, if available.
        """
        normal = NormalEquations.of(sample, rows, len(controls))
        live = np.insert(normal.used, 0, True, axis=1)[:, :, None]
        linear = [np.concatenate([its.mean[:, None], its.coef], axis=1) * live for its in controls]
        linear_parts = np.stack(linear, axis=1)
        coef, uncontrolled = normal.solve(linear_parts)
        features, k = rows.features, coef.shape[2]
        alpha, v = features.inclusion, np.where(normal.used, features.variance, np.inf)
        # leverage w (1 + Σ_j (z_j - α_j)² / v_j) / n is a function a · coef too
        odds = np.where(normal.used, alpha / (1.0 - np.where(normal.used, alpha, 0.0)), 1.0)
        leverage = np.column_stack([1.0 + normal.used.sum(axis=1), 1.0 / odds - odds])
        steps = np.column_stack([np.ones(len(rows)), features.departure / v])
        fitted = np.empty((len(rows), k, len(controls), live.shape[1], 5))
        fitted[..., 0] = (coef[:, None] - linear_parts).transpose(0, 3, 1, 2)
        fitted[..., 1], fitted[..., 2] = (
            values.transpose(0, 2, 1)[:, :, None] for values in (uncontrolled, coef)
        )
        fitted[..., 3], fitted[..., 4] = leverage[:, None, None], steps[:, None, None]
        # intercepts for z in place of z - α
        fitted[..., 0, :] -= (alpha[:, None, None, :, None] * fitted[..., 1:, :]).sum(axis=3)
        powers, moved, totals, sides = _error_sums(sample, rows, fitted, coef[:, 0])
        squares = np.sum([its.errors**2 for its in controls], axis=0)
        return cls(
            sample,
            normal,
            coef,
            np.sqrt(squares) / len(controls) * live,
            np.broadcast_to(sample.statistics.reach_around(predictions), coef[:, 0].shape),
            _Powers(*powers.transpose(3, 0, 2, 1)),
            _Totals(*totals.transpose(2, 0, 1)),
            moved.transpose(0, 2, 3, 1),
            sides,
        )

    @cached_property
    def _column(self) -> tuple[Floats, Floats]:
        """α and v of columns, (n, d, 1); v is infinite where a column is not fitted."""
        features, used = self.normal.rows.features, self.normal.used
        return features.inclusion[..., None], np.where(used, features.variance, np.inf)[..., None]

    @cached_property
    def _sandwich(self) -> SandwichVariance:
        """Variances of intercept and coefficients; row i contributes c_i and c_i (z_ij - α_j) / v_j."""
        within = self._powered(self.powers.squared, 2)
        effective = _number(within, self._powered(self.powers.fourth, 4), empty=np.inf)
        (alpha, v), total = self._column, self.moved[:, :, :1]
        columns = (self.moved[:, :, 1:-1] - alpha[:, None] * total) / v[:, None]
        between = _between(np.concatenate([total, columns], axis=2))
        return SandwichVariance(within, effective, between, self.sample.n_sequences)

    def _powered(self, sums: Floats, power: int) -> Floats:
        """Σ_i |c_i s_ij|^power from the sums of |c|^power, s = 1 and (z - α) / v: (n, 1 + d, k)."""
        alpha, v = self._column
        inside, outside = _inside(sums), _outside(sums)
        columns = ((1.0 - alpha) / v) ** power * inside + (alpha / v) ** power * outside
        return np.concatenate([sums[:, :1], columns], axis=1)

    @cached_property
    def coef_errors(self) -> Floats:
        """Standard errors of the coefficients, (n, d, k), such that ±1.96 of them is a 95 % interval."""
        used = self.normal.used
        variances = self._sandwich.variances(self._sandwich.variance_reduction, self._least_variances)[:, 1:]
        factors = student_factors(np.where(used, self.normal.support, 2.0) - 1.0)
        errors = np.hypot(np.sqrt(variances) * factors[..., None], self.simulated[:, 1:])
        return np.where(used[..., None], errors, 0.0)

    @property
    def _least_variances(self) -> Floats:
        """Least variances that unseen answers add to the intercept and the coefficients, (n, 1 + d, k)."""
        whole, inside, outside = self.normal.typical(len(self.sample))

        def least(differs: Floats, size: Floats) -> Floats:
            columns = rare_variances(inside, _inside(differs), size)
            columns = columns + rare_variances(outside, _outside(differs), size)
            return np.concatenate([rare_variances(whole, differs[:, :1], size), columns], axis=1)

        differs = least(self.powers.differs, self._reach)
        return np.maximum(differs, least(self.powers.unexplained, self.sample.statistics.std))

    @property
    def _reach(self) -> Floats:
        return np.where(self.reach > 0, self.reach, np.inf)

    @cached_property
    def unlike(self) -> Floats:
        """Number of answers that differ from the most frequent one, (k,)."""
        return np.asarray(self.sample.statistics.differs.sum(axis=0))

    @cached_property
    def answers_differ(self) -> Bools:
        """Whether the answers of every output differ, (n,); without them no coefficient can be estimated."""
        fixed = ~(self.normal.rows.features.variance > 0).any(axis=1)
        return np.asarray(fixed | (self.unlike > 0).all())

    @cached_property
    def carriers(self) -> Floats:
        """Effective number of rows behind a coefficient's error, (n, k): the median over features.

        The smaller number counts, that of the answers or that of the residuals, as in ``residual.py``.
        """
        used = self.normal.used
        residuals = self._sandwich.effective[:, 1:]
        answers = _number(
            self._powered(self.powers.other_squared, 2),
            self._powered(self.powers.other_fourth, 4),
            empty=np.inf,
        )[:, 1:]
        effective = np.where(np.isinf(residuals), np.inf, np.minimum(residuals, answers))
        effective = np.sort(np.where(used[..., None], effective, np.inf), axis=1)
        middle = np.minimum(used.sum(axis=1) // 2, used.shape[1] - 1)
        return np.asarray(effective[np.arange(len(used)), middle])

    def quality(self, coef: Floats) -> Quality:
        """Var_w f, and errors of functions of coefficients (n, d, k); see ``ResidualFit.quality``."""
        features, normal = self.normal.rows.features, self.normal
        gamma = features.gamma(coef)
        variance = (coef * gamma).sum(axis=1) + self.totals.mean_square
        at_row = np.insert(features.departure, 0, 1.0, axis=1)[..., None]
        simulated = (at_row**2 * self.simulated**2).sum(axis=1)
        blind = (normal.unidentified & (features.departure != 0)).any(axis=1)[:, None]
        v = np.where(np.isinf(self._column[1]), 0.0, self._column[1])
        noise = v * (self._sandwich.seen[:, 1:] + self.simulated[:, 1:] ** 2)
        fidelity, shares = self._share_errors(coef, gamma, noise, variance)
        return Quality(
            variance=variance,
            surrogate_errors=np.where(blind, np.inf, np.sqrt(self._variance_at_row() + simulated)),
            fidelity_errors=fidelity,
            share_errors=shares,
            noise=noise,
        )

    def _variance_at_row(self) -> Floats:
        """Variance of the surrogate at the explained rows, (n, k)."""
        its = self.totals
        within, fourth, between = its.within, its.fourth, _between(self.moved[:, :, -1])
        effective = _number(within, fourth, empty=np.inf)
        sandwich = SandwichVariance(
            within[:, None], effective[:, None], between[:, None], self.sample.n_sequences
        )
        typical = self.sides[:, 2:] / np.maximum(self.sides[:, :2], 1.0)

        def least(above: Floats, below: Floats, size: Floats) -> Floats:
            sides = rare_variances(typical, np.stack([above, below], axis=1), size)
            return np.asarray(sides.sum(axis=1, keepdims=True))

        unseen = np.maximum(
            least(its.differs_above, its.differs_below, self._reach),
            least(its.unexplained_above, its.unexplained_below, self.sample.statistics.std),
        )
        return sandwich.variances(self._sandwich.variance_reduction, unseen)[:, 0]

    def _share_errors(
        self, coef: Floats, gamma: Floats, noise: Floats, variance: Floats
    ) -> tuple[Floats, Floats]:
        """Errors of R² (n, k) and of the features' shares of it (n, d, k) by the delta method.

        The second order of the errors of β_j adds 2 ``noise``², with ``noise`` (n, d, k) as in `Quality`.
        Row i moves β_j Γ_j by 2 β_j c_i (z_ij - α_j), and their sum by A_i = 2 c_i b · (z_i - α). Var_w f
        moves by A_i + B_i, with B_i the row's part of the residuals' mean square.
        """
        (alpha, v), its = self._column, self.totals
        explained, mixed, scattered = its.explained, its.mixed, its.scattered
        total = np.where(variance > 0, variance, 1.0)[:, None]
        beta = np.where(self.normal.used[..., None], coef, 0.0)
        length = beta * np.where(np.isinf(v), 0.0, v)
        products = self.powers.moved_grown
        moved_grown = 2.0 * beta * (_inside(products) - alpha * products[:, :1])
        moved_squared = (2.0 * length) ** 2 * self._sandwich.within[:, 1:]
        simulated = (2.0 * length * self.simulated[:, 1:]) ** 2 + 2.0 * noise**2
        share, fidelity = beta * length / total, (coef * gamma).sum(axis=1) / total[:, 0]
        grown_squared = (explained + 2.0 * mixed + scattered)[:, None]
        errors = moved_squared - 2.0 * share * moved_grown + share**2 * grown_squared + simulated
        rest = 1.0 - fidelity
        change = rest**2 * explained - 2.0 * fidelity * rest * mixed + fidelity**2 * scattered
        of_fidelity = np.sqrt(np.maximum(change, 0.0) + simulated.sum(axis=1)) / total[:, 0]
        live = self.normal.used[..., None] & (variance > 0)[:, None]
        # answers that are all the same show nothing of the fit
        fitted = np.asarray(self.normal.used.any(axis=1))[:, None]
        blind = (self.unlike == 0) & fitted
        return (
            np.where(blind, np.inf, np.where(variance > 0, of_fidelity, 0.0)),
            np.where(live, np.sqrt(np.maximum(errors, 0.0)) / total, np.nan),
        )


def _error_sums(
    sample: PoolSample, rows: ExplainedRows, fitted: Floats, center: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Sums from which errors are computed: powers, moved, totals and sides (``kernels/pool_errors.h``)."""
    n, d, k, statistics = len(rows), len(sample.cells), center.shape[1], sample.statistics
    powers, moved = np.empty((n, k, 1 + d, 7)), np.empty((n, k, sample.n_sequences, 2 + d))
    totals, sides = np.empty((n, k, 10)), np.empty((n, 4))
    _kernels.pool_errors(
        sample.cells,
        rows.codes,
        rows.weights / len(sample),
        sample.answers,
        sample.residuals,
        statistics.differs.view(np.uint8),
        np.stack([statistics.rounding, statistics.negligible]),
        fitted,
        np.ascontiguousarray(center),
        powers,
        moved,
        totals,
        sides,
    )
    return powers, moved, totals, sides


def _inside(sums: Floats) -> Floats:
    """Sums over the rows inside the cell of each column, from those of all features."""
    return sums[:, 1:]


def _outside(sums: Floats) -> Floats:
    """Sums over the rows outside the cell of each column, from those of all features."""
    return sums[:, :1] - sums[:, 1:]


def _number(total: Floats, squares: Floats, *, empty: float = 0.0) -> Floats:
    """Effective number of terms, (Σ s)² / Σ s², given both sums; ``empty`` where there is no term."""
    return np.divide(total**2, squares, out=np.full_like(total, empty), where=squares > 0)


def _between(of_sequences: Floats) -> Floats:
    """Variance of a sum, estimated from the differences between its parts (n, sequences, ...)."""
    count = of_sequences.shape[1]
    return np.asarray(of_sequences.var(axis=1) * count**2 / (count - 1))
