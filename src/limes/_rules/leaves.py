r"""The least answer of a forest over a box, by lists of the leaves that the box reaches.

No tree tells values of one *cell* of a column apart: those between two neighbouring thresholds, or one level.
A leaf is a run of cells in each column, or a set of at most 64 of them where it may have gaps (categories,
missing values). Boxes of cells are bounded and cut by ``kernels/leaf_boxes.cpp``.

The search begins with rows from which no change of one column lowers the answer. All changes of one column to
all of its cells are judged in one pass: a leaf counts for column j if every other column of the row is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import nextafter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limes._arrays import Bools, Floats, Ints
from limes._kernels import LeafBoxes, Leaves
from limes._rules.bounds import Bounds, ForestBounds
from limes._rules.domain import Values
from limes.models.forms._trees import Forest

# Where ``kernels/leaf_boxes.cpp`` stops: no row is below the limit, some may be, or boxes are spent
_NO_MORE, _CANDIDATE, _SPENT = 0, 1, 2
# Boxes that the compiled loop cuts in the time of one of other searches, by which their limits are stated
_IN_TIME_OF_ONE = 10
# Boxes that are cut before the clock is read
_CUT_AT_ONCE = 64
# Cells of a column of sets
_WIDEST = 63
# Changes of one column that a descent makes at most
_STEPS = 200
# A step has to lower the answer by more than roundings, relative to the size of the leaves
_LEAST_STEP = 1e-12


@dataclass(frozen=True, eq=False)
class CutColumn:
    """A column in cells between thresholds, (edges[c - 1], edges[c]]."""

    edges: Floats  # ascending

    @property
    def size(self) -> int:
        return self.edges.size + 1

    def cells(self, values: Values) -> tuple[int, int]:
        """Return the first cell of some values, and the one behind the last."""
        if not values.has_numbers:
            return 0, 0
        first, last = np.searchsorted(self.edges, (values.low, values.high), "left")
        return int(first), int(last) + 1

    def place(self, value: float) -> int:
        return int(np.searchsorted(self.edges, value, "left"))

    def within(self, values: Values, first: int, last: int) -> Values:
        """Return the values in the cells from the first to before the last."""
        lower = self.edges[first - 1] if first > 0 else -np.inf
        upper = self.edges[last - 1] if last <= self.edges.size else np.inf
        return values.between(float(lower), float(upper))


@dataclass(frozen=True, eq=False)
class SetColumn:
    """A column of few cells: levels, or cells between edges; and last, the missing value."""

    parts: tuple[Values, ...]  # of each cell

    @property
    def size(self) -> int:
        return len(self.parts)

    def bits(self, values: Values) -> np.uint64:
        return np.uint64(_packed(np.array([[_meets(part, values) for part in self.parts]]))[0])

    def place(self, value: float) -> int:
        """Return the cell of a value, -1 if it has none."""
        if np.isnan(value):
            return self.size - 1 if self.parts[-1].missing else -1
        cell = int(np.searchsorted(self._highs, value))
        return cell if cell < self._highs.size and self.parts[cell].low <= value else -1

    @cached_property
    def _highs(self) -> Floats:
        """The largest number of each cell, ascending."""
        return np.array([part.high for part in self.parts if part.has_numbers])

    def within(self, values: Values, bits: np.uint64) -> Values:
        """Return the values of the first of some cells that has any; and the missing value."""
        allowed = [part for part, holds in zip(self.parts, _unpacked(bits, self.size), strict=True) if holds]
        missing = values.missing and any(part.missing for part in allowed)
        if all(part.is_listed for part in allowed):
            levels = [level for part in allowed if part.levels is not None for level in part.levels.tolist()]
            return replace(values.among(np.array(sorted(levels))), missing=missing)
        numbers = next(
            (p for p in allowed if p.has_numbers and _meets(p, replace(values, missing=False))), None
        )
        if numbers is None:
            return Values(np.inf, -np.inf, missing=missing)
        return values.between(nextafter(numbers.low, -np.inf), numbers.high, missing=missing)


def _meets(part: Values, values: Values) -> bool:
    """Return whether a cell, a level or a range, has any of some values."""
    if part.missing and values.missing:
        return True
    if not (part.has_numbers and values.has_numbers):
        return False
    if part.levels is not None:
        return bool(values.contains(part.levels).any())
    return values.between(nextafter(part.low, -np.inf), part.high).has_numbers


def _packed(flags: Bools) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return rows of flags (n, m), m <= 64, as bits of one number each."""
    powers = np.uint64(1) << np.arange(flags.shape[1], dtype=np.uint64)
    return np.asarray((flags * powers).sum(axis=1, dtype=np.uint64))


