r"""The certified optimum of a sample's problem, by branch and bound on its Gram matrix.

A node has some literals swept in and some left out; its children take in one free literal each, in the order
of their shares q of the pairwise bound (``pairwise.py``), and leave out those before it. Children are made
one at a time, and the node with the lowest bound goes first: that bound is at any time a lower bound of the
optimum. A literal whose share cannot lift a node above the best known objective is left out for good. Two
free places are filled by trying all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Condition, get_ident
from time import perf_counter
from typing import TypeAlias

import numpy as np

from limes._arrays import Floats
from limes._checks import is_count
from limes.exceptions import InputError
from limes.surrogates.frontier import Frontier
from limes.surrogates.on_support import summing_to
from limes.surrogates.perspective import perspective_bound
from limes.surrogates.projection import project
from limes.surrogates.search_nodes import Node, Task, kernels
from limes.surrogates.sparse import Sample, SparseSolution, check_sparsity, solution
from limes.surrogates.swaps import improved

# A literal that those swept in determine up to this share of its variance adds nothing to them
_DEPENDENT = 1e-9
# Looks for a better multiplier at the root, and at other nodes
_ROOT_TRIES, _TRIES = 16, 6
# A bound is worked out again when more than this share of the literals has gone since
_STALE = 0.1

# Is told seconds, lower bound and best objective as the search goes on
Heard: TypeAlias = Callable[[float, float, float], object]


def branch_and_bound(
    problem: Sample,
    k: int,
    *,
    tolerance: float = 0.0,
    time_limit: float = 60.0,
    threads: int = 1,
    heard: Heard | None = None,
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
    threads
        That search together, >= 1. The proved optimum is the same for any number; which of several equally
        good explanations is found, and how many nodes it takes, is not.
    heard
        Called with seconds, lower bound and best objective at every node.

    Raises
    ------
    InputError
        If k, the tolerance, the time limit or the number of threads are out of range.

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
    if not is_count(threads):
        raise InputError(f"threads is a whole number >= 1; got {threads!r}")
    search = _Search(Task.of(problem, tolerance), problem.size, k, heard)
    lower = search.run(began, time_limit, threads)
    if lower < search.task.enough(search.best):
        lower = max(lower, perspective_bound(problem, k))
    u = np.zeros(problem.size)
    u[search.support], _ = summing_to(problem.target, *problem.on_support(search.support))
    closed = lower >= search.task.enough(search.best)
    bound = None if closed and tolerance == 0.0 else min(lower, search.best)
    return solution(problem, u, began=began, lower_bound=bound, tolerance=tolerance, nodes=search.nodes)


class _Search:
    """The incumbent, and the nodes that are still open; threads take turns under ``_turn``."""

    def __init__(self, task: Task, size: int, k: int, heard: Heard | None) -> None:
        self.task = task
        self.k = k
        self.nodes = 1
        guess = np.flatnonzero(project(task.moments / np.diag(task.gram).mean(), task.target, k))
        guess = np.union1d(guess, np.setdiff1d(np.arange(size), guess)[: k - guess.size])
        self.support = improved(task.gram, task.moments, task.square, task.target, guess)
        self.best, self._eta = task.value(self.support)
        self._open = Frontier()
        # by thread: the bound of the child that it is making
        self._busy: dict[int, float] = {}
        self._turn = Condition()
        self._heard = heard

    def run(self, began: float, time_limit: float, threads: int) -> float:
        """Search until nothing is open or the time is up: the lower bound then."""
        task, d = self.task, self.task.moments.size
        if self.k == 1:
            return self.best  # exchanges have tried every single literal
        self._began, self._deadline = began, began + time_limit
        root = Node(
            (), self.k, np.arange(d), task.gram, task.moments, np.ones(d), np.zeros(3), self._eta, -np.inf
        )
        self._open_all(self._settled(root, _ROOT_TRIES))
        if threads == 1:
            self._work()
        else:
            self._work_together(threads)
        done = not self._open or self._open.lowest >= task.enough(self.best)
        return task.enough(self.best) if done else max(0.0, self._open.lowest)

    def _work_together(self, threads: int) -> None:
        with ThreadPoolExecutor(threads) as pool:
            workers = [pool.submit(self._work) for _ in range(threads)]
            try:
                for worker in workers:
                    worker.result()
            finally:
                # an error, or Ctrl-C, ends the others too
                self._deadline = -np.inf

    def _work(self) -> None:
        """Make children of the most promising nodes, one after the other."""
        while (taken := self._taken()) is not None:
            found: list[Node] = []
            try:
                found = self._children(*taken)
            finally:
                with self._turn:
                    self._open_all(found)
                    del self._busy[get_ident()]
                    self._turn.notify_all()

    def _taken(self) -> tuple[Node, int, float] | None:
        """The next node, the place of its child, and that child's bound; None when there is no more to do."""
        with self._turn:
            while perf_counter() <= self._deadline:
                if self._open and self._open.lowest < self.task.enough(self.best):
                    return self._turned_to(*self._open.take())
                if not self._busy:
                    return None
                self._turn.wait()
        return None

    def _turned_to(self, node: Node, place: int) -> tuple[Node, int, float]:
        bound = node.bound_from(place)
        self._busy[get_ident()] = bound
        self.nodes += 1
        if self._heard is not None:
            others = [self._open.lowest] if self._open else []
            lower = max(0.0, min([*others, *self._busy.values()]))
            self._heard(perf_counter() - self._began, lower, self.best)
        if not self._is_stale(node, place):
            self._put_back(node, place + 1)
        return node, place, bound

    @staticmethod
    def _is_stale(node: Node, place: int) -> bool:
        """Whether so many of its literals are gone that the node's bound should be worked out again."""
        return place >= 2 and place > _STALE * node.free.size

    def _children(self, node: Node, place: int, bound: float) -> list[Node]:
        """One child, as it is to be opened; of a stale node all that is left of it."""
        if self._is_stale(node, place):
            rest = replace(node.picked(np.arange(place, node.free.size)), bound=bound)
            return list(self._settled(rest, _TRIES))
        return list(self._settled(node.child(place, bound), _TRIES))

    def _open_all(self, nodes: Iterator[Node] | list[Node]) -> None:
        for node in nodes:
            self._put_back(node, 0)

    def _put_back(self, node: Node, place: int) -> None:
        if place < node.free.size and node.bound_from(place) < self.task.enough(self.best):
            self._open.put(node, place, node.bound_from(place))

    def _settled(self, node: Node, tries: int) -> Iterator[Node]:
        """Close a node by enumeration or by its bound, or give it for branching."""
        own = np.diag(self.task.gram)[node.free]
        independent = np.diag(node.gram) > _DEPENDENT * own
        if not independent.all():
            node = node.picked(np.flatnonzero(independent))
        if node.free.size <= node.slots:
            self._offer(np.append(node.chosen, node.free))
        elif node.slots == 2:
            self._try_pairs(node)
        else:
            yield from self._tightened(node, tries)

    def _tightened(self, node: Node, tries: int) -> Iterator[Node]:
        """The node with its bound and with the literals that may still matter; nothing if none may."""
        task, before = self.task, np.inf
        while node.free.size > node.slots and node.free.size <= 0.85 * before:
            before = node.free.size
            enough = task.enough(self.best)
            eta, floor, shares = kernels().tighten(
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

    def _try_pairs(self, node: Node) -> None:
        task = self.task
        _, first, second = kernels().best_pair(
            node.gram, node.moments, node.ones, node.swept, task.square, task.target, self.best
        )
        if first >= 0:
            self._offer(np.append(node.chosen, node.free[[first, second]]))

    def _offer(self, support: Floats) -> None:
        """Keep a support if it is better than the best so far."""
        chosen = np.sort(support).astype(np.int64)
        value, _ = self.task.value(chosen)
        with self._turn:
            if value < self.best:
                self.best, self.support = value, chosen
