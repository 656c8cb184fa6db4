r"""Sparse surrogates that agree with the model at the instance: the problem, and a solver's solution.

A sparse explanation of f at x ∈ {±1}^d is w with at most k nonzero entries and a constant b, b + w·x = y =
f(x), of least fidelity error F(w, b) = E (b + w·z - f(z))². With s = z∘x and u = w∘x the constraint is b +
Σ_j u_j = y, whatever x is: b is one more literal, which always holds. The paper has no constant, b = 0. As b
= y - Σu in both forms, F is the same quadratic function of u,

    F(u) = E (u·(s - 1) - (f - y))²,     over all k-sparse u, or over those with Σu = y.

It comes in two kinds; ``solvers.py`` lists which solver takes which:

- ``PopulationProblem``: the law itself. Cov(s) is κ 11ᵀ + a I, so that only g = E[s f] is needed;
- ``SampleProblem``: m rows, the mean instead of the expectation (the 2025 paper's problem P3), so that the
  rows' Gram matrix is needed.

The optimum of the first is a closed form: sort, prefix sums, subtract a common shift. The fidelity error is
a(‖u - v‖² + γ(Σu - τ)²) + constant, v = Γ/a, where the constant b = y - Σu is fitted; without one Σu = y,
which is γ = ∞, τ = y. On a support S of k literals the best u is

    u_S = v_S - h(Σ_S v - τ),     of error  Σ_{j∉S} v_j² + h(Σ_S v - τ)²,     h = γ/(1 + kγ) ≤ 1/k.

As a function of one chosen entry the error is concave (h ≤ 1): exchanging it for another shows that the best
support is the p largest entries of v and the k - p smallest, for some p.

Iterative hard thresholding uses the same projection after each gradient step on a sample's problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

import numpy as np

from limes._arrays import DIFFERENCE_ROUNDING, Bools, Floats, Ints
from limes._checks import is_count
from limes._rules.neighbourhood import Law, OwnLaw
from limes.exceptions import InputError

# Coefficients below this share of the largest, or of y, are roundings: their literals are not named
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True, eq=False)
class SparseSolution:
    """A sparse explanation with a bound on its error."""

    w: Floats  # (d,) coefficients of the literals; intercept + w·x = f(x)
    intercept: float  # the constant b; 0 in the paper's form
    support: Ints  # positions of the literals that it uses, ascending: the nonzero coefficients, or facts
    objective: float  # F of the problem that was solved
    lower_bound: float  # lower bound of the objective of all explanations of this size
    gap: float  # (objective - lower_bound) / objective, 0 where both are 0
    proved: bool  # whether w is optimal, up to the tolerance
    nodes: int  # nodes of a search, or iterations
    seconds: float

    def within(self, positions: Ints, size: int) -> SparseSolution:
        """Return the solution of a problem among some of ``size`` literals as one of all of them."""
        w = np.zeros(size)
        w[positions] = self.w
        return replace(self, w=w, support=positions[self.support])


@dataclass(frozen=True, eq=False)
class PopulationProblem:
    r"""F(u) = a‖u‖² + κ(Σu)² - 2 Γ·u + Var f + (y - E f - cΣu)² with c = 1 - ρ, from the law itself.

    Of literals that flip with different probabilities it is Σ a_j u_j² - 2 Γ·u + Var f + (y - E f - c·u)².
    """

    instance: Floats  # x, (d,)
    target: float  # y = f(x)
    law: Law  # ρ, a and κ
    gamma: Floats  # Γ_j = Cov(s_j, f), (d,); g = Γ + ρ E f
    mean: float  # E f
    variance: float  # Var f, which only shifts the objective, and may be NaN
    intercept: bool = False  # whether a constant is fitted; without one Σu = y
    box: float = np.inf  # without a constant, the largest |u_j|

    @property
    def size(self) -> int:
        return self.instance.size

    def among(self, positions: Ints) -> PopulationProblem:
        return replace(self, instance=self.instance[positions], gamma=self.gamma[positions])

    @property
    def optimum(self) -> Floats:
        """The dense optimum up to a common shift v = Γ/a, (d,)."""
        return self.gamma / self.law.variance

    @property
    def sum_and_pull(self) -> tuple[float, float]:
        """τ and γ with F(u) = a(‖u - v‖² + γ(Σu - τ)²) + constant; γ is infinite without a constant."""
        if not self.intercept:
            return self.target, np.inf
        assert not isinstance(self.law, OwnLaw)  # noqa: S101 - its facts are chosen before
        away, shared = self.law.away, self.law.shared
        pull = (away**2 + shared) / self.law.variance
        return (self.target - self.mean) / (away + shared / away), pull

    def objective(self, u: Floats) -> float:
        spread = u @ (self.law.variance * u) + self.law.shared * u.sum() ** 2 - 2.0 * (self.gamma @ u)
        bias = self.target - self.mean - (self.law.away * u).sum()
        return float(spread + self.variance + bias**2)

    def on_support(self, support: Ints) -> tuple[Floats, Floats]:
        """Gram matrix and moments of the chosen literals; without a constant, on the hyperplane."""
        variance, away = (
            np.broadcast_to(its, self.size)[support] for its in (self.law.variance, self.law.away)
        )
        gram, moments = np.diag(variance), self.gamma[support]
        if not self.intercept:
            return gram, moments
        return gram + (np.outer(away, away) + self.law.shared), moments + away * (self.target - self.mean)


@dataclass(frozen=True, eq=False)
class SampleProblem:
    r"""F(u) = mean (y + (s_i - 1)·u - f_i)² over m rows.

    ``gram``, ``moments`` and ``square`` belong to the centred signs s - ρ̂, which are nearly uncorrelated, and
    to f - ρ̂y: on b + Σu = y the errors are the same. Where a constant is fitted, its column comes last.
    """

    instance: Floats  # x, (d,)
    target: float  # y = f(x)
    signs: Floats  # s_i = z_i∘x, (m, d), each ±1
    values: Floats  # f(z_i), (m,)
    intercept: bool = False  # whether a constant is fitted; without one Σu = y
    box: float = np.inf  # without a constant, the largest |u_j|

    @property
    def size(self) -> int:
        return self.instance.size

    def among(self, positions: Ints) -> SampleProblem:
        return replace(self, instance=self.instance[positions], signs=self.signs[:, positions])

    def constant(self, u: Floats) -> float:
        return self.target - float(u.sum()) if self.intercept else 0.0

    def residuals(self, u: Floats) -> Floats:
        support = np.flatnonzero(u)
        return np.asarray(self.signs[:, support] @ u[support] + (self.constant(u) - self.values))

    def objective(self, u: Floats) -> float:
        residual = self.residuals(u)
        return float(residual @ residual / residual.size)

    @cached_property
    def center(self) -> float:
        """ρ̂, the mean of all signs."""
        return float(self.signs.mean())

    @cached_property
    def gram(self) -> Floats:
        """Gram matrix of the centred signs s - ρ̂, (d, d), or (d + 1, d + 1) with the constant's 1 - ρ̂."""
        # integers up to m are exact in single precision, which is twice as fast
        rows = self.signs.astype(np.float32) if len(self.signs) < 2**24 else self.signs
        means, away, d = self.signs.mean(axis=0), 1.0 - self.center, self.size
        gram = np.empty((d + self.intercept, d + self.intercept))
        # in place: of 10,000 literals each copy takes 800 MB
        part = gram[:d, :d]
        part[...] = rows.T @ rows
        part /= len(rows)
        part -= self.center * means
        part -= (self.center * (means - self.center))[:, None]
        if self.intercept:
            gram[d, :d] = gram[:d, d] = away * (means - self.center)
            gram[d, d] = away**2
        return gram

    @cached_property
    def centred(self) -> Floats:
        return self.values - self.center * self.target

    @cached_property
    def moments(self) -> Floats:
        """Mean of (s - ρ̂) (f - ρ̂y), (d,), or (d + 1,) with the constant's."""
        mean = self.centred.mean()
        moments = self.centred @ self.signs / self.values.size - self.center * mean
        return np.append(moments, (1.0 - self.center) * mean) if self.intercept else np.asarray(moments)

    @property
    def square(self) -> float:
        return float(self.centred @ self.centred / self.centred.size)

    def on_support(self, support: Ints) -> tuple[Floats, Floats]:
        """Gram matrix and moments of the chosen literals; with a constant, of s - 1 and f - y."""
        center = 1.0 if self.intercept else self.center
        part = self.signs[:, support] - center
        return part.T @ part / len(part), part.T @ (self.values - center * self.target) / len(part)


