r"""A search over boxes of intervals, for what has bounds between the ends of each interval.

Bounds of kernel machines and of networks are loose: no row need reach them. So the search decides where the
answer is not close to the threshold, and else says that it is not proved.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._rules.bounds import Box
from limes._rules.certain import MOST_WHOLE, Admits, ValueSearch
from limes._rules.domain import Values
from limes._rules.leaves import LeastRow


class IntervalSearch(ValueSearch):
    """Search boxes of intervals; columns of listed values are cut between two of them."""

    _resolves_ranges = True

    def _least(
        self,
        box: Box,
        kept: Bools,
        limit: float,
        admits: Admits,
        boxes: int,
        is_late: Callable[[], bool],
    ) -> LeastRow:
        spans = np.array([self._is_span(j, is_kept) for j, is_kept in enumerate(kept.tolist())])
        number, cut = count(), 0
        pending = [(self._low(box), next(number), box)]
        while pending:
            low, _, part = heappop(pending)
            if np.isnan(low):
                return LeastRow(None, False, -np.inf, cut)  # what the model answers there is not read
            if low >= limit:
                return LeastRow(None, True, low, cut)
            middle = self._middle(part, spans)
            if self._sign * self._bounds.values(middle[None, :])[0] < limit:
                new = admits([Values.of(x) for x in middle.tolist()])
                if new is not None:
                    return LeastRow(new, False, low, cut)
            if cut >= boxes or (cut % 64 == 63 and is_late()):
                return LeastRow(None, False, low, cut, is_final=False)
            halves = _halves(part, spans, self._bounds(part).stakes)
            if halves is None:
                if all(values.size == 1 or values[0] == values[-1] for values in part):
                    continue  # one row, which the model itself does not place below the limit
                return LeastRow(None, False, low, cut)
            cut += 1
            for half in halves:
                heappush(pending, (np.maximum(low, self._low(half)), next(number), half))
        return LeastRow(None, True, np.inf, cut)

    def _low(self, box: Box) -> float:
        """Return a lower bound; NaN, which comes first, where a missing value has no answer."""
        ends = self._bounds(box)
        return ends.low if self._sign > 0 else -ends.high

    def _middle(self, box: Box, spans: Bools) -> Floats:
        middle = np.array([v[v.size // 2] for v in box])
        for j in np.flatnonzero(spans).tolist():
            between = 0.5 * (box[j][0] + box[j][-1])
            middle[j] = np.floor(between) if self._of_row.free[j].whole else between
        return middle

    def _is_span(self, j: int, is_kept: bool) -> bool:
        """Return whether the first and the last listed value stand for all in between."""
        values = (self._of_row.facts if is_kept else self._of_row.free)[j]
        is_listed = values.levels is not None or (values.whole and values.high - values.low < MOST_WHOLE)
        is_constant = self._textures[j].between == "constant"  # all pieces have a listed value
        return not (is_listed or is_constant) and values.low < values.high


def _halves(box: Box, spans: Bools, stakes: Floats) -> tuple[Box, Box] | None:
    """Cut the column that adds most to the gap; None where no column can be cut."""
    widths = np.array([_width(values) for values in box])
    open_ones: Ints = np.flatnonzero(widths > 0.0)
    if not open_ones.size:
        return None
    j = int(open_ones[np.argmax(stakes[open_ones])])
    values = box[j]
    if np.isnan(values[-1]):  # the missing value on its own
        parts = values[:-1], values[-1:]
    elif spans[j]:
        middle = 0.5 * (values[0] + values[-1])
        if not values[0] < middle < values[-1]:
            return None
        parts = np.array([values[0], middle]), np.array([middle, values[-1]])
    else:
        parts = values[: values.size // 2], values[values.size // 2 :]
    return tuple((*box[:j], part, *box[j + 1 :]) for part in parts)  # type: ignore[return-value]


def _width(values: Floats) -> float:
    if values.size == 1:
        return 0.0
    return np.inf if np.isnan(values[-1]) else float(values[-1] - values[0])
