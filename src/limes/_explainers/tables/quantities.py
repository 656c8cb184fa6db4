"""Columns of times, durations, periods and decimals: as numbers, as cells of the column's dtype, as texts.

Times are days since 1970, in UTC where they have a time zone, and durations days: float64 holds those of a
hundred years around today to a microsecond. Dates are whole days, periods whole numbers of their frequency;
decimals are floats. A number that the explainer makes becomes the next such cell.
"""

from __future__ import annotations

import datetime as dt
import re
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np

from limes._arrays import Bools, Floats, Objects

# Microseconds of a day, and of what texts end with: the shortest that tells numbers apart is written
_DAY = 86_400_000_000
_ENDS = (_DAY, 60_000_000, 1_000_000, 1)
_TIMESPECS = ("", "minutes", "seconds", "microseconds")
_EPOCH = dt.datetime(1970, 1, 1)
# Days between which Python has dates
_FIRST, _LAST = -719_162, 2_932_896


@dataclass(frozen=True)
class Quantity(ABC):
    """How cells of one kind become numbers, and numbers cells."""

    dtype: Any  # of the column; None of objects
    whole: ClassVar[bool] = False  # whether cells are whole numbers, with nothing between two of them
    has_texts: ClassVar[bool] = True  # whether numbers are written in another way than numbers are

    @abstractmethod
    def number(self, cell: Any) -> float | None:
        """The number of a cell, or of its text, that is not missing; None if it has none that is exact."""

    @abstractmethod
    def cells(self, numbers: Floats) -> Objects:
        """Get what libraries make a column of, numpy's times or objects, at numbers (n,); NaN is missing."""

    def texts(self, numbers: Any, values: Floats | None = None) -> list[str]:
        """Texts of edges that leave the values (n,) on their sides, as short as they can be."""
        raise NotImplementedError

    @abstractmethod
    def why(self, cell: Any) -> str:
        """Return what is wrong with a cell that has no number."""


def numbers_of(quantity: Quantity, cells: Objects, blank: Bools) -> tuple[Floats, Bools]:
    """Numbers (n,) of cells, NaN where they are ``blank``; and which of them have none."""
    if cells.dtype.kind in "mM" and isinstance(quantity, _Days):
        return quantity.of_array(cells, blank)
    numbers = np.full(cells.size, np.nan)
    objects = list(cells) if cells.dtype.kind in "mM" else cells.tolist()
    for i in np.flatnonzero(~blank).tolist():
        number = quantity.number(objects[i])
        numbers[i] = np.nan if number is None else number
    return numbers, ~blank & np.isnan(numbers)


@dataclass(frozen=True)
class _Days(Quantity):
    """Times and durations, which are numbers of days."""

    kind: ClassVar[str]

    def of_array(self, cells: Objects, blank: Bools) -> tuple[Floats, Bools]:
        micros = cells.astype(f"{self.kind}8[us]")
        days = micros.astype(np.int64) / _DAY
        days[blank] = np.nan
        same = micros.astype(cells.dtype) == cells
        return days, ~blank & ~(same & (cells.dtype.kind == self.kind) & _is_exact(days, micros))

    def _micros(self, days: Floats) -> Any:
        present = np.where(np.isnan(days), 0.0, days)
        micros = np.rint(present * _DAY).astype(np.int64).astype(f"{self.kind}8[us]")
        micros[np.isnan(days)] = np.array("NaT", dtype=micros.dtype)
        return micros

    def cells(self, numbers: Floats) -> Objects:
        return np.asarray(self._micros(numbers))

    def texts(self, numbers: Any, values: Floats | None = None) -> list[str]:
        ordered = np.zeros(0) if values is None else np.sort(values[~np.isnan(values)])
        below, texts = np.searchsorted(ordered, numbers, side="right"), list[str]()
        micros = np.rint(numbers * _DAY).astype(np.int64)
        for end, timespec in zip(_ENDS, _TIMESPECS, strict=True):
            floors = [self.floor(micro, end) for micro in micros.tolist()]
            texts = [self.text(floor, timespec) for floor in floors]
            sides = np.searchsorted(ordered, np.array(floors) / _DAY, side="right")
            if len({*floors}) == len({*micros.tolist()}) and np.array_equal(sides, below):
                break
        return texts

    def floor(self, micros: int, end: int) -> int:
        return micros // end * end

    def text(self, micros: int, timespec: str) -> str:
        raise NotImplementedError


