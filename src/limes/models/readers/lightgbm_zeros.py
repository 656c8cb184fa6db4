"""LightGBM's zeros that count as missing, as ordinary splits.

A node that takes zeros for missing sends them (|x| <= 1e-35) and NaN one way, whatever its threshold says. A
number is then below zero, zero, or above it, and in each of the three cases the node is an ordinary test, or
none. So the first such node of a column on a path becomes two tests that find out which case it is, with a
copy of what follows under each; nodes below it know the case.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from limes._arrays import Bools
from limes.models.read import CannotRead
from limes.models.readers.grown import GrownTree

# |x| up to this is zero for LightGBM: 1e-35 as float32
ZERO = float(np.float32(1e-35))
# copies may make a tree so many times larger
_GROWTH = 32

_BELOW, _ZERO, _ABOVE = -1, 0, 1


def without_zeros(tree: GrownTree, zero_missing: Bools) -> GrownTree:
    """The same tree, in which only NaN is missing; ``zero_missing`` says of inner nodes what they were.

    Raises
    ------
    CannotRead
        If the tree becomes too large.
    """
    return _Copy(tree, zero_missing).tree()


class _Copy:
    """A tree that is written node by node."""

    def __init__(self, tree: GrownTree, zero_missing: Bools) -> None:
        self._tree = tree
        self._zero_missing = zero_missing
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
        while tree.feature[node] >= 0 and self._zero_missing[node]:
            case = known.get(int(tree.feature[node]))
            goes = self._goes_left(node, case)
            if goes is None:
                break
            node = int(tree.left[node] if goes else tree.right[node])
        return node, known

    def _goes_left(self, node: int, case: int | None) -> bool | None:
        """Whether a case goes left as a whole; None where x must be looked at."""
        threshold = float(self._tree.threshold[node])
        if case == _ZERO:
            return bool(self._tree.missing_left[node])
        if case == _BELOW and threshold >= -ZERO:
            return True
        return False if case == _ABOVE and threshold <= ZERO else None

    def _write(
        self, node: int, known: Mapping[int, int]
    ) -> list[tuple[int, Mapping[int, int], tuple[int, int]]]:
        """Write one node, and say what is to be written below it."""
        tree, here = self._tree, len(self._source)
        if here > _GROWTH * tree.feature.size:
            raise CannotRead(
                "zeros that count as missing (zero_as_missing=True) split one tree into too many parts: use "
                "NaN for what is missing, and fit without zero_as_missing"
            )
        column, threshold = int(tree.feature[node]), float(tree.threshold[node])
        if column < 0:
            self._add(node, 0.0, missing_left=False)
            return []
        if not self._zero_missing[node] or column in known or self._plain(node):
            self._add(node, threshold, missing_left=bool(tree.missing_left[node]))
            sides = (int(tree.left[node]), int(tree.right[node]))
            return [(child, known, (here, side)) for side, child in enumerate(sides)]
        # x < zero | not, which is zero | above zero
        self._add(node, float(np.nextafter(-ZERO, -np.inf)), missing_left=False)
        self._add(node, ZERO, missing_left=True)
        return [
            (node, {**known, column: _BELOW}, (here, 0)),
            (node, {**known, column: _ZERO}, (here + 1, 0)),
            (node, {**known, column: _ABOVE}, (here + 1, 1)),
        ]

    def _plain(self, node: int) -> bool:
        """Whether zeros go where the threshold alone would send them."""
        threshold = self._tree.threshold[node]
        return bool(threshold >= ZERO if self._tree.missing_left[node] else threshold < -ZERO)

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
