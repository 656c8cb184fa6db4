"""Libraries that only some ways of showing need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from limes.exceptions import LimesError


class MissingLibraryError(LimesError, ImportError):
    """A library that is not installed is needed for what was asked."""


def require(module: str, purpose: str, *, package: str | None = None) -> Any:
    """Import a module, or say what it is needed for and how to get it (the package, if not of its name)."""
    try:
        return import_module(module)
    except ImportError as problem:
        raise MissingLibraryError(
            f"{purpose} needs {module}, which could not be imported ({problem}); "
            f"install it: pip install {package or module}"
        ) from problem
