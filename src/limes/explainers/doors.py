"""The ways in and out of limes: every kind of table, opened to one array a column, and made again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from limes._arrays import Floats, Objects
from limes.exceptions import InputError
from limes.explainers.columns import SHOWN, Column, listed, narrow, near, unreadable


@dataclass(frozen=True, eq=False)
class FrameDoor:
    """The way back to a dataframe."""

    backend: Any  # narwhals.Implementation of the library
    labels: Any  # pandas' own index of columns, whose entries need not be strings

    def restore(self, columns: tuple[Column, ...], matrix: Floats) -> Any:
        series = [self._series(*pair).alias(pair[0].name) for pair in zip(columns, matrix.T, strict=True)]
        frame = nw.concat([one.to_frame() for one in series], how="horizontal").to_native()
        if self.labels is not None:
            frame.columns = self.labels
        return frame

    def _series(self, column: Column, values: Floats) -> nw.Series[Any]:
        if column.template is None:
            return nw.new_series("", narrow(values, column.dtype), backend=self.backend)
        template = nw.from_native(column.template, series_only=True)
        if column.categorical:
            return nw.maybe_reset_index(template[column.places(values)])
        blank = np.isnan(values) & column.missing
        known = narrow(values[~blank], column.dtype)
        if known.dtype.kind == "f" and column.integer:
            template = template.cast(nw.Float64())
        # Gather first, so that missing cells and the dtype stay the library's own.
        cells = nw.maybe_reset_index(template[blank.astype(np.int64)])
        filled: nw.Series[Any] = cells.scatter(np.flatnonzero(~blank), known)
        return filled


@dataclass(frozen=True, eq=False)
class ArrayDoor:
    """The way back to a numpy array."""

    dtype: np.dtype[Any]

    def restore(self, columns: tuple[Column, ...], matrix: Floats) -> Any:
        if self.dtype.kind in "biuf":
            return narrow(matrix, self.dtype)
        cells = np.empty(matrix.shape, dtype=object)
        for j, column in enumerate(columns):
            cells[:, j] = self._cells(column, matrix[:, j])
        return cells.astype(self.dtype)

    def _cells(self, column: Column, values: Floats) -> Objects:
        template: Objects = column.template
        if column.categorical:
            return template[column.places(values)]
        blank = np.isnan(values) & column.missing
        cells = template[blank.astype(np.int64)]
        cells[~blank] = narrow(values[~blank], column.dtype)
        return cells


class Raw(NamedTuple):
    """A table as it came, one array a column."""

    keys: list[Hashable] | None  # the user's names; None where columns go by position
    arrays: list[Objects]
    series: list[nw.Series[Any]] | None = None
    form: FrameDoor | ArrayDoor | None = None  # None for a single row, which no background can be


def by_name(found: dict[str, Objects], names: tuple[str, ...]) -> list[Objects]:
    """Put columns into the background's order; refuse missing and unknown ones."""
    lost = [name for name in names if name not in found]
    extra = [name for name in found if name not in names]
    if lost:
        guesses = ", ".join(repr(name) + near(name, extra) for name in lost[:SHOWN])
        raise InputError(f"X lacks {len(lost)} columns of the background: {guesses}. Add them")
    if extra:
        raise InputError(f"X has columns that the background has not: {listed(extra)}. Drop them")
    return [found[name] for name in names]


def names_of(raw: Raw) -> list[str]:
    """Names as text; x0, x1, ... where there are none."""
    names = [f"x{j}" for j in range(len(raw.arrays))] if raw.keys is None else [*map(str, raw.keys)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"columns share a name: {listed(twice)}. Rename them")
    return names


def chosen_columns(categorical: Any, keys: list[Hashable], names: list[str]) -> set[int]:
    """Positions of the columns that the user calls categorical."""
    if categorical is None:
        return set()
    one = isinstance(categorical, str) or not isinstance(categorical, Iterable)
    return {_position(wanted, keys, names) for wanted in ([categorical] if one else categorical)}


def _position(wanted: Any, keys: list[Hashable], names: list[str]) -> int:
    if not isinstance(wanted, bool | np.bool_):
        for known in (keys, names):
            if wanted in known:
                return known.index(wanted)
        if isinstance(wanted, int | np.integer) and 0 <= wanted < len(names):
            return int(wanted)
    raise InputError(
        f"categorical={wanted!r} is no column{near(wanted, names)}: give names or positions among "
        f"{listed(names)}"
    )


def open_table(X: Any) -> Raw:
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


def _from_frame(table: nw.DataFrame[Any]) -> Raw:
    if table.implementation.is_pandas_like():
        table = _densified(table)
    series = list(table.iter_columns())
    labels = table.to_native().columns if table.implementation.is_pandas_like() else None
    keys: list[Hashable] = list(table.columns if labels is None else labels)
    return Raw(keys, [_cells(one) for one in series], series, FrameDoor(table.implementation, labels))


def _densified(table: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """A pandas frame whose sparse columns are ordinary ones of the same numbers.

    The model is given such frames too: most rows that it is asked about are not sparse.
    """
    frame = table.to_native()
    sparse = [j for j, dtype in enumerate(frame.dtypes) if type(dtype).__name__ == "SparseDtype"]
    if not sparse:
        return table
    frame = frame.copy(deep=False)
    for j in sparse:
        frame.isetitem(j, frame.iloc[:, j].sparse.to_dense())
    return nw.from_native(frame, eager_only=True)


def _from_mapping(row: Mapping[Hashable, Any]) -> Raw:
    cells = [np.atleast_1d(_as_array(value)) for value in row.values()]
    if len({one.shape for one in cells}) > 1 or any(one.ndim > 1 for one in cells):
        raise InputError("the columns of X differ in length: give each one value a row")
    return Raw(list(row), cells)


def _from_array(X: Any) -> Raw:
    array = _as_array(X)
    if array.ndim not in (1, 2):
        raise InputError(
            f"{type(X).__name__} of {array.ndim} dimensions is not a table: give a dataframe, "
            "an array (rows, columns), or one row"
        )
    form = ArrayDoor(array.dtype) if array.ndim == 2 else None
    return Raw(None, list(np.atleast_2d(array).T), form=form)


def _as_array(X: Any) -> Objects:
    if hasattr(X, "toarray"):
        raise InputError(f"{type(X).__name__} is sparse: give X.toarray()")
    if isinstance(X, np.ma.MaskedArray):
        raise InputError("a masked array hides cells: give X.filled(numpy.nan)")
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
    # pyarrow forgets which categories are null
    cells = np.full(len(series), None, dtype=object)
    cells[~series.is_null().to_numpy()] = series.drop_nulls().to_numpy()
    return cells


def _readable(values: Objects, where: str) -> Objects:
    if values.dtype.kind not in "biufOU":
        raise unreadable(where, values.dtype)
    return values
