"""Whether a model is what its class says: readers trust a class, so they must not meet another one.

A reader knows what ``sklearn.linear_model.LinearRegression.predict`` computes. It knows nothing of a class
that borrowed the name, nor of a ``predict`` that somebody put on the instance or on the class.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from inspect import getattr_static
from typing import Any, NamedTuple

import numpy as np

# Methods that a reader stands for
_METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "inverse_transform",
)


def library_of(module: str) -> str:
    """The package that a module belongs to."""
    return module.split(".")[0]


def qualified_name(kind: type) -> str:
    """``library.Class``, by which readers are listed; "" for a class that its own module does not hold."""
    owner: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        owner = getattr_static(owner, part, None)
    return f"{library_of(kind.__module__)}.{kind.__qualname__}" if owner is kind else ""


def replaced_method(model: Any) -> str | None:
    """The first method that is not the one its library wrote; None if all are."""
    own = getattr(model, "__dict__", {})
    kind = type(model)
    library = library_of(kind.__module__)
    for method in _METHODS:
        if method in own:
            return method
        written = getattr(getattr(kind, method, None), "__module__", None)
        if written is not None and library_of(written) != library:
            return method
    return None


# -- the state of a fitted model -------------------------------------------------------------------------


# Bytes of an array that is compared by its content
_SMALL = 1 << 18
# A list of more members is a forest's, whose trees are made anew; fewer may each be fitted again
_FEW_MEMBERS = 16

__all__ = ["ModelState", "state_of"]


class ModelState(NamedTuple):
    """The objects that a model refers to, down to the models inside it; they are kept alive.

    Attributes
    ----------
    objects
        Values of its attributes, compared by identity.
    contents
        Bytes of its small arrays.
    complete
        Whether a changed fit cannot but show in the two.
    """

    objects: list[Any]
    contents: list[bytes]
    complete: bool

    def equals(self, other: ModelState) -> bool:
        """Whether the model was in the same state both times."""
        return self.contents == other.contents and [*map(id, self.objects)] == [*map(id, other.objects)]


def state_of(model: Any) -> ModelState:
    """The model's present state."""
    objects: list[Any] = []
    contents: list[bytes] = []
    complete = _collect(model, objects, contents)
    return ModelState(objects, contents, complete)


def _collect(model: Any, objects: list[Any], contents: list[bytes]) -> bool:
    complete = library_of(type(model).__module__) == "sklearn"
    for value in getattr(model, "__dict__", {}).values():
        objects.append(value)
        if isinstance(value, np.ndarray):
            small = value.nbytes <= _SMALL and not value.dtype.hasobject
            complete &= small or value.dtype.hasobject
            if small:
                contents.append(value.tobytes())
        elif isinstance(value, list | tuple):
            objects.extend(value)
            complete &= _collect_all(_members(value), objects, contents)
        else:
            complete &= _collect_all((value,), objects, contents)
    return complete


def _members(values: list[Any] | tuple[Any, ...]) -> Iterable[Any]:
    """Estimators of a list: named steps, or a few that stand there themselves."""
    if values and isinstance(values[0], tuple):
        return (entry for named in values for entry in named)
    return values if len(values) <= _FEW_MEMBERS else ()


def _collect_all(values: Iterable[Any], objects: list[Any], contents: list[bytes]) -> bool:
    complete = True
    for value in values:
        if hasattr(value, "get_params") and not isinstance(value, type):
            complete &= _collect(value, objects, contents)
    return complete
