"""Engines: what carries parts to workers, and tells what is done. Each is a file with a function ``run``.

A run may do a part twice, as after the death of a worker: a part done again is the same file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from limes._checks import check_choice
from limes.scale.parts import Done
from limes.scale.sources import Part
from limes.scale.work import Work

# The files, loaded when they are asked for: a library that carries parts is only needed by who uses it
_FILES: Mapping[str, str] = {
    "local": "limes.scale.local",
    "dask": "limes.scale.dask",
    "spark": "limes.scale.spark",
}


@dataclass(frozen=True)
class Cluster:
    """Where workers are.

    Attributes
    ----------
    workers
        Processes that are started on this machine; of no account where there is a scheduler.
    scheduler
        Address of a cluster that is there already, in the words of its library; None: this machine.
    """

    workers: int = 1
    scheduler: str | None = None

    @property
    def threads(self) -> int:
        """Threads of a worker on this machine, so that together they have a core each."""
        return max(1, (os.cpu_count() or 1) // self.workers)


# The process that asks, and no other
HERE = Cluster()


class Engine(Protocol):
    """Does parts, in any order, and tells of each as it is done; parts are taken as they are needed."""

    def __call__(self, work: Work, parts: Iterable[Part], cluster: Cluster) -> Iterator[Done]:
        """Do the parts.

        Raises
        ------
        InputError
            If there is no such cluster, the work cannot be sent to it, or a part cannot be read or written.
        """
        ...


def engine_of(name: str) -> Engine:
    """Find an engine.

    Raises
    ------
    InputError
        If there is none of this name.
    MissingLibraryError
        If its library is not installed: says how to get it.
    """
    run: Engine = import_module(_FILES[check_choice("engine", name, tuple(_FILES))]).run
    return run
