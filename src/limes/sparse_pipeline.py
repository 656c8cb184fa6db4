"""From a neighbourhood and a model to a sparse explanation and its certificate, row by row.

Rows are drawn and the model is asked (or read), its answers are scaled into [-1, 1], the sparse problem is
solved, and the solution is evaluated on fresh rows that it was not fitted to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._streams import fingerprint, streams
from limes.designs.literals import LiteralNeighbourhood
from limes.expectations.precision import (
    Precision,
    bernstein_bound,
    precision,
    theorem_accuracy,
    theorem_samples,
)
from limes.models.calling.caller import Calls, Retry, with_retries
from limes.pipeline import Expectation
from limes.surrogates.solvers import SOLVERS
from limes.surrogates.sparse import (
    SCALE_ROUNDING,
    AnswerScale,
    PopulationProblem,
    SampleProblem,
    SparseSolution,
)

# How often Γ is estimated, the last time with the explanation so far as its control
_ROUNDS = 2
# A spread of answers below this share of their size is rounding
_ROUNDING = 1e-12
# The accuracy that the paper's sample size is computed for
_ACCURACY = 0.1

Ask = Callable[[Floats], Floats]


@dataclass(frozen=True)
class SparseConfig:
    """How rows are explained; see ``SparseExplainer``.

    ``sizes`` are the numbers of literals to try, one or all up to a largest; with ``error``, in units of the
    answers, the first whose bound ``certify`` is no larger is taken. ``scale=None`` computes one from the
    answers and ``seen``.
    """

    solver: str
    sizes: tuple[int, ...]
    samples: int
    fresh: int
    confidence: float
    seed: int
    intercept: bool = True
    scale: AnswerScale | None = None
    seen: Floats | None = None
    error: float | None = None
    certify: str = "precision"
    search: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, eq=False)
class EvaluatedRule:
    """A solution, evaluated on fresh rows; errors are of the scaled model."""

    solution: SparseSolution
    fidelity: float
    fresh_fidelity: float
    r2: float
    precision: Precision
    bounds: dict[str, float]
    theory: dict[str, float]
    standard_errors: Floats
    scale: AnswerScale
    target: float
    calls: int
    reach: float

    @property
    def intercept(self) -> float:
        """The constant in units of the answers; 0 where it is no more than roundings."""
        constant = self.scale.middle + self.scale.half * self.solution.intercept
        size = abs(self.target) + self.scale.half * float(np.abs(self.solution.w).sum())
        return constant if abs(constant) > _ROUNDING * size else 0.0

    @property
    def leaves_scale(self) -> bool:
        """Whether rows of the precision error had answers beyond the range that the scale was made from."""
        return self.reach > 1.0 + SCALE_ROUNDING

    @property
    def vacuous(self) -> bool:
        """Whether the precision's bound is no smaller than any model in [-1, 1] has."""
        return self.bounds["precision"] >= 1.0 + abs(self.target - self.scale.middle) / self.scale.half

    def meets(self, config: SparseConfig) -> bool:
        """Return whether the certified error is as small as requested, if it was."""
        if config.error is None:
            return True
        unit = self.scale.half ** (2 if config.certify == "fidelity" else 1)
        return unit * self.bounds[config.certify] <= config.error


class RowCalls(Calls):
    """The model's answers around one row, kept batch by batch.

    A row that is explained again after a failure draws the same batches: those with answers are not asked
    again. ``rows`` counts the rows of all batches since ``restart``.
    """

    def __init__(self, ask: Ask, *, batch_size: int, retry: Retry | None = None) -> None:
        super().__init__(ask, batch_size=batch_size, retry=retry)
        self._batches: dict[bytes, Floats] = {}
        self.rows = 0

    def restart(self) -> None:
        """Count from 0."""
        self.rows = 0

    def __call__(self, x: Floats) -> Floats:
        self.rows += len(x)
        starts = range(0, len(x), self._batch_size)
        return np.concatenate([self._batch(x[i : i + self._batch_size]) for i in starts])

    def _batch(self, x: Floats) -> Floats:
        key = blake2b(x.tobytes(), digest_size=16).digest()
        if key not in self._batches:
            self._batches[key] = with_retries(self._predict, x, self._retry)
        return self._batches[key]


