"""One column of a user's table as numbers: levels, dtypes, missing values, and errors about its cells."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

import narwhals as nw
import numpy as np

from limes._arrays import EXACT, Bools, Floats, Ints, Objects, is_wide
from limes._checks import did_you_mean, listed
from limes.exceptions import CellError, InputError

NUMBERS = (numbers.Real, np.bool_)
# A message writes a whole number up to here in full
_LONGEST_WHOLE = 10**30

INFINITE = (
    "is not finite, and has no place in a column's law: replace it by a number beyond all others (trees send "
    "both the same way), by NaN if it means missing, or drop the row"
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
NEWLY_MISSING = (
    "is missing, but the background has no missing values in this column: impute it, or add rows with "
    "missing values to the background"
)


@dataclass(frozen=True, eq=False)
class TableColumn:
    """One column of the background."""

    name: str
    categorical: bool
    levels: tuple[Any, ...]  # the user's own values; empty for numbers
    coded: bool  # the matrix holds positions in `levels`, because float64 does not hold these themselves
    dtype: np.dtype[Any]  # of the numbers as the user stores them
    missing: bool  # the background has missing values here
    template: Any = field(default=None, repr=False)  # native cells that decoding gathers from

    @property
    def integer(self) -> bool:
        """Whether the user stores whole numbers."""
        return not self.categorical and self.dtype.kind in "iu"

    @cached_property
    def wide(self) -> bool:
        """Whether a level is a whole number that float64 cannot tell from its neighbours."""
        return any(map(is_wide, self.levels))

    @cached_property
    def codes(self) -> dict[Any, float]:
        """The number of each level in the matrix."""
        return {v: float(i if self.coded else v) for i, v in enumerate(self.levels)}

    @cached_property
    def points(self) -> Floats:
        """Every value of a categorical column in the matrix, increasing; NaN last."""
        return np.array([*self.codes.values()] + [np.nan] * self.missing)

    def with_levels(self, new: Sequence[str]) -> TableColumn:
        """Return a column of texts with further levels, which the background does not have."""
        first, size = len(self.levels), len(new)
        # the cell of missing values comes last
        order = np.array([*range(first), *[0] * size, *range(first, first + self.missing)])
        at = np.arange(first, first + size)
        if isinstance(self.template, np.ndarray):
            template = self.template[order]
            template[at] = new
        else:
            cells = nw.from_native(self.template, series_only=True)[order]
            template = nw.maybe_reset_index(cells).scatter(at, list(new)).to_native()
        return replace(self, levels=(*self.levels, *new), template=template)

    def new_levels(self, values: Objects) -> list[str]:
        """Return texts that are no levels, if the column's dtype lists none."""
        if not self.coded or _lists_levels(self.template) or not any(isinstance(v, str) for v in self.levels):
            return []
        return [
            value
            for value in dict.fromkeys(values.tolist())
            if isinstance(value, str) and value not in self.codes
        ]

    def places(self, values: Floats) -> Ints:
        """Return the positions of encoded values among `points`."""
        at = np.minimum(np.searchsorted(self.points, values), self.points.size - 1)
        if not np.array_equal(self.points[at], values, equal_nan=True):
            raise InputError(f"column {self.name!r}: the matrix holds a value that is no level")
        return at

    def originals(self, values: Floats) -> Objects:
        """Return the user's own values, None for missing."""
        if self.categorical:
            levels = np.fromiter((*self.levels, None), dtype=object, count=len(self.levels) + 1)
            return levels[self.places(values)]
        cells = values.astype(object)
        cells[np.isnan(values)] = None
        if self.integer:
            whole = (values == np.floor(values)) & (np.abs(values) <= EXACT)
            cells[whole] = values[whole].astype(np.int64)
        return cells


def learn(name: str, values: Objects, *, series: nw.Series[Any] | None, chosen: bool) -> TableColumn:
    """Decide whether a column holds numbers or levels, and which."""
    order, dtype = (None, values.dtype) if series is None else declared(series)
    chosen = chosen or order is not None
    distinct, missing = _distinct(values, name)
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


def declared(series: nw.Series[Any]) -> tuple[list[Any] | None, Any]:
    """Return categories in their order, if the column has any, and the dtype of its numbers."""
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
    """Return values other than missing, None for a column of numbers; and whether any is missing."""
    if values.dtype.kind in "iuf":
        blank = np.isnan(values)
        return [] if blank.all() else None, bool(blank.any())
    try:
        seen = dict.fromkeys(values.tolist())
    except TypeError as error:
        raise unreadable(f"column {name!r}", "object with lists in its cells") from error
    present = [value for value in seen if not _is_missing(value)]
    return present, len(present) < len(seen)


def _sorted(levels: list[Any], name: str, order: list[Any]) -> list[Any]:
    if order:
        present = set(levels)
        return [level for level in order if level in present]
    for level in levels:
        if not isinstance(level, (str, *NUMBERS)):
            raise unreadable(f"column {name!r}", f"object, with {level!r} in it")
    return sorted(levels, key=lambda level: (isinstance(level, str), level))


