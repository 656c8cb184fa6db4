"""Repeated keys are named, whatever their type and position."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from internals import Folder, _keys, key_hashes, repeated_keys


def folder_of(path, columns, size, lines=1):
    """A folder of parts of `size` rows each, with `lines` lines a row; and the numbers of its parts."""
    rows = len(next(iter(columns.values())))
    table = pa.table({"row": range(rows), "error": pa.nulls(rows, pa.string()), **columns})
    folder, numbers = Folder(path), [*range(-(-rows // size))]
    for number in numbers:
        some = range(number * size, min(number * size + size, rows))
        pq.write_table(table.take([row for row in some for _ in range(lines)]), folder.part(number))
    return folder, numbers


@pytest.mark.parametrize("held", [3, 1 << 22])
@pytest.mark.parametrize("stored", [False, True])
def test_a_key_that_is_not_unique_is_named_with_its_rows(tmp_path, monkeypatch, held, stored):
    monkeypatch.setattr(_keys, "_HELD", held)
    ids = [f"patient {i}" for i in range(20)]
    ids[17] = ids[4]
    ids[18] = ids[4]
    folder, parts = folder_of(tmp_path, {"id": ids}, 6, lines=3)
    if stored:  # as workers do
        (tmp_path / "_keys").mkdir()
        for number in parts:
            folder.write_keys(number, key_hashes(pq.read_table(folder.part(number)), ["id"])[1])
    message = repeated_keys(folder, parts, ["id"], 20)
    assert message == "keys are not unique (2 repeated): id='patient 4' in rows 4 and 17"


def test_several_keys_identify_a_row_together(tmp_path):
    folder, parts = folder_of(tmp_path, {"shop": [1, 1, 2, 2], "day": [1, 2, 1, 2]}, 2)
    assert repeated_keys(folder, parts, ["shop", "day"], 4) == ""
    assert "shop=1 in rows 0 and 1" in repeated_keys(folder, parts, ["shop"], 4)
    assert repeated_keys(folder, parts, [], 4) == ""


def test_equal_hashes_are_only_a_suspicion(tmp_path, monkeypatch):
    monkeypatch.setattr(_keys, "_hashes_of_bits", lambda bits: np.zeros(len(bits), np.uint64))
    folder, parts = folder_of(tmp_path, {"id": ["a", "b"]}, 2)
    assert repeated_keys(folder, parts, ["id"], 2) == ""


COLUMNS = [
    pa.array([5, -1, 5, None]),
    pa.array([5, 1, 5, None], pa.uint8()),
    pa.array([0.5, -1.0, 0.5, None]),
    pa.array([0.0, 1.0, -0.0, None]),
    pa.array([True, False, True, None]),
    pa.array(["", "a", "", None]),
    pa.array(["x\0", "x", "x\0", None], pa.large_string()),
    pa.array([b"ab", b"ba", b"ab", None]),
    pa.array(["a", "b", "a", None]).dictionary_encode(),
    pa.array([date(2020, 1, 1), date(2021, 1, 1), date(2020, 1, 1), None]),
    pa.array([10**15, 1, 10**15, None], pa.timestamp("us", tz="UTC")),
    pa.array([Decimal("1.5"), Decimal("2.5"), Decimal("1.5"), None]),
    pa.array([[1, 2], [2, 1], [1, 2], None]),
    pa.array([{"a": [1]}, {"a": [2]}, {"a": [1]}, None]),
]


@pytest.mark.parametrize("cells", COLUMNS, ids=lambda cells: str(cells.type))
def test_keys_of_every_type_repeat_where_they_are_equal(tmp_path, cells):
    folder, parts = folder_of(tmp_path, {"id": cells}, 3)
    assert "in rows 0 and 2" in repeated_keys(folder, parts, ["id"], 4)
    folder, parts = folder_of(tmp_path, {"id": cells.take(pa.array([1, 2, 3]))}, 2)
    assert repeated_keys(folder, parts, ["id"], 3) == ""
    sliced = pa.table({"row": range(3), "error": pa.nulls(3, pa.string()), "id": cells[1:]})
    whole = pa.table({"row": range(4), "error": pa.nulls(4, pa.string()), "id": cells})
    assert np.array_equal(key_hashes(sliced, ["id"])[1], key_hashes(whole, ["id"])[1][1:])


def test_hashes_of_different_texts_differ():
    texts = [f"{a}{b}" for a in range(300) for b in ("", "x", "xx", "\0", "é")]
    lines = pa.table({"row": range(len(texts)), "error": pa.nulls(len(texts), pa.string()), "id": texts})
    assert len({*key_hashes(lines, ["id"])[1].tolist()}) == len({*texts})


def test_rows_that_were_unreadable_have_no_keys():
    table = pa.table(
        {"row": [0, 1, 1, 2], "error": ["lost", None, None, "wrong"], "id": [None, None, None, 3]}
    )
    assert key_hashes(table, ["id"])[0].tolist() == [1, 3]
