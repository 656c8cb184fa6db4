r"""The search on the perspective relaxation, the bound of a semidefinite program: for rules of many literals.

With ridges D ≥ 0 such that H - D is positive semidefinite, u'Hu = u'(H - D)u + Σ D_j u_j², and for shares t ∈
[0, 1]^p, Σt = k, the sum Σ D_j u_j²/t_j is no more than the last term of a k-sparse u. The relaxation

    max over D, η   min over u, t   u'(H - D)u + Σ D_j u_j²/t_j - 2(b + ηs)·u + c + 2ηy - δη²

is the semidefinite bound of Dong, Chen and Linderoth (2015): literals in doubt have the ridges, those that
are surely in or out have none. It is solved by Newton's method on its central path: with the barriers
-μ Σ log t(1 - t), μ log det(H - D) and μ Σ log D the optimality conditions are

    (H + q)u = b + ηs,   q = D(1/t - 1)
    λ = D u²/t² + μ/t - μ/(1 - t)
    u²(1/t - 1) + μ/D = μ diag(H - D)⁻¹,

and Σt = k, s·u + δη = y. A point on the way, wherever it lies, gives a lower bound of the problem,

    c - u'(H - D)u + 2ηy - δη² - (sum of the k largest scores),
    score_j = (b - (H - D)u + ηs)_j²/D_j,

so that no bound depends on the accuracy of a step; only H - D must be positive semidefinite, which its
Cholesky factor proves.

A node of the search chooses some literals, over which it minimises, and excludes others, whose columns it
drops. Its two children decide the literal whose share is nearest to a half; further literals are decided
without branching where the opposite choice has a bound above the incumbent. A node's relaxation starts from
its parent's solution.

The bound depends on the number of rows a literal more than on k. For 15 of 200 literals and 1,000 rows, where
the pairwise bound is void, it starts 4 % below the optimum and the search takes some fifty nodes; for 15 of
464 literals it starts 16 % below, and hundreds of nodes gain little.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from limes._arrays import ROUNDING, Bools, Floats, Ints
from limes._rules.pairwise import Incumbent, Report
from limes._rules.problem import SampleProblem, boxed

# Multiple of the squared constraint that is added: it is 0 on the hyperplane, and spreads it over literals
_LIFT = 10.0
# A smallest eigenvalue below this share of the variances is a rounding error
_SMALLEST = 1e-9
# First ridges as a share of the largest possible: the path starts inside
_INSIDE = 0.8
# A step covers at most the first share of the way to a bound of t and D, is shortened by the second factor,
# and at most as often as the third, until H - D is positive definite
_REACH, _SHORTER, _TRIES = 0.9, 0.6, 12
# H - D stays positive definite when D grows by this, so that roundings of the bound are harmless
_MARGIN = 1e-7


@dataclass(frozen=True, eq=False)
class FreeQuadratic:
    """u'Hu - 2(b + ηs)·u + c + 2ηy - δη², to be maximised over η: F of the literals that are free.

    Where Σu is constrained, s is 1 and δ is 0 before literals are swept in; where not, s is 0 and δ is 1.
    """

    gram: Floats
    moments: Floats
    ones: Floats
    square: float
    target: float
    slack: float

    @classmethod
    def from_sample(cls, problem: SampleProblem) -> FreeQuadratic:
        y, d = problem.target, problem.size
        if problem.intercept:
            gram, moments, square = _without_constant(problem)
            return cls(gram, moments, np.zeros(d), square, 0.0, 1.0)
        lift = _LIFT / d
        gram, moments = problem.gram + lift, problem.moments + lift * y
        return cls(gram, moments, np.ones(d), problem.square + lift * y**2, y, 0.0)

    def reduced(self, chosen: Ints, free: Ints) -> FreeQuadratic:
        """Return the problem of the free literals, minimised over the chosen ones, which are independent."""
        gram, sides = self.gram[free[:, None], free], np.stack([self.moments, self.ones], axis=1)
        moments, ones = sides[free].T
        if not chosen.size:
            return FreeQuadratic(gram, moments, ones, self.square, self.target, self.slack)
        factor = np.linalg.cholesky(self.gram[chosen[:, None], chosen])
        cross = self.gram[chosen[:, None], free]
        swept = solve_triangular(factor, np.concatenate([cross, sides[chosen]], axis=1), lower=True)
        cross, (b, s) = swept[:, :-2], swept[:, -2:].T
        return FreeQuadratic(
            gram - cross.T @ cross,
            moments - b @ cross,
            ones - s @ cross,
            self.square - float(b @ b),
            self.target - float(b @ s),
            self.slack + float(s @ s),
        )

    def smallest_eigenvalue(self) -> float:
        variance = np.diag(self.gram)
        if variance.min() <= 0.0:
            return 0.0
        scale = 1.0 / np.sqrt(variance)
        smallest = float(np.linalg.eigvalsh(self.gram * scale * scale[:, None])[0])
        return smallest if smallest > _SMALLEST else 0.0


class Point(NamedTuple):
    """A point near the central path: u, shares t, ridges D, and the multipliers η of Σu and λ of Σt."""

    u: Floats
    shares: Floats
    ridges: Floats
    eta: float
    level: float

    @classmethod
    def start(cls, problem: FreeQuadratic, k: int, smallest: float) -> Point:
        """Return equal shares, and ridges that leave every H - D positive definite."""
        d = problem.moments.size
        shares, ridges = np.full(d, k / d), _INSIDE * smallest * np.diag(problem.gram)
        matrix = problem.gram.copy()
        matrix[np.diag_indices(d)] += ridges * (1.0 / shares - 1.0)
        both = np.stack([problem.moments, problem.ones], axis=1)
        free, unit = lapack.dposv(matrix, both, lower=1)[1].T
        eta = (problem.target - problem.ones @ free) / (problem.ones @ unit + problem.slack)
        u = free + eta * unit
        return cls(u, shares, ridges, float(eta), float(np.median(ridges * (u / shares) ** 2)))

    def among(self, places: Bools) -> Point:
        return self._replace(u=self.u[places], shares=self.shares[places], ridges=self.ridges[places])

    def moved(self, move: Point, length: float) -> Point:
        return Point(
            self.u + length * move.u,
            self.shares + length * move.shares,
            self.ridges + length * move.ridges,
            self.eta + length * move.eta,
            self.level + length * move.level,
        )


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A lower bound: ``base`` less the largest scores."""

    base: float
    scores: Floats
    slots: int

    @classmethod
    def at(cls, problem: FreeQuadratic, slots: int, point: Point) -> Relaxation:
        pull = problem.gram @ point.u - point.ridges * point.u
        scores = (problem.moments + point.eta * problem.ones - pull) ** 2 / point.ridges
        multiplier = 2.0 * point.eta * problem.target - problem.slack * point.eta**2
        return cls(problem.square - float(point.u @ pull) + multiplier, scores, slots)

    @property
    def bound(self) -> float:
        return self.base - float(np.partition(self.scores, -self.slots)[-self.slots :].sum())

    def decided(self, cutoff: float) -> tuple[Bools, Bools]:
        """Return which literals every solution below the cutoff contains, and which none does, each (p,)."""
        scores, slots = self.scores, self.slots
        order = np.argsort(-scores, kind="stable")
        largest = np.zeros(scores.size, dtype=np.bool_)
        largest[order[:slots]] = True
        total, last, next_best = scores[largest].sum(), scores[order[slots - 1]], scores[order[slots]]
        enters = largest & (self.base - (total - scores + next_best) >= cutoff)
        leaves = ~largest & (self.base - (total - last + scores) >= cutoff)
        return enters, leaves


