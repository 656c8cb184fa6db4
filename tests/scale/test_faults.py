"""Injected faults: in the end every row is in the output once, with its explanation or its error."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_diabetes

import limes
from effort import repeats
from internals import Cluster, Folder, Part, Source, Unreadable, _cells, _processes, _Search, explain_files
from jobs import ROWS, members, read, resumed, same, started, wait_until
from limes.exceptions import InputError

pytestmark = pytest.mark.engines
ALONE, PROCESSES, DASK = ("local", 1), ("local", 2), ("dask", repeats(2, 1))


@pytest.fixture(scope="module")
def table():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X.iloc[:, :5].assign(id=range(len(X))), y


@pytest.fixture(params=["local", "dask"])
def carried(request):
    """Options of an engine."""
    if request.param == "local":
        return {}
    return {
        "engine": "dask",
        "cluster": Cluster(scheduler=request.getfixturevalue("cluster").scheduler_address),
    }


@pytest.fixture
def source(tmp_path, table):
    table[0].to_parquet(tmp_path / "in.parquet", row_group_size=100, index=False)
    return Source.of(tmp_path / "in.parquet")


def explain(source, explainer, out, **options):
    options = {"run": {}, "keys": ["id"], "rows_per_part": 64, "progress": False, **options}
    return explain_files(source, explainer, out, **options)


@pytest.mark.parametrize(("engine", "workers"), repeats([ALONE, PROCESSES, DASK], [DASK]))
def test_a_killed_driver_leaves_no_process_and_resumes(tmp_path, engine, workers):
    driver = started(tmp_path, engine, workers)
    driver.kill()
    stderr = driver.communicate(timeout=60)[1].decode()
    assert engine == "dask" or "Traceback" not in stderr, stderr
    check_resumed(driver, tmp_path)


@pytest.mark.parametrize(("engine", "workers"), repeats([PROCESSES, DASK], [PROCESSES]))
def test_ctrl_c_leaves_no_process_and_the_run_resumes(tmp_path, engine, workers):
    driver = started(tmp_path, engine, workers)
    os.killpg(driver.pid, signal.SIGINT)  # as a terminal does: to the driver and its workers
    stderr = driver.communicate(timeout=60)[1].decode()
    assert driver.returncode == -signal.SIGINT, stderr
    assert stderr.count("KeyboardInterrupt") == 1, stderr  # the driver's own
    check_resumed(driver, tmp_path)


def check_resumed(driver, folder):
    wait_until(lambda: not members(driver.pid), seconds=20)
    assert len([*(folder / "out").glob("*.parquet")]) < ROWS / 2
    summary = resumed(folder)
    assert 4 <= summary.resumed < ROWS
    result = read(folder / "out")
    assert result["row"].tolist() == list(range(ROWS))
    shutil.rmtree(folder / "out")
    assert resumed(folder).resumed == 0
    same(read(folder / "out"), result)


def killing(row, flag=None):
    """A model that kills its process where it meets a row: always, or once, and then there is a flag."""

    def model(X):
        if (X["age"] == row).any() and (flag is None or not flag.exists()):
            if flag is not None:
                flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return X["age"] + X["bmi"]

    return model


def black_box(model, table):
    calm = table[table["age"] != table["age"].iloc[201]]
    return limes.TabularExplainer(model, calm[["age", "bmi"]], law="joint")


@pytest.mark.parametrize("engine", repeats(["local", "dask"], ["local"]))
def test_other_workers_finish_the_parts_of_a_killed_one(tmp_path, table, engine):
    flag, row = tmp_path / "flag", table[0]["age"].iloc[201]
    explainer, source = black_box(killing(row, flag), table[0]), some(table, tmp_path)
    options = {"rows_per_part": 10, "engine": engine, "cluster": Cluster(2)}
    summary = explain(source, explainer, tmp_path / "out", **options)
    assert flag.exists()
    assert (summary.rows, summary.errors) == (60, 0)
    explain(source, explainer, tmp_path / "calm", rows_per_part=10)
    same(read(tmp_path / "out"), read(tmp_path / "calm"))


def test_a_row_that_kills_its_worker_every_time_is_an_error(tmp_path, table):
    explainer = black_box(killing(table[0]["age"].iloc[201]), table[0])
    options = {"rows_per_part": 10, "cluster": Cluster(1, timeout=600)}
    explain(some(table, tmp_path), explainer, tmp_path / "out", **options)
    lines = read(tmp_path / "out")
    assert lines["row"].tolist() == list(range(60))
    assert lines["error"].dropna().index.tolist() == [41]
    assert "the row alone ends its worker (signal 9, SIGKILL" in lines["error"][41]
    assert not [one for one in active_children() if "loky" in one.name.lower()]


def test_a_part_that_ends_its_worker_by_its_length_is_given_up_on(tmp_path, table):
    def model(X):
        if len(X) > 40 and (X["age"] == row).any() and (X["age"] == other).any():
            os.kill(os.getpid(), signal.SIGKILL)
        return X["age"] + X["bmi"]

    row, other = table[0]["age"].iloc[[201, 204]]
    calm = table[0][~table[0]["age"].isin([row, other])]
    explainer = limes.TabularExplainer(model, calm[["age", "bmi"]], law="joint")
    options = {"rows_per_part": 10, "cluster": Cluster(1, supervised=True)}
    with pytest.raises(InputError, match=r"part 4 ends its worker .*no row of it alone does.*fewer rows"):
        explain(some(table, tmp_path), explainer, tmp_path / "out", **options)


def some(table, folder):
    """Rows 160 to 220."""
    table[0].iloc[160:220].to_parquet(folder / "some.parquet", index=False)
    return Source.of(folder / "some.parquet")


@contextmanager
def small_disk(path, size):
    path.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    mounted = os.geteuid() == 0 and not subprocess.run(["/bin/mount", *options], check=False).returncode
    if not mounted:
        pytest.skip("mounting a small tmpfs needs a right that this process does not have")
    try:
        yield partial(remount, path)
    finally:
        subprocess.run(["/bin/umount", str(path)], check=True)


def remount(path, how):
    subprocess.run(["/bin/mount", "-o", f"remount,{how}", str(path)], check=True)


@pytest.mark.parametrize(("engine", "workers"), repeats([ALONE, PROCESSES], [ALONE]))
def test_a_full_disk_is_reported_and_the_run_resumes(source, explainer, tmp_path, whole, engine, workers):
    out, options = tmp_path / "out", {"engine": engine, "cluster": Cluster(workers)}
    with small_disk(out, "60k") as disk:
        with pytest.raises(InputError, match=r"No space left on device.*run the same command again"):
            explain(source, explainer, out, **options)
        disk("size=10m")
        explain(source, explainer, out, **options)
        same(read(out), whole)


def test_a_read_only_folder_is_reported_and_the_run_resumes(source, explainer, tmp_path, whole):
    out = tmp_path / "out"
    with small_disk(out, "10m") as disk:
        explain(source, explainer, out)
        (out / "part-00003.parquet").unlink()
        disk("ro")
        with pytest.raises(InputError, match=r"Read-only file system.*grant the right to write"):
            explain(source, explainer, out)
        disk("rw")
        assert explain(source, explainer, out).resumed == 442 - 64
        same(read(out), whole)


def corrupt(path, group):
    start = pq.read_metadata(path).row_group(group).column(0).dictionary_page_offset
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * 2000)


def test_rows_of_a_corrupt_row_group_have_the_reason(source, explainer, tmp_path, whole, carried):
    corrupt(source.files[0], 1)
    # the corrupt parts may be the first to end, and be most of the rows so far
    summary = explain(source, explainer, tmp_path / "out", **carried, max_errors=1.0)
    result = read(tmp_path / "out")
    assert summary.errors == 100
    assert "row group 1" in summary.reason
    assert result["row"].tolist() == list(range(442))
    lost = result["error"].notna()
    assert np.flatnonzero(lost).tolist() == list(range(100, 200))
    assert result.loc[lost, "error"].str.contains("row group 1 of in.parquet could not be read").all()
    same(result[~lost], whole[~lost])


def test_cells_of_wrong_types_are_errors_of_their_rows(
    tmp_path, monkeypatch, explainer, table, whole, carried
):
    lines = table[0].to_csv(index=False).splitlines()
    broken = {
        40: "forty,0,0,0,0,40",
        70: "1,2",
        71: "1,2,3,4,5,6,7",
        200: ",0.05,0.01,0.02,0.03,200",
        441: "inf,0,0,0,0,441",
    }
    for row, line in broken.items():
        lines[row + 1] = line
    lines[46] = lines[46].rsplit(",", 1)[0] + ",ten"
    (tmp_path / "in.csv").write_text("\n".join(lines))
    source = Source.of(tmp_path / "in.csv")
    monkeypatch.setattr(_cells, "_HEAD", 2000)  # what columns hold is settled before the first wrong cell
    summary = explain(source, explainer, tmp_path / "out", **carried)
    result = read(tmp_path / "out")
    assert result["row"].tolist() == list(range(442))
    errors = result["error"].dropna()
    assert errors.index.tolist() == [40, 70, 71, 200, 441]
    assert summary.errors == 5
    assert "column 'age': 'forty' is no number" in errors[40]
    assert result["id"][45] == "ten"  # a key is a text, whatever the others are
    result.loc[45, "id"] = "45"
    assert "2 cells in place of 6" in errors[70]
    assert "is missing" in errors[200]
    assert "is not finite" in errors[441]
    good = result["error"].isna()
    same(result[good].astype({"id": "int64"}), whole[good])


def test_a_model_that_raises_on_some_rows_loses_only_these(tmp_path, table, carried):
    def refuses(X):
        if (X["age"] > 0.07).any():
            raise RuntimeError("too old")
        return X["bmi"] + X["age"]

    X = table[0][["age", "bmi"]].iloc[160:220]
    young = X[X["age"] < 0.05]
    explainer = limes.TabularExplainer(refuses, young, law="joint")
    options = {"rows_per_part": 20, **carried}
    summary = explain(some(table, tmp_path), explainer, tmp_path / "out", **options)
    result = read(tmp_path / "out")
    old = (X["age"] > 0.07).to_numpy()
    assert 1 <= old.sum() <= 5
    assert np.array_equal(result["error"].notna(), old)
    assert result["id"].tolist() == list(range(160, 220))
    assert "too old" in summary.reason


def test_too_many_errors_end_the_run_and_keep_finished_parts(tmp_path, source, table, explainer):
    corrupt(source.files[0], 1)
    with pytest.raises(InputError, match=r"92 of 192 rows have no explanation.*row group 1.*are in"):
        explain(source, explainer, tmp_path / "out", max_errors=0.1)
    assert explain(source, explainer, tmp_path / "out").resumed == 192
    with pytest.raises(InputError, match=r"100 of 442 rows have no explanation"):
        explain(source, explainer, tmp_path / "out", max_errors=0.1)
    for no_share in (2, -0.1):
        with pytest.raises(InputError, match="share"):
            explain(source, explainer, tmp_path / "out", max_errors=no_share)


def test_two_runs_in_a_folder_keep_out_of_each_others_way(tmp_path, source, explainer):
    out = tmp_path / "out"
    with Folder(out).opened({}), pytest.raises(InputError, match="another run is at work"):
        explain(source, explainer, out)
    assert explain(source, explainer, out).rows == 442


def test_a_dead_process_holds_no_lock(tmp_path, source, explainer):
    program = f"""
