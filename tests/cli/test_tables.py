"""Rows of large files: which rows become the background, and that the others are never in memory."""

from __future__ import annotations

import json

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

import limes
from internals import app, open_table, step_of, tables
from limes.exceptions import InputError, ModelError
from memory import rows_and_peak

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 50_000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=ROWS), "id": np.arange(ROWS), "b": rng.integers(0, 9, ROWS)})
    table["c"] = pd.Categorical.from_codes(rng.integers(0, 3, ROWS), ["x", "y", "z"])
    table.loc[::7, "a"] = np.nan
    return table


@pytest.mark.parametrize(
    ("rows", "step"), [(1, 1), (20_000, 1), (20_001, 2), (40_000, 2), (40_001, 4), (30_000_000, 2048)]
)
def test_ten_to_twenty_thousand_rows_are_left(rows, step):
    assert step_of(rows) == step
    assert step == 1 or 10_000 <= -(-rows // step) <= 20_000


@pytest.mark.parametrize("group", [ROWS, 7_000])
@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz", "long csv"])
def test_every_mth_row_is_the_background_however_the_file_is_read(frame, tmp_path, monkeypatch, kind, group):
    path = tmp_path / f"t.{kind.removeprefix('long ')}"
    if kind == "parquet":
        frame.to_parquet(path, row_group_size=group)
        monkeypatch.setattr(tables, "_BATCH", 3_000)
    else:
        frame.to_csv(path, index=False)
    if kind == "long csv":
        monkeypatch.setattr(tables, "_WHOLE", 1)
    table = open_table(path)
    assert list(table.columns) == list(frame.columns)
    rows = [31_337, 0, 49_999]
    chosen, background = table.read(["c", "a", "b"], rows, sample=True)
    expected = frame[["c", "a", "b"]]
    for ours, its in ((chosen, expected.iloc[rows]), (background, expected.iloc[::4])):
        assert list(ours.columns) == ["c", "a", "b"]
        assert ours["c"].tolist() == its["c"].tolist()
        np.testing.assert_array_equal(ours[["a", "b"]].to_numpy(), its[["a", "b"]].to_numpy())
    assert table.read(["a"], [5], sample=False)[1] is None
    with pytest.raises(InputError, match="--row 50000: the table has 50000 rows"):
        table.read(["a"], [ROWS], sample=True)


def test_types_of_pandas_and_its_index_are_those_of_the_file(frame, tmp_path):
    path = tmp_path / "t.parquet"
    frame.assign(b=frame["b"].astype("Int64")).set_index("id").to_parquet(path)
    table = open_table(path)
    assert list(table.columns) == ["a", "b", "c"]
    chosen, background = table.read(["b", "c"], [3], sample=True)
    assert str(chosen["b"].dtype) == "Int64"
    assert background["c"].cat.categories.tolist() == ["x", "y", "z"]


READING = """
from internals import open_table
rows = len(open_table(path).read(["a", "b"], [999_999], sample=True)[1])
"""


def test_a_large_row_group_is_never_in_memory(tmp_path):
    """A row, and a background of evenly spaced rows."""
    rows, peak = rows_and_peak(READING, tmp_path)
    assert rows == 15_625
    assert peak < 12 << 20


def test_a_row_of_a_long_csv_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    lines = ["a,b", *(f"{i},{i % 5}" for i in range(3000))]
    lines[2001] = "two thousand,3"
    path.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(tables, "_WHOLE", 1)
    with pytest.raises(InputError, match=r"--row 2000 of .* 'two thousand' is no"):
        open_table(path).read(["a", "b"], [2000], sample=True)


@pytest.mark.parametrize("command", ["explain", "diagnose"])
def test_commands_explain_by_the_background_of_every_mth_row(frame, tmp_path, command):
    features = frame[["a", "b"]].fillna(0.0)
    model = LinearRegression().fit(features, features["a"] - features["b"])
    skops.io.dump(model, tmp_path / "m.skops")
    features.to_parquet(tmp_path / "t.parquet")
    out = tmp_path / "out.json"
    arguments = [command, str(tmp_path / "m.skops"), str(tmp_path / "t.parquet"), "--row", "777"]
    result = CliRunner().invoke(app, [*arguments, "--json", str(out)])
    assert result.exit_code == 0, result.output
    explainer = limes.TabularExplainer(model, features.iloc[::4].reset_index(drop=True))
    explanation = explainer(features.iloc[[777]], ids=[777])
    if command == "explain":
        np.testing.assert_array_equal(
            limes.Explanation.read_json(out).coefficients.values, explanation.coefficients.values
        )
        assert limes.Explanation.read_json(out).ids == (777,)
    else:
        assert f'"lime":[{limes.diagnose(explanation).rows[0].lime[0]}' in out.read_text()


@pytest.fixture
def with_a_text(tmp_path, monkeypatch):
    """A table of CSV with a text in a column of numbers, the same table without that row, and a model."""
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(150, 2)), columns=["age", "debt"])
    skops.io.dump(LinearRegression().fit(table, table["age"] * 2 - table["debt"]), tmp_path / "m.skops")
    table.drop(index=7).to_csv(tmp_path / "good.csv", index=False)
    table.astype({"age": object}).assign(age=lambda t: t["age"].where(t.index != 7, "thirty")).to_csv(
        tmp_path / "bad.csv", index=False
    )
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [words[0], "m.skops", *words[1:]])


