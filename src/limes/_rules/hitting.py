"""The smallest set that has an element of each of several sets, by branch and bound.

A set that is not hit yet has to be hit by one of its elements: the search tries each of them, and then
excludes it. Sets that have no element in common need one element each, which bounds the size from below.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

# Nodes after which a solver of integer programs takes over
_NODES = 20_000


def smallest_hitting_set(
    sets: Sequence[frozenset[int]], order: Sequence[int], at_least: int = 0
) -> frozenset[int]:
    """Return a smallest set of elements that hits all ``sets``, none of which is empty.

    ``order`` has all elements: of sets of one size those with later elements are preferred. No set is
    smaller than ``at_least``.
    """
    rank = {element: place for place, element in enumerate(order)}
    masks = _minimal(sum(1 << rank[element] for element in its) for its in sets)
    best = _Search(at_least).run(masks)
    if best is None:
        return _by_program(sets, order)
    return frozenset(order[place] for place in _elements(best))


def _minimal(masks: Iterable[int]) -> list[int]:
    """Drop sets that contain another one."""
    kept: list[int] = []
    for mask in sorted(set(masks), key=lambda mask: (mask.bit_count(), mask)):
        if not any(mask & other == other for other in kept):
            kept.append(mask)
    return kept


def _elements(mask: int) -> list[int]:
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


class _Search:
    def __init__(self, at_least: int) -> None:
        self._at_least, self._nodes = at_least, 0
        self._best: int | None = None
        self._size = 0

    def run(self, masks: list[int]) -> int | None:
        """Return the best set as bits; None where the search took too long."""
        self._best = _greedy(masks)
        self._size = self._best.bit_count()
        self._branch(masks, 0, 0)
        return None if self._nodes > _NODES else self._best

    def _branch(self, masks: list[int], chosen: int, size: int) -> None:
        self._nodes += 1
        if self._nodes > _NODES or self._size <= self._at_least:
            return
        if not masks:
            if size < self._size:
                self._best, self._size = chosen, size
            return
        if size + _disjoint(masks) >= self._size:
            return
        smallest = min(masks, key=int.bit_count)
        counts = {place: sum(mask >> place & 1 for mask in masks) for place in _elements(smallest)}
        for place in sorted(counts, key=lambda place: (-counts[place], -place)):
            bit = 1 << place
            self._branch([mask for mask in masks if not mask & bit], chosen | bit, size + 1)
            masks = [mask & ~bit for mask in masks]
            if not all(masks):
                return


def _greedy(masks: list[int]) -> int:
    chosen = 0
    while masks:
        width = max(mask.bit_length() for mask in masks)
        counts = [sum(mask >> place & 1 for mask in masks) for place in range(width)]
        bit = 1 << max(range(width), key=lambda place: (counts[place], place))
        chosen |= bit
        masks = [mask for mask in masks if not mask & bit]
    return chosen


def _disjoint(masks: list[int]) -> int:
    """Return a number of sets without a common element, small ones first."""
    used = number = 0
    for mask in sorted(masks, key=int.bit_count):
        if not mask & used:
            used |= mask
            number += 1
    return number


def _by_program(sets: Sequence[frozenset[int]], order: Sequence[int]) -> frozenset[int]:
    # imported where it is needed: the solver takes long to load
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp

    column = {element: place for place, element in enumerate(order)}
    matrix = np.zeros((len(sets), len(order)))
    for i, its in enumerate(sets):
        matrix[i, [column[element] for element in its]] = 1.0
    solved = milp(
        np.ones(len(order)),
        integrality=np.ones(len(order)),
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(matrix, 1.0, np.inf),
        options={"mip_rel_gap": 0.0},
    )
    return frozenset(order[place] for place in np.flatnonzero(solved.x > 0.5).tolist())
