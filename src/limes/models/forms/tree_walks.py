"""Compiled walks down the trees of a forest: one row at a time, or along every path that a text can take."""

from __future__ import annotations

import numpy as np
from numba import njit

from limes._arrays import Bools, Floats, Ints


@njit(cache=True, nogil=True)
def _goes_left(x: float, node: int, threshold: Floats, set_of: Ints, sets: Bools) -> bool:
    """Whether a node sends x, not missing, to its left child."""
    if set_of[node] >= 0:
        is_code = 0 <= x < sets.shape[1] and x == np.floor(x)
        return bool(is_code and sets[set_of[node], int(x)])
    return bool(x <= threshold[node])


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

    All rows go down a tree before the next one is read: one tree fits the processor's nearest memory.
    """
    for root in roots:
        for i in range(x.shape[0]):
            node = root
            while feature[node] >= 0:
                number = x[i, feature[node]]
                if np.isnan(number):
                    goes_left = missing_left[node]
                else:
                    goes_left = _goes_left(number, node, threshold, set_of, sets)
                node = left[node] if goes_left else right[node]
            for k in range(total.shape[1]):
                total[i, k] += value[node, k]


@njit(cache=True, nogil=True)
def _write_factors(
    paths: int, factors: int, path: Ints, kept: Ints, length: int, product: Ints, word: Ints, present: Bools
) -> None:
    """Write the factors of one path, as far as the arrays reach."""
    for i in range(min(length, product.size - factors)):
        product[factors + i] = paths
        word[factors + i] = path[i]
        present[factors + i] = kept[path[i]] == 1


@njit(cache=True, nogil=True)
def presence_paths(
    word_of: Ints,
    value_of: Floats,
    fill: Floats,
    words: int,
    feature: Ints,
    threshold: Floats,
    left: Ints,
    right: Ints,
    set_of: Ints,
    sets: Bools,
    roots: Ints,
    leaf: Ints,
    product: Ints,
    word: Ints,
    present: Bools,
) -> tuple[int, int]:
    """Find the paths to the leaves that x can reach: x[j] = value_of[j] if word_of[j] is kept, else fill[j].

    Writes the leaf of each path, and for each factor its path, its word and whether that is kept, as far as
    the arrays reach; returns the numbers of paths and of factors. Call it first with empty arrays, to learn
    their lengths.
    """
    paths, factors, length = 0, 0, 0
    # for each word whether the path keeps it (1) or removes it (0; -1: open), and the words along the path
    kept = np.full(words, -1, np.int64)
    path = np.empty(words, np.int64)
    # for each open node: its position, the word that its edge decides (-1: none), how, and after how many
    waiting = np.empty((feature.size + 1, 4), np.int64)
    for root in roots:
        top = 0
        waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = root, -1, 0, 0
        while top >= 0:
            node, decided, is_kept, above = waiting[top]
            top -= 1
            while length > above:
                length -= 1
                kept[path[length]] = -1
            if decided >= 0:
                path[length], kept[decided] = decided, is_kept
                length += 1
            # go down as long as there is one way, and keep the other way waiting where there are two
            while feature[node] >= 0:
                j = feature[node]
                without = left[node] if _goes_left(fill[j], node, threshold, set_of, sets) else right[node]
                having = left[node] if _goes_left(value_of[j], node, threshold, set_of, sets) else right[node]
                decided = word_of[j]
                if decided < 0 or without == having or kept[decided] == 0:
                    node = without
                elif kept[decided] == 1:
                    node = having
                else:
                    top += 1
                    waiting[top, 0], waiting[top, 1], waiting[top, 2] = having, decided, 1
                    waiting[top, 3] = length
                    path[length], kept[decided] = decided, 0
                    length += 1
                    node = without
            if paths < leaf.size:
                leaf[paths] = node
            _write_factors(paths, factors, path, kept, length, product, word, present)
            paths += 1
            factors += length
        while length > 0:
            length -= 1
            kept[path[length]] = -1
    return paths, factors