def _is_exact(days: Floats, micros: Any) -> Bools:
    """Whether days are whole microseconds, of years that have dates, as the cells."""
    with np.errstate(invalid="ignore"):
        back = np.rint(np.where(np.isnan(days), 0.0, days) * _DAY)
        return np.asarray((back == micros.astype(np.int64)) & (days >= _FIRST) & (days <= _LAST))


def _days_of(micros: int) -> float | None:
    days = micros / _DAY
    return days if round(days * _DAY) == micros else None


@dataclass(frozen=True)
class Times(_Days):
    zone: dt.tzinfo | None = None
    kind: ClassVar[str] = "M"

    def number(self, cell: Any) -> float | None:
        if isinstance(cell, str):
            try:
                cell = dt.datetime.fromisoformat(cell)
            except ValueError:
                return None
        if isinstance(cell, np.datetime64):
            days, bad = self.of_array(np.array([cell]), np.zeros(1, dtype=np.bool_))
            return None if bad[0] or self.zone is not None else float(days[0])
        if isinstance(cell, dt.date) and not isinstance(cell, dt.datetime):
            cell = dt.datetime(cell.year, cell.month, cell.day)
        if not isinstance(cell, dt.datetime) or getattr(cell, "nanosecond", False):
            return None
        if (cell.tzinfo is None) != (self.zone is None):
            return None
        since = cell - (_EPOCH if cell.tzinfo is None else _EPOCH.replace(tzinfo=dt.UTC))
        micros = since // dt.timedelta(microseconds=1)
        return _days_of(micros)

    def _local(self, micros: int) -> dt.datetime:
        time = _EPOCH + dt.timedelta(microseconds=micros)
        return time if self.zone is None else time.replace(tzinfo=dt.UTC).astimezone(self.zone)

    def floor(self, micros: int, end: int) -> int:
        local = self._local(micros)
        shift = (local.utcoffset() or dt.timedelta()) // dt.timedelta(microseconds=1)
        return (micros + shift) // end * end - shift

    def text(self, micros: int, timespec: str) -> str:
        local = self._local(micros)
        return local.isoformat(" ", timespec) if timespec else local.date().isoformat()

    def why(self, cell: Any) -> str:
        if isinstance(cell, dt.datetime) and (cell.tzinfo is None) != (self.zone is None):
            has = "no time zone" if cell.tzinfo is None else "a time zone"
            return f"has {has}, unlike the background's times: add it, or take it away"
        return _NO_QUANTITY.format("time of the years 1 to 9999, to the microsecond", "dt.round('us')")


_NO_QUANTITY = "is no {}, as the background's values of this column are: convert it, or round it ({})"


# As `text` writes durations; others put the sign before the days alone
_DURATION = re.compile(r"(-?)(\d{1,7}) days?(?: (\d\d:\d\d(?::\d\d(?:\.\d{6})?)?))?")


