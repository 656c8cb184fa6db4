"""How much the tests repeat: enough to notice a fault in ``make test``, all of it in ``make test-deep``."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")
DEEP = os.environ.get("LIMES_DEEP", "0") != "0"


def repeats(whole: T, part: T) -> T:
    """A number of seeds or examples, or the cases themselves: all, or a part that takes less time."""
    return whole if DEEP else part


def examples(whole: int) -> int:
    """Examples of a property: a third, and ten at least, of the whole."""
    return repeats(whole, max(whole // 3, min(whole, 10)))
