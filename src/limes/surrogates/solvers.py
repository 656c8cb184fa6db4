"""Solvers of sparse surrogates by name, and what each needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from limes.surrogates.branch_and_bound import branch_and_bound
from limes.surrogates.convex import convex
from limes.surrogates.hard_thresholding import hard_thresholding
from limes.surrogates.projection import projection
from limes.surrogates.sparse import Population, Sample, SparseSolution


@dataclass(frozen=True)
class Solver:
    """A way from a problem and a number of literals to a solution.

    Attributes
    ----------
    solve
        (problem, k) -> solution.
    needs
        The kind of problem: ``Population`` asks for g = E[s f] alone, ``Sample`` for rows and their answers.
    options
        Names of what ``solve`` takes besides.
    """

    solve: Callable[..., SparseSolution]
    needs: type[Population] | type[Sample]
    options: tuple[str, ...] = ()


SOLVERS: Mapping[str, Solver] = {
    "projection": Solver(projection, Population),
    "hard_thresholding": Solver(hard_thresholding, Sample),
    "branch_and_bound": Solver(branch_and_bound, Sample, ("tolerance", "time_limit", "threads")),
    "convex": Solver(convex, Sample),
}