def _unpacked(bits: np.uint64, size: int) -> Bools:
    return np.asarray((bits >> np.arange(size, dtype=np.uint64)) & np.uint64(1), dtype=np.bool_)


class Region(NamedTuple):
    """A box of cells: runs (cut columns,) and sets (set columns,)."""

    first: Ints
    last: Ints  # behind the run
    bits: np.ndarray[tuple[int], np.dtype[np.uint64]]


class LeastRow(NamedTuple):
    """The end of a search: a row below the limit, or whether no row is."""

    row: Floats | None
    proved: bool  # that no row is below it
    low: float  # a lower bound of all answers in the box
    boxes: int  # that were cut
    is_final: bool = True  # that a longer search finds no more


class LeafTable:
    """The leaves of sign · f with their cells, for a domain of these values."""

    def __init__(self, form: Forest, domain: Sequence[Values], sign: float) -> None:
        self.form, self.sign = form, sign
        leaf, tree = np.flatnonzero(form.feature < 0), form.tree_of_nodes
        value = sign * form.value[leaf]
        order = np.lexsort((value, tree[leaf]))
        self.tree, self.value = tree[leaf][order], value[order]
        self.intercept = sign * float(form.intercept)
        self.size = form.size
        columns: list[CutColumn | SetColumn] = []
        reach: list[tuple[Ints, Ints] | Bools] = []
        for j, values in enumerate(domain):
            column, its = _column(form, j, values, leaf[order])
            columns.append(column)
            reach.append(its)
        self.columns = tuple(columns)
        self.cut = np.array([j for j, c in enumerate(columns) if isinstance(c, CutColumn)], dtype=np.int64)
        self.set = np.array([j for j, c in enumerate(columns) if isinstance(c, SetColumn)], dtype=np.int64)
        leaves = self.value.size
        self.first = np.empty((leaves, self.cut.size), dtype=np.int32)
        self.last = np.empty((leaves, self.cut.size), dtype=np.int32)
        for at, j in enumerate(self.cut.tolist()):
            self.first[:, at], self.last[:, at] = reach[j]
        flags = [np.asarray(reach[j]) for j in self.set.tolist()]
        self._pack(flags)
        self._drop_empty()
        sizes = np.array([columns[j].size for j in self.cut], dtype=np.int64)
        # cells of all cut columns in one row, with a place behind each column's last cell
        self.starts = np.cumsum(sizes + 1) - (sizes + 1)
        self.width = int((sizes + 1).sum())
        self.cut_of = np.repeat(np.arange(self.cut.size), sizes + 1)
        self.set_of = np.repeat(np.arange(self.set.size), [columns[j].size for j in self.set])
        self.set_starts = np.array(
            [int(np.argmax(self.set_of == s)) for s in range(self.set.size)], dtype=np.int64
        )
        self.compiled = Leaves(self.tree, self.value, self.first, self.last, self.bits, sizes)

    def _pack(self, flags: Sequence[Bools]) -> None:
        leaves = self.value.size
        self.members = np.concatenate([np.zeros((leaves, 0), dtype=np.bool_), *flags], axis=1)
        packed = [_packed(its) for its in flags]
        self.bits = np.stack(packed, axis=1) if packed else np.empty((leaves, 0), dtype=np.uint64)

    def _drop_empty(self) -> None:
        """Drop leaves that no possible value reaches: between two whole numbers, or of absent levels."""
        reached = (self.first < self.last).all(axis=1) & (self.bits != 0).all(axis=1)
        for name in ("tree", "value", "first", "last", "members", "bits"):
            setattr(self, name, getattr(self, name)[reached])

    def region(self, values: Sequence[Values]) -> Region:
        runs, bits = list[tuple[int, int]](), list[np.uint64]()
        for column, its in zip(self.columns, values, strict=True):
            if isinstance(column, CutColumn):
                runs.append(column.cells(its))
            else:
                bits.append(column.bits(its))
        ends = np.array(runs, dtype=np.int64).reshape(-1, 2)
        return Region(ends[:, 0], ends[:, 1], np.array(bits, dtype=np.uint64))

    def reached(self, region: Region) -> NDArray[np.uint8]:
        """Return which leaves reach a region in each column, as bits, (cut and set columns, leaves / 8)."""
        runs = (self.first < region.last) & (self.last > region.first)
        return np.packbits(np.concatenate([runs, (self.bits & region.bits) != 0], axis=1).T, axis=1)

    @cached_property
    def order(self) -> Ints:
        """Columns in the order of ``reached``."""
        return np.concatenate([self.cut, self.set])


