"""Threads: a pool for compiled loops that release the interpreter's lock, workers that call models, and BLAS.

BLAS starts a thread a core even for small products, where synchronisation takes longer than the product, and
its order of summation depends on their number. The matrices of this library are small: while it computes,
BLAS has one thread. The user's model has what the user has set. And a cache that threads share.
"""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib.util import find_spec
from threading import Event, Lock, current_thread, local
from typing import Any, Generic, Protocol, TypeVar

_NAME = "limes-pool"
# Threads that may work at once
WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def workers() -> int:
    """Return the number of threads that may work at once."""
    return WORKERS


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
    further item begins. Several workers use the cores by themselves: BLAS has one thread, in the model too.
    """
    if workers == 1:
        for item in items:
            work(item)
        return
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            for future in futures:
                future.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


class _BLAS:
    """The number of threads of BLAS libraries that several Python threads share.

    It is one while any Python thread computes, and the user's own again as soon as none does.
    """

    def __init__(self, find: Callable[[], Sequence[Any]]) -> None:
        self._libraries = find
        self._lock = Lock()
        self._computing = 0
        self._numbers: list[int] = []

    def add(self, change: int) -> None:
        """Count a Python thread that begins (1) or ends (-1) to compute."""
        with self._lock:
            before, self._computing = self._computing, self._computing + change
            if before == 0:
                self._numbers = [library.num_threads for library in self._libraries()]
                self._set([1] * len(self._numbers))
            elif self._computing == 0:
                self._set(self._numbers)

    def keep_this_thread(self) -> None:
        """Forget the other Python threads of the process that this one was forked from."""
        self._lock = Lock()
        before, self._computing = self._computing, int(_this_thread.computes)
        if before and not self._computing:
            self._set(self._numbers)

    def _set(self, numbers: Sequence[int]) -> None:
        for library, number in zip(self._libraries(), numbers, strict=True):
            # threadpoolctl reserves OpenBLAS for the Python thread that set its number: release it
            release = getattr(library, "clear_controlling_thread", None)
            if release is None:
                library.set_num_threads(number)
            else:
                release(force=True)
                library.set_num_threads(number)
                release(force=True)


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """BLAS libraries whose number of threads is the process's, and those where it is the Python thread's.

    numpy and scipy bring one each.
    """
    import scipy.linalg  # noqa: F401 - loads its BLAS
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    by_thread = [library for library in libraries if getattr(library, "threading_layer", "") == "openmp"]
    return [library for library in libraries if library not in by_thread], by_thread


class _ThisThread(local):
    """Whether a Python thread computes, and its own numbers of BLAS threads."""

    def __init__(self) -> None:
        self.computes = False
        self.blas = _BLAS(lambda: _libraries()[1])


_process, _this_thread = _BLAS(lambda: _libraries()[0]), _ThisThread()


def _counters() -> tuple[_BLAS, ...]:
    return (_process, _this_thread.blas) if _libraries()[1] else (_process,)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Compute with BLAS on one thread. Also decorates functions; may be nested."""
    with _computing(computes=True):
        yield


@contextmanager
def one_blas_thread_in_models() -> Iterator[None]:
    """Keep BLAS on one thread, in the user's model too: no number of cores may change a result."""
    counters = _counters()
    for blas in counters:
        blas.add(1)
    try:
        yield
    finally:
        for blas in counters:
            blas.add(-1)


@contextmanager
def user_blas_threads() -> Iterator[None]:
    """Inside `one_blas_thread`, call the user's model with as many BLAS threads as the user has set.

    Other Python threads that compute at the time keep the number at one.
    """
    with _computing(computes=False):
        yield


@contextmanager
def _computing(*, computes: bool) -> Iterator[None]:
    before = _this_thread.computes
    change = int(computes) - int(before)
    switched = _counters() if change else ()
    for blas in switched:
        blas.add(change)
    _this_thread.computes = computes
    try:
        yield
    finally:
        _this_thread.computes = before
        for blas in switched:
            blas.add(-change)


