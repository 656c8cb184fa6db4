"""Explained rows as their fits need them: surrogates, designs, and the cells that have effects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from limes._arrays import Floats, Ints
from limes.designs._product import ProductDesign, ProductFamily


@dataclass(frozen=True, eq=False)
class FittedRow:
    """One row (d,), its position, coefficients and Γ (d, k), E_w f (k,), α and Var_w h (d,).

    Features are in units, and numbers of the model are divided by its unit.
    """

    position: int
    row: Floats
    family: ProductFamily
    coef: Floats
    gamma: Floats
    mean: Floats
    inclusion: Floats
    variance: Floats

    @cached_property
    def design(self) -> ProductDesign:
        """The design at the row, its features in units."""
        return self.family.at(self.row).in_units()

    @cached_property
    def cut(self) -> ProductDesign:
        """The design whose cells have effects: slopes are cut into slices."""
        return self.design if self.family.slopes is None else self.design.sliced()

    @cached_property
    def cells(self) -> Ints:
        """The row's cells, (d,)."""
        return self.cut.instance_cells

    def cells_of(self, x: Floats) -> Ints:
        """Cells of rows x (m, d), (d, m)."""
        is_cut = self.family.slopes is not None or self.family.held is not None
        return self.cut.locate(x).T if is_cut else self.family.cells(x).T

    @property
    def masses(self) -> list[Floats]:
        """P_w(cell) of every column, (p,) each."""
        return [coordinate.probability for coordinate in self.cut.coordinates]

    @cached_property
    def line(self) -> Floats:
        """Coefficients of slopes, (d, k), and 0 for indicators, whose cells' effects say all."""
        return np.where(self.design.slopes[:, None], self.coef, 0.0)

    def line_in_cells(self, widest: int) -> Floats:
        """What the line adds in each cell on average, (d, widest, k); 0 beyond a column's last cell."""
        line = np.zeros((len(self.line), widest, self.mean.size))
        for j in np.flatnonzero(self.line.any(axis=1)).tolist():
            column = self.cut.coordinates[j]
            means = column.marginal.means / self.design.units[j]
            means = np.where(np.isnan(means), self.inclusion[j], means)  # of missing values
            line[j, : means.size] = np.outer(means - column.probability @ means, self.line[j])
        return line

    @property
    def explained(self) -> Floats:
        """What of Var_w f the surrogate explains, (k,)."""
        return np.asarray(_explained(self.coef, self.gamma, self.variance).sum(axis=0))

    @property
    def explained_by_indicators(self) -> Floats:
        """What of Var_w f the indicators explain, (d, k)."""
        return _explained(self.coef - self.line, self.gamma, self.variance)

    @property
    def explained_by_line(self) -> Floats:
        """What of Var_w f the slopes explain, (d, k)."""
        return _explained(self.line, self.gamma, self.variance)


@dataclass(frozen=True, eq=False)
class FittedRows:
    """Many rows: the arrays of `FittedRow` with a leading axis, and their cells (n, d) of the family.

    Each row makes its design when it is first asked for.
    """

    positions: Ints
    rows: Floats
    cells: Ints
    family: ProductFamily
    coef: Floats
    gamma: Floats
    mean: Floats
    inclusion: Floats
    variance: Floats

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, i: int) -> FittedRow:
        return self._each[i]

    def __iter__(self) -> Iterator[FittedRow]:
        return iter(self._each)

    @cached_property
    def _each(self) -> list[FittedRow]:
        return [
            FittedRow(int(position), row, self.family, *numbers)
            for position, row, *numbers in zip(
                self.positions,
                self.rows,
                self.coef,
                self.gamma,
                self.mean,
                self.inclusion,
                self.variance,
                strict=True,
            )
        ]

    @property
    def explained(self) -> Floats:
        """What of Var_w f the surrogates explain, (n, k)."""
        return np.asarray(_explained(self.coef, self.gamma, self.variance).sum(axis=1))


class Designs(Sequence[ProductDesign]):
    """The designs whose cells have effects, each made when it is first indexed."""

    def __init__(self, rows: FittedRows) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, key: int) -> ProductDesign: ...
    @overload
    def __getitem__(self, key: slice) -> list[ProductDesign]: ...
    def __getitem__(self, key: int | slice) -> ProductDesign | list[ProductDesign]:
        if isinstance(key, slice):
            return [self._rows[i].cut for i in range(*key.indices(len(self)))]
        return self._rows[key].cut


def _explained(coef: Floats, gamma: Floats, variance: Floats) -> Floats:
    """2 b·Γ - b·Σb column by column, for a diagonal Σ."""
    return np.asarray(coef * (2.0 * gamma - variance[..., None] * coef))
