"""Memory of a process and all that it starts, watched while it works."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from threading import Event, Thread
from typing import Self

# Seconds between two looks
_LOOK = 0.25


class Tree:
    """The most that was held: by this process, by one of its workers, by Java, and by all at once.

    Of each process it is the kernel's own peak. "All" counts pages that processes share once (PSS).
    """

    def __init__(self) -> None:
        self._peaks: dict[str, float] = defaultdict(float)
        self._stop = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is what is held now
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def megabytes(self) -> dict[str, float]:
        """Peaks of ``driver``, ``worker`` (the largest), ``java`` and ``all``; 0 without such a process."""
        return {name: self._peaks[name] for name in ("driver", "worker", "java", "all")}

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK):
            every = 0.0
            for process in _tree(os.getpid()):
                try:
                    kind, peak, held = _kind(process), _field(process, "status", "VmHWM"), _pss(process)
                except (OSError, StopIteration):  # it has ended
                    continue
                self._peaks[kind] = max(self._peaks[kind], peak)
                every += held
            self._peaks["all"] = max(self._peaks["all"], every)


def _tree(root: int) -> list[int]:
    parents = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        parents[parent].append(int(path.parent.name))
    result, queue = [], [root]
    while queue:
        process = queue.pop()
        result.append(process)
        queue += parents[process]
    return result


def _kind(process: int) -> str:
    if process == os.getpid():
        return "driver"
    return "java" if Path(f"/proc/{process}/comm").read_text().strip() == "java" else "worker"


def _pss(process: int) -> float:
    return _field(process, "smaps_rollup", "Pss")


def _field(process: int, file: str, field: str) -> float:
    lines = Path(f"/proc/{process}/{file}").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))
