"""Progress of a long run: rows, rows a second, time left, and the oldest part that is not finished.

The line is written again every second, also while no part is finished, so that a part that hangs is seen by
its time. Engines take parts ahead, two for each core at most: the time includes the wait for a worker.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from threading import Event, Thread
from time import monotonic
from typing import Any

from limes._bars import tqdm_class
from limes.scale._parts import PartRecord
from limes.scale._sources import Part

# Seconds between two beats in a terminal or notebook, and in a log
_TERMINAL, _LOG = 1.0, 30.0


class Heartbeat:
    """A progress bar of rows, as a context; ``show=False`` hides it."""

    def __init__(self, total: int, finished: int, *, show: bool) -> None:
        log = not (sys.stderr.isatty() or "ipykernel" in sys.modules)
        self._interval = _LOG if log else _TERMINAL
        self._show = show
        self._began: dict[int, float] = {}
        self._errors = 0
        self._stop = Event()
        self._thread = Thread(target=self._beat, daemon=True)
        options: dict[str, Any] = {"unit": " rows", "unit_scale": True, "desc": "explaining"}
        if log:
            options |= {"mininterval": _LOG}
        self._bar = tqdm_class()(total=total, initial=finished, disable=not show, **options)

    def __enter__(self) -> Heartbeat:
        if self._show:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._show:
            self._thread.join()
            self._bar.set_postfix_str(self.at_work())  # not what was under way at the last beat
        self._bar.close()

    def begun(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Yield the parts, and start the clock of each as an engine takes it."""
        for part in parts:
            self._began[part.number] = monotonic()
            yield part

    def add(self, record: PartRecord) -> None:
        """Count the rows of a part that is finished."""
        self._began.pop(record.part, None)
        self._errors += record.errors
        self._bar.update(record.rows)

    def at_work(self) -> str:
        """Describe the oldest part that is not finished, since when it was taken, and the errors so far."""
        began = dict(self._began)
        errors = [f"{self._errors:,} errors"] if self._errors else []
        if not began:
            return ", ".join(errors)
        part = min(began, key=lambda number: began[number])
        return ", ".join([f"part {part} queued or running for {monotonic() - began[part]:.0f} s", *errors])

    def _beat(self) -> None:
        while not self._stop.wait(self._interval):
            self._bar.set_postfix_str(self.at_work())
