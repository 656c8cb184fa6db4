"""Runs of explain-table with every poison of `poisons`: exit code 3 or 0, other rows equal, an end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import chdir
from pathlib import Path

import joblib
import pandas as pd
import pytest
from typer.testing import CliRunner

from effort import repeats
from internals import app, verify
from jobs import read
from limes.scale import summarize
from poisons import ALL, BACKGROUND, ENDS, ERRORS, EXITS, OWNED, STATES, Poisoned, check, explained, rows_of

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="half of these fork, or need its signals")
TESTS = Path(__file__).parents[1]
# Seconds in which a command ends that a thread of 1,000 seconds would keep; it takes 5 on a calm machine
PATIENCE = 60.0


class Run:
    """A run of the command over the rows of some poisons, in a separate process."""

    def __init__(self, folder, names, *options, rows_per_part=16, calm=False):
        self.names, self.rows, self.out = names, rows_of(names), folder / "out"
        self.rows.to_parquet(folder / "rows.parquet", index=False)
        BACKGROUND.to_parquet(folder / "background.parquet", index=False)
        joblib.dump(Poisoned(calm=calm), folder / "model.joblib")
        self.summary = folder / "summary.json"
        command = [sys.executable, "-m", "limes", "explain-table", "model.joblib", "rows.parquet", "out"]
        command += ["--background", "background.parquet", "--law", "joint", "--max-calls", "256"]
        command += ["--trust-pickle", "--summary", "summary.json", "--rows-per-part", str(rows_per_part)]
        paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
        with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
            # files, since processes that a model leaves behind keep a pipe open
            process = subprocess.Popen(
                [*command, *options],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"},
                stdout=stdout,
                stderr=stderr,
            )
            self.code = process.wait(timeout=600)
        self.ended = time.time()
        self.stdout, self.stderr = ((folder / name).read_text() for name in ("stdout", "stderr"))

    def check(self):
        failures = sum(ALL[name].error is not None for name in self.names)
        assert self.code == (3 if failures else 0), self.stderr[-2000:]
        assert verify(self.out).problems == ()
        check(read(self.out), explained(Poisoned(calm=True), self.rows), self.names)
        # once: no child of a fork came so far
        assert self.stdout.count(f"{len(self.rows)} rows, sampled") == 1, self.stdout[-2000:]
        summary = json.loads(self.summary.read_text())
        assert (summary["rows"], summary["errors"]) == (len(self.rows), failures)
        assert self.ended - self.summary.stat().st_mtime < PATIENCE


def test_every_kind_of_error_and_state_with_one_worker(tmp_path):
    Run(tmp_path, [*ERRORS, *STATES, *OWNED]).check()


class Moving(Poisoned):
    """A model that changes the working directory when it is loaded, to where its resources are."""

    def __setstate__(self, state):
        vars(self).update(state)
        os.chdir("/")


@pytest.fixture(params=[Poisoned, Moving])
def moved(request, tmp_path):
    rows_of(["directory"]).to_parquet(tmp_path / "rows.parquet", index=False)
    BACKGROUND.to_parquet(tmp_path / "background.parquet", index=False)
    joblib.dump(request.param(), tmp_path / "model.joblib")

    def run(*arguments):
        with chdir(tmp_path):
            result = CliRunner().invoke(app, [*arguments, "--trust-pickle"], env={"COLUMNS": "100"})
        assert result.exit_code == 0, result.output + str(result.exception)
        return result.output

    return run


def test_files_are_where_the_command_began(moved, tmp_path):
    inputs = ("model.joblib", "rows.parquet")
    options = ("--background", "background.parquet", "--max-calls", "256")
    written = ("--html", "page.html", "--json", "a.json", "--report", "report.html")
    assert "written: report.html" in moved("explain", *inputs, *options, "--row", "3", *written)
    moved("diagnose", *inputs, "--row", "3", "--json", "diagnosis.json")
    night = ("--since", "first", "--summary", "second.json")
    moved("explain-table", "model.joblib", "*.parquet", "first", *options, "--columns", "code,a,b")
    moved("explain-table", "model.joblib", "*.parquet", "second", *options, *night, "--columns", "code,a,b")
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"page.html", "a.json", "report.html", "diagnosis.json", "first", "second", "second.json"}
    assert summarize(tmp_path / "first")["rows"].to_pylist()[0] == len(BACKGROUND) + 5


@pytest.mark.engines
@pytest.mark.parametrize("name", [*ENDS, "directory", "streams that are None", "closed streams", "fork"])
def test_each_of_the_other_faults_alone(tmp_path, name):
    Run(tmp_path, [name]).check()


@pytest.mark.engines
def test_every_kind_of_error_and_state_with_two_workers(tmp_path):
    Run(tmp_path, [*ERRORS, *STATES, *OWNED], "--workers", "2").check()


@pytest.mark.engines
@pytest.mark.parametrize("workers", [1, 2])
def test_every_kind_of_exit(tmp_path, workers):
    names = repeats([*EXITS], [*EXITS][:: 4 - workers])
    Run(tmp_path, [*names, "panic", "directory"], "--workers", str(workers), rows_per_part=4).check()


def test_there_are_forty_and_more():
    assert len(ALL) >= 80
    assert pd.Series([*ALL]).is_unique
