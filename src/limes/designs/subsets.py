"""Random sets of kept features that are spread more evenly than independent ones.

A few rows share a random order of the features, laid out in a circle, and each removes the next stretch of
it: what one row has removed, the next leaves. Their sizes differ as much as they can, so that together they
remove about every feature once. For a symmetric law of sizes that is a set and its complement. Each row on
its own is a uniform set of its size.
"""

from __future__ import annotations

import numpy as np

from limes._arrays import Floats, Ints

# More rows of one order would make their sets too much alike.
_MOST_ROWS_OF_AN_ORDER = 4


def low_variance_subsets(law: Floats, points: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Kept sets z (points, d) of 0 and 1, for the law (d + 1,) of the number of removed features.

    The second value (points,) is the number of the order that each row shares.
    """
    d = law.size - 1
    removed = stratified_counts(law, points, rng)
    orders = -(-points // _rows_of_an_order(law))
    order, start = _dealt(removed, orders, d)
    shuffled = rng.permutation(points)
    order = order[shuffled]
    removed, start = removed[shuffled, None].astype(np.int32), start[shuffled, None].astype(np.int32)
    # four bytes a place: the comparisons below are bound by memory
    place = rng.permuted(np.tile(np.arange(d), (orders, 1)), axis=1).astype(np.int32)[order]
    # the stretch from start, and what of it goes round the end of the circle
    end = start + removed
    gone = ((place >= start) & (place < end)) | (place < end - d)
    return (~gone).astype(np.float64), order


def stratified_counts(law: Floats, points: int, rng: np.random.Generator) -> Ints:
    """Ascending sizes (points,): the inverse distribution function at (i + u) / points."""
    levels = (np.arange(points) + rng.random()) / points
    cumulated = np.cumsum(law)
    # up to the last size that happens at all: rounding must not go beyond
    last = int(np.flatnonzero(law)[-1])
    return np.minimum(np.searchsorted(cumulated / cumulated[-1], levels, side="right"), last)


def every_subset(d: int) -> Floats:
    """All z (2^d, d)."""
    return ((np.arange(2**d)[:, None] >> np.arange(d)) & 1).astype(np.float64)


def _rows_of_an_order(law: Floats) -> int:
    """As many rows as remove every feature once between them."""
    d = law.size - 1
    mean = float(law @ np.arange(d + 1))
    rows = d / max(mean, 1.0 / d)
    return int(np.clip(np.rint(rows), 2, _MOST_ROWS_OF_AN_ORDER))


def _dealt(removed: Ints, orders: int, d: int) -> tuple[Ints, Ints]:
    """Deal rows of ascending sizes to orders, back and forth: the order of each and where its set starts."""
    row = np.arange(removed.size)
    turn, place = np.divmod(row, orders)
    order = np.where(turn % 2 == 0, place, orders - 1 - place)
    start, used = np.zeros_like(removed), np.zeros(orders, dtype=removed.dtype)
    for now in range(int(turn[-1]) + 1):
        rows = turn == now
        start[rows] = used[order[rows]]
        used[order[rows]] = (used[order[rows]] + removed[rows]) % d
    return order, start
