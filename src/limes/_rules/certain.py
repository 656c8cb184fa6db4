r"""Facts that are sufficient for certain: every row that shares them has the same class.

A set S of facts is *sufficient* if no row of the domain with these facts is beyond a goal, an answer on the
other side of a threshold or farther than an error. It is *minimal* if no fact can be dropped, and *smallest*
if no set of fewer facts is sufficient.

A row beyond the goal with the facts that are not in D conflicts with every set that has none of D. So S is
sufficient if and only if it has a fact of every such D (it hits them all):

- minimal: facts are dropped one after the other, least contribution first, as long as bounds prove the rest;
- smallest: the smallest set that hits all D found so far is either sufficient, and then no set is smaller, or
  a row conflicts with it, which is one more D (implicit hitting sets).

References
----------
Ignatiev, Narodytska and Marques-Silva, "Abduction-based explanations for machine learning models", 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise, product
from math import prod
from time import perf_counter
from typing import Protocol

import numpy as np

from limes._arrays import Bools, Floats
from limes._rules.bounds import Limit, Searched, Texture, least
from limes._rules.contrast import Reaches, Target
from limes._rules.domain import Domain, Values
from limes._rules.hitting import smallest_hitting_set
from limes._rules.leaves import LeastRow

# Boxes that the search for one fact to drop cuts at first, and by how much this grows
_BOXES, _GROWTH = 1000, 4
# Rows of the background that a descent may start from, how many do, and how many rows found before
_STARTS, _BEST, _LATEST = 256, 3, 3
# Combinations of one-hot groups that are searched one by one
_MOST_PARTS = 256
# Whole numbers of a column that are listed one by one
MOST_WHOLE = 4096

Units = frozenset[int]  # positions of facts
Admits = Callable[[Sequence[Values]], Floats | None]


@dataclass(frozen=True, eq=False)
class RowDomain:
    """The rows that a row's facts are to hold for: values of columns where they change, and where not."""

    domain: Domain
    row: Floats
    free: tuple[Values, ...]
    facts: tuple[Values, ...]
    units: tuple[tuple[int, ...], ...]
    loose: tuple[int, ...] = ()  # columns that change, and make no fact

    @property
    def size(self) -> int:
        return self.row.size

    def kept(self, units: Units) -> Bools:
        """Return the columns whose facts are kept: those of the units, and those that never change."""
        kept = np.ones(self.size, dtype=np.bool_)
        kept[list(self.loose)] = False
        for i, columns in enumerate(self.units):
            kept[list(columns)] = i in units
        return kept

    def changed(self, row: Floats) -> Units:
        """Return the units of which a row does not share the facts."""
        holds = [bool(self.facts[j].contains(row[j : j + 1])[0]) for j in range(self.size)]
        return frozenset(i for i, columns in enumerate(self.units) if not all(holds[j] for j in columns))


class Finder(Protocol):
    """Searches the rows with some facts for an answer below a limit; see ``LeafSearch.find``."""

    def find(
        self,
        kept: Bools,
        limit: float,
        admits: Admits,
        *,
        boxes: int,
        begin: Iterator[Floats],
        is_late: Callable[[], bool],
    ) -> LeastRow: ...

    def low(self, kept: Bools) -> float: ...


