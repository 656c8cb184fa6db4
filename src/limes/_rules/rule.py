"""From a neighbourhood and a model to a sparse explanation and its certificate, row by row.

Rows are drawn and the model is asked (or read), the sparse problem is solved, and the solution is evaluated
on fresh rows that it was not fitted to. Bounds need the range of the answers: it is known (of probabilities,
of forms), passed, or assumed.

The problem of a model that can be read is exact; any other one is estimated from the rows, twice, the second
time with the least squares of the first choice of literals as a control. Resampled rows tell how stable the
choice is. A rule that is to hold has the facts of least error in a sample (``precision.py``), and the least
squares on them for weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from limes._arrays import ROUNDING, Bools, Floats, Ints, fingerprint, is_constant, r_squared, streams
from limes._expectations.moments import REFUSED
from limes._explanation.rules import BAND, Certificate
from limes._rules.model import Ask, ModelReading, RowCalls
from limes._rules.neighbourhood import ColumnDraws, Law, LiteralNeighbourhood, TableDraws
from limes._rules.precision import (
    EXACT_LITERALS,
    MOST_SAMPLES,
    FactSample,
    Precision,
    bernstein_bound,
    betting_bound,
    other_sides,
    precision,
    theorem_accuracy,
    theorem_samples,
)
from limes._rules.problem import (
    AnswerRange,
    PopulationProblem,
    SampleProblem,
    SparseSolution,
    fit_on,
    project,
)
from limes._rules.problem import solution as solution_of
from limes._rules.solvers import SOLVERS
from limes._rules.table_facts import TableFactSample
from limes._sampling.least_squares import DEFAULT_TOLERANCE
from limes._warnings import RowWarning

# Resamples that judge the choice of literals, and the share from which another literal is a near-tie
_RESAMPLES, _NEAR_TIE = 200, 0.1
# Facts of independent columns that a sample is searched for: few of its rows have more of them, and many sets
# of these do not err
_PROVABLE = 4
# An R² below it says little
_POOR = 0.1
# How often Γ is estimated, the last time with the explanation so far as its control
_ROUNDS = 2


@dataclass(frozen=True)
class SparseConfig:
    """How rows are explained; see ``SparseExplainer``.

    ``sizes`` are the numbers of literals to try, one or all up to a largest; with ``error``, in units of the
    answers, the first whose bound ``certify`` is no larger is taken. ``excluded`` are positions of columns,
    ``box`` is the largest weight, None for any.
    """

    solver: str
    sizes: tuple[int, ...]
    samples: int
    fresh: int
    confidence: float
    seed: int
    intercept: bool = True
    box: float | None = None
    error: float | None = None
    certify: str = "precision"
    search: tuple[tuple[str, Any], ...] = ()
    excluded: tuple[int, ...] = ()
    # what facts are chosen for: "fidelity", "precision" (few changes of the answer), "class" (of its side),
    # "certain" (no change at all)
    objective: str = "fidelity"
    threshold: float = 0.0  # between classes
    # seconds of the search for facts that hold; None limits its operations
    seconds: float | None = None

    @property
    def is_to_hold(self) -> bool:
        return self.objective != "fidelity"

    @property
    def of_sample(self) -> bool:
        """Whether the solver takes rows and their answers, and not E[s f]."""
        return SOLVERS[self.solver].needs is SampleProblem

    def candidates(self, near: LiteralNeighbourhood) -> Ints:
        return np.flatnonzero(~np.isin(near.varying, self.excluded))


@dataclass(frozen=True, eq=False)
class Draws:
    """Rows of a neighbourhood: the flips that made them, and the model's answers."""

    flips: Bools
    values: Floats

    @classmethod
    def draw(cls, near: LiteralNeighbourhood, ask: Ask, count: int, rng: np.random.Generator) -> Draws:
        flips, rows = near.draw(rng, count)
        return cls(flips, ask(rows))

    @cached_property
    def signs(self) -> Floats:
        return np.asarray(1.0 - 2.0 * self.flips, dtype=np.float64)

    def errors(self, u: Floats, constant: float) -> Floats:
        support = np.flatnonzero(u)
        return (1.0 - 2.0 * self.flips[:, support]) @ u[support] + (constant - self.values)

    def covariance(self, residual: Floats) -> Floats:
        """Mean of s_j (residual - its mean), (d,)."""
        return np.asarray((residual - residual.mean()) @ self.signs / residual.size)


