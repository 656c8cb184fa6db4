"""Any table in, a float64 matrix inside, the same kind of table out.

A pandas frame, a polars or pyarrow table, an array, a list of lists: below this door all are one
matrix. A number stands for itself, a text for its place among the levels that the background shows,
NaN for what is missing. The way back gathers texts from the background's own column, so that a
model meets the dtypes and categories that it was trained on.
"""

from __future__ import annotations

import difflib
import numbers
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects
from limes.exceptions import InputError

NUMBERS = (numbers.Real, np.bool_)
EXACT = 2.0**53  # beyond it float64 cannot tell neighbouring whole numbers apart
SHOWN = 10  # how many names or levels a message lists

INFINITE = "is not finite: replace it, or drop the row"
NO_NUMBER = "is no number, as this column of the background holds: convert it"
TOO_LARGE = "is beyond 2**53, where numbers lose their last digits: drop the column, or rescale it"
NEWLY_MISSING = (
    "is missing, but the background misses nothing in this column: impute it, or add rows with "
    "missing values to the background"
)

__all__ = ["Column", "Table"]


@dataclass(frozen=True, eq=False)
class Column:
    """What the background says about one column."""

    name: str
    categorical: bool
    levels: tuple[Any, ...]  # the user's own values; empty for numbers
    coded: bool  # the matrix holds places in `levels`, because they are not numbers themselves
    dtype: np.dtype[Any]  # of the numbers as the user stores them
    missing: bool  # the background has missing values here
    template: Any = field(default=None, repr=False)  # native cells to gather from, on the way back

    @property
    def integer(self) -> bool:
        """Whether the user stores whole numbers."""
        return not self.categorical and self.dtype.kind in "iu"

    @cached_property
    def codes(self) -> dict[Any, float]:
        """What stands for each level in the matrix."""
        return {v: float(i if self.coded else v) for i, v in enumerate(self.levels)}

    @cached_property
    def points(self) -> Floats:
        """Every value of a categorical column in the matrix, increasing; NaN last."""
        return np.array([*self.codes.values()] + [np.nan] * self.missing)

    def places(self, values: Floats) -> Ints:
        """Find encoded values among `points`."""
        at = np.minimum(np.searchsorted(self.points, values), self.points.size - 1)
        if not np.array_equal(self.points[at], values, equal_nan=True):
            raise InputError(f"column {self.name!r}: the matrix holds a value that is no level")
        return at

    def originals(self, values: Floats) -> Objects:
        """Give the user's own values, None for missing."""
        if self.categorical:
            own = np.fromiter((*self.levels, None), dtype=object, count=len(self.levels) + 1)
            return own[self.places(values)]
        cells = values.astype(object)
        cells[np.isnan(values)] = None
        if self.integer:
            whole = values == np.floor(values)
            cells[whole] = values[whole].astype(np.int64)
        return cells


def _learn(name: str, values: Objects, *, series: nw.Series[Any] | None, chosen: bool) -> Column:
    """Decide whether a column holds numbers or levels, and which."""
    order, dtype = (None, values.dtype) if series is None else _declared(series)
    chosen = chosen or order is not None
    known, missing = _distinct(values, name)
    if known is None and not chosen:
        return Column(name, False, (), False, dtype, missing)
    levels = np.unique(values[~np.isnan(values)]).tolist() if known is None else known
    numeric = all(isinstance(level, NUMBERS) for level in levels)
    boolean = all(isinstance(level, bool | np.bool_) for level in levels)
    if numeric and not boolean and not chosen:  # numbers in cells of objects
        whole = all(isinstance(level, numbers.Integral) for level in levels)
        return Column(name, False, (), False, np.dtype(np.int64 if whole else np.float64), missing)
    levels = _sorted(levels, name, [] if numeric else order or [])
    return Column(name, True, tuple(levels), not numeric, dtype, missing)


def _distinct(values: Objects, name: str) -> tuple[list[Any] | None, bool]:
    """Values other than missing, None for a column of numbers; and whether any is missing."""
    if values.dtype.kind in "iuf":
        blank = np.isnan(values)
        return [] if blank.all() else None, bool(blank.any())
    try:
        seen = dict.fromkeys(values.tolist())
    except TypeError as error:
        raise _unreadable(f"column {name!r}", "object with lists in its cells") from error
    known = [value for value in seen if not _is_missing(value)]
    return known, len(known) < len(seen)