def explained(result, name):
    assert result.exit_code == 0, (result.output, result.exception)
    with open(name, encoding="utf-8") as file:
        return limes.Explanation.from_json(file.read()).coefficients.values


def test_a_row_of_a_long_csv_that_cannot_be_read_is_left_out_of_the_background_and_named(
    with_a_text, monkeypatch
):
    read = ("bad.csv", "--row", "21", "--json", "bad.json")
    its = explained(with_a_text("explain", *read), "bad.json")
    monkeypatch.setattr(tables, "_WHOLE", 1)
    result = with_a_text("explain", *read)
    assert "1 row of bad.csv is left out: row 7, column 'age': 'thirty' is no" in result.stderr
    np.testing.assert_array_equal(explained(result, "bad.json"), its)


@pytest.mark.parametrize("background", [(), ("--background", "bad.csv")])
def test_a_text_in_a_column_of_numbers_costs_its_row_alone(with_a_text, background):
    name = "good.csv" if background else "bad.csv"
    row = "20" if background else "21"  # of the table that has row 7
    result = with_a_text("explain", name, "--row", row, *background, "--json", "bad.json")
    its = explained(result, "bad.json")
    assert "1 row of bad.csv is left out: row 7, column 'age': 'thirty' is no number" in result.stderr
    expected = explained(
        with_a_text("explain", "good.csv", "--row", "20", "--json", "good.json"), "good.json"
    )
    np.testing.assert_array_equal(its, expected)


@pytest.mark.parametrize("command", ["explain", "diagnose"])
def test_a_row_that_cannot_be_read_is_called_by_its_place_in_the_table(with_a_text, command):
    error = with_a_text(command, "bad.csv", "--row", "7").exception
    assert isinstance(error, InputError)
    assert str(error).endswith("bad.csv could not be read: column 'age': 'thirty' is no number")
    assert str(error).startswith("--row 7 of ")


def test_errors_of_cells_name_the_row_of_the_table(with_a_text, tmp_path):
    pd.DataFrame({"age": [0.5] * 5, "debt": [1.0, 2.0, 3.0, float("inf"), 4.0]}).to_csv(
        tmp_path / "new.csv", index=False
    )
    error = with_a_text("explain", "new.csv", "--row", "3", "--background", "good.csv").exception
    assert str(error).startswith("row 3, column 'debt': inf ")


@pytest.mark.parametrize("command", ["explain", "diagnose", "explain-table", "app"])
def test_a_column_that_the_model_needs_is_not_dropped(with_a_text, command):
    words = ["good.csv", *(["out"] if command == "explain-table" else []), "--drop", "debt"]
    error = with_a_text(command, *words).exception
    assert isinstance(error, InputError)
    assert str(error).startswith("--drop debt: the model was fitted on this column")


def test_the_column_of_names_may_be_a_feature(with_a_text, tmp_path):
    table = pd.read_csv("good.csv", dtype=str)
    result = with_a_text(
        "explain", "good.csv", "--id", "debt", "--row", table["debt"][3], "--json", "id.json"
    )
    named = explained(result, "id.json")
    plain = explained(with_a_text("explain", "good.csv", "--row", "3", "--json", "at.json"), "at.json")
    np.testing.assert_array_equal(named, plain)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_boosters_of_categories_say_what_a_csv_file_lacks(tmp_path, monkeypatch, library):
    rng = np.random.default_rng(2)
    table = pd.DataFrame(
        {"amount": rng.normal(size=200), "town": pd.Categorical(rng.choice(["Ulm", "Bonn"], 200))}
    )
    target = table["amount"] + (table["town"] == "Ulm")
    monkeypatch.chdir(tmp_path)
    if library == "lightgbm":
        booster = pytest.importorskip("lightgbm")
        booster.LGBMRegressor(n_estimators=3, n_jobs=1, verbose=-1).fit(table, target).booster_.save_model(
            "m.txt"
        )
    else:
        booster = pytest.importorskip("xgboost")
        model = booster.XGBRegressor(n_estimators=3, n_jobs=1, enable_categorical=True).fit(table, target)
        model.get_booster().save_model("m.json")
    table.to_csv("rows.csv", index=False)
    table.to_parquet("rows.parquet")
    words = ["explain", "m.txt" if library == "lightgbm" else "m.json"]
    error = CliRunner().invoke(app, [*words, "rows.csv"]).exception
    assert "there are texts in 'town': if these were categories when the model was fitted" in str(error)
    result = CliRunner().invoke(app, [*words, "rows.parquet"])
    assert result.exit_code == 0, (result.output, result.exception)


