"""Any table in, a float64 matrix inside, the same kind of table out.

A pandas frame, a polars or pyarrow table, an array, a list of lists: all are read into one array per column
and encoded as one matrix. A number stands for itself, a text for its position among the levels of the
background, NaN for a missing value. Decoding gathers texts from the background's own column, so that a model
gets the dtypes and categories that it was trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from limes._arrays import EXACT, Bools, Floats, Ints, Objects, Reals, is_wide
from limes._checks import SHOWN, did_you_mean, listed
from limes._explainers.tables.columns import (
    FEW,
    TableColumn,
    encode,
    encode_all,
    learn,
    template_of,
    unreadable,
)
from limes._explainers.tables.quantities import cells_of, column_of, quantity_of
from limes._names import Names, is_whole, names_of_frame, refuse_repeats, text_of
from limes.exceptions import CellError, InputError
from limes.models._algebra import on_columns
from limes.models._columns import model_order, other_columns
from limes.models._reading import Schema
from limes.models.forms._base import Form


@dataclass(frozen=True, eq=False)
class FrameConverter:
    backend: Any  # narwhals.Implementation of the library
    labels: Any  # pandas' own index of columns, whose entries need not be strings

    def is_like(self, X: Any) -> bool:
        """Whether X is a frame of pandas with these columns in this order."""
        if not self.backend.is_pandas() or type(X) is not self.backend.to_native_namespace().DataFrame:
            return False
        return self.has_labels(X.columns)

    def has_labels(self, labels: Any) -> bool:
        """Whether these are pandas' labels of the columns, in their order."""
        if self.labels is None or labels is None:
            return False
        return labels is self.labels or bool(labels.equals(self.labels))

    def in_order(self, order: Sequence[int]) -> FrameConverter:
        return self if self.labels is None else replace(self, labels=self.labels.take([*order]))

    def restore(self, columns: tuple[TableColumn, ...], matrix: Floats) -> Any:
        all_floats = all(c.is_plain and c.template is None and c.dtype == np.float64 for c in columns)
        if self.backend.is_pandas() and all_floats:
            frame = self.backend.to_native_namespace().DataFrame
            return frame(matrix, columns=self.labels, copy=True)
        if self.backend.is_pandas() and self.labels is not None:
            arrays = []
            for column, values in zip(columns, matrix.T, strict=True):
                usual = _usual_column(column, values)
                arrays.append(self._series(column, values).to_native() if usual is None else usual)
            return _frame_of(self.backend.to_native_namespace().DataFrame, arrays, self.labels)
        series = [self._series(*pair).alias(pair[0].name) for pair in zip(columns, matrix.T, strict=True)]
        frame = nw.concat([column.to_frame() for column in series], how="horizontal").to_native()
        if self.labels is not None:
            frame.columns = self.labels
        return frame

    def _series(self, column: TableColumn, values: Floats) -> nw.Series[Any]:
        if column.quantity is not None:
            native = column_of(column.quantity, values, self.backend)
            cells: nw.Series[Any] = nw.from_native(native, series_only=True)
            return cells
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


@dataclass(frozen=True, eq=False)
class ArrayConverter:
    dtype: np.dtype[Any]

    def restore(self, columns: tuple[TableColumn, ...], matrix: Floats) -> Any:
        if self.dtype.kind in "biuf":
            wide = [column for column in columns if column.coded]
            return self._whole(columns, matrix, wide[0].name) if wide else _narrow(matrix, self.dtype)
        cells = np.empty(matrix.shape, dtype=object)
        for j, column in enumerate(columns):
            cells[:, j] = self._cells(column, matrix[:, j])
        return cells.astype(self.dtype)

    def _whole(self, columns: tuple[TableColumn, ...], matrix: Floats, wide: str) -> Objects:
        """Whole numbers, those of coded columns themselves; ``wide`` is the name of such a column."""
        if not any(column.wide for column in columns):
            values = matrix.astype(np.float64)
            for j, column in enumerate(columns):
                if column.coded:
                    values[:, j] = np.array([*column.levels, np.nan])[column.places(matrix[:, j])]
            return _narrow(values, self.dtype)
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
        if column.quantity is not None:
            return column.quantity.cells(values)
        template: Objects = column.template
        if column.categorical:
            return template[column.places(values)]
        blank = np.isnan(values) & column.missing
        cells = template[blank.astype(np.int64)]
        cells[~blank] = _narrow(values[~blank], column.dtype)
        return cells


