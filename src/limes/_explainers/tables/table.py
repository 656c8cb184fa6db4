"""Any table in, a float64 matrix inside, the same kind of table out.

A pandas frame, a polars or pyarrow table, an array, a list of lists: all are read into one array per column
and encoded as one matrix. A number stands for itself, a text for its position among the levels of the
background, NaN for a missing value. Decoding gathers texts from the background's own column, so that a model
gets the dtypes and categories that it was trained on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects, Reals
from limes._checks import SHOWN, did_you_mean, listed
from limes._explainers.tables.columns import (
    EXACT,
    TableColumn,
    column_positions,
    encode,
    learn,
    narrow,
    template_of,
    unreadable,
)
from limes.exceptions import CellError, InputError
from limes.models._reading import Schema


@dataclass(frozen=True, eq=False)
class FrameConverter:
    """Makes dataframes like the background."""

    backend: Any  # narwhals.Implementation of the library
    labels: Any  # pandas' own index of columns, whose entries need not be strings

    def is_like(self, X: Any) -> bool:
        """Return whether X is a frame of pandas with these columns in this order."""
        if not self.backend.is_pandas() or type(X) is not self.backend.to_native_namespace().DataFrame:
            return False
        return X.columns is self.labels or bool(X.columns.equals(self.labels))

    def restore(self, columns: tuple[TableColumn, ...], matrix: Floats) -> Any:
        """Return a frame with the columns' dtypes."""
        if self.backend.is_pandas() and all(map(_is_usual, columns)):
            frame = self.backend.to_native_namespace().DataFrame
            return frame(matrix, columns=self.labels, copy=True)
        series = [self._series(*pair).alias(pair[0].name) for pair in zip(columns, matrix.T, strict=True)]
        frame = nw.concat([column.to_frame() for column in series], how="horizontal").to_native()
        if self.labels is not None:
            frame.columns = self.labels
        return frame

    def _series(self, column: TableColumn, values: Floats) -> nw.Series[Any]:
        if column.template is None:
            return nw.new_series("", narrow(values, column.dtype), backend=self.backend)
        template = nw.from_native(column.template, series_only=True)
        if column.categorical:
            return nw.maybe_reset_index(template[column.places(values)])
        blank = np.isnan(values) & column.missing
        present = narrow(values[~blank], column.dtype)
        if present.dtype.kind == "f" and column.integer:
            template = template.cast(nw.Float64())
        # Gather first, so that missing cells and the dtype stay the library's own.
        cells = nw.maybe_reset_index(template[blank.astype(np.int64)])
        filled: nw.Series[Any] = cells.scatter(np.flatnonzero(~blank), present)
        return filled


def _is_usual(column: TableColumn) -> bool:
    """Return whether a column holds plain float64 numbers."""
    return column.template is None and column.dtype == np.float64 and not column.categorical


@dataclass(frozen=True, eq=False)
class ArrayConverter:
    """Makes numpy arrays like the background."""

    dtype: np.dtype[Any]

    def restore(self, columns: tuple[TableColumn, ...], matrix: Floats) -> Any:
        """Return an array of the background's dtype."""
        if self.dtype.kind in "biuf":
            return narrow(matrix, self.dtype)
        cells = np.empty(matrix.shape, dtype=object)
        for j, column in enumerate(columns):
            cells[:, j] = self._cells(column, matrix[:, j])
        return cells.astype(self.dtype)

    def _cells(self, column: TableColumn, values: Floats) -> Objects:
        template: Objects = column.template
        if column.categorical:
            return template[column.places(values)]
        blank = np.isnan(values) & column.missing
        cells = template[blank.astype(np.int64)]
        cells[~blank] = narrow(values[~blank], column.dtype)
        return cells


class RawTable(NamedTuple):
    """A table as the user passed it, one array per column."""

    keys: list[Hashable] | None  # the user's names; None where columns go by position
    arrays: list[Objects]
    series: list[nw.Series[Any]] | None = None
    converter: FrameConverter | ArrayConverter | None = (
        None  # None for a single row, which no background can be
    )


def match_columns(columns: dict[str, Objects], names: tuple[str, ...]) -> list[Objects]:
    """Put columns into the background's order; refuse missing and unknown ones."""
    missing = [name for name in names if name not in columns]
    extra = [name for name in columns if name not in names]
    if missing:
        guesses = ", ".join(repr(name) + did_you_mean(name, extra) for name in missing[:SHOWN])
        raise InputError(f"X has no column {guesses}, which the background has: add what is missing")
    if extra:
        raise InputError(f"X has columns that are not in the background: {listed(extra)}. Drop them")
    return [columns[name] for name in names]


