"""Domains: which rows of a table are possible.

A domain is a set of values for each column and relations between columns. What holds for all rows whose
columns take any of their values holds for the fewer rows that also obey the relations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import nextafter
from typing import Any, Never

import numpy as np

from limes._arrays import Floats
from limes._checks import did_you_mean, refuse_unknown
from limes._explainers.tables.dummies import find_dummies
from limes._explainers.tables.laws import number_texts, value_texts
from limes._explainers.tables.table import Table
from limes._explanation.drawing import Card, Printable
from limes._explanation.rules import FIXED
from limes._explanation.wording import count, one_line
from limes._names import text_of
from limes.exceptions import InputError

# Rows that would break an order by chance, if it were none, before it is proposed
_EXPECTED_BREAKS = 10.0
# Levels that a domain writes in words
_WRITTEN = 6


@dataclass(frozen=True, eq=False)
class Values:
    """Values that one column may take: numbers from low to high, whole ones or any, or ``levels``."""

    low: float
    high: float
    whole: bool = False
    levels: Floats | None = None  # ascending, without NaN
    missing: bool = False

    @classmethod
    def of(cls, *values: float) -> Values:
        numbers = np.unique([value for value in values if not np.isnan(value)])
        ends = (numbers[0], numbers[-1]) if numbers.size else (np.inf, -np.inf)
        return cls(float(ends[0]), float(ends[1]), levels=numbers, missing=len(numbers) < len({*values}))

    @property
    def has_numbers(self) -> bool:
        return self.low <= self.high if self.levels is None else self.levels.size > 0

    @property
    def is_one(self) -> bool:
        """Whether there is one value, or none."""
        numbers = int(self.has_numbers) if self.low >= self.high else 2
        return numbers + self.missing <= 1

    @property
    def is_listed(self) -> bool:
        return self.levels is not None

    def with_value(self, value: float) -> Values:
        """Return values that include one more; a range reaches up to it."""
        if np.isnan(value):
            return replace(self, missing=True)
        low, high = min(self.low, value), max(self.high, value)
        levels = None if self.levels is None else np.union1d(self.levels, value)
        return replace(
            self, low=low, high=high, levels=levels, whole=self.whole and float(value).is_integer()
        )

    def between(self, lower: float, upper: float, *, missing: bool = False) -> Values:
        """Return the values in (lower, upper], and the missing one if ``missing``."""
        missing = missing and self.missing
        if self.levels is not None:
            levels = self.levels[(self.levels > lower) & (self.levels <= upper)]
            ends = (levels[0], levels[-1]) if levels.size else (np.inf, -np.inf)
            return replace(self, low=float(ends[0]), high=float(ends[1]), levels=levels, missing=missing)
        low, high = max(self.low, nextafter(lower, np.inf)), min(self.high, upper)
        if self.whole:
            low, high = float(np.ceil(low)), float(np.floor(high))
        return replace(self, low=low, high=high, missing=missing)

    def among(self, values: Floats) -> Values:
        """Return those of these values, ascending and NaN last, that are possible."""
        kept = values[self.contains(values)]
        return Values.of(*kept.tolist()) if kept.size else Values(np.inf, -np.inf, levels=kept)

    def contains(self, values: Floats) -> Any:
        if self.levels is not None:
            inside = np.isin(values, self.levels)
        else:
            inside = (values >= self.low) & (values <= self.high)
            inside &= (values == np.floor(values)) if self.whole else True
        return np.where(np.isnan(values), self.missing, inside)

    def nearest(self, value: float, seen: Floats) -> float:
        """Return the possible value nearest another one: of those in a table (ascending), if it has any."""
        if not self.has_numbers:
            return np.nan
        if self.levels is not None:
            candidates = self.levels
        else:
            candidates = seen[np.searchsorted(seen, self.low) : np.searchsorted(seen, self.high, "right")]
            if self.whole:
                candidates = candidates[candidates == np.floor(candidates)]
        if np.isnan(value):
            value = candidates[candidates.size // 2] if candidates.size else self.low
        if candidates.size:
            return float(candidates[np.argmin(np.abs(candidates - value))])
        if self.low <= value <= self.high and (not self.whole or float(value).is_integer()):
            return float(value)
        # the middle: an end of a cell is where rounding would decide
        middle = 0.5 * self.low + 0.5 * self.high
        return float(np.clip(np.floor(middle), self.low, self.high)) if self.whole else middle


@dataclass(frozen=True, eq=False, repr=False)
class Domain(Printable):
    """Which rows of a table are possible: values of each column, and relations between columns.

    Made by :meth:`fit`. ``print(domain)`` writes it in words; a wrong proposal is corrected by the options of
    :meth:`fit`.

    Attributes
    ----------
    table
        The background, as :meth:`fit` encoded it.
    columns
        The values of each column: a range, whole numbers of a range, or levels, and whether one may be
        missing.
    one_hot
        Positions of columns of which exactly one is 1 in every row.
    orders
        Pairs of positions (a, b): a is at most b in every row.
    fixed
        Positions of columns that keep the value of the row that is explained.
    groups
        Positions of columns that are kept or change together.

    Examples
    --------
    >>> import limes
    >>> domain = limes.Domain.fit([[1, 2.5], [2, 4.0], [3, 3.5], [5, 7.25]])
    >>> print(domain)
    Domain of 2 columns
    x0: whole numbers from 1 to 5
    x1: from 2.5 to 7.25
    """

    table: Table
    columns: tuple[Values, ...]
    one_hot: tuple[tuple[int, ...], ...] = ()
    orders: tuple[tuple[int, int], ...] = ()
    fixed: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def fit(
        cls,
        background: Any,
        *,
        categorical: Any = None,
        fixed: Sequence[Any] = (),
        groups: Mapping[str, Sequence[Any]] | None = None,
        ranges: Mapping[Any, tuple[float, float]] | None = None,
        whole: Sequence[Any] | None = None,
        one_hot: Sequence[Sequence[Any]] | None = None,
        orders: Sequence[tuple[Any, Any]] | None = None,
        **unknown: Never,
    ) -> Domain:
        """Propose the domain that a background obeys.

        Parameters
        ----------
        background
            Table or array (n, columns), as for :class:`limes.TabularExplainer`.
        categorical
            Names or positions of columns of numbers that are categories: they take no other values.
        fixed
            Names of columns that keep the value of the row that is explained.
        groups
            Columns that are kept or change together, and make one fact, by a name:
            ``{"address": ["city", "district"]}``.
        ranges
            The least and the largest value of columns, by name, in the place of the background's.
        whole
            Names of columns of whole numbers. None: those whose values in the background are whole.
        one_hot
            Lists of columns of which exactly one is 1; each list makes one fact. None: those that the
            background has.
        orders
            Pairs (a, b) of columns with a <= b. None: those that hold in all rows of the background, where
            at least ten rows would break them if the two columns were independent.

        Raises
        ------
        InputError
            If the background, a name or an option is not usable, or the background breaks a relation.
        """
        refuse_unknown(unknown, Domain)
        table = Table.fit(background, categorical=categorical)
        place = _Places(table)
        wholes = None if whole is None else set(place.all("whole", whole))
        limits = {place("ranges", name): _range(name, ends) for name, ends in (ranges or {}).items()}
        columns = tuple(_values(table, j, wholes, limits.get(j)) for j in range(len(table.columns)))
        domain = cls(
            table,
            columns,
            fixed=tuple(place.all("fixed", fixed)),
            groups=tuple(tuple(place.all("groups", names)) for names in (groups or {}).values()),
        )
        hot = _dummies(table) if one_hot is None else [tuple(place.all("one_hot", its)) for its in one_hot]
        hot_ones = {j for its in hot for j in its}
        pairs = (
            _orders(domain, hot_ones)
            if orders is None
            else [tuple(place.all("orders", pair)) for pair in orders]
        )
        domain = replace(domain, one_hot=tuple(hot), orders=tuple((a, b) for a, b in pairs))
        domain.units  # noqa: B018 - checks that groups do not overlap
        both = {j for pair in domain.orders for j in pair} & {j for its in domain.one_hot for j in its}
        if both:
            raise InputError(
                f"column {table.names[min(both)]!r} is in one_hot= and in orders=: leave one out"
            )
        for row in range(len(table.matrix)):
            if broken := domain.broken(table.matrix[row]):
                raise InputError(f"row {row} of the background breaks {broken!r}: leave that relation out")
        return domain

    @classmethod
    def of_ranges(cls, table: Table) -> Domain:
        """Return the ranges of a table's columns, without relations.

        Parameters
        ----------
        table
            The background, encoded.
        """
        return cls(table, tuple(_values(table, j, None, None) for j in range(len(table.columns))))

    @cached_property
    def seen(self) -> tuple[Floats, ...]:
        """The background's distinct values of each column, without missing ones."""
        return tuple(np.unique(x[~np.isnan(x)]) for x in self.table.matrix.T)

    @cached_property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """The columns that make one fact together, all columns once; fixed ones make none."""
        together = [tuple(j for j in its if j not in self.fixed) for its in (*self.groups, *self.one_hot)]
        grouped = [j for its in together for j in its]
        if len(set(grouped)) < len(grouped):
            twice = next(j for j in grouped if grouped.count(j) > 1)
            raise InputError(f"column {self.table.names[twice]!r} is in two groups, or in one_hot= as well")
        first = {its[0]: its for its in together if its}
        alone = [j for j in range(len(self.columns)) if j not in self.fixed and j not in grouped]
        return tuple(first.get(j, (j,)) for j in sorted([*first, *alone]))

    @property
    def has_relations(self) -> bool:
        return bool(self.one_hot or self.orders)

    def broken(self, row: Floats) -> str:
        """Return a relation, in words, that a row breaks; "" if it breaks none.

        Parameters
        ----------
        row
            An encoded row, (d,).
        """
        for its in self.one_hot:
            cells = row[list(its)]
            if not (np.isin(cells, (0.0, 1.0)).all() and cells.sum() == 1.0):
                return self._one_hot_text(its)
        for a, b in self.orders:
            if row[a] > row[b]:
                return self._order_text(a, b)
        return ""

    def complete(self, values: Sequence[Values], row: Floats) -> Floats | None:
        """Return a row that takes one of the values in each column and obeys the relations; None without one.

        Values of other columns are the nearest ones to ``row``. Orders: lower ends rise and upper ends fall
        until each pair can be met, then every column takes its lowest value.

        Parameters
        ----------
        values
            The values that each column may take.
        row
            An encoded row, (d,).
        """
        chosen = [*values]
        if not self._choose_one_hot(chosen, row):
            return None
        self._narrow_ordered(chosen)
        if not all(possible.has_numbers or possible.missing for possible in chosen):
            return None
        new = np.array([its.nearest(x, seen) for its, x, seen in zip(chosen, row, self.seen, strict=True)])
        new[
            [its.missing and (np.isnan(x) or not its.has_numbers) for its, x in zip(chosen, row, strict=True)]
        ] = np.nan
        if self.broken(new):
            for j in {j for pair in self.orders for j in pair}:
                new[j] = chosen[j].low if chosen[j].has_numbers else np.nan
        return None if self.broken(new) else new

    def _choose_one_hot(self, chosen: list[Values], row: Floats) -> bool:
        """Choose which column of each group is 1, if possible the row's; return whether there is one."""
        for its in self.one_hot:
            hot = [j for j in its if chosen[j].contains(np.ones(1))[0]]
            forced = [j for j in its if not chosen[j].contains(np.zeros(1))[0]]
            if not hot or len(forced) > 1:
                return False
            one = forced[0] if forced else next((j for j in hot if row[j] == 1.0), hot[0])
            for j in its:
                chosen[j] = Values.of(float(j == one))
        return True

    def _narrow_ordered(self, chosen: list[Values]) -> None:
        """Raise lower ends and lower upper ends until no value of a column breaks an order for sure."""
        for _ in {j for pair in self.orders for j in pair}:
            for a, b in self.orders:
                if chosen[a].has_numbers and chosen[b].has_numbers:
                    chosen[a] = chosen[a].between(-np.inf, chosen[b].high, missing=True)
                    chosen[b] = chosen[b].between(nextafter(chosen[a].low, -np.inf), np.inf, missing=True)

    def lines(self, moves: Mapping[int, str] | None = None) -> Iterator[str]:
        """Write the values of each column and the relations.

        Parameters
        ----------
        moves
            Positions of columns that change in one direction alone, which is written: "rises".
        """
        for j, (column, values) in enumerate(zip(self.table.columns, self.columns, strict=True)):
            text = FIXED if j in self.fixed else self._values_text(j, values)
            is_moved = moves is not None and j in moves and j not in self.fixed
            yield f"{one_line(column.name)}: {text}{f', only {moves[j]}' if moves and is_moved else ''}"
        yield from self.relation_texts()
        for its in self.groups:
            yield f"{', '.join(self._names(its))}: kept or changed together"

    def relation_texts(self) -> tuple[str, ...]:
        """Return the relations between columns in words."""
        hot = tuple(map(self._one_hot_text, self.one_hot))
        return (*hot, *(self._order_text(a, b) for a, b in self.orders))

    def __repr__(self) -> str:
        relations = len(self.one_hot) + len(self.orders)
        return f"<Domain: {count(len(self.columns), 'column')}, {count(relations, 'relation')}>"

    def __str__(self) -> str:
        return "\n".join([f"Domain of {count(len(self.columns), 'column')}", *self.lines()])

    def _card(self) -> Card:
        return Card(title=f"Domain of {count(len(self.columns), 'column')}", remarks=tuple(self.lines()))

    def _values_text(self, j: int, values: Values) -> str:
        column = self.table.columns[j]
        missing = ", or missing" if values.missing else ""
        if values.levels is not None:
            texts = [t.removeprefix(f"{column.name} = ") for t in value_texts(column, values.levels)]
            more = f", ... ({len(texts)} in all)" if len(texts) > _WRITTEN else ""
            return f"{', '.join(map(one_line, texts[:_WRITTEN]))}{more}{missing}"
        if not values.has_numbers:
            return "missing"
        low, high = number_texts([values.low, values.high], self.seen[j])
        kind = "whole numbers " if values.whole else ""
        return f"{kind}from {low} to {high}{missing}" if values.low < values.high else f"{low}{missing}"

    def _names(self, positions: Iterable[int]) -> list[str]:
        return [one_line(self.table.names[j]) for j in positions]

    def _one_hot_text(self, its: tuple[int, ...]) -> str:
        return f"exactly one of {', '.join(self._names(its))} is 1"

    def _order_text(self, a: int, b: int) -> str:
        first, second = self._names((a, b))
        return f"{first} <= {second}"


