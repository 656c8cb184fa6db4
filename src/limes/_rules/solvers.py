"""Solvers of sparse problems by name: closed form, thresholding, branch and bound, convex relaxation.

Branch and bound is two searches over supports that share an incumbent. The pairwise search (``pairwise.py``)
proves explanations of up to some ten literals in milliseconds, even with only two rows a literal. The search
on the perspective relaxation (``perspective.py``) proves those of fifteen and twenty literals with five rows
a literal. A problem that the first has not proved in a short time is continued by both in turns; a search
that lags far behind gets no turn. Where weights leave a box, a search with the box in the bound goes on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import check_count, check_size, is_count
from limes._rules.pairwise import PairwiseSearch, SearchProblem
from limes._rules.perspective import BoxSearch, PerspectiveSearch, is_of_use
from limes._rules.problem import (
    PopulationProblem,
    SampleProblem,
    SparseSolution,
    check_reach,
    check_sparsity,
    fit_on,
    hard_thresholding,
    leaves_box,
    projection,
    solution,
)
from limes.exceptions import InputError


def convex(problem: SampleProblem, k: int) -> SparseSolution:
    """Minimise the sample's F(u) over b + Σu = y, ‖u‖₁ ≤ kB, |u| ≤ B, by cvxpy with Clarabel.

    B is the problem's box, 1 if it has none. The objective bounds that of every k-sparse explanation in the
    box from below, to the solver's accuracy. It is dense, a bound rather than an explanation: ``support`` is
    usually larger than k, and ``proved`` refers to the relaxation.

    Koriche et al. 2025, section 7.1 (CVX).
    """
    began = perf_counter()
    check_sparsity(k, problem.size)
    box = problem.box if np.isfinite(problem.box) else 1.0
    if not problem.intercept:
        check_reach(k, problem.target, box)
    u = _solved(_cvxpy(), problem, k, box)
    missing = 0.0 if problem.intercept else problem.target - float(u.sum())
    return solution(problem, u + missing / u.size, began=began, lower_bound=None)


def _solved(cvxpy: Any, problem: SampleProblem, k: int, box: float) -> Floats:
    """Solve in units of the box, in which Clarabel's tolerances are as small as for answers in [-1, 1]."""
    columns = cvxpy.Variable(problem.moments.size)
    u = columns[: problem.size]
    loss = cvxpy.quad_form(columns, cvxpy.psd_wrap(problem.gram)) - 2.0 * (problem.moments / box @ columns)
    constraints = [cvxpy.sum(columns) == problem.target / box, cvxpy.norm1(u) <= k, cvxpy.norm_inf(u) <= 1.0]
    program = cvxpy.Problem(cvxpy.Minimize(loss), constraints)
    program.solve(solver=cvxpy.CLARABEL)
    if u.value is None:
        raise InputError(f"the convex relaxation was not solved: Clarabel returned {program.status!r}")
    return np.asarray(box * u.value)


def _cvxpy() -> Any:
    try:
        import clarabel  # noqa: F401
        import cvxpy
    except ImportError as error:
        raise InputError(
            "solver='convex' needs cvxpy and Clarabel: pip install 'limes[sparse]', or use another solver"
        ) from error
    return cvxpy


# First turn as a share of the time; each turn takes twice as long as the one before
_FIRST = 0.02
# A search whose gap is more than this multiple of the other's gets no turn
_BEHIND = 2.0

# Callback with seconds, lower bound and best objective
OnProgress: TypeAlias = Callable[[float, float, float], object]


def branch_and_bound(
    problem: SampleProblem,
    k: int,
    *,
    tolerance: float = 0.0,
    time_limit: float = 60.0,
    threads: int = 1,
    on_progress: OnProgress | None = None,
) -> SparseSolution:
    """Minimise the sample's F(u) over b + Σu = y and at most k nonzero entries, with a certificate.

    Entries are in the problem's box. A box that the best entries without one leave is searched anew.
    """
    began = perf_counter()
    check_sparsity(k, problem.size)
    if not 0 <= tolerance < 1 or not time_limit > 0:
        raise InputError(f"tolerance must be in [0, 1) and time_limit > 0; got {tolerance} and {time_limit}")
    if not is_count(threads):
        raise InputError(f"threads must be a whole number >= 1; got {threads!r}")
    deadline = began + time_limit
    progress = _Progress(began, on_progress)
    both, has_box = is_of_use(problem), bool(np.isfinite(problem.box))
    pairwise = PairwiseSearch(
        SearchProblem.from_sample(problem, tolerance), problem.size, k, deadline, threads, progress
    )
    best = pairwise.incumbent
    lower, nodes = pairwise.start(_FIRST if both or has_box else 1.0), 0
    # the optimum without the box is of no use where it leaves the box, but its bound is one of both
    if not (pairwise.is_proved(lower) or leaves_box(problem, _fitted(problem, best.support))):
        turn = perf_counter() - began
        if both and perf_counter() <= deadline:
            lower, nodes = _in_turns(pairwise, problem, lower, turn, deadline, progress)
        elif has_box:
            lower = pairwise.resume(deadline)
    u, proved, bound = _fitted(problem, best.support), pairwise.is_proved(lower), min(lower, best.best)
    nodes += pairwise.nodes
    if leaves_box(problem, u):
        within = BoxSearch(problem, k, tolerance, progress)
        within.offer(best.support)
        bound = within.run(bound, deadline)
        u, proved, nodes = within.u, bound >= within.cutoff, nodes + within.nodes
    return solution(
        problem,
        u,
        began=began,
        lower_bound=None if proved and tolerance == 0.0 else bound,
        tolerance=tolerance,
        nodes=nodes,
    )


