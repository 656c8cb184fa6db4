"""Engines carry parts to workers, and yield each part as soon as it is finished.

An engine is a function ``run(work, parts, cluster)``, in any order, which takes parts as it needs them. It
may do a part twice, as after the death of a worker: a part that is done again is the same file. Here is the
one of this machine's processes; `limes.scale.dask` and `limes.scale.spark` have the others.

Processes are loky's. Its reusable executor is not enough: it neither tries the parts of a dead worker again,
nor keeps the driver's Ctrl-C from the workers, nor ends them when the driver is killed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import chain
from threading import Thread
from time import sleep
from typing import TypeAlias
from weakref import WeakSet

from limes._checks import check_choice
from limes._threads import use_threads
from limes.exceptions import InputError
from limes.scale.parts import PartRecord
from limes.scale.sources import Part
from limes.scale.work import Work

# Deaths of workers, with no part finished between them, after which a run is given up
_DEATHS = 3
# Parts submitted for each worker: one that it does, one that waits for it
_AHEAD = 2
# In a worker: the work as bytes, until its first part
_WORK: list[bytes] = []
# Seconds, and how many times, to wait until a part is on its way
_MOMENT, _MOMENTS = 0.01, 1000
# Seconds between two checks of a worker whether its driver is alive
_LOOK = 1.0


@dataclass(frozen=True)
class Cluster:
    """Where workers are.

    Attributes
    ----------
    workers
        Processes that are started on this machine; ignored if ``scheduler`` is given.
    scheduler
        Address of a running cluster, as its library writes it; None: this machine.
    """

    workers: int = 1
    scheduler: str | None = None

    @property
    def threads(self) -> int:
        """Threads of a worker on this machine, so that together they have a core each.

        Cores are those that this process may use, by affinity and by the limit of its container.
        """
        from joblib import cpu_count

        return max(1, int(cpu_count()) // self.workers)


# The process that calls, and no other
THIS_PROCESS = Cluster()

Engine: TypeAlias = Callable[[Work, Iterable[Part], Cluster], Iterator[PartRecord]]

# Modules, imported when they are chosen: only who uses an engine needs its library
_MODULES = {"local": "limes.scale.engines", "dask": "limes.scale.dask", "spark": "limes.scale.spark"}


def engine_of(name: str) -> Engine:
    """Find an engine.

    Raises
    ------
    InputError
        If there is no engine of this name.
    MissingLibraryError
        If its library is not installed.
    """
    run: Engine = import_module(_MODULES[check_choice("engine", name, tuple(_MODULES))]).run
    return run


def run(work: Work, parts: Iterable[Part], cluster: Cluster) -> Iterator[PartRecord]:
    """Do the parts with processes of this machine, in any order; yield each part as soon as it is finished.

    Raises
    ------
    InputError
        If the explainer cannot be sent to other processes, workers keep dying, or a part cannot be read or
        written.
    """
    if cluster.workers == 1:
        yield from map(work, parts)
        return
    content = work.to_bytes()
    unfinished: dict[int, Part] = {}  # submitted parts, should the workers die
    waiting, deaths = iter(parts), 0
    while True:
        try:
            for record in _in_processes(content, chain([*unfinished.values()], waiting), unfinished, cluster):
                deaths = 0
                yield record
        except BrokenProcessPool as death:
            deaths += 1
            if deaths == _DEATHS:
                raise InputError(
                    f"workers were killed {_DEATHS} times at parts {[*unfinished]}, as happens when memory "
                    "runs out: use fewer workers or fewer rows a part; finished parts are kept"
                ) from death
        else:
            return


def _in_processes(
    content: bytes, parts: Iterable[Part], unfinished: dict[int, Part], cluster: Cluster
) -> Iterator[PartRecord]:
    """Do the parts with processes that end when this does, however it ends."""
    from joblib.externals.loky import ProcessPoolExecutor

    start = (content, os.getpid(), cluster.threads)
    pool = ProcessPoolExecutor(cluster.workers, initializer=_start, initargs=start)
    submitted: WeakSet[Future[PartRecord]] = WeakSet()

    def submit(part: Part) -> Future[PartRecord]:
        unfinished[part.number] = part
        future: Future[PartRecord] = pool.submit(_do, part)
        submitted.add(future)
        return future

    try:
        for record in _completed(submit, parts, _AHEAD * cluster.workers):
            del unfinished[record.part]
            yield record
    finally:
        _wait_until_sent(submitted)
        pool.shutdown(kill_workers=True)


def _wait_until_sent(futures: Iterable[Future[PartRecord]]) -> None:
    """Wait a moment until the parts that were submitted last are on their way to a worker.

    A pool that is shut down before that prints a traceback from one of its threads.
    """
    for _ in range(_MOMENTS):
        if all(future.running() or future.done() for future in [*futures]):
            return
        sleep(_MOMENT)


def _completed(
    submit: Callable[[Part], Future[PartRecord]], parts: Iterable[Part], most: int
) -> Iterator[PartRecord]:
    """Keep ``most`` parts submitted, and yield each that is finished."""
    pending: set[Future[PartRecord]] = set()
    for part in parts:
        pending.add(submit(part))
        if len(pending) == most:
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in finished)
    while pending:
        finished, pending = wait(pending, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in finished)


def _start(content: bytes, driver: int, threads: int) -> None:
    """Set up a worker that leaves Ctrl-C to its driver, and does not outlive it."""
    _WORK.append(content)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_threads(threads)

    def watch() -> None:
        while os.getppid() == driver:
            sleep(_LOOK)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _do(part: Part) -> PartRecord:
    return _work()(part)


@cache
def _work() -> Work:
    """Load the work of this process at its first part, so that exceptions are reported for that part."""
    return Work.from_bytes(_WORK.pop())