@dataclass(frozen=True, eq=False)
class RowProblem:
    """The draws around one row."""

    near: LiteralNeighbourhood
    seen: Draws
    fresh: Draws
    target: float
    config: SparseConfig
    span: AnswerRange
    exact: tuple[Floats, float] | None  # Γ and E f, where they are
    facts: FactSample | TableFactSample | None = None  # by which facts are chosen that are to hold
    certain: Ints | None = None  # positions of the facts that are known to hold

    @cached_property
    def candidates(self) -> Ints:
        return self.config.candidates(self.near)

    @property
    def box(self) -> float:
        """The largest weight; where a solver needs one, by default 1 or what the answers' range requires."""
        if self.config.box is not None:
            return self.config.box
        low, high = self.span.low, self.span.high
        if not SOLVERS[self.config.solver].boxed:
            return np.inf
        if low >= -1.0 and high <= 1.0:
            return 1.0
        return 0.5 * (high - low) if self.config.intercept else max(high, -low)

    def solve(self, k: int) -> SparseSolution:
        if self.certain is not None:
            return self._on(self.certain)
        if self.facts is not None:
            return self._holding(self.facts, k)
        if self.config.of_sample:
            return self._best(self._sample(), k, **dict(self.config.search))
        if self.exact is not None:
            return self._best(self._population(*self.exact), k)
        solution = self._best(self._population(*self.estimate(np.zeros(self.near.instance.size), 0.0)), k)
        for _ in range(_ROUNDS - 1):
            moments = self.estimate(*self.control(solution.support))
            solution = self._best(self._population(*moments), k)
        return solution

    def _holding(self, facts: FactSample | TableFactSample, k: int) -> SparseSolution:
        """Return the least squares on the facts of least error; objective and bound are of that error."""
        began = perf_counter()
        searched = facts.best(k, np.inf if self.config.error is None else self.config.error)
        error, positions = searched.best[0]
        fitted = self._on(np.array(positions, dtype=np.int64), began)
        return replace(
            fitted,
            objective=error,
            lower_bound=searched.lower_bound,
            gap=0.0 if searched.proved else 1.0 - searched.lower_bound / error,
            proved=searched.proved,
            nodes=searched.nodes,
        )

    def _on(self, support: Ints, began: float | None = None) -> SparseSolution:
        """Return the least squares on some facts, all of which are its support."""
        began, u = perf_counter() if began is None else began, np.zeros(self.near.instance.size)
        problem: PopulationProblem | SampleProblem
        if isinstance(self.near, TableDraws):  # columns depend on each other
            problem = self._sample()
        else:
            problem = self._population(*(self.exact or self.estimate(*self.control(support))))
        if support.size:
            u[support] = fit_on(problem, support)
        return replace(solution_of(problem, u, began=began), support=support)

    def _sample(self) -> SampleProblem:
        return SampleProblem(
            self.near.instance,
            self.target,
            self.seen.signs,
            self.seen.values,
            self.config.intercept,
            self.box,
        )

    @property
    def law(self) -> Law:
        """The law of flips, of which the moments are known."""
        assert not isinstance(self.near, TableDraws)  # noqa: S101 - its rules are those of a sample
        return self.near.law

    def _population(self, gamma: Floats, mean: float) -> PopulationProblem:
        return PopulationProblem(
            self.near.instance,
            self.target,
            self.law,
            gamma,
            mean,
            float(self.seen.values.var()),
            self.config.intercept,
            self.box,
        )

    def _best(self, problem: PopulationProblem | SampleProblem, k: int, **search: Any) -> SparseSolution:
        """Return the best solution among the candidates."""
        solve = SOLVERS[self.config.solver].solve
        if self.candidates.size == problem.size:
            return solve(problem, k, **search)
        solution = solve(problem.among(self.candidates), k, **search)
        return solution.within(self.candidates, problem.size)

    def stability(self, solution: SparseSolution, rng: np.random.Generator) -> SupportStability:
        """Solve again for the moments of resampled rows: each row's part of Γ and E f has a normal factor."""
        if self.exact is not None or self.config.of_sample or self.config.is_to_hold:
            return SupportStability(np.nan, {})
        control = self.control(solution.support)
        estimate = self._population(*self.estimate(*control))
        errors = -self.seen.errors(*control)
        errors -= errors.mean()
        draws = rng.standard_normal((_RESAMPLES, errors.size))
        # the next sample errs as much as this one did: together twice the variance
        draws = np.sqrt(2.0) * (draws - draws.mean(axis=1, keepdims=True))
        added = draws @ (errors[:, None] * (self.seen.signs - self.law.correlation)) / errors.size
        chosen = np.zeros((_RESAMPLES, self.law.size), dtype=np.bool_)
        for i, (gamma, mean) in enumerate(zip(added, draws @ errors / errors.size, strict=True)):
            again = replace(estimate, gamma=estimate.gamma + gamma, mean=estimate.mean + float(mean))
            total, pull = again.sum_and_pull
            optimum = again.optimum[self.candidates]
            chosen[i, self.candidates] = project(optimum, total, solution.support.size, pull) != 0.0
        kept = np.zeros(self.law.size, dtype=np.bool_)
        kept[solution.support] = True
        shares = np.where(kept, 0.0, chosen.mean(axis=0))
        others = [int(j) for j in np.argsort(-shares, kind="stable") if shares[j] >= _NEAR_TIE]
        return SupportStability(
            float((chosen == kept).all(axis=1).mean()), {j: float(shares[j]) for j in others}
        )

    def control(self, support: Ints) -> tuple[Floats, float]:
        """Return the least squares of the sample on a support, u and b: its residuals vary least."""
        u, values = np.zeros(self.near.instance.size), self.seen.values
        signs = 1.0 - 2.0 * self.seen.flips[:, support]
        centre, mean = signs.mean(axis=0), float(values.mean())
        u[support] = np.linalg.lstsq(signs - centre, values - mean, rcond=None)[0]
        return u, mean - float(centre @ u[support])

    def estimate(self, u: Floats, constant: float) -> tuple[Floats, float]:
        """Estimate Γ and E f: exact for the control b + u·s, from the sample for its residuals."""
        law, residuals = self.law, -self.seen.errors(u, constant)
        gamma = law.variance * u + law.shared * u.sum() + self.seen.covariance(residuals)
        return gamma, constant + float((law.correlation * u).sum()) + float(residuals.mean())


