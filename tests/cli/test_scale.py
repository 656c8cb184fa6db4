"""``limes explain-table``, as a user types it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections import Counter

import joblib
import lightgbm
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier, VotingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import limes
from effort import repeats
from internals import app, versions_of
from jobs import members, read, wait_until
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
    result = run("--key", "id", "--output", "1", "--rows-per-part", "60")
    assert result.exit_code == 0, result.output
    assert "178 rows, exact" in result.output
    assert "alcohol" in result.output
    result = pd.concat([pd.read_parquet(path) for path in sorted((files / "out").glob("*.parquet"))])
    assert result["id"].tolist() == list(range(1000, 1178))
    assert result["error"].isna().all()
    again = run("--key", "id", "--output", "1", "--rows-per-part", "60")
    assert "178 rows were finished before" in again.output
    other = run("--key", "id", "--output", "2", "--rows-per-part", "60")
    assert isinstance(other.exception, InputError)
    assert "options output was '1', is '2'" in str(other.exception)


def test_the_summary_has_counts_versions_and_errors(files):
    X = pd.read_parquet(files / "wine.parquet")
    X.drop(columns=["target", "id"]).to_parquet(files / "calm.parquet")
    X.loc[[3, 7], "alcohol"] = float("inf")
    X.to_parquet(files / "wine.parquet")
    options = ["--background", "calm.parquet", "--output", "1", "--rows-per-part", "60"]
    (files / "night.json").write_text("of yesterday")
    result = run(*options, "--summary", "night.json")
    assert result.exit_code == 3, result.output
    assert "written: night.json" in result.output
    night = json.loads((files / "night.json").read_text())
    lines = pd.read_parquet(files / "out")
    assert (night["rows"], night["errors"], night["resumed"]) == (178, 2, 0)
    [(kind, errors)] = night["errors_by_kind"].items()
    assert (kind, errors["rows"], errors["first_row"]) == ("InputError", 2, 3)
    assert errors["first_error"] == lines["error"].dropna().iloc[0]
    values = lines.filter(like="value_").dropna()
    assert night["distinct_explanations"] == len(values.drop_duplicates())
    assert night["distinct_is_exact"]
    assert night["seconds"] > 0
    assert night["versions"]["scikit-learn"] == sklearn.__version__
    assert night["versions"]["limes"] == limes.__version__
    assert night["versions"]["python"] == platform.python_version()
    [output] = night["outputs"]
    assert (output["output"], output["rows"]) == ("1", 176)
    codes = Counter(code for text in lines["warnings"].dropna() for code in text.split(", ") if code)
    assert output["warnings"] == codes
    for column in output["columns"]:
        numbers = lines[f"contribution_{column['feature']}"]
        np.testing.assert_allclose(column["mean_contribution"], numbers.mean(), rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(column["mean_abs_contribution"], numbers.abs().mean(), rtol=1e-12)
    again = run(*options, "--summary", "night.json")
    assert again.exit_code == 3, again.output
    later = json.loads((files / "night.json").read_text())
    assert later["resumed"] == 178
    assert later | {"resumed": 0, "seconds": 0} == night | {"resumed": 0, "seconds": 0}


def test_no_summary_of_an_earlier_run_is_left_by_one_that_fails(files):
    (files / "night.json").write_text("of yesterday")
    X = pd.read_parquet(files / "wine.parquet")
    X.drop(columns=["target", "id"]).to_parquet(files / "calm.parquet")
    X.assign(alcohol=float("inf")).to_parquet(files / "wine.parquet")
    failed = run("--background", "calm.parquet", "--output", "1", "--summary", "night.json")
    assert isinstance(failed.exception, InputError)
    assert not (files / "night.json").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wine.parquet", "is read by this command"),
        ("model.joblib", "is read by this command"),
        ("out/night.json", "would take it for a part"),
        ("no/night.json", "a folder that exists"),
    ],
)
def test_a_summary_replaces_nothing_that_is_read(files, name, message):
    (files / "out").mkdir()
    before = {path: path.read_bytes() for path in files.iterdir() if path.is_file()}
    refused = run("--output", "1", "--summary", name)
    assert isinstance(refused.exception, InputError)
    assert message in str(refused.exception)
    assert {path: path.read_bytes() for path in files.iterdir() if path.is_file()} == before


def test_a_run_resumes_only_with_the_versions_that_began_it(files, monkeypatch):
    assert run("--output", "1", "--rows-per-part", "60").exit_code == 0
    before = {path.name: path.read_bytes() for path in (files / "out").iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr("platform.python_version", lambda: "3.9.1")
        refused = run("--output", "1", "--rows-per-part", "60")
    assert isinstance(refused.exception, InputError)
    assert f"versions python was '{platform.python_version()}', is '3.9.1'" in str(refused.exception)
    assert "resume with the versions that began it" in str(refused.exception)
    assert {path.name: path.read_bytes() for path in (files / "out").iterdir()} == before
    assert "178 rows were finished before" in run("--output", "1", "--rows-per-part", "60").output


class Wrapper:
    """A model with a library's inside, as users write them."""

    def __init__(self, model):
        self.model = model


