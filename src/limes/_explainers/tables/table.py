"""Any table in, a float64 matrix inside, the same kind of table out.

A pandas frame, a polars or pyarrow table, an array, a list of lists: all are read into one array per column
and encoded as one matrix. A number stands for itself, a text for its position among the levels of the
background, NaN for a missing value. Decoding gathers texts from the background's own column, so that a model
gets the dtypes and categories that it was trained on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from limes._arrays import EXACT, Bools, Floats, Ints, Objects, Reals
from limes._checks import listed
from limes._explainers.tables.columns import (
    TableColumn,
    column_positions,
    encode,
    learn,
    template_of,
)
from limes._explainers.tables.opening import (
    ArrayConverter,
    FrameConverter,
    RawTable,
    match_columns,
    names_of,
    open_table,
)
from limes.exceptions import CellError, InputError
from limes.models._reading import Schema


class EncodedRows(NamedTuple):
    """Rows that can be explained, as a matrix (m, d), their positions (m,) among all, and the rest.

    ``errors`` says for each other position what is wrong.
    """

    matrix: Floats
    positions: Ints
    errors: Mapping[int, str]


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

    @cached_property
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
        chosen = column_positions("categorical", categorical, raw.keys or [], names)
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

    def held(self, hold: Any) -> tuple[str, ...]:
        """Return the names of the columns that ``hold`` names, in their order.

        Raises
        ------
        InputError
            If it names no column, or all of them.
        """
        labels = getattr(self.converter, "labels", None)
        keys = [] if labels is None else [*labels]
        at = column_positions("hold", hold, keys, [*self.names])
        if len(at) == len(self.columns):
            raise InputError("hold= names every column, and nothing is left to change: leave one out")
        return tuple(self.names[j] for j in sorted(at))

    def with_levels_of(self, X: Any) -> Table:
        """Return the same background with the texts of ``X`` that it does not have as levels without mass."""
        if isinstance(self.converter, ArrayConverter) and self.converter.dtype.kind == "U":
            return self  # it would cut longer texts
        pairs = zip(self.columns, self._aligned(open_table(X)), strict=True)
        new = [column.new_levels(values) for column, values in pairs]
        if not any(new):
            return self
        columns = zip(self.columns, new, strict=True)
        return replace(self, columns=tuple(c.with_levels(more) if more else c for c, more in columns))

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
        numbers = self._numbers(X)
        if numbers is not None:
            return np.array(numbers, dtype=np.float64, ndmin=2)
        arrays = self._aligned(open_table(X))
        if not arrays[0].size:
            raise InputError("there are no rows to explain: pass at least one")
        pairs = zip(self.columns, arrays, strict=True)
        return np.column_stack([encode(column, values) for column, values in pairs])

    def encode_good(self, X: Any) -> EncodedRows:
        """Turn the rows whose cells are all usable into a matrix; say what is wrong with the others.

        Raises
        ------
        InputError
            As for `encode`, if columns do not match, or no row is usable.
        """
        if self._numbers(X) is not None:
            matrix = self.encode(X)
            return EncodedRows(matrix, np.arange(len(matrix)), {})
        arrays = self._aligned(open_table(X))
        n, errors = arrays[0].size, dict[int, str]()
        while True:
            positions = np.setdiff1d(np.arange(n), [*errors])
            if not positions.size:
                raise InputError(
                    f"no row can be explained: {next(iter(errors.values()), 'there are no rows')}"
                )
            before = len(errors)
            columns = []
            for column, values in zip(self.columns, arrays, strict=True):
                try:
                    columns.append(encode(column, values[positions]))
                except CellError as error:
                    for row, text in error.rows.items():
                        errors.setdefault(int(positions[row]), text)
            if len(errors) == before:
                return EncodedRows(np.column_stack(columns), positions, errors)

    def _numbers(self, X: Any) -> Reals | None:
        """Return X, one row or many, as an array if that is its own matrix: floats in columns of numbers."""
        if not self._all_numeric:
            return None
        if isinstance(self.converter, FrameConverter) and self.converter.is_like(X):
            X = X.to_numpy()
        plain = type(X) is np.ndarray and X.dtype.kind == "f" and X.size > 0  # masked arrays are not plain
        if not plain or X.ndim not in (1, 2) or X.shape[-1] != len(self.columns):
            return None
        return X if np.abs(X).max() <= EXACT else None  # not so for infinite and missing values

    @cached_property
    def _all_numeric(self) -> bool:
        return bool(self.numeric.all())

    @cached_property
    def _all_floats(self) -> bool:
        return all(column.dtype == np.float64 for column in self.columns)

    def decode(self, matrix: Floats) -> Any:
        """Turn a matrix (m, d) into a table of the background's kind, names and dtypes.

        A column of whole numbers becomes float64 where the matrix holds other numbers, as a truncated value
        is not the one that is explained.
        """
        return self.converter.restore(self.columns, np.asarray(matrix, dtype=np.float64))

    def originals(self, matrix: Floats) -> Objects:
        """Return the user's own values (m, d) for display; None for missing."""
        if self._all_floats and not np.isnan(matrix).any():
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


# -- names of rows -------------------------------------------------------------------------------------------


class RowNames(NamedTuple):
    """Names of explained rows, and of those that have an error, with its text."""

    ids: tuple[Any, ...]
    errors: tuple[tuple[Any, str], ...]

    def at(self, positions: Ints) -> RowNames:
        """Return the names of some of the explained rows."""
        return RowNames(tuple(self.ids[i] for i in positions.tolist()), self.errors)

    def without(self, reasons: Mapping[int, str]) -> RowNames:
        """Return the names without the rows at these positions, which have an error, with its text."""
        errors = (*self.errors, *((self.ids[i], text) for i, text in sorted(reasons.items())))
        return RowNames(tuple(name for i, name in enumerate(self.ids) if i not in reasons), errors)


def row_names(X: Any, ids: Any, encoded: EncodedRows) -> RowNames:
    """Name the rows of X, by ``ids`` if they are passed.

    Raises
    ------
    InputError
        If there are not as many names as rows.
    """
    n = len(encoded.positions) + len(encoded.errors)
    if isinstance(ids, str) or not isinstance(ids, Iterable | None):
        raise InputError(f"ids={ids!r} must be a list of names, one for each of the {n} rows")
    names = ids_of(X, n) if ids is None else tuple(ids.tolist() if hasattr(ids, "tolist") else ids)
    if len(names) != n:
        raise InputError(f"ids has {len(names)} names for {n} rows: pass one for each row")
    kept = encoded.positions.tolist()
    chosen = names if len(kept) == n else tuple(names[i] for i in kept)
    return RowNames(chosen, tuple((names[i], text) for i, text in sorted(encoded.errors.items())))


def ids_of(X: Any, rows: int) -> tuple[Any, ...]:
    """Return the names of rows: the index of a pandas frame, the name of a row of one, else positions."""
    index: Any = getattr(X, "index", None)
    if not hasattr(index, "tolist") or isinstance(X, Mapping):
        return tuple(range(rows))
    if np.ndim(X) == 1:
        return (0 if X.name is None else X.name,)
    return tuple(index.tolist())
