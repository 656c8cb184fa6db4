"""The convex relaxation: ‖u‖₁ ≤ k in place of k nonzero entries. Dense: a bound, not an explanation."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError
from limes.surrogates.sparse import Sample, SparseSolution, check_sparsity, solution


def convex(problem: Sample, k: int) -> SparseSolution:
    """Minimise the sample's F(u) over Σu = y, ‖u‖₁ ≤ k, |u| ≤ 1, by cvxpy with Clarabel.

    The objective bounds that of every k-sparse explanation in the box from below, to the solver's accuracy.
    ``support`` is usually larger than k and ``proved`` is about the relaxation.

    Raises
    ------
    InputError
        If k is not one of 1 .. d, cvxpy or Clarabel are not installed, or the solver gives up.

    References
    ----------
    Koriche et al. 2025, section 7.1 (CVX).
    """
    began = perf_counter()
    check_sparsity(k, problem.size)
    u = _solved(_cvxpy(), problem, k)
    return solution(problem, u + (problem.target - u.sum()) / u.size, began=began, lower_bound=None)


def _solved(cvxpy: Any, problem: Sample, k: int) -> Floats:
    u = cvxpy.Variable(problem.size)
    loss = cvxpy.quad_form(u, cvxpy.psd_wrap(problem.gram)) - 2.0 * (problem.moments @ u)
    limits = [cvxpy.sum(u) == problem.target, cvxpy.norm1(u) <= k, cvxpy.norm_inf(u) <= 1.0]
    task = cvxpy.Problem(cvxpy.Minimize(loss), limits)
    task.solve(solver=cvxpy.CLARABEL)
    if u.value is None:
        raise InputError(f"the convex relaxation was not solved: Clarabel says {task.status!r}")
    return np.asarray(u.value)


def _cvxpy() -> Any:
    try:
        import clarabel  # noqa: F401
        import cvxpy
    except ImportError as error:
        raise InputError(
            "solver='convex' needs cvxpy and Clarabel: pip install 'limes[sparse]', or use another solver"
        ) from error
    return cvxpy
