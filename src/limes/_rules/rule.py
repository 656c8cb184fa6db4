"""From a neighbourhood and a model to a sparse explanation and its certificate, row by row.

Rows are drawn and the model is asked (or read), the sparse problem is solved, and the solution is evaluated
on fresh rows that it was not fitted to. Bounds need the range of the answers: it is known (of probabilities,
of forms), passed, or assumed.

The problem of a model that can be read is exact; any other one is estimated from the rows, twice, the second
time with the least squares of the first choice of literals as a control. Resampled rows tell how stable the
choice is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints, fingerprint, streams
from limes._expectations.moments import Moments
from limes._expectations.refusals import REFUSED
from limes._expectations.sampling import DEFAULT_TOLERANCE
from limes._explainers.warnings import POOR, SAMPLED_ALONE
from limes._explanation.rules import Certificate
from limes._pipeline import Expectation
from limes._rules.neighbourhood import LiteralNeighbourhood
from limes._rules.precision import (
    Precision,
    bernstein_bound,
    precision,
    theorem_accuracy,
    theorem_samples,
)
from limes._rules.problem import (
    AnswerRange,
    AnswerScale,
    PopulationProblem,
    SampleProblem,
    SparseSolution,
    project,
)
from limes._rules.solvers import SOLVERS
from limes._variance import ROUNDING, is_constant, r_squared
from limes.models._calling.caller import Calls, Retry, with_retries

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


_ASSUMPTION = (
    "the model answers in [{low:.4g}, {high:.4g}] wherever the literals flip; rarer answers may lie beyond, "
    "and then no bound holds: pass scale=(low, high)"
)
# The accuracy that the paper's sample size is computed for
_ACCURACY = 0.1


class RefusedRowError(Exception):
    """An exact expectation refused a row that was not to be sampled."""

    def at(self, name: object) -> str:
        """Return the message about a row of this name."""
        return f"row {name!r} has no exact expectation: {self}; pass method='auto', which samples it"


@dataclass(frozen=True, eq=False)
class ModelReading:
    """What is known of a model before a row is explained.

    Attributes
    ----------
    expectation
        Exact, or None.
    predict
        Answers rows in place of the model, (m, columns) -> (m,); None where the model must be asked.
    samples
        Whether a row that the expectation refuses is sampled, from ``predict``.
    answer_range
        The range of answers in a neighbourhood; None where it is not known.
    background
        Answers at the background's rows, (n,), that an assumed range has to cover.
    """

    expectation: Expectation | None
    predict: Ask | None
    samples: bool
    answer_range: Callable[[LiteralNeighbourhood], AnswerRange | None]
    background: Floats


@dataclass(frozen=True, eq=False)
class EvaluatedRule:
    """A solution, evaluated on fresh rows; all numbers are in units of the model's answers.

    Attributes
    ----------
    solution, problem
        The solution and its problem, of the scaled model.
    exact
        Whether Γ is exact.
    precision
        Precision on the scaled model.
    excess
        How far answers of the precision's rows leave an assumed range, as a share of its width.
    risk
        Probability that at least one of the bounds fails.
    calls
        Number of rows that the model predicted.
    stability
        How stable the choice of literals is; its share is NaN where they are proved to be the best.
    refusal
        Why the row was sampled although the model was read; "" elsewhere.
    """

    solution: SparseSolution
    problem: RowProblem
    exact: bool
    precision: Precision
    excess: float
    risk: float
    calls: int
    stability: SupportStability
    refusal: str = ""

    @property
    def target(self) -> float:
        """f(x)."""
        return self.problem.target * self.problem.scale.half + self.problem.scale.middle

    @cached_property
    def u(self) -> Floats:
        """w∘x of the scaled model, (d,)."""
        return self.solution.w * self.problem.near.instance

    @property
    def intercept(self) -> float:
        """The constant; 0 where it is no more than roundings."""
        scale = self.problem.scale
        constant = scale.middle + scale.half * self.solution.intercept
        size = abs(self.target) + scale.half * float(np.abs(self.u).sum())
        return constant if abs(constant) > ROUNDING * size else 0.0

    @property
    def weights(self) -> Floats:
        """w, (d,)."""
        return self.problem.scale.half * self.solution.w

    @property
    def standard_errors(self) -> Floats:
        """Standard errors of the weights, for this choice of literals, (d,)."""
        if self.exact:
            return np.zeros(self.u.size)
        return self.problem.scale.half * standard_errors(self.problem, self.u, self.solution.intercept)

    @property
    def is_accurate(self) -> bool:
        """Whether the weights' standard errors are within the default accuracy; always of an exact Γ."""
        weights, errors = self.weights[:, None], self.standard_errors[:, None]
        return bool(DEFAULT_TOLERANCE.excess(weights, errors) <= 1.0)

    @cached_property
    def squares(self) -> Floats:
        """(b + w·z - f(z))² at fresh rows, (m,)."""
        errors = self.problem.fresh.errors(self.u, self.solution.intercept)
        return np.asarray((self.problem.scale.half * errors) ** 2)

    @property
    def fidelity(self) -> float:
        """Mean of (b + w·z - f(z))² over the rows that w was fitted on."""
        errors = self.problem.seen.errors(self.u, self.solution.intercept)
        return float(((self.problem.scale.half * errors) ** 2).mean())

    @cached_property
    def r2(self) -> float:
        """1 - F/Var f over fresh rows."""
        return _r2(float(self.squares.mean()), self.problem.scale.half * self.problem.fresh.values)

    @property
    def farthest(self) -> float:
        """The largest |f(z) - f(x)| that the range allows."""
        return max(self.problem.span.high - self.target, self.target - self.problem.span.low)

    @cached_property
    def bounds(self) -> dict[str, float]:
        """Upper bounds of fidelity and precision, each at half of the risk."""
        reach, span = self.problem.scale.half * float(np.abs(self.u).sum()), self.problem.span
        largest = max(self.intercept + reach - span.low, span.high - self.intercept + reach)
        fidelity = bernstein_bound(self.squares, largest=largest**2, risk=self.risk / 2)
        direct = self.problem.scale.half * self.precision.value
        if self.precision.draws.size:
            draws = self.problem.scale.half * self.precision.draws
            farthest = max(self.farthest, float(draws.max()))
            direct = bernstein_bound(draws, largest=farthest, risk=self.risk / 2)
        through = min(self.farthest, float(np.sqrt(fidelity / self.precision.coincidence)))
        return {"fidelity": fidelity, "precision": direct, "precision_from_fidelity": through}

    @property
    def theory(self) -> dict[str, float]:
        """What Theorem 2 of the paper guarantees, for answers in [-1, 1]."""
        size, k = self.u.size, self.solution.support.size
        return {
            "accuracy": theorem_accuracy(self.problem.config.samples, size, k, self.risk),
            "samples_for_0.1": theorem_samples(_ACCURACY, size, k, self.risk),
        }

    @property
    def optimum(self) -> str:
        """Of what the rule is the best, where that is proved."""
        if self.exact:
            return "population"
        sampled = SOLVERS[self.problem.config.solver].needs is SampleProblem
        return "sample" if sampled else "estimate"

    @property
    def errors(self) -> tuple[float, float, float]:
        """The mean square error of the solver's problem, a lower bound for rules of this size, and the gap.

        With an exact Γ all but Var f is exact in it, which the two have in common: the error on fresh rows
        takes its place, and the bound lies as far below as in the solver's problem.
        """
        unit, solved = self.problem.scale.half**2, self.solution
        if not self.exact:
            return unit * solved.objective, unit * solved.lower_bound, solved.gap
        error = float(self.squares.mean())
        lower = max(0.0, error - unit * max(0.0, solved.objective - solved.lower_bound))
        return error, lower, 1.0 - lower / error if error > 0 else 0.0

    @property
    def proved(self) -> bool:
        """Whether no better rule of this size exists, in the population or for the sample."""
        return self.solution.proved and self.optimum != "estimate"

    @property
    def vacuous(self) -> bool:
        """Whether the precision's bound is no smaller than any model in the range has."""
        return self.bounds["precision"] >= self.farthest > 0.0

    @property
    def meets_box(self) -> bool:
        """Whether a weight ends at the bounds -1 and 1 of the paper's form."""
        return not self.problem.config.intercept and bool((np.abs(self.u) >= 1.0 - ROUNDING).any())

    def meets(self, config: SparseConfig) -> bool:
        """Return whether the certified error is as small as requested, if it was."""
        return config.error is None or self.bounds[config.certify] <= config.error


