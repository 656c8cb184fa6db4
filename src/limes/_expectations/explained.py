r"""Rows that are explained from a pool, and sums over its rows around each of them.

Under bin weights an explained row is its cells: with z_j = 1 where a pool's row lies in the explained row's
cell of column j, z_0 = 1 and t the weight of a changed cell, a pool's row weighs

    w = t^#{j: z_j = 0} / E t^#{j: z_j = 0}.

The sums are compiled (``kernels/pool.h``). Those of each explained row are added up separately and in one
order: they are the same to the last bit whatever the other rows, and however many cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limes import _kernels
from limes._arrays import Floats, Ints
from limes.designs._product import FeatureTable, ProductDesign, ProductFamily
from limes.designs._weights import BinWeights

# Number of cells that a byte can distinguish
_BYTE = 256
# Cells as bytes, unless a column has more cells than a byte can distinguish
CellCodes: TypeAlias = NDArray[np.unsignedinteger[Any]]


def cell_codes(family: ProductFamily, cells: Ints) -> CellCodes:
    """Return cells as bytes, where these can distinguish a column's cells."""
    widest = max(law.cells.count for law in family.marginals)
    return cells.astype(np.uint8) if widest <= _BYTE else cells.astype(np.uint32)


def changed_weight(family: ProductFamily) -> float:
    """t, the weight of a changed cell."""
    assert isinstance(family.weights, BinWeights)  # noqa: S101 - true of all families that are by_cell
    return family.weights.ratio


def by_column(cells: CellCodes) -> CellCodes:
    """Cells (n, d) as (d, n): column by column."""
    return np.ascontiguousarray(cells.T)


@dataclass(frozen=True, eq=False)
class ExplainedRows:
    """Explained rows of one background, by their cells (n, d)."""

    family: ProductFamily
    cells: Ints

    def __len__(self) -> int:
        return len(self.cells)

    @cached_property
    def features(self) -> FeatureTable:
        """Features of the rows' designs."""
        return self.family.features(self.cells)

    @cached_property
    def codes(self) -> CellCodes:
        """Cells of the rows in the format of a pool, (n, d)."""
        return np.ascontiguousarray(cell_codes(self.family, self.cells))

    @cached_property
    def weights(self) -> Floats:
        """Weights w of a pool's row, by the number of columns that match: (n, 1 + d)."""
        d = self.cells.shape[1]
        powers = np.float64(changed_weight(self.family)) ** np.arange(d, -1, -1)
        return np.asarray(powers / np.exp(self.features.log_weight)[:, None])

    def designs(self) -> list[ProductDesign]:
        """The design of each row."""
        return [self.family.of_cells(cells) for cells in self.cells]

    def sums(self, cells: CellCodes, values: Floats, parts: int) -> Floats:
        """Σ_i w_i z_ij v_iq over equal parts of a pool's rows: (n, parts, 1 + d, q).

        ``cells`` (d, m) and ``values`` (m, q) are those of the pool's rows.
        """
        sums = np.empty((len(self), parts, 1 + len(cells), values.shape[1]))
        _kernels.pool_sums(cells, self.codes, self.weights, np.ascontiguousarray(values), sums)
        return sums

    def gram(self, cells: CellCodes, parts: int) -> tuple[Floats, Floats, Floats]:
        """Σ_i w_i z_ij z_il over equal parts of a pool's rows; Σ_i w_i² z_ij and Σ_i z_ij over all of them.

        Their shapes are (n, parts, 1 + d, 1 + d), and (n, 1 + d) each.
        """
        size = 1 + len(cells)
        gram, squares, numbers = np.empty((len(self), parts, size, size)), *np.empty((2, len(self), size))
        _kernels.pool_gram(cells, self.codes, self.weights, gram, squares, numbers)
        return gram, squares, numbers


@dataclass(frozen=True, eq=False)
class CellMoments:
    """Moments of a sum of effects of cells around rows in each cell of a column.

    Attributes
    ----------
    mean, contrast
        E_w of a column's effect; and the effect's mean inside the explained row's cell less that outside it,
        where that cell is b: (d, widest, k).
    """

    mean: Floats
    contrast: Floats

    @classmethod
    def of(cls, family: ProductFamily, effects: Sequence[Floats]) -> CellMoments:
        """Moments of effects (cells, k) of each column."""
        ratio, widest = changed_weight(family), max(len(column) for column in effects)
        mean, contrast = np.zeros((2, len(effects), widest, effects[0].shape[1]))
        for j, (law, effect) in enumerate(zip(family.marginals, effects, strict=True)):
            p = np.exp(law.log_mass)[:, None]
            others, rest = (_without_each(column) for column in (p, p * effect))
            mean[j, : len(p)] = (p * effect + ratio * rest) / (p + ratio * others)
            outside = np.divide(rest, others, out=effect.astype(np.float64), where=others > 0)
            contrast[j, : len(p)] = effect - outside
        return cls(mean, contrast)

    def at(self, cells: Ints) -> tuple[Floats, Floats]:
        """E_w h (n, k) and β (n, d, k) of the sum h around rows with these cells (n, d)."""
        columns = np.arange(cells.shape[1])
        return self.mean[columns, cells].sum(axis=1), self.contrast[columns, cells]


def _without_each(values: Floats) -> Floats:
    """Sums of all entries (n, k) but each in turn; a difference from the total would lose digits."""
    zero = np.zeros((1, values.shape[1]))
    before = np.concatenate([zero, np.cumsum(values[:-1], axis=0)])
    after = np.concatenate([np.cumsum(values[:0:-1], axis=0)[::-1], zero])
    return np.asarray(before + after)
