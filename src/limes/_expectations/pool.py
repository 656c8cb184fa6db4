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
from itertools import takewhile
from threading import Event
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints, streams
from limes._expectations.pool_fit import CellCodes, cell_codes
from limes._expectations.sampling import Sampling
from limes._threads import Locked, in_workers
from limes.designs._marginals import Atoms, Marginal
from limes.designs._product import ProductFamily, sobol_points
from limes.models._calling.caller import Retry, with_retries

# Independent sequences, and rows of all of them together in the smallest pool
SEQUENCES = 8
SMALLEST = 1024
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
        """Number of rows without answers."""
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
        """Answers in the order of the rows, batch by batch."""
        return [batch for _, batch in sorted(self.batches.items())]


@dataclass(frozen=True, eq=False)
class PoolRows:
    """Rows of a pool of one size, sequence by sequence: x and cells (n, d), answers (n, ...)."""

    x: Floats
    cells: CellCodes
    answers: Floats


class Pool(Locked):
    """A model's answers to rows of the background's law; threads may share it.

    A copy in another process has the same answers, and grows by the same rows. ``predict`` maps rows (n, d)
    to (n,) or (n, k).
    """

    def __init__(
        self, family: ProductFamily, predict: Callable[[Floats], Floats], sampling: Sampling
    ) -> None:
        self._predict = predict
        self._batch_size = sampling.rows_a_call(SMALLEST // SEQUENCES)
        self._retry = sampling.retry
        self._law = _BackgroundRows(family, sampling.seed, distinct=sampling.is_function)
        self._steps: tuple[_Step, ...] = ()
        super().__init__()

    @property
    def size(self) -> int:
        """Number of rows in the largest pool that is answered completely."""
        complete = (step.questions.missing == 0 for step in self._steps)
        return sum(len(step.x) for step, _ in zip(self._steps, takewhile(bool, complete), strict=False))

    @property
    def calls(self) -> int:
        """Number of rows that the model has predicted: fewer than the pool's rows where these repeat."""
        return sum(len(step.questions.x) - step.questions.missing for step in self._steps)

    def missing(self, size: int) -> int:
        """Number of rows that the model must predict before the pool has this size."""
        return sum(step.questions.missing for step in self._drawn(size))

    def grow(self, size: int, *, on_progress: Callable[[int], object], workers: int = 1) -> None:
        """Predict rows until the pool has this size; see `CachedPredictions.predict`."""
        steps = self._drawn(size)
        with self._lock:
            for step in steps:
                step.questions.predict(self._predict, self._retry, on_progress, workers)

    def rows(self, size: int) -> PoolRows:
        steps = self._drawn(size)
        answers = np.concatenate([batch for step in steps for batch in step.questions.answers()])
        parts = [(step.x, step.cells, answers[step.place]) for step in steps]
        x, cells, f = (_by_sequence(arrays) for arrays in zip(*parts, strict=True))
        return PoolRows(x, cells, f)

    def _drawn(self, size: int) -> list[_Step]:
        with self._lock:
            while (first := sum(len(step.x) for step in self._steps)) < size:
                x, cells, new, place = self._law.draw(first, first or SMALLEST)
                questions = CachedPredictions(x[new], self._batch_size)
                self._steps = (*self._steps, _Step(x, cells, questions, place))
        firsts = np.cumsum([0, *(len(step.x) for step in self._steps)])
        return [step for step, first in zip(self._steps, firsts, strict=False) if first < size]


@dataclass(frozen=True, eq=False)
class _Step:
    """Rows by which a pool grows at once, sequence by sequence."""

    x: Floats
    cells: CellCodes
    questions: CachedPredictions  # the rows to predict: equal rows are one question
    place: Ints  # (n,) the answer of each row among those of this step and the steps before


class _BackgroundRows:
    """The endless sequence of rows of a background's law that a seed determines."""

    def __init__(self, family: ProductFamily, seed: int, *, distinct: bool) -> None:
        self._family = family
        self._seed = seed
        # if every cell has one value, rows repeat: the model is called once for each pattern of cells
        self._questions: dict[bytes, int] | None = {} if distinct and _is_discrete(family) else None
        self._count = 0
        self._points: tuple[int, Any] = (-1, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_points": (-1, None)}

    def draw(self, first: int, count: int) -> tuple[Floats, CellCodes, Ints, Ints]:
        """Draw rows from ``first`` on: x and cells (count, d), new questions, each row's question."""
        position, points = self._points
        if position != first:
            points = sobol_points(len(self._family.marginals), streams(self._seed, _KEY, SEQUENCES))
            if first:
                points.random(first // SEQUENCES)
        x, cells = self._family.draw(points.random(count // SEQUENCES))
        self._points = first + count, points
        codes = cell_codes(self._family, cells)
        return (x, codes, *self._new_questions(codes))

    def _new_questions(self, codes: CellCodes) -> tuple[Ints, Ints]:
        if self._questions is None:
            place = self._count + np.arange(len(codes))
            self._count += len(codes)
            return np.arange(len(codes)), place
        numbers, keys = self._questions, [code.tobytes() for code in codes]
        before = len(numbers)
        place = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
        numbers_of_rows, first = np.unique(place, return_index=True)
        return first[numbers_of_rows >= before], place


def _is_discrete(family: ProductFamily) -> bool:
    """Return whether every cell of every column has a single value."""

    def single(law: Marginal) -> bool:
        atoms = all(isinstance(measure, Atoms) for measure in law.measures)
        return atoms and law.owners.size == law.cells.count

    return all(single(law) for law in family.marginals)


def _by_sequence(steps: Sequence[Any]) -> Any:
    """Join the arrays of several steps, sequence by sequence."""
    parts = [step.reshape(SEQUENCES, -1, *step.shape[1:]) for step in steps]
    whole = np.concatenate(parts, axis=1)
    return whole.reshape(-1, *whole.shape[2:])


def pool_sizes(d: int, most: int) -> list[int]:
    """Sizes of the pools that d coefficients can be fitted to, with at most ``most`` rows: powers of two."""
    first = max(SMALLEST, 1 << (4 * (d + 1) - 1).bit_length())
    return [first << i for i in range(most.bit_length()) if first << i <= most]
