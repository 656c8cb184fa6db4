"""Trees whose tests are not single thresholds, rewritten as trees that compare with one threshold a node.

Two tests are rewritten. *Interval splits*: "x lies in one of several intervals" becomes a threshold at each
end, and a copy of the subtree below for each interval. *Numbers that count as missing*: LightGBM with
``zero_as_missing`` treats |x| <= 1e-35 as missing, XGBoost with ``missing=-999`` every number that float32
rounds to -999; a node sends this window of numbers to the side of NaN, whatever its threshold.

Both walks carry, for each column, the interval of x that can still reach the present node. It decides many
tests below, so that copies shrink as they multiply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limes._arrays import Bools, Floats
from limes.models._reading import CannotRead
from limes.models.forms._trees import Forest

if TYPE_CHECKING:
    from limes.models.readers.boosted_trees import BoosterTree

# Interval splits: growth beyond both is refused, as it would take longer than sampling
_GROWTH, _ALWAYS_FINE = 20, 300_000
# Missing numbers: copies may make a tree this many times larger
_GROWTH_OF_COPIES = 32


class _Interval(NamedTuple):
    """The values of one column that reach a node: lower < x <= upper, or missing."""

    lower: float = -np.inf
    upper: float = np.inf
    missing: bool = True

    def goes_left(self, threshold: float, *, missing_left: bool) -> bool | None:
        """Return whether all values go left (True) or right (False) at a node; None if they part."""
        left, right = self.missing and missing_left, self.missing and not missing_left
        if self.lower < self.upper:
            left, right = left or self.lower < threshold, right or threshold < self.upper
        return None if left and right else left

    def split(self, threshold: float, *, missing_left: bool) -> tuple[_Interval, _Interval]:
        """The parts that go left and right."""
        left = _Interval(self.lower, min(self.upper, threshold), self.missing and missing_left)
        right = _Interval(max(self.lower, threshold), self.upper, self.missing and not missing_left)
        return left, right


_ANYTHING = _Interval()
_MISSING_ONLY = _Interval(np.inf, -np.inf, missing=True)

_Intervals = Mapping[int, _Interval]


# Where a new node is attached: its parent among the new nodes, -1 for a root, and whether on its left side
_Place = tuple[int, bool]
_ROOT: _Place = (-1, False)


class _OldNodes(NamedTuple):
    """The nodes that are rewritten, as lists: single entries are read faster than from arrays."""

    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    missing_left: list[bool]

    @classmethod
    def from_arrays(cls, old: Forest | BoosterTree) -> _OldNodes:
        return cls(*(getattr(old, name).tolist() for name in cls._fields))


@dataclass
class _Nodes:
    """New nodes, parents before children; ``origin`` is the old node that each is made from."""

    origin: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.origin)

    def add(self, origin: int, threshold: float, place: _Place, *, missing_left: bool) -> int:
        """Write a node, and return its position."""
        position = len(self.origin)
        self.origin.append(origin)
        self.threshold.append(threshold)
        self.missing_left.append(missing_left)
        self.left.append(-1)
        self.right.append(-1)
        parent, is_left = place
        if parent >= 0:
            (self.left if is_left else self.right)[parent] = position
        return position

    def fields(self, old: Forest | BoosterTree) -> dict[str, Any]:
        """The arrays of the new tree; all else of a node is as in the old one."""
        origin = np.array(self.origin)
        return {
            "feature": old.feature[origin],
            "threshold": np.array(self.threshold),
            "left": np.array(self.left),
            "right": np.array(self.right),
            "missing_left": np.array(self.missing_left, dtype=np.bool_),
            "value": old.value[origin],
        }


# -- interval splits --------------------------------------------------------------------------------------


class Alternation(NamedTuple):
    """A test whose answer changes at every cut: left below the first one if ``first_left``."""

    cuts: Floats
    first_left: bool
    missing_left: bool


class _Piece(NamedTuple):
    lower: float
    upper: float
    left: bool


class _Task(NamedTuple):
    """A node to be written: an old one, or the remaining pieces of an alternation at it."""

    node: int
    intervals: _Intervals
    place: _Place
    pieces: tuple[_Piece, ...] | None = None
    missing: bool | None = None  # side of a missing value that the pieces do not cover yet


def interval_splits(forest: Forest, alternating: Mapping[int, Alternation]) -> Forest:
    """Write out the alternating nodes of a forest as nodes with one threshold each."""
    return _IntervalSplits(forest, alternating).run()


class _IntervalSplits:
    def __init__(self, forest: Forest, alternating: Mapping[int, Alternation]) -> None:
        self._forest, self._alternating = forest, alternating
        self._old, self._nodes = _OldNodes.from_arrays(forest), _Nodes()
        self._tasks: list[_Task] = []

    def run(self) -> Forest:
        old, nodes = self._forest, self._nodes
        limit = max(_ALWAYS_FINE, _GROWTH * old.feature.size)
        roots = []
        for root in old.roots.tolist():
            roots.append(len(nodes))
            self._tasks.append(_Task(root, {}, _ROOT))
            while self._tasks:
                self._write(self._tasks.pop())
                if len(nodes) > limit:
                    raise CannotRead(
                        f"its bins or categories are tested one by one, and the trees would grow from "
                        f"{old.feature.size} to more than {limit} nodes; use ordinal codes"
                    )
        set_of = old.set_of[np.array(nodes.origin)]
        return replace(old, **nodes.fields(old), roots=np.array(roots), set_of=set_of)

    def _write(self, task: _Task) -> None:
        if task.pieces is not None:
            self._write_pieces(task, task.pieces)
        elif self._old.feature[task.node] < 0:
            self._nodes.add(task.node, 0.0, task.place, missing_left=False)
        elif task.node in self._alternating:
            self._write_alternation(task)
        else:
            self._write_inner(task)

    def _write_inner(self, task: _Task) -> None:
        """Write a node as it is, unless its column's interval decides it."""
        old, node = self._old, task.node
        threshold, missing_left = old.threshold[node], old.missing_left[node]
        below = above = interval = self._interval(task)
        if self._forest.set_of[node] < 0:
            goes_left = interval.goes_left(threshold, missing_left=missing_left)
            if goes_left is not None:
                child = old.left[node] if goes_left else old.right[node]
                self._tasks.append(_Task(child, task.intervals, task.place))
                return
            below, above = interval.split(threshold, missing_left=missing_left)
        position = self._nodes.add(node, threshold, task.place, missing_left=missing_left)
        self._write_below(task, below, (position, True), left=True)
        self._write_below(task, above, (position, False), left=False)

    def _write_alternation(self, task: _Task) -> None:
        test, interval = self._alternating[task.node], self._interval(task)
        ends = np.concatenate([[-np.inf], test.cuts, [np.inf]])
        pieces = tuple(
            _Piece(max(low, interval.lower), min(high, interval.upper), test.first_left ^ bool(k % 2))
            for k, (low, high) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
            if max(low, interval.lower) < min(high, interval.upper)
        )
        missing = test.missing_left if interval.missing else None
        self._tasks.append(task._replace(pieces=pieces, missing=missing))

    def _write_pieces(self, task: _Task, pieces: tuple[_Piece, ...]) -> None:
        """Split off the first piece; a missing value goes with the first piece that has its side."""
        if not pieces:
            self._write_below(task, _MISSING_ONLY, task.place, left=bool(task.missing))
            return
        first, rest = pieces[0], pieces[1:]
        together = task.missing is not None and task.missing == first.left
        interval = _Interval(first.lower, first.upper, together)
        missing = None if together else task.missing
        if not rest and missing is None:
            self._write_below(task, interval, task.place, left=first.left)
            return
        threshold = first.upper if rest else np.inf
        position = self._nodes.add(task.node, threshold, task.place, missing_left=together)
        self._write_below(task, interval, (position, True), left=first.left)
        self._tasks.append(task._replace(place=(position, False), pieces=rest, missing=missing))

    def _write_below(self, task: _Task, interval: _Interval, place: _Place, *, left: bool) -> None:
        """Continue with a child of the task's old node, which an interval of its column reaches."""
        old, node = self._old, task.node
        child = old.left[node] if left else old.right[node]
        self._tasks.append(_Task(child, {**task.intervals, old.feature[node]: interval}, place))

    def _interval(self, task: _Task) -> _Interval:
        return task.intervals.get(self._old.feature[task.node], _ANYTHING)


