r"""The pairwise search over the supports of a sparse surrogate; a constant is a column that is always chosen.

A node includes some literals (they are swept in) and excludes some; its children include one free literal
each, in the order of their shares q of the pairwise bound (``kernels/pairwise.cpp``), and exclude those
before it. Children are made one at a time, and the node with the lowest bound goes first: that bound is at
any time a lower bound of the optimum. A literal whose share is too small for any descendant that contains it
to beat the incumbent is excluded. Two free places are filled by trying all pairs.

The first incumbent is the projection of the moments, improved by exchanges of single literals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import count
from threading import Condition, Event, Lock, get_ident
from time import perf_counter
from typing import TypeAlias

import numpy as np

from limes import _kernels
from limes._arrays import ROUNDING, Floats, Ints
from limes._rules.problem import SampleProblem, bordered, project, summing_to
from limes._threads import in_workers

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
        lift = _LIFT * float(np.diag(problem.gram).mean()) or 1.0
        return cls(
            gram=problem.gram + lift,
            moments=problem.moments + lift * problem.target,
            square=problem.square + lift * problem.target**2,
            target=problem.target,
            tolerance=tolerance,
            always=(problem.size,) if problem.intercept else (),
        )

    def value(self, support: Ints) -> tuple[float, float]:
        """Return the objective on a support and the constant, and its multiplier η."""
        _, eta, value = self.solved(self.columns(support))
        return value + self.square, eta

    def solved(self, columns: Ints) -> tuple[Floats, float, float]:
        """Return u on these columns, η, and the objective less the mean square."""
        part, moments = self.gram[np.ix_(columns, columns)], self.moments[columns]
        u, eta = summing_to(self.target, part, moments)
        return u, eta, float(u @ part @ u - 2.0 * (moments @ u))

    def columns(self, support: Ints) -> Ints:
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


class Incumbent:
    """The best support so far, which all searches and their threads share."""

    def __init__(self, problem: SearchProblem, support: Ints, best: float) -> None:
        self.problem, self.support, self.best = problem, support, best
        self._lock = Lock()

    @property
    def cutoff(self) -> float:
        """The least bound that closes a node."""
        return self.best * (1.0 - self.problem.tolerance) - ROUNDING * self.problem.square

    def offer(self, support: Ints) -> None:
        """Keep a support, with or without the constant, if it is better than the best so far."""
        chosen = np.sort(support[~np.isin(support, self.problem.always)]).astype(np.int64)
        value, _ = self.problem.value(chosen)
        with self._lock:
            if value < self.best:
                self.best, self.support = value, chosen

    def improve(self, support: Ints, deadline: float) -> None:
        """Offer a support after exchanges of its literals for better ones."""
        self.offer(exchange_literals(self.problem, support, deadline))


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
        return replace(
            self,
            free=self.free[places],
            gram=np.ascontiguousarray(self.gram[places[:, None], places]),
            moments=self.moments[places],
            ones=self.ones[places],
            shares=None if self.shares is None else self.shares[places],
        )

    def child(self, place: int, bound: float) -> Node:
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
        return self._open[0][0]

    def put(self, node: Node, place: int, bound: float) -> None:
        self._bytes += node.gram.nbytes
        heappush(self._open, (bound, next(self._ticket), place, node))

    def pop(self) -> tuple[Node, int]:
        if self._bytes > _MEMORY:
            entry = max(self._open, key=lambda e: (-e[3].slots, -e[0]))
            self._open.remove(entry)
            heapify(self._open)
        else:
            entry = heappop(self._open)
        self._bytes -= entry[3].gram.nbytes
        return entry[3], entry[2]


# A literal that others determine up to this share of its variance is redundant, and cannot enter
_DEPENDENT = 1e-9
# Steps towards a better multiplier at the root, and at other nodes
_ROOT_TRIES, _TRIES = 16, 6
# A bound is computed again when more than this share of its literals has been excluded since
_STALE = 0.1
# An exchange must gain this share of the objective's scale: roundings are no gains
_WORTH = 1e-12

# Callback with lower bound and best objective
Report: TypeAlias = Callable[[float, float], object]


class PairwiseSearch:
    """The open nodes, which ``_turn`` guards, and the incumbent."""

    def __init__(
        self, problem: SearchProblem, size: int, k: int, deadline: float, threads: int, report: Report
    ) -> None:
        self.k = k
        self.nodes = 1
        self._problem, self._deadline, self._threads = problem, deadline, threads
        guess = np.flatnonzero(_projected_moments(problem, size, k))
        guess = np.union1d(guess, np.setdiff1d(np.arange(size), guess)[: k - guess.size])
        support = exchange_literals(problem, guess, deadline)
        best, self._eta = problem.value(support)
        self.incumbent = Incumbent(problem, support, best)
        self._open = Frontier()
        # by thread: the bound of the child in progress
        self._busy: dict[int, float] = {}
        self._turn = Condition()
        self._stop = Event()  # set by an error or Ctrl-C in one thread
        self._report = report

    def start(self, share: float) -> float:
        """Search from the root for a share of the time, at least the root's; return the lower bound."""
        if self.k == 1:
            return self.incumbent.best  # exchanges have tried every single literal
        began = perf_counter()
        self._push_all(self._processed(self._problem.root(self.k, self._eta), _ROOT_TRIES))
        now = perf_counter()
        return self.resume(min(self._deadline, now + max(share * (self._deadline - now), now - began)))

    def is_proved(self, lower: float) -> bool:
        return lower >= self.incumbent.cutoff

    def resume(self, deadline: float) -> float:
        """Search on until no node is open or the time is up; return the lower bound."""
        self._deadline = deadline
        in_workers(self._work, range(self._threads), self._threads, self._stop)
        finished = not self._open or self.is_proved(self._open.lowest)
        return self.incumbent.cutoff if finished else max(0.0, self._open.lowest)

    def _work(self, _: int) -> None:
        """Make children of the most promising nodes, one after the other."""
        while (step := self._next_child()) is not None:
            children: list[Node] = []
            try:
                children = self._children(*step)
            finally:
                with self._turn:
                    self._push_all(children)
                    del self._busy[get_ident()]
                    self._turn.notify_all()

    def _next_child(self) -> tuple[Node, int, float] | None:
        with self._turn:
            while perf_counter() <= self._deadline and not self._stop.is_set():
                if self._open and not self.is_proved(self._open.lowest):
                    return self._start(*self._open.pop())
                if not self._busy:
                    return None
                self._turn.wait()
        return None

    def _start(self, node: Node, place: int) -> tuple[Node, int, float]:
        """Mark a child as in progress, and push its parent back for the next child."""
        bound = node.bound_from(place)
        self._busy[get_ident()] = bound
        self.nodes += 1
        others = [self._open.lowest] if self._open else []
        self._report(min([*others, *self._busy.values()]), self.incumbent.best)
        if not self._is_stale(node, place):
            self._push(node, place + 1)
        return node, place, bound

    @staticmethod
    def _is_stale(node: Node, place: int) -> bool:
        """Return whether enough literals are excluded that the node's bound should be computed again."""
        return place >= 2 and place > _STALE * node.free.size

    def _children(self, node: Node, place: int, bound: float) -> list[Node]:
        if self._is_stale(node, place):
            rest = replace(node.restricted(np.arange(place, node.free.size)), bound=bound)
            return list(self._processed(rest, _TRIES))
        return list(self._processed(node.child(place, bound), _TRIES))

    def _push_all(self, nodes: Iterator[Node] | list[Node]) -> None:
        for node in nodes:
            self._push(node, 0)

    def _push(self, node: Node, place: int) -> None:
        if place < node.free.size and not self.is_proved(node.bound_from(place)):
            self._open.put(node, place, node.bound_from(place))

    def _processed(self, node: Node, tries: int) -> Iterator[Node]:
        """Close a node by enumeration or by its bound, or yield it for branching."""
        variance = np.diag(self._problem.gram)[node.free]
        independent = np.diag(node.gram) > _DEPENDENT * variance
        if not independent.all():
            node = node.restricted(np.flatnonzero(independent))
        if node.free.size <= node.slots:
            self.incumbent.offer(np.append(node.chosen, node.free))
        elif node.slots == 2:
            self._try_pairs(node)
        else:
            yield from self._tightened(node, tries)

    def _tightened(self, node: Node, tries: int) -> Iterator[Node]:
        """Yield the node with its bound and only the literals that may still improve; nothing if none may."""
        problem, before = self._problem, np.inf
        # fewer free literals make the bound tighter: repeat while at least 15 % of them go
        while node.free.size > node.slots and node.free.size <= 0.85 * before:
            before = node.free.size
            cutoff = self.incumbent.cutoff
            if perf_counter() > self._deadline:
                tries = 0  # the bound stays valid, but is not improved
            shares = np.empty(node.free.size)
            eta, floor = _kernels.tighten(
                node.gram, node.moments, node.ones, node.swept, node.slots, problem.square,
                problem.target, node.eta, cutoff, tries, shares,
            )  # fmt: skip
            order = np.argsort(-shares, kind="stable")
            most = shares[order[: node.slots]]
            bound = floor - most.sum()
            if bound >= cutoff:
                return
            may_improve = floor - most[:-1].sum() - shares[order] < cutoff
            node = replace(node, eta=eta, floor=floor, shares=shares, bound=max(node.bound, bound))
            node = node.restricted(order[may_improve])
        if node.free.size <= node.slots:
            self.incumbent.offer(np.append(node.chosen, node.free))
            return
        yield node

    def _try_pairs(self, node: Node) -> None:
        problem, best = self._problem, self.incumbent.best
        _, first, second = _kernels.best_pair(
            node.gram, node.moments, node.ones, node.swept, problem.square, problem.target, best
        )
        if first >= 0:
            self.incumbent.offer(np.append(node.chosen, node.free[[first, second]]))