def check_sparsity(k: object, size: int) -> None:
    if not is_count(k):
        raise InputError(f"k is the number of literals of an explanation, a whole number >= 1; got {k!r}")
    if k > size:
        raise InputError(f"k={k} exceeds the number of literals, {size}; use k <= {size}")


def check_reach(weights: int, target: float, box: float) -> None:
    if abs(target) > weights * box:
        raise InputError(
            f"{weights} weights in [-{box:g}, {box:g}] cannot add up to {target}: use a larger k, or a "
            "larger box"
        )


def solution(
    problem: PopulationProblem | SampleProblem,
    u: Floats,
    *,
    began: float,
    lower_bound: float | None = 0.0,
    tolerance: float = 0.0,
    nodes: int = 0,
) -> SparseSolution:
    """Return the solution with coefficients u; one outside the problem's box is fitted again inside it.

    ``lower_bound=None``: u is optimal, and its objective is the bound. ``began`` is a ``perf_counter`` time.
    """
    if problem.intercept:
        u = np.where(np.abs(u) > _NEGLIGIBLE * max(abs(problem.target), np.abs(u).max()), u, 0.0)
    objective = problem.objective(u)
    bound = objective if lower_bound is None else min(float(lower_bound), objective)
    if leaves_box(problem, u):
        support = np.flatnonzero(u)
        u = np.zeros(problem.size)
        u[support] = boxed(*problem.on_support(support), problem.target, problem.box)
        objective = problem.objective(u)
    gap = 0.0 if objective == bound else (objective - bound) / objective
    return SparseSolution(
        w=u * problem.instance,
        intercept=problem.target - float(u.sum()) if problem.intercept else 0.0,
        support=np.flatnonzero(u),
        objective=objective,
        lower_bound=bound,
        gap=gap,
        proved=gap <= tolerance + DIFFERENCE_ROUNDING,
        nodes=nodes,
        seconds=perf_counter() - began,
    )


