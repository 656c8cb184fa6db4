"""Whether a model is what its class says: readers trust a class, so they must not meet another one.

A reader knows what ``sklearn.linear_model.LinearRegression.predict`` computes. It knows nothing of a class
that borrowed the name, nor of a ``predict`` that somebody put on the instance or on the class.
"""

from __future__ import annotations

import sys
from inspect import getattr_static
from typing import Any

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
