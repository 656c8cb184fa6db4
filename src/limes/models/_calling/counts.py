"""How many rows models were asked about: the one counter behind every number of calls that is reported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any


class AnswerCount:
    """Counts the rows that models answer while it is ``counting``.

    It may count several times, and in several threads; one that is counted inside another is in both.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._lock = Lock()

    @contextmanager
    def counting(self) -> Iterator[AnswerCount]:
        counted = _COUNTS.get()
        token = _COUNTS.set(counted if self in counted else (*counted, self))
        try:
            yield self
        finally:
            _COUNTS.reset(token)

    def add(self, rows: int) -> None:
        with self._lock:
            self.rows += rows

    def __reduce__(self) -> tuple[Any, ...]:
        return _count_of, (self.rows,)


def _count_of(rows: int) -> AnswerCount:
    tally = AnswerCount()
    tally.add(rows)
    return tally


_COUNTS: ContextVar[tuple[AnswerCount, ...]] = ContextVar("counts", default=())


def count_answers(rows: int) -> None:
    """Count rows that a model has answered; whoever calls a model does."""
    for tally in _COUNTS.get():
        tally.add(rows)
