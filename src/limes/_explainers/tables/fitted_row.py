"""One explained row as its fit needs it: its surrogate, its design, and the cells that have effects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limes._arrays import Floats, Ints
from limes.designs._product import ProductDesign, ProductFamily
from limes.designs._slices import cells_of, instance_cells, sliced


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
        """The design at the row."""
        design = self.family.at(self.row)
        return design if self.family.by_cell else design.in_units()

    @cached_property
    def cut(self) -> ProductDesign:
        """The design whose cells have effects: slopes are cut into slices."""
        return self.design if self.family.slopes is None else sliced(self.design)

    @cached_property
    def cells(self) -> Ints:
        """The row's cells, (d,)."""
        return instance_cells(self.cut)

    def cells_of(self, x: Floats) -> Ints:
        """Cells of rows x (m, d), (d, m)."""
        return self.family.cells(x).T if self.family.slopes is None else cells_of(self.cut, x)

    @property
    def masses(self) -> list[Floats]:
        """P_w(cell) of every column, (p,) each."""
        return [coordinate.probability for coordinate in self.cut.coordinates]

    @cached_property
    def line(self) -> Floats:
        """Coefficients of slopes, (d, k), and 0 for indicators, whose cells' effects say all."""
        slopes = (
            np.zeros(len(self.coef), dtype=np.bool_) if self.family.slopes is None else self.family.slopes
        )
        return np.where(slopes[:, None], self.coef, 0.0)

    def line_in_cells(self, widest: int) -> Floats:
        """What the line adds in each cell on average, (d, widest, k); 0 beyond a column's last cell."""
        line = np.zeros((len(self.line), widest, self.mean.size))
        for j in np.flatnonzero(self.line.any(axis=1)).tolist():
            column = self.cut.coordinates[j]
            means = column.marginal.means / self.design.units[j]
            line[j, : means.size] = np.outer(means - column.probability @ means, self.line[j])
        return line

    @property
    def explained(self) -> Floats:
        """What of Var_w f the surrogate explains, (k,)."""
        return np.asarray(_explained(self.coef, self.gamma, self.variance).sum(axis=0))

    @property
    def explained_by_line(self) -> Floats:
        """What of Var_w f the slopes explain, (d, k)."""
        return _explained(self.line, self.gamma, self.variance)


def _explained(coef: Floats, gamma: Floats, variance: Floats) -> Floats:
    """2 b·Γ - b·Σb column by column, for a diagonal Σ."""
    return np.asarray(coef * (2.0 * gamma - variance[:, None] * coef))
