"""Tables in folders with keys, and in table formats, have the rows that were written."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from internals import Inputs, Source, decimated, explain_files, place_of, typed
from limes.exceptions import InputError


@pytest.fixture
def rows(table):
    some = table[0].iloc[:40]
    return some.assign(year=np.repeat([2020, 2021], 20), city=["Köln", "a b", None, "x=y/z"] * 10)


def read(source, columns):
    """All rows of a source."""
    tables = [chunk for part in source.parts(7, columns) for chunk in part.read(columns)]
    return pa.concat_tables(tables).to_pandas()


def same_rows(result, expected):
    columns = [*result.columns]
    result, expected = (t[columns].sort_values("id", ignore_index=True) for t in (result, expected))
    pd.testing.assert_frame_equal(result, expected.astype(result.dtypes), check_dtype=False)


def test_folders_with_keys_are_columns(tmp_path, rows, explainer):
    rows.to_parquet(tmp_path / "t", partition_cols=["year", "city"], index=False)
    source = Source.of(tmp_path / "t")
    assert source.schema.field("year").type == pa.int64()
    same_rows(read(source, ["city", "id", "age", "year"]), rows)
    assert read(source, ["year"])["year"].tolist() == sorted(rows["year"])
    assert set(decimated(source, ["year"], 100)["year"].to_pylist()) == {2020, 2021}
    options = {"run": {}, "rows_per_part": 9, "progress": False}
    explain_files(source, explainer, tmp_path / "out", keys=["id", "year", "city"], **options)
    result = pd.read_parquet(tmp_path / "out")
    same_rows(result[["id", "year", "city"]], rows)
    assert len({file.name for file in source.files}) >= 1
    some = Source.of(str(tmp_path / "t" / "year=2021" / "*" / "*.parquet"))
    assert "year" not in some.schema.names
    assert len(read(some, ["id"])) == 20


def test_csv_in_folders_with_keys(tmp_path, rows):
    for year, some in rows.groupby("year"):
        (tmp_path / f"year={year}").mkdir()
        some.drop(columns=["year", "city"]).to_csv(tmp_path / f"year={year}" / "0.csv.gz", index=False)
    source = Source.of(tmp_path)
    result = read(source, ["year", "id"])
    assert result["year"].tolist() == rows["year"].tolist()
    assert [cell.decode() for cell in result["id"]] == rows["id"].tolist()


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


def put(path):
    """A file of one row, whose cell is its place below the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = pa.table({"a": [path.name]})
    pq.write_table(rows, path) if path.suffix != ".csv" else path.write_text("a\nx\n")


READ = ["0.parquet", "deep/1.parquet", "_x=1/0.parquet", "t.parquet/part-0.parquet", "UPPER.PARQUET"]
LEFT_OUT = [
    "_temporary/0/task_0/0.parquet",
    ".spark-staging-1/0.parquet",
    ".Trash/0.parquet",
    "deep/.ipynb_checkpoints/0.parquet",
    "deep/_delta/0.parquet",
    "_hidden.parquet",
    ".hidden.parquet",
    "_SUCCESS",
    ".0.parquet.crc",
    "2.parquet._COPYING_",
]


@pytest.mark.parametrize("name", READ + LEFT_OUT)
def test_a_folder_has_the_files_that_spark_reads(tmp_path, name):
    first = "_x=2/first.parquet" if "=" in name else "first.parquet"
    for file in (first, name):
        put(tmp_path / "_in" / file)  # what lies above the folder does not matter
    names = [str(file.relative_to(tmp_path / "_in")) for file in Source.of(tmp_path / "_in").files]
    assert sorted(names) == sorted([first, name] if name in READ else [first])


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.parquet", ["0.parquet", "_1.parquet"]),
        ("**/*.parquet", ["0.parquet", "_1.parquet", "2.parquet"]),
        ("_temporary/*.parquet", ["3.parquet"]),
        ("_t*/*.parquet", ["3.parquet"]),
        ("*/*.parquet", ["2.parquet"]),
    ],
)
def test_a_pattern_has_hidden_folders_only_by_name(tmp_path, pattern, names):
    for file in ("0.parquet", "_1.parquet", "deep/2.parquet", "_temporary/3.parquet", "notes.txt"):
        put(tmp_path / file)
    assert sorted(file.name for file in Source.of(str(tmp_path / pattern)).files) == sorted(names)


