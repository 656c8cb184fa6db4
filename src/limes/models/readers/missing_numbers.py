"""Numbers that count as missing, as ordinary splits.

LightGBM with ``zero_as_missing`` takes |x| <= 1e-35 for missing, XGBoost with ``missing=-999`` whatever
float32 rounds to -999. A node sends these numbers and NaN one way, whatever its threshold says. x is then
below the window of such numbers, in it, or above it, and in each of the three cases the node is an ordinary
test, or none. So the first such node of a column on a path becomes two tests that find out which case it is,
with a copy of what follows under each; nodes below it know the case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from limes._arrays import Bools
from limes.models.read import CannotRead
from limes.models.readers.grown import GrownTree

# copies may make a tree so many times larger
_GROWTH = 32

_BELOW, _MISSING, _ABOVE = -1, 0, 1


class Window(NamedTuple):
    """The numbers that count as missing: lower < x <= upper; ``name`` is the option that says so."""

    lower: float
    upper: float
    name: str


def without_missing_numbers(tree: GrownTree, concerned: Bools, window: Window) -> GrownTree:
    """The same tree, in which only NaN is missing.

    ``concerned`` says which inner nodes send the numbers of the window where they send NaN.

    Raises
    ------
    CannotRead
        If the tree becomes too large.
    """
    copy = _Copy(tree, concerned, window)
    return copy.tree() if copy.contrary.any() else tree


class _Copy:
    """A tree that is written node by node."""

    def __init__(self, tree: GrownTree, concerned: Bools, window: Window) -> None:
        self._tree = tree
        self._window = window
        # nodes where the threshold alone would send the window, or part of it, elsewhere than NaN
        inner = np.zeros(tree.feature.size, dtype=np.bool_)
        inner[: concerned.size] = concerned
        threshold, left = tree.threshold, tree.missing_left
        agrees = np.where(left, threshold >= window.upper, threshold <= window.lower)
        self._concerned = inner
        self.contrary = inner & ~agrees
        self._source: list[int] = []
        self._threshold: list[float] = []
        self._missing_left: list[bool] = []
        self._children: list[tuple[int, int]] = []

    def tree(self) -> GrownTree:
        # (node of the old tree, what is known of its columns, (parent in the new tree, side))
        waiting: list[tuple[int, Mapping[int, int], tuple[int, int]]] = [(0, {}, (-1, 0))]
        children: dict[tuple[int, int], int] = {}
        while waiting:
            node, known, place = waiting.pop()
            children[place] = len(self._source)
            waiting += self._write(*self._decided(node, known))
        return self._assembled(children)

    def _decided(self, node: int, known: Mapping[int, int]) -> tuple[int, Mapping[int, int]]:
        """Go down while the cases that are known decide."""
        tree = self._tree
        while tree.feature[node] >= 0 and self._concerned[node]:
            case = known.get(int(tree.feature[node]))
            goes = self._goes_left(node, case)
            if goes is None:
                break
            node = int(tree.left[node] if goes else tree.right[node])
        return node, known

    def _goes_left(self, node: int, case: int | None) -> bool | None:
        """Whether a case goes left as a whole; None where x must be looked at."""
        threshold = float(self._tree.threshold[node])
        if case == _MISSING:
            return bool(self._tree.missing_left[node])
        if case == _BELOW and threshold >= self._window.lower:
            return True
        return False if case == _ABOVE and threshold <= self._window.upper else None

    def _write(
        self, node: int, known: Mapping[int, int]
    ) -> list[tuple[int, Mapping[int, int], tuple[int, int]]]:
        """Write one node, and say what is to be written below it."""
        tree, here = self._tree, len(self._source)
        if here > _GROWTH * tree.feature.size:
            raise CannotRead(
                f"numbers that count as missing ({self._window.name}) split one tree into too many parts: "
                f"use NaN for what is missing, and fit without {self._window.name}"
            )
        column, threshold = int(tree.feature[node]), float(tree.threshold[node])
        if column < 0:
            self._add(node, 0.0, missing_left=False)
            return []
        if column in known or not self.contrary[node]:
            self._add(node, threshold, missing_left=bool(tree.missing_left[node]))
            sides = (int(tree.left[node]), int(tree.right[node]))
            return [(child, known, (here, side)) for side, child in enumerate(sides)]
        # below the window | not, which is in it | above it
        self._add(node, self._window.lower, missing_left=False)
        self._add(node, self._window.upper, missing_left=True)
        return [
            (node, {**known, column: _BELOW}, (here, 0)),
            (node, {**known, column: _MISSING}, (here + 1, 0)),
            (node, {**known, column: _ABOVE}, (here + 1, 1)),
        ]

    def _add(self, node: int, threshold: float, *, missing_left: bool) -> None:
        self._source.append(node)
        self._threshold.append(threshold)
        self._missing_left.append(missing_left)

    def _assembled(self, children: Mapping[tuple[int, int], int]) -> GrownTree:
        tree, source = self._tree, np.array(self._source)
        feature = tree.feature[source]
        # the second of two tests has no place of its own among the children: it follows the first
        left = np.array([children.get((i, 0), -1) for i in range(source.size)])
        right = np.array([children.get((i, 1), i + 1) for i in range(source.size)])
        return GrownTree(
            feature=feature,
            threshold=np.array(self._threshold),
            left=np.where(feature < 0, -1, left),
            right=np.where(feature < 0, -1, right),
            missing_left=np.array(self._missing_left),
            value=tree.value[source],
            members={i: tree.members[node] for i, node in enumerate(self._source) if node in tree.members},
        )
