"""Rows that the model predicts once, and its answers, batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

from limes._arrays import Floats
from limes._threads import in_workers
from limes.models._calling.caller import Retry, with_retries


@dataclass(frozen=True, eq=False)
class Questions:
    """Rows x (m, d), and their answers so far, by the first row of each batch.

    If the model fails, or the user interrupts, the finished batches are kept.
    """

    x: Floats
    batch_size: int
    batches: dict[int, Floats] = field(default_factory=dict)

    @property
    def unanswered(self) -> list[int]:
        """First row of each batch without answers."""
        return [start for start in range(0, len(self.x), self.batch_size) if start not in self.batches]

    @property
    def missing(self) -> int:
        """Number of rows without answers."""
        return len(self.x) - sum(len(batch) for batch in tuple(self.batches.values()))

    def ask(
        self,
        predict: Callable[[Floats], Floats],
        retry: Retry | None,
        on_progress: Callable[[int], object],
        workers: int = 1,
    ) -> None:
        """Predict the rows without answers, ``workers`` batches at the same time.

        ``on_progress`` is called with the number of rows of every batch.

        Raises
        ------
        ModelError
            If the model fails.
        """
        stop = Event()

        def work(start: int) -> None:
            if not stop.is_set():
                batch = self.x[start : start + self.batch_size]
                self.batches[start] = with_retries(predict, batch, retry)
                on_progress(len(batch))

        in_workers(work, self.unanswered, workers, stop)

    def answers(self) -> list[Floats]:
        """Answers in the order of the rows, batch by batch."""
        return [batch for _, batch in sorted(self.batches.items())]
