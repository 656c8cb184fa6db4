r"""A search that branches on the perspective relaxation, for explanations of many literals.

A node chooses some literals, over which it minimises, and excludes others, whose columns it drops. Its two
children decide the literal whose share is nearest to a half; further literals are decided without branching
where the opposite choice has a bound above the incumbent. A node's relaxation starts from its parent's
solution.

The bound depends on the number of rows a literal more than on k. For 15 of 200 literals and 1,000 rows, where
the pairwise bound is void, it starts 4 % below the optimum and the search takes some fifty nodes; for 15 of
464 literals it starts 16 % below, and hundreds of nodes gain little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from time import perf_counter

import numpy as np

from limes._arrays import Ints
from limes.surrogates._branch_and_bound.relaxation import CentralPath, FreeQuadratic, Point
from limes.surrogates._sparse import SampleProblem

# Steps at the root, and at other nodes
_ROOT_STEPS, _STEPS = 30, 5
# The barrier of all literals together: at first a share of the objective, at nodes of the gap; it falls by a
# factor after a step of nearly full length
_ROOT_BARRIER, _BARRIER, _FALL, _NEARLY = 0.3, 0.5, 0.5, 0.6
# The root is solved when the barrier is this share of the objective
_SOLVED = 1e-3
# Time of the root's steps as a multiple of that of the eigenvalues that they start from
_ROOT_COST = 40.0
# A relaxation is solved again when this share of the literals has been excluded
_FEWER = 0.15


@dataclass(frozen=True, eq=False)
class Branch:
    """Chosen and free literals, a lower bound, and the point that the relaxation starts from."""

    chosen: Ints
    free: Ints
    point: Point
    bound: float = -np.inf

    def children(self) -> Iterator[Branch]:
        """Yield the children that choose and exclude the literal whose share is least certain."""
        shares = self.point.shares
        place = int(np.argmax(np.minimum(shares, 1.0 - shares)))
        rest = np.arange(self.free.size) != place
        point = self.point.among(rest)
        yield Branch(np.append(self.chosen, self.free[place]), self.free[rest], point, self.bound)
        yield Branch(self.chosen, self.free[rest], point, self.bound)


def is_of_use(problem: SampleProblem) -> bool:
    """Return whether there are enough rows for the perspective bound."""
    return 2 <= problem.size < problem.values.size


def perspective_bound(problem: SampleProblem, k: int) -> float:
    """Return a lower bound of F over Σu = y and at most k nonzero entries; 0 where the bound is void."""
    if not is_of_use(problem):
        return 0.0
    quadratic = FreeQuadratic.from_sample(problem)
    root = _root(quadratic, distinct_literals(problem), k)
    if root is None:
        return 0.0
    return max(0.0, _bound(root, _solved(quadratic, root, k, quadratic.square, np.inf)))


def distinct_literals(problem: SampleProblem) -> Ints:
    """Return one literal of each group that hold in the same rows; with a constant, none that always holds.

    A support with another literal of a group, or with two of them, is no better than one with the first.
    """
    first: dict[bytes, int] = {}
    for j, column in enumerate(np.ascontiguousarray(problem.signs.T > 0.0)):
        first.setdefault(column.tobytes(), j)
    if problem.intercept:
        first.pop(np.ones(len(problem.signs), dtype=np.bool_).tobytes(), None)
    return np.array(sorted(first.values()), dtype=np.int64)


def _root(problem: FreeQuadratic, free: Ints, k: int) -> Branch | None:
    """Return the node in which nothing is decided; None where the bound is void."""
    nothing = np.empty(0, dtype=np.int64)
    among = problem.reduced(nothing, free)
    smallest = among.smallest_eigenvalue() if k < free.size else 0.0
    return Branch(nothing, free, Point.start(among, k, smallest)) if smallest > 0.0 else None


def _solved(problem: FreeQuadratic, root: Branch, k: int, scale: float, deadline: float) -> CentralPath:
    """Follow the root's path from the start to the end."""
    path, barrier = CentralPath(problem.reduced(root.chosen, root.free), k, root.point), _ROOT_BARRIER
    for _ in range(_ROOT_STEPS):
        length = path.step(barrier * scale / root.free.size)
        if length == 0.0 or barrier < _SOLVED or perf_counter() > deadline:
            break
        if length > _NEARLY:
            barrier *= _FALL
    return path