class CentralPath:
    """Newton's steps along the central path of one node."""

    def __init__(self, problem: FreeQuadratic, slots: int, point: Point) -> None:
        self._problem, self._slots, self.point = problem, slots, point
        self._diagonal = np.diag_indices(problem.moments.size)
        self._factor = self._without_ridges(point.ridges)
        self.best = Relaxation.at(problem, slots, point) if self._factor is not None else None

    def step(self, barrier: float) -> float:
        move = None if self._factor is None else self._direction(self._factor, barrier)
        if move is None:
            return 0.0
        point = self.point
        length = min(
            1.0,
            _within(point.shares, move.shares),
            _within(1.0 - point.shares, -move.shares),
            _within(point.ridges, move.ridges),
        )
        for _ in range(_TRIES):
            factor = self._without_ridges(point.ridges + length * move.ridges)
            if factor is not None:
                break
            length *= _SHORTER
        else:
            return 0.0
        self._factor = factor
        self.point = point.moved(move, length)
        bound = Relaxation.at(self._problem, self._slots, self.point)
        if self.best is None or bound.bound > self.best.bound:
            self.best = bound
        return length

    def _without_ridges(self, ridges: Floats) -> Floats | None:
        matrix = self._problem.gram.copy()
        matrix[self._diagonal] -= (1.0 + _MARGIN) * ridges
        return _factor(matrix)

    def _direction(self, factor: Floats, barrier: float) -> Point | None:
        """Return Newton's step; None where roundings leave no direction."""
        problem, point, at = self._problem, self.point, self._diagonal
        u, ridges, inverse_shares = point.u, point.ridges, 1.0 / point.shares
        away = 1.0 / (1.0 - point.shares)
        spread = _inverse(factor)
        extra = ridges * (inverse_shares - 1.0)
        # residuals of the three optimality conditions
        of_u = problem.moments + point.eta * problem.ones - problem.gram @ u - extra * u
        pull = ridges * (u * inverse_shares) ** 2
        of_shares = pull + barrier * (inverse_shares - away) - point.level
        of_ridges = barrier * (spread[at] - 1.0 / ridges) - u**2 * (inverse_shares - 1.0)
        # the shares' step is eliminated: curvature · dt = of_shares - dλ + 2 a du + g dD
        curvature = 2.0 * pull * inverse_shares + barrier * (inverse_shares**2 + away**2)
        a, g = ridges * u * inverse_shares**2, (u * inverse_shares) ** 2
        # then the ridges' step: C dD = 2 β du - (their right-hand sides)
        beta = u * (inverse_shares - 1.0) - a * g / curvature
        matrix = barrier * spread * spread
        matrix[at] += barrier / ridges**2 + g**2 / curvature
        of_ridges_factor = _factor(matrix)
        if of_ridges_factor is None:
            return None
        response = _inverse(of_ridges_factor)
        matrix = problem.gram + (2.0 * beta[:, None] * beta) * response
        matrix[at] += extra - 2.0 * a**2 / curvature
        of_u_factor = _factor(matrix)
        if of_u_factor is None:
            return None
        zero = np.zeros(u.size)
        # columns: the step itself, and its change with dλ and with dη
        to_shares = np.stack([of_shares, -np.ones(u.size), zero], axis=1) / curvature[:, None]
        to_ridges = response @ (np.stack([of_ridges, zero, zero], axis=1) + g[:, None] * to_shares)
        right = (
            np.stack([of_u, zero, problem.ones], axis=1) + a[:, None] * to_shares + beta[:, None] * to_ridges
        )
        du = lapack.dpotrs(of_u_factor, right, lower=1)[0]
        ridges_step = 2.0 * (response @ (beta[:, None] * du)) - to_ridges
        shares_step = to_shares + (2.0 * a[:, None] * du + g[:, None] * ridges_step) / curvature[:, None]
        sums, dots = shares_step.sum(axis=0), problem.ones @ du
        system = np.array([sums[1:], [dots[1], dots[2] + problem.slack]])
        lacking = [
            self._slots - point.shares.sum() - sums[0],
            problem.target - problem.ones @ u - problem.slack * point.eta - dots[0],
        ]
        level, eta = np.linalg.solve(system, lacking)
        weights = np.array([1.0, level, eta])
        return Point(du @ weights, shares_step @ weights, ridges_step @ weights, float(eta), float(level))


