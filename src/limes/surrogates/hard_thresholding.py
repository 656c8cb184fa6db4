"""Iterative hard thresholding: a gradient step of the sample's problem, then the exact projection."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from limes.surrogates.projection import project
from limes.surrogates.sparse import Sample, SparseSolution, check_sparsity, solution

# Steps that move no coefficient by more are the last ones
_STILL = 1e-12


def hard_thresholding(problem: Sample, k: int, *, iterations: int = 1000) -> SparseSolution:
    """Iterate u ← project(u - (1/m) Sᵀ(Su - f)) from u = 0 and keep the best iterate.

    It ends when the iterate stands still, or comes back to a support that it had left (at a small spread it
    may go round in circles). There is no bound below: ``lower_bound`` is 0.

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
    for step in range(1, iterations + 1):  # noqa: B007 - reported
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


def _gradient(problem: Sample, u: np.ndarray) -> np.ndarray:
    support = np.flatnonzero(u)
    residual = problem.signs[:, support] @ u[support] - problem.values
    return np.asarray(residual @ problem.signs / residual.size)
