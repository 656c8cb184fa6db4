"""The estimator behind a bound method: ``model.predict_proba`` is read like ``model``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from limes.exceptions import InputError
from limes.models._calling.clusters import MEMBERSHIP
from limes.models._calling.outputs import Output, is_position, prediction_method, resolve


def behind_method(model: Any, output: Any = None) -> tuple[Any, Any]:
    """Return the estimator and output behind a bound method, such as ``model.predict_proba``.

    A model that can be read is read, and its classes keep their names. Positions of columns, which a
    callable is passed, become labels. ``predict`` of a classifier or clusterer, whose labels are no amounts,
    becomes what is explained of the model itself. Anything else is returned as it is: functions, methods that
    an instance replaces.
    """
    owner, name = getattr(model, "__self__", None), getattr(model, "__name__", "")
    if name not in _BEHIND or not hasattr(owner, "predict") or getattr(owner, name, None) != model:
        return model, output
    translated = _BEHIND[name](getattr(owner, "classes_", None), output)
    try:
        same = translated is not None and resolve(owner, translated[0]).method in (name, *_IN_PLACE_OF[name])
    except InputError:
        return model, output
    return (owner, translated[0]) if translated is not None and same else (model, output)


def _behind_predict(classes: Any, output: Any) -> tuple[Any] | None:  # noqa: ARG001 - one signature
    return (output,)


def _behind_probabilities(classes: Any, output: Any) -> tuple[Any] | None:
    """Turn positions into labels; positions run through the labels of several targets."""
    if classes is None or isinstance(classes, list):
        return None
    several = isinstance(output, list)
    positions = output if several else [output]
    if output is None or not all(is_position(i) and i < len(classes) for i in positions):
        return (output,)
    labels = [classes[i] for i in positions]
    return (labels if several else labels[0],)


def _behind_margin(classes: Any, output: Any) -> tuple[Any] | None:  # noqa: ARG001 - one signature
    return ("margin",) if output is None else None


_BEHIND: Mapping[str, Callable[[Any, Any], tuple[Any] | None]] = {
    "predict": _behind_predict,
    "predict_proba": _behind_probabilities,
    "decision_function": _behind_margin,
}


# Methods that are explained in the place of one that answers labels
_IN_PLACE_OF: Mapping[str, tuple[str, ...]] = {
    "predict": ("predict_proba", "decision_function", MEMBERSHIP),
    "predict_proba": (),
    "decision_function": (),
}


def is_log_odds(model: Any, output: Output, table: Any) -> bool:
    """Return whether a margin is the log-odds of the second of two classes, by predictions for a table."""
    if output.method != "decision_function" or len(output.labels or ()) != 1:
        return False
    from scipy.special import expit

    margin, probability = (prediction_method(model, name) for name in ("decision_function", "predict_proba"))
    if margin is None or probability is None:
        return False
    odds = expit(np.asarray(margin(table), dtype=np.float64))
    return np.allclose(odds, np.asarray(probability(table))[:, -1], rtol=0.0, atol=_SAME_PROBABILITY)


# Probabilities in single precision differ by less
_SAME_PROBABILITY = 1e-5
