"""The problem that a search solves, its nodes, the order in which open nodes are processed, and one bound.

The perspective bound divides the ridge of every literal by the share of the literal that is chosen. With
λ ≤ the smallest eigenvalue of H, u'Hu = u'(H - λI)u + λ‖u‖², and for weights t ∈ [0, 1]^d, Σt = k, the
term λ Σ u_j²/t_j is a lower bound of the ridge of a k-sparse u. At any u, η the dual value is a lower bound:

    c - u'(H - λI)u + 2ηy - (sum of the k largest (b - (H - λI)u + η)_j²)/λ.

Good for few literals and many rows (d < m/10), useless when λ is small (d ≥ m/2). With a constant b = y - Σu
there is no constraint, and η = 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import count

import numpy as np

from limes import _kernels
from limes._arrays import Floats, Ints
from limes.surrogates._sparse import SampleProblem, summing_to

_STEPS = 60
# With more literals a row than this the smallest eigenvalue is too small for a bound
_CROWDED = 0.5
# Multiple of the squared constraint that is added: it is 0 on the hyperplane, and raises λ
_PERSPECTIVE_LIFT = 10.0
# A smallest eigenvalue below this share of the variances is a rounding error
_SMALLEST = 1e-9


def perspective_bound(problem: SampleProblem, k: int) -> float:
    """Return a lower bound of F over Σu = y and at most k nonzero entries; 0 where the bound is void."""
    d = problem.size
    if d < 2 or d >= _CROWDED * problem.values.size:
        return 0.0
    y = problem.target
    if problem.intercept:
        gram, moments, square = _without_constant(problem)
    else:
        lift = _PERSPECTIVE_LIFT / d
        gram = problem.gram + lift
        moments, square = problem.moments + lift * y, problem.square + lift * y**2
    ridge = 0.999 * float(np.linalg.eigvalsh(gram)[0])
    if ridge <= _SMALLEST * float(np.diag(gram).mean()):
        return 0.0
    rest = gram - ridge * np.eye(d)
    chosen, best = np.full(d, k / d), 0.0
    for _ in range(_STEPS):
        matrix = rest + np.diag(ridge / chosen)
        u, eta = (
            (np.linalg.solve(matrix, moments), 0.0) if problem.intercept else _stationary(matrix, moments, y)
        )
        scores = np.sort((moments - rest @ u + eta) ** 2)[::-1]
        bound = square - u @ rest @ u + 2.0 * eta * y - scores[:k].sum() / ridge
        best, chosen = max(best, float(bound)), _best_shares(np.abs(u), k)
    return best


def _without_constant(problem: SampleProblem) -> tuple[Floats, Floats, float]:
    """Return gram, moments and square of the literals alone: the constant is what they leave of y."""
    y, cross, corner = problem.target, problem.gram[:-1, -1], float(problem.gram[-1, -1])
    mean = float(problem.moments[-1])
    gram = problem.gram[:-1, :-1] - (cross[:, None] + cross[None, :]) + corner
    moments = problem.moments[:-1] - mean - y * (cross - corner)
    return gram, moments, problem.square - 2.0 * y * mean + corner * y**2


def _stationary(matrix: Floats, moments: Floats, target: float) -> tuple[Floats, float]:
    """Solve matrix u = moments + η1 with Σu = target."""
    free, unit = np.linalg.solve(matrix, np.stack([moments, np.ones(moments.size)], axis=1)).T
    eta = float((target - free.sum()) / unit.sum())
    return free + eta * unit, eta


def _best_shares(sizes: Floats, k: int) -> Floats:
    """Return the t in (0, 1]^d with Σt = k that makes Σ u²/t least: t = min(1, |u|/τ)."""
    falling = np.sort(sizes)[::-1]
    tails = np.cumsum(falling[::-1])[::-1]
    levels = tails[:k] / (k - np.arange(k))
    full = np.flatnonzero(falling[:k] < levels * (1 + 1e-12))
    level = levels[full[0]] if full.size else levels[-1]
    return np.asarray(np.clip(sizes / max(level, 1e-300), 1e-7, 1.0))


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

    def cutoff(self, best: float) -> float:
        """Bound from which on a node cannot improve on the best objective."""
        return best * (1.0 - self.tolerance) - _ROUNDING * self.square

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
