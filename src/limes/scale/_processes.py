"""Worker processes on this machine: each does one part at a time, and is ended when its part hangs.

The driver has a pipe to each process, so it knows which part a process was at when it died or took too long.
A part that takes longer than the time limit is searched by halves for the rows that hang; it is then computed
without these rows, which are reported as errors. A trial of one k-th of the rows has at most 10 / k of the
limit, so a search takes about six times the limit for each row that hangs.

Processes are loky's, which start without importing the program's main module. Its executor is not enough: it
cannot end one process, nor report the part that a dead process was working on.
"""

from __future__ import annotations

import os
import signal
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from threading import Thread
from time import monotonic, sleep
from typing import Any

from limes._threads import use_threads
from limes.exceptions import InputError
from limes.scale._engines import Cluster
from limes.scale._parts import PartRecord
from limes.scale._sources import Part
from limes.scale._work import Work

# A run is given up after this number of workers have died at one part
_DEATHS = 3
# How often a worker checks that its driver lives, in seconds
_LOOK = 1.0
# The limit of a piece is this multiple of its share of the part's rows, and at least a second
_SLACK, _LEAST = 10.0, 1.0
# SIGTERM ends a process for good where there is no SIGKILL (Windows)
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
# The search for the rows of a part that hang may take this number of time limits
_SEARCH = 20.0


@dataclass(frozen=True)
class _Task:
    """A part without its rows that hang; with ``rows`` set, a trial of these rows of the part."""

    part: Part
    seconds: float | None
    hanging: dict[int, str] = field(default_factory=dict)
    rows: range | None = None


@dataclass
class _Search:
    """The search for a part's rows that hang: the pieces still to be tried, and the rows so far."""

    part: Part
    timeout: float
    pieces: list[range]
    hanging: dict[int, str] = field(default_factory=dict)
    spent: float = 0.0

    @classmethod
    def of(cls, part: Part, timeout: float) -> _Search:
        return cls(part, timeout, _halves(range(part.num_rows)))

    def next(self) -> _Task:
        """Return the trial of a piece; after the last, the whole part, with more time."""
        if not self.pieces:
            return _Task(self.part, self.timeout + 2 * self.spent, self.hanging)
        rows = self.pieces.pop()
        share = _SLACK * self.timeout * len(rows) / self.part.num_rows
        # short limits only guide the search: a row is an error only if it takes the whole limit by itself
        seconds = self.timeout if len(rows) == 1 else min(self.timeout, max(_LEAST, share))
        return _Task(self.part, seconds, rows=rows)

    def add(self, rows: range, seconds: float, *, hangs: bool) -> None:
        """Record the result of a trial."""
        self.spent += seconds
        if not hangs:
            return
        if len(rows) == 1:
            self._report(rows, f"the row alone takes longer than {seconds:.3g} seconds")
        elif self.spent > _SEARCH * self.timeout:
            self._report(
                rows, f"this row or one of {len(rows) - 1} beside it takes too long; not searched further"
            )
        else:
            self.pieces += reversed(_halves(rows))

    def _report(self, rows: range, reason: str) -> None:
        self.hanging |= dict.fromkeys(rows, f"TimeoutError: {reason}")


def _halves(rows: range) -> list[range]:
    half = (len(rows) + 1) // 2
    return [piece for piece in (rows[:half], rows[half:]) if piece]


def supervised(content: bytes, timeout: float, threads: int) -> WorkerPool:
    """Return a process that computes the parts of a pickled work, for a worker of another engine."""
    from multiprocessing import current_process

    current_process().daemon = False  # Dask's workers are daemons, which may not have children
    return WorkerPool(content, iter(()), Cluster(timeout=timeout, cores=threads))


def run(work: Work, parts: Iterable[Part], cluster: Cluster) -> Iterator[PartRecord]:
    """Compute the parts with processes of this machine, in any order; yield each as soon as it is finished.

    One worker without a time limit is this process.

    Raises
    ------
    InputError
        If the explainer cannot be sent to other processes, workers keep dying, or a part cannot be read or
        written, or takes too long although none of its rows does.
    """
    if cluster.workers == 1 and cluster.timeout is None:
        yield from map(work, parts)
        return
    pool = WorkerPool(work.to_bytes(), iter(parts), cluster)
    try:
        yield from pool.records()
    finally:
        pool.close()


class _Worker:
    """A process, its pipe, and its task, which is None until the process is ready and between two tasks."""

    def __init__(self, content: bytes, cluster: Cluster) -> None:
        from joblib.externals.loky.backend import get_context

        context = get_context("loky")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, content, os.getpid(), cluster.threads))
        self.process.start()
        theirs.close()
        self.task: _Task | None = None
        self.start = monotonic()

    def do(self, task: _Task) -> None:
        """Send a task; if the process is dead, `WorkerPool` notices when it next reads from its pipe."""
        self.task, self.start = task, monotonic()
        with suppress(BrokenPipeError, ConnectionResetError):
            self.pipe.send(task)

    @property
    def seconds(self) -> float:
        """Seconds since its task was sent."""
        return monotonic() - self.start

    @property
    def remaining(self) -> float | None:
        """Seconds until its task takes too long; None if it has no limit."""
        if self.task is None or self.task.seconds is None:
            return None
        return self.task.seconds - self.seconds

    def kill(self) -> None:
        if self.process.exitcode is None:
            os.kill(self.process.pid, _KILL)
        self.process.join()
        self.pipe.close()