def explain_row(
    near: LiteralNeighbourhood,
    ask: RowCalls,
    row: Floats,
    config: SparseConfig,
    reading: ModelReading,
) -> EvaluatedRule:
    """Explain the model at one row of its table; with an expectation, from its exact Γ.

    Raises
    ------
    InputError
        If there are fewer literals than requested, or the model leaves a range that is no assumption.
    RefusedRowError
        If the expectation refuses the row, and it is not to be sampled.
    """
    ask.restart()
    moments, refusal = _moments(near, row, reading)
    first, second, third, fourth = streams(config.seed, fingerprint(row), 4)
    answer = reading.predict or ask
    fresh = Draws.draw(near, answer, config.fresh, np.random.default_rng(second))
    # an exact Γ needs no rows but the fresh ones
    seen = fresh
    if moments is None:
        seen = Draws.draw(near, answer, config.samples, np.random.default_rng(first))
    target = float(answer(row[None, :])[0])
    answers = (np.array([target]), seen.values, fresh.values)
    span = reading.answer_range(near) or AnswerRange.of_answers(*answers, reading.background)
    for part in answers:
        span.check(part)
    boxed = not config.intercept or SOLVERS[config.solver].boxed
    scale = span.scale if boxed else AnswerScale()
    scaled_target = float(scale.to_unit(answers[0])[0])
    problem = RowProblem(near, seen.scaled(scale), fresh.scaled(scale), scaled_target, config, scale, span)
    exact = None if moments is None else _exact_population(near, moments, problem)
    for step, k in enumerate(config.sizes, start=1):
        solution = problem.solve(k, exact)
        # each size that is tried may go wrong: together they do no more often than one alone
        risk = (1.0 - config.confidence) / (1 if config.error is None else step * (step + 1))
        # the same fresh draws for every size
        error, excess = _precision(problem, solution, answer, np.random.default_rng(third))
        rule = EvaluatedRule(
            solution=solution,
            problem=problem,
            exact=exact is not None,
            precision=error,
            excess=excess,
            risk=risk,
            calls=ask.rows,
            stability=problem.stability(solution, np.random.default_rng(fourth), exact=exact is not None),
            refusal=refusal,
        )
        if config.error is not None and rule.meets(config):
            break
    return rule


