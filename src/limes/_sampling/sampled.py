r"""Expectations of a black box, from few rows of the tilted law.

Rows are drawn from w itself, so that all have equal weight, by four scrambled sequences, which are doubled
until the tolerance or the budget is met. On each sequence a control variate g, fitted to the others, is
subtracted, except for its linear part L:

    β = least squares of f - (g - L) on the features,    L = E_w g + β(g) · (features - E_w features).

g - L has no coefficients: subtracting it only reduces the variance. Errors come from the residuals, and from
how the sequences differ (``least_squares.py``). Designs with few states are enumerated instead, which is
exact for any model.

*A state beside the draws*, z° with a probability p, is asked about by itself: the empty set, whose answer
contributions need, and which a sample may miss, however much it differs; so are single features, and all
others, where contributions ask about them and an answer is far from those to draws. With δ = f(z°) - c,

    f = f' + δ 1[z = z°],    β = β(f') + δ Σ⁻¹ Cov_w(h, 1[z = z°]),
    Var_w f = Var_w f' + 2 δ p (c - E_w f') + δ² p (1 - p):

f' has c in its place and is sampled. c is what the control says, and of the rest the mean at the nearest
states that were drawn, moved by the slopes of all of them: f' is as regular as f is elsewhere.

*Random answers.* A model that is no function is asked several times about every state of a small design.
β = W f̄ has no error of sampling states, only that of the mean answers f̄_z of R repetitions:

    Var A f̄ = Σ_z A_z² s_z² / R      for any linear functional A of the answers, s_z² their variance at z.

Each repetition is one call or two, of states in random order, so that answers which depend on the rows beside
them vary too. Where the functional varies between repetitions by more than that, answers have something in
common within a call (a mask of dropout), and the variance of the R repetitions counts.

Answers belong to a call: it removes the rows it explains from the store of unfinished rows, so that no other
call sees them while it runs, and puts them back if it is cut short, so that the same rows can resume.
"""

from __future__ import annotations

import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Event, Lock
from time import monotonic
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast

import numpy as np

from limes._arrays import Floats, Ints, fingerprint, is_constant, streams
from limes._expectations.moments import Moments, RowBlocks, boxed, finished_rows
from limes._sampling.controls import CONTROLS, Control, FittedControl, TooLargeError, too_large
from limes._sampling.controls.control import evenly_spread, least_left, share_left
from limes._sampling.least_squares import (
    DEFAULT_TOLERANCE,
    AnswerStatistics,
    Clusters,
    FeatureSupport,
    LeastSquares,
    Tolerance,
    WeightedSample,
    check_squares,
    count_unlike,
    is_surprising,
    least_fitted,
    least_squares,
    student_factors,
)
from limes._threads import Progress, in_words, in_workers
from limes.designs._product import Features, Rows
from limes.exceptions import InputError, ModelError, SlowModelWarning
from limes.models._calling.caller import Calls, Retry

# Unit of progress bars for calls of the model
CALLS = "calls"
# Number of sequences
SEQUENCES = 4
# Number of rows of all sequences together: at the first estimate, and at least: 64 calls are enough, with
# those that check whether the model is a function
_FIRST_LOOK = 256
FEWEST = 4
# Number from which on few coefficients are fitted together, and which a pool has before others have calls
USUAL = 48
# Repetitions of random answers at least, and degrees of freedom of their variance at least
_REPETITIONS, _FREEDOM = 4, 16
# Rows by whose slopes an answer is guessed, and the share of their squares that is added to each
_SLOPED, _SINGULAR = 1024, 1e-13
# An answer is far outside of others by this share of their range
_OUTSIDE = 0.5
# Exceptions that end a call early but leave its answers valid
CUT_SHORT = (ModelError, KeyboardInterrupt)
# Largest number of calls cut short whose answers are stored: a service may fail several threads at once
_MOST_CALLS = 8


# Seconds that calls may take without a word, and a number of calls that is offered in their place
_LONG, _FEWER = 60.0, 1000


