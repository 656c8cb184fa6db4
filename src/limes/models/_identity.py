"""Whether a model is what its class claims, and whether it was fitted again.

A reader knows what ``sklearn.linear_model.LinearRegression.predict`` computes. It must not read another class
of the same name, nor a ``predict`` that was put on the instance or on the class.

Calling a model takes milliseconds, inspecting it microseconds. A fit replaces attributes, or fills arrays
anew: attributes are compared by identity, arrays by their bytes. Libraries that store their fit outside of
Python's objects, as boosting libraries do, may change it unseen: such a state is not ``complete``.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from operator import is_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
        owner = getattr(owner, "__dict__", {}).get(part)  # runs no code of the owner's
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
    attributes
        Models, the model itself first, with the values of their attributes, compared by identity.
    entries
        Lists and tuples of these, with their entries, compared by identity.
    contents
        Small arrays of these, with their bytes.
    complete
        Whether every change of the fit is visible in the three.
    """

    attributes: list[tuple[Any, tuple[Any, ...]]]
    entries: list[tuple[Sequence[Any], tuple[Any, ...]]]
    contents: list[tuple[NDArray[Any], bytes]]
    complete: bool

    def holds(self) -> bool:
        """Return whether the model is still in this state."""
        return (
            all(_are(_values(model), values) for model, values in self.attributes)
            and all(_are(entries, values) for entries, values in self.entries)
            and all(array.tobytes() == content for array, content in self.contents)
        )


def state_of(model: Any) -> ModelState:
    """Record the present state of a model."""
    state = ModelState([], [], [], complete=True)
    return state._replace(complete=_collect(model, state))


def _values(model: Any) -> Collection[Any]:
    return getattr(model, "__dict__", {}).values()


def _are(present: Collection[Any], recorded: tuple[Any, ...]) -> bool:
    return len(present) == len(recorded) and all(map(is_, present, recorded))


def _collect(model: Any, state: ModelState) -> bool:
    """Add a model to a state; return whether that is complete."""
    values = tuple(_values(model))
    state.attributes.append((model, values))
    complete = _library_of(type(model).__module__) == "sklearn"
    for value in values:
        if isinstance(value, np.ndarray):
            small = value.nbytes <= _SMALL and not value.dtype.hasobject
            complete &= small or value.dtype.hasobject
            if small:
                state.contents.append((value, value.tobytes()))
        elif isinstance(value, list | tuple):
            state.entries.append((value, tuple(value)))
            complete &= _collect_all(_members(value), state)
        else:
            complete &= _collect_all((value,), state)
    return complete


def _members(values: list[Any] | tuple[Any, ...]) -> Iterable[Any]:
    """Estimators of a list: named steps, or a few bare ones."""
    if values and isinstance(values[0], tuple):
        return (entry for named in values for entry in named)
    return values if len(values) <= _FEW_MEMBERS else ()


def _collect_all(values: Iterable[Any], state: ModelState) -> bool:
    complete = True
    for value in values:
        if hasattr(value, "get_params") and not isinstance(value, type):
            complete &= _collect(value, state)
    return complete