@pytest.mark.parametrize("other", ["b.pq", "notes.txt", "deep/data.json", "c.parquet.bak", "Makefile"])
def test_a_file_of_another_kind_is_refused_by_name(tmp_path, other):
    for file in ("a.parquet", other):
        put(tmp_path / file)
    with pytest.raises(InputError, match=rf"{other.rpartition('/')[2]}.* would be left out: pass a pattern"):
        Source.of(tmp_path)
    assert len(Source.of(str(tmp_path / "*.parquet")).files) == 1


def test_files_behind_links_are_rows_and_circles_end(tmp_path):
    put(tmp_path / "elsewhere" / "1.parquet")
    put(tmp_path / "in" / "0.parquet")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in" / "circle").symlink_to(tmp_path / "in")
    assert [file.name for file in Source.of(tmp_path / "in").files] == ["0.parquet", "1.parquet"]


@pytest.mark.parametrize(
    ("where", "out", "refused"),
    [
        ("in", "in/out", True),
        ("in", "in/deep/er/out", True),
        ("in", "in/../in/out", True),
        ("in", "other/../in/_out", True),
        ("in", "way/out", True),  # a link to the folder
        ("way", "in/out", True),
        ("in", "elsewhere/out", True),  # the folder has a link to it
        ("in/*.parquet", "in/out", False),
        ("in/**/*.parquet", "in/out", True),
        ("in/*/*.parquet", "in/out", True),
        ("way/*/*.parquet", "in/out", True),
        ("in/a.parquet", "in/out", False),
        ("in", "input/out", False),
        ("in", "out", False),
        ("in", "other/out", False),
    ],
)
def test_an_output_inside_of_the_table_is_refused(tmp_path, explainer, monkeypatch, where, out, refused):
    for file in ("in/a.parquet", "in/deep/b.parquet", "elsewhere/c.parquet", "other/d.parquet"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        rows = {name: [0.01, 0.02] for name in explainer.feature_names}
        pq.write_table(pa.table(rows), tmp_path / file)
    (tmp_path / "way").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    options = {"run": {}, "progress": False}
    if refused:
        with pytest.raises(InputError, match=r"out is inside of the table.*pass a folder elsewhere"):
            explain_files(Source.of(where), explainer, out, **options)
        return
    first, again = (explain_files(Source.of(where), explainer, out, **options) for _ in range(2))
    assert first.rows == again.resumed


S3 = "?region=us-east-1"


@pytest.mark.parametrize(
    ("out", "folder", "inside"),
    [
        ("s3://bank/in/out", "s3://bank/in", True),
        ("s3://bank/in", "s3://bank/in", True),
        ("s3://bank/input", "s3://bank/in", False),
        ("s3://other/in/out", "s3://bank/in", False),
        ("in/out", "s3://bank/in", False),
    ],
)
def test_an_output_inside_of_a_stores_folder_is_refused(out, folder, inside):
    places = [place_of(where + S3 if where.startswith("s3") else where) for where in (out, folder)]
    origin = Inputs((), folders=(places[1],))
    pattern = Inputs((), pattern=places[1] / "**" / "*.parquet")
    for inputs in (origin, pattern):
        if inside:
            with pytest.raises(InputError, match="inside of the table"):
                inputs.refuse_output(places[0])
        else:
            inputs.refuse_output(places[0])


@pytest.mark.parametrize(
    "url", ["s3://user:secret@bank/in", "s3://user@bank/in", "gs://u:secret@bank/in", "abfs://c:secret@a/in"]
)
def test_passwords_in_urls_are_refused_and_not_repeated(url):
    with pytest.raises(InputError, match="leave out user and password") as caught:
        place_of(url)
    assert "secret" not in str(caught.value)


CELLS = ["00003", "12345678901234567893", "3e5", "NA", "A1", "2020-01-05", "True", " a ", "1.50", "-0", "nan"]


@pytest.mark.parametrize("cells", [CELLS, *([cell] * 3 for cell in CELLS)], ids=lambda cells: cells[0])
def test_keys_of_csv_are_the_text_of_the_file(tmp_path, explainer, cells):
    names = explainer.feature_names
    lines = [",".join([cell, *["0.01"] * len(names)]) for cell in cells]
    (tmp_path / "t.csv").write_text("\n".join([",".join(["id", *names]), *lines]))
    options = {"run": {}, "keys": ["id"], "rows_per_part": 4, "progress": False}
    summary = explain_files(Source.of(tmp_path / "t.csv"), explainer, tmp_path / "out", **options)
    lines = pa.concat_tables(map(pq.read_table, sorted((tmp_path / "out").glob("*.parquet"))))
    assert lines["id"].to_pylist() == cells
    assert lines["id"].type == pa.string()
    assert summary.errors == 0


def test_an_empty_key_is_missing_and_one_in_quotes_is_a_text(tmp_path, explainer):
    names = explainer.feature_names
    features = ",".join(["0.01"] * len(names))
    cells = ["", '""', '"a,""b"', '"NA"']
    text = "\n".join([",".join(["id", *names]), *(f"{cell},{features}" for cell in cells)])
    (tmp_path / "t.csv").write_text(text)
    options = {"run": {}, "keys": ["id"], "progress": False}
    explain_files(Source.of(tmp_path / "t.csv"), explainer, tmp_path / "out", **options)
    assert pq.read_table(tmp_path / "out")["id"].to_pylist() == [None, "", 'a,"b', "NA"]


def test_a_key_that_is_a_feature_is_both_text_and_number(tmp_path, explainer):
    names = explainer.feature_names
    rows = pd.DataFrame([[0.01 * i for i in range(len(names))]] * 2, columns=names).astype(str)
    rows[names[0]] = ["00.0100", "1e-2"]
    rows.to_csv(tmp_path / "t.csv", index=False)
    options = {"run": {}, "keys": [names[0]], "progress": False}
    explain_files(Source.of(tmp_path / "t.csv"), explainer, tmp_path / "out", **options)
    lines = pq.read_table(tmp_path / "out")
    assert lines[names[0]].to_pylist() == ["00.0100", "1e-2"]
    assert len(set(lines["prediction"].to_pylist())) == 1


@pytest.mark.parametrize("cell", ["NA", "null", "", '"NA"', "nan"])
def test_texts_for_missing_numbers_are_missing_in_features(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f"a,b\n1,2\n{cell},3\n")
    [part] = Source.of(tmp_path / "t.csv").parts(9, ["a", "b"])
    rows, reasons = typed(pa.concat_tables(part.read(["a", "b"])), pa.schema([("a", pa.float64())]), ())
    assert rows["a"].to_pylist() == [1.0, None]
    assert not reasons


@pytest.mark.parametrize("first", [True, False])
def test_a_repeated_column_name_is_refused(tmp_path, first):
    (tmp_path / "0.csv").write_text("a,b\n1,2\n" if not first else "a,a,b\n1,1,2\n")
    (tmp_path / "1.csv").write_text("a,b\n1,2\n" if first else "a,a,b\n1,1,2\n")
    with pytest.raises(InputError, match=r"[01]\.csv has several columns named '?a'?"):
        read(Source.of(tmp_path), Source.of(tmp_path).schema.names)