class Forecast:
    """Counts calls for a progress bar, and warns after the first ones if up to ``most`` more take minutes."""

    def __init__(
        self, on_progress: Callable[[int], object], most: int, *, rows: int = 1, workers: int = 1
    ) -> None:
        self._on_progress, self._most, self._rows, self._workers = on_progress, most, rows, workers
        self._start, self._is_said = monotonic(), False

    def __call__(self, count: int) -> None:
        self._on_progress(count)
        if self._is_said or count <= 0:
            return
        self._is_said = True
        # all workers are at their first calls, and this one is the first to be done
        seconds = (monotonic() - self._start) / (count * min(self._workers, self._rows))
        remaining = self._most - count
        if seconds * remaining < _LONG:
            return
        fewer = self._rows * _FEWER
        advice = f"max_calls={_FEWER} takes about {in_words(seconds * fewer)}; " if fewer < self._most else ""
        warnings.warn(
            f"the model takes about {1000 * seconds:.2g} ms a row: up to {remaining:,} more calls take about "
            f"{in_words(seconds * remaining)}; {advice}an interrupt (Ctrl-C) keeps what is answered",
            SlowModelWarning,
            stacklevel=2,
        )


@dataclass(frozen=True)
class Sampling:
    """Options of sampling a black box: same seed and same row, same result."""

    # Largest number of rows that the model is called with for one explained row alone
    max_calls: int
    # Sampling stops once it is met. With None a row alone uses its whole budget, and a pool has to reach the
    # default tolerance
    tolerance: Tolerance | None = None
    seed: int = 0
    # Candidates by name, cheapest first; a later one is used only where it leaves clearly less variance
    controls: Mapping[str, Control] = field(default_factory=lambda: CONTROLS)
    # Rows passed to the model at once
    batch_size: int = 4096
    retry: Retry | None = None
    # Largest pool of answers that explained rows share; 0 for none
    max_shared: int = 0
    # Largest difference of the model's answers to one input; 0 if it is a function, so that an input is asked
    # once, and all inputs are enough
    spread: float = 0.0
    # How often random answers to each of few states are asked at least, where the budget allows it
    repetitions: int = _REPETITIONS

    @property
    def is_function(self) -> bool:
        return self.spread == 0.0

    def rows_a_call(self, sequence: int) -> int:
        """Return how many rows the model is called with, given the rows of one of the sample's sequences."""
        # what random answers have in common within a call must differ between sequences, which shows it
        return self.batch_size if self.is_function else min(self.batch_size, sequence)

    @property
    def accuracy(self) -> Tolerance:
        """Return what rows are judged by."""
        return DEFAULT_TOLERANCE if self.tolerance is None else self.tolerance


# Rows x and features h (n, d), and the number of each row's cluster (n,)
Draw: TypeAlias = tuple[Floats, Floats, Ints]


class ReweightedDesign(Protocol):
    """The law that rows are drawn from in the place of several designs."""

    def sampler(self, streams: Sequence[np.random.SeedSequence]) -> Sampler: ...

    def weights(self, design: Any, x: Floats) -> Floats:
        """How much likelier rows x (n, d) are under a design than here, (n,)."""
        ...


class Sampler(Protocol):
    """Several independent sequences of rows of w."""

    def draw(self, rows: int) -> Draw:
        """Draw the next ``rows`` rows of every sequence, sequence by sequence.

        Rows of one cluster depend on each other; rows of different clusters do not, apart from the evenness
        of a sequence as a whole.
        """
        ...


class SampledDesign(Features, Protocol):
    """A design that can be sampled: d features in ``units``, which divide coefficients in the end."""

    @property
    def size(self) -> int: ...

    @property
    def units(self) -> Floats: ...

    def sampler(self, streams: Sequence[np.random.SeedSequence]) -> Sampler:
        """Return sequences of rows of w, all of the same weight, one from each stream."""
        ...

    def states(self, most: int) -> tuple[Floats, Floats, Floats] | None:
        """All states x (m, d), if there are not more, their probabilities (m,), and W (d, m) with β = W f."""
        ...


class EnumeratedDesign(SampledDesign, Protocol):
    """A design whose states have probabilities."""

    def of_states(self, x: Floats) -> tuple[Floats, Floats]:
        """Probabilities (m,) of states x (m, d), and their columns of W, (d, m)."""
        ...


