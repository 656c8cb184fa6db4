"""The files of a table: a file, a folder, a pattern, partitions in folders, or a table format.

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
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa

from limes._checks import listed
from limes.exceptions import InputError
from limes.scale._stores import Place, StorePath, absolute, place_of

# Ends of names, in small letters, and what is in such a file; pyarrow decompresses by the name
_KINDS = {".parquet": ".parquet", ".csv": ".csv", ".csv.gz": ".csv", ".csv.bz2": ".csv", ".csv.zst": ".csv"}
# The folder of a Delta table's log, the end of an Iceberg table's metadata, and Hive's name for null
_DELTA, _ICEBERG, _NULL = "_delta_log", ".metadata.json", "__HIVE_DEFAULT_PARTITION__"
# A file as it would be in an output folder
_A_PART = "part-00000.parquet"


@dataclass(frozen=True)
class Inputs:
    """Files of one kind, in order, and the columns that their folders state.

    Attributes
    ----------
    keys
        A table of one row for each file; empty where there are no such columns.
    folders
        Folders all of whose files are the table's: another file in them would be too.
    pattern
        The pattern that names the files: another file that matches it would be the table's too.
    """

    files: tuple[Place, ...]
    keys: tuple[pa.Table, ...] = ()
    folders: tuple[Place, ...] = ()
    pattern: Place | None = None

    def refuse_output(self, out: Place) -> None:
        """Raise InputError if a folder of parts would be among the files of the table."""
        is_inside = any(_is_in(out, folder) for folder in self.folders)
        if is_inside or (self.pattern is not None and _would_match(out / _A_PART, self.pattern)):
            raise InputError(
                f"{out} is inside of the table, whose readers would take explanations for its rows: pass a "
                "folder elsewhere"
            )


def inputs_of(where: str | Place) -> Inputs:
    """Find the files of a table.

    Raises
    ------
    InputError
        There are no files, or files of both kinds, or a table format has features that are not read.
    MissingLibraryError
        For Delta and Iceberg, where their library is not installed.
    """
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
    return Inputs(tuple(files), keys, tuple(map(absolute, folders)), pattern)


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
    """Columns of folders ``key=value``: whole numbers if all values are, else texts."""
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


def _delta(place: Place) -> Inputs:
    """Files of the current version of a Delta table."""
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
        return Inputs(files, folders=(place,))
    kinds = {name: dataset.schema.field(name).type for name in rows[0]}
    keys = (pa.table({name: pa.array([row[name]], kinds[name]) for name in kinds}) for row in rows)
    return Inputs(files, tuple(keys), folders=(place,))


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


def _iceberg(text: str) -> Inputs:
    """Files of the snapshot that an Iceberg metadata file states."""
    require("pyiceberg", "limes.scale for Iceberg tables")
    from pyiceberg.table import StaticTable

    tasks = [*StaticTable.from_metadata(text).scan().plan_files()]
    if any(task.delete_files for task in tasks):
        raise InputError(f"{text} deletes rows inside files, which is not read: compact the table first")
    files = sorted((place_of(task.file.file_path) for task in tasks), key=str)
    if not files:
        raise InputError(f"the Iceberg table {text} has no rows")
    return Inputs(tuple(files))
