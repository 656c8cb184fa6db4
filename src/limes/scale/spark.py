"""Spark, for tables in files and for its data frames.

Files: each part is a job of one task, enough of them at a time to keep the cluster busy, so that the driver
hears of each when it is finished. Data frames: `explain_frame` on every batch that Spark hands to a worker.
"""

from __future__ import annotations

from limes._checks import require

require("pyspark", "limes.scale.spark", package="'limes[spark]'")
require("pyarrow", "limes.scale.spark", package="'limes[spark]'")

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext

from limes.exceptions import InputError, LimesError
from limes.scale._frames import (
    Explainer,
    Outputs,
    Wanted,
    account_of,
    check_columns,
    check_keys,
    explain_frame,
    in_order,
    schema_of,
)
from limes.scale._parts import PartRecord
from limes.scale._processes import loaded
from limes.scale._sources import Part
from limes.scale._tables import THIS_PROCESS, Cluster, Work, pickled

__all__ = ["explain"]

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

# Largest number of jobs that threads of the driver wait for
_JOBS = 512
# Bytes of an explainer that may be part of a plan of Spark Connect
_IN_PLAN = 1 << 20
# Version of Java that Spark 4 needs
_JAVA = 17
_GET_JAVA = (
    f"Install Java {_JAVA} or later (Debian and Ubuntu: apt-get install openjdk-{_JAVA}-jre-headless; conda: "
    f"conda install openjdk={_JAVA}; macOS: brew install openjdk@{_JAVA}) and set JAVA_HOME to its folder"
)
# Times that a part is tried if its worker dies; clusters set it themselves (spark.task.maxFailures)
_TRIES = 4
# Seconds that a scheduler has to answer
_PATIENCE = 10.0
_CONFIG = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
# On this machine Java has little to do, and starts in half the time when it optimises little
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def run(work: Work, parts: Iterable[Part], cluster: Cluster) -> Generator[PartRecord]:
    """Compute the parts, in any order; a part whose worker dies is tried again."""
    content = work.to_bytes()
    with spark_context(cluster) as context:
        shared = context.broadcast(content)
        limits = Cluster(timeout=cluster.timeout, memory=cluster.memory)
        yield from _jobs(context, lambda part: _result(shared.value, limits, part), parts)


def _jobs(
    context: SparkContext, do: Callable[[Part], PartRecord | LimesError], parts: Iterable[Part]
) -> Iterator[PartRecord]:
    group = f"limes-{uuid4().hex}"

    def job(part: Part) -> PartRecord:
        context.setJobGroup(group, f"part {part.number}", interruptOnCancel=True)
        try:
            results: list[PartRecord | LimesError] = context.parallelize([part], 1).map(do).collect()
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            reason = next((line for line in lines if "Lost task" in line or "Error" in line), lines[0])
            raise InputError(
                f"Spark gave up on part {part.number}: {reason[:500]}. Finished parts are kept: check that "
                "workers have enough memory, or use fewer rows a part in a new folder; or, if a row ends "
                "them, pass a --timeout, with which it is searched for; and run again"
            ) from error
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
        # first no further part begins: a job that begins after the others were cancelled would be waited for
        pool.shutdown(wait=False, cancel_futures=True)
        context.cancelJobGroup(group)
        pool.shutdown()


def _result(content: bytes, limits: Cluster, part: Part) -> PartRecord | LimesError:
    try:
        record: PartRecord = _load(content, limits)(part)
    except LimesError as error:
        return error  # Spark would try the part again if it were raised
    return record


@lru_cache(maxsize=1)  # a worker process keeps its caches from part to part
def _load(content: bytes, limits: Cluster = THIS_PROCESS) -> Any:
    task = TaskContext.get()
    return loaded(content, limits, task.cpus() if task else 1)


