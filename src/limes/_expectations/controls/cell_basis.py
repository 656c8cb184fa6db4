r"""Functions of cells that controls of tables are made of: effects of cells, and slopes inside them.

    1[x_j in cell b]    and    (x_j - m_jb) / s_jb · 1[x_j in cell b],

m and s mean and standard deviation of x_j in the cell. Under bin weights a slope inside a cell has no
coefficient, and only takes variance away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Bools, CellNumbers, Floats, Ints
from limes.designs._coordinates import CellMeans, Coordinate, functionals
from limes.designs._marginals import Marginal

# Rows in a cell from which on it has an effect and a slope
_FEWEST = 8


@dataclass(frozen=True, eq=False)
class ColumnBasis:
    """The functions of one column: cells with an effect, and deviations inside those with a slope."""

    law: Marginal
    cells: Bools
    spread: Floats

    @classmethod
    def of(cls, law: Marginal, cell: CellNumbers) -> ColumnBasis:
        """Choose the functions for a fit to rows in these cells (n,)."""
        count = np.bincount(cell, minlength=law.cells.count)
        sloped = (law.spreads > 0) & (count >= _FEWEST)
        return cls(law, count >= _FEWEST, np.where(sloped, law.spreads, 0.0))

    @property
    def size(self) -> int:
        """Number of functions m."""
        return int(self.cells.sum() + (self.spread > 0).sum())

    def put(self, x: Floats, cell: CellNumbers, values: Floats) -> None:
        """Put the functions' values at x, which lie in these cells (n,), into values (n, m)."""
        effects, sloped = np.flatnonzero(self.cells), np.flatnonzero(self.spread > 0)
        spread = self.spread[cell]
        step = np.divide(x - self.law.means[cell], spread, out=np.zeros_like(spread), where=spread > 0)
        np.equal.outer(cell, effects, out=values[:, : effects.size], casting="unsafe")
        np.multiply(np.equal.outer(cell, sloped), step[:, None], out=values[:, effects.size :])

    def functionals(self, coordinate: Coordinate) -> tuple[Floats, Floats]:
        """Mean and contrast of every function, (m,) each."""
        count = self.cells.size
        sloped = self.spread > 0
        values = np.concatenate([np.eye(count)[self.cells], np.zeros((sloped.sum(), count))])
        moments = np.concatenate(
            [np.zeros((self.cells.sum(), count)), np.diag(self.spread / self.law.unit)[sloped]]
        )
        return functionals(coordinate, CellMeans(values, moments))

    def statistics(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every function under the law, (m,) each."""
        mass = np.exp(self.law.log_mass)
        inside, sloped = mass[self.cells], mass[self.spread > 0]
        mean = np.concatenate([inside, np.zeros(sloped.size)])
        return mean, np.sqrt(np.concatenate([inside * (1.0 - inside), sloped]))


@dataclass(frozen=True, eq=False)
class CellBasis:
    """The functions of all columns, one column's after the other."""

    columns: tuple[ColumnBasis, ...]

    @classmethod
    def of(cls, laws: Sequence[Marginal], cells: CellNumbers) -> CellBasis:
        """Choose the functions for a fit to rows in these cells (n, d)."""
        return cls(tuple(ColumnBasis.of(law, cell) for law, cell in zip(laws, cells.T, strict=True)))

    @property
    def laws(self) -> list[Marginal]:
        """The columns' laws."""
        return [column.law for column in self.columns]

    @cached_property
    def ends(self) -> Ints:
        """Where each column's functions end, (d,)."""
        return np.cumsum([column.size for column in self.columns])

    def __call__(self, x: Floats, cells: CellNumbers) -> Floats:
        """Values (n, m) at rows x in these cells (n, d)."""
        values = np.empty((len(x), self.ends[-1]))
        parts = np.split(values, self.ends[:-1], axis=1)
        for column, *its in zip(self.columns, x.T, cells.T, parts, strict=True):
            column.put(*its)
        return values

    def statistics(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every function under the background's law, (m,) each."""
        each = [column.statistics() for column in self.columns]
        return np.concatenate([mean for mean, _ in each]), np.concatenate([spread for _, spread in each])
