"""Compiled recursions over the words of a text; what they compute is explained in ``tfidf.py``.

State rows (1 + q, width) hold, after k words and for r of them kept, A[r] = E ∏ y and, for each of q
outputs, D[r] = E (c·z) ∏ y. Adjoint rows hold the derivatives of the result by D (the same for all outputs)
and, for each output, by A. All functions release the interpreter's lock.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from limes._arrays import Floats

# Words between two states that are kept: the others are computed again on the way back.
BLOCK = 128


@njit(cache=True, nogil=True)
def advance(before: Floats, after: Floats, k: int, y: float, c: Floats, width: int) -> None:
    """State after word k (counted from 1) from the state before it."""
    share = 1.0 / k
    last = min(k, width - 1)
    for q in range(after.shape[0]):
        after[q, 0] = before[q, 0]
    for r in range(1, last + 1):
        take = r * share
        after[0, r] = (1.0 - take) * before[0, r] + take * y * before[0, r - 1]
    for q in range(c.size):
        for r in range(1, last + 1):
            take = r * share
            kept = before[1 + q, r - 1] + c[q] * before[0, r - 1]
            after[1 + q, r] = (1.0 - take) * before[1 + q, r] + take * y * kept
    if last + 1 < width:
        after[:, last + 1] = 0.0


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def retreat(
    before: Floats, adjoint: Floats, k: int, y: float, c: Floats, width: int, weight: float, loss: Floats
) -> None:
    """What the result owes to texts without word k, added to loss (q,), and the adjoint before word k."""
    share = 1.0 / k
    last = min(k, width - 1)
    for q in range(c.size):
        total = 0.0
        for r in range(min(k, width)):
            total += (1.0 - r * share) * (adjoint[0, r] * before[1 + q, r] + adjoint[1 + q, r] * before[0, r])
        loss[q] += weight * total
        for r in range(last):
            take = (r + 1) * share * y
            change = take * (adjoint[1 + q, r + 1] + c[q] * adjoint[0, r + 1])
            adjoint[1 + q, r] = (1.0 - r * share) * adjoint[1 + q, r] + change
        if last < k:
            adjoint[1 + q, last] *= 1.0 - last * share
    for r in range(last):
        adjoint[0, r] = (1.0 - r * share) * adjoint[0, r] + (r + 1) * share * y * adjoint[0, r + 1]
    if last < k:
        adjoint[0, last] *= 1.0 - last * share


@njit(cache=True, nogil=True)
def add_node(
    y: Floats,
    c: Floats,
    within: Floats,
    width: int,
    weight: float,
    profile: Floats,
    loss: Floats,
    start: Floats,
    rest: Floats,
) -> None:
    """What one node adds, for r < width words kept, of g = weight · (c·z) ∏ y.

    To profile (q, r): E[g | r]. To loss (d, q): Σ_r within[r] E[(1 - z_j) g | r]. The d words come behind
    others, whose state is ``start`` (1 + q, others + 1); ``rest``, as large, becomes the adjoint there.
    """
    d, outputs = c.shape
    others = start.shape[1] - 1
    common = min(width, others + 1)
    blocks = max(1, (d + BLOCK - 1) // BLOCK)
    starts = np.empty((blocks, 1 + outputs, width))
    states = np.empty((min(d, BLOCK) + 1, 1 + outputs, width))
    states[0] = 0.0
    states[0, :, :common] = start[:, :common]
    for b in range(blocks):
        first, end = b * BLOCK, min(d, (b + 1) * BLOCK)
        if b > 0:
            states[0] = states[BLOCK]
        starts[b] = states[0]
        for j in range(first, end):
            advance(states[j - first], states[j - first + 1], others + j + 1, y[j], c[j], width)
    for q in range(outputs):
        for r in range(width):
            profile[q, r] += weight * states[d - (blocks - 1) * BLOCK, 1 + q, r]
    adjoint = np.zeros((1 + outputs, width))
    adjoint[0] = within[:width]
    for b in range(blocks - 1, -1, -1):
        first, end = b * BLOCK, min(d, (b + 1) * BLOCK)
        if b < blocks - 1:
            states[0] = starts[b]
            for j in range(first, end):
                advance(states[j - first], states[j - first + 1], others + j + 1, y[j], c[j], width)
        for j in range(end - 1, first - 1, -1):
            retreat(states[j - first], adjoint, others + j + 1, y[j], c[j], width, weight, loss[j])
    rest[:, :common] = adjoint[:, :common]
