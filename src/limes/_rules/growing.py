r"""Rules that hold for many rows of a table: boxes around one row, grown and proved.

A rule begins as the whole domain. As long as rows beyond its claim are seen inside, it is cut where the gain

    p' (log p'/(p' + n') - log p/(p + n))

is largest (FOIL's): p rows are wanted, n are beyond the claim, p' and n' are those that the cut leaves. A
single row, which the search for one in the box gave, is cut off where its answer moves most towards the claim
for the wanted rows that are lost. Where the search proves that no such row exists, conditions are dropped and
widened again as long as this is proved.

References
----------
Quinlan, "Learning logical definitions from relations", 1990 (the gain).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from math import ceil, log
from typing import Protocol

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._rules.bounds import Searched
from limes._rules.cells import Cells, ColumnCells, Masks, holds
from limes._rules.certain import Goal, RowDomain
from limes._rules.contrast import Enough, Target, verdict
from limes._rules.domain import Values
from limes._rules.model import Ask
from limes._rules.precision import share_bound
from limes._rules.sufficient import Finders
from limes._threads import LRUCache
from limes.exceptions import InputError

# Boxes that one proof cuts at most
_BOXES, _FEW_BOXES = 300, 50
# Part of the wanted rows, in logarithms, that a cut is taken to lose besides those that it does lose
_FREE = 0.1
# Rows of the table from which a search descends
_STARTS = 3
# Times that rows are drawn before those that keep the orders are too few
_REDRAWS = 100
# Rows drawn again beside those that are missing, and most of them as a multiple of what is drawn
_SPARE, _MOST_REDRAWN = 16, 10
# Part of the draws after which a quick look may end
_FIRST = 4
# Boxes of units of columns whose rows are kept
_BOXES_OF_UNITS = 1024


@dataclass(eq=False)
class AnsweredRows:
    """Rows whose answers are known: those of the table first, then what searches and draws examples."""

    rows: Floats
    cells: Ints
    answers: Floats

    def add(self, rows: Floats, cells: Ints, answers: Floats) -> None:
        self.rows = np.concatenate([self.rows, rows])
        self.cells = np.concatenate([self.cells, cells])
        self.answers = np.concatenate([self.answers, answers])

    def beyond(self, targets: Sequence[Target], masks: Masks) -> Ints:
        """Return the positions of rows of a box that are beyond a claim."""
        is_beyond = np.flatnonzero(are_beyond(targets, self.answers))
        return is_beyond[holds(masks, self.cells[is_beyond])]


def are_beyond(targets: Sequence[Target], answers: Floats) -> Bools:
    """Return which answers a claim excludes."""
    return np.asarray(np.any([target.reached(answers) for target in targets], axis=0))


class Proof(Protocol):
    """Decides whether a box is to be cut, and where: for certain, or by draws."""

    def counterexamples(self, masks: Masks, *, quick: bool = False) -> Floats | None:
        """Return rows of the box beyond the claim, none if it is good enough; None if undecided.

        ``quick`` leaves more undecided.
        """

    def part(self, masks: Masks, seed: Ints, wanted: Ints, examples: Floats | None) -> Masks | None:
        """Return a part of a box that keeps the seed, and excludes an example; None without."""


@dataclass(frozen=True, eq=False)
class Cut:
    """A part of a box: the new cells of one column, with the wanted rows and those beyond that are left."""

    column: int
    mask: Bools
    wanted: float
    beyond: float

    def of(self, masks: Masks) -> Masks:
        return (*masks[: self.column], self.mask, *masks[self.column + 1 :])


def best_cut(cells: Cells, masks: Masks, seed: Ints, wanted: Ints, beyond: Ints) -> Masks | None:
    """Return the part of a box with the largest gain that keeps the seed; None if no cut excludes a row.

    ``wanted`` and ``beyond`` are the cells of rows in the box, (n, columns).
    """
    p, n = float(max(1, len(wanted))), float(len(beyond))
    best, largest = None, (-np.inf, 0.0)
    for j, parts in _parts_of(cells, masks, seed, wanted, beyond):
        kept = np.maximum(1.0, parts.wanted)
        purity = kept / (kept + parts.beyond)
        gain = kept * (np.log(purity) - log(p / (p + n)))
        # where no gain is positive, the purest part; none that excludes no row
        value = np.where(parts.beyond < n, np.where(gain > 0.0, gain, purity - 1.0), -np.inf)
        if not value.size or value.max() == -np.inf:
            continue
        best_ones = np.flatnonzero(value == value.max())
        i = int(best_ones[np.argmax(np.where(gain > 0.0, kept, 0.0)[best_ones])])
        of_part = (float(value[i]), float(kept[i]) if gain[i] > 0.0 else 0.0)
        if of_part > largest:
            best, largest = (j, parts.mask(i)), of_part
    return None if best is None else (*masks[: best[0]], best[1], *masks[best[0] + 1 :])


def _cuts_of(cells: Cells, masks: Masks, seed: Ints, wanted: Ints, beyond: Ints) -> Iterator[Cut]:
    for j, parts in _parts_of(cells, masks, seed, wanted, beyond):
        for i, (p, n) in enumerate(zip(parts.wanted.tolist(), parts.beyond.tolist(), strict=True)):
            yield Cut(j, parts.mask(i), p, n)


def _parts_of(
    cells: Cells, masks: Masks, seed: Ints, wanted: Ints, beyond: Ints
) -> Iterator[tuple[int, _Parts]]:
    for j, (column, mask) in enumerate(zip(cells.columns, masks, strict=True)):
        if mask.sum() < 2:
            continue
        counts = [np.bincount(its[:, j], minlength=column.size) * mask for its in (wanted, beyond)]
        yield j, _Parts.of(column, mask, int(seed[j]), np.stack(counts))


@dataclass(frozen=True, eq=False)
class _Parts:
    """Parts of one column's cells that keep the seed's: cells [start, end), or all of the mask but these."""

    within: Bools  # the mask
    starts: Ints
    ends: Ints
    are_kept: Bools  # whether these cells are kept, or dropped
    wanted: Floats  # rows that are left
    beyond: Floats

    @classmethod
    def of(cls, column: ColumnCells, mask: Bools, seed: int, counts: Ints) -> _Parts:
        """Return the parts, where cells have ``counts`` (2, cells) of wanted rows and of those beyond."""
        parts, numbers = list[tuple[int, int, bool]](), column.numbers
        if not column.is_ordered or seed >= numbers:
            parts.append((seed, seed + 1, True))
            if not column.is_ordered:
                parts += [(c, c + 1, False) for c in np.flatnonzero(mask).tolist() if c != seed]
        else:
            if mask[numbers:].any():
                parts.append((numbers, column.size, False))
            inside = np.flatnonzero(mask[:numbers])
            first, last = int(inside[0]), int(inside[-1])
            # between two rows beyond, the cut that keeps the most and lies in the middle of those that do
            parts += [(c + 1, numbers, False) for c in _middles(seed, last - 1, counts[0], counts[1], 1)]
            parts += [(0, c, False) for c in _middles(seed, first + 1, counts[0], counts[1], -1)]
        starts, ends, are_kept = np.array(parts, dtype=np.int64).reshape(-1, 3).T
        before = np.concatenate([np.zeros((2, 1)), np.cumsum(counts, axis=1)], axis=1)
        sums = before[:, ends] - before[:, starts]
        wanted, beyond = np.where(are_kept, sums, before[:, -1:] - sums)
        return cls(mask, starts, ends, are_kept.astype(np.bool_), wanted, beyond)

    def mask(self, i: int) -> Bools:
        """Return the cells of the i-th part."""
        start, end = int(self.starts[i]), int(self.ends[i])
        mask = self.within.copy()
        if self.are_kept[i]:
            mask[:start] = mask[end:] = False
        else:
            mask[start:end] = False
        return mask


def _middles(start: int, end: int, p: Ints, n: Ints, step: int) -> Iterator[int]:
    """Yield last cells of parts from ``start`` on: one for each number of rows that are kept."""
    if (end - start) * step < 0:
        return
    places = np.arange(start, end + step, step)
    counts = np.stack([np.cumsum(p[places]), np.cumsum(n[places])])
    changes = np.flatnonzero((np.diff(counts, axis=1) != 0).any(axis=0)) + 1
    ends = np.concatenate([[0], changes, [places.size]])
    yield from places[ends[:-1] + np.diff(ends) // 2].tolist()


@dataclass(eq=False)
class CertainProof:
    """Proofs that no possible row of a box is beyond a claim, for one row in it.

    ``beyond`` is what is searched for such rows, ``targets`` are the answers that they have, and ``judge``
    gives rows that were met their answers.
    """

    cells: Cells
    beyond: Sequence[tuple[Searched, Target, Enough]]
    finders: Finders
    row: Floats
    targets: tuple[Target, ...]
    answered: AnsweredRows
    judge: Ask
    is_late: Callable[[], bool]
    boxes: int = 0  # that were cut
    _goals: list[Goal] = field(default_factory=list)

    def __post_init__(self) -> None:
        domain = self.cells.domain
        self._missing = tuple(values.missing for values in domain.columns)
        at_row = tuple(self.row[j : j + 1] for j in range(self.row.size))
        self._is_by_column = all(its.bounds.lowest(at_row, 1.0) is not None for its, _, _ in self.beyond)
        whole = RowDomain(domain, self.row, domain.columns, domain.columns, ())
        for searched, target, enough in self.beyond:
            finder = self.finders(searched, target.sign, whole, self._missing)
            self._goals.append(Goal(searched, target, finder, whole, verdict(self.row, enough)))

    def counterexamples(self, masks: Masks, *, quick: bool = False) -> Floats | None:
        inside = self.answered.beyond(self.targets, masks)
        if inside.size:
            return self.answered.rows[inside]
        is_open = False
        values = self.cells.values(masks)
        for goal in self._over(values, values):
            kept = np.zeros(len(masks), dtype=np.bool_)
            # columns that are judged one by one need no descent
            begin = iter(()) if self._is_by_column else self._starts()
            end = goal.find(kept, boxes=_FEW_BOXES if quick else _BOXES, begin=begin, is_late=self.is_late)
            self.boxes += end.boxes
            if end.row is not None:
                rows = end.row[None, :]
                self.answered.add(rows, self.cells.locate(rows), self.judge(rows))
                return rows
            is_open = is_open or not end.proved
        return None if is_open else np.zeros((0, len(masks)))

    def part(self, masks: Masks, seed: Ints, wanted: Ints, examples: Floats | None) -> Masks | None:
        if examples is not None and len(examples) > 1:
            return best_cut(self.cells, masks, seed, wanted, self.cells.locate(examples))
        none = np.zeros((0, len(masks)), dtype=np.int64)
        places = none if examples is None else self.cells.locate(examples)
        cuts = [*_cuts_of(self.cells, masks, seed, wanted, places)]
        if examples is not None:
            at = places[0]
            cuts = [cut for cut in cuts if not cut.mask[at[cut.column]]]
            rises = self._rises(examples[0], at, seed, cuts)
        else:
            cuts = _few_of(cuts)
            rises = self._rises_of_bound(masks, cuts)
        if not cuts:
            return None
        kept = np.maximum(1.0, [cut.wanted for cut in cuts])
        lost = np.log(max(1, len(wanted))) - np.log(kept)
        return cuts[int(np.argmax(rises / (lost + _FREE)))].of(masks)

    def _rises(self, row: Floats, at: Ints, seed: Ints, cuts: Sequence[Cut]) -> Floats:
        """Return by how much the answer moves back towards the claim where a row leaves the cut cells."""
        moved = np.tile(row, (len(cuts), 1))
        for i, cut in enumerate(cuts):
            column, j = self.cells.columns[cut.column], cut.column
            allowed = np.flatnonzero(cut.mask[: column.numbers])
            cell = int(seed[j])
            if column.is_ordered and cell < column.numbers and at[j] < column.numbers:
                cell = int(allowed[np.argmin(np.abs(allowed - at[j]))])
            moved[i, j] = column.typical(cell)
        goal = next(
            goal for goal in self._goals if goal.is_beyond(row[None, :])[0] or goal is self._goals[-1]
        )
        values = goal.searched.bounds.values(np.concatenate([row[None, :], moved]))
        sign = goal.target.sign if goal.crossing is None else goal.crossing.sign
        return np.asarray(sign * (values[1:] - values[0]))

    def _rises_of_bound(self, masks: Masks, cuts: Sequence[Cut]) -> Floats:
        """Return by how much the bound over a box rises in each of its parts."""
        values, lows = self.cells.values(masks), np.empty(len(cuts))

        def low(goals: Sequence[Goal], columns: Sequence[int]) -> float:
            kept = np.isin(np.arange(len(masks)), columns)
            bounds = [goal.finder.low(kept) - goal.limit for goal in goals if goal.crossing is not None]
            return min(bounds, default=0.0)

        # one search has a part of each column for its facts, of which one at a time is kept
        layers, seen = list[list[int]](), Counter[int]()
        for i, cut in enumerate(cuts):
            place = seen[cut.column]
            seen[cut.column] += 1
            if place == len(layers):
                layers.append([])
            layers[place].append(i)
        for layer in layers:
            facts = list(values)
            for i in layer:
                facts[cuts[i].column] = self.cells.columns[cuts[i].column].within(cuts[i].mask)
            goals = [*self._over(values, tuple(facts))]
            for i in layer:
                lows[i] = low(goals, [cuts[i].column])
        return lows - low([*self._over(values, values)], [])

    def _over(self, free: tuple[Values, ...], facts: tuple[Values, ...]) -> Iterator[Goal]:
        """Yield the goals over a box, in which kept columns have the values of their facts."""
        of_row = RowDomain(self.cells.domain, self.row, free, facts, ())
        for goal in self._goals:
            goal_over = copy(goal)  # what it seeks stays: only where it looks is new
            goal_over.of_row, goal_over.low = of_row, {}
            goal_over.finder = self.finders(goal.searched, goal.target.sign, of_row, self._missing)
            yield goal_over

    def _starts(self) -> Iterator[Floats]:
        yield self.row
        yield from self.answered.rows[: -1 - _STARTS : -1]


@dataclass(eq=False)
class DrawnProof:
    """Judges boxes by rows drawn in them: each unit of columns from the table's rows, independently.

    A box is good enough if the share of rows beyond the claim has an upper bound of at most ``error`` on the
    rows drawn, and is no larger among the table's rows.
    """

    law: BoxLaw
    targets: tuple[Target, ...]
    answered: AnsweredRows
    ask: Ask
    judge: Ask  # the same answers, perhaps as they were read: no bound rests on them
    error: float
    risk: float
    draws: int
    seeds: Iterator[np.random.Generator]

    def counterexamples(self, masks: Masks, *, quick: bool = False) -> Floats:
        beyond = self.answered.beyond(self.targets, masks)
        is_enough = beyond.size <= self.error * holds(masks, self.answered.cells).sum()
        examples = [self.answered.rows[beyond]]
        if quick and not is_enough:
            return examples[0]
        rng, n, events = next(self.seeds), self.draws // 2 if quick else self.draws, 0
        # a quick look ends where a part of the draws has too many events for all of them
        for size in (n // _FIRST, n - n // _FIRST) if quick else (n,):
            drawn = self.law.draw(masks, size, rng)
            examples.append(drawn[are_beyond(self.targets, self.judge(drawn))])
            events += len(examples[-1])
            if share_bound(events, n, risk=self.risk) > self.error:
                return np.concatenate(examples)
        return np.zeros((0, len(masks))) if is_enough else np.concatenate(examples)

    def part(self, masks: Masks, seed: Ints, wanted: Ints, examples: Floats | None) -> Masks | None:
        assert examples is not None  # noqa: S101 - draws always decide
        return best_cut(self.law.cells, masks, seed, wanted, self.law.cells.locate(examples))

    def bound(self, masks: Masks, draws: int, risk: float) -> tuple[float, int]:
        """Return an upper bound of the share beyond the claim on fresh rows, and how many of them were."""
        drawn = self.law.draw(masks, draws, next(self.seeds))
        events = 0
        # the model itself is asked where the bound may be small enough; what was read may refute it
        for answers in dict.fromkeys((self.judge, self.ask)):
            events = int(are_beyond(self.targets, answers(drawn)).sum())
            if share_bound(events, draws, risk=risk) > self.error:
                break
        return share_bound(events, draws, risk=risk), events


@dataclass(frozen=True, eq=False)
class BoxLaw:
    """Rows whose units of columns are drawn independently from a table's rows, within a box.

    A unit is a column, or columns that the domain keeps together; rows that break an order are drawn again.
    """

    cells: Cells
    rows: Floats  # of the table
    places: Ints  # their cells
    # of the table's rows in a box of a unit's columns
    _positions: LRUCache[tuple[object, ...], Ints] = field(default_factory=lambda: LRUCache(_BOXES_OF_UNITS))

    def draw(self, masks: Masks, n: int, rng: np.random.Generator) -> Floats:
        """Return n rows of a box that has one of the table's."""
        kept, missing, number = list[Floats](), n, n
        for _ in range(_REDRAWS):
            drawn = self._independent(masks, number, rng)
            kept.append(drawn[self._is_possible(drawn)])
            missing -= len(kept[-1])
            if missing <= 0:
                break
            # as many as are possible in the same share
            number = min(ceil(missing * number / max(1, len(kept[-1]))) + _SPARE, _MOST_REDRAWN * n)
        if missing > 0:
            raise InputError(
                "rows drawn in a rule break the orders= of the domain nearly always: leave these orders out, "
                "or put their columns into one of groups="
            )
        return np.concatenate(kept)[:n]

    def _independent(self, masks: Masks, n: int, rng: np.random.Generator) -> Floats:
        drawn = np.empty((n, self.rows.shape[1]))
        for its in self.cells.domain.units:
            positions = self._inside(its, masks)
            chosen = positions[rng.integers(positions.size, size=n)]
            for j in its:
                drawn[:, j] = self.rows[chosen, j]
        return drawn

    def _inside(self, unit: tuple[int, ...], masks: Masks) -> Ints:
        """Return the positions of the table's rows whose cells of a unit's columns lie in a box."""
        key = (*unit, *(masks[j].tobytes() for j in unit))
        return self._positions.get(
            key, lambda: np.flatnonzero(np.all([masks[j][self.places[:, j]] for j in unit], axis=0))
        )

    def _is_possible(self, rows: Floats) -> Bools:
        broken = [rows[:, a] > rows[:, b] for a, b in self.cells.domain.orders]
        return ~np.any(broken, axis=0) if broken else np.ones(len(rows), dtype=np.bool_)