def explain(
    explainer: Explainer,
    df: DataFrame,
    layout: str = "wide",
    *,
    keys: Sequence[str],
    contributions: Wanted = "auto",
    outputs: Outputs = "shown",
    fit: bool = True,
) -> DataFrame:
    """Explain every row of a Spark data frame; rows that fail carry an error message.

    `explain_frame` is applied to every batch, lazily as always on Spark. The model is sent to each worker
    once, which caches from batch to batch what rows in the same cells have in common. Batches go by way of
    Arrow (``mapInArrow``), not pandas, so that keys keep their type even where they are null.

    Parameters
    ----------
    explainer
        A :class:`limes.TabularExplainer`.
    df
        A data frame with the explainer's columns, and the keys.
    layout
        "wide": a line a row and output. "long": a line a row, output and feature.
    keys
        Columns that identify rows, as Spark does not number them. At least one.
    contributions, outputs, fit
        As for `limes.scale.explain_frame`.

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
        result = explain(explainer, spark.read.parquet("loans"), keys=["loan_id"])
        result.write.parquet("explanations")
    """
    explainer, df = in_order(explainer, df, "limes.scale.spark.explain(explainer, df)")
    if not keys:
        raise InputError("pass keys: columns that identify rows, as Spark does not number them")
    schema = schema_of(explainer, layout, account_of(explainer, contributions), fit=fit)
    check_keys(keys, schema)
    check_columns("the table", df.columns, [*keys, *explainer.feature_names])
    load = _shipped(df, pickled(explainer))

    # a name may hold a point or a backtick, which Spark's mapInArrow reads as a path into a struct
    names = [*dict.fromkeys([*keys, *explainer.feature_names])]
    quoted = [f"`{name.replace('`', '``')}` as c{i}" for i, name in enumerate(names)]

    def explained(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = pa.Table.from_batches([batch]).rename_columns(names)
            options: dict[str, Any] = {"contributions": contributions, "outputs": outputs, "fit": fit}
            lines = explain_frame(load(), rows, layout, keys=keys, **options)
            yield from lines.to_batches()

    from pyspark.sql.types import DoubleType, StringType, StructField, StructType

    fields = [StructField(key, df.schema[key].dataType) for key in keys]
    fields += [
        StructField(name, StringType() if str(kind) == "String" else DoubleType())
        for name, kind in schema.items()
    ]
    return df.selectExpr(*quoted).mapInArrow(explained, StructType(fields))


def _shipped(df: DataFrame, content: bytes) -> Callable[[], Any]:
    """Send an explainer to workers; return the function that loads it there."""
    # Spark broadcasts what a function brings with it, but not over Connect, where it is part of the plan: a
    # large one goes as an artifact, in pieces, under the name of its hash
    if not type(df).__module__.startswith("pyspark.sql.connect") or len(content) < _IN_PLAN:
        return lambda: _load(content)
    name = f"limes-{sha256(content).hexdigest()}"
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        df.sparkSession.addArtifact(str(path), file=True)
    return lambda: _load_artifact(name)


@lru_cache(maxsize=1)
def _load_artifact(name: str) -> Any:
    from pyspark import SparkFiles

    return _load(Path(SparkFiles.get(name)).read_bytes())


@contextmanager
def spark_context(cluster: Cluster) -> Iterator[SparkContext]:
    """Yield a context on the cluster; an active one is used, and stays active."""
    # jobs need no session, which would take as long to start as the context
    from pyspark import SparkContext

    if urlsplit(cluster.scheduler or "").scheme == "sc":
        raise InputError(
            f"{cluster.scheduler} is Spark Connect, which takes data frames and no jobs: read the table as "
            "a data frame, and pass it to limes.scale.spark.explain"
        )
    active = SparkContext._active_spark_context  # noqa: SLF001 - sessions ask so too
    if active is not None:
        if cluster.scheduler not in (None, active.master):
            raise InputError(
                f"this program has a Spark session on {active.master}: stop it to use {cluster.scheduler}, "
                "or pass no scheduler"
            )
        yield active
        return
    check_java()
    context = _start(cluster)
    try:
        yield context
    finally:
        context.stop()


def _start(cluster: Cluster) -> SparkContext:
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setAppName("limes").setAll(_CONFIG.items())
    if cluster.scheduler is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the python3 that is first in PATH
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # reachable from this machine only
        cores = cluster.workers * cluster.threads
        conf = conf.setMaster(f"local[{cores},{_TRIES}]").set("spark.task.cpus", str(cluster.threads))
        conf = conf.setAll(_LOCAL.items())
    else:
        _check_answers(cluster.scheduler)
        conf = conf.setMaster(cluster.scheduler)
    try:
        return SparkContext(conf=conf)
    except Exception as error:  # Java's errors have no common base
        where = cluster.scheduler or "this machine"
        raise InputError(f"Spark could not be started on {where}: {str(error).splitlines()[0]}") from error


def _check_answers(address: str) -> None:
    where = urlsplit(address)  # Spark itself waits minutes for a master that is unreachable
    if where.scheme != "spark":
        return
    reasons = []
    for master in where.netloc.split(","):  # of several, one leads and the others stand by
        host, _, port = master.partition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=_PATIENCE):
                return
        except (OSError, ValueError) as error:
            reasons.append(str(error))
    raise InputError(
        f"the scheduler {address} does not answer ({'; '.join(reasons)}): start it (sbin/start-master.sh, "
        "and workers), correct the address, or leave it out to work on this machine"
    )


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
