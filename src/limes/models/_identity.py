"""Whether a model is what its class claims, and whether it was fitted again.

A reader knows what ``sklearn.linear_model.LinearRegression.predict`` computes. It must not read another class
of the same name, nor a ``predict`` that was put on the instance or on the class.

Calling a model takes milliseconds, inspecting it microseconds. A fit replaces attributes, or fills arrays
anew: attributes are compared by identity, arrays by their bytes. Libraries that store their fit outside of
Python's objects, as boosting libraries do, may change it unseen: such a state is not ``complete``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from inspect import getattr_static
from typing import Any, NamedTuple

import numpy as np

# Methods that readers replace
_METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "inverse_transform",
)


def _library_of(module: str) -> str:
    """The package that a module belongs to."""
    return module.split(".")[0]


def qualified_name(kind: type) -> str:
    """``library.Class``, the key of readers; "" if the class's module does not contain it under that name."""
    owner: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        owner = getattr_static(owner, part, None)
    return f"{_library_of(kind.__module__)}.{kind.__qualname__}" if owner is kind else ""


def replaced_method(model: Any) -> str | None:
    """The first method that is not defined by the model's library; None if all are."""
    attributes = getattr(model, "__dict__", {})
    kind = type(model)
    library = _library_of(kind.__module__)
    for method in _METHODS:
        if method in attributes:
            return method
        module = getattr(getattr(kind, method, None), "__module__", None)
        if module is not None and _library_of(module) != library:
            return method
    return None


# -- the state of a fitted model ---------------------------------------------------------------------------

# Bytes of an array that is compared by its content
_SMALL = 1 << 18
# A longer list is a forest's, whose trees are new objects after a fit; members of a shorter one may be
# refitted
_FEW_MEMBERS = 16


class ModelState(NamedTuple):
    """The objects that a model refers to, down to the models inside it; they are kept alive.

    Attributes
    ----------
    objects
        Values of its attributes, compared by identity.
    contents
        Bytes of its small arrays.
    complete
        Whether every change of the fit is visible in the two.
    """

    objects: list[Any]
    contents: list[bytes]
    complete: bool

    def equals(self, other: ModelState) -> bool:
        """Whether the model was in the same state both times."""
        return self.contents == other.contents and [*map(id, self.objects)] == [*map(id, other.objects)]


def state_of(model: Any) -> ModelState:
    """Record the present state of a model."""
    objects: list[Any] = []
    contents: list[bytes] = []
    complete = _collect(model, objects, contents)
    return ModelState(objects, contents, complete)


def _collect(model: Any, objects: list[Any], contents: list[bytes]) -> bool:
    complete = _library_of(type(model).__module__) == "sklearn"
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
    """Estimators of a list: named steps, or a few bare ones."""
    if values and isinstance(values[0], tuple):
        return (entry for named in values for entry in named)
    return values if len(values) <= _FEW_MEMBERS else ()


def _collect_all(values: Iterable[Any], objects: list[Any], contents: list[bytes]) -> bool:
    complete = True
    for value in values:
        if hasattr(value, "get_params") and not isinstance(value, type):
            complete &= _collect(value, objects, contents)
    return complete