@cache
def _pool() -> ThreadPoolExecutor:
    """One pool a process: starting threads takes longer than explaining a row."""
    return ThreadPoolExecutor(WORKERS - 1, thread_name_prefix=_NAME)


if hasattr(os, "register_at_fork"):
    # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=_process.keep_this_thread)


# -- objects that threads share ---------------------------------------------------------------------------


class Locked:
    """Base of objects that threads share under ``_lock``; copies in other processes have another lock."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """The most recently used values, at most ``most``, of ``largest`` bytes together; threads may share it.

    The newest stays however large it is. Copies in other processes start empty.
    """

    def __init__(self, most: int, largest: int | None = None) -> None:
        self._most, self._largest = most, largest
        self._lock = Lock()
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def get(self, key: K, make: Callable[[], V], size: Callable[[V], int] = lambda _: 0) -> V:
        """Return the value of the key; ``make`` and cache it if it is missing.

        Threads that look up the same missing key at the same time may each make it.
        """
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        value = make()
        self.put(key, value, size(value))
        return value

    def put(self, key: K, value: V, size: int = 0) -> None:
        """Cache a value of ``size`` bytes."""
        with self._lock:
            self._values[key] = (value, size)
            self._values.move_to_end(key)
            while len(self._values) > 1 and self._is_full():
                self._values.popitem(last=False)

    def take(self, key: K) -> V | None:
        """Remove the value of a key and return it; None if it is missing."""
        with self._lock:
            value, _ = self._values.pop(key, (None, 0))
            return value

    def _is_full(self) -> bool:
        if len(self._values) > self._most:
            return True
        return self._largest is not None and sum(size for _, size in self._values.values()) > self._largest

    def __reduce__(self) -> tuple[Any, ...]:
        return LRUCache, (self._most, self._largest)


# Where there is neither a terminal nor a notebook, every refresh is a line of a log
_LOG_SECONDS = 30.0
# The bar of an explainer counts what takes time: rows, or calls of the model
_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} {unit} [{elapsed}, {remaining} left]"


class Progress(Protocol):
    """Makes a progress bar, or nothing."""

    def __call__(self, total: int, unit: str = "rows", /) -> AbstractContextManager[Callable[[int], object]]:
        """Return a context whose value is called with numbers of finished steps, ``total`` in all."""
        ...


def progress_bar(total: int, what: str, *, unit: str, shown: bool = True, **options: Any) -> Any:
    """Return tqdm's bar for work that takes more than a second, of notebooks or of terminals."""
    options = {"delay": 1.0, "leave": False, **options}
    return tqdm_class()(total=total, desc=what, unit=unit, disable=not shown, **options)


def tqdm_class() -> Any:
    """Return the bar of this place: text in a notebook without ipywidgets, where tqdm.auto would warn."""
    if "ipykernel" in sys.modules and find_spec("ipywidgets") is None:
        from tqdm.std import tqdm
    else:
        from tqdm.auto import tqdm
    return tqdm


def progress_of(*, shown: bool) -> Progress:
    """Return a bar that appears when work takes more than a second, or no bar."""
    return _bar if shown else _no_bar


@contextmanager
def _bar(total: int, unit: str = "rows", /) -> Iterator[Callable[[int], object]]:
    if total == 1:
        yield _ignore
        return
    live = sys.stderr.isatty() or "ipykernel" in sys.modules
    interval = 0.1 if live else _LOG_SECONDS
    with progress_bar(total, "explaining", unit=unit, bar_format=_FORMAT, mininterval=interval) as bar:
        yield bar.update


def _no_bar(total: int, unit: str = "rows", /) -> nullcontext[Callable[[int], object]]:  # noqa: ARG001 - one signature
    return nullcontext(_ignore)


def _ignore(count: int) -> None:
    pass
