"""A folder of parts that is never wrong: whatever happens, each part is whole or missing.

A part is written beside its place, synced, and renamed into it. Only then the journal gets a line, with the
part's checksum. So the parts to do are those without a line, or whose file is not what its line states; and a
part that is computed again has the same numbers.

    OUT/_run.json        what determines these explanations: input, model, options
    OUT/_parts.jsonl     a line a part: its number, its tally, and the file's SHA-256
    OUT/_finished.json   how many parts and rows there are, once they are all there
    OUT/_lock            held by the run at work; the operating system frees the lock of a dead process
    OUT/part-00000.parquet ...

A folder belongs to one run. Its name is the hash of ``_run.json``, and each part has it in its metadata: a
part of the same run that the journal does not list is deleted, any other is refused. Readers of the folder,
who read every part as one table, never meet the numbers of another model.

The tallies of parts add up to the summary of a table. Distinct explanations are counted by their hashes,
uniform on [0, 1): if the K-th smallest of the distinct hashes is u, there are about (K - 1) / u of them, with
a relative standard error of 1 / √(K - 2); fewer than K are counted exactly. So K numbers a part are enough
for a table of any length. (A library's sketch, such as datasketches, would be a dependency in place of ten
lines.)

Source: Beyer et al., "On synopses for distinct-value estimation under multiset operations", 2007, section 4.
"""

from __future__ import annotations

from limes._checks import require

require("pyarrow", "limes.scale for files", package="'limes[scale]'")

import json
import os
import re
from base64 import b85decode, b85encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from limes._arrays import Floats
from limes._checks import SHOWN, listed
from limes.exceptions import InputError

# K: distinct explanations that are counted exactly; beyond, the standard error is 1 / √K, 3 %
_COUNTED = 1024
_ALL = 2.0**64

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Tally:
    """Number of rows, of errors, and the sum of |β| of each column over the rows without an error.

    Attributes
    ----------
    outputs : int
        Of the model; 0 where no row has an explanation.
    smallest : str
        The smallest hashes of explanations, eight bytes each, in base 85.
    reason : str
        The first error; empty where all rows have an explanation.
    """

    rows: int
    errors: int
    outputs: int
    sizes: Mapping[str, float]
    smallest: str
    reason: str

    @classmethod
    def count(cls, lines: pa.Table, features: Sequence[str], rows: int) -> Tally:
        """Count the lines that `explain_frame` returns for ``rows`` rows."""
        good = lines.filter(lines["error"].is_null())
        reasons = lines["error"].drop_null()
        errors = len(reasons)  # such rows have one line each
        values = _values(good, features, rows - errors)
        sizes = np.abs(values).sum(axis=(0, 1)).tolist()
        outputs = values.shape[1]
        hashes = _smallest(_hashes(values.reshape(rows - errors, outputs * len(features))))
        by_name = dict(zip(features, sizes, strict=True))
        return cls(rows, errors, outputs, by_name, _packed(hashes), reasons[0].as_py() if errors else "")

    def __add__(self, other: Tally) -> Tally:
        """Of both."""
        sizes = {
            name: self.sizes.get(name, 0.0) + other.sizes.get(name, 0.0)
            for name in {**self.sizes, **other.sizes}
        }
        return Tally(
            self.rows + other.rows,
            self.errors + other.errors,
            max(self.outputs, other.outputs),
            sizes,
            _packed(_smallest(np.concatenate([self._hashes, other._hashes]))),
            self.reason or other.reason,
        )

    @property
    def mean_sizes(self) -> dict[str, float]:
        """Mean |β| of each column, over rows with an explanation and outputs."""
        count = max(1, (self.rows - self.errors) * self.outputs)
        return {name: size / count for name, size in self.sizes.items()}

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


NOTHING = Tally(0, 0, 0, {}, "", "")


def _values(good: pa.Table, features: Sequence[str], rows: int) -> Floats:
    """Coefficients (rows, outputs, columns) of lines in either layout."""
    if "feature" in good.column_names:
        flat: Floats = good["value"].to_numpy()
    else:
        flat = np.column_stack([good[f"value_{name}"].to_numpy() for name in features])
    outputs = flat.size // max(1, rows * len(features))
    return flat.reshape(rows, outputs, len(features))


