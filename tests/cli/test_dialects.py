"""CSV as Excel and others write it: the oracle is the frame that was written."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

from internals import (
    Dialect,
    Source,
    app,
    dialect_of,
    files,
    open_table,
    place_of,
    read_table,
    tables,
    to_usual,
    typed,
)
from limes.exceptions import InputError

pytest.importorskip("pyarrow")

rng = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "Größe": rng.normal(size=40).round(3),
        "Ort": np.array(["Zürich", "Genève", "Málaga", "Basel"])[rng.integers(0, 4, 40)],
        "n": rng.integers(0, 9, 40),
        "leer": np.where(rng.random(40) < 0.2, np.nan, rng.exponential(size=40).round(2)),
    }
)
FRAME.loc[0, ["Größe", "leer"]] = [-1.25, 0.5]
USUAL = {"sep": ",", "decimal": ".", "encoding": "utf-8"}
WAYS = {
    "the rule": {},
    "semicolons": {"sep": ";"},
    "semicolons, decimal commas": {"sep": ";", "decimal": ","},
    "tabs": {"sep": "\t"},
    "tabs, decimal commas": {"sep": "\t", "decimal": ","},
    "a mark of UTF-8": {"encoding": "utf-8-sig"},
    "a mark of UTF-8, semicolons": {"encoding": "utf-8-sig", "sep": ";", "decimal": ","},
    "UTF-16": {"encoding": "utf-16"},
    "Unicode text of Excel": {"encoding": "utf-16", "sep": "\t", "decimal": ","},
    "UTF-16 without a mark": {"encoding": "utf-16-le", "sep": ";"},
    "UTF-16 of the other end": {"encoding": "utf-16-be", "sep": "\t"},
    "UTF-32": {"encoding": "utf-32", "sep": ";"},
    "Windows-1252": {"encoding": "cp1252"},
    "Excel in half of Europe": {"encoding": "cp1252", "sep": ";", "decimal": ","},
    "lines of Windows": {"sep": ";", "decimal": ",", "lineterminator": "\r\n"},
    "everything in quotes": {"sep": ";", "quoting": 2},
}


def written(path, frame=FRAME, **way):
    frame.to_csv(path, index=False, **{**USUAL, **way})
    return path


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["whole", "long", "compressed", "run"])
def test_a_table_is_the_one_that_was_written(tmp_path, monkeypatch, way, kind, capsys):
    path = written(tmp_path / f"t.csv{'.gz' * (kind == 'compressed')}", **WAYS[way])
    if kind == "long":
        monkeypatch.setattr(tables, "_WHOLE", 1)
    if kind == "run":
        source = Source.of(place_of(path))
        assert source.schema.names == [*FRAME.columns]
        (part,) = source.parts(100, source.schema.names)
        cells, wrong = typed(*part.read(source.schema.names), source.schema, ())
        assert not wrong
        frame = cells.to_pandas()
    else:
        table = open_table(path)
        assert [*table.columns] == [*FRAME.columns]
        frame = table.read([*FRAME.columns], range(40), sample=False)[0]
    pd.testing.assert_frame_equal(frame.reset_index(drop=True), FRAME, check_dtype=False)
    notes = capsys.readouterr().err
    assert ("Windows-1252" in notes) == (WAYS[way].get("encoding") == "cp1252" and kind != "run")


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("way", ["semicolons, decimal commas", "Unicode text of Excel", "Windows-1252"])
def test_every_library_of_frames_reads_it(tmp_path, monkeypatch, backend, way):
    pytest.importorskip(backend)
    path = written(tmp_path / "t.csv", FRAME.drop(columns="leer"), **WAYS[way])
    monkeypatch.setattr(files, "find_spec", lambda name: name == backend or None)
    frame = read_table(path)
    assert frame.implementation.value == backend
    assert frame.to_dict(as_series=False) == FRAME.drop(columns="leer").to_dict("list")


@pytest.mark.parametrize("word", ["None", "<NA>", "NA", "null", "n/a", ""])
@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow", "run"])
def test_all_readers_take_the_same_words_for_missing(tmp_path, monkeypatch, word, backend):
    path = tmp_path / "t.csv"
    path.write_text("size,town,n\n" + f"1.5,Basel,1\n{word},{word},2\n0.5,Bern,3\n" * 5)
    expected = {"size": [1.5, None, 0.5] * 5, "town": ["Basel", None, "Bern"] * 5}
    if backend == "run":
        source = Source.of(place_of(path))
        (part,) = source.parts(100, source.schema.names)
        frame = typed(*part.read(source.schema.names), source.schema, ())[0].to_pandas()
    else:
        pytest.importorskip(backend)
        monkeypatch.setattr(files, "find_spec", lambda name: name == backend or None)
        frame = read_table(path).to_pandas()
    for name, cells in expected.items():
        assert [None if pd.isna(cell) else cell for cell in frame[name]] == cells


def test_a_category_that_reads_as_missing_is_noted(tmp_path):
    table = pd.DataFrame({"job": ["None", "nurse", "clerk"] * 20, "age": np.arange(60.0)})
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["job"]), remainder="passthrough"
    )
    skops.io.dump(make_pipeline(columns, Ridge()).fit(table, table["age"]), tmp_path / "m.skops")
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    for command in (["explain", "--row", "0"], ["explain-table"]):
        for kind, count in (("csv", 1), ("parquet", 0)):
            name, *options = command
            out = [str(tmp_path / kind)] if name == "explain-table" else []
            paths = [str(tmp_path / "m.skops"), str(tmp_path / f"t.{kind}"), *out]
            result = CliRunner().invoke(app, [name, *paths, *options])
            assert result.exit_code == 0, result.exception
            assert result.stderr.count("cells 'None' of column 'job' are read as missing") == count


def test_a_background_of_csv_is_read_as_the_table_is(tmp_path):
    table = pd.DataFrame({"a": np.arange(200.0), "b": np.arange(200.0) % 7})
    skops.io.dump(Ridge().fit(table, table["a"]), tmp_path / "m.skops")
    table.to_csv(tmp_path / "t.csv", index=False)
    table.astype({"a": object}).replace({"a": {3.0: "?"}}).to_csv(tmp_path / "b.csv", index=False)
    table[["a"]].to_csv(tmp_path / "less.csv", index=False)
    arguments = ["explain-table", str(tmp_path / "m.skops"), str(tmp_path / "t.csv"), str(tmp_path / "out")]
    result = CliRunner().invoke(app, [*arguments, "--background", str(tmp_path / "b.csv")])
    assert result.exit_code == 0, result.exception
    assert "1 row of b.csv is left out: row 3, column 'a': '?' is no number" in result.stderr
    lacking = CliRunner().invoke(app, [*arguments, "--background", str(tmp_path / "less.csv")])
    assert isinstance(lacking.exception, InputError)
    assert "less.csv has no column 'b'; it has 'a'" in str(lacking.exception)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("dialects")
    columns = make_column_transformer((OneHotEncoder(), ["Ort"]), remainder="passthrough")
    table = FRAME.drop(columns="leer")
    model = make_pipeline(columns, Ridge()).fit(table, 2 * table["Größe"] + table["n"])
    skops.io.dump(model, place / "m.skops")
    return place, model, table


@pytest.mark.parametrize("way", ["semicolons, decimal commas", "UTF-16", "Excel in half of Europe"])
def test_commands_predict_what_the_model_predicts(folder, tmp_path, way):
    place, model, table = folder
    path = written(tmp_path / "t.csv", FRAME, **WAYS[way])
    result = CliRunner().invoke(
        app, ["explain", str(place / "m.skops"), str(path), "--row", "3", "--json", str(tmp_path / "o.json")]
    )
    assert result.exit_code == 0, result.output
    stored = json.loads((tmp_path / "o.json").read_text())
    assert stored["predictions"][0] == pytest.approx(model.predict(table)[3])
    out = tmp_path / "out"
    result = CliRunner().invoke(
        app, ["explain-table", str(place / "m.skops"), str(path), str(out), "--key", "Ort"]
    )
    assert result.exit_code == 0, result.output
    lines = pd.read_parquet(out).sort_values("row")
    np.testing.assert_allclose(lines["prediction"], model.predict(table))
    assert lines["Ort"].tolist() == table["Ort"].tolist()


@pytest.mark.parametrize("command", ["explain", "explain-table"])
def test_the_table_s_columns_are_in_the_message(folder, tmp_path, command):
    place, _, _ = folder
    (tmp_path / "t.csv").write_text("Grösse|Ort|n\n1|Basel|2\n", encoding="utf-8")
    arguments = [command, str(place / "m.skops"), str(tmp_path / "t.csv"), str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments[: 3 + (command == "explain-table")])
    assert isinstance(result.exception, InputError)
    for words in ("'Größe'", "'Ort'", "'n'", "it has 'Grösse|Ort|n'"):
        assert words in str(result.exception)


def test_numbers_in_a_way_that_the_first_lines_did_not_show_are_errors_of_their_rows(tmp_path):
    """A point separates thousands where a comma separates decimals: 1.234 is no 1.234 there."""
    lines = ["a;b", *(f"{i},5;{i}" for i in range(3000)), "1.234;7", "x;8", "2,25;9"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    source = Source.of(place_of(tmp_path / "t.csv"))
    (part,) = source.parts(10_000, ["a", "b"])
    rows, wrong = [], {}
    for chunk in part.read(["a", "b"]):
        cells, reasons = typed(chunk, source.schema, ())
        wrong |= {len(rows) + i: why for i, why in reasons.items()}
        rows += cells["a"].to_pylist()
    assert rows == [*(i + 0.5 for i in range(3000)), None, None, 2.25]
    assert wrong == {3000: "column 'a': '1.234' is no number", 3001: "column 'a': 'x' is no number"}


def test_bytes_that_are_no_text_name_the_encoding(tmp_path):
    lines = ["ü,b", *(f"Zürich,{i}" for i in range(50))]
    content = "\n".join(lines).encode() + "\nGenève,7\n".encode("cp1252")
    (tmp_path / "t.csv").write_bytes(content)
    assert dialect_of(content) == Dialect()
    source = Source.of(place_of(tmp_path / "t.csv"))
    (part,) = source.parts(100, ["b", "ü"])
    _, wrong = typed(*part.read(["b", "ü"]), source.schema, ())
    assert wrong.keys() == {50}
    assert "no UTF-8" in wrong[50]
    assert "'Genève' in Windows-1252" in wrong[50]


@pytest.mark.parametrize(
    ("content", "dialect"),
    [
        (b"", Dialect()),
        (b"a", Dialect()),
        (b"a,b\n1,2\n", Dialect()),
        (b"a,b;c\n1,2\n3,4\n", Dialect()),
        (b"g;v;w\n1,5;2;3\n", Dialect("utf-8", ";", ",")),
        (b"name;price, EUR\nx;1,5\ny;2,5\n", Dialect("utf-8", ";", ",")),
        (b"name\tprice, EUR\nx\t1.5\n", Dialect("utf-8", "\t")),
        (b"a;b\n1.5;2\n", Dialect("utf-8", ";")),
        (b"a;b\n1.5;2,5\n", Dialect("utf-8", ";")),
        (b'a;b\n"x;\ny, z";2\n', Dialect("utf-8", ";")),
        (b'a,b\n"x;y;z",2\n"u;v;w",3\n', Dialect()),
        (b"a;b;c\r\n1;2;3\r\n", Dialect("utf-8", ";")),
        (b"a;b\r1;2\r", Dialect("utf-8", ";")),
        ("\ufeffa;b\n1;2\n".encode(), Dialect("utf-8", ";")),
        ("a;b\nü;2\n".encode("cp1252"), Dialect("cp1252", ";")),
        ("price €;b\n5;2\n".encode("cp1252"), Dialect("cp1252", ";")),
        ("a;b\nü;2\n".encode(), Dialect("utf-8", ";")),
        ("ü;b\n1;2\n".encode() + b"\xff\xff;3\n", Dialect("utf-8", ";")),
        (b"a;b\n\xff\xff;3\n", Dialect("utf-8", ";")),
        (b"\x81;b\n1;3\n", Dialect("utf-8", ";")),
        ("a,b\n1,2\n".encode("utf-16"), Dialect("utf-16")),
        ("a\tb\n1,5\t2\n".encode("utf-16-be"), Dialect("utf-16-be", "\t", ",")),
        ("a;b\n1;2\n".encode("utf-32"), Dialect("utf-32", ";")),
    ],
)
def test_the_dialect_of_a_file(content, dialect):
    assert dialect_of(content) == dialect
    if dialect.encoding != "utf-8":
        assert (
            to_usual(content, dialect)
            .decode()
            .startswith(content.decode(dialect.encoding).lstrip("\ufeff")[:3])
        )


def test_a_letter_or_a_line_that_the_head_cuts_decides_nothing():
    line = "Zürich;1,5\n".encode()
    for cut in range(1, 40):
        head = (b"a;b\n" + line * 5)[: 5 + cut]
        assert dialect_of(head, ends=False).encoding == "utf-8"
        assert dialect_of(head, ends=False).separator == ";"
