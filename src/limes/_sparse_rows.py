"""Rows drawn around an explained row, the model's answers, and the sparse problem that they make.

A problem that can be read is exact; any other one is estimated from the rows, twice, the second time with the
least squares of the first choice of literals as a control. Resampled rows tell how firm the choice is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.designs._literals import LiteralNeighbourhood
from limes.models._calling.caller import Calls, Retry, with_retries
from limes.surrogates._projection import project
from limes.surrogates._solvers import SOLVERS
from limes.surrogates._sparse import (
    AnswerRange,
    AnswerScale,
    PopulationProblem,
    SampleProblem,
    SparseSolution,
)

# Resamples that judge the choice of literals, and the share from which another literal is a near-tie
_RESAMPLES, _NEAR_TIE = 200, 0.1
# How often Γ is estimated, the last time with the explanation so far as its control
_ROUNDS = 2

Ask = Callable[[Floats], Floats]


@dataclass(frozen=True)
class SparseConfig:
    """How rows are explained; see ``SparseExplainer``.

    ``sizes`` are the numbers of literals to try, one or all up to a largest; with ``error``, in units of the
    answers, the first whose bound ``certify`` is no larger is taken. ``excluded`` are positions of columns.
    """

    solver: str
    sizes: tuple[int, ...]
    samples: int
    fresh: int
    confidence: float
    seed: int
    intercept: bool = True
    error: float | None = None
    certify: str = "precision"
    search: tuple[tuple[str, Any], ...] = ()
    excluded: tuple[int, ...] = ()

    def candidates(self, near: LiteralNeighbourhood) -> Ints:
        """Return the literals that a rule may use."""
        return np.flatnonzero(~np.isin(near.varying, self.excluded))


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

    def __call__(self, x: Floats, seen: Counter[bytes] | None = None) -> Floats:  # noqa: ARG002 - by batches
        self.rows += len(x)
        starts = range(0, len(x), self._batch_size)
        return np.concatenate([self._batch(x[i : i + self._batch_size]) for i in starts])

    def _batch(self, x: Floats) -> Floats:
        key = blake2b(x.tobytes(), digest_size=16).digest()
        if key not in self._batches:
            self._batches[key] = with_retries(self._predict, x, self._retry)
        return self._batches[key]


@dataclass(frozen=True, eq=False)
class Draws:
    """Rows of a neighbourhood, the flips that made them, and the model's answers."""

    near: LiteralNeighbourhood
    flips: Bools
    rows: Floats
    values: Floats

    @classmethod
    def draw(cls, near: LiteralNeighbourhood, ask: Ask, count: int, rng: np.random.Generator) -> Draws:
        flips = near.law.flips(rng, count)
        rows = near.rows(flips, rng)
        return cls(near, flips, rows, ask(rows))

    def scaled(self, scale: AnswerScale) -> Draws:
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
class RowProblem:
    """The draws around one row, with scaled answers."""

    near: LiteralNeighbourhood
    seen: Draws
    fresh: Draws
    target: float
    config: SparseConfig
    scale: AnswerScale
    span: AnswerRange

    @cached_property
    def candidates(self) -> Ints:
        """Literals that a rule may use."""
        return self.config.candidates(self.near)

    def solve(self, k: int, exact: PopulationProblem | None) -> SparseSolution:
        """Solve for rules of k candidates."""
        if SOLVERS[self.config.solver].needs is SampleProblem:
            sample = SampleProblem(
                self.near.instance, self.target, self.seen.signs, self.seen.values, self.config.intercept
            )
            return self._best(sample, k, **dict(self.config.search))
        if exact is not None:
            return self._best(exact, k)
        solution = self._best(self.population(np.zeros(self.near.law.size), 0.0), k)
        for _ in range(_ROUNDS - 1):
            solution = self._best(self.population(*self.control(solution.support)), k)
        return solution

    def _best(self, problem: PopulationProblem | SampleProblem, k: int, **search: Any) -> SparseSolution:
        solve = SOLVERS[self.config.solver].solve
        if self.candidates.size == problem.size:
            return solve(problem, k, **search)
        return solve(problem.among(self.candidates), k, **search).within(self.candidates, problem.size)

    def stability(
        self, solution: SparseSolution, rng: np.random.Generator, *, exact: bool
    ) -> SupportStability:
        """Solve again for the moments of resampled rows: each row's part of Γ and E f has a normal factor."""
        if exact or SOLVERS[self.config.solver].needs is SampleProblem:
            return SupportStability(np.nan)
        estimate = self.population(*self.control(solution.support))
        errors = -self.seen.errors(*self.control(solution.support))
        errors -= errors.mean()
        draws = rng.standard_normal((_RESAMPLES, errors.size))
        # the next sample errs as much as this one did: together twice the variance
        draws = np.sqrt(2.0) * (draws - draws.mean(axis=1, keepdims=True))
        added = draws @ (errors[:, None] * (self.seen.signs - self.near.law.correlation)) / errors.size
        chosen = np.zeros((_RESAMPLES, self.near.law.size), dtype=np.bool_)
        for i, (gamma, mean) in enumerate(zip(added, draws @ errors / errors.size, strict=True)):
            again = replace(estimate, gamma=estimate.gamma + gamma, mean=estimate.mean + float(mean))
            total, pull = again.sum_and_pull
            optimum = again.optimum[self.candidates]
            chosen[i, self.candidates] = project(optimum, total, solution.support.size, pull) != 0.0
        kept = np.zeros(self.near.law.size, dtype=np.bool_)
        kept[solution.support] = True
        shares = np.where(kept, 0.0, chosen.mean(axis=0))
        others = [int(j) for j in np.argsort(-shares, kind="stable") if shares[j] >= _NEAR_TIE]
        return SupportStability(
            float((chosen == kept).all(axis=1).mean()), tuple((j, float(shares[j])) for j in others)
        )

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


@dataclass(frozen=True)
class SupportStability:
    """How often resampled rows choose the same literals: the share, and that of each other literal.

    ``others`` are (position, share) of literals outside the rule that are chosen often: near-ties.
    """

    share: float
    others: tuple[tuple[int, float], ...] = ()


def standard_errors(problem: RowProblem, u: Floats, constant: float) -> Floats:
    """Return coefficients' errors for a fixed support, of the mean of the rows' influences H⁻¹ t r.

    With a constant t = s - 1 and E t tᵀ = a I + c² 11ᵀ; without one t = s on the hyperplane. r is what the
    rule leaves of f in a sample's problem, and what the control does where Γ is estimated with one.
    """
    seen, law = problem.seen, problem.near.law
    support, errors = np.flatnonzero(u), np.zeros(u.size)
    spare = len(seen.values) - support.size - 1
    if not support.size or spare < 1:
        errors[support] = np.inf
        return errors
    sampled = SOLVERS[problem.config.solver].needs is SampleProblem
    residuals = seen.errors(u, constant) if sampled else seen.errors(*problem.control(support))
    signs = 1.0 - 2.0 * seen.flips[:, support]
    if problem.config.intercept:
        gram = law.variance * np.eye(support.size) + (2.0 * law.flip) ** 2
        directions = np.linalg.solve(gram, signs.T - 1.0).T
    else:
        directions = (signs - signs.mean(axis=1, keepdims=True)) / law.variance
    errors[support] = (residuals[:, None] * directions).std(axis=0) / np.sqrt(spare)
    return errors