def _projected_moments(problem: SearchProblem, size: int, k: int) -> Floats:
    """Return the projection of the moments, as if the literals were uncorrelated, (size,)."""
    variance = float(np.diag(problem.gram)[:size].mean())
    dense = problem.moments[:size] / variance
    if not problem.always:
        return project(dense, problem.target, k)
    constant, corner = float(problem.moments[size]), float(problem.gram[size, size])
    return project(dense, problem.target - constant / corner, k, corner / variance)


def exchange_literals(problem: SearchProblem, support: Ints, deadline: float) -> Ints:
    """Exchange literals of the support for better ones until none lowers the objective, or time is up."""
    # objectives less the mean square
    chosen, value = support.copy(), problem.value(support)[0] - problem.square
    better = True
    while better:
        better = False
        for place in range(chosen.size):
            if perf_counter() > deadline:
                break
            others = np.delete(chosen, place)
            entrant, lower = _best_entrant(problem, others)
            if lower < value - _WORTH * problem.square:
                chosen, value, better = np.append(others, entrant), lower, True
    return np.sort(chosen)


def _best_entrant(problem: SearchProblem, others: Ints) -> tuple[int, float]:
    """Return the literal that lowers the objective most when it joins the others, and that objective.

    The Schur complement of the others' bordered system gives the gain of every literal at once.
    """
    gram, target, others = problem.gram, problem.target, problem.columns(others)
    if not others.size:
        values = np.diag(gram) * target**2 - 2.0 * target * problem.moments
        return int(np.argmin(values)), float(values.min())
    u, eta, value = problem.solved(others)
    system = bordered(gram[np.ix_(others, others)])
    border = np.vstack([gram[others], np.ones(len(gram))])
    projected = np.linalg.lstsq(system, border, rcond=None)[0]
    variance = np.diag(gram) - (border * projected).sum(axis=0)
    residual = problem.moments + eta - gram[:, others] @ u
    allowed = variance > _DEPENDENT * np.diag(gram)
    allowed[others] = False
    gains = np.where(allowed, residual**2 / np.where(allowed, variance, 1.0), 0.0)
    best = int(np.argmax(gains))
    if not allowed[best]:
        return int(others[0]), np.inf
    return best, value - float(gains[best])
