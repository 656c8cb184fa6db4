"""Parquet and CSV files as numbered parts of about equal length, without holding the table in memory.

A part states where its rows are. Parts of Parquet files are read where they are needed, by row groups; CSV
can only be read from its beginning, so its parts carry their rows, as text.
"""

from __future__ import annotations

from limes._checks import require

require("pyarrow", "limes.scale for files", package="'limes[scale]'")

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from glob import glob, has_magic
from hashlib import file_digest
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow as pa
import pyarrow.parquet as pq

from limes._checks import listed
from limes.exceptions import InputError
from limes.scale._cells import (
    Chunk,
    Unreadable,
    check_types,
    csv_chunks,
    csv_schema,
    likely_lines,
    typed,
)
from limes.scale._frames import check_columns


@dataclass(frozen=True)
class Stamp:
    """Size and time of change of a file."""

    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Read the stamp of a file; raise InputError if there is no file."""
        try:
            status = path.stat()
        except OSError as error:
            raise InputError(f"{path} is missing: restore it, and run again ({error.strerror})") from error
        return cls(status.st_size, status.st_mtime_ns)

    def check(self, path: Path) -> None:
        """Raise InputError if the file has changed since."""
        if Stamp.of(path) != self:
            raise InputError(
                f"{path} was changed while it was being explained. Restore it and run the same command "
                "again, or start again in another folder"
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
        """Read the rows, or return why they are unreadable."""
        self.stamp.check(self.file)
        try:
            rows = _row_group(self.file, self.stamp, self.group, tuple(columns))
        except (OSError, pa.ArrowException) as error:
            text = " ".join(str(error).split())
            return Unreadable(
                self.num_rows, f"row group {self.group} of {self.file.name} could not be read: {text}"
            )
        finally:
            self.stamp.check(self.file)
        return rows.slice(self.start, self.num_rows)


@lru_cache(maxsize=1)
def _row_group(path: Path, stamp: Stamp, group: int, columns: tuple[str, ...]) -> pa.Table:  # noqa: ARG001
    """Read a row group, and cache it under its stamp: the next part is often of the same one."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        return file.read_row_group(group, columns=[*columns], use_threads=False).select(columns)


@dataclass(frozen=True)
class Part:
    """Rows of the table, the first of which is row ``first``."""

    number: int
    first: int
    pieces: tuple[Slice | Chunk, ...]

    @property
    def num_rows(self) -> int:
        """Rows in it."""
        return sum(piece.num_rows for piece in self.pieces)

    def read(self, columns: Sequence[str]) -> list[Chunk]:
        """Read its rows in order."""
        return [piece.read(columns) if isinstance(piece, Slice) else piece for piece in self.pieces]


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
            There are no files, or of both kinds.
        """
        where = local_path(where)
        path = Path(where)
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if _kind(file) and file.name[0] not in "._")
        else:
            files = [Path(file) for file in sorted(glob(str(where), recursive=True))]
            files = files if has_magic(str(where)) or path.is_file() else []
        kinds = {_kind(file) for file in files}
        if len(kinds) != 1 or None in kinds:
            raise InputError(
                f"{where}: pass a .parquet or .csv file (or .csv.gz), or a folder or pattern of files of one "
                f"kind; found {listed([file.name for file in files]) if files else 'no such file'}"
            )
        return cls(tuple(file.absolute() for file in files))  # workers may have another working directory

    @property
    def is_csv(self) -> bool:
        """Whether the files are CSV."""
        return _kind(self.files[0]) == ".csv"

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns of the first file; of CSV, with types that all cells of its first 8 MiB have.

        A column of CSV is one of numbers even if one cell in a hundred is not a number.
        """
        try:
            return csv_schema(self.files[0]) if self.is_csv else pq.read_schema(self.files[0])
        except (OSError, pa.ArrowException, UnicodeError) as error:
            kind = " Tables of text are CSV in UTF-8" if self.is_csv else ""
            raise InputError(f"{self.files[0]} could not be read: {error}.{kind}") from error

    @cached_property
    def stamps(self) -> dict[Path, Stamp]:
        """Stamps of the files when they were first looked at."""
        return {path: Stamp.of(path) for path in self.files}

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """A hash of every byte of each file: hashing takes a thousandth of the time of explaining."""
        return {
            f"{i} {path.name}": f"{stamp.size} bytes, {_hash(path)}"
            for i, (path, stamp) in enumerate(self.stamps.items())
        }

    @cached_property
    def likely_rows(self) -> int:
        """Rows by the footers of Parquet files, or of CSV if its lines are as long as the first ones."""
        if not self.is_csv:
            return sum(sum(sizes) for sizes in self._groups.values())
        return likely_lines(self.files[0], sum(stamp.size for stamp in self.stamps.values()))

    def parts(self, rows: int, columns: Sequence[str]) -> Iterator[Part]:
        """Cut the table into parts of ``rows`` rows; the last one may be shorter.

        Raises
        ------
        InputError
            A file lacks a column or cannot be read at all.
        """
        number, first, pieces, room = 0, 0, [], rows
        for piece in self._chunks(columns) if self.is_csv else self._slices(columns):
            start = 0
            while start < piece.num_rows:
                count = min(piece.num_rows - start, room)
                pieces.append(piece.slice(start, count))
                start, room = start + count, room - count
                if not room:
                    yield Part(number, first, tuple(pieces))
                    number, first, pieces, room = number + 1, first + rows, [], rows
        if pieces:
            yield Part(number, first, tuple(pieces))

    @cached_property
    def _groups(self) -> dict[Path, list[int]]:
        """Rows of each row group of Parquet files, by their footers."""
        return {path: sizes for path, (_, sizes) in self._footers.items()}

    @cached_property
    def _footers(self) -> dict[Path, tuple[pa.Schema, list[int]]]:
        """Columns, and rows of each row group, of Parquet files."""
        footers = {}
        for path in self.files:
            try:
                footer = pq.read_metadata(path)
            except (OSError, pa.ArrowException) as error:
                raise InputError(f"{path} is no Parquet file, or its end is lost: {error}") from error
            sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
            footers[path] = footer.schema.to_arrow_schema(), sizes
        return footers

    def _slices(self, columns: Sequence[str]) -> Iterator[Slice]:
        for path, (schema, _) in self._footers.items():  # all, before the first row is explained
            check_columns(path, schema.names, columns)
            check_types(path, schema, self.files[0], self.schema, columns)
        for path, sizes in self._groups.items():
            for group, size in enumerate(sizes):
                yield Slice(path, self.stamps[path], group, 0, size)

    def _chunks(self, columns: Sequence[str]) -> Iterator[Chunk]:
        for path, stamp in self.stamps.items():
            yield from csv_chunks(path, columns)
            stamp.check(path)


