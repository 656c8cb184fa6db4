"""Spark, for tables in files and for its data frames, in the active session or one for this run.

Files: each part is a job of one task, enough of them at a time to keep the cluster busy, so that the driver
hears of each when it is finished. Data frames: `explain_frame` on every batch that Spark hands to a worker.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext

from limes._checks import require
from limes._threads import use_threads
from limes.exceptions import InputError, LimesError
from limes.scale.engines import Cluster
from limes.scale.frames import Explainer, check_columns, check_keys, explain_frame, schema_of
from limes.scale.parts import PartRecord
from limes.scale.sources import Part
from limes.scale.work import Work, pickled

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession


# Spark 4 needs it
_JAVA = 17
_GET_JAVA = (
    f"Install Java {_JAVA} or later (Debian and Ubuntu: apt-get install openjdk-{_JAVA}-jre-headless; conda: "
    f"conda install openjdk={_JAVA}; macOS: brew install openjdk@{_JAVA}) and set JAVA_HOME to its folder"
)
# Times that a part is tried if its worker dies; clusters set it themselves (spark.task.maxFailures)
_TRIES = 4
# Seconds that a scheduler has to answer
_PATIENCE = 10.0
_CONFIG: dict[str, str | float | bool | None] = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
# On this machine Java has little to do, and starts in half the time when it optimises little
_LOCAL: dict[str, str | float | bool | None] = {
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextmanager
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """Yield a session on the cluster; an active one is used, and stays active.

    Raises
    ------
    InputError
        Java is missing or too old, or the scheduler does not answer.
    """
    from pyspark.sql import SparkSession

    if urlsplit(cluster.scheduler or "").scheme == "sc":
        raise InputError(
            f"{cluster.scheduler} is Spark Connect, which takes data frames and no jobs: read the table as "
            "a data frame, and pass it to limes.scale.spark.explain"
        )
    active = SparkSession.getActiveSession()
    if active is not None:
        _check_active(active, cluster)
        yield active
        return
    check_java()
    spark = _start(SparkSession.builder, cluster)
    try:
        yield spark
    finally:
        spark.stop()


def _check_active(active: SparkSession, cluster: Cluster) -> None:
    master = active.conf.get("spark.master", None)
    if cluster.scheduler not in (None, master):
        raise InputError(
            f"this program has a Spark session on {master}: stop it to use {cluster.scheduler}, or pass no "
            "scheduler"
        )


def _start(builder: SparkSession.Builder, cluster: Cluster) -> SparkSession:
    if cluster.scheduler is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the python3 that is first in PATH
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # reachable from this machine only
        cores = cluster.workers * cluster.threads
        builder = builder.master(f"local[{cores},{_TRIES}]").config("spark.task.cpus", cluster.threads)
        builder = builder.config(map=_LOCAL)
    else:
        _check_answers(cluster.scheduler)
        builder = builder.master(cluster.scheduler)
    try:
        with warnings.catch_warnings():
            # limes passes data through Arrow, never through pandas
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            return builder.appName("limes").config(map=_CONFIG).getOrCreate()
    except Exception as error:  # Java's errors have no common base
        where = cluster.scheduler or "this machine"
        raise InputError(f"Spark could not be started on {where}: {str(error).splitlines()[0]}") from error


def _check_answers(address: str) -> None:
    """Fail fast if the Spark master is unreachable: Spark itself waits minutes."""
    where = urlsplit(address)
    if where.scheme != "spark":
        return
    try:
        for host, _, port in (name.partition(":") for name in where.netloc.split(",")):
            with socket.create_connection((host, int(port)), timeout=_PATIENCE):
                return
    except (OSError, ValueError) as error:
        raise InputError(
            f"the scheduler {address} does not answer ({error}): start it (sbin/start-master.sh, and "
            "workers), correct the address, or leave it out to work on this machine"
        ) from error


def check_java() -> None:
    """Raise InputError with advice if Java is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        where = f"in JAVA_HOME={home}" if home else "on this machine"
        raise InputError(f"Spark needs Java, which is missing {where}. {_GET_JAVA}")
    answer = subprocess.run([java, "-version"], check=False, capture_output=True, text=True).stderr  # noqa: S603
    version = re.search(r'version "(?:1\.)?(\d+)', answer)
    if version is None or int(version[1]) < _JAVA:
        name = version[1] if version else f"unknown ({answer.strip()[:80]})"
        raise InputError(f"Spark needs Java {_JAVA}, and {java} is Java {name}. {_GET_JAVA}")


require("pyspark", "limes.scale.spark", package="'limes[spark]'")
require("pyarrow", "limes.scale.spark", package="'limes[spark]'")


__all__ = ["explain"]


# Jobs that threads of the driver wait for, at most
_JOBS = 512


