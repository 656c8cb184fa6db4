"""What the model has answered about rows of calls that were cut short, so that the same call can go on.

A call takes the rows that it is about, and nobody else has them while it runs. It gives them back if any of
them is not finished. An explainer may therefore be shared by threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

from limes.expectations.moments import Moments
from limes.models.calling.caller import Calls

# Calls that were cut short, of which answers are kept: a service may fail several threads at once
_MOST_CALLS = 8


@dataclass(eq=False)
class SampledRow:
    """The model's answers about one row, and its moments once it is finished."""

    calls: Calls
    moments: Moments | None = None


class Unfinished:
    """Rows of the last calls that were cut short, by fingerprint; safe to share between threads.

    Copies in other processes start empty.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: deque[dict[int, SampledRow]] = deque(maxlen=_MOST_CALLS)

    @contextmanager
    def rows(self, keys: Sequence[int], new: Callable[[], Calls]) -> Iterator[dict[int, SampledRow]]:
        """Rows of one call: those that are kept, and new ones with ``new`` calls; kept again if cut short."""
        taken = self._take(keys)
        for key in keys:
            if key not in taken:
                taken[key] = SampledRow(new())
        try:
            yield taken
        finally:
            if any(row.moments is None for row in taken.values()):
                with self._lock:
                    self._kept.append(taken)

    def _take(self, keys: Sequence[int]) -> dict[int, SampledRow]:
        with self._lock:
            taken = {key: call.pop(key) for call in self._kept for key in keys if key in call}
            for empty in [call for call in self._kept if not call]:
                self._kept.remove(empty)
        return taken

    def __reduce__(self) -> tuple[Any, ...]:
        return Unfinished, ()
