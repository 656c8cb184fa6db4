r"""Moments at many rows under smooth weights, where every row has separate laws.

A column's laws at a block of rows are tilted together, and its functions integrated together
(``designs/_tilted_rows.py``); an expectation combines the columns' functionals of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.moments import CombinedExpectation, Moments, concatenate_moments
from limes._functions import Filled, Function, Shape, SmoothFunctions, Stacked
from limes.designs._features import FeatureTable, InUnits
from limes.designs._product import ProductFamily
from limes.designs._tilted_columns import TiltedColumn
from limes.designs._tilted_rows import numbers_of, serves, tilted_columns

# Largest number of rows in a block, and of numbers in an array of its integrals
_ROWS, _NUMBERS = 256, 1 << 20


@runtime_checkable
class OfColumns(Protocol):
    """An exact expectation that is made of functionals of each column's functions."""

    @property
    def functions(self) -> Sequence[Function | None] | None:
        """Functions that are integrated, one a column; None if there are functions of several columns."""
        ...

    def of_columns(self, columns: Sequence[TiltedColumn]) -> Moments:
        """Moments at n rows, given each column's laws there."""
        ...


def serves_rows(expectation: object, family: ProductFamily) -> bool:
    """Return whether `at_rows` can be used."""
    if isinstance(expectation, CombinedExpectation):
        return all(serves_rows(part, family) for part in expectation.parts)
    return isinstance(expectation, OfColumns) and expectation.functions is not None and serves(family)


def at_rows(
    expectation: object,
    family: ProductFamily,
    rows: Floats,
    cells: Ints,
    on_progress: Callable[[int], object] = lambda _: None,
) -> tuple[InUnits, Moments]:
    """Return features and moments at rows (n, d) in these cells (n, d); requires `serves_rows`."""
    numbers, moments = [], []
    for block in _blocks(len(rows), _numbers(expectation, family)):
        columns = tilted_columns(family, rows[block], cells[block])
        numbers.append(numbers_of(columns))
        moments.append(_moments(expectation, columns))
        on_progress(len(rows[block]))
    return _joined(numbers), concatenate_moments(moments)


def numbers_at(family: ProductFamily, rows: Floats, cells: Ints) -> InUnits:
    """Return the features of the designs at rows (n, d) in these cells (n, d)."""
    if not serves(family):
        return InUnits.of_designs([family.at(row) for row in rows])
    pieces = sum(law.owners.size for law in family.marginals)
    blocks = _blocks(len(rows), pieces)
    return _joined([numbers_of(tilted_columns(family, rows[block], cells[block])) for block in blocks])


def _blocks(rows: int, numbers: int) -> list[slice]:
    """Cut rows into blocks, where an array holds ``numbers`` numbers for each row."""
    step = min(_ROWS, max(1, _NUMBERS // numbers))
    return [slice(start, start + step) for start in range(0, rows, step)]


def _moments(expectation: object, columns: Sequence[TiltedColumn]) -> Moments:
    if isinstance(expectation, CombinedExpectation):
        parts = [_moments(part, columns) for part in expectation.parts]
        return expectation.add_up(parts, designs=columns[0].center.shape)
    assert isinstance(expectation, OfColumns)  # noqa: S101 - guaranteed by `serves_rows`
    return expectation.of_columns(columns)


def _numbers(expectation: object, family: ProductFamily) -> int:
    """Return the number of integrals of a row: functions times pieces of laws, times parts between breaks."""
    if isinstance(expectation, CombinedExpectation):
        return max(_numbers(part, family) for part in expectation.parts)
    assert isinstance(expectation, OfColumns)  # noqa: S101 - guaranteed by `serves_rows`
    assert expectation.functions is not None  # noqa: S101 - guaranteed too
    pairs = zip(expectation.functions, family.marginals, strict=True)
    return max(1, sum(law.owners.size * _integrals(f) for f, law in pairs if f is not None))


def _integrals(function: Function) -> int:
    """Return the number of integrals over one piece of a law: quadrature runs from break to break."""
    match function:
        case Stacked():
            return sum(map(_integrals, function.families))
        case Filled():
            return _integrals(function.function)
        case Shape() | SmoothFunctions():
            return len(function(np.zeros(1))) * (1 + len(function.breaks))
    return len(function(np.zeros(1)))


def _joined(blocks: Sequence[InUnits]) -> InUnits:
    def table(name: str) -> FeatureTable:
        tables = [vars(getattr(block, name)) for block in blocks]
        return FeatureTable(**{key: np.concatenate([each[key] for each in tables]) for key in tables[0]})

    units, slopes = (np.concatenate([getattr(b, name) for b in blocks]) for name in ("units", "slopes"))
    return InUnits(table("features"), table("inner"), units, slopes)
