"""Trees whose tests are not single thresholds of the user's columns, rewritten as trees of such tests.

*Folded forests*: a test "φ(x) goes left" is a set of codes where x takes finitely many values, and a union of
intervals on the line: behind a scaler one threshold. *Interval splits*: a test that an inner interval passes
(one bin of many) becomes a threshold at each end, and a copy of the subtree below for each interval. *Numbers
that count as missing* (LightGBM's ``zero_as_missing``, XGBoost's ``missing=-999``) go with NaN, whatever the
threshold of a node.

One walk writes nodes anew. It carries, for each column, the interval of x that can still reach the present
node, which decides many tests below, so that copies shrink as they multiply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.models._feature_maps import CurveMap, LookupMap, ModelColumn, MonotoneMap, StepMap, numbers
from limes.models._reading import CannotRead
from limes.models.forms._trees import Forest

if TYPE_CHECKING:
    from limes.models.readers.boosted_trees import BoosterTree

# Sets of a column of numbers have an entry for each whole number up to the largest category
_WIDEST = 4096
# Interval splits: growth beyond both is refused, as it would take longer than sampling
_GROWTH, _ALWAYS_FINE = 20, 300_000
# Why rewritten trees have no covers
_NO_COVERS = (
    "{why} one test of a tree became several of one column, and the model does not count its training rows "
    "between these"
)
# Missing numbers: copies may make a tree this many times larger
_GROWTH_OF_COPIES = 32


# -- folded forests ---------------------------------------------------------------------------------------


class Alternation(NamedTuple):
    """A test whose answer changes at every cut: left below the first one if ``first_left``."""

    cuts: Sequence[float]
    first_left: bool
    missing_left: bool

    def pieces(self, lower: float, upper: float) -> list[tuple[float, float, bool]]:
        """The parts of lower < x <= upper between cuts, and whether each goes left."""
        pieces, low, left = [], lower, self.first_left
        for cut in (*self.cuts, np.inf):
            high = min(cut, upper)
            if low < high:
                pieces.append((low, high, left))
                low = high
            left = not left
        return pieces


def fold_forest(forest: Forest, columns: Sequence[ModelColumn], names: Sequence[str]) -> Forest:
    """The forest of f(φ(x)); maps of one source share their domain."""
    folding = _Folding(forest)
    for i, column in enumerate(columns):
        nodes = np.flatnonzero(forest.feature == i)
        if nodes.size:
            try:
                folding.move(nodes, column)
            except CannotRead as reason:
                raise CannotRead(f"column {names[column.source]!r}: {reason}") from None
    return folding.result(len(names))


class _Folding:
    """A forest whose nodes are rewritten, one column of the model after the other."""

    def __init__(self, forest: Forest) -> None:
        self._old = forest
        self._feature = forest.feature.copy()
        self._threshold = forest.threshold.copy()
        self._missing = forest.missing_left.copy()
        self._swapped = np.zeros(forest.feature.size, dtype=np.bool_)
        self._set_of = np.full(forest.feature.size, -1)
        self._sets: list[Bools] = []
        self._alternating: dict[int, Alternation] = {}

    def move(self, nodes: Ints, column: ModelColumn) -> None:
        old, phi = self._old, column.map
        self._feature[nodes] = column.source
        # test_of numbers each node's test among the different ones; tests has a node of each of these
        tests, test_of = _distinct(nodes, old.threshold[nodes], old.missing_left[nodes], old.set_of[nodes])
        if isinstance(phi, LookupMap):
            self._by_set(nodes, test_of, tests, phi)
        elif isinstance(phi, StepMap):
            self._by_pieces(nodes, test_of, tests, phi.cuts, phi)
        elif isinstance(phi, CurveMap):
            self._by_evenness(nodes, test_of, tests, phi)
        elif (old.set_of[tests] >= 0).any():
            if not phi.plain or (old.set_of[nodes] < 0).any():
                raise CannotRead("the model takes it for categories, and a step before the model scales it")
            missing = self._goes_left(nodes, np.array([phi.at_missing]))[:, 0]
            self._split_by_set(nodes, old.sets, old.set_of[nodes], missing)
        elif np.isfinite(phi.start):
            # a logarithm: below its start it is NaN, which goes where the model sends a missing value
            below = np.nextafter(phi.start, -np.inf)
            for t, cut in enumerate(phi.cut(old.threshold[tests])):
                at_test = nodes[test_of == t]
                cuts = np.unique([below, max(cut, below)])
                self._by_pieces(at_test, np.zeros_like(at_test), tests[t : t + 1], cuts, phi)
        else:
            self._by_order(nodes, test_of, tests, phi)

    def _goes_left(self, tests: Ints, values: Floats) -> Bools:
        """Which values (P,) of the model's column go left at each test (T,): (T, P)."""
        old, by_set = self._old, self._old.set_of[tests] >= 0
        goes_left = values <= old.threshold[tests][:, None]
        if by_set.any():
            width = old.sets.shape[1]
            is_code = (values >= 0) & (values < width) & (values == np.floor(values))
            code = np.where(is_code, values, 0).astype(np.int64)
            goes_left[by_set] = old.sets[old.set_of[tests[by_set]]][:, code] & is_code
        return np.where(np.isnan(values), old.missing_left[tests][:, None], goes_left)

    def _split_by_threshold(self, nodes: Ints, cuts: Any, first_left: Any, missing: Any) -> None:
        self._threshold[nodes] = cuts
        self._missing[nodes] = missing == first_left
        self._swapped[nodes] = not first_left

    def _split_at(self, nodes: Ints, cuts: Floats, first_left: Any, missing: Any) -> None:
        """The test whose answer changes at every cut."""
        if cuts.size > 1:
            test = Alternation(cuts.tolist(), bool(first_left), bool(missing))
            self._alternating.update(dict.fromkeys(nodes.tolist(), test))
        else:
            self._split_by_threshold(nodes, cuts[0] if cuts.size else np.inf, first_left, missing)

    def _split_by_set(self, nodes: Ints, sets: Bools, set_of: Ints, missing: Bools) -> None:
        self._set_of[nodes] = sum(map(len, self._sets)) + set_of
        self._sets.append(sets)
        self._missing[nodes] = missing

    def _by_order(self, nodes: Ints, test_of: Ints, tests: Ints, phi: MonotoneMap) -> None:
        """A threshold; several where the last digit of φ crosses it several times."""
        cuts, multiple_crossings = phi.crossings(self._old.threshold[tests])
        missing = self._goes_left(tests, np.array([phi.at_missing]))[:, 0]
        self._split_by_threshold(nodes, cuts[test_of], not phi.falling, missing[test_of])
        for t, all_cuts in multiple_crossings.items():
            self._split_at(nodes[test_of == t], all_cuts, not phi.falling, missing[t])

    def _by_set(self, nodes: Ints, test_of: Ints, tests: Ints, phi: LookupMap) -> None:
        # codes of texts are as many as the keys, whatever their number
        widest = max(_WIDEST, 2 * phi.keys.size)
        whole = (phi.keys == np.floor(phi.keys)) & (phi.keys >= 0) & (phi.keys < widest)
        if not whole.all():
            raise CannotRead(
                f"trees split it by its categories, which are numbers such as {phi.keys[~whole][0]:g}; limes "
                f"reads whole numbers from 0 to {widest - 1}, or text: store the categories as text"
            )
        codes = phi.keys.astype(np.int64)
        goes_left = self._goes_left(tests, numbers(phi.values))
        members, other = goes_left[:, :-2], goes_left[:, -2] & (not phi.closed)
        # values that are in no set go right: where other values go left, the children are swapped
        sets = np.zeros((len(tests), int(codes.max(initial=-1)) + 1), dtype=np.bool_)
        sets[:, codes] = members ^ other[:, None]
        self._split_by_set(nodes, sets, test_of, (goes_left[:, -1] ^ other)[test_of])
        self._swapped[nodes] = other[test_of]

    def _by_evenness(self, nodes: Ints, test_of: Ints, tests: Ints, phi: CurveMap) -> None:
        """A square crosses a level on both sides of 0: an inner interval passes the test, or fails it."""
        if not phi.even or np.isfinite(phi.before.start):
            raise CannotRead(f"{phi.name} in front of trees is not read: it neither rises nor falls")
        half = MonotoneMap(
            lambda y: numbers(phi.after(phi.basis(numbers(y))[0])), start=0.0, falling=phi.after.falling
        )
        ends = half.cut(self._old.threshold[tests])
        ends = np.where(np.isneginf(ends), -np.inf, np.abs(ends))  # -inf: crossed nowhere, not even at 0
        edges = np.stack([np.nextafter(-ends, -np.inf), ends])
        edges[:, np.isneginf(ends)] = -np.inf
        cuts = np.sort(phi.before.cut(edges.ravel()).reshape(2, -1), axis=0)
        missing = self._goes_left(tests, np.array([phi.at_missing]))[:, 0]
        for t in range(tests.size):
            self._split_at(nodes[test_of == t], cuts[:, t], half.falling, missing[t])

    def _by_pieces(
        self, nodes: Ints, test_of: Ints, tests: Ints, cuts: Floats, phi: MonotoneMap | StepMap
    ) -> None:
        beyond = np.nextafter(cuts[-1], np.inf) if cuts.size else 0.0
        goes_left = self._goes_left(tests, numbers(phi(np.concatenate([cuts, [beyond, np.nan]]))))
        for t, (sides, missing) in enumerate(zip(goes_left[:, :-1], goes_left[:, -1], strict=True)):
            turns = np.flatnonzero(sides[1:] != sides[:-1])
            self._split_at(nodes[test_of == t], cuts[turns], sides[0], missing)

    def result(self, size: int) -> Forest:
        old = self._old
        width = max((sets.shape[1] for sets in self._sets), default=0)
        padded = [np.pad(sets, ((0, 0), (0, width - sets.shape[1]))) for sets in self._sets]
        forest = Forest(
            feature=self._feature,
            threshold=self._threshold,
            left=np.where(self._swapped, old.right, old.left),
            right=np.where(self._swapped, old.left, old.right),
            missing_left=self._missing,
            value=old.value,
            roots=old.roots,
            intercept=old.intercept,
            size=size,
            set_of=self._set_of,
            sets=np.concatenate(padded) if padded else np.zeros((0, 0), dtype=np.bool_),
            covers=old.covers,
            no_covers=old.no_covers,
        )
        return _with_intervals(forest, self._alternating) if self._alternating else forest


