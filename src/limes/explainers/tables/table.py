"""Any table in, a float64 matrix inside, the same kind of table out.

A pandas frame, a polars or pyarrow table, an array, a list of lists: all are encoded as one matrix. A number
stands for itself, a text for its position among the levels of the background, NaN for a missing value.
Decoding gathers texts from the background's own column, so that a model gets the dtypes and categories that
it was trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Objects
from limes._checks import listed
from limes.exceptions import InputError
from limes.explainers.tables.columns import EXACT, TableColumn, encode, learn, template_of
from limes.explainers.tables.io import (
    ArrayConverter,
    FrameConverter,
    RawTable,
    categorical_columns,
    match_columns,
    names_of,
    open_table,
)
from limes.models.reading import Schema

__all__ = ["Table"]


@dataclass(frozen=True, eq=False)
class Table:
    """A background table: its columns, its float64 matrix, and the encoding and decoding of rows.

    Attributes
    ----------
    columns : tuple of TableColumn
    matrix : array (n, d)
        The encoded background, read-only.
    converter : FrameConverter or ArrayConverter
        Makes tables of the background's kind.
    """

    columns: tuple[TableColumn, ...]
    matrix: Floats
    converter: FrameConverter | ArrayConverter

    @property
    def names(self) -> tuple[str, ...]:
        """Column names; ``x0``, ``x1``, ... for arrays."""
        return tuple(column.name for column in self.columns)

    @property
    def schema(self) -> Schema:
        """The columns as readers of models see them."""
        return Schema(self.names, tuple(c.levels if c.coded else () for c in self.columns))

    @cached_property
    def numeric(self) -> Bools:
        """Which columns hold numbers."""
        return np.array([not column.categorical for column in self.columns])

    @classmethod
    def fit(cls, background: Any, *, categorical: Any = None) -> Table:
        """Learn names, levels and dtypes.

        Parameters
        ----------
        background : table or array (n, d)
            Numbers, booleans, text and categories, in memory.
        categorical : names or positions, optional
            Columns of numbers to be taken as categories. Booleans, text and categories always are; so is a
            column whose values are all missing.

        Raises
        ------
        InputError
            A column that cannot be read, an infinite value, an empty table.
        """
        raw = open_table(background)
        if raw.converter is None or not raw.arrays or not raw.arrays[0].size:
            raise InputError(
                f"the background ({type(background).__name__}) must be a table with rows and "
                "columns: pass a dataframe, or an array of two dimensions"
            )
        names = names_of(raw)
        chosen = categorical_columns(categorical, raw.keys or [], names)
        columns, encoded = [], []
        for j, values in enumerate(raw.arrays):
            series = raw.series[j] if raw.series else None
            column = learn(names[j], values, series=series, chosen=j in chosen)
            encoded.append(encode(column, values, "background row"))
            cells = template_of(column, encoded[-1], values if series is None else series)
            columns.append(replace(column, template=cells))
        matrix = np.column_stack(encoded)
        matrix.setflags(write=False)
        return cls(tuple(columns), matrix, raw.converter)

    def with_categories(self, columns: Sequence[int]) -> Table:
        """Return the same background with further columns of numbers, by position, as categories."""
        if not columns:
            return self
        chosen = [column.name for j, column in enumerate(self.columns) if column.categorical or j in columns]
        return Table.fit(self.decode(self.matrix), categorical=chosen)

    def encode(self, X: Any) -> Floats:
        """Turn rows into a matrix (m, d).

        Parameters
        ----------
        X : table, array, list, mapping or series
            One row or many, of any kind. Columns are matched by name; where either side has no names, by
            position.

        Raises
        ------
        InputError
            Columns that do not match; a cell that is infinite, unseen, not a number, or missing where the
            background has no missing values. Rows are counted from 0.
        """
        if self._is_matrix(X):
            return np.array(X, dtype=np.float64, ndmin=2)
        arrays = self._aligned(open_table(X))
        if not arrays[0].size:
            raise InputError("there are no rows to explain: pass at least one")
        pairs = zip(self.columns, arrays, strict=True)
        return np.column_stack([encode(column, values) for column, values in pairs])

    def _is_matrix(self, X: Any) -> bool:
        """Return whether X is its own matrix, one row or many: usual floats, for columns of numbers."""
        plain = type(X) is np.ndarray and X.dtype.kind == "f" and X.size > 0  # masked arrays are not plain
        if not plain or not self.numeric.all():
            return False
        shaped = X.ndim in (1, 2) and X.shape[-1] == len(self.columns)
        return shaped and bool(np.abs(X).max() <= EXACT)  # not so for infinite and missing values

    def decode(self, matrix: Floats) -> Any:
        """Turn a matrix (m, d) into a table of the background's kind, names and dtypes.

        A column of whole numbers becomes float64 where the matrix holds other numbers, as a truncated value
        is not the one that is explained.
        """
        return self.converter.restore(self.columns, np.asarray(matrix, dtype=np.float64))

    def originals(self, matrix: Floats) -> Objects:
        """Return the user's own values (m, d) for display; None for missing."""
        if all(column.dtype == np.float64 for column in self.columns) and not np.isnan(matrix).any():
            return matrix  # floats stand for themselves
        pairs = zip(self.columns, np.asarray(matrix, dtype=np.float64).T, strict=True)
        return np.column_stack([column.originals(values) for column, values in pairs])

    def _aligned(self, raw: RawTable) -> list[Objects]:
        columns = dict(zip(names_of(raw), raw.arrays, strict=True))
        named = isinstance(self.converter, FrameConverter) or not columns.keys().isdisjoint(self.names)
        if raw.keys is not None and named:
            return match_columns(columns, self.names)
        if len(raw.arrays) != len(self.columns):
            raise InputError(
                f"got {len(raw.arrays)} columns, expected {len(self.columns)} "
                f"({listed(self.names)}): pass a row of that length, or an array (rows, columns)"
            )
        return raw.arrays
