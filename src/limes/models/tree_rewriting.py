"""Trees with tests that are no single threshold, rewritten as trees that compare with one threshold a node.

Two tests are rewritten. *Interval splits*: "x lies in one of several intervals" takes a threshold at each
end, and a copy of the subtree below for each interval. *Numbers that count as missing*: LightGBM with
``zero_as_missing`` takes |x| <= 1e-35 for missing, XGBoost with ``missing=-999`` whatever float32 rounds to
-999; a node sends this window of numbers where it sends NaN, whatever its threshold.

Both walks carry, for each column, the interval of x that can still reach the present node. It decides many
tests below, so that copies shrink as they multiply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limes._arrays import Bools, Floats
from limes.models.forms.trees import Forest
from limes.models.reading import CannotRead

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

    @property
    def has_numbers(self) -> bool:
        return self.lower < self.upper

    @property
    def is_empty(self) -> bool:
        return not (self.has_numbers or self.missing)

    def split(self, threshold: float, *, missing_left: bool) -> tuple[_Interval, _Interval]:
        """The parts that go left and right."""
        left = _Interval(self.lower, min(self.upper, threshold), self.missing and missing_left)
        right = _Interval(max(self.lower, threshold), self.upper, self.missing and not missing_left)
        return left, right


_ANYTHING = _Interval()
_MISSING_ONLY = _Interval(np.inf, -np.inf, missing=True)

_Intervals = Mapping[int, _Interval]


class _Place(NamedTuple):
    """Where a new node is attached: to which new node, and on which side."""

    parent: int = -1
    is_left: bool = False


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
        if place.parent >= 0:
            (self.left if place.is_left else self.right)[place.parent] = position
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
    """Write out the alternating nodes of a forest as nodes with one threshold each.

    Raises
    ------
    CannotRead
        If the forest would grow too large.
    """
    return _IntervalSplits(forest, alternating).run()


class _IntervalSplits:
    def __init__(self, forest: Forest, alternating: Mapping[int, Alternation]) -> None:
        self._forest, self._alternating = forest, alternating
        self._nodes = _Nodes()
        self._tasks: list[_Task] = []

    def run(self) -> Forest:
        old, nodes = self._forest, self._nodes
        limit = max(_ALWAYS_FINE, _GROWTH * old.feature.size)
        roots = []
        for root in old.roots.tolist():
            roots.append(len(nodes))
            self._tasks.append(_Task(root, {}, _Place()))
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
        elif self._forest.feature[task.node] < 0:
            self._nodes.add(task.node, 0.0, task.place, missing_left=False)
        elif task.node in self._alternating:
            self._write_alternation(task)
        else:
            self._write_inner(task)

    def _write_inner(self, task: _Task) -> None:
        """Write a node as it is, unless its column's interval decides it."""
        forest, node = self._forest, task.node
        threshold, missing_left = float(forest.threshold[node]), bool(forest.missing_left[node])
        interval = self._interval(task)
        if forest.set_of[node] >= 0:
            parts = (interval, interval)
        else:
            parts = interval.split(threshold, missing_left=missing_left)
        if parts[1].is_empty:
            self._tasks.append(task._replace(node=int(forest.left[node])))
        elif parts[0].is_empty:
            self._tasks.append(task._replace(node=int(forest.right[node])))
        else:
            position = self._nodes.add(node, threshold, task.place, missing_left=missing_left)
            for part, is_left in zip(parts, (True, False), strict=True):
                self._write_below(task._replace(place=_Place(position, is_left)), is_left, part)

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
            self._write_below(task, bool(task.missing), _MISSING_ONLY)
            return
        first, rest = pieces[0], pieces[1:]
        together = task.missing is not None and task.missing == first.left
        interval = _Interval(first.lower, first.upper, together)
        missing = None if together else task.missing
        if not rest and missing is None:
            self._write_below(task, first.left, interval)
            return
        threshold = first.upper if rest else np.inf
        position = self._nodes.add(task.node, threshold, task.place, missing_left=together)
        self._write_below(task._replace(place=_Place(position, is_left=True)), first.left, interval)
        place = _Place(position, is_left=False)
        self._tasks.append(task._replace(place=place, pieces=rest, missing=missing))

    def _write_below(self, task: _Task, left: bool, interval: _Interval) -> None:
        """Go on with a child of the task's old node, which an interval of its column reaches."""
        forest, column = self._forest, int(self._forest.feature[task.node])
        child = forest.left[task.node] if left else forest.right[task.node]
        self._tasks.append(_Task(int(child), {**task.intervals, column: interval}, task.place))

    def _interval(self, task: _Task) -> _Interval:
        return task.intervals.get(int(self._forest.feature[task.node]), _ANYTHING)


