"""Whether a model is still the one that was read, told by the parts that fitting puts into it.

Asking a model costs milliseconds, looking at it microseconds. A fit replaces attributes, or fills arrays
again: parts are compared by identity, and small arrays by their bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

# Bytes of an array that is compared by its content
_SMALL = 1 << 16

__all__ = ["parts_of", "same_parts"]


def parts_of(model: Any) -> tuple[Any, ...]:
    """What a model is made of, down to the models inside a Pipeline; it keeps the parts alive."""
    found: list[Any] = []
    _add_parts(model, found)
    return tuple(found)


def same_parts(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Whether two looks at a model saw the same."""
    return len(first) == len(second) and all(
        a is b or (type(a) is bytes and a == b) for a, b in zip(first, second, strict=True)
    )


def _add_parts(model: Any, found: list[Any]) -> None:
    for value in getattr(model, "__dict__", {}).values():
        found.append(value)
        if isinstance(value, np.ndarray):
            if value.nbytes <= _SMALL and not value.dtype.hasobject:
                found.append(value.tobytes())
        elif isinstance(value, list | tuple):
            found.extend(value)
            # named steps are fitted where they stand; a forest's trees are made anew
            steps = (step for one in value if isinstance(one, tuple) for step in one)
            _add_models(steps, found)
        else:
            _add_models((value,), found)


def _add_models(values: Iterable[Any], found: list[Any]) -> None:
    for value in values:
        if hasattr(value, "get_params") and not isinstance(value, type):
            _add_parts(value, found)