@pytest.fixture
def with_a_strange_town(tmp_path, monkeypatch):
    """A table whose row 7 has a category that the model refuses, and the same table without that row."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"age": rng.normal(size=150), "town": rng.choice(["Bonn", "Kiel", "Ulm"], 150)})
    encoder = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = make_pipeline(encoder, LinearRegression()).fit(table, table["age"] + (table["town"] == "Ulm"))
    skops.io.dump(model, tmp_path / "m.skops")
    table.drop(index=7).to_csv(tmp_path / "good.csv", index=False)
    table.assign(town=table["town"].where(table.index != 7, "Oz")).to_csv(tmp_path / "bad.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [words[0], "m.skops", *words[1:]])


_LEFT_OUT = "1 row of the background is left out: column 'town': the model refuses 'Oz': it raised ValueError"


@pytest.mark.parametrize("background", [(), ("--background", "bad.csv")])
def test_a_row_that_the_model_refuses_costs_no_other_row_its_explanation(with_a_strange_town, background):
    name, row = ("good.csv", "20") if background else ("bad.csv", "21")
    result = with_a_strange_town("explain", name, "--row", row, *background, "--json", "bad.json")
    its = explained(result, "bad.json")
    assert _LEFT_OUT in result.stderr
    alone = with_a_strange_town("explain", "good.csv", "--row", "20", "--json", "good.json")
    np.testing.assert_array_equal(its, explained(alone, "good.json"))
    assert "left out" not in alone.stderr


@pytest.mark.parametrize("words", [["explain", "--sparse", "1"], ["diagnose"], ["decide", "--above", "0"]])
def test_commands_about_other_rows_leave_the_row_that_the_model_refuses_out(with_a_strange_town, words):
    result = with_a_strange_town(words[0], "bad.csv", "--row", "21", *words[1:])
    assert result.exit_code == 0, (result.output, result.exception)
    assert _LEFT_OUT in result.stderr


def test_explain_table_has_an_error_for_the_row_that_the_model_refuses_alone(with_a_strange_town):
    result = with_a_strange_town("explain-table", "bad.csv", "out", "--summary", "summary.json")
    assert result.exit_code == 3, (result.output, result.exception)
    with open("summary.json", encoding="utf-8") as file:
        assert json.load(file)["errors"] == 1


@pytest.mark.parametrize(
    "words", [["explain"], ["explain", "--background", "good.csv"], ["diagnose"], ["app", "--no-browser"]]
)
def test_the_row_that_the_model_refuses_is_named(with_a_strange_town, words):
    error = with_a_strange_town(words[0], "bad.csv", "--row", "7", *words[1:]).exception
    assert isinstance(error, InputError)
    assert str(error).startswith("--row 7 of ")
    assert "column 'town': the model refuses 'Oz': it raised ValueError" in str(error)


class _Careful(LinearRegression):
    """A model that refuses negative ages, and is asked, as its method is its own."""

    def predict(self, X):
        if (np.asarray(X)[:, 0] < 0).any():
            raise ValueError("negative age")
        return super().predict(X) ** 2


def test_a_row_that_a_model_refuses_in_its_call_is_named(tmp_path, monkeypatch):
    table = pd.DataFrame(np.random.default_rng(4).uniform(size=(60, 2)), columns=["age", "debt"])
    joblib.dump(_Careful().fit(table, table["age"]), tmp_path / "m.joblib")
    table.to_csv(tmp_path / "good.csv", index=False)
    table.assign(age=table["age"].where(table.index != 7, -1.0)).to_csv(tmp_path / "bad.csv", index=False)
    monkeypatch.chdir(tmp_path)
    arguments = ["explain", "m.joblib", "bad.csv", "--background", "good.csv", "--trust-pickle", "--row", "7"]
    error = CliRunner().invoke(app, arguments).exception
    assert isinstance(error, ModelError)
    assert str(error).startswith("row 7: ")
    assert "negative age" in str(error)


def test_a_note_of_table_and_background_is_printed_once(tmp_path, monkeypatch):
    table = pd.DataFrame({"code": [f"00{i}" for i in range(5)] * 20, "age": np.arange(100.0)})
    encoder = make_column_transformer((OneHotEncoder(), ["code"]), remainder="passthrough")
    model = make_pipeline(encoder, LinearRegression()).fit(table, table["age"])
    skops.io.dump(model, tmp_path / "m.skops")
    table.to_csv(tmp_path / "a.csv", index=False)
    table[:50].to_csv(tmp_path / "b.csv", index=False)
    monkeypatch.chdir(tmp_path)
    for words in (["explain", "m.skops", "a.csv"], ["explain-table", "m.skops", "a.csv", "out"]):
        for _ in range(2):  # of another command of one process, it is printed again
            result = CliRunner().invoke(app, [*words, "--background", "b.csv"])
            assert result.exit_code == 0, (result.output, result.exception)
            assert result.stderr.count("column 'code' is read as texts") == 1
