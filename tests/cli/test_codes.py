"""Columns of codes on the command line: those that are named, and those that a file made numbers of."""

from __future__ import annotations

import json
from contextlib import chdir

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from typer.testing import CliRunner

import limes
from internals import app, tables
from limes.exceptions import InputError

ROWS = 120
RNG = np.random.default_rng(0)
PLACE, AGE = RNG.integers(0, 5, ROWS), RNG.normal(40, 10, ROWS).round(3)
Y = np.array([2.0, -1.5, 0.25, 3.0, -2.5])[PLACE] + 0.1 * AGE
NAME = "place, of birth"  # with a comma, as columns may have
# By model: codes as the model was trained on them, and what stands before and behind
MODELS = {
    "neighbours": ([-1.5, 0.25, 1.0, 2.5, 4.0], None),
    "numbers": ([-9, 1, 2, 3, 4], OneHotEncoder()),
    "zeros": (["000", "001", "002", "003", "004"], OneHotEncoder(handle_unknown="ignore")),
    "written": (["-3", "0.50", "1e2", "7", "08"], OrdinalEncoder()),
    "texts": (["7", "8", "x", "y", "9"], OneHotEncoder()),
    "alike": (["7", "07", "8", "9", "10"], OneHotEncoder()),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("codes")
    for name, (codes, encoder) in MODELS.items():
        X, steps = table(codes), [KNeighborsRegressor(3)]
        if encoder is not None:
            before = make_column_transformer((encoder, [NAME]), remainder="passthrough")
            steps = [before, RandomForestRegressor(5, max_depth=4, random_state=0)]
        joblib.dump(make_pipeline(*steps).fit(X, Y), place / f"{name}.joblib")
        X.to_csv(place / f"{name}.csv", index=False)
    return place


def table(codes):
    return pd.DataFrame({"age": AGE, NAME: np.array(codes)[PLACE]})


def run(folder, command, name, *options):
    with chdir(folder):
        arguments = [command, f"{name}.joblib", f"{name}.csv", *options, "--trust-pickle"]
        return CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})


@pytest.mark.parametrize("name", ["numbers", "zeros", "written", "texts"])
def test_codes_get_the_explanation_of_the_table_that_the_model_was_trained_on(folder, name):
    assert run(folder, "explain", name, "--row", "4", "--json", "out.json").exit_code == 0
    X, model = table(MODELS[name][0]), joblib.load(folder / f"{name}.joblib")
    expected = limes.TabularExplainer(model, X)(X.iloc[[4]])
    result = limes.Explanation.from_json((folder / "out.json").read_text())
    assert result.method == expected.method == "exact"
    assert result.conditions == expected.conditions
    assert result.coefficients.values == pytest.approx(expected.coefficients.values)
    assert result.predictions == pytest.approx(model.predict(X.iloc[[4]]))


@pytest.mark.parametrize("name", ["numbers", "zeros", "written", "texts", "alike"])
def test_codes_of_long_tables(folder, name, tmp_path):
    result = run(folder, "explain-table", name, str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    written = pd.concat([pd.read_parquet(path) for path in sorted((tmp_path / "out").glob("*.parquet"))])
    assert written["error"].isna().all()
    X, model = table(MODELS[name][0]), joblib.load(folder / f"{name}.joblib")
    assert written["prediction"].to_numpy() == pytest.approx(model.predict(X))


def test_a_number_that_several_texts_stand_for_is_refused(folder):
    result = run(folder, "explain", "alike")
    assert isinstance(result.exception, InputError)
    assert "holds the number 7, and the model was trained on the texts '07', '7'" in str(result.exception)
    assert ".parquet" in str(result.exception)


@pytest.mark.parametrize("command", ["explain", "diagnose"])
@pytest.mark.parametrize(
    "options", [("--categorical", NAME), ("--categorical", "age", "--categorical", NAME)]
)
def test_columns_of_codes_are_named(folder, command, options):
    result = run(folder, command, "neighbours", "--json", "named.json", *options)
    assert result.exit_code == 0, result.output
    X, model = table(MODELS["neighbours"][0]), joblib.load(folder / "neighbours.joblib")
    named = [*options[1::2]]
    expected = limes.TabularExplainer(model, X, categorical=named)(X.iloc[:1])
    if command == "explain":
        explanation = limes.Explanation.from_json((folder / "named.json").read_text())
        assert explanation.conditions == expected.conditions
        assert f"{NAME} = " in explanation.conditions[0][1]


def test_several_columns_in_one_option_and_rules(folder):
    X = pd.DataFrame({"age": AGE, "a": PLACE - 1.5, "b": PLACE * 0.25})
    joblib.dump(KNeighborsRegressor(3).fit(X, Y), folder / "several.joblib")
    X.to_csv(folder / "several.csv", index=False)
    for options in ((), ("--sparse", "1")):
        result = run(folder, "explain", "several", "--categorical", "a, b", "--json", "out.json", *options)
        assert result.exit_code == 0, result.output
        explanation = limes.Explanation.from_json((folder / "out.json").read_text())
        assert {text for text in explanation.conditions[0] if text[:4] in ("a = ", "b = ")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["neighbours.csv", "--categorical", "height"], "categorical='height' is not a column"),
        (["--text", "a text", "--categorical", "age"], "--categorical, --dtype, --drop"),
    ],
)
def test_names_of_no_column_and_inputs_without_columns_are_refused(folder, arguments, message):
    with chdir(folder):
        result = CliRunner().invoke(app, ["explain", "neighbours.joblib", *arguments, "--trust-pickle"])
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


