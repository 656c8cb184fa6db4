"""A table in files, a folder, a pattern or a table format, as numbered parts of about equal length.

A part states where its rows are. Parts of Parquet files are read where they are needed, by row groups; CSV
can only be read from its beginning, so its parts carry their rows, as text.

Of a folder all files are rows of the table, except what Spark and Hive leave out: files and folders whose
names begin with "_" or ".", such as ``_SUCCESS``, ``_temporary`` and ``.ipynb_checkpoints``. A folder
``_x=1`` is a column. A file of another kind is refused, not left out. Folders ``key=value`` on the way to a
file are columns of its rows, as Hive writes them. A Delta table's log states which of the files in its folder
are rows of the table; an Iceberg table is passed as its metadata file.

CSV states no types, and files of one folder may differ in theirs. The type of a column is decided once, for
the whole table, by the head of the first file. A cell that cannot be cast is an error of its row; so is a
malformed line. Neither pyarrow nor duckdb's ``read_csv(store_rejects=true)`` reports such rows one by one,
each in its place, and keeps these types, so the repair is written here.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property, lru_cache
from glob import glob, has_magic
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from limes._checks import listed, require
from limes._dialects import MISSING, TRIED, USUAL, WRONG, Dialect, dialect_of
from limes.exceptions import InputError
from limes.scale._frames import check_columns
from limes.scale._stores import Place, StorePath, checksum, opened, parsed, place_of, streamed
from limes.scale._typed import DECIMAL_COMMA, Chunk, Unreadable, misfits, typed, with_points

# -- cells ---------------------------------------------------------------------------------------------------

# Bytes of a CSV file from which its columns' types, and the length of its lines, are learnt
_HEAD = 8 << 20
# Bytes by which its encoding and its separator are found
_FIRST = 1 << 20
# pyarrow counts lines from 1, which is the header
_FIRST_LINE = 2


def _check_types(
    where: Place, schema: pa.Schema, first: Place, types: pa.Schema, columns: Sequence[str]
) -> None:
    """Raise InputError where a file's columns are of other kinds than those of the first file.

    Numbers may be wider or narrower, and a column may be empty; but a date or a text is no number.
    """
    for name in columns:
        kind, expected = schema.field(name).type, types.field(name).type
        if pa.types.is_null(kind) or _kind(kind) == _kind(expected):
            continue
        raise InputError(
            f"{where}: column {name!r} holds {kind}, and in {first.name} {expected}. Cast it to one type in "
            "all files"
        )


def _check_repeats(where: Place, columns: Sequence[str]) -> None:
    repeated = [name for name, count in Counter(columns).items() if count > 1]
    if repeated:
        raise InputError(f"{where} has several columns named {listed(repeated)}: give each another name")


def _kind(kind: Any) -> str:
    """One name for types that are cast to each other without a change of meaning."""
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_timestamp(kind):
        return f"timestamp {kind.tz}"
    return "decimal" if pa.types.is_decimal(kind) else str(kind)


def _csv_schema(path: Place) -> pa.Schema:
    """Columns, of types that all cells of the first 8 MiB have; of numbers if 99 in a hundred are."""
    dialect = csv_dialect(path)
    with (
        streamed(path, _compression(path)) as text,
        pa_csv.open_csv(text, **_csv_options([], dialect, _HEAD, null_values=MISSING)) as reader,
    ):
        _check_repeats(path, reader.schema.names)
        head = next(iter(reader), pa.table([pa.nulls(0)] * len(reader.schema), reader.schema.names))
        stated = DECIMAL_COMMA if dialect.decimal == "," else None
        fields = [field.with_metadata(stated) for field in reader.schema]
        return pa.schema([_csv_field(field, head[field.name]) for field in fields])


def csv_dialect(path: Place) -> Dialect:
    """How a CSV file is written, by its first bytes."""
    with streamed(path, _compression(path)) as text:
        head = text.read(_FIRST)
    return dialect_of(head, ends=len(head) < _FIRST)


def _csv_field(field: pa.Field, cells: Any) -> pa.Field:
    """Make an empty column, and one with few cells that are no numbers, a column of numbers."""
    if pa.types.is_string(field.type):
        sample = pa.chunked_array([cells.drop_null().slice(0, TRIED)])
        wrong = sum(1 for _ in misfits(with_points(sample, field), pa.float64()))
        return field.with_type(pa.float64()) if wrong <= WRONG * len(sample) else field
    return field.with_type(pa.float64()) if pa.types.is_null(field.type) else field


def _likely_lines(path: Place, size: int) -> int:
    with opened(path) as file, pa.input_stream(file, _compression(path)) as text:
        head: bytes = text.read(_HEAD)
        consumed: int = file.tell()
    return round(size / max(1, min(consumed, size)) * max(0, head.count(b"\n") - 1))


def _compression(path: Place) -> str | None:
    return {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(path.suffix.lower())


def _csv_chunks(path: Place, columns: Sequence[str]) -> Iterator[Chunk]:
    """Yield rows in order, as text whatever their columns hold."""
    malformed: list[Any] = []
    # "" in quotes is a text; which other texts are null depends on whether the column is a key
    convert: dict[str, Any] = {"null_values": [""], "quoted_strings_can_be_null": False}
    options = _csv_options(
        malformed, csv_dialect(path), column_types=dict.fromkeys(columns, pa.binary()), **convert
    )
    try:
        with streamed(path, _compression(path)) as text, pa_csv.open_csv(text, **options) as reader:
            _check_repeats(path, reader.schema.names)
            check_columns(path, reader.schema.names, columns)
            yield from _with_malformed(reader, columns, malformed)
    except (OSError, pa.ArrowException, UnicodeError) as error:
        raise InputError(
            f"{path} could not be read: {error}. Correct the line, or store the table as Parquet"
        ) from error


def _csv_options(
    malformed: list[Any], dialect: Dialect, block_size: int = 1 << 20, **convert: Any
) -> dict[str, Any]:
    """Options of pyarrow's reader; lines with too few or too many cells are appended to ``malformed``."""

    def skip(line: Any) -> str:
        malformed.append(line)
        return "skip"

    return {
        "read_options": pa_csv.ReadOptions(
            use_threads=False, block_size=block_size, encoding=dialect.encoding
        ),
        "parse_options": pa_csv.ParseOptions(
            delimiter=dialect.separator, newlines_in_values=True, invalid_row_handler=skip
        ),
        "convert_options": pa_csv.ConvertOptions(
            strings_can_be_null=True, decimal_point=dialect.decimal, **convert
        ),
    }


