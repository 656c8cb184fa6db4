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

from limes._checks import require

require("pyarrow", "limes.scale for files", package="'limes[scale]'")

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from limes._checks import SHOWN, listed
from limes.exceptions import InputError
from limes.scale._locks import locked
from limes.scale._stores import BESIDE, Place, StorePath, checksum, parsed, write_whole
from limes.scale._tally import Hashes, Tally

_RUN, _JOURNAL, _END, _LOCK = "_run.json", "_parts.jsonl", "_finished.json", "_lock"
# The name of its run, in the metadata of a part
_RUN_KEY = b"limes.run"
# Folders of hashes of keys, and of a store's journal
_KEYS, _LINES = "_keys", "_parts"
# Files that are read at the same time: a store answers slowly, but many at once
_READERS = 16


@dataclass(frozen=True)
class PartRecord:
    """The journal's line about a part that is whole."""

    part: int
    sha256: str
    tally: Tally

    @property
    def rows(self) -> int:
        """Number of rows of the table in the part."""
        return self.tally.rows

    @property
    def errors(self) -> int:
        """Number of these rows that have no explanation."""
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
    """Return the name of a run, a hash of what determines its explanations."""
    return sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Folder:
    """An output folder, on this machine or in a store."""

    path: Place

    @contextmanager
    def opened(self, run: Mapping[str, Any]) -> Iterator[dict[int, PartRecord]]:
        """Start or resume a run in the folder, and lock out any other run until it ends.

        Yields the complete parts; incomplete part files of this run are deleted.

        Raises
        ------
        InputError
            The folder holds something else, or another run (the message names the differences); another
            process works in it; or it cannot be written.
        """
        with ExitStack() as stack:
            with writing(self.path):
                if isinstance(self.path, Path):
                    self.path.mkdir(parents=True, exist_ok=True)
                self._refuse_other_files()
                stack.enter_context(locked(self.path / _LOCK))
                finished = self._open(run)
            yield finished

    def _refuse_other_files(self) -> None:
        names = sorted(file.name for file in self.path.iterdir())
        others = [name for name in names if name not in (_LOCK, _KEYS, "") and not name.startswith(BESIDE)]
        if others and _RUN not in names:
            raise InputError(f"{self.path} is not empty ({listed(others)}): pass a new folder")

    def _open(self, run: Mapping[str, Any]) -> dict[int, PartRecord]:
        for file in self.path.iterdir():
            if file.name.startswith(BESIDE):  # left by a run that was killed
                file.unlink(missing_ok=True)
        if not self.files() and not self.journal():  # no part is whole yet
            write_whole(self.path / _RUN, json.dumps(run, indent=1).encode())
        self._refuse_other_run(run)
        finished = self.finished()
        self._delete_unlisted({self.part(number) for number in finished}, run_name(run))
        return finished

    def run(self) -> dict[str, Any]:
        """The inputs that determine the explanations in the folder.

        Raises
        ------
        InputError
            The file that states it is missing or damaged.
        """
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
            raise InputError(
                f"{self.path} holds explanations of another run: {shown}. Pass another folder, or delete "
                "this one"
            )

    def _delete_unlisted(self, listed_files: Collection[Place], name: str) -> None:
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

    def part(self, number: int) -> Place:
        """File of a part."""
        return self.path / f"part-{number:05d}.parquet"

    def files(self) -> list[Place]:
        """Files that readers of the folder read as parts."""
        return sorted(
            file for file in self.path.iterdir() if file.suffix == ".parquet" and file.name[0] not in "._"
        )

    def finished(self) -> dict[int, PartRecord]:
        """Parts that are whole: in the journal, and with the checksum that it states."""
        journal = self.journal()
        return {n: journal[n] for n, actual in self.checksums(journal).items() if actual == journal[n].sha256}

    def checksums(self, numbers: Iterable[int]) -> dict[int, str | None]:
        """Checksums of parts; None for a part that is missing."""
        numbers = [*numbers]
        with ThreadPoolExecutor(_READERS) as pool:
            return dict(zip(numbers, pool.map(lambda n: checksum(self.part(n)), numbers), strict=True))

    def write_keys(self, number: int, hashes: Hashes) -> None:
        """Store the hashes of the keys of a part."""
        folder = self.path / _KEYS
        if isinstance(folder, Path):
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
        """Check that the folder holds these parts of the run and nothing else, and note that it is finished.

        Raises
        ------
        InputError
            A file appeared that is no part of the run, or a part was deleted or exchanged.
        """
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
            return dict(json.loads((self.path / _END).read_bytes()))
        except FileNotFoundError:
            return None

    def append(self, record: PartRecord) -> None:
        """Add to the journal a part whose file is in place.

        Raises
        ------
        InputError
            The file is missing, for example on machines with another folder; or the journal cannot be
            written.
        """
        with writing(self.path):
            if not self.part(record.part).is_file():
                raise InputError(
                    f"part {record.part} was written, but not into {self.path} of this machine: pass a "
                    "folder that all workers share"
                )
            if isinstance(self.path, StorePath):
                write_whole(self.path / _LINES / f"part-{record.part:05d}.json", record.to_json().encode())
            else:
                _append(self.path / _JOURNAL, record.to_json())

    def journal(self) -> dict[int, PartRecord]:
        """Return the last line of each part; truncated lines are ignored."""
        records = {}
        for line in self._lines():
            try:
                record = PartRecord.from_json(line)
            except (ValueError, TypeError, KeyError):
                continue
            records[record.part] = record
        return records

    def _lines(self) -> list[str]:
        if isinstance(self.path, StorePath):
            with ThreadPoolExecutor(_READERS) as pool:
                objects = [file for file in (self.path / _LINES).iterdir() if file.suffix == ".json"]
                return [text.decode(errors="replace") for text in pool.map(StorePath.read_bytes, objects)]
        path = self.path / _JOURNAL
        return path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{text}\n")  # starts a new line, should the last one have been truncated
        file.flush()
        os.fsync(file.fileno())


def with_run(lines: pa.Table, name: str) -> pa.Table:
    """Put the name of a run into the metadata of its lines."""
    return lines.replace_schema_metadata({**(lines.schema.metadata or {}), _RUN_KEY: name.encode()})


def run_of(path: Place) -> str | None:
    """Name of the run that wrote a part; None where the file is not whole, or states none."""
    try:
        metadata = parsed(path, pq.read_schema).metadata or {}
    except (OSError, pa.ArrowException):
        return None
    return metadata[_RUN_KEY].decode() if _RUN_KEY in metadata else None


def _is_part(path: Place) -> bool:
    return re.fullmatch(r"part-\d{5,}\.parquet", path.name) is not None


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
        elif was != now:
            yield f"{of}{name} was {was!r}, is {now!r}"
