r"""Additive control: one effect a cell and one slope inside each cell, of every column.

h = c + Σ_j Σ_b (u_jb + v_jb (x_j - m_jb)) 1[x_j in cell b], m_jb the cell's mean. Under bin weights a slope
inside a cell has no coefficient, and only takes variance away.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from limes._arrays import Bools, Floats
from limes._expectations.controls.control import ControlMoments, FittedControl
from limes._expectations.controls.ridge import ridge_path
from limes.designs._coordinates import CellMeans, Coordinate, functionals
from limes.designs._product import ProductDesign

# Rows in a cell from which on it has an effect and a slope.
_FEWEST = 8


@dataclass(frozen=True, eq=False)
class _ColumnBasis:
    """The basis of one column: cells with an effect, and standard deviations inside those with a slope."""

    cells: Bools
    spread: Floats

    @property
    def size(self) -> int:
        """Number of functions m."""
        return int(self.cells.sum() + (self.spread > 0).sum())

    @classmethod
    def from_rows(cls, coordinate: Coordinate, x: Floats) -> _ColumnBasis:
        law = coordinate.marginal
        count = np.bincount(law.cells.locate(x), minlength=law.cells.count)
        sloped = (law.spreads > 0) & (count >= _FEWEST)
        return cls(count >= _FEWEST, np.where(sloped, law.spreads, 0.0))

    def values(self, coordinate: Coordinate, x: Floats) -> Floats:
        """(n, m)."""
        law = coordinate.marginal
        cell = law.cells.locate(x)
        in_cell = cell[:, None] == np.arange(law.cells.count)
        sloped = self.spread > 0
        inside = np.where(in_cell[:, sloped], x[:, None] - law.means[sloped], 0.0) / self.spread[sloped]
        return np.concatenate([in_cell[:, self.cells], inside], axis=1)

    def functionals(self, coordinate: Coordinate) -> tuple[Floats, Floats]:
        """Mean and contrast of every function of the basis, (m,) each."""
        count = self.cells.size
        sloped = self.spread > 0
        values = np.concatenate([np.eye(count)[self.cells], np.zeros((sloped.sum(), count))])
        moments = np.concatenate([np.zeros((self.cells.sum(), count)), np.diag(self.spread)[sloped]])
        return functionals(coordinate, CellMeans(values, moments))


@dataclass(frozen=True, eq=False)
class _Additive:
    design: ProductDesign
    columns: tuple[_ColumnBasis, ...]
    intercept: Floats
    coef: Floats
    computed: dict[tuple[int, Coordinate], tuple[Floats, Floats]] = field(default_factory=dict)

    def predict(self, x: Floats) -> Floats:
        return self.intercept + _basis(self.design, self.columns, x) @ self.coef

    def moments(self, design: ProductDesign) -> ControlMoments:
        parts = [self._column(j, coordinate) for j, coordinate in enumerate(design.coordinates)]
        mean = sum((average for average, _ in parts), self.intercept)
        return ControlMoments.exact(mean, np.stack([contrast for _, contrast in parts]))

    def _column(self, j: int, coordinate: Coordinate) -> tuple[Floats, Floats]:
        """Mean and contrast of a column's part of h, (k,) each: the same for all rows in one cell."""
        key = j, coordinate
        if key not in self.computed:
            first = sum(column.size for column in self.columns[:j])
            coef = self.coef[first : first + self.columns[j].size]
            average, contrast = self.columns[j].functionals(coordinate)
            self.computed[key] = average @ coef, contrast @ coef
        return self.computed[key]


def additive_control(design: ProductDesign, x: Floats, f: Floats) -> FittedControl:
    """Fit an additive model by ridge regression."""
    columns = tuple(_ColumnBasis.from_rows(c, x[:, j]) for j, c in enumerate(design.coordinates))
    return _Additive(design, columns, *ridge_path(_basis(design, columns, x), f))


def _basis(design: ProductDesign, columns: tuple[_ColumnBasis, ...], x: Floats) -> Floats:
    parts = zip(columns, design.coordinates, strict=True)
    return np.concatenate([column.values(c, x[:, j]) for j, (column, c) in enumerate(parts)], axis=1)
