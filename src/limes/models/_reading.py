"""Read a model: its structure as a form, by the reader of its class, or the reason why not.

Readers are found by the name of the model's class and loaded when they are needed, so that no library is
imported that the user's model does not come from. Only the exact class counts: a subclass may predict
something else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError, ModelError
from limes.models._calling.caller import ModelCaller
from limes.models._calling.outputs import Output, resolve
from limes.models._identity import qualified_name, replaced_method
from limes.models.forms._base import BlackBox, Form
from limes.models.readers import EXACT_TOLERANCE, READERS


class CannotRead(Exception):  # noqa: N818 - caught inside this package, never seen by users
    """Raised by a reader, with the reason why the model must be sampled."""


@dataclass(frozen=True)
class Schema:
    """The user's columns."""

    names: tuple[str, ...]  # (d,)
    # (d,) values of a column that x holds as codes 0, 1, ..., in the order of the codes; () for numbers
    levels: tuple[tuple[Any, ...], ...]
    # (d,) all categories of a column's dtype of pandas, in their order; () for other columns
    categories: tuple[tuple[Any, ...], ...] = ()


# The attributes of composed models with their parts
_PART_NAMES = ("estimators_", "estimator_", "final_estimator_", "best_estimator_", "regressor_", "init_")

# (model, method, schema) -> the form of that method; the schema is None if all columns are plain numbers
Reader = Callable[[Any, str, Schema | None], Form]


def read(model: Any, output: Any = None) -> Form | BlackBox:
    """Read off a fitted model the form of one of its outputs.

    Parameters
    ----------
    model
        A fitted estimator, or a callable (n, d) -> (n,) or (n, k).
    output
        See :class:`limes.TabularExplainer`.

    Returns
    -------
    Form or BlackBox
        A form that predicts what the model predicts; a BlackBox, with the reason, where the model cannot be
        read.

    Raises
    ------
    InputError
        If the model has no such output.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> import limes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> limes.models.read(LinearRegression().fit(X, y)).coef.shape
    (10,)
    """
    output = resolve(model, output)
    try:
        return read_output(model, output)
    except CannotRead as reason:
        return BlackBox(ModelCaller(model, output, np.asarray), str(reason))


def read_output(model: Any, output: Output, schema: Schema | None = None) -> Form:
    """Read a model for an output that is already resolved."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            form = read_form(model, output.method, schema)
    except InputError as error:
        raise CannotRead(f"{type(model).__name__} has numbers that no form can hold: {error}") from error
    return form if output.columns is None else form.select(output.columns)


def read_form(model: Any, method: str, schema: Schema | None) -> Form:
    """Read all outputs of one method of a model; readers of composed models call this for their parts."""
    entry = READERS.get(qualified_name(type(model)))
    if entry is None:
        raise CannotRead(_of_method(model) or _why_not(type(model)))
    refuse_replaced_methods(model)
    _check_fitted(model)
    module, function = entry.reader.split(":")
    reader: Reader = getattr(import_module(f"limes.models.readers.{module}"), function)
    return reader(model, method, schema)


def refuse_replaced_methods(model: Any) -> None:
    method = replaced_method(model)
    if method is not None:
        raise CannotRead(
            f"{type(model).__qualname__}.{method} was replaced by another function, and may return something "
            "else than the fitted model"
        )


def refuse_all_but_margin(model: Any, method: str, terms: str) -> None:
    """Refuse the methods of a classifier that are not sums of ``terms``, as its margin is."""
    if method != "decision_function":
        raise CannotRead(only_margin(model, method, terms))


def only_margin(model: Any, method: str, terms: str) -> str:
    """The reason why a method of a classifier is refused."""
    return (
        f"{method} of {type(model).__name__} is not a sum of {terms}; its margin is read exactly with "
        "output='margin'"
    )


def dense(matrix: Any) -> Floats:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)


def fitted_columns(model: Any) -> int | None:
    """How many columns a model was fitted on; None where it does not store it."""
    # a model of CatBoost that was stored and loaded has 0 here, and its names
    count = getattr(model, "n_features_in_", None) or len(getattr(model, "feature_names_", None) or ())
    return int(count) or None


def tolerance_of(model: Any) -> float:
    """Rounding error of a model's sums, relative to its largest prediction: that of its least exact part."""
    if qualified_name(type(model)) == "sklearn.FrozenEstimator":
        return tolerance_of(model.estimator)
    steps = getattr(model, "steps", None)
    last = steps[-1][1] if isinstance(steps, list) and steps else None
    parts = [last, *(getattr(model, name, None) for name in _PART_NAMES)]
    flat = [part for group in parts if group is not None for part in np.ravel(np.array(group, dtype=object))]
    entry = READERS.get(qualified_name(type(model)))
    tolerance = EXACT_TOLERANCE if entry is None else entry.tolerance
    return max([tolerance, *(tolerance_of(part) for part in flat if part is not None)])


def _check_fitted(model: Any) -> None:
    if not type(model).__module__.startswith("sklearn."):
        return
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise ModelError(f"{type(model).__name__} is not fitted: call fit first") from error


def _of_method(model: Any) -> str:
    """Why a method of a fitted model is not read, "" for anything else."""
    owner, name = getattr(model, "__self__", None), getattr(model, "__name__", "")
    if owner is None or not hasattr(owner, "fit"):
        return ""
    kind = type(owner).__name__
    if qualified_name(type(owner)) == "sklearn.IsolationForest":
        return (
            f"{kind}.{name} bends a mean path length, which limes.models.path_length(model) explains exactly"
        )
    return f"{kind}.{name} is not read, and is another function than passing the model itself explains"


def _why_not(kind: type) -> str:
    if issubclass(kind, FunctionType | MethodType | BuiltinFunctionType | partial):
        return "a callable has no structure to read; if it is a fitted model's method, pass the model itself"
    for base in kind.__mro__[1:]:
        if qualified_name(base) in READERS:
            return f"{kind.__qualname__} is a subclass of {base.__qualname__}, and may predict something else"
    return f"limes cannot read {kind.__qualname__} yet"
