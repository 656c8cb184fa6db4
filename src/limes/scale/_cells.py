"""Cells of a table in files: the types that columns of CSV have, and casting every piece to them.

CSV states no types, and files of one folder may differ in theirs. The type of a column is decided once, for
the whole table, by the first lines. A cell that cannot be cast is an error of its row; so is a malformed
line.

Rows with wrong cells are reported one by one, each in its place, and types are those of the head of the first
file: neither pyarrow nor duckdb's ``read_csv(store_rejects=true)`` does both, so the repair is written here.
"""

from __future__ import annotations

from limes._checks import require

require("pyarrow", "limes.scale for files", package="'limes[scale]'")

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from limes._checks import listed
from limes.exceptions import InputError
from limes.scale._frames import check_columns
from limes.scale._stores import Place, opened, streamed

# Bytes of a CSV file from which its columns' types, and the length of its lines, are learnt
_HEAD = 8 << 20
# Cells of a column of text that are tried as numbers, and the share that may fail in a column of numbers
_TRIED, _WRONG = 2000, 0.01
# pyarrow counts lines from 1, which is the header
_FIRST_LINE = 2
# Texts that are null in a column of features, quoted or not: those of pyarrow, which pandas has too
_NULLS = pa_csv.ConvertOptions().null_values
# Errors of pyarrow for a cell, and for a type, that cannot be cast
_CAST_ERRORS = (pa.ArrowInvalid, pa.ArrowNotImplementedError)

_Column: TypeAlias = Any  # pa.ChunkedArray; pyarrow has no types


@dataclass(frozen=True)
class Unreadable:
    """Rows that exist but cannot be read, and why."""

    num_rows: int
    reason: str

    def slice(self, start: int, length: int) -> Unreadable:  # noqa: ARG002 - all rows are alike
        return replace(self, num_rows=length)


Chunk: TypeAlias = Any  # pa.Table | Unreadable; pyarrow has no types


def typed(
    rows: pa.Table, schema: pa.Schema, loose: Collection[str], *, verbatim: bool = False
) -> tuple[pa.Table, dict[int, str]]:
    """Cast rows to a schema; a row with a cell that cannot be cast has null there, and a reason.

    A column in ``loose`` may hold fractions where integers are expected. Cells of CSV are trimmed, and texts
    such as "NA" are null, unless they are ``verbatim``.
    """
    columns: dict[str, _Column] = {}
    reasons: dict[int, str] = {}
    for field in schema:
        columns[field.name], wrong = _cast(
            _as_text(rows[field.name], verbatim=verbatim), field.type, loose=field.name in loose
        )
        for position, cell in wrong.items():
            reasons.setdefault(position, f"column {field.name!r}: {cell!r} is no {_type_name(field.type)}")
    return pa.table(columns), reasons


