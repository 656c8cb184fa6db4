"""Forests over a model's columns, folded into forests over the user's.

Every test "φ(x) goes left" is a set of values of x. Where x takes finitely many values it is a set of
codes. On the line it is a union of intervals: behind a scaler one threshold, and again one node. A test that
an inner interval passes (one bin of many) takes several nodes (``_tree_rewriting.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.models._folding.feature_maps import CurveMap, LookupMap, ModelColumn, MonotoneMap, StepMap, numbers
from limes.models._reading import CannotRead
from limes.models._tree_rewriting import Alternation, interval_splits
from limes.models.forms._trees import Forest

# Sets of a column of numbers have an entry for each whole number up to the largest category
_WIDEST = 4096


def fold_forest(forest: Forest, columns: Sequence[ModelColumn], names: Sequence[str]) -> Forest:
    """The forest of f(φ(x)); ``columns`` share their domains, as for :func:`fold`."""
    folding = _Folding(forest, len(names))
    for i, column in enumerate(columns):
        nodes = np.flatnonzero(forest.feature == i)
        if nodes.size:
            try:
                folding.move(nodes, column)
            except CannotRead as reason:
                raise CannotRead(f"column {names[column.source]!r}: {reason}") from None
    return folding.result()


class _Folding:
    """A forest whose nodes are rewritten, one column of the model after the other."""

    def __init__(self, forest: Forest, size: int) -> None:
        self._old = forest
        self._size = size
        self._feature = forest.feature.copy()
        self._threshold = forest.threshold.copy()
        self._missing = forest.missing_left.copy()
        self._swapped = np.zeros(forest.feature.size, dtype=np.bool_)
        self._set_of = np.full(forest.feature.size, -1)
        self._sets: list[Bools] = []
        self._alternating: dict[int, Alternation] = {}

    def move(self, nodes: Ints, column: ModelColumn) -> None:
        """Rewrite the nodes that test one column."""
        old = self._old
        self._feature[nodes] = column.source
        first, test_of = _distinct(old.threshold[nodes], old.missing_left[nodes], old.set_of[nodes])
        tests = nodes[first]  # a node for each different test
        phi = column.map
        if isinstance(phi, LookupMap):
            self._by_set(nodes, test_of, tests, phi)
        elif isinstance(phi, StepMap):
            self._by_pieces(nodes, test_of, tests, phi.cuts, phi)
        elif isinstance(phi, CurveMap):
            self._by_evenness(nodes, test_of, tests, phi)
        elif (old.set_of[tests] >= 0).any():
            self._kept_sets(nodes, phi)
        elif np.isfinite(phi.start):
            self._beyond_start(nodes, test_of, tests, phi)
        else:
            self._by_order(nodes, test_of, tests, phi)

    def _goes_left(self, tests: Ints, values: Floats) -> Bools:
        """Return which values (P,) of the model's column go left at each test (T,): (T, P)."""
        old, by_set = self._old, self._old.set_of[tests] >= 0
        goes_left = values <= old.threshold[tests][:, None]
        if by_set.any():
            width = old.sets.shape[1]
            is_code = (values >= 0) & (values < width) & (values == np.floor(values))
            code = np.where(is_code, values, 0).astype(np.int64)
            goes_left[by_set] = old.sets[old.set_of[tests[by_set]]][:, code] & is_code
        return np.where(np.isnan(values), old.missing_left[tests][:, None], goes_left)

    def _by_order(self, nodes: Ints, test_of: Ints, tests: Ints, phi: MonotoneMap) -> None:
        """A threshold; several where the last digit of φ crosses it several times."""
        cuts, multiple_crossings = phi.crossings(self._old.threshold[tests])
        missing = self._goes_left(tests, np.array([phi.at_missing]))[:, 0]
        self._by_threshold(nodes, cuts[test_of], missing[test_of], swapped=phi.falling)
        for t, all_cuts in multiple_crossings.items():
            test = Alternation(all_cuts, not phi.falling, bool(missing[t]))
            self._alternating.update(dict.fromkeys(nodes[test_of == t].tolist(), test))

    def _by_threshold(self, nodes: Ints, cuts: Floats, missing: Bools, *, swapped: bool) -> None:
        self._threshold[nodes] = cuts
        self._missing[nodes] = missing ^ swapped
        self._swapped[nodes] = swapped

    def _by_set(self, nodes: Ints, test_of: Ints, tests: Ints, phi: LookupMap) -> None:
        codes = _codes(phi.keys)
        goes_left = self._goes_left(tests, numbers(phi.values))
        members, other = goes_left[:, :-2], goes_left[:, -2] & (not phi.closed)
        missing = goes_left[:, -1]
        # values that are in no set go right: where other values go left, the children are swapped
        rows = np.zeros((len(tests), int(codes.max(initial=-1)) + 1), dtype=np.bool_)
        rows[:, codes] = members ^ other[:, None]
        start = sum(map(len, self._sets))
        self._sets.append(rows)
        self._set_of[nodes] = start + test_of
        self._missing[nodes] = (missing ^ other)[test_of]
        self._swapped[nodes] = other[test_of]

    def _kept_sets(self, nodes: Ints, phi: MonotoneMap) -> None:
        old = self._old
        if not phi.plain or (old.set_of[nodes] < 0).any():
            raise CannotRead("the model takes it for categories, and a step before the model scales it")
        start = sum(map(len, self._sets))
        self._sets.append(old.sets)
        self._set_of[nodes] = start + old.set_of[nodes]
        self._missing[nodes] = self._goes_left(nodes, np.array([phi.at_missing]))[:, 0]

    def _beyond_start(self, nodes: Ints, test_of: Ints, tests: Ints, phi: MonotoneMap) -> None:
        """A logarithm: below its start it is NaN, which goes where the model sends a missing value."""
        below = np.nextafter(phi.start, -np.inf)
        for t, cut in enumerate(phi.cut(self._old.threshold[tests])):
            step = StepMap(np.unique([below, max(cut, below)]), np.zeros(0), np.nan)
            self._by_pieces(nodes[test_of == t], test_of[test_of == t] * 0, tests[t : t + 1], step.cuts, phi)

    def _by_evenness(self, nodes: Ints, test_of: Ints, tests: Ints, phi: CurveMap) -> None:
        """A square crosses a level on both sides of 0: an inner interval passes the test, or fails it."""
        if not phi.even or np.isfinite(phi.before.start):
            raise CannotRead(f"in front of trees {phi.name} is not read: it neither rises nor falls")
        half = MonotoneMap(lambda y: numbers(phi.after(phi.basis(numbers(y))[0])), start=0.0)
        half = replace(half, falling=phi.after.falling)
        ends = half.cut(self._old.threshold[tests])
        ends = np.where(np.isneginf(ends), -np.inf, np.abs(ends))  # -inf: crossed nowhere, not even at 0
        edges = np.stack([np.nextafter(-ends, -np.inf), ends])
        edges[:, np.isneginf(ends)] = -np.inf
        cuts = np.sort(phi.before.cut(edges.ravel()).reshape(2, -1), axis=0)
        missing = self._goes_left(tests, np.array([phi.at_missing]))[:, 0]
        for t in range(tests.size):
            test = Alternation(cuts[:, t], half.falling, bool(missing[t]))
            self._alternating.update(dict.fromkeys(nodes[test_of == t].tolist(), test))

    def _by_pieces(
        self, nodes: Ints, test_of: Ints, tests: Ints, cuts: Floats, phi: MonotoneMap | StepMap
    ) -> None:
        points = np.concatenate([cuts, [_beyond(cuts), np.nan]])
        goes_left = self._goes_left(tests, numbers(phi(points)))
        for t, (sides, missing) in enumerate(zip(goes_left[:, :-1], goes_left[:, -1], strict=True)):
            turns = np.flatnonzero(sides[1:] != sides[:-1])
            at_test = nodes[test_of == t]
            if turns.size > 1:
                test = Alternation(cuts[turns], bool(sides[0]), bool(missing))
                self._alternating.update(dict.fromkeys(at_test.tolist(), test))
                continue
            cut = np.full(at_test.size, cuts[turns[0]] if turns.size else np.inf)
            self._by_threshold(at_test, cut, np.full(at_test.size, missing), swapped=not sides[0])

    def result(self) -> Forest:
        """The forest over the user's columns."""
        old = self._old
        width = max((rows.shape[1] for rows in self._sets), default=0)
        rows = [np.pad(r, ((0, 0), (0, width - r.shape[1]))) for r in self._sets]
        forest = Forest(
            feature=self._feature,
            threshold=self._threshold,
            left=np.where(self._swapped, old.right, old.left),
            right=np.where(self._swapped, old.left, old.right),
            missing_left=self._missing,
            value=old.value,
            roots=old.roots,
            intercept=old.intercept,
            size=self._size,
            set_of=self._set_of,
            sets=np.concatenate(rows) if rows else np.zeros((0, 0), dtype=np.bool_),
        )
        return interval_splits(forest, self._alternating) if self._alternating else forest


def _distinct(*keys: Floats | Bools | Ints) -> tuple[Ints, Ints]:
    """The position of each different tuple of keys, and the number of each position's tuple."""
    order = np.lexsort(keys)
    new = np.zeros(order.size, dtype=np.bool_)
    new[0] = True
    for key in keys:
        new[1:] |= key[order[1:]] != key[order[:-1]]
    number = np.empty(order.size, dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return order[new], number


def _codes(keys: Floats) -> Ints:
    whole = (keys == np.floor(keys)) & (keys >= 0) & (keys < _WIDEST)
    if not whole.all():
        raise CannotRead(
            f"trees split it by its categories, which are numbers such as {keys[~whole][0]:g}; limes reads "
            f"whole numbers from 0 to {_WIDEST - 1}, or text: store the categories as text"
        )
    return keys.astype(np.int64)


def _beyond(cuts: Floats) -> float:
    return float(np.nextafter(cuts[-1], np.inf)) if cuts.size else 0.0
