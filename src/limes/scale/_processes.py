"""Worker processes on this machine: each does one part at a time, and is ended when its part hangs.

The driver has a pipe to each process, so it knows which part a process was at when it died or took too long.
A part that takes longer than the time limit, or that two workers died at, is searched by halves for the rows
at fault; it is then computed without these rows, which are reported as errors. A trial of one k-th of the
rows has at most 10 / k of the limit, so a search takes about six times the limit for each row that hangs. A
row that ends its process costs a worker for each halving, and one more, since a single row is tried twice.

Processes are loky's, which start without importing the program's main module. Its executor is not enough: it
cannot end one process, nor report the part that a dead process was working on.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from math import inf
from multiprocessing import current_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any, cast

from limes._surroundings import own_process
from limes._threads import set_threads
from limes.exceptions import InputError
from limes.models._calling.border import FAILURES, text_of
from limes.scale._parts import PartRecord
from limes.scale._sources import Part
from limes.scale._tables import Cluster, Work, unpickled

# A run is given up after this number of workers have died one after the other before their first part
_EARLY_DEATHS = 3
# Deaths at one part, or at one row, that are no accident, as the end of another program's process would be
_DEATHS = 2
# Deaths in the search of one part; the pieces that are left are then tried whole
_MOST_DEATHS = 50
# How often worker and driver check that the other lives, in seconds, and how long a process may take to end
# after its pipe
_LOOK, _GRACE = 1.0, 10.0
# The limit of a piece is this multiple of its share of the part's rows, and at least a second
_SLACK, _LEAST = 10.0, 1.0
# SIGTERM ends a process for good where there is no SIGKILL (Windows)
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
# Exit code of a worker that took too much memory, seconds between two looks at it, and what a worker answers
# whose memory may be short by earlier parts
_TOO_LARGE, _GLANCE, _AGAIN = 86, 0.02, "again, by a new process"
# Arrow's usual allocator reserves a gigabyte, which counts
_SPARING = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
# Without a limit a part hangs if it takes this number of times the slowest part before it, and ten minutes
_HANGS, _LONG = 50.0, 600.0
# The search for the rows of a part that hang may take this number of time limits
_SEARCH = 20.0


@dataclass(frozen=True)
class _Task:
    """A part without its rows at fault; with ``rows`` set, a trial of these rows of the part."""

    part: Part
    seconds: float | None
    faults: dict[int, str] = field(default_factory=dict)
    rows: range | None = None


@dataclass
class _Search:
    """The search for rows of a part that hang or end their worker: pieces to be tried, and rows so far."""

    part: Part
    timeout: float | None
    pieces: list[range]
    faults: dict[int, str] = field(default_factory=dict)
    spent: float = 0.0
    deaths: int = 0

    @classmethod
    def of(cls, part: Part, timeout: float | None) -> _Search:
        return cls(part, timeout, _halves(range(part.num_rows)))

    def next(self) -> _Task:
        limit = self.timeout
        if not self.pieces:
            return _Task(self.part, None if limit is None else limit + 2 * self.spent, self.faults)
        rows = self.pieces.pop()
        if limit is not None and len(rows) > 1:
            # short limits only guide the search: a row is an error only if it takes the whole limit by itself
            limit = min(limit, max(_LEAST, _SLACK * limit * len(rows) / self.part.num_rows))
        return _Task(self.part, limit, rows=rows)

    def add_late(self, rows: range, seconds: float) -> None:
        self.spent += seconds
        over = self.timeout is not None and self.spent > _SEARCH * self.timeout
        self._divide(rows, "TimeoutError", f"takes longer than {seconds:.3g} seconds", "takes too long", over)

    def add_death(self, rows: range, seconds: float, end: str) -> None:
        self.spent += seconds
        self.deaths += 1
        text = f"ends its worker ({end})"
        self._divide(rows, "ModelError", text, text, self.deaths >= _MOST_DEATHS)

    def _divide(self, rows: range, kind: str, alone: str, among: str, over: bool) -> None:
        if len(rows) == 1:
            self.faults[rows[0]] = f"{kind}: the row alone {alone}"
        elif over:
            text = f"{kind}: this row or one of {len(rows) - 1} beside it {among}; not searched further"
            self.faults |= dict.fromkeys(rows, text)
        else:
            self.pieces += reversed(_halves(rows))


def _halves(rows: range) -> list[range]:
    half = (len(rows) + 1) // 2
    return [piece for piece in (rows[:half], rows[half:]) if piece]


def loaded(content: bytes, limits: Cluster, threads: int) -> Any:
    """Return what was pickled, in a worker of another engine; with limits, a process computes its parts."""
    set_threads(threads)
    if not limits.has_limits:
        return unpickled(content)
    current_process().daemon = False  # Dask's workers are daemons, which may not have children
    return WorkerPool(content, iter(()), Cluster(timeout=limits.timeout, memory=limits.memory, cores=threads))


def run(work: Work, parts: Iterable[Part], cluster: Cluster) -> Generator[PartRecord]:
    # one worker is this process, unless it has limits, or is ``supervised``
    if cluster.workers == 1 and not cluster.has_limits and not cluster.supervised:
        yield from map(work, parts)
        return
    with closing(WorkerPool(work.to_bytes(), iter(parts), cluster)) as pool:
        yield from pool.records()


def exit_text(code: int | None) -> str:
    if code == _TOO_LARGE:
        return "it takes more than --memory-per-worker"
    if code is None or code >= 0:
        return "its pipe was closed" if code is None else f"exit code {code}"
    try:
        name = f"signal {-code}, {signal.Signals(-code).name}"
    except ValueError:
        name = f"signal {-code}"
    return f"{name}, as when memory runs out" if -code == _KILL else name


class _Worker:
    """A process, its pipe, and its task, which is None until the process is ready and between two tasks."""

    def __init__(self, content: bytes, cluster: Cluster) -> None:
        from joblib.externals.loky.backend import get_context

        context = get_context("loky")
        self.pipe, theirs = context.Pipe()
        arguments = (theirs, content, os.getpid(), cluster.threads, cluster.memory)
        env = {} if cluster.memory is None else _SPARING
        self.process = context.Process(target=_serve, args=arguments, env=env)
        self.process.start()
        theirs.close()
        self.task: _Task | None = None
        self.start = monotonic()

    def do(self, task: _Task) -> None:
        self.task, self.start = task, monotonic()
        with suppress(BrokenPipeError, ConnectionResetError):  # dead: the next read from its pipe shows it
            self.pipe.send(task)

    @property
    def seconds(self) -> float:
        return monotonic() - self.start

    @property
    def remaining(self) -> float:
        if self.task is None or self.task.seconds is None:
            return inf
        return self.task.seconds - self.seconds

    def answer(self) -> Any:
        # raises EOFError or ConnectionResetError if it died without one
        if not self.pipe.poll():
            raise EOFError
        return self.pipe.recv()

    def kill(self) -> None:
        if self.process.exitcode is None:
            os.kill(self.process.pid, _KILL)
        self.process.join()
        self.pipe.close()


class WorkerPool:
    def __init__(self, content: bytes, parts: Iterator[Part], cluster: Cluster) -> None:
        self._content = content
        self._parts = parts
        self._cluster = cluster
        self._waiting: deque[_Task] = deque()
        self._searches: dict[int, _Search] = {}
        self._early_deaths = 0
        self._deaths: Counter[tuple[int, range | None]] = Counter()
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._slowest: float | None = None  # seconds of a part that was finished

    def __call__(self, part: Part) -> PartRecord:
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
            for worker in [*self._workers]:
                if worker.remaining <= 0:
                    self._replace(worker)
                    self._note_lateness(worker)
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
            self._idle.pop().do(self._limited(self._waiting.popleft()))
            if not self._waiting:
                self._fetch()

    def _limited(self, task: _Task) -> _Task:
        """A whole part with a limit of time, as soon as another part has taken some."""
        if task.seconds is not None or task.rows is not None or self._slowest is None:
            return task
        return replace(task, seconds=max(_LONG, _HANGS * self._slowest))

    def _ready(self) -> list[_Worker]:
        """Wait a second at most until a worker has answered, died, or is late; not those that are late."""
        busy = {worker.pipe: worker for worker in self._workers if worker not in self._idle}
        limits = [max(0.0, worker.remaining) for worker in busy.values()]
        ready = [busy[pipe] for pipe in wait([*busy], min([_LOOK, *limits]))]
        # processes that the model started may keep the pipe of a dead worker open
        dead = [worker for worker in busy.values() if worker.process.exitcode is not None]
        return ready + [worker for worker in dead if worker not in ready]

    def _receive(self, worker: _Worker) -> PartRecord | None:
        try:
            answer = worker.answer()
        except (EOFError, ConnectionResetError):
            worker.process.join(_GRACE)
            end = exit_text(worker.process.exitcode)
            self._replace(worker)
            self._note_death(worker, end)
            return None
        if isinstance(answer, Exception):
            raise answer
        if answer == _AGAIN:
            self._waiting.appendleft(cast("_Task", worker.task))
            self._replace(worker)
            return None
        task, worker.task = worker.task, None
        self._idle.append(worker)
        if task is None:
            self._early_deaths = 0
        elif task.rows is not None:
            search = self._searches[task.part.number]
            search.spent += worker.seconds
            self._waiting.appendleft(search.next())
        if not isinstance(answer, PartRecord):
            return None
        self._slowest = max(self._slowest or 0.0, worker.seconds)
        return answer

    def _replace(self, worker: _Worker) -> None:
        worker.kill()
        self._workers[self._workers.index(worker)] = _Worker(self._content, self._cluster)

    def _note_death(self, worker: _Worker, end: str) -> None:
        task = worker.task
        if task is None:
            self._early_deaths += 1
            if self._early_deaths == _EARLY_DEATHS:
                raise InputError(
                    f"workers ended {_EARLY_DEATHS} times before their first part ({end}): loading the model "
                    "ends the process, or a call of it on a row of the background; if memory runs out, use "
                    "fewer workers"
                )
            return
        number, rows = task.part.number, task.rows
        self._deaths[number, rows] += 1
        if (rows is None or len(rows) == 1) and self._deaths[number, rows] < _DEATHS:
            self._waiting.appendleft(task)
            return
        self._blame(
            task,
            lambda search, rows: search.add_death(rows, worker.seconds, end),
            f"part {number} ends its worker ({end}), but no row of it alone does: use fewer workers, or "
            "fewer rows a part in a new folder; finished parts are kept",
        )

    def _note_lateness(self, worker: _Worker) -> None:
        task: Any = worker.task
        self._blame(
            task,
            lambda search, rows: search.add_late(rows, task.seconds),
            f"part {task.part.number} takes longer than {task.seconds:.3g} seconds, but no row of it "
            "alone does: pass a longer --timeout, or fewer rows a part in a new folder",
        )

    def _blame(self, task: _Task, note: Callable[[_Search, range], None], as_a_whole: str) -> None:
        """Begin to search a part, or note a trial that failed; raise if the part fails without its faults."""
        number = task.part.number
        if task.rows is not None:
            note(self._searches[number], task.rows)
        elif number in self._searches:
            raise InputError(as_a_whole)
        else:
            self._searches[number] = _Search.of(task.part, task.seconds)
            self._deaths[number, None] = 0
        self._waiting.appendleft(self._searches[number].next())


def _limit_memory(limit: int) -> None:
    """Make allocations beyond a limit fail; where none can fail, end the process.

    Linux counts private memory, also what a library reserved and has not touched. macOS limits nothing: there
    a thread looks at the largest memory that was in use.
    """
    if sys.platform == "linux":
        import resource

        status = Path("/proc/self/status").read_text(encoding="ascii")
        private = 1024 * int(status.partition("VmData:")[2].split()[0])
        if private >= limit:
            raise InputError(
                f"a worker takes {private / 1e6:,.0f} MB before its first row (Python, libraries, the model, "
                f"and what they reserve), and --memory-per-worker allows {limit / 1e6:,.0f}: allow more"
            )
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(
            resource.RLIMIT_DATA, (limit if most == resource.RLIM_INFINITY else min(limit, most), most)
        )
    else:
        Thread(target=watch_peak, args=(limit,), daemon=True).start()


def watch_peak(limit: int) -> None:
    """End this process soon after its memory in use was beyond a limit."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    while unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss <= limit:
        sleep(_GLANCE)
    os._exit(_TOO_LARGE)


