r"""What lime converges to on a table, in lime's words.

Columns are independent, so features are uncorrelated: leaving some out changes no coefficient, and

    intercept = β₀ + Σ_out β_j E_w h_j,      R² = Σ_in β_j² Var_w h_j / Var_w f.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.compat.lime.answers import Answers, as_said, model_behind
from limes.compat.lime.lime_base import LocalFit, report
from limes.compat.lime.selection import NormalEquations, selected
from limes.compat.lime.surrogates import Surrogates
from limes.compat.lime.tables.training import Request, Training
from limes.compat.lime.way_back import renamed
from limes.designs import ProductDesign
from limes.designs.features import Features, taken
from limes.exceptions import InputError
from limes.expectations.sampled import least_calls
from limes.models.asking import answer_of
from limes.models.state import ModelState, state_of

# Share of the answers' size, below which they are all the same
_ROUNDING = 1e-12
# Rows that Var_w f and the range of the answers are estimated from
_SCORED = 4096

__all__ = ["Limit", "LimitEngine"]


@dataclass(frozen=True, eq=False)
class Limit:
    """One output's coefficients (d,) and standard errors (d,), and the moments of their features (d,).

    lime's features are (h - origin) / scale.
    """

    coef: Floats
    errors: Floats
    intercept: float
    moments: Features
    scale: Floats
    origin: Floats

    @property
    def explained(self) -> Floats:
        """Variance of the model that each feature explains, (d,)."""
        return np.asarray(self.coef**2 * self.moments.variance)

    def fit(self, count: int, selection: str) -> LocalFit:
        """Keep the ``count`` features that ``selection`` takes; the score is not known yet."""
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

    def _equations(self, scaled: Floats) -> NormalEquations:
        """Of lime's features, which are uncorrelated."""
        variance = self.moments.variance / self.scale**2
        here = (self.moments.at_instance - self.origin) / self.scale
        return NormalEquations(np.diag(variance), scaled * variance, here, lambda: scaled)


@dataclass(eq=False)
class Neighbourhood:
    """The model's answers to rows of the weighted law: asked when something of them is wanted."""

    limits: Mapping[int, Limit]
    fits: Mapping[int, LocalFit]
    design: Callable[[], ProductDesign]
    answers: Answers
    decode: Callable[[Floats], Any]
    seed: int

    @cached_property
    def said(self) -> Floats:
        """Answers (n, k)."""
        from scipy.stats import qmc

        design = self.design()
        levels = qmc.Sobol(design.size, rng=np.random.default_rng(self.seed)).random(_SCORED)
        return self.answers(self.decode(design.draw(np.clip(levels, 2.0**-54, 1.0 - 2.0**-53))[0]))

    def scores(self) -> dict[int, float]:
        """Weighted R² of each fit."""
        return {label: self._score(label, fit) for label, fit in self.fits.items()}

    def bounds(self) -> tuple[float, float]:
        """Smallest and largest answer."""
        return float(self.said.min()), float(self.said.max())

    def _score(self, label: int, fit: LocalFit) -> float:
        said = self.said[:, label]
        # what rounding makes of answers that are all the same is nothing to be explained
        if said.std() <= _ROUNDING * np.abs(said).max():
            return 1.0
        return float(self.limits[label].explained[fit.features].sum() / said.var())


@dataclass(frozen=True, eq=False)
class _Known:
    """limes' explainer of a prediction function; ``parts`` are of the model it was read off."""

    answers: Answers
    samples: int
    model: Any
    state: ModelState
    explainer: Any

    def serves(self, request: Request) -> bool:
        same = (self.answers, self.samples) == (request.answers, request.samples)
        return same and self.state.equals(state_of(self.model))


