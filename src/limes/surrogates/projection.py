r"""The population optimum in closed form: sort, prefix sums, subtract a mean.

On Σu = y the fidelity error is a‖u - v‖² + constant, where v is the dense optimum up to a common shift. The
best u with at most k nonzero entries is therefore the Euclidean projection of v. Exchanging one chosen entry
for another shows that the best support is the p largest entries and the k - p smallest, for some p; on a
support S the projection is u_S = v_S - (Σ_S v - y)/k.

Iterative hard thresholding uses the same projection after each gradient step on a sample's problem.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from limes._arrays import Floats
from limes.surrogates.sparse import PopulationProblem, SampleProblem, SparseSolution, check_sparsity, solution

# Steps that move no coefficient by more end the iteration
_STILL = 1e-12


def project(v: Floats, target: float, k: int) -> Floats:
    r"""Project v (d,) on {u : Σu = target, at most k nonzero entries}, in O(d log d).

    ‖u - v‖² = Σ_{j∉S} v_j² + (Σ_S v - target)²/k is compared for the k + 1 supports that can be best; ties
    go to the one with fewest largest entries.

    References
    ----------
    The paper's own projection (Koriche et al. 2025, Lemma 2) is the greedy one of Kyrillidis et al. 2013;
    this one needs no special case at target = 0.
    """
    order = np.argsort(-v, kind="stable")
    # a common shift does not change the projection; centred values keep the digits of the sums below
    falling = v[order] - v[order[v.size // 2]]
    sums = np.concatenate([[0.0], np.cumsum(falling)])
    largest = np.arange(k + 1)
    smallest = v.size - k + largest
    chosen = sums[largest] + (sums[-1] - sums[smallest])
    squares = np.concatenate([[0.0], np.cumsum(falling**2)])
    errors = (squares[smallest] - squares[largest]) + (chosen - target) ** 2 / k
    best = int(np.argmin(errors))
    support = np.concatenate([order[:best], order[smallest[best] :]])
    u = np.zeros(v.size)
    u[support] = v[support] - (v[support].sum() - target) / support.size
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
    >>> from limes.designs.literals import FlipLaw
    >>> law = FlipLaw(3, spread=0.0)
    >>> gamma = np.array([0.5, 0.1, -0.25])  # of f(z) = 0.5 z_0 + 0.1 z_1 - 0.25 z_2, at x = 1
    >>> problem = PopulationProblem(np.ones(3), 0.35, law, gamma, mean=0.0, variance=0.3225)
    >>> projection(problem, k=2).w
    array([ 0.55,  0.  , -0.2 ])
    """
    began = perf_counter()
    check_sparsity(k, problem.size)
    u = project(problem.optimum, problem.target, k)
    return solution(problem, u, began=began, lower_bound=None)


def hard_thresholding(problem: SampleProblem, k: int, *, iterations: int = 1000) -> SparseSolution:
    """Iterate u ← project(u - (1/m) Sᵀ(Su - f)) from u = 0 and keep the best iterate.

    It ends when the iterate stops moving, or returns to an earlier support (at a small spread it may cycle).
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
        before, u = u, project(u - _gradient(problem, u), problem.target, k)
        objective = problem.objective(u)
        if objective < least:
            least, best = objective, u
        support = np.flatnonzero(u).tobytes()
        if np.abs(u - before).max() <= _STILL or (support != last and support in seen):
            break
        seen.add(support)
        last = support
    return solution(problem, best, began=began, nodes=step)


def _gradient(problem: SampleProblem, u: np.ndarray) -> np.ndarray:
    support = np.flatnonzero(u)
    residual = problem.signs[:, support] @ u[support] - problem.values
    return np.asarray(residual @ problem.signs / residual.size)
