"""From a neighbourhood and a model to a sparse explanation and its certificate, row by row.

Rows are drawn and the model asked (or read), its answers brought into [-1, 1], the sparse problem solved, and
the solution judged on fresh rows that it has not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats
from limes._streams import fingerprint, streams
from limes.designs.literals import LiteralNeighbourhood
from limes.expectations.concentration import bernstein_bound, theorem_accuracy, theorem_samples
from limes.expectations.precision import Precision, precision
from limes.pipeline import Expectation
from limes.surrogates.solvers import SOLVERS
from limes.surrogates.sparse import (
    SCALE_ROUNDING,
    AnswerScale,
    PopulationProblem,
    SampleProblem,
    SparseSolution,
)

# Rows handed to the model in one call
_BATCH = 4096
# How often Γ is estimated again with the last explanation as its control
_ROUNDS = 2
# What the paper's sample size is told for
_ACCURACY = 0.1

Ask = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Plan:
    """How rows are explained; see ``SparseExplainer``.

    ``sizes`` are the numbers of literals to try, one or all up to a largest; with ``error`` the first whose
    bound ``certify`` is no larger is taken. ``scale=None`` finds one, for which ``seen`` are answers known
    before.
    """

    solver: str
    sizes: tuple[int, ...]
    samples: int
    fresh: int
    confidence: float
    seed: int
    scale: AnswerScale | None = None
    seen: Floats | None = None
    error: float | None = None
    certify: str = "precision"
    search: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, eq=False)
class Judged:
    """A solution with what fresh rows say of it; errors are of the scaled model."""

    solution: SparseSolution
    fidelity: float
    fresh_fidelity: float
    explained: float
    precision: Precision
    bounds: dict[str, float]
    theory: dict[str, float]
    standard_errors: Floats
    scale: AnswerScale
    target: float
    calls: int
    reach: float

    @property
    def leaves_scale(self) -> bool:
        """Whether rows of the precision error had answers beyond the range that the scale was made from."""
        return self.reach > 1.0 + SCALE_ROUNDING

    @property
    def vacuous(self) -> bool:
        """Whether the precision's bound says no more than that the model answers in [-1, 1]."""
        return self.bounds["precision"] >= 1.0 + abs(self.target - self.scale.middle) / self.scale.half


def explain_row(
    near: LiteralNeighbourhood, ask: Ask, row: Floats, plan: Plan, expectation: Expectation | None
) -> Judged:
    """Explain the model at one row of its table; with an expectation, from its exact Γ.

    Raises
    ------
    InputError
        If a number of literals cannot be had, or the model leaves the scale that was given.
    """
    first, second, third = streams(plan.seed, fingerprint(row), 3)
    counted = _Counted(ask)
    seen, fresh = (
        _Drawn.of(near, counted, rows, np.random.default_rng(stream))
        for rows, stream in zip((plan.samples, plan.fresh), (first, second), strict=True)
    )
    target = float(counted(row[None, :])[0])
    known = (np.array([target]), seen.values, fresh.values)
    scale = plan.scale or AnswerScale.from_answers(*known, *([] if plan.seen is None else [plan.seen]))
    task = _Task(near, seen.scaled(scale), fresh.scaled(scale), float(scale.to_unit(known[0])[0]), plan)
    given = None if expectation is None else _exact(near, expectation, row, scale, task)
    for step, k in enumerate(plan.sizes, start=1):
        solution = task.solved(k, given)
        # each size that is tried may go wrong: together they do no more often than one alone
        risk = (1.0 - plan.confidence) / (1 if plan.error is None else step * (step + 1))
        # the same fresh draws for every size
        rng = np.random.default_rng(third)
        judged = _judged(task, solution, counted, scale, risk=risk, rng=rng, exact=given is not None)
        if plan.error is not None and judged.bounds[plan.certify] <= plan.error:
            break
    return judged


class _Counted:
    """Asks in batches, and counts."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.calls = 0

    def __call__(self, x: Floats) -> Floats:
        self.calls += len(x)
        return np.concatenate([self._ask(x[i : i + _BATCH]) for i in range(0, len(x), _BATCH)])


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Some rows, the flips that made them, and the model's answers."""

    near: LiteralNeighbourhood
    flips: Bools
    rows: Floats
    values: Floats

    @classmethod
    def of(cls, near: LiteralNeighbourhood, ask: Ask, count: int, rng: np.random.Generator) -> _Drawn:
        flips = near.law.flips(rng, count)
        rows = near.rows(flips, rng)
        return cls(near, flips, rows, ask(rows))

    def scaled(self, scale: AnswerScale) -> _Drawn:
        return replace(self, values=scale.to_unit(self.values))

    @cached_property
    def signs(self) -> Floats:
        """Signs s = z∘x, (m, d)."""
        return np.asarray(1.0 - 2.0 * self.flips, dtype=np.float64)

    def errors(self, u: Floats) -> Floats:
        """w·z - f(z), (m,)."""
        support = np.flatnonzero(u)
        return (1.0 - 2.0 * self.flips[:, support]) @ u[support] - self.values

    def covariance(self, residual: Floats) -> Floats:
        """Mean of s_j (residual - its mean), (d,)."""
        return self.near.signed_sum(residual - residual.mean(), self.flips, self.rows) / residual.size


