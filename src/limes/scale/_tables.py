"""Explanations of files: an engine computes the missing parts, finished parts are recorded and summed up.

An engine is a function ``run(work, parts, cluster)`` that takes parts as it needs them and yields their
records, in any order. It may compute a part twice, for example after the death of a worker: both times the
file is the same. `limes.scale._processes` runs processes of this machine; the other engines are
`limes.scale.dask` and `limes.scale.spark`.
"""

from __future__ import annotations

from limes._checks import require

require("pyarrow", "limes.scale for files", package="'limes[scale]'")

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from operator import add
from threading import Event, Thread
from time import monotonic
from typing import Any, TypeAlias

from limes._checks import check_choice, check_count, check_size
from limes._threads import tqdm_class
from limes.exceptions import InputError
from limes.scale._frames import Explainer
from limes.scale._keys import repeated_keys
from limes.scale._parts import NOTHING, Folder, PartRecord, run_name
from limes.scale._sources import Part, Source
from limes.scale._stores import Place, absolute, place_of
from limes.scale._work import Work


@dataclass(frozen=True)
class Cluster:
    """The machines and processes that run workers.

    Attributes
    ----------
    workers
        Processes that are started on this machine; ignored if ``scheduler`` is given.
    scheduler
        Address of a running cluster, as its library writes it; None: this machine.
    timeout
        Seconds that a part may take; then its rows that hang are reported as errors. None: no limit.
    cores
        Threads of a worker; None: its share of the cores of this machine.
    supervised
        Whether a single worker on this machine is a separate process, whose death the driver survives.
    """

    workers: int = 1
    scheduler: str | None = None
    timeout: float | None = None
    cores: int | None = None
    supervised: bool = False

    @property
    def threads(self) -> int:
        """Threads of a worker on this machine, so that together they have a core each.

        Cores are those that this process may use, by affinity and by the limit of its container.
        """
        if self.cores is not None:
            return self.cores
        from joblib import cpu_count

        return max(1, int(cpu_count()) // self.workers)


# Only the process that calls
THIS_PROCESS = Cluster()

Engine: TypeAlias = Callable[[Work, Iterable[Part], Cluster], Iterator[PartRecord]]

# Modules, imported when they are chosen: the library of an engine is needed only if that is used
_MODULES = {"local": "limes.scale._processes", "dask": "limes.scale.dask", "spark": "limes.scale.spark"}


def engine_of(name: str) -> Engine:
    """Find an engine."""
    run: Engine = import_module(_MODULES[check_choice("engine", name, tuple(_MODULES))]).run
    return run


# Seconds between two beats in a terminal or notebook, and in a log
_TERMINAL, _LOG = 1.0, 30.0


class Heartbeat:
    """A progress bar of rows, as a context, with the oldest part that is not finished.

    The line is written again every second, also while no part is finished, so that a part that hangs is seen
    by its time. Engines take parts ahead, two for each core at most: the time includes the wait for a worker.
    """

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


@dataclass(frozen=True)
class RunSummary:
    """Counts of a folder's rows and explanations.

    Attributes
    ----------
    rows, errors : int
        Numbers of rows, and of rows without an explanation.
    reason : str
        The first error; empty where all rows have an explanation.
    resumed : int
        Rows of parts that an earlier run had finished.
    distinct : int
        Explanations that differ in some coefficient.
    counted : bool
        Whether ``distinct`` is exact; else it has a standard error of 3 %.
    mean_size : mapping
        Mean |β| of each column over all rows and outputs, in the output's units.
    repeated : str
        Rows that share their keys, in words; empty if keys are unique.
    """

    rows: int
    errors: int
    reason: str
    resumed: int
    distinct: int
    counted: bool
    mean_size: Mapping[str, float]
    repeated: str


def explain_files(
    source: Source,
    explainer: Explainer,
    out: str | Place,
    *,
    run: Mapping[str, Any],
    layout: str = "wide",
    keys: Sequence[str] = (),
    rows_per_part: int = 50_000,
    engine: str = "local",
    cluster: Cluster = THIS_PROCESS,
    max_errors: float = 0.5,
    progress: bool = True,
) -> RunSummary:
    """Explain every row of a table in files into a folder of Parquet files; resume an interrupted run.

    Each part has the columns of `limes.scale.explain_frame`, after ``row``, its number in the table from 0,
    and the keys. ``run`` holds the inputs that determine the explanations (model, background, options): a
    folder accepts explanations of one run only. When more than the share ``max_errors`` of the rows so far
    have no explanation, the run ends.
    """
    do = engine_of(engine)
    if not 0 <= max_errors <= 1:
        raise InputError(f"max_errors={max_errors!r} must be a share of the rows, from 0 to 1")
    check_count("workers", cluster.workers)
    if cluster.timeout is not None:
        check_size("timeout", cluster.timeout)
    step, folder = check_count("rows_per_part", rows_per_part), Folder(absolute(place_of(out)))
    if folder.path.is_file():
        raise InputError(f"{folder.path} is a file: pass a folder for the parts")
    source.refuse_output(folder.path)
    shape: dict[str, Any] = {"layout": layout, "keys": list(keys), "rows_per_part": step}
    if keys and source.is_csv:
        shape["keys_are"] = "text"
    run = {**run, "input": source.fingerprint, "output": shape}
    work = Work.plan(explainer, folder, source, run=run_name(run), layout=layout, keys=keys)
    with folder.opened(run) as finished:
        limit = _ErrorLimit(folder, max_errors)
        limit.add(finished.values())
        resumed = limit.rows
        plan: dict[int, int] = {}
        parts = _counted(source.parts(step, work.columns), plan)
        missing = (part for part in parts if part.number not in finished)
        with Heartbeat(max(source.likely_rows, resumed), resumed, show=progress) as heartbeat:
            for record in do(work, heartbeat.begun(missing), cluster):
                folder.append(record)
                finished[record.part] = record
                heartbeat.add(record)
                limit.add([record])
        deque(parts, maxlen=0)  # those that the engine did not take
        _check_plan(plan, finished)
        summary = _summary(folder, finished, resumed, keys)
        folder.finish(finished, work.run)
        return summary


def _counted(parts: Iterable[Part], plan: dict[int, int]) -> Iterator[Part]:
    for part in parts:
        plan[part.number] = part.num_rows
        yield part


def _check_plan(plan: Mapping[int, int], finished: Mapping[int, PartRecord]) -> None:
    """Raise InputError unless each part of the plan is finished, with all its rows, and no other is."""
    rows = {number: record.rows for number, record in finished.items()}
    wrong = sorted(number for number, _ in plan.items() ^ rows.items())
    if wrong:
        raise InputError(
            f"part {wrong[0]} has {rows.get(wrong[0], 0):,} rows in place of {plan.get(wrong[0], 0):,}, "
            "though no error was reported: run the same command again, or start again in another folder"
        )


class _ErrorLimit:
    """Rows and errors so far; too large a share of errors ends the run."""

    def __init__(self, folder: Folder, largest: float) -> None:
        self._folder = folder
        self._largest = largest
        self._reason = ""
        self.rows = self.errors = 0

    def add(self, records: Iterable[PartRecord]) -> None:
        for record in records:
            self.rows += record.rows
            self.errors += record.errors
            self._reason = self._reason or record.tally.reason
        if self.errors > self._largest * self.rows:
            raise InputError(
                f"{self.errors:,} of {self.rows:,} rows have no explanation, more than was allowed. The "
                f"first error: {self._reason}. Finished parts are in {self._folder.path}: correct the cause, "
                "or allow more errors, and run again"
            )


def _summary(
    folder: Folder, finished: Mapping[int, PartRecord], resumed: int, keys: Sequence[str]
) -> RunSummary:
    # in the order of parts, whichever was finished first: sums of floats depend on their order
    tally = reduce(add, (finished[number].tally for number in sorted(finished)), NOTHING)
    if not tally.rows:
        raise InputError("the table has no rows")
    distinct, counted = tally.distinct
    return RunSummary(
        rows=tally.rows,
        errors=tally.errors,
        reason=tally.reason,
        resumed=resumed,
        distinct=distinct,
        counted=counted,
        mean_size=tally.mean_sizes,
        repeated=repeated_keys(folder, sorted(finished), keys, tally.rows),
    )