def _within(room: Floats, move: Floats) -> float:
    """Return the length of a step along ``move`` that keeps ``room`` positive; infinite if nothing falls."""
    falls = move < 0.0
    return float((-room[falls] / move[falls]).min()) * _REACH if falls.any() else np.inf


def _factor(matrix: Floats) -> Floats | None:
    factor, info = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1)
    return None if info else np.asarray(factor)


def _inverse(factor: Floats) -> Floats:
    inverse = np.tril(lapack.dpotri(factor, lower=1)[0])
    return np.asarray(inverse + np.tril(inverse, -1).T)


def _without_constant(problem: SampleProblem) -> tuple[Floats, Floats, float]:
    """Return gram, moments and square of the literals alone: the constant is y less their sum."""
    y, cross, corner = problem.target, problem.gram[:-1, -1], float(problem.gram[-1, -1])
    mean = float(problem.moments[-1])
    gram = problem.gram[:-1, :-1] - (cross[:, None] + cross[None, :]) + corner
    moments = problem.moments[:-1] - mean - y * (cross - corner)
    return gram, moments, problem.square - 2.0 * y * mean + corner * y**2


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
    path, barrier = CentralPath(problem.reduced(root.chosen, root.free), k, root.point), _ROOT_BARRIER
    for _ in range(_ROOT_STEPS):
        length = path.step(barrier * scale / root.free.size)
        if length == 0.0 or barrier < _SOLVED or perf_counter() > deadline:
            break
        if length > _NEARLY:
            barrier *= _FALL
    return path


