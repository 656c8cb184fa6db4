"""lime's error, which is one of limes'."""

from __future__ import annotations

from limes.exceptions import LimesError

__all__ = ["LimeError"]


class LimeError(LimesError):
    """What an explanation was asked for does not exist."""
