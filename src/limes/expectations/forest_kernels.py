"""Compiled passes over trees. Plain loops over arrays; what they compute is explained in ``forest.py``.

Every function releases the interpreter's lock, so that threads can share the work, and is compiled once:
the machine code is kept on disk.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from limes._arrays import Bools, Floats, Ints, Places


@njit(cache=True, nogil=True)
def preorder(
    feature: Ints, left: Ints, right: Ints, roots: Ints
) -> tuple[Ints, Ints, Ints, Ints, Bools, Ints]:
    """Nodes of all trees in depth-first order.

    Returns node, parent's position, depth, column of the edge above (-1 at roots), whether that edge goes
    left, and the position of the last edge above on the same column (-1 without one), all (N,).
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
            cell, above, level, goes_left = stack[top]
            top -= 1
            node[at], parent[at], depth[at] = cell, above, level
            column[at] = -1 if above < 0 else feature[node[above]]
            is_left[at] = goes_left == 1
            edge = above
            while edge >= 0 and column[edge] != column[at]:
                edge = parent[edge]
            same[at] = edge
            if feature[cell] >= 0:
                for child, side in ((right[cell], 0), (left[cell], 1)):
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
    above: Ints,
    is_left: Bools,
    functionals: Floats,
    start: Ints,
    mixing: Floats,
    table: Floats,
) -> None:
    """What the two edges below every split do, for each variant v of its column, (S, V, 4).

    ``table[s, v]`` holds ratio left, ratio right, change left, change right, with ratio = mean / mean of the
    same column's last edge above, change = contrast/mean - the same above.
    ``functionals[start[j] + rank, v]`` holds two linear functionals of 1[x <= threshold of that rank], the
    last rank before ``start[j + 1]`` being 1[x is missing]; ``mixing[j, v]`` (2, 2) turns them into mean
    and contrast. ``above[e]`` is the split that edge e leaves.
    """
    variants = table.shape[1]
    rho = np.zeros((column.size, variants))
    mean = np.ones((column.size, variants))
    for e in range(column.size):
        j = column[e]
        if j < 0:
            continue
        low, high, last = start[j] + lower[e], start[j] + upper[e], start[j + 1] - 1
        side = 0 if is_left[e] else 1
        for v in range(variants):
            first = functionals[high, v, 0] - functionals[low, v, 0]
            second = functionals[high, v, 1] - functionals[low, v, 1]
            if missing[e]:
                first += functionals[last, v, 0]
                second += functionals[last, v, 1]
            # differences of probabilities, which rounding must not make negative: what is likelier by far
            # elsewhere would be lost with them
            first = max(first, 0.0)
            if mixing[j, v, 1, 0] != 0.0:  # an indicator's second functional is a probability too
                second = max(second, 0.0)
            average = mixing[j, v, 0, 0] * first + mixing[j, v, 0, 1] * second
            contrast = mixing[j, v, 1, 0] * first + mixing[j, v, 1, 1] * second
            mean_above, rho_above = 1.0, 0.0
            if same[e] >= 0:
                mean_above, rho_above = mean[same[e], v], rho[same[e], v]
            mean[e, v] = average
            rho[e, v] = contrast / average if average > 0.0 else 0.0
            table[above[e], v, side] = average / mean_above if mean_above > 0.0 else 0.0
            table[above[e], v, 2 + side] = rho[e, v] - rho_above


# From here on places are unsigned: a signed one is checked for being negative at every use, which doubles the
# time of a row.


