"""The fewest changes of a row that take a prediction beyond a threshold: by bounds, or among rows drawn.

By bounds, sets of columns are tried in the order of their size. The box of a set frees its columns and fixes
the others. Sets whose bound is below the threshold are searched, those with the least bound first. Bounds are
of the answers or of the margin behind them; a row counts where the model itself says so.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, isfinite
from numbers import Real
from typing import Any, Literal

import numpy as np

from limes._arrays import Bools, Floats
from limes._rules.bounds import Bounds, Box, Crossing, Limit, Minimum, Searched, least
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

    def enough(self, ask: Ask) -> Enough:
        return lambda rows: self.reached(ask(rows))


# Which rows, (m, columns), are beyond the goal by the model's own answer, (m,)
Enough = Callable[[Floats], Bools]
# Whether one row is, and is possible
Reaches = Callable[[Floats], bool]
# Which rows are possible, (m, columns) -> (m,)
Obeys = Callable[[Floats], Bools]


def always(rows: Floats) -> Bools:
    return np.ones(len(rows), dtype=np.bool_)


def listed_in(column: Floats, values: Floats) -> Bools:
    """Return which numbers, (m,), are among some values, of which the missing one may be one."""
    return np.asarray(np.isin(column, values) | (np.isnan(column) & np.isnan(values[-1:]).any()))


def obeying(values: Box, broken: Callable[[Floats], str] | None) -> Obeys:
    """Return whether rows take listed values, and break no relation between columns."""

    def obeys(rows: Floats) -> Bools:
        kept = np.all([listed_in(rows[:, j], its) for j, its in enumerate(values)], axis=0)
        if broken is not None:
            kept[kept] = [not broken(row) for row in rows[kept]]
        return np.asarray(kept)

    return obeys


def verdict(row: Floats, enough: Enough, obeys: Obeys = always) -> Reaches:
    """Ask about each row beside the row itself, as the final answers are: batches may change last digits."""
    return lambda new: bool(obeys(new[None, :])[0] and enough(np.stack([row, new]))[1])


def changes_among(
    rows: Floats, row: Floats, enough: Enough, obeys: Obeys, why: str, sizes: Callable[[Floats], Floats]
) -> SmallestChange:
    """Search among possible rows, (m, columns), for one of least size, and take back changes of no need.

    ``sizes`` of rows (m,) are what is minimised.
    """
    reaching = rows[enough(rows)] if len(rows) else rows
    if not len(reaching):
        return SmallestChange((), None, f"none of {len(rows):,} rows drawn is enough, and {why}")
    best = reaching[np.argmin(sizes(reaching))].copy()
    for j in changed_columns(best, row):
        shorter = best.copy()
        shorter[j] = row[j]
        if obeys(shorter[None, :])[0] and enough(shorter[None, :])[0]:
            best = shorter
    reason = f"it is the best of {len(rows):,} rows drawn, as {why}"
    return SmallestChange(changed_columns(best, row), best, reason, float(sizes(best[None, :])[0]))


def differ(rows: Floats, row: Floats) -> Bools:
    """Return the columns in which rows, (..., columns), differ from one; missing values do not."""
    return np.asarray((rows != row) & ~(np.isnan(rows) & np.isnan(row)))


def changed_columns(new: Floats, row: Floats) -> tuple[int, ...]:
    """Return the columns in which two rows differ."""
    return tuple(np.flatnonzero(differ(new, row)).tolist())


def nearest_rows(
    rows: Floats, row: Floats, costs: Floats, enough: Enough, count: int
) -> list[SmallestChange]:
    """Return up to ``count`` different rows of possible ones, (m, columns), the cheapest first."""
    enough_ones = np.flatnonzero(enough(rows)) if len(rows) else np.zeros(0, dtype=np.int64)
    chosen: list[SmallestChange] = []
    for i in enough_ones[np.argsort(costs[enough_ones], kind="stable")].tolist():
        if len(chosen) == count:
            break
        if not any(changed_columns(rows[i], one.row) == () for one in chosen if one.row is not None):
            cost = float(costs[i])
            chosen.append(SmallestChange(changed_columns(rows[i], row), rows[i], "", cost, cost))
    return chosen or [SmallestChange((), None, "", np.inf, np.inf)]


def nearest(
    fewest: SmallestChange, row: Floats, values: Box, enough: Enough, obeys: Obeys = always
) -> SmallestChange:
    """Move changes, one after the other, to the values nearest the row's own that are enough.

    The model itself answers: a value that is enough by what was read may miss the threshold by a rounding.
    """
    if fewest.row is None:
        return fewest
    reaches = verdict(row, enough, obeys)
    new = fewest.row.copy()
    for j in fewest.columns:
        places = np.unique(np.linspace(0, values[j].size - 1, _NEAREST).astype(np.int64))
        candidates = values[j][places]
        candidates = candidates[np.argsort(np.abs(candidates - row[j]), kind="stable")]
        rows = np.tile(new, (candidates.size, 1))
        rows[:, j] = candidates
        closer = candidates[enough(rows) & differ(rows, row)[:, j] & obeys(rows)]
        moved = new.copy()
        moved[j] = closer[0] if closer.size else new[j]
        new = moved if reaches(moved) else new
    return replace(fewest, row=new)


def freed(values: Box, row: Floats, columns: Container[int]) -> Box:
    """Return the box in which these columns take all their values, and the others the row's."""
    return tuple(column if j in columns else row[j : j + 1] for j, column in enumerate(values))


