"""Parquet and CSV files as numbered parts of about equal length, without holding the table in memory.

A part states where its rows are. Parts of Parquet files are read where they are needed, by row groups; CSV
can only be read from its beginning, so its parts carry their rows, as text.
"""

from __future__ import annotations

from limes._checks import require

require("pyarrow", "limes.scale for files", package="'limes[scale]'")

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from limes.exceptions import InputError
from limes.scale._cells import (
    Chunk,
    Unreadable,
    check_repeats,
    check_types,
    csv_chunks,
    csv_schema,
    likely_lines,
    typed,
)
from limes.scale._frames import check_columns
from limes.scale._inputs import Inputs, inputs_of, kind_of
from limes.scale._stores import Place, StorePath, checksum, parsed

# Footers that are read at the same time: a store answers slowly, but many at once
_READERS = 16


@dataclass(frozen=True)
class Stamp:
    """Size and time of change of a file."""

    size: int
    changed: int

    @classmethod
    def of(cls, path: Place) -> Stamp:
        """Read the stamp of a file; raise InputError if there is no file."""
        try:
            if isinstance(path, StorePath):
                return cls(*path.size_and_time())
            status = path.stat()
        except OSError as error:
            raise InputError(
                f"{path} is missing: restore it, and run again ({error.strerror or error})"
            ) from error
        return cls(status.st_size, status.st_mtime_ns)

    def check(self, path: Place) -> None:
        """Raise InputError if the file has changed since."""
        if Stamp.of(path) != self:
            raise InputError(
                f"{path} was changed while it was being explained. Restore it and run the same command "
                "again, or start again in another folder"
            )


@dataclass(frozen=True)
class Slice:
    """Some rows of a row group of a Parquet file; ``keys`` has the columns that its folder states."""

    file: Place
    stamp: Stamp
    group: int
    start: int
    num_rows: int
    keys: pa.Table | None = None

    def slice(self, start: int, length: int) -> Slice:
        """Return some of the rows."""
        return replace(self, start=self.start + start, num_rows=length)

    def read(self, columns: Sequence[str]) -> Chunk:
        """Read the rows, or return why they are unreadable."""
        stored = [name for name in columns if self.keys is None or name not in self.keys.column_names]
        self.stamp.check(self.file)
        try:
            rows = _row_group(self.file, self.stamp, self.group, tuple(stored))
        except (OSError, pa.ArrowException) as error:
            text = " ".join(str(error).split())
            return Unreadable(
                self.num_rows, f"row group {self.group} of {self.file.name} could not be read: {text}"
            )
        finally:
            self.stamp.check(self.file)
        return with_keys(rows.slice(self.start, self.num_rows), self.keys, columns)


def with_keys(rows: pa.Table, keys: pa.Table | None, columns: Sequence[str]) -> pa.Table:
    """Put the columns that a file's folder states beside those of its rows."""
    if keys is None:
        return rows
    every = pa.array(np.zeros(rows.num_rows, np.int64))
    return pa.table(
        {name: keys[name].take(every) if name in keys.column_names else rows[name] for name in columns}
    )


@lru_cache(maxsize=1)
def _row_group(path: Place, stamp: Stamp, group: int, columns: tuple[str, ...]) -> pa.Table:  # noqa: ARG001
    """Read a row group, and cache it under its stamp: the next part is often of the same one."""

    def read(file: Any) -> pa.Table:
        with pq.ParquetFile(file, page_checksum_verification=True, pre_buffer=True) as table:
            return table.read_row_group(group, columns=[*columns], use_threads=False).select(columns)

    return parsed(path, read)


@dataclass(frozen=True)
class Part:
    """Rows of the table, the first of which is row ``first``."""

    number: int
    first: int
    pieces: tuple[Slice | Chunk, ...]

    @property
    def num_rows(self) -> int:
        """Number of rows in the part."""
        return sum(piece.num_rows for piece in self.pieces)

    def read(self, columns: Sequence[str]) -> list[Chunk]:
        """Read the rows of the part in order."""
        return [piece.read(columns) if isinstance(piece, Slice) else piece for piece in self.pieces]