def _with_malformed(reader: Any, columns: Sequence[str], malformed: list[Any]) -> Iterator[Chunk]:
    position = 0
    for batch in reader:
        rows = pa.Table.from_batches([batch]).select(list(columns))
        while rows.num_rows:
            # the reader skips such lines but reports their numbers, so the rows before each are known
            room = malformed[0].number - _FIRST_LINE - position if malformed else rows.num_rows
            chunk = rows.slice(0, room) if room else _unreadable(malformed.pop(0))
            yield chunk
            rows, position = rows.slice(room), position + chunk.num_rows
    yield from map(_unreadable, malformed)


def _unreadable(line: Any) -> Unreadable:
    return Unreadable(1, f"{line.actual_columns} cells in place of {line.expected_columns}: {line.text!r}")


# -- files ---------------------------------------------------------------------------------------------------

# Ends of names, in small letters, and what is in such a file; pyarrow decompresses by the name
_KINDS = {".parquet": ".parquet", ".csv": ".csv", ".csv.gz": ".csv", ".csv.bz2": ".csv", ".csv.zst": ".csv"}
# The folder of a Delta table's log, the end of an Iceberg table's metadata, and Hive's name for null
_DELTA, _ICEBERG, _NULL = "_delta_log", ".metadata.json", "__HIVE_DEFAULT_PARTITION__"
# A file as it would be in an output folder
_A_PART = "part-00000.parquet"


def _refuse(text: str, files: Sequence[Place]) -> NoReturn:
    others = [file.name for file in files if _kind_of(file) is None]
    shown = f"found {listed([file.name for file in files])}" if files else "found no such file"
    if others and len(others) < len(files):
        shown = (
            f"{listed(others)} would be left out: pass a pattern that names the files of the table, such as "
            "'folder/*.parquet', or move the others"
        )
    raise InputError(
        f"{text}: pass a .parquet or .csv file (or .csv.gz), or a folder or pattern of files of one kind; "
        f"{shown}"
    )


def _kind_of(file: Place) -> str | None:
    # ".parquet", ".csv", or None for another kind of file
    name = file.name.lower()
    return next((kind for end, kind in _KINDS.items() if name.endswith(end)), None)


