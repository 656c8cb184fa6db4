"""Read a model: what is known of its structure, as a form.

Readers are found by the name of the model's class and loaded when they are needed, so that no library is
imported that the user's model does not come from. Only the exact class counts: a subclass may predict
something else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import ModelError
from limes.models.identity import qualified_name, replaced_method
from limes.models.outputs import ModelCaller, Output, resolve
from limes.models.reductions import BlackBox, Form
from limes.models.registry import EXACT_TOLERANCE, READERS, Entry
from limes.models.schema import Schema


class CannotRead(Exception):  # noqa: N818 - caught inside this package, never seen by users
    """A reader's way to say why it leaves a model to sampling."""


# Where composed models keep their parts
_PART_NAMES = ("estimators_", "estimator_", "final_estimator_", "best_estimator_", "regressor_", "init_")

# (model, method, schema) -> the form of that method's answer; the schema is None where columns are plain
# numbers
Reader = Callable[[Any, str, Schema | None], Form]


def read(model: Any, output: Any = None) -> Form | BlackBox:
    """Read off a fitted model the form of one of its outputs.

    Parameters
    ----------
    model
        A fitted estimator, or a callable (n, d) -> (n,) or (n, k).
    output
        As for :class:`limes.TabularExplainer`.

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
    return read_output(model, resolve(model, output))


def read_output(
    model: Any,
    output: Output,
    decode: Callable[[Floats], Any] = np.asarray,
    *,
    schema: Schema | None = None,
) -> Form | BlackBox:
    """Read, for an output that is already resolved; ``decode`` as for :class:`ModelCaller`."""
    try:
        form = read_form(model, output.method, schema)
    except CannotRead as reason:
        return BlackBox(ModelCaller(model, output, decode), str(reason))
    return form if output.columns is None else form.select(output.columns)


def read_form(model: Any, method: str, schema: Schema | None) -> Form:
    """Read all outputs of one method of a model; readers of composed models call this for their parts.

    Raises
    ------
    CannotRead
        With the reason.
    """
    module, function = _entry(type(model)).reader.split(":")
    refuse_replaced_methods(model)
    _check_fitted(model)
    reader: Reader = getattr(import_module(f"limes.models.readers.{module}"), function)
    return reader(model, method, schema)


def refuse_replaced_methods(model: Any) -> None:
    """Leave a model to sampling whose methods are not those that its library wrote.

    Raises
    ------
    CannotRead
        Naming the method.
    """
    method = replaced_method(model)
    if method is not None:
        raise CannotRead(
            f"{type(model).__qualname__}.{method} was replaced by another function, and may answer something "
            "else than the fitted model"
        )


def tolerance_of(model: Any) -> float:
    """How closely a model adds up, relative to its largest prediction: as its least exact part does."""
    if qualified_name(type(model)) == "sklearn.FrozenEstimator":
        return tolerance_of(model.estimator)
    parts = [_last_step(model), *(getattr(model, name, None) for name in _PART_NAMES)]
    flat = [
        part for parts_ in parts if parts_ is not None for part in np.ravel(np.array(parts_, dtype=object))
    ]
    entry = READERS.get(qualified_name(type(model)))
    own = EXACT_TOLERANCE if entry is None else entry.tolerance
    return max([own, *(tolerance_of(part) for part in flat if part is not None)])


def _last_step(model: Any) -> Any:
    steps = getattr(model, "steps", None)
    return steps[-1][1] if isinstance(steps, list) and steps else None


def _entry(kind: type) -> Entry:
    entry = READERS.get(qualified_name(kind))
    if entry is None:
        raise CannotRead(_why_not(kind))
    return entry


def _check_fitted(model: Any) -> None:
    if not type(model).__module__.startswith("sklearn."):
        return
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise ModelError(f"{type(model).__name__} is not fitted: call fit first") from error


def _why_not(kind: type) -> str:
    if issubclass(kind, FunctionType | MethodType | BuiltinFunctionType | partial):
        return "a callable has no structure to read; if it is a fitted model's method, pass the model itself"
    for base in kind.__mro__[1:]:
        if qualified_name(base) in READERS:
            return f"{kind.__qualname__} is a subclass of {base.__qualname__}, and may predict something else"
    return f"limes cannot read {kind.__qualname__} yet"