def template_of(column: TableColumn, values: Floats, cells: Any) -> Any:
    """Return one native cell for every level, or for "a number", and one for a missing value.

    None for numbers of a plain dtype, which need no template.
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


def _lists_levels(template: Any) -> bool:
    """Tell whether cells are of a dtype that lists its levels."""
    if isinstance(template, np.ndarray):
        return False
    return nw.from_native(template, series_only=True).dtype in (nw.Categorical, nw.Enum)


def _is_plain(series: nw.Series[Any]) -> bool:
    return not series.implementation.is_pandas_like() and series.null_count() == 0


def encode(column: TableColumn, values: Objects, where: str = "row") -> Floats:
    """Encode one column; raise for the first cell that cannot be encoded."""
    direct = values.dtype.kind in "biuf" and not column.coded
    floats = values.astype(np.float64) if direct else _looked_up(column, values, where)
    _refuse(column, values, where=where, bad=np.isinf(floats), why=_always(INFINITE))
    if column.integer:
        _refuse(column, values, where=where, bad=_beyond(values, floats), why=_always(TOO_LARGE))
    blank = np.isnan(floats)
    if not column.missing:
        _refuse(column, values, where=where, bad=blank, why=_always(NEWLY_MISSING))
    if column.categorical and not column.coded:
        unseen = ~np.isin(floats, column.points) & ~blank
        _refuse(column, values, where=where, bad=unseen, why=_always(_unseen(column)))
    return floats


def _beyond(values: Objects, floats: Floats) -> Bools:
    """Tell which numbers are beyond 2**53; rounded to a float the first beyond it is 2**53 itself."""
    beyond = np.abs(floats) > EXACT
    for i in np.flatnonzero(np.abs(floats) == EXACT).tolist():
        beyond[i] = abs(values[i]) > int(EXACT)
    return beyond


def _looked_up(column: TableColumn, values: Objects, where: str) -> Floats:
    cells = values.tolist()
    try:
        distinct = dict.fromkeys(cells)
    except TypeError as error:
        raise unreadable(f"column {column.name!r}", "object with lists in its cells") from error
    codes = {value: _code(column, value) for value in distinct}
    wrong = [value for value, code in codes.items() if code is None]
    if wrong:
        bad = np.array([codes[value] is None for value in cells])
        why = cache(partial(_unseen, column)) if column.categorical else _always(NO_NUMBER)
        _refuse(column, values, where=where, bad=bad, why=why)
    return np.fromiter(map(codes.__getitem__, cells), dtype=np.float64, count=len(cells))


def _code(column: TableColumn, value: Any) -> float | None:
    if _is_missing(value):
        return np.nan
    if column.coded:
        return None if _is_rounded(column, value) else column.codes.get(value)
    try:
        return float(value) if isinstance(value, NUMBERS) else None
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _is_rounded(column: TableColumn, value: Any) -> bool:
    """Tell whether a value is a float in the place of one of several whole numbers."""
    return isinstance(value, float | np.floating) and abs(float(value)) >= EXACT and column.wide


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _refuse(
    column: TableColumn, values: Objects, *, where: str, bad: Bools, why: Callable[[Any], str]
) -> None:
    rows = np.flatnonzero(bad)
    if rows.size:
        cells = zip(rows.tolist(), values[rows].tolist(), strict=True)
        errors = {row: f"column {column.name!r}: {_shown(cell)} {why(cell)}" for row, cell in cells}
        first = int(rows[0])
        raise CellError(f"{where} {first}, {errors[first]}", errors)


def _shown(cell: Any) -> str:
    """Return a cell in an error; a whole number may have thousands of digits."""
    whole = isinstance(cell, int) and abs(cell) > _LONGEST_WHOLE
    return f"a whole number of {cell.bit_length()} bits" if whole else repr(cell)


def _always(text: str) -> Callable[[Any], str]:
    return lambda cell: text  # noqa: ARG005 - whatever the cell


def _unseen(column: TableColumn, value: Any = None) -> str:
    if not column.levels:
        return "does not occur in the background, which has no value in this column: drop the column"
    if _is_rounded(column, value):
        return ROUNDED
    close = did_you_mean(value, [level for level in column.levels if isinstance(level, str)])
    return (
        f"does not occur in the background{close}, which has {listed(column.levels)}. Use one of "
        "these, or add rows with the new value to the background"
    )


def unreadable(where: str, dtype: object) -> InputError:
    """Return the error for a dtype that cannot be explained, with those that can."""
    return InputError(
        f"{where} has dtype {dtype}; numbers, booleans, text and categories can be explained: turn "
        "it into one of these (such as a date into a number of days), or drop it"
    )


def column_positions(option: str, chosen: Any, keys: list[Hashable], names: list[str]) -> set[int]:
    """Return the positions of the columns that an option names; none for None."""
    if chosen is None:
        return set()
    single = isinstance(chosen, str) or not isinstance(chosen, Iterable)
    return {_position(option, wanted, keys, names) for wanted in ([chosen] if single else chosen)}


def _position(option: str, wanted: Any, keys: list[Hashable], names: list[str]) -> int:
    if not isinstance(wanted, bool | np.bool_):
        for labels in (keys, names):
            if wanted in labels:
                return labels.index(wanted)
        if isinstance(wanted, int | np.integer) and 0 <= wanted < len(names):
            return int(wanted)
    raise InputError(
        f"{option}={wanted!r} is not a column{did_you_mean(wanted, names)}: pass names or positions among "
        f"{listed(names)}"
    )
