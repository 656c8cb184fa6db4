"""Dask writes the lines of one process, to the bit."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time

import dask
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

import limes
from effort import repeats
from internals import Cluster, MissingLibraryError, Source, engine_of, explain_files
from jobs import read, same
from limes.exceptions import InputError

dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")

from limes.scale import dask as engine  # noqa: E402

pytestmark = pytest.mark.engines


@pytest.fixture
def source(tmp_path, table):
    table[0].to_parquet(tmp_path / "in.parquet", row_group_size=100, index=False)
    return Source.of(tmp_path / "in.parquet")


def explain(source, explainer, out, scheduler, **options):
    engine_options = {"engine": "dask", "cluster": Cluster(scheduler=scheduler)}
    options = {"run": {}, "keys": ["id"], "rows_per_part": 64, "progress": False, **engine_options, **options}
    return explain_files(source, explainer, out, **options)


@pytest.mark.parametrize("rows", [442, 64, 30])
def test_a_cluster_gives_the_lines_of_one_process(source, explainer, tmp_path, whole, cluster, rows):
    summary = explain(source, explainer, tmp_path / "out", cluster.scheduler_address, rows_per_part=rows)
    assert (summary.rows, summary.errors) == (442, 0)
    same(read(tmp_path / "out"), whole)


def test_samples_are_the_same_by_row(table, tmp_path, cluster):
    X = table[0].iloc[:24]
    X.to_parquet(tmp_path / "in.parquet", index=False)

    def waves(X):
        return np.sin(20 * X["age"]) * X["bmi"]

    explainer = limes.TabularExplainer(waves, X[["age", "bmi"]], max_calls=64, control="none")
    source = Source.of(tmp_path / "in.parquet")
    explain(source, explainer, tmp_path / "a", cluster.scheduler_address, rows_per_part=4)
    explain(source, explainer, tmp_path / "b", None, rows_per_part=24, engine="local", cluster=Cluster())
    result = read(tmp_path / "a")
    assert (result["se_age"] > 0).all()
    same(result, read(tmp_path / "b"))


def test_a_long_part_of_a_csv_file_is_no_cause_for_a_warning(table, explainer, tmp_path, cluster):
    many = pd.concat([table[0].assign(id="x" * 400)] * 70, ignore_index=True)
    many.to_csv(tmp_path / "in.csv", index=False)
    assert (tmp_path / "in.csv").stat().st_size > 12e6
    source = Source.of(tmp_path / "in.csv")
    explain(source, explainer, tmp_path / "a", cluster.scheduler_address, rows_per_part=30_000, keys=["id"])
    explain(source, explainer, tmp_path / "b", None, rows_per_part=4_000, engine="local", cluster=Cluster())
    same(read(tmp_path / "a"), read(tmp_path / "b"))


def test_the_work_goes_to_each_worker_once(source, explainer, tmp_path, cluster, monkeypatch):
    loads = tmp_path / "loads"

    class Counted:
        feature_names, reproducible, _has_rules = explainer.feature_names, explainer.reproducible, False
        _wanted_contributions = False

        def __setstate__(self, state):
            with loads.open("a") as file:
                file.write("once\n")

        def __getstate__(self):
            return {"any": 1}

        def fill_pool(self, *, progress):
            pass

    explain(source, Counted(), tmp_path / "out", cluster.scheduler_address, rows_per_part=10)
    assert len([*(tmp_path / "out").glob("*.parquet")]) == 45
    assert loads.read_text().count("once") == 2


def test_a_worker_that_is_killed_from_outside_is_replaced(source, explainer, tmp_path, whole, cluster):
    with distributed.Client(cluster) as client:
        before = client.run(os.getpid)
        killed = []

        def kill_once(rows):
            if not killed:
                killed.append(next(iter(before.values())))
                os.kill(killed[0], signal.SIGKILL)

        parts = SlowSource.of(source, kill_once)
        summary = explain(parts, explainer, tmp_path / "out", cluster.scheduler_address, rows_per_part=20)
        assert summary.rows == 442
        client.wait_for_workers(2, timeout=30)
        assert killed[0] not in client.run(os.getpid).values()
    same(read(tmp_path / "out"), whole)


class SlowSource(Source):
    """A source that something happens to after its tenth part."""

    @classmethod
    def of(cls, source, happens):
        slow = cls(source.files)
        object.__setattr__(slow, "happens", happens)
        return slow

    def parts(self, rows, columns):
        for part in super().parts(rows, columns):
            if part.number == 10:
                self.happens(rows)
            yield part


def test_workers_that_are_killed_every_time_are_given_up_on(table, tmp_path):
    def kills(X):
        if (X["age"] > 0.1).any():
            os.kill(os.getpid(), signal.SIGKILL)
        return X["age"] + X["bmi"]

    X = table[0].iloc[:12].assign(age=lambda X: np.where(X["id"] == "patient 7", 0.2, 0.0 * X["age"]))
    X.to_parquet(tmp_path / "in.parquet", index=False)
    calm = table[0].loc[table[0]["age"] < 0.09, ["age", "bmi"]]
    explainer = limes.TabularExplainer(kills, calm, method="sampled", max_calls=64, control="none")
    options = {"cluster": Cluster(workers=repeats(2, 1)), "rows_per_part": 4}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        pytest.raises(InputError, match=r"killed again and again.*fewer workers"),
    ):
        explain(Source.of(tmp_path / "in.parquet"), explainer, tmp_path / "out", None, **options)


def test_a_model_that_workers_cannot_load_is_reported(source, explainer, tmp_path, cluster, monkeypatch):
    module = type(sys)("only_here")
    exec("class Model:\n    def predict(self, X):\n        return X['age']", module.__dict__)  # noqa: S102
    module.Model.__module__ = "only_here"
    monkeypatch.setitem(sys.modules, "only_here", module)
    X = explainer._diagnostic_context  # any part of an explainer will do
    assert X
    foreign = limes.TabularExplainer(
        module.Model(), load_diabetes(as_frame=True).data.iloc[:, :5], control="none"
    )
    with pytest.raises(InputError, match=r"cannot load the model.*only_here.*install"):
        explain(source, foreign, tmp_path / "out", cluster.scheduler_address)


def test_a_scheduler_that_does_not_answer_is_reported(source, explainer, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_PATIENCE", 1)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        silent = f"tcp://127.0.0.1:{deaf.getsockname()[1]}"
        for address in (silent, "tcp://127.0.0.1:9", "nonsense://x"):
            start = time.monotonic()
            with pytest.raises(InputError, match=r"no scheduler answers at .*dask scheduler prints"):
                explain(source, explainer, tmp_path / "out", address)
            assert time.monotonic() - start < 10


def test_a_scheduler_without_workers_is_reported(source, explainer, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_PATIENCE", 1)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address="localhost:0") as empty,
        pytest.raises(InputError, match="has no workers: start some"),
    ):
        explain(source, explainer, tmp_path / "out", empty.scheduler_address)


def test_the_error_without_dask_has_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "limes.scale.dask")
    with pytest.raises(MissingLibraryError, match=r"pip install 'limes\[dask\]'"):
        engine_of("dask")


@pytest.mark.parametrize("layout", ["wide", "long"])
@pytest.mark.parametrize("partitions", [1, 7])
def test_a_dask_dataframe_is_explained_by_partitions(table, explainer, layout, partitions):
    rows = dd.from_pandas(table[0], npartitions=partitions)
    lazy = engine.explain(explainer, rows, layout, keys=["id"])
    expected = limes.scale.explain_frame(explainer, rows.compute(), layout, keys=["id"])
    result = lazy.compute(scheduler="threads")
    assert [*lazy.columns] == [*expected.columns]
    assert lazy.npartitions == partitions
    pd.testing.assert_frame_equal(result, expected, check_exact=True)
    for name, kind in lazy.dtypes.items():
        assert result[name].dtype == kind, name


def test_a_dask_dataframe_goes_over_a_cluster(table, explainer, cluster):
    rows = dd.from_pandas(table[0], npartitions=5)
    lazy = engine.explain(explainer, rows, keys=["id"])
    expected = limes.scale.explain_frame(explainer, rows.compute(), keys=["id"])
    with distributed.Client(cluster):
        result = lazy.compute().reset_index(drop=True)
    pd.testing.assert_frame_equal(result, expected, check_exact=True)


def test_a_bad_dask_dataframe_is_refused_before_it_is_computed(table, explainer):
    lazy = dd.from_pandas(table[0], npartitions=2)
    with pytest.raises(InputError, match="pass keys"):
        engine.explain(explainer, lazy, keys=[])
    with pytest.raises(InputError, match=r"keys='id': pass a list of columns"):
        engine.explain(explainer, lazy, keys="id")
    with pytest.raises(InputError, match="no column 'name'"):
        engine.explain(explainer, lazy, keys=["name"])
    with pytest.raises(InputError, match="no column 'bmi'"):
        engine.explain(explainer, lazy.drop(columns="bmi"), keys=["id"])


@pytest.mark.parametrize("start", [0, 1000])
def test_a_dask_dataframe_joins_with_its_explanations(table, explainer, start):
    frame = table[0].set_axis(pd.RangeIndex(start, start + len(table[0])))
    rows = dd.from_pandas(frame, npartitions=4)
    lazy = engine.explain(explainer, rows, keys=["id"])
    expected = limes.scale.explain_frame(explainer, frame, keys=["id"])
    assert lazy.divisions == rows.divisions
    assert lazy.compute(scheduler="sync").index.equals(frame.index)
    for paired in (rows.join(lazy[["prediction"]]), rows.assign(prediction=lazy["prediction"])):
        result = paired.compute(scheduler="sync")
        assert np.array_equal(result["prediction"], expected["prediction"])
        assert result["id"].tolist() == expected["id"].tolist()
    some = lazy.loc[start + 30 : start + 140].compute(scheduler="sync")
    assert some["id"].tolist() == frame["id"].iloc[30:141].tolist()


def test_long_explanations_of_a_dask_dataframe_have_known_divisions(table, explainer):
    frame = table[0].set_axis(pd.RangeIndex(1000, 1442))
    lazy = engine.explain(explainer, dd.from_pandas(frame, npartitions=4), "long", keys=["id"])
    some = lazy.loc[1030:1140].compute(scheduler="sync")
    assert some["id"].drop_duplicates().tolist() == frame["id"].iloc[30:141].tolist()
    assert len(some) == 111 * 5
    joined = frame.join(lazy.compute(scheduler="sync")[["value"]])
    assert joined["value"].notna().all()


def test_rows_of_a_dask_dataframe_without_an_order_join_too(table, explainer):
    frame = table[0].set_index("id", drop=False).rename_axis(None)
    rows = dd.from_pandas(frame, npartitions=3, sort=False)
    assert not rows.known_divisions
    lazy = engine.explain(explainer, rows, keys=["id"])
    assert not lazy.known_divisions
    result = lazy.compute(scheduler="sync")
    assert result.index.tolist() == result["id"].tolist() == frame.index.tolist()


def test_workers_start_beside_another_cluster_of_this_machine(source, explainer, whole, tmp_path):
    """Its scheduler has Dask's usual port, about which Dask warns; warnings are errors here."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # another program has it
            other.bind(("0.0.0.0", 8787))  # noqa: S104 - all addresses, as Dask's own
            other.listen()
        explain(source, explainer, tmp_path / "out", None)
    same(read(tmp_path / "out"), whole)
