r"""The population optimum in closed form: sort, prefix sums, subtract a common shift.

The fidelity error is a(‖u - v‖² + κ(Σu - τ)²) + constant, v = Γ/a, where the constant b = y - Σu is fitted;
without one Σu = y, which is κ = ∞, τ = y. On a support S of k literals the best u is

    u_S = v_S - h(Σ_S v - τ),     of error  Σ_{j∉S} v_j² + h(Σ_S v - τ)²,     h = κ/(1 + kκ) ≤ 1/k.

As a function of one chosen entry the error is concave (h ≤ 1): exchanging it for another shows that the best
support is the p largest entries of v and the k - p smallest, for some p.

Iterative hard thresholding uses the same projection after each gradient step on a sample's problem.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from limes._arrays import Floats
from limes.surrogates._sparse import (
    PopulationProblem,
    SampleProblem,
    SparseSolution,
    check_sparsity,
    solution,
)

# The iteration ends after a step that moves no coefficient by more than this
_STILL = 1e-12


def project(v: Floats, target: float, k: int, pull: float = np.inf) -> Floats:
    r"""Minimise ‖u - v‖² + pull·(Σu - target)² over u with at most k nonzero entries, in O(d log d).

    An infinite pull projects v (d,) on Σu = target. The k + 1 supports that can be best are compared; among
    equally good ones the support with the fewest of the largest entries is chosen.

    References
    ----------
    The paper's own projection (Koriche et al. 2025, Lemma 2) is the greedy one of Kyrillidis et al. 2013;
    this one needs no special case at target = 0.
    """
    order = np.argsort(-v, kind="stable")
    share = 1.0 / (k + 1.0 / pull) if pull > 0 else 0.0
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

    Raises
    ------
    InputError
        If k is not one of 1 .. d.

    Examples
    --------
    >>> from limes.designs._literals import FlipLaw
    >>> law = FlipLaw(3, spread=0.0)
    >>> gamma = np.array([0.5, 0.1, -0.25])  # of f(z) = 0.5 z_0 + 0.1 z_1 - 0.25 z_2, at x = 1
    >>> problem = PopulationProblem(np.ones(3), 0.35, law, gamma, mean=0.0, variance=0.3225)
    >>> projection(problem, k=2).w
    array([ 0.55,  0.  , -0.2 ])
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

    Raises
    ------
    InputError
        If k is not one of 1 .. d.

    References
    ----------
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
        if np.abs(u - before).max() <= _STILL or (support != last and support in seen):
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
