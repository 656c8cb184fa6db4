"""What lime converges to on a text, in lime's words: by :class:`limes.TextExplainer`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.compat.lime.answers import Answers, as_said, model_behind
from limes.compat.lime.lime_base import report
from limes.compat.lime.surrogates import Surrogates
from limes.compat.lime.switched_limit import Neighbourhood, fewest, limits_of
from limes.compat.lime.texts.law import TextRequest
from limes.explainers.texts.tokens import Spans
from limes.models.text_models import TextModel

__all__ = ["LimitEngine", "pipeline_behind"]


@dataclass(frozen=True, eq=False)
class LimitEngine:
    """Answers requests by the limit.

    Attributes
    ----------
    spans
        Where words stand.
    bandwidth
        ν, a hundredth of lime's kernel width.
    """

    spans: Spans
    bandwidth: float
    selection: str
    seed: int
    mode: str
    verbose: bool

    def __call__(self, request: TextRequest) -> Surrogates:
        """Surrogates of a text; scores that are not known ask the model when they are asked for."""
        document = request.indexed.document
        explainer = self._explainer(request)
        with as_said():
            done = explainer._fit(document, progress=request.progress)  # noqa: SLF001 - its numbers alone
        said = self._said(done.predictions, request.answers)
        labels = request.labels(said)
        surrogate, design = done.fitted.surrogate, done.fitted.features
        numbers = surrogate.coef, surrogate.standard_errors, surrogate.intercept, surrogate.fidelity
        every = limits_of(*numbers, design)
        limits = {k: every[k] for k in labels}
        fits = {k: limit.fit(request.features, self.selection) for k, limit in limits.items()}
        if self.verbose:
            for k, fit in fits.items():
                report(fit, float(said[k]))
        told = cache(partial(explainer._to_explanation, done))  # noqa: SLF001
        near = Neighbourhood(limits, fits, lambda z: _scene(told()).predict(z))
        return Surrogates(
            fits,
            near.scores,
            said,
            near.bounds,
            lambda: told() if self.mode == "regression" else told()[..., labels],
        )

    def _said(self, predictions: Floats, answers: Answers) -> Floats:
        found = predictions.reshape(1, -1)
        return (answers.of_regression(found) if self.mode == "regression" else found).ravel()

    def _explainer(self, request: TextRequest) -> Any:
        from limes.explainers.text import TextExplainer

        model, output = pipeline_behind(request.answers) or (_named(request.answers), None)
        return TextExplainer(
            model,
            output=output,
            split=self.spans,
            bag="spelling" if request.indexed.bow else False,
            mask=None if request.indexed.bow else request.indexed.mask_string,
            bandwidth=self.bandwidth,
            # what can be taken apart is asked about as many texts as its words need, at the least
            max_calls=max(request.samples, fewest(request.indexed.num_words())),
            rng=self.seed,
        )


def pipeline_behind(answers: Answers) -> tuple[Any, str | None] | None:
    """The Pipeline and output of a bound method such as ``pipeline.predict_proba``; None of all else.

    Raises
    ------
    InputError
        If it is the method of a model that takes numbers.
    """
    behind = model_behind(answers.predict_fn, answers.mode)
    return behind if behind is not None and TextModel.of(behind[0]).steps else None


def _named(answers: Answers) -> Callable[[Any], Floats]:
    """The answers as a function that errors can name."""

    def predict_fn(texts: Any) -> Floats:
        return answers.flat(texts) if answers.mode == "regression" else answers(texts)

    return predict_fn


def _scene(told: Any) -> Any:
    return told.explainer.scene(told, output=np.arange(len(told.output_names)), calls=None)
