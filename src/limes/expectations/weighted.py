r"""Weighted least squares on a pool's rows: the moments of one explained row, with standard errors.

A row of the background's law counts w_i = t^#changed / E t^#changed under the explained row's w. On the
features a = (1, z - α), z_j = 1 where column j lies in the explained row's cell,

    b = (Σ_i w_i a_i a_iᵀ)⁻¹ Σ_i w_i a_i r_i,        r = f - (h - L)

for a control variate h and its linear part L (``estimate.py``). Σ is diagonal and not estimated, so that row
i moves b_j by w_i (z_ij - α_j) e_i / (n v_j), e the residual: by one multiple of w_i e_i inside the cell, and
by one outside. All that standard errors are made of are therefore sums over the rows inside a cell and over
all rows: products of the matrix z with few columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limes._arrays import Bools, Floats
from limes.designs.product import ProductDesign
from limes.expectations.controls.control import ControlMoments
from limes.expectations.residual import FEWEST_CHANGED, LEAST_LEFT, Quality, SandwichVariance, student_factors
from limes.expectations.rule_of_three import RareAnswers, rare_variances


@dataclass(frozen=True, eq=False)
class WeightedFeatures:
    """Features of n rows of a pool, weighted as they count for one explained row.

    Attributes
    ----------
    z
        Indicators of the m columns whose coefficients are fitted, (n, m).
    weights
        w, (n,); their mean is 1 in expectation.
    used, unidentified
        (d,) the columns that are fitted, and those that can vary but hardly do in rows that count.
    support
        (m,) effective number of rows inside or outside the cell, whichever is smaller.
    inclusion, variance
        α and v = α (1 - α), (m,).
    n_sequences
        Number of independent sequences, of one length, that the rows are made of, one after the other.
    """

    z: Floats
    weights: Floats
    used: Bools
    unidentified: Bools
    support: Floats
    inclusion: Floats
    variance: Floats
    n_sequences: int

    @classmethod
    def of(
        cls, design: ProductDesign, cells: NDArray[np.unsignedinteger[Any]], ratio: float, n_sequences: int
    ) -> WeightedFeatures:
        """Weigh rows with these cells (n, d) by ``ratio`` = t to the power of the number of changed cells."""
        assert design.cells is not None  # noqa: S101 - designs of families by cells have them
        z = (cells == design.cells.astype(cells.dtype)).astype(np.float64)
        d = design.size
        ladder = np.exp(np.log(ratio) * np.arange(d, -1, -1) - design.log_weight)
        weights = ladder[(z @ np.ones(d)).astype(np.int64)]
        inside, outside = _sides(z, np.stack([weights, weights**2], axis=1))
        support = np.minimum(*(_number(side[:, 0], side[:, 1]) for side in (inside, outside)))
        varies = design.variance > 0
        used = varies & (support >= FEWEST_CHANGED)
        return cls(
            z if used.all() else z[:, used],
            weights,
            used,
            varies & ~used,
            support[used],
            design.inclusion[used],
            design.variance[used],
            n_sequences,
        )

    @cached_property
    def regressors(self) -> Floats:
        """Rows a = (1, z - α), (n, 1 + m)."""
        a = np.empty((len(self.z), 1 + self.z.shape[1]))
        a[:, 0] = 1.0
        np.subtract(self.z, self.inclusion, out=a[:, 1:])
        return a

    @cached_property
    def growth(self) -> Floats:
        """1 / √(1 - leverage) of each row, (n,): by what errors are larger than residuals."""
        odds = self.inclusion / (1.0 - self.inclusion)
        leverage = self.weights * (1.0 + odds.sum() + self.z @ (1.0 / odds - odds)) / len(self.z)
        return np.asarray(1.0 / np.sqrt(np.maximum(1.0 - leverage, LEAST_LEFT)))

    def power_sums(self, contributions: Floats, power: int) -> Floats:
        """Σ_i (c_i s_ij)^power for an even power, (1 + m, k): s is 1, and (z - α) / v; c (n, k)."""
        powers = contributions**power
        inside, outside = _sides(self.z, powers)
        alpha, v = self.inclusion[:, None], self.variance[:, None]
        columns = ((1.0 - alpha) / v) ** power * inside + (alpha / v) ** power * outside
        return np.vstack([powers.sum(axis=0), columns])

    def sums(self, contributions: Floats) -> Floats:
        """Σ_i c_i s_ij over each sequence, (sequences, 1 + m, k)."""
        c = contributions.reshape(self.n_sequences, -1, contributions.shape[1])
        total = c.sum(axis=1, keepdims=True)
        inside = self.z.reshape(*c.shape[:2], -1).transpose(0, 2, 1) @ c
        columns = (inside - self.inclusion[:, None] * total) / self.variance[:, None]
        return np.concatenate([total, columns], axis=1)

    def sandwich(self, contributions: Floats) -> SandwichVariance:
        """Variances of the intercept and the coefficients, to which rows contribute c_i s_ij."""
        within, effective = self.power_sums(contributions, 2), self.effective_rows(contributions)
        return SandwichVariance(within, effective, _between(self.sums(contributions)), self.n_sequences)

    def effective_rows(self, contributions: Floats) -> Floats:
        """Effective number of rows behind the intercept and the coefficients, (1 + m, k)."""
        within = self.power_sums(contributions, 2)
        return _number(within, self.power_sums(contributions, 4), empty=np.inf)

    def least_variances(self, rare: RareAnswers) -> Floats:
        """Least variances that unseen answers add to the intercept and the coefficients, (1 + m, k)."""
        n = len(self.z)
        squares = (self.weights / n) ** 2
        inside, outside = _sides(self.z, np.stack([np.ones(n), squares], axis=1))
        alpha, v = self.inclusion, self.variance
        typical = ((1.0 - alpha) / v) ** 2 * inside[:, 1] / np.maximum(inside[:, 0], 1.0)
        elsewhere = (alpha / v) ** 2 * outside[:, 1] / np.maximum(outside[:, 0], 1.0)
        least = np.zeros((1 + alpha.size, rare.reach.size))
        reach = np.where(rare.reach > 0, rare.reach, np.inf)
        for differs, size in ((rare.differs, reach), (rare.unexplained, rare.std)):
            differing, others = _sides(self.z, differs.astype(np.float64))
            total = differs.sum(axis=0, keepdims=True)
            intercept = rare_variances(squares.mean(keepdims=True), total, size)
            columns = rare_variances(typical, differing, size) + rare_variances(elsewhere, others, size)
            least = np.maximum(least, np.vstack([intercept, columns]))
        return least


@dataclass(frozen=True, eq=False)
class WeightedFit:
    """Weighted least squares of a pool's answers f (n, k), less their controls, for one explained row.

    Attributes
    ----------
    features
        Of the rows.
    answers
        f, (n, k).
    coef
        b, intercept first, (1 + m, k).
    errors
        e, residuals made as large as errors, (n, k).
    uncontrolled
        Residuals of the answers themselves, without a control, (n, k).
    rare
        Rows whose answers are rare.
    simulated
        Standard errors of the controls' moments, intercept first, (1 + m, k).
    """

    features: WeightedFeatures
    answers: Floats
    coef: Floats
    errors: Floats
    uncontrolled: Floats
    rare: RareAnswers
    simulated: Floats

    @classmethod
    def fit(
        cls,
        features: WeightedFeatures,
        answers: Floats,
        residuals: Floats,
        controls: list[ControlMoments],
        prediction: Floats | None,
    ) -> WeightedFit:
        """Fit residuals f - h (n, k); the rows are cut into equal parts, one for each of the ``controls``."""
        place = np.concatenate([[True], features.used])
        linear = [np.vstack([its.mean, its.coef])[place] for its in controls]
        a, w = features.regressors, features.weights[:, None]
        parts = [
            slice(len(a) * i // len(controls), len(a) * (i + 1) // len(controls))
            for i in range(len(controls))
        ]
        weighted = w * a
        grams = [weighted[rows].T @ a[rows] for rows in parts]
        moments = weighted.T @ np.hstack([residuals, answers])
        k = answers.shape[1]
        moments[:, :k] += sum(gram @ line for gram, line in zip(grams, linear, strict=True))
        coef = np.asarray(np.linalg.solve(sum(grams), moments), dtype=np.float64)
        errors = residuals.copy()
        for rows, line in zip(parts, linear, strict=True):
            errors[rows] -= a[rows] @ (coef[:, :k] - line)
        errors *= features.growth[:, None]
        simulated = np.sqrt(np.sum([its.errors[place] ** 2 for its in controls], axis=0)) / len(controls)
        rare = RareAnswers.from_rows(answers, errors, prediction)
        uncontrolled = answers - a @ coef[:, k:]
        return cls(features, answers, coef[:, :k], errors, uncontrolled, rare, np.asarray(simulated))

    @cached_property
    def _contributions(self) -> Floats:
        """What rows contribute to the intercept, w e / n, (n, k)."""
        return self.errors * self._shares[:, None]

    @cached_property
    def _shares(self) -> Floats:
        return self.features.weights / len(self.errors)

    @cached_property
    def _sandwich(self) -> SandwichVariance:
        return self.features.sandwich(self._contributions)

    @cached_property
    def coef_errors(self) -> Floats:
        """Standard errors of the coefficients, (m, k), such that ±1.96 of them is a 95 % interval."""
        least = self.features.least_variances(self.rare)
        sampled = np.sqrt(self._sandwich.variances(self._sandwich.variance_reduction, least)[1:])
        sampled *= student_factors(self.features.support - 1.0)[:, None]
        return np.hypot(sampled, self.simulated[1:])

    @cached_property
    def answers_differ(self) -> bool:
        """Whether the answers of every output differ; without them no coefficient can be estimated."""
        fixed = not (self.features.used | self.features.unidentified).any()
        return bool((self.rare.n_unlike > 0).all() or fixed)

    @cached_property
    def carriers(self) -> Floats:
        """Effective number of rows behind a coefficient's error, (k,): the median over features.

        The smaller number counts, that of the answers or that of the residuals, as in ``residual.py``.
        """
        if not self.features.used.any():
            return np.full(self.coef.shape[1], np.inf)
        residuals = self._sandwich.effective[1:]
        answers = self.features.effective_rows(self.uncontrolled * self._shares[:, None])[1:]
        effective = np.where(np.isinf(residuals), np.inf, np.minimum(residuals, answers))
        return np.asarray(np.sort(effective, axis=0)[len(effective) // 2])

    def quality(self, design: ProductDesign, coef: Floats) -> Quality:
        """Var_w f, and errors of functions of coefficients (d, k): ``ResidualFit.quality`` says how."""
        features, shares = self.features, self._shares
        departure = design.departure
        steps = 1.0 + features.regressors[:, 1:] @ (departure[features.used] / features.variance)
        influence = shares * steps
        at_instance = self._at_instance(influence)
        simulated = np.concatenate([[1.0], departure[features.used]]) ** 2 @ self.simulated**2
        blind = (features.unidentified & (departure != 0)).any()
        fitted = features.regressors @ self.coef
        squares = (self.answers - fitted) ** 2
        mean_squares = shares @ squares / shares.sum()
        variance = (coef * design.gamma(coef)).sum(axis=0) + mean_squares
        errors = [
            self._share_errors(design, coef, variance, fitted, squares, k) for k in range(coef.shape[1])
        ]
        return Quality(
            variance=variance,
            surrogate_errors=np.where(blind, np.inf, np.sqrt(at_instance + simulated)),
            fidelity_errors=np.array([total for total, _ in errors]),
            share_errors=np.stack([single for _, single in errors], axis=1),
        )

    def _at_instance(self, influence: Floats) -> Floats:
        """Variance of the surrogate at the instance, (k,), given the influence (n,) of rows on it."""
        moved = influence[:, None] * self.errors
        squares = moved**2
        within = squares.sum(axis=0)[None]
        of_sequences = moved.reshape(self.features.n_sequences, -1, moved.shape[1]).sum(axis=1)[:, None]
        effective = _number(within, (squares**2).sum(axis=0)[None], empty=np.inf)
        sandwich = SandwichVariance(within, effective, _between(of_sequences), self.features.n_sequences)
        least = self.rare.least_variances(influence[None])
        return np.asarray(sandwich.variances(self._sandwich.variance_reduction, least)[0])

    def _share_errors(
        self, design: ProductDesign, coef: Floats, variance: Floats, fitted: Floats, squares: Floats, k: int
    ) -> tuple[float, Floats]:
        """Errors of R² and of the features' shares of it by the delta method, for output k.

        Row i moves 2 β_j Γ_j's numerator by c_ij = 2 β_j v_j I_ij e_i, and the variance by g_i = Σ_j c_ij and
        its part of the residuals' mean square.
        """
        single, total = np.zeros(design.size), variance[k]
        if total == 0:
            return np.nan, np.full(design.size, np.nan)
        used, v = self.features.used, self.features.variance
        beta, moved = coef[used, k], self._contributions[:, k]
        explained = 2.0 * moved * (fitted[:, k] - self.coef[0, k])
        grown = explained + self._shares * (squares[:, k] - self._shares @ squares[:, k] / self._shares.sum())
        fidelity = (coef[:, k] * design.gamma(coef[:, k])).sum() / total
        share = beta**2 * v / total
        scale = 2.0 * beta * v
        cross = self.features.sums((moved * grown)[:, None]).sum(axis=0)[1:, 0]
        single[used] = (
            scale**2 * self._sandwich.within[1:, k] - 2.0 * share * scale * cross + share**2 * (grown @ grown)
        )
        whole = explained - fidelity * grown
        simulated = np.zeros(design.size)
        simulated[used] = (scale * self.simulated[1:, k]) ** 2
        single = np.sqrt(np.maximum(single, 0.0) + simulated) / total
        return float(np.sqrt(whole @ whole + simulated.sum()) / total), single


def _sides(z: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Sums of values (n, q) over rows with z = 1 and over those with z = 0, (m, q) each."""
    inside = z.T @ values
    return inside, values.sum(axis=0) - inside


def _number(total: Floats, squares: Floats, *, empty: float = 0.0) -> Floats:
    """Effective number of terms, (Σ s)² / Σ s², given both sums; ``empty`` where there is no term."""
    return np.divide(total**2, squares, out=np.full_like(total, empty), where=squares > 0)


def _between(of_sequences: Floats) -> Floats:
    """Variance of a sum by how its parts (sequences, ...) differ."""
    count = len(of_sequences)
    return np.asarray(of_sequences.var(axis=0) * count**2 / (count - 1))
