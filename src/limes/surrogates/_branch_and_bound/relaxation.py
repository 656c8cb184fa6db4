r"""The perspective relaxation with a ridge for every literal: the lower bound of a semidefinite program.

With ridges D ≥ 0 such that H - D is positive semidefinite, u'Hu = u'(H - D)u + Σ D_j u_j², and for shares
t ∈ [0, 1]^p, Σt = k, the sum Σ D_j u_j²/t_j is no more than the last term of a k-sparse u. The relaxation

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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, solve_triangular

from limes._arrays import Bools, Floats, Ints
from limes.surrogates._sparse import SampleProblem, summing_to

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
        """Return the problem of the literals alone."""
        y, d = problem.target, problem.size
        if problem.intercept:
            gram, moments, square = _without_constant(problem)
            return cls(gram, moments, np.zeros(d), square, 0.0, 1.0)
        lift = _LIFT / d
        gram, moments = problem.gram + lift, problem.moments + lift * y
        return cls(gram, moments, np.ones(d), problem.square + lift * y**2, y, 0.0)

    @property
    def constrained(self) -> bool:
        """Whether Σu is constrained; valid only before literals are swept in."""
        return self.slack == 0.0

    def value(self, support: Ints) -> float:
        """Return F of the best u on a support."""
        part, moments = self.gram[np.ix_(support, support)], self.moments[support]
        if self.constrained:
            u = summing_to(self.target, part, moments)[0]
        else:
            u = np.asarray(np.linalg.lstsq(part, moments, rcond=None)[0])
        return float(u @ part @ u - 2.0 * (moments @ u)) + self.square

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
        """Return the smallest eigenvalue of the correlations; 0 where it would be a rounding error."""
        variance = np.diag(self.gram)
        if variance.min() <= 0.0:
            return 0.0
        scale = 1.0 / np.sqrt(variance)
        smallest = float(np.linalg.eigvalsh(self.gram * scale * scale[:, None])[0])
        return smallest if smallest > _SMALLEST else 0.0


@dataclass(frozen=True, eq=False)
class Point:
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
        """Return the point of a problem in which only these literals are free."""
        return Point(self.u[places], self.shares[places], self.ridges[places], self.eta, self.level)


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A lower bound: ``base`` less the largest scores."""

    base: float
    scores: Floats
    slots: int

    @classmethod
    def at(cls, problem: FreeQuadratic, slots: int, point: Point) -> Relaxed:
        """Return the bound that a point gives."""
        pull = problem.gram @ point.u - point.ridges * point.u
        scores = (problem.moments + point.eta * problem.ones - pull) ** 2 / point.ridges
        multiplier = 2.0 * point.eta * problem.target - problem.slack * point.eta**2
        return cls(problem.square - float(point.u @ pull) + multiplier, scores, slots)

    @property
    def bound(self) -> float:
        """The lower bound."""
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
    """Newton's steps along the central path of one node.

    Parameters
    ----------
    problem
        The free literals, p of them.
    slots
        Number of literals to choose, fewer than p.
    point
        The starting point.
    """

    def __init__(self, problem: FreeQuadratic, slots: int, point: Point) -> None:
        self._problem, self._slots, self.point = problem, slots, point
        self._diagonal = np.diag_indices(problem.moments.size)
        self._factor = self._without_ridges(point.ridges)
        self.best = Relaxed.at(problem, slots, point) if self._factor is not None else None

    def step(self, barrier: float) -> float:
        """Step towards the point of barrier μ; return its length, 0.0 if rounding errors prevent a step."""
        moves = None if self._factor is None else self._direction(self._factor, barrier)
        if moves is None:
            return 0.0
        u, shares, ridges, eta, level = moves
        point = self.point
        length = min(
            1.0,
            _within(point.shares, shares),
            _within(1.0 - point.shares, -shares),
            _within(point.ridges, ridges),
        )
        for _ in range(_TRIES):
            factor = self._without_ridges(point.ridges + length * ridges)
            if factor is not None:
                break
            length *= _SHORTER
        else:
            return 0.0
        self._factor = factor
        self.point = Point(
            point.u + length * u,
            point.shares + length * shares,
            point.ridges + length * ridges,
            point.eta + length * eta,
            point.level + length * level,
        )
        bound = Relaxed.at(self._problem, self._slots, self.point)
        if self.best is None or bound.bound > self.best.bound:
            self.best = bound
        return length

    def _without_ridges(self, ridges: Floats) -> Floats | None:
        """Return the factor of H - D; None where it is not positive definite."""
        matrix = self._problem.gram.copy()
        matrix[self._diagonal] -= (1.0 + _MARGIN) * ridges
        return _factor(matrix)

    def _direction(
        self, factor: Floats, barrier: float
    ) -> tuple[Floats, Floats, Floats, float, float] | None:
        """Return Newton's step in u, t, D, η and λ; None where roundings leave no direction."""
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
        return du @ weights, shares_step @ weights, ridges_step @ weights, float(eta), float(level)


def _within(room: Floats, move: Floats) -> float:
    """Return the length of a step along ``move`` that keeps ``room`` positive; infinite if nothing falls."""
    falls = move < 0.0
    return float((-room[falls] / move[falls]).min()) * _REACH if falls.any() else np.inf


def _factor(matrix: Floats) -> Floats | None:
    """Return the lower Cholesky factor of a symmetric matrix, which is overwritten; None if indefinite."""
    factor, info = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1)
    return None if info else np.asarray(factor)


def _inverse(factor: Floats) -> Floats:
    """Return the symmetric inverse of a factor's matrix."""
    inverse = np.tril(lapack.dpotri(factor, lower=1)[0])
    return np.asarray(inverse + np.tril(inverse, -1).T)


def _without_constant(problem: SampleProblem) -> tuple[Floats, Floats, float]:
    """Return gram, moments and square of the literals alone: the constant is y less their sum."""
    y, cross, corner = problem.target, problem.gram[:-1, -1], float(problem.gram[-1, -1])
    mean = float(problem.moments[-1])
    gram = problem.gram[:-1, :-1] - (cross[:, None] + cross[None, :]) + corner
    moments = problem.moments[:-1] - mean - y * (cross - corner)
    return gram, moments, problem.square - 2.0 * y * mean + corner * y**2
