"""Spark writes the lines of one process, to the bit, whatever process dies."""

from __future__ import annotations

import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

import limes
from effort import DEEP
from internals import Cluster, Part, Source, explain_files, pickled
from limes.exceptions import InputError
from limes.scale import explain_frame

pytest.importorskip("pyspark", reason="pyspark is not installed")
from internals import check_java, spark_context

try:
    check_java()
except InputError as why:
    pytest.skip(str(why), allow_module_level=True)

from pyspark.sql import SparkSession

from limes.scale.spark import explain, run

pytestmark = [
    pytest.mark.engines,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
TWO = Cluster(workers=2)
PARTS = [Part(n, 10 * n, ()) for n in range(6)]
# A driver that takes about a quarter of a second a part
JOB = """
import signal, sys, time
from pathlib import Path
import pandas as pd
import limes
sys.path.insert(0, "TESTS")
from internals import Cluster, Source, explain_files

HERE = Path(__file__).parent
TABLE = pd.DataFrame({"a": [i / 7 for i in range(40)], "b": [(3 * i) % 11 for i in range(40)]})

def work(engine, pause):
    def model(X):
        time.sleep(pause)
        return X["a"] * X["b"]

    explainer = limes.TabularExplainer(model, TABLE, max_calls=64, control="none", method="sampled")
    options = {"run": {}, "rows_per_part": 2, "engine": engine, "cluster": Cluster(workers=2)}
    return explain_files(Source.of(HERE / "in.parquet"), explainer, HERE / "out", **options)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("resumed", work(sys.argv[1], float(sys.argv[2])).resumed)
""".replace("TESTS", str(Path(__file__).parents[1]))


@pytest.fixture(scope="module")
def table():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X.iloc[:, :5].assign(id=range(1000, 1000 + len(X))), y


@pytest.fixture(scope="module")
def spark():
    with spark_context(TWO):
        yield SparkSession.builder.getOrCreate()


class Answering:
    """In place of a `Work`: any function of a part."""

    def __init__(self, answer):
        self._answer = answer

    def to_bytes(self):
        return pickled(self._answer)


def read(out):
    return pd.concat([pd.read_parquet(path) for path in sorted(out.glob("*.parquet"))], ignore_index=True)


@pytest.mark.parametrize(("rows", "layout"), [(10_000, "wide"), (64, "wide"), (64, "long")])
def test_files_are_the_same_to_the_bit_as_one_process_makes_them(
    spark, table, explainer, tmp_path, rows, layout
):
    assert spark
    table[0].to_parquet(tmp_path / "in.parquet", row_group_size=100)
    options = {"run": {}, "keys": ["id"], "rows_per_part": rows, "layout": layout, "progress": False}
    for engine in ("local", "spark"):
        source = Source.of(tmp_path / "in.parquet")
        summary = explain_files(source, explainer, tmp_path / engine, engine=engine, cluster=TWO, **options)
        assert (summary.rows, summary.errors) == (442, 0)
    names = [path.name for path in sorted((tmp_path / "local").glob("*.parquet"))]
    assert len(names) == -(-442 // rows)
    for name in names:
        assert (tmp_path / "spark" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()


@pytest.mark.parametrize(("partitions", "layout"), [(1, "wide"), (7, "wide"), (7, "long")])
def test_a_data_frame_is_the_same_for_any_partitions(spark, table, explainer, partitions, layout):
    rows = pa.Table.from_pandas(table[0], preserve_index=False)
    df = spark.createDataFrame(rows).repartition(partitions)
    result = explain(explainer, df, layout, keys=["id"]).toArrow()
    expected = explain_frame(explainer, rows, layout, keys=["id"])
    order = [("id", "ascending"), *([("feature", "ascending")] if layout == "long" else [])]
    assert result.sort_by(order).to_pydict() == expected.sort_by(order).to_pydict()


def test_keys_keep_their_type_and_rows_their_errors(spark, table, explainer):
    rows = pa.Table.from_pandas(table[0].iloc[:4], preserve_index=False)
    big = 2**60 + 1  # no float64 is this number
    rows = rows.set_column(rows.column_names.index("id"), "id", pa.array([big, None, 3, 4], pa.int64()))
    rows = rows.set_column(0, "age", pa.array([0.01, 0.02, float("inf"), 0.03]))
    df = spark.createDataFrame(rows).coalesce(1)
    result = explain(explainer, df, keys=["id"])
    assert [f"{f.name}: {f.dataType.simpleString()}" for f in result.schema][:3] == [
        "id: bigint",
        "output: string",
        "prediction: double",
    ]
    lines = result.toArrow().to_pydict()
    assert lines["id"] == [big, None, 3, 4]
    assert [error is None for error in lines["error"]] == [True, True, False, True]
    assert lines["value_bmi"][2] is None


def test_a_bad_data_frame_is_refused_before_it_is_computed(spark, table, explainer):
    df = spark.createDataFrame(pa.Table.from_pandas(table[0], preserve_index=False))
    for keys, advice in (([], "identify rows"), ("id", "pass a list of columns")):
        with pytest.raises(InputError, match=advice):
            explain(explainer, df, keys=keys)
    with pytest.raises(InputError, match="no column 'name'"):
        explain(explainer, df, keys=["name"])
    with pytest.raises(InputError, match="rename"):
        explain(explainer, df.withColumnRenamed("id", "error"), keys=["error"])
    with pytest.raises(InputError, match="layout"):
        explain(explainer, df, "tall", keys=["id"])


def test_a_killed_worker_is_replaced_and_its_part_computed_again(spark, tmp_path):
    assert spark
    mark = tmp_path / "killed"

    def answer(part):
        if part.number == 3 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return part.number

    assert sorted(run(Answering(answer), PARTS, TWO)) == [0, 1, 2, 3, 4, 5]
    assert mark.exists()


def test_a_part_that_kills_every_worker_is_given_up_with_advice(spark):
    assert spark

    def answer(part):
        if part.number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return part.number

    with pytest.raises(InputError, match=r"gave up on part 3.*fewer rows a part"):
        [*run(Answering(answer), PARTS, TWO)]


def test_a_worker_loads_the_work_once_and_errors_are_reported_once(spark, tmp_path):
    assert spark
    loads = tmp_path / "loads"

    class Loading:
        def __call__(self, part):
            if part.number == 5:
                with loads.open("a") as file:
                    file.write("tried\n")
                raise InputError("part 5 cannot be written: make room")
            return part.number

        def __setstate__(self, state):
            with loads.open("a") as file:
                file.write("loaded\n")

        def __getstate__(self):
            return {"some": "state"}

    with pytest.raises(InputError, match="part 5 cannot be written: make room"):
        [*run(Answering(Loading()), PARTS * 4, TWO)]
    events = loads.read_text().split()
    # Spark does not use a worker again whose task raised: another one takes its place
    assert 1 <= events.count("loaded") <= 2 + events.count("tried")
    assert 1 <= events.count("tried") <= 4  # once each time it was asked for


def test_parts_are_read_as_they_are_needed(spark):
    assert spark
    numbers = []

    def parts():
        for n in range(100):
            numbers.append(n)
            yield Part(n, n, ())

    result = run(Answering(lambda part: part.number), parts(), TWO)
    next(result)
    assert len(numbers) < 20
    result.close()


def journal(out):
    path = out / "_parts.jsonl"
    return [line for line in path.read_text().split("\n") if line] if path.exists() else []


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_driver_that_was_stopped_resumes(tmp_path, stop):
    job, out = tmp_path / "job.py", tmp_path / "out"
    job.write_text(JOB)
    runpy.run_path(str(job))["TABLE"].to_parquet(tmp_path / "in.parquet")
    driver = subprocess.Popen([sys.executable, job, "spark", "0.05"], stderr=subprocess.PIPE)
    patience = time.monotonic() + 120
    while len(journal(out)) < 3:
        assert driver.poll() is None, driver.stderr.read()
        assert time.monotonic() < patience
        time.sleep(0.02)
    driver.send_signal(stop)
    # Spark waits up to two minutes for an answer that a cancelled job no longer gives
    driver.communicate(timeout=180)
    assert driver.returncode != 0
    time.sleep(1)  # workers may be finishing what they were at
    assert len([*out.glob("*.parquet")]) < 20
    local = subprocess.run([sys.executable, job, "local", "0"], check=True, capture_output=True, text=True)
    assert 3 <= int(local.stdout.split()[1]) < 40
    result = read(out)
    assert result["row"].tolist() == list(range(40))
    shutil.rmtree(out)
    subprocess.run([sys.executable, job, "local", "0"], check=True, capture_output=True)
    pd.testing.assert_frame_equal(result, read(out), check_exact=True)


def test_a_scheduler_that_does_not_answer_is_reported_before_java_starts():
    where = [
        sys.executable,
        "-c",
        "from limes.scale.spark import spark_context; from limes.scale._tables "
        "import Cluster; spark_context(Cluster(scheduler='spark://127.0.0.1:9')).__enter__()",
    ]
    started = time.monotonic()
    result = subprocess.run(where, check=False, capture_output=True, text=True)
    assert time.monotonic() - started < 30
    assert "the scheduler spark://127.0.0.1:9 does not answer" in result.stderr
    assert "start-master.sh" in result.stderr


def test_a_session_elsewhere_and_spark_connect_are_refused(spark):
    assert spark
    with pytest.raises(InputError, match="has a Spark session on local"):
        [*run(Answering(len), PARTS, Cluster(scheduler="spark://elsewhere:7077"))]
    with pytest.raises(InputError, match=r"limes\.scale\.spark\.explain"):
        [*run(Answering(len), PARTS, Cluster(scheduler="sc://elsewhere:15002"))]


NAMES = {"age": "a.b", "bmi": "c d", "bp": "e`f", "s1": "müß%", "id": "the.id"}


def test_names_may_hold_points_blanks_and_backticks(spark, table):
    X, y = table
    X = X.rename(columns=NAMES)
    explainer = limes.TabularExplainer(
        LinearRegression().fit(X.drop(columns="the.id"), y), X.drop(columns="the.id")
    )
    rows = pa.Table.from_pandas(X.iloc[:20], preserve_index=False)
    result = explain(explainer, spark.createDataFrame(rows), keys=["the.id"]).toArrow()
    assert result.sort_by("the.id").to_pydict() == explain_frame(explainer, rows, keys=["the.id"]).to_pydict()


def test_a_stream_is_explained_as_it_comes(spark, table, explainer, tmp_path):
    rows = pa.Table.from_pandas(table[0].iloc[:60], preserve_index=False)
    (tmp_path / "in").mkdir()
    for i in range(3):
        pq.write_table(rows.slice(20 * i, 20), tmp_path / "in" / f"{i}.parquet")
    static = spark.read.parquet(str(tmp_path / "in"))
    stream = (
        spark.readStream.schema(static.schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    )
    writer = explain(explainer, stream, keys=["id"]).writeStream.format("parquet")
    options = {"path": str(tmp_path / "out"), "checkpointLocation": str(tmp_path / "checkpoint")}
    query = writer.options(**options).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    result = spark.read.parquet(str(tmp_path / "out")).toArrow().sort_by("id")
    assert result.to_pydict() == explain_frame(explainer, rows, keys=["id"]).to_pydict()


CONNECT = """
import limes, numpy as np, pyarrow as pa, sys
from pyspark.sql import SparkSession
from sklearn.linear_model import LinearRegression
from limes.scale import spark as engine

class Large:
    '''A model of some megabytes.'''
    weight = 1.0

    def __init__(self):
        self.ballast = np.random.default_rng(0).bytes(int(sys.argv[1]))

    def __call__(self, X):
        return X["a"] * X["b"]

X = pa.table({"a": np.arange(40.0), "b": np.arange(40.0) % 7, "id": np.arange(40)})
frame = X.to_pandas()
explainer = limes.TabularExplainer(Large(), frame[["a", "b"]], max_calls=64, control="none")
spark = SparkSession.builder.remote("local[2]").getOrCreate()
found = engine.explain(explainer, spark.createDataFrame(frame), keys=["id"]).toArrow().sort_by("id")
assert found.to_pydict() == limes.scale.explain_frame(explainer, X, keys=["id"]).to_pydict()
print("the same")
spark.stop()
"""


@pytest.mark.skipif(not DEEP, reason="starts a server of Spark Connect: make test-deep")
@pytest.mark.parametrize("size", [0, 155_000_000])
def test_spark_connect_explains_with_a_large_explainer(tmp_path, size):
    pytest.importorskip("grpc", reason="pyspark[connect] is not installed")
    (tmp_path / "job.py").write_text(CONNECT)
    command = [sys.executable, tmp_path / "job.py", str(size)]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert result.stdout.endswith("the same\n"), result.stderr[-3000:]