class ValueSearch:
    """The same by boxes of listed values, for whatever has bounds over boxes."""

    # whether bounds over the first and the last of listed values hold for all in between
    _resolves_ranges = False

    def __init__(self, searched: Searched, sign: float, of_row: RowDomain) -> None:
        self._bounds, self._sign, self._of_row = searched.bounds, sign, of_row
        self._textures = [self._bounds.texture(j) for j in range(of_row.size)]
        listed = [self._listed(j, of_row.free[j]) for j in range(of_row.size)]
        self._free = tuple(values for values, _ in listed)
        facts = [self._listed(j, of_row.facts[j]) for j in range(of_row.size)]
        self._facts = tuple(values for values, _ in facts)
        # columns whose ranges are not resolved: no bound holds for them
        self._open = np.array([not is_whole for _, is_whole in listed])
        self._open_facts = np.array([not is_whole for _, is_whole in facts])
        ordered = np.isin(np.arange(of_row.size), [j for pair in of_row.domain.orders for j in pair])
        # columns in an order of which a listed value stands for others, too, free and as facts
        stand = (
            [not self._lists_all(j, its[j]) for j in range(of_row.size)]
            for its in (of_row.free, of_row.facts)
        )
        self._ordered, self._ordered_facts = (ordered & np.array(its, dtype=np.bool_) for its in stand)

    def _lists_all(self, j: int, values: Values) -> bool:
        """Whether every value of column j is listed."""
        if values.levels is not None or not values.has_numbers or values.is_one:
            return True
        is_counted = values.whole and values.high - values.low < MOST_WHOLE
        return is_counted and self._textures[j].between is not None

    def _listed(self, j: int, values: Values) -> tuple[Floats, bool]:
        """Return values of column j between which answers are extreme, and whether they are for certain."""
        seen, x = self._of_row.domain.seen[j], self._of_row.row[j]
        missing = [np.nan] * values.missing
        texture: Texture = self._textures[j]
        if values.levels is not None or not values.has_numbers:
            return np.append([] if values.levels is None else values.levels, missing), True
        if values.is_one or texture.between is None:
            return np.append(values.nearest(x, seen), missing), True
        if values.whole and values.high - values.low < MOST_WHOLE:
            return np.append(np.arange(values.low, values.high + 1.0), missing), True
        ends = np.concatenate([[-np.inf], texture.breaks, [np.inf]]).tolist()
        parts = [values.between(a, b) for a, b in pairwise(ends)]
        parts = [part for part in parts if part.has_numbers]
        if texture.between == "constant":
            return np.append([part.nearest(x, seen) for part in parts], missing), True
        points = np.unique([end for part in parts for end in (part.low, part.high)])
        if texture.between == "line":
            return np.append(points, missing), True
        inside = seen[values.contains(seen).astype(bool)]
        return np.append(np.union1d(points, inside), missing), False

    def find(
        self,
        kept: Bools,
        limit: float,
        admits: Admits,
        *,
        boxes: int,
        begin: Iterator[Floats],
        is_late: Callable[[], bool],
    ) -> LeastRow:
        box = self._box(kept)
        if any(values.size == 0 for values in box):
            return LeastRow(None, True, np.inf, 0)
        for row in begin:
            if (new := self._descend(row, box, limit, admits)) is not None:
                return LeastRow(new, False, -np.inf, 0)
        is_open = not self._resolves_ranges and bool(np.where(kept, self._open_facts, self._open).any())
        lows, is_cut, used = [], False, 0
        for part in self._one_hot_parts(box):
            end = self._least(part, kept, limit, admits, boxes, is_late)
            used += end.boxes
            if end.row is not None:
                return LeastRow(end.row, False, end.low, used)
            lows.append(end.low)
            is_open, is_cut = is_open or not end.proved, is_cut or not end.is_final
        return LeastRow(None, not is_open, min(lows, default=np.inf), used, is_final=not is_cut)

    def _least(
        self,
        box: tuple[Floats, ...],
        kept: Bools,
        limit: float,
        admits: Admits,
        boxes: int,
        is_late: Callable[[], bool],
    ) -> LeastRow:
        rows: list[Floats] = []
        is_cut = is_blocked = False

        def reaches(row: Floats) -> bool:
            nonlocal is_cut, is_blocked
            is_cut = is_cut or is_late()
            new = None if is_cut else admits([Values.of(value) for value in row.tolist()])
            if new is not None:
                rows.append(new)
            elif np.where(kept, self._ordered_facts, self._ordered).any() and self._of_row.domain.broken(row):
                # another value of the same cell may keep the order
                is_blocked = True
            return new is not None

        end = least(self._bounds, box, sign=self._sign, boxes=boxes, limit=Limit(limit, reaches, np.inf))
        if rows:
            return LeastRow(rows[0], False, end.value, boxes)
        is_cut = is_cut or end.value < limit
        is_proved = not (is_cut or is_blocked)
        return LeastRow(None, is_proved, end.value, boxes * is_cut, is_final=is_blocked or not is_cut)

    def _one_hot_parts(self, box: tuple[Floats, ...]) -> Iterator[tuple[Floats, ...]]:
        """Cut a box into those in which one column of each one-hot group is 1."""
        groups = []
        for its in self._of_row.domain.one_hot:
            hot = [j for j in its if 1.0 in box[j]]
            forced = [j for j in its if 0.0 not in box[j]]
            groups.append([(its, j) for j in hot if not forced or forced == [j]])
        if prod(map(len, groups)) > _MOST_PARTS:
            yield box
            return
        for choice in product(*groups):
            part = list(box)
            for its, one in choice:
                for j in its:
                    part[j] = np.array([float(j == one)])
            yield tuple(part)

    def low(self, kept: Bools) -> float:
        return least(self._bounds, self._box(kept), sign=self._sign, boxes=0).value

    def _box(self, kept: Bools) -> tuple[Floats, ...]:
        return tuple(f if k else v for f, v, k in zip(self._facts, self._free, kept.tolist(), strict=True))

    def _descend(self, row: Floats, box: tuple[Floats, ...], limit: float, admits: Admits) -> Floats | None:
        """Change one column at a time to its value of least answer, once for each column."""
        new = np.array([v[_closest(v, x)] for v, x in zip(box, row.tolist(), strict=True)])
        for j in np.flatnonzero([values.size > 1 for values in box]).tolist():
            tried = np.tile(new, (box[j].size, 1))
            tried[:, j] = box[j]
            values = self._sign * self._bounds.values(tried)
            new = tried[np.argmin(values)]
            if values.min() < limit:
                return admits([Values.of(value) for value in new.tolist()])
        return None