class PerspectiveSearch:
    """Best-first search; ``nodes`` counts the root and splits."""

    def __init__(
        self, problem: SampleProblem, k: int, incumbent: Incumbent, deadline: float = np.inf
    ) -> None:
        self.nodes = 0
        self._problem, self._k = FreeQuadratic.from_sample(problem), k
        self._literals, self.incumbent, self._deadline = distinct_literals(problem), incumbent, deadline
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
            scale = min(self.incumbent.best, self._problem.square)
            path = _solved(self._problem, root, self._k, scale, self._deadline)
            self.incumbent.improve(_rounded(root, path.point, self._k), self._deadline)
            self._open_or_close(root, path)
            yield self._lower
        while self._open and not self.finished and perf_counter() <= deadline:
            _, _, node = heappop(self._open)
            self.nodes += 1
            for child in node.children():
                self._process(child)
            yield self._lower

    @property
    def finished(self) -> bool:
        return self.nodes > 0 and self._lower >= self.incumbent.cutoff

    @property
    def _lower(self) -> float:
        return min([self.incumbent.cutoff, *(bound for bound, _, _ in self._open[:1])])

    def _process(self, node: Branch) -> None:
        """Step along a node's path, or close the node by its only support."""
        slots = self._k - node.chosen.size
        if slots == 0 or node.free.size <= slots:
            self._offer(np.concatenate([node.chosen, node.free[:slots]]))
            return
        path = CentralPath(self._problem.reduced(node.chosen, node.free), slots, node.point)
        barrier = _BARRIER
        for _ in range(_STEPS):
            gap = self.incumbent.cutoff - _bound(node, path)
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
        if bound >= self.incumbent.cutoff:
            return
        rest = np.ones(node.free.size, dtype=np.bool_)
        chosen = node.chosen
        if path.best is not None:
            enters, leaves = path.best.decided(self.incumbent.cutoff)
            chosen, rest = np.append(chosen, node.free[enters]), ~(enters | leaves)
        child = Branch(chosen, node.free[rest], path.point.among(rest), bound)
        if chosen.size > node.chosen.size or child.free.size < (1.0 - _FEWER) * node.free.size:
            self._process(child)
        else:
            heappush(self._open, (bound, next(self._ticket), child))

    def _offer(self, support: Ints) -> None:
        """Keep a support if it is better than the best so far, then improve it by exchanges."""
        best = self.incumbent.best
        self.incumbent.offer(support)
        if self.incumbent.best < best:
            self.incumbent.improve(support, self._deadline)


def _bound(node: Branch, path: CentralPath) -> float:
    return node.bound if path.best is None else max(node.bound, path.best.bound)


