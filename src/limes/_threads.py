"""Threads: a pool for compiled loops that release the interpreter's lock, and workers that call models."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from threading import Event, current_thread

_NAME = "limes-pool"
# Threads that may work at once
WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_threads(count: int) -> None:
    """Set the number of threads: for a process that shares its machine with other workers."""
    global WORKERS
    WORKERS = count
    _pool.cache_clear()


def in_threads(work: Callable[[int], None], items: Sequence[int]) -> None:
    """Call work(item) for all items, on all cores; raise the first error, which ends the other threads' work.

    The caller works too, so that nothing waits for a busy pool. Nested calls run in the calling thread:
    threads that waited for threads of the same pool would wait for ever.
    """
    if len(items) <= 1 or WORKERS == 1 or current_thread().name.startswith(_NAME):
        for item in items:
            work(item)
        return
    queue = iter(items)  # a list's or range's iterator returns each item once, also between threads

    def work_off() -> None:
        try:
            for item in queue:
                work(item)
        finally:
            for _ in queue:  # empty, unless there was an error
                pass

    others = [_pool().submit(work_off) for _ in range(min(WORKERS, len(items)) - 1)]
    try:
        work_off()
    finally:
        started = [other for other in others if not other.cancel()]
        wait(started)
    for other in started:
        other.result()


def in_workers(work: Callable[[int], None], items: Sequence[int], workers: int, stop: Event) -> None:
    """Call work(item) for all items in ``workers`` threads, or in this one; raise the first error.

    For work that calls the user's model. An error sets ``stop``, which running work may look at, and no
    further item begins.
    """
    if workers == 1:
        for item in items:
            work(item)
        return
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            for future in futures:
                future.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


@cache
def _pool() -> ThreadPoolExecutor:
    """One pool a process: starting threads takes longer than explaining a row."""
    return ThreadPoolExecutor(WORKERS - 1, thread_name_prefix=_NAME)


if hasattr(os, "register_at_fork"):
    # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
