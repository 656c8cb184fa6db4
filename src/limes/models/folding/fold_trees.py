"""Forests over a model's columns, folded into forests over the user's.

Every test "φ(x) goes left" is a set of values of x. Where x takes finitely many values that is a set of
codes. On the line it is a union of intervals: behind a scaler one threshold, and again one node. A test that
an inner interval passes (one bin of many) takes several nodes (``unfolding.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.models.folding.feature_maps import CurveMap, LookupMap, MonotoneMap, StepMap, numbers
from limes.models.folding.operations import ModelColumn
from limes.models.forms.trees import Forest
from limes.models.reading import CannotRead
from limes.models.tree_rewriting import Alternation, interval_splits

# Sets of a column of numbers have a place for each whole number up to the largest category
_WIDEST = 4096


def fold_forest(forest: Forest, columns: Sequence[ModelColumn], names: Sequence[str]) -> Forest:
    """The forest of f(φ(x)); see :func:`limes.models.folding.fold`."""
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
        first, place = _distinct(old.threshold[nodes], old.missing_left[nodes], old.set_of[nodes])
        tests = nodes[first]  # a node for each different test
        track = column.map
        if isinstance(track, LookupMap):
            self._by_set(nodes, place, tests, track)
        elif isinstance(track, StepMap):
            self._by_pieces(nodes, place, tests, track.cuts, track)
        elif isinstance(track, CurveMap):
            self._by_evenness(nodes, place, tests, track)
        elif (old.set_of[tests] >= 0).any():
            self._kept_sets(nodes, track)
        elif np.isfinite(track.start):
            self._beyond_start(nodes, place, tests, track)
        else:
            self._by_order(nodes, place, tests, track)

    def _goes_left(self, tests: Ints, values: Floats) -> Bools:
        """Which values (P,) of the model's column go left at each test (T,): (T, P)."""
        old, by_set = self._old, self._old.set_of[tests] >= 0
        found = values <= old.threshold[tests][:, None]
        if by_set.any():
            width = old.sets.shape[1]
            known = (values >= 0) & (values < width) & (values == np.floor(values))
            code = np.where(known, values, 0).astype(np.int64)
            found[by_set] = old.sets[old.set_of[tests[by_set]]][:, code] & known
        return np.where(np.isnan(values), old.missing_left[tests][:, None], found)

    def _by_order(self, nodes: Ints, place: Ints, tests: Ints, track: MonotoneMap) -> None:
        """A threshold; where φ trembles in its last digit, all of them."""
        cuts, ragged = track.passages(self._old.threshold[tests])
        missing = self._goes_left(tests, np.array([track.at_missing]))[:, 0]
        self._by_threshold(nodes, cuts[place], missing[place], swapped=track.falling)
        for t, all_cuts in ragged.items():
            test = Alternation(all_cuts, not track.falling, bool(missing[t]))
            self._alternating.update(dict.fromkeys(nodes[place == t].tolist(), test))

    def _by_threshold(self, nodes: Ints, cuts: Floats, missing: Bools, *, swapped: bool) -> None:
        self._threshold[nodes] = cuts
        self._missing[nodes] = missing ^ swapped
        self._swapped[nodes] = swapped

    def _by_set(self, nodes: Ints, place: Ints, tests: Ints, track: LookupMap) -> None:
        codes = _codes(track.keys)
        left = self._goes_left(tests, numbers(track.values))
        members, other, missing = left[:, :-2], left[:, -2] & (not track.closed), left[:, -1]
        # sets name what they know, and all else goes right: so must any other value
        rows = np.zeros((len(tests), int(codes.max(initial=-1)) + 1), dtype=np.bool_)
        rows[:, codes] = members ^ other[:, None]
        start = sum(map(len, self._sets))
        self._sets.append(rows)
        self._set_of[nodes] = start + place
        self._missing[nodes] = (missing ^ other)[place]
        self._swapped[nodes] = other[place]

    def _kept_sets(self, nodes: Ints, track: MonotoneMap) -> None:
        old = self._old
        if not track.plain or (old.set_of[nodes] < 0).any():
            raise CannotRead("the model takes it for categories, and a step before the model scales it")
        start = sum(map(len, self._sets))
        self._sets.append(old.sets)
        self._set_of[nodes] = start + old.set_of[nodes]
        self._missing[nodes] = self._goes_left(nodes, np.array([track.at_missing]))[:, 0]

    def _beyond_start(self, nodes: Ints, place: Ints, tests: Ints, track: MonotoneMap) -> None:
        """A logarithm: below its start it answers NaN, and the model does what it does with NaN."""
        below = np.nextafter(track.start, -np.inf)
        for t, cut in enumerate(track.cut(self._old.threshold[tests])):
            step = StepMap(np.unique([below, max(cut, below)]), np.zeros(0), np.nan)
            self._by_pieces(nodes[place == t], place[place == t] * 0, tests[t : t + 1], step.cuts, track)

    def _by_evenness(self, nodes: Ints, place: Ints, tests: Ints, track: CurveMap) -> None:
        """A square passes a level on both sides of 0: an inner interval passes the test, or fails it."""
        if not track.even or np.isfinite(track.before.start):
            raise CannotRead(f"in front of trees {track.name} is not read: it neither rises nor falls")
        half = MonotoneMap(lambda y: numbers(track.after(track.basis(numbers(y))[0])), start=0.0)
        half = replace(half, falling=track.after.falling)
        ends = half.cut(self._old.threshold[tests])
        ends = np.where(np.isneginf(ends), -np.inf, np.abs(ends))  # -inf: passed nowhere, not even at 0
        edges = np.stack([np.nextafter(-ends, -np.inf), ends])
        edges[:, np.isneginf(ends)] = -np.inf
        cuts = np.sort(track.before.cut(edges.ravel()).reshape(2, -1), axis=0)
        missing = self._goes_left(tests, np.array([track.at_missing]))[:, 0]
        for t in range(tests.size):
            test = Alternation(cuts[:, t], half.falling, bool(missing[t]))
            self._alternating.update(dict.fromkeys(nodes[place == t].tolist(), test))

    def _by_pieces(
        self, nodes: Ints, place: Ints, tests: Ints, cuts: Floats, track: MonotoneMap | StepMap
    ) -> None:
        points = np.concatenate([cuts, [_beyond(cuts), np.nan]])
        left = self._goes_left(tests, numbers(track(points)))
        for t, (sides, missing) in enumerate(zip(left[:, :-1], left[:, -1], strict=True)):
            turns = np.flatnonzero(sides[1:] != sides[:-1])
            here = nodes[place == t]
            if turns.size > 1:
                test = Alternation(cuts[turns], bool(sides[0]), bool(missing))
                self._alternating.update(dict.fromkeys(here.tolist(), test))
                continue
            cut = np.full(here.size, cuts[turns[0]] if turns.size else np.inf)
            self._by_threshold(here, cut, np.full(here.size, missing), swapped=not sides[0])

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
    """A place of each different tuple of keys, and the number of each place's tuple."""
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
    """A number behind the last cut."""
    return float(np.nextafter(cuts[-1], np.inf)) if cuts.size else 0.0