def _is_hidden(name: str) -> bool:
    """Whether Spark and Hive leave a file or folder out."""
    is_private = name.startswith("_") and "=" not in name
    return is_private or name.startswith(".") or name.endswith("._COPYING_")


def _below(place: Place) -> tuple[list[Place], tuple[Place, ...]]:
    """The files below a folder, in order, and the folders in which they lie: it, and links."""
    files: list[Place]
    if isinstance(place, StorePath):
        depth = len(place.parts)
        files = [file for file in place.files_below() if not any(map(_is_hidden, file.parts[depth:]))]
        return sorted(files), (place,)
    files = []
    folders: list[Place] = [place]
    for folder, inner, names in os.walk(place, followlinks=True, onerror=_fail):
        above = Path(folder).resolve()
        paths = [Path(folder, name) for name in inner if not _is_hidden(name)]
        paths = [path for path in paths if path.resolve() not in (above, *above.parents)]  # no circles
        folders += [path for path in paths if path.is_symlink()]
        inner[:] = [path.name for path in paths]
        files += [Path(folder, name) for name in names if not _is_hidden(name)]
    return sorted(files), tuple(folders)


def _fail(error: OSError) -> NoReturn:
    raise InputError(f"{error.filename} cannot be listed ({error.strerror}): grant the right to read it")


def _store(place: Place) -> tuple[str, ...]:
    """Return what tells stores apart: buckets of one name may be of several servers. () for this machine."""
    if isinstance(place, Path):
        return ()
    url = urlsplit(place.url)
    scheme = {"gcs": "gs", "abfss": "abfs"}.get(url.scheme, url.scheme)
    return scheme, *parse_qs(url.query).get("endpoint_override", [])


def is_in(place: Place, folder: Place) -> bool:
    """Whether a place is a folder or in it, by whatever path."""
    if _store(place) != _store(folder):
        return False
    if isinstance(place, StorePath):
        return place.parts[: len(folder.parts)] == folder.parts
    resolved, other = place.resolve(), Path(str(folder))
    if not other.exists():  # links cannot lead to it
        return other.resolve() in (resolved, *resolved.parents)
    return any(path.exists() and path.samefile(other) for path in (resolved, *resolved.parents))


def _fixed(pattern: Place) -> Place:
    """The folder with which a pattern begins."""
    while has_magic(str(pattern)):
        pattern = pattern.parent
    return pattern


def _would_match(file: Place, pattern: Place) -> bool:
    """Whether a pattern names a file, by whatever path to the folder with which the pattern begins."""
    fixed, parts = _fixed(pattern), file.resolve().parts
    folder, rest = fixed.resolve().parts, pattern.parts[len(fixed.parts) :]
    is_below = _store(file) == _store(pattern) and parts[: len(folder)] == folder
    return is_below and _fits(parts[len(folder) :], rest)


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path fits a pattern, part by part; "**" is any number of parts."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(parts[i:], pattern[1:]) for i in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _matches(pattern: Place) -> tuple[Place, list[Place]]:
    """The folder with which a pattern begins, and the files that match it.

    Hidden folders, and files that begin with ".", match only a part of the pattern that begins as they do.
    """
    folder = _fixed(pattern)
    files: list[Place]
    if isinstance(folder, StorePath):
        files = [file for file in folder.files_below() if _fits(file.parts, pattern.parts)]
    else:
        files = [*filter(Path.is_file, map(Path, glob(str(pattern), recursive=True)))]
    depth = len(folder.parts)
    named = [part for part in pattern.parts[depth:] if part.startswith(("_", "."))]

    def is_left_out(file: Place) -> bool:
        *inner, name = file.parts[depth:]
        hidden = [part for part in inner if _is_hidden(part)] + ([name] if name.startswith(".") else [])
        return not all(any(fnmatchcase(part, name) for name in named) for part in hidden)

    return folder, sorted(file for file in files if not is_left_out(file))