def leaves_box(problem: PopulationProblem | SampleProblem, u: Floats) -> bool:
    """Return whether a weight is outside the box by more than roundings; with a constant there is no box."""
    return not problem.intercept and bool(np.abs(u).max() > problem.box * (1.0 + DIFFERENCE_ROUNDING))


def fit_on(problem: PopulationProblem | SampleProblem, support: Ints) -> Floats:
    gram, moments = problem.on_support(support)
    if problem.intercept:
        return np.asarray(np.linalg.lstsq(gram, moments, rcond=None)[0])
    return summing_to(problem.target, gram, moments)[0]


def summing_to(target: float, gram: Floats, moments: Floats) -> tuple[Floats, float]:
    """Minimise u'Hu - 2b·u over Σu = target: u (n,), and η with Hu = b + η1.

    Where literals depend on each other, it is the solution of least norm.
    """
    solved, *_ = np.linalg.lstsq(bordered(gram), np.append(moments, target), rcond=None)
    return solved[:-1], -float(solved[-1])


def bordered(gram: Floats) -> Floats:
    """Return the matrix of the optimality conditions over a constrained sum."""
    n = len(gram)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = gram
    system[n, n] = 0.0
    return system


def boxed(gram: Floats, moments: Floats, target: float, box: float = 1.0) -> Floats:
    """Minimise u'Hu - 2b·u over Σu = target and |u| ≤ box, (n,).

    An active-set method, in units of the box: it starts from equal coefficients, which lie in the box, moves
    to the optimum of the free ones, stops at the first bound on the way, and frees the bound that pulls
    inwards most.
    """
    n = moments.size
    check_reach(n, target, box)
    moments, target = moments / box, target / box
    u, free = np.full(n, target / n), np.ones(n, dtype=np.bool_)
    for _ in range(4 * 2 ** min(n, 20)):
        goal, eta = _optimum_of(free, u, gram, moments, target)
        step, blocked = _step_in_box(u, goal - u)
        u = u + step * (goal - u)
        if blocked >= 0:
            u[blocked], free[blocked] = np.sign(u[blocked]), False
            continue
        inward = np.where(free, 0.0, np.sign(u) * (gram @ u - moments - eta))
        if inward.max() <= 1e-12 * (1.0 + np.abs(moments).max()):
            break
        free[np.argmax(inward)] = True
    return np.asarray(box * np.clip(u, -1.0, 1.0))


