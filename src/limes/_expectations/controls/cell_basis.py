r"""Functions of cells that controls of tables are made of: effects of cells, and slopes inside them.

    1[x_j in cell b]    and    (x_j - m_jb) / s_jb · 1[x_j in cell b],

m and s are the mean and standard deviation of x_j in the cell. Under bin weights a slope inside a cell has no
coefficient, and only reduces the variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Bools, CellNumbers, Floats, Ints
from limes.designs._column import ColumnOfLaws, IndicatorColumn, SlopeColumn
from limes.designs._marginals import Marginal

# A cell with at least this many rows has an effect and a slope
_FEWEST = 8


@dataclass(frozen=True, eq=False)
class ColumnBasis:
    """The functions of one column: cells (p,) with an effect, and those with a slope."""

    law: Marginal
    cells: Bools
    sloped: Bools

    @classmethod
    def of(cls, law: Marginal, cell: CellNumbers) -> ColumnBasis:
        """Choose the functions for a fit to rows in these cells (n,)."""
        often = np.bincount(cell, minlength=law.cells.count) >= _FEWEST
        return cls(law, often, often & (law.spreads > 0))

    @property
    def size(self) -> int:
        """Number of functions m."""
        return int(self.cells.sum() + self.sloped.sum())

    def put(self, x: Floats, cell: CellNumbers, values: Floats) -> None:
        """Put the functions' values at x, which lie in these cells (n,), into values (n, m)."""
        effects, slopes = np.flatnonzero(self.cells), np.flatnonzero(self.sloped)
        step = self.law.standardized(x, cell)[:, None]
        np.equal.outer(cell, effects, out=values[:, : effects.size], casting="unsafe")
        np.multiply(np.equal.outer(cell, slopes), step, out=values[:, effects.size :])

    def tables(self, coef: Floats) -> tuple[Floats, Floats]:
        """Effect and slope of each cell by coefficients (m, k) of the functions, (p, k) each."""
        tables = np.zeros((2, self.cells.size, coef.shape[1]))
        tables[0, self.cells], tables[1, self.sloped] = np.split(coef, [self.cells.sum()])
        return tables[0], tables[1]

    def functionals(self, column: ColumnOfLaws) -> tuple[Floats, Floats]:
        """Mean and contrast of every function, (m,) each."""
        effects, slopes = (np.eye(self.cells.size)[live] for live in (self.cells, self.sloped))
        values = np.concatenate([effects, np.zeros_like(slopes)])
        spreads = np.where(self.sloped, self.law.spreads, 0.0)
        moments = np.concatenate([np.zeros_like(effects), slopes * (spreads / self.law.unit)])
        if isinstance(column, SlopeColumn):
            basis = column.basis_of_cells(values, moments)
        else:
            assert isinstance(column, IndicatorColumn)  # noqa: S101 - there is no other kind
            basis = column.basis_of_cells(values)
        mean, contrast = column.mixed(basis)
        return mean[0], contrast[0]

    def statistics(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every function under the law, (m,) each."""
        mass = np.exp(self.law.log_mass)
        inside, sloped = mass[self.cells], mass[self.sloped]
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

    @cached_property
    def ends(self) -> Ints:
        """End of each column's functions, (d,)."""
        return np.cumsum([column.size for column in self.columns])

    def __call__(self, x: Floats, cells: CellNumbers) -> Floats:
        """Values (n, m) at rows x in these cells (n, d)."""
        values = np.empty((len(x), self.ends[-1]))
        parts = np.split(values, self.ends[:-1], axis=1)
        for column, *its in zip(self.columns, x.T, cells.T, parts, strict=True):
            column.put(*its)
        return values

    def tables(self, coef: Floats) -> list[tuple[Floats, Floats]]:
        """Effects and slopes of each column's cells by coefficients (m, k)."""
        parts = np.split(coef, self.ends[:-1])
        return [column.tables(part) for column, part in zip(self.columns, parts, strict=True)]

    def sums(self, x: Floats, cells: CellNumbers, coef: Floats) -> Floats:
        """Values times coefficients (m, k), (n, k), by looking up each cell's part, without the values."""
        total = np.zeros((len(x), coef.shape[1]))
        for column, its, cell, (effect, slope) in zip(
            self.columns, x.T, cells.T, self.tables(coef), strict=True
        ):
            total += effect.take(cell, axis=0)
            if column.sloped.any():
                total += slope.take(cell, axis=0) * column.law.standardized(its, cell)[:, None]
        return total

    @cached_property
    def statistics(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every function under the background's law, (m,) each."""
        each = [column.statistics() for column in self.columns]
        return np.concatenate([mean for mean, _ in each]), np.concatenate([spread for _, spread in each])
