"""Compiled walk down the trees of a forest."""

from __future__ import annotations

import numpy as np
from numba import njit

from limes._arrays import Bools, Floats, Ints


@njit(cache=True, nogil=True)
def add_leaves(
    x: Floats,
    feature: Ints,
    threshold: Floats,
    left: Ints,
    right: Ints,
    missing_left: Bools,
    set_of: Ints,
    sets: Bools,
    value: Floats,
    roots: Ints,
    total: Floats,
) -> None:
    """Add to total (n, k) the value of the leaf that each row of x (n, d) reaches in each tree.

    All rows go down a tree before the next one is looked at: one tree fits the processor's nearest memory.
    """
    for root in roots:
        for i in range(x.shape[0]):
            node = root
            while feature[node] >= 0:
                seen = x[i, feature[node]]
                if np.isnan(seen):
                    goes_left = missing_left[node]
                elif set_of[node] >= 0:
                    known = 0 <= seen < sets.shape[1] and seen == np.floor(seen)
                    goes_left = known and sets[set_of[node], int(seen)]
                else:
                    goes_left = seen <= threshold[node]
                node = left[node] if goes_left else right[node]
            for k in range(total.shape[1]):
                total[i, k] += value[node, k]
