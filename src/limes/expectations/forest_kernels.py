"""Compiled passes over trees. Plain loops over arrays; what they compute is explained in ``forest.py``.

Every function releases the interpreter's lock, so that threads can share the work, and is compiled once:
the machine code is kept on disk.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from limes._arrays import Bools, Floats, Ints


@njit(cache=True, nogil=True)
def preorder(
    feature: Ints, left: Ints, right: Ints, roots: Ints
) -> tuple[Ints, Ints, Ints, Ints, Bools, Ints]:
    """Nodes of all trees in depth-first order.

    Returns node, parent's position, depth, column of the edge above (-1 at roots), whether that edge goes
    left, and the position of the last edge above on the same column (-1 if there is none), all (N,).
    """
    count = feature.size
    node = np.empty(count, np.int64)
    parent = np.empty(count, np.int64)
    depth = np.empty(count, np.int64)
    column = np.empty(count, np.int64)
    is_left = np.zeros(count, np.bool_)
    same = np.full(count, -1, np.int64)
    stack = np.empty((count + 1, 4), np.int64)
    at = 0
    for root in roots:
        top = 0
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = root, -1, 0, 0
        while top >= 0:
            here, above, level, goes_left = stack[top]
            top -= 1
            node[at], parent[at], depth[at] = here, above, level
            column[at] = -1 if above < 0 else feature[node[above]]
            is_left[at] = goes_left == 1
            edge = above
            while edge >= 0 and column[edge] != column[at]:
                edge = parent[edge]
            same[at] = edge
            if feature[here] >= 0:
                for child, side in ((right[here], 0), (left[here], 1)):
                    top += 1
                    stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = child, at, level + 1, side
            at += 1
    return node[:at], parent[:at], depth[:at], column[:at], is_left[:at], same[:at]


@njit(cache=True, nogil=True)
def intervals(
    column: Ints, same: Ints, is_left: Bools, rank: Ints, missing_left: Bools, whole: Ints
) -> tuple[Ints, Ints, Bools]:
    """What is known of x[column] below each edge: ranks of thresholds, and whether it may be missing.

    ``rank`` and ``missing_left`` belong to the edge's upper node; ``whole[j]`` is the rank of +inf in
    column j.
    """
    count = column.size
    lower = np.zeros(count, np.int64)
    upper = np.zeros(count, np.int64)
    missing = np.ones(count, np.bool_)
    for e in range(count):
        if column[e] < 0:
            continue
        low, high, may_miss = 0, whole[column[e]], True
        if same[e] >= 0:
            low, high, may_miss = lower[same[e]], upper[same[e]], missing[same[e]]
        if is_left[e]:
            high = min(high, rank[e])
        else:
            low = max(low, rank[e])
        lower[e], upper[e] = low, max(low, high)
        missing[e] = may_miss and (missing_left[e] == is_left[e])
    return lower, upper, missing


@njit(cache=True, nogil=True)
def fill(
    column: Ints,
    same: Ints,
    lower: Ints,
    upper: Ints,
    missing: Bools,
    functionals: Floats,
    start: Ints,
    mixing: Floats,
    ratio: Floats,
    change: Floats,
) -> None:
    """Tables of every edge and variant v of its column.

    ``functionals[start[j] + rank, v]`` holds two linear functionals of 1[x <= threshold of that rank], the
    last rank before ``start[j + 1]`` being 1[x is missing]; ``mixing[j, v]`` (2, 2) turns them into mean
    and contrast. ratio = mean / mean of the same column's last edge above, change = contrast/mean - the
    same above.
    """
    variants = ratio.shape[1]
    rho = np.zeros((column.size, variants))
    mean = np.ones((column.size, variants))
    for e in range(column.size):
        j = column[e]
        if j < 0:
            continue
        low, high, last = start[j] + lower[e], start[j] + upper[e], start[j + 1] - 1
        for v in range(variants):
            first = functionals[high, v, 0] - functionals[low, v, 0]
            second = functionals[high, v, 1] - functionals[low, v, 1]
            if missing[e]:
                first += functionals[last, v, 0]
                second += functionals[last, v, 1]
            average = mixing[j, v, 0, 0] * first + mixing[j, v, 0, 1] * second
            contrast = mixing[j, v, 1, 0] * first + mixing[j, v, 1, 1] * second
            above, rho_above = 1.0, 0.0
            if same[e] >= 0:
                above, rho_above = mean[same[e], v], rho[same[e], v]
            mean[e, v] = average
            rho[e, v] = contrast / average if average > 0.0 else 0.0
            ratio[e, v] = average / above if above > 0.0 else 0.0
            change[e, v] = rho[e, v] - rho_above


@njit(cache=True, nogil=True)
def explain_block(
    depth: Ints,
    column: Ints,
    is_leaf: Bools,
    value: Floats,
    ratio: Floats,
    change: Floats,
    cells: Ints,
    mean: Floats,
    contrast: Floats,
) -> None:
    """Add E_w f (rows, k) and contrasts (rows, d, k) of all trees, for rows given by their cells.

    ``cells`` is (d, rows). Nodes come depth first, so that only one path is ever open: its probabilities
    and sums stay in the processor's nearest memory.
    """
    rows, outputs = cells.shape[1], value.shape[1]
    deepest = depth.max() + 1
    probability = np.ones((deepest, rows))
    total = np.zeros((deepest, outputs, rows))
    effect = np.zeros((cells.shape[0], outputs, rows))
    open_node = np.zeros(deepest, np.int64)
    level = -1
    for e in range(depth.size):
        at = depth[e]
        while level >= at:
            _close(level, open_node[level], column, change, cells, total, effect, mean)
            level -= 1
        if at == 0:
            total[0] = 0.0
            if is_leaf[e]:
                _add_constant(value[e], mean)
                continue
        elif is_leaf[e]:
            _add_leaf(at, e, column, value, ratio, change, cells, probability, total, effect)
            continue
        else:
            _open(at, e, cells[column[e]], ratio, probability, total)
        open_node[at] = e
        level = at
    while level >= 0:
        _close(level, open_node[level], column, change, cells, total, effect, mean)
        level -= 1
    contrast += effect.transpose(2, 0, 1)


@njit(cache=True, nogil=True, inline="always")
def _open(at: int, e: int, here: Ints, ratio: Floats, probability: Floats, total: Floats) -> None:
    """Go down an edge."""
    for i in range(here.size):
        probability[at, i] = probability[at - 1, i] * ratio[e, here[i]]
    total[at] = 0.0


@njit(cache=True, nogil=True, inline="always")
def _add_constant(value: Floats, mean: Floats) -> None:
    """A tree that is one leaf."""
    for k in range(value.size):
        for i in range(mean.shape[0]):
            mean[i, k] += value[k]


@njit(cache=True, nogil=True, inline="always")
def _add_leaf(
    at: int,
    e: int,
    column: Ints,
    value: Floats,
    ratio: Floats,
    change: Floats,
    cells: Ints,
    probability: Floats,
    total: Floats,
    effect: Floats,
) -> None:
    """Open and close a leaf in one step."""
    j = column[e]
    here = cells[j]
    for k in range(value.shape[1]):
        v = value[e, k]
        for i in range(here.size):
            g = probability[at - 1, i] * ratio[e, here[i]] * v
            total[at - 1, k, i] += g
            effect[j, k, i] += g * change[e, here[i]]


@njit(cache=True, nogil=True, inline="always")
def _close(
    level: int,
    e: int,
    column: Ints,
    change: Floats,
    cells: Ints,
    total: Floats,
    effect: Floats,
    mean: Floats,
) -> None:
    """Hand what a finished subtree has summed up to its edge's column and to its parent."""
    rows, outputs = total.shape[2], total.shape[1]
    if level == 0:
        for k in range(outputs):
            for i in range(rows):
                mean[i, k] += total[0, k, i]
        return
    j = column[e]
    here = cells[j]
    for k in range(outputs):
        for i in range(rows):
            g = total[level, k, i]
            total[level - 1, k, i] += g
            effect[j, k, i] += g * change[e, here[i]]


@njit(cache=True, nogil=True)
def explain_row(
    parent: Ints,
    column: Ints,
    is_leaf: Bools,
    value: Floats,
    ratio: Floats,
    change: Floats,
    cells: Ints,
    first: int,
    last: int,
    mean: Floats,
    contrast: Floats,
) -> None:
    """The same for one row, cells (d,), and the nodes first <= e < last of whole trees.

    Adds to mean (k,) and contrast (d, k).
    """
    outputs = value.shape[1]
    probability = np.empty(last - first)
    total = np.zeros((last - first, outputs))
    for e in range(first, last):
        above = parent[e]
        p = 1.0 if above < 0 else probability[above - first] * ratio[e, cells[column[e]]]
        probability[e - first] = p
        if is_leaf[e]:
            for k in range(outputs):
                total[e - first, k] = p * value[e, k]
    for e in range(last - 1, first - 1, -1):
        above = parent[e]
        for k in range(outputs):
            g = total[e - first, k]
            if above < 0:
                mean[k] += g
            else:
                total[above - first, k] += g
                contrast[column[e], k] += g * change[e, cells[column[e]]]
