"""The number of repetitions: enough to notice a fault in ``make test``, all of them in ``make test-deep``.

``thinned.json``, which ``tools/thin.py`` writes from the recorded seconds of all tests, has the functions of
which a whole run keeps some cases, and the cases that it leaves out.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
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


def spread(cases: Sequence[Mapping[str, int]], kept: int) -> set[int]:
    """Positions of ``kept`` cases, given the number of each parameter's value in a case.

    Each next case has the most values that no case before it has, then the most pairs of values; of equal
    ones it is the first of those that lie evenly.
    """
    even = evenly(len(cases), kept)
    order = sorted(range(len(cases)), key=lambda i: i not in even)
    values = [frozenset(case.items()) for case in cases]
    pairs = [frozenset(combinations(sorted(case.items()), 2)) for case in cases]
    places, values_before, pairs_before = set[int](), set[Any](), set[Any]()
    for _ in range(kept):
        following = max(order, key=lambda i: (len(values[i] - values_before), len(pairs[i] - pairs_before)))
        order.remove(following)
        places.add(following)
        values_before |= values[following]
        pairs_before |= pairs[following]
    return places


def left_out(tests: Mapping[str, Mapping[str, int]], thinned: dict[str, Any] | None = None) -> set[str]:
    """The tests that a whole run of ``make test`` leaves to ``make test-deep``.

    ``tests`` has full names, each with the number of every parameter's value.
    """
    if thinned is None:
        thinned = json.loads(THINNED.read_text("utf-8"))
    deep, cases = {*thinned["deep"]}, defaultdict(list)
    for name in tests:
        if name not in deep:
            cases[name.split("[")[0]].append(name)
    excluded = deep & tests.keys()
    for function, kept in thinned["kept"].items():
        of_function = cases.get(function, [])
        if kept < len(of_function):
            places = spread([tests[name] for name in of_function], kept)
            excluded |= {name for i, name in enumerate(of_function) if i not in places}
    return excluded
