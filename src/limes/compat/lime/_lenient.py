"""What lime accepts and cannot mean: a warning here, or an error after ``install(strict=True)``."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from limes.exceptions import InputError

_strict = False


def be_strict(strict: bool) -> None:
    """Let :func:`object_to` raise in this process, or warn."""
    global _strict
    _strict = strict


def object_to(problem: str, remedy: str, consequence: str) -> None:
    """Warn of a call that lime accepts, with the consequence; raise with the remedy if strict.

    Raises
    ------
    InputError
        If strict.
    """
    if _strict:
        raise InputError(f"{problem}: {remedy}")
    # the first frame that is not of this package is the user's
    level = 1
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - as the warnings module itself does
    while frame is not None and frame.f_globals.get("__name__", "").startswith("limes."):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{problem}: {consequence}", UserWarning, stacklevel=level)