class TooManyCellsError(Exception):
    """A column has values that neither a run of cells nor a set of 63 holds."""


def _column(
    form: Forest, j: int, values: Values, leaf: Ints
) -> tuple[CutColumn | SetColumn, tuple[Ints, Ints] | Bools]:
    """Return a column in cells, and the cells of each leaf."""
    if (form.set_of[form.feature == j] >= 0).any():
        return _of_codes(form, j, values, leaf)
    lower, upper, missing = (ends[leaf] for ends in form.interval(j))
    if values.whole:  # x <= t is x <= floor(t)
        lower, upper = np.floor(lower), np.floor(upper)
    edges = np.unique(np.concatenate([lower, upper]))
    edges = edges[np.isfinite(edges)]
    if not values.missing and (values.levels is None or values.levels.size > _WIDEST):
        first = np.where(lower == -np.inf, 0, np.searchsorted(edges, lower, "left") + 1)
        last = np.where(upper == np.inf, edges.size, np.searchsorted(edges, upper, "left")) + 1
        return CutColumn(edges), (first, last)
    parts = _levels(values) if values.levels is not None else _ranges(edges, values)
    column = _set_column(parts, j, missing=values.missing)
    # cells are never cut by a leaf: their largest values decide
    points = np.array([part.high for part in parts])
    inside = (points > lower[:, None]) & (points <= upper[:, None])
    return column, np.column_stack([inside, *[missing] * values.missing])


def _of_codes(form: Forest, j: int, values: Values, leaf: Ints) -> tuple[SetColumn, Bools]:
    if values.levels is None:
        raise TooManyCellsError(j)
    allowed, missing, group = form.reaching(j)
    points, codes = values.levels, group.size
    is_code = (points >= 0) & (points < codes) & (points == np.floor(points))
    other = np.full(points.size, allowed.shape[1] - 1)
    at = np.where(is_code, group[np.where(is_code, points, 0).astype(np.int64)], other) if codes else other
    column = _set_column(_levels(values), j, missing=values.missing)
    return column, np.column_stack([allowed[leaf][:, at], *[missing[leaf]] * values.missing])


def _levels(values: Values) -> list[Values]:
    return [] if values.levels is None else [Values.of(level) for level in values.levels.tolist()]


def _ranges(edges: Floats, values: Values) -> list[Values]:
    ends = np.concatenate([[-np.inf], edges, [np.inf]]).tolist()
    parts = [values.between(a, b) for a, b in pairwise(ends)]
    return [part for part in parts if part.has_numbers]


def _set_column(parts: list[Values], j: int, *, missing: bool) -> SetColumn:
    if len(parts) + missing > _WIDEST:
        raise TooManyCellsError(j)
    return SetColumn((*parts, *[Values(np.inf, -np.inf, missing=True)] * missing))


def forest_of(bounds: Bounds) -> Forest | None:
    """Return the forest that is bounded; None for all else. Linked bounds are those of a margin."""
    return bounds.form if isinstance(bounds, ForestBounds) else None


