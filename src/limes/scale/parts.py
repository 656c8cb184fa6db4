"""A folder of parts that is never wrong: whatever happens, each part is whole or missing.

A part is written beside its place, synced, and renamed into it. Only then the journal gets a line, with the
part's checksum. So the parts to do are those without a line, or whose file is not what its line states; and a
part that is computed again has the same numbers.

    OUT/_run.json        what determines these explanations: input, model, options
    OUT/_parts.jsonl     a line a part: its number, its tally, and the file's SHA-256
    OUT/_lock            held by the run at work; the operating system frees the lock of a dead process
    OUT/part-00000.parquet ...
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any
from uuid import uuid4

from limes._checks import SHOWN, listed
from limes.exceptions import InputError
from limes.scale.tally import Tally

_RUN, _JOURNAL, _LOCK = "_run.json", "_parts.jsonl", "_lock"
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


@dataclass(frozen=True)
class Folder:
    """An output folder."""

    path: Path

    @contextmanager
    def opened(self, run: Mapping[str, Any]) -> Iterator[None]:
        """Start or resume a run in the folder, and lock out any other run until it ends.

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
            self._open(run)
            yield

    def _refuse_other_files(self) -> None:
        names = sorted(file.name for file in self.path.iterdir())
        others = [name for name in names if name != _LOCK and not name.startswith(_BESIDE)]
        if others and _RUN not in names:
            raise InputError(f"{self.path} is not empty ({listed(others)}): pass a new folder")

    def _open(self, run: Mapping[str, Any]) -> None:
        try:
            for unfinished in self.path.glob(f"{_BESIDE}*"):  # of a run that was killed
                unfinished.unlink(missing_ok=True)
            if not (self.path / _RUN).exists() or not self._journal():  # no part is whole yet
                write_whole(self.path / _RUN, json.dumps(run, indent=1).encode())
        except OSError as error:
            raise unwritable(self.path, error) from error
        previous = json.loads((self.path / _RUN).read_text(encoding="utf-8"))
        differences = [*_differences(previous, json.loads(json.dumps(run)))]
        if differences:
            more = len(differences) - SHOWN
            shown = "; ".join(differences[:SHOWN]) + (f"; and {more} differences more" if more > 0 else "")
            raise InputError(
                f"{self.path} holds explanations of another run: {shown}. Pass another folder, or delete "
                "this one"
            )

    def part(self, number: int) -> Path:
        """File of a part."""
        return self.path / f"part-{number:05d}.parquet"

    def finished(self) -> dict[int, PartRecord]:
        """Parts that are whole: in the journal, and with the checksum that it states."""
        return {n: record for n, record in self._journal().items() if checksum(self.part(n)) == record.sha256}

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

    def _journal(self) -> dict[int, PartRecord]:
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