def check_types(
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


def check_repeats(where: Place, columns: Sequence[str]) -> None:
    repeated = [name for name, count in Counter(columns).items() if count > 1]
    if repeated:
        raise InputError(f"{where} has several columns named {listed(repeated)}: give each another name")


def _kind(kind: Any) -> str:
    """Return one name for types that are cast to each other without a change of meaning."""
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_timestamp(kind):
        return f"timestamp {kind.tz}"
    return "decimal" if pa.types.is_decimal(kind) else str(kind)


def _cast(text: tuple[_Column, dict[int, Any]], kind: Any, *, loose: bool) -> tuple[_Column, dict[int, Any]]:
    column, wrong = text
    if column.type == kind:
        return column, wrong
    for wider in (kind, pa.float64()) if loose and pa.types.is_integer(kind) else (kind,):
        try:
            return column.cast(wider), wrong
        except _CAST_ERRORS:
            continue
    return _cast_with_nulls(column, wider, wrong)


def _as_text(column: _Column, *, verbatim: bool) -> tuple[_Column, dict[int, Any]]:
    """Decode bytes, as they stand in a CSV file; other columns stay as they are."""
    if not pa.types.is_binary(column.type):
        return column, {}
    try:
        text, wrong = column.cast(pa.string()), dict[int, Any]()
    except _CAST_ERRORS:
        text, wrong = _cast_with_nulls(column, pa.string(), {})
    if verbatim:
        return text, wrong
    blank = pc.is_in(text, pa.array(_NULLS, pa.string()))
    return pc.utf8_trim_whitespace(pc.if_else(blank, pa.scalar(None, pa.string()), text)), wrong


def _cast_with_nulls(column: _Column, kind: Any, wrong: dict[int, Any]) -> tuple[_Column, dict[int, Any]]:
    """Cast a column, with null where a cell cannot be cast; return those cells by position too."""
    positions = [*_misfits(column, kind)]
    wrong = wrong | {position: column[position].as_py() for position in positions}
    if len(positions) == len(column):
        return pa.chunked_array([pa.nulls(len(column), kind)]), wrong
    blank = pc.is_in(pa.array(range(len(column)), pa.int64()), pa.array(positions, pa.int64()))
    return pc.if_else(blank, pa.scalar(None, column.type), column).cast(kind), wrong


def _misfits(column: _Column, kind: Any, first: int = 0) -> Iterator[int]:
    """Positions of cells that cannot be cast, by halving: few wrong cells cost few casts."""
    try:
        column.cast(kind)
    except _CAST_ERRORS:
        if len(column) == 1:
            yield first
            return
        half = len(column) // 2
        yield from _misfits(column.slice(0, half), kind, first)
        yield from _misfits(column.slice(half), kind, first + half)


def _type_name(kind: Any) -> str:
    if pa.types.is_integer(kind):
        return "whole number"
    return "number" if pa.types.is_floating(kind) else str(kind)


def csv_schema(path: Place) -> pa.Schema:
    """Columns, of types that all cells of the first 8 MiB have; of numbers if 99 in a hundred are."""
    with (
        streamed(path, _compression(path)) as text,
        pa_csv.open_csv(text, **_csv_options([], block_size=_HEAD)) as reader,
    ):
        check_repeats(path, reader.schema.names)
        head = next(iter(reader), pa.table([pa.nulls(0)] * len(reader.schema), reader.schema.names))
        return pa.schema([_csv_field(field, head[field.name]) for field in reader.schema])


def _csv_field(field: pa.Field, cells: Any) -> pa.Field:
    """Make an empty column, and one with few cells that are no numbers, a column of numbers."""
    if pa.types.is_string(field.type):
        sample = cells.drop_null().slice(0, _TRIED)
        wrong = sum(1 for _ in _misfits(sample, pa.float64()))
        return field.with_type(pa.float64()) if wrong <= _WRONG * len(sample) else field
    return field.with_type(pa.float64()) if pa.types.is_null(field.type) else field


def likely_lines(path: Place, size: int) -> int:
    """Estimate the rows in ``size`` bytes of CSV by the first lines of a file."""
    with opened(path) as file, pa.input_stream(file, _compression(path)) as text:
        head: bytes = text.read(_HEAD)
        consumed: int = file.tell()
    return round(size / max(1, min(consumed, size)) * max(0, head.count(b"\n") - 1))


def _compression(path: Place) -> str | None:
    return {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(path.suffix.lower())


def csv_chunks(path: Place, columns: Sequence[str]) -> Iterator[Chunk]:
    """Yield rows in order, as text whatever their columns hold."""
    malformed: list[Any] = []
    options = _csv_options(malformed, types=dict.fromkeys(columns, pa.binary()))
    # "" in quotes is a text; which other texts are null depends on whether the column is a key
    options["convert_options"].null_values, options["convert_options"].quoted_strings_can_be_null = (
        [""],
        False,
    )
    try:
        with streamed(path, _compression(path)) as text, pa_csv.open_csv(text, **options) as reader:
            check_repeats(path, reader.schema.names)
            check_columns(path, reader.schema.names, columns)
            yield from _with_malformed(reader, columns, malformed)
    except (OSError, pa.ArrowException, UnicodeError) as error:
        raise InputError(
            f"{path} could not be read: {error}. Correct the line, or store the table as Parquet"
        ) from error


def _csv_options(
    malformed: list[Any], *, types: dict[str, Any] | None = None, block_size: int = 1 << 20
) -> dict[str, Any]:
    """Options of pyarrow's reader; lines with too few or too many cells are appended to ``malformed``."""

    def skip(line: Any) -> str:
        malformed.append(line)
        return "skip"

    return {
        "read_options": pa_csv.ReadOptions(use_threads=False, block_size=block_size),
        "parse_options": pa_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
        "convert_options": pa_csv.ConvertOptions(column_types=types, strings_can_be_null=True),
    }


def _with_malformed(reader: Any, columns: Sequence[str], malformed: list[Any]) -> Iterator[Chunk]:
    """Yield rows in order, each malformed line in its place.

    The reader skips such lines but reports their numbers, so the rows before each are known.
    """
    position = 0
    for batch in reader:
        rows = pa.Table.from_batches([batch]).select(list(columns))
        while rows.num_rows:
            room = malformed[0].number - _FIRST_LINE - position if malformed else rows.num_rows
            chunk = rows.slice(0, room) if room else _unreadable(malformed.pop(0))
            yield chunk
            rows, position = rows.slice(room), position + chunk.num_rows
    yield from map(_unreadable, malformed)


def _unreadable(line: Any) -> Unreadable:
    return Unreadable(1, f"{line.actual_columns} cells in place of {line.expected_columns}: {line.text!r}")