# Largest number of sets of one size, and of boxes that the search of one set cuts
_MOST_SETS, _MOST_BOXES = 5000, 200


@dataclass(frozen=True, eq=False)
class SmallestChange:
    """The columns that change, and a row with these changes; None if no row was seen.

    ``reason`` states why fewer columns, or a cheaper change, could be enough; "" where it is proved that none
    is. ``size`` is the number of columns, or the cost, and ``low`` a lower bound of it.
    """

    columns: tuple[int, ...]
    row: Floats | None
    reason: str
    size: float = np.inf
    low: float = 0.0


# Proved: no possible row is enough
NO_CHANGE = SmallestChange((), None, "", np.inf, np.inf)


# Why a search by bounds has no proof
CUT_SHORT = "the search was cut short"


def fewest_changes(
    searched: Searched,
    row: Floats,
    values: Box,
    crossing: Crossing | None,
    reaches: Reaches,
    *,
    at_most: float = np.inf,
) -> SmallestChange:
    """Search for a row beyond the threshold that differs from a row, which is not, in the fewest columns.

    The search ends where ``at_most`` columns or more have to change.
    ``reaches`` decides by the model's answer alone: rows of the same answers are alike to the search.
    """
    if crossing is None:
        return NO_CHANGE
    free = [j for j, column in enumerate(values) if column.size > 1]
    limit = Limit(crossing.threshold, reaches, crossing.blur)
    search = _Search(searched.bounds, row, values, crossing.sign, limit)
    end = search(free)
    if end.row is None and end.value >= limit.below:
        return NO_CHANGE
    if search.is_by_column:
        return search.greedy(free, "", 1)
    reason, low = "", 1
    for size in range(1, len(free) + 1):
        low = low if reason else size
        if low >= at_most:
            return SmallestChange((), None, CUT_SHORT, np.inf, low)
        if comb(len(free), size) > _MOST_SETS:
            return search.greedy(free, f"there are too many sets of {size} columns to try all", low)
        cut_short = reason
        for columns in search.promising(combinations(free, size)):
            end = search(columns)
            if end.row is not None:
                return _of_columns(end.row, row, reason, low)
            if end.value < limit.below:
                cut_short = "the search of a smaller set was cut short"
        reason = cut_short
    return SmallestChange((), None, reason or CUT_SHORT, np.inf, low)


def _of_columns(new: Floats, row: Floats, reason: str, low: int) -> SmallestChange:
    columns = changed_columns(new, row)
    return SmallestChange(columns, new, reason, len(columns), low if reason else len(columns))


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

    def greedy(self, free: Sequence[int], reason: str, low: int) -> SmallestChange:
        """Free the column that lowers the bound most, again and again, until a row is below the limit.

        ``low`` is the fewest columns that are not excluded.
        """
        columns: list[int] = []
        for _ in free:
            rest = [j for j in free if j not in columns]
            best, *others = sorted(rest, key=lambda j: self.low([*columns, j]))
            end = self([*columns, best])
            if end.row is not None:
                return _of_columns(end.row, self.row, reason, low)
            low = low if reason else len(columns) + 1
            # what the model refused, another set of this size may reach by a rounding
            if not reason and others and self.low([*columns, others[0]]) < self.limit.below:
                reason = "other columns come within a rounding of the threshold"
            if not reason and end.value < self.limit.below:
                reason = CUT_SHORT
            columns.append(best)
        return SmallestChange((), None, reason or CUT_SHORT, np.inf, low)
