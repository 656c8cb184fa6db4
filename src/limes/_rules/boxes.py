r"""The search for the best sparse explanation whose weights lie in a box, where the box binds.

F is u'Hu - 2b·u + c, over Σu = y, at most k nonzero entries and |u_j| ≤ B. With ridges D ≥ 0 such that H - D
is positive semidefinite, and for any point v and number η,

    F(u) ≥ c - v'(H - D)v + 2ηy - Σ_j (2 p_j u_j - D_j u_j²),     p = b + η - (H - D)v,

so that F is at least the first three terms less the k largest scores, each the most that its term can be:

    score_j = 2|p_j| r_j - D_j r_j²,     r_j = min(|p_j|/D_j, B).

This is the bound of ``perspective.py`` with the box in the scores; it holds whatever v and η are. η is found
on ever finer grids: the bound is concave in it, and the sum of the entries ±r_j that count grows with it. v
moves towards these entries, as in the conditional gradient method.

A node of the search has chosen literals, whose scores always count, and free ones; its children decide the
free literal that counts most nearly half of the time. A support is worth its best fit in the box.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from time import perf_counter
from typing import NamedTuple, TypeAlias

import numpy as np

from limes._arrays import Floats, Ints
from limes._rules.perspective import FreeQuadratic, Relaxed
from limes._rules.problem import SampleProblem, boxed

# Objectives are compared up to this share of the mean of f²
_ROUNDING = 1e-12
# Ridges stay below the largest possible by this share, so that roundings of H - D are harmless
_MARGIN = 1e-6
# Steps of v at the root and at other nodes; the first step of n goes 2/(n + 2) of the way
_ROOT_STEPS, _STEPS = 100, 12
# Numbers η that are tried at once, and how often the interval around the best is cut again
_TRIED, _CUTS = 25, 3

# A node is processed again when this share of its literals has been excluded
_FEWER = 0.15

# Callback with lower bound and best objective
Report: TypeAlias = Callable[[float, float], object]


class _Node(NamedTuple):
    """Literals by position, and the point v and how often each counted on the way to it, (d,) each."""

    chosen: Ints
    free: Ints
    point: Floats
    shares: Floats
    bound: float

    def children(self) -> tuple[_Node, _Node]:
        """Choose, and exclude, the free literal whose share is nearest to a half."""
        place = int(np.argmin(np.abs(self.shares[self.free] - 0.5)))
        rest = np.delete(self.free, place)
        with_it = self._replace(chosen=np.append(self.chosen, self.free[place]), free=rest)
        point = self.point.copy()
        point[self.free[place]] = 0.0
        return with_it, self._replace(free=rest, point=point)


class BoxSearch:
    """The best support and weights so far, and the open nodes."""

    def __init__(self, problem: SampleProblem, k: int, tolerance: float, report: Report) -> None:
        self._problem, self._k, self._tolerance, self._report = problem, k, tolerance, report
        self._quadratic = FreeQuadratic.from_sample(problem)
        smallest = self._quadratic.smallest_eigenvalue() * (1.0 - _MARGIN)
        self._ridges = smallest * np.diag(self._quadratic.gram)
        self._rest = self._quadratic.gram - np.diag(self._ridges)
        self._seen: set[bytes] = set()
        self._open: list[tuple[float, int, _Node]] = []
        self._ticket = count()
        self.best, self.u, self.nodes = np.inf, np.zeros(problem.size), 0

    @property
    def cutoff(self) -> float:
        """The least bound that closes a node."""
        return self.best * (1.0 - self._tolerance) - _ROUNDING * self._quadratic.square

    def offer(self, support: Ints) -> None:
        """Keep the fit on a support if it is better than the best so far."""
        support = np.sort(support)
        if support.tobytes() in self._seen:
            return
        self._seen.add(support.tobytes())
        u = np.zeros(self._problem.size)
        u[support] = boxed(*self._problem.on_support(support), self._problem.target, self._problem.box)
        value = self._problem.objective(u)
        if value < self.best:
            self.best, self.u = value, u

    def run(self, lower: float, deadline: float) -> float:
        """Search until the best is proved or the time is up; return the lower bound, at least ``lower``."""
        d, nothing = self._problem.size, np.empty(0, dtype=np.int64)
        self._process(_Node(nothing, np.arange(d), np.zeros(d), np.zeros(d), lower), _ROOT_STEPS)
        while self._open and self._open[0][0] < self.cutoff and perf_counter() <= deadline:
            _, _, node = heappop(self._open)
            for child in node.children():
                self._process(child, _STEPS)
            self._report(max(lower, self._lowest), self.best)
        return max(lower, self._lowest)

    @property
    def _lowest(self) -> float:
        return min([self.cutoff, *(bound for bound, _, _ in self._open[:1])])

    def _process(self, node: _Node, steps: int) -> None:
        """Tighten a node's bound and open it, unless it is closed by the bound or has one support alone."""
        self.nodes += 1
        slots = self._k - node.chosen.size
        if slots == 0 or node.free.size <= slots:
            self.offer(np.concatenate([node.chosen, node.free[:slots]]))
            return
        point, shares, best = node.point, node.shares, None
        for step in range(steps):
            relaxed, u, counted = self._largest_scores(node, point, slots)
            best = relaxed if best is None or relaxed.bound > best.bound else best
            if best.bound >= self.cutoff:
                return
            length = 2.0 / (step + (2.0 if steps == _ROOT_STEPS else 4.0))
            point, shares = point + length * (u - point), shares + length * (counted - shares)
        order = np.argsort(-np.abs(point[node.free]), kind="stable")
        self.offer(np.concatenate([node.chosen, node.free[order[:slots]]]))
        assert best is not None  # noqa: S101 - there are steps
        enters, leaves = best.decided(self.cutoff)
        point[node.free[leaves]] = 0.0
        rest = node.free[~(enters | leaves)]
        tighter = _Node(
            np.append(node.chosen, node.free[enters]), rest, point, shares, max(node.bound, best.bound)
        )
        if rest.size <= self._k - tighter.chosen.size or rest.size < (1.0 - _FEWER) * node.free.size:
            self._process(tighter, _STEPS)
        elif tighter.bound < self.cutoff:
            heappush(self._open, (tighter.bound, next(self._ticket), tighter))

    def _largest_scores(self, node: _Node, point: Floats, slots: int) -> tuple[Relaxed, Floats, Floats]:
        """Return the bound at a point v and its best η; then the entries that count, and which do, (d,) each.

        On both sides of the best η these are two vertices, of which the mean with sum y is returned.
        """
        quadratic, box = self._quadratic, self._problem.box
        pull, places, fixed = self._rest @ point, np.append(node.chosen, node.free), node.chosen.size
        slopes, ridges = (quadratic.moments - pull)[places], self._ridges[places]
        base = quadratic.square - float(point @ pull)
        high = float(np.abs(slopes).max() + ridges.max() * box)
        low = -high
        for _ in range(_CUTS):
            levels = np.linspace(low, high, _TRIED)
            slants = slopes + levels[:, None]
            reach = np.full(slants.shape, box)
            np.divide(np.abs(slants), ridges, out=reach, where=np.abs(slants) < ridges * box)
            scores = (2.0 * np.abs(slants) - ridges * reach) * reach
            order = np.argsort(-scores[:, fixed:], axis=1, kind="stable")
            largest = np.take_along_axis(scores[:, fixed:], order[:, :slots], axis=1).sum(axis=1)
            values = 2.0 * quadratic.target * levels - scores[:, :fixed].sum(axis=1) - largest
            best = int(np.argmax(values))
            below, above = max(best - 1, 0), min(best + 1, _TRIED - 1)
            low, high = levels[below], levels[above]
        relaxed = Relaxed(base + float(values[best] + largest[best]), scores[best, fixed:], slots)
        vertices = np.zeros((2, 2, point.size))
        for vertex, i in zip(vertices, (below, above), strict=True):
            counted = np.append(node.chosen, node.free[order[i, :slots]])
            at = np.append(np.arange(fixed), fixed + order[i, :slots])
            vertex[0, counted] = np.copysign(reach[i, at], slants[i, at])
            vertex[1, counted] = 1.0
        (first, second), sums = vertices, vertices[:, 0].sum(axis=1)
        gap = sums[1] - sums[0]
        share = float(np.clip((quadratic.target - sums[0]) / gap, 0.0, 1.0)) if gap > 0 else 0.5
        u, counts = (1.0 - share) * first + share * second
        return relaxed, u, counts