def _sorted(levels: list[Any], name: str, order: list[Any]) -> list[Any]:
    if order:
        present = set(levels)
        return [level for level in order if level in present]
    for level in levels:
        if not isinstance(level, (str, *NUMBERS)):
            raise _unreadable(f"column {name!r}", f"object, with {level!r} in it")
    return sorted(levels, key=lambda level: (isinstance(level, str), level))


def _template(column: Column, values: Floats, cells: Any) -> Any:
    """One native cell for every level, or for "a number", and one for what is missing.

    None for numbers of a plain dtype, which need no pattern.
    """
    if column.categorical:
        rows = np.unique(values, return_index=True)[1]
    else:
        rows = np.unique(np.isnan(values), return_index=True)[1]
    if isinstance(cells, np.ndarray):
        return cells[rows].astype(object) if cells.dtype.kind in "OU" else None
    native = cells.to_native()
    numpy_backed = isinstance(getattr(native, "dtype", None), np.dtype)
    plain = native.dtype.kind in "iuf" if numpy_backed else _is_plain(cells)
    return None if plain and not column.categorical else cells[rows].to_native()


def _is_plain(series: nw.Series[Any]) -> bool:
    return not series.implementation.is_pandas_like() and series.null_count() == 0


def _encode(column: Column, values: Objects, where: str = "row") -> Floats:
    """Encode one column, or name the first cell that cannot be."""
    direct = values.dtype.kind in "biuf" and not column.coded
    floats = values.astype(np.float64) if direct else _looked_up(column, values, where)
    _refuse(column, values, where=where, bad=np.isinf(floats), why=INFINITE)
    if column.integer:
        _refuse(column, values, where=where, bad=np.abs(floats) > EXACT, why=TOO_LARGE)
    blank = np.isnan(floats)
    if not column.missing:
        _refuse(column, values, where=where, bad=blank, why=NEWLY_MISSING)
    if column.categorical and not column.coded:
        unseen = ~np.isin(floats, column.points) & ~blank
        _refuse(column, values, where=where, bad=unseen, why=_unseen(column))
    return floats


def _looked_up(column: Column, values: Objects, where: str) -> Floats:
    own = values.tolist()
    try:
        distinct = dict.fromkeys(own)
    except TypeError as error:
        raise _unreadable(f"column {column.name!r}", "object with lists in its cells") from error
    codes = {value: _code(column, value) for value in distinct}
    wrong = [value for value, code in codes.items() if code is None]
    if wrong:  # by identity: pandas.NA answers == with neither True nor False
        bad = np.array([value is wrong[0] for value in own])
        why = _unseen(column, wrong[0]) if column.categorical else NO_NUMBER
        _refuse(column, values, where=where, bad=bad, why=why)
    return np.fromiter(map(codes.__getitem__, own), dtype=np.float64, count=len(own))