def _moments(near: LiteralNeighbourhood, row: Floats, reading: ModelReading) -> tuple[Moments | None, str]:
    """Return exact moments around a row; None, and why, where they are refused and the row is sampled."""
    if reading.expectation is None:
        return None, ""
    try:
        return reading.expectation.moments(near.design, row), ""
    except REFUSED as error:
        if not reading.samples:
            raise RefusedRowError(str(error)) from error
        return None, str(error)


def _exact_population(near: LiteralNeighbourhood, moments: Moments, problem: RowProblem) -> PopulationProblem:
    """Return the problem of an exact Γ. z = (1 + s)/2, so that Cov(s, f) is twice Cov(z, f)."""
    scale = problem.scale
    gamma = 2.0 * moments.gamma[near.varying] / scale.half
    mean = (float(moments.mean) - scale.middle) / scale.half
    return PopulationProblem(
        near.instance,
        problem.target,
        near.law,
        gamma,
        mean,
        float(problem.fresh.values.var()),
        problem.config.intercept,
    )


def _precision(
    problem: RowProblem, solution: SparseSolution, answer: Ask, rng: np.random.Generator
) -> tuple[Precision, float]:
    """Return the precision error, and how far answers of its rows leave the range."""
    excess = [0.0]

    def answer_scaled(x: Floats) -> Floats:
        answers = answer(x)
        problem.span.check(answers)
        excess.append(problem.span.excess(answers))
        return problem.scale.to_unit(answers)

    u = solution.w * problem.near.instance
    draws = problem.config.fresh
    return precision(problem.near, answer_scaled, u, problem.target, draws=draws, rng=rng), max(excess)