def _hashes(values: Floats) -> Hashes:
    """Hash each row to 64 bits: a step of splitmix64 a number."""
    bits = (values + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    hashes = np.zeros(len(bits), dtype=np.uint64)
    for column in bits.T:
        hashes = (hashes ^ column) + np.uint64(0x9E3779B97F4A7C15)
        hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes ^= hashes >> np.uint64(31)
    return hashes


def _smallest(hashes: Hashes) -> Hashes:
    return np.unique(hashes)[:_COUNTED]


def _packed(hashes: Hashes) -> str:
    return b85encode(hashes.astype("<u8").tobytes()).decode()


_RUN, _JOURNAL, _END, _LOCK = "_run.json", "_parts.jsonl", "_finished.json", "_lock"
# The name of its run, in the metadata of a part
_RUN_KEY = b"limes.run"
# Prefix of files that are not whole yet; readers of Parquet folders skip names with a leading point
_BESIDE = ".unfinished-"


@dataclass(frozen=True)
class PartRecord:
    """The journal's line about a part that is whole."""

    part: int
    sha256: str
    tally: Tally

    @property
    def rows(self) -> int:
        """Rows of the table in it."""
        return self.tally.rows

    @property
    def errors(self) -> int:
        """Those among them that have no explanation."""
        return self.tally.errors

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> PartRecord:
        """Parse a line of `to_json`; raise ValueError, TypeError or KeyError for any other."""
        fields = json.loads(line)
        return cls(fields["part"], fields["sha256"], Tally(**fields["tally"]))


def run_name(run: Mapping[str, Any]) -> str:
    """Name a run by what determines its explanations."""
    return sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Folder:
    """An output folder."""

    path: Path

    @contextmanager
    def opened(self, run: Mapping[str, Any]) -> Iterator[dict[int, PartRecord]]:
        """Start or resume a run in the folder, and lock out any other run until it ends.

        Yields the parts that are whole; files that were to be parts of this run, and are not, are deleted.

        Raises
        ------
        InputError
            The folder holds something else, or another run: names the differences. Or another process is at
            work in it, or it cannot be written.
        """
        from filelock import FileLock, Timeout

        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._refuse_other_files()
            lock = FileLock(self.path / _LOCK, timeout=0).acquire()
        except Timeout:
            raise InputError(
                f"another run is at work in {self.path}: wait until it ends, or pass another folder"
            ) from None
        except OSError as error:
            raise unwritable(self.path, error) from error
        with lock:
            try:
                finished = self._open(run)
            except OSError as error:
                raise unwritable(self.path, error) from error
            yield finished

    def _refuse_other_files(self) -> None:
        names = sorted(file.name for file in self.path.iterdir())
        others = [name for name in names if name != _LOCK and not name.startswith(_BESIDE)]
        if others and _RUN not in names:
            raise InputError(f"{self.path} is not empty ({listed(others)}): pass a new folder")

    def _open(self, run: Mapping[str, Any]) -> dict[int, PartRecord]:
        for unfinished in self.path.glob(f"{_BESIDE}*"):  # of a run that was killed
            unfinished.unlink(missing_ok=True)
        if not self.files() and not self.journal():  # no part is whole yet
            write_whole(self.path / _RUN, json.dumps(run, indent=1).encode())
        self._refuse_other_run(run)
        finished = self.finished()
        self._delete_unlisted({self.part(number) for number in finished}, run_name(run))
        return finished

    def run(self) -> dict[str, Any]:
        """What determines the explanations in the folder.

        Raises
        ------
        InputError
            The file that states it is missing or damaged.
        """
        try:
            run = json.loads((self.path / _RUN).read_text(encoding="utf-8"))
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
            raise InputError(
                f"{self.path} holds explanations of another run: {shown}. Pass another folder, or delete "
                "this one"
            )

    def _delete_unlisted(self, listed_files: Collection[Path], name: str) -> None:
        """Delete parts that are not whole, or that no line of the journal states; refuse foreign files."""
        unlisted = [path for path in self.files() if path not in listed_files]
        foreign = [path.name for path in unlisted if not _is_part(path) or run_of(path) not in (None, name)]
        if foreign:
            raise InputError(
                f"{self.path} holds {listed(foreign)}, which this run did not write; readers would take it "
                "for a part: move it, or pass another folder"
            )
        for path in unlisted:
            path.unlink()

    def part(self, number: int) -> Path:
        """File of a part."""
        return self.path / f"part-{number:05d}.parquet"

    def files(self) -> list[Path]:
        """Files that readers of the folder take for parts."""
        return sorted(path for path in self.path.glob("*.parquet") if path.name[0] not in "._")

    def finished(self) -> dict[int, PartRecord]:
        """Parts that are whole: in the journal, and with the checksum that it states."""
        return {n: record for n, record in self.journal().items() if checksum(self.part(n)) == record.sha256}

    def check_run(self, name: str) -> None:
        """Raise InputError if the folder now belongs to another run: a late task must not write into it."""
        if run_name(self.run()) != name:
            raise InputError(f"{self.path} now belongs to another run; nothing was written")

    def finish(self, records: Mapping[int, PartRecord], name: str) -> None:
        """Check that the folder holds these parts of the run and nothing else, and note that it is finished.

        Raises
        ------
        InputError
            A file appeared that is no part of the run, or a part was deleted or exchanged.
        """
        expected = {self.part(number) for number in records}
        wrong = sorted(expected.symmetric_difference(self.files()))
        wrong += [path for path in sorted(expected) if path not in wrong and run_of(path) != name]
        if wrong:
            raise InputError(
                f"{self.path}: {listed([path.name for path in wrong])} appeared, disappeared or was "
                "exchanged during the run, perhaps by a task of an earlier one: run the same command again"
            )
        end = {"parts": len(records), "rows": sum(record.rows for record in records.values())}
        try:
            write_whole(self.path / _END, json.dumps(end).encode())
        except OSError as error:
            raise unwritable(self.path, error) from error

    def end(self) -> dict[str, int] | None:
        """Numbers of parts and rows of a run that is finished; None where it is not."""
        path = self.path / _END
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None

    def append(self, record: PartRecord) -> None:
        """Add a part to the journal, whose file is in place.

        Raises
        ------
        InputError
            The file is missing, as other machines see another folder; or the journal cannot be written.
        """
        if not self.part(record.part).is_file():
            raise InputError(
                f"part {record.part} was written, but not into {self.path} of this machine: pass a folder "
                "that all workers share"
            )
        line = f"\n{record.to_json()}\n"  # starts a new line, should the last one have been truncated
        try:
            with (self.path / _JOURNAL).open("a", encoding="utf-8") as journal:
                journal.write(line)
                journal.flush()
                os.fsync(journal.fileno())
        except OSError as error:
            raise unwritable(self.path, error) from error

    def journal(self) -> dict[int, PartRecord]:
        """Return the last line of each part; truncated lines are ignored."""
        path, records = self.path / _JOURNAL, {}
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else ():
            try:
                record = PartRecord.from_json(line)
            except (ValueError, TypeError, KeyError):
                continue
            records[record.part] = record
        return records


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is whole or missing."""
    beside = path.with_name(f"{_BESIDE}{path.name}.{uuid4().hex}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def with_run(lines: pa.Table, name: str) -> pa.Table:
    """Put the name of a run into the metadata of its lines."""
    return lines.replace_schema_metadata({**(lines.schema.metadata or {}), _RUN_KEY: name.encode()})


def run_of(path: Path) -> str | None:
    """Name of the run that wrote a part; None where the file is not whole, or states none."""
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowException):
        return None
    return metadata[_RUN_KEY].decode() if _RUN_KEY in metadata else None


def _is_part(path: Path) -> bool:
    return re.fullmatch(r"part-\d{5,}\.parquet", path.name) is not None


def checksum(path: Path) -> str | None:
    """SHA-256 of a file, None if there is no file."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def unwritable(path: Path, error: OSError) -> InputError:
    """Error for a folder that is full or read-only."""
    return InputError(
        f"{path} could not be written: {error.strerror or error}. Its parts are whole: make room or grant "
        "the right to write, and run the same command again; it resumes from them"
    )


def _differences(previous: Mapping[str, Any], run: Mapping[str, Any], of: str = "") -> Iterator[str]:
    for name in sorted(previous.keys() | run.keys()):
        was, now = previous.get(name), run.get(name)
        if isinstance(was, dict) and isinstance(now, dict):
            yield from _differences(was, now, f"{of}{name} ")
        elif was != now:
            yield f"{of}{name} was {was!r}, is {now!r}"
