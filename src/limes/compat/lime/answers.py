"""A prediction function's answers as columns (n, k), and the model behind it where there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError, ModelError

__all__ = ["Answers", "model_behind"]

# Method of a fitted model -> the output that limes knows it by
_READABLE: dict[str, dict[str, str | None]] = {
    "classification": {"predict_proba": "probability"},
    "regression": {"predict": None},
}


def model_behind(predict_fn: Callable[[Any], Any], mode: str) -> tuple[Any, Any] | None:
    """The model and output of a bound method such as ``model.predict_proba``; None of any other function."""
    model, method = getattr(predict_fn, "__self__", None), getattr(predict_fn, "__name__", "")
    if method not in _READABLE[mode] or not hasattr(model, "predict"):
        return None
    # what a classifier predicts are labels, which are nobody's quantity to be read
    if mode == "regression" and hasattr(model, "classes_"):
        return None
    return model, _READABLE[mode][method]


@dataclass(frozen=True)
class Answers:
    """Calls ``predict_fn`` and checks what it says."""

    predict_fn: Callable[[Any], Any]
    mode: str

    def __call__(self, table: Any) -> Floats:
        """Answers (n, k); (n, 1) of a regression. Probabilities p of one column become 1 - p and p.

        Raises
        ------
        ModelError
            Answers of another shape, or that are not finite.
        InputError
            A classifier's answers of one column that are no probabilities.
        """
        said = np.asarray(self.predict_fn(table), dtype=np.float64)
        found = said[:, None] if said.ndim == 1 else said
        if found.ndim != 2 or len(found) != len(table):
            raise ModelError(
                f"predict_fn answered {len(table)} rows with shape {said.shape}: expected one line a row"
            )
        if not np.isfinite(found).all():
            raise ModelError("predict_fn answered with values that are not finite")
        return self._of_regression(found) if self.mode == "regression" else self._of_classes(found)

    def flat(self, table: Any) -> Floats:
        """Answers of a regression, (n,)."""
        return self(table)[:, 0]

    def _of_regression(self, found: Floats) -> Floats:
        if found.shape[1] != 1:
            raise InputError(
                f"predict_fn answered {found.shape[1]} numbers a row: explain one at a time, "
                "as with lambda X: model.predict(X)[:, 0]"
            )
        return found

    def _of_classes(self, found: Floats) -> Floats:
        if found.shape[1] != 1:
            return found
        if found.min() < 0 or found.max() > 1:
            raise InputError(
                "predict_fn answered one number a row that is no probability: give predict_proba, "
                'or mode="regression" to explain a score'
            )
        return np.hstack([1.0 - found, found])
