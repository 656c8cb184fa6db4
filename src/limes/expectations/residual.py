r"""Least squares of what a control leaves, and how sure of it one is.

With rows of w itself, β of the residual r = f - h is the ordinary least squares of r on the features. Row i
contributes W_i e_i to the error, W the rows of (AᵀA)⁻¹Aᵀ and e_i its residual over √(1 - leverage). Summed
squares of contributions are the errors that independent rows would have. Scrambled sequences do better;
by how much is seen in the sums of contributions over a sequence, pooled over all coefficients. Controls whose
expectation is simulated add the errors of that, which are their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.designs.features import Features

# A coefficient is known from the rows where its feature differs from its usual value: so many at least.
FEWEST = 16
# Pooled gains of sequences are not believed in full: single coefficients may gain less than the average one
_CAUTION = 1.5
# Chance that the few sums of a small design make the gain look larger than it is
_DOUBT = 0.1


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
    fold
        (n,) sequence of each row.
    simulated
        Standard errors of what is known of the controls, intercept first, (1 + d, k).
    variety
        Which features vary.
    """

    coef: Floats
    influence: Floats
    errors: Floats
    fold: Ints
    simulated: Floats
    variety: Variety

    @classmethod
    def of(
        cls, h: Floats, center: Floats, r: Floats, fold: Ints, *, variety: Variety, simulated: Floats
    ) -> Fit:
        """Fit; ``center`` is E_w h, so that the intercept is E_w r."""
        used = variety.used
        regressors = np.column_stack([np.ones(len(h)), h[:, used] - center[used]])
        inverse = np.linalg.pinv(regressors.T @ regressors, hermitian=True)
        weights = inverse @ regressors.T
        solution = weights @ r
        leverage = np.clip((regressors * weights.T).sum(axis=1), 0.0, 0.99)
        errors = (r - regressors @ solution) / np.sqrt(1.0 - leverage)[:, None]
        place = np.concatenate([[True], used])
        coef, influence = np.zeros((place.size, r.shape[1])), np.zeros((place.size, len(h)))
        coef[place], influence[place] = solution, weights
        return cls(coef, influence, errors, fold, simulated, variety)

    @cached_property
    def gain(self) -> float:
        """By what factor sequences have lowered variances, at most 1."""
        from scipy.stats import chi2

        folds = np.unique(self.fold)
        plain = self.influence**2 @ self.errors**2
        sums = np.stack([self.influence[:, self.fold == k] @ self.errors[self.fold == k] for k in folds])
        between = ((sums - sums.mean(axis=0)) ** 2).sum(axis=0) * folds.size / (folds.size - 1)
        live = plain > 0
        if not live.any():
            return 1.0
        freedom = (folds.size - 1) * live.any(axis=1).sum()
        caution = max(_CAUTION, float(freedom / chi2.ppf(_DOUBT, freedom)))
        return min(1.0, caution * float((between[live] / plain[live]).mean()))

    @cached_property
    def coef_errors(self) -> Floats:
        """Standard errors of the coefficients, (d, k), such that ±1.96 of them is a 95 % interval."""
        found = np.sqrt(self.gain * (self.influence[1:] ** 2 @ self.errors**2))
        found *= _student(np.maximum(self.variety.rarest, FEWEST) - 1)[:, None]
        found[self.variety.unknown] = np.inf
        return np.hypot(found, self.simulated[1:])

    def quality(self, design: Features, h: Floats, coef: Floats, f: Floats) -> Quality:
        """Var_w f, and errors of what is made of coefficients (d, k), by features (n, d) and answers (n, k).

        Var_w f is what the surrogate explains, βᵀΣβ, and the mean square of what it leaves: where it leaves
        nothing, R² is 1, however the sample happens to scatter.
        """
        there = np.concatenate([[1.0], design.departure])
        sampled = self.gain * ((there @ self.influence) ** 2 @ self.errors**2)
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
        total = (change.sum(axis=0) ** 2).sum() + simulated.sum()
        return float(np.sqrt(total)), np.sqrt((change**2).sum(axis=1) + simulated)


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