@dataclass(frozen=True, eq=False)
class _Places:
    table: Table

    def __call__(self, option: str, name: Any) -> int:
        positions = self.table.keys.positions(name)
        if not positions:
            advice = did_you_mean(name, map(text_of, self.table.keys.names))
            raise InputError(f"{option}= names {name!r}, which is no column{advice}")
        return int(positions[0])

    def all(self, option: str, names: Any) -> list[int]:
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise InputError(f"{option}= must be a list of names, got {names!r}")
        return [self(option, name) for name in names]


def _range(name: Any, ends: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError) as problem:
        raise InputError(f"ranges[{name!r}] must be (low, high), got {ends!r}") from problem
    if not (np.isfinite([low, high]).all() and low <= high):
        raise InputError(f"ranges[{name!r}] needs finite numbers, low <= high; got {ends!r}")
    return low, high


def _values(table: Table, j: int, wholes: set[int] | None, limits: tuple[float, float] | None) -> Values:
    column, x = table.columns[j], table.matrix[:, j]
    numbers, missing = x[~np.isnan(x)], bool(np.isnan(x).any())
    if column.categorical or column.quantity is not None:
        if limits is not None:
            raise InputError(f"ranges= names {column.name!r}, whose values are no plain numbers")
        # of times and amounts only the background's are known to be possible
        points = column.points if column.categorical else np.append(np.unique(numbers), [np.nan] * missing)
        return Values.of(*points.tolist())
    if not numbers.size and limits is None:
        return Values(np.inf, -np.inf, missing=True)
    low, high = (float(numbers.min()), float(numbers.max())) if limits is None else limits
    is_whole = bool((numbers == np.floor(numbers)).all()) if wholes is None else j in wholes
    is_whole = is_whole or column.integer
    if is_whole:
        low, high = float(np.ceil(low)), float(np.floor(high))
    return Values(low, high, whole=is_whole, missing=missing)