def least_calls(d: int) -> int:
    """Least number of rows that d coefficients are fitted to together."""
    return max(USUAL, SEQUENCES * -(-least_fitted(d) // SEQUENCES))


class Beside(NamedTuple):
    """States x (m, d) of which the answers f (m, k) are known without a draw, and moments of 1[x]."""

    x: Floats
    f: Floats
    probability: Floats  # (m,)
    coef: Floats  # Σ⁻¹ Cov_w(h, 1[x]), (d, m)

    @classmethod
    def of(cls, design: EnumeratedDesign, x: Floats, answers: Floats) -> Beside:
        return cls(x, answers.reshape(len(x), -1), *design.of_states(x))

    def unlike(self, x: Floats, f: Floats) -> Beside:
        """The empty set, and states whose answers lie far outside of f (n, k) at other draws x (n, d).

        A control of all answers is the better one where these are like others.
        """
        others = ~np.any([(x == state).all(axis=1) for state in self.x], axis=0)
        if not others.any():
            return self
        low, high = f[others].min(axis=0), f[others].max(axis=0)
        outside = np.maximum(low - self.f, self.f - high) > _OUTSIDE * (high - low)
        rows = outside.any(axis=1) | ~self.x.any(axis=1)
        return Beside(self.x[rows], self.f[rows], self.probability[rows], self.coef[:, rows])

    def replaced(self, x: Floats, f: Floats) -> tuple[Floats, Floats]:
        """Answers f (n, k) to drawn states x (n, d) with c where they are one of these, and c (m, k)."""
        level = self.f.copy()
        for i, state in enumerate(self.x):
            distance = np.abs(x - state).sum(axis=1)
            others = distance > 0
            if not others.any():
                continue
            near = distance == distance[others].min()
            level[i] = f[near].mean(axis=0)
            some = np.flatnonzero(others)[evenly_spread(int(others.sum()), _SLOPED)]
            if len(some) >= least_fitted(state.size):
                level[i] += (state - x[near].mean(axis=0)) @ _slopes(x[some], f[some])
        return self.with_level(x, f, level), level

    def with_level(self, x: Floats, f: Floats, level: Floats) -> Floats:
        """Answers f (n, k) to drawn states x (n, d), with the ``level`` c (m, k) at these states."""
        f = f.copy()
        for state, its in zip(self.x, level, strict=True):
            f[(x == state).all(axis=1)] = its
        return f

    def added(self, design: SampledDesign, fit: LeastSquares, level: Floats) -> LeastSquares:
        """The fit of f, from that of f' which has the ``level`` c (m, k)."""
        moved, p = self.f - level, self.probability[:, None]
        coef = self.coef @ moved
        mean = (p * moved).sum(axis=0)
        grown = (p * moved * (moved + 2.0 * (level - fit.mean))).sum(axis=0) - mean**2
        variance, size = fit.variance + grown, np.abs([*self.f, *level, fit.mean]).max(axis=0)
        variance = np.where(is_constant(variance, size), 0.0, np.maximum(variance, 0.0))
        gamma = fit.gamma + design.gamma(coef)
        return replace(
            fit,
            mean=fit.mean + mean,
            coef=fit.coef + coef,
            gamma=gamma,
            variance=variance,
            fidelity_errors=_errors_of_r2(fit, gamma, variance, grown),
        )


def error_of_explained(gamma: Floats, errors: Floats) -> Floats:
    """Standard error (k,) of β·Σβ by those of coefficients (d, k): 2 Γ·dβ, of what any row shows."""
    finite = np.where(np.isfinite(errors), errors, 0.0)
    return np.asarray(2.0 * np.sqrt(((gamma * finite) ** 2).sum(axis=0)))


def _errors_of_r2(fit: LeastSquares, gamma: Floats, variance: Floats, grown: Floats) -> Floats:
    """Errors (k,) of R² = E / (E + rest), where the rest has ``grown`` by states without an error."""
    safe = np.where(variance > 0, variance, 1.0)
    explained = error_of_explained(gamma, fit.coef_errors)
    share = np.minimum(fit.variance / safe, 1.0) ** 2
    errors = np.multiply(
        fit.fidelity_errors, share, out=np.full(share.shape, np.inf), where=np.isfinite(fit.fidelity_errors)
    )
    return np.asarray(np.hypot(errors, (np.abs(grown) / safe) * (explained / safe)))


def _slopes(x: Floats, f: Floats) -> Floats:
    """Slopes (d, k) of least squares, 0 of what is constant."""
    x, f = x - x.mean(axis=0), f - f.mean(axis=0)
    gram = x.T @ x
    return np.linalg.solve(gram + _SINGULAR * (1.0 + np.trace(gram)) * np.eye(len(gram)), x.T @ f)


class SampledExpectation:
    """Moments of a function under a design, by at most ``max_calls`` of its rows.

    ``predict`` maps rows (n, d) to (n,) or (n, k). A budget of a few rows is refused. Rows are of the law w,
    or of that of another design, ``drawn``, and have weights then: what several designs draw from is asked
    once for all of them. States ``beside`` (m, d) are asked about whatever is drawn, beyond ``max_calls``.
    """

    method: Literal["sampled"] = "sampled"

    def __init__(
        self,
        predict: Callable[[Floats], Floats],
        sampling: Sampling,
        drawn: ReweightedDesign | None = None,
        beside: Floats | None = None,
    ) -> None:
        self._predict = predict
        self.beside = beside
        self._sampling = sampling
        self._drawn = drawn
        self._unfinished = _UnfinishedRows()

    @property
    def max_calls(self) -> int:
        return self._sampling.max_calls

    def moments(
        self,
        design: SampledDesign,
        row: Floats,
        *,
        on_progress: Callable[[int], object] = lambda _: None,
        prediction: Floats | None = None,
    ) -> Moments:
        """Moments at one row, with the model's answer there, () or (k,), if it is available."""
        key = fingerprint(row)
        with self._unfinished.take([key], self._new_calls) as rows:
            moments = self._finish(design, key, rows[key], prediction, on_progress)
            rows.clear()
            return moments

    def explain(self, rows: Rows, predictions: Floats, *, progress: Progress, workers: int = 1) -> RowBlocks:
        designs = [design.in_units() for design in rows.designs]
        computed = self.many(designs, rows.x, predictions, progress=progress, workers=workers)
        return finished_rows(rows.features, *computed)

    def many(
        self,
        designs: Sequence[SampledDesign],
        rows: Floats,
        predictions: Floats | None,
        *,
        progress: Progress,
        workers: int = 1,
    ) -> tuple[list[Moments | None], BaseException | None]:
        """Moments at rows (n, d), each with its design, and the error that ended the call early, if any.

        ``workers`` rows are sampled at the same time, equal rows once. After an error a row has the moments
        that its calls so far allow, or None.
        """
        keys = [fingerprint(row) for row in rows]
        equal = Counter(keys)
        its = [None] * len(keys) if predictions is None else predictions
        first = list({key: i for i, key in reversed(list(enumerate(keys)))}.values())[::-1]
        stop = Event()

        error: BaseException | None = None
        with (
            progress(len(rows) * self.max_calls, CALLS) as shown,
            self._unfinished.take(list(equal), self._new_calls) as states,
        ):
            on_progress = Forecast(shown, len(first) * self.max_calls, rows=len(first), workers=workers)

            def progressed(count: int) -> None:
                on_progress(count)
                if stop.is_set():
                    raise _Stopped

            def work(i: int) -> None:
                if stop.is_set():
                    raise _Stopped
                moments = self._finish(designs[i], keys[i], states[keys[i]], its[i], progressed)
                shown(equal[keys[i]] * self.max_calls - int(moments.calls))

            try:
                in_workers(work, first, workers, stop)
            except CUT_SHORT as cause:
                error = cause
            moments = {
                keys[i]: self._partial_moments(designs[i], keys[i], states[keys[i]], its[i]) for i in first
            }
            if error is None:
                states.clear()
        return [moments[key] for key in keys], error

    def redraw(self, design: SampledDesign, row: Floats, count: int) -> Draw:
        """Draw again the first ``count`` rows from which the moments at a row were computed."""
        sampler = self._sampler(design, fingerprint(row))
        parts: list[Draw] = []
        first = 0
        for step in np.diff(self._sizes(design.size), prepend=0).tolist():
            if first < count:
                x, h, cluster = sampler.draw(step)
                parts.append((x, h, first + cluster))
                first += len(x)
        x, h, cluster = map(np.concatenate, zip(*parts, strict=True))
        return x, h, cluster

    def answered(self, design: SampledDesign, row: Floats, count: int) -> tuple[Floats, Floats, Ints | None]:
        """Return the features (count, d) of the first rows, their weights (count,), and their clusters."""
        x, h, clusters = self.redraw(design, row, count)
        weights = self._weights(design, x)
        return h, np.full(len(h), 1.0 / len(h)) if weights is None else weights / weights.sum(), clusters

    def _sampler(self, design: SampledDesign, key: int) -> Sampler:
        return (self._drawn or design).sampler(streams(self._sampling.seed, key, SEQUENCES))

    def _weights(self, design: SampledDesign, x: Floats) -> Floats | None:
        return None if self._drawn is None else self._drawn.weights(design, x)

    def _new_calls(self) -> Calls:
        its = self._sampling
        size = its.rows_a_call(_FIRST_LOOK // SEQUENCES)
        return Calls(self._predict, batch_size=size, retry=its.retry, is_function=its.is_function)

    def _finish(
        self,
        design: SampledDesign,
        key: int,
        row: SampledRow,
        prediction: Floats | None,
        on_progress: Callable[[int], object],
    ) -> Moments:
        if row.moments is None:
            row.calls.on_progress = on_progress
            row.moments = self._until_converged(design, key, row.calls, prediction)
        return row.moments

    def _until_converged(
        self, design: SampledDesign, key: int, calls: Calls, prediction: Floats | None
    ) -> Moments:
        sampling = self._sampling
        states = design.states(sampling.max_calls) if sampling.is_function else None
        if states is not None:
            x, probability, weights = states
            return enumerate_states(design, calls(x), probability, weights, len(calls))
        beside = (
            None
            if self.beside is None
            else Beside.of(cast(EnumeratedDesign, design), self.beside, calls(self.beside))
        )
        for sample in self._samples(design, key, calls.one_pass(calls)):
            if sample.is_last or self._sampling.tolerance is not None:
                moments = estimate(design, sample, self._sampling, prediction, len(calls), beside)
                if moments.converged:
                    break
        return moments

    def _partial_moments(
        self, design: SampledDesign, key: int, row: SampledRow, prediction: Floats | None
    ) -> Moments | None:
        """Moments from the calls made so far for a row; None where they are too few."""
        if row.moments is not None:
            return row.moments
        moments = self._so_far(design, key, row.calls, prediction)
        if moments is None:
            return None
        return replace(moments, converged=np.array(False), cut_short=np.array(True))

    def _so_far(
        self, design: SampledDesign, key: int, calls: Calls, prediction: Floats | None
    ) -> Moments | None:
        """Moments from the largest sample all of whose answers are there."""
        samples = list(self._samples(design, key, calls.one_pass(calls.recall)))
        if not samples:
            return None
        beside = None
        if self.beside is not None and (answers := calls.recall(self.beside)) is not None:
            beside = Beside.of(cast(EnumeratedDesign, design), self.beside, answers)
        return estimate(design, samples[-1], self._sampling, prediction, len(calls), beside)

    def _samples(
        self, design: SampledDesign, key: int, predict: Callable[[Floats], Floats | None]
    ) -> Iterator[Sample]:
        """Growing samples, each twice the one before; they end where an answer is missing."""
        sizes = self._sizes(design.size)
        sampler = self._sampler(design, key)
        draws: Iterable[Draw] = map(sampler.draw, np.diff(sizes, prepend=0).tolist())
        whole = None
        if self._sampling.tolerance is None:
            # all rows are needed, and each call of a model has a fixed cost: make one
            draws = list(draws)
            whole = predict(np.concatenate([x for x, _, _ in draws]))
        parts: list[Sample] = []
        first = 0
        for (x, h, cluster), size in zip(draws, sizes, strict=True):
            answers = predict(x) if whole is None else whole[first : first + len(x)]
            if answers is None:
                return
            sequence = np.repeat(np.arange(SEQUENCES), len(x) // SEQUENCES)
            # clusters of another step get other numbers: there are no more of them than rows
            is_last, weights = size == sizes[-1], self._weights(design, x)
            parts.append(Sample(x, h, answers, first + cluster, sequence, is_last, weights))
            first += len(x)
            # errors of d coefficients are not reliable from fewer rows
            if first >= min(max(_FIRST_LOOK, 4 * (design.size + 1)), SEQUENCES * sizes[-1]):
                yield Sample.concatenate(parts)

    def _sizes(self, d: int) -> list[int]:
        """Rows of one sequence at each estimate: doubled from a power of two, and at last the budget."""
        most = self._sampling.max_calls // SEQUENCES
        if self._sampling.max_calls < FEWEST:
            raise InputError(
                f"max_calls={self._sampling.max_calls} is too few to estimate {d} coefficients; use at least "
                f"{FEWEST}"
            )
        first = 2 ** int(np.log2(min(most, _FIRST_LOOK // SEQUENCES)))
        doubled = first * 2 ** np.arange(int(np.log2(most / first)) + 1)
        return sorted({*doubled.tolist(), most})


@dataclass(eq=False)
class SampledRow:
    """The model's answers for one row, and its moments once it is finished."""

    calls: Calls
    moments: Moments | None = None


class _UnfinishedRows:
    """Rows of the last calls that were cut short, by fingerprint; copies in other processes start empty."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._cut_short: deque[dict[int, SampledRow]] = deque(maxlen=_MOST_CALLS)

    @contextmanager
    def take(self, keys: Sequence[int], new_calls: Callable[[], Calls]) -> Iterator[dict[int, SampledRow]]:
        """Yield the rows of one call, stored or new; rows that it does not remove are stored again."""
        with self._lock:
            rows = {key: call.pop(key) for call in self._cut_short for key in keys if key in call}
            for empty in [call for call in self._cut_short if not call]:
                self._cut_short.remove(empty)
        for key in keys:
            if key not in rows:
                rows[key] = SampledRow(new_calls())
        try:
            yield rows
        finally:
            if rows:
                with self._lock:
                    self._cut_short.append(rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return _UnfinishedRows, ()


class _Stopped(Exception):  # noqa: N818 - ends the other threads of a call when one has failed
    pass


# -- from a sample to moments --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows x and features h (n, d), answers f (n, ...), and the cluster and the sequence of each row."""

    x: Floats
    h: Floats
    f: Floats
    cluster: Ints
    sequence: Ints
    is_last: bool  # whether the budget is used up
    weights: Floats | None = None  # (n,), None of draws of w

    @classmethod
    def concatenate(cls, parts: list[Sample]) -> Sample:
        names = ["x", "h", "f", "cluster", "sequence", *(["weights"] * (parts[0].weights is not None))]
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(**arrays, is_last=parts[-1].is_last)


def estimate(
    design: SampledDesign,
    sample: Sample,
    sampling: Sampling,
    prediction: Floats | None,
    calls: int,
    beside: Beside | None = None,
) -> Moments:
    """E_w f and Γ with standard errors, given the model's prediction at the instance if there is one."""
    f = sample.f.reshape(len(sample.f), -1)
    check_squares(f if beside is None else np.concatenate([f, beside.f]))
    level = np.empty(0)
    every = None if beside is None else beside.f
    if beside is not None:
        beside = beside.unlike(sample.x, f)
        f, level = beside.replaced(sample.x, f)
    name, controls = _choose_control(design, sample, f, sampling)
    moments = [control.expectation(design) for control in controls]
    support = FeatureSupport.from_rows(sample.h, design.variance != 0)
    residuals, centred, used = f.copy(), sample.h - design.inclusion, support.used
    together = len(f) >= least_fitted(design.size)

    def curved(k: int, x: Floats, h: Floats) -> Floats:
        its = moments[k]
        linear = h[:, used] @ its.coef[used] if together else 0.0
        return np.asarray(controls[k].predict(x) - its.mean - linear)

    for k in range(len(controls)):
        rows = sample.sequence == k
        residuals[rows] -= curved(k, sample.x[rows], centred[rows])
    if beside is not None:
        # the control says more of these states than slopes do
        guesses = [curved(k, beside.x, beside.x - design.inclusion) for k in range(len(controls))]
        residuals, level = beside.replaced(sample.x, residuals)
        level += np.mean(guesses, axis=0)
        f = beside.with_level(sample.x, f, level)
    fit = least_squares(
        design,
        WeightedSample(
            centred,
            f,
            Clusters(sample.cluster, sample.sequence),
            AnswerStatistics.from_rows(f),
            None if sample.weights is None else sample.weights / sample.weights.sum(),
        ),
        support,
        residuals=residuals,
        controls=moments,
        prediction=None if prediction is None else prediction.reshape(-1),
    )
    if beside is not None:
        fit = beside.added(design, fit, level)
    return fit.to_moments(
        sample.f.shape[1:],
        sampling.accuracy,
        control=name,
        units=design.units[:, None],
        calls=calls,
        answers=sample.f,
        beside=every,
    )


def _choose_control(
    design: SampledDesign, sample: Sample, f: Floats, sampling: Sampling
) -> tuple[str, list[FittedControl]]:
    """Choose a control by its residuals on the first sequence, and fit it without each sequence in turn."""
    controls = sampling.controls
    others = sample.sequence != 0
    first: dict[str, FittedControl] = {}
    for name, fit in controls.items():
        with suppress(TooLargeError):
            first[name] = fit(design, sample.x[others], f[others])
    if not first:
        raise too_large(controls, design.size)
    name = next(iter(first))
    if len(first) > 1:
        x, unseen = sample.x[~others], f[~others]
        weights = None if sample.weights is None else sample.weights[~others]
        variances = {n: _variance(unseen - its.predict(x), weights) for n, its in first.items()}
        name = least_left({n: share_left(its, unseen) for n, its in variances.items()})
    rest = (sample.sequence != k for k in range(1, SEQUENCES))
    return name, [first[name], *(controls[name](design, sample.x[rows], f[rows]) for rows in rest)]


def _variance(rest: Floats, weights: Floats | None) -> Floats:
    """Variances (k,) of what is left of answers (n, k), under the weights of their rows."""
    if weights is None or not weights.any():
        return np.asarray(rest.var(axis=0))
    weights = weights / weights.sum()
    return np.asarray(weights @ (rest - weights @ rest) ** 2)


def enumerate_states(
    design: SampledDesign, answers: Floats, probability: Floats, weights: Floats, calls: int
) -> Moments:
    """Moments from the answers (n, ...) at all states of a design: exact for any model."""
    f = answers.reshape(len(answers), -1)
    mean = probability @ f
    centred = f - mean
    gamma = design.gamma(weights @ centred)
    shape = answers.shape[1:]
    exact = Moments.exact(mean.reshape(shape), gamma.reshape(design.size, *shape))
    with np.errstate(over="ignore", invalid="ignore"):
        variance = (probability @ centred**2).reshape(shape)
    return replace(
        exact,
        variance=np.where(np.isfinite(variance), variance, np.nan),
        calls=np.array(calls),
        unlike=count_unlike(f).reshape(shape),
        answers=boxed(answers),
    )


# -- random answers ------------------------------------------------------------------------------------------


def repetitions(states: int, max_calls: int, least: int = _REPETITIONS) -> int:
    """Return how often each state is asked; below 2 the budget does not allow repetitions."""
    return min(max(least, 1 + -(-_FREEDOM // states)), max_calls // states)


def repeats_states(design: SampledDesign, max_calls: int) -> bool:
    states = design.states(max_calls)
    return states is not None and repetitions(len(states[0]), max_calls) > 1


class RepeatedExpectation(SampledExpectation):
    """Moments of a random function under a design with few states."""

    def _states(self, design: SampledDesign) -> tuple[Floats, Floats, Floats]:
        states = design.states(self.max_calls)
        assert states is not None  # noqa: S101 - by whom it is made
        return states

    def _until_converged(
        self, design: SampledDesign, key: int, calls: Calls, prediction: Floats | None
    ) -> Moments:
        del prediction
        z, probability, weights = self._states(design)
        ask, rng = calls.one_pass(calls), np.random.default_rng(streams(self._sampling.seed, key, 1)[0])
        repeated = []
        for i in range(repetitions(len(z), self.max_calls, self._sampling.repetitions)):
            order = rng.permutation(len(z))
            parts = [ask(z[part]) for part in np.array_split(order, 1 + i % 2)]
            repeated.append(np.concatenate(parts)[np.argsort(order)])
        answers = np.stack(repeated)
        f = answers.reshape(*answers.shape[:2], -1)
        check_squares(f.reshape(-1, f.shape[2]))
        return _fit_of_states(design, f, probability, weights).to_moments(
            answers.shape[2:],
            self._sampling.tolerance or Tolerance(np.inf),
            control="none",
            calls=answers.shape[0] * answers.shape[1],
            answers=answers.reshape(-1, *answers.shape[2:]),
        )

    def _so_far(
        self, design: SampledDesign, key: int, calls: Calls, prediction: Floats | None
    ) -> Moments | None:
        del design, key, calls, prediction
        return None  # a part of the repetitions says nothing of their noise

    def answered(self, design: SampledDesign, row: Floats, count: int) -> tuple[Floats, Floats, None]:
        del row
        z, probability, _ = self._states(design)
        again = count // len(z)
        return np.tile(z, (again, 1)), np.tile(probability / again, again), None


def _fit_of_states(design: SampledDesign, f: Floats, probability: Floats, weights: Floats) -> LeastSquares:
    """Least squares W f̄ of repeated answers (R, m, k) at m states with these probabilities."""
    (count, states, outputs), mean_answers = f.shape, f.mean(axis=0)
    noise = f.var(axis=0, ddof=1) / count  # (m, k) variances of the mean answers

    def errors(functionals: Floats) -> Floats:
        return errors_of_means(functionals, f, noise)

    mean, coef = probability @ mean_answers, weights @ mean_answers
    gamma, centred = design.gamma(coef), mean_answers - mean
    # squares of mean answers are too large by the variances of these
    variance = np.maximum(probability @ centred**2 - probability @ noise, 0.0)
    variance = np.where(is_constant(variance, np.abs(f).max(axis=(0, 1))), 0.0, variance)
    total = np.where(variance > 0, variance, np.nan)
    shares, moved_gamma = coef * gamma / total, design.gamma(weights)
    fidelity_errors, share_errors = np.empty(outputs), np.empty(coef.shape)
    for k in range(outputs):
        grown = 2.0 * probability * centred[:, k]  # d Var_w f
        moved = coef[:, k, None] * moved_gamma + gamma[:, k, None] * weights - shares[:, k, None] * grown
        functionals = np.vstack([moved, moved.sum(axis=0)]) / total[k]
        *share_errors[:, k], fidelity_errors[k] = errors(functionals)[:, k]
    differ = np.ptp(f.reshape(-1, outputs), axis=0) > 0
    excess_of_squares = [np.diag(design.gamma((weights * its) @ weights.T)) for its in noise.T]
    return LeastSquares(
        mean=mean,
        coef=coef,
        gamma=gamma,
        coef_errors=errors(weights),
        variance=variance,
        surrogate_errors=errors((probability + design.departure @ weights)[None])[0],
        fidelity_errors=np.where(np.isnan(total), np.inf, fidelity_errors),
        share_errors=share_errors,
        noise=np.stack(excess_of_squares, axis=1),
        n_unlike=np.where(differ, count * states, 0),
        effective_clusters=np.full(outputs, np.inf),
        effective=np.array(float(count * states)),
        answers_differ=np.array(True),
    )


def errors_of_means(functionals: Floats, f: Floats, noise: Floats) -> Floats:
    """Errors (m', k) of functionals (m', m) of mean answers, such that ±1.96 of them is a 95 % interval.

    f (R, m, k) are the repeated answers, and ``noise`` (m, k) the variances of their means.
    """
    count, parts = len(f), functionals[:, :, None] ** 2 * noise  # (m', m, k)
    within, squares = parts.sum(axis=1), (parts**2).sum(axis=1)
    effective = np.divide(within**2, squares, out=np.ones_like(within), where=squares > 0)
    between = np.stack([functionals @ its for its in f]).var(axis=0, ddof=1) / count
    ratio = np.divide(between, within, out=np.ones_like(within), where=within > 0)
    freedom = count - 1
    by_states = within * student_factors(freedom * effective) ** 2
    by_calls = between * student_factors(np.array(float(freedom))) ** 2
    surprising = is_surprising(ratio, freedom)
    return np.asarray(np.sqrt(np.where(surprising, np.maximum(by_calls, by_states), by_states)))