def explain_row(
    near: LiteralNeighbourhood,
    ask: RowCalls,
    row: Floats,
    config: SparseConfig,
    expectation: Expectation | None,
) -> EvaluatedRule:
    """Explain the model at one row of its table; with an expectation, from its exact Γ.

    Raises
    ------
    InputError
        If there are fewer literals than requested, or the model leaves the scale that was passed.
    """
    ask.restart()
    first, second, third = streams(config.seed, fingerprint(row), 3)
    seen, fresh = (
        _Draws.draw(near, ask, rows, np.random.default_rng(stream))
        for rows, stream in zip((config.samples, config.fresh), (first, second), strict=True)
    )
    target = float(ask(row[None, :])[0])
    answers = (np.array([target]), seen.values, fresh.values)
    scale = config.scale or AnswerScale.from_answers(
        *answers, *([] if config.seen is None else [config.seen])
    )
    scaled_target = float(scale.to_unit(answers[0])[0])
    problem = _RowProblem(near, seen.scaled(scale), fresh.scaled(scale), scaled_target, config)
    exact = None if expectation is None else _exact_population(near, expectation, row, scale, problem)
    for step, k in enumerate(config.sizes, start=1):
        solution = problem.solve(k, exact)
        # each size that is tried may go wrong: together they do no more often than one alone
        risk = (1.0 - config.confidence) / (1 if config.error is None else step * (step + 1))
        # the same fresh draws for every size
        rng = np.random.default_rng(third)
        rule = _evaluate(problem, solution, ask, scale, risk=risk, rng=rng, exact=exact is not None)
        if config.error is not None and rule.meets(config):
            break
    return rule


@dataclass(frozen=True, eq=False)
class _Draws:
    """Rows of a neighbourhood, the flips that made them, and the model's answers."""

    near: LiteralNeighbourhood
    flips: Bools
    rows: Floats
    values: Floats

    @classmethod
    def draw(cls, near: LiteralNeighbourhood, ask: Ask, count: int, rng: np.random.Generator) -> _Draws:
        flips = near.law.flips(rng, count)
        rows = near.rows(flips, rng)
        return cls(near, flips, rows, ask(rows))

    def scaled(self, scale: AnswerScale) -> _Draws:
        return replace(self, values=scale.to_unit(self.values))

    @cached_property
    def signs(self) -> Floats:
        """Signs s = z∘x, (m, d)."""
        return np.asarray(1.0 - 2.0 * self.flips, dtype=np.float64)

    def errors(self, u: Floats, constant: float) -> Floats:
        """Return b + w·z - f(z), (m,)."""
        support = np.flatnonzero(u)
        return (1.0 - 2.0 * self.flips[:, support]) @ u[support] + (constant - self.values)

    def covariance(self, residual: Floats) -> Floats:
        """Mean of s_j (residual - its mean), (d,)."""
        return self.near.signed_sum(residual - residual.mean(), self.flips, self.rows) / residual.size


@dataclass(frozen=True, eq=False)
class _RowProblem:
    """The draws around one row, with scaled answers."""

    near: LiteralNeighbourhood
    seen: _Draws
    fresh: _Draws
    target: float
    config: SparseConfig

    def solve(self, k: int, exact: PopulationProblem | None) -> SparseSolution:
        """Pass the solver the problem that it takes."""
        solver = SOLVERS[self.config.solver]
        if solver.needs is SampleProblem:
            sample = SampleProblem(
                self.near.instance, self.target, self.seen.signs, self.seen.values, self.config.intercept
            )
            return solver.solve(sample, k, **dict(self.config.search))
        if exact is not None:
            return solver.solve(exact, k)
        solution = solver.solve(self.population(np.zeros(self.near.law.size), 0.0), k)
        for _ in range(_ROUNDS - 1):
            solution = solver.solve(self.population(*self.control(solution.support)), k)
        return solution

    def control(self, support: Ints) -> tuple[Floats, float]:
        """Return the least squares of the sample on a support, u and b: its residuals vary least."""
        u, values = np.zeros(self.near.law.size), self.seen.values
        signs = 1.0 - 2.0 * self.seen.flips[:, support]
        centre, mean = signs.mean(axis=0), float(values.mean())
        u[support] = np.linalg.lstsq(signs - centre, values - mean, rcond=None)[0]
        return u, mean - float(centre @ u[support])

    def population(self, u: Floats, constant: float) -> PopulationProblem:
        """Estimate Γ and E f: exact for the control b + u·s, from the sample for its residuals."""
        law, values = self.near.law, self.seen.values
        residuals = -self.seen.errors(u, constant)
        gamma = law.variance * u + self.seen.covariance(residuals)
        mean = constant + law.correlation * float(u.sum()) + float(residuals.mean())
        return PopulationProblem(
            self.near.instance, self.target, law, gamma, mean, float(values.var()), self.config.intercept
        )


