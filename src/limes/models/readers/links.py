"""Probabilities of two classes behind a link, from the form of their margin."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from limes.exceptions import InputError
from limes.models._reading import CannotRead, Reader, Schema
from limes.models.forms._base import Form
from limes.models.forms._linked import Linked


def logistic_of(margin: Form) -> Linked:
    """The probabilities of two classes, 1 - σ(margin) and σ(margin).

    Raises
    ------
    InputError
        If the margin is not a sum of functions of one column each, or of small groups of columns.
    """
    return Linked(margin, "logistic", np.array([[-1.0, 1.0]]), np.array([1.0, 0.0]))


def _always(model: Any) -> bool:  # noqa: ARG001
    return True


def with_probabilities(reader: Reader, *, where: Callable[[Any], bool] = _always) -> Reader:
    """Let a reader of margins read probabilities of two classes, the logistic of the margin.

    Where the margin is no sum of functions of a few columns, the reader itself raises the reason.
    ``where`` tells of which models the probability is the logistic of the margin.
    """

    @wraps(reader)
    def read(model: Any, method: str, schema: Schema | None) -> Form:
        if method == "predict_proba" and len(getattr(model, "classes_", ())) == 2 and where(model):
            margin = reader(model, "decision_function", schema)
            try:
                return logistic_of(margin)
            except InputError as error:
                raise CannotRead(f"{_reason(reader, model, schema)} ({error})") from error
        return reader(model, method, schema)

    return read


def _reason(reader: Reader, model: Any, schema: Schema | None) -> str:
    """Why the reader does not read the probabilities."""
    try:
        reader(model, "predict_proba", schema)
    except CannotRead as error:
        return str(error)
    return "its probabilities are no sum"