def grown(cells: Cells, proof: Proof, seed: Ints, wanted: Ints, is_late: Callable[[], bool]) -> Masks | None:
    """Return a proved box around a seed's cells that has many wanted rows, (n, columns); None without one."""
    masks = cells.everywhere
    while not is_late():
        examples = proof.counterexamples(masks)
        if examples is not None and not len(examples):
            return _widened(cells, proof, masks, wanted, is_late)
        part = proof.part(masks, seed, wanted[holds(masks, wanted)], examples)
        if part is None:
            return None
        masks = part
    return None


def _few_of(cuts: Sequence[Cut]) -> list[Cut]:
    """Return the first, the middle and the last cut of each column."""
    by_column: dict[int, list[Cut]] = {}
    for cut in cuts:
        by_column.setdefault(cut.column, []).append(cut)
    return [its[i] for its in by_column.values() for i in sorted({0, len(its) // 2, len(its) - 1})]


def _widened(cells: Cells, proof: Proof, masks: Masks, wanted: Ints, is_late: Callable[[], bool]) -> Masks:
    """Drop conditions, then widen them, as long as the box is proved; those that gain most rows first."""

    def gain(j: int) -> int:
        return int(holds((*masks[:j], everywhere[j], *masks[j + 1 :]), wanted).sum())

    everywhere = cells.everywhere
    order = sorted((j for j, mask in enumerate(masks) if not mask.all()), key=lambda j: (-gain(j), j))
    for j in order:
        for mask in _wider(cells.columns[j], masks[j], everywhere[j]):
            if is_late():
                return masks
            if masks[j].all() or not (mask & ~masks[j]).any():
                continue
            wider = (*masks[:j], mask | masks[j], *masks[j + 1 :])
            examples = proof.counterexamples(wider, quick=True)
            if examples is not None and not len(examples):
                masks = wider
    return masks


def _wider(column: ColumnCells, mask: Bools, everywhere: Bools) -> Iterator[Bools]:
    """Yield cells that may be added: all, one side of a run, half of a side, one level."""
    yield everywhere
    outside = np.flatnonzero(~mask)
    if not column.is_ordered:
        for cell in outside.tolist():
            yield np.arange(column.size) == cell
        return
    inside = np.flatnonzero(mask[: column.numbers])
    if mask[column.numbers :].size and not mask[column.numbers :].all():
        yield np.arange(column.size) >= column.numbers
    if not inside.size:
        return
    places, first, last = np.arange(column.size), int(inside[0]), int(inside[-1])
    is_number = places < column.numbers
    yield (places >= last) & is_number
    yield places <= first
    # halves, quarters, ... of what is left of a side: a run stays a run
    for end, side in ((column.numbers - 1, 1), (0, -1)):
        at = last if side > 0 else first
        reach = abs(end - at) // 2
        while reach:
            yield is_number & (((places - at) * side >= 0) & ((places - at) * side <= reach))
            reach //= 2
