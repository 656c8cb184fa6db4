"""What an engine finds for one instance, whatever it is made of: one surrogate a label."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from limes._arrays import Floats, Ints
from limes.compat.lime.explanation import Explanation, PerLabel
from limes.compat.lime.lime_base import LocalFit
from limes.compat.lime.way_back import renamed

if TYPE_CHECKING:
    from limes.explanation import Explanation as Told

AnExplanation = TypeVar("AnExplanation", bound=Explanation)

__all__ = ["Surrogates", "dense", "explained", "filled", "named"]


@dataclass(frozen=True, eq=False)
class Surrogates:
    """Fits by label and answers (k,); when asked for: scores, the answers' range, limes' explanation."""

    fits: Mapping[int, LocalFit]
    score: Callable[[], dict[int, float]]
    answers: Floats
    bounds: Callable[[], tuple[float, float]]
    limes: Any


def dense(fits: Mapping[int, LocalFit], d: int) -> tuple[Floats, Floats]:
    """Coefficients and standard errors (1, d, labels), 0 for features that are not in a fit."""
    values, errors = np.zeros((2, 1, d, len(fits)))
    for place, fit in enumerate(fits.values()):
        values[0, fit.features, place] = fit.coef
        errors[0, fit.features, place] = fit.errors
    return values, errors


def explained(
    fits: Mapping[int, LocalFit], mode: str, *, predictions: Floats, calls: Ints, **fields: Any
) -> Told:
    """Tell lime's fits of one row as an explanation of limes; a regression has no axis of outputs."""
    from limes.explanation import Explanation as Told

    values, errors = dense(fits, len(fields["feature_names"]))
    told = list(fits.values())
    numbers = np.array([[(f.intercept, f.local_pred, f.score) for f in told]])
    one = (..., 0) if mode == "regression" else (...,)
    return Told(
        values=values[one],
        standard_errors=errors[one],
        intercepts=numbers[..., 0][one],
        predictions=predictions[None][one],
        surrogate_predictions=numbers[..., 1][one],
        fidelity=numbers[..., 2][one],
        output_names=("output",) if mode == "regression" else tuple(str(k) for k in fits),
        method="sampled",
        reason='engine "lime" samples',
        calls=calls,
        row_converged=np.array([True]),
        row_warnings=((),),
        **fields,
    )


def filled(
    explanation: AnExplanation, found: Surrogates, engine: tuple[str, str], *, top: bool
) -> AnExplanation:
    """Put what was found into lime's result object, by which engine and why, and if of the ``top`` labels."""
    explanation.engine, explanation.engine_reason = engine
    if top and explanation.mode == "classification":
        explanation.top_labels = [*found.fits]
    explanation.limes = found.limes
    for label, fit in found.fits.items():
        explanation.local_exp[label] = fit.pairs
        explanation.standard_errors[label] = [
            (int(j), float(e)) for j, e in zip(fit.features, fit.errors, strict=True)
        ]
        explanation.intercept[label] = fit.intercept
    told = partial(_told, explanation.mode, bool(explanation.top_labels))
    explanation.local_pred = told({label: fit.local_pred for label, fit in found.fits.items()})
    explanation.score = partial(_scored, told, found.score)
    explanation.known_scores = told({label: fit.score for label, fit in found.fits.items()})
    if explanation.mode == "classification":
        explanation.predict_proba = found.answers
    else:
        explanation.predicted_value = float(found.answers[0])
        explanation.ranges_over(found.bounds)
        _mirrored(explanation)
    return explanation


def _scored(told: Callable[[dict[int, float]], PerLabel], score: Callable[[], dict[int, float]]) -> PerLabel:
    return told(score())


def _told(mode: str, top: bool, values: dict[int, float]) -> PerLabel:
    """A regression is told as label 1; of the largest answers lime explains the very largest last."""
    if mode == "regression":
        return PerLabel({1: values[0]})
    return PerLabel(dict(reversed(values.items())) if top else values)


def _mirrored(explanation: Explanation) -> None:
    """Of a regression label 0 has the coefficients of label 1 turned round, as lime has them."""
    for told in (explanation.local_exp, explanation.standard_errors):
        told[1] = told.pop(0)
    explanation.local_exp[0] = [(j, -value) for j, value in explanation.local_exp[1]]
    explanation.standard_errors[0] = list(explanation.standard_errors[1])
    explanation.intercept[1] = explanation.intercept[0]


def named(found: Surrogates, classes: Sequence[Any] | None) -> Surrogates:
    """Give limes' explanation the classes' names, where they have names of their own."""
    names = () if classes is None else tuple(str(classes[k]) for k in found.fits)
    if not names or len(set(names)) < len(names):
        return found
    return replace(found, limes=partial(_with_outputs, found.limes, names))


def _with_outputs(told: Any, names: tuple[str, ...]) -> Any:
    return renamed(told() if callable(told) else told, output_names=names)
