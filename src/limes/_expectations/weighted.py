r"""Weighted least squares on a pool's rows: the moments of one explained row, with standard errors.

A pool's row i has the weight w_i = t^#changed / E t^#changed, by the columns in which its cell is not the
explained row's. With features a = (1, z - α), z_j = 1 where column j lies in the explained row's cell,

    b = (Σ_i w_i a_i a_iᵀ)⁻¹ Σ_i w_i a_i r_i,        r = f - (h - L)

for a control variate h and its linear part L (``estimate.py``). In standard errors Σ is the exact one, which
is diagonal: row i with residual e_i moves b_j by w_i e_i / n · (z_ij - α_j) / v_j. The last factor has two
values, one inside the cell and one outside. Standard errors therefore need only sums over the rows inside
each cell and over all rows (``indicators.py``): of c = w e / n, of its powers, and of its products with other
columns. ``residual.py`` defines the estimators that these sums go into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Bools, Floats
from limes._expectations.controls.control import ControlMoments
from limes._expectations.indicators import CellCodes, Indicators, indicators
from limes._expectations.residual import (
    FEWEST_CHANGED,
    LEAST_LEFT,
    Quality,
    SandwichVariance,
    student_factors,
)
from limes._expectations.rule_of_three import AnswerStatistics, RareAnswers, rare_variances
from limes.designs._product import ProductDesign


@dataclass(frozen=True, eq=False)
class WeightedPool:
    """Rows of a pool with their answers, and their weights for one explained row.

    Attributes
    ----------
    z
        Indicators of n rows and d columns.
    weights
        w, (n,); their mean is 1 in expectation.
    answers, residuals
        f and f - h, (n, k).
    statistics
        Of the answers alone, which all explained rows share.
    controls
        Moments of the controls h under the explained row's design, one for each equal part of the rows.
    n_sequences
        Number of independent sequences of equal length, which the rows hold one after the other.
    """

    design: ProductDesign
    z: Indicators
    weights: Floats
    answers: Floats
    residuals: Floats
    statistics: AnswerStatistics
    controls: Sequence[ControlMoments]
    n_sequences: int

    @classmethod
    def of(
        cls,
        design: ProductDesign,
        ratio: float,
        cells: CellCodes,
        answers: Floats,
        residuals: Floats,
        statistics: AnswerStatistics,
        controls: Sequence[ControlMoments],
        n_sequences: int,
    ) -> WeightedPool:
        """Weight rows with cells (n, d) by ``ratio`` = t to the power of the number of changed cells."""
        assert design.cells is not None  # noqa: S101 - designs of families by cells have them
        z = indicators(cells, design.cells, design.inclusion)
        powers = np.float64(ratio) ** np.arange(design.size, -1, -1)
        weights = (powers / np.exp(design.log_weight))[z.kept]
        return cls(design, z, weights, answers, residuals, statistics, controls, n_sequences)

    @cached_property
    def _first(self) -> dict[str, _Sides]:
        """Sums that the normal equations are made of."""
        w, parts = self.weights[:, None], len(self.controls)
        columns = {
            "rows": np.ones_like(w),
            "weights": w,
            "squares": w * w,
            "residuals": w * self.residuals,
            "answers": w * self.answers,
        }
        return _sides(self.z, columns, parts)

    @property
    def effective(self) -> float:
        """Effective number of rows, (Σ w)² / Σ w²."""
        return float(self.weights.sum() ** 2 / (self.weights @ self.weights))

    @cached_property
    def support(self) -> Floats:
        """Effective number of rows inside or outside the cell of each column, whichever is smaller, (d,)."""
        total, squares = self._first["weights"], self._first["squares"]
        inside, outside = (
            _number(getattr(total, side).sum(axis=0)[:, 0], getattr(squares, side).sum(axis=0)[:, 0])
            for side in ("inside", "outside")
        )
        return np.minimum(inside, outside)

    @cached_property
    def used(self) -> Bools:
        """Columns that are fitted, (d,): m of them."""
        return (self.design.variance > 0) & (self.support >= FEWEST_CHANGED)

    @property
    def unidentified(self) -> Bools:
        """Columns that vary under w, but in too few of the rows that have weight, (d,)."""
        return (self.design.variance > 0) & ~self.used

    @cached_property
    def inclusion(self) -> Floats:
        """α of the columns that are fitted, (m, 1)."""
        return self.design.inclusion[self.used, None]

    @cached_property
    def variance(self) -> Floats:
        """V = α (1 - α) of the columns that are fitted, (m, 1)."""
        return self.design.variance[self.used, None]

    @cached_property
    def linear(self) -> Floats:
        """Linear parts of the controls, (parts, 1 + m, k), intercepts first."""
        return np.stack([np.vstack([its.mean, its.coef[self.used]]) for its in self.controls])

    @cached_property
    def solution(self) -> tuple[Floats, Floats]:
        """Weighted least squares of residuals and of answers, (1 + m, k) each, intercept first."""
        used, alpha, first = self.used, self.inclusion, self._first
        inside, total = (
            np.concatenate(
                [getattr(first[name], side) for name in ("weights", "residuals", "answers")], axis=2
            )
            for side in ("inside", "total")
        )
        products = self.z.gram(self.weights, len(self.controls))[:, used][:, :, used]
        gram, moments = normal_equations(inside[:, used], total, products, alpha)
        k = self.answers.shape[1]
        moments[:, :, :k] += gram @ self.linear
        solution = np.asarray(np.linalg.solve(gram.sum(axis=0), moments.sum(axis=0)), dtype=np.float64)
        return solution[:, :k], solution[:, k:]

    def fitted(self, *coefs: Floats) -> list[Floats]:
        """Values a · coef of coefficients (1 + m, q) each, intercept first, at all rows: (n, q) each."""
        coef = np.hstack(coefs)
        full = np.zeros((self.design.size, coef.shape[1]))
        full[self.used] = coef[1:]
        values = self.z.products(full)
        values += coef[0] - (self.inclusion * coef[1:]).sum(axis=0)
        return np.split(values, np.cumsum([one.shape[1] for one in coefs])[:-1], axis=1)

    def sides(self, columns: Mapping[str, Floats]) -> dict[str, _Sides]:
        """Sums of columns (n, q) over each sequence, inside and outside the cells of the fitted columns."""
        sums = _sides(self.z, columns, self.n_sequences)
        return {name: _Sides(its.inside[:, self.used], its.total) for name, its in sums.items()}

    @cached_property
    def typical(self) -> tuple[Floats, Floats]:
        """Mean square of the influence (z - α) w / (n v) of a row inside, and of one outside, (m,) each."""
        rows, squares = self._first["rows"], self._first["squares"]
        inside, outside = (
            getattr(squares, side).sum(axis=0)[self.used]
            / np.maximum(getattr(rows, side).sum(axis=0)[self.used], 1)
            for side in ("inside", "outside")
        )
        n, alpha, v = len(self.weights), self.inclusion, self.variance
        return (inside * ((1.0 - alpha) / (n * v)) ** 2)[:, 0], (outside * (alpha / (n * v)) ** 2)[:, 0]


@dataclass(frozen=True, eq=False)
class WeightedFit:
    """Weighted least squares of a pool's answers for one explained row, with its errors.

    Attributes
    ----------
    rows
        The rows.
    coef
        b, intercept first, (1 + m, k).
    errors, explained
        e, residuals enlarged by leverage to the size of errors, and b · (z - α), (n, k).
    moved, grown
        c = w e / n, and the contribution of each row to Var_w f, (n, k).
    influence
        Influence of each row on the surrogate at the explained row, (n,).
    rare
        Rows whose answers are rare.
    sides
        Sums over sequences and cells; see ``fit``.
    simulated
        Standard errors of the controls' moments, intercept first, (1 + m, k).
    """

    rows: WeightedPool
    coef: Floats
    errors: Floats
    explained: Floats
    moved: Floats
    grown: Floats
    influence: Floats
    rare: RareAnswers
    sides: Mapping[str, _Sides]
    simulated: Floats

    @classmethod
    def fit(cls, rows: WeightedPool, prediction: Floats | None) -> WeightedFit:
        """Fit the residuals, given the model's ``prediction`` (k,) at the explained row, if there is one."""
        coef, without_control = rows.solution
        n, k, parts = *rows.answers.shape, len(rows.controls)
        alpha, v, shares = rows.inclusion, rows.variance, rows.weights[:, None] / len(rows.weights)
        # leverage w (1 + Σ_j (z_j - α_j)² / v_j) / n is a function a · coef too
        odds = alpha / (1.0 - alpha)
        leverage = np.vstack([[[1.0 + alpha.size]], 1.0 / odds - odds])
        steps = np.vstack([[[1.0]], rows.design.departure[rows.used, None] / v])
        rest, uncontrolled, fitted, spread, influence = rows.fitted(
            np.hstack(list(coef - rows.linear)), without_control, coef, leverage, steps
        )
        # each part of the rows has its own control, whose linear part was added to the residuals
        place = np.arange(n) * parts // n
        growth = 1.0 / np.sqrt(np.maximum(1.0 - shares * spread, LEAST_LEFT))
        errors = (rows.residuals - rest.reshape(n, parts, k)[np.arange(n), place]) * growth
        rare = RareAnswers.from_rows(rows.statistics, errors, prediction)
        explained, squares = fitted - coef[0], (rows.answers - fitted) ** 2
        moved, other = shares * errors, (shares * (rows.answers - uncontrolled)) ** 2
        mean_squares = shares[:, 0] @ squares / shares.sum()
        grown = 2.0 * moved * explained + shares * (squares - mean_squares)
        columns = {
            "moved": moved,
            "squared": moved**2,
            "fourth": (moved**2) ** 2,
            "other squared": other,
            "other fourth": other**2,
            "moved grown": moved * grown,
            "differs": rare.differs.astype(np.float64),
            "unexplained": rare.unexplained.astype(np.float64),
        }
        errors_of_controls = [np.vstack([its.errors[:1], its.errors[1:][rows.used]]) for its in rows.controls]
        simulated = np.sqrt(np.sum(np.square(errors_of_controls), axis=0)) / parts
        return cls(
            rows,
            coef,
            errors,
            explained,
            moved,
            grown,
            (shares * influence)[:, 0],
            rare,
            rows.sides(columns),
            np.asarray(simulated),
        )

    @cached_property
    def _sandwich(self) -> SandwichVariance:
        """Of intercept and coefficients, to which row i contributes c_i and c_i (z_ij - α_j) / v_j."""
        within = self._powers("squared", 2)
        effective = _number(within, self._powers("fourth", 4), empty=np.inf)
        moved = self.sides["moved"]
        columns = (moved.inside - self.rows.inclusion * moved.total) / self.rows.variance
        between = _between(np.concatenate([moved.total, columns], axis=1))
        return SandwichVariance(within, effective, between, self.rows.n_sequences)

    def _powers(self, name: str, power: int) -> Floats:
        """Σ_i |c_i s_ij|^power from the sums of |c|^power, s = 1 and (z - α) / v: (1 + m, k)."""
        its, alpha, v = self.sides[name], self.rows.inclusion, self.rows.variance
        inside, outside = its.inside.sum(axis=0), its.outside.sum(axis=0)
        columns = ((1.0 - alpha) / v) ** power * inside + (alpha / v) ** power * outside
        return np.vstack([its.total.sum(axis=0), columns])

    @cached_property
    def coef_errors(self) -> Floats:
        """Standard errors of the coefficients, (m, k), such that ±1.96 of them is a 95 % interval."""
        sampled = np.sqrt(
            self._sandwich.variances(self._sandwich.variance_reduction, self._least_variances)[1:]
        )
        sampled *= student_factors(self.rows.support[self.rows.used] - 1.0)[:, None]
        return np.hypot(sampled, self.simulated[1:])

    @property
    def _least_variances(self) -> Floats:
        """Least variances that unseen answers add to the intercept and the coefficients, (1 + m, k)."""
        weights, (inside, outside) = self.rows.weights, self.rows.typical
        typical = np.array([weights @ weights / len(weights) ** 3])
        reach = np.where(self.rare.reach > 0, self.rare.reach, np.inf)

        def least(its: _Sides, size: Floats) -> Floats:
            columns = rare_variances(inside, its.inside.sum(axis=0), size)
            columns = columns + rare_variances(outside, its.outside.sum(axis=0), size)
            return np.vstack([rare_variances(typical, its.total.sum(axis=0), size), columns])

        differs = least(self.sides["differs"], reach)
        return np.maximum(differs, least(self.sides["unexplained"], self.rare.std))

    @cached_property
    def answers_differ(self) -> bool:
        """Whether the answers of every output differ; without them no coefficient can be estimated."""
        fixed = not (self.rows.design.variance > 0).any()
        return bool((self.rare.n_unlike > 0).all() or fixed)

    @cached_property
    def carriers(self) -> Floats:
        """Effective number of rows behind a coefficient's error, (k,): the median over features.

        The smaller number counts, that of the answers or that of the residuals, as in ``residual.py``.
        """
        if not self.rows.used.any():
            return np.full(self.coef.shape[1], np.inf)
        residuals = self._sandwich.effective[1:]
        answers = _number(self._powers("other squared", 2), self._powers("other fourth", 4), empty=np.inf)[1:]
        effective = np.where(np.isinf(residuals), np.inf, np.minimum(residuals, answers))
        return np.asarray(np.sort(effective, axis=0)[len(effective) // 2])

    def quality(self, coef: Floats) -> Quality:
        """Var_w f, and errors of functions of coefficients (d, k); see ``ResidualFit.quality``."""
        rows, design = self.rows, self.rows.design
        departure = design.departure
        simulated = np.concatenate([[1.0], departure[rows.used]]) ** 2 @ self.simulated**2
        blind = (rows.unidentified & (departure != 0)).any()
        squares = (rows.answers - self.coef[0] - self.explained) ** 2
        variance = (coef * design.gamma(coef)).sum(axis=0) + rows.weights @ squares / rows.weights.sum()
        errors = [self._share_errors(coef, variance, k) for k in range(coef.shape[1])]
        return Quality(
            variance=variance,
            surrogate_errors=np.where(blind, np.inf, np.sqrt(self._variance_at_instance() + simulated)),
            fidelity_errors=np.array([total for total, _ in errors]),
            share_errors=np.stack([single for _, single in errors], axis=1),
        )

    def _variance_at_instance(self) -> Floats:
        """Variance of the surrogate at the explained row, (k,)."""
        moved = self.influence[:, None] * self.errors
        squares = moved**2
        within = squares.sum(axis=0)[None]
        of_sequences = moved.reshape(self.rows.n_sequences, -1, moved.shape[1]).sum(axis=1)[:, None]
        effective = _number(within, (squares**2).sum(axis=0)[None], empty=np.inf)
        sandwich = SandwichVariance(within, effective, _between(of_sequences), self.rows.n_sequences)
        least = self.rare.least_variances(self.influence[None])
        return np.asarray(sandwich.variances(self._sandwich.variance_reduction, least)[0])

    def _share_errors(self, coef: Floats, variance: Floats, k: int) -> tuple[float, Floats]:
        """Errors of R² and of the features' shares of it by the delta method, for output k.

        Row i moves β_j Γ_j by 2 β_j c_i (z_ij - α_j), and their sum by 2 c_i b · (z_i - α). Var_w f moves by
        the same, and by the row's part of the residuals' mean square.
        """
        design, used, total = self.rows.design, self.rows.used, variance[k]
        errors = np.zeros(design.size)
        if total == 0:
            return np.nan, np.full(design.size, np.nan)
        beta, alpha, v = coef[used, k], self.rows.inclusion[:, 0], self.rows.variance[:, 0]
        products = self.sides["moved grown"]
        inside, whole = products.inside.sum(axis=0)[:, k], products.total.sum(axis=0)[0, k]
        moved_grown = 2.0 * beta * (inside - alpha * whole)
        moved_squared = (2.0 * beta * v) ** 2 * self._sandwich.within[1:, k]
        fidelity, share = (coef[:, k] * design.gamma(coef[:, k])).sum() / total, beta**2 * v / total
        grown_squared = float(self.grown[:, k] @ self.grown[:, k])
        simulated = (2.0 * beta * v * self.simulated[1:, k]) ** 2
        errors[used] = moved_squared - 2.0 * share * moved_grown + share**2 * grown_squared + simulated
        change = 2.0 * self.moved[:, k] * self.explained[:, k] - fidelity * self.grown[:, k]
        return float(np.sqrt(change @ change + simulated.sum()) / total), np.sqrt(
            np.maximum(errors, 0.0)
        ) / total


@dataclass(frozen=True, eq=False)
class _Sides:
    """Sums over the rows inside the cell of each column, (parts, d, q), and over all rows, (parts, 1, q)."""

    inside: Floats
    total: Floats

    @property
    def outside(self) -> Floats:
        """Sums over the rows outside, (parts, d, q)."""
        return self.total - self.inside


def normal_equations(inside: Floats, total: Floats, products: Floats, alpha: Floats) -> tuple[Floats, Floats]:
    """Normal equations of weighted least squares on (1, z - α), in each of several parts of the rows.

    ``inside`` (parts, m, 1 + q) and ``total`` (parts, 1, 1 + q) are sums of w and of w y over the rows inside
    the cell of each column and over all rows, ``products`` (parts, m, m) sums of w z zᵀ; ``alpha`` is (m, 1).
    Returns (parts, 1 + m, 1 + m) and (parts, 1 + m, q).
    """
    centred = inside - alpha * total
    gram = np.empty((len(centred), 1 + alpha.size, 1 + alpha.size))
    gram[:, :1, :1] = total[:, :, :1]
    gram[:, 0, 1:] = gram[:, 1:, 0] = centred[:, :, 0]
    gram[:, 1:, 1:] = products - alpha * inside[:, :, 0][:, None] - centred[:, :, :1] * alpha[:, 0]
    return gram, np.concatenate([total, centred], axis=1)[:, :, 1:]


def _sides(z: Indicators, columns: Mapping[str, Floats], parts: int) -> dict[str, _Sides]:
    """Sums of named columns (n, q) over equal parts of the rows."""
    values = np.hstack(list(columns.values()))
    ends = np.cumsum([column.shape[1] for column in columns.values()])[:-1]
    pairs = zip(*(np.split(sums, ends, axis=2) for sums in z.sums(values, parts)), strict=True)
    return {name: _Sides(*pair) for name, pair in zip(columns, pairs, strict=True)}


def _number(total: Floats, squares: Floats, *, empty: float = 0.0) -> Floats:
    """Effective number of terms, (Σ s)² / Σ s², given both sums; ``empty`` where there is no term."""
    return np.divide(total**2, squares, out=np.full_like(total, empty), where=squares > 0)


def _between(of_sequences: Floats) -> Floats:
    """Variance of a sum, estimated from the differences between its parts (sequences, ...)."""
    count = len(of_sequences)
    return np.asarray(of_sequences.var(axis=0) * count**2 / (count - 1))
