"""Dask: parts on the workers of a cluster, and explanations of a Dask dataframe.

The work goes to workers as a plugin: once to each, to those that join later, and to those that are started in
place of dead ones.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from limes._optional import require
from limes._threads import use_threads
from limes.exceptions import InputError
from limes.scale.engines import Cluster
from limes.scale.frames import Explainer, explain_frame
from limes.scale.parts import Done
from limes.scale.sources import Part
from limes.scale.work import Work

require("distributed", "limes.scale.dask", package="'limes[dask]'")

from dask import config  # noqa: E402
from distributed import (  # noqa: E402
    Client,
    KilledWorker,
    LocalCluster,
    Security,
    WorkerPlugin,
    as_completed,
    get_worker,
)
from distributed.comm.core import connect  # noqa: E402

if TYPE_CHECKING:
    from dask.dataframe import DataFrame

# Parts given out for each thread of the workers: one that it does, one that waits for it
_AHEAD = 2
# An explainer keeps its model's answers, so it does one thing at a time; its loops have threads of their own
_ALONE = Lock()
# A part of a CSV file brings its rows
_CONFIG = {"distributed.admin.large-graph-warning-threshold": "1GB"}
# Seconds that a scheduler, and its first worker, have to answer
_PATIENCE = 8


def explain(
    table: DataFrame, explainer: Explainer, layout: str = "wide", *, keys: Sequence[str]
) -> DataFrame:
    """Explain every row of a Dask dataframe, lazily: `limes.scale.explain_frame` of each partition.

    Parameters
    ----------
    table
        A ``dask.dataframe.DataFrame`` of pandas partitions, with the explainer's columns, and the keys.
    explainer
        A :class:`limes.TabularExplainer`; it goes to each worker once.
    layout
        "wide": a line a row and output. "long": a line a row, output and feature.
    keys
        Columns that tell rows apart, carried along: partitions do not know which rows are before theirs.

    Returns
    -------
    dask.dataframe.DataFrame
        The keys, and the columns of `limes.scale.explain_frame`, to the same bits for any partitions.

    Raises
    ------
    InputError
        A column is lacking, no key is given, or a key bears the name of a column of the result.

    Examples
    --------
    >>> import limes, dask.dataframe as dd, pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> from limes.scale.dask import explain
    >>> table = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0], "id": [7, 8, 9, 10]})
    >>> model = LinearRegression().fit(table[["a", "b"]], table["a"] - table["b"])
    >>> explainer = limes.TabularExplainer(model, table[["a", "b"]], bins=None)
    >>> found = explain(dd.from_pandas(table, npartitions=2), explainer, keys=["id"])
    >>> found.compute()[["id", "value_a"]].round(6).values.tolist()
    [[7.0, 1.0], [8.0, 1.0], [9.0, 1.0], [10.0, 1.0]]
    """
    import pandas as pd
    from dask.delayed import delayed

    if not keys:
        raise InputError("give keys: columns that tell rows apart, as partitions do not number theirs")
    empty = pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in table.dtypes.items()})
    meta = explain_frame(empty, explainer, layout, keys=keys)
    sent = delayed(explainer, traverse=False)
    found: DataFrame = table.map_partitions(_explained, sent, layout, [*keys], meta=meta)
    return found


def _explained(table: Any, explainer: Explainer, layout: str, keys: Sequence[str]) -> Any:
    with _ALONE:
        return explain_frame(table, explainer, layout, keys=keys)


def run(work: Work, parts: Iterable[Part], cluster: Cluster) -> Iterator[Done]:
    """Do the parts, in any order; what is done is told as it is done.

    Raises
    ------
    InputError
        The scheduler or its workers do not answer, workers keep dying, or a part cannot be read or written.
    """
    with config.set(_CONFIG), _client(cluster) as client, _given(client, work, cluster) as name:

        def give(part: Part) -> Any:
            return client.submit(_do, name, part, key=f"{name}-{part.number}", pure=False)

        try:
            yield from _in_flight(client, give, iter(parts))
        except KilledWorker as error:
            raise InputError(
                f"workers were killed again and again ({error}), as happens when memory runs out: take fewer "
                "workers or fewer rows a part; the parts that are done stay done"
            ) from error
        except (CancelledError, OSError) as error:
            raise InputError(
                f"the scheduler was lost ({error}). The parts that are done stay done: see that it runs, and "
                "run the same command again"
            ) from error


def _in_flight(client: Client, give: Callable[[Part], Any], left: Iterator[Part]) -> Iterator[Done]:
    """Keep every thread busy, however many there are by now, and tell of each part that is done."""
    flying = as_completed()
    flying.update([give(part) for part in islice(left, _room(client))])
    for landed in flying:
        yield landed.result()
        flying.update([give(part) for part in islice(left, max(0, _room(client) - flying.count()))])


def _room(client: Client) -> int:
    threads: int = sum(client.nthreads().values())
    return _AHEAD * max(1, threads)


@contextmanager
def _client(cluster: Cluster) -> Iterator[Client]:
    if cluster.scheduler is None:
        started = LocalCluster(
            n_workers=cluster.workers, threads_per_worker=1, dashboard_address="localhost:0"
        )
        with started, Client(started) as client:
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
            f"no scheduler answers at {address} ({str(error) or type(error).__name__}). See that it runs "
            "(dask scheduler prints its address, such as tcp://10.0.0.5:8786) and can be reached from here; "
            "or name none, for workers on this machine"
        ) from error


async def _greet(address: str) -> None:
    """Wait for an answer, but not for ever, as a client does where something else listens at the address."""
    secrets = Security().get_connection_args("client")
    async with asyncio.timeout(_PATIENCE):
        there = await connect(address, timeout=_PATIENCE, **secrets)
        await there.close()


@contextmanager
def _given(client: Client, work: Work, cluster: Cluster) -> Iterator[str]:
    """Give the workers the work, under a name, as long as this lasts."""
    name = f"limes-{uuid4().hex}"
    threads = cluster.threads if cluster.scheduler is None else None
    client.register_plugin(_Carried(work.packed(), threads), name=name)
    try:
        yield name
    finally:
        client.unregister_worker_plugin(name)


class _Carried(WorkerPlugin):
    """The work, as each worker has it."""

    def __init__(self, content: bytes, here: int | None) -> None:
        self._content = content
        self._here = here  # threads of a worker that this program started on this machine
        self.work: Work | None = None

    def setup(self, worker: Any) -> None:
        if self._here:  # whoever presses Ctrl-C means the driver, which then ends the workers
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        use_threads(self._here or worker.state.nthreads)
        self.work = Work.unpacked(self._content)


def _do(name: str, part: Part) -> Done:
    carried: Any = get_worker().plugins[name]
    with _ALONE:
        done: Done = carried.work(part)
    return done