@dataclass(eq=False)
class LimitEngine:
    """Answers requests by the limit; keeps limes' explainer of the model that it was last asked about.

    Attributes
    ----------
    training, mode, selection, seed, verbose
        lime's.
    background
        Rows (n, d) that stand for the training data.
    options
        Of :class:`limes.TabularExplainer`.
    """

    training: Training
    background: Floats
    mode: str
    selection: str
    seed: int
    options: Mapping[str, Any]
    verbose: bool
    _known: _Known | None = None

    def __call__(self, request: Request) -> Surrogates:
        """Surrogates of a row; their scores and range ask the model when they are asked for."""
        table = self.training.table
        row = table.decode(request.row[None])
        explainer = self._explainer(request)
        with as_said():
            done = explainer._fit(row, progress=False)  # noqa: SLF001 - its numbers alone
        said = self._said(done.predictions, request.answers)
        labels = request.labels(said)
        limits = dict(zip(labels, self._limits(done.fitted, labels), strict=True))
        fits = {k: limit.fit(request.features, self.selection) for k, limit in limits.items()}
        if self.verbose:
            for k, fit in fits.items():
                report(fit, float(said[k]))
        near = Neighbourhood(
            limits, fits, partial(explainer.design, row), request.answers, table.decode, self.seed
        )
        return Surrogates(
            fits, near.scores, said, near.bounds, partial(self._in_words, explainer, done, request, labels)
        )

    def _in_words(self, explainer: Any, done: Any, request: Request, labels: Sequence[int]) -> Any:
        """Give limes' explanation with lime's names of columns and bins."""
        found = explainer._to_explanation(done)  # noqa: SLF001
        told = found if self.mode == "regression" else found[..., labels]
        conditions = (self.training.conditions(request.row),)
        return renamed(told, feature_names=tuple(self.training.names), conditions=conditions)

    def _said(self, predictions: Floats, answers: Answers) -> Floats:
        found = predictions.reshape(1, -1)
        return np.asarray((answers.of_regression(found) if self.mode == "regression" else found)[0])

    def _limits(self, fitted: Any, labels: Sequence[int]) -> list[Limit]:
        d, surrogate = len(self.training.names), fitted.surrogate
        moments = taken(fitted.features, np.array(0))
        values, errors = surrogate.coef.reshape(d, -1), surrogate.standard_errors.reshape(d, -1)
        intercepts, units = surrogate.intercept.reshape(-1), (self.training.unit, self.training.origin)
        return [Limit(values[:, k], errors[:, k], float(intercepts[k]), moments, *units) for k in labels]

    def _explainer(self, request: Request) -> Any:
        """The known explainer, as long as it is of the same function, and its model was not fitted again."""
        known = self._known  # read once: another thread may replace it
        if known is None or not known.serves(request):
            behind = model_behind(request.answers.predict_fn, self.mode)
            model, output = behind or (self._function(request.answers), None)
            # what is only asked tells nothing that could grow old
            read = model if behind else None
            with as_said():
                made = self._made(model, output, request)
            known = self._known = _Known(request.answers, request.samples, read, state_of(read), made)
        return known.explainer

    def _function(self, answers: Answers) -> Callable[[Any], Floats]:
        return answers.flat if self.mode == "regression" else answers

    def _made(self, model: Any, output: str | None, request: Request) -> Any:
        # probabilities of a model whose margin can be read follow it
        if output == "probability" and answer_of(model, "decision_function") is not None:
            with suppress(InputError):
                return self._explaining(model, output, request, control="margin")
        # a tenth of the time of "auto", and most of its gain
        return self._explaining(model, output, request, control="additive")

    def _explaining(self, model: Any, output: str | None, request: Request, *, control: str) -> Any:
        from limes.explainers.tabular import TabularExplainer

        table = self.training.table
        categorical = np.flatnonzero(~table.numeric).tolist()
        return TabularExplainer(
            model,
            table.decode(self.background),
            output=output,
            categorical=categorical or None,
            max_calls=max(request.samples, least_calls(len(self.training.names))),
            control=control,
            rng=self.seed,
            **self.options,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": None}
