"""The shortest list of candidates that covers what all of them cover, and the widest list of a length.

Greedy choice takes the candidate that covers most of what remains: its list has at most 1 + ln n times the
fewest, and of a given length it covers at least 1 - 1/e of the most. Prices y >= 0 of the rows, with which no
candidate costs more than 1, prove that no list has fewer than Σ y candidates; the dual of the linear program
has the best of them. Where the program in whole numbers is small, it is solved as well.

References
----------
Chvátal, "A greedy heuristic for the set-covering problem", 1979. Nemhauser, Wolsey and Fisher, "An analysis
of approximations for maximizing submodular set functions", 1978.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from limes._arrays import Bools, Floats, Ints

# Candidates times groups of rows up to which programs are solved, and nodes of those in whole numbers
_MOST_LINEAR, _MOST_WHOLE, _NODES = 4_000_000, 400_000, 2000
# Sums of prices below a whole number by less are at it
_SLACK = 1e-7


@dataclass(frozen=True)
class Chosen:
    """Positions of candidates, in the order of what they add, and what no other list can do."""

    positions: tuple[int, ...]
    bound: int  # of lists that cover all: no fewer candidates do; of a length: no list covers more rows


def shortest(covers: Bools) -> Chosen:
    """Return a short list of candidates (m, n) that covers each row that any of them covers."""
    groups, sizes = _groups(covers)
    if not groups.shape[1]:
        return Chosen((), 0)
    best = _without_needless(groups, _greedy(groups, sizes, groups.shape[0]))
    bound = 1
    if groups.size <= _MOST_LINEAR:
        bound = max(bound, ceil(_price(groups) - _SLACK))
    if bound < len(best) and groups.size <= _MOST_WHOLE:
        solution, proved = _fewest(groups)
        bound = max(bound, min(proved, len(best)))
        if solution is not None and len(solution) < len(best):
            best = solution
    return Chosen(_in_order(groups, sizes, best), bound)


def widest(covers: Bools, length: int) -> Chosen:
    """Return at most ``length`` candidates (m, n) that cover many rows."""
    groups, sizes = _groups(covers)
    if not groups.shape[1]:
        return Chosen((), 0)
    best, most = _greedy(groups, sizes, length), int(sizes.sum())
    reached = int(sizes[groups[best].any(axis=0)].sum())
    if reached < most and groups.size <= _MOST_WHOLE:
        solution, proved = _most_rows(groups, sizes, length)
        most = max(min(most, proved), reached)
        if solution is not None and int(sizes[groups[solution].any(axis=0)].sum()) > reached:
            best = solution
    return Chosen(_in_order(groups, sizes, best), most)


def _groups(covers: Bools) -> tuple[Bools, Ints]:
    """Return rows that the same candidates cover as one, (m, groups), and how many rows each has."""
    covered = covers[:, covers.any(axis=0)]
    if not covered.size:
        return covered, np.zeros(0, dtype=np.int64)
    groups, sizes = np.unique(covered, axis=1, return_counts=True)
    return np.asarray(groups, dtype=np.bool_), np.asarray(sizes, dtype=np.int64)


def _greedy(groups: Bools, sizes: Ints, length: int) -> list[int]:
    chosen, remaining = list[int](), sizes.copy()
    while remaining.any() and len(chosen) < length:
        best = int(np.argmax(groups @ remaining))
        chosen.append(best)
        remaining[groups[best]] = 0
    return chosen


def _in_order(groups: Bools, sizes: Ints, chosen: Sequence[int]) -> tuple[int, ...]:
    kept = sorted(chosen)
    order = _greedy(groups[kept], sizes, len(kept))
    return tuple(kept[i] for i in order)


def _without_needless(groups: Bools, chosen: list[int]) -> list[int]:
    """Drop candidates whose rows the others cover, the last first."""
    for candidate in reversed(chosen):
        others = [i for i in chosen if i != candidate]
        if others and groups[others].any(axis=0).all():
            chosen = others
    return chosen


def _price(groups: Bools) -> float:
    """Return Σ y of prices with which no candidate costs more than 1."""
    # imported where it is needed: the solver takes long to load
    from scipy.optimize import linprog

    solved = linprog(-np.ones(groups.shape[1]), A_ub=groups.astype(np.float64), b_ub=np.ones(len(groups)))
    if solved.x is None:
        return 0.0
    prices = np.maximum(solved.x, 0.0)
    # what the solver returns may cost a little more
    return float(prices.sum() / max(1.0, (groups @ prices).max()))


def _solved(objective: Floats, matrix: Floats, low: Floats, whole: Floats) -> tuple[Floats | None, float]:
    """Return the solution of a program in numbers from 0 to 1, and a lower bound of its value."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    solved = milp(
        objective,
        integrality=whole,
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(matrix, low, np.inf),
        options={"mip_rel_gap": 0.0, "node_limit": _NODES},
    )
    bound = getattr(solved, "mip_dual_bound", None)
    return solved.x, -np.inf if bound is None else float(bound)


def _fewest(groups: Bools) -> tuple[list[int] | None, int]:
    m, n = groups.shape
    x, bound = _solved(np.ones(m), groups.T.astype(np.float64), np.ones(n), np.ones(m))
    solution = None if x is None else np.flatnonzero(x > 0.5).tolist()
    if solution is not None and not groups[solution].any(axis=0).all():
        solution = None
    return solution, 1 if not np.isfinite(bound) else ceil(bound - _SLACK * m)


def _most_rows(groups: Bools, sizes: Ints, length: int) -> tuple[list[int] | None, int]:
    m, n = groups.shape
    reach = np.hstack([groups.T.astype(np.float64), -np.eye(n)])
    few = np.append(-np.ones(m), np.zeros(n))[None, :]
    x, bound = _solved(
        np.append(np.zeros(m), -sizes.astype(np.float64)),
        np.vstack([reach, few]),
        np.append(np.zeros(n), -float(length)),
        np.append(np.ones(m), np.zeros(n)),
    )
    solution = None if x is None else np.flatnonzero(x[:m] > 0.5).tolist()
    if solution is not None and len(solution) > length:
        solution = None
    return solution, int(sizes.sum()) if not np.isfinite(bound) else floor(-bound + _SLACK * sizes.sum())
