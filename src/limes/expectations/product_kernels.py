"""Compiled recursion over the switches of products; what it computes is explained in ``exchangeable.py``.

It releases the interpreter's lock; the machine code is kept on disk.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from limes._arrays import Floats


@njit(cache=True, nogil=True)
def add_up(
    on: Floats, off: Floats, law: Floats, every: Floats, within: Floats, mean: Floats, coef: Floats
) -> None:
    """Of each product (m, d): Σ_s law_s E[f | s], and Σ_s (every_s E[f | s] + within_s E[z_j f | s])."""
    d = on.shape[1]
    tables = np.zeros((d + 1, d + 1))
    adjoint = np.empty(d + 1)
    for i in range(on.shape[0]):
        forward(on[i], off[i], tables)
        whole = 0.0
        for s in range(d + 1):
            mean[i] += law[s] * tables[d, s]
            whole += every[s] * tables[d, s]
            adjoint[s] = within[s]
        backward(on[i], off[i], tables, adjoint, coef[i])
        coef[i] += whole


@njit(cache=True, nogil=True)
def forward(on: Floats, off: Floats, tables: Floats) -> None:
    """B_0, ..., B_d of one product, a row each."""
    tables[0, 0] = 1.0
    for k in range(1, on.size + 1):
        each = 1.0 / k
        tables[k, 0] = on[k - 1] * tables[k - 1, 0]
        for s in range(1, k):
            share = s * each
            stays = (1.0 - share) * on[k - 1] * tables[k - 1, s]
            tables[k, s] = stays + share * off[k - 1] * tables[k - 1, s - 1]
        tables[k, k] = off[k - 1] * tables[k - 1, k - 1]


@njit(cache=True, nogil=True)
def backward(on: Floats, off: Floats, tables: Floats, adjoint: Floats, coef: Floats) -> None:
    """Σ_s weight_s E[z_j f | s] of one product, (d,); the adjoint begins as the weights, and is used up."""
    for k in range(on.size, 0, -1):
        each, total = 1.0 / k, 0.0
        for s in range(k):
            kept = (1.0 - s * each) * on[k - 1] * adjoint[s]
            total += kept * tables[k - 1, s]
            adjoint[s] = kept + (s + 1) * each * off[k - 1] * adjoint[s + 1]
        coef[k - 1] = total
