"""Explanations of files: an engine computes the missing parts, finished parts are recorded and summed up."""

from __future__ import annotations

from limes._checks import require

require("pyarrow", "limes.scale for files", package="'limes[scale]'")

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from limes._checks import check_count, check_size
from limes.exceptions import InputError
from limes.scale._engines import THIS_PROCESS, Cluster, engine_of
from limes.scale._frames import Explainer
from limes.scale._heartbeat import Heartbeat
from limes.scale._keys import repeated_keys
from limes.scale._parts import Folder, PartRecord, run_name
from limes.scale._sources import Part, Source
from limes.scale._stores import Place, absolute, place_of
from limes.scale._tally import NOTHING
from limes.scale._work import Work


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

    Raises
    ------
    InputError
        The table, an option or the folder is not usable, or there are too many errors; finished parts are
        kept.
    MissingLibraryError
        If the engine's library is not installed.
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
    """Yield the parts into which the table is cut, and note the rows of each."""
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
