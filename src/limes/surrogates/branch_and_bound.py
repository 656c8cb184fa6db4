r"""The certified optimum of a sample's problem, by branch and bound on its Gram matrix.

A node has some literals swept in and some left out; its children take in one free literal each, in the order
of their shares q of the pairwise bound (``pairwise.py``), and leave out those before it. Children are made
one at a time, and the node with the lowest bound goes first: that bound is at any time a lower bound of the
optimum. A literal whose share cannot lift a node above the best known objective is left out for good. Two
free places are filled by trying all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from time import perf_counter
from types import ModuleType

import numpy as np

from limes._arrays import Floats, Ints
from limes.exceptions import InputError
from limes.surrogates.on_support import summing_to
from limes.surrogates.perspective import perspective_bound
from limes.surrogates.projection import project
from limes.surrogates.sparse import Sample, SparseSolution, check_sparsity, solution
from limes.surrogates.swaps import improved

# Objectives are compared up to this share of the mean of f²: sums of a few thousand terms are no more exact
_ROUNDING = 1e-12
# A literal that those swept in determine up to this share of its variance adds nothing to them
_DEPENDENT = 1e-9
# Adding a multiple of the squared constraint changes nothing where it holds, and keeps the matrix positive
# where literals depend on each other; a small one leaves them nearly uncorrelated
_LIFT = 1e-3
# Looks for a better multiplier at the root, and at other nodes
_ROOT_TRIES, _TRIES = 16, 6
# A bound is worked out again when more than this share of the literals has gone since
_STALE = 0.1
# Matrices of open nodes: beyond 1 GB the search goes deep before it goes wide
_MEMORY = 1 << 30


@dataclass(frozen=True, eq=False)
class _Task:
    """F(u) = u'Hu - 2b·u + c over Σu = y, and when to stop."""

    gram: Floats
    moments: Floats
    square: float
    target: float
    tolerance: float

    @classmethod
    def of(cls, problem: Sample, tolerance: float) -> _Task:
        lift = _LIFT * float(np.diag(problem.gram).mean()) or 1.0
        return cls(
            gram=problem.gram + lift,
            moments=problem.moments + lift * problem.target,
            square=problem.square + lift * problem.target**2,
            target=problem.target,
            tolerance=tolerance,
        )

    def enough(self, best: float) -> float:
        """What a bound has to reach for its node to be of no interest."""
        return best * (1.0 - self.tolerance) - _ROUNDING * self.square

    def value(self, support: Ints) -> tuple[float, float]:
        """Objective on a support, and its multiplier η."""
        part = self.gram[np.ix_(support, support)]
        u, eta = summing_to(self.target, part, self.moments[support])
        return float(u @ part @ u - 2.0 * (self.moments[support] @ u)) + self.square, eta


