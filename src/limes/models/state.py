"""The state of a fitted model, to notice without calling it that it was fitted again.

Calling a model takes milliseconds, looking at it microseconds. A fit replaces attributes, or fills arrays
anew: attributes are compared by identity, arrays by their bytes. Libraries that keep their fit outside of
Python's objects, as boosting libraries do, may change it unseen: such a state is not ``complete``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from limes.models.identity import library_of

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
