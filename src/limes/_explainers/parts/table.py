"""Rows of tables, whose columns are shown or take a typical value, as parts of an input."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Objects, fingerprint
from limes._explainers.tables.table import Table
from limes._explanation.wording import is_missing, number
from limes.exceptions import InputError


@dataclass(frozen=True, kw_only=True)
class TablePart:
    """A row of a table, whose columns are features; the model gets a table like the background.

    A hidden column takes its typical value: the median of numbers, the most frequent of all others. Where the
    row has this value itself, it takes the typical one of the background's other values.

    Parameters
    ----------
    background
        Any table; typical values are learnt from it.
    categorical
        As for :class:`limes.TabularExplainer`.

    Raises
    ------
    InputError
        If the background is no table.

    Examples
    --------
    >>> import pandas as pd
    >>> import limes
    >>> part = limes.TablePart(background=pd.DataFrame({"age": [30, 40, 50], "city": ["x", "x", "y"]}))
    >>> part.parse({"age": 60, "city": "y"}).compose([[1, 0]])
       age city
    0   60    x
    """

    background: Any
    categorical: Any = None
    _table: Table = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_table", Table.fit(self.background, categorical=self.categorical))

    @cached_property
    def typical(self) -> Floats:
        """What hidden columns show, encoded, (columns,)."""
        return np.array([self._typical(column, j) for j, column in enumerate(self._table.matrix.T)])

    @cached_property
    def others(self) -> Floats:
        """What they show where the row has the typical value; that value itself where there is no other."""
        others = [
            column[~_same(column, typical)]
            for column, typical in zip(self._table.matrix.T, self.typical, strict=True)
        ]
        return np.array(
            [self._typical(c, j) if c.size else self.typical[j] for j, c in enumerate(others)],
            dtype=np.float64,
        )

    def _typical(self, values: Floats, column: int) -> float:
        if self._table.numeric[column]:
            present = values[~np.isnan(values)]
            # a middle value that occurs: whole numbers stay whole
            return float(np.quantile(present, 0.5, method="lower")) if present.size else float("nan")
        levels, counts = np.unique(values, return_counts=True, equal_nan=True)
        return float(levels[np.argmax(counts)])

    def parse(self, raw: Any) -> TableRow:
        """Take one row, ``raw``, apart into its columns.

        Raises
        ------
        InputError
            If it is not one row of such a table.
        """
        rows = self._table.encode(raw)
        if len(rows) != 1:
            raise InputError(f"a part is one row of a table, got {len(rows)}")
        hidden = np.where(_same(rows[0], self.typical), self.others, self.typical)
        return TableRow(self._table, rows[0], hidden)


def _same(values: Floats, other: Any) -> Bools:
    """Return where two encoded values are the same, as two missing ones are."""
    return np.asarray((values == other) | (np.isnan(values) & np.isnan(other)))


@dataclass(frozen=True, eq=False)
class TableRow:
    """A row, encoded, and what it shows where columns are hidden."""

    table: Table
    row: Floats
    hidden: Floats

    @property
    def names(self) -> tuple[str, ...]:
        return self.table.names

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        values = self.table.originals(np.stack([self.row, self.hidden])).T
        return tuple(
            f"{name} = {_short(value)}" + (f", not {_short(hidden)}" if changes else "")
            for name, (value, hidden), changes in zip(self.names, values, self.changes.tolist(), strict=True)
        )

    @property
    def data(self) -> Objects:
        return np.asarray(self.table.originals(self.row[None])[0])

    @property
    def key(self) -> Hashable:
        return fingerprint(self.row)

    @property
    def picture(self) -> Mapping[str, Any]:
        return {}

    @property
    def changes(self) -> Bools:
        return ~_same(self.row, self.hidden)

    def compose(self, z: Floats) -> Any:
        return self.table.decode(np.where(np.asarray(z) > 0, self.row, self.hidden))


def _short(value: Any) -> str:
    if is_missing(value):
        return "missing"
    return number(value) if isinstance(value, float) else str(value)