@dataclass(frozen=True, eq=False)
class SparseConverter(ArrayConverter):
    """Makes matrices of scipy of the background's class, which the model takes; the table itself is dense."""

    kind: Callable[[Any], Any]

    def restore(self, columns: tuple[TableColumn, ...], matrix: Floats) -> Any:
        return self.kind(super().restore(columns, matrix))


# Cells of a dense table that a sparse one may become
_LARGEST_SPARSE = 10**8


class RawTable(NamedTuple):
    """A table as the user passed it, one array per column."""

    keys: list[Hashable] | None  # the user's names; None where columns go by position
    arrays: list[Objects]
    frame: nw.DataFrame[Any] | None = None
    converter: FrameConverter | ArrayConverter | None = None  # None for a single row

    @property
    def labels(self) -> Any:
        """The labels of pandas' columns, or None."""
        return getattr(self.converter, "labels", None)


def match_columns(columns: Mapping[str, Objects], names: tuple[str, ...]) -> list[Objects]:
    missing, expected = [name for name in names if name not in columns], set(names)
    extra = [name for name in columns if name not in expected]
    if missing:
        guesses = ", ".join(repr(name) + did_you_mean(name, extra) for name in missing[:SHOWN])
        raise InputError(f"X has no column {guesses}, which the background has: add what is missing")
    if extra:
        raise InputError(f"X has columns that are not in the background: {listed(extra)}. Drop them")
    return [columns[name] for name in names]


def names_of(raw: RawTable) -> list[str]:
    if raw.keys is None:
        return [f"x{j}" for j in range(len(raw.arrays))]
    refuse_repeats(raw.keys)
    return [*map(text_of, raw.keys)]


