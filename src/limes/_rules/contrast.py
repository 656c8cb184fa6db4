"""The fewest changes of a row that take a prediction beyond a threshold: by bounds, or among rows drawn.

By bounds, sets of columns are tried in the order of their size. The box of a set frees its columns and fixes
the others. Sets whose bound is below the threshold are searched, those with the least bound first. Bounds are
of the answers or of the margin behind them; a row counts where the model itself says so.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, isfinite
from numbers import Real
from typing import Any, Literal

import numpy as np

from limes._arrays import Bools, Floats
from limes._explanation.fields import plain_cell
from limes._explanation.rules import Change, Contrast
from limes._rules.bounds import Bounds, Box, Limit, Minimum, Searched, least
from limes._rules.literals import SignRows
from limes._rules.model import Ask
from limes.exceptions import InputError

# Values of a column that are tried for the nearest one that is enough
_NEAREST = 256


@dataclass(frozen=True)
class Target:
    """Fall below a number, or rise above it: sign · f < sign · threshold."""

    threshold: float
    side: Literal["below", "above"]

    @classmethod
    def of(cls, below: float | None, above: float | None) -> Target:
        if (below is None) == (above is None):
            raise InputError("pass below= or above=, the number that the prediction has to cross")
        threshold: Any = above if below is None else below
        if isinstance(threshold, bool) or not isinstance(threshold, Real) or not isfinite(threshold):
            raise InputError(f"below= and above= take a finite number, got {threshold!r}")
        return cls(float(threshold), "above" if below is None else "below")

    @property
    def sign(self) -> float:
        return 1.0 if self.side == "below" else -1.0

    def reached(self, answers: Floats) -> Bools:
        return np.asarray(self.sign * answers < self.sign * self.threshold)


# Whether a row is beyond the threshold by the model's own answer
Reaches = Callable[[Floats], bool]
# Which rows are possible, (m, columns) -> (m,)
Obeys = Callable[[Floats], Bools]


def always(rows: Floats) -> Bools:
    return np.ones(len(rows), dtype=np.bool_)


def obeying(values: Box, broken: Callable[[Floats], str] | None) -> Obeys:
    """Return whether rows take listed values, and break no relation between columns."""

    def obeys(rows: Floats) -> Bools:
        listed = [
            np.isin(rows[:, j], its) | (np.isnan(rows[:, j]) & np.isnan(its).any())
            for j, its in enumerate(values)
        ]
        kept = np.all(listed, axis=0)
        if broken is not None:
            kept &= np.array([not broken(row) for row in rows], dtype=np.bool_)
        return np.asarray(kept)

    return obeys


def verdict(row: Floats, ask: Ask, goal: Target, obeys: Obeys = always) -> Reaches:
    """Ask about each row beside the row itself, as the final answers are: batches may change last digits."""
    return lambda new: bool(obeys(new[None, :])[0] and goal.reached(ask(np.stack([row, new])))[1])


def changes_among(
    rows: Floats, row: Floats, ask: Ask, goal: Target, why: str, obeys: Obeys = always
) -> SmallestChange:
    """Search among rows drawn, (m, columns), and take back each change of the best one that is not needed."""
    rows = rows[obeys(rows)]
    enough = rows[goal.reached(ask(rows))] if len(rows) else rows
    if not len(enough):
        return SmallestChange((), None, f"none of {len(rows):,} rows drawn is enough, and {why}")
    best = enough[np.argmin(_differ(enough, row).sum(axis=1))].copy()
    for j in _changed(best, row):
        shorter = best.copy()
        shorter[j] = row[j]
        if obeys(shorter[None, :])[0] and goal.reached(ask(shorter[None, :]))[0]:
            best = shorter
    reason = f"they are the fewest among {len(rows):,} rows drawn, as {why}"
    return SmallestChange(_changed(best, row), best, reason)


def _differ(rows: Floats, row: Floats) -> Bools:
    return np.asarray((rows != row) & ~(np.isnan(rows) & np.isnan(row)))


def _changed(new: Floats, row: Floats) -> tuple[int, ...]:
    return tuple(np.flatnonzero(_differ(new, row)).tolist())


def nearest_row(
    rows: Floats, row: Floats, costs: Floats, ask: Ask, goal: Target, obeys: Obeys
) -> SmallestChange:
    """Return the row of a table, (m, columns), beyond the threshold for which ``costs`` (m,) are least."""
    enough = np.flatnonzero(obeys(rows) & goal.reached(ask(rows)))
    if not enough.size:
        return SmallestChange((), None, f"no possible row among {len(rows):,} is enough")
    best = rows[enough[np.argmin(costs[enough])]]
    return SmallestChange(_changed(best, row), best, "it is the nearest whole row of the background")


def nearest(
    fewest: SmallestChange, row: Floats, values: Box, ask: Ask, goal: Target, obeys: Obeys = always
) -> SmallestChange:
    """Move changes, one after the other, to the values nearest the row's own that are enough.

    The model itself answers: a value that is enough by what was read may miss the threshold by a rounding.
    """
    if fewest.row is None:
        return fewest
    reaches = verdict(row, ask, goal, obeys)
    new = fewest.row.copy()
    for j in fewest.columns:
        places = np.unique(np.linspace(0, values[j].size - 1, _NEAREST).astype(np.int64))
        candidates = values[j][places]
        candidates = candidates[np.argsort(np.abs(candidates - row[j]), kind="stable")]
        rows = np.tile(new, (candidates.size, 1))
        rows[:, j] = candidates
        enough = candidates[goal.reached(ask(rows)) & _differ(rows, row)[:, j] & obeys(rows)]
        moved = new.copy()
        moved[j] = enough[0] if enough.size else new[j]
        new = moved if reaches(moved) else new
    return SmallestChange(fewest.columns, new, fewest.reason)


def freed(values: Box, row: Floats, columns: Container[int]) -> Box:
    """Return the box in which these columns take all their values, and the others the row's."""
    return tuple(column if j in columns else row[j : j + 1] for j, column in enumerate(values))


