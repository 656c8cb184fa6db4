"""One column of a table: numbers, categories or quantities, how cells are encoded, and what is refused."""

from __future__ import annotations

import datetime as dt
import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

import narwhals as nw
import numpy as np

from limes._arrays import EXACT, Bools, Floats, Ints, Objects, is_wide
from limes._checks import did_you_mean, listed
from limes._explainers.tables.quantities import Quantity, numbers_of, quantity_of, quantity_of_objects
from limes.exceptions import CellError, InputError

NUMBERS = (numbers.Real, np.bool_)
# A message writes a whole number up to here in full
_LONGEST_WHOLE = 10**30
# Most distinct values of a column that has few: the days of a month
FEW = 31
# Whole numbers from 0 to below this are categories as they are: sets of trees have an entry for each
_PLAIN_CODES = 4096

INFINITE = (
    "is not finite, and has no place in a column's law: replace it by a number beyond all others (trees send "
    "both the same way), which is a separate cell as a code of missing=, by NaN if it means missing, or drop "
    "the row"
)
NO_NUMBER = "is not a number, as the background's values of this column are: convert it"
TOO_LARGE = (
    "is beyond 2**53, where numbers lose their last digits: drop the column, or rescale it; if its numbers "
    "are names, such as of orders, name it in categorical="
)
ROUNDED = (
    "is a float, which may have been any of several whole numbers beyond 2**53, as the background's are: "
    "pass the whole number itself, such as in a frame of one row (X.iloc[[i]], not X.iloc[i])"
)
NO_CELL = "is no single value: pass a number, a text or another value of the background's kind"
NEWLY_MISSING = (
    "is missing, but the background has no missing values in this column: impute it, or add rows with "
    "missing values to the background"
)