@dataclass(frozen=True)
class Durations(_Days):
    kind: ClassVar[str] = "m"

    def number(self, cell: Any) -> float | None:
        if isinstance(cell, str) and (parts := _DURATION.fullmatch(cell)):
            clock = dt.datetime.fromisoformat(f"1970-01-01 {parts[3] or '00:00'}")
            size = dt.timedelta(days=int(parts[2])) + (clock - _EPOCH)
            cell = -size if parts[1] else size
        if isinstance(cell, np.timedelta64):
            days, bad = self.of_array(np.array([cell]), np.zeros(1, dtype=np.bool_))
            return None if bad[0] else float(days[0])
        if not isinstance(cell, dt.timedelta) or getattr(cell, "nanoseconds", False):
            return None
        micros = cell // dt.timedelta(microseconds=1)
        return _days_of(micros)

    def text(self, micros: int, timespec: str) -> str:
        days, rest = divmod(abs(micros), _DAY)
        sign = "-" if micros < 0 else ""
        shown = f"{sign}{days} day{'' if days == 1 else 's'}"
        if not timespec:
            return shown
        return f"{shown} {(dt.datetime.min + dt.timedelta(microseconds=rest)).time().isoformat(timespec)}"

    def why(self, cell: Any) -> str:  # noqa: ARG002 - the same of all
        return _NO_QUANTITY.format("duration, to the microsecond", "dt.round('us')")


@dataclass(frozen=True)
class _Whole(Quantity):
    """Dates and periods, which are whole numbers: an edge between two of them is written as the one below."""

    whole: ClassVar[bool] = True

    def texts(self, numbers: Any, values: Floats | None = None) -> list[str]:  # noqa: ARG002 - of the quantity
        return [str(cell) for cell in self.cells(np.floor(numbers))]


@dataclass(frozen=True)
class Dates(_Whole):
    def number(self, cell: Any) -> float | None:
        if isinstance(cell, np.datetime64):
            cell = cell.astype("M8[us]").item()
        if isinstance(cell, str):
            try:
                cell = dt.datetime.fromisoformat(cell)
            except ValueError:
                return None
        if isinstance(cell, dt.datetime):
            if cell.tzinfo is not None or cell != dt.datetime(cell.year, cell.month, cell.day):
                return None
            cell = cell.date()
        return float(cell.toordinal() - _EPOCH.toordinal()) if isinstance(cell, dt.date) else None

    def cells(self, numbers: Floats) -> Objects:
        return _objects(numbers, lambda day: dt.date.fromordinal(int(np.rint(day)) + _EPOCH.toordinal()))

    def why(self, cell: Any) -> str:  # noqa: ARG002 - the same of all
        return _NO_QUANTITY.format("date without a time", ".date()")


@dataclass(frozen=True)
class Periods(_Whole):
    """Periods of pandas, all of one frequency."""

    def number(self, cell: Any) -> float | None:
        if isinstance(cell, str):
            text, period = cell, sys.modules["pandas"].Period
            try:
                cell = period(text, freq=self.dtype.freq)
            except ValueError:
                return None
            if str(cell) != text:  # a day of a month is no month
                return None
        same = getattr(cell, "freq", None) == self.dtype.freq and hasattr(cell, "ordinal")
        return float(cell.ordinal) if same else None

    def cells(self, numbers: Floats) -> Objects:
        period: Any = sys.modules["pandas"].Period
        return _objects(numbers, lambda n: period(ordinal=int(np.rint(n)), freq=self.dtype.freq))

    def why(self, cell: Any) -> str:  # noqa: ARG002 - the same of all
        return _NO_QUANTITY.format(f"period of {self.dtype}", f".asfreq({self.dtype.freq.freqstr!r})")


@dataclass(frozen=True)
class Decimals(Quantity):
    scale: int | None = None  # digits behind the point, where the dtype fixes them
    has_texts: ClassVar[bool] = False

    def number(self, cell: Any) -> float | None:
        if not isinstance(cell, Decimal | int | float) or isinstance(cell, bool):
            return None
        number = float(cell)
        return number if isinstance(cell, float) or Decimal(repr(number)) == cell else None

    def cells(self, numbers: Floats) -> Objects:
        return _objects(numbers, self._decimal)

    def _decimal(self, number: float) -> Decimal:
        exact = Decimal(repr(number))
        return exact if self.scale is None else round(exact, self.scale)

    def why(self, cell: Any) -> str:  # noqa: ARG002 - the same of all
        return _NO_QUANTITY.format("decimal of fifteen digits", "round(..., 2)")


