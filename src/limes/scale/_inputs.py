"""The files of a table: a file, a folder, a pattern, partitions in folders, or a table format.

Folders ``key=value`` on the way to a file are columns of its rows, as Hive writes them. A Delta table's log
states which of the files in its folder are rows of the table; an Iceberg table is passed as its metadata
file.
"""

from __future__ import annotations

from limes._checks import require

require("pyarrow", "limes.scale for files", package="'limes[scale]'")

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from glob import glob, has_magic
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa

from limes._checks import listed
from limes.exceptions import InputError
from limes.scale._stores import Place, StorePath, absolute, place_of

# Ends of names, in small letters, and what is in such a file; pyarrow decompresses by the name
_KINDS = {".parquet": ".parquet", ".csv": ".csv", ".csv.gz": ".csv", ".csv.bz2": ".csv", ".csv.zst": ".csv"}
# The folder of a Delta table's log, the end of an Iceberg table's metadata, and Hive's name for null
_DELTA, _ICEBERG, _NULL = "_delta_log", ".metadata.json", "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Inputs:
    """Files of one kind, in order, and the columns that their folders state.

    Attributes
    ----------
    keys
        A table of one row for each file; empty where there are no such columns.
    """

    files: tuple[Place, ...]
    keys: tuple[pa.Table, ...] = ()


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
    if place.is_dir():
        if (place / _DELTA).is_dir():
            return _delta(absolute(place))
        files = sorted(file for file in _below(place) if kind_of(file) and file.name[0] not in "._")
    elif has_magic(str(place)):
        place, files = _matches(place)
    else:
        files = [place] if place.is_file() else []
    kinds = {kind_of(file) for file in files}
    if len(kinds) != 1 or None in kinds:
        raise InputError(
            f"{text}: pass a .parquet or .csv file (or .csv.gz), or a folder or pattern of files of one "
            f"kind; found {listed([file.name for file in files]) if files else 'no such file'}"
        )
    root = str(absolute(place))
    files = [absolute(file) for file in files]  # workers may have another working directory
    return Inputs(tuple(files), _hive([str(file).removeprefix(root) for file in files]))


def kind_of(file: Place) -> str | None:
    """Return ".parquet", ".csv", or None for another kind of file."""
    name = file.name.lower()
    return next((kind for end, kind in _KINDS.items() if name.endswith(end)), None)


def _below(place: Place) -> Iterable[Place]:
    return place.rglob() if isinstance(place, StorePath) else place.rglob("*")


def _matches(place: Place) -> tuple[Place, list[Place]]:
    """Return the folder with which a pattern begins, and the files that match it."""
    if isinstance(place, Path):
        fixed = place
        while has_magic(str(fixed)):
            fixed = fixed.parent
        return fixed, [
            Path(file) for file in sorted(glob(str(place), recursive=True)) if Path(file).is_file()
        ]
    fixed_key = re.split(r"/(?=[^/]*[*?\[])", place.key, maxsplit=1)[0]
    folder = StorePath(fixed_key, place.url)
    depth = None if "**" in place.key else place.key.count("/")
    files = [
        file
        for file in folder.rglob()
        if file.is_file() and fnmatch(file.key, place.key) and depth in (None, file.key.count("/"))
    ]
    return folder, sorted(files)


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
        return Inputs(files)
    kinds = {name: dataset.schema.field(name).type for name in rows[0]}
    keys = (pa.table({name: pa.array([row[name]], kinds[name]) for name in kinds}) for row in rows)
    return Inputs(files, tuple(keys))


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
