"""Solvers of sparse surrogates by name, with the problem that each takes; and the convex relaxation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._checks import check_count, check_size
from limes.exceptions import InputError
from limes.surrogates._branch_and_bound import branch_and_bound
from limes.surrogates._projection import hard_thresholding, projection
from limes.surrogates._sparse import (
    PopulationProblem,
    SampleProblem,
    SparseSolution,
    check_sparsity,
    solution,
)


def convex(problem: SampleProblem, k: int) -> SparseSolution:
    """Minimise the sample's F(u) over b + Σu = y, ‖u‖₁ ≤ k, |u| ≤ 1, by cvxpy with Clarabel.

    The objective bounds that of every k-sparse explanation in the box from below, to the solver's accuracy.
    It is dense, a bound rather than an explanation: ``support`` is usually larger than k, and ``proved``
    refers to the relaxation.

    Raises
    ------
    InputError
        If k is not one of 1 .. d, cvxpy or Clarabel are not installed, or the solver fails.

    References
    ----------
    Koriche et al. 2025, section 7.1 (CVX).
    """
    began = perf_counter()
    check_sparsity(k, problem.size)
    u = _solved(_cvxpy(), problem, k)
    missing = 0.0 if problem.intercept else problem.target - float(u.sum())
    return solution(problem, u + missing / u.size, began=began, lower_bound=None)


def _solved(cvxpy: Any, problem: SampleProblem, k: int) -> Floats:
    columns = cvxpy.Variable(problem.moments.size)
    u = columns[: problem.size]
    loss = cvxpy.quad_form(columns, cvxpy.psd_wrap(problem.gram)) - 2.0 * (problem.moments @ columns)
    constraints = [cvxpy.sum(columns) == problem.target, cvxpy.norm1(u) <= k, cvxpy.norm_inf(u) <= 1.0]
    program = cvxpy.Problem(cvxpy.Minimize(loss), constraints)
    program.solve(solver=cvxpy.CLARABEL)
    if u.value is None:
        raise InputError(f"the convex relaxation was not solved: Clarabel returned {program.status!r}")
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


@dataclass(frozen=True)
class Solver:
    """A solver of one kind of problem.

    Attributes
    ----------
    solve
        (problem, k) -> solution.
    needs
        The kind of problem: ``PopulationProblem`` consists of g = E[s f], ``SampleProblem`` of rows and their
        answers.
    options
        Names of the options of ``solve``.
    boxed
        Whether |u| ≤ 1 constrains it even where a constant is fitted: answers must then be scaled.
    """

    solve: Callable[..., SparseSolution]
    needs: type[PopulationProblem] | type[SampleProblem]
    options: tuple[str, ...] = ()
    boxed: bool = False


SOLVERS: Mapping[str, Solver] = {
    "projection": Solver(projection, PopulationProblem),
    "hard_thresholding": Solver(hard_thresholding, SampleProblem),
    "branch_and_bound": Solver(branch_and_bound, SampleProblem, ("tolerance", "time_limit", "threads")),
    "convex": Solver(convex, SampleProblem, boxed=True),
}


def search_options(
    solver: str, gap: float | None, tolerance: float | None, time_limit: float, threads: int
) -> tuple[tuple[str, Any], ...]:
    """Return the options of a solver's search, checked; the gap is passed under one of its two names.

    Raises
    ------
    InputError
        If one is out of range, or a gap is passed to a solver that proves none.
    """
    if gap is not None and tolerance is not None:
        raise InputError("gap= and tolerance= are two names of one option: pass gap=")
    name, value = ("gap", gap) if tolerance is None else ("tolerance", tolerance)
    allowed = check_size(name, 0.0 if value is None else value, zero=True)
    if allowed >= 1.0:
        raise InputError(f"{name} is a share of the error, below 1; got {value!r}")
    if allowed and "tolerance" not in SOLVERS[solver].options:
        raise InputError(f"{name}= goes with solver='branch_and_bound'; {solver!r} proves no optimum")
    if time_limit != np.inf:
        check_size("time_limit", time_limit)
    search = {"tolerance": allowed, "time_limit": time_limit, "threads": check_count("threads", threads)}
    return tuple((name, search[name]) for name in SOLVERS[solver].options)
