"""Fresh processes of one thread each, one a core: their times do not disturb each other.

limes needs no such setting; ``lime``'s regressions would start a thread a core in each process.
"""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

_LIBRARIES = ("OMP", "OPENBLAS", "MKL")


def processes() -> ProcessPoolExecutor:
    """As many as there are cores, four at most."""
    count = min(4, os.cpu_count() or 1)
    return ProcessPoolExecutor(
        count, mp_context=multiprocessing.get_context("spawn"), initializer=_one_thread
    )


def _one_thread() -> None:
    """Before anything else is loaded, which is when libraries look."""
    os.environ.update({f"{library}_NUM_THREADS": "1" for library in _LIBRARIES})