def test_versions_are_those_of_the_libraries_that_a_model_is_made_of():
    xgboost = pytest.importorskip("xgboost")

    class Subclass(xgboost.XGBRegressor):
        pass

    boosted = make_pipeline(StandardScaler(), xgboost.XGBRegressor())
    plain = {"python", "limes", "numpy", "scipy", "scikit-learn"}
    assert {*versions_of(RandomForestClassifier())} == plain
    for model in (boosted, Subclass(), Wrapper(xgboost.XGBRegressor()), VotingRegressor([("a", boosted)])):
        assert versions_of(model)["xgboost"] == xgboost.__version__
        assert {*versions_of(model)} == plain | {"xgboost"}
    assert {*versions_of(Wrapper(lambda rows: rows))} == plain


def test_errors_say_what_is_wrong(files):
    for options, message in [
        (["--columns", "alcohol,colour"], "no column 'colour'"),
        (["--layout", "tall"], "layout"),
        (["--engine", "sparks"], "engine"),
        (["--key", "name"], "no column 'name'"),
    ]:
        result = run(*options)
        assert isinstance(result.exception, InputError), result.output
        assert message in str(result.exception)


@pytest.mark.engines
@pytest.mark.parametrize("workers", repeats(["1", "2"], ["1"]))
@pytest.mark.parametrize(
    ("number", "code", "send"),
    [
        (signal.SIGINT, 130, os.killpg),  # as a terminal does
        (signal.SIGTERM, 143, os.kill),  # as Kubernetes does
        (signal.SIGTERM, 143, os.killpg),  # as systemd does
    ],
)
def test_a_signal_ends_all_processes_with_its_code_and_the_command_resumes(
    files, workers, number, code, send
):
    X = pd.read_parquet(files / "wine.parquet")
    pd.concat([X] * 12, ignore_index=True).to_parquet(files / "long.parquet")
    options = ["long.parquet", "out", "--trust-pickle", "--rows-per-part", "20", "--workers", workers]
    command = [sys.executable, "-m", "limes", "explain-table", "model.joblib", *options]
    driver = subprocess.Popen(command, cwd=files, stderr=subprocess.PIPE, start_new_session=True)
    wait_until(lambda: (files / "out" / "part-00002.parquet").exists(), driver)
    send(driver.pid, number)
    stderr = driver.communicate(timeout=60)[1].decode()
    assert driver.returncode == code, stderr
    assert "the same command resumes" in stderr
    assert "Traceback" not in stderr
    wait_until(lambda: not members(driver.pid), seconds=20)
    assert not [*(files / "out").glob(".unfinished-*")]
    n_parts = len([*(files / "out").glob("*.parquet")])
    assert 0 < n_parts < 107
    options[-1] = "1"
    result = CliRunner().invoke(app, ["explain-table", "model.joblib", *options])
    assert result.exit_code == 0, result.output
    assert "rows were finished before" in result.output
    result = read(files / "out")
    assert result["row"].drop_duplicates().tolist() == list(range(12 * 178))