@njit(cache=True, nogil=True)
def explain_block(
    depth: Places,
    has_leaf: Bools,
    column: Places,
    parent: Places,
    side: Places,
    leaves: Floats,
    table: Floats,
    cells: Places,
    mean: Floats,
    contrast: Floats,
) -> None:
    """Add E_w f (rows, k) and contrasts (rows, d, k) of all trees, for rows given by their cells.

    ``cells`` is (d, rows). Splits come depth first, so that only one path is ever open: its probabilities
    and sums stay in the processor's nearest memory.
    """
    rows, outputs = cells.shape[1], leaves.shape[2]
    deepest = depth.max() + 1
    probability = np.ones((deepest, rows))
    total = np.zeros((deepest, outputs, rows))
    effect = np.zeros((cells.shape[0], outputs, rows))
    open_split = np.zeros(deepest, np.uint32)
    level = -1
    for s in range(depth.size):
        at = int(depth[s])
        while level >= at:
            _close(level, open_split[level], column, parent, side, table, cells, total, effect, mean)
            level -= 1
        if at > 0:
            above = parent[s]
            _go_down(at, cells[column[above]], table[above], side[s], probability)
        if has_leaf[s]:
            j = column[s]
            _add_leaves(probability[at], cells[j], table[s], leaves[s], total[at], effect[j])
        else:
            total[at] = 0.0
        open_split[at] = s
        level = at
    while level >= 0:
        _close(level, open_split[level], column, parent, side, table, cells, total, effect, mean)
        level -= 1
    contrast += effect.transpose(2, 0, 1)


@njit(cache=True, nogil=True, inline="always")
def _go_down(at: int, cell: Places, edges: Floats, side: int, probability: Floats) -> None:
    """The probability to reach a split from the one above."""
    for i in range(cell.size):
        probability[at, i] = probability[at - 1, i] * edges[cell[i], side]


@njit(cache=True, nogil=True, inline="always")
def _add_leaves(
    probability: Floats, cell: Places, edges: Floats, leaves: Floats, total: Floats, effect: Floats
) -> None:
    """Both children at once; one that is no leaf has the value 0 here."""
    for k in range(leaves.shape[1]):
        for i in range(cell.size):
            v = cell[i]
            left = probability[i] * edges[v, 0] * leaves[0, k]
            right = probability[i] * edges[v, 1] * leaves[1, k]
            total[k, i] = left + right
            effect[k, i] += left * edges[v, 2] + right * edges[v, 3]


@njit(cache=True, nogil=True, inline="always")
def _close(
    level: int,
    s: int,
    column: Places,
    parent: Places,
    side: Places,
    table: Floats,
    cells: Places,
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
    above = parent[s]
    j, change = column[above], 2 + side[s]
    cell = cells[j]
    for k in range(outputs):
        for i in range(rows):
            g = total[level, k, i]
            total[level - 1, k, i] += g
            effect[j, k, i] += g * table[above, cell[i], change]


@njit(cache=True, nogil=True)
def explain_row(
    column: Places,
    parent: Places,
    side: Places,
    leaves: Floats,
    table: Floats,
    cells: Places,
    starts: Places,
    mean: Floats,
    contrast: Floats,
) -> None:
    """The same for one row, cells (d,), and the trees whose first splits ``starts`` holds, and their end.

    Adds to mean (k,) and contrast (d, k). A tree goes down and up before the next one begins, so that the
    way up finds it in the processor's nearest memory; and no step depends on which child is a leaf.
    """
    outputs = leaves.shape[2]
    largest = np.diff(starts).max()
    probability = np.ones(largest)
    total = np.empty((largest, outputs))
    for t in range(starts.size - 1):
        first, last = starts[t], starts[t + 1]
        for s in range(first, last):
            if s > first:
                above = parent[s]
                cell = cells[column[above]]
                probability[s - first] = probability[above - first] * table[above, cell, side[s]]
            j = column[s]
            v, p = cells[j], probability[s - first]
            for k in range(outputs):
                left = p * table[s, v, 0] * leaves[s, 0, k]
                right = p * table[s, v, 1] * leaves[s, 1, k]
                total[s - first, k] = left + right
                contrast[j, k] += left * table[s, v, 2] + right * table[s, v, 3]
        for s in range(last - 1, first, -1):
            above = parent[s]
            j = column[above]
            change = table[above, cells[j], 2 + side[s]]
            for k in range(outputs):
                g = total[s - first, k]
                total[above - first, k] += g
                contrast[j, k] += g * change
        for k in range(outputs):
            mean[k] += total[0, k]
