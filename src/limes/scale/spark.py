"""Spark, for tables in files and for data frames that are there already.

Files: each part is a job of one task, as many at a time as keep the cluster busy, so that each is told of
when it is done. Data frames: `explain_frame` on every batch that Spark hands to a worker.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import cloudpickle
import pyarrow as pa

from limes._optional import require
from limes._threads import use_threads
from limes.exceptions import InputError, LimesError
from limes.scale.engines import Cluster
from limes.scale.frames import Explainer, check_columns, check_keys, explain_frame, schema_of
from limes.scale.parts import Done
from limes.scale.sources import Part
from limes.scale.spark_session import session
from limes.scale.work import Work

require("pyspark", "limes.scale.spark", package="'limes[spark]'")

from pyspark import TaskContext  # noqa: E402

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

# Jobs that threads of the driver wait for, at most
_JOBS = 512


def run(work: Work, parts: Iterable[Part], cluster: Cluster) -> Iterator[Done]:
    """Do the parts, in any order; what is done is told as it is done.

    A part whose worker dies is tried again.

    Raises
    ------
    InputError
        There is no Java or no such cluster, the work cannot be sent to it, workers keep dying, or a part
        cannot be read or written.
    """
    packed = work.packed()
    with session(cluster) as spark:
        context = spark.sparkContext
        sent = context.broadcast(packed)
        yield from _jobs(context, lambda part: _said(sent.value, part), parts)


def _jobs(
    context: SparkContext, do: Callable[[Part], Done | LimesError], parts: Iterable[Part]
) -> Iterator[Done]:
    group = f"limes-{uuid4().hex}"

    def job(part: Part) -> Done:
        context.setJobGroup(group, f"part {part.number}", interruptOnCancel=True)
        try:
            answers: list[Done | LimesError] = context.parallelize([part], 1).map(do).collect()
        except Exception as error:
            raise InputError(_gave_up(part, error)) from error
        [said] = answers
        if isinstance(said, LimesError):
            raise said
        return said

    waiting: set[Future[Done]] = set()
    pool = ThreadPoolExecutor(_JOBS)
    try:
        for part in parts:
            # a cluster may grow; twice its cores, that none waits for the driver
            while len(waiting) >= min(2 * context.defaultParallelism, _JOBS):
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in done)
            waiting.add(pool.submit(job, part))
        yield from (one.result() for one in as_completed(waiting))
    finally:
        context.cancelJobGroup(group)
        pool.shutdown(cancel_futures=True)


def _said(packed: bytes, part: Part) -> Done | LimesError:
    """What a worker answers: an error of the user's is told, as trying again would not help."""
    work: Work = _loaded(packed)
    try:
        return work(part)
    except LimesError as error:
        return error


@lru_cache(maxsize=1)
def _loaded(packed: bytes) -> Any:
    """A work or explainer, once a worker process, and with it what it remembers from part to part."""
    task = TaskContext.get()
    use_threads(task.cpus() if task else 1)
    return pickle.loads(packed)  # noqa: S301 - the driver of this run made it


def _gave_up(part: Part, error: Exception) -> str:
    reasons = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = next((line for line in reasons if "Lost task" in line or "Error" in line), reasons[0])
    return (
        f"Spark gave up on part {part.number}: {said[:500]}. What was done stays done: see that workers have "
        "memory enough, or take fewer rows a part in a new folder, and run again"
    )


def explain(df: DataFrame, explainer: Explainer, layout: str = "wide", *, keys: Sequence[str]) -> DataFrame:
    """Explain every row of a Spark data frame; a row that cannot be explained gets its error.

    It is `explain_frame` on every batch, and lazy as everything on Spark is. The model goes to each worker
    once, which remembers from batch to batch what rows in the same cells have in common. Batches go by way of
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
        Columns that tell rows apart, as Spark does not number them. At least one.

    Returns
    -------
    DataFrame
        The keys as they are, then the columns of `limes.scale.explain_frame` as doubles and strings.

    Raises
    ------
    InputError
        There is no key, a column is missing, or a key bears the name of a column of the result.

    Examples
    --------
    With a Spark session, a model and its training data at hand::

        from limes.scale.spark import explain

        explainer = limes.TabularExplainer(model, background)
        found = explain(spark.read.parquet("loans"), explainer, keys=["loan_id"])
        found.write.parquet("explanations")
    """
    if isinstance(keys, str) or not keys:
        raise InputError(
            f"keys={keys!r}: give a list of columns that tell rows apart, as Spark does not number them"
        )
    check_columns(df.columns, explainer, keys)
    check_keys(keys, explainer, layout)
    packed = cloudpickle.dumps(explainer)

    def explained(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = explain_frame(pa.Table.from_batches([batch]), _loaded(packed), layout, keys=keys)
            yield from found.to_batches()

    return df.select(*keys, *explainer.feature_names).mapInArrow(
        explained, _schema(df, explainer, layout, keys)
    )


def _schema(df: DataFrame, explainer: Explainer, layout: str, keys: Sequence[str]) -> Any:
    from pyspark.sql.types import DoubleType, StringType, StructField, StructType

    mine = [
        StructField(name, StringType() if str(kind) == "String" else DoubleType())
        for name, kind in schema_of(explainer, layout).items()
    ]
    return StructType([*(StructField(key, df.schema[key].dataType) for key in keys), *mine])
