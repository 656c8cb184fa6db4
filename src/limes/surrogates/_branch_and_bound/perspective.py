r"""The perspective relaxation: a bound, and a search that branches on it, for few literals and many rows.

The relaxation divides the ridge of every literal by the share t_j of the literal that is chosen. With λ ≤ the
smallest eigenvalue of H, u'Hu = u'(H - λI)u + λ‖u‖², and for weights t ∈ [0, 1]^d, Σt = k, the term
λ Σ u_j²/t_j is a lower bound of the ridge of a k-sparse u. At any u, η the dual value is a lower bound:

    c - u'(H - λI)u + 2ηy - (sum of the k largest s_j)/λ,      s_j = (b - (H - λI)u + η)_j².

A node chooses some literals (their s_j count whatever their size) and excludes others, whose columns leave H:
λ grows. Both children of a node decide one literal, whose share is least certain; a literal is decided
without branching where the other choice has a bound beyond the incumbent. Good where d < m/2, and far better
than the pairwise bound for many literals (k = 15, 20); useless when λ is small. With a constant b = y - Σu
there is no constraint, and η = 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from time import perf_counter

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from limes._arrays import Bools, Floats, Ints
from limes.surrogates._sparse import SampleProblem, summing_to

# Steps of the alternating minimisation at the root, and at other nodes
_ROOT_STEPS, _STEPS = 60, 3
# With more literals a row than this the smallest eigenvalue is too small for a bound
_CROWDED = 0.5
# Multiple of the squared constraint that is added: it is 0 on the hyperplane, and raises λ
_LIFT = 10.0
# A smallest eigenvalue below this share of the variances is a rounding error
_SMALLEST = 1e-9
# λ as a share of the smallest eigenvalue: H - λI stays positive definite in spite of roundings
_BELOW = 0.999
# λ is computed again when so large a share of the literals has been excluded
_FEWER = 0.15
# Shares are positive: their reciprocals are finite
_LEAST_SHARE = 1e-7


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A lower bound: ``base`` less the largest scores of the free literals; and their shares."""

    base: float
    scores: Floats
    shares: Floats
    slots: int

    @property
    def bound(self) -> float:
        """The lower bound."""
        return self.base - float(np.partition(self.scores, -self.slots)[-self.slots :].sum())


@dataclass(frozen=True, eq=False)
class PerspectiveProblem:
    """F(u) = u'Hu - 2b·u + c; over Σu = y where it is constrained."""

    gram: Floats
    moments: Floats
    square: float
    target: float
    constrained: bool

    @staticmethod
    def is_of_use(problem: SampleProblem) -> bool:
        """Whether there are rows enough for a bound."""
        return 2 <= problem.size < _CROWDED * problem.values.size

    @classmethod
    def from_sample(cls, problem: SampleProblem) -> PerspectiveProblem:
        """Return the problem of the literals alone."""
        y = problem.target
        if problem.intercept:
            gram, moments, square = _without_constant(problem)
        else:
            lift = _LIFT / problem.size
            gram, moments = problem.gram + lift, problem.moments + lift * y
            square = problem.square + lift * y**2
        return cls(gram, moments, square, y, not problem.intercept)

    def ridge(self, columns: Ints) -> float:
        """Return λ of some columns; 0 where it would be a rounding error."""
        part = self.gram[np.ix_(columns, columns)]
        ridge = _BELOW * float(np.linalg.eigvalsh(part)[0])
        return ridge if ridge > _SMALLEST * float(np.diag(part).mean()) else 0.0

    def value(self, support: Ints) -> float:
        """Return F of the best u on a support."""
        part, moments = self.gram[np.ix_(support, support)], self.moments[support]
        if self.constrained:
            u = summing_to(self.target, part, moments)[0]
        else:
            u = np.asarray(np.linalg.lstsq(part, moments, rcond=None)[0])
        return float(u @ part @ u - 2.0 * (moments @ u)) + self.square

    def relaxed(self, node: Branch, slots: int, steps: int, deadline: float) -> Relaxed:
        """Alternate between u and the shares; return the best bound of all steps, and the last shares."""
        columns, n = np.concatenate([node.chosen, node.free]), node.chosen.size
        rest, moments = self.gram[np.ix_(columns, columns)], self.moments[columns]
        diagonal = np.diag_indices_from(rest)
        rest[diagonal] -= node.ridge
        shares, best = node.shares, None
        for _ in range(steps):
            matrix = rest.copy()
            matrix[diagonal] += node.ridge / np.concatenate([np.ones(n), shares])
            u, eta = self._stationary(matrix, moments)
            pull = rest @ u
            scores = (moments - pull + eta) ** 2 / node.ridge
            base = self.square - float(u @ pull) + 2.0 * eta * self.target - float(scores[:n].sum())
            shares = _best_shares(np.abs(u[n:]), slots)
            step = Relaxed(base, scores[n:], shares, slots)
            best = step if best is None or step.bound > best.bound else best
            if perf_counter() > deadline:
                break
        assert best is not None  # noqa: S101 - there is one step at least
        return replace(best, shares=shares)

    def _stationary(self, matrix: Floats, moments: Floats) -> tuple[Floats, float]:
        """Solve matrix u = moments + η1, with Σu = target where it is constrained and η = 0 where not."""
        factor = cho_factor(matrix, check_finite=False, overwrite_a=True)
        if not self.constrained:
            return cho_solve(factor, moments, check_finite=False), 0.0
        both = np.stack([moments, np.ones(moments.size)], axis=1)
        free, unit = cho_solve(factor, both, check_finite=False).T
        eta = float((self.target - free.sum()) / unit.sum())
        return free + eta * unit, eta


