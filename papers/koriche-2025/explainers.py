"""The paper's explainers and this library's at one row: coefficients u of w∘x, an intercept, seconds."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from limes._rules.neighbourhood import FlipLaw
from limes._rules.perspective import perspective_bound
from limes._rules.problem import PopulationProblem, SampleProblem, hard_thresholding, projection
from limes._rules.solvers import branch_and_bound, convex

# Literals up to which the convex solver is asked
_CONVEX = 500
# Background of MAPLE's forest: more rows take minutes and change little
_MAPLE_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Answer:
    """An explanation b + u·s of the signs s = z∘x."""

    u: np.ndarray
    intercept: float
    seconds: float

    def rmse(self, signs, values):
        """Root mean squared error on rows."""
        support = np.flatnonzero(self.u)
        return float(np.sqrt(np.mean((signs[:, support] @ self.u[support] + self.intercept - values) ** 2)))

    @property
    def nonzero(self):
        """Number of literals with a coefficient."""
        return int((np.abs(self.u) > 1e-6).sum())


def sample_problem(x, target, signs, values):
    """The paper's problem P3 of these rows; its Gram matrix is computed here, in no solver's time."""
    problem = SampleProblem(x, target, signs, values)
    problem.gram  # noqa: B018
    return problem


def optimum(problem, k, limit):
    """The optimum (MIP): the answer, and what is proved of it."""
    solution = branch_and_bound(problem, k, time_limit=limit)
    proof = {
        "proved": solution.proved,
        "gap": solution.gap,
        "nodes": solution.nodes,
        "perspective": perspective_bound(problem, k) / max(solution.objective, 1e-300),
    }
    return _answer(solution, problem), proof


def thresholding(problem, k):
    """IHT, Algorithm 1."""
    return _answer(hard_thresholding(problem, k), problem)


def relaxation(problem, k):
    """CVX, the convex relaxation; None for sets with more literals than its solver takes."""
    return _answer(convex(problem, k), problem) if problem.size <= _CONVEX else None


def projected(x, target, spread, signs, values, k):
    """The population's optimum for Γ from a sample, which an earlier explanation serves as control."""
    law = FlipLaw(x.size, spread)
    control = np.zeros(x.size)
    for _ in range(2):
        rest = values - signs @ control
        gamma = law.variance * control + (rest - rest.mean()) @ signs / rest.size
        problem = PopulationProblem(x, target, law, gamma, float(values.mean()), float(values.var()))
        answer = _answer(projection(problem, k), problem)
        control = answer.u
    return answer


class Lime:
    """lime's explanation b0 + Σ b_j 1[literal j as at x], as coefficients of ±1 without its intercept."""

    def __init__(self, task):
        self._task = task

    def answer(self, x, k):
        """Return the explanation of a row; a new explainer, so that numbers depend on the row alone."""
        from lime.lime_tabular import LimeTabularExplainer

        began = perf_counter()
        explainer = LimeTabularExplainer(self._task.train, mode="regression", random_state=0)
        explanation = explainer.explain_instance(x, self._task.predict, num_features=k)
        u = np.zeros(x.size)
        for j, b in explanation.local_exp[1]:
            u[j] = 0.5 * b
        return Answer(u, 0.0, perf_counter() - began)


class Maple:
    """MAPLE; it keeps its intercept."""

    def __init__(self, task):
        from limes import MapleExplainer

        self._explainer = MapleExplainer(task.predict, task.train[:_MAPLE_ROWS])

    def answer(self, x):
        """Return the explanation of a row."""
        began = perf_counter()
        explanation = self._explainer(x[None])
        seconds = perf_counter() - began
        return Answer(explanation.values[0] * x, float(explanation.intercepts[0]), seconds)


def _answer(solution, problem):
    return Answer(solution.w * problem.instance, solution.intercept, solution.seconds)
