"""CSV files: the first lines settle what columns hold, and a line that is none is the error of one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from limes.exceptions import InputError
from limes.scale.cells import misfits
from limes.scale.chunks import Chunk, Unreadable, check_names

# Bytes of a CSV file that its columns' types, and the length of its lines, are learnt from
_HEAD = 8 << 20
# Cells of a column of text that are tried as numbers, and the share that may be none in a column of numbers
_LOOKED_AT, _WRONG = 2000, 0.01
# The header is line 1 of what pyarrow counts
_HEADER = 2


def csv_schema(path: Path) -> pa.Schema:
    """Columns, of types that all cells of the first 8 MiB have; of numbers if 99 in a hundred are.

    Raises
    ------
    OSError, pa.ArrowException
        The file cannot be read.
    """
    with pa_csv.open_csv(path, **_options([], block_size=_HEAD)) as reader:
        head = next(iter(reader), pa.table([pa.nulls(0)] * len(reader.schema), reader.schema.names))
        return pa.schema([_known(field, head[field.name]) for field in reader.schema])


def likely_lines(path: Path, size: int) -> int:
    """Rows in so many bytes, if they are like the first ones of a file."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return round(size / max(1, len(head)) * max(0, head.count(b"\n") - 1))


def csv_chunks(path: Path, columns: Sequence[str]) -> Iterator[Chunk]:
    """Rows in order, as text whatever their columns hold.

    Raises
    ------
    InputError
        A column is lacking, or the file cannot be cut into lines.
    """
    wrong: list[Any] = []
    try:
        with pa_csv.open_csv(path, **_options(wrong, types=dict.fromkeys(columns, pa.binary()))) as reader:
            check_names(path, reader.schema.names, columns)
            yield from _with_wrong(reader, columns, wrong)
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{path} could not be read: {error}. Mend the line, or store the table as Parquet"
        ) from error


def _options(
    wrong: list[Any], *, types: dict[str, Any] | None = None, block_size: int = 1 << 20
) -> dict[str, Any]:
    """How CSV is read; lines with too few or too many cells are put into ``wrong``."""

    def skip(line: Any) -> str:
        wrong.append(line)
        return "skip"

    return {
        "read_options": pa_csv.ReadOptions(use_threads=False, block_size=block_size),
        "parse_options": pa_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
        "convert_options": pa_csv.ConvertOptions(column_types=types, strings_can_be_null=True),
    }


def _known(field: pa.Field, cells: Any) -> pa.Field:
    """A column with few cells that are no numbers, or none at all, is one of numbers."""
    if pa.types.is_string(field.type):
        some = cells.drop_null().slice(0, _LOOKED_AT)
        wrong = sum(1 for _ in misfits(some, pa.float64()))
        return field.with_type(pa.float64()) if wrong <= _WRONG * len(some) else field
    return field.with_type(pa.float64()) if pa.types.is_null(field.type) else field


def _with_wrong(reader: Any, columns: Sequence[str], wrong: list[Any]) -> Iterator[Chunk]:
    """Rows in order, each line that is none of the table's in its place."""
    at = 0
    for batch in reader:
        rows = pa.Table.from_batches([batch]).select(list(columns))
        while rows.num_rows:
            room = wrong[0].number - _HEADER - at if wrong else rows.num_rows
            taken = rows.slice(0, room) if room else _line(wrong.pop(0))
            yield taken
            rows, at = rows.slice(room), at + taken.num_rows
    yield from map(_line, wrong)


def _line(wrong: Any) -> Unreadable:
    return Unreadable(1, f"{wrong.actual_columns} cells in place of {wrong.expected_columns}: {wrong.text!r}")