def contrast_of(
    fewest: SmallestChange, row: Floats, rows: SignRows, ask: Ask, goal: Target, **facts: str
) -> Contrast:
    """Put the result in the user's words; the model itself answers the row that the changes make."""
    new = row if fewest.row is None else fewest.row
    prediction, new_prediction = ask(np.stack([row, new])).tolist()
    names = rows.names(row.size)
    before, after = rows.originals(row[None, :])[0], rows.originals(new[None, :])[0]
    return Contrast(
        changes=tuple(
            Change(
                names[j],
                plain_cell(before[j]),
                rows.condition(row, j),
                plain_cell(after[j]),
                rows.condition(new, j),
            )
            for j in fewest.columns
        ),
        prediction=prediction,
        new_prediction=new_prediction,
        threshold=goal.threshold,
        side=goal.side,
        reached=bool(goal.reached(np.array([new_prediction]))[0]),
        proved=not fewest.reason,
        reason=fewest.reason,
        **facts,
    )


# Largest number of sets of one size, and of boxes that the search of one set cuts
_MOST_SETS, _MOST_BOXES = 5000, 200


@dataclass(frozen=True, eq=False)
class SmallestChange:
    """The columns that change, and a row with these changes; None if no row was seen.

    ``reason`` states why fewer columns could be enough; "" where it is proved that they are not.
    """

    columns: tuple[int, ...]
    row: Floats | None
    reason: str


# Why a search by bounds has no proof
_CUT_SHORT = "the search was cut short"


def fewest_changes(
    searched: Searched, row: Floats, values: Box, goal: Target, reaches: Reaches, *, related: bool = False
) -> SmallestChange:
    """Search for a row beyond the threshold that differs from a row, which is not, in the fewest columns.

    ``related`` says whether relations between columns refuse rows, too, whatever their answers are.
    """
    crossing = searched.crossing(goal.sign, goal.threshold)
    if crossing is None:
        return SmallestChange((), None, "")
    free = [j for j, column in enumerate(values) if column.size > 1]
    limit = Limit(crossing.threshold, reaches, np.inf if related else crossing.blur)
    search = _Search(searched.bounds, row, values, crossing.sign, limit)
    end = search(free)
    if end.row is None and end.value >= limit.below:
        return SmallestChange((), None, "")
    if search.is_by_column and not related:
        return search.greedy(free, "")
    reason = ""
    for size in range(1, len(free) + 1):
        if comb(len(free), size) > _MOST_SETS:
            return search.greedy(free, f"there are too many sets of {size} columns to try all")
        cut_short = reason
        for columns in search.promising(combinations(free, size)):
            end = search(columns)
            if end.row is not None:
                return SmallestChange(_changed(end.row, row), end.row, reason)
            if end.value < limit.below:
                cut_short = "the search of a smaller set was cut short"
        reason = cut_short
    return SmallestChange((), None, reason or _CUT_SHORT)


@dataclass(frozen=True, eq=False)
class _Search:
    """Searches of boxes in which a set of columns is free and the others are fixed."""

    bounds: Bounds
    row: Floats
    values: Box
    sign: float
    limit: Limit  # of sign · f

    def __call__(self, columns: Container[int]) -> Minimum:
        """Return a row below the limit, or a bound."""
        return self._least(columns, boxes=_MOST_BOXES, limit=self.limit)

    def low(self, columns: Container[int]) -> float:
        return self._least(columns, boxes=0).value

    def _least(self, columns: Container[int], **limits: Any) -> Minimum:
        return least(self.bounds, freed(self.values, self.row, columns), sign=self.sign, **limits)

    @property
    def is_by_column(self) -> bool:
        """Whether each column can be judged by itself."""
        return self.bounds.lowest(freed(self.values, self.row, ()), self.sign) is not None

    def promising(self, sets: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the sets whose bound is below the limit, the least first."""
        lows = [(self.low(columns), columns) for columns in sets]
        return [columns for low, columns in sorted(lows) if low < self.limit.below]

    def greedy(self, free: Sequence[int], reason: str) -> SmallestChange:
        """Free the column that lowers the bound most, again and again, until a row is below the limit."""
        columns: list[int] = []
        for _ in free:
            rest = [j for j in free if j not in columns]
            best, *others = sorted(rest, key=lambda j: self.low([*columns, j]))
            end = self([*columns, best])
            if end.row is not None:
                return SmallestChange(_changed(end.row, self.row), end.row, reason)
            # what the model refused, another set of this size may reach by a rounding
            if not reason and others and self.low([*columns, others[0]]) < self.limit.below:
                reason = "other columns come within a rounding of the threshold"
            if not reason and end.value < self.limit.below:
                reason = _CUT_SHORT
            columns.append(best)
        return SmallestChange((), None, reason or _CUT_SHORT)