# Ends of names, in small letters, and what is in such a file; pyarrow decompresses by the name
_KINDS = {".parquet": ".parquet", ".csv": ".csv", ".csv.gz": ".csv", ".csv.bz2": ".csv", ".csv.zst": ".csv"}


def _kind(file: Path) -> str | None:
    name = file.name.lower()
    return next((kind for end, kind in _KINDS.items() if name.endswith(end)), None)


def local_path(where: str | Path) -> str | Path:
    """Return a path as it is, and that of a URL of this machine; refuse any other URL.

    ``Path("s3://bucket/out")`` is the local folder ``s3:/bucket/out``.

    Raises
    ------
    InputError
        The scheme is not that of a local file.
    """
    text = str(where)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):/", text)  # of two letters or more: C:/ is a drive
    if scheme is None:
        return where
    if scheme[1].lower() == "file":
        return url2pathname(urlsplit(text).path)
    raise InputError(
        f"{text} is in a store ({scheme[1]}://), and explain-table reads and writes files: mount the store, "
        "or copy the table to this machine and the folder back"
    )


def decimated(source: Source, columns: Sequence[str], rows: int) -> pa.Table:
    """Return every m-th row of the table that can be read, between ``rows`` and ``2 * rows`` of them.

    Bins are learnt from it where no background is passed. Raises InputError for an empty table.
    """
    schema = pa.schema([source.schema.field(name) for name in columns])
    sample: pa.Table = schema.empty_table()
    step, position = 1, 0
    for part in source.parts(2 * rows, columns):
        for chunk in part.read(columns):
            if isinstance(chunk, Unreadable):
                continue
            cells, reasons = typed(_every(chunk, step, (-position) % step), schema, ())
            good = pa.array([i for i in range(cells.num_rows) if i not in reasons], pa.int64())
            sample = pa.concat_tables([sample, cells.take(good) if reasons else cells])
            position += chunk.num_rows
            while sample.num_rows > 2 * rows:
                sample, step = _every(sample, 2), 2 * step
    if not sample.num_rows:
        raise InputError("the table has no rows that could be read")
    return sample.combine_chunks()


def _every(rows: pa.Table, step: int, first: int = 0) -> pa.Table:
    return rows.take(pa.array(range(first, rows.num_rows, step), pa.int64()))


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:16]
