"""Cells of files, cast to the types of a table: one that cannot be cast is an error of its row."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from limes._dialects import MISSING, WINDOWS

# Errors of pyarrow for a cell, and for a type, that cannot be cast
_CAST_ERRORS = (pa.ArrowInvalid, pa.ArrowNotImplementedError)

# States in a schema that numbers of a column have a comma before their decimals
DECIMAL_COMMA = {"decimal": ","}


@dataclass(frozen=True)
class Unreadable:
    """Rows that exist but cannot be read, and why."""

    num_rows: int
    reason: str

    def slice(self, start: int, length: int) -> Unreadable:  # noqa: ARG002 - all rows are alike
        return replace(self, num_rows=length)


Chunk: TypeAlias = Any  # pa.Table | Unreadable; pyarrow has no types


def typed(
    rows: Chunk, schema: pa.Schema, loose: Collection[str], *, verbatim: bool = False
) -> tuple[pa.Table, dict[int, str]]:
    """Cast rows to a schema; a row with a cell that cannot be read or cast has null there, and a reason.

    A column in ``loose`` may hold fractions where integers are expected. Cells of CSV are trimmed, and texts
    such as "NA" are null, unless they are ``verbatim``.
    """
    if isinstance(rows, Unreadable):
        nulls = [pa.nulls(rows.num_rows, kind) for kind in schema.types]
        return pa.table(nulls, schema=schema), dict.fromkeys(range(rows.num_rows), rows.reason)
    columns: dict[str, Any] = {}
    reasons: dict[int, str] = {}
    for column in schema:
        name, kind = column.name, column.type
        text, undecodable = _as_text(rows[name], verbatim=verbatim)
        wider = (pa.float64(),) if name in loose and pa.types.is_integer(kind) else ()
        columns[name], wrong = _cast(with_points(text, column), kind, *wider)
        cells = undecodable | {position: text[position].as_py() for position in wrong}
        for position, cell in cells.items():
            reasons.setdefault(position, f"column {name!r}: {_shown(cell)} is no {_type_name(kind)}")
    return pa.table(columns), reasons


def _shown(cell: Any) -> str:
    """A cell in a message; of bytes that are no UTF-8 also the text that they are where Excel wrote it."""
    if not isinstance(cell, bytes):
        return repr(cell)
    with suppress(UnicodeDecodeError):
        return f"{cell!r}, which is no UTF-8, and {cell.decode(WINDOWS)!r} in Windows-1252,"
    return repr(cell)


def with_points(text: pa.ChunkedArray, column: pa.Field) -> pa.ChunkedArray:
    """Return texts of numbers with decimal points; a point that separates thousands makes no number."""
    if not column.metadata or b"decimal" not in column.metadata or not pa.types.is_string(text.type):
        return text
    return pc.replace_substring(pc.replace_substring(text, ".", "\u00b7"), ",", ".")


def _as_text(column: pa.ChunkedArray, *, verbatim: bool) -> tuple[pa.ChunkedArray, dict[int, Any]]:
    if not pa.types.is_binary(column.type):
        return column, {}
    text, wrong = _cast(column, pa.string())
    if verbatim:
        return text, wrong
    blank = pc.is_in(text, pa.array(MISSING, pa.string()))
    return pc.utf8_trim_whitespace(_without_cells(text, blank)), wrong


def _cast(column: pa.ChunkedArray, *kinds: Any) -> tuple[pa.ChunkedArray, dict[int, Any]]:
    """Cast to the first kind that takes all cells, else to the last, with null for those that it refuses.

    Returns these cells by position too.
    """
    if column.type == kinds[0]:
        return column, {}
    for kind in kinds:
        with suppress(*_CAST_ERRORS):
            return column.cast(kind), {}
    positions = [*misfits(column, kinds[-1])]
    wrong = {position: column[position].as_py() for position in positions}
    if len(positions) == len(column):
        return pa.chunked_array([pa.nulls(len(column), kinds[-1])]), wrong
    return _without_cells(column, np.isin(np.arange(len(column)), positions)).cast(kinds[-1]), wrong


def _without_cells(column: pa.ChunkedArray, blank: Any) -> pa.ChunkedArray:
    """Return the column with null where ``blank`` is true."""
    # if_else of pyarrow up to 20 reads texts of a slice from other places than where they are
    return column.take(pa.array(np.arange(len(column)), mask=np.asarray(blank)))


def misfits(column: pa.ChunkedArray, kind: Any, first: int = 0) -> Iterator[int]:
    """Positions of cells that cannot be cast, by halving: few wrong cells cost few casts."""
    try:
        column.cast(kind)
    except _CAST_ERRORS:
        if len(column) == 1:
            yield first
            return
        half = len(column) // 2
        yield from misfits(column.slice(0, half), kind, first)
        yield from misfits(column.slice(half), kind, first + half)


def _type_name(kind: Any) -> str:
    if pa.types.is_integer(kind):
        return "whole number"
    return "number" if pa.types.is_floating(kind) else str(kind)
