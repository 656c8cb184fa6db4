"""Probabilities of two classes behind a link, and of three behind a softmax, from their margins."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from limes.exceptions import InputError
from limes.models._algebra import combine
from limes.models._reading import CannotRead, Reader, Schema
from limes.models.forms._base import Form
from limes.models.forms._linked import Linked, Softmax
from limes.models.forms._links import CLASSES


def logistic_of(margin: Form) -> Linked:
    """The probabilities of two classes, 1 - σ(margin) and σ(margin)."""
    return Linked(margin, "logistic", np.array([[-1.0, 1.0]]), np.array([1.0, 0.0]))


def _always(model: Any) -> bool:  # noqa: ARG001
    return True


def _unscaled(model: Any) -> float:  # noqa: ARG001
    return 1.0


def with_probabilities(
    reader: Reader,
    *,
    where: Callable[[Any], bool] = _always,
    scale: Callable[[Any], float] = _unscaled,
) -> Reader:
    """Extend a reader of margins to probabilities: the logistic of two classes, the softmax of three.

    Where the margin is no sum of functions of a few columns, the reader itself raises the reason.
    ``where`` returns whether a model's probability is the logistic of the margin. ``scale`` returns the
    factor of three margins before the softmax; 0 where probabilities are another function of them.
    """

    def probabilities(model: Any, classes: int, schema: Schema | None) -> Form:
        margin = reader(model, "decision_function", schema)
        if classes < CLASSES:
            return logistic_of(margin)
        factor = scale(model)
        return Softmax(margin if factor == 1.0 else combine([margin], [factor]))

    @wraps(reader)
    def read(model: Any, method: str, schema: Schema | None) -> Form:
        classes = len(getattr(model, "classes_", ())) if method == "predict_proba" else 0
        if (classes == 2 and where(model)) or (classes == CLASSES and scale(model)):
            try:
                return probabilities(model, classes, schema)
            except InputError as error:
                raise CannotRead(f"{_reason(reader, model, schema)} ({error})") from error
        return reader(model, method, schema)

    return read


def _reason(reader: Reader, model: Any, schema: Schema | None) -> str:
    try:
        reader(model, "predict_proba", schema)
    except CannotRead as error:
        return str(error)
    return "its probabilities are no sum"
