"""``limes explain-table``, as a user types it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import joblib
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from typer.testing import CliRunner

from jobs import members, read, wait_until
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
    assert "178 rows were finished before" in again.output
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


def test_ctrl_c_ends_all_processes_with_130_and_the_command_goes_on(files):
    X = pd.read_parquet(files / "wine.parquet")
    pd.concat([X] * 12, ignore_index=True).to_parquet(files / "long.parquet")
    options = ["long.parquet", "out", "--trust-pickle", "--rows-per-part", "20", "--workers", "2"]
    command = [sys.executable, "-m", "limes", "explain-table", "model.joblib", *options]
    driver = subprocess.Popen(command, cwd=files, stderr=subprocess.PIPE, start_new_session=True)
    wait_until(lambda: (files / "out" / "part-00002.parquet").exists(), driver)
    os.killpg(driver.pid, signal.SIGINT)
    said = driver.communicate(timeout=60)[1].decode()
    assert driver.returncode == 130, said
    assert "the same command resumes" in said
    assert "Traceback" not in said
    wait_until(lambda: not members(driver.pid), seconds=20)
    left = len([*(files / "out").glob("*.parquet")])
    assert 0 < left < 107
    options[-1] = "1"
    done = CliRunner().invoke(app, ["explain-table", "model.joblib", *options])
    assert done.exit_code == 0, done.output
    assert "rows were finished before" in done.output
    found = read(files / "out")
    assert found["row"].drop_duplicates().tolist() == list(range(12 * 178))


def test_engines_and_clusters_are_chosen(files, monkeypatch):
    monkeypatch.setattr(pytest.importorskip("limes.scale.dask"), "_PATIENCE", 0.5)
    found = run("--engine", "dask", "--scheduler", "tcp://127.0.0.1:9", "--output", "1")
    assert isinstance(found.exception, InputError)
    assert "no scheduler answers at tcp://127.0.0.1:9" in str(found.exception)


def test_too_many_errors_end_the_command(files):
    X = pd.read_parquet(files / "wine.parquet")
    X.loc[[3, 7], "alcohol"] = float("inf")
    X.to_parquet(files / "wine.parquet")
    some = run("--background", "calm.parquet", "--output", "1")
    assert isinstance(some.exception, InputError)
    calm = X[X["alcohol"] < 1e9].drop(columns=["target", "id"])
    calm.to_parquet(files / "calm.parquet")
    some = run("--background", "calm.parquet", "--output", "1")
    assert "2 rows have no explanation; the first error: " in some.output
    assert "not finite" in some.output
    none = run("--background", "calm.parquet", "--output", "1", "--max-errors", "0.01")
    assert isinstance(none.exception, InputError)
