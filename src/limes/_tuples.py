"""Groups of columns: a group is one column, whose values are tuples.

Every tuple has a number, its code, so that a group is a column of numbers to whatever computes with columns.
Codes say nothing by themselves: a function of a group looks its tuples up. The tuples of a background come
first, in their order; those of explained rows get the next numbers as they are met.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes._threads import SharedState

# The first code of tuples that are lent
_LENT = 1 << 40


class Tuples(SharedState):
    """The values that a group of columns takes together; threads may share it."""

    def __init__(self, values: Floats) -> None:
        """Number the distinct rows of a background's ``values`` (n, m)."""
        rows = _plain(values)
        order = np.lexsort(rows.T[::-1])
        self._places: dict[bytes, int] = {}
        codes = np.empty(len(rows), dtype=np.int64)
        for i in order.tolist():
            codes[i] = self._places.setdefault(rows[i].tobytes(), len(self._places))
        self.size = len(self._places)
        self.counts = np.bincount(codes)  # of the background's rows with each tuple, (T,)
        self._values = rows[np.unique(codes, return_index=True)[1]]
        self._lent: dict[int, Floats] = {}  # by first codes
        self._next = _LENT
        super().__init__()

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self._values.shape[1])

    @property
    def background(self) -> Floats:
        """The background's distinct tuples, (T, m)."""
        return self._values[: self.size]

    @property
    def count(self) -> int:
        """Number of tuples that have a code."""
        return len(self._places)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_lent": {}}

    def encode(self, values: Floats) -> Floats:
        """Codes (n,) of rows (n, m); a tuple that was not met before gets the next one."""
        rows = _plain(values)
        texts = [row.tobytes() for row in rows]
        codes = [self._places.get(text, -1) for text in texts]
        if -1 in codes:
            with self._lock:
                for i, text in enumerate(texts):
                    codes[i] = self._places.get(text, -1)
                    if codes[i] < 0:
                        codes[i] = self._append(rows[i], text)
        return np.array(codes, dtype=np.float64)

    def _append(self, row: Floats, text: bytes) -> int:
        code = len(self._places)
        if code == len(self._values):
            # other threads read the present array: it is replaced, and what it holds never changes
            self._values = np.concatenate([self._values, np.zeros((max(code, 64), self.width))])
        self._values[code] = row
        self._places[text] = code
        return code

    @contextmanager
    def lend_new(self, values: Floats) -> Iterator[Floats]:
        """Codes (n,) of rows (n, m): those of the background, and lent ones of other tuples."""
        rows = _plain(values)
        codes = np.array([self._places.get(row.tobytes(), -1) for row in rows], dtype=np.float64)
        is_new = (codes < 0.0) | (codes >= self.size)
        if not is_new.any():
            yield codes
            return
        with self.lend(rows[is_new]) as lent:
            codes[is_new] = lent
            yield codes

    @contextmanager
    def lend(self, values: Floats) -> Iterator[Floats]:
        """Codes (n,) of rows (n, m), which are kept no longer than they are used."""
        with self._lock:
            first, self._next = self._next, self._next + len(values)
            self._lent[first] = values
        try:
            yield np.arange(first, first + len(values), dtype=np.float64)
        finally:
            with self._lock:
                del self._lent[first]

    def decode(self, codes: Floats) -> Floats:
        """Values (n, m) of codes (n,)."""
        places = codes.astype(np.int64)
        if not places.size or places.max() < _LENT:
            return np.asarray(self._values[places])
        values = self._values[np.where(places < _LENT, places, 0)]
        with self._lock:
            lent = [*self._lent.items()]
        for first, its in lent:
            at = np.flatnonzero((places >= first) & (places < first + len(its)))
            values[at] = its[places[at] - first]
        return np.asarray(values)


def _plain(values: Floats) -> Floats:
    """Values whose equal numbers have equal bytes: one NaN, and no negative zero."""
    return np.ascontiguousarray(np.where(np.isnan(values), np.nan, values + 0.0))


@dataclass(frozen=True, eq=False)
class ColumnGroups:
    """Columns (d,) as G columns, some of which are groups."""

    members: tuple[Ints, ...]  # the columns of each, one where a column stands alone
    tuples: tuple[Tuples | None, ...]  # None where a column stands alone

    @classmethod
    def of(cls, members: Sequence[Sequence[int]], matrix: Floats) -> ColumnGroups:
        """The groups of a background's matrix (n, d)."""
        each = tuple(np.array(columns, dtype=np.int64) for columns in members)
        return cls(each, tuple(None if its.size == 1 else Tuples(matrix[:, its]) for its in each))

    @property
    def size(self) -> int:
        """Number G of columns and groups."""
        return len(self.members)

    @cached_property
    def columns(self) -> int:
        """Number d of columns."""
        return sum(its.size for its in self.members)

    @cached_property
    def place(self) -> Ints:
        """The column or group among the G that each of the d columns belongs to, (d,)."""
        place = np.zeros(self.columns, dtype=np.int64)
        for g, its in enumerate(self.members):
            place[its] = g
        return place

    def encode(self, matrix: Floats) -> Floats:
        """Rows (n, d) as rows (n, G), with codes of tuples."""
        columns = [
            matrix[:, its[0]] if tuples is None else tuples.encode(matrix[:, its])
            for its, tuples in zip(self.members, self.tuples, strict=True)
        ]
        return np.stack(columns, axis=1)

    @contextmanager
    def lend(self, matrix: Floats) -> Iterator[Floats]:
        """Rows (n, d) as rows (n, G), whose new tuples have a code no longer than they are used."""
        with ExitStack() as stack:
            columns = [
                matrix[:, its[0]] if tuples is None else stack.enter_context(tuples.lend_new(matrix[:, its]))
                for its, tuples in zip(self.members, self.tuples, strict=True)
            ]
            yield np.stack(columns, axis=1)

    def decode(self, rows: Floats) -> Floats:
        """Rows (n, G) as the rows (n, d) that they stand for."""
        matrix = np.empty((len(rows), self.columns))
        for its, tuples, column in zip(self.members, self.tuples, rows.T, strict=True):
            if tuples is None:
                matrix[:, its[0]] = column
            else:
                matrix[:, its] = tuples.decode(column)
        return matrix