def _distinct(nodes: Ints, *keys: Floats | Bools | Ints) -> tuple[Ints, Ints]:
    """A node of each different tuple of keys, and the number of each node's tuple."""
    order = np.lexsort(keys)
    new = np.zeros(order.size, dtype=np.bool_)
    new[0] = True
    for key in keys:
        new[1:] |= key[order[1:]] != key[order[:-1]]
    number = np.empty(order.size, dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return nodes[order[new]], number


# -- interval splits --------------------------------------------------------------------------------------


def _with_intervals(forest: Forest, alternating: Mapping[int, Alternation]) -> Forest:
    """Write out the alternating nodes as nodes with one threshold each."""
    size = forest.feature.size
    limit = max(_ALWAYS_FINE, _GROWTH * size)
    walk = _IntervalSplits(forest, forest.set_of >= 0, alternating)
    roots = []
    for root in forest.roots.tolist():
        roots.append(len(walk.nodes))
        if not walk.write(root, limit):
            raise CannotRead(
                f"its bins or categories are tested one by one, and the trees would grow from {size} to more "
                f"than {limit} nodes; use ordinal codes"
            )
    origin, fields = walk.result()
    why = _NO_COVERS.format(why="bins, categories or a curve stand before the model:")
    nodes = {**fields, "set_of": forest.set_of[origin]}
    return replace(forest, **nodes, roots=np.array(roots), covers=np.zeros(0), no_covers=why)


class _Interval(NamedTuple):
    """The values of one column that reach a node: lower < x <= upper, or missing."""

    lower: float = -np.inf
    upper: float = np.inf
    missing: bool = True

    def goes_left(self, threshold: float, *, missing_left: bool) -> bool | None:
        """Whether all values go left (True) or right (False) at a node; None if they part."""
        left, right = self.missing and missing_left, self.missing and not missing_left
        if self.lower < self.upper:
            left, right = left or self.lower < threshold, right or threshold < self.upper
        return None if left and right else left

    def split(self, threshold: float, *, missing_left: bool) -> tuple[_Interval, _Interval]:
        left = _Interval(self.lower, min(self.upper, threshold), self.missing and missing_left)
        right = _Interval(max(self.lower, threshold), self.upper, self.missing and not missing_left)
        return left, right


_ANYTHING, _MISSING_ONLY = _Interval(), _Interval(np.inf, -np.inf)

_Intervals = Mapping[int, _Interval]


# Where a new node is attached: its parent among the new nodes, -1 for a root, and whether on its left side
_Place = tuple[int, bool]


class _IntervalSplits:
    """New nodes, parents before children, each made from an old one."""

    def __init__(
        self, old: Forest | BoosterTree, by_set: Bools, alternating: Mapping[int, Alternation]
    ) -> None:
        self._old, self._alternating = old, alternating
        # lists: single entries are read faster than from arrays
        self._feature, self._threshold = old.feature.tolist(), old.threshold.tolist()
        self._children: list[list[int]] = [old.right.tolist(), old.left.tolist()]
        self._missing_left, self._by_set = old.missing_left.tolist(), by_set.tolist()
        # nodes to be written: an old one, the intervals that reach it, and its place
        self._tasks: list[tuple[int, _Intervals, _Place]] = []
        # old node, threshold and side of a missing value of each new node, and its place
        self.nodes: list[tuple[int, float, bool, int, bool]] = []

    def write(self, root: int, limit: int) -> bool:
        """Write a tree; whether the nodes are no more than the limit."""
        self._tasks.append((root, {}, (-1, False)))
        while self._tasks and len(self.nodes) <= limit:
            self._write(*self._tasks.pop())
        return len(self.nodes) <= limit

    def result(self) -> tuple[Ints, dict[str, Any]]:
        """The old node of each new one, and the arrays of the new trees; all else is as in the old ones."""
        origin, threshold, missing_left, parent, is_left = map(np.array, zip(*self.nodes, strict=True))
        children, inner = np.full((2, origin.size), -1), np.flatnonzero(parent >= 0)
        children[is_left[inner].astype(np.int64), parent[inner]] = inner
        return origin, {
            "feature": self._old.feature[origin],
            "threshold": threshold,
            "left": children[1],
            "right": children[0],
            "missing_left": missing_left,
            "value": self._old.value[origin],
        }

    def _add(self, node: int, place: _Place, threshold: float, *, missing_left: bool) -> int:
        self.nodes.append((node, threshold, missing_left, *place))
        return len(self.nodes) - 1

    def _write(self, node: int, intervals: _Intervals, place: _Place) -> None:
        column = self._feature[node]
        if column < 0:
            self._add(node, place, 0.0, missing_left=False)
        elif node in self._alternating:
            self._write_alternation(node, intervals, place)
        else:
            self._write_inner(node, intervals, place)

    def _write_inner(self, node: int, intervals: _Intervals, place: _Place) -> None:
        """Write a node as it is, unless its column's interval decides it."""
        threshold, missing_left = self._threshold[node], self._missing_left[node]
        below = above = interval = intervals.get(self._feature[node], _ANYTHING)
        if not self._by_set[node]:
            goes_left = interval.goes_left(threshold, missing_left=missing_left)
            if goes_left is not None:
                self._tasks.append((self._children[goes_left][node], intervals, place))
                return
            below, above = interval.split(threshold, missing_left=missing_left)
        position = self._add(node, place, threshold, missing_left=missing_left)
        self._write_below(node, intervals, (position, True), below, left=True)
        self._write_below(node, intervals, (position, False), above, left=False)

    def _write_alternation(self, node: int, intervals: _Intervals, place: _Place) -> None:
        """Split off one piece after the other; a missing value goes with the first one that has its side."""
        test = self._alternating[node]
        interval = intervals.get(self._feature[node], _ANYTHING)
        missing = test.missing_left if interval.missing else None  # its side until a piece has it
        pieces = test.pieces(interval.lower, interval.upper)
        for remaining, (lower, upper, left) in zip(reversed(range(len(pieces))), pieces, strict=True):
            together = missing == left
            missing = None if together else missing
            piece = _Interval(lower, upper, together)
            if not remaining and missing is None:
                self._write_below(node, intervals, place, piece, left=left)
                return
            position = self._add(node, place, upper if remaining else np.inf, missing_left=together)
            self._write_below(node, intervals, (position, True), piece, left=left)
            place = position, False
        self._write_below(node, intervals, place, _MISSING_ONLY, left=bool(missing))

    def _write_below(
        self, node: int, intervals: _Intervals, place: _Place, interval: _Interval, *, left: bool
    ) -> None:
        """Continue with a child of an old node, which an interval of its column reaches."""
        child = self._children[left][node]
        if self._feature[child] < 0:
            self._add(child, place, 0.0, missing_left=False)
        else:
            self._tasks.append((child, {**intervals, self._feature[node]: interval}, place))


# -- numbers that count as missing ------------------------------------------------------------------------


class Window(NamedTuple):
    """The numbers that count as missing: lower < x <= upper; ``name`` is the option that sets them."""

    lower: float
    upper: float
    name: str


def without_missing_numbers(tree: BoosterTree, concerned: Bools, window: Window) -> BoosterTree:
    """An equal tree in which only NaN is missing."""
    # concerned: whether each inner node, numbered first, sends the numbers of the window where it sends NaN
    size, missing_left = tree.feature.size, tree.missing_left
    # nodes where the threshold alone would send the window, or part of it, elsewhere than NaN
    agrees = np.where(missing_left, tree.threshold >= window.upper, tree.threshold <= window.lower)
    contrary = np.flatnonzero(concerned & ~agrees[: concerned.size]).tolist()
    if not contrary:
        return tree
    tests = {
        node: _around(float(tree.threshold[node]), bool(missing_left[node]), window) for node in contrary
    }
    walk = _IntervalSplits(tree, np.isin(np.arange(size), list(tree.members)), tests)
    if not walk.write(0, _GROWTH_OF_COPIES * size):
        raise CannotRead(
            f"numbers that count as missing ({window.name}) split one tree into too many parts: "
            f"use NaN for what is missing, and fit without {window.name}"
        )
    origin, fields = walk.result()
    members = {i: tree.members[old] for i, old in enumerate(origin.tolist()) if old in tree.members}
    why = _NO_COVERS.format(why=f"numbers count as missing ({window.name}):")
    return replace(tree, **fields, members=members, covers=np.zeros(0), no_covers=why)


def _around(threshold: float, missing_left: bool, window: Window) -> Alternation:
    """The test x <= threshold, but the window goes with NaN."""
    cuts = sorted({window.lower, window.upper, threshold})
    ends = (*cuts, np.inf)
    left = [missing_left if window.lower < end <= window.upper else end <= threshold for end in ends]
    turns = [cut for cut, (side, next_side) in zip(cuts, pairwise(left), strict=True) if side != next_side]
    return Alternation(turns, left[0], missing_left)