def _closest(values: Floats, x: float) -> int:
    if np.isnan(x):
        return values.size - 1
    distance = np.abs(values - x)
    return int(np.argmin(np.where(np.isnan(distance), np.inf, distance)))


@dataclass(eq=False)
class Goal:
    """Answers of one kind that facts have to exclude: those that are beyond a target."""

    searched: Searched
    target: Target
    finder: Finder
    of_row: RowDomain
    reaches: Reaches  # by the model itself
    low: dict[bytes, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.crossing = self.searched.crossing(self.target.sign, self.target.threshold)
        self._rounding = self.searched.rounding(self.target.threshold)
        self.limit = np.inf
        if self.crossing is not None:
            # where the answers themselves are bounded, the crossing has no room for their rounding
            self.limit = self.crossing.threshold + (self._rounding if self.searched.curve is None else 0.0)

    def is_beyond(self, rows: Floats) -> Bools:
        """Return which rows are beyond the target for certain: not by a rounding."""
        sign = self.target.sign
        return np.asarray(sign * self.searched.answers(rows) < sign * self.target.threshold - self._rounding)

    def admits(self, values: Sequence[Values]) -> Floats | None:
        row = self.of_row.domain.complete(values, self.of_row.row)
        if row is None or not (self.is_beyond(row[None, :])[0] or self.reaches(row)):
            return None
        return row

    def find(self, kept: Bools, **options: object) -> LeastRow:
        if self.crossing is None:
            return LeastRow(None, True, np.inf, 0)
        return self.finder.find(kept, self.limit, self.admits, **options)  # type: ignore[arg-type]

    def bound(self, kept: Bools) -> float:
        """Return a lower bound of what is searched, with these facts."""
        key = kept.tobytes()
        if key not in self.low:
            self.low[key] = 0.0 if self.crossing is None else self.finder.low(kept)
        return self.low[key]


@dataclass(frozen=True, eq=False)
class SufficientFacts:
    """A set of facts, by positions of units, and what is proved of it."""

    units: tuple[int, ...]
    proved: bool  # that it is sufficient
    fewest: int  # no set of fewer facts is sufficient
    counterexamples: tuple[tuple[int, Floats], ...]  # without one of the facts
    nodes: int
    seconds: float

    @property
    def smallest(self) -> bool:
        return self.proved and self.fewest >= len(self.units)


class _Verdict(Enum):
    """Whether some facts are sufficient."""

    PROVED = 0
    CONFLICT = 1
    OPEN = 2  # a longer search may decide
    UNKNOWN = 3  # no search decides: a column is not bounded over its range


class FactSets:
    """Search for a smallest set of facts that excludes all goals."""

    def __init__(self, goals: Sequence[Goal], of_row: RowDomain, time_limit: float) -> None:
        self._goals, self._of_row = goals, of_row
        self._began, self._limit = perf_counter(), time_limit
        self._conflicts: list[tuple[Units, Floats]] = []
        self._nodes = 0
        self._order = self._by_contribution()

    def _is_late(self) -> bool:
        return perf_counter() - self._began > self._limit

    def _by_contribution(self) -> list[int]:
        """Return the units in the order of what they add to the bounds, first and last; the least first."""
        units = range(len(self._of_row.units))
        every, none = frozenset(units), frozenset[int]()
        added = np.zeros(len(units))
        for goal in self._goals:
            for i in units:
                ends = (frozenset({i}), none), (every, every - {i})
                added[i] += sum(
                    goal.bound(self._of_row.kept(more)) - goal.bound(self._of_row.kept(fewer))
                    for more, fewer in ends
                )
        return [int(i) for i in np.argsort(added, kind="stable")]

    def solve(self) -> SufficientFacts:
        units = frozenset(range(len(self._of_row.units)))
        boxes = _BOXES
        verdict = self._check(units, boxes)
        while verdict == _Verdict.OPEN and not self._is_late():
            boxes *= _GROWTH
            verdict = self._check(units, boxes)
        if verdict != _Verdict.PROVED:
            return self._result(units, proved=False, fewest=0)
        minimal = self._minimal(units)
        best, fewest = self._smallest(minimal)
        self._separate(best)
        return self._result(best, proved=True, fewest=fewest)

    def _minimal(self, units: Units) -> Units:
        """Drop one fact after the other, as long as the rest is proved to be sufficient."""
        for i in self._order:
            if self._is_late():
                break
            if self._check(units - {i}, _BOXES) == _Verdict.PROVED:
                units = units - {i}
        return units

    def _smallest(self, best: Units) -> tuple[Units, int]:
        """Return the smallest set found, and a number of facts below which no set is sufficient."""
        boxes, fewest = _BOXES, 0
        while True:
            hitting = self._hitting(fewest)
            fewest = len(hitting)
            if fewest >= len(best) or self._is_late():
                return best, min(fewest, len(best))
            verdict = self._check(hitting, boxes)
            if verdict == _Verdict.PROVED:
                return hitting, fewest
            if verdict == _Verdict.UNKNOWN:
                return best, fewest
            if verdict == _Verdict.OPEN:
                boxes *= _GROWTH
                continue
            self._more_conflicts(hitting)

    def _more_conflicts(self, hitting: Units) -> None:
        """Look, without bounds, for rows that conflict with more and more facts."""
        kept = hitting | self._conflicts[-1][0]
        while len(kept) < len(self._of_row.units) and not self._is_late():
            if self._check(kept, 0) != _Verdict.CONFLICT:
                return
            kept |= self._conflicts[-1][0]

    def _separate(self, units: Units) -> None:
        """Find for each fact a row that shares all others, until the time is spent."""
        boxes = _BOXES
        while not self._is_late():
            wanted = [i for i in units if self._without(units, i) is None]
            if not wanted:
                return
            verdicts = [self._check(units - {i}, boxes) for i in wanted]
            if _Verdict.OPEN not in verdicts:
                return
            boxes *= _GROWTH

    def _without(self, units: Units, i: int) -> Floats | None:
        return next((row for changed, row in self._conflicts if changed & units == {i}), None)

    def _check(self, units: Units, boxes: int) -> _Verdict:
        if any(changed.isdisjoint(units) for changed, _ in self._conflicts):
            return _Verdict.CONFLICT
        kept, verdict = self._of_row.kept(units), _Verdict.PROVED
        for goal in self._goals:
            begin = self._starts(goal, kept)
            end = goal.find(kept, boxes=boxes, begin=begin, is_late=self._is_late)
            self._nodes += end.boxes
            if end.row is not None:
                row = self._fewer_changes(goal, end.row)
                self._conflicts.append((self._of_row.changed(row), row))
                return _Verdict.CONFLICT
            if not end.proved and verdict != _Verdict.OPEN:
                verdict = _Verdict.UNKNOWN if end.is_final else _Verdict.OPEN
        return verdict

    def _starts(self, goal: Goal, kept: Bools) -> Iterator[Floats]:
        """Yield rows from which descents begin: the row, earlier conflicts, the background's best."""
        row = self._of_row.row
        yield row
        for _, earlier in self._conflicts[-1 : -1 - _LATEST : -1]:
            yield np.where(kept, row, earlier)
        matrix = self._of_row.domain.table.matrix
        places = np.linspace(0, len(matrix) - 1, min(_STARTS, len(matrix))).astype(np.int64)
        rows = np.where(kept, row, matrix[places])
        answers = goal.target.sign * goal.searched.answers(rows)
        for i in np.argsort(answers, kind="stable")[:_BEST]:
            yield rows[i]

    def _fewer_changes(self, goal: Goal, row: Floats) -> Floats:
        """Take back changes, those that contribute most first: fewer facts that change say more."""
        changed = self._of_row.changed(row)
        rank = {i: place for place, i in enumerate(self._order)}
        for i in sorted(changed, key=rank.__getitem__, reverse=True):
            columns = list(self._of_row.units[i])
            shorter = row.copy()
            shorter[columns] = self._of_row.row[columns]
            if not self._of_row.domain.broken(shorter) and goal.is_beyond(shorter[None, :])[0]:
                row = shorter
        return row

    def _hitting(self, at_least: int) -> Units:
        """Return a smallest set that has a unit of each conflict; of several one with facts that add most."""
        return smallest_hitting_set([changed for changed, _ in self._conflicts], self._order, at_least)

    def _result(self, units: Units, *, proved: bool, fewest: int) -> SufficientFacts:
        rows = {i: self._without(units, i) for i in sorted(units)}
        examples = tuple((i, row) for i, row in rows.items() if row is not None)
        if not proved:
            examples = tuple((-1, row) for changed, row in self._conflicts if not changed)
        return SufficientFacts(
            tuple(sorted(units)), proved, fewest, examples, self._nodes, perf_counter() - self._began
        )
