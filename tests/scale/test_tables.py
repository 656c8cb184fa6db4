"""From files to files: every row once, the same however it was cut, interrupted or harmed."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes
from limes.exceptions import InputError
from limes.scale.engines import Cluster
from limes.scale.sources import Source, decimated
from limes.scale.tables import explain_files

RUN = {"model": "forest"}
# A job that takes about a quarter of a second a part, and can be stopped in the middle
JOB = """
import signal
import time
from pathlib import Path
import pandas as pd
import limes
from limes.scale.sources import Source
from limes.scale.tables import explain_files

HERE = Path(__file__).parent
TABLE = pd.DataFrame({"a": [i / 7 for i in range(40)], "b": [(3 * i) % 11 for i in range(40)]})

def model(X):
    time.sleep(PAUSE)
    return X["a"] * X["b"]

def work():
    explainer = limes.TabularExplainer(model, TABLE, max_calls=32, control="none", method="sampled")
    return explain_files(Source.of(HERE / "in.parquet"), explainer, HERE / "out", run={}, rows_per_part=2)

if __name__ == "__main__":
    # a job in the background would ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    PAUSE = 0.1
    work()
"""


@pytest.fixture(scope="module")
def table():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X.iloc[:, :5].assign(id=[f"patient {i}" for i in range(len(X))]), y


@pytest.fixture(scope="module")
def explainer(table):
    X = table[0].drop(columns="id")
    return limes.TabularExplainer(RandomForestRegressor(8, random_state=0).fit(X, table[1]), X)


@pytest.fixture
def source(tmp_path, table):
    table[0].to_parquet(tmp_path / "in.parquet", row_group_size=100, index=False)
    return Source.of(tmp_path / "in.parquet")


@pytest.fixture(scope="module")
def whole(table, explainer):
    found = limes.scale.explain_frame(table[0], explainer)
    found.insert(1, "id", table[0]["id"].to_numpy())
    return found


def explain(source, explainer, out, **options):
    options = {"run": RUN, "keys": ["id"], "rows_per_part": 64, "progress": False, **options}
    return explain_files(source, explainer, out, **options)


def read(out):
    return pd.concat([pd.read_parquet(path) for path in sorted(out.glob("*.parquet"))], ignore_index=True)


def same(found, expected):
    found = found.astype({"error": expected["error"].dtype})
    pd.testing.assert_frame_equal(found, expected, check_exact=True, check_dtype=False)


@pytest.mark.parametrize("rows", [10_000, 64, 7])
def test_the_numbers_are_the_same_to_the_bit_for_any_parts(source, explainer, tmp_path, whole, rows):
    said = explain(source, explainer, tmp_path / "out", rows_per_part=rows)
    assert (said.rows, said.errors, said.resumed) == (442, 0, 0)
    same(read(tmp_path / "out"), whole)
    assert said.mean_size["bmi"] == pytest.approx(whole["value_bmi"].abs().mean(), rel=1e-12)
    assert len([*(tmp_path / "out").glob("*.parquet")]) == -(-442 // rows)


def test_two_processes_say_the_same(source, explainer, tmp_path, whole):
    explain(source, explainer, tmp_path / "out", cluster=Cluster(workers=2))
    same(read(tmp_path / "out"), whole)


def test_csv_and_folders_of_files_are_one_table(explainer, tmp_path, table, whole):
    (tmp_path / "in").mkdir()
    for i, part in enumerate([table[0].iloc[:150], table[0].iloc[150:]]):
        part.to_csv(tmp_path / "in" / f"{i}.csv", index=False)
    explain(Source.of(tmp_path / "in"), explainer, tmp_path / "out")
    same(read(tmp_path / "out"), whole)
    assert Source.of(tmp_path / "in" / "*.csv").files == Source.of(tmp_path / "in").files


def test_long_has_a_line_a_column(source, explainer, tmp_path, whole):
    said = explain(source, explainer, tmp_path / "out", layout="long")
    found = read(tmp_path / "out")
    assert len(found) == 442 * 5
    assert np.array_equal(found.loc[found["feature"] == "bp", "value"], whole["value_bp"])
    assert said.mean_size["bp"] == pytest.approx(whole["value_bp"].abs().mean(), rel=1e-12)


def test_polars_reads_what_is_written(source, explainer, tmp_path, whole):
    explain(source, explainer, tmp_path / "out")
    found = pl.read_parquet(tmp_path / "out" / "*.parquet")
    assert found.columns == [*whole]
    assert found["row"].dtype == pl.Int64
    assert np.array_equal(found["intercept"].to_numpy(), whole["intercept"])


def test_what_is_whole_is_not_done_again_and_what_is_harmed_is(source, explainer, tmp_path, whole):
    out = tmp_path / "out"
    explain(source, explainer, out)
    os.truncate(out / "part-00002.parquet", 500)
    times = {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    said = explain(source, explainer, out)
    assert said.resumed == 442 - 64
    again = {path.name for path in out.glob("*.parquet") if path.stat().st_mtime_ns != times[path.name]}
    assert again == {"part-00002.parquet"}
    same(read(out), whole)


def test_rows_of_a_corrupt_row_group_are_there_with_the_reason(source, explainer, tmp_path, whole):
    path = source.files[0]
    start = pq.read_metadata(path).row_group(1).column(0).dictionary_page_offset
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * 2000)
    said = explain(source, explainer, tmp_path / "out")
    found = read(tmp_path / "out")
    assert said.errors == 100
    assert found["row"].tolist() == list(range(442))
    lost = found["error"].notna()
    assert np.flatnonzero(lost).tolist() == list(range(100, 200))
    assert found.loc[lost, "error"].str.contains("row group 1 of in.parquet could not be read").all()
    same(found[~lost], whole[~lost])


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_driver_that_was_stopped_goes_on(tmp_path, stop):
    job, out = tmp_path / "job.py", tmp_path / "out"
    job.write_text(JOB)
    runpy.run_path(str(job))["TABLE"].to_parquet(tmp_path / "in.parquet")
    driver = subprocess.Popen([sys.executable, job], stderr=subprocess.PIPE)
    patience = time.monotonic() + 60
    while not (out / "part-00002.parquet").exists():
        assert driver.poll() is None, driver.stderr.read()
        assert time.monotonic() < patience
        time.sleep(0.02)
    driver.send_signal(stop)
    driver.communicate(timeout=60)
    assert driver.returncode != 0
    assert len([*out.glob("*.parquet")]) < 20
    said = resumed(job)
    assert 4 <= said.resumed < 40
    found = read(out)
    assert found["row"].tolist() == list(range(40))
    for path in out.iterdir():
        path.unlink()
    assert resumed(job).resumed == 0
    same(read(out), found)


def resumed(job):
    names = runpy.run_path(str(job))
    names["work"].__globals__["PAUSE"] = 0
    return names["work"]()


def test_a_full_disk_is_said_and_the_run_goes_on_when_there_is_room(source, explainer, tmp_path, whole):
    out = tmp_path / "out"
    out.mkdir()
    options = ["-t", "tmpfs", "-o", "size=40k", "tmpfs", str(out)]
    if (
        os.geteuid() != 0
        or subprocess.run(["/bin/mount", *options], check=False, capture_output=True).returncode
    ):
        pytest.skip("mounting a small tmpfs needs a right that this process has not")
    try:
        with pytest.raises(InputError, match=r"No space left on device.*run the same command again"):
            explain(source, explainer, out)
        subprocess.run(["/bin/mount", "-o", "remount,size=10m", str(out)], check=True)
        explain(source, explainer, out)
        same(read(out), whole)
    finally:
        subprocess.run(["/bin/umount", str(out)], check=True)


def test_a_background_is_taken_evenly(source):
    found = decimated(source, ["id"], 50)["id"].to_pylist()
    assert found == [f"patient {i}" for i in range(0, 442, 8)]


def test_bad_input_is_said(source, explainer, tmp_path, table):
    def refused(match, source=source, **options):
        with pytest.raises(InputError, match=match):
            explain(source, explainer, tmp_path / "out", **options)

    refused("no column 'name'", keys=["name"])
    refused("rows_per_part", rows_per_part=0)
    table[0].drop(columns="bmi").to_parquet(tmp_path / "less.parquet")
    refused("no column 'bmi'", Source.of(tmp_path / "less.parquet"))
    table[0].iloc[:0].to_parquet(tmp_path / "empty.parquet")
    refused("no rows", Source.of(tmp_path / "empty.parquet"))
    assert (
        explain(source, explainer, tmp_path / "out").rows == 442
    )  # nothing had been done: the folder is free
    refused("another run: input", Source.of(tmp_path / "empty.parquet"))
    for where in ("none.parquet", "*.xyz", "."):
        (tmp_path / "x.csv").write_text("a\n1\n")
        with pytest.raises(InputError, match=r"give a \.parquet or \.csv file"):
            Source.of(Path(tmp_path / where))