class SupportStability(NamedTuple):
    """How often resampled rows choose the same literals, and each other one by position, if often."""

    share: float
    near_ties: Mapping[int, float]


def standard_errors(problem: RowProblem, u: Floats, constant: float) -> Floats:
    """Return coefficients' errors for a fixed support, of the mean of the rows' influences H⁻¹ t r.

    With a constant t = s - 1 and E t tᵀ = a I + (c² + κ) 11ᵀ; without one t = s on the hyperplane. r is what
    the rule leaves of f in a sample's problem, and what the control does where Γ is estimated with one.
    """
    seen = problem.seen
    support, errors = np.flatnonzero(u), np.zeros(u.size)
    spare = len(seen.values) - support.size - 1
    if not support.size or spare < 1:
        errors[support] = np.inf
        return errors
    of_rows = problem.config.of_sample or isinstance(problem.near, TableDraws)
    residuals = seen.errors(*((u, constant) if of_rows else problem.control(support)))
    signs = 1.0 - 2.0 * seen.flips[:, support]
    if isinstance(problem.near, TableDraws):  # E t tᵀ of the rows; a fact that all have has no direction
        away = signs - 1.0
        directions = away @ np.linalg.pinv(away.T @ away / len(away))
    elif problem.config.intercept:
        law = problem.near.law
        variance, gone = (np.broadcast_to(its, u.size)[support] for its in (law.variance, law.away))
        gram = np.diag(variance) + (np.outer(gone, gone) + law.shared)
        directions = np.linalg.solve(gram, signs.T - 1.0).T
    else:
        directions = (signs - signs.mean(axis=1, keepdims=True)) / problem.near.law.variance
    errors[support] = (residuals[:, None] * directions).std(axis=0) / np.sqrt(spare)
    return errors


