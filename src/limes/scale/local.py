"""Processes of this machine, by joblib's executor; the work is sent to a process once, when it starts."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from itertools import chain
from threading import Thread
from time import sleep
from weakref import WeakSet

from limes._threads import use_threads
from limes.exceptions import InputError
from limes.scale.engines import Cluster
from limes.scale.parts import Done
from limes.scale.sources import Part
from limes.scale.work import Work

# Deaths of workers, with no part done between them, that a run gives up after
_DEATHS = 3
# Parts given out for each worker: one that it does, one that waits for it
_AHEAD = 2
# In a worker: the work as bytes, until its first part
_SENT: list[bytes] = []
# Seconds, and how many times, that a part is waited for to be on its way
_MOMENT, _MOMENTS = 0.01, 100
# Seconds between two looks of a worker at whether its driver is still there
_LOOK = 1.0


def run(work: Work, parts: Iterable[Part], cluster: Cluster) -> Iterator[Done]:
    """Do the parts, in any order; what is done is told as it is done.

    Raises
    ------
    InputError
        If the explainer cannot be sent to other processes, workers keep dying, or a part cannot be read or
        written.
    """
    if cluster.workers == 1:
        yield from map(work, parts)
        return
    content = work.packed()
    given: dict[int, Part] = {}  # what is not done yet, should the workers die
    left, deaths = iter(parts), 0
    while True:
        try:
            for done in _carried(content, chain([*given.values()], left), given, cluster):
                deaths = 0
                yield done
        except BrokenProcessPool as death:
            deaths += 1
            if deaths == _DEATHS:
                raise _dying([*given]) from death
        else:
            return


def _carried(
    content: bytes, parts: Iterable[Part], given: dict[int, Part], cluster: Cluster
) -> Iterator[Done]:
    """Do the parts with processes that end when this does, however it does."""
    from joblib.externals.loky import ProcessPoolExecutor

    start = (content, os.getpid(), cluster.threads)
    pool = ProcessPoolExecutor(cluster.workers, initializer=_start, initargs=start)
    flights: WeakSet[Future[Done]] = WeakSet()

    def give(part: Part) -> Future[Done]:
        given[part.number] = part
        future: Future[Done] = pool.submit(_do, part)
        flights.add(future)
        return future

    try:
        for done in _in_flight(give, parts, _AHEAD * cluster.workers):
            del given[done.part]
            yield done
    finally:
        _let_take_off(flights)
        pool.shutdown(kill_workers=True)


def _let_take_off(flights: Iterable[Future[Done]]) -> None:
    """Wait a moment for what was given out last to be on its way to a worker.

    A pool that is shut down before that prints a traceback of a thread of its own.
    """
    for _ in range(_MOMENTS):
        if all(one.running() or one.done() for one in [*flights]):
            return
        sleep(_MOMENT)


def _in_flight(give: Callable[[Part], Future[Done]], parts: Iterable[Part], most: int) -> Iterator[Done]:
    """Keep so many parts given out, and tell of each that is done."""
    flying: set[Future[Done]] = set()
    for part in parts:
        flying.add(give(part))
        if len(flying) == most:
            landed, flying = wait(flying, return_when=FIRST_COMPLETED)
            yield from (one.result() for one in landed)
    while flying:
        landed, flying = wait(flying, return_when=FIRST_COMPLETED)
        yield from (one.result() for one in landed)


def _start(content: bytes, driver: int, threads: int) -> None:
    """Make a worker that leaves Ctrl-C to its driver, and does not outlive it."""
    _SENT.append(content)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_threads(threads)

    def look() -> None:
        while os.getppid() == driver:
            sleep(_LOOK)
        os._exit(1)

    Thread(target=look, daemon=True).start()


def _do(part: Part) -> Done:
    return _work()(part)


@cache
def _work() -> Work:
    """The work that this process was started with; its errors are those of a part, and are told."""
    return Work.unpacked(_SENT.pop())


def _dying(parts: list[int]) -> InputError:
    return InputError(
        f"workers were killed {_DEATHS} times at parts {parts}, as happens when memory runs out: take fewer "
        "workers or fewer rows a part; the parts that are done stay done"
    )
