"""Explanations of files: workers read, explain and write parts, and an engine runs them.

An engine is a function ``run(work, parts, cluster)`` that takes parts as it needs them and yields their
records, in any order. It may compute a part twice, for example after the death of a worker: both times the
file is the same. `limes.scale._processes` runs processes of this machine; the other engines are
`limes.scale.dask` and `limes.scale.spark`.
"""

from __future__ import annotations

import pickle
import re
import sys
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property, reduce
from hashlib import sha256
from importlib import import_module
from operator import add
from threading import Event, Thread
from time import monotonic
from typing import Any, NoReturn, TypeAlias

import cloudpickle
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from limes import __version__
from limes._checks import check_choice, check_count, check_size
from limes._explanation.wording import shorten
from limes._threads import bars_are_live, tqdm_class, workers
from limes.exceptions import InputError, LimesError, ModelError
from limes.models._calling.border import FAILURES, failure_text
from limes.scale._frames import (
    UNREADABLE,
    Explainer,
    Outputs,
    Wanted,
    account_of,
    check_columns,
    check_keys,
    error_kind,
    error_text,
    explain_frame,
    schema_of,
)
from limes.scale._parts import (
    NOTHING,
    Folder,
    Increment,
    PartRecord,
    Tally,
    changed_settings,
    key_hashes,
    part_bytes,
    repeated_keys,
    run_name,
    writing,
)
from limes.scale._sources import Part, Source
from limes.scale._stores import Place, place_of, write_whole
from limes.scale._typed import typed

# Starts every pickle with the version of limes: another version refuses it
_HEADER = f"limes {__version__}\n".encode()


def pickled(work: Work | Explainer) -> bytes:
    try:
        content: bytes = _HEADER + cloudpickle.dumps(work)
    except FAILURES as error:
        raise InputError(
            f"the model cannot be sent to other processes (it {failure_text(error)}): use one worker, "
            "engine='local', or limes.scale.explain_frame"
        ) from error
    return content


def unpickled(content: bytes) -> Any:
    """Unpickle what `pickled` returned; it runs code, so the bytes must come from this program."""
    if not content.startswith(_HEADER):
        sender = content[: content.find(b"\n")].decode(errors="replace")
        raise InputError(
            f"a worker has {_HEADER.decode().strip()}, and the program that sent the model has "
            f"{shorten(sender, 40)}: install one version of limes everywhere"
        )
    try:
        return pickle.loads(memoryview(content)[len(_HEADER) :])  # noqa: S301 - this program made it
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"a worker cannot load the model ({error}): install limes, the model's library and your own "
            "modules where workers run"
        ) from error
    except FAILURES as error:
        raise InputError(
            f"a worker cannot load the model: it {failure_text(error)}; use one worker, or engine='local'"
        ) from error