# -- numbers that count as missing ------------------------------------------------------------------------


class Window(NamedTuple):
    """The numbers that count as missing: lower < x <= upper; ``name`` is the option that sets them."""

    lower: float
    upper: float
    name: str


def without_missing_numbers(tree: BoosterTree, concerned: Bools, window: Window) -> BoosterTree:
    """The same tree, in which only NaN is missing.

    x is below the window, in it, or above it, and in each of the three cases a node is an ordinary test, or
    decided. So the first node of a column on a path whose threshold disagrees with the window becomes two
    tests that find the case, with a copy of what follows under each.

    Parameters
    ----------
    tree
        Of a boosting library.
    concerned
        Which inner nodes, numbered first, send the numbers of the window where they send NaN.
    window
        These numbers.

    Raises
    ------
    CannotRead
        If the tree becomes too large.
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
    nodes = _Nodes()
    waiting: list[tuple[int, _Intervals, _Place]] = [(0, {}, _Place())]
    while waiting:
        node, intervals, place = waiting.pop()
        node = _undecided(tree, inner, node, intervals)
        if len(nodes) > _GROWTH_OF_COPIES * tree.feature.size:
            raise CannotRead(
                f"numbers that count as missing ({window.name}) split one tree into too many parts: "
                f"use NaN for what is missing, and fit without {window.name}"
            )
        column = int(tree.feature[node])
        if column >= 0 and contrary[node] and column not in intervals:
            # below the window | not, which is in it | above it
            first = nodes.add(node, window.lower, place, missing_left=False)
            second = nodes.add(node, window.upper, _Place(first, is_left=False), missing_left=True)
            waiting += [
                (node, {**intervals, column: below}, _Place(first, is_left=True)),
                (node, {**intervals, column: _MISSING_ONLY}, _Place(second, is_left=True)),
                (node, {**intervals, column: above}, _Place(second, is_left=False)),
            ]
        else:
            waiting += _copy_node(tree, node, intervals, place, nodes)
    members = {i: tree.members[old] for i, old in enumerate(nodes.origin) if old in tree.members}
    return replace(tree, **nodes.fields(tree), members=members)


def _undecided(tree: BoosterTree, concerned: Bools, node: int, intervals: _Intervals) -> int:
    """Go down while the interval of the tested column decides."""
    while tree.feature[node] >= 0 and concerned[node]:
        interval = intervals.get(int(tree.feature[node]))
        if interval is None:
            break
        threshold, missing_left = float(tree.threshold[node]), bool(tree.missing_left[node])
        left, right = interval.split(threshold, missing_left=missing_left)
        if not (left.is_empty or right.is_empty):
            break
        node = int(tree.left[node] if right.is_empty else tree.right[node])
    return node


def _copy_node(
    tree: BoosterTree, node: int, intervals: _Intervals, place: _Place, nodes: _Nodes
) -> Iterator[tuple[int, _Intervals, _Place]]:
    """Write a node as it is, and return what is to be written below it."""
    if tree.feature[node] < 0:
        nodes.add(node, 0.0, place, missing_left=False)
        return
    missing_left = bool(tree.missing_left[node])
    position = nodes.add(node, float(tree.threshold[node]), place, missing_left=missing_left)
    yield int(tree.left[node]), intervals, _Place(position, is_left=True)
    yield int(tree.right[node]), intervals, _Place(position, is_left=False)
