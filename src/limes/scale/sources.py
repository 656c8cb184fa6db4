"""Parquet and CSV files as numbered parts of about equal length, without holding the table in memory.

A part says where its rows are. Parts of Parquet files are read where they are needed, by row groups; CSV can
only be read from its beginning, so its parts carry their rows, as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from glob import glob, has_magic
from hashlib import file_digest
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from limes._checks import listed
from limes.exceptions import InputError
from limes.scale.cells import typed
from limes.scale.chunks import Chunk, Unreadable, check_names, in_one_line
from limes.scale.csv_files import csv_chunks, csv_schema, likely_lines


@dataclass(frozen=True)
class Stamp:
    """What changes when a file does."""

    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Look at a file; InputError if it is not there."""
        try:
            said = path.stat()
        except OSError as error:
            raise InputError(f"{path} is not there: put it back, and run again ({error.strerror})") from error
        return cls(said.st_size, said.st_mtime_ns)

    def check(self, path: Path) -> None:
        """Refuse a file that is not the one that was looked at."""
        if Stamp.of(path) != self:
            raise InputError(
                f"{path} was changed while it was being explained. Put back what it was and run the same "
                "command again, or begin anew in another folder"
            )


@dataclass(frozen=True)
class Slice:
    """Some rows of a row group of a Parquet file."""

    file: Path
    stamp: Stamp
    group: int
    start: int
    num_rows: int

    def slice(self, start: int, length: int) -> Slice:
        """Some of the rows."""
        return replace(self, start=self.start + start, num_rows=length)

    def read(self, columns: Sequence[str]) -> Chunk:
        """The rows, or why not."""
        self.stamp.check(self.file)
        try:
            rows = _row_group(self.file, self.stamp, self.group, tuple(columns))
        except (OSError, pa.ArrowException) as error:
            reason = f"row group {self.group} of {self.file.name} could not be read: {in_one_line(error)}"
            return Unreadable(self.num_rows, reason)
        finally:
            self.stamp.check(self.file)
        return rows.slice(self.start, self.num_rows)


