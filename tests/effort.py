"""The number of repetitions: enough to notice a fault in ``make test``, all of them in ``make test-deep``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import product
from typing import Any, TypeVar

T = TypeVar("T")
DEEP = os.environ.get("LIMES_DEEP", "0") != "0"


def repeats(whole: T, part: T) -> T:
    """A number of seeds or examples, or the cases themselves: all, or a part that takes less time."""
    return whole if DEEP else part


def examples(whole: int) -> int:
    """Examples of a property: a third, and ten at least, of the whole."""
    return repeats(whole, max(whole // 3, min(whole, 10)))


def crossed(*parameters: Iterable[Any], share: int = 2) -> list[tuple[Any, ...]]:
    """Return all combinations of parameters, or the squares of one colour of a board of ``share`` colours.

    Every value of each parameter is among the latter, and beside every value of any other parameter where a
    third has ``share`` values.
    """
    places = product(*(enumerate(values) for values in parameters))
    board = [(sum(i for i, _ in place), tuple(value for _, value in place)) for place in places]
    return [values for total, values in board if DEEP or total % share == 0]
