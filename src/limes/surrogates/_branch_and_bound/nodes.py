"""The problem that the pairwise search solves, its nodes, and the order in which open nodes are processed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import count

import numpy as np

from limes import _kernels
from limes._arrays import Floats, Ints
from limes.surrogates._sparse import SampleProblem, summing_to

# Objectives are compared up to this share of the mean of f²: the rounding of sums of a few thousand terms
_ROUNDING = 1e-12
# A multiple of the squared constraint is 0 on the hyperplane, and keeps the matrix positive definite where
# literals depend on each other; a small one leaves them nearly uncorrelated
_LIFT = 1e-3
# Memory of open nodes: beyond 1 GB of matrices the search goes deep before it goes wide
_MEMORY = 1 << 30


@dataclass(frozen=True, eq=False)
class SearchProblem:
    """F(u) = u'Hu - 2b·u + c over Σu = y, and the tolerance at which to stop.

    ``always`` is the position of the constant, a column of every support; () without one.
    """

    gram: Floats
    moments: Floats
    square: float
    target: float
    tolerance: float
    always: tuple[int, ...] = ()

    @classmethod
    def from_sample(cls, problem: SampleProblem, tolerance: float) -> SearchProblem:
        """Add a small multiple of the squared constraint to the sample's problem."""
        lift = _LIFT * float(np.diag(problem.gram).mean()) or 1.0
        return cls(
            gram=problem.gram + lift,
            moments=problem.moments + lift * problem.target,
            square=problem.square + lift * problem.target**2,
            target=problem.target,
            tolerance=tolerance,
            always=(problem.size,) if problem.intercept else (),
        )

    @property
    def rounding(self) -> float:
        """Amount up to which objectives are compared."""
        return _ROUNDING * self.square

    def cutoff(self, best: float) -> float:
        """Bound from which on a node cannot improve on the best objective."""
        return best * (1.0 - self.tolerance) - self.rounding

    def value(self, support: Ints) -> tuple[float, float]:
        """Return the objective on a support and the constant, and its multiplier η."""
        columns = self.columns(support)
        part, moments = self.gram[np.ix_(columns, columns)], self.moments[columns]
        u, eta = summing_to(self.target, part, moments)
        return float(u @ part @ u - 2.0 * (moments @ u)) + self.square, eta

    def columns(self, support: Ints) -> Ints:
        """Return the support and the constant."""
        return np.append(support, np.array(self.always, dtype=support.dtype))

    def root(self, k: int, eta: float) -> Node:
        """Return the node of all supports of k literals; the constant is swept in."""
        d = self.moments.size - len(self.always)
        order = np.concatenate([np.array(self.always, dtype=np.int64), np.arange(d)])
        node = Node(
            (),
            k + len(self.always),
            order,
            np.ascontiguousarray(self.gram[np.ix_(order, order)]),
            np.ascontiguousarray(self.moments[order]),
            np.ones(order.size),
            np.zeros(3),
            eta,
            -np.inf,
        )
        return node.child(0, -np.inf) if self.always else node


@dataclass(frozen=True, eq=False)
class Node:
    """Literals swept in, those still free (with their Schur complement), and a bound for all descendants."""

    chosen: tuple[int, ...]
    slots: int
    free: Ints
    gram: Floats
    moments: Floats
    ones: Floats
    swept: Floats
    eta: float
    bound: float
    floor: float = 0.0
    shares: Floats | None = None

    def restricted(self, places: Ints) -> Node:
        """Return the node with only these of its free literals, in this order."""
        return replace(
            self,
            free=self.free[places],
            gram=np.ascontiguousarray(self.gram[places[:, None], places]),
            moments=self.moments[places],
            ones=self.ones[places],
            shares=None if self.shares is None else self.shares[places],
        )

    def child(self, place: int, bound: float) -> Node:
        """Return the child that includes one free literal and excludes those before it."""
        after = self.free.size - place - 1
        gram, moments, ones, swept = np.empty((after, after)), np.empty(after), np.empty(after), np.empty(3)
        _kernels.sweep_in(self.gram, self.moments, self.ones, self.swept, place, gram, moments, ones, swept)
        return Node(
            chosen=(*self.chosen, int(self.free[place])),
            slots=self.slots - 1,
            free=self.free[place + 1 :],
            gram=gram,
            moments=moments,
            ones=ones,
            swept=swept,
            eta=self.eta,
            bound=bound,
        )

    def bound_from(self, place: int) -> float:
        """Return a bound for all children from this place on; shares descend."""
        assert self.shares is not None  # noqa: S101 - only tightened nodes have children
        return max(self.bound, self.floor - float(self.shares[place : place + self.slots].sum()))


class Frontier:
    """Open nodes, the lowest bound first; each with the place of its next child and that child's bound."""

    def __init__(self) -> None:
        self._open: list[tuple[float, int, int, Node]] = []
        self._ticket = count()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def lowest(self) -> float:
        """Lowest bound of all nodes."""
        return self._open[0][0]

    def put(self, node: Node, place: int, bound: float) -> None:
        """Add a node."""
        self._bytes += node.gram.nbytes
        heappush(self._open, (bound, next(self._ticket), place, node))

    def pop(self) -> tuple[Node, int]:
        """Remove and return the next node and its place."""
        if self._bytes > _MEMORY:
            entry = max(self._open, key=lambda e: (-e[3].slots, -e[0]))
            self._open.remove(entry)
            heapify(self._open)
        else:
            entry = heappop(self._open)
        self._bytes -= entry[3].gram.nbytes
        return entry[3], entry[2]
