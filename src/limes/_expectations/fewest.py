"""The fewest columns of a row whose change takes a form below a threshold, by bounds.

Sets of columns are tried in the order of their size. The box of a set frees its columns and fixes the others.
Sets whose bound is below the threshold are searched, those with the least bound first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from limes._arrays import Floats
from limes._expectations.boxes import Bounds, Box, Extreme, least

# Largest number of sets of one size, and of boxes that the search of one set cuts
_MOST_SETS, _MOST_BOXES = 5000, 200


@dataclass(frozen=True, eq=False)
class Fewest:
    """The columns that change, and a row with these changes; None if no row was seen.

    ``reason`` states why fewer columns could be enough; "" where it is proved that they are not.
    """

    columns: tuple[int, ...]
    row: Floats | None
    reason: str


def fewest_changes(bounds: Bounds, row: Floats, values: Box, threshold: float, *, sign: float) -> Fewest:
    """Search for a row with sign · f < threshold that differs from a row in the fewest columns.

    Parameters
    ----------
    values
        Values that each column may take.
    threshold
        Threshold of sign · f.
    """
    start = tuple(np.array([value]) for value in row)
    free = [j for j, column in enumerate(values) if column.size > 1]
    search = _Search(bounds, start, values, threshold, sign)
    if search.low(()) < threshold:
        return Fewest((), row, "")
    everything = search(free)
    if everything.value >= threshold:
        return Fewest((), None, "")
    if bounds.lowest(start, sign) is not None:  # each column can then be judged by itself
        return search.greedy(free, "")
    reason = ""
    for size in range(1, len(free) + 1):
        if comb(len(free), size) > _MOST_SETS:
            return search.greedy(free, f"there are too many sets of {size} columns to try all")
        for columns in search.promising(combinations(free, size)):
            end = search(columns)
            if end.row is not None:
                return search.result(end.row, reason)
            if end.value < threshold:
                reason = "the search of a smaller set was cut short"
    return Fewest((), None, reason)


@dataclass(frozen=True, eq=False)
class _Search:
    """Searches of boxes in which a set of columns is free and the others are fixed."""

    bounds: Bounds
    start: Box
    values: Box
    threshold: float
    sign: float

    def __call__(self, columns: Sequence[int]) -> Extreme:
        """Return a row below the threshold, or a bound."""
        box = self._box(columns)
        return least(self.bounds, box, sign=self.sign, boxes=_MOST_BOXES, below=self.threshold)

    def low(self, columns: Sequence[int]) -> float:
        """Return a lower bound, without a search."""
        return least(self.bounds, self._box(columns), sign=self.sign, boxes=0).value

    def _box(self, columns: Sequence[int]) -> Box:
        return tuple(self.values[j] if j in columns else start for j, start in enumerate(self.start))

    def promising(self, sets: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the sets whose bound is below the threshold, the least first."""
        lows = [(self.low(columns), columns) for columns in sets]
        return [columns for low, columns in sorted(lows) if low < self.threshold]

    def greedy(self, free: Sequence[int], reason: str) -> Fewest:
        """Free the column that lowers the bound most, again and again, until a row is below the threshold."""
        columns: list[int] = []
        for _ in free:
            rest = [j for j in free if j not in columns]
            columns.append(min(rest, key=lambda j: self.low([*columns, j])))
            end = self(columns)
            if end.row is not None:
                return self.result(end.row, reason)
        return Fewest((), None, "the search was cut short")

    def result(self, row: Floats, reason: str) -> Fewest:
        """Return the columns of a row that differ."""
        changed = [not np.array_equal(row[j], start[0], equal_nan=True) for j, start in enumerate(self.start)]
        columns = np.flatnonzero(changed).tolist()
        return Fewest(tuple(columns), row, reason)