@dataclass(frozen=True, eq=False)
class TableColumn:
    name: str
    categorical: bool
    levels: tuple[Any, ...]  # the user's own values; empty for numbers
    coded: bool  # the matrix holds positions in `levels`, because float64 does not hold these themselves
    dtype: np.dtype[Any]  # of the numbers as the user stores them
    missing: bool  # the background has missing values here
    template: Any = field(default=None, repr=False)  # native cells that decoding gathers from
    quantity: Quantity | None = None  # of numbers that stand for times, durations, periods or decimals

    @property
    def is_plain(self) -> bool:
        """Whether numbers stand for themselves."""
        return not self.categorical and self.quantity is None

    @property
    def integer(self) -> bool:
        return not self.categorical and self.dtype.kind in "iu"

    @cached_property
    def wide(self) -> bool:
        """Whether a level is a whole number that float64 cannot tell from its neighbours."""
        return any(map(is_wide, self.levels))

    @cached_property
    def codes(self) -> dict[Any, float]:
        return {v: float(i if self.coded else v) for i, v in enumerate(self.levels)}

    @property
    def declared(self) -> tuple[Any, ...]:
        """All categories of pandas' dtype, whose positions are its codes; () without such a dtype."""
        categories: Any = getattr(getattr(self.template, "dtype", None), "categories", None)
        return tuple(categories.tolist()) if hasattr(categories, "get_indexer") else ()

    @property
    def has_order(self) -> bool:
        """Whether values rise and fall: numbers, and categories with an order, also those of polars' Enum."""
        if not self.coded:
            return True
        dtype: Any = getattr(self.template, "dtype", None)
        return bool(getattr(dtype, "ordered", False)) or type(dtype).__name__ == "Enum"

    @cached_property
    def points(self) -> Floats:
        """Every value of a categorical column in the matrix, increasing; NaN last."""
        return np.array([*self.codes.values()] + [np.nan] * self.missing)

    @property
    def has_odd_codes(self) -> bool:
        """Whether a category is a number that trees have no entry for: a fraction, below 0, or large."""
        return (
            self.categorical
            and not self.coded
            and any(not 0 <= level < _PLAIN_CODES or level % 1 for level in self.levels)
        )

    def values_of(self, cells: Floats) -> list[Any]:
        """The user's distinct values behind cells of the matrix, without missing ones."""
        return list(self.levels) if self.categorical else np.unique(cells[~np.isnan(cells)]).tolist()

    def with_levels(self, new: Sequence[Any]) -> TableColumn:
        """The same with further levels: numbers that stand for themselves in order, others last."""
        levels, first = [*self.levels, *new], len(self.levels)
        order = range(len(levels)) if self.coded else sorted(range(len(levels)), key=levels.__getitem__)
        its = tuple(levels[i] for i in order)
        if self.template is None:
            return replace(self, levels=its)
        at = np.array([place for place, i in enumerate(order) if i >= first])
        # the cell of missing values comes last
        source = np.array([*(i if i < first else 0 for i in order), *range(first, first + self.missing)])
        if isinstance(self.template, np.ndarray):
            template = self.template[source]
            template[at] = [its[place] for place in at.tolist()]
        else:
            cells = nw.from_native(self.template, series_only=True)[source]
            filled = nw.maybe_reset_index(cells).scatter(at, [its[place] for place in at.tolist()])
            template = filled.to_native()
        return replace(self, levels=its, template=template)

    def new_levels(self, values: Objects) -> list[Any]:
        """Categories that are no levels: those that the column's dtype lists, or any of the levels' kind."""
        if not self.categorical or not self.levels:
            return []
        # cells without a hash are refused when they are encoded, and missing ones are no categories
        cells = dict.fromkeys(filter(_has_hash, values.tolist()))
        distinct = [its for its in cells if not is_missing(its) and its not in self.codes]
        if self._listed is not None:
            return [its for its in distinct if its in self._listed]
        if any(isinstance(level, str) for level in self.levels):
            return [its for its in distinct if isinstance(its, str)]
        numbers = [its for its in distinct if isinstance(its, NUMBERS) and self._holds(its)]
        return [*map(type(self.levels[0]), numbers)]

    @property
    def _listed(self) -> tuple[Any, ...] | None:
        """All categories that the column's dtype admits; None if it admits any."""
        if self.template is None or isinstance(self.template, np.ndarray):
            return None
        dtype = nw.from_native(self.template, series_only=True).dtype
        if dtype == nw.Enum:
            return tuple(getattr(dtype, "categories", ()))
        return self.declared or None if dtype == nw.Categorical else None

    def _holds(self, number: Any) -> bool:
        """Whether a number has the kind of the levels, and a place in the column's dtype."""
        if not math.isfinite(number) or is_wide(number) or type(self.levels[0])(number) != number:
            return False
        limits = np.iinfo(self.dtype) if self.dtype.kind in "iu" else None
        return limits is None or limits.min <= number <= limits.max

    def places(self, values: Floats) -> Ints:
        """Positions of encoded values among `points`."""
        at = np.minimum(self.points.searchsorted(values), self.points.size - 1)
        points = self.points[at]
        if not ((points == values) | (np.isnan(points) & np.isnan(values))).all():
            raise InputError(f"column {self.name!r}: the matrix holds a value that is no level")
        return at

    @cached_property
    def _cells(self) -> Objects:
        """The user's own values, and None for a missing one."""
        return np.fromiter((*self.levels, None), dtype=object, count=len(self.levels) + 1)

    def originals(self, values: Floats) -> Objects:
        if self.categorical:
            return self._cells[self.places(values)]
        cells = values.astype(object)
        if self.quantity is not None and self.quantity.has_texts:
            present = ~np.isnan(values)
            texts = [self.quantity.texts(np.array([v]), np.array([v]))[0] for v in values[present]]
            cells[present] = texts
        cells[np.isnan(values)] = None
        if self.integer:
            whole = (values == np.floor(values)) & (np.abs(values) <= EXACT)
            cells[whole] = values[whole].astype(np.int64)
        return cells


def learn(name: str, values: Objects, *, series: nw.Series[Any] | None, chosen: bool) -> TableColumn:
    """Decide whether a column holds numbers or levels, and which."""
    floats = _floats_of(values, series)
    if floats is not None and not chosen:
        return TableColumn(name, False, (), False, floats, bool(np.isnan(values).any()))
    quantity = None if series is None else quantity_of(series)
    order: list[Any] | None = None
    dtype: Any = values.dtype if floats is None else floats
    if series is not None and floats is None and quantity is None:
        order, dtype = declared(series)
    chosen = chosen or order is not None
    distinct, missing = _distinct(values, name)
    quantity = quantity or quantity_of_objects(distinct or [])
    if quantity is not None:
        if chosen:
            raise unreadable(f"column {name!r}", quantity.dtype or type((distinct or [None])[0]).__name__)
        return TableColumn(name, False, (), False, np.dtype(np.float64), missing, quantity=quantity)
    if distinct is None and not chosen:
        return TableColumn(name, False, (), False, dtype, missing)
    levels = np.unique(values[~np.isnan(values)]).tolist() if distinct is None else distinct
    numeric = all(isinstance(level, NUMBERS) for level in levels)
    boolean = all(isinstance(level, bool | np.bool_) for level in levels)
    if numeric and not boolean and not chosen:  # numbers in cells of objects
        whole = all(isinstance(level, numbers.Integral) for level in levels)
        return TableColumn(name, False, (), False, np.dtype(np.int64 if whole else np.float64), missing)
    levels = _sorted(levels, name, [] if numeric else order or [])
    coded = not numeric or any(map(is_wide, levels))
    shown = tuple(level.item() if isinstance(level, np.generic) else level for level in levels)
    return TableColumn(name, True, shown, coded, dtype, missing)


