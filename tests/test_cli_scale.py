"""``limes explain-table``, as a user types it."""

from __future__ import annotations

import joblib
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from typer.testing import CliRunner

from limes.cli import app
from limes.exceptions import InputError


@pytest.fixture
def files(tmp_path, monkeypatch):
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :4]
    joblib.dump(RandomForestClassifier(4, random_state=0).fit(X, y), tmp_path / "model.joblib")
    X.assign(target=y, id=range(1000, 1178)).to_parquet(tmp_path / "wine.parquet", row_group_size=50)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*options):
    arguments = ["explain-table", "model.joblib", "wine.parquet", "out", "--trust-pickle", *options]
    return CliRunner().invoke(app, arguments)


def test_a_table_is_explained_into_a_folder(files):
    done = run("--key", "id", "--output", "1", "--rows-per-part", "60")
    assert done.exit_code == 0, done.output
    assert "178 rows, exact" in done.output
    assert "alcohol" in done.output
    found = pd.concat([pd.read_parquet(path) for path in sorted((files / "out").glob("*.parquet"))])
    assert found["id"].tolist() == list(range(1000, 1178))
    assert found["error"].isna().all()
    again = run("--key", "id", "--output", "1", "--rows-per-part", "60")
    assert "178 rows had been done before" in again.output
    other = run("--key", "id", "--output", "2", "--rows-per-part", "60")
    assert isinstance(other.exception, InputError)
    assert "options output was '1', is '2'" in str(other.exception)


def test_what_is_wrong_is_said(files):
    for options, said in [
        (["--columns", "alcohol,colour"], "no column 'colour'"),
        (["--layout", "tall"], "layout"),
        (["--engine", "sparks"], "engine"),
        (["--key", "name"], "no column 'name'"),
    ]:
        found = run(*options)
        assert isinstance(found.exception, InputError), found.output
        assert said in str(found.exception)