@dataclass(frozen=True)
class Work:
    """The function from a part to a file of explanations; it is sent to each worker once."""

    explainer: Explainer
    folder: Folder
    run: str  # name of the run, which each part states
    schema: pa.Schema  # of the features
    key_schema: pa.Schema  # of the columns that are copied to the result, beside the number of the row
    layout: str
    contributions: Wanted
    outputs: Outputs
    fit: bool

    @property
    def keys(self) -> list[str]:
        return list(self.key_schema.names)

    @property
    def columns(self) -> list[str]:  # that are read
        return [*dict.fromkeys([*self.keys, *self.schema.names])]

    @cached_property
    def result(self) -> pa.Schema:
        return self._explain(self.schema.empty_table(), self.key_schema.empty_table(), {}, 0).schema

    def to_bytes(self) -> bytes:
        # a model that fails is reported row by row, by those who explain the rows
        with suppress(ModelError):
            self.explainer.fill_pool(progress=False)
        return pickled(self)

    def __call__(self, part: Part, faults: Mapping[int, str] | None = None) -> PartRecord:
        """Explain a part and put its file in place; rows among the ``faults`` have the error stated there."""
        return self.finish(part, self.explained(part, faults or {}))

    def explained(self, part: Part, faults: Mapping[int, str]) -> pa.Table:
        with _in_memory(part):
            rows, keys, reasons = self._read(part)
            return self._explain(rows, keys, reasons | {**faults}, part.first)

    def finish(self, part: Part, lines: pa.Table) -> PartRecord:
        tally = Tally.count(lines, self.explainer.feature_names, part.num_rows)
        return PartRecord(part.number, self._write(lines, part.number), tally)

    def warm_up(self) -> None:
        """Import and prepare what the first row needs, by a row of the background."""
        self.background_error()  # reported row by row, as above

    def background_error(self) -> str:
        """Explain a row of the background, and return why it failed; empty if it did not."""
        try:
            self.explainer.reproducible(self.explainer._typical_row(), progress=False)  # noqa: SLF001
        except LimesError as error:
            return error_text(f"{type(error).__name__}: {error}")
        return ""

    def attempt(self, part: Part, rows: range) -> None:
        """Explain some rows of a part, to see how long it takes."""
        with _in_memory(part):
            table, _, reasons = self._read(part)
            good = pa.array([row for row in rows if row not in reasons], pa.int64())
            self._lines(table.take(good))

    def _read(self, part: Part) -> tuple[pa.Table, pa.Table, dict[int, str]]:
        """Read features and keys of a part; rows that cannot be read are null, and have a reason."""
        loose = [name for name in self.schema.names if name not in self.keys]
        reasons: dict[int, str] = {}
        tables, first = [], 0
        for chunk in part.read(self.columns):
            rows, wrong = typed(chunk, self.schema, loose)
            keys, wrong_keys = typed(chunk, self.key_schema, (), verbatim=True)
            tables.append((rows, keys))
            reasons |= {first + position: reason for position, reason in (wrong_keys | wrong).items()}
            first += chunk.num_rows
        rows, keys = (
            pa.concat_tables(pieces, promote_options="permissive") for pieces in zip(*tables, strict=True)
        )
        return rows, keys, reasons

    def _explain(self, rows: pa.Table, keys: pa.Table, reasons: Mapping[int, str], first: int) -> pa.Table:
        good = pa.array(np.setdiff1d(np.arange(rows.num_rows), [*reasons]), pa.int64())
        lines = self._lines(rows.take(good) if reasons else rows)
        columns = _identify(keys, good.take(lines["row"]), first)
        explained = pa.table(columns | {name: lines[name] for name in lines.column_names[1:]})
        if not reasons:
            return explained
        positions = pa.array([*reasons], pa.int64())
        columns = _identify(keys, positions, first)
        columns["error"] = pa.array(map(error_text, reasons.values()), self.result.field("error").type)
        nulls = {field.name: pa.nulls(len(positions), field.type) for field in self.result}
        return pa.concat_tables([explained, pa.table(nulls | columns)]).sort_by("row")

    def _lines(self, rows: pa.Table) -> pa.Table:
        options: dict[str, Any] = {"contributions": self.contributions, "outputs": self.outputs}
        options["fit"] = self.fit
        table: pa.Table = explain_frame(self.explainer, rows, self.layout, **options)
        return table

    def _write(self, lines: pa.Table, number: int) -> str:
        """Put a part in place, after the hashes of its keys; return its checksum."""
        content = part_bytes(lines, self.run)
        self.folder.check_run(self.run)
        with writing(self.folder.path):
            if self.keys:
                self.folder.write_keys(number, key_hashes(lines, self.keys)[1])
            write_whole(self.folder.part(number), content)
        return sha256(content).hexdigest()


@contextmanager
def _in_memory(part: Part) -> Iterator[None]:
    """Make lack of memory an error that states what to do; of a model's it is its row's error."""
    try:
        yield
    except MemoryError as error:
        raise InputError(
            f"part {part.number}, {part.num_rows:,} rows, needs more memory than its process may take "
            f"({error}): allow more (--memory-per-worker), or use fewer rows a part in a new folder. "
            "Finished parts are kept"
        ) from error


def _identify(keys: pa.Table, positions: pa.Array, first: int) -> dict[str, pa.Array]:
    return {"row": pc.add(positions, first)} | {
        name: keys[name].take(positions) for name in keys.column_names
    }