def _dummies(table: Table) -> list[tuple[int, ...]]:
    every = [dummies.members for dummies in find_dummies(table.names, table.matrix)]
    return [its for its in every if len(its) > 1 and all(table.columns[j].is_plain for j in its)]


def _orders(domain: Domain, hot: Collection[int]) -> list[tuple[int, int]]:
    """Return pairs of columns that hold in all rows and that independent columns would break.

    Orders that follow from two others are left out.
    """
    x = domain.table.matrix
    numeric = [
        j
        for j, column in enumerate(domain.table.columns)
        if column.is_plain and j not in hot and domain.columns[j].low < domain.columns[j].high
    ]
    pairs = set[tuple[int, int]]()
    for a in numeric:
        for b in numeric:
            # values of b below the least of a are the ones that could break the order
            if a == b or not domain.columns[a].high > domain.columns[b].low:
                continue
            both = ~np.isnan(x[:, a]) & ~np.isnan(x[:, b])
            first, second = x[both, a], x[both, b]
            if not (first <= second).all():
                continue
            above = first.size - np.searchsorted(np.sort(first), second, "right")
            if above.mean() >= _EXPECTED_BREAKS:
                pairs.add((a, b))
    implied = {(a, c) for a, b in pairs for b2, c in pairs if b == b2}
    return sorted(pairs - implied)
