"""A folder of parts that is never wrong: whatever happens, each part is whole or not there.

A part is written beside its place, synced, and renamed into it. The journal gets a line only after that, with
the part's checksum. So the parts to do are those without a line, or whose file is not what its line says; and
done again, a part gives the same numbers.

    OUT/_run.json        what makes these explanations these: input, model, options
    OUT/_parts.jsonl     a line a part: its number, what was counted in it, and the file's SHA-256
    OUT/_lock            held by the run that is at work; the operating system frees what a dead process held
    OUT/part-00000.parquet ...
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from limes._checks import SHOWN, listed
from limes.exceptions import InputError
from limes.scale.locks import locked
from limes.scale.tally import Tally

_RUN, _JOURNAL, _LOCK = "_run.json", "_parts.jsonl", "_lock"
# What files are called before they are whole; readers of Parquet folders skip names with a point
_BESIDE = ".unfinished-"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Done:
    """What the journal says of a part that is whole."""

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

    def line(self) -> str:
        """Itself as a line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, line: str) -> Done:
        """What `line` made a line of; ValueError, TypeError or KeyError for any other."""
        said = json.loads(line)
        return cls(said["part"], said["sha256"], Tally(**said["tally"]))


@dataclass(frozen=True)
class Folder:
    """An output folder."""

    path: Path

    @contextmanager
    def opened(self, run: Mapping[str, Any]) -> Iterator[None]:
        """Begin a run here, or go on with it; no other run can until it ends.

        Raises
        ------
        InputError
            The folder holds something else, or another run: names the differences. Or another process is at
            work in it, or it cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._refuse_strangers()
            lock = (self.path / _LOCK).open("a")
        except OSError as error:
            raise unwritable(self.path, error) from error
        with lock:
            if not locked(lock):
                raise InputError(
                    f"another run is at work in {self.path}: wait until it ends, or give another folder"
                )
            self._open(run)
            yield

    def _refuse_strangers(self) -> None:
        names = sorted(one.name for one in self.path.iterdir())
        strangers = [name for name in names if name != _LOCK and not name.startswith(_BESIDE)]
        if strangers and _RUN not in names:
            raise InputError(f"{self.path} is not empty ({listed(strangers)}): give a new folder")

    def _open(self, run: Mapping[str, Any]) -> None:
        try:
            for left in self.path.glob(f"{_BESIDE}*"):  # of a run that was killed
                left.unlink(missing_ok=True)
            if not (self.path / _RUN).exists() or not self._journal():  # nothing was done
                write_whole(self.path / _RUN, json.dumps(run, indent=1).encode())
        except OSError as error:
            raise unwritable(self.path, error) from error
        known = json.loads((self.path / _RUN).read_text(encoding="utf-8"))
        differences = [*_differences(known, json.loads(json.dumps(run)))]
        if differences:
            raise InputError(
                f"{self.path} holds explanations of another run: {_some(differences)}. Take another "
                "folder, or delete this one"
            )

    def part(self, number: int) -> Path:
        """Place of a part."""
        return self.path / f"part-{number:05d}.parquet"

    def done(self) -> dict[int, Done]:
        """Parts that are whole: in the journal, and with the checksum that it tells."""
        return {n: done for n, done in self._journal().items() if checksum(self.part(n)) == done.sha256}

    def note(self, done: Done) -> None:
        """Add a part to the journal, whose file is in place.

        Raises
        ------
        InputError
            It is not, as other machines see another folder; or the journal cannot be written.
        """
        if not self.part(done.part).is_file():
            raise InputError(
                f"part {done.part} was written, but not into {self.path} of this machine: give a folder that "
                "all workers share"
            )
        line = f"\n{done.line()}\n"  # begins a line, should the last one have been cut short
        try:
            with (self.path / _JOURNAL).open("a", encoding="utf-8") as journal:
                journal.write(line)
                journal.flush()
                os.fsync(journal.fileno())
        except OSError as error:
            raise unwritable(self.path, error) from error

    def _journal(self) -> dict[int, Done]:
        """The last line of each part; a line that was cut short tells of none."""
        path, found = self.path / _JOURNAL, {}
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else ():
            try:
                done = Done.of(line)
            except (ValueError, TypeError, KeyError):
                continue
            found[done.part] = done
        return found


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is whole or not there."""
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
    """SHA-256 of a file, None where there is none."""
    if not path.is_file():
        return None
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def unwritable(path: Path, error: OSError) -> InputError:
    """What to do when the folder is full or read-only."""
    return InputError(
        f"{path} could not be written: {error.strerror or error}. Parts that are there are whole: make room "
        "or give the right to write, and run the same command again; it goes on from them"
    )


def _some(differences: list[str]) -> str:
    more = len(differences) - SHOWN
    return "; ".join(differences[:SHOWN]) + (f"; and {more} differences more" if more > 0 else "")


def _differences(known: Mapping[str, Any], run: Mapping[str, Any], of: str = "") -> list[str]:
    found = []
    for name in sorted(known.keys() | run.keys()):
        was, now = known.get(name), run.get(name)
        if isinstance(was, dict) and isinstance(now, dict):
            found += _differences(was, now, f"{of}{name} ")
        elif was != now:
            found.append(f"{of}{name} was {was!r}, is {now!r}")
    return found
