"""Rows that share their keys are found with little memory, and told."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limes.scale import keys as room
from limes.scale.keys import repeated


def parts(folder, columns, size, lines=1):
    """Files of so many rows each, with so many lines a row."""
    table = pa.table({"row": range(len(next(iter(columns.values())))), **columns})
    paths = []
    for start in range(0, table.num_rows, size):
        rows = [i for i in range(start, min(start + size, table.num_rows)) for _ in range(lines)]
        paths.append(folder / f"{start}.parquet")
        pq.write_table(table.take(rows), paths[-1])
    return paths


@pytest.mark.parametrize("held", [3, 1 << 22])
def test_a_key_that_is_not_unique_is_named_with_its_rows(tmp_path, monkeypatch, held):
    monkeypatch.setattr(room, "_HELD", held)
    ids = [f"patient {i}" for i in range(20)]
    ids[17] = ids[4]
    ids[18] = ids[4]
    paths = parts(tmp_path, {"id": ids}, 6, lines=3)
    said = repeated(paths, ["id"], 20)
    assert said == "keys are not unique (2 repeated): id='patient 4' in rows 4 and 17"


def test_keys_count_together(tmp_path):
    paths = parts(tmp_path, {"shop": [1, 1, 2, 2], "day": [1, 2, 1, 2]}, 2)
    assert repeated(paths, ["shop", "day"], 4) == ""
    assert "shop=1 in rows 0 and 1" in repeated(paths, ["shop"], 4)
    assert repeated(paths, [], 4) == ""


def test_equal_hashes_are_only_a_suspicion(tmp_path):
    assert hash(-1) == hash(-2)
    assert repeated(parts(tmp_path, {"id": [-1, -2]}, 2), ["id"], 2) == ""


def test_missing_keys_are_equal(tmp_path):
    assert "id=None in rows 0 and 2" in repeated(parts(tmp_path, {"id": [None, 1, None]}, 2), ["id"], 3)
