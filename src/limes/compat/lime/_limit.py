r"""Engine "limit": what lime converges to, with a surrogate on some of the features only, as lime has it.

Features of tables are uncorrelated under w, so that leaving some out changes no coefficient:

    intercept = β₀ + Σ_out β_j E_w h_j,                R² = Σ_in β_j² Var_w h_j / Var_w f.

Words and superpixels are removed, all pairs with the same covariance c, and Σ has eigenvalues a across
(1, ..., 1) and a + dc along it. A surrogate on m of the d features, S, follows from the one on all of them:

    β_j(S) = β_j + c / (a + mc) Σ_out β_l,             R² = Σ_S β_j(S) Γ_j / Var_w f.

Its standard errors are those of the whole: a few per cent too wide, as (Σ_SS⁻¹)_jj is below (Σ⁻¹)_jj.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.sampled import least_calls
from limes._variance import r_squared
from limes.compat.lime.lime_base import CentredEquations, LocalFit, Surrogates, report, selected
from limes.designs._exchangeable import LARGEST_ENUMERATION, ExchangeableDesign
from limes.designs._features import Features
from limes.exceptions import LimesError, ModelError
from limes.models._identity import ModelState, state_of

if TYPE_CHECKING:
    from limes._explanation import Explanation as LimesExplanation
    from limes.compat.lime._call import Call, Kind

# Rows that the range of the answers is estimated from
SCORED_ROWS = 4096


def least_subset_calls(d: int) -> int:
    """Model calls that the limit of d words or superpixels needs; all 2^d where these are fewer."""
    return min(1 << min(d, LARGEST_ENUMERATION), least_calls(d))


@dataclass(frozen=True, eq=False)
class IndependentLimit:
    """One output's coefficients (d,) and standard errors (d,), and the moments of their features (d,).

    lime's features are (h - origin) / scale.
    """

    coef: Floats
    errors: Floats
    intercept: float
    moments: Features
    scale: Floats
    origin: Floats

    def fit(self, count: int, selection: str) -> LocalFit:
        """Keep the ``count`` features that ``selection`` selects; the score is NaN until it is read."""
        scaled = self.coef * self.scale
        kept = selected(self._equations(scaled), count, selection)
        kept = kept[np.argsort(-np.abs(scaled[kept]), kind="stable")]
        out = np.ones(len(self.coef), dtype=bool)
        out[kept] = False
        intercept = self.intercept + float(self.coef[out] @ self.moments.inclusion[out])
        return LocalFit(
            intercept=intercept + float(self.coef[kept] @ self.origin[kept]),
            features=kept,
            coef=scaled[kept],
            errors=(self.errors * self.scale)[kept],
            score=np.nan,
            local_pred=intercept + float(self.coef[kept] @ self.moments.at_instance[kept]),
        )

    def share(self, fit: LocalFit) -> float:
        """What part of R² the features of a fit keep."""
        explained = np.asarray(self.coef**2 * self.moments.variance)
        mean = self.intercept + float(self.moments.inclusion @ self.coef)
        return float(r_squared(explained[fit.features].sum(), explained.sum(), mean)[0])

    def _equations(self, scaled: Floats) -> CentredEquations:
        """Normal equations of lime's features, which are uncorrelated."""
        variance = self.moments.variance / self.scale**2
        at_instance = (self.moments.at_instance - self.origin) / self.scale
        return CentredEquations(np.diag(variance), scaled * variance, at_instance, lambda: scaled)


@dataclass(frozen=True, eq=False)
class ExchangeableLimit:
    """One output's surrogate on all features: coefficients (d,), standard errors (d,) and intercept.

    ``fidelity`` is its R², NaN where it is not known.
    """

    coef: Floats
    errors: Floats
    intercept: float
    fidelity: float
    design: ExchangeableDesign

    def fit(self, count: int, selection: str) -> LocalFit:
        """Keep the ``count`` features that ``selection`` selects; the score is NaN where R² is not known."""
        single = self.design.size == 1  # nothing to select from
        used = np.zeros(1, dtype=np.int64) if single else selected(self._equations, count, selection)
        coef = self._coef(used)
        share = self._share(used, coef)
        order = np.argsort(-np.abs(coef), kind="stable")
        mean = self.intercept + float(self.design.inclusion @ self.coef)
        intercept = mean - float(self.design.inclusion[used] @ coef)
        return LocalFit(
            intercept=intercept,
            features=used[order],
            coef=coef[order],
            errors=self.errors[used][order],
            score=share * self.fidelity,
            local_pred=intercept + float(coef.sum()),
        )

    def share(self, fit: LocalFit) -> float:
        """What part of R² the features of a fit keep."""
        return self._share(fit.features, fit.coef)

    @cached_property
    def _gamma(self) -> Floats:
        """Γ = Σβ, (d,)."""
        return self.design.gamma(self.coef)

    @cached_property
    def _covariances(self) -> tuple[float, float]:
        """The eigenvalue a and the covariance c."""
        if self.design.size == 1:
            return 0.0, 0.0
        variance, covariance = self.design.gamma(np.eye(self.design.size, 1))[:2, 0].tolist()
        return variance - covariance, covariance

    @property
    def _equations(self) -> CentredEquations:
        """Σ β = Γ."""
        gram = self.design.gamma(np.eye(self.design.size))
        return CentredEquations(gram, self._gamma, self.design.at_instance, lambda: self.coef)

    def _coef(self, used: Ints) -> Floats:
        """The surrogate's coefficients on the used features alone."""
        across, shared = self._covariances
        along = across + len(used) * shared
        left_out = float(np.delete(self.coef, used).sum())
        return self.coef[used] + (shared / along * left_out if along > 0 else 0.0)

    def _share(self, used: Ints, coef: Floats) -> float:
        mean = self.intercept + float(self.design.inclusion @ self.coef)
        return float(r_squared(coef @ self._gamma[used], self.coef @ self._gamma, mean)[0])