def run(work: Work, parts: Iterable[Part], cluster: Cluster) -> Iterator[PartRecord]:
    """Do the parts, in any order; yield each part as soon as it is finished.

    A part whose worker dies is tried again.

    Raises
    ------
    InputError
        There is no Java or no such cluster, the work cannot be sent to it, workers keep dying, or a part
        cannot be read or written.
    """
    content = work.to_bytes()
    with session(cluster) as spark:
        context = spark.sparkContext
        shared = context.broadcast(content)
        yield from _jobs(context, lambda part: _result(shared.value, part), parts)


def _jobs(
    context: SparkContext, do: Callable[[Part], PartRecord | LimesError], parts: Iterable[Part]
) -> Iterator[PartRecord]:
    group = f"limes-{uuid4().hex}"

    def job(part: Part) -> PartRecord:
        context.setJobGroup(group, f"part {part.number}", interruptOnCancel=True)
        try:
            results: list[PartRecord | LimesError] = context.parallelize([part], 1).map(do).collect()
        except Exception as error:
            raise InputError(_gave_up(part, error)) from error
        [result] = results
        if isinstance(result, LimesError):
            raise result
        return result

    pending: set[Future[PartRecord]] = set()
    pool = ThreadPoolExecutor(_JOBS)
    try:
        for part in parts:
            # a cluster may grow; twice its cores, so that no core waits for the driver
            while len(pending) >= min(2 * context.defaultParallelism, _JOBS):
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in finished)
            pending.add(pool.submit(job, part))
        yield from (future.result() for future in as_completed(pending))
    finally:
        context.cancelJobGroup(group)
        pool.shutdown(cancel_futures=True)


def _result(content: bytes, part: Part) -> PartRecord | LimesError:
    """Do a part; a LimesError is returned, not raised, as Spark would try the part again."""
    work: Work = _load(content)
    try:
        return work(part)
    except LimesError as error:
        return error


@lru_cache(maxsize=1)
def _load(content: bytes) -> Any:
    """Unpickle a work or explainer once a worker process, which keeps its caches from part to part."""
    task = TaskContext.get()
    use_threads(task.cpus() if task else 1)
    return pickle.loads(content)  # noqa: S301 - the driver of this run made it


def _gave_up(part: Part, error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = next((line for line in lines if "Lost task" in line or "Error" in line), lines[0])
    return (
        f"Spark gave up on part {part.number}: {reason[:500]}. Finished parts are kept: check that workers "
        "have enough memory, or use fewer rows a part in a new folder, and run again"
    )


def explain(df: DataFrame, explainer: Explainer, layout: str = "wide", *, keys: Sequence[str]) -> DataFrame:
    """Explain every row of a Spark data frame; rows that fail carry an error message.

    It is `explain_frame` on every batch, and lazy as everything on Spark is. The model is sent to each worker
    once, which caches from batch to batch what rows in the same cells have in common. Batches go by way of
    Arrow (``mapInArrow``), not pandas, so that keys keep their type even where they are null.

    Parameters
    ----------
    df
        Has the explainer's columns, and keys.
    explainer
        A :class:`limes.TabularExplainer`.
    layout
        "wide": a line a row and output. "long": a line a row, output and feature.
    keys
        Columns that identify rows, as Spark does not number them. At least one.

    Returns
    -------
    DataFrame
        The keys as they are, then the columns of `limes.scale.explain_frame` as doubles and strings.

    Raises
    ------
    InputError
        There is no key, a column is missing, or a key has the name of a column of the result.

    Examples
    --------
    With a Spark session, a model and its training data::

        from limes.scale.spark import explain

        explainer = limes.TabularExplainer(model, background)
        result = explain(spark.read.parquet("loans"), explainer, keys=["loan_id"])
        result.write.parquet("explanations")
    """
    if not keys:
        raise InputError("pass keys: columns that identify rows, as Spark does not number them")
    schema = schema_of(explainer, layout)
    check_keys(keys, schema)
    check_columns("the table", df.columns, [*keys, *explainer.feature_names])
    content = pickled(explainer)

    def explained(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            result = explain_frame(pa.Table.from_batches([batch]), _load(content), layout, keys=keys)
            yield from result.to_batches()

    from pyspark.sql.types import DoubleType, StringType, StructField, StructType

    fields = [StructField(key, df.schema[key].dataType) for key in keys]
    fields += [
        StructField(name, StringType() if str(kind) == "String" else DoubleType())
        for name, kind in schema.items()
    ]
    names = dict.fromkeys([*keys, *explainer.feature_names])  # a name may hold a point: no path into a struct
    columns = [f"`{name.replace('`', '``')}`" for name in names]
    return df.select(*columns).mapInArrow(explained, StructType(fields))
