"""A limit of memory for each worker: rows that need more are errors, and never a wrong number."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

import limes
from internals import Cluster, Source, check_memory, explain_files
from jobs import read, same
from limes.exceptions import InputError

pytestmark = [
    pytest.mark.engines,
    pytest.mark.skipif(sys.platform != "linux", reason="limits of private memory are Linux's"),
]
ROWS = pd.DataFrame({"a": np.arange(120.0), "b": np.arange(120.0) % 7})
CALM = ROWS.iloc[:60] + 0.5
LIMIT = Cluster(1, memory=1_200_000_000)


def explained(folder, model, cluster, **options):
    ROWS.to_parquet(folder / "in.parquet", row_group_size=50)
    explainer = limes.TabularExplainer(model, CALM, law="joint")
    options = {"run": {}, "rows_per_part": 20, "progress": False, "cluster": cluster, **options}
    return explain_files(Source.of(folder / "in.parquet"), explainer, folder / "out", **options)


def greedy(row, size=3 << 30):
    """A model that needs this number of bytes at a row."""

    def model(X):
        room = np.ones(size, dtype=np.uint8) if (X["a"] == row).any() else np.ones(1)
        return X["a"] + X["b"] * room[0]

    return model


@pytest.mark.parametrize("workers", [1, 2])
def test_a_row_that_needs_more_is_an_error_and_the_others_are_explained(tmp_path, workers):
    result = explained(tmp_path, greedy(77.0), Cluster(workers, memory=LIMIT.memory))
    assert (result.rows, result.errors) == (120, 1)
    lines = read(tmp_path / "out")
    assert lines["error"].dropna().index.tolist() == [77]
    assert "MemoryError" in lines["error"][77]
    assert "3.00 GiB" in lines["error"][77]
    (tmp_path / "free").mkdir()
    explained(tmp_path / "free", lambda X: X["a"] + X["b"], Cluster(1))
    free = read(tmp_path / "free" / "out")
    same(lines.drop(77), free.drop(77))


def test_memory_of_earlier_parts_is_no_fault_of_a_row(tmp_path):
    """A model that keeps 100 MB for each part of 20 rows: no process has room for all six."""

    def model(X):
        for part in {int(a) // 20 for a in X["a"] if a == int(a)}:
            rooms.setdefault(part, np.ones(100_000_000, dtype=np.uint8))
        return X["a"] + X["b"]

    rooms = {}
    result = explained(tmp_path, model, Cluster(1, memory=800_000_000))
    assert (result.rows, result.errors) == (120, 0)


def test_a_part_that_does_not_fit_is_no_fault_of_its_rows(tmp_path):
    wide = pd.DataFrame(np.zeros((15_000, 1000), dtype=np.float32)).rename(columns="c{}".format)
    wide.to_parquet(tmp_path / "in.parquet", row_group_size=3000)
    names = [f"c{i}" for i in range(1000)]
    explainer = limes.TabularExplainer(lambda X: X["c0"] * 0.0 + 1.0, wide[names].head(50), law="joint")
    options = {"run": {}, "progress": False, "cluster": Cluster(1, memory=650_000_000)}
    with pytest.raises(InputError, match=r"part 0, 15,000 rows, needs more memory .*fewer rows a part"):
        explain_files(Source.of(tmp_path / "in.parquet"), explainer, tmp_path / "out", **options)


def test_a_limit_that_a_worker_starts_beyond_is_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"a worker takes \d+ MB before its first row.*allows 50: allow more"
    ):
        explained(tmp_path, lambda X: X["a"], Cluster(1, memory=50_000_000))


def test_systems_without_such_a_limit_refuse_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(InputError, match="is for Linux and macOS, and this is win32: leave it out"):
        explained(tmp_path, lambda X: X["a"], LIMIT)


def test_a_process_beyond_its_limit_is_ended_where_no_allocation_can_fail():
    """As on macOS; the search for rows that end their worker then finds the row."""
    program = f"""
import resource, sys, time
from threading import Thread
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from internals import watch_peak
limit = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + 300_000_000
Thread(target=watch_peak, args=(limit,), daemon=True).start()
time.sleep(0.5)
print("alive", flush=True)
room = b"1" * limit
time.sleep(20)
"""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stdout) == (86, "alive\n"), finished.stderr


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2e9), ("1.5 GiB", 1.5 * 2**30), ("512Mi", 2**29), ("700m", 7e8), ("123", 123)]
)
def test_sizes(text, size):
    assert check_memory(text) == size


@pytest.mark.parametrize("text", ["", "GB", "2 parsecs", "-1GB", "0", "1e9"])
def test_other_texts_are_no_sizes(text):
    with pytest.raises(InputError, match="pass a size such as 2GB"):
        check_memory(text)


MODULE = """
import numpy as np

class Greedy:
    def predict(self, X):
        room = np.ones(3 << 30 if (X["a"] == 77).any() else 1, dtype=np.uint8)
        return (X["a"] + X["b"] * room[0]).to_numpy()
"""


def test_the_command_limits_its_workers(tmp_path, monkeypatch):
    (tmp_path / "greedy_model.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    ROWS.to_parquet(tmp_path / "in.parquet")
    CALM.to_parquet(tmp_path / "calm.parquet")
    joblib.dump(import_module("greedy_model").Greedy(), tmp_path / "model.joblib")
    arguments = ["explain-table", "model.joblib", "in.parquet", "out", "--background", "calm.parquet"]
    arguments += ["--trust-pickle", "--memory-per-worker", "1.2GB", "--summary", "night.json"]
    finished = subprocess.run(
        [sys.executable, "-m", "limes", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(limes.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 3, finished.stderr
    night = json.loads((tmp_path / "night.json").read_text())
    assert (night["rows"], night["errors"]) == (120, 1)
    assert night["errors_by_kind"]["ModelError"]["first_row"] == 77
