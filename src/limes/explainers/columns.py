"""One column of a user's table as numbers: levels, dtypes, missing values, and words for what is wrong."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import islice
from typing import Any

import narwhals as nw
import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects
from limes.exceptions import CellError, InputError

NUMBERS = (numbers.Real, np.bool_)
EXACT = 2.0**53  # beyond it float64 cannot tell neighbouring whole numbers apart
SHOWN = 10  # how many names or levels a message lists

INFINITE = (
    "is not finite, and has no place in a column's law: replace it by a number beyond all others (trees send "
    "both the same way), by NaN if it means missing, or drop the row"
)
NO_NUMBER = "is no number, as this column of the background holds: convert it"
TOO_LARGE = "is beyond 2**53, where numbers lose their last digits: drop the column, or rescale it"
NEWLY_MISSING = (
    "is missing, but the background misses nothing in this column: impute it, or add rows with "
    "missing values to the background"
)


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


def learn(name: str, values: Objects, *, series: nw.Series[Any] | None, chosen: bool) -> Column:
    """Decide whether a column holds numbers or levels, and which."""
    order, dtype = (None, values.dtype) if series is None else declared(series)
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
    if values.dtype.kind in "iuf":
        blank = np.isnan(values)
        return [] if blank.all() else None, bool(blank.any())
    try:
        seen = dict.fromkeys(values.tolist())
    except TypeError as error:
        raise unreadable(f"column {name!r}", "object with lists in its cells") from error
    known = [value for value in seen if not _is_missing(value)]
    return known, len(known) < len(seen)


def _sorted(levels: list[Any], name: str, order: list[Any]) -> list[Any]:
    if order:
        present = set(levels)
        return [level for level in order if level in present]
    for level in levels:
        if not isinstance(level, (str, *NUMBERS)):
            raise unreadable(f"column {name!r}", f"object, with {level!r} in it")
    return sorted(levels, key=lambda level: (isinstance(level, str), level))


def template_of(column: Column, values: Floats, cells: Any) -> Any:
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


def encode(column: Column, values: Objects, where: str = "row") -> Floats:
    """Encode one column, or name the first cell that cannot be."""
    direct = values.dtype.kind in "biuf" and not column.coded
    floats = values.astype(np.float64) if direct else _looked_up(column, values, where)
    _refuse(column, values, where=where, bad=np.isinf(floats), why=_always(INFINITE))
    if column.integer:
        _refuse(column, values, where=where, bad=np.abs(floats) > EXACT, why=_always(TOO_LARGE))
    blank = np.isnan(floats)
    if not column.missing:
        _refuse(column, values, where=where, bad=blank, why=_always(NEWLY_MISSING))
    if column.categorical and not column.coded:
        unseen = ~np.isin(floats, column.points) & ~blank
        _refuse(column, values, where=where, bad=unseen, why=_always(_unseen(column)))
    return floats


def _looked_up(column: Column, values: Objects, where: str) -> Floats:
    own = values.tolist()
    try:
        distinct = dict.fromkeys(own)
    except TypeError as error:
        raise unreadable(f"column {column.name!r}", "object with lists in its cells") from error
    codes = {value: _code(column, value) for value in distinct}
    wrong = [value for value, code in codes.items() if code is None]
    if wrong:
        bad = np.array([codes[value] is None for value in own])
        why = cache(partial(_unseen, column)) if column.categorical else _always(NO_NUMBER)
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


def _refuse(column: Column, values: Objects, *, where: str, bad: Bools, why: Callable[[Any], str]) -> None:
    rows = np.flatnonzero(bad)
    if rows.size:
        cells = zip(rows.tolist(), values[rows].tolist(), strict=True)
        said = {row: f"column {column.name!r}: {cell!r} {why(cell)}" for row, cell in cells}
        first = int(rows[0])
        raise CellError(f"{where} {first}, {said[first]}", said)


def _always(text: str) -> Callable[[Any], str]:
    return lambda cell: text  # noqa: ARG005 - whatever the cell


def _unseen(column: Column, value: Any = None) -> str:
    close = near(value, [level for level in column.levels if isinstance(level, str)])
    return (
        f"does not occur in the background{close}, which knows {listed(column.levels)}. Use one of "
        "these, or add rows with the new value to the background"
    )


def unreadable(where: str, dtype: object) -> InputError:
    """Say what can be explained instead."""
    return InputError(
        f"{where} has dtype {dtype}; numbers, booleans, text and categories can be explained: turn "
        "it into one of these (a date into a number of days, say), or drop it"
    )


def narrow(values: Floats, dtype: np.dtype[Any]) -> Objects:
    """Cast back to the user's dtype, unless that would change a whole number."""
    with np.errstate(invalid="ignore", over="ignore"):
        cast = values.astype(dtype)
    return cast if dtype.kind == "f" or np.array_equal(cast, values) else values.copy()


def near(wanted: Any, known: Iterable[str]) -> str:
    """Give the nearest known name, whatever its case, as the end of a sentence."""
    folded = {name.casefold(): name for name in known}
    match = difflib.get_close_matches(str(wanted).casefold(), folded, n=1)
    return f" (did you mean {folded[match[0]]!r}?)" if match else ""


def listed(values: Collection[Any]) -> str:
    """Write out the first of many values."""
    shown = [repr(value) for value in islice(values, SHOWN)]
    return ", ".join(shown) + (", ..." if len(values) > SHOWN else "") or "no value at all"