def _lacked_memory(lines: Any) -> bool:
    """Whether a row's error is one of memory."""
    return any("MemoryError" in text for text in lines["error"].drop_null().unique().to_pylist())


def _serve(pipe: Connection[Any, Any], content: bytes, driver: int, threads: int, memory: int | None) -> None:
    """Compute the driver's tasks; ignore Ctrl-C, which the driver handles, and end with the driver."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    set_threads(threads)
    own_process()

    def watch() -> None:
        while os.getppid() == driver:
            sleep(_LOOK)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the driver is dead
        try:
            work: Work = unpickled(content)
            work.warm_up()
            if memory is not None:
                _limit_memory(memory)
            answer: PartRecord | str | None = None  # ready: loading takes none of the first part's time
            is_new = True
            while True:
                pipe.send(answer)
                task, answer = pipe.recv(), None
                if task.rows is not None:
                    work.attempt(task.part, task.rows)
                    continue
                lines = work.explained(task.part, task.faults)
                if memory is not None and not is_new and _lacked_memory(lines):
                    answer = _AGAIN  # what earlier parts left in memory is no fault of a row
                else:
                    answer, is_new = work.finish(task.part, lines), False
        except FAILURES as error:  # it is the driver's to raise
            pipe.send(_sendable(error))


def _sendable(error: BaseException) -> Exception:
    import pickle

    try:
        if isinstance(error, Exception):
            pickle.loads(pickle.dumps(error))  # noqa: S301 - made a moment ago
            str(error)
            return error
    except FAILURES:  # whatever a model's own exception does
        pass
    return RuntimeError(f"{type(error).__name__}: {text_of(error)}")