@dataclass(frozen=True)
class Source:
    """Files of one kind, in order of their names, and the columns that their folders state, a row a file."""

    files: tuple[Place, ...]
    keys: tuple[pa.Table, ...] = ()
    origin: Inputs | None = None

    @classmethod
    def of(cls, where: str | Place) -> Source:
        """Find a file, the files of a folder, of a pattern, or of a table format.

        Raises
        ------
        InputError
            There are no files, or files of several kinds.
        """
        inputs = inputs_of(where)
        return cls(inputs.files, inputs.keys, inputs)

    def refuse_output(self, out: Place) -> None:
        """Raise InputError if a folder of explanations would be inside of the table."""
        if self.origin is not None:
            self.origin.refuse_output(out)

    @property
    def is_csv(self) -> bool:
        """Whether the files are CSV."""
        return kind_of(self.files[0]) == ".csv"

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns of the first file and of folders; of CSV, with types of all cells of its first 8 MiB.

        A column of CSV is one of numbers even if one cell in a hundred is not a number.
        """
        try:
            schema = csv_schema(self.files[0]) if self.is_csv else parsed(self.files[0], pq.read_schema)
        except (OSError, pa.ArrowException, UnicodeError) as error:
            kind = " Tables of text are CSV in UTF-8" if self.is_csv else ""
            raise InputError(f"{self.files[0]} could not be read: {error}.{kind}") from error
        check_repeats(self.files[0], schema.names)
        schema = schema.remove_metadata()
        for field in self.keys[0].schema if self.keys else ():
            if field.name not in schema.names:
                schema = schema.append(field)
        return schema

    def schema_of_keys(self, names: Sequence[str]) -> pa.Schema:
        """Types in which keys are copied: those of the table; cells of CSV are copied as text.

        A number would lose zeros in front of it, and digits, by which rows are joined.
        """
        of_folders = self.keys[0].schema.names if self.keys else []
        fields = [self.schema.field(name) for name in names]
        return pa.schema(
            [
                field.with_type(pa.string()) if self.is_csv and field.name not in of_folders else field
                for field in fields
            ]
        )

    def _keys_of(self, number: int, stored: Sequence[str]) -> pa.Table | None:
        """Columns that a file's folder states, and that it does not store."""
        if not self.keys:
            return None
        keys = self.keys[number]
        return keys.select([name for name in keys.column_names if name not in stored])

    @cached_property
    def stamps(self) -> dict[Place, Stamp]:
        """Stamps of the files when they were first inspected."""
        return {path: Stamp.of(path) for path in self.files}

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """Size and a hash of every byte of each file; for an object of a store, size and time of its put.

        Hashing takes a thousandth of the time of explaining; fetching a table from a store twice takes
        longer. Objects are never changed, only put again.
        """
        return {
            f"{i} {path.name}": f"{stamp.size} bytes, "
            + (f"put {stamp.changed}" if isinstance(path, StorePath) else str(checksum(path))[:16])
            for i, (path, stamp) in enumerate(self.stamps.items())
        }

    @cached_property
    def likely_rows(self) -> int:
        """Number of rows by the footers of Parquet files; for CSV estimated by the first lines' length."""
        if not self.is_csv:
            return sum(sum(sizes) for _, sizes in self._footers.values())
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
    def _footers(self) -> dict[Place, tuple[pa.Schema, list[int]]]:
        """Columns, and rows of each row group, of Parquet files."""
        with ThreadPoolExecutor(_READERS) as pool:
            return dict(zip(self.files, pool.map(_footer, self.files), strict=True))

    def _slices(self, columns: Sequence[str]) -> Iterator[Slice]:
        for i, (path, (schema, _)) in enumerate(self._footers.items()):  # all, before the first is explained
            keys = self._keys_of(i, schema.names)
            stored = [name for name in columns if keys is None or name not in keys.column_names]
            check_repeats(path, schema.names)
            check_columns(path, schema.names, stored)
            check_types(path, schema, self.files[0], self.schema, stored)
        for i, (path, (schema, sizes)) in enumerate(self._footers.items()):
            for group, size in enumerate(sizes):
                yield Slice(path, self.stamps[path], group, 0, size, self._keys_of(i, schema.names))

    def _chunks(self, columns: Sequence[str]) -> Iterator[Chunk]:
        for i, (path, stamp) in enumerate(self.stamps.items()):
            keys = self._keys_of(i, ())
            stored = [name for name in columns if keys is None or name not in keys.column_names]
            for chunk in csv_chunks(path, stored):
                yield chunk if isinstance(chunk, Unreadable) else with_keys(chunk, keys, columns)
            stamp.check(path)


def _footer(path: Place) -> tuple[pa.Schema, list[int]]:
    try:
        footer = parsed(path, pq.read_metadata)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} is no Parquet file, or its end is lost: {error}") from error
    return footer.schema.to_arrow_schema(), [
        footer.row_group(i).num_rows for i in range(footer.num_row_groups)
    ]


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
