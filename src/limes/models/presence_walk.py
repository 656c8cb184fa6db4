"""Compiled walk down the trees of a forest, along every path that the words of one text can take."""

from __future__ import annotations

import numpy as np
from numba import njit

from limes._arrays import Bools, Floats, Ints


@njit(cache=True, nogil=True)
def _child(
    x: float,
    node: int,
    threshold: Floats,
    left: Ints,
    right: Ints,
    set_of: Ints,
    sets: Bools,
) -> int:
    """Where a node sends x, which is no missing value."""
    if set_of[node] >= 0:
        known = 0 <= x < sets.shape[1] and x == np.floor(x)
        goes_left = known and sets[set_of[node], int(x)]
    else:
        goes_left = x <= threshold[node]
    child: int = left[node] if goes_left else right[node]
    return child


@njit(cache=True, nogil=True)
def _write(
    paths: int, factors: int, path: Ints, kept: Ints, length: int, product: Ints, word: Ints, present: Bools
) -> None:
    """The factors of one path, as far as the arrays reach."""
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
    """Paths to the leaves that x can reach: x[j] = value_of[j] where word_of[j] is kept, else fill[j].

    Writes the leaf of each path, and of each factor its path, its word and whether that is kept, as far as
    the arrays reach; returns the numbers of paths and of factors. Called twice, first with empty arrays.
    """
    paths, factors, length = 0, 0, 0
    # what the path has settled of each word (-1: nothing), and the words in the order of the path
    kept = np.full(words, -1, np.int64)
    path = np.empty(words, np.int64)
    # of each open node: its position, and the word that its edge settles (-1: none), how, and after how many
    waiting = np.empty((feature.size + 1, 4), np.int64)
    for root in roots:
        top = 0
        waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = root, -1, 0, 0
        while top >= 0:
            node, asked, answer, above = waiting[top]
            top -= 1
            while length > above:
                length -= 1
                kept[path[length]] = -1
            if asked >= 0:
                path[length], kept[asked] = asked, answer
                length += 1
            # go down as long as there is one way, and keep the other way waiting where there are two
            while feature[node] >= 0:
                j = feature[node]
                without = _child(fill[j], node, threshold, left, right, set_of, sets)
                having = _child(value_of[j], node, threshold, left, right, set_of, sets)
                asked = word_of[j]
                if asked < 0 or without == having or kept[asked] == 0:
                    node = without
                elif kept[asked] == 1:
                    node = having
                else:
                    top += 1
                    waiting[top, 0], waiting[top, 1], waiting[top, 2] = having, asked, 1
                    waiting[top, 3] = length
                    path[length], kept[asked] = asked, 0
                    length += 1
                    node = without
            if paths < leaf.size:
                leaf[paths] = node
            _write(paths, factors, path, kept, length, product, word, present)
            paths += 1
            factors += length
        while length > 0:
            length -= 1
            kept[path[length]] = -1
    return paths, factors