def _hive(paths: Sequence[str]) -> pa.Table:
    """The columns that folders state, a row a file."""
    folders = [re.split(r"[/\\]", path)[:-1] for path in paths]
    rows = [dict(part.split("=", 1) for part in parts if "=" in part) for parts in folders]
    names = {tuple(row) for row in rows}
    if len(names) > 1:
        shown = listed([", ".join(name) or "no key" for name in sorted(names)])
        raise InputError(
            f"files lie in folders of different keys ({shown}): pass a folder whose files have the same keys"
        )
    columns: dict[str, Any] = {}
    for name in rows[0]:
        cells = [None if row[name] == _NULL else unquote(row[name]) for row in rows]
        whole = all(cell is None or re.fullmatch(r"-?\d{1,18}", cell) for cell in cells)
        columns[name] = pa.array(cells, pa.string()).cast(pa.int64() if whole else pa.string())
    return pa.table(columns)


def _delta(place: Place) -> Source:
    require("deltalake", "limes.scale for Delta tables")
    import pyarrow.dataset as pa_dataset
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:  # refuses what its Arrow dataset does not have, such as deleted rows inside files
        options = _delta_options(place.url) if isinstance(place, StorePath) else {}
        table = DeltaTable(str(place), storage_options=options)
        dataset = table.to_pyarrow_dataset()
    except (DeltaError, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"the Delta table {place} cannot be read: {error}") from error
    fragments = sorted(dataset.get_fragments(), key=lambda fragment: fragment.path)
    if not fragments:
        raise InputError(f"the Delta table {place} has no rows")
    files = tuple(place / fragment.path.strip("/") for fragment in fragments)
    rows = [pa_dataset.get_partition_keys(fragment.partition_expression) for fragment in fragments]
    schema = pa.schema([dataset.schema.field(name) for name in rows[0]])
    keys, version = pa.Table.from_pylist(rows, schema), f"version {table.version()} of the Delta table"
    return Source(files, keys, folders=(place,), base=place, version=version)


def _delta_options(url: str) -> dict[str, str]:
    """Options of pyarrow for S3 by deltalake's names; other stores read theirs from the environment."""
    options = {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}
    names = {"region": "AWS_REGION", "endpoint_override": "AWS_ENDPOINT_URL"}
    result = {names[name]: value for name, value in options.items() if name in names}
    if result.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        result["AWS_ALLOW_HTTP"] = "true"
    return result


def _iceberg(text: str) -> Source:
    require("pyiceberg", "limes.scale for Iceberg tables")
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(text)
    tasks = [*table.scan().plan_files()]
    if any(task.delete_files for task in tasks):
        raise InputError(f"{text} deletes rows inside files, which is not read: compact the table first")
    files = sorted((place_of(task.file.file_path) for task in tasks), key=str)
    if not files:
        raise InputError(f"the Iceberg table {text} has no rows")
    version = f"snapshot {table.metadata.current_snapshot_id} of the Iceberg table"
    return Source(tuple(files), version=version)


# -- the table and its parts ---------------------------------------------------------------------------------

# Footers that are read at the same time: a store answers slowly, but many at once
_READERS = 16


@dataclass(frozen=True)
class Stamp:
    size: int
    changed: int

    @classmethod
    def of(cls, path: Place) -> Stamp:
        try:
            status = path.stat()
        except OSError as error:
            raise InputError(
                f"{path} is missing: restore it, and run again ({error.strerror or error})"
            ) from error
        return cls(status.st_size, status.st_mtime_ns)

    def check(self, path: Place) -> None:
        if Stamp.of(path) != self:
            raise InputError(
                f"{path} was changed while it was being explained. Restore it and run the same command "
                "again, or start again in another folder"
            )


