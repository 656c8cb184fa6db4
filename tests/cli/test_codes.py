"""Columns of codes on the command line: those that are named, and those that a file made numbers of."""

from __future__ import annotations

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
from internals import app
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
