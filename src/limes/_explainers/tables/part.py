"""A row of a table as a part of an input, whose columns are features."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Objects, fingerprint
from limes._checks import check_choice
from limes._explainers.backgrounds import split_rows
from limes._explainers.masked import InputPiece
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
        Any table; typical values are learnt from it, or rows drawn.
    hide
        "typical", or "background": all hidden columns of a perturbed row take the values of one row of the
        background, drawn at random, as in interventional Shapley values. What is explained is then the mean
        over the background, exactly where 2^d subsets of all its rows are no more than ``max_calls``; else
        errors contain the draw. Parts of one input draw independently of each other.
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
    hide: str = "typical"
    _table: Table = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("hide", self.hide, ("typical", "background"))
        object.__setattr__(self, "_table", Table.fit(self.background, categorical=self.categorical))

    @property
    def columns(self) -> tuple[str, ...]:
        return self._table.names

    @cached_property
    def typical(self) -> Floats:
        return np.array([self._typical(column, j) for j, column in enumerate(self._table.matrix.T)])

    @cached_property
    def others(self) -> Floats:
        """Their values where the row has the typical one; that value itself where there is no other."""
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
        if self.hide == "background":
            return TableRow(self._table, rows[0], self._table.matrix)
        hidden = np.where(_same(rows[0], self.typical), self.others, self.typical)
        return TableRow(self._table, rows[0], hidden[None])


def _same(values: Floats, other: Any) -> Bools:
    return np.asarray((values == other) | (np.isnan(values) & np.isnan(other)))


@dataclass(frozen=True, eq=False)
class TableRow(InputPiece):
    """A row, encoded, and one row or several that it shows where columns are hidden."""

    table: Table
    row: Floats  # (d,)
    hidden: Floats  # (m, d)

    @property
    def names(self) -> tuple[str, ...]:
        return self.table.names

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        values = self.table.originals(np.stack([self.row, self.hidden[0]])).T
        names_hidden = (self.changes & (self.draws == 1)).tolist()
        return tuple(
            f"{name} = {_short(value)}" + (f", not {_short(hidden)}" if is_named else "")
            for name, (value, hidden), is_named in zip(self.names, values, names_hidden, strict=True)
        )

    @property
    def data(self) -> Objects:
        return np.asarray(self.table.originals(self.row[None])[0])

    @property
    def key(self) -> Hashable:
        return fingerprint(self.row)

    @property
    def changes(self) -> Bools:
        return np.asarray((~_same(self.row, self.hidden)).any(axis=0))

    @property
    def draws(self) -> int:
        return len(self.hidden)

    def compose(self, z: Floats) -> Any:
        z, items = split_rows(z, self.draws)
        return self.table.decode(np.where(z > 0, self.row, self.hidden[items]))


def _short(value: Any) -> str:
    if is_missing(value):
        return "missing"
    return number(value) if isinstance(value, float) else str(value)
