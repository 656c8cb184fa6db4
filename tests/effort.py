"""The number of repetitions: enough to notice a fault in ``make test``, all of them in ``make test-deep``.

``thinned.json``, which ``tools/thin.py`` writes from the recorded seconds of all tests, has the functions of
which a whole run keeps some cases, and the cases that it leaves out.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable
from itertools import product
from pathlib import Path
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


THINNED = Path(__file__).with_name("thinned.json")


def evenly(count: int, kept: int) -> set[int]:
    """Positions of ``kept`` of ``count`` cases, evenly spread."""
    return {int((i + 0.5) * count / kept) for i in range(kept)}


def left_out(names: list[str], thinned: dict[str, Any] | None = None) -> set[str]:
    """The tests, by their full names, that a whole run of ``make test`` leaves to ``make test-deep``."""
    if thinned is None:
        thinned = json.loads(THINNED.read_text("utf-8"))
    deep, cases = {*thinned["deep"]}, defaultdict(list)
    for name in names:
        if name not in deep:
            cases[name.split("[")[0]].append(name)
    excluded = deep & {*names}
    for function, kept in thinned["kept"].items():
        of_function = cases.get(function, [])
        if kept < len(of_function):
            places = evenly(len(of_function), kept)
            excluded |= {name for i, name in enumerate(of_function) if i not in places}
    return excluded
