"""Parameters of a callable."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["has_arg"]

_BY_NAME = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})


def has_arg(fn: Callable[..., Any], arg_name: str | None) -> bool:
    """Whether a callable takes an argument by this name; ``**kwargs`` alone do not count.

    A callable without a signature (compiled code) takes nothing by name. TypeError if ``fn`` is not callable.

    Examples
    --------
    >>> has_arg(sorted, "reverse"), has_arg(sorted, "revers")
    (True, False)
    """
    try:
        parameters = inspect.signature(fn).parameters
    except ValueError:
        return False
    return arg_name in {name for name, parameter in parameters.items() if parameter.kind in _BY_NAME}