def _optimum_of(free: Bools, u: Floats, gram: Floats, moments: Floats, target: float) -> tuple[Floats, float]:
    """Return the optimum over the free coefficients with the others fixed, and η."""
    if not free.any():
        return u, _level_between(gram @ u - moments, u > 0)
    goal, fixed = u.copy(), np.where(free, 0.0, u)
    rest = moments - gram @ fixed
    goal[free], eta = summing_to(target - fixed.sum(), gram[np.ix_(free, free)], rest[free])
    return goal, eta


def _level_between(pulls: Floats, high: Bools) -> float:
    """Return η halfway between the pulls of the coefficients at 1 and of those at -1."""
    highest = float(pulls.max(where=high, initial=-np.inf))
    lowest = float(pulls.min(where=~high, initial=np.inf))
    if high.all():
        return highest
    return 0.5 * (highest + lowest) if high.any() else lowest


def _step_in_box(u: Floats, move: Floats) -> tuple[float, int]:
    """Return how far along a move the box reaches, at most 1, and which coefficient stops it (or -1)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(move == 0.0, np.inf, (np.sign(move) - u) / move)
    first = int(np.argmin(reach))
    return (1.0, -1) if reach[first] >= 1.0 else (max(0.0, float(reach[first])), first)


@dataclass(frozen=True)
class AnswerRange:
    """The range of a model's answers, on which bounds of errors rest."""

    low: float
    high: float
    source: str = ""  # of the range; "" where it is assumed from the answers at hand

    @classmethod
    def of_answers(cls, *answers: Floats) -> AnswerRange:
        """Assume [-1, 1], as the paper does, if it contains all answers, else the range of the answers."""
        together = np.concatenate(answers)
        low, high = float(together.min()), float(together.max())
        if low >= -1.0 and high <= 1.0:
            return cls(-1.0, 1.0)
        return cls(low, high) if low < high else cls(low - 1.0, low + 1.0)

    def excess(self, answers: Floats) -> float:
        """Return how far answers leave the range, as a share of its width; 0 if only by rounding errors."""
        beyond = max(float(answers.max()) - self.high, self.low - float(answers.min()))
        share = beyond / max(self.high - self.low, np.finfo(np.float64).tiny)
        return share if share > DIFFERENCE_ROUNDING else 0.0

    def check(self, answers: Floats) -> None:
        """Raise if an answer lies outside the range, unless the range is an assumption."""
        if self.source and self.excess(answers) > 0.0:
            middle = 0.5 * (self.low + self.high)
            worst = float(answers[np.argmax(np.abs(answers - middle))])
            raise InputError(
                f"the model answers {worst:g}, outside {self.source} ({self.low:g}, {self.high:g}): pass a "
                "wider scale=(low, high)"
            )


