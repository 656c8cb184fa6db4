"""lime's errors, which are limes' too, and warnings of what lime accepts and cannot mean."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from limes.exceptions import InputError, LimesError

__all__ = ["LimeError", "UnknownLabelError"]

_strict = False


class LimeError(LimesError):
    """An explanation does not have what a call wants of it."""


class UnknownLabelError(LimeError, KeyError):
    """A label that was not explained."""

    def __str__(self) -> str:
        return str(self.args[0])


def be_strict(strict: bool) -> None:
    """Let :func:`warn_or_raise` raise in this process, or warn."""
    global _strict
    _strict = strict


def warn_or_raise(problem: str, remedy: str, consequence: str) -> None:
    """Warn of a call that lime accepts, with the consequence; if strict, raise InputError with the remedy."""
    if _strict:
        raise InputError(f"{problem}: {remedy}")
    # the first frame that is not of this package is the user's
    level = 1
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - as the warnings module itself does
    while frame is not None and frame.f_globals.get("__name__", "").startswith("limes."):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{problem}: {consequence}", UserWarning, stacklevel=level)
