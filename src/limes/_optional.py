"""Optional libraries, imported where they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from limes.exceptions import LimesError


class MissingLibraryError(LimesError, ImportError):
    """An optional library is needed and not installed."""


def require(module: str, purpose: str, *, package: str | None = None) -> Any:
    """Import a module, or raise an error with its purpose and the package to install."""
    try:
        return import_module(module)
    except ImportError as problem:
        raise MissingLibraryError(
            f"{purpose} needs {module}, which could not be imported ({problem}); "
            f"install it: pip install {package or module}"
        ) from problem