def _exact_population(
    near: LiteralNeighbourhood,
    expectation: Expectation,
    row: Floats,
    scale: AnswerScale,
    problem: _RowProblem,
) -> PopulationProblem:
    """Compute Γ of the readable model. z = (1 + s)/2, so that Cov(s, f) is twice Cov(z, f)."""
    moments = expectation.moments(near.design, row)
    gamma = 2.0 * moments.gamma[near.varying] / scale.half
    mean = (float(moments.mean) - scale.middle) / scale.half
    return PopulationProblem(
        near.instance,
        problem.target,
        near.law,
        gamma,
        mean,
        float(problem.seen.values.var()),
        problem.config.intercept,
    )


def _evaluate(
    problem: _RowProblem,
    solution: SparseSolution,
    ask: RowCalls,
    scale: AnswerScale,
    *,
    risk: float,
    rng: np.random.Generator,
    exact: bool,
) -> EvaluatedRule:
    near, target, u = problem.near, problem.target, solution.w * problem.near.instance
    constant, law = solution.intercept, near.law
    squares = problem.fresh.errors(u, constant) ** 2
    sizes = [1.0]

    def ask_scaled(x: Floats) -> Floats:
        answers = scale.to_unit(ask(x))
        sizes.append(float(np.abs(answers).max()))
        return answers

    error = precision(near, ask_scaled, u, target, draws=problem.config.fresh, rng=rng)
    return EvaluatedRule(
        solution=solution,
        fidelity=float((problem.seen.errors(u, constant) ** 2).mean()),
        fresh_fidelity=float(squares.mean()),
        r2=_r2(float(squares.mean()), problem.fresh.values),
        precision=error,
        bounds=_bounds(squares, error, abs(constant) + float(np.abs(u).sum()), target, risk),
        theory={
            "accuracy": theorem_accuracy(problem.config.samples, law.size, solution.support.size, risk),
            "samples_for_0.1": theorem_samples(_ACCURACY, law.size, solution.support.size, risk),
        },
        standard_errors=np.zeros(law.size) if exact else _standard_errors(problem, u, constant),
        scale=scale,
        target=target * scale.half + scale.middle,
        calls=ask.rows,
        reach=max(sizes),
    )


def _r2(error: float, answers: Floats) -> float:
    """Return 1 - F/Var f; 1 where neither differs from 0 by more than roundings."""
    variance, rounding = float(answers.var()), (_ROUNDING * float(np.abs(answers).max())) ** 2
    if variance > rounding:
        return 1.0 - error / variance
    return 1.0 if error <= rounding else -np.inf


def _bounds(squares: Floats, error: Precision, reach: float, target: float, risk: float) -> dict[str, float]:
    """Bound fidelity and precision, each at half of the risk; ``reach`` is the rule's largest prediction."""
    largest = 1.0 + abs(target)
    fidelity = bernstein_bound(squares, largest=(reach + 1.0) ** 2, risk=risk / 2)
    direct = error.value
    if error.draws.size:
        farthest = max(largest, float(error.draws.max()))
        direct = bernstein_bound(error.draws, largest=farthest, risk=risk / 2)
    through = min(largest, float(np.sqrt(fidelity / error.coincidence)))
    return {"fidelity": fidelity, "precision": direct, "precision_from_fidelity": through}


def _standard_errors(problem: _RowProblem, u: Floats, constant: float) -> Floats:
    """Return coefficients' errors for a fixed support, of the mean of their influences H⁻¹ t (f - b - u·s).

    Without a constant t = s on the hyperplane; with one it is s - 1, and E t tᵀ = a I + c² 11ᵀ.
    """
    seen, law = problem.seen, problem.near.law
    support, errors = np.flatnonzero(u), np.zeros(u.size)
    if not support.size:
        return errors
    signs, residuals = 1.0 - 2.0 * seen.flips[:, support], seen.errors(u, constant)
    if problem.config.intercept:
        gram = law.variance * np.eye(support.size) + (2.0 * law.flip) ** 2
        directions = np.linalg.solve(gram, signs.T - 1.0).T
    else:
        directions = (signs - signs.mean(axis=1, keepdims=True)) / law.variance
    errors[support] = (residuals[:, None] * directions).std(axis=0) / np.sqrt(len(residuals))
    return errors
