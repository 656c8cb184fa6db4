r"""Sums over the rows of a pool of z_ij = 1[row i lies in the explained row's cell of column j].

Three sums are all that weighted least squares on z takes: zᵀv, z c and zᵀ diag(w) z. Compiled loops
(``kernels/pool.cpp``) add them up in one thread and in one order, so that results are the same to the last
bit however many cores and rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from limes import _kernels
from limes._arrays import Bools, Floats, Ints

_BITS = 64
# Cells of rows: bytes, unless a column has more cells than a byte can tell apart
CellCodes: TypeAlias = NDArray[np.uint8] | NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Indicators:
    """Indicators z of n rows and d columns, as bits that are set where z differs from its usual value.

    Attributes
    ----------
    bits
        (n, words).
    usual
        (d,) whether z is usually 1: then its sums are those of all rows, less those of the bits.
    kept
        Σ_j z_ij, (n,).
    """

    bits: NDArray[np.uint64]
    usual: Bools
    kept: Ints

    def sums(self, values: Floats, parts: int = 1) -> tuple[Floats, Floats]:
        """Σ_i z_ij v_iq of values (n, q) and Σ_i v_iq, over each of ``parts`` equal parts of the rows.

        (parts, d, q) and (parts, 1, q).
        """
        sums = np.zeros((parts, self.usual.size + 1, values.shape[1]))
        _kernels.bit_sums(self.bits, np.ascontiguousarray(values), sums)
        inside, total = sums[:, :-1], sums[:, -1:]
        return np.where(self.usual[:, None], total - inside, inside), total

    def products(self, coef: Floats) -> Floats:
        """Σ_j z_ij c_jq of coefficients (d, q), for each row: (n, q)."""
        usual = self.usual[:, None]
        product = np.empty((len(self.bits), coef.shape[1]))
        product[:] = np.where(usual, coef, 0.0).sum(axis=0)
        _kernels.bit_products(self.bits, np.where(usual, -coef, coef), product)
        return product

    def gram(self, weights: Floats, parts: int = 1) -> Floats:
        """Σ_i w_i z_ij z_ik of weights (n,), over each of ``parts`` equal parts of rows: (parts, d, d)."""
        d = self.usual.size
        upper = np.zeros((parts, d, d))
        _kernels.bit_gram(self.bits, np.ascontiguousarray(weights), upper)
        both = upper + np.triu(upper, 1).transpose(0, 2, 1)
        single = np.diagonal(upper, axis1=1, axis2=2)
        # with y = 1 - z:  z z' = 1 - y - y' + y y',  z y' = z - ...: signs and constants of each column
        total = weights.reshape(parts, -1).sum(axis=1)[:, None, None]
        sign, one = np.where(self.usual, -1.0, 1.0), self.usual.astype(np.float64)
        rows = (sign * single)[:, :, None] * one
        gram: Floats = (
            sign[:, None] * sign * both + rows + rows.transpose(0, 2, 1) + one[:, None] * one * total
        )
        return gram


def indicators(cells: CellCodes, instance: Ints, inclusion: Floats) -> Indicators:
    """Compare cells (n, d) with those of the explained row (d,); ``inclusion`` is the mean of z."""
    own_cells = instance.astype(cells.dtype)
    usual = inclusion > 0.5
    bits = np.empty((len(cells), -(-instance.size // _BITS)), dtype=np.uint64)
    kept = np.empty(len(cells), dtype=np.int64)
    mark = _kernels.mark_bytes if cells.dtype == np.uint8 else _kernels.mark_words
    mark(cells, own_cells, usual.astype(np.uint8), bits, kept)
    return Indicators(bits, usual, kept)
