"""Cells of the type that their column has; a cell that is not of it is the trouble of its own row.

The text of a CSV file says no types, and files of one folder may differ in theirs. What a column holds is
settled once, for the whole table, and every piece is cast to that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# What pyarrow says of a cell, and of a type, that cannot be cast
_NOT = (pa.ArrowInvalid, pa.ArrowNotImplementedError)

Column = Any  # pa.ChunkedArray; pyarrow has no types


def typed(rows: pa.Table, schema: pa.Schema, loose: Collection[str]) -> tuple[pa.Table, dict[int, str]]:
    """Cast rows to a schema; a row with a cell that is not of the type has null there, and its reason.

    A column that is ``loose`` may also hold other numbers than whole ones where whole ones are expected.
    """
    columns: dict[str, Column] = {}
    reasons: dict[int, str] = {}
    for field in schema:
        columns[field.name], wrong = _cast(rows[field.name], field.type, loose=field.name in loose)
        for place, cell in wrong.items():
            reasons.setdefault(place, f"column {field.name!r}: {cell!r} is no {_said(field.type)}")
    return pa.table(columns), reasons


def _cast(column: Column, kind: Any, *, loose: bool) -> tuple[Column, dict[int, Any]]:
    if column.type == kind:
        return column, {}
    column, wrong = _as_text(column)
    for wider in (kind, pa.float64()) if loose and pa.types.is_integer(kind) else (kind,):
        try:
            return column.cast(wider), wrong
        except _NOT:
            continue
    return _without(column, wider, wrong)


def _as_text(column: Column) -> tuple[Column, dict[int, Any]]:
    """Bytes, as they stand in a CSV file, as text without blanks around it; other columns as they are."""
    if not pa.types.is_binary(column.type):
        return column, {}
    try:
        return pc.utf8_trim_whitespace(column.cast(pa.string())), {}
    except _NOT:
        column, wrong = _without(column, pa.string(), {})
        return pc.utf8_trim_whitespace(column), wrong


def _without(column: Column, kind: Any, wrong: dict[int, Any]) -> tuple[Column, dict[int, Any]]:
    """The column cast, with null where that cannot be; and the cells where it cannot."""
    places = [*misfits(column, kind)]
    wrong = wrong | {place: column[place].as_py() for place in places}
    if len(places) == len(column):
        return pa.chunked_array([pa.nulls(len(column), kind)]), wrong
    blank = pc.is_in(pa.array(range(len(column)), pa.int64()), pa.array(places, pa.int64()))
    return pc.if_else(blank, pa.scalar(None, column.type), column).cast(kind), wrong


def misfits(column: Column, kind: Any, first: int = 0) -> Iterator[int]:
    """Places of cells that cannot be cast, found by halving."""
    try:
        column.cast(kind)
    except _NOT:
        if len(column) == 1:
            yield first
            return
        half = len(column) // 2
        yield from misfits(column.slice(0, half), kind, first)
        yield from misfits(column.slice(half), kind, first + half)


def _said(kind: Any) -> str:
    if pa.types.is_integer(kind):
        return "whole number"
    return "number" if pa.types.is_floating(kind) else str(kind)