@dataclass(frozen=True, eq=False)
class Branch:
    """Chosen and free literals, with the shares and the ridge that the relaxation starts from."""

    chosen: Ints
    free: Ints
    shares: Floats
    ridge: float
    bound: float = -np.inf
    scores: Floats | None = None

    def without(self, place: int, slots: int, *, chosen: bool) -> Branch:
        """Return the child in which one free literal is decided."""
        rest = np.arange(self.free.size) != place
        return Branch(
            np.append(self.chosen, self.free[place]) if chosen else self.chosen,
            self.free[rest],
            _best_shares(self.shares[rest], slots - chosen),
            self.ridge,
            self.bound,
        )

    def least_certain(self) -> int:
        """Return the place of the literal to branch on."""
        return int(np.argmax(np.minimum(self.shares, 1.0 - self.shares) * self.scores))


def perspective_bound(problem: SampleProblem, k: int) -> float:
    """Return a lower bound of F over Σu = y and at most k nonzero entries; 0 where the bound is void."""
    if not PerspectiveProblem.is_of_use(problem):
        return 0.0
    quadratic = PerspectiveProblem.from_sample(problem)
    root = _root(quadratic, k)
    if root is None:
        return 0.0
    return max(0.0, quadratic.relaxed(root, k, _ROOT_STEPS, np.inf).bound)


def _root(problem: PerspectiveProblem, k: int) -> Branch | None:
    """Return the node in which nothing is decided; None where the bound is void."""
    d = problem.moments.size
    everything = np.arange(d)
    ridge = problem.ridge(everything)
    shares = np.full(d, min(1.0, k / d))
    return Branch(np.empty(0, dtype=np.int64), everything, shares, ridge) if ridge > 0.0 and k < d else None