def exchangeable_limits(
    coef: Floats, errors: Floats, intercepts: Floats, fidelity: Floats, design: ExchangeableDesign
) -> list[ExchangeableLimit]:
    """Limits of each output of one text or image: arrays (1, d, k) or (1, d), and (1, k) or (1,)."""
    outputs = zip(
        coef.reshape(design.size, -1).T,
        errors.reshape(design.size, -1).T,
        intercepts.ravel().tolist(),
        fidelity.ravel().tolist(),
        strict=True,
    )
    return [ExchangeableLimit(*numbers, design) for numbers in outputs]


@dataclass(frozen=True, eq=False)
class Limits:
    """What a kind of data computes for one instance: the model's answer (k,) at it, and limits by label.

    ``ask`` calls the model with rows of w, for answers (n, k): once, when a bound is read. ``explanation``
    makes that of limes, whose outputs are the labels in their order.
    """

    prediction: Floats
    by_label: Mapping[int, IndependentLimit | ExchangeableLimit]
    ask: Callable[[], Floats]
    explanation: Callable[[], LimesExplanation]

    @cached_property
    def _answers(self) -> Floats:
        return self.ask()

    def scores(self, fits: Mapping[int, LocalFit]) -> dict[int, float]:
        """Weighted R² of each fit: that of all features, times the part that the fit's features keep."""
        whole = dict(zip(self.by_label, np.atleast_1d(self.explanation().fidelity[0]).tolist(), strict=True))
        return {label: self.by_label[label].share(fit) * whole[label] for label, fit in fits.items()}

    def bounds(self) -> tuple[float, float]:
        """Smallest and largest answer."""
        return float(self._answers.min()), float(self._answers.max())


@dataclass(frozen=True, eq=False)
class _CachedExplainer:
    """limes' explainer of one function and number of samples; ``state`` is of the model it was read off."""

    key: tuple[Any, int]
    state: ModelState
    explainer: Any

    def serves(self, key: tuple[Any, int]) -> bool:
        """Whether the function and the number are the same, and the model was not fitted again since."""
        return self.key == key and self.state.holds()


@dataclass(eq=False)
class LimitEngine:
    """Answers calls by the limit; caches limes' explainer of the last one, where the kind of data lets it.

    Threads may share it.
    """

    kind: Kind
    selection: str
    verbose: bool
    _cached: _CachedExplainer | None = None

    def __call__(self, call: Call) -> Surrogates:
        """Compute surrogates; scores and bounds are computed when they are read."""
        with _unwrapped_errors():
            limits = self.kind.limits(self._explainer(call), call)
        fits = {k: limit.fit(call.num_features, self.selection) for k, limit in limits.by_label.items()}
        if self.verbose:
            for k, fit in fits.items():
                report(fit, float(limits.prediction[k]))
        scores = partial(limits.scores, fits)
        return Surrogates(fits, limits.prediction, scores, limits.bounds, limits.explanation)

    def _explainer(self, call: Call) -> Any:
        if not self.kind.reuses_explainers:
            return self.kind.explainer(call)[0]
        key = (call.predict, call.num_samples)
        cached = self._cached  # read once: another thread may replace it at any time
        if cached is None or not cached.serves(key):
            explainer, model = self.kind.explainer(call)
            cached = self._cached = _CachedExplainer(key, state_of(model), explainer)
        return cached.explainer

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_cached": None}


@contextmanager
def _unwrapped_errors() -> Iterator[None]:
    """Unwrap errors of limes' checks, which were raised inside the model and so look like its failure."""
    try:
        yield
    except ModelError as error:
        if isinstance(error.__cause__, LimesError):
            raise error.__cause__ from error.__cause__.__cause__  # what the user's function raised
        raise
