"""The designs of many rows where distances count: with smooth weights every row has its own laws.

Numbers of a row are computed from its laws alone: they are the same to the last bit whatever the other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from limes._arrays import Floats, Ints
from limes._functions import Function
from limes.designs._features import FeatureTable, InUnits
from limes.designs._marginals import Levels, Marginal
from limes.designs._partial_slopes import numbers_alone
from limes.designs._product import ProductFamily
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


def serves(family: ProductFamily) -> bool:
    """Return whether the columns of a family's designs can be tilted at many rows."""
    if not isinstance(family.weights, EuclideanWeights) or family.held is not None:
        return False
    slopes = np.zeros(len(family.marginals), dtype=np.bool_) if family.slopes is None else family.slopes
    return all(map(_serves_column, family.marginals, slopes.tolist()))


def _serves_column(law: Marginal, slope: bool) -> bool:
    if isinstance(law.cells, Levels):
        return not slope
    # without bins a column's law is one normal, or one value; law="empirical" has many
    return not slope or law.owners.size == 1 + (law.cells.of_missing >= 0)


def tilted_columns(family: ProductFamily, rows: Floats, cells: Ints) -> list[TiltedColumn]:
    """Tilt each column's law at rows (n, d) with these cells (n, d)."""
    assert isinstance(family.weights, EuclideanWeights)  # noqa: S101 - guaranteed by `serves`
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


def numbers_of(columns: Sequence[TiltedColumn]) -> InUnits:
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