def test_engines_and_clusters_are_chosen(files, monkeypatch):
    monkeypatch.setattr(pytest.importorskip("limes.scale.dask"), "_PATIENCE", 0.5)
    result = run("--engine", "dask", "--scheduler", "tcp://127.0.0.1:9", "--output", "1")
    assert isinstance(result.exception, InputError)
    assert "no scheduler answers at tcp://127.0.0.1:9" in str(result.exception)


def test_too_many_errors_end_the_command(files):
    X = pd.read_parquet(files / "wine.parquet")
    X.loc[[3, 7], "alcohol"] = float("inf")
    X.to_parquet(files / "wine.parquet")
    some = run("--background", "calm.parquet", "--output", "1")
    assert isinstance(some.exception, InputError)
    calm = X[X["alcohol"] < 1e9].drop(columns=["target", "id"])
    calm.to_parquet(files / "calm.parquet")
    some = run("--background", "calm.parquet", "--output", "1")
    assert some.exit_code == 3
    assert "2 rows have no explanation; the first error: " in some.output
    assert "not finite" in some.output
    none = run("--background", "calm.parquet", "--output", "1", "--max-errors", "0.01")
    assert isinstance(none.exception, InputError)


def test_a_folder_is_verified(files):
    assert run("--key", "id", "--output", "1", "--rows-per-part", "60").exit_code == 0
    good = CliRunner().invoke(app, ["verify", "out", "--input", "wine.parquet"])
    assert (good.exit_code, good.output) == (0, "out: 3 parts, 178 rows, 0 with errors\n")
    os.truncate(files / "out" / "part-00001.parquet", 100)
    bad = CliRunner().invoke(app, ["verify", "out"])
    assert bad.exit_code == 1
    assert "part-00001.parquet was changed: its checksum differs" in bad.output


def test_the_command_fails_where_every_row_fails(files):
    X = pd.read_parquet(files / "wine.parquet")
    X.drop(columns=["target", "id"]).to_parquet(files / "calm.parquet")
    X.assign(alcohol=float("inf")).to_parquet(files / "wine.parquet")
    failed = run("--background", "calm.parquet", "--output", "1")
    assert isinstance(failed.exception, InputError)
    assert "178 of 178 rows have no explanation" in str(failed.exception)


NASTY = ["size [mm]", "b[/b]", "\x1b]0;title\x07c\u202e", "[link=https://evil]d[/link]"]