# -- casts ---------------------------------------------------------------------------------------------------


def fitted(folder, column, values, written, handle_unknown="error"):
    """A model of an encoder of these values, and a file in which they are written so."""
    X = pd.DataFrame({column: pd.Series(values).take(PLACE % len(values)).reset_index(drop=True), "age": AGE})
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown=handle_unknown), [column]), remainder="passthrough"
    )
    model = make_pipeline(encoder, RandomForestRegressor(5, max_depth=4, random_state=0)).fit(X, Y)
    joblib.dump(model, folder / "cast.joblib")
    table = X.assign(**{column: np.array(written)[PLACE % len(written)]})
    table.to_csv(folder / "cast.csv", index=False)
    return X, model


@pytest.mark.parametrize(
    ("values", "written", "kind"),
    [
        (["7", "8"], ["7.0", "8.0"], "texts"),
        (["True", "False"], ["True", "False"], "texts"),
        (["true", "false"], ["TRUE", "FALSE"], "texts"),
        ([True, False], ["1", "0"], "true and false"),
        ([True, False], ["yes", "no"], "true and false"),
        ([1, 0], ["True", "False"], "numbers"),
        ([0.5, 10.0], ["0.5", "1e1"], ""),
        (["a", "b"], ["a", "b"], ""),
    ],
)
def test_columns_become_what_the_encoder_has(folder, values, written, kind):
    X, model = fitted(folder, "flag", values, written)
    result = run(folder, "explain", "cast", "--row", "3", "--json", "out.json")
    assert result.exit_code == 0, result.exception
    explanation = limes.Explanation.from_json((folder / "out.json").read_text())
    assert explanation.predictions == pytest.approx(model.predict(X.iloc[[3]]))
    expected = limes.TabularExplainer(model, X)(X.iloc[[3]])
    assert explanation.coefficients.values == pytest.approx(expected.coefficients.values)
    note = f"column 'flag' is read as {kind}: the model's encoder has those, such as "
    assert result.stderr.count("limes: column") == bool(kind)
    assert (note in result.stderr) == bool(kind)


def test_values_that_are_no_category_are_left_to_the_model(folder):
    fitted(folder, "flag", [1, 2], ["1", "two"])
    result = run(folder, "explain", "cast")
    assert "found unknown categories" in str(result.exception).lower() or "two" in str(result.exception)


def test_a_stated_type_is_read_as_it_is_written(folder):
    assert run(folder, "explain", "alike", "--dtype", f"{NAME}=text", "--json", "out.json").exit_code == 0
    X, model = table(MODELS["alike"][0]), joblib.load(folder / "alike.joblib")
    explanation = limes.Explanation.from_json((folder / "out.json").read_text())
    assert explanation.predictions == pytest.approx(model.predict(X.iloc[:1]))


