"""Options of sparse explanations, checked; and the one output of a model that is explained."""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.explainers.options import check_count, check_size
from limes.models.calling.caller import ModelCaller
from limes.models.calling.outputs import Output
from limes.surrogates.sparse import AnswerScale


class OneOutput:
    """The one output of a model that is explained: (m, columns) -> (m,)."""

    def __init__(self, ask: ModelCaller, wanted: Output) -> None:
        self._asker = ask
        labels = wanted.labels
        # of two classes the second says all
        self.column = 1 if wanted.columns is None and labels is not None and len(labels) == 2 else None
        self.name = "output" if labels is None else labels[self.column or 0] if len(labels) <= 2 else ""

    def __call__(self, x: Floats) -> Floats:
        answer = self._asker(x)
        if answer.ndim == 2 and self.column is not None:
            return answer[:, self.column]
        if answer.ndim == 2 and answer.shape[1] == 1:
            return answer[:, 0]
        if answer.ndim == 2:
            raise InputError(
                f"the model has {answer.shape[1]} outputs, and a sparse explanation is of one: choose it by "
                "output="
            )
        return answer


def checked_k(k: int | str, error: float | None) -> tuple[int | None, float | None]:
    """Number of literals, None for "smallest"; and the error that the latter has to meet."""
    if k == "smallest":
        if error is None:
            raise InputError("k='smallest' needs error=, the bound that the explanation has to meet")
        return None, check_size("error", error)
    if error is not None:
        raise InputError("error= goes with k='smallest'")
    if isinstance(k, str):
        raise InputError(f"k must be a whole number >= 1 or 'smallest', got {k!r}")
    return check_count("k", k), None


def checked_confidence(confidence: Any) -> float:
    """Return it if it lies between 0 and 1."""
    if not check_size("confidence", confidence) < 1.0:
        raise InputError(f"confidence must be below 1, got {confidence!r}")
    return float(confidence)


def checked_scale(scale: Any) -> AnswerScale | None:
    """Return the scale that was given, None for "auto"."""
    if isinstance(scale, str) and scale == "auto":
        return None
    if scale is None:
        return AnswerScale(-1.0, 1.0)
    try:
        low, high = (float(end) for end in scale)
    except (TypeError, ValueError) as problem:
        raise InputError(f"scale must be 'auto', None or (low, high), got {scale!r}") from problem
    if not (np.isfinite([low, high]).all() and low < high):
        raise InputError(f"scale=(low, high) needs finite numbers, low < high; got {scale!r}")
    return AnswerScale(low, high)
