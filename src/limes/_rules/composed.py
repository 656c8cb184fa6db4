"""Bounds of classifiers that are made of others: soft votes, calibrated and stacked ones.

Their probability of the second of two classes rises or falls with an answer of each of their parts: a vote is
a mean of chances, a calibrated classifier a monotone curve of one answer, averaged over the folds, and a
stack of chances under a logistic regression the logistic function of a weighted sum. So bounds of the parts
bound it. What was put together counts only if it gives the model's own answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from limes._arrays import Floats
from limes._rules.bounds import Bounds, Box, Range, Texture, WeightedBounds, bounds_of
from limes.exceptions import InputError
from limes.models._calling.caller import ModelCaller, OneOutput
from limes.models._calling.outputs import Output, resolve
from limes.models._identity import qualified_name
from limes.models._reading import CannotRead
from limes.models.forms._base import Form, outputs_of
from limes.models.readers.links import Curve, matching_curve

# Margins beyond which curves are taken to be at their ends
_FAR = 1e30
# Largest difference of two chances at the same row
_APART = 1e-6

Read = Callable[[Any, Output], Form]


@dataclass(frozen=True, eq=False)
class CurvedBounds(Bounds):
    """Bounds of a monotone curve of what has bounds."""

    margin: Bounds
    curve: Curve

    def values(self, rows: Floats) -> Floats:
        return np.asarray(self.curve(self.margin.values(rows)))

    def texture(self, j: int) -> Texture:
        return self.margin.texture(j)

    def __call__(self, box: Box) -> Range:
        inner = self.margin(box)
        low, high = np.sort(self.curve(np.clip([inner.low, inner.high], -_FAR, _FAR))).tolist()
        # a flat part of the curve leaves nothing to decide
        stakes = inner.stakes if high > low else np.zeros(inner.stakes.size)
        return Range(low, high, inner.columns, inner.thresholds, stakes)

    def lowest(self, box: Box, sign: float) -> Floats | None:
        first, last = self.curve(np.array([-_FAR, _FAR])).tolist()
        return self.margin.lowest(box, sign if first <= last else -sign)


@dataclass(frozen=True, eq=False)
class Parts:
    """How parts of a model are read and called on rows (n, d)."""

    read: Read
    decode: Callable[[Floats], Any]
    rows: Floats  # at which what was read is compared with the model

    def chance(self, model: Any) -> Bounds | None:
        """Return bounds of the probability of the second of two classes; None where it has none."""
        composed = _COMPOSED.get(qualified_name(type(model)))
        if composed is not None:
            return self._confirmed(model, composed(self, model))
        output = resolve(model)
        if output.method != "predict_proba" or len(getattr(model, "classes_", ())) != 2:
            return None
        return self._bounds(model, output) or self._behind_link(model, output)

    def _bounds(self, model: Any, output: Output) -> Bounds | None:
        try:
            form = self.read(model, output)
        except (CannotRead, InputError):
            return None
        return bounds_of(form.select(1) if outputs_of(form) else form)

    def _behind_link(self, model: Any, output: Output) -> Bounds | None:
        margin = self.score(model)
        if margin is None:
            return None
        answers = self._answers(model, output)
        curve = matching_curve(margin.values(self.rows), answers, lambda chances: chances[:, 1], _APART)
        return None if curve is None else CurvedBounds(margin, curve)

    def score(self, model: Any) -> Bounds | None:
        """Return bounds of a model's margin."""
        try:
            output = resolve(model, "margin")
        except InputError:
            return None
        return self._bounds(model, output)

    def _answers(self, model: Any, output: Output) -> Floats:
        return OneOutput(ModelCaller(model, output, self.decode), output)(self.rows)

    def _confirmed(self, model: Any, bounds: Bounds | None) -> Bounds | None:
        """Return bounds if they are of the model's own answers."""
        if bounds is None:
            return None
        answers = self._answers(model, resolve(model))
        return bounds if (np.abs(bounds.values(self.rows) - answers) <= _APART).all() else None


def _mean(parts: Sequence[Bounds | None], weights: Any, intercept: float = 0.0) -> Bounds | None:
    bounded = tuple(part for part in parts if part is not None)
    if len(bounded) < len(parts) or not bounded:
        return None
    return WeightedBounds(bounded, np.asarray(weights, dtype=np.float64), intercept)


def _vote(parts: Parts, model: Any) -> Bounds | None:
    if model.voting != "soft" or len(model.classes_) != 2:
        return None
    weights = model._weights_not_none  # noqa: SLF001 - those of the estimators that were not dropped
    weights = np.ones(len(model.estimators_)) if weights is None else np.asarray(weights, dtype=np.float64)
    return _mean([parts.chance(part) for part in model.estimators_], weights / weights.sum())


def _calibrated(parts: Parts, model: Any) -> Bounds | None:
    if len(model.classes_) != 2:
        return None
    curved = [_calibrated_once(parts, one) for one in model.calibrated_classifiers_]
    return _mean(curved, np.full(len(curved), 1.0 / len(curved)))


def _calibrated_once(parts: Parts, one: Any) -> Bounds | None:
    by_score = hasattr(one.estimator, "decision_function")
    inner = parts.score(one.estimator) if by_score else parts.chance(one.estimator)
    if inner is None or len(one.calibrators) != 1:
        return None
    (calibrator,) = one.calibrators

    def curve(values: Floats) -> Floats:
        return np.asarray(calibrator.predict(np.clip(values, -_FAR, _FAR)), dtype=np.float64)

    return CurvedBounds(inner, curve)


def _stack(parts: Parts, model: Any) -> Bounds | None:
    final = model.final_estimator_
    is_logistic = qualified_name(type(final)) == "sklearn.LogisticRegression" and len(model.classes_) == 2
    if not is_logistic or model.passthrough or set(model.stack_method_) != {"predict_proba"}:
        return None
    inner = [parts.chance(part) for part in model.estimators_]
    if len(inner) != final.coef_.size:
        return None
    margin = _mean(inner, final.coef_[0], float(final.intercept_[0]))
    return None if margin is None else CurvedBounds(margin, expit)


_COMPOSED: dict[str, Callable[[Parts, Any], Bounds | None]] = {
    "sklearn.VotingClassifier": _vote,
    "sklearn.CalibratedClassifierCV": _calibrated,
    "sklearn.StackingClassifier": _stack,
}


def is_composed(model: Any) -> bool:
    return qualified_name(type(model)) in _COMPOSED
