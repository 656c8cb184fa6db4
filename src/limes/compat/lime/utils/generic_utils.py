"""What a callable takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["has_arg"]

_BY_NAME = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})


def has_arg(fn: Callable[..., Any], arg_name: str | None) -> bool:
    """Whether a callable takes an argument by this name; ``**kwargs`` alone do not count.

    A callable that tells nothing of itself (compiled code without a signature) takes nothing by name.

    Raises
    ------
    TypeError
        What cannot be called.

    Examples
    --------
    >>> has_arg(sorted, "reverse"), has_arg(sorted, "revers")
    (True, False)
    """
    try:
        known = inspect.signature(fn).parameters
    except ValueError:
        return False
    return arg_name in {name for name, parameter in known.items() if parameter.kind in _BY_NAME}
