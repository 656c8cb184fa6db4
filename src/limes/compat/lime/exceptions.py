"""lime's errors, which are limes' too."""

from __future__ import annotations

from limes.exceptions import LimesError

__all__ = ["LimeError", "UnknownLabelError"]


class LimeError(LimesError):
    """An explanation does not have what a call wants of it."""


class UnknownLabelError(LimeError, KeyError):
    """A label that was not explained."""

    def __str__(self) -> str:
        return str(self.args[0])