class PerspectiveSearch:
    """Best-first search; ``best`` and ``support`` are the incumbent, ``nodes`` the nodes that were split.

    Parameters
    ----------
    problem
        The sample's problem.
    k
        Number of literals.
    best, support
        An incumbent.
    tolerance, rounding
        A node is closed if its bound is no more than this share, and this amount, below the incumbent.
    """

    def __init__(
        self,
        problem: PerspectiveProblem,
        k: int,
        best: float,
        support: Ints,
        tolerance: float,
        rounding: float,
    ) -> None:
        self.best, self.support, self.nodes = best, support, 0
        self._problem, self._k = problem, k
        self._tolerance, self._rounding = tolerance, rounding
        self._open: list[tuple[float, int, Branch]] = []
        self._ticket = count()

    def run(self, deadline: float) -> Iterator[float]:
        """Yield the lower bound at the root and after every node, until it is proved or the time is up."""
        root = _root(self._problem, self._k)
        if root is None:
            return
        self._process(root, _ROOT_STEPS, deadline)
        yield self._lower
        while self._open and self._lower < self._cutoff and perf_counter() <= deadline:
            _, _, node = heappop(self._open)
            self.nodes += 1
            place, slots = node.least_certain(), self._k - node.chosen.size
            for chosen in (True, False):
                self._process(node.without(place, slots, chosen=chosen), _STEPS, deadline)
            yield self._lower

    @property
    def _cutoff(self) -> float:
        return self.best * (1.0 - self._tolerance) - self._rounding

    @property
    def _lower(self) -> float:
        return min(self._cutoff, self._open[0][0]) if self._open else self._cutoff

    def _process(self, node: Branch, steps: int, deadline: float) -> None:
        """Close a node, or decide what its bound decides and open it."""
        while True:
            slots = self._k - node.chosen.size
            if slots == 0 or node.free.size <= slots:
                self._offer(np.concatenate([node.chosen, node.free[:slots]]))
                return
            try:
                relaxed = self._problem.relaxed(node, slots, steps, deadline)
            except LinAlgError:  # roundings of a matrix that is next to singular: the parent's bound stands
                relaxed = Relaxed(node.bound, np.zeros(node.free.size), node.shares, slots)
            order = np.argsort(-relaxed.scores, kind="stable")
            self._offer(np.concatenate([node.chosen, node.free[order[:slots]]]))
            bound = max(node.bound, relaxed.bound)
            if bound >= self._cutoff:
                return
            enters, leaves = _decided(relaxed, order, self._cutoff)
            fewer = leaves.sum() > _FEWER * node.free.size
            undecided = ~(enters | leaves)
            node = Branch(
                np.concatenate([node.chosen, node.free[enters]]),
                node.free[undecided],
                relaxed.shares[undecided],
                node.ridge,
                bound,
                relaxed.scores[undecided],
            )
            if not (enters.any() or fewer):
                heappush(self._open, (bound, next(self._ticket), node))
                return
            if fewer:
                columns = np.concatenate([node.chosen, node.free])
                node = replace(node, ridge=max(node.ridge, self._problem.ridge(columns)))

    def _offer(self, support: Ints) -> None:
        """Keep a support if it is better than the best so far."""
        value = self._problem.value(support)
        if value < self.best:
            self.best, self.support = value, np.sort(support)


def _decided(relaxed: Relaxed, order: Ints, cutoff: float) -> tuple[Bools, Bools]:
    """Return which free literals every better explanation contains, and which none does, each (free,)."""
    scores, slots = relaxed.scores, relaxed.slots
    largest = np.zeros(scores.size, dtype=np.bool_)
    largest[order[:slots]] = True
    total, last, next_best = scores[largest].sum(), scores[order[slots - 1]], scores[order[slots]]
    enters = largest & (relaxed.base - (total - scores + next_best) >= cutoff)
    leaves = ~largest & (relaxed.base - (total - last + scores) >= cutoff)
    return enters, leaves


def _without_constant(problem: SampleProblem) -> tuple[Floats, Floats, float]:
    """Return gram, moments and square of the literals alone: the constant is what they leave of y."""
    y, cross, corner = problem.target, problem.gram[:-1, -1], float(problem.gram[-1, -1])
    mean = float(problem.moments[-1])
    gram = problem.gram[:-1, :-1] - (cross[:, None] + cross[None, :]) + corner
    moments = problem.moments[:-1] - mean - y * (cross - corner)
    return gram, moments, problem.square - 2.0 * y * mean + corner * y**2


def _best_shares(sizes: Floats, k: int) -> Floats:
    """Return the t in (0, 1]^d with Σt = k that makes Σ u²/t least: t = min(1, |u|/τ)."""
    if k >= sizes.size:
        return np.ones(sizes.size)
    if k <= 0:
        return np.full(sizes.size, _LEAST_SHARE)
    falling = np.sort(sizes)[::-1]
    tails = np.cumsum(falling[::-1])[::-1]
    levels = tails[:k] / (k - np.arange(k))
    full = np.flatnonzero(falling[:k] < levels * (1 + 1e-12))
    level = levels[full[0]] if full.size else levels[-1]
    return np.asarray(np.clip(sizes / max(level, 1e-300), _LEAST_SHARE, 1.0))