import sys, time
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from internals import Folder
with Folder(Path({str(tmp_path / "out")!r})).opened({{}}):
    print("there", flush=True)
    time.sleep(60)
"""
    holder = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "there\n"
    with pytest.raises(InputError, match="another run is at work"):
        explain(source, explainer, tmp_path / "out")
    holder.kill()
    holder.communicate(timeout=60)
    assert explain(source, explainer, tmp_path / "out").rows == 442


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_an_input_that_changes_under_way_is_found(tmp_path, table, kind):
    X, flag = table[0][["age", "bmi"]].iloc[:60], tmp_path / "flag"
    path = tmp_path / f"in.{kind}"

    def write():
        X.to_parquet(path) if kind == "parquet" else X.to_csv(path, index=False)

    def meddles(rows):
        if flag.exists():
            write()
        return rows["age"] + rows["bmi"]

    write()

    explainer = limes.TabularExplainer(meddles, X, law="joint")
    flag.touch()
    with pytest.raises(InputError, match=r"was changed while it was being explained.*another folder"):
        explain(Source.of(path), explainer, tmp_path / "out", keys=[], rows_per_part=20)


def test_an_input_with_one_other_cell_in_the_middle_is_another_input(tmp_path, table, explainer):
    big = pd.concat([table[0]] * 100, ignore_index=True)
    big.to_csv(tmp_path / "in.csv", index=False)
    fingerprint = Source.of(tmp_path / "in.csv").fingerprint
    text = (tmp_path / "in.csv").read_text()
    middle = text.index(".", len(text) // 2) + 1
    (tmp_path / "in.csv").write_text(text[:middle] + str(9 - int(text[middle])) + text[middle + 1 :])
    assert Source.of(tmp_path / "in.csv").fingerprint != fingerprint


def hanging(rows):
    """A model that never returns where it meets one of these rows."""

    def model(X):
        if X["age"].isin(rows).any():
            time.sleep(600)
        return X["age"] + X["bmi"]

    return model


@pytest.mark.parametrize("engine", repeats(["local", "dask", "spark"], ["dask"]))
def test_rows_that_hang_are_errors_and_the_run_ends(tmp_path, table, engine):
    if engine == "spark":
        pytest.importorskip("pyspark", reason="pyspark is not installed")
    X = table[0].assign(age=np.arange(442.0))
    hang, first = repeats(([163.0, 183.0], 160), ([183.0], 172))
    X.iloc[first:184].to_parquet(tmp_path / "some.parquet", index=False)
    calm = X[~X["age"].isin(hang)][["age", "bmi"]]

    def explainer(model):
        return limes.TabularExplainer(model, calm, law="joint")

    source = Source.of(tmp_path / "some.parquet")
    options = {"rows_per_part": repeats(4, 2), "engine": engine, "cluster": Cluster(repeats(2, 1), timeout=3)}
    summary = explain(source, explainer(hanging(hang)), tmp_path / "out", **options)
    assert (summary.rows, summary.errors) == (184 - first, len(hang))
    result = read(tmp_path / "out")
    late = result["error"].notna()
    assert (result.loc[late, "row"] + first).tolist() == hang
    assert result.loc[late, "error"].str.contains("the row alone takes longer than 3 seconds").all()
    explain(source, explainer(hanging([])), tmp_path / "calm", rows_per_part=4)
    same(result[~late], read(tmp_path / "calm")[~late])
    assert not [one for one in active_children() if "loky" in one.name.lower()]


def test_a_part_that_hangs_is_searched_without_a_limit_too(tmp_path, table, monkeypatch):
    """Two workers: a part has a limit as soon as another one has taken some time."""
    monkeypatch.setattr(_processes, "_HANGS", 1e-3)
    monkeypatch.setattr(_processes, "_LONG", 3.0)
    X = table[0].assign(age=np.arange(442.0)).iloc[:20]
    X.to_parquet(tmp_path / "some.parquet", index=False)
    explainer = limes.TabularExplainer(hanging([17.0]), X.iloc[:10][["age", "bmi"]], law="joint")
    options = {"rows_per_part": 4, "cluster": Cluster(2)}
    summary = explain(Source.of(tmp_path / "some.parquet"), explainer, tmp_path / "out", **options)
    assert (summary.rows, summary.errors) == (20, 1)
    result = read(tmp_path / "out")
    assert result.loc[result["error"].notna(), "row"].tolist() == [17]
    assert result["error"][17].startswith("TimeoutError: the row alone takes longer than 3 seconds")


def test_a_time_limit_is_a_positive_number(tmp_path, source, explainer):
    with pytest.raises(InputError, match="timeout must be a finite number > 0"):
        explain(source, explainer, tmp_path / "out", cluster=Cluster(1, timeout=0))


def test_the_run_fails_where_every_row_fails(tmp_path, source, table):
    flag = tmp_path / "flag"

    def fails(X):
        if flag.exists():
            raise RuntimeError("no")
        return X["age"]

    X = table[0][["age", "bmi"]]
    explainer = limes.TabularExplainer(fails, X, law="joint")
    flag.touch()
    with pytest.raises(InputError, match=r"64 of 64 rows have no explanation.*RuntimeError.*no"):
        explain(source, explainer, tmp_path / "out")


def test_a_search_ends_where_every_row_hangs():
    search, tries = _Search.of(Part(0, 0, (Unreadable(1000, ""),)), 10.0), 0
    while (task := search.next()).rows is not None:
        search.add_late(task.rows, task.seconds)
        tries += 1
    assert task.faults.keys() == {*range(1000)}
    assert search.spent < 40 * 10.0
