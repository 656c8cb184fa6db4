"""Tables in folders with keys, and in table formats, have the rows that were written."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limes.exceptions import InputError
from limes.scale._sources import Source, decimated
from limes.scale._tables import explain_files


@pytest.fixture
def rows(table):
    some = table[0].iloc[:40]
    return some.assign(year=np.repeat([2020, 2021], 20), city=["Köln", "a b", None, "x=y/z"] * 10)


def read(source, columns):
    """All rows of a source."""
    tables = [chunk for part in source.parts(7, columns) for chunk in part.read(columns)]
    return pa.concat_tables(tables).to_pandas()


def same_rows(found, expected):
    columns = [*found.columns]
    found, expected = (t[columns].sort_values("id", ignore_index=True) for t in (found, expected))
    pd.testing.assert_frame_equal(found, expected.astype(found.dtypes), check_dtype=False)


def test_folders_with_keys_are_columns(tmp_path, rows, explainer):
    rows.to_parquet(tmp_path / "t", partition_cols=["year", "city"], index=False)
    source = Source.of(tmp_path / "t")
    assert source.schema.field("year").type == pa.int64()
    same_rows(read(source, ["city", "id", "age", "year"]), rows)
    assert read(source, ["year"])["year"].tolist() == sorted(rows["year"])
    assert set(decimated(source, ["year"], 100)["year"].to_pylist()) == {2020, 2021}
    options = {"run": {}, "rows_per_part": 9, "progress": False}
    explain_files(source, explainer, tmp_path / "out", keys=["id", "year", "city"], **options)
    found = pd.read_parquet(tmp_path / "out")
    same_rows(found[["id", "year", "city"]], rows)
    assert len({file.name for file in source.files}) >= 1
    some = Source.of(str(tmp_path / "t" / "year=2021" / "*" / "*.parquet"))
    assert "year" not in some.schema.names
    assert len(read(some, ["id"])) == 20


def test_csv_in_folders_with_keys(tmp_path, rows):
    for year, some in rows.groupby("year"):
        (tmp_path / f"year={year}").mkdir()
        some.drop(columns=["year", "city"]).to_csv(tmp_path / f"year={year}" / "0.csv.gz", index=False)
    source = Source.of(tmp_path)
    found = read(source, ["year", "id"])
    assert found["year"].tolist() == rows["year"].tolist()
    assert [cell.decode() for cell in found["id"]] == rows["id"].tolist()


def test_texts_and_numbers_among_keys(tmp_path):
    for name in ("7", "x"):
        (tmp_path / f"k={name}").mkdir()
        pq.write_table(pa.table({"a": [1.0]}), tmp_path / f"k={name}" / "0.parquet")
    assert read(Source.of(tmp_path), ["k", "a"])["k"].tolist() == ["7", "x"]


def test_a_column_that_a_file_stores_is_not_taken_from_its_folder(tmp_path):
    (tmp_path / "k=1").mkdir()
    pq.write_table(pa.table({"a": [1.0], "k": [5]}), tmp_path / "k=1" / "0.parquet")
    assert read(Source.of(tmp_path), ["k", "a"])["k"].tolist() == [5]


def test_folders_with_other_keys_are_refused(tmp_path):
    for name in ("k=1", "m=1"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"a": [1.0]}), tmp_path / name / "0.parquet")
    with pytest.raises(InputError, match=r"folders of different keys \('?k'?, '?m'?\)"):
        Source.of(tmp_path)


def test_a_delta_table_has_the_rows_of_its_version(tmp_path, rows):
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    path, half = str(tmp_path / "t"), pa.Table.from_pandas(rows.iloc[:20], preserve_index=False)
    deltalake.write_deltalake(path, half, partition_by=["year", "city"])
    deltalake.write_deltalake(path, pa.Table.from_pandas(rows, preserve_index=False), mode="overwrite")
    source = Source.of(path)
    same_rows(read(source, ["id", "year", "city", "age"]), rows)  # not those of the first version's files
    deltalake.DeltaTable(path).delete("year = 2020")
    same_rows(read(Source.of(path), ["id", "year"]), rows[rows["year"] == 2021])
    (tmp_path / "bad" / "_delta_log").mkdir(parents=True)
    with pytest.raises(InputError, match=r"Delta table .* cannot be read"):
        Source.of(tmp_path / "bad")


def test_an_iceberg_table_has_the_rows_of_its_snapshot(tmp_path, rows):
    pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed")
    memory = pytest.importorskip("pyiceberg.catalog.memory", reason="pyiceberg is not installed")
    catalog = memory.InMemoryCatalog("c", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    data = pa.Table.from_pandas(rows, preserve_index=False)
    table = catalog.create_table("n.t", schema=data.schema)
    table.append(data.slice(0, 30))
    table.append(data.slice(30))
    same_rows(read(Source.of(table.metadata_location), ["id", "year", "age"]), rows)


@pytest.mark.parametrize(
    ("name", "library"), [("t/_delta_log", "deltalake"), ("x.metadata.json", "pyiceberg")]
)
def test_without_its_library_a_format_is_refused(tmp_path, monkeypatch, name, library):
    (tmp_path / name).mkdir(parents=True)
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(ImportError, match=library):
        Source.of(tmp_path / name if library == "pyiceberg" else tmp_path / "t")
