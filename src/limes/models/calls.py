"""Calls of the model: in batches, tried again where that helps, and never twice for the same row."""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import blake2b
from itertools import count

import numpy as np

from limes._arrays import Floats
from limes.exceptions import ModelError

# (error, attempt = 1, 2, ...) -> seconds to wait before the batch is tried again, or None to give up
Retry = Callable[[BaseException, int], float | None]


class Calls:
    """What a model has answered so far, for one explained row.

    Answers are kept batch by batch. If the model fails, or the user interrupts it, nothing that was answered
    is lost: the next time the same rows are asked for, only what is missing is asked.

    Parameters
    ----------
    ask
        (n, d) -> (n,) or (n, k); raises :class:`ModelError`.
    batch_size
        Rows handed over at once.
    retry
        See :data:`Retry`; None gives up at the first error.

    Attributes
    ----------
    on_progress
        Called with the number of rows of every batch that was answered.
    """

    def __init__(
        self,
        ask: Callable[[Floats], Floats],
        *,
        batch_size: int,
        retry: Retry | None = None,
    ) -> None:
        self._ask = ask
        self._batch_size = batch_size
        self._retry = retry
        self.on_progress: Callable[[int], object] = _ignore
        self._known: dict[bytes, Floats] = {}

    def __len__(self) -> int:
        """Rows that the model has answered."""
        return len(self._known)

    def __call__(self, x: Floats) -> Floats:
        """Answers (n,) or (n, k) at rows (n, d), asking for each distinct row once."""
        keys = _keys(x)
        fresh = {key: i for i, key in enumerate(keys) if key not in self._known}
        wanted = list(fresh.items())
        for start in range(0, len(wanted), self._batch_size):
            batch = wanted[start : start + self._batch_size]
            answers = self._answers(x[[i for _, i in batch]])
            self._known.update(zip((key for key, _ in batch), answers, strict=True))
            self.on_progress(len(batch))
        return np.stack([self._known[key] for key in keys])

    def recall(self, x: Floats) -> Floats | None:
        """Answers at rows (n, d) if all of them are known."""
        keys = _keys(x)
        return np.stack([self._known[key] for key in keys]) if self._known.keys() >= set(keys) else None

    def _answers(self, batch: Floats) -> Floats:
        for attempt in count(1):
            try:
                return self._ask(batch)
            except ModelError as error:
                # only what the model itself raised may go away by itself, not a wrong answer
                pause = None
                if self._retry is not None and error.__cause__ is not None:
                    pause = self._retry(error.__cause__, attempt)
                if pause is None:
                    raise
                time.sleep(pause)
        raise AssertionError  # count never ends


def _ignore(rows: int) -> object:  # noqa: ARG001 - default progress callback
    return None


def _keys(x: Floats) -> list[bytes]:
    return [blake2b(row, digest_size=16).digest() for row in np.ascontiguousarray(x)]