_ASSUMPTION = (
    "the model answers in [{low:.4g}, {high:.4g}] wherever the literals flip; rarer answers may lie beyond, "
    "and then no bound holds: pass scale=(low, high)"
)
# The accuracy that the paper's sample size is computed for
_ACCURACY = 0.1


class RefusedRowError(Exception):
    """An exact expectation refused a row that was not to be sampled."""


@dataclass(frozen=True, eq=False)
class EvaluatedRule:
    """A solution, evaluated on fresh rows; all numbers are in units of the model's answers."""

    problem: RowProblem
    solution: SparseSolution
    precision: Precision
    excess: float  # how far answers of the precision's rows leave an assumed range, as a share of its width
    risk: float  # probability that at least one of the bounds fails
    calls: int  # number of rows that the model predicted
    # how stable the choice of literals is; its share is NaN where they are proved to be the best
    stability: SupportStability
    refusal: str = ""  # why the row was sampled although the model was read; "" elsewhere
    fewest: int | None = None  # least number of facts that the sample does not exclude, where it was searched
    agreement: float | None = None  # share of the table's rows with the facts that are as the rule says

    @property
    def target(self) -> float:
        return self.problem.target

    @property
    def exact(self) -> bool:
        return self.problem.exact is not None

    @cached_property
    def u(self) -> Floats:
        return self.solution.w * self.problem.near.instance

    @property
    def intercept(self) -> float:
        """The constant; 0 where it is no more than roundings."""
        size = abs(self.target) + float(np.abs(self.u).sum())
        return self.solution.intercept if abs(self.solution.intercept) > ROUNDING * size else 0.0

    @cached_property
    def standard_errors(self) -> Floats:
        """Standard errors of the weights, for this choice of literals, (d,)."""
        if self.exact:
            return np.zeros(self.u.size)
        return standard_errors(self.problem, self.u, self.solution.intercept)

    @property
    def is_accurate(self) -> bool:
        """Whether the weights' standard errors are within the default accuracy; always of an exact Γ.

        A rule that holds says nothing of its weights.
        """
        if self.problem.config.is_to_hold:
            return True
        weights, errors = self.solution.w[:, None], self.standard_errors[:, None]
        return bool(DEFAULT_TOLERANCE.excess(weights, errors) <= 1.0)

    @cached_property
    def squares(self) -> Floats:
        """(b + w·z - f(z))² at fresh rows, (m,)."""
        return np.asarray(self.problem.fresh.errors(self.u, self.solution.intercept) ** 2)

    @cached_property
    def r2(self) -> float:
        return _r2(float(self.squares.mean()), self.problem.fresh.values)

    @property
    def farthest(self) -> float:
        """The largest |f(z) - f(x)| that the range allows."""
        return max(self.problem.span.high - self.target, self.target - self.problem.span.low)

    @cached_property
    def bounds(self) -> dict[str, float]:
        """Upper bounds of fidelity, precision, and what else a rule that is to hold states: equal risks."""
        config = self.problem.config
        risk = self.risk / {"fidelity": 2, "class": 4}.get(config.objective, 3)
        reach, span = float(np.abs(self.u).sum()), self.problem.span
        largest = max(self.intercept + reach - span.low, span.high - self.intercept + reach)
        fidelity = bernstein_bound(self.squares, largest=largest**2, risk=risk)
        direct, draws = self.precision.value, self.precision.draws
        if draws.size:
            farthest = max(self.farthest, float(draws.max()))
            bound = betting_bound if config.is_to_hold else bernstein_bound
            direct = bound(draws, largest=farthest, risk=risk)
        bounds = {"fidelity": fidelity, "precision": direct}
        if not isinstance(self.problem.near, TableDraws):  # whose rows with facts are no part of the others
            through = float(np.sqrt(fidelity / self.precision.coincidence))
            bounds["precision_from_fidelity"] = min(self.farthest, through)
        if config.is_to_hold:
            bounds["band"] = min(self.farthest, self.precision.band(BAND, risk=risk))
        if config.objective == "class":
            bounds["class"] = self._other_class(risk)[1]
        return bounds

    def _other_class(self, risk: float) -> tuple[float, float]:
        return self.precision.other_side(self.problem.config.threshold, self.target, risk=risk)

    def agrees(self, answers: Floats) -> Bools:
        """Return which answers are as a rule that is to hold says: of the class, or within its band."""
        config = self.problem.config
        if config.objective == "class":
            return ~other_sides(answers, config.threshold, self.target)
        band = self.bounds["band"] + ROUNDING * (abs(self.target) + self.bounds["band"])
        return np.asarray(np.abs(answers - self.target) <= band)

    @property
    def meets(self) -> bool:
        """Whether the certified error is as small as requested, if it was."""
        config = self.problem.config
        return config.error is None or self.bounds[config.certify] <= config.error

    def certificate(self, names: tuple[str, ...], **others: Any) -> Certificate:
        """Certify the rule; ``names`` are the conditions of all columns, ``others`` the other fields."""
        problem, solution, config = self.problem, self.solution, self.problem.config
        span, varying, precision = problem.span, problem.near.varying, self.precision
        fresh, objective = float(self.squares.mean()), solution.objective
        lower, gap = solution.lower_bound, solution.gap
        optimum = "sample" if config.of_sample else "estimate"
        if config.is_to_hold:
            optimum = "population" if problem.facts is not None and problem.facts.is_complete else "sample"
            if isinstance(problem.facts, TableFactSample) and not solution.proved:
                optimum = "search"
        elif self.exact:
            # all but Var f is exact in the objective and its bound, which have it in common: the error on
            # fresh rows takes its place, and the bound lies as far below as in the solver's problem
            optimum, objective = "population", fresh
            lower = max(0.0, fresh - max(0.0, solution.objective - solution.lower_bound))
            gap = 1.0 - lower / fresh if fresh > 0 else 0.0
        theory = {}  # Theorem 2 of the paper, mended, for answers and weights in [-1, 1]
        if not config.intercept:
            size, k = self.u.size, solution.support.size
            theory = {
                "accuracy": theorem_accuracy(config.samples, size, k, self.risk),
                "samples_for_0.1": theorem_samples(_ACCURACY, size, k, self.risk),
            }
        return Certificate(
            solver=config.solver,
            fidelity=float((problem.seen.errors(self.u, solution.intercept) ** 2).mean()),
            fresh_fidelity=fresh,
            r2=self.r2,
            precision=precision.value,
            precision_error=precision.error,
            coincidence=precision.coincidence,
            confidence=config.confidence,
            bounds=self.bounds,
            objective=objective,
            lower_bound=lower,
            gap=gap,
            proved=solution.proved and optimum != "estimate",
            optimum=optimum,
            stability=self.stability.share,
            near_ties={names[varying[j]]: share for j, share in self.stability.near_ties.items()},
            nodes=solution.nodes,
            samples=problem.facts.size if problem.facts is not None else 0 if self.exact else config.samples,
            fresh_samples=config.fresh,
            theory=theory,
            scale=(span.low, span.high),
            minimises=config.objective,
            prediction=self.target,
            other_class=self._other_class(1.0)[0] if config.objective == "class" else None,
            threshold=config.threshold if config.objective == "class" else None,
            fewest=self.fewest,
            agreement=self.agreement,
            neighbourhood=problem.near.clause(solution.support.size),
            certified=config.certify if config.error is not None and self.meets else "",
            assumption="" if span.source else _ASSUMPTION.format(low=span.low, high=span.high),
            **others,
        )