# -- numbers that count as missing ------------------------------------------------------------------------


class Window(NamedTuple):
    """The numbers that count as missing: lower < x <= upper; ``name`` is the option that sets them."""

    lower: float
    upper: float
    name: str


def without_missing_numbers(tree: BoosterTree, concerned: Bools, window: Window) -> BoosterTree:
    """Return an equal tree in which only NaN is missing.

    x is below the window, in it, or above it, and in each of the three cases a node is an ordinary test, or
    decided. So the first node of a column on a path whose threshold disagrees with the window becomes two
    tests that find the case, with a copy of what follows under each.

    Parameters
    ----------
    tree
        A tree of a boosting library.
    concerned
        Whether each inner node, numbered first, sends the numbers of the window where it sends NaN.
    window
        The numbers that count as missing.
    """
    inner = np.zeros(tree.feature.size, dtype=np.bool_)
    inner[: concerned.size] = concerned
    # nodes where the threshold alone would send the window, or part of it, elsewhere than NaN
    agrees = np.where(tree.missing_left, tree.threshold >= window.upper, tree.threshold <= window.lower)
    contrary = inner & ~agrees
    if not contrary.any():
        return tree
    below = _Interval(upper=window.lower, missing=False)
    above = _Interval(lower=window.upper, missing=False)
    old, nodes = _OldNodes.from_arrays(tree), _Nodes()
    is_concerned, is_contrary = inner.tolist(), contrary.tolist()
    waiting: list[tuple[int, _Intervals, _Place]] = [(0, {}, _ROOT)]
    while waiting:
        node, intervals, place = waiting.pop()
        node = _undecided(old, is_concerned, node, intervals)
        if len(nodes.origin) > _GROWTH_OF_COPIES * tree.feature.size:
            raise CannotRead(
                f"numbers that count as missing ({window.name}) split one tree into too many parts: "
                f"use NaN for what is missing, and fit without {window.name}"
            )
        column = old.feature[node]
        if column < 0:
            nodes.add(node, 0.0, place, missing_left=False)
        elif is_contrary[node] and column not in intervals:
            # below the window | not, which is in it | above it
            first = nodes.add(node, window.lower, place, missing_left=False)
            second = nodes.add(node, window.upper, (first, False), missing_left=True)
            waiting += [
                (node, {**intervals, column: below}, (first, True)),
                (node, {**intervals, column: _MISSING_ONLY}, (second, True)),
                (node, {**intervals, column: above}, (second, False)),
            ]
        else:
            position = nodes.add(node, old.threshold[node], place, missing_left=old.missing_left[node])
            waiting += [
                (old.left[node], intervals, (position, True)),
                (old.right[node], intervals, (position, False)),
            ]
    members = {i: tree.members[origin] for i, origin in enumerate(nodes.origin) if origin in tree.members}
    return replace(tree, **nodes.fields(tree), members=members)


def _undecided(old: _OldNodes, concerned: list[bool], node: int, intervals: _Intervals) -> int:
    """Return the node reached by descending while the interval of the tested column decides."""
    while old.feature[node] >= 0 and concerned[node]:
        interval = intervals.get(old.feature[node])
        if interval is None:
            break
        goes_left = interval.goes_left(old.threshold[node], missing_left=old.missing_left[node])
        if goes_left is None:
            break
        node = old.left[node] if goes_left else old.right[node]
    return node
