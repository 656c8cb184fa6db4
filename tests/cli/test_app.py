"""``limes app`` up to the server: the files it reads, the arguments it refuses, and the desk it serves."""

from __future__ import annotations

import sys
from contextlib import chdir

import joblib
import pandas as pd
import pytest
from typer.testing import CliRunner

import limes
from internals import MissingLibraryError, app, launch
from limes.exceptions import InputError
from wines import write_wines


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("app")
    X, _ = write_wines(folder, 3, bottle=[f"B{i}" for i in range(178)])
    X.iloc[::2].to_csv(folder / "half.csv", index=False)
    return folder


@pytest.fixture
def served(monkeypatch):
    calls = []
    monkeypatch.setattr(launch, "serve", lambda desk, **options: calls.append((desk, options)))
    return calls


def run(folder, *arguments):
    with chdir(folder):
        return CliRunner().invoke(app, ["app", *arguments], env={"COLUMNS": "100"})


@pytest.mark.parametrize("table", ["wine.parquet", "wine.csv"])
def test_the_desk_explains_as_explain_does(folder, served, table):
    options = ("--id", "bottle", "--row", "5", "--port", "0", "--no-browser")
    result = run(folder, "forest.skops", table, *options, "--bins", "decile", "--background", "half.csv")
    assert result.exit_code == 0, result.exception
    ((desk, settings),) = served
    assert (settings["port"], settings["browser"]) == (0, False)
    assert desk.table()["start"] == 5
    assert desk.search("b7")[0] == {"row": 7, "id": "B7"}
    X = pd.read_csv(folder / "wine.csv").iloc[:, :3]
    model = joblib.load(folder / "forest.joblib")
    explainer = limes.TabularExplainer(model, X.iloc[::2], bins="decile", rng=0)
    numbers = desk.explain(desk.row(5)["values"], 1)["numbers"]
    assert numbers["values"] == pytest.approx(
        explainer(X.iloc[[5]]).contributions.values[0, :, 1], rel=1e-9, abs=1e-12
    )
    assert len(desk.rule(desk.row(5)["values"], 1)["rule"].split("[")) <= 4  # no more facts than columns


def test_the_row_to_start_from_is_named(folder, served):
    options = ("--id", "bottle", "--row", "B7", "--port", "0", "--no-browser")
    assert run(folder, "forest.skops", "wine.csv", *options).exit_code == 0
    ((desk, _),) = served
    assert desk.table()["start"] == 7
    wrong = run(folder, "forest.skops", "wine.csv", "--id", "bottle", "--row", "B700")
    assert "--row B700: no row has this name" in str(wrong.exception)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("forest.joblib", "wine.csv"), InputError, "--trust-pickle"),
        (("forest.skops", "none.csv"), InputError, "none.csv: no such file"),
        (
            ("forest.joblib", "wine.csv", "--trust-pickle", "--id", "cork"),
            InputError,
            "--id cork: no such",
        ),
        (
            ("forest.joblib", "wine.csv", "--trust-pickle", "--row", "178"),
            InputError,
            "the table has 178 rows",
        ),
        (("forest.joblib", "wine.csv", "--trust-pickle", "--law", "flat"), InputError, "law"),
    ],
)
def test_bad_arguments_are_refused(folder, served, arguments, error, message):
    result = run(folder, *arguments)
    assert isinstance(result.exception, error)
    assert message in str(result.exception)
    assert not served


@pytest.mark.parametrize("library", ["starlette", "uvicorn"])
def test_a_missing_library_is_named(folder, served, monkeypatch, library):
    for name in [name for name in sys.modules if name.startswith("limes._app")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    result = run(folder, "forest.skops", "wine.csv")
    assert isinstance(result.exception, MissingLibraryError)
    assert "limes[app]" in str(result.exception)


def test_the_address_is_printed(folder, monkeypatch):
    monkeypatch.setattr(
        launch, "serve", lambda desk, *, announce, **_: announce("http://127.0.0.1:1/secret/")
    )
    result = run(folder, "forest.joblib", "wine.csv", "--trust-pickle")
    assert "http://127.0.0.1:1/secret/" in result.output
    assert "Ctrl-C" in result.output
