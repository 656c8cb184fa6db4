"""A table's columns in cells, between which the conditions of a rule are cut.

A number has cells between cuts, (cut, next cut], a category one cell a level, and missing values one more.
The box of a rule is a set of cells of each column: of numbers a run. Cuts lie between two neighbouring values
of the table, at thresholds of the model where it has some there, else at a short decimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._explainers.tables.columns import TableColumn
from limes._explainers.tables.laws import value_texts, writer_of
from limes._rules.bounds import Texture
from limes._rules.domain import Domain, Values

# Neighbouring values of a column between which it is cut, at most
_GAPS = 256
# Digits of a cut at most, and those of its text at least; sizes of numbers that need no exponent
_DIGITS, _FEWEST, _PLAIN = 17, 3, 6

# Which cells of each column a rule allows
Masks = tuple[Bools, ...]


@dataclass(frozen=True)
class Condition:
    """The values of one column that a rule allows.

    Attributes
    ----------
    column
        Its name.
    text
        The condition in words: "income > 40000", "purpose in {car, radio}".
    above, at_most
        Of a number: above < value <= at_most; None where there is no such end. Times, durations and decimals
        are numbers as the table encodes them.
    levels
        Of a category: the values that it may have, in the user's own words; None of a number.
    missing
        Whether a missing value meets the condition.

    Examples
    --------
    >>> import limes
    >>> X = [[1.0, 5.0], [2.0, 6.0], [3.0, 5.0], [4.0, 6.0]]
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, ["no", "no", "yes", "yes"])
    >>> condition = limes.rules.cover(tree, X).rules[0].conditions[0]
    >>> condition.column, condition.above, condition.at_most
    ('x0', None, 2.0)
    """

    column: str
    text: str
    above: float | None = None
    at_most: float | None = None
    levels: tuple[Any, ...] | None = None
    missing: bool = False


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """One column in cells; the last one is of missing values, if one may be missing."""

    column: TableColumn
    values: Values  # that are possible
    seen: Floats  # of the table, ascending
    cuts: Floats  # of numbers, ascending
    is_ordered: bool

    @property
    def numbers(self) -> int:
        """How many cells numbers or levels have."""
        if self.is_ordered:
            return self.cuts.size + 1 if self.values.has_numbers else 0
        return 0 if self.values.levels is None else self.values.levels.size

    @property
    def size(self) -> int:
        return self.numbers + self.values.missing

    def locate(self, x: Floats) -> Ints:
        """Return the cell of each value; -1 of one that is not possible."""
        points = self.cuts if self.is_ordered or self.values.levels is None else self.values.levels
        cells = np.searchsorted(points, x, "left").astype(np.int64)
        cells[~self.values.contains(x)] = -1
        cells[np.isnan(x)] = self.size - 1 if self.values.missing else -1
        return cells

    def typical(self, cell: int) -> float:
        """Return a possible value of a cell: of the table, if it has any there."""
        alone = np.zeros(self.size, dtype=np.bool_)
        alone[cell] = True
        return self.within(alone).nearest(np.nan, self.seen)

    def within(self, mask: Bools) -> Values:
        """Return the values in some cells."""
        if mask.all():
            return self.values
        missing, inside = bool(self.values.missing and mask[-1]), np.flatnonzero(mask[: self.numbers])
        if not inside.size:
            return Values(np.inf, -np.inf, missing=missing)
        if not self.is_ordered:
            assert self.values.levels is not None  # noqa: S101 - of categories
            return Values.of(*self.values.levels[inside].tolist(), *[np.nan] * missing)
        above, at_most = self._ends(inside)
        return self.values.between(above, at_most, missing=missing)

    def _ends(self, inside: Ints) -> tuple[float, float]:
        first, last = int(inside[0]), int(inside[-1])
        above = self.cuts[first - 1] if first > 0 else -np.inf
        return float(above), float(self.cuts[last] if last < self.cuts.size else np.inf)

    def condition(self, mask: Bools) -> Condition:
        """Write which cells are allowed."""
        name = self.column.name
        missing, inside = bool(self.values.missing and mask[-1]), np.flatnonzero(mask[: self.numbers])
        if not inside.size:
            return Condition(name, f"{name} is missing", levels=(), missing=True)
        if not self.is_ordered:
            assert self.values.levels is not None  # noqa: S101 - of categories
            codes = self.values.levels[inside]
            texts = [text.removeprefix(f"{name} = ") for text in value_texts(self.column, codes)]
            its = _or_missing(f"{name} {_one_of('=', 'in', texts)}", missing=missing)
            if inside.size > self.numbers - inside.size and missing == self.values.missing:
                absent = self.values.levels[np.flatnonzero(~mask[: self.numbers])]
                texts = [text.removeprefix(f"{name} = ") for text in value_texts(self.column, absent)]
                its = f"{name} {_one_of('!=', 'not in', texts)}"
            return Condition(name, its, levels=tuple(self.column.originals(codes).tolist()), missing=missing)
        above, at_most = self._ends(inside)
        return Condition(
            name,
            _or_missing(self._between(above, at_most), missing=missing),
            above=above if np.isfinite(above) else None,
            at_most=at_most if np.isfinite(at_most) else None,
            missing=missing,
        )

    def _between(self, above: float, at_most: float) -> str:
        name, ends = self.column.name, [end for end in (above, at_most) if np.isfinite(end)]
        if not ends:
            return f"{name} is recorded"
        texts = writer_of(self.column)(np.array(ends), self.seen)
        if self.column.is_plain:
            # the text allows no value that was not proved
            texts = [_inward(end, self.seen, up=end == above) for end in ends]
        is_next = at_most == (above + 1.0 if self.values.whole else np.nextafter(above, np.inf))
        if len(ends) == 2 and is_next:
            return f"{name} = {texts[1]}"
        low, signs = texts[0], ("<", ">")
        after = repr(float(np.nextafter(above, np.inf)))
        if self.column.is_plain and len(after) < len(low) - 1:  # "2.25 <=", not "2.2499999999999996 <"
            low, signs = after, ("<=", ">=")
        if not np.isfinite(above):
            return f"{name} <= {texts[-1]}"
        return f"{name} {signs[1]} {low}" if len(ends) == 1 else f"{low} {signs[0]} {name} <= {texts[-1]}"


def _or_missing(text: str, *, missing: bool) -> str:
    return f"({text} or missing)" if missing else text


def _one_of(sign: str, among: str, texts: Sequence[str]) -> str:
    return f"{sign} {texts[0]}" if len(texts) == 1 else f"{among} {{{', '.join(texts)}}}"


def _inward(end: float, seen: Floats, *, up: bool) -> str:
    """Write an end of an interval, no farther out, and with no value of the table beyond it inside.

    ``up`` is of lower ends, which are rounded up; three digits at least.
    """
    exact = Decimal(repr(end))  # in the fewest digits that are read as this number
    for digits in range(_FEWEST, _DIGITS + 1):
        unit = Decimal((0, (1,), exact.adjusted() - digits + 1))
        rounded = exact.quantize(unit, ROUND_CEILING if up else ROUND_FLOOR) if end else exact
        low, high = sorted((end, float(rounded)))
        if np.searchsorted(seen, low, "right") == np.searchsorted(seen, high, "right"):
            break
    plain = rounded.normalize()
    return f"{plain:f}" if -_PLAIN <= plain.adjusted() < _PLAIN + _PLAIN else str(plain)


@dataclass(frozen=True, eq=False)
class Cells:
    """All columns of a domain in cells."""

    domain: Domain
    columns: tuple[ColumnCells, ...]

    @classmethod
    def of(cls, domain: Domain, rows: Floats, texture: Callable[[int], Texture] | None) -> Cells:
        """Cut the columns of a domain between rows (n, d) that rules are to tell apart.

        ``texture`` is how what is searched depends on each column; None where that is not known.
        """
        columns = []
        for j, (column, values) in enumerate(zip(domain.table.columns, domain.columns, strict=True)):
            x = np.sort(rows[~np.isnan(rows[:, j]), j])
            is_ordered, cuts = not column.categorical, np.zeros(0)
            if is_ordered and values.has_numbers:
                cuts = _cuts(x, values, None if texture is None else texture(j))
            columns.append(ColumnCells(column, values, np.union1d(x, domain.seen[j]), cuts, is_ordered))
        return cls(domain, tuple(columns))

    @property
    def everywhere(self) -> Masks:
        return tuple(np.ones(column.size, dtype=np.bool_) for column in self.columns)

    def locate(self, rows: Floats) -> Ints:
        """Return the cells of rows, (n, columns)."""
        return np.stack([column.locate(rows[:, j]) for j, column in enumerate(self.columns)], axis=1)

    def values(self, masks: Masks) -> tuple[Values, ...]:
        return tuple(column.within(mask) for column, mask in zip(self.columns, masks, strict=True))

    def conditions(self, masks: Masks) -> tuple[Condition, ...]:
        """Write the conditions of a box; columns that it leaves free have none."""
        return tuple(
            column.condition(mask) for column, mask in zip(self.columns, masks, strict=True) if not mask.all()
        )


def holds(masks: Sequence[Bools], cells: Ints) -> Bools:
    """Return which rows of cells (n, columns) lie in a box."""
    inside = np.ones(len(cells), dtype=np.bool_)
    for j, mask in enumerate(masks):
        if not mask.all():
            inside &= mask[cells[:, j]] & (cells[:, j] >= 0)
    return inside


def _cuts(x: Floats, values: Values, texture: Texture | None) -> Floats:
    """Return cuts between neighbouring values of a column, ``x`` ascending."""
    gaps = np.flatnonzero(np.diff(x) > 0.0)
    if gaps.size > _GAPS:  # those nearest to even shares of the rows
        wanted = np.linspace(0, x.size, _GAPS + 2)[1:-1]
        gaps = np.unique(gaps[np.clip(np.searchsorted(gaps, wanted), 0, gaps.size - 1)])
    breaks = np.zeros(0) if texture is None else texture.breaks
    cuts = list[float]()
    for low, high in zip(x[gaps].tolist(), x[gaps + 1].tolist(), strict=True):
        inside = breaks[np.searchsorted(breaks, low) : np.searchsorted(breaks, high)]
        if inside.size:
            cuts += [float(inside[0]), float(inside[-1])]
        elif texture is None or texture.between not in (None, "constant"):
            cuts.append(_short(low, high, whole=values.whole))
    if values.whole:
        cuts = [float(np.floor(cut)) for cut in cuts]
    ends = np.unique(cuts)
    return ends[(ends >= values.low) & (ends < values.high)]


def _short(low: float, high: float, *, whole: bool) -> float:
    """Return a number of few digits near the middle of [low, high)."""
    middle = 0.5 * low + 0.5 * high
    if whole:
        return float(np.floor(middle))
    for digits in range(1, _DIGITS):
        cut = float(f"{middle:.{digits}g}")
        if low <= cut < high:
            return cut
    return low
