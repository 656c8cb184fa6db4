"""Several files are one table, cut into parts with known positions."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from internals import Source, Unreadable, _stores, decimated, place_of
from internals import _cells as cells
from limes.exceptions import InputError
from memory import rows_and_peak


def rows_of(source, columns, size):
    """All rows as text or None, in order, and the first row of each part."""
    cells, firsts = [], []
    for part in source.parts(size, columns):
        firsts.append(part.first)
        for chunk in part.read(columns):
            if isinstance(chunk, Unreadable):
                cells += [chunk.reason] * chunk.num_rows
            else:
                cells += chunk[columns[0]].to_pylist()
    return cells, firsts


@pytest.mark.parametrize("size", [1, 4, 7, 100])
def test_malformed_lines_keep_their_position(tmp_path, size):
    lines = ["a,b", "0,x", "1", '"2\n2",x', "", "3,x,y,z", "4,x", "5", "6", "7,x", "8,x,y"]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    cells, firsts = rows_of(Source.of(tmp_path / "in.csv"), ["a"], size)
    texts = [cell if isinstance(cell, str) else cell.decode() for cell in cells]
    assert texts[0::2] == ["0", "2\n2", "4", texts[6], texts[8]]
    assert [i for i, cell in enumerate(texts) if "in place of 2" in cell] == [1, 3, 5, 6, 8]
    assert texts[3].startswith("4 cells in place of 2: '3,x,y,z'")
    assert firsts == list(range(0, 9, size))


def test_malformed_lines_keep_their_position_in_long_files(tmp_path):
    broken = {3, 20_000, 20_001, 70_000, 99_999}
    lines = [f"{i}" if i in broken else f"{i},{'x' * 20}" for i in range(100_000)]
    (tmp_path / "in.csv").write_text("a,b\n" + "\n".join(lines))
    cells, _ = rows_of(Source.of(tmp_path / "in.csv"), ["a"], 1234)
    assert len(cells) == 100_000
    for i, cell in enumerate(cells):
        assert ("1 cells in place of 2" in cell) if i in broken else (int(cell) == i)


def test_types_are_those_of_the_first_lines(tmp_path, monkeypatch):
    (tmp_path / "in.csv").write_text("a,b,c,d,e\n" + "1,1.5,x,2024-01-31,\n" * 50 + "oops,oops,1,oops,7\n")
    monkeypatch.setattr(cells, "_HEAD", 300)
    kinds = Source.of(tmp_path / "in.csv").schema.types
    assert kinds == [pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.float64()]


@pytest.mark.parametrize(("wrong", "kind"), [(1, pa.float64()), (5, pa.string())])
def test_a_column_of_numbers_is_one_in_spite_of_a_cell_in_a_hundred(tmp_path, wrong, kind):
    cells = [str(i) for i in range(200)]
    for i in range(wrong):
        cells[7 * i + 20] = "n/k"
    (tmp_path / "in.csv").write_text("a\n" + "\n".join(cells))
    assert Source.of(tmp_path / "in.csv").schema.types == [kind]


def test_the_number_of_rows_is_counted_or_estimated(tmp_path):
    table = pd.DataFrame({"a": np.arange(5000) + 10_000, "b": 0.5})
    table.to_parquet(tmp_path / "in.parquet", row_group_size=700)
    assert Source.of(tmp_path / "in.parquet").likely_rows == 5000
    table.to_csv(tmp_path / "in.csv", index=False)
    assert Source.of(tmp_path / "in.csv").likely_rows == 5000


@pytest.mark.parametrize("size", [7, 64, 700])
def test_a_large_row_group_is_read_in_windows(tmp_path, monkeypatch, size):
    """The same rows as of a small one, with dictionaries, nulls and columns in another order."""
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "a": rng.normal(size=1000),
            "b": pa.array(
                [None if i % 9 == 0 else f"text {i % 50}" for i in range(1000)]
            ).dictionary_encode(),
            "c": np.arange(1000),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=900)

    def read():
        parts = Source.of(tmp_path / "in.parquet").parts(size, ["c", "b"])
        chunks = [pa.concat_tables(part.read(["c", "b"])) for part in parts]
        return [chunk.to_pylist() for chunk in chunks]

    whole = read()
    monkeypatch.setattr(cells, "_CELLS", 300)
    monkeypatch.setattr(cells, "_BATCH", 100)
    assert read() == whole
    assert [row["c"] for part in whole for row in part] == list(range(1000))


READING = """
from internals import Source, _cells
_cells._CELLS = 1 << 18
parts = Source.of(path).parts(50_000, ["a", "b"])
rows = sum(chunk.num_rows for part in parts for chunk in part.read(["a", "b"]))
"""


def test_a_large_row_group_is_never_in_memory(tmp_path):
    """Windows of 131,072 rows are 2 MB."""
    rows, peak = rows_and_peak(READING, tmp_path)
    assert rows == 1_000_000
    assert peak < 12 << 20


def test_a_background_skips_what_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "_HEAD", 100)
    lines = [f"{i},{i}.5" for i in range(100)]
    lines[40], lines[60] = "40,forty", "60"
    (tmp_path / "in.csv").write_text("a,b\n" + "\n".join(lines))
    result = decimated(Source.of(tmp_path / "in.csv"), ["b"], 200)
    assert result.schema.types == [pa.float64()]
    assert result["b"].to_pylist() == [i + 0.5 for i in range(100) if i not in (40, 60)]


def test_bad_files_are_refused(tmp_path):
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no end")
    with pytest.raises(InputError, match=r"cut\.parquet could not be read"):
        assert Source.of(tmp_path / "cut.parquet").schema
    with pytest.raises(InputError, match="no Parquet file, or its end is lost"):
        [*Source.of(tmp_path / "cut.parquet").parts(10, ["a"])]
    pq.write_table(pa.table({"age": [1.0], "bmi": [2.0]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"age": [1.0], "bmj": [2.0]}), tmp_path / "b.parquet")
    (tmp_path / "cut.parquet").unlink()
    with pytest.raises(
        InputError, match=r"b.parquet has no column 'bmi' \(did you mean 'bmj'\?\); it has 'age'"
    ):
        [*Source.of(tmp_path).parts(10, ["age", "bmi"])]


OTHERS = [
    pa.array([pd.Timestamp("2020")] * 3),
    pa.array([Decimal("1.5")] * 3),
    pa.array(["1", "2", "3"]),
    pa.array([True, False, True]),
    pa.array([[1], [2], [3]]),
]


@pytest.mark.parametrize("cells", OTHERS, ids=lambda cells: str(cells.type))
def test_files_that_differ_in_kind_are_refused_by_name(tmp_path, cells):
    for i in range(4):
        other = cells if i == 2 else pa.array([1, 2, 3])
        pq.write_table(pa.table({"b": [0.5] * 3, "a": other}), tmp_path / f"{i}.parquet")
    with pytest.raises(InputError, match=r"2\.parquet: column 'a' holds .*, and in 0.parquet int64"):
        next(Source.of(tmp_path).parts(1, ["a"]))
    assert len([*Source.of(tmp_path).parts(1, ["b"])]) == 12  # only columns that are read count


def test_files_may_differ_in_the_width_of_numbers(tmp_path):
    kinds = [pa.int64(), pa.int8(), pa.float32(), pa.uint16(), pa.float64(), pa.null()]
    for i, kind in enumerate(kinds):
        cells = pa.nulls(3) if pa.types.is_null(kind) else pa.array([1, 2, 3]).cast(kind)
        pq.write_table(pa.table({"a": cells}), tmp_path / f"{i}.parquet")
    assert len(rows_of(Source.of(tmp_path), ["a"], 4)[0]) == 18


def test_a_background_skips_a_file_whose_rows_are_all_unreadable(tmp_path):
    (tmp_path / "0.csv").write_text("a\n1\n2\n")
    (tmp_path / "1.csv").write_text("a\nx\ny\n")
    assert decimated(Source.of(tmp_path), ["a"], 10)["a"].to_pylist() == [1, 2]


@pytest.mark.parametrize("end", ["csv.gz", "csv.bz2", "csv.zst", "CSV", "PARQUET"])
def test_compressed_files_and_names_in_capitals_are_read(tmp_path, end):
    table = pa.table({"a": range(5000), "b": [0.5] * 5000})
    if end == "PARQUET":
        pq.write_table(table, tmp_path / f"in.{end}")
    else:
        with pa.output_stream(tmp_path / f"in.{end}") as file:  # compresses by the name
            pa_csv.write_csv(table, file)
    source = Source.of(tmp_path / f"in.{end}")
    assert [int(cell) for cell in rows_of(source, ["a"], 700)[0]] == [*range(5000)]
    assert source.likely_rows == pytest.approx(5000, rel=0.01)
    assert Source.of(tmp_path).files == source.files


@pytest.mark.parametrize("where", ["ftp://bucket/t.parquet", "hdfs:/t", "https://b/t.csv", "s3:/bucket/t"])
def test_other_stores_are_refused_and_not_taken_for_folders(tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"is no known kind of store; pass a path, or a URL"):
        Source.of(where)
    assert not [*tmp_path.iterdir()]


def test_urls_of_files_are_paths(tmp_path):
    (tmp_path / "a b.csv").write_text("a\n1\n")
    assert Source.of((tmp_path / "a b.csv").as_uri()).files == (tmp_path / "a b.csv",)
    assert place_of("C:/table.csv") == Path("C:/table.csv")
    assert place_of(tmp_path) == tmp_path


def test_secrets_of_a_url_are_not_in_messages():
    with pytest.raises(InputError) as refused:
        Source.of("s3://user:secret@bucket/t?no_such_option=secret")
    assert "secret" not in str(refused.value)


class BrokenFile(io.BytesIO):
    """A file of a store that stops answering after the first bytes."""

    def read(self, size=-1):
        if self.tell() > 0:
            raise OSError("the store is away")
        return super().read(size)


@pytest.mark.parametrize(
    ("file", "error", "message"),
    [
        (lambda: io.BytesIO(b"no parquet, " * 10), pa.ArrowInvalid, "magic bytes"),
        (lambda: BrokenFile(b"PAR1" * 30_000), InputError, "the store is away"),
    ],
)
def test_a_damaged_file_differs_from_a_store_that_fails(monkeypatch, file, error, message):
    monkeypatch.setattr(_stores, "opened", lambda place: file())
    with pytest.raises(error, match=message):
        _stores.parsed(_stores.StorePath("bucket/name", "s3://bucket"), pq.read_metadata)
