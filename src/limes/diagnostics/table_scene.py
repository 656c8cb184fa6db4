"""Rows of a table, and the neighbourhoods that a product design makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects
from limes.designs.coordinates import IndicatorCoordinate
from limes.designs.marginals import BinCells
from limes.designs.product import ProductDesign, ProductFamily
from limes.designs.weights import BinWeights
from limes.diagnostics.sample import Sample
from limes.diagnostics.scene import Scene

# So narrow that a row with any other cell weighs nothing
_IN_THE_BOX = 1e-2


@dataclass(frozen=True, kw_only=True, eq=False)
class TableScene(Scene):
    """Rows (n, d) of a table.

    Attributes
    ----------
    family
        The designs at the explainer's bandwidth.
    background
        (N, d), encoded.
    numeric
        (d,) columns of numbers.
    texts
        Of each column, its cells in words, (p,).
    units
        (d,) standard deviation of each number, 1 for categories.
    """

    family: ProductFamily
    background: Floats
    numeric: Bools
    texts: Sequence[Objects]
    units: Floats

    def designs(self, bandwidth: float) -> list[ProductDesign]:
        """The design at each row."""
        return self._at_rows(self._family(bandwidth))

    def _at_rows(self, family: ProductFamily) -> list[ProductDesign]:
        if not family.by_cell:
            return [family.at(row) for row in self.rows]
        return [_at_cells(family, cells) for cells in self.cells]

    def _family(self, bandwidth: float) -> ProductFamily:
        if bandwidth == self.bandwidth:
            return self.family
        return replace(self.family, weights=replace(self.family.weights, bandwidth=bandwidth))  # type: ignore[type-var]

    @cached_property
    def box(self) -> list[ProductDesign]:
        """The law inside each row's own cells, whatever the weights are."""
        inside = replace(self.family, weights=BinWeights(_IN_THE_BOX), slopes=None)
        return self._at_rows(inside)

    @cached_property
    def cells(self) -> Ints:
        """Cell of each value, (n, d)."""
        return self.family.cells(self.rows)

    @cached_property
    def binned(self) -> Bools:
        """(d,) columns whose feature says in which of several cells they lie."""
        several = np.array([law.cells.count > 1 for law in self.family.marginals])
        return several if self.family.slopes is None else several & ~self.family.slopes

    def moved(self, i: int, j: int, cell: int) -> ProductDesign:
        """The design at row i, if its column j lay in another cell and all else were as it is."""
        if self.family.by_cell:
            cells = self.cells[i].copy()
            cells[j] = cell
            return _at_cells(self.family, cells)
        scale = 1.0 if self.family.scales is None else float(self.family.scales[j])
        chosen = IndicatorCoordinate.tilted(
            self.family.marginals[j],
            float(self.rows[i, j]),
            cell,
            scale=scale,
            weights=self.family.weights,
        )
        known = self.here[i].coordinates
        return ProductDesign((*known[:j], chosen, *known[j + 1 :]))

    def draw(self, design: ProductDesign, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Independent rows."""
        return design.draw(rng.random((count, design.size)))

    def squared(self, i: int, x: Floats) -> Floats:
        """Number of cells that differ, or squared distance in the columns' units."""
        return self.squared_from(self.rows[i], x)

    def squared_from(self, row: Floats, x: Floats) -> Floats:
        """D of rows x from any row (d,)."""
        differs = self.family.cells(x) != self.family.cells(row[None])
        if self.family.by_cell:
            return np.asarray(differs.sum(axis=1), dtype=np.float64)
        scales = np.ones(row.size) if self.family.scales is None else self.family.scales
        measured = np.array([isinstance(law.cells, BinCells) for law in self.family.marginals])
        away = ((x - row) / scales) ** 2
        # a missing value, as another category, is one unit away
        return np.asarray(np.where(measured & ~np.isnan(away), away, differs).sum(axis=1))

    def kept(self, i: int) -> float:
        """Of the columns that are cut into cells."""
        return float(self.here[i].inclusion[self.binned].mean()) if self.binned.any() else np.nan

    def states(self, i: int) -> Sample | None:  # noqa: ARG002 - laws inside bins have no end of states
        """None: never few enough."""
        return None

    @property
    def penalty(self) -> Floats:
        """``lime`` fits slopes on standardised columns: its penalty is per standard deviation."""
        slopes = np.zeros(self.units.size, bool) if self.family.slopes is None else self.family.slopes
        return np.where(slopes, self.units, 1.0) ** 2


def _at_cells(family: ProductFamily, cells: Ints) -> ProductDesign:
    """The design at a row with these cells (d,), of a family that goes by them."""
    chosen = tuple(family.variants[j][cell] for j, cell in enumerate(cells.tolist()))
    return ProductDesign(chosen, family, cells)
