"""From files to files: hand an engine the parts that are missing, record each when it is finished, sum up."""

from __future__ import annotations

from limes._checks import require

require("pyarrow", "limes.scale for files", package="'limes[scale]'")

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from limes._checks import check_count, check_size
from limes.exceptions import InputError
from limes.scale._engines import THIS_PROCESS, Cluster, engine_of
from limes.scale._frames import Explainer
from limes.scale._heartbeat import Heartbeat
from limes.scale._parts import NOTHING, Folder, PartRecord, run_name
from limes.scale._sources import Source, local_path
from limes.scale._work import Work

# Hashes of keys held in memory, eight bytes each; repeated hashes that are looked up
_HELD, _LOOKED_UP = 1 << 22, 1000


@dataclass(frozen=True)
class Summary:
    """Counts of a folder's rows and explanations.

    Attributes
    ----------
    rows, errors : int
        Rows, and those among them that have no explanation.
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
    out: str | Path,
    *,
    run: Mapping[str, Any],
    layout: str = "wide",
    keys: Sequence[str] = (),
    rows_per_part: int = 50_000,
    engine: str = "local",
    cluster: Cluster = THIS_PROCESS,
    max_errors: float = 0.5,
    progress: bool = True,
) -> Summary:
    """Explain every row of a table in files into a folder of Parquet files; resume an interrupted run.

    Each part has the columns of `limes.scale.explain_frame`, after ``row``, its number in the table from 0,
    and the keys. ``run`` is what determines the explanations (model, background, options): a folder takes
    explanations of one run only. When more than the share ``max_errors`` of the rows so far have no
    explanation, the run ends.

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
        if engine != "local":
            raise InputError(
                f"timeout is for the engine 'local', which can end a process; got engine={engine!r}"
            )
    step, folder = check_count("rows_per_part", rows_per_part), Folder(Path(local_path(out)).absolute())
    shape = {"layout": layout, "keys": list(keys), "rows_per_part": step}
    run = {**run, "input": source.fingerprint, "output": shape}
    work = Work.plan(explainer, folder, source.schema, run=run_name(run), layout=layout, keys=keys)
    with folder.opened(run) as finished:
        limit = _ErrorLimit(folder, max_errors)
        limit.add(finished.values())
        resumed = limit.rows
        missing = (part for part in source.parts(step, work.columns) if part.number not in finished)
        with Heartbeat(max(source.likely_rows, resumed), resumed, show=progress) as heartbeat:
            for record in do(work, heartbeat.begun(missing), cluster):
                folder.append(record)
                finished[record.part] = record
                heartbeat.add(record)
                limit.add([record])
        summary = _summary(folder, finished, resumed, keys)
        folder.finish(finished, work.run)
        return summary


class _ErrorLimit:
    """Rows and errors so far; too large a share of errors ends the run."""

    def __init__(self, folder: Folder, largest: float) -> None:
        self._folder = folder
        self._largest = largest
        self.rows = self.errors = 0

    def add(self, records: Iterable[PartRecord]) -> None:
        reason = ""
        for record in records:
            self.rows += record.rows
            self.errors += record.errors
            reason = reason or record.tally.reason
        if self.errors > self._largest * self.rows:
            raise InputError(
                f"{self.errors:,} of {self.rows:,} rows have no explanation, more than was allowed. The "
                f"first error: {reason}. Finished parts are in {self._folder.path}: correct the cause, or "
                "allow more errors, and run again"
            )


def _summary(
    folder: Folder, finished: Mapping[int, PartRecord], resumed: int, keys: Sequence[str]
) -> Summary:
    # in the order of parts, whichever was finished first: sums of floats depend on their order
    tally = reduce(add, (finished[number].tally for number in sorted(finished)), NOTHING)
    if not tally.rows:
        raise InputError("the table has no rows")
    distinct, counted = tally.distinct
    paths = [folder.part(number) for number in sorted(finished)]
    return Summary(
        rows=tally.rows,
        errors=tally.errors,
        reason=tally.reason,
        resumed=resumed,
        distinct=distinct,
        counted=counted,
        mean_size=tally.mean_sizes,
        repeated=repeated_keys(paths, keys, tally.rows),
    )


def repeated_keys(paths: Sequence[Path], keys: Sequence[str], rows: int) -> str:
    """Describe rows of files of explanations that share their keys; empty if keys are unique.

    Every row's keys are hashed. Hashes are dealt out to temporary files, so that equal ones meet and a file
    fits in memory; repeated hashes are then looked up in the table, as different keys may share one.
    pyarrow's ``group_by`` is twice as fast, but holds all keys in memory, and has no hash by which to deal
    them out.
    """
    if not keys:
        return ""
    hashes, count = _repeated_hashes(paths, keys, rows)
    first: dict[Any, int] = {}
    for path in paths if hashes else ():
        for row, cells in _rows(path, keys):
            if hash(cells) in hashes and first.setdefault(cells, row) != row:
                example = ", ".join(f"{name}={cell!r}" for name, cell in zip(keys, cells, strict=True))
                return f"keys are not unique ({count:,} repeated): {example} in rows {first[cells]} and {row}"
    return ""


def _repeated_hashes(paths: Sequence[Path], keys: Sequence[str], rows: int) -> tuple[set[int], int]:
    """Hashes that repeat, at most the first ``_LOOKED_UP``; and the number of rows that repeat a hash."""
    shares = -(-rows // _HELD)
    repeats: set[int] = set()
    count = 0
    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in range(shares)]
        for path in paths:
            hashes = np.fromiter((hash(cells) for _, cells in _rows(path, keys)), np.int64)
            for i, file in enumerate(files):
                file.write(hashes[hashes % shares == i].tobytes())
        for file in files:
            file.seek(0)
            values, counts = np.unique(np.frombuffer(file.read(), np.int64), return_counts=True)
            count += int((counts - 1).sum())
            repeats |= set(values[counts > 1][: _LOOKED_UP - len(repeats)].tolist())
    return repeats, count


def _rows(path: Path, keys: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Rows of a part and their keys; a row with several lines once, and without rows that were unreadable."""
    table = pq.read_table(path, columns=["row", "error", *keys])
    row = table["row"].to_numpy()
    table = table.take(np.flatnonzero(np.diff(row, prepend=-1)))
    columns = (map(_hashable, table[key].to_pylist()) for key in keys)
    lines = zip(table["row"].to_pylist(), table["error"].to_pylist(), zip(*columns, strict=True), strict=True)
    for number, error, cells in lines:
        if error is None or cells != (None,) * len(cells):
            yield number, cells


def _hashable(cell: Any) -> Any:
    """Make lists and structs hashable."""
    if isinstance(cell, list):
        return tuple(map(_hashable, cell))
    return tuple((name, _hashable(value)) for name, value in cell.items()) if isinstance(cell, dict) else cell
