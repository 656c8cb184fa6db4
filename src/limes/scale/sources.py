"""Parquet and CSV files as numbered parts of about equal length, without holding the table in memory.

A part says where its rows are. Parts of Parquet files are read where they are needed, by row groups; CSV can
only be read from its beginning, so its parts carry their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from glob import glob, has_magic
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from limes.exceptions import InputError
from limes.explainers.columns import listed

# Bytes of each end of a file that its fingerprint is of; the footer of a Parquet file is there
_ENDS = 1 << 20


@dataclass(frozen=True)
class Unreadable:
    """Rows that should be there, and why they cannot be read."""

    num_rows: int
    reason: str


Chunk: TypeAlias = Any  # pa.Table | Unreadable; pyarrow has no types


@dataclass(frozen=True)
class Slice:
    """Rows start to stop of a row group of a Parquet file."""

    file: Path
    group: int
    start: int
    stop: int

    def read(self, columns: Sequence[str]) -> Chunk:
        """The rows, or why not."""
        try:
            with pq.ParquetFile(self.file, page_checksum_verification=True) as file:
                rows = file.read_row_group(self.group, columns=list(columns), use_threads=False)
        except FileNotFoundError as error:
            raise InputError(f"{self.file} is no longer there: put it back, and run again") from error
        except (OSError, pa.ArrowException) as error:
            reason = f"row group {self.group} of {self.file.name} could not be read: {error}"
            return Unreadable(self.stop - self.start, reason)
        return rows.select(list(columns)).slice(self.start, self.stop - self.start)


@dataclass(frozen=True)
class Part:
    """Rows of the table, the first of which is row ``first``."""

    number: int
    first: int
    pieces: tuple[Slice | pa.Table, ...]

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
        return cls(tuple(found))

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns of the first file."""
        try:
            if self.files[0].suffix == ".csv":
                with pa_csv.open_csv(self.files[0]) as reader:
                    return reader.schema
            return pq.read_schema(self.files[0])
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{self.files[0]} could not be read: {error}") from error

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """Of each file: its size, and a hash of both its ends."""
        return {f"{i} {one.name}": _fingerprint(one) for i, one in enumerate(self.files)}

    def parts(self, rows: int, columns: Sequence[str]) -> Iterator[Part]:
        """Cut the table into parts of so many rows; the last one may be shorter.

        Raises
        ------
        InputError
            A file has no such column or cannot be read at all.
        """
        cut = self._tables(columns) if self.files[0].suffix == ".csv" else self._slices(columns)
        number, first, pieces, room = 0, 0, [], rows
        for start, piece in cut:
            size, at = _size(piece), start
            while size:
                take = min(size, room)
                pieces.append(_cut(piece, at, take))
                at, size, room = at + take, size - take, room - take
                if not room:
                    yield Part(number, first, tuple(pieces))
                    number, first, pieces, room = number + 1, first + rows, [], rows
        if pieces:
            yield Part(number, first, tuple(pieces))

    def _slices(self, columns: Sequence[str]) -> Iterator[tuple[int, Slice]]:
        for path in self.files:
            try:
                footer, names = pq.read_metadata(path), pq.read_schema(path).names
            except (OSError, pa.ArrowException) as error:
                raise InputError(f"{path} is no Parquet file, or its end is lost: {error}") from error
            _check(path, names, columns)
            for group in range(footer.num_row_groups):
                yield 0, Slice(path, group, 0, footer.row_group(group).num_rows)

    def _tables(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        types = {name: self.schema.field(name).type for name in self.schema.names}
        for path in self.files:
            options = pa_csv.ConvertOptions(column_types=types)
            try:
                with pa_csv.open_csv(path, convert_options=options) as reader:
                    _check(path, reader.schema.names, columns)
                    for batch in reader:
                        yield 0, pa.Table.from_batches([batch]).select(list(columns))
            except (OSError, pa.ArrowException) as error:
                raise InputError(
                    f"{path} could not be read: {error}. Mend the line, or store the table as Parquet"
                ) from error


_KINDS = (".parquet", ".csv")


def decimated(source: Source, columns: Sequence[str], rows: int) -> pa.Table:
    """Every m-th row of the table that can be read, between ``rows`` and twice as many of them.

    It is what bins are learnt from where no background is given. Raises InputError for an empty table.
    """
    kept: pa.Table = source.schema.empty_table().select(list(columns))
    step, at = 1, 0
    for part in source.parts(2 * rows, columns):
        for chunk in part.read(columns):
            if isinstance(chunk, Unreadable):
                continue
            kept = pa.concat_tables([kept, _every(chunk, step, (-at) % step)])
            at += chunk.num_rows
            while kept.num_rows > 2 * rows:
                kept, step = _every(kept, 2), 2 * step
    if not kept.num_rows:
        raise InputError("the table has no rows that could be read")
    return kept.combine_chunks()


def _every(rows: pa.Table, step: int, first: int = 0) -> pa.Table:
    return rows.take(pa.array(range(first, rows.num_rows, step), pa.int64()))


def _size(piece: Slice | pa.Table) -> int:
    return piece.stop - piece.start if isinstance(piece, Slice) else piece.num_rows


def _cut(piece: Slice | pa.Table, at: int, take: int) -> Slice | pa.Table:
    if isinstance(piece, Slice):
        return Slice(piece.file, piece.group, at, at + take)
    return piece.slice(at, take)


def _check(path: Path, names: Sequence[str], columns: Sequence[str]) -> None:
    lost = [name for name in columns if name not in names]
    if lost:
        raise InputError(f"{path} has no column {listed(lost)}; it has {listed(names)}")


def _fingerprint(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as file:
        digest = sha256(file.read(_ENDS))
        file.seek(max(size - _ENDS, 0))
        digest.update(file.read(_ENDS))
    return f"{size} bytes, {digest.hexdigest()[:16]}"