@dataclass(frozen=True)
class Slice:
    file: Place
    stamp: Stamp
    group: int
    group_rows: int
    start: int
    num_rows: int
    keys: pa.Table  # the columns that its folder states

    def slice(self, start: int, length: int) -> Slice:
        return replace(self, start=self.start + start, num_rows=length)

    def read(self, columns: Sequence[str]) -> Chunk:
        self.stamp.check(self.file)
        try:
            rows = self._stored(tuple(_without(columns, self.keys.column_names)))
        except MemoryError:  # Arrow's is one of its exceptions: the file is as good as before
            raise
        except (OSError, pa.ArrowException) as error:
            text = " ".join(str(error).split())
            return Unreadable(
                self.num_rows, f"row group {self.group} of {self.file.name} could not be read: {text}"
            )
        finally:
            self.stamp.check(self.file)
        return _with_keys(rows, self.keys, columns)

    def _stored(self, columns: tuple[str, ...]) -> pa.Table:
        where, most = (
            (self.file, self.stamp, self.group, columns),
            max(_BATCH, _CELLS // max(len(columns), 1)),
        )
        if self.group_rows <= most:
            return _row_group(*where).slice(self.start, self.num_rows)
        parts, start, stop = [], self.start, self.start + self.num_rows
        while start < stop:
            place = start % most
            parts.append(_window(*where, start - place, most).slice(place, min(stop - start, most - place)))
            start += parts[-1].num_rows
        return pa.concat_tables(parts)


def _without(columns: Sequence[str], others: Collection[str]) -> list[str]:
    return [name for name in columns if name not in others]


def _with_keys(rows: pa.Table, keys: pa.Table, columns: Sequence[str]) -> pa.Table:
    every = pa.array(np.zeros(rows.num_rows, np.int64))
    return pa.table(
        {name: keys[name].take(every) if name in keys.column_names else rows[name] for name in columns}
    )


@lru_cache(maxsize=1)  # under its stamp: the next part is often of the same row group
def _row_group(path: Place, stamp: Stamp, group: int, columns: tuple[str, ...]) -> pa.Table:  # noqa: ARG001
    def read(file: Any) -> pa.Table:
        with pq.ParquetFile(file, page_checksum_verification=True, pre_buffer=True) as table:
            return table.read_row_group(group, columns=[*columns], use_threads=False).select(columns)

    return parsed(path, read)


# Cells of a row group that are in memory at once, 128 MB of numbers. Of a larger one rows that are decoded at
# once, and bytes of a column that are read
_CELLS, _BATCH, _BUFFER = 1 << 24, 1 << 16, 1 << 18


@lru_cache(maxsize=1)
def _window(
    path: Place,
    stamp: Stamp,  # noqa: ARG001
    group: int,
    columns: tuple[str, ...],
    first: int,
    most: int,
) -> pa.Table:
    """At most ``most`` rows of a large row group, from its row ``first`` on."""

    def read(file: Any) -> pa.Table:
        parts, start = [], 0
        reading = {"pre_buffer": False, "buffer_size": _BUFFER, "page_checksum_verification": True}
        with pq.ParquetFile(file, **reading) as table:
            options = {"row_groups": [group], "columns": [*columns], "use_threads": False}
            for batch in table.iter_batches(_BATCH, **options):
                # rows before the first are decoded, too, and forgotten
                begin, end = max(first - start, 0), min(first + most - start, batch.num_rows)
                if begin < end:
                    parts.append(batch.slice(begin, end - begin))
                start += batch.num_rows
                if start >= first + most:
                    break
        return pa.Table.from_batches(parts).select(columns)

    return parsed(path, read)


@dataclass(frozen=True)
class Part:
    """Rows of the table, the first of which is row ``first``."""

    number: int
    first: int
    pieces: tuple[Slice | Chunk, ...]

    @property
    def num_rows(self) -> int:
        return sum(piece.num_rows for piece in self.pieces)

    def read(self, columns: Sequence[str]) -> list[Chunk]:
        return [piece.read(columns) if isinstance(piece, Slice) else piece for piece in self.pieces]


@dataclass(frozen=True)
class Source:
    """Files of one kind, in order of their names, and the columns that their folders state."""

    files: tuple[Place, ...]
    keys: pa.Table = field(default_factory=lambda: pa.table({}))  # a row a file: columns of its folders
    folders: tuple[Place, ...] = ()  # all of whose files are the table's: another file in them would be too
    pattern: Place | None = None  # another file that matches it would be the table's too
    base: Place | None = None  # names of files are their paths below it
    version: str = "the table"  # what states which files there are
    lead: Place | None = None  # states columns and types; None: the first file
    start: int = 0  # number of the first row
    texts: tuple[str, ...] = ()  # columns of CSV that are text, even where all cells look like numbers

    @classmethod
    def of(cls, where: str | Place) -> Source:
        text, place = str(where), place_of(where).absolute()  # workers may have another working directory
        if text.endswith(_ICEBERG):
            return _iceberg(text)
        folders: tuple[Place, ...] = ()
        pattern: Place | None = None
        if place.is_dir():
            if (place / _DELTA).is_dir():
                return _delta(place)
            files, folders = _below(place)
        elif has_magic(str(place)):
            pattern = place
            place, files = _matches(place)
        else:
            files = [place] if place.is_file() else []
        kinds = {_kind_of(file) for file in files}
        if len(kinds) != 1 or None in kinds:
            _refuse(text, files)
        keys = _hive([str(file).removeprefix(str(place)) for file in files])
        base = place.parent if files == [place] else place
        return cls(tuple(files), keys, folders, pattern, base)

    def refuse_output(self, out: Place) -> None:
        is_inside = any(is_in(out, folder) for folder in self.folders)
        if is_inside or (self.pattern is not None and _would_match(out / _A_PART, self.pattern)):
            raise InputError(
                f"{out} is inside of the table, whose readers would take explanations for its rows: pass a "
                "folder elsewhere"
            )

    @property
    def first(self) -> Place:
        return self.lead or self.files[0]

    @property
    def is_csv(self) -> bool:
        return _kind_of(self.first) == ".csv"

    @cached_property
    def dialect(self) -> Dialect:
        """How the first file is written."""
        return csv_dialect(self.first) if self.is_csv else USUAL

    @cached_property
    def names(self) -> dict[str, Place]:
        """Files by their paths below the table's folder; of Iceberg, which has none, by the whole path."""
        base = "" if self.base is None else str(self.base)
        return {str(path).removeprefix(base).replace("\\", "/").lstrip("/"): path for path in self.files}

    def only(self, names: Collection[str], lead: str) -> Source:
        """These files of the table, in their order; the file ``lead`` states columns and types."""
        at = [i for i, name in enumerate(self.names) if name in names]
        keys = self.keys.take(pa.array(at, pa.int64())) if self.keys.num_columns else self.keys
        return replace(self, files=tuple(self.files[i] for i in at), keys=keys, lead=self.names[lead])

    @cached_property
    def schema(self) -> pa.Schema:
        try:
            schema = _csv_schema(self.first) if self.is_csv else parsed(self.first, pq.read_schema)
        except (OSError, pa.ArrowException, UnicodeError) as error:
            kind = " Tables of text are CSV in UTF-8, UTF-16 or Windows-1252" if self.is_csv else ""
            raise InputError(f"{self.first} could not be read: {error}.{kind}") from error
        _check_repeats(self.first, schema.names)
        schema = schema.remove_metadata()
        for name in self.texts if self.is_csv else ():
            schema = schema.set(schema.names.index(name), pa.field(name, pa.string()))
        for column in self.keys.schema:
            if column.name not in schema.names:
                schema = schema.append(column)
        return schema

    def schema_of_keys(self, names: Sequence[str]) -> pa.Schema:
        """Types in which keys are copied: those of the table; cells of CSV are copied as text."""
        fields = [self.schema.field(name) for name in names]
        if self.is_csv:  # a number would lose zeros in front of it, and digits, by which rows are joined
            fields = [f if f.name in self.keys.column_names else f.with_type(pa.string()) for f in fields]
        return pa.schema(fields)

    def _keys_of(self, number: int, stored: Sequence[str]) -> pa.Table:
        """Columns that a file's folder states, and that it does not store."""
        return self.keys.select(_without(self.keys.column_names, stored)).slice(number, 1)

    @cached_property
    def stamps(self) -> dict[Place, Stamp]:
        return {path: Stamp.of(path) for path in self.files}

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """Size and a hash of every byte of each file; for an object of a store, size and time of its put."""
        # hashing takes a thousandth of the time of explaining; fetching a table from a store twice takes
        # longer, and objects are never changed, only put again
        return {
            name: f"{self.stamps[path].size} bytes, {_mark(path, self.stamps[path])}"
            for name, path in self.names.items()
        }

    @cached_property
    def likely_rows(self) -> int:
        """Number of rows by the footers of Parquet files; for CSV estimated by the first lines' length."""
        if not self.is_csv:
            return sum(sum(sizes) for _, sizes in self._footers.values())
        return _likely_lines(self.first, sum(stamp.size for stamp in self.stamps.values()))

    def parts(self, rows: int, columns: Sequence[str]) -> Iterator[Part]:
        number, first, pieces, room = 0, self.start, [], rows
        for piece in self._chunks(columns) if self.is_csv else self._slices(columns):
            start = 0
            while start < piece.num_rows:
                count = min(piece.num_rows - start, room)
                pieces.append(piece.slice(start, count))
                start, room = start + count, room - count
                if not room:
                    yield Part(number, first, tuple(pieces))
                    number, first, pieces, room = number + 1, first + rows, [], rows
        if not number and not pieces and self.lead is not None:  # nothing new: a table without rows
            pieces = [pa.schema([self.schema.field(name) for name in columns]).empty_table()]
        if pieces:
            yield Part(number, first, tuple(pieces))

    @cached_property
    def _footers(self) -> dict[Place, tuple[pa.Schema, list[int]]]:
        """Columns, and rows of each row group, of Parquet files."""
        with ThreadPoolExecutor(_READERS) as pool:
            return dict(zip(self.files, pool.map(_footer, self.files), strict=True))

    def _slices(self, columns: Sequence[str]) -> Iterator[Slice]:
        for i, (path, (schema, _)) in enumerate(self._footers.items()):  # all, before the first is explained
            stored = _without(columns, self._keys_of(i, schema.names).column_names)
            _check_repeats(path, schema.names)
            check_columns(path, schema.names, stored)
            _check_types(path, schema, self.first, self.schema, stored)
        for i, (path, (schema, sizes)) in enumerate(self._footers.items()):
            for group, size in enumerate(sizes):
                yield Slice(path, self.stamps[path], group, size, 0, size, self._keys_of(i, schema.names))

    def _chunks(self, columns: Sequence[str]) -> Iterator[Chunk]:
        for i, (path, stamp) in enumerate(self.stamps.items()):
            keys = self._keys_of(i, ())
            for chunk in _csv_chunks(path, _without(columns, keys.column_names)):
                yield chunk if isinstance(chunk, Unreadable) else _with_keys(chunk, keys, columns)
            stamp.check(path)


@cache  # under its stamp: parts of a table are compared one by one
def _mark(path: Place, stamp: Stamp) -> str:
    return f"put {stamp.changed}" if isinstance(path, StorePath) else str(checksum(path))[:16]


def _footer(path: Place) -> tuple[pa.Schema, list[int]]:
    try:
        footer = parsed(path, pq.read_metadata)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} is no Parquet file, or its end is lost: {error}") from error
    sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
    return footer.schema.to_arrow_schema(), sizes


