"""Tables of any library opened as one array a column, and made again of such arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from limes._arrays import EXACT, Floats, Objects, is_wide
from limes._checks import SHOWN, did_you_mean, listed
from limes._explainers.tables.columns import TableColumn, unreadable
from limes.exceptions import InputError


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
            return nw.new_series("", _narrow(values, column.dtype), backend=self.backend)
        template = nw.from_native(column.template, series_only=True)
        if column.categorical:
            return nw.maybe_reset_index(template[column.places(values)])
        blank = np.isnan(values) & column.missing
        present = _narrow(values[~blank], column.dtype)
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
        """Return an array of the background's dtype.

        Raises
        ------
        InputError
            If float64 does not hold the whole numbers of one column, and another has fractions.
        """
        if self.dtype.kind in "biuf":
            wide = [column for column in columns if column.coded]
            return self._whole(columns, matrix, wide[0].name) if wide else _narrow(matrix, self.dtype)
        cells = np.empty(matrix.shape, dtype=object)
        for j, column in enumerate(columns):
            cells[:, j] = self._cells(column, matrix[:, j])
        return cells.astype(self.dtype)

    def _whole(self, columns: tuple[TableColumn, ...], matrix: Floats, wide: str) -> Objects:
        """Return whole numbers, those of coded columns themselves; ``wide`` is the name of such a column."""
        cells = np.empty(matrix.shape, dtype=self.dtype)
        for j, column in enumerate(columns):
            if column.coded:
                cells[:, j] = np.array(column.levels, dtype=self.dtype)[column.places(matrix[:, j])]
                continue
            numbers = _narrow(matrix[:, j], self.dtype)
            if numbers.dtype != self.dtype:
                raise InputError(
                    f"column {wide!r} holds whole numbers beyond 2**53, and perturbed values of column "
                    f"{column.name!r} are no {self.dtype}: one array cannot hold both. Pass a dataframe as "
                    f"the background, or name {column.name!r} in categorical= too"
                )
            cells[:, j] = numbers
        return cells

    def _cells(self, column: TableColumn, values: Floats) -> Objects:
        template: Objects = column.template
        if column.categorical:
            return template[column.places(values)]
        blank = np.isnan(values) & column.missing
        cells = template[blank.astype(np.int64)]
        cells[~blank] = _narrow(values[~blank], column.dtype)
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
    if isinstance(X, list | tuple) and X and all(isinstance(row, Mapping) for row in X):
        return _from_mappings(X)
    if type(X).__module__.startswith("pyarrow") and type(X).__name__ == "RecordBatch":
        raise InputError("a RecordBatch is a part of a table: pass pyarrow.Table.from_batches([batch])")
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


def _from_mappings(rows: Sequence[Mapping[Hashable, Any]]) -> RawTable:
    keys = rows[0].keys()
    for i, row in enumerate(rows):
        if row.keys() != keys:
            different = listed(sorted(map(str, row.keys() ^ keys)))
            raise InputError(f"row {i} of X has other names than row 0: {different} in one of the two")
    return _from_mapping({key: _as_array([row[key] for row in rows]) for key in keys})


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
    series = nw.from_native(X, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _cells(series)
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InputError("X is no table: rows differ in length, or a cell holds a list") from error
    # numpy would turn the numbers beside a text into texts, and whole numbers beside a fraction into floats
    mixed = not isinstance(X, np.ndarray) and (array.dtype.kind in "US" or _is_rounded(array, X))
    return _readable(np.array(X, dtype=object) if mixed else array, "the array")


def _is_rounded(array: Objects, X: Any) -> bool:
    """Tell whether whole numbers of X have lost digits in an array of floats."""
    if array.dtype.kind != "f":
        return False
    with np.errstate(invalid="ignore"):
        large = np.abs(array) >= EXACT
    return bool(large.any()) and any(map(is_wide, np.array(X, dtype=object)[large]))


def _cells(series: nw.Series[Any]) -> Objects:
    nulls = series.null_count()
    if nulls == len(series):
        return np.full(len(series), np.nan)
    if series.dtype in (nw.Int128, nw.UInt128):
        raise unreadable(f"column {series.name!r}", series.dtype)
    of_categories = series.dtype in (nw.Categorical, nw.Enum)
    if not nulls or not (of_categories or series.dtype.is_integer()):
        return _readable(series.to_numpy(), f"column {series.name!r}")
    present = series.drop_nulls().to_numpy()
    if not of_categories and not any(map(is_wide, (present.min(), present.max()))):
        return series.to_numpy()
    # beside nulls pyarrow loses which categories are null, and all libraries make floats of whole numbers
    cells = np.full(len(series), None, dtype=object)
    cells[~series.is_null().to_numpy()] = present
    return cells


def _readable(values: Objects, where: str) -> Objects:
    if values.dtype.kind not in "biufOU":
        raise unreadable(where, values.dtype)
    return values


def _narrow(values: Floats, dtype: np.dtype[Any]) -> Objects:
    """Cast back to the user's dtype, unless that would change a whole number."""
    with np.errstate(invalid="ignore", over="ignore"):
        cast = values.astype(dtype)
    return cast if dtype.kind == "f" or np.array_equal(cast, values) else values.copy()