def _floats_of(values: Objects, series: nw.Series[Any] | None) -> np.dtype[Any] | None:
    """The dtype of a column of plain floats, not all of which are missing; None for any other one."""
    dtype = values.dtype if series is None else getattr(series.to_native(), "dtype", None)
    is_plain = isinstance(dtype, np.dtype) and dtype.kind == values.dtype.kind == "f"
    return dtype if is_plain and not np.isnan(values).all() else None


def declared(series: nw.Series[Any]) -> tuple[list[Any] | None, Any]:
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
        raise unreadable(f"column {series.name!r}", kind) from error


def _distinct(values: Objects, name: str) -> tuple[list[Any] | None, bool]:
    """Values other than missing, None for a column of numbers; and whether any is missing."""
    if values.dtype.kind in "iufmM":
        blank = _blank(values)
        return [] if blank.all() else None, bool(blank.any())
    try:
        seen = dict.fromkeys(values.tolist())
    except TypeError as error:
        raise unreadable(f"column {name!r}", "object with lists in its cells") from error
    present = [value for value in seen if not is_missing(value)]
    return present, len(present) < len(seen)


def _sorted(levels: list[Any], name: str, order: list[Any]) -> list[Any]:
    if order:
        present = set(levels)
        return [level for level in order if level in present]
    for level in levels:
        if not isinstance(level, (str, *NUMBERS)):
            raise unreadable(f"column {name!r}", f"object, with {level!r} in it", _cast_of(levels))
    return sorted(levels, key=lambda level: (isinstance(level, str), level))


def _cast_of(levels: list[Any]) -> str:
    """Return what makes a column of times or durations of such cells; "" where nothing does."""
    if all(isinstance(level, dt.timedelta) for level in levels):
        return "pandas.to_timedelta(column)"
    if not all(isinstance(level, dt.date) for level in levels):
        return ""
    zones = {getattr(level, "tzinfo", None) for level in levels}
    return f"pandas.to_datetime(column{', utc=True' if len(zones) > 1 else ''})"


def template_of(column: TableColumn, values: Floats, cells: Any) -> Any:
    """One native cell for every level, or for "a number", and one for a missing value; None if not needed."""
    if column.quantity is not None:
        return None
    is_array = isinstance(cells, np.ndarray)
    native = cells if is_array else cells.to_native()
    if is_array:
        plain = native.dtype.kind not in "OU"
    elif isinstance(getattr(native, "dtype", None), np.dtype):
        plain = not column.categorical and native.dtype.kind in "iuf"
    else:
        is_whole = not cells.implementation.is_pandas_like() and cells.null_count() == 0
        plain = not column.categorical and is_whole
    if plain:
        return None
    rows = np.unique(values if column.categorical else np.isnan(values), return_index=True)[1]
    return cells[rows].astype(object) if is_array else cells[rows].to_native()


def encode(column: TableColumn, values: Objects, where: str = "row") -> Floats:
    if column.quantity is not None:
        blank = _blank(values)
        numbers, bad = numbers_of(column.quantity, values, blank)
        _refuse(column, values, where=where, bad=bad, why=column.quantity.why)
        if not column.missing:
            _refuse(column, values, where=where, bad=blank, why=NEWLY_MISSING)
        return numbers
    direct = values.dtype.kind in "biuf" and not column.coded
    floats = values.astype(np.float64) if direct else _looked_up(column, values, where)
    _refuse(column, values, where=where, bad=np.isinf(floats), why=INFINITE)
    if column.integer:
        _refuse(column, values, where=where, bad=_beyond(values, floats), why=TOO_LARGE)
    blank = np.isnan(floats)
    if not column.missing:
        _refuse(column, values, where=where, bad=blank, why=NEWLY_MISSING)
    if column.categorical and not column.coded:
        unseen = ~np.isin(floats, column.points) & ~blank
        _refuse(column, values, where=where, bad=unseen, why=_unseen(column))
    return floats