def _code(column: Column, value: Any) -> float | None:
    if _is_missing(value):
        return np.nan
    if column.coded:
        return column.codes.get(value)
    return float(value) if isinstance(value, NUMBERS) else None


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _refuse(column: Column, values: Objects, *, where: str, bad: Bools, why: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        cell = values[row : row + 1].tolist()[0]
        raise InputError(f"{where} {row}, column {column.name!r}: {cell!r} {why}")


def _unseen(column: Column, value: Any = None) -> str:
    near = _near(value, [level for level in column.levels if isinstance(level, str)])
    return (
        f"does not occur in the background{near}, which knows {_list(column.levels)}. Use one of "
        "these, or add rows with the new value to the background"
    )


def _unreadable(where: str, dtype: object) -> InputError:
    return InputError(
        f"{where} has dtype {dtype}; numbers, booleans, text and categories can be explained: turn "
        "it into one of these (a date into a number of days, say), or drop it"
    )


def _narrow(values: Floats, dtype: np.dtype[Any]) -> Objects:
    """Cast back to the user's dtype, unless that would change a whole number."""
    with np.errstate(invalid="ignore", over="ignore"):
        cast = values.astype(dtype)
    return cast if dtype.kind == "f" or np.array_equal(cast, values) else values.copy()


def _near(wanted: Any, known: Iterable[str]) -> str:
    match = difflib.get_close_matches(str(wanted), known, n=1)
    return f" (did you mean {match[0]!r}?)" if match else ""


def _list(values: Collection[Any]) -> str:
    shown = [repr(value) for value in islice(values, SHOWN)]
    return ", ".join(shown) + (", ..." if len(values) > SHOWN else "") or "no value at all"


@dataclass(frozen=True, eq=False)
class Table:
    """A background table: its columns, its float64 matrix, and the way in and out for rows.

    Attributes
    ----------
    columns : tuple of Column
    matrix : array (n, d)
        The encoded background, read-only.
    """

    columns: tuple[Column, ...]
    matrix: Floats
    form: _Frame | _Array

    @property
    def names(self) -> tuple[str, ...]:
        """Column names; ``x0``, ``x1``, ... for arrays."""
        return tuple(column.name for column in self.columns)

    @property
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
            Columns of numbers to be taken as categories. Booleans, text and categories always are;
            so is a column whose values are all missing.

        Raises
        ------
        InputError
            A column that cannot be read, an infinite value, an empty table.
        """
        raw = _open(background)
        if raw.form is None or not raw.arrays or not raw.arrays[0].size:
            raise InputError(
                f"the background ({type(background).__name__}) must be a table with rows and "
                "columns: give a dataframe, or an array of two dimensions"
            )
        names = _names(raw)
        chosen = _chosen(categorical, raw.keys or [], names)
        columns, encoded = [], []
        for j, values in enumerate(raw.arrays):
            series = raw.series[j] if raw.series else None
            column = _learn(names[j], values, series=series, chosen=j in chosen)
            encoded.append(_encode(column, values, "background row"))
            cells = _template(column, encoded[-1], values if series is None else series)
            columns.append(replace(column, template=cells))
        matrix = np.column_stack(encoded)
        matrix.setflags(write=False)
        return cls(tuple(columns), matrix, raw.form)

    def encode(self, X: Any) -> Floats:
        """Turn rows into a matrix (m, d).

        Parameters
        ----------
        X : table, array, list, mapping or series
            One row or many, of any kind. Names are matched by name; where either side has no
            names, columns go by position.

        Raises
        ------
        InputError
            Columns that do not match; a cell that is infinite, unseen, not a number, or missing
            where the background misses nothing. Rows are counted from 0.
        """
        arrays = self._aligned(_open(X))
        if not arrays[0].size:
            raise InputError("there are no rows to explain: give at least one")
        pairs = zip(self.columns, arrays, strict=True)
        return np.column_stack([_encode(column, values) for column, values in pairs])

    def decode(self, matrix: Floats) -> Any:
        """Turn a matrix (m, d) into a table of the background's kind, names and dtypes.

        A column of whole numbers becomes float64 where the matrix holds other numbers, as a
        truncated value is not the one that is explained.
        """
        return self.form.restore(self.columns, np.asarray(matrix, dtype=np.float64))

    def originals(self, matrix: Floats) -> Objects:
        """Give the user's own values (m, d) for display; None for missing."""
        pairs = zip(self.columns, np.asarray(matrix, dtype=np.float64).T, strict=True)
        return np.column_stack([column.originals(values) for column, values in pairs])

    def _aligned(self, raw: _Raw) -> list[Objects]:
        found = dict(zip(_names(raw), raw.arrays, strict=True))
        named = isinstance(self.form, _Frame) or not found.keys().isdisjoint(self.names)
        if raw.keys is not None and named:
            return _by_name(found, self.names)
        if len(raw.arrays) != len(self.columns):
            raise InputError(
                f"got {len(raw.arrays)} columns, expected {len(self.columns)} "
                f"({_list(self.names)}): give a row of that length, or an array (rows, columns)"
            )
        return raw.arrays


@dataclass(frozen=True, eq=False)
class _Frame:
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
            return nw.new_series("", _narrow(values, column.dtype), backend=self.backend)
        template = nw.from_native(column.template, series_only=True)
        if column.categorical:
            return nw.maybe_reset_index(template[column.places(values)])
        blank = np.isnan(values) & column.missing
        known = _narrow(values[~blank], column.dtype)
        if known.dtype.kind == "f" and column.integer:
            template = template.cast(nw.Float64())
        # Gather first, so that missing cells and the dtype stay the library's own.
        cells = nw.maybe_reset_index(template[blank.astype(np.int64)])
        filled: nw.Series[Any] = cells.scatter(np.flatnonzero(~blank), known)
        return filled


@dataclass(frozen=True, eq=False)
class _Array:
    """The way back to a numpy array."""

    dtype: np.dtype[Any]

    def restore(self, columns: tuple[Column, ...], matrix: Floats) -> Any:
        if self.dtype.kind in "biuf":
            return _narrow(matrix, self.dtype)
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
        cells[~blank] = _narrow(values[~blank], column.dtype)
        return cells


class _Raw(NamedTuple):
    """A table as it came, one array a column."""

    keys: list[Hashable] | None  # the user's names; None where columns go by position
    arrays: list[Objects]
    series: list[nw.Series[Any]] | None = None
    form: _Frame | _Array | None = None  # None for a single row, which no background can be


def _by_name(found: dict[str, Objects], names: tuple[str, ...]) -> list[Objects]:
    lost = [name for name in names if name not in found]
    extra = [name for name in found if name not in names]
    if lost:
        guesses = ", ".join(repr(name) + _near(name, extra) for name in lost[:SHOWN])
        raise InputError(f"X lacks {len(lost)} columns of the background: {guesses}. Add them")
    if extra:
        raise InputError(f"X has columns that the background has not: {_list(extra)}. Drop them")
    return [found[name] for name in names]


def _names(raw: _Raw) -> list[str]:
    names = [f"x{j}" for j in range(len(raw.arrays))] if raw.keys is None else [*map(str, raw.keys)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"columns share a name: {_list(twice)}. Rename them")
    return names


def _chosen(categorical: Any, keys: list[Hashable], names: list[str]) -> set[int]:
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
        f"categorical={wanted!r} is no column{_near(wanted, names)}: give names or positions among "
        f"{_list(names)}"
    )