def decimated(source: Source, columns: Sequence[str], rows: int) -> pa.Table:
    """Every m-th row of the table that can be read, between ``rows`` and ``2 * rows`` of them."""
    return picked(source, columns, rows).sample


class Picked(NamedTuple):
    """Rows of a table: evenly spaced ones, and those of given positions."""

    sample: pa.Table
    omitted: dict[int, str]  # why rows of the sample could not be read, by position
    chosen: pa.Table
    reasons: dict[int, str]  # why rows of given positions could not be read
    rows: int  # of the table


def picked(source: Source, columns: Sequence[str], rows: int, at: Sequence[int] = ()) -> Picked:
    """Every m-th row, between ``rows`` and ``2 * rows`` of them, and the rows at some positions."""
    schema = pa.schema([source.schema.field(name) for name in columns])
    sample: pa.Table = schema.empty_table()
    step, position = 1, 0
    singles: dict[int, pa.Table] = {}
    omitted, reasons = dict[int, str](), dict[int, str]()
    for part in source.parts(2 * rows, columns):
        for chunk in part.read(columns):
            for i in at:
                if position <= i < position + chunk.num_rows:
                    singles[i], why = typed(chunk.slice(i - position, 1), schema, ())
                    reasons |= {i: why[0]} if why else {}
            first = (-position) % step
            if isinstance(chunk, Unreadable):
                omitted |= dict.fromkeys(
                    range(position + first, position + chunk.num_rows, step), chunk.reason
                )
            else:
                cells, wrong = typed(_every(chunk, step, first), schema, ())
                omitted |= {position + first + step * i: why for i, why in wrong.items()}
                good = pa.array([i for i in range(cells.num_rows) if i not in wrong], pa.int64())
                sample = pa.concat_tables([sample, cells.take(good) if wrong else cells])
            position += chunk.num_rows
            while sample.num_rows > 2 * rows:
                sample, step = _every(sample, 2), 2 * step
    if not sample.num_rows:
        raise InputError("the table has no rows that could be read")
    one_by_one = pa.concat_tables([singles[i] for i in at if i in singles] or [schema.empty_table()])
    return Picked(sample.combine_chunks(), omitted, one_by_one.combine_chunks(), reasons, position)


def _every(rows: pa.Table, step: int, first: int = 0) -> pa.Table:
    return rows.take(pa.array(range(first, rows.num_rows, step), pa.int64()))