def _objects(numbers: Floats, make: Any) -> Objects:
    cells = np.full(numbers.size, None, dtype=object)
    for i, number in enumerate(numbers.tolist()):
        if not np.isnan(number):
            cells[i] = make(number)
    return cells


def quantity_of_objects(distinct: list[Any]) -> Quantity | None:
    """How objects that are no numbers or texts are cells: all dates, or all decimals; else None."""
    if distinct and all(isinstance(cell, Decimal) for cell in distinct):
        return Decimals(None)
    dates = bool(distinct) and all(isinstance(cell, dt.date) for cell in distinct)
    if dates and not any(isinstance(cell, dt.datetime) for cell in distinct):
        return Dates(None)
    return None


def quantity_of(series: nw.Series[Any]) -> Quantity | None:
    """How cells of a column are cells, by its dtype; None of numbers, texts, nothing and all else."""
    native = series.to_native()
    if isinstance(getattr(native, "dtype", None), np.dtype) and native.dtype.kind in "biuf":
        return None
    kind = series.dtype
    if series.null_count() == len(series):
        return None
    dtype: Any = getattr(native, "dtype", None)
    dtype = getattr(native, "type", None) if dtype is None else dtype  # of pyarrow
    match kind:
        case nw.Datetime():
            name = kind.time_zone
            return Times(dtype, None if name is None else _zone(name))
        case nw.Duration():
            return Durations(dtype)
        case nw.Date():
            return Dates(dtype)
        case nw.Decimal():
            arrow = getattr(dtype, "pyarrow_dtype", dtype)
            return Decimals(dtype, int(arrow.scale))
    # narwhals does not know pandas' periods, nor all of its time zones
    if type(dtype).__name__ == "DatetimeTZDtype":
        return Times(dtype, dtype.tz)
    return Periods(dtype) if type(dtype).__name__ == "PeriodDtype" else None


def _zone(name: str) -> dt.tzinfo:
    if re.fullmatch(r"(UTC)?[+-]\d\d:\d\d", name):
        return dt.datetime.fromisoformat(f"2000-01-01T00:00{name.removeprefix('UTC')}").tzinfo or dt.UTC
    return ZoneInfo(name)


def cells_of(quantity: Quantity, series: nw.Series[Any]) -> Objects:
    """The cells of a column: numpy's times, which have no zone, or objects."""
    if isinstance(quantity, Durations) or (isinstance(quantity, Times) and quantity.zone is None):
        return series.to_numpy()
    cells = np.empty(len(series), dtype=object)
    cells[:] = series.to_list()
    return cells


def column_of(quantity: Quantity, numbers: Floats, backend: Any) -> Any:
    """A native column of the dtype that numbers (n,) were made of."""
    library, cells = backend.to_native_namespace(), quantity.cells(numbers)
    if not backend.is_pandas_like():
        if backend.is_polars():
            column = library.Series("", cells if cells.dtype.kind in "mM" else cells.tolist())
            return column.cast(quantity.dtype)
        if cells.dtype.kind == "O":
            return library.chunked_array([library.array(cells.tolist(), type=quantity.dtype)])
        return library.chunked_array([library.array(cells).cast(quantity.dtype, safe=False)])
    if cells.dtype.kind == "O":
        return library.Series(cells, dtype=object if quantity.dtype is None else quantity.dtype)
    arrow = getattr(quantity.dtype, "pyarrow_dtype", None)
    # the cast to arrow's coarser units refuses what it would round
    column = library.Series(cells if arrow is None else cells.astype(f"{cells.dtype.kind}8[{arrow.unit}]"))
    if isinstance(quantity, Times) and quantity.zone is not None:
        column = column.dt.tz_localize("UTC")
    return column.astype(quantity.dtype)
