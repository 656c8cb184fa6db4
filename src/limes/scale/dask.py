"""Dask: parts on the workers of a cluster, and explanations of a Dask dataframe.

The work is sent to workers as a plugin: once to each, also to those that join later, and to those that
replace dead ones.
"""

from __future__ import annotations

from limes._checks import require

require("distributed", "limes.scale.dask", package="'limes[dask]'")
require("pyarrow", "limes.scale.dask", package="'limes[dask]'")

import asyncio
import gc
import signal
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dask import config
from distributed import Client, KilledWorker, LocalCluster, Security, WorkerPlugin, as_completed, get_worker
from distributed.comm.core import connect

from limes.exceptions import InputError
from limes.scale._frames import Explainer, Outputs, Wanted, explain_frame, in_order
from limes.scale._parts import PartRecord
from limes.scale._processes import WorkerPool, loaded
from limes.scale._sources import Part
from limes.scale._tables import Cluster, Work

__all__ = ["explain"]

if TYPE_CHECKING:
    from dask.dataframe import DataFrame

# Parts submitted for each thread of the workers: one that it does, one that waits for it
_AHEAD = 2
# A worker explains one part at a time: compiled loops use all its threads, and memory is that of one part
_ONE_AT_A_TIME = Lock()
# A part of a CSV file brings its rows
_CONFIG = {"distributed.admin.large-graph-warning-threshold": "1GB"}
# Makes workers return memory to the system as soon as it is free: taken again for the next block of rows, it
# would cost a fifth of their time
_ENVIRONMENT, _TRIM = "distributed.nanny.pre-spawn-environ", "MALLOC_TRIM_THRESHOLD_"
# Seconds that a scheduler, and its first worker, have to answer
_PATIENCE = 8


def explain(
    explainer: Explainer,
    table: DataFrame,
    layout: str = "wide",
    *,
    keys: Sequence[str],
    contributions: Wanted = "auto",
    outputs: Outputs = "shown",
    fit: bool = True,
) -> DataFrame:
    """Explain every row of a Dask dataframe, lazily: `limes.scale.explain_frame` of each partition.

    Parameters
    ----------
    explainer
        A :class:`limes.TabularExplainer`; it is sent to each worker once.
    table
        A ``dask.dataframe.DataFrame`` of pandas partitions, with the explainer's columns, and the keys.
    layout
        "wide": a line a row and output. "long": a line a row, output and feature.
    keys
        Columns that identify rows, copied to the result: partitions do not know which rows precede theirs.
    contributions, outputs, fit
        As for `limes.scale.explain_frame`.

    Returns
    -------
    dask.dataframe.DataFrame
        The keys, and the columns of `limes.scale.explain_frame`, to the same bits for any partitions; each
        line has the index of its row, so that the table can be joined with it.

    Raises
    ------
    InputError
        A column is missing, no key is passed, or a key has the name of a column of the result.

    Examples
    --------
    >>> import limes, dask.dataframe as dd, pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> from limes.scale.dask import explain
    >>> table = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0], "id": [7, 8, 9, 10]})
    >>> model = LinearRegression().fit(table[["a", "b"]], table["a"] - table["b"])
    >>> explainer = limes.TabularExplainer(model, table[["a", "b"]], bins=None)
    >>> result = explain(explainer, dd.from_pandas(table, npartitions=2), keys=["id"])
    >>> result.compute()[["id", "value_a"]].round(6).values.tolist()
    [[7.0, 1.0], [8.0, 1.0], [9.0, 1.0], [10.0, 1.0]]
    """
    from dask.dataframe.dispatch import make_meta
    from dask.delayed import delayed

    explainer, table = in_order(explainer, table, "limes.scale.dask.explain(explainer, table)")
    if not keys:
        raise InputError("pass keys: columns that identify rows, as partitions do not number theirs")
    options: dict[str, Any] = {"contributions": contributions, "outputs": outputs, "fit": fit}
    meta = explain_frame(explainer, make_meta(table), layout, keys=keys, **options)
    options["keys"] = [*keys]
    shared = delayed(explainer, traverse=False)
    # a line has the index of its row, so that the divisions of the table are those of its explanations
    result: DataFrame = table.map_partitions(_explain, shared, layout, options, meta=meta)
    return result


