"""The designs of n rows of one background.

Numbers of a row are computed from its laws alone: they are the same to the last bit whatever the other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from limes._arrays import Floats, Ints, distinct_rows, first_of_each
from limes._functions import Function
from limes.designs._features import FeatureTable, InUnits
from limes.designs._marginals import Levels, Marginal
from limes.designs._partial_slopes import numbers_alone
from limes.designs._product import ProductDesign, ProductFamily
from limes.designs._tilted_columns import (
    IndicatorColumn,
    LevelColumn,
    PointColumn,
    SlopeColumn,
    TiltedColumn,
)
from limes.designs._tilted_laws import TiltedLaws
from limes.designs._tilted_missing import MixedColumn, PartialSlopeColumn
from limes.designs._weights import EuclideanWeights

# Largest number of rows in a block, and of numbers in an array of its integrals
_ROWS, _NUMBERS = 256, 1 << 20


def rows_at_once(numbers: int) -> int:
    """Return the number of rows in a block whose arrays hold ``numbers`` numbers for each row."""
    return min(_ROWS, max(1, _NUMBERS // numbers))


@dataclass(frozen=True, eq=False)
class Rows:
    """n rows of one background, and all that an expectation asks of their designs; one row is n = 1.

    With bin weights a row's cells decide the laws of its columns, and all rows share them. Where distances
    count every row has separate laws: they are tilted for all rows together, or, where a law has no such
    way, a design is built for each row.

    Attributes
    ----------
    family
        The designs.
    x, cells
        Values and their cells, (n, d).
    """

    family: ProductFamily
    x: Floats
    cells: Ints

    def __len__(self) -> int:
        return len(self.cells)

    @cached_property
    def distinct(self) -> tuple[Rows, Ints]:
        """Rows whose designs differ, and the position of each row's among them, (n,)."""
        if not self.family.by_cell:
            return self, np.arange(len(self))
        cells, place = distinct_rows(self.cells)
        return Rows(self.family, self.x[first_of_each(place, len(cells))], cells), place

    def take(self, at: Ints) -> Rows:
        """Return some of the rows."""
        return Rows(self.family, self.x[at], self.cells[at])

    def blocks(self, size: int) -> list[Rows]:
        """Cut into blocks of at most this size."""
        if len(self) <= size:
            return [self]
        cuts = [slice(start, start + size) for start in range(0, len(self), size)]
        return [Rows(self.family, self.x[cut], self.cells[cut]) for cut in cuts]

    @cached_property
    def designs(self) -> list[ProductDesign]:
        """The design of each row."""
        if self.family.by_cell:
            return [self.family.of_cells(cells) for cells in self.cells]
        return [self.family.at(row) for row in self.x]

    @cached_property
    def columns(self) -> list[TiltedColumn]:
        """Each column's laws at the rows, where the family ``is_tilted``."""
        return _tilted_columns(self.family, self.x, self.cells)

    @cached_property
    def features(self) -> InUnits:
        """Moments of the designs' features."""
        family = self.family
        if family.by_cell:
            return InUnits.of_indicators(family.features(self.cells))
        if not family.is_tilted:
            return InUnits.of_designs(self.designs)
        blocks = self.blocks(rows_at_once(sum(law.owners.size for law in family.marginals)))
        if len(blocks) > 1 and "columns" not in vars(self):
            return InUnits.joined([block.features for block in blocks])
        return _numbers_of(self.columns)


def _tilted_columns(family: ProductFamily, rows: Floats, cells: Ints) -> list[TiltedColumn]:
    """Tilt each column's law at rows (n, d) with these cells (n, d)."""
    assert isinstance(family.weights, EuclideanWeights)  # noqa: S101 - the family is tilted
    scales = np.ones(len(family.marginals)) if family.scales is None else family.scales
    slopes = np.zeros(scales.size, dtype=np.bool_) if family.slopes is None else family.slopes
    return [
        _column(_Tilting(law, float(scale), family.weights), bool(slope), x, cell)
        for law, scale, slope, x, cell in zip(family.marginals, scales, slopes, rows.T, cells.T, strict=True)
    ]


def _column(tilting: _Tilting, slope: bool, x: Floats, cell: Ints) -> TiltedColumn:
    """One column at values x (n,) in cells (n,)."""
    missing = np.isnan(x) | isinstance(tilting.law.cells, Levels)
    parts: list[tuple[Ints, TiltedColumn]] = []
    if not missing.all():
        rows = np.flatnonzero(~missing)
        parts.append((rows, tilting.slope(x[rows]) if slope else tilting.indicator(x[rows], cell[rows])))
    if missing.any():
        rows = np.flatnonzero(missing)
        parts.append((rows, LevelColumn(tilting.weights, tilting.law, cell[rows])))
    return parts[0][1] if len(parts) == 1 else MixedColumn(tuple(parts))


class _Tilting(NamedTuple):
    """The law, unit of distance and weights by which a column is tilted at rows that hold a number."""

    law: Marginal
    scale: float
    weights: EuclideanWeights

    def indicator(self, x: Floats, cell: Ints) -> TiltedColumn:
        """The column whose feature is the indicator of the rows' cells."""
        return IndicatorColumn(self._laws(self.law, x), cell)

    def slope(self, x: Floats) -> TiltedColumn:
        """The column whose feature is x."""
        if self.law.cells.of_missing < 0:
            return self._numbers(self.law, x)
        return PartialSlopeColumn(self._numbers(numbers_alone(self.law), x), self._laws(self.law, x).log_mass)

    def _numbers(self, law: Marginal, x: Floats) -> SlopeColumn | PointColumn:
        return (PointColumn if law.is_point else SlopeColumn)(self._laws(law, x), x)

    def _laws(self, law: Marginal, x: Floats) -> TiltedLaws:
        return TiltedLaws.of(law, x, self.scale, self.weights)


def bases(columns: Sequence[TiltedColumn], functions: Sequence[Function | None]) -> list[Floats | None]:
    """The ``basis`` (m, n, 2) of each column's functions; None for a column without functions."""
    return [
        None if function is None else column.basis(function)
        for column, function in zip(columns, functions, strict=True)
    ]


def _numbers_of(columns: Sequence[TiltedColumn]) -> InUnits:
    """Stack the features' moments of all columns, (n, d)."""
    center, variance, at_instance, unit = (
        np.stack([getattr(column, name) for column in columns], axis=1)
        for name in ("center", "variance", "at_instance", "unit")
    )
    log_weight = np.add.reduce([column.log_weight for column in columns])
    with np.errstate(over="ignore"):
        features = FeatureTable(center, variance * unit * unit, at_instance, log_weight)
    inner = FeatureTable(center / unit, variance, at_instance / unit, log_weight)
    slopes = np.stack([column.is_slope for column in columns], axis=1)
    return InUnits(features, inner, unit, slopes)
