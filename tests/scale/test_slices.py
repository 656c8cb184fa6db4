"""Cells of a slice of a column of texts: what older pyarrow reads from other places of the memory."""

from __future__ import annotations

import pyarrow as pa
import pytest

from internals import typed as typed_cells

ROWS = [b"NA" if i % 7 == 0 else b" %d.5 " % i for i in range(178)]
TEXTS = [None if row == b"NA" else row.decode().strip() for row in ROWS]
NUMBERS = [None if text is None else float(text) for text in TEXTS]


def typed(rows, kind, first):
    table = pa.table({"a": pa.array(rows, pa.binary())}).slice(first)
    cells, reasons = typed_cells(table, pa.schema([("a", kind)]), ())
    cells.validate(full=True)
    return cells["a"].to_pylist(), reasons


@pytest.mark.parametrize("first", [0, 1, 9, 150])
def test_texts_of_a_slice_are_its_own(first):
    assert typed(ROWS, pa.string(), first) == (TEXTS[first:], {})
    assert typed(ROWS, pa.float64(), first) == (NUMBERS[first:], {})


@pytest.mark.parametrize("first", [0, 9, 150])
def test_a_wrong_cell_of_a_slice_is_null_and_named(first):
    rows = [*ROWS[:160], b"many", *ROWS[161:]]
    numbers, reasons = typed(rows, pa.float64(), first)
    assert numbers == [*NUMBERS[first:160], None, *NUMBERS[161:]]
    assert reasons == {160 - first: "column 'a': 'many' is no number"}