@lru_cache(maxsize=1)
def _row_group(path: Path, stamp: Stamp, group: int, columns: tuple[str, ...]) -> pa.Table:  # noqa: ARG001
    """A row group, kept for the next part, which often is of the same one; while the file bears the stamp."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        return file.read_row_group(group, columns=[*columns], use_threads=False).select(columns)


@dataclass(frozen=True)
class Part:
    """Rows of the table, the first of which is row ``first``."""

    number: int
    first: int
    pieces: tuple[Slice | Chunk, ...]

    def read(self, columns: Sequence[str]) -> list[Chunk]:
        """Its rows in order."""
        return [one.read(columns) if isinstance(one, Slice) else one for one in self.pieces]


@dataclass(frozen=True)
class Source:
    """Files of one kind, in order of their names."""

    files: tuple[Path, ...]

    @classmethod
    def of(cls, where: str | Path) -> Source:
        """Find a file, the files of a folder, or those of a pattern.

        Raises
        ------
        InputError
            There are none, or of both kinds.
        """
        path = Path(where)
        if path.is_dir():
            found = sorted(
                one for kind in _KINDS for one in path.rglob(f"*{kind}") if one.name[0] not in "._"
            )
        else:
            found = [Path(one) for one in sorted(glob(str(where), recursive=True))]
            found = found if has_magic(str(where)) or path.is_file() else []
        kinds = {one.suffix for one in found}
        if len(kinds) != 1 or not kinds <= set(_KINDS):
            raise InputError(
                f"{where}: give a .parquet or .csv file, or a folder or pattern of files of one kind; "
                f"found {listed([one.name for one in found]) if found else 'no such file'}"
            )
        return cls(tuple(one.absolute() for one in found))  # workers may stand elsewhere

    @property
    def is_text(self) -> bool:
        """Whether it is CSV."""
        return self.files[0].suffix == ".csv"

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns of the first file; of CSV, with types that all cells of its first 8 MiB have.

        A column of CSV is of numbers also where one cell in a hundred is not.
        """
        try:
            if not self.is_text:
                return pq.read_schema(self.files[0])
            return csv_schema(self.files[0])
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{self.files[0]} could not be read: {error}") from error

    @cached_property
    def stamps(self) -> dict[Path, Stamp]:
        """What the files were when they were first looked at."""
        return {path: Stamp.of(path) for path in self.files}

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """Of each file a hash of all of it: hashing takes a thousandth of the time of explaining."""
        return {
            f"{i} {path.name}": f"{stamp.size} bytes, {_hash(path)}"
            for i, (path, stamp) in enumerate(self.stamps.items())
        }

    @cached_property
    def likely_rows(self) -> int:
        """Rows that Parquet files say they have, or that CSV has if its lines are like the first ones."""
        if not self.is_text:
            return sum(sum(sizes) for sizes in self._groups.values())
        size = sum(stamp.size for stamp in self.stamps.values())
        return likely_lines(self.files[0], size)

    def parts(self, rows: int, columns: Sequence[str]) -> Iterator[Part]:
        """Cut the table into parts of so many rows; the last one may be shorter.

        Raises
        ------
        InputError
            A file has no such column or cannot be read at all.
        """
        number, first, pieces, room = 0, 0, [], rows
        for piece in self._lines(columns) if self.is_text else self._slices(columns):
            at = 0
            while at < piece.num_rows:
                take = min(piece.num_rows - at, room)
                pieces.append(piece.slice(at, take))
                at, room = at + take, room - take
                if not room:
                    yield Part(number, first, tuple(pieces))
                    number, first, pieces, room = number + 1, first + rows, [], rows
        if pieces:
            yield Part(number, first, tuple(pieces))

    @cached_property
    def _groups(self) -> dict[Path, list[int]]:
        """Rows of each row group of Parquet files, by their footers."""
        found = {}
        for path in self.files:
            try:
                footer = pq.read_metadata(path)
            except (OSError, pa.ArrowException) as error:
                raise InputError(f"{path} is no Parquet file, or its end is lost: {error}") from error
            found[path] = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
        return found

    def _slices(self, columns: Sequence[str]) -> Iterator[Slice]:
        for path, sizes in self._groups.items():
            check_names(path, pq.read_schema(path).names, columns)
            for group, size in enumerate(sizes):
                yield Slice(path, self.stamps[path], group, 0, size)

    def _lines(self, columns: Sequence[str]) -> Iterator[Chunk]:
        for path, stamp in self.stamps.items():
            yield from csv_chunks(path, columns)
            stamp.check(path)


_KINDS = (".parquet", ".csv")


def decimated(source: Source, columns: Sequence[str], rows: int) -> pa.Table:
    """Every m-th row of the table that can be read, between ``rows`` and twice as many of them.

    It is what bins are learnt from where no background is given. Raises InputError for an empty table.
    """
    schema = pa.schema([source.schema.field(name) for name in columns])
    kept: pa.Table = schema.empty_table()
    step, at = 1, 0
    for part in source.parts(2 * rows, columns):
        for chunk in part.read(columns):
            if isinstance(chunk, Unreadable):
                continue
            cells, reasons = typed(_every(chunk, step, (-at) % step), schema, ())
            good = [i for i in range(cells.num_rows) if i not in reasons]
            kept = pa.concat_tables([kept, cells.take(good) if reasons else cells])
            at += chunk.num_rows
            while kept.num_rows > 2 * rows:
                kept, step = _every(kept, 2), 2 * step
    if not kept.num_rows:
        raise InputError("the table has no rows that could be read")
    return kept.combine_chunks()


def _every(rows: pa.Table, step: int, first: int = 0) -> pa.Table:
    return rows.take(pa.array(range(first, rows.num_rows, step), pa.int64()))


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:16]