def _rounded(node: Branch, point: Point, slots: int) -> Ints:
    return np.concatenate([node.chosen, node.free[np.argsort(-point.shares, kind="stable")[:slots]]])


# -- the search in a box -------------------------------------------------------------------------------------
#
# Weights of the paper's form may be bounded, |u_j| ≤ B. The bound above holds for any point v in place of u,
#
#     F(u) ≥ c - v'(H - D)v + 2ηy - Σ_j (2 p_j u_j - D_j u_j²),     p = b + η - (H - D)v,
#
# so that F is at least the first three terms less the k largest scores, each the most that its term can be in
# the box: score_j = 2|p_j| r_j - D_j r_j², r_j = min(|p_j|/D_j, B). It holds whatever v and η are. Ever finer
# grids search for η: the bound is concave in it, and the sum of the entries ±r_j that count grows with it. v
# moves towards these entries, as in the conditional gradient method; D is the same for all nodes. A support
# is worth its best fit in the box.

# Ridges stay below the largest possible by this share, so that roundings of H - D are harmless
_BOX_MARGIN = 1e-6
# Steps of v at the root and at other nodes; the first step of n goes 2/(n + 2) of the way
_BOX_ROOT_STEPS, _BOX_STEPS = 100, 12
# Numbers η that are tried at once, and how often the interval around the best is cut again
_TRIED, _CUTS = 25, 3


class _BoxNode(NamedTuple):
    """Literals by position, and the point v and how often each counted on the way to it, (d,) each."""

    chosen: Ints
    free: Ints
    point: Floats
    shares: Floats
    bound: float

    def children(self) -> tuple[_BoxNode, _BoxNode]:
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
        smallest = self._quadratic.smallest_eigenvalue() * (1.0 - _BOX_MARGIN)
        self._ridges = smallest * np.diag(self._quadratic.gram)
        self._rest = self._quadratic.gram - np.diag(self._ridges)
        self._seen: set[bytes] = set()
        self._open: list[tuple[float, int, _BoxNode]] = []
        self._ticket = count()
        self.best, self.u, self.nodes = np.inf, np.zeros(problem.size), 0

    @property
    def cutoff(self) -> float:
        """The least bound that closes a node."""
        return self.best * (1.0 - self._tolerance) - ROUNDING * self._quadratic.square

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
        self._process(_BoxNode(nothing, np.arange(d), np.zeros(d), np.zeros(d), lower), _BOX_ROOT_STEPS)
        while self._open and self._open[0][0] < self.cutoff and perf_counter() <= deadline:
            _, _, node = heappop(self._open)
            for child in node.children():
                self._process(child, _BOX_STEPS)
            self._report(max(lower, self._lowest), self.best)
        return max(lower, self._lowest)

    @property
    def _lowest(self) -> float:
        return min([self.cutoff, *(bound for bound, _, _ in self._open[:1])])

    def _process(self, node: _BoxNode, steps: int) -> None:
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
            length = 2.0 / (step + (2.0 if steps == _BOX_ROOT_STEPS else 4.0))
            point, shares = point + length * (u - point), shares + length * (counted - shares)
        order = np.argsort(-np.abs(point[node.free]), kind="stable")
        self.offer(np.concatenate([node.chosen, node.free[order[:slots]]]))
        assert best is not None  # noqa: S101 - there are steps
        enters, leaves = best.decided(self.cutoff)
        point[node.free[leaves]] = 0.0
        rest = node.free[~(enters | leaves)]
        tighter = _BoxNode(
            np.append(node.chosen, node.free[enters]), rest, point, shares, max(node.bound, best.bound)
        )
        if rest.size <= self._k - tighter.chosen.size or rest.size < (1.0 - _FEWER) * node.free.size:
            self._process(tighter, _BOX_STEPS)
        elif tighter.bound < self.cutoff:
            heappush(self._open, (tighter.bound, next(self._ticket), tighter))

    def _largest_scores(self, node: _BoxNode, point: Floats, slots: int) -> tuple[Relaxation, Floats, Floats]:
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
        relaxed = Relaxation(base + float(values[best] + largest[best]), scores[best, fixed:], slots)
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