class LeafSearch:
    """Search sign · f for an answer below a limit, over rows that share some columns' facts with a row.

    ``free`` are the values of columns that may change, and ``facts`` those of columns that are kept.
    """

    def __init__(self, table: LeafTable, free: Sequence[Values], facts: Sequence[Values]) -> None:
        self._table, self._free, self._facts = table, free, facts
        self._everywhere, self._inside = table.region(free), table.region(facts)
        if (self._inside.bits == 0).any():
            raise TooManyCellsError(int(table.set[np.argmin(self._inside.bits)]))
        self._reached, self._kept = table.reached(self._everywhere), table.reached(self._inside)
        self._step = _LEAST_STEP * float(np.abs(table.value).max(initial=0.0)) * max(1, table.form.roots.size)

    def find(
        self,
        kept: Bools,
        limit: float,
        admits: Callable[[Sequence[Values]], Floats | None],
        *,
        boxes: int,
        begin: Iterable[Floats] = (),
        is_late: Callable[[], bool] = lambda: False,
    ) -> LeastRow:
        """Search the rows with the facts of the columns that are ``kept``, (d,).

        ``admits`` turns values of each column, for all of which the answer is below the limit by what was
        read, into a row that is below it by the model; or None. ``begin`` are rows to start from.
        """
        region, leaves = self._box(kept)
        if not leaves.size:
            return LeastRow(None, True, np.inf, 0)
        for row in begin:
            value, place = self._descend(leaves, region, self._place(row, region), limit)
            if value < limit:
                new = admits(self._values(self._cell(place), kept))
                if new is not None:
                    return LeastRow(new, False, -np.inf, 0)
        return self._search(region, leaves, kept, limit, admits, boxes * _IN_TIME_OF_ONE, is_late)

    def low(self, kept: Bools) -> float:
        """Return a lower bound of the answers with these facts."""
        _, leaves = self._box(kept)
        if not leaves.size:
            return np.inf
        least = leaves[np.flatnonzero(np.diff(self._table.tree[leaves], prepend=-1))]
        return self._table.intercept + float(self._table.value[least].sum())

    def _box(self, kept: Bools) -> tuple[Region, Ints]:
        table = self._table
        cut, of_set = kept[table.cut], kept[table.set]
        region = Region(
            np.where(cut, self._inside.first, self._everywhere.first),
            np.where(cut, self._inside.last, self._everywhere.last),
            np.where(of_set, self._inside.bits, self._everywhere.bits),
        )
        by_column = kept[table.order][:, None]
        reached = np.bitwise_and.reduce(np.where(by_column, self._kept, self._reached), axis=0)
        return region, np.flatnonzero(np.unpackbits(reached, count=table.value.size))

    def _values(self, region: Region, kept: Bools) -> list[Values]:
        table = self._table
        chosen = [facts if k else free for facts, free, k in zip(self._facts, self._free, kept, strict=True)]
        for at, j in enumerate(table.cut.tolist()):
            column = table.columns[j]
            assert isinstance(column, CutColumn)  # noqa: S101 - by its place
            chosen[j] = column.within(chosen[j], int(region.first[at]), int(region.last[at]))
        for at, j in enumerate(table.set.tolist()):
            column = table.columns[j]
            assert isinstance(column, SetColumn)  # noqa: S101 - by its place
            chosen[j] = column.within(chosen[j], region.bits[at])
        return chosen

    # -- one row, better and better -------------------------------------------------------------------------

    def _place(self, row: Floats, region: Region) -> tuple[Ints, Ints]:
        """Return the cell of a row in each column, moved into a box."""
        table = self._table
        runs = np.array([table.columns[j].place(row[j]) for j in table.cut], dtype=np.int64)
        sets = np.array([table.columns[j].place(row[j]) for j in table.set], dtype=np.int64)
        for at, j in enumerate(table.set.tolist()):
            allowed = np.flatnonzero(_unpacked(region.bits[at], table.columns[j].size))
            if sets[at] not in allowed:
                sets[at] = allowed[0]
        return np.clip(runs, region.first, region.last - 1), sets

    def _cell(self, place: tuple[Ints, Ints]) -> Region:
        runs, sets = place
        return Region(runs, runs + 1, np.uint64(1) << sets.astype(np.uint64))

    def _descend(
        self, leaves: Ints, region: Region, place: tuple[Ints, Ints], limit: float
    ) -> tuple[float, tuple[Ints, Ints]]:
        """Change one column at a time to the cell of least answer, until no change lowers it."""
        table, (runs, sets) = self._table, (place[0].copy(), place[1].copy())
        first, last, value = table.first[leaves], table.last[leaves], table.value[leaves]
        members = table.members[leaves]
        cuts = runs.size
        holds = np.empty((leaves.size, cuts + sets.size), dtype=np.bool_)
        holds[:, :cuts] = (first <= runs) & (runs < last)
        holds[:, cuts:] = members[:, table.set_starts + sets]
        misses = holds.shape[1] - holds.sum(axis=1)
        possible = np.zeros(table.width, dtype=np.bool_)
        for at, start in enumerate(table.starts.tolist()):
            possible[start + region.first[at] : start + region.last[at]] = True
        allowed = [_unpacked(b, table.columns[j].size) for b, j in zip(region.bits, table.set, strict=True)]
        possible_sets = np.concatenate([np.zeros(0, dtype=np.bool_), *allowed])
        answer = float(value[misses == 0].sum()) + table.intercept
        for _ in range(_STEPS):
            if answer < limit:
                break
            whole, nearly = np.flatnonzero(misses == 0), np.flatnonzero(misses == 1)
            column = np.argmin(holds[nearly], axis=1)
            of_cut = column < cuts
            one, at = nearly[of_cut], column[of_cut]
            begins = np.concatenate(
                [(first[whole] + table.starts).ravel(), first[one, at] + table.starts[at]]
            )
            ends = np.concatenate([(last[whole] + table.starts).ravel(), last[one, at] + table.starts[at]])
            weight = np.concatenate([np.repeat(value[whole], cuts), value[one]])
            size = table.width + 1
            rise = np.bincount(begins, weight, size) - np.bincount(ends, weight, size)
            answers = np.where(possible, np.cumsum(rise)[: table.width], np.inf)
            best = int(np.argmin(answers)) if answers.size else -1
            least = float(answers[best]) if best >= 0 else np.inf
            if sets.size:
                two, its = nearly[~of_cut], column[~of_cut] - cuts
                of_sets = value[whole] @ members[whole]
                of_sets = of_sets + value[two] @ (members[two] & (table.set_of == its[:, None]))
                of_sets = np.where(possible_sets, of_sets, np.inf)
                best_set = int(np.argmin(of_sets))
                if of_sets[best_set] < least:
                    best, least = -1 - best_set, float(of_sets[best_set])
            if least + table.intercept >= answer - self._step:
                break
            answer = least + table.intercept
            if best >= 0:
                j = int(table.cut_of[best])
                runs[j] = best - table.starts[j]
                now, changed = (first[:, j] <= runs[j]) & (runs[j] < last[:, j]), j
            else:
                s = int(table.set_of[-1 - best])
                sets[s] = -1 - best - table.set_starts[s]
                now, changed = members[:, -1 - best], cuts + s
            misses += holds[:, changed]
            misses -= now
            holds[:, changed] = now
        return answer, (runs, sets)

    # -- all rows, by bounds --------------------------------------------------------------------------------

    def _search(
        self,
        region: Region,
        leaves: Ints,
        kept: Bools,
        limit: float,
        admits: Callable[[Sequence[Values]], Floats | None],
        boxes: int,
        is_late: Callable[[], bool],
    ) -> LeastRow:
        table = self._table
        search = LeafBoxes(table.compiled, *region, leaves, table.intercept, limit)
        common = Region(region.first.copy(), region.last.copy(), region.bits.copy())
        while True:
            end = search.advance(min(boxes, search.cut + _CUT_AT_ONCE), *common)
            if end == _NO_MORE:
                return LeastRow(None, True, search.low, search.cut)
            if end == _CANDIDATE and (new := admits(self._values(common, kept))) is not None:
                return LeastRow(new, False, search.low, search.cut)
            if is_late() or (end == _SPENT and (search.cut >= boxes or search.is_full)):
                return LeastRow(None, False, search.low, search.cut, is_final=False)
