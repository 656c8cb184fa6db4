"""A table in files, a folder, a pattern or a table format, as numbered parts of about equal length.

A part states where its rows are. Parts of Parquet files are read where they are needed, by row groups; CSV
can only be read from its beginning, so its parts carry their rows, as text.

Of a folder all files are rows of the table, except what Spark and Hive leave out: files and folders whose
names begin with "_" or ".", such as ``_SUCCESS``, ``_temporary`` and ``.ipynb_checkpoints``. A folder
``_x=1`` is a column. A file of another kind is refused, not left out.

Folders ``key=value`` on the way to a file are columns of its rows, as Hive writes them. A Delta table's log
states which of the files in its folder are rows of the table; an Iceberg table is passed as its metadata
file.
"""

from __future__ import annotations

from limes._checks import require

require("pyarrow", "limes.scale for files", package="'limes[scale]'")

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from glob import glob, has_magic
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from limes._checks import listed
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
from limes.scale._stores import Place, StorePath, absolute, checksum, parsed, place_of

# Ends of names, in small letters, and what is in such a file; pyarrow decompresses by the name
_KINDS = {".parquet": ".parquet", ".csv": ".csv", ".csv.gz": ".csv", ".csv.bz2": ".csv", ".csv.zst": ".csv"}
# The folder of a Delta table's log, the end of an Iceberg table's metadata, and Hive's name for null
_DELTA, _ICEBERG, _NULL = "_delta_log", ".metadata.json", "__HIVE_DEFAULT_PARTITION__"
# A file as it would be in an output folder
_A_PART = "part-00000.parquet"


def _refuse(text: str, files: Sequence[Place]) -> NoReturn:
    """Raise an error that names the files of another kind, or those of both."""
    others = [file.name for file in files if kind_of(file) is None]
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


def kind_of(file: Place) -> str | None:
    """Return ".parquet", ".csv", or None for another kind of file."""
    name = file.name.lower()
    return next((kind for end, kind in _KINDS.items() if name.endswith(end)), None)


def _is_hidden(name: str) -> bool:
    """Return whether Spark and Hive leave a file or folder out."""
    is_private = name.startswith("_") and "=" not in name
    return is_private or name.startswith(".") or name.endswith("._COPYING_")


def _below(place: Place) -> tuple[list[Place], tuple[Place, ...]]:
    """Return the files below a folder, in order, and the folders in which they lie: it, and links."""
    files: list[Place]
    if isinstance(place, StorePath):
        depth = len(_parts(place))
        files = [file for file in place.rglob() if not any(map(_is_hidden, _parts(file)[depth:]))]
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


def _is_in(place: Place, folder: Place) -> bool:
    """Return whether a place is a folder or in it, by whatever path."""
    if isinstance(place, StorePath) and isinstance(folder, StorePath):
        return f"{place.key}/".startswith(f"{folder.key}/") and _store(place) == _store(folder)
    if isinstance(place, StorePath) or isinstance(folder, StorePath):
        return False
    resolved = place.resolve()
    return any(path.exists() and path.samefile(folder) for path in (resolved, *resolved.parents))


def _store(place: StorePath) -> tuple[str, ...]:
    """Return what tells stores apart: buckets of one name may be of several servers."""
    url = urlsplit(place.url)
    scheme = {"gcs": "gs", "abfss": "abfs"}.get(url.scheme, url.scheme)
    return scheme, *parse_qs(url.query).get("endpoint_override", [])


def _parts(place: Place) -> tuple[str, ...]:
    return tuple(place.key.split("/")) if isinstance(place, StorePath) else place.absolute().parts


def _fixed(pattern: Place) -> Place:
    """Return the folder with which a pattern begins."""
    parts = _parts(pattern)
    depth = next(i for i, part in enumerate(parts) if has_magic(part))
    if isinstance(pattern, StorePath):
        return StorePath("/".join(parts[:depth]), pattern.url)
    return Path(*parts[:depth])


def _would_match(file: Place, pattern: Place) -> bool:
    """Return whether a pattern names a file, by whatever path to the folder with which the pattern begins."""
    if isinstance(file, StorePath) and isinstance(pattern, StorePath):
        return _store(file) == _store(pattern) and _fits(_parts(file), _parts(pattern))
    if isinstance(file, StorePath) or isinstance(pattern, StorePath):
        return False
    folder, resolved = Path(str(_fixed(pattern))).resolve(), file.resolve()
    rest = _parts(pattern)[len(_parts(_fixed(pattern))) :]
    return resolved.is_relative_to(folder) and _fits(resolved.relative_to(folder).parts, rest)


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether a path fits a pattern, part by part; "**" is any number of parts."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(parts[i:], pattern[1:]) for i in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _matches(place: Place) -> tuple[Place, list[Place]]:
    """Return the folder with which a pattern begins, and the files that match it.

    Hidden folders, and files that begin with ".", match only a part of the pattern that begins as they do.
    """
    folder, pattern = _fixed(place), _parts(place)
    files: list[Place]
    if isinstance(folder, StorePath):
        files = [file for file in folder.rglob() if _fits(_parts(file), pattern)]
    else:
        files = [*filter(Path.is_file, map(Path, glob(str(absolute(place)), recursive=True)))]
    depth = len(_parts(folder))
    named = [part for part in pattern[depth:] if part.startswith(("_", "."))]

    def is_left_out(file: Place) -> bool:
        *inner, name = _parts(file)[depth:]
        hidden = [part for part in inner if _is_hidden(part)] + ([name] if name.startswith(".") else [])
        return not all(any(fnmatchcase(part, name) for name in named) for part in hidden)

    return folder, sorted(file for file in files if not is_left_out(file))