def explain_row(
    near: LiteralNeighbourhood,
    ask: RowCalls,
    row: Floats,
    config: SparseConfig,
    reading: ModelReading,
    certain: Ints | None = None,
) -> EvaluatedRule:
    """Explain the model at one row of its table; with an expectation, from its exact Γ.

    ``certain`` are positions of facts that were chosen before.
    """
    ask.restart()
    exact, refusal = _exact_moments(near, row, reading)
    first, second, third, fourth, fifth = streams(config.seed, fingerprint(row), 5)
    answer = reading.predict or ask
    fresh = Draws.draw(near, answer, config.fresh, np.random.default_rng(second))
    # an exact Γ needs no rows but the fresh ones
    seen = fresh
    if exact is None:
        seen = Draws.draw(near, answer, config.samples, np.random.default_rng(first))
    target = float(answer(row[None, :])[0])
    answers = (np.array([target]), seen.values, fresh.values)
    span = reading.answer_range(near) or AnswerRange.of_answers(*answers, reading.background)
    for part in answers:
        span.check(part)
    problem = RowProblem(near, seen, fresh, target, config, span, exact)
    if certain is not None:
        problem = replace(problem, certain=certain)
    elif config.is_to_hold:
        rng = np.random.default_rng(fifth)
        problem = replace(
            problem, facts=_fact_sample(problem, answer, rng, is_read=reading.predict is not None)
        )
    step, fewest = 0, None
    for k in config.sizes:
        solution = problem.solve(k)
        if certain is None and config.is_to_hold and config.error is not None:
            is_enough = solution.objective <= config.error
            # where facts are added one by one, fewer others may do
            is_searched = not isinstance(problem.facts, TableFactSample)
            if is_searched and fewest is None and solution.lower_bound <= config.error:
                fewest = solution.support.size if is_enough else k
            if not is_enough and k != config.sizes[-1]:
                continue  # nor is it on fresh rows
        step += 1
        # each size that is tried may go wrong: together they do no more often than one alone
        risk = (1.0 - config.confidence) / (1 if config.error is None else step * (step + 1))
        # the same fresh draws for every size
        error, excess = _precision(problem, solution, answer, np.random.default_rng(third))
        stability = problem.stability(solution, np.random.default_rng(fourth))
        rule = EvaluatedRule(problem, solution, error, excess, risk, ask.rows, stability, refusal, fewest)
        if config.error is not None and rule.meets:
            break
    return rule


