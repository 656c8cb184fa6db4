"""The open nodes of a search: the lowest bound goes first, while memory lasts."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count

from limes.surrogates.search_nodes import Node

# Matrices of open nodes: beyond 1 GB the search goes deep before it goes wide
_MEMORY = 1 << 30


class Frontier:
    """Nodes with the place of the next child that each has to make, and that child's bound."""

    def __init__(self) -> None:
        self._open: list[tuple[float, int, int, Node]] = []
        self._ticket = count()
        self._held = 0

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def lowest(self) -> float:
        """Lowest bound of all."""
        return self._open[0][0]

    def put(self, node: Node, place: int, bound: float) -> None:
        """Open a node."""
        self._held += node.gram.nbytes
        heappush(self._open, (bound, next(self._ticket), place, node))

    def take(self) -> tuple[Node, int]:
        """Remove the node that goes next, and its place."""
        if self._held > _MEMORY:
            entry = max(self._open, key=lambda e: (-e[3].slots, -e[0]))
            self._open.remove(entry)
            heapify(self._open)
        else:
            entry = heappop(self._open)
        self._held -= entry[3].gram.nbytes
        return entry[3], entry[2]