class WorkerPool:
    """Workers, the tasks that wait for one, and the searches that are under way."""

    def __init__(self, content: bytes, parts: Iterator[Part], cluster: Cluster) -> None:
        self._content = content
        self._parts = parts
        self._cluster = cluster
        self._waiting: deque[_Task] = deque()
        self._searches: dict[int, _Search] = {}
        self._deaths: Counter[int] = Counter()
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []

    def record_of(self, part: Part) -> PartRecord:
        """Compute one part; the workers stay for the next."""
        self._parts = iter([part])
        [record] = self.records()
        return record

    def records(self) -> Iterator[PartRecord]:
        self._fetch()
        while len(self._workers) < len(self._waiting):
            self._workers.append(_Worker(self._content, self._cluster))
        self._hand_out()  # to workers that are idle since an earlier part
        while len(self._idle) < len(self._workers):
            for worker in self._ready():
                record = self._receive(worker)
                if record is not None:
                    yield record
            for worker in [worker for worker in self._workers if _late(worker)]:
                self._replace(worker)
                self._time_out(worker)
            self._hand_out()
            self._fetch()

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()

    def _fetch(self) -> None:
        """Read ahead, one part for each worker, so that no worker waits for a file."""
        while len(self._waiting) < self._cluster.workers and (part := next(self._parts, None)) is not None:
            self._waiting.append(_Task(part, self._cluster.timeout))

    def _hand_out(self) -> None:
        while self._idle and self._waiting:
            self._idle.pop().do(self._waiting.popleft())
            if not self._waiting:
                self._fetch()

    def _ready(self) -> list[_Worker]:
        """Wait until a worker has answered or is late; return the workers with an answer."""
        busy = {worker.pipe: worker for worker in self._workers if worker not in self._idle}
        times = [worker.remaining for worker in busy.values()]
        limits = [max(0.0, seconds) for seconds in times if seconds is not None]
        return [busy[pipe] for pipe in wait([*busy], min(limits, default=None))]

    def _receive(self, worker: _Worker) -> PartRecord | None:
        try:
            answer = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            self._replace(worker)
            self._note_death(worker)
            return None
        if isinstance(answer, Exception):
            raise answer
        task, worker.task = worker.task, None
        self._idle.append(worker)
        if task is not None and task.rows is not None:
            self._note_trial(task, task.rows, worker.seconds, hangs=False)
        return answer if isinstance(answer, PartRecord) else None

    def _replace(self, worker: _Worker) -> None:
        worker.kill()
        self._workers[self._workers.index(worker)] = _Worker(self._content, self._cluster)

    def _note_death(self, worker: _Worker) -> None:
        number = -1 if worker.task is None else worker.task.part.number
        self._deaths[number] += 1
        if self._deaths[number] == _DEATHS:
            where = "before their first part" if worker.task is None else f"at part {number}"
            raise InputError(
                f"workers were killed {_DEATHS} times {where}, as happens when memory runs out: use fewer "
                "workers or fewer rows a part; finished parts are kept"
            )
        if worker.task is not None:
            self._waiting.appendleft(worker.task)

    def _time_out(self, worker: _Worker) -> None:
        task: Any = worker.task
        if task.rows is not None:
            self._note_trial(task, task.rows, task.seconds, hangs=True)
        elif task.part.number in self._searches:
            raise InputError(
                f"part {task.part.number} takes longer than {task.seconds:.3g} seconds, but no row of it "
                "alone does: pass a longer --timeout, or fewer rows a part in a new folder"
            )
        else:
            self._searches[task.part.number] = search = _Search.of(task.part, task.seconds)
            self._waiting.appendleft(search.next())

    def _note_trial(self, task: _Task, rows: range, seconds: float, *, hangs: bool) -> None:
        search = self._searches[task.part.number]
        search.add(rows, seconds, hangs=hangs)
        self._waiting.appendleft(search.next())


def _late(worker: _Worker) -> bool:
    return worker.remaining is not None and worker.remaining <= 0


def _serve(pipe: Connection[Any, Any], content: bytes, driver: int, threads: int) -> None:
    """Compute the driver's tasks; ignore Ctrl-C, which the driver handles, and end with the driver."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_threads(threads)

    def watch() -> None:
        while os.getppid() == driver:
            sleep(_LOOK)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
    try:
        work = Work.from_bytes(content)
        work.warm_up()
        pipe.send(None)  # ready: loading and preparing take none of the first part's time
        while True:
            task = pipe.recv()
            if task.rows is None:
                pipe.send(work(task.part, task.hanging))
            else:
                work.attempt(task.part, task.rows)
                pipe.send(None)
    except EOFError:
        return
    except Exception as error:  # noqa: BLE001 - it is the driver's to raise
        pipe.send(_sendable(error))


def _sendable(error: Exception) -> Exception:
    import pickle

    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - made a moment ago
    except Exception:  # noqa: BLE001 - whatever a model's own exception does
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