def _hive(paths: Sequence[str]) -> tuple[pa.Table, ...]:
    folders = [re.split(r"[/\\]", path)[:-1] for path in paths]
    rows = [dict(part.split("=", 1) for part in parts if "=" in part) for parts in folders]
    names = {tuple(row) for row in rows}
    if names == {()}:
        return ()
    if len(names) > 1:
        shown = listed([", ".join(name) or "no key" for name in sorted(names)])
        raise InputError(
            f"files lie in folders of different keys ({shown}): pass a folder whose files have the same keys"
        )
    texts = {name: [None if row[name] == _NULL else unquote(row[name]) for row in rows] for name in rows[0]}
    columns: dict[str, Any] = {}
    for name, cells in texts.items():
        whole = all(cell is None or re.fullmatch(r"-?\d{1,18}", cell) for cell in cells)
        columns[name] = pa.array(cells, pa.string()).cast(pa.int64() if whole else pa.string())
    table = pa.table(columns)
    return tuple(table.slice(i, 1) for i in range(len(paths)))


def _delta(place: Place) -> Source:
    require("deltalake", "limes.scale for Delta tables")
    import pyarrow.dataset as pa_dataset
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:  # refuses what its Arrow dataset does not have, such as deleted rows inside files
        options = _delta_options(place.url) if isinstance(place, StorePath) else {}
        url = str(place)
        dataset = DeltaTable(url, storage_options=options).to_pyarrow_dataset()
    except (DeltaError, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"the Delta table {place} cannot be read: {error}") from error
    fragments = sorted(dataset.get_fragments(), key=lambda fragment: fragment.path)
    if not fragments:
        raise InputError(f"the Delta table {place} has no rows")
    files = tuple(_inside(place, fragment.path) for fragment in fragments)
    rows = [pa_dataset.get_partition_keys(fragment.partition_expression) for fragment in fragments]
    if not rows[0]:
        return Source(files, folders=(place,))
    kinds = {name: dataset.schema.field(name).type for name in rows[0]}
    keys = (pa.table({name: pa.array([row[name]], kinds[name]) for name in kinds}) for row in rows)
    return Source(files, tuple(keys), folders=(place,))


def _inside(place: Place, path: str) -> Place:
    for part in path.strip("/").split("/"):
        place = place / part
    return place


def _delta_options(url: str) -> dict[str, str]:
    """Return pyarrow's options of S3 by deltalake's names; other stores read theirs from the environment."""
    options = {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}
    names = {"region": "AWS_REGION", "endpoint_override": "AWS_ENDPOINT_URL"}
    result = {names[name]: value for name, value in options.items() if name in names}
    if result.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        result["AWS_ALLOW_HTTP"] = "true"
    return result


def _iceberg(text: str) -> Source:
    """Files of the snapshot that an Iceberg metadata file states."""
    require("pyiceberg", "limes.scale for Iceberg tables")
    from pyiceberg.table import StaticTable

    tasks = [*StaticTable.from_metadata(text).scan().plan_files()]
    if any(task.delete_files for task in tasks):
        raise InputError(f"{text} deletes rows inside files, which is not read: compact the table first")
    files = sorted((place_of(task.file.file_path) for task in tasks), key=str)
    if not files:
        raise InputError(f"the Iceberg table {text} has no rows")
    return Source(tuple(files))


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
        return replace(self, start=self.start + start, num_rows=length)

    def read(self, columns: Sequence[str]) -> Chunk:
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
        return sum(piece.num_rows for piece in self.pieces)

    def read(self, columns: Sequence[str]) -> list[Chunk]:
        return [piece.read(columns) if isinstance(piece, Slice) else piece for piece in self.pieces]


@dataclass(frozen=True)
class Source:
    """Files of one kind, in order of their names, and the columns that their folders state.

    Attributes
    ----------
    keys
        A table of one row for each file; empty where folders state no columns.
    folders
        Folders all of whose files are the table's: another file in them would be too.
    pattern
        The pattern that names the files: another file that matches it would be the table's too.
    """

    files: tuple[Place, ...]
    keys: tuple[pa.Table, ...] = ()
    folders: tuple[Place, ...] = ()
    pattern: Place | None = None

    @classmethod
    def of(cls, where: str | Place) -> Source:
        """Find a file, the files of a folder, of a pattern, or of a table format."""
        text, place = str(where), place_of(where)
        if text.endswith(_ICEBERG):
            return _iceberg(text)
        folders: tuple[Place, ...] = ()
        pattern: Place | None = None
        if place.is_dir():
            if (place / _DELTA).is_dir():
                return _delta(absolute(place))
            files, folders = _below(place)
        elif has_magic(str(place)):
            pattern = absolute(place)
            place, files = _matches(place)
        else:
            files = [place] if place.is_file() else []
        kinds = {kind_of(file) for file in files}
        if len(kinds) != 1 or None in kinds:
            _refuse(text, files)
        root = str(absolute(place))
        files = [absolute(file) for file in files]  # workers may have another working directory
        keys = _hive([str(file).removeprefix(root) for file in files])
        return cls(tuple(files), keys, tuple(map(absolute, folders)), pattern)

    def refuse_output(self, out: Place) -> None:
        """Raise InputError if a folder of parts would be among the files of the table."""
        is_inside = any(_is_in(out, folder) for folder in self.folders)
        if is_inside or (self.pattern is not None and _would_match(out / _A_PART, self.pattern)):
            raise InputError(
                f"{out} is inside of the table, whose readers would take explanations for its rows: pass a "
                "folder elsewhere"
            )

    @property
    def is_csv(self) -> bool:
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
        """Cut the table into parts of ``rows`` rows; the last one may be shorter."""
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
