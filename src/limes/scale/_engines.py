"""Engines carry parts to workers, and yield each part as soon as it is finished.

An engine is a function ``run(work, parts, cluster)`` that takes parts as it needs them and yields their
records, in any order. It may compute a part twice, for example after the death of a worker: both times the
file is the same. `limes.scale._processes` runs processes of this machine; the other engines are
`limes.scale.dask` and `limes.scale.spark`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TypeAlias

from limes._checks import check_choice
from limes.scale._parts import PartRecord
from limes.scale._sources import Part
from limes.scale._work import Work


@dataclass(frozen=True)
class Cluster:
    """The machines and processes that run workers.

    Attributes
    ----------
    workers
        Processes that are started on this machine; ignored if ``scheduler`` is given.
    scheduler
        Address of a running cluster, as its library writes it; None: this machine.
    timeout
        Seconds that a part may take; then its rows that hang are reported as errors. None: no limit.
    cores
        Threads of a worker; None: its share of the cores of this machine.
    supervised
        Whether a single worker on this machine is a separate process, whose death the driver survives.
    """

    workers: int = 1
    scheduler: str | None = None
    timeout: float | None = None
    cores: int | None = None
    supervised: bool = False

    @property
    def threads(self) -> int:
        """Threads of a worker on this machine, so that together they have a core each.

        Cores are those that this process may use, by affinity and by the limit of its container.
        """
        if self.cores is not None:
            return self.cores
        from joblib import cpu_count

        return max(1, int(cpu_count()) // self.workers)


# Only the process that calls
THIS_PROCESS = Cluster()

Engine: TypeAlias = Callable[[Work, Iterable[Part], Cluster], Iterator[PartRecord]]

# Modules, imported when they are chosen: the library of an engine is needed only if that is used
_MODULES = {"local": "limes.scale._processes", "dask": "limes.scale.dask", "spark": "limes.scale.spark"}


def engine_of(name: str) -> Engine:
    """Find an engine.

    Raises
    ------
    InputError
        If there is no engine of this name.
    MissingLibraryError
        If its library is not installed.
    """
    run: Engine = import_module(_MODULES[check_choice("engine", name, tuple(_MODULES))]).run
    return run
