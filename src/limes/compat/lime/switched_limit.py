r"""What lime converges to where features are removed, as words and superpixels are, in lime's words.

All pairs of features have the same covariance c under w, and Σ has eigenvalues a across (1, ..., 1) and
a + dc along it. A surrogate on m of the d features, S, is thus known from the one on all of them:

    β_j(S) = β_j + c / (a + mc) Σ_{out} β_l,      R² = Σ_S β_j(S) Γ_j / Var_w f.

Its standard errors are those of the whole: a few per cent too wide, as (Σ_SS⁻¹)_jj is below (Σ⁻¹)_jj.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Floats, Ints
from limes.compat.lime.lime_base import LocalFit
from limes.compat.lime.selection import NormalEquations, selected
from limes.designs.exchangeable import LARGEST_ENUMERATION, ExchangeableDesign
from limes.expectations.sampled import least_calls

# Rows that Var_w f and the range of the answers are estimated from
_ASKED = 4096

__all__ = ["Neighbourhood", "SwitchedLimit", "fewest", "limits_of"]


def fewest(d: int) -> int:
    """Model calls that the limit of d features is estimated from at least; all 2^d where these are fewer."""
    return min(1 << min(d, LARGEST_ENUMERATION), least_calls(d))


@dataclass(frozen=True, eq=False)
class SwitchedLimit:
    """One output's surrogate on all features: coefficients (d,), standard errors (d,) and intercept.

    ``fidelity`` is its R², NaN where nobody knows.
    """

    coef: Floats
    errors: Floats
    intercept: float
    fidelity: float
    design: ExchangeableDesign

    @cached_property
    def gamma(self) -> Floats:
        """Γ = Σβ, (d,)."""
        return self.design.gamma(self.coef)

    @cached_property
    def _covariances(self) -> tuple[float, float]:
        """Give a and c."""
        if self.design.size == 1:
            return 0.0, 0.0
        own, other = self.design.gamma(np.eye(self.design.size, 1))[:2, 0].tolist()
        return own - other, other

    @property
    def equations(self) -> NormalEquations:
        """Σ β = Γ."""
        gram = self.design.gamma(np.eye(self.design.size))
        return NormalEquations(gram, self.gamma, self.design.at_instance, lambda: self.coef)

    def fit(self, count: int, selection: str) -> LocalFit:
        """Keep the ``count`` features that ``selection`` takes; the score is NaN where R² is not known."""
        alone = self.design.size == 1  # there is nothing to select
        used = np.zeros(1, dtype=np.int64) if alone else selected(self.equations, count, selection)
        coef = self._coef(used)
        order = np.argsort(-np.abs(coef), kind="stable")
        mean = self.intercept + float(self.design.inclusion @ self.coef)
        intercept = mean - float(self.design.inclusion[used] @ coef)
        return LocalFit(
            intercept=intercept,
            features=used[order],
            coef=coef[order],
            errors=self.errors[used][order],
            score=self._share(used, coef) * self.fidelity,
            local_pred=intercept + float(coef.sum()),
        )

    def _coef(self, used: Ints) -> Floats:
        """The surrogate's coefficients on the used features alone."""
        across, shared = self._covariances
        along = across + len(used) * shared
        left_out = float(np.delete(self.coef, used).sum())
        return self.coef[used] + (shared / along * left_out if along > 0 else 0.0)

    def _share(self, used: Ints, coef: Floats) -> float:
        """What part of R² is left."""
        whole = float(self.coef @ self.gamma)
        return float(coef @ self.gamma[used]) / whole if whole > 0 else 1.0

    def score(self, fit: LocalFit, answers: Floats) -> float:
        """Weighted R² of a fit, Var_w f being that of answers (n,) to rows of w."""
        spread = float(np.var(answers))
        return min(float(fit.coef @ self.gamma[fit.features]) / spread, 1.0) if spread > 0 else 1.0


@dataclass(eq=False)
class Neighbourhood:
    """The model's answers to rows of w, asked when something of them is wanted.

    ``predict`` maps rows (n, d) to (n,) or (n, k); limits and fits are by label.
    """

    limits: Mapping[int, SwitchedLimit]
    fits: Mapping[int, LocalFit]
    predict: Callable[[Floats], Floats]

    @cached_property
    def said(self) -> Floats:
        """Answers (n, k)."""
        design = next(iter(self.limits.values())).design
        rows, _ = design.sample(_ASKED, np.random.SeedSequence(0))
        return self.predict(rows).reshape(_ASKED, -1)

    def scores(self) -> dict[int, float]:
        """Weighted R² of each fit."""
        return {k: self._score(k, fit) for k, fit in self.fits.items()}

    def bounds(self) -> tuple[float, float]:
        """Smallest and largest answer."""
        return float(self.said.min()), float(self.said.max())

    def _score(self, label: int, fit: LocalFit) -> float:
        if np.isfinite(fit.score):
            return fit.score
        return self.limits[label].score(fit, self.said[:, label])


def limits_of(
    coef: Floats, errors: Floats, intercepts: Floats, fidelity: Floats, design: ExchangeableDesign
) -> list[SwitchedLimit]:
    """Limits of each output of one text or image: arrays (1, d, k) or (1, d), and (1, k) or (1,)."""
    parts = zip(
        coef.reshape(design.size, -1).T,
        errors.reshape(design.size, -1).T,
        intercepts.ravel().tolist(),
        fidelity.ravel().tolist(),
        strict=True,
    )
    return [SwitchedLimit(*numbers, design) for numbers in parts]