def _open(X: Any) -> _Raw:
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


def _from_frame(table: nw.DataFrame[Any]) -> _Raw:
    series = list(table.iter_columns())
    labels = table.to_native().columns if table.implementation.is_pandas_like() else None
    keys: list[Hashable] = list(table.columns if labels is None else labels)
    return _Raw(keys, [_cells(one) for one in series], series, _Frame(table.implementation, labels))


def _from_mapping(row: Mapping[Hashable, Any]) -> _Raw:
    cells = [np.atleast_1d(_as_array(value)) for value in row.values()]
    if len({one.shape for one in cells}) > 1 or any(one.ndim > 1 for one in cells):
        raise InputError("the columns of X differ in length: give each one value a row")
    return _Raw(list(row), cells)


def _from_array(X: Any) -> _Raw:
    array = _as_array(X)
    if array.ndim not in (1, 2):
        raise InputError(
            f"{type(X).__name__} of {array.ndim} dimensions is not a table: give a dataframe, "
            "an array (rows, columns), or one row"
        )
    form = _Array(array.dtype) if array.ndim == 2 else None
    return _Raw(None, list(np.atleast_2d(array).T), form=form)


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
        raise _unreadable(f"column {series.name!r}", series.dtype)
    if series.dtype != nw.Categorical or series.null_count() == 0:
        return _readable(series.to_numpy(), f"column {series.name!r}")
    # pyarrow forgets which categories are null
    cells = np.full(len(series), None, dtype=object)
    cells[~series.is_null().to_numpy()] = series.drop_nulls().to_numpy()
    return cells


def _readable(values: Objects, where: str) -> Objects:
    if values.dtype.kind not in "biufOU":
        raise _unreadable(where, values.dtype)
    return values


def _declared(series: nw.Series[Any]) -> tuple[list[Any] | None, Any]:
    """Categories in their order, if the column has any, and the dtype of its numbers."""
    native, kind = series.to_native(), series.dtype
    if kind in (nw.Categorical, nw.Enum):
        if series.implementation.is_pandas_like():
            return native.cat.categories.tolist(), np.dtype(object)
        return list(getattr(kind, "categories", ())), np.dtype(object)
    if kind in (nw.String, nw.Boolean, nw.Object) or series.null_count() == len(series):
        return None, np.dtype(object)
    try:
        return None, np.dtype(type(kind).__name__.lower())
    except TypeError as error:  # decimals among them: float64 does not hold them exactly
        raise _unreadable(f"column {series.name!r}", kind) from error