@dataclass(frozen=True)
class Cluster:
    workers: int = 1  # processes that are started on this machine; ignored if there is a scheduler
    scheduler: str | None = None  # address of a running cluster, as its library writes it
    timeout: float | None = None  # seconds that a part may take; then its rows that hang are errors
    cores: int | None = None  # threads of a worker; None: its share of the cores of this machine
    memory: int | None = None  # bytes that a worker may take; then the rows that need more are errors
    supervised: bool = False  # a single worker here is a separate process, whose death the driver survives

    @property
    def has_limits(self) -> bool:
        """Whether parts need a separate process, which another one watches."""
        return self.timeout is not None or self.memory is not None

    @property
    def threads(self) -> int:
        """Threads of a worker on this machine, so that together they have a core each."""
        return max(1, workers() // self.workers) if self.cores is None else self.cores


# Only the process that calls
THIS_PROCESS = Cluster()

Engine: TypeAlias = Callable[[Work, Iterable[Part], Cluster], Generator[PartRecord]]

# Modules, imported when they are chosen: the library of an engine is needed only if that is used
_MODULES = {"local": "limes.scale._processes", "dask": "limes.scale.dask", "spark": "limes.scale.spark"}


def engine_of(name: str) -> Engine:
    run: Engine = import_module(_MODULES[check_choice("engine", name, tuple(_MODULES))]).run
    return run


# Seconds between two beats in a terminal or notebook, and in a log
_TERMINAL, _LOG = 1.0, 30.0


class Heartbeat:
    """Progress in rows, as a context, with the oldest part that is not finished.

    In a terminal or notebook it is a bar, written again every second, also while no part is finished, so that
    a part that hangs is seen by its time. Elsewhere it is a line every half minute and one at the end, with
    the time, since a bar's carriage returns make one endless line of a log. Engines take parts ahead, two for
    each core at most: the time includes the wait for a worker.
    """

    def __init__(self, total: int, finished: int, *, show: bool) -> None:
        self._is_log = not bars_are_live()
        self._interval = _LOG if self._is_log else _TERMINAL
        self._show = show
        self._began: dict[int, float] = {}
        self._start, self._total, self._resumed = monotonic(), total, finished
        self._rows = finished
        self._errors = 0
        self._stop = Event()
        self._thread = Thread(target=self._beat, daemon=True)
        options: dict[str, Any] = {"unit": " rows", "unit_scale": True, "desc": "explaining"}
        self._bar = tqdm_class()(total=total, initial=finished, disable=self._is_log or not show, **options)

    def __enter__(self) -> Heartbeat:
        if self._show:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._show:
            self._thread.join()
            self._write()  # not what was under way at the last beat
        self._bar.close()

    def begun(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Yield the parts, and start the clock of each as an engine takes it."""
        for part in parts:
            self._began[part.number] = monotonic()
            yield part

    def add(self, record: PartRecord) -> None:
        self._began.pop(record.part, None)
        self._errors += record.errors
        self._rows += record.rows
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
            self._write()

    def _write(self) -> None:
        if self._is_log:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            with suppress(AttributeError, OSError, ValueError):  # a model may close it, or set it to None
                sys.stderr.write(f"{now} limes: {self.line()}\n")
                sys.stderr.flush()
        else:
            self._bar.set_postfix_str(self.at_work())

    def line(self) -> str:
        """Describe progress for a log, such as "500 of 2,000 rows (25%), 100 rows/s, 15 s left"."""
        total = max(self._total, self._rows)  # that of CSV is estimated
        pace = (self._rows - self._resumed) / max(monotonic() - self._start, 1e-9)
        texts = [
            f"{self._rows:,} of {total:,} rows ({self._rows / max(total, 1):.0%})",
            f"{pace:,.0f} rows/s",
        ]
        if pace and total > self._rows:
            texts.append(f"{(total - self._rows) / pace:,.0f} s left")
        return ", ".join(filter(None, [*texts, self.at_work()]))


@dataclass(frozen=True)
class RunSummary(Tally):
    """Counts of a folder's rows and explanations."""

    resumed: int  # rows of parts that an earlier run had finished
    repeated: str  # rows that share their keys, in words; empty if keys are unique
    increment: Increment | None = None  # the earlier run that this one continues, and what is new
    differences: tuple[str, ...] = ()  # from that run, but for the rows


def explain_files(
    source: Source,
    explainer: Explainer,
    out: str | Place,
    *,
    run: Mapping[str, Any],
    layout: str = "wide",
    keys: Sequence[str] = (),
    contributions: Wanted = "auto",
    outputs: Outputs = "shown",
    fit: bool = True,
    rows_per_part: int = 50_000,
    engine: str = "local",
    cluster: Cluster = THIS_PROCESS,
    max_errors: float | str = 0.5,
    since: str | Place | None = None,
    progress: bool = True,
) -> RunSummary:
    """Explain every row of a table in files into a folder of Parquet files; resume an interrupted run.

    Each part has the columns of `limes.scale.explain_frame`, after ``row``, its number in the table from 0,
    and the keys. ``run`` holds the inputs that determine the explanations (model, background, options): a
    folder accepts explanations of one run only. When more rows than the share ``max_errors`` of the table,
    0.01 or "1%", have no explanation, the run ends; and it ends at once where the model fails on all rows.

    ``since`` is the folder of a finished run: only files that neither it nor those before it explained are
    explained, and rows are numbered on. No new file: a finished folder without rows.
    """
    do = engine_of(engine)
    check_share_of_rows("max_errors", max_errors)
    check_count("workers", cluster.workers)
    if cluster.timeout is not None:
        check_size("timeout", cluster.timeout)
    if cluster.memory is not None and sys.platform not in ("linux", "darwin"):
        raise InputError(
            f"--memory-per-worker is for Linux and macOS, and this is {sys.platform}: leave it out, and "
            "limit the container or the job that runs the command"
        )
    step, folder = check_count("rows_per_part", rows_per_part), Folder(place_of(out).absolute())
    if folder.path.is_file():
        raise InputError(f"{folder.path} is a file: pass a folder for the parts")
    earlier = None if since is None else Folder(place_of(since).absolute())
    source.refuse_output(folder.path)
    account = account_of(explainer, contributions)
    shape: dict[str, Any] = {"layout": layout, "keys": list(keys), "rows_per_part": step}
    shape |= {"contributions": account, "outputs": outputs} | ({} if fit else {"fit": False})
    if keys and source.is_csv:
        shape["keys_are"] = "text"
    increment = None if since is None else Increment.of(source, since, folder.path)
    chain: dict[str, Any] = {}
    if increment is not None:
        source, chain = increment.rest(source), {"since": increment.record}
    run = {**run, "input": source.fingerprint, **chain, "output": shape}
    check_keys(keys, {"row": None, **schema_of(explainer, layout, account, fit=fit)})
    check_columns("the table", source.schema.names, [*keys, *explainer.feature_names])
    features = pa.schema([source.schema.field(name) for name in explainer.feature_names])
    key_schema = source.schema_of_keys(keys)
    work = Work(explainer, folder, run_name(run), features, key_schema, layout, contributions, outputs, fit)
    with folder.opened(run) as finished:
        likely = source.likely_rows * (_CSV_SLACK if source.is_csv else 1)
        limit = _ErrorLimit(work, check_share_of_rows("max_errors", max_errors), likely)
        limit.add(finished.values())
        resumed = limit.rows
        plan: dict[int, int] = {}  # rows of each part
        missing = _missing(source.parts(step, work.columns), plan, finished)
        if not source.files:  # nothing that needs workers
            do, cluster = engine_of("local"), THIS_PROCESS
        with (
            Heartbeat(max(source.likely_rows, resumed), resumed, show=progress) as heartbeat,
            # workers end before the folder is left, whatever ends the run
            closing(do(work, heartbeat.begun(missing), cluster)) as records,
        ):
            for record in records:
                folder.append(record)
                finished[record.part] = record
                heartbeat.add(record)
                limit.add([record])
        deque(missing, maxlen=0)  # those that the engine did not take
        _check_plan(plan, finished)
        limit.end()
        # in the order of parts, whichever was finished first: sums of floats depend on their order
        tally = reduce(add, (finished[number].tally for number in sorted(finished)), NOTHING)
        if not tally.rows and since is None:
            raise InputError("the table has no rows")
        repeated = repeated_keys(folder, sorted(finished), keys, tally.rows)
        folder.finish(finished, work.run)
        differences = [] if earlier is None else changed_settings(earlier.run(), run)
        return RunSummary(
            **asdict(tally),
            resumed=resumed,
            repeated=repeated,
            increment=increment,
            differences=tuple(differences),
        )


def _missing(parts: Iterable[Part], plan: dict[int, int], finished: Collection[int]) -> Iterator[Part]:
    for part in parts:
        plan[part.number] = part.num_rows
        if part.number not in finished:
            yield part


def _check_plan(plan: Mapping[int, int], finished: Mapping[int, PartRecord]) -> None:
    """Each part of the plan must be finished, with all its rows, and no other may be."""
    rows = {number: record.rows for number, record in finished.items()}
    wrong = sorted(number for number, _ in plan.items() ^ rows.items())
    if wrong:
        raise InputError(
            f"part {wrong[0]} has {rows.get(wrong[0], 0):,} rows in place of {plan.get(wrong[0], 0):,}, "
            "though no error was reported: run the same command again, or start again in another folder"
        )


# Rows of CSV are estimated: before its end, a run is ended at this multiple of the share
_CSV_SLACK = 2
# Parts after which a run ends in which not a single row was explained
_HOPELESS = 10


# Bytes by unit, in small letters
_UNITS = {"": 1, "b": 1} | {
    f"{letter}{end}": base ** (i + 1)
    for i, letter in enumerate("kmgt")
    for end, base in (("", 1000), ("b", 1000), ("i", 1024), ("ib", 1024))
}


def check_memory(text: str) -> int:
    """Return a size such as 2GB, 1.5 GiB or 512Mi in bytes, or raise InputError."""
    stated = re.fullmatch(r"(\d+\.?\d*)\s*([a-z]*)", text.strip().lower())
    size = int(float(stated[1]) * _UNITS.get(stated[2], 0)) if stated else 0
    if size < 1:
        raise InputError(f"--memory-per-worker {text}: pass a size such as 2GB, 1.5GiB or 512MB")
    return size


def check_share_of_rows(name: str, value: float | str) -> float:
    """Return a share of rows, 0.01 or "1%", as a number, or raise InputError."""
    try:
        text = str(value).strip()
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = np.nan
    if not 0 <= share <= 1:
        raise InputError(f"{name}={value!r} must be a share of the rows, from 0 to 1, or such as '1%'")
    return share


class _ErrorLimit:
    """Rows and errors so far: a run ends when errors exceed their share of the whole table.

    A few bad parts may be the first that end, so that their share of the rows so far means nothing. A model
    that fails on everything is found by parts without an explanation: after the first one, a row of the
    background is tried, and if that fails too, the run ends; and it ends after ten such parts in any case.
    Parts that could not be read state nothing about the model.
    """

    def __init__(self, work: Work, largest: float, likely: int) -> None:
        self._work = work
        self._largest, self._likely = largest, likely
        self._reason = ""
        self._failed = 0  # parts that could be read, and without a single explanation
        self._tried = False  # a row of the background
        self.rows = self.errors = 0

    def add(self, records: Iterable[PartRecord]) -> None:
        for record in records:
            self.rows += record.rows
            self.errors += record.errors
            self._reason = self._reason or record.tally.reason
            self._failed += record.errors == record.rows > 0 and error_kind(record.tally.reason) != UNREADABLE
        self._check(max(self._likely, self.rows))
        if self.errors == self.rows and self._failed and self._largest < 1:
            if not self._tried and (reason := self._work.background_error()):
                self._stop(f"and the model fails on a row of the background too ({reason})")
            self._tried = True
            if self._failed >= _HOPELESS:
                self._stop(f"none in the first {self._failed} parts")

    def end(self) -> None:
        """Check the share once more, of the rows that there are."""
        self._check(self.rows)

    def _check(self, rows: int) -> None:
        if self.errors > self._largest * rows * (1 + 1e-12):  # 0.29 * 100 is less than 29
            self._stop(f"more than was allowed ({100 * self._largest:.6g}% of {rows:,})")

    def _stop(self, why: str) -> NoReturn:
        raise InputError(
            f"{self.errors:,} of {self.rows:,} rows have no explanation, {why}. The first error: "
            f"{self._reason}. Finished parts are in {self._work.folder.path}: correct the cause, or allow "
            "more errors (--max-errors 1 allows any number), and run again"
        )