def names_of(raw: RawTable) -> list[str]:
    """Return names as text; x0, x1, ... if missing."""
    names = [f"x{j}" for j in range(len(raw.arrays))] if raw.keys is None else [*map(str, raw.keys)]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"columns share a name: {listed(repeated)}. Rename them")
    return names


def open_table(X: Any) -> RawTable:
    """Read any kind of table or row."""
    if isinstance(X, Mapping):
        return _from_mapping(X)
    try:
        table = nw.from_native(X, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise InputError(f"columns share a name: rename them. {error}") from error
    if isinstance(table, nw.LazyFrame):
        raise InputError(f"{type(X).__name__} is lazy: collect it into memory first")
    if isinstance(table, nw.DataFrame):
        return _from_frame(table)
    if not isinstance(table, nw.Series):
        return _from_array(X)
    if table.implementation.is_pandas_like():
        return _from_mapping(dict(zip(X.index, table.to_list(), strict=True)))
    return _from_array(table.to_list())


def _from_frame(table: nw.DataFrame[Any]) -> RawTable:
    if table.implementation.is_pandas_like():
        table = _densified(table)
    series = list(table.iter_columns())
    labels = table.to_native().columns if table.implementation.is_pandas_like() else None
    keys: list[Hashable] = list(table.columns if labels is None else labels)
    return RawTable(
        keys, [_cells(column) for column in series], series, FrameConverter(table.implementation, labels)
    )


def _densified(table: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """Return a pandas frame whose sparse columns are dense, with the same numbers.

    The model gets such frames too: most rows that it is asked about are not sparse.
    """
    frame = table.to_native()
    sparse = [j for j, dtype in enumerate(frame.dtypes) if type(dtype).__name__ == "SparseDtype"]
    if not sparse:
        return table
    frame = frame.copy(deep=False)
    for j in sparse:
        frame.isetitem(j, frame.iloc[:, j].sparse.to_dense())
    return nw.from_native(frame, eager_only=True)


def _from_mapping(row: Mapping[Hashable, Any]) -> RawTable:
    cells = [np.atleast_1d(_as_array(value)) for value in row.values()]
    if len({cell.shape for cell in cells}) > 1 or any(cell.ndim > 1 for cell in cells):
        raise InputError("the columns of X differ in length: pass one value per row for each")
    return RawTable(list(row), cells)


def _from_array(X: Any) -> RawTable:
    array = _as_array(X)
    if array.ndim not in (1, 2):
        raise InputError(
            f"{type(X).__name__} of {array.ndim} dimensions is not a table: pass a dataframe, "
            "an array (rows, columns), or one row"
        )
    converter = ArrayConverter(array.dtype) if array.ndim == 2 else None
    return RawTable(None, list(np.atleast_2d(array).T), converter=converter)


def _as_array(X: Any) -> Objects:
    if hasattr(X, "toarray"):
        raise InputError(f"{type(X).__name__} is sparse: pass X.toarray()")
    if isinstance(X, np.ma.MaskedArray):
        raise InputError("a masked array hides cells: pass X.filled(numpy.nan)")
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InputError("X is no table: rows differ in length, or a cell holds a list") from error
    # numpy would turn the numbers beside a text into texts
    mixed = array.dtype.kind in "US" and not isinstance(X, np.ndarray)
    return _readable(np.array(X, dtype=object) if mixed else array, "the array")


def _cells(series: nw.Series[Any]) -> Objects:
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)
    if series.dtype in (nw.Int128, nw.UInt128):
        raise unreadable(f"column {series.name!r}", series.dtype)
    if series.dtype != nw.Categorical or series.null_count() == 0:
        return _readable(series.to_numpy(), f"column {series.name!r}")
    # pyarrow loses which categories are null
    cells = np.full(len(series), None, dtype=object)
    cells[~series.is_null().to_numpy()] = series.drop_nulls().to_numpy()
    return cells


def _readable(values: Objects, where: str) -> Objects:
    if values.dtype.kind not in "biufOU":
        raise unreadable(where, values.dtype)
    return values


__all__ = ["EncodedRows", "Table"]


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