def _r2(error: float, answers: Floats) -> float:
    """Return 1 - F/Var f; 1 where neither differs from 0 by more than roundings."""
    variance, size = float(answers.var()), float(np.abs(answers).max())
    if is_constant(variance, size) and not is_constant(error, size):
        return -np.inf  # without an intercept a rule may miss even a constant
    return float(r_squared(variance - error, variance, size)[0])


def certificate(rule: EvaluatedRule, config: SparseConfig, text: str, names: tuple[str, ...]) -> Certificate:
    """Certify a rule with this text; ``names`` are the conditions of all columns."""
    unit, span = rule.problem.scale.half, rule.problem.span
    varying, (objective, lower_bound, gap) = rule.problem.near.varying, rule.errors
    return Certificate(
        solver=config.solver,
        fidelity=rule.fidelity,
        fresh_fidelity=float(rule.squares.mean()),
        r2=rule.r2,
        precision=unit * rule.precision.value,
        precision_error=unit * rule.precision.error,
        coincidence=rule.precision.coincidence,
        confidence=config.confidence,
        bounds=rule.bounds,
        objective=objective,
        lower_bound=lower_bound,
        gap=gap,
        proved=rule.proved,
        optimum=rule.optimum,
        stability=rule.stability.share,
        near_ties={names[varying[j]]: share for j, share in rule.stability.others},
        nodes=rule.solution.nodes,
        samples=0 if rule.exact else config.samples,
        fresh_samples=config.fresh,
        theory={} if config.intercept else rule.theory,
        scale=(span.low, span.high),
        assumption="" if span.source else _ASSUMPTION.format(low=span.low, high=span.high),
        rule=text,
    )


def rule_warnings(rule: EvaluatedRule, config: SparseConfig) -> tuple[str, ...]:
    """Return warnings about a sparse explanation and its certificate."""
    warnings, span = list(_rule_sample_warnings(rule)), rule.problem.span
    if rule.excess > 0.0:
        warnings.append(
            f"the model answers outside [{span.low:g}, {span.high:g}], the range seen around this row, by up "
            f"to {rule.excess:.3g} of its width: bounds hold for a known range; pass scale=(low, high)"
        )
    if rule.vacuous:
        warnings.append(
            f"{config.fresh} fresh rows are too few for a certificate: the bound of the precision error is "
            "no smaller than its largest possible value; raise fresh"
        )
    if not rule.solution.proved and rule.meets_box:
        warnings.append(
            "not proved optimal: a weight ends at 1 or -1 of the scale, and the best rule within these "
            "bounds is not searched for; use intercept=True, which has none"
        )
    elif not rule.solution.proved and config.solver == "branch_and_bound":
        warnings.append(
            f"not proved optimal within the time limit: gap {rule.solution.gap:.1%}; raise time_limit, or "
            "samples, so that literals are less correlated"
        )
    if config.error is not None and rule.meets(config) and not span.source:
        warnings.append(
            f"the {config.certify} error of at most {config.error:g} rests on the range of the answers seen, "
            f"[{span.low:g}, {span.high:g}]: pass scale=(low, high)"
        )
    if not rule.meets(config):
        warnings.append(
            f"no explanation of up to {rule.solution.support.size} literals has a certified {config.certify} "
            f"error of {config.error:g}: this is the longest that was tried; raise error, or fresh"
        )
    if rule.r2 < 0.0:
        warnings.append(
            f"R² is {rule.r2:.3g}: the mean answer alone errs less than this rule, which does not describe "
            "the model around the row; raise k" + ("" if config.intercept else ", or use intercept=True")
        )
    if 0.0 <= rule.r2 < POOR:
        warnings.append(
            f"R² is {rule.r2:.3g}: the rule explains less than a tenth of the model's variance around a row; "
            "raise k"
        )
    return tuple(warnings)


def _rule_sample_warnings(rule: EvaluatedRule) -> Iterator[str]:
    if rule.refusal:
        yield f"{SAMPLED_ALONE}: {rule.refusal}"
    fresh = rule.problem.fresh.values
    if rule.calls and np.ptp(fresh) <= ROUNDING * np.abs(fresh).max():
        yield (
            f"the model answered the same in all {len(fresh):,} fresh rows: no literal decides; check that "
            "it receives what is explained"
        )