def _exact_moments(
    near: LiteralNeighbourhood, row: Floats, reading: ModelReading
) -> tuple[tuple[Floats, float] | None, str]:
    """Return the exact Γ and E f around a row; None, and why, where they are refused and it is sampled."""
    if reading.expectation is None or isinstance(near, TableDraws):
        return None, ""
    try:
        moments = reading.expectation.moments(near.design, row)
    except REFUSED as error:
        if not reading.samples:
            raise RefusedRowError(str(error)) from error
        return None, str(error)
    # z = (1 + s)/2, so that Cov(s, f) is twice Cov(z, f)
    return (2.0 * moments.gamma[near.varying], float(moments.mean)), ""


def _fact_sample(
    problem: RowProblem, answer: Ask, rng: np.random.Generator, *, is_read: bool
) -> FactSample | TableFactSample:
    """Return the rows by which facts are chosen: all, if they are no more than are drawn otherwise."""
    near, config = problem.near, problem.config

    def losses_of(answers: Floats) -> Floats:
        problem.span.check(answers)
        if config.objective == "precision":
            return np.abs(answers - problem.target)
        return other_sides(answers, config.threshold, problem.target).astype(np.float64)

    if isinstance(near, TableDraws):
        return _added_facts(problem, near, lambda x: losses_of(answer(x)), rng)
    size = near.law.size

    def losses(flips: Bools) -> Floats:
        return losses_of(answer(near.rows(flips, rng)))

    def sample(first: tuple[Bools, Floats] | None) -> FactSample:
        return FactSample(near, losses, problem.candidates, first=first, rng=rng, seconds=config.seconds)

    few = size <= np.log2(MOST_SAMPLES * config.samples) or (is_read and size <= EXACT_LITERALS)
    if near.decided_by_flips and few:
        return sample(None)
    if isinstance(near, ColumnDraws) and config.sizes[-1] > _PROVABLE:
        return _added_facts(problem, near, lambda x: losses_of(answer(x)), rng)
    first = problem.seen.flips, losses_of(problem.seen.values)
    if problem.exact is not None:  # the rows seen are the fresh ones
        flips = near.law.flips(rng, config.samples)
        first = flips, losses(flips)
    return sample(first)