def _fitted(problem: SampleProblem, support: Ints) -> Floats:
    u = np.zeros(problem.size)
    u[support] = fit_on(problem, support)
    return u


def _in_turns(
    pairwise: PairwiseSearch,
    problem: SampleProblem,
    lower: float,
    turn: float,
    deadline: float,
    progress: _Progress,
) -> tuple[float, int]:
    """Return the best lower bound at the end, and the nodes of the perspective search."""
    incumbent = pairwise.incumbent
    wide = PerspectiveSearch(problem, pairwise.k, incumbent, deadline)
    of_wide, wide_is_next = -np.inf, True
    while not pairwise.is_proved(max(lower, of_wide)) and perf_counter() <= deadline:
        turn *= 2.0
        until = min(deadline, perf_counter() + turn)
        if wide_is_next:
            for of_wide in wide.run(until):
                progress(of_wide, incumbent.best)
            if wide.finished:
                return incumbent.cutoff, wide.nodes
        else:
            lower = pairwise.resume(until)
        gap, gap_of_wide = incumbent.best - lower, incumbent.best - of_wide
        wide_is_next = gap_of_wide <= (gap / _BEHIND if wide_is_next else gap * _BEHIND)
    return max(lower, of_wide), wide.nodes


class _Progress:
    """Reports to the caller, with the best lower bound of both searches."""

    def __init__(self, began: float, callback: OnProgress | None) -> None:
        self._began, self._callback, self._lower = began, callback, 0.0

    def __call__(self, lower: float, best: float) -> None:
        self._lower = max(self._lower, lower)
        if self._callback is not None:
            self._callback(perf_counter() - self._began, min(self._lower, best), best)


@dataclass(frozen=True)
class Solver:
    solve: Callable[..., SparseSolution]  # (problem, k) -> solution
    # the kind of problem: ``PopulationProblem`` consists of g = E[s f], ``SampleProblem`` of rows and
    # their answers
    needs: type[PopulationProblem] | type[SampleProblem]
    options: tuple[str, ...] = ()  # names of the options of ``solve``
    boxed: bool = False  # whether its problem needs a box, with a constant, too


SOLVERS: Mapping[str, Solver] = {
    "projection": Solver(projection, PopulationProblem),
    "hard_thresholding": Solver(hard_thresholding, SampleProblem),
    "branch_and_bound": Solver(branch_and_bound, SampleProblem, ("tolerance", "time_limit", "threads")),
    "convex": Solver(convex, SampleProblem, boxed=True),
}


def search_options(
    solver: str, gap: float | None, tolerance: float | None, time_limit: float, threads: int
) -> tuple[tuple[str, Any], ...]:
    """Return the options of a solver's search, checked; ``tolerance`` is the former name of ``gap``."""
    if gap is not None and tolerance is not None:
        raise InputError("gap= and tolerance= are two names of one option: pass gap=")
    name, value = ("gap", gap) if tolerance is None else ("tolerance", tolerance)
    allowed = check_size(name, 0.0 if value is None else value, zero=True)
    if allowed >= 1.0:
        raise InputError(f"{name} is a share of the error, below 1; got {value!r}")
    if allowed and "tolerance" not in SOLVERS[solver].options:
        raise InputError(f"{name}= goes with solver='branch_and_bound'; {solver!r} proves no optimum")
    if tolerance is not None:
        text = "SparseExplainer(tolerance=) is gap=; the name ends with the next release"
        warnings.warn(text, FutureWarning, stacklevel=3)
    if time_limit != np.inf:
        check_size("time_limit", time_limit)
    search = {"tolerance": allowed, "time_limit": time_limit, "threads": check_count("threads", threads)}
    return tuple((name, search[name]) for name in SOLVERS[solver].options)
