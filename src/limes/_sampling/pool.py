r"""A pool of answers that all rows of a table share.

Under bin weights the laws of two explained rows differ by the weight t^#changed alone, t = exp(-1/(2ν²)):
frequencies of cells, and laws inside them, are the background's. Rows of the law without weights are
therefore drawn, and predicted once; each explained row weights them (``pooled.py``).

The pool depends on the seed and the background alone. It grows on demand, in powers of two, and a smaller
pool is part of a larger one: the first rows of each of eight independent scrambled Sobol' sequences. An
explained row uses the pool of a size that depends on its own numbers, never on those of other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from limes._arrays import Floats, Ints, sobol_points, streams
from limes._sampling.least_squares import least_effective
from limes._sampling.pool_fit import CellCodes, cell_codes
from limes._sampling.sampled import Sampling
from limes._threads import SharedState, in_workers
from limes.designs._marginals import Atoms
from limes.designs._product import ProductFamily
from limes.models._calling.caller import Retry, with_retries

# Independent sequences, and rows of all of them together in the smallest pool
SEQUENCES = 8
SMALLEST = 1024
# Smallest multiple of the largest power of two by which a pool grows beyond it
_LARGER = 1.25
# SmallestChange rows of a pool that a small budget cuts
_FEWEST = 64
# Key of the pool's streams; streams of explained rows have the row's hash instead
_KEY = 0x706F6F6C


@dataclass(frozen=True, eq=False)
class CachedPredictions:
    """Rows x (m, d) that the model predicts once, and its answers so far, by the first row of each batch.

    If the model fails, or the user interrupts, the finished batches are kept.
    """

    x: Floats
    batch_size: int
    batches: dict[int, Floats] = field(default_factory=dict)

    @property
    def missing(self) -> int:
        return len(self.x) - sum(len(batch) for batch in tuple(self.batches.values()))

    def predict(
        self,
        model: Callable[[Floats], Floats],
        retry: Retry | None,
        on_progress: Callable[[int], object],
        workers: int = 1,
    ) -> None:
        """Predict the rows without answers, ``workers`` batches at the same time.

        ``on_progress`` is called with the number of rows of every batch.
        """
        stop = Event()

        def work(start: int) -> None:
            if not stop.is_set():
                batch = self.x[start : start + self.batch_size]
                self.batches[start] = with_retries(model, batch, retry)
                on_progress(len(batch))

        starts = range(0, len(self.x), self.batch_size)
        in_workers(work, [start for start in starts if start not in self.batches], workers, stop)

    def answers(self) -> list[Floats]:
        return [batch for _, batch in sorted(self.batches.items())]


class PoolRows(NamedTuple):
    """Rows of a pool of one size, sequence by sequence: x and cells (n, d), answers (n, ...)."""

    x: Floats
    cells: CellCodes
    answers: Floats


class Pool(SharedState):
    """A model's answers to rows of the background's law; threads may share it.

    A copy in another process has the same answers, and grows by the same rows. ``predict`` maps rows (n, d)
    to (n,) or (n, k).
    """

    def __init__(
        self, family: ProductFamily, predict: Callable[[Floats], Floats], sampling: Sampling
    ) -> None:
        self._family, self._predict, self._sampling = family, predict, sampling
        self._steps: tuple[_Step, ...] = ()
        # if every cell has one value, rows repeat: the model is called once for each pattern of cells
        distinct = sampling.is_function and _is_discrete(family)
        self._questions: dict[bytes, int] | None = {} if distinct else None
        super().__init__()

    @property
    def calls(self) -> int:
        """Number of rows that the model has predicted: fewer than the pool's rows where these repeat."""
        return sum(len(step.questions.x) - step.questions.missing for step in self._steps)

    def questions(self, size: int) -> int:
        """Number of rows that the model is asked about for a pool of this size."""
        return sum(len(step.questions.x) for step in self._drawn(size)) if size else 0

    def missing(self, size: int) -> int:
        """Number of rows that the model must predict before the pool has this size."""
        return sum(step.questions.missing for step in self._drawn(size))

    def grow(self, size: int, *, on_progress: Callable[[int], object], workers: int = 1) -> None:
        """Predict rows until the pool has this size; see `CachedPredictions.predict`."""
        steps = self._drawn(size)
        with self._lock:
            for step in steps:
                step.questions.predict(self._predict, self._sampling.retry, on_progress, workers)

    def rows(self, size: int) -> PoolRows:
        steps = self._drawn(size)
        answers = np.concatenate([batch for step in steps for batch in step.questions.answers()])
        arrays = zip(*((step.x, step.cells, answers[step.place]) for step in steps), strict=True)
        return PoolRows(*map(_by_sequence, arrays))

    def _drawn(self, size: int) -> list[_Step]:
        with self._lock:
            while (first := sum(len(step.x) for step in self._steps)) < size:
                self._steps = (*self._steps, self._draw(first, min(first or SMALLEST, size - first)))
        firsts = np.cumsum([0, *(len(step.x) for step in self._steps)])
        return [step for step, first in zip(self._steps, firsts, strict=False) if first < size]

    def _draw(self, first: int, count: int) -> _Step:
        points = sobol_points(len(self._family.marginals), streams(self._sampling.seed, _KEY, SEQUENCES))
        if first:
            points.random(first // SEQUENCES)
        # sequences fill space evenly by powers of two: the last one of a small budget is cut
        each, d = count // SEQUENCES, len(self._family.marginals)
        levels = points.random(1 << (each - 1).bit_length()).reshape(SEQUENCES, -1, d)[:, :each]
        x, cells = self._family.draw(levels.reshape(count, d))
        codes = cell_codes(self._family, cells)
        questions, place = x, first + np.arange(count)
        if (numbers := self._questions) is not None:
            before = len(numbers)
            place = np.array([numbers.setdefault(code.tobytes(), len(numbers)) for code in codes])
            numbers_of_rows, firsts = np.unique(place, return_index=True)
            questions = x[firsts[numbers_of_rows >= before]]
        batch_size = self._sampling.rows_a_call(min(SMALLEST // SEQUENCES, each))
        return _Step(x, codes, CachedPredictions(questions, batch_size), place)


@dataclass(frozen=True, eq=False)
class _Step:
    """Rows by which a pool grows at once, sequence by sequence."""

    x: Floats
    cells: CellCodes
    questions: CachedPredictions  # the rows to predict: equal rows are one question
    place: Ints  # (n,) the answer of each row among those of this step and the steps before


def _by_sequence(parts: Sequence[Any]) -> Any:
    """Join rows of several steps, sequence by sequence each, to rows sequence by sequence."""
    if len(parts) == 1:
        return parts[0]
    each = [part.reshape(SEQUENCES, -1, *part.shape[1:]) for part in parts]
    whole = np.concatenate(each, axis=1)
    return whole.reshape(-1, *whole.shape[2:])


def _is_discrete(family: ProductFamily) -> bool:
    """Return whether every cell of every column has a single value."""
    return all(
        law.owners.size == law.cells.count and all(isinstance(measure, Atoms) for measure in law.measures)
        for law in family.marginals
    )


def pool_sizes(d: int, most: int) -> list[int]:
    """Sizes of the pools that d coefficients can be fitted to, with at most ``most`` rows.

    They are powers of two, with enough rows for errors that can be trusted, and what is allowed beyond; or
    what a small budget allows.
    """
    least = int(least_effective(d, np.array(most)))
    first = max(SMALLEST, 1 << (least - 1).bit_length())
    cut = most - most % SEQUENCES
    sizes = [first << i for i in range(most.bit_length()) if first << i <= most]
    if sizes and cut >= _LARGER * sizes[-1]:
        sizes.append(cut)
    return sizes or [cut] * (cut >= max(_FEWEST, least // 2))