def test_types_that_are_stated_of_columns_without_an_encoder(folder):
    X = pd.DataFrame({"a": PLACE * 1.0, "b": PLACE % 2 == 0})
    joblib.dump(KNeighborsRegressor(3).fit(X, Y), folder / "typed.joblib")
    written = pd.DataFrame({"a": PLACE.astype(str), "b": np.where(PLACE % 2 == 0, "yes", "no")})
    written.to_parquet(folder / "typed.parquet")
    with chdir(folder):
        arguments = ["explain", "typed.joblib", "typed.parquet", "--trust-pickle", "--json", "out.json"]
        result = CliRunner().invoke(app, [*arguments, "--dtype", "a=number", "--dtype", "b=bool"])
        wrong = CliRunner().invoke(app, [*arguments, "--dtype", "b=number"])
    assert result.exit_code == 0, result.exception
    explanation = limes.Explanation.from_json((folder / "out.json").read_text())
    assert explanation.predictions == pytest.approx(
        joblib.load(folder / "typed.joblib").predict(X.iloc[:1].astype(float))
    )
    assert "--dtype b=number: 'yes' is no number" in str(wrong.exception) or "'no'" in str(wrong.exception)


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        ("age=date", "pass COLUMN=TYPE, with a type of ['bool', 'number', 'text']"),
        ("age", "pass COLUMN=TYPE"),
        ("agee=text", "--dtype agee: no such column"),
    ],
)
@pytest.mark.parametrize("command", ["explain", "explain-table"])
def test_types_that_are_unknown_or_of_no_column_are_refused(folder, dtype, message, command, tmp_path):
    out = [str(tmp_path / "out")] if command == "explain-table" else []
    result = run(folder, command, "numbers", *out, "--dtype", dtype)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_long_tables_read_a_stated_text_as_it_is_written(folder, tmp_path):
    result = run(folder, "explain-table", "zeros", str(tmp_path / "a"))
    assert f"column {NAME!r} is read as texts" in result.stderr
    quiet = run(folder, "explain-table", "zeros", str(tmp_path / "b"), "--dtype", f"{NAME}=text")
    assert (quiet.exit_code, quiet.stderr.count("is read as")) == (0, 0)
    wrong = run(folder, "explain-table", "zeros", str(tmp_path / "c"), "--dtype", "age=bool")
    assert "explain-table reads columns as text" in str(wrong.exception)


@pytest.mark.parametrize(
    ("trained", "passed", "advice"),
    [(["7", "8"], [7, 8], "pass texts there"), ([7, 8], ["7", "8"], "pass numbers there")],
)
def test_in_python_another_type_than_the_encoders_is_advised_against(folder, trained, passed, advice):
    X, model = fitted(folder, "code", pd.Series(trained, dtype=object), trained, handle_unknown="ignore")
    other = X.assign(code=pd.Series(passed, dtype=object).take(PLACE % 2).reset_index(drop=True))
    with pytest.warns(UserWarning, match=advice):
        limes.TabularExplainer(model, other)


# -- names of rows -------------------------------------------------------------------------------------------


@pytest.fixture
def named(folder):
    X = table(MODELS["numbers"][0]).assign(person=[f"{i:04d}" for i in range(ROWS)])
    X.to_csv(folder / "named.csv", index=False)
    return folder


def test_a_row_is_named_in_all_commands_that_explain_one(named, tmp_path):
    options = ("--trust-pickle", "--id", "person")
    with chdir(named):
        command = ["explain", "numbers.joblib", "named.csv", *options, "--row", "0007", "--json", "out.json"]
        assert CliRunner().invoke(app, command).exit_code == 0
        command = ["diagnose", "numbers.joblib", "named.csv", *options, "--row", "0007", "--json", "d.json"]
        assert CliRunner().invoke(app, command).exit_code == 0
        for word in ("--id", "--key"):
            command = ["explain-table", "numbers.joblib", "named.csv", str(tmp_path / word), "--trust-pickle"]
            assert CliRunner().invoke(app, [*command, word, "person"]).exit_code == 0
    explanation = limes.Explanation.from_json((named / "out.json").read_text())
    assert explanation.ids == ("0007",)
    X, model = table(MODELS["numbers"][0]), joblib.load(named / "numbers.joblib")
    assert explanation.predictions == pytest.approx(model.predict(X.iloc[[7]]))
    (diagnosed,) = json.loads((named / "d.json").read_text())["rows"]
    assert diagnosed["row"] == 7
    one, other = (pd.read_parquet(tmp_path / word) for word in ("--id", "--key"))
    assert one["person"].tolist() == other["person"].tolist() == [f"{i:04d}" for i in range(ROWS)]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_row_of_a_large_table_is_named(named, monkeypatch, ending):
    monkeypatch.setattr(tables, "_WHOLE", 0)
    monkeypatch.setattr(tables, "BACKGROUND", 20)
    X = pd.read_csv(named / "named.csv", dtype={"person": str})
    getattr(X, f"to_{ending}")(named / f"large.{ending}", index=False)
    table_file = tables.open_table(named / f"large.{ending}", ids="person")
    assert type(table_file).__name__ == f"_{ending.capitalize()}"
    assert tables.row_called(table_file, "0007", "person") == (7, "0007")
    with pytest.raises(InputError, match="no row of column 'person'"):
        tables.row_called(table_file, "7", "person")