@dataclass(frozen=True, eq=False)
class _Node:
    """Literals swept in, those still free (with their Schur complement), and a bound of all beneath."""

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

    def picked(self, places: Ints) -> _Node:
        """The node with these of its free literals alone, in this order."""
        return replace(
            self,
            free=self.free[places],
            gram=_kernels().picked(self.gram, places),
            moments=self.moments[places],
            ones=self.ones[places],
            shares=None if self.shares is None else self.shares[places],
        )

    def child(self, place: int, bound: float) -> _Node:
        """Take one free literal in, and leave those before it out."""
        gram, moments, ones, swept = _kernels().swept_in(
            self.gram, self.moments, self.ones, self.swept, place
        )
        return _Node(
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
        """Bound of all children from this place on; shares descend."""
        assert self.shares is not None  # noqa: S101 - only tightened nodes have children
        return max(self.bound, self.floor - float(self.shares[place : place + self.slots].sum()))


def branch_and_bound(
    problem: Sample, k: int, *, tolerance: float = 0.0, time_limit: float = 60.0
) -> SparseSolution:
    """Minimise the sample's F(u) over Σu = y and at most k nonzero entries, with a certificate.

    Parameters
    ----------
    problem
        Its m rows should be many more than correlations need to be small (m = 1000 serves 500 literals).
    k
        Number of literals, 1 .. d.
    tolerance
        Stop once the gap is no larger; 0 asks for the optimum itself.
    time_limit
        Seconds, > 0. The gap that is left then is reported.

    Raises
    ------
    InputError
        If k, the tolerance or the time limit are out of range.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> signs = rng.choice([-1.0, 1.0], (500, 20))
    >>> values = 0.5 * signs[:, 3] - 0.3 * signs[:, 7] + 0.1 * signs[:, 11] * signs[:, 12]
    >>> found = branch_and_bound(Sample(np.ones(20), 0.2, signs, values), k=2)
    >>> found.support, found.proved
    (array([3, 7]), True)
    """
    began = perf_counter()
    check_sparsity(k, problem.size)
    if not 0 <= tolerance < 1 or not time_limit > 0:
        raise InputError(f"tolerance must be in [0, 1) and time_limit > 0; got {tolerance} and {time_limit}")
    search = _Search(_Task.of(problem, tolerance), problem.size, k)
    lower, nodes = search.run(began + time_limit)
    if lower < search.task.enough(search.best):
        lower = max(lower, perspective_bound(problem, k))
    u = np.zeros(problem.size)
    u[search.support], _ = summing_to(problem.target, *problem.on_support(search.support))
    closed = lower >= search.task.enough(search.best)
    bound = None if closed and tolerance == 0.0 else min(lower, search.best)
    return solution(problem, u, began=began, lower_bound=bound, tolerance=tolerance, nodes=nodes)


class _Search:
    """The incumbent, and the nodes that are still open."""

    def __init__(self, task: _Task, size: int, k: int) -> None:
        self.task = task
        self.k = k
        guess = np.flatnonzero(project(task.moments / np.diag(task.gram).mean(), task.target, k))
        guess = np.union1d(guess, np.setdiff1d(np.arange(size), guess)[: k - guess.size])
        self.support = improved(task.gram, task.moments, task.square, task.target, guess)
        self.best, self._eta = task.value(self.support)
        self._open: list[tuple[float, int, int, _Node]] = []
        self._ticket = count()
        self._held = 0

    def run(self, deadline: float) -> tuple[float, int]:
        """Search until nothing is open or the time is up: lower bound and nodes."""
        task, d = self.task, self.task.moments.size
        if self.k == 1:
            return self.best, 1  # exchanges have tried every single literal
        root = _Node(
            (), self.k, np.arange(d), task.gram, task.moments, np.ones(d), np.zeros(3), self._eta, -np.inf
        )
        self._settle(root, _ROOT_TRIES)
        nodes = 1
        while self._open and self._lowest < task.enough(self.best):
            if perf_counter() > deadline:
                return max(0.0, self._lowest), nodes
            nodes += 1
            self._advance(*self._taken())
        return task.enough(self.best), nodes

    @property
    def _lowest(self) -> float:
        return min(entry[0] for entry in self._open) if self._held > _MEMORY else self._open[0][0]

    def _taken(self) -> tuple[_Node, int]:
        if self._held > _MEMORY:
            entry = max(self._open, key=lambda e: (-e[3].slots, -e[0]))
            self._open.remove(entry)
        else:
            entry = heappop(self._open)
        self._held -= entry[3].gram.nbytes
        return entry[3], entry[2]

    def _advance(self, node: _Node, place: int) -> None:
        """Make one child, and put the rest of the node back."""
        bound = node.bound_from(place)
        if place >= 2 and place > _STALE * node.free.size:
            rest = replace(node.picked(np.arange(place, node.free.size)), bound=bound)
            self._settle(rest, _TRIES)
            return
        self._settle(node.child(place, bound), _TRIES)
        self._put_back(node, place + 1)

    def _put_back(self, node: _Node, place: int) -> None:
        if place < node.free.size and node.bound_from(place) < self.task.enough(self.best):
            self._held += node.gram.nbytes
            heappush(self._open, (node.bound_from(place), next(self._ticket), place, node))

    def _settle(self, node: _Node, tries: int) -> None:
        """Close a node by enumeration or by its bound, or open it for branching."""
        own = np.diag(self.task.gram)[node.free]
        independent = np.diag(node.gram) > _DEPENDENT * own
        if not independent.all():
            node = node.picked(np.flatnonzero(independent))
        if node.free.size <= node.slots:
            self._offer(np.append(node.chosen, node.free))
        elif node.slots == 2:
            self._try_pairs(node)
        else:
            for tightened in self._tightened(node, tries):
                self._put_back(tightened, 0)

    def _tightened(self, node: _Node, tries: int) -> Iterator[_Node]:
        """The node with its bound and with the literals that may still matter; nothing if none may."""
        task, before = self.task, np.inf
        while node.free.size > node.slots and node.free.size <= 0.85 * before:
            before = node.free.size
            enough = task.enough(self.best)
            eta, floor, shares = _kernels().tighten(
                node.gram, node.moments, node.ones, node.swept, node.slots, task.square, task.target,
                node.eta, enough, tries,
            )  # fmt: skip
            order = np.argsort(-shares, kind="stable")
            most = shares[order[: node.slots]]
            bound = floor - most.sum()
            if bound >= enough:
                return
            may_matter = floor - most[:-1].sum() - shares[order] < enough
            node = replace(node, eta=eta, floor=floor, shares=shares, bound=max(node.bound, bound))
            node = node.picked(order[may_matter])
        if node.free.size <= node.slots:
            self._offer(np.append(node.chosen, node.free))
            return
        yield node

    def _try_pairs(self, node: _Node) -> None:
        task = self.task
        _, first, second = _kernels().best_pair(
            node.gram, node.moments, node.ones, node.swept, task.square, task.target, self.best
        )
        if first >= 0:
            self._offer(np.append(node.chosen, node.free[[first, second]]))

    def _offer(self, support: Floats) -> None:
        """Keep a support if it is better than the best so far."""
        chosen = np.sort(support).astype(np.int64)
        value, _ = self.task.value(chosen)
        if value < self.best:
            self.best, self.support = value, chosen


def _kernels() -> ModuleType:
    """Compiled code is loaded, and numba with it, when a search begins."""
    from limes.surrogates import pairwise

    return pairwise
