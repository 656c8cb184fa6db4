"""A folder of parts that is never wrong: whatever happens, each part is whole or missing.

A part is written beside its place, synced, and renamed into it. Only then the journal gets a line, with the
part's checksum. The parts to compute are therefore those without a line, or whose file differs from its line;
a part that is computed again has the same numbers.

    OUT/_run.json        what determines these explanations: input, model, options
    OUT/_parts.jsonl     a line a part: its number, its tally, and the file's SHA-256
    OUT/_finished.json   how many parts and rows there are, once they are all there
    OUT/_lock            held by the run at work, and free when it is dead
    OUT/_keys/           hashes of the keys of each part, if there are keys
    OUT/part-00000.parquet ...

A folder belongs to one run. Its name is the hash of ``_run.json``, and each part has it in its metadata: a
part of the same run that the journal does not list is deleted, any other is refused. Readers of the folder,
who read every part as one table, never meet the numbers of another model.

In a store there is no appending: there, each line of the journal is an object ``_parts/part-00000.json``.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b85decode, b85encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import blake2b, sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from limes._arrays import Ints
from limes._checks import SHOWN, listed
from limes._explanation.wording import count, shorten
from limes.exceptions import InputError
from limes.scale._frames import numbers_of
from limes.scale._sources import Source, is_in
from limes.scale._stores import BESIDE, Place, StorePath, checksum, locked, parsed, place_of, write_whole

# K: distinct explanations that are counted exactly; beyond, the standard error is 1 / √K, 3 %
_COUNTED = 1024
_ALL = 2.0**64
# 2^64 over the golden ratio, odd: multiples of it are spread evenly
_SPREAD = np.uint64(0x9E3779B97F4A7C15)

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Tally:
    """Number of rows, of errors, and sums of each column over the rows without an error.

    Distinct explanations are counted by their hashes, uniform on [0, 1): if the K-th smallest of the distinct
    hashes is u, there are about (K - 1) / u of them, with a relative standard error of 1 / √(K - 2); fewer
    than K are counted exactly (Beyer et al., "On synopses for distinct-value estimation under multiset
    operations", 2007, section 4). So K numbers a part are enough for a table of any length. A library's
    sketch would be a dependency in place of ten lines.
    """

    rows: int
    errors: int
    outputs: int  # of the model; 0 where no row has an explanation
    sizes: Mapping[str, float]  # sums of |β|
    # sums of |contribution| and of its errors, and how many there are; empty without contributions
    shares: Mapping[str, Sequence[float]]
    smallest: str  # the smallest hashes of explanations, eight bytes each, in base 85
    reason: str  # the first error; empty where all rows have an explanation

    @classmethod
    def count(cls, lines: pa.Table, features: Sequence[str], rows: int) -> Tally:
        good, d = lines.filter(lines["error"].is_null()), len(features)
        reasons = lines["error"].drop_null()
        errors = len(reasons)  # such rows have one line each
        frame = nw.from_native(good, eager_only=True)
        values = numbers_of(frame, "value", features)
        assert values is not None  # noqa: S101 - all tables have coefficients
        outputs = values.size // max(1, (rows - errors) * d)
        sizes = np.abs(values).sum(axis=0).tolist()
        bits = (values.reshape(rows - errors, outputs * d) + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
        by_name = dict(zip(features, sizes, strict=True))
        reason = reasons[0].as_py() if errors else ""
        shares = _sums_of_contributions(frame, features)
        return cls(rows, errors, outputs, by_name, shares, _smallest(_hashes_of_bits(bits)), reason)

    def __add__(self, other: Tally) -> Tally:
        names = {**self.sizes, **other.sizes}
        nothing = (0.0, 0.0, 0)
        return Tally(
            self.rows + other.rows,
            self.errors + other.errors,
            max(self.outputs, other.outputs),
            {name: self.sizes.get(name, 0.0) + other.sizes.get(name, 0.0) for name in names},
            {
                name: [a + b for a, b in zip(sums, other.shares.get(name, nothing), strict=True)]
                for name, sums in ({**dict.fromkeys(other.shares, nothing), **self.shares}).items()
            },
            _smallest(np.concatenate([self._hashes, other._hashes])),
            self.reason or other.reason,
        )

    @property
    def mean_sizes(self) -> dict[str, float]:
        count = max(1, (self.rows - self.errors) * self.outputs)
        return {name: size / count for name, size in self.sizes.items()}

    @property
    def mean_contributions(self) -> dict[str, tuple[float, float]]:
        """The mean of |contribution| of each column, and its error at most; empty without contributions."""
        return {
            name: (size / max(1, count), errors / max(1, count))
            for name, (size, errors, count) in self.shares.items()
        }

    @property
    def distinct(self) -> tuple[int, bool]:
        """Number of distinct explanations, and whether it is exact."""
        hashes = self._hashes
        if len(hashes) < _COUNTED:
            return len(hashes), True
        return round((_COUNTED - 1) * _ALL / float(hashes[-1])), False

    @cached_property
    def _hashes(self) -> Hashes:
        return np.frombuffer(b85decode(self.smallest), "<u8")


NOTHING = Tally(0, 0, 0, {}, {}, "", "")


def _sums_of_contributions(good: Any, features: Sequence[str]) -> dict[str, Sequence[float]]:
    values = numbers_of(good, "contribution", features)
    if values is None:
        return {}
    errors = numbers_of(good, "contribution_error", features)
    sums = zip(
        np.nansum(np.abs(values), axis=0).tolist(),
        np.nansum(np.zeros_like(values) if errors is None else errors, axis=0).tolist(),
        (~np.isnan(values)).sum(axis=0).tolist(),
        strict=True,
    )
    return dict(zip(features, sums, strict=True))


def _hashes_of_bits(bits: Hashes) -> Hashes:
    """Hash each row of 64-bit cells to 64 bits: a step of splitmix64 a cell."""
    hashes = np.zeros(len(bits), dtype=np.uint64)
    for column in bits.T:
        hashes = (hashes ^ column) + _SPREAD
        hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes ^= hashes >> np.uint64(31)
    return hashes


def _smallest(hashes: Hashes) -> str:
    return b85encode(np.unique(hashes)[:_COUNTED].astype("<u8").tobytes()).decode()


_RUN, _JOURNAL, _END, _LOCK = "_run.json", "_parts.jsonl", "_finished.json", "_lock"
# The name of its run, in the metadata of a part
_RUN_KEY = b"limes.run"
# Folders of hashes of keys, and of a store's journal
_KEYS, _LINES = "_keys", "_parts"
# Files that are read at the same time: a store answers slowly, but many at once
_READERS = 16
# Characters of a value by which two runs differ
_LONGEST = 100


@dataclass(frozen=True)
class PartRecord:
    part: int
    sha256: str
    tally: Tally

    @property
    def rows(self) -> int:
        return self.tally.rows

    @property
    def errors(self) -> int:
        return self.tally.errors

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> PartRecord:
        # raises ValueError, TypeError or KeyError for any other line than one of `to_json`
        fields = json.loads(line)
        return cls(fields["part"], fields["sha256"], Tally(**fields["tally"]))


def run_name(run: Mapping[str, Any]) -> str:
    return sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Folder:
    """An output folder, on this machine or in a store."""

    path: Place

    @contextmanager
    def opened(self, run: Mapping[str, Any]) -> Iterator[dict[int, PartRecord]]:
        """Start or resume a run in the folder, and lock out any other run until it ends.

        Yields the complete parts; incomplete part files of this run are deleted.
        """
        with ExitStack() as stack:
            with writing(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
                self._refuse_other_files()
                self._refuse_links()
                stack.enter_context(locked(self.path / _LOCK))
                self._delete_unfinished()  # of a run that was killed
                if not self.files() and not self.journal():  # no part is whole yet
                    write_whole(self.path / _RUN, json.dumps(run, indent=1).encode())
                self._refuse_other_run(run)
                finished = self.finished()
                self._delete_unlisted({self.part(number) for number in finished}, run_name(run))
            try:
                yield finished
            finally:
                self._delete_unfinished()  # of workers that were killed as they wrote

    def _delete_unfinished(self) -> None:
        for file in self.path.iterdir():
            if file.name.startswith(BESIDE):
                file.unlink(missing_ok=True)

    def _refuse_other_files(self) -> None:
        names = sorted(file.name for file in self.path.iterdir())
        others = [name for name in names if name not in (_LOCK, _KEYS, "") and not name.startswith(BESIDE)]
        if others and _RUN not in names:
            raise InputError(f"{self.path} is not empty ({listed(others)}): pass a new folder")

    def _refuse_links(self) -> None:
        """Refuse links where this run writes through a name, and not beside it: other files would change."""
        for name in (_KEYS, _JOURNAL):
            path = self.path / name
            if isinstance(path, Path) and path.is_symlink():
                raise InputError(f"{path} is a link, and this run would write behind it: remove it")

    def run(self) -> dict[str, Any]:
        """The inputs that determine the explanations in the folder."""
        try:
            run = json.loads((self.path / _RUN).read_bytes())
        except (OSError, ValueError) as error:
            raise InputError(
                f"{self.path / _RUN} cannot be read ({error}), so the run of these parts is unknown: pass "
                "another folder, or delete this one"
            ) from error
        if not isinstance(run, dict):
            raise InputError(f"{self.path / _RUN} describes no run: pass another folder, or delete this one")
        return run

    def _refuse_other_run(self, run: Mapping[str, Any]) -> None:
        differences = [*_differences(self.run(), json.loads(json.dumps(run)))]
        if differences:
            more = len(differences) - SHOWN
            shown = "; ".join(differences[:SHOWN]) + (f"; and {more} differences more" if more > 0 else "")
            versions = [text for text in differences if text.startswith("versions ")]
            advice = "Pass another folder, or delete this one"
            if versions == differences:
                advice = (
                    "Numbers of two versions must not be mixed in a table: resume with the versions that "
                    "began it, or pass another folder, or delete this one"
                )
            raise InputError(f"{self.path} holds explanations of another run: {shown}. {advice}")

    def _delete_unlisted(self, listed_files: Collection[Place], name: str) -> None:
        """Delete parts that are not whole, or that no line of the journal states; refuse foreign files."""
        unlisted = [path for path in self.files() if path not in listed_files]
        foreign = [
            path.name
            for path in unlisted
            if not re.fullmatch(r"part-\d{5,}\.parquet", path.name) or run_of(path) not in (None, name)
        ]
        if foreign:
            raise InputError(
                f"{self.path} holds {listed(foreign)}, which this run did not write; readers would take it "
                "for a part: move it, or pass another folder"
            )
        for path in unlisted:
            path.unlink()

    def part(self, number: int) -> Place:
        return self.path / f"part-{number:05d}.parquet"

    def files(self) -> list[Place]:
        return sorted(
            file for file in self.path.iterdir() if file.suffix == ".parquet" and file.name[0] not in "._"
        )

    def finished(self) -> dict[int, PartRecord]:
        """Parts that are whole: in the journal, and with the checksum that it states."""
        journal = self.journal()
        return {n: journal[n] for n, actual in self.checksums(journal).items() if actual == journal[n].sha256}

    def checksums(self, numbers: Iterable[int]) -> dict[int, str | None]:
        numbers = [*numbers]
        with ThreadPoolExecutor(_READERS) as pool:
            return dict(zip(numbers, pool.map(lambda n: checksum(self.part(n)), numbers), strict=True))

    def write_keys(self, number: int, hashes: Hashes) -> None:
        folder = self.path / _KEYS
        folder.mkdir(exist_ok=True)
        write_whole(folder / f"part-{number:05d}", hashes.astype("<u8").tobytes())

    def keys(self, number: int) -> Hashes | None:
        """Hashes of the keys of a part; None where they were not stored."""
        try:
            content = (self.path / _KEYS / f"part-{number:05d}").read_bytes()
        except FileNotFoundError:
            return None
        return np.frombuffer(content, "<u8")

    def check_run(self, name: str) -> None:
        """Raise InputError if the folder now belongs to another run: a late task must not write into it."""
        if run_name(self.run()) != name:
            raise InputError(f"{self.path} now belongs to another run; nothing was written")

    def finish(self, records: Mapping[int, PartRecord], name: str) -> None:
        """Check that the folder holds these parts of the run alone, and note that it is finished."""
        with writing(self.path):
            expected = {self.part(number) for number in records}
            wrong = sorted(expected.symmetric_difference(self.files()))
            wrong += [path for path in sorted(expected) if path not in wrong and run_of(path) != name]
            if wrong:
                raise InputError(
                    f"{self.path}: {listed([path.name for path in wrong])} appeared, disappeared or was "
                    "exchanged during the run, perhaps by a task of an earlier one: run the same command "
                    "again"
                )
            end = {"parts": len(records), "rows": sum(record.rows for record in records.values())}
            write_whole(self.path / _END, json.dumps(end).encode())

    def end(self) -> dict[str, int] | None:
        """Numbers of parts and rows of a run that is finished; None where it is not."""
        try:
            end = json.loads((self.path / _END).read_bytes())
            return {name: int(end[name]) for name in ("parts", "rows")}
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None

    def finished_run(self) -> tuple[dict[str, Any], int]:
        """The inputs of a run that is finished, and its number of rows; InputError where it is not whole.

        The one check of all who read a folder: summaries, comparisons and later runs. Every byte is read.
        """
        if not self.path.is_dir():
            raise InputError(f"{self.path}: no such folder; pass the output folder of a finished run")
        if not (self.path / _RUN).is_file():
            raise InputError(
                f"{self.path}: no folder with parts of explanations, as it has no {_RUN}: pass an output "
                "folder of limes explain-table; of a table that you wrote yourself pass the table"
            )
        check = verify(self.path)
        if check.problems:
            more = len(check.problems) - SHOWN
            shown = "; ".join(check.problems[:SHOWN]) + (f"; and {more} problems more" if more > 0 else "")
            raise InputError(
                f"{self.path} is not finished, or was changed: {shown}. Run its command again first, which "
                "resumes it"
            )
        return self.run(), check.rows

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the parts of a folder that was checked, in their order."""
        for path in self.files():
            yield read_part(path, columns)

    def append(self, record: PartRecord) -> None:
        with writing(self.path):
            if not self.part(record.part).is_file():
                raise InputError(
                    f"part {record.part} was written, but not into {self.path} of this machine: pass a "
                    "folder that all workers share"
                )
            if isinstance(self.path, StorePath):
                write_whole(self.path / _LINES / f"part-{record.part:05d}.json", record.to_json().encode())
            else:
                with (self.path / _JOURNAL).open("a", encoding="utf-8") as file:
                    file.write(f"\n{record.to_json()}\n")  # a new line, should the last have been truncated
                    file.flush()
                    os.fsync(file.fileno())

    def journal(self) -> dict[int, PartRecord]:
        """The last line of each part; truncated lines are ignored."""
        records = {}
        for line in self._lines():
            with suppress(ValueError, TypeError, KeyError):
                record = PartRecord.from_json(line)
                records[record.part] = record
        return records

    def _lines(self) -> list[str]:
        if isinstance(self.path, StorePath):
            with ThreadPoolExecutor(_READERS) as pool:
                objects = [file for file in (self.path / _LINES).iterdir() if file.suffix == ".json"]
                return [text.decode(errors="replace") for text in pool.map(StorePath.read_bytes, objects)]
        path = self.path / _JOURNAL
        return path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []


def read_part(path: Place, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a part, or columns of it; InputError where a page is not as it was written."""
    try:
        return parsed(
            path, lambda file: pq.read_table(file, columns=columns, page_checksum_verification=True)
        )
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{path} could not be read ({error}): it was damaged or removed since it was written; run the "
            "command of its folder again, which writes it anew"
        ) from error


def part_bytes(lines: pa.Table, run: str) -> bytes:
    """The file of a part, which names its run; its pages have checksums, which all readers may verify."""
    buffer = pa.BufferOutputStream()
    pq.write_table(with_run(lines, run), buffer, write_page_checksum=True)
    content: bytes = buffer.getvalue().to_pybytes()
    return content


def with_run(lines: pa.Table, name: str) -> pa.Table:
    return lines.replace_schema_metadata({**(lines.schema.metadata or {}), _RUN_KEY: name.encode()})


def run_of(path: Place) -> str | None:
    """Name of the run that wrote a part; None where the file is not whole, or does not state it."""
    try:
        metadata = parsed(path, pq.read_schema).metadata or {}
    except (OSError, pa.ArrowException):
        return None
    return metadata[_RUN_KEY].decode() if _RUN_KEY in metadata else None


@contextmanager
def writing(path: Place) -> Iterator[None]:
    """Turn an error of a disk or a store into an error that states what to do."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path} could not be written: {error.strerror or error}. Its parts are whole: make room, grant "
            "the right to write, or wait until the store answers, and run the same command again; it resumes "
            "from them"
        ) from error


def _differences(previous: Mapping[str, Any], run: Mapping[str, Any], of: str = "") -> Iterator[str]:
    for name in sorted(previous.keys() | run.keys()):
        was, now = previous.get(name), run.get(name)
        if isinstance(was, dict) and isinstance(now, dict):
            yield from _differences(was, now, f"{of}{name} ")
        elif name not in previous or name not in run:
            yield f"{of}{name} is {'new' if name in run else 'gone'}"
        elif was != now:
            yield f"{of}{name} was {shorten(repr(was), _LONGEST)}, is {shorten(repr(now), _LONGEST)}"


# -- nights --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Increment:
    """The part of a table that earlier runs did not explain: new files, whose rows are numbered on.

    A run's record holds the files of all runs before it, so that the last folder alone states them.
    """

    run: str  # name of the earlier run
    rows: int  # of it and of those before it: the number of the first new row
    files: Mapping[str, str]  # which they explained, in their order, and what tells that they are the same
    first_files: int  # how many of these the first run explained
    new: tuple[str, ...]
    later: int  # files that came after this run had begun, and are the next one's

    @classmethod
    def of(cls, source: Source, since: str | Place, out: str | Place) -> Increment:
        """Compare a table with the finished run in the folder ``since``, or raise InputError."""
        folder, earlier = Folder(place_of(out).absolute()), Folder(place_of(since).absolute())
        if is_in(folder.path, earlier.path) or is_in(earlier.path, folder.path):
            raise InputError(f"{out} lies in the folder of the earlier run, or holds it: pass another one")
        run, rows = earlier.finished_run()
        chain = run.get("since", {"rows": 0, "files": {}, "first_files": len(run["input"])})
        files, actual = {**chain["files"], **run["input"]}, source.fingerprint
        lost = [name for name in files if name not in actual]
        changed = [name for name in files if actual.get(name, files[name]) != files[name]]
        if lost or changed:
            what = f"{source.version} no longer has {listed(lost)}" if lost else f"{listed(changed)} changed"
            raise InputError(
                f"{what} since {earlier.path} explained it, so new rows cannot be separated from old ones. "
                "Between runs a table may only grow by files (deletes, updates, compaction rewrite files): "
                "start a new run without --since, in a new folder"
            )
        new = [name for name in actual if name not in files]
        begun = folder.run() if folder.path.is_dir() and (folder.files() or folder.journal()) else None
        if begun is not None:
            if begun.get("since", {}).get("run") != run_name(run):
                raise InputError(
                    f"{out} holds a run that did not continue the one in {since}: pass the folder with which "
                    "it was begun, or another one for the output"
                )
            new = [name for name in new if name in begun["input"]]
        elif (other := _continuation(earlier.path, run_name(run), folder.path)) is not None:
            raise InputError(
                f"{other} continued {earlier.path} already, and its rows would have their numbers twice: "
                "pass it as the earlier run, or a folder in another place for another chain"
            )
        later = len(actual) - len(files) - len(new)
        return cls(run_name(run), chain["rows"] + rows, files, chain["first_files"], tuple(new), later)

    @property
    def record(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "rows": self.rows,
            "first_files": self.first_files,
            "files": {**self.files},
        }

    def rest(self, source: Source) -> Source:
        """The new files, with the columns and types of the first run."""
        return replace(source.only(self.new, next(iter(self.files))), start=self.rows)

    def beginning(self, source: Source) -> Source:
        """The files of the first run, from whose rows bins are learnt, so that all runs have the same."""
        names = [*self.files][: self.first_files]
        return source.only(names, names[0])

    def __str__(self) -> str:
        new = count(len(self.new), "file") if self.new else "no file"
        later = f"; {count(self.later, 'file')} came later, for the next run" if self.later else ""
        return f"{new} new since {count(self.rows, 'row')} of {count(len(self.files), 'file')}{later}"


def _continuation(earlier: Place, name: str, out: Place) -> Place | None:
    """A folder beside an earlier run that continued it, other than ``out`` beside it; of local disks."""
    if not isinstance(earlier, Path) or out.parent != earlier.parent:
        return None
    for path in sorted(earlier.parent.iterdir()):
        try:
            run = Folder(path).run() if path != out and (path / _RUN).is_file() else {}
        except (InputError, OSError):  # it holds no run that can be read
            continue
        since = run.get("since")
        if isinstance(since, dict) and since.get("run") == name:
            return path
    return None


# How a record states that bins were learnt from the table itself
ROWS = "rows of the table"


def unlike(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> list[str]:
    """In what two runs differ but for their rows, in sentences."""
    differences = changed_settings(earlier, later)
    notes = [f"the runs differ: {'; '.join(differences)}"] if differences else []
    if earlier.get("background") == later.get("background") == ROWS and _learnt(earlier) != _learnt(later):
        notes.append("bins were learnt from the rows of each run: pass one --background to both")
    return notes


def _learnt(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The files from whose rows a run without a background has its bins."""
    since = run.get("since", {"files": {}, "first_files": len(run["input"])})
    return [*{**since["files"], **run["input"]}.items()][: since["first_files"]]


def changed_settings(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> list[str]:
    """In what two runs differ but for their rows: model, background, options, versions."""
    first, second = (
        {name: value for name, value in json.loads(json.dumps(run)).items() if name not in ("input", "since")}
        for run in (earlier, later)
    )
    return [text for text in _differences(first, second) if not text.startswith("output rows_per_part ")]


# -- keys ----------------------------------------------------------------------------------------------------

# A worker hashes the keys of its part and stores eight bytes a row beside it. The driver deals hashes out to
# temporary files, so that equal ones are in one file and a file fits in memory. Different keys may share a
# hash, so repeated ones are looked up in the table. pyarrow's ``group_by`` would hold all keys in memory, and
# has no hash by which to deal them out.

# Largest number of hashes that the driver holds in memory, eight bytes each, and of those looked up
_HELD, _LOOKED_UP = 1 << 22, 1000
# Hash of a null
_NULL = np.uint64(0x94D049BB133111EB)


def key_hashes(lines: pa.Table, keys: Sequence[str]) -> tuple[Ints, Hashes]:
    """The first line of each row of a part, and hashes of the rows' keys.

    A row with several lines counts once, and one that was unreadable, whose keys are unknown, does not count.
    """
    row = lines["row"].to_numpy()
    first = np.flatnonzero(np.diff(row, prepend=-1))
    lost = pc.is_valid(lines["error"])
    for key in keys:
        lost = pc.and_(lost, pc.is_null(lines[key]))
    first = first[~lost.to_numpy()[first]]
    cells = lines.select(keys).take(pa.array(first))
    bits = [_bits(cells[key].combine_chunks()) for key in keys]
    return first, _hashes_of_bits(np.column_stack(bits))


def _bits(column: Any) -> Hashes:
    """64 bits a cell, equal where cells are equal."""
    kind = column.type
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_dictionary(kind):
        return _bits(column.dictionary_decode())
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 and pa.types.is_temporal(kind) else pa.int64()
        whole = pc.cast(column, width, safe=False).fill_null(0)
        bits = whole.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    elif pa.types.is_floating(kind):
        bits = (pc.cast(column, pa.float64()).fill_null(0.0).to_numpy() + 0.0).view(np.uint64)
    else:  # texts, decimals, lists, structs: one by one
        digests = [blake2b(repr(cell).encode(), digest_size=8).digest() for cell in column.to_pylist()]
        bits = np.frombuffer(b"".join(digests), np.uint64)
    return np.where(valid, bits, _NULL)


def repeated_keys(folder: Folder, parts: Sequence[int], keys: Sequence[str], rows: int) -> str:
    """An example of rows that share their keys, in words; empty if keys are unique."""
    if not keys or not rows:
        return ""
    stored = ((number, folder.keys(number)) for number in parts)
    hashes_of_parts = (
        key_hashes(read_part(folder.part(number), ["row", "error", *keys]), keys)[1]
        if hashes is None
        else hashes
        for number, hashes in stored
    )
    repeats, count = _repeated(hashes_of_parts, -(-rows // _HELD))
    first: dict[Any, int] = {}
    for number in parts if len(repeats) else ():
        lines = read_part(folder.part(number), ["row", "error", *keys])
        starts, hashes = key_hashes(lines, keys)
        shared = lines.take(pa.array(starts[np.isin(hashes, repeats)]))
        columns = (map(_hashable, shared[key].to_pylist()) for key in keys)
        for row, cells in zip(shared["row"].to_pylist(), zip(*columns, strict=True), strict=True):
            if first.setdefault(cells, row) != row:
                example = ", ".join(f"{name}={cell!r}" for name, cell in zip(keys, cells, strict=True))
                return f"keys are not unique ({count:,} repeated): {example} in rows {first[cells]} and {row}"
    return ""


def _repeated(parts: Iterable[Hashes], shares: int) -> tuple[Hashes, int]:
    """Hashes that repeat, at most the first ``_LOOKED_UP``; and the number of rows that repeat a hash."""
    repeats: list[Hashes] = []
    count = 0
    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in range(shares)]
        for hashes in parts:
            for i, file in enumerate(files):
                file.write(hashes[hashes % np.uint64(shares) == i].tobytes())
        for file in files:
            file.seek(0)
            values, counts = np.unique(np.frombuffer(file.read(), np.uint64), return_counts=True)
            count += int((counts - 1).sum())
            repeats.append(values[counts > 1][:_LOOKED_UP])
    return np.concatenate(repeats)[:_LOOKED_UP], count


def _hashable(cell: Any) -> Any:
    if isinstance(cell, list):
        return tuple(map(_hashable, cell))
    return tuple((name, _hashable(value)) for name, value in cell.items()) if isinstance(cell, dict) else cell


# -- verification --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FolderCheck:
    parts: int
    rows: int
    errors: int
    problems: tuple[str, ...]


def verify(out: str | Place, source: Source | None = None) -> FolderCheck:
    """Compare a folder with its journal, its run and, if it is passed, the table that was explained.

    A folder is right if each part is the file whose checksum the journal states, names the folder's run, and
    has the rows that follow those of the part before it; and if no other file can be taken for a part.

    Every byte of the folder, and of the table, is read.
    """
    folder = Folder(place_of(out).absolute())
    if not folder.path.is_dir():
        raise InputError(f"{out}: no such folder")
    run, journal = folder.run(), folder.journal()
    problems, first = [*_folder_problems(folder, journal)], run.get("since", {}).get("rows", 0)
    for i, (number, actual) in enumerate(folder.checksums(sorted(journal)).items()):
        start = first if number == i else None  # unknown after a part that is missing
        problems += _part_problems(folder.part(number), journal[number], actual, run_name(run), start)
        first += journal[number].rows
    if source is not None:
        problems += _input_problems(run, source, journal)
    records = journal.values()
    rows, errors = sum(record.rows for record in records), sum(record.errors for record in records)
    return FolderCheck(len(journal), rows, errors, tuple(problems))


def _folder_problems(folder: Folder, journal: Mapping[int, PartRecord]) -> Iterator[str]:
    listed_files = {folder.part(number) for number in journal}
    for path in folder.files():
        if path not in listed_files:
            yield f"{path.name} is in the folder, but not in its journal"
    end = folder.end()
    if end is None:
        yield f"the run is not finished, {count(len(journal), 'part')} so far"
        return
    missing = sorted({*range(end["parts"])} - journal.keys())
    yield from (f"part {number} is not in the journal" for number in missing)
    if not missing and (rows := sum(record.rows for record in journal.values())) != end["rows"]:
        yield f"the journal counts {rows:,} rows, and the run had {end['rows']:,}"


def _part_problems(
    path: Place, record: PartRecord, actual: str | None, name: str, first: int | None
) -> Iterator[str]:
    if actual != record.sha256:
        yield (
            f"{path.name} is missing" if actual is None else f"{path.name} was changed: its checksum differs"
        )
        return
    if (other := run_of(path)) != name:
        yield f"{path.name} is of run {other}, and the folder of run {name}"
    rows = np.unique(read_part(path, ["row"])["row"].to_numpy())
    if first is not None and not np.array_equal(rows, np.arange(first, first + record.rows)):
        yield f"{path.name} does not have the {record.rows:,} rows from row {first:,}"


def _input_problems(
    run: Mapping[str, Any], source: Source, journal: Mapping[int, PartRecord]
) -> Iterator[str]:
    new, before = run.get("input", {}), run.get("since", {}).get("files", {})
    stated, actual = {**before, **new}, source.fingerprint
    if before:  # a table that grows: files that came later are other runs'
        actual = {name: text for name, text in actual.items() if name in stated}
    for name in sorted(stated.keys() | actual.keys()):
        was, now = stated.get(name, "missing"), actual.get(name, "missing")
        if was != now:
            yield f"file {name} of the input was {was}, is {now}"
    if stated == actual and not source.is_csv:
        rows = sum(record.rows for record in journal.values())
        its = source.only(new, next(iter(stated))).likely_rows  # of Parquet, exact: the footers state it
        if rows != its:
            yield f"the journal counts {rows:,} rows, and the input has {its:,}"
