"""Whether a model is still the one that was read, told by the parts that fitting puts into it.

Asking a model costs milliseconds, looking at it microseconds. A fit replaces attributes, or fills arrays
again: parts are compared by identity, and small arrays by their bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

# Bytes of an array that is compared by its content
_SMALL = 1 << 16

__all__ = ["Parts", "parts_of"]


class Parts(NamedTuple):
    """What a model is made of, down to the models inside a Pipeline; it keeps the parts alive."""

    objects: list[Any]
    contents: list[bytes]

    def same(self, other: Parts) -> bool:
        """Whether two looks at a model saw the same."""
        return self.contents == other.contents and [*map(id, self.objects)] == [*map(id, other.objects)]


def parts_of(model: Any) -> Parts:
    """Look at a model."""
    found = Parts([], [])
    _add_parts(model, found)
    return found


def _add_parts(model: Any, found: Parts) -> None:
    for value in getattr(model, "__dict__", {}).values():
        found.objects.append(value)
        if isinstance(value, np.ndarray):
            if value.nbytes <= _SMALL and not value.dtype.hasobject:
                found.contents.append(value.tobytes())
        elif isinstance(value, list | tuple):
            found.objects.extend(value)
            # named steps are fitted where they stand; a forest's trees are made anew
            if value and isinstance(value[0], tuple):
                _add_models((step for named in value for step in named), found)
        elif hasattr(value, "get_params"):
            _add_models((value,), found)


def _add_models(values: Iterable[Any], found: Parts) -> None:
    for value in values:
        if hasattr(value, "get_params") and not isinstance(value, type):
            _add_parts(value, found)
