"""Whether a model is still the one that was read, told by the parts that fitting puts into it.

Asking a model costs milliseconds, looking at it microseconds. A fit replaces attributes, or fills arrays
again: parts are compared by identity, and small arrays by their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

# Bytes of an array that is compared by its content
_SMALL = 1 << 16

__all__ = ["parts_of", "same_parts"]


def parts_of(model: Any) -> tuple[Any, ...]:
    """What a model is made of, down to the models inside a Pipeline; it keeps the parts alive."""
    return tuple(_parts(model))


def same_parts(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Whether two looks at a model saw the same."""
    return len(first) == len(second) and all(
        a is b or (type(a) is bytes and a == b) for a, b in zip(first, second, strict=True)
    )


def _parts(model: Any) -> Iterator[Any]:
    for value in getattr(model, "__dict__", {}).values():
        yield value
        yield from _within(value)


def _within(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray):
        if value.nbytes <= _SMALL and not value.dtype.hasobject:
            yield value.tobytes()
    elif _is_model(value):
        yield from _parts(value)
    elif isinstance(value, list | tuple):
        for one in value:
            yield one
            # named steps are fitted where they stand; a forest's trees are made anew
            if isinstance(one, tuple):
                yield from (part for step in one if _is_model(step) for part in _parts(step))


def _is_model(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)
