"""From files to files: what is not done yet is given to an engine, and written down when it is done."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from limes._checks import check_count
from limes.exceptions import InputError
from limes.scale.engines import HERE, Cluster, engine_of
from limes.scale.frames import Explainer
from limes.scale.keys import repeated
from limes.scale.parts import Done, Folder
from limes.scale.sources import Source
from limes.scale.tally import NOTHING
from limes.scale.work import work_of


@dataclass(frozen=True)
class Summary:
    """What a folder holds.

    Attributes
    ----------
    rows, errors : int
        Rows, and those among them that have no explanation.
    reason : str
        The first error; empty where there is none.
    resumed : int
        Rows that had been done before.
    distinct : int
        Explanations that differ in some coefficient.
    counted : bool
        Whether ``distinct`` is exact; else it has a standard error of 3 %.
    mean_size : mapping
        Mean |β| of each column over all rows and outputs, in the output's units.
    repeated : str
        Rows that share their keys, in words; empty where there are none.
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
    cluster: Cluster = HERE,
    max_errors: float = 1.0,
    progress: bool = True,
) -> Summary:
    """Explain every row of a table in files into a folder of Parquet files; begun work is gone on with.

    Each part has the columns of `limes.scale.explain_frame`, after ``row``, its number in the table from 0,
    and the keys. ``run`` says what makes these explanations these (model, background, options): a folder
    takes explanations of one run only. When more than the share ``max_errors`` of the rows that are done have
    no explanation, the run ends.

    Raises
    ------
    InputError
        The table, an option or the folder is not usable, or there are too many errors; what was done before
        stays done.
    MissingLibraryError
        If the engine's library is not installed.
    """
    do = engine_of(engine)
    if not 0 <= max_errors <= 1:
        raise InputError(f"max_errors={max_errors!r} must be a share of the rows, from 0 to 1")
    check_count("workers", cluster.workers)
    step, folder = check_count("rows_per_part", rows_per_part), Folder(Path(out).absolute())
    work = work_of(explainer, folder, source.schema, layout=layout, keys=keys)
    shape = {"layout": layout, "keys": list(keys), "rows_per_part": step}
    with folder.opened({**run, "input": source.fingerprint, "output": shape}):
        done = folder.done()
        so_far = _Errors(folder, max_errors)
        so_far.add(done.values())
        resumed = so_far.rows
        left = (part for part in source.parts(step, work.columns) if part.number not in done)
        with tqdm(**_bar(source, resumed), disable=not progress) as bar:
            for one in do(work, left, cluster):
                folder.note(one)
                done[one.part] = one
                bar.update(one.rows)
                so_far.add([one])
        return _summary(folder, done, resumed, keys)


def _bar(source: Source, resumed: int) -> dict[str, Any]:
    total = max(source.likely_rows, resumed)
    return {"total": total, "initial": resumed, "unit": " rows", "unit_scale": True, "desc": "explaining"}


class _Errors:
    """Rows and errors so far; too large a share of errors ends the run."""

    def __init__(self, folder: Folder, most: float) -> None:
        self._folder = folder
        self._most = most
        self.rows = self.errors = 0

    def add(self, done: Collection[Done]) -> None:
        self.rows += sum(one.rows for one in done)
        self.errors += sum(one.errors for one in done)
        if self.errors > self._most * self.rows:
            reason = next(one.tally.reason for one in done if one.errors)
            raise InputError(
                f"{self.errors:,} of {self.rows:,} rows have no explanation, more than was allowed. One "
                f"says: {reason}. What was done is in {self._folder.path}: mend the cause, or allow more and "
                "run again"
            )


def _summary(folder: Folder, done: Mapping[int, Done], resumed: int, keys: Sequence[str]) -> Summary:
    # in the order of parts, so that it does not matter which was done first
    tally = reduce(add, (done[number].tally for number in sorted(done)), NOTHING)
    if not tally.rows:
        raise InputError("the table has no rows")
    distinct, counted = tally.distinct
    paths = [folder.part(number) for number in sorted(done)]
    return Summary(
        rows=tally.rows,
        errors=tally.errors,
        reason=tally.reason,
        resumed=resumed,
        distinct=distinct,
        counted=counted,
        mean_size=tally.mean_sizes,
        repeated=repeated(paths, keys, tally.rows),
    )