# The iteration ends after a step that moves no coefficient by more than this, or this share of the largest
_STILL = 1e-12


def project(v: Floats, target: float, k: int, pull: float = np.inf) -> Floats:
    r"""Minimise ‖u - v‖² + pull·(Σu - target)² over u with at most k nonzero entries, in O(d log d).

    An infinite pull projects v (d,) on Σu = target. The k + 1 supports that can be best are compared; among
    equally good ones the support with the fewest of the largest entries is chosen.

    The paper's own projection (Koriche et al. 2025, Lemma 2) is the greedy one of Kyrillidis et al. 2013;
    this one needs no special case at target = 0.
    """
    order = np.argsort(-v, kind="stable")
    # without an entry there is nothing to shift: u is 0, whatever the target
    share = 1.0 / (k + 1.0 / pull) if pull > 0 and k > 0 else 0.0
    # a common shift does not change the projection on a sum; centred values keep the digits of the sums below
    falling = v[order] - (v[order[v.size // 2]] if np.isinf(pull) else 0.0)
    sums = np.concatenate([[0.0], np.cumsum(falling)])
    largest = np.arange(k + 1)
    smallest = v.size - k + largest
    chosen = sums[largest] + (sums[-1] - sums[smallest])
    squares = np.concatenate([[0.0], np.cumsum(falling**2)])
    errors = (squares[smallest] - squares[largest]) + (np.sqrt(share) * (chosen - target)) ** 2
    best = int(np.argmin(errors))
    support = np.concatenate([order[:best], order[smallest[best] :]])
    u = np.zeros(v.size)
    u[support] = v[support] - share * (v[support].sum() - target)
    return u


def projection(problem: PopulationProblem, k: int) -> SparseSolution:
    """Solve the population's problem: optimal, at the cost of a sort.

    Where Γ was sampled the solution is optimal for that estimate.
    """
    began = perf_counter()
    check_sparsity(k, problem.size)
    total, pull = problem.sum_and_pull
    u = project(problem.optimum, total, k, pull)
    return solution(problem, u, began=began, lower_bound=None)


def hard_thresholding(problem: SampleProblem, k: int, *, iterations: int = 1000) -> SparseSolution:
    """Iterate u ← project(u - (1/m) Sᵀ(b + Su - f)) from u = 0 and keep the best iterate.

    The constant is one more column, 1 - ρ̂ where the signs are s - ρ̂, and its step is Newton's. The iteration
    ends when the iterate stops moving, or returns to an earlier support (at a small spread it may cycle).
    There is no lower bound: ``lower_bound`` is 0.

    Koriche et al. 2025, Algorithm 1, with the exact projection in place of its Algorithm 2.
    """
    began = perf_counter()
    check_sparsity(k, problem.size)
    u = best = np.zeros(problem.size)
    least, seen, last, step = np.inf, set(), b"", 0
    for step in range(1, iterations + 1):  # noqa: B007 - reported as nodes
        before, u = u, _step(problem, u, k)
        objective = problem.objective(u)
        if objective < least:
            least, best = objective, u
        support = np.flatnonzero(u).tobytes()
        if np.abs(u - before).max() <= _STILL * max(1.0, np.abs(u).max()) or (
            support != last and support in seen
        ):
            break
        seen.add(support)
        last = support
    return solution(problem, best, began=began, nodes=step)


def _step(problem: SampleProblem, u: Floats, k: int) -> Floats:
    """Return the projection of a gradient step from u (and from its constant)."""
    residual = problem.residuals(u)
    gradient = residual @ problem.signs / residual.size
    if not problem.intercept:
        return project(u - gradient, problem.target, k)
    away, mean = 1.0 - problem.center, residual.mean()
    constant = problem.constant(u) - (mean / away if away > 0 else 0.0)
    return project(u - (gradient - problem.center * mean), problem.target - constant, k, away**2)