def encode_all(columns: Sequence[TableColumn], arrays: Sequence[Objects]) -> Floats:
    """Encode a row or many, (m, d)."""
    matrix, usual = np.empty((arrays[0].size, len(columns)), order="F"), list[int]()
    for j, (column, values) in enumerate(zip(columns, arrays, strict=True)):
        if values.dtype == np.float64 and column.is_plain and not column.integer:
            matrix[:, j] = values
            usual.append(j)
        elif values.size == 1 and column.coded and type(values[0]) is str and values[0] in column.codes:
            matrix[0, j] = column.codes[values[0]]
        else:
            matrix[:, j] = encode(column, values)
    # numbers that stand for themselves are looked at together; others are refused one by one
    for j in np.array(usual, dtype=np.int64)[~np.isfinite(matrix[:, usual]).all(axis=0)].tolist():
        matrix[:, j] = encode(columns[j], arrays[j])
    return np.ascontiguousarray(matrix)


def _beyond(values: Objects, floats: Floats) -> Bools:
    beyond = np.abs(floats) > EXACT
    # rounded to a float the first beyond it is 2**53 itself
    for i in np.flatnonzero(np.abs(floats) == EXACT).tolist():
        beyond[i] = abs(values[i]) > int(EXACT)
    return beyond


def _looked_up(column: TableColumn, values: Objects, where: str) -> Floats:
    cells = values.tolist()
    try:
        distinct = dict.fromkeys(cells)
    except TypeError:
        bad = np.array([not _has_hash(value) for value in cells])
        _refuse(column, values, where=where, bad=bad, why=NO_CELL)
        raise
    codes = {value: _code(column, value) for value in distinct}
    wrong = [value for value, code in codes.items() if code is None]
    if wrong:
        bad = np.array([codes[value] is None for value in cells])
        why = cache(partial(_unseen, column)) if column.categorical else NO_NUMBER
        _refuse(column, values, where=where, bad=bad, why=why)
    return np.fromiter(map(codes.__getitem__, cells), dtype=np.float64, count=len(cells))


def _code(column: TableColumn, value: Any) -> float | None:
    if is_missing(value):
        return np.nan
    if column.coded:
        return None if _is_rounded(column, value) else column.codes.get(value)
    try:
        return float(value) if isinstance(value, NUMBERS) else None
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _has_hash(cell: Any) -> bool:
    try:
        hash(cell)
    except TypeError:
        return False
    return True


def _is_rounded(column: TableColumn, value: Any) -> bool:
    """Whether a value is a float in the place of one of several whole numbers."""
    return isinstance(value, float | np.floating) and abs(float(value)) >= EXACT and column.wide


def _blank(values: Objects) -> Bools:
    if values.dtype.kind in "mM":
        return np.asarray(np.isnat(values))
    if values.dtype.kind in "iuf":
        return np.isnan(values)
    return np.array([is_missing(value) for value in values.tolist()], dtype=np.bool_)


def is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _refuse(
    column: TableColumn, values: Objects, *, where: str, bad: Bools, why: str | Callable[[Any], str]
) -> None:
    rows = np.flatnonzero(bad)
    if rows.size:
        errors = {}
        for row, value in zip(rows.tolist(), values[rows].tolist(), strict=True):
            reason = why if isinstance(why, str) else why(value)
            errors[row] = f"column {column.name!r}: {_shown(value)} {reason}"
        first = int(rows[0])
        raise CellError(f"{where} {first}, {errors[first]}", errors)


def _shown(cell: Any) -> str:
    # a whole number may have thousands of digits
    whole = isinstance(cell, int) and abs(cell) > _LONGEST_WHOLE
    return f"a whole number of {cell.bit_length()} bits" if whole else repr(cell)


def _unseen(column: TableColumn, value: Any = None) -> str:
    if not column.levels:
        return (
            "does not occur in the background, which has no value in this column: add rows with values, or "
            "drop the column; where a reference lacks the value, pass a background, and call "
            "explainer.between(rows, reference)"
        )
    if _is_rounded(column, value):
        return ROUNDED
    close = did_you_mean(value, [level for level in column.levels if isinstance(level, str)])
    return (
        f"does not occur in the background{close}, which has {listed(column.levels)}. Use one of "
        "these, or add rows with the new value to the background"
    )


def unreadable(where: str, dtype: object, cast: str = "") -> InputError:
    """The error of cells that are not read; ``cast`` is what makes a column of them that is."""
    advice = f"pass {cast}" if cast else "turn it into one of these (such as a date into a number of days)"
    return InputError(
        f"{where} has dtype {dtype}; numbers, booleans, text, categories and columns of times can be "
        f"explained: {advice}, or drop it"
    )