def test_names_and_keys_are_data_in_the_summary(files):
    X = pd.read_parquet(files / "wine.parquet")
    names = dict(zip(X.columns[:4], NASTY, strict=True))
    X = X.rename(columns=names).assign(k=[[i // 2] for i in range(178)], s=[{"a": i} for i in range(178)])
    X.to_parquet(files / "wine.parquet")
    model = RandomForestClassifier(4, random_state=0).fit(X[NASTY], X["target"])
    joblib.dump(model, files / "model.joblib")
    columns = ["--columns", ",".join(NASTY)]
    result = run("--key", "k", "--output", "1", *columns)
    assert result.exit_code == 0, result.output
    for name in ["size [mm]", "b[/b]", "]0;title c", "[link=https://evil]d[/link]"]:
        assert name in result.output
    assert "k=(0,) in rows 0 and 1" in result.output
    assert not {c for c in result.output if not c.isprintable()} - {"\n", "\r"}  # of the bar
    (files / "out").rename(files / "first")
    assert "not unique" not in run("--key", "s", "--output", "1", *columns).output


def test_messages_carry_no_commands_to_the_terminal(files, monkeypatch, capsys):
    from internals import _cli

    name = "\x1b]0;title\x07\u202e"
    monkeypatch.setattr(
        sys, "argv", ["limes", "diagnose", "model.joblib", "wine.parquet", "--drop", name, "--trust-pickle"]
    )
    with pytest.raises(SystemExit) as ended:
        _cli.main()
    assert ended.value.code == 1
    text = capsys.readouterr().err
    assert "no such column" in text
    assert "\x1b]" not in text
    assert "\u202e" not in text


def test_csv_of_an_encoding_that_cannot_be_told_is_refused(files):
    """UTF-16 is read; bytes that are a text in none of these are not."""
    wine = pd.read_parquet(files / "wine.parquet").rename(columns={"ash": "ash \u0141"})
    wine.to_csv(files / "wine.csv", encoding="cp1250", index=False)
    (files / "wine.csv").write_bytes((files / "wine.csv").read_bytes().replace(b"\xa3", b"\x81"))
    result = CliRunner().invoke(app, ["explain-table", "model.joblib", "wine.csv", "out", "--trust-pickle"])
    assert isinstance(result.exception, InputError)
    assert "CSV in UTF-8" in str(result.exception)


def test_rows_that_were_unreadable_do_not_share_their_keys(files):
    X = pd.read_parquet(files / "wine.parquet")
    X.drop(columns=["target", "id"]).to_parquet(files / "calm.parquet")
    lines = X.to_csv(index=False).splitlines()
    lines[5] = lines[9] = "1,2"
    (files / "in.csv").write_text("\n".join(lines))
    options = ["--trust-pickle", "--key", "id", "--background", "calm.parquet", "--output", "1"]
    result = CliRunner().invoke(app, ["explain-table", "model.joblib", "in.csv", "out", *options])
    assert result.exit_code == 3, result.output
    assert "not unique" not in result.output


def test_an_output_in_an_unknown_store_is_refused(files):
    arguments = ["explain-table", "model.joblib", "wine.parquet", "ftp://bucket/out", "--trust-pickle"]
    result = CliRunner().invoke(app, [*arguments, "--output", "1"])
    assert isinstance(result.exception, InputError)
    assert "ftp is no known kind of store" in str(result.exception)
    assert not (files / "ftp:").exists()


def test_a_table_of_rules(files):
    result = run("--output", "1", "--sparse", "2", "--exclude", "ash", "--rows-per-part", "100")
    assert result.exit_code == 0, result.output
    table = pd.concat([pd.read_parquet(path) for path in sorted((files / "out").glob("*.parquet"))])
    assert len(table) == 178
    assert table["rule"].str.contains("->").all()
    assert not table["rule"].str.contains(r"\[.*\bash\b", regex=True).any()
    refused = run("--output", "1", "--sparse", "2", "--law", "joint")
    assert "leave out" in str(refused.exception)
    for options, message in [
        (("--exclude", "ash"), "go with --sparse"),
        (("--objective", "precision"), "go with --sparse"),
        (("--objective", "certain"), "is for one row"),
    ]:
        assert message in str(run("--output", "1", *options).exception)


class Random:
    """A model whose answers have noise."""

    def predict(self, rows):
        return rows.iloc[:, 0].to_numpy() + np.random.default_rng().normal(size=len(rows))


def test_a_model_that_is_no_function_is_reported(files):
    joblib.dump(Random(), files / "model.joblib")
    result = run("--key", "id", "--columns", "alcohol,malic_acid,ash,alcalinity_of_ash")
    assert result.exit_code == 0, result.output
    assert "the model answered differently for the same input" in result.output
    assert "model.eval()" in result.output


def test_the_command_says_that_contributions_are_left_out(files):
    X = pd.read_parquet(files / "wine.parquet")
    target = X.pop("target") == 1
    model = lightgbm.LGBMClassifier(n_estimators=60, num_leaves=15, verbose=-1, n_jobs=1).fit(
        X[X.columns[:4]], target
    )
    joblib.dump(model, files / "model.joblib")
    note = "contributions are left out, which would take more than 2 ms a row: pass --contributions"
    result = run("--drop", "target")
    assert f"{note}, or --output margin, whose contributions are exact\n" in result.output, result.output
    shutil.rmtree("out")
    for options in ("--no-contributions", "--output margin", "--contributions --max-calls 300"):
        result = run("--drop", "target", *options.split())
        assert result.exit_code == 0, result.output
        assert note not in result.output
        shutil.rmtree("out")
