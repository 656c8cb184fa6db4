"""A prediction function's answers as columns (n, k), and the model behind it where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._checks import check_count
from limes.exceptions import InputError, LimesError, ModelError
from limes.models.asking import answer_of

# Method of a fitted model -> the output that limes knows it by
_READABLE: dict[str, dict[str, str | None]] = {
    "classification": {"predict_proba": "probability"},
    "regression": {"predict": None, "decision_function": "margin"},
}

__all__ = ["Answers", "as_said", "chosen_labels", "classes_of", "model_behind"]


def model_behind(predict_fn: Callable[[Any], Any], mode: str) -> tuple[Any, str | None] | None:
    """The model and output of a bound method such as ``model.predict_proba``; None of any other function."""
    model, method = getattr(predict_fn, "__self__", None), getattr(predict_fn, "__name__", "")
    if method not in _READABLE[mode] or not hasattr(model, "predict"):
        return None
    classes = getattr(model, "classes_", None)
    several = 0 if classes is None else len(classes)
    # what a classifier predicts are labels, which are nobody's quantity to be read; columns of
    # probabilities are classes only where it knows them, and of one target
    read = several == 0 if method == "predict" else several > 1 and not isinstance(classes, list)
    return (model, _READABLE[mode][method]) if read else None


def chosen_labels(said: Floats, labels: int | Iterable[int], top: int | None) -> list[int]:
    """The labels asked for, or those of the ``top`` largest answers (k,), largest first.

    Raises
    ------
    InputError
        A label that the model does not have, or none at all.
    """
    if top:
        return [int(k) for k in np.argsort(said)[::-1][: check_count("top_labels", top)]]
    wanted: list[Any] = [labels] if isinstance(labels, int | np.integer | str) else list(labels)
    if not wanted or any(k not in range(len(said)) for k in wanted):
        raise InputError(
            f"labels={wanted!r}: predict_fn answers {len(said)} numbers a row, 0 to {len(said) - 1}"
        )
    return [int(k) for k in dict.fromkeys(wanted)]


@contextmanager
def as_said() -> Iterator[None]:
    """Raise what :class:`Answers` has to say as it says it, not as the failure of a model."""
    try:
        yield
    except ModelError as error:
        if isinstance(error.__cause__, LimesError):
            raise error.__cause__ from None
        raise


def classes_of(names: Sequence[Any] | None, k: int) -> list[Any]:
    """The names of k classes, their numbers unless given.

    Raises
    ------
    InputError
        Another number of names.
    """
    found = [str(i) for i in range(k)] if names is None else list(names)
    if len(found) != k:
        raise InputError(f"class_names has {len(found)} names, but predict_fn answers {k} numbers a row")
    return found


@dataclass(frozen=True)
class Answers:
    """Calls ``predict_fn`` and checks what it says.

    Raises
    ------
    InputError
        If ``predict_fn`` cannot be called.
    """

    predict_fn: Callable[[Any], Any]
    mode: str

    def __post_init__(self) -> None:
        if answer_of(self.predict_fn, "") is None:
            method = "predict" if self.mode == "regression" else "predict_proba"
            raise InputError(
                f"predict_fn is {type(self.predict_fn).__name__}, which cannot be called: give its .{method}"
            )

    def __call__(self, table: Any) -> Floats:
        """Answers (n, k); (n, 1) of a regression. Probabilities p of one column become 1 - p and p.

        Raises
        ------
        ModelError
            If the function fails, or answers in another shape, or not in finite numbers.
        InputError
            A classifier's answers of one column that are no probabilities.
        """
        rows = table.shape[0] if hasattr(table, "tocsr") else len(table)
        found = self._numbers(self._said(table, rows), rows)
        if not np.isfinite(found).all():
            raise ModelError("predict_fn answered with values that are not finite")
        return self.of_regression(found) if self.mode == "regression" else self._of_classes(found)

    def flat(self, table: Any) -> Floats:
        """Answers of a regression, (n,)."""
        return self(table)[:, 0]

    @cached_property
    def _ask(self) -> Callable[[Any], Any]:
        """The function; of networks and boosters what they take for a table."""
        found = answer_of(self.predict_fn, "")
        model = getattr(self.predict_fn, "__self__", None)
        bound = None if model is None else answer_of(model, getattr(self.predict_fn, "__name__", ""))
        return bound or found or self.predict_fn

    def _said(self, table: Any, rows: int) -> Any:
        try:
            return self._ask(table)
        except Exception as error:
            raise ModelError(
                f"predict_fn raised {type(error).__name__} on a table of {rows} rows: {error}", batch=table
            ) from error

    def _numbers(self, said: Any, rows: int) -> Floats:
        try:
            numbers = np.asarray(said, dtype=np.float64)
        except (TypeError, ValueError):
            first = np.asarray(said, dtype=object).ravel()[:1].tolist()
            raise ModelError(
                f"predict_fn answered with {first}, which is no number: give predict_proba, or a function "
                "that returns one number or one line of numbers a row"
            ) from None
        found = numbers[:, None] if numbers.ndim == 1 else numbers
        if found.ndim != 2 or len(found) != rows:
            raise ModelError(
                f"predict_fn answered {rows} rows with shape {numbers.shape}: expected one line a row"
            )
        return found

    def of_regression(self, found: Floats) -> Floats:
        """The answers (n, 1), if they are of one column.

        Raises
        ------
        InputError
            Several numbers a row.
        """
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