@dataclass(frozen=True, eq=False)
class _Task:
    """One row's rows and answers, scaled."""

    near: LiteralNeighbourhood
    seen: _Drawn
    fresh: _Drawn
    target: float
    plan: Plan

    def solved(self, k: int, given: PopulationProblem | None) -> SparseSolution:
        """Hand the solver the problem that it needs."""
        solver = SOLVERS[self.plan.solver]
        if solver.needs is SampleProblem:
            sample = SampleProblem(self.near.instance, self.target, self.seen.signs, self.seen.values)
            return solver.solve(sample, k, **dict(self.plan.search))
        if given is not None:
            return solver.solve(given, k)
        u = np.zeros(self.near.law.size)
        for _ in range(_ROUNDS):
            found = solver.solve(self.population(u), k)
            u = found.w * self.near.instance
        return found

    def population(self, control: Floats) -> PopulationProblem:
        """Γ estimated: exactly for the control's linear part, from the sample for what it leaves."""
        law, values = self.near.law, self.seen.values
        left = -self.seen.errors(control)
        gamma = law.variance * control + self.seen.covariance(left)
        return PopulationProblem(
            self.near.instance, self.target, law, gamma, float(values.mean()), float(values.var())
        )


def _exact(
    near: LiteralNeighbourhood, expectation: Expectation, row: Floats, scale: AnswerScale, task: _Task
) -> PopulationProblem:
    """Γ of the readable model. z = (1 + s)/2, so that Cov(s, f) is twice Cov(z, f)."""
    moments = expectation.moments(near.design, row)
    gamma = 2.0 * moments.gamma[near.varying] / scale.half
    mean = (float(moments.mean) - scale.middle) / scale.half
    return PopulationProblem(near.instance, task.target, near.law, gamma, mean, float(task.seen.values.var()))


def _judged(
    task: _Task,
    solution: SparseSolution,
    ask: _Counted,
    scale: AnswerScale,
    *,
    risk: float,
    rng: np.random.Generator,
    exact: bool,
) -> Judged:
    near, target, u = task.near, task.target, solution.w * task.near.instance
    squares, law = task.fresh.errors(u) ** 2, near.law
    reached = [1.0]

    def ask_scaled(x: Floats) -> Floats:
        answers = scale.to_unit(ask(x))
        reached.append(float(np.abs(answers).max()))
        return answers

    found = precision(near, ask_scaled, u, target, draws=task.plan.fresh, rng=rng)
    variance = float(task.fresh.values.var())
    return Judged(
        solution=solution,
        fidelity=float((task.seen.errors(u) ** 2).mean()),
        fresh_fidelity=float(squares.mean()),
        explained=1.0 - float(squares.mean()) / variance if variance > 0 else np.nan,
        precision=found,
        bounds=_bounds(squares, found, u, target, risk),
        theory={
            "accuracy": theorem_accuracy(task.plan.samples, law.size, solution.support.size, risk),
            "samples_for_0.1": theorem_samples(_ACCURACY, law.size, solution.support.size, risk),
        },
        standard_errors=np.zeros(law.size) if exact else _standard_errors(task.seen, u, law.variance),
        scale=scale,
        target=target * scale.half + scale.middle,
        calls=ask.calls,
        reach=max(reached),
    )


def _bounds(squares: Floats, found: Precision, u: Floats, target: float, risk: float) -> dict[str, float]:
    """Half of the risk for each of the two that are sampled."""
    largest = 1.0 + abs(target)
    fidelity = bernstein_bound(squares, largest=(np.abs(u).sum() + 1.0) ** 2, risk=risk / 2)
    direct = found.value
    if found.draws.size:
        farthest = max(largest, float(found.draws.max()))
        direct = bernstein_bound(found.draws, largest=farthest, risk=risk / 2)
    through = min(largest, float(np.sqrt(fidelity / found.coincidence)))
    return {"fidelity": fidelity, "precision": direct, "precision_from_fidelity": through}


def _standard_errors(seen: _Drawn, u: Floats, variance: float) -> Floats:
    """Of the coefficients, their support taken as given: residual times (s - mean of s on it)/a, averaged."""
    support, errors = np.flatnonzero(u), np.zeros(u.size)
    if not support.size:
        return errors
    signs = 1.0 - 2.0 * seen.flips[:, support]
    influence = seen.errors(u)[:, None] * (signs - signs.mean(axis=1, keepdims=True)) / variance
    errors[support] = influence.std(axis=0) / np.sqrt(len(influence))
    return errors