def open_table(X: Any) -> RawTable:
    if isinstance(X, Mapping):
        return _from_mapping(X)
    if isinstance(X, list | tuple) and X and all(isinstance(row, Mapping) for row in X):
        return _from_mappings(X)
    if type(X).__module__.startswith("pyarrow") and type(X).__name__ == "RecordBatch":
        raise InputError("a RecordBatch is a part of a table: pass pyarrow.Table.from_batches([batch])")
    try:
        table = nw.from_native(X, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        refuse_repeats(names_of_frame(X))
        raise InputError(f"columns share a name: rename them. {error}") from error
    if isinstance(table, nw.LazyFrame):
        raise InputError(f"{type(X).__name__} is lazy: collect it into memory first")
    if isinstance(table, nw.DataFrame):
        return _from_frame(table)
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        return _from_sparse(X)
    if not isinstance(table, nw.Series):
        return _from_array(X)
    if table.implementation.is_pandas_like():
        return _from_mapping(dict(zip(X.index, table.to_list(), strict=True)))
    return _from_array(table.to_list())


def _from_frame(table: nw.DataFrame[Any]) -> RawTable:
    if table.implementation.is_pandas_like():
        table = _densified(table)
    labels = table.to_native().columns if table.implementation.is_pandas_like() else None
    keys: list[Hashable] = list(table.columns if labels is None else labels)
    usual = usual_cells(table.to_native()) if table.implementation.is_pandas() else {}
    if len(usual) < len(keys):
        arrays = [usual[j] if j in usual else _cells(its) for j, its in enumerate(table.iter_columns())]
    else:
        arrays = [usual[j] for j in range(len(keys))]
    return RawTable(keys, arrays, table, FrameConverter(table.implementation, labels))


def _densified(table: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """A pandas frame whose sparse columns are dense, as most rows that the model is asked about are."""
    frame = table.to_native()
    sparse = [j for j, dtype in enumerate(frame.dtypes) if type(dtype).__name__ == "SparseDtype"]
    if not sparse:
        return table
    frame = frame.copy(deep=False)
    for j in sparse:
        frame.isetitem(j, frame.iloc[:, j].sparse.to_dense())
    return nw.from_native(frame, eager_only=True)


def _from_sparse(X: Any) -> RawTable:
    if X.ndim == 2 and X.shape[0] * X.shape[1] > _LARGEST_SPARSE:
        raise InputError(
            f"the {type(X).__name__} has {X.shape[0]:,} x {X.shape[1]:,} cells, and perturbed rows are dense:"
            f" pass at most {_LARGEST_SPARSE // X.shape[1]:,} of its rows, or fewer columns"
        )
    raw = _from_array(X.toarray())
    return raw._replace(converter=SparseConverter(X.dtype, type(X)))


def _from_mapping(row: Mapping[Hashable, Any]) -> RawTable:
    arrays = [_as_array(value) for value in row.values()]
    columns = [name for name, array in zip(row, arrays, strict=True) if array.ndim]
    if 0 < len(columns) < len(row):
        kind = type(row[columns[0]]).__name__
        raise InputError(
            f"column {columns[0]!r} holds a {kind}, and other columns one cell: pass "
            "one cell for each, or a list for each"
        )
    cells = [*map(np.atleast_1d, arrays)]
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
    mixed = not isinstance(X, np.ndarray) and (array.dtype.kind in "US" or _lost_digits(array, X))
    if array.dtype.kind in "mM" and array.ndim < 2:
        return array  # a cell, or a column
    return _readable(np.array(X, dtype=object) if mixed else array, "the array")


def _lost_digits(array: Objects, X: Any) -> bool:
    """Whether whole numbers of X have lost digits in an array of floats."""
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
    quantity = quantity_of(series)
    if quantity is not None:
        return cells_of(quantity, series)
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
    if values.dtype.names:
        raise InputError(
            f"{where} has named fields {list(values.dtype.names)}: pass pandas.DataFrame(...) of it"
        )
    if values.dtype.kind not in "biufOU":
        raise unreadable(where, values.dtype)
    return values


# -- frames of pandas with thousands of columns ------------------------------------------------------------
#
# A series of the library takes some hundred microseconds a column, and blocks of cells take none.


def usual_cells(frame: Any) -> dict[int, Objects]:
    """The cells of the columns that hold numbers of numpy, or no other cells than texts, by position."""
    alike: dict[Any, list[int]] = {}
    for j, dtype in enumerate(frame.dtypes):
        kinds = "biufO" if isinstance(dtype, np.dtype) else ""
        if (kinds and dtype.kind in kinds) or type(dtype).__name__ == "StringDtype":
            alike.setdefault(dtype, []).append(j)
    cells = dict[int, Objects]()
    for dtype, places in alike.items():
        if isinstance(dtype, np.dtype) and dtype.kind != "O":
            block = np.ascontiguousarray(frame.iloc[:, places].to_numpy().T)
            cells |= zip(places, block, strict=True)
            continue
        for j, its in zip(places, _objects(frame, places), strict=True):
            if its.size and set(map(type, its.tolist())) == {str}:
                cells[j] = np.ascontiguousarray(its)
    return cells


def _objects(frame: Any, places: list[int]) -> Objects:
    """The cells of some columns as objects, (columns, rows)."""
    if len(frame) == 1:
        # a row of many columns of texts at once: column by column it takes five times as long
        return np.asarray(frame.iloc[0].to_numpy(dtype=object)[places][:, None])
    return np.asarray(frame.iloc[:, places].to_numpy(dtype=object).T)


def _usual_column(column: TableColumn, values: Floats) -> Any:
    """A native array of pandas for numbers that stand for themselves, or categories; None for others."""
    if column.quantity is not None or (column.template is not None and not column.categorical):
        return None
    if column.template is None:
        return _narrow(values, column.dtype)
    cells, template = column.template.array.take(column.places(values)), column.template
    # a frame would make its own texts of objects
    return type(template)(cells, dtype=object) if template.dtype == np.dtype(object) else cells


def _narrow(values: Floats, dtype: np.dtype[Any]) -> Objects:
    """Cast back to the user's dtype; whole numbers become floats where the matrix holds others."""
    # a truncated value is not the one that is explained
    with np.errstate(invalid="ignore", over="ignore"):
        cast = values.astype(dtype)
    return cast if dtype.kind == "f" or np.array_equal(cast, values) else values.copy()


def _frame_of(kind: Any, arrays: Sequence[Any], labels: Any) -> Any:
    """A frame of these arrays."""
    frame = kind(dict(enumerate(arrays)), copy=True)
    frame.columns = labels
    return frame


# -- tables -----------------------------------------------------------------------------------------------


class EncodedRows(NamedTuple):
    matrix: Floats  # (m, d)
    positions: Ints  # (m,) among all rows
    errors: Mapping[int, str]  # what is wrong at each other position


@dataclass(frozen=True, eq=False)
class Table:
    """A background table: its columns, its float64 matrix, and the encoding and decoding of rows."""

    columns: tuple[TableColumn, ...]
    matrix: Floats  # (n, d), read-only
    converter: FrameConverter | ArrayConverter  # makes tables of the background's kind
    order: tuple[int, ...] | None = None  # of the columns as the model takes them; None: the table's
    remark: str = ""  # where the model was fitted on other columns

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def keys(self) -> Names:
        """The user's own names of the columns."""
        labels = getattr(self.converter, "labels", None)
        return Names(self.names if labels is None else labels)

    @property
    def ungrouped(self) -> Table:
        """The table itself, whose columns are no groups."""
        return self

    @property
    def groups(self) -> Mapping[int, Any]:
        """Columns that are groups of columns, by their positions."""
        return {}

    def plain(self, matrix: Floats) -> Floats:
        """Rows (m, d) as rows of all columns, where groups of columns are apart."""
        return matrix

    def encoded(self, plain: Floats) -> Floats:
        """The reverse of ``plain``."""
        return plain

    def lend(self, plain: Floats) -> AbstractContextManager[Floats]:
        """Encoded rows that are used in one place alone, and leave nothing in the table."""
        return nullcontext(plain)

    def by_column(self, entries: Any) -> Any:
        """A list with an entry for each column; what is no list stays."""
        return entries

    def for_model(self, model: Any) -> Table:
        """The table of a model: it is given the columns in the order in which it was fitted on them."""
        named = isinstance(self.converter, FrameConverter)
        if not named:
            return self
        return replace(self, order=model_order(model, self.names), remark=other_columns(model, self.names))

    @property
    def schema(self) -> Schema:
        """The columns as the model takes them."""
        columns = self.columns if self.order is None else [self.columns[j] for j in self.order]
        levels = tuple(c.levels if c.coded else () for c in columns)
        return Schema(tuple(c.name for c in columns), levels, tuple(c.declared for c in columns))

    def form_of(self, form: Form) -> Form:
        """A form over the columns as the model takes them, as one over the table's."""
        return form if self.order is None else on_columns(form, self.order, len(self.columns))

    def as_model_takes(self, matrix: Floats) -> Floats:
        return matrix if self.order is None else matrix[:, self.order]

    @cached_property
    def numeric(self) -> Bools:
        return np.array([not column.categorical for column in self.columns])

    def values_of(self, column: int) -> list[Any]:
        """The distinct values of a column, by position, without missing ones."""
        return self.columns[column].values_of(self.matrix[:, column])

    @cached_property
    def of_few_whole_numbers(self) -> frozenset[int]:
        """Columns of numbers, by position, whose values are few and whole: a fraction of them is no value."""
        chosen = []
        for j, column in enumerate(self.columns):
            if not column.categorical:
                # most columns differ within a few rows
                few = len(np.unique(self.matrix[: 10 * FEW, j])) <= FEW + 1
                values = self.values_of(j) if few else []
                if 0 < len(values) <= FEW and all(map(float.is_integer, values)):
                    chosen.append(j)
        return frozenset(chosen)

    @classmethod
    def fit(cls, background: Any, *, categorical: Any = None) -> Table:
        """Learn names, levels and dtypes; ``categorical`` are columns of numbers taken as categories."""
        if hasattr(background, "predict") or callable(background):
            kind = type(background).__name__
            raise InputError(f"the background is a model ({kind}): pass the model first, then the table")
        raw = open_table(background)
        if raw.converter is None or not raw.arrays or not raw.arrays[0].size:
            raise InputError(
                f"the background ({type(background).__name__}) must be a table with rows and "
                "columns: pass a dataframe, or an array of two dimensions"
            )
        names = names_of(raw)
        chosen = Names(raw.keys or names).chosen("categorical", categorical)
        columns, encoded = [], []
        each = [None] * len(raw.arrays) if raw.frame is None else raw.frame.iter_columns()
        for j, (values, series) in enumerate(zip(raw.arrays, each, strict=True)):
            column = learn(names[j], values, series=series, chosen=j in chosen)
            encoded.append(encode(column, values, "background row"))
            cells = template_of(column, encoded[-1], values if series is None else series)
            columns.append(replace(column, template=cells))
        matrix = np.column_stack(encoded)
        matrix.setflags(write=False)
        return cls(tuple(columns), matrix, raw.converter)

    @classmethod
    def of_background(cls, background: Any, reference: Any, law: str | None, *, categorical: Any) -> Table:
        """The table of a background, or of one row that contributions lead from, if that is alone."""
        if reference is not None and law is not None:
            raise InputError(f"law={law!r}: reference= is the law, pass one of the two")
        if background is not None:
            return cls.fit(background, categorical=categorical)
        if reference is None:
            raise InputError(
                "background= is missing: pass the training data, or a few hundred rows of it. None is needed "
                "with reference=, one row that contributions lead from, and with law='covers', which counts "
                "the training rows of trees"
            )
        return cls.of_one_row(reference, categorical=categorical)

    @classmethod
    def of_one_row(cls, row: Any, *, categorical: Any = None) -> Table:
        """The table of one row; numbers may be missing in others."""
        if isinstance(row, Mapping):
            raise InputError("reference= is a mapping: pass a frame of one row, or a background beside it")
        table = cls.fit(as_table(row), categorical=categorical)
        if len(table.matrix) != 1:
            raise InputError(
                f"reference= is one row, and this table has {len(table.matrix)}: pass one of them"
            )
        columns = (
            replace(column, missing=True) if column.is_plain and column.template is None else column
            for column in table.columns
        )
        return replace(table, columns=tuple(columns))

    def of_numbers(self) -> Table:
        """The table, refused if it has times, durations, periods or decimals."""
        for column in self.columns:
            if column.quantity is not None:
                raise unreadable(f"column {column.name!r}", column.quantity.dtype)
        return self

    def held(self, hold: Any) -> tuple[str, ...]:
        """Names of the columns that ``hold`` names, in their order."""
        at = self.keys.chosen("hold", hold)
        if len(at) == len(self.columns):
            raise InputError("hold= names every column, and nothing is left to change: leave one out")
        return tuple(self.names[j] for j in sorted(at))

    def with_levels_of(self, X: Any) -> Table:
        """The same background with the categories of ``X`` that it does not have as levels without mass."""
        if isinstance(self.converter, ArrayConverter) and self.converter.dtype.kind == "U":
            return self  # it would cut longer texts
        pairs = zip(self.columns, self._aligned(open_table(X)), strict=True)
        new = [column.new_levels(values) for column, values in pairs]
        if not any(new):
            return self
        columns = zip(self.columns, new, strict=True)
        return replace(self, columns=tuple(c.with_levels(more) if more else c for c, more in columns))

    @cached_property
    def absent_categories(self) -> dict[int, Floats]:
        """Codes of levels that no row has, by column: explained rows brought them (`with_levels_of`)."""
        codes = {
            j: np.setdiff1d([*column.codes.values()], self.matrix[:, j])
            for j, column in enumerate(self.columns)
            if column.categorical
        }
        return {j: its for j, its in codes.items() if its.size}

    def with_categories(self, columns: Sequence[int]) -> Table:
        """The same background with further columns of numbers, by position, as categories."""
        if not columns:
            return self
        chosen = [column.name for j, column in enumerate(self.columns) if column.categorical or j in columns]
        learnt = Table.fit(replace(self, order=None).decode(self.matrix), categorical=chosen)
        its, matrix = [*self.columns], self.matrix.copy()
        for j in columns:
            its[j], matrix[:, j] = learnt.columns[j], learnt.matrix[:, j]
        matrix.setflags(write=False)
        return replace(self, columns=tuple(its), matrix=matrix)

    def with_codes(self, columns: Collection[int]) -> Table:
        """The same background with positions of categories of these columns, in place of odd numbers.

        The table itself where all are small whole numbers.
        """
        odd = [j for j in columns if self.columns[j].has_odd_codes]
        if not odd:
            return self
        matrix, its = self.matrix.copy(), [*self.columns]
        for j in odd:
            places = its[j].places(matrix[:, j])
            matrix[:, j] = np.where(np.isnan(matrix[:, j]), np.nan, places)
            its[j] = replace(its[j], coded=True)
        matrix.setflags(write=False)
        return replace(self, columns=tuple(its), matrix=matrix)

    def encode(self, X: Any) -> Floats:
        """Turn one row or many into a matrix (m, d); columns match by name, or else by position."""
        numbers = self._numbers(X)
        if numbers is not None:
            return np.array(numbers, dtype=np.float64, ndmin=2)
        arrays = self._aligned(open_table(X))
        if not arrays[0].size:
            raise InputError("there are no rows to explain: pass at least one")
        return encode_all(self.columns, arrays)

    def encode_rows(self, X: Any, errors: str) -> EncodedRows:
        """Turn rows into a matrix: all of them, for "row" those whose cells are all usable."""
        if errors == "raise" or self._numbers(X) is not None:
            matrix = self.encode(X)
            return EncodedRows(matrix, np.arange(len(matrix)), {})
        arrays = self._aligned(open_table(X))
        n, wrong = arrays[0].size, dict[int, str]()
        while True:
            positions = np.setdiff1d(np.arange(n), [*wrong])
            if not positions.size:
                raise InputError(
                    f"no row can be explained: {next(iter(wrong.values()), 'there are no rows')}"
                )
            before = len(wrong)
            columns = []
            for column, values in zip(self.columns, arrays, strict=True):
                try:
                    columns.append(encode(column, values[positions]))
                except CellError as error:
                    for row, text in error.rows.items():
                        wrong.setdefault(int(positions[row]), text)
            if len(wrong) == before:
                return EncodedRows(np.column_stack(columns), positions, wrong)

    def _numbers(self, X: Any) -> Reals | None:
        """X, one row or many, as an array if that is its own matrix: floats in columns of numbers."""
        if not self.is_plain:
            return None
        if isinstance(self.converter, FrameConverter) and self.converter.is_like(X):
            X = X.to_numpy()
        plain = type(X) is np.ndarray and X.dtype.kind == "f" and X.size > 0  # masked arrays are not plain
        if not plain or X.ndim not in (1, 2) or X.shape[-1] != len(self.columns):
            return None
        return X if float(np.abs(X).max()) <= EXACT else None  # not so for infinite and missing values

    @cached_property
    def is_plain(self) -> bool:
        """Whether the matrix is the table itself: columns of numbers that stand for themselves."""
        return all(column.is_plain for column in self.columns)

    @cached_property
    def _all_floats(self) -> bool:
        return self.is_plain and all(column.dtype == np.float64 for column in self.columns)

    def decode(self, matrix: Floats) -> Any:
        """Turn a matrix (m, d) into a table as the model takes it, of the background's kind and dtypes."""
        matrix, converter = np.asarray(matrix, dtype=np.float64), self.converter
        if self.order is None or not isinstance(converter, FrameConverter):
            return converter.restore(self.columns, matrix)
        columns = tuple(self.columns[j] for j in self.order)
        return converter.in_order(self.order).restore(columns, matrix[:, self.order])

    def advice(self, matrix: Floats) -> str:
        """Get what to do where a model fails on rows (m, d) with values between those of a column's few."""
        whole, few = list[str](), list[str]()
        for j, (column, values) in enumerate(zip(self.columns, matrix.T, strict=True)):
            if column.integer and (values != np.rint(values)).any():
                whole.append(column.name)
            elif column.is_plain and len(its := self.values_of(j)) <= FEW:
                few += [column.name] if not np.isin(values[~np.isnan(values)], its).all() else []
        names = whole or few
        if not names:
            return ""
        what = "whole numbers" if whole else "few distinct values"
        return (
            f"{listed(names)} {'holds' if len(names) == 1 else 'hold'} {what} in the background, and "
            "perturbed rows lie between them: name those in categorical= that stand for things, such as rows "
            "of an embedding"
        )

    def originals(self, matrix: Floats) -> Objects:
        if self._all_floats and not np.isnan(matrix).any():
            return matrix  # floats stand for themselves
        matrix = np.asarray(matrix, dtype=np.float64)
        cells = matrix.astype(object)
        for j, column in enumerate(self.columns):
            if not column.is_plain or column.integer:
                cells[:, j] = column.originals(matrix[:, j])
        cells[np.isnan(matrix)] = None
        return cells

    def _aligned(self, raw: RawTable) -> list[Objects]:
        if isinstance(self.converter, FrameConverter) and self.converter.has_labels(raw.labels):
            return raw.arrays  # thousands of names take long to compare one by one
        columns = dict(zip(names_of(raw), raw.arrays, strict=True))
        named = isinstance(self.converter, FrameConverter) or not columns.keys().isdisjoint(self.names)
        if raw.keys is not None and named:
            return match_columns(columns, self.names)
        places = [int(key) for key in raw.keys or () if is_whole(key)]
        if sorted(places) == [*range(len(self.columns))] == [*range(len(columns))]:
            return [raw.arrays[place] for place in np.argsort(places)]  # of columns without names
        if len(raw.arrays) != len(self.columns):
            raise InputError(
                f"got {len(raw.arrays)} columns, expected {len(self.columns)} "
                f"({listed(self.names)}): pass a row of that length, or an array (rows, columns)"
            )
        return raw.arrays


def as_table(X: Any) -> Any:
    """A table of one row, with the columns of the frame that the row is from; tables as they are."""
    if getattr(X, "ndim", 2) == 1 and not isinstance(X, Mapping):
        return X.to_frame().T.infer_objects() if hasattr(X, "to_frame") else np.asarray(X)[None]
    if isinstance(X, Sequence) and X and not isinstance(X[0], Sequence | Mapping | np.ndarray):
        return np.asarray(X)[None]
    return X


# -- names of rows -------------------------------------------------------------------------------------------


def row_names(X: Any, ids: Any, encoded: EncodedRows) -> tuple[tuple[Any, ...], tuple[tuple[Any, str], ...]]:
    """Names of the rows that were encoded, and of the others with what is wrong there."""
    n = len(encoded.positions) + len(encoded.errors)
    if isinstance(ids, str) or not isinstance(ids, Iterable | None):
        raise InputError(f"ids={ids!r} must be a list of names, one for each of the {n} rows")
    names = ids_of(X, n) if ids is None else tuple(ids.tolist() if hasattr(ids, "tolist") else ids)
    if len(names) != n:
        raise InputError(f"ids has {len(names)} names for {n} rows: pass one for each row")
    kept = encoded.positions.tolist()
    chosen = names if len(kept) == n else tuple(names[i] for i in kept)
    return chosen, tuple((names[i], text) for i, text in sorted(encoded.errors.items()))


def ids_of(X: Any, rows: int) -> tuple[Any, ...]:
    """Names of rows: the index of a pandas frame, the name of a row of one, else positions."""
    index: Any = getattr(X, "index", None)
    if not hasattr(index, "tolist") or isinstance(X, Mapping):
        return tuple(range(rows))
    if np.ndim(X) == 1:
        return (0 if X.name is None else X.name,)
    return tuple(index.tolist())
