r"""Least squares of what a control leaves, and how sure of it one is.

With rows of w itself, β of the residual r = f - h is the ordinary least squares of r on the features. Row i
contributes W_i e_i to the error, W the rows of (AᵀA)⁻¹Aᵀ and e_i its residual, corrected for leverage.
``contributions.py`` says how sure their sum is, and ``rule_of_three.py`` what it may not know. Controls whose
expectation is simulated add the errors of that, which are their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.designs.features import Features
from limes.expectations.contributions import Contributions, Together
from limes.expectations.rule_of_three import Rarity

# A coefficient is known from the rows where its feature differs from its usual value: so many at least.
FEWEST = 16


@dataclass(frozen=True, eq=False)
class Variety:
    """How much features vary in a sample.

    Attributes
    ----------
    rarest
        (d,) rows where a feature differs from its usual value.
    unknown
        (d,) features that hardly varied: the sample tells nothing of their coefficients.
    used
        (d,) features whose coefficients are fitted: not unknown, and not fixed by the design either.
    """

    rarest: Ints
    unknown: Bools
    used: Bools

    @classmethod
    def of(cls, h: Floats, fixed: Bools) -> Variety:
        """Look at features (n, d), of which the ``fixed`` ones cannot vary."""
        rarest = (h != np.median(h, axis=0)).sum(axis=0)
        unknown = ~fixed & (rarest < FEWEST)
        return cls(rarest, unknown, ~fixed & ~unknown)


@dataclass(frozen=True, eq=False)
class Fit:
    """Least squares of residuals (n, k) on centred features (n, d).

    Attributes
    ----------
    coef
        Intercept first, (1 + d, k).
    influence
        W, (1 + d, n).
    errors
        e, (n, k).
    rows
        Which of them belong together.
    rarity
        Which of them have an answer of their own.
    uncontrolled
        Residuals of the answers themselves, without a control, (n, k).
    simulated
        Standard errors of what is known of the controls, intercept first, (1 + d, k).
    variety
        Which features vary.
    """

    coef: Floats
    influence: Floats
    errors: Floats
    rows: Together
    rarity: Rarity
    uncontrolled: Floats
    simulated: Floats
    variety: Variety

    @classmethod
    def of(
        cls,
        h: Floats,
        center: Floats,
        r: Floats,
        rows: Together,
        *,
        answers: Floats,
        prediction: Floats | None,
        variety: Variety,
        simulated: Floats,
    ) -> Fit:
        """Fit; ``center`` is E_w h, so that the intercept is E_w r. ``answers`` (n, k) are the model's."""
        used = variety.used
        regressors = np.column_stack([np.ones(len(h)), h[:, used] - center[used]])
        inverse = np.linalg.pinv(regressors.T @ regressors, hermitian=True)
        weights = inverse @ regressors.T
        solution = weights @ r
        errors = rows.unbiased(r - regressors @ solution, regressors, weights)
        place = np.concatenate([[True], used])
        coef, influence = np.zeros((place.size, r.shape[1])), np.zeros((place.size, len(h)))
        coef[place], influence[place] = solution, weights
        rarity = Rarity.of(answers, errors, prediction)
        uncontrolled = answers - regressors @ (weights @ answers)
        return cls(coef, influence, errors, rows, rarity, uncontrolled, simulated, variety)

    @cached_property
    def contributions(self) -> Contributions:
        """Of rows to the intercept and the coefficients."""
        return Contributions.of(self.influence, self.errors, self.rows)

    def _variances(self, influence: Floats) -> Floats:
        """Variances of sums of residuals with influences (m, n), (m, k)."""
        contributions = Contributions.of(influence, self.errors, self.rows)
        return contributions.variances(self.contributions.gain, self.rarity.variances(influence))

    @cached_property
    def coef_errors(self) -> Floats:
        """Standard errors of the coefficients, (d, k), such that ±1.96 of them is a 95 % interval."""
        found = np.sqrt(self._variances(self.influence)[1:])
        found *= _student(np.maximum(self.variety.rarest, FEWEST) - 1)[:, None]
        found[self.variety.unknown] = np.inf
        return np.hypot(found, self.simulated[1:])

    @cached_property
    def answers_differ(self) -> bool:
        """Whether anything was seen that coefficients could be made of, in every output."""
        return bool((self.rarity.answers > 0).all() or not (self.variety.used | self.variety.unknown).any())

    @cached_property
    def carriers(self) -> Floats:
        """Effective number of rows behind a coefficient's error, (k,): the median over features.

        A control is fitted to few rows as well: where few answers are large, its residuals may all look
        alike. The smaller number counts, that of the answers or that of the residuals.
        """
        used = self.variety.used
        if not used.any():
            return np.full(self.coef.shape[1], np.inf)
        answers = Contributions.of(self.influence, self.uncontrolled, self.rows)
        residuals = self.contributions.effective[1:][used]
        effective = np.where(np.isinf(residuals), np.inf, np.minimum(residuals, answers.effective[1:][used]))
        return np.asarray(np.sort(effective, axis=0)[len(effective) // 2])

    def quality(self, design: Features, h: Floats, coef: Floats, f: Floats) -> Quality:
        """Var_w f, and errors of what is made of coefficients (d, k), by features (n, d) and answers (n, k).

        Var_w f is what the surrogate explains, βᵀΣβ, and the mean square of what it leaves: where it leaves
        nothing, R² is 1, however the sample happens to scatter.
        """
        there = np.concatenate([[1.0], design.departure])
        sampled = self._variances((there @ self.influence)[None])[0]
        blind = (self.variety.unknown & (design.departure != 0)).any()
        squares = (f - self.coef[0] - (h - design.inclusion) @ coef) ** 2
        variance = (coef * design.gamma(coef)).sum(axis=0) + squares.mean(axis=0)
        shares = [self._shares(design, coef[:, k], squares[:, k], k) for k in range(f.shape[1])]
        return Quality(
            variance=variance,
            surrogate_errors=np.where(blind, np.inf, np.sqrt(sampled + there**2 @ self.simulated**2)),
            fidelity_errors=np.array([total for total, _ in shares]),
            share_errors=np.stack([single for _, single in shares], axis=1),
        )

    def _shares(self, design: Features, coef: Floats, squares: Floats, k: int) -> tuple[float, Floats]:
        """Errors of R² = Σ s_j and of the shares s_j = β_j (Σβ)_j / Var f, by their first derivatives.

        ``squares`` (n,) are what the surrogate leaves of each answer.
        """
        gamma = design.gamma(coef)
        variance = (coef * gamma).sum() + squares.mean()
        if variance == 0:
            return np.nan, np.full(coef.size, np.nan)
        share = coef * gamma / variance
        moved = self.influence[1:] * self.errors[:, k]
        change = gamma[:, None] * moved + coef[:, None] * design.gamma(moved)
        grown = change.sum(axis=0) + (squares - squares.mean()) / squares.size
        change = (change - share[:, None] * grown) / variance
        simulated = (2.0 * gamma * self.simulated[1:, k] / variance) ** 2
        together = self.rows.sums(np.vstack([change.sum(axis=0), change]))
        squares = (together**2).sum(axis=1)
        return float(np.sqrt(squares[0] + simulated.sum())), np.sqrt(squares[1:] + simulated)


@dataclass(frozen=True, eq=False)
class Quality:
    """Var_w f, and standard errors of the surrogate at the instance, of R² (k,), and of shares (d, k)."""

    variance: Floats
    surrogate_errors: Floats
    fidelity_errors: Floats
    share_errors: Floats


def _student(freedom: Ints) -> Floats:
    """Factors by which errors from few rows must grow."""
    from scipy.stats import norm, t

    return np.asarray(t.ppf(0.975, freedom) / norm.ppf(0.975))