def _explain(table: Any, explainer: Explainer, layout: str, options: Mapping[str, Any]) -> Any:
    with _ONE_AT_A_TIME:
        return explain_frame(explainer, table, layout, **options)


def run(work: Work, parts: Iterable[Part], cluster: Cluster) -> Generator[PartRecord]:
    """Compute the parts, in any order; yield each part as soon as it is finished."""
    with config.set(_CONFIG), _client(cluster) as client:
        name = f"limes-{uuid4().hex}"
        threads = cluster.threads if cluster.scheduler is None else None
        client.register_plugin(_WorkPlugin(work.to_bytes(), threads, cluster), name=name)
        try:
            yield from _completed(client, name, iter(parts))
        except KilledWorker as error:
            raise InputError(
                f"workers were killed again and again ({error}), as happens when memory runs out: use fewer "
                "workers or fewer rows a part; or, if a row ends them, pass a --timeout, with which it is "
                "searched for. Finished parts are kept"
            ) from error
        except (CancelledError, OSError) as error:
            raise InputError(
                f"the connection to the scheduler was lost ({error}). Finished parts are kept: check that it "
                "runs, and run the same command again"
            ) from error
        finally:
            client.unregister_worker_plugin(name)


def _completed(client: Client, name: str, parts: Iterator[Part]) -> Iterator[PartRecord]:
    """Keep every thread busy, also those that join later, and yield each part that is finished."""

    def submit(count: int) -> list[Any]:
        some = islice(parts, max(0, count))
        return [client.submit(_do, name, part, key=f"{name}-{part.number}", pure=False) for part in some]

    pending = as_completed()
    pending.update(submit(_room(client)))
    for future in pending:
        yield future.result()
        pending.update(submit(_room(client) - pending.count()))


def _room(client: Client) -> int:
    threads: int = sum(client.nthreads().values())
    return _AHEAD * max(1, threads)


@contextmanager
def _client(cluster: Cluster) -> Iterator[Client]:
    if cluster.scheduler is None:
        kept = {name: value for name, value in config.get(_ENVIRONMENT).items() if name != _TRIM}
        with config.set({_ENVIRONMENT: kept}):
            local = LocalCluster(
                n_workers=cluster.workers,
                threads_per_worker=1,
                dashboard_address=None,
                # a scheduler without a dashboard has an HTTP server too, at a port that another may have
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            )
        with local, Client(local) as client:
            yield client
        return
    with _connected(cluster.scheduler) as client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as error:
            raise InputError(
                f"the scheduler {cluster.scheduler} has no workers: start some (dask worker ADDRESS)"
            ) from error
        yield client


def _connected(address: str) -> Client:
    try:
        with ThreadPoolExecutor(1) as aside:  # a notebook's own thread runs a loop already
            aside.submit(asyncio.run, _greet(address)).result()
        return Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise InputError(
            f"no scheduler answers at {address} ({str(error) or type(error).__name__}). Check that it runs "
            "(dask scheduler prints its address, such as tcp://10.0.0.5:8786) and can be reached from this "
            "machine; or pass no scheduler, for workers on this machine"
        ) from error


async def _greet(address: str) -> None:
    """Wait for an answer, with a time limit, which a client lacks if something else listens there."""
    secrets = Security().get_connection_args("client")
    async with asyncio.timeout(_PATIENCE):
        connection = await connect(address, timeout=_PATIENCE, **secrets)
        await connection.close()


class _WorkPlugin(WorkerPlugin):
    def __init__(self, content: bytes, threads: int | None, limits: Cluster) -> None:
        self._content = content
        self._threads = threads  # of a worker that this program started; None on a running cluster
        self._limits = limits
        self.work: Any = None

    def setup(self, worker: Any) -> None:
        if self._threads:  # Ctrl-C is for the driver, which then ends the workers
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.work = loaded(self._content, self._limits, self._threads or worker.state.nthreads)
        if self._threads:  # all that is loaded stays: the end of the process need not search it for garbage
            gc.freeze()

    def teardown(self, worker: Any) -> None:  # noqa: ARG002 - the library's signature
        if isinstance(self.work, WorkerPool):
            self.work.close()


def _do(name: str, part: Part) -> PartRecord:
    plugin: Any = get_worker().plugins[name]
    with _ONE_AT_A_TIME:
        record: PartRecord = plugin.work(part)
    return record