def _added_facts(
    problem: RowProblem,
    near: ColumnDraws | TableDraws,
    losses: Callable[[Floats], Floats],
    rng: np.random.Generator,
) -> TableFactSample:
    return TableFactSample(near, losses, problem.candidates, rows=problem.config.samples, rng=rng)


def _precision(
    problem: RowProblem, solution: SparseSolution, answer: Ask, rng: np.random.Generator
) -> tuple[Precision, float]:
    """Return the precision error, and how far answers of its rows leave the range."""
    excess = [0.0]

    def checked(x: Floats) -> Floats:
        answers = answer(x)
        problem.span.check(answers)
        excess.append(problem.span.excess(answers))
        return answers

    u = solution.w * problem.near.instance
    if problem.config.is_to_hold:
        u = np.zeros(u.size)
        u[solution.support] = 1.0  # of generic weights: all facts hold, also those without a weight
    draws = problem.config.fresh
    return precision(problem.near, checked, u, problem.target, draws=draws, rng=rng), max(excess)


def _r2(error: float, answers: Floats) -> float:
    """Return 1 - F/Var f; 1 where neither differs from 0 by more than roundings."""
    variance, size = float(answers.var()), float(np.abs(answers).max())
    if is_constant(variance, size) and not is_constant(error, size):
        return -np.inf  # without an intercept a rule may miss even a constant
    return float(r_squared(variance - error, variance, size)[0])


def rule_warnings(rule: EvaluatedRule) -> tuple[RowWarning, ...]:
    config = rule.problem.config
    warnings, span = list[RowWarning](), rule.problem.span

    def warn(name: str, **facts: Any) -> None:
        warnings.append(RowWarning.of("rule", name, **facts))

    if rule.excess > 0.0:
        warn("range", low=span.low, high=span.high, excess=rule.excess)
    if rule.bounds["precision"] >= rule.farthest > 0.0:
        warn("few fresh rows", fresh=config.fresh)
    meets_box = config.box is not None and bool(np.abs(rule.u).max() >= config.box * (1.0 - ROUNDING))
    searches = config.solver == "branch_and_bound"
    if not rule.solution.proved and meets_box and not searches:
        warn("box", box=config.box)
    elif not rule.solution.proved and searches:
        warn("time", gap=rule.solution.gap)
    if config.error is not None and rule.meets and not span.source:
        warn("seen range", certify=config.certify, error=config.error, low=span.low, high=span.high)
    if not rule.meets:
        warn("not met", size=rule.solution.support.size, certify=config.certify, error=config.error)
    if rule.r2 < 0.0 and not config.is_to_hold:
        intercept = "" if config.intercept else ", or use intercept=True"
        warn("worse than the mean", r2=rule.r2, intercept=intercept)
    if 0.0 <= rule.r2 < _POOR and not config.is_to_hold:
        warn("poor", r2=rule.r2)
    return (*_rule_sample_warnings(rule), *warnings)


def _rule_sample_warnings(rule: EvaluatedRule) -> Iterator[RowWarning]:
    if rule.refusal:
        yield RowWarning.of("sampled", refusal=rule.refusal)
    fresh = rule.problem.fresh.values
    if rule.calls and np.ptp(fresh) <= ROUNDING * np.abs(fresh).max():
        yield RowWarning.of("unchanged", "rule", calls=len(fresh))
