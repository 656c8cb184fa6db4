"""Threads for compiled loops that release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from threading import current_thread

_NAME = "limes-pool"
# Threads that may work at once
WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_threads(count: int) -> None:
    """Use so many threads from now on: for a process that shares its machine with others of its kind."""
    global WORKERS
    WORKERS = count
    _pool.cache_clear()


def in_threads(work: Callable[[int], None], items: Sequence[int]) -> None:
    """Call work(item) for all items, on all cores; an error is raised, and ends the others' work.

    The caller works too, and takes what the others are too late for. Inside such a call it runs one after the
    other: threads that waited for threads of their own pool would wait for ever.
    """
    if len(items) <= 1 or WORKERS == 1 or current_thread().name.startswith(_NAME):
        for item in items:
            work(item)
        return
    left = iter(items)  # each item is taken once: a list's or range's iterator is safe between threads

    def take() -> None:
        try:
            for item in left:
                work(item)
        finally:
            for _ in left:  # nothing is left, unless there was an error
                pass

    others = [_pool().submit(take) for _ in range(min(WORKERS, len(items)) - 1)]
    try:
        take()
    finally:
        late = [other for other in others if not other.cancel()]
        wait(late)
    for other in late:
        other.result()


@cache
def _pool() -> ThreadPoolExecutor:
    """One pool a process: starting threads takes longer than explaining a row."""
    return ThreadPoolExecutor(WORKERS - 1, thread_name_prefix=_NAME)


if hasattr(os, "register_at_fork"):
    # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