class PerspectiveSearch:
    """Best-first search; ``best`` and ``support`` are the incumbent, ``nodes`` counts the root and splits.

    Parameters
    ----------
    problem
        The sample's problem.
    k
        Number of literals.
    best, support
        Objective and support of an incumbent.
    cutoff
        Function of a best objective: the bound from which on a node cannot improve on it.
    improved
        Called with a support that may be better; returns one that is no worse.
    deadline
        Time by which the root has to be solved; if it cannot be, the bound is void.
    """

    def __init__(
        self,
        problem: SampleProblem,
        k: int,
        best: float,
        support: Ints,
        cutoff: Callable[[float], float],
        improved: Callable[[Ints], Ints] = np.sort,
        deadline: float = np.inf,
    ) -> None:
        self.best, self.support, self.nodes = best, support, 0
        self._problem, self._k = FreeQuadratic.from_sample(problem), k
        self._literals, self._deadline = distinct_literals(problem), deadline
        self._cutoff_of, self._improved = cutoff, improved
        self._open: list[tuple[float, int, Branch]] = []
        self._ticket = count()

    def run(self, deadline: float) -> Iterator[float]:
        """Yield the lower bound at the root and after every node, until it is proved or the time is up.

        Another call resumes the search. Nothing is yielded where the bound is void.
        """
        if not self.nodes:
            began = perf_counter()
            root = _root(self._problem, self._literals, self._k)
            now = perf_counter()
            if root is None or now + _ROOT_COST * (now - began) > self._deadline:
                return
            self.nodes = 1
            scale = min(self.best, self._problem.square)
            path = _solved(self._problem, root, self._k, scale, self._deadline)
            self.accept(self._improved(_rounded(root, path.point, self._k)))
            self._open_or_close(root, path)
            yield self._lower
        while self._open and self._lower < self._cutoff and perf_counter() <= deadline:
            _, _, node = heappop(self._open)
            self.nodes += 1
            for child in node.children():
                self._process(child)
            yield self._lower

    @property
    def finished(self) -> bool:
        """Whether the incumbent is proved."""
        return self.nodes > 0 and self._lower >= self._cutoff

    @property
    def _cutoff(self) -> float:
        return self._cutoff_of(self.best)

    @property
    def _lower(self) -> float:
        return min(self._cutoff, self._open[0][0]) if self._open else self._cutoff

    def _process(self, node: Branch) -> None:
        """Step along a node's path, or close the node by its only support."""
        slots = self._k - node.chosen.size
        if slots == 0 or node.free.size <= slots:
            self._offer(np.concatenate([node.chosen, node.free[:slots]]))
            return
        path = CentralPath(self._problem.reduced(node.chosen, node.free), slots, node.point)
        barrier = _BARRIER
        for _ in range(_STEPS):
            gap = self._cutoff - _bound(node, path)
            length = 0.0 if gap <= 0.0 else path.step(barrier * gap / node.free.size)
            if length == 0.0:
                break
            if length > _NEARLY:
                barrier *= _FALL
        self._open_or_close(node, path)

    def _open_or_close(self, node: Branch, path: CentralPath) -> None:
        """Close a node by its bound, or decide the literals that the bound decides and open the rest."""
        self._offer(_rounded(node, path.point, self._k - node.chosen.size))
        bound = _bound(node, path)
        if bound >= self._cutoff:
            return
        rest = np.ones(node.free.size, dtype=np.bool_)
        chosen = node.chosen
        if path.best is not None:
            enters, leaves = path.best.decided(self._cutoff)
            chosen, rest = np.append(chosen, node.free[enters]), ~(enters | leaves)
        child = Branch(chosen, node.free[rest], path.point.among(rest), bound)
        if chosen.size > node.chosen.size or child.free.size < (1.0 - _FEWER) * node.free.size:
            self._process(child)
        else:
            heappush(self._open, (bound, next(self._ticket), child))

    def accept(self, support: Ints) -> None:
        """Keep a support if it is better than the best so far."""
        value = self._problem.value(support)
        if value < self.best:
            self.best, self.support = value, np.sort(support)

    def _offer(self, support: Ints) -> None:
        """Keep a support if it is better than the best so far, then improve it by exchanges."""
        best = self.best
        self.accept(support)
        if self.best < best:
            self.accept(self._improved(support))


def _bound(node: Branch, path: CentralPath) -> float:
    """Return the bound of a node: the larger of its path's and its parent's."""
    return node.bound if path.best is None else max(node.bound, path.best.bound)


def _rounded(node: Branch, point: Point, slots: int) -> Ints:
    """Return the chosen literals and those with the largest shares."""
    return np.concatenate([node.chosen, node.free[np.argsort(-point.shares, kind="stable")[:slots]]])
