"""Expectations of a black box, from few rows of the tilted law.

Rows are drawn from w itself, so that all have equal weight, by four scrambled sequences, which are doubled
until the tolerance or the budget is met. ``estimate.py`` computes the moments. Designs with few states are
enumerated instead, which is exact for any model.

Answers belong to a call: it removes the rows it explains from the store of unfinished rows, so that no other
call sees them while it runs, and puts them back if it is cut short, so that the same rows can resume.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event, Lock
from typing import Any, Literal

import numpy as np

from limes._arrays import Floats, Ints, fingerprint, streams
from limes._bars import Progress
from limes._expectations.estimate import SEQUENCES, Sample, enumerate_states, estimate
from limes._expectations.moments import Moments, RowMoments
from limes._expectations.sampling import CALLS, Draw, SampledDesign, Sampler, Sampling
from limes._threads import in_workers
from limes.designs._product import Rows
from limes.exceptions import InputError, ModelError
from limes.models._calling.caller import Calls

# Number of rows of all sequences together: at the first estimate, and at least
_FIRST_LOOK = 256
_SMALLEST = 64
# Exceptions that end a call early but leave its answers valid
CUT_SHORT = (ModelError, KeyboardInterrupt)
# Largest number of calls cut short whose answers are stored: a service may fail several threads at once
_MOST_CALLS = 8


def least_calls(d: int) -> int:
    """Least number of rows that d coefficients are fitted to."""
    return max(_SMALLEST, SEQUENCES * -(-2 * (d + 1) // SEQUENCES))


class SampledExpectation:
    """Moments of a function under a design, by at most ``max_calls`` of its rows.

    ``predict`` maps rows (n, d) to (n,) or (n, k).

    Raises
    ------
    InputError
        If the budget is too small for the number of columns.
    """

    method: Literal["sampled"] = "sampled"

    def __init__(self, predict: Callable[[Floats], Floats], sampling: Sampling) -> None:
        self._predict = predict
        self._sampling = sampling
        self._unfinished = _UnfinishedRows()

    @property
    def max_calls(self) -> int:
        """Largest number of rows that the model is called with, per explained row."""
        return self._sampling.max_calls

    def moments(
        self,
        design: SampledDesign,
        row: Floats,
        *,
        on_progress: Callable[[int], object] | None = None,
        prediction: Floats | None = None,
    ) -> Moments:
        """E_w f and Cov_w(h, f), estimated, with standard errors.

        ``on_progress`` is called with the number of rows of every batch, ``prediction`` is the model's answer
        at the row itself, () or (k,), if it is available. If this is cut short, the answers so far are
        stored, and the same row resumes from them.
        """
        key = fingerprint(row)
        with self._unfinished.take([key], self._new_calls) as rows:
            moments = self._finish(design, key, rows[key], prediction, on_progress)
            rows.clear()
            return moments

    def explain(self, rows: Rows, predictions: Floats, *, progress: Progress, workers: int = 1) -> RowMoments:
        """Features and moments at n rows of one family; see :meth:`many`."""
        designs = [design.in_units() for design in rows.designs]
        computed = self.many(designs, rows.x, predictions, progress=progress, workers=workers)
        return RowMoments.of_each(rows.features, *computed)

    def many(
        self,
        designs: Sequence[SampledDesign],
        rows: Floats,
        predictions: Floats,
        *,
        progress: Progress,
        workers: int = 1,
    ) -> tuple[list[Moments | None], BaseException | None]:
        """Moments at rows (n, d), each with its design, and the error that ended the call early, if any.

        ``predictions`` (n, ...) are the model's answers at the rows; ``workers`` rows are sampled at the same
        time, equal rows once. After an error a row has the moments that its calls so far allow, or None.
        """
        keys = [fingerprint(row) for row in rows]
        equal = Counter(keys)
        first = list({key: i for i, key in reversed(list(enumerate(keys)))}.values())[::-1]
        stop = Event()

        def progressed(count: int) -> None:
            on_progress(count)
            if stop.is_set():
                raise _Stopped

        error: BaseException | None = None
        with (
            progress(len(rows) * self.max_calls, CALLS) as on_progress,
            self._unfinished.take(list(equal), self._new_calls) as states,
        ):

            def work(i: int) -> None:
                if stop.is_set():
                    raise _Stopped
                moments = self._finish(designs[i], keys[i], states[keys[i]], predictions[i], progressed)
                on_progress(equal[keys[i]] * self.max_calls - int(moments.calls))

            try:
                in_workers(work, first, workers, stop)
            except CUT_SHORT as cause:
                error = cause
            moments = {
                keys[i]: self._partial_moments(designs[i], keys[i], states[keys[i]], predictions[i])
                for i in first
            }
            if error is None:
                states.clear()
        return [moments[key] for key in keys], error

    def redraw(self, design: SampledDesign, row: Floats, count: int) -> Draw:
        """Draw again the first ``count`` rows from which the moments at a row were computed."""
        parts: list[Draw] = []
        total = 0
        sampler = design.sampler(streams(self._sampling.seed, fingerprint(row), SEQUENCES))
        for step in np.diff(self._sizes(design.size), prepend=0).tolist():
            if total < count:
                x, h, cluster = sampler.draw(step)
                parts.append((x, h, total + cluster))
                total += len(x)
        x, h, cluster = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return x, h, cluster

    def answered(self, design: SampledDesign, row: Floats, count: int) -> tuple[Floats, Floats, Ints | None]:
        """Return the features (count, d) of the first rows, their weights (count,), and their clusters."""
        _, h, clusters = self.redraw(design, row, count)
        return h, np.full(len(h), 1.0 / len(h)), clusters

    def _new_calls(self) -> Calls:
        sampling = self._sampling
        return Calls(
            self._predict,
            batch_size=sampling.rows_a_call(_FIRST_LOOK // SEQUENCES),
            retry=sampling.retry,
            is_function=sampling.is_function,
        )

    def _finish(
        self,
        design: SampledDesign,
        key: int,
        row: SampledRow,
        prediction: Floats | None,
        on_progress: Callable[[int], object] | None,
    ) -> Moments:
        if row.moments is None:
            if on_progress is not None:
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
            answers = calls(x)
            return enumerate_states(design, answers, probability, weights, len(calls))
        for sample in self._samples(design, key, calls.one_pass(calls)):
            if sample.is_last or self._sampling.tolerance is not None:
                moments = estimate(design, sample, self._sampling, prediction, len(calls))
                if moments.converged:
                    break
        return moments

    def _partial_moments(
        self, design: SampledDesign, key: int, row: SampledRow, prediction: Floats | None
    ) -> Moments | None:
        """Moments from the calls made so far for a row; None where they are too few."""
        if row.moments is not None:
            return row.moments
        samples = list(self._samples(design, key, row.calls.one_pass(row.calls.recall)))
        if not samples:
            return None
        moments = estimate(design, samples[-1], self._sampling, prediction, len(row.calls))
        return replace(moments, converged=np.array(False), cut_short=np.array(True))

    def _samples(
        self, design: SampledDesign, key: int, predict: Callable[[Floats], Floats | None]
    ) -> Iterator[Sample]:
        """Growing samples, each twice the one before; they end where an answer is missing."""
        sizes = self._sizes(design.size)
        sampler = design.sampler(streams(self._sampling.seed, key, SEQUENCES))
        steps = np.diff(sizes, prepend=0).tolist()
        parts: list[Sample] = []
        answered = self._answered(sampler, steps, predict)
        for (draw, answers), size, step in zip(answered, sizes, steps, strict=True):
            if answers is None:
                return
            x, h, cluster = draw
            sequence = np.repeat(np.arange(SEQUENCES), step)
            # clusters of another step get other numbers: there are no more of them than rows
            first = sum(len(part.x) for part in parts)
            parts.append(Sample(x, h, answers, first + cluster, sequence, is_last=size == sizes[-1]))
            if SEQUENCES * size >= min(_fewest(design.size), SEQUENCES * sizes[-1]):
                yield Sample.concatenate(parts)

    def _answered(
        self, sampler: Sampler, steps: list[int], predict: Callable[[Floats], Floats | None]
    ) -> Iterator[tuple[Draw, Floats | None]]:
        """Draws and their answers, step by step."""
        if self._sampling.tolerance is not None:
            for draw in map(sampler.draw, steps):
                yield draw, predict(draw[0])
            return
        # without a tolerance all rows are needed, and each call of a model has a fixed cost: make one
        draws = [sampler.draw(step) for step in steps]
        whole, first = predict(np.concatenate([x for x, _, _ in draws])), 0
        for draw in draws:
            x = draw[0]
            yield draw, predict(x) if whole is None else whole[first : first + len(x)]
            first += len(x)

    def _sizes(self, d: int) -> list[int]:
        """Rows of one sequence at each estimate: doubled from a power of two, and at last the budget."""
        most = self._sampling.max_calls // SEQUENCES
        if self._sampling.max_calls < least_calls(d):
            raise InputError(
                f"max_calls={self._sampling.max_calls} is too few to fit {d} coefficients; "
                f"use at least {least_calls(d)}"
            )
        first = 2 ** int(np.log2(min(most, _FIRST_LOOK // SEQUENCES)))
        doubled = first * 2 ** np.arange(int(np.log2(most / first)) + 1)
        return sorted({*doubled.tolist(), most})


def _fewest(d: int) -> int:
    """Number of rows below which errors of d coefficients are not reliable."""
    return max(_FIRST_LOOK, 4 * (d + 1))


@dataclass(eq=False)
class SampledRow:
    """The model's answers for one row, and its moments once it is finished."""

    calls: Calls
    moments: Moments | None = None


class _UnfinishedRows:
    """Rows of the last calls that were cut short, by fingerprint; safe to share between threads.

    Copies in other processes start empty.
    """

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
