"""Threads: compiled loops, workers that call models, BLAS, what threads share, and progress bars.

BLAS starts a thread a core even for small products, where synchronisation takes longer than the product, and
its order of summation depends on their number. The matrices of this library are small: while it computes,
BLAS has one thread. The user's model has what the user has set.
"""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from functools import cache, partial
from importlib.util import find_spec
from threading import Event, Lock, Timer, current_thread, local
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from limes.exceptions import InputError

_NAME, _VARIABLE = "limes-pool", "LIMES_NUM_THREADS"
# Threads that may work at once; None until work first asks
WORKERS: int | None = None
# Seconds of work that pay for other threads, which may have to wait for a core
WORTH_SHARING = 2e-3


def set_threads(count: int | None = None) -> None:
    """Set the number of threads in which limes computes, from now on, in this process.

    Results are the same with any number. The user's model has its own threads, and so have ``workers=`` of a
    call. Work below about two milliseconds stays in the calling thread, as does `limes.CompiledExplainer`.

    Parameters
    ----------
    count
        A whole number from 1. None, the default: the environment variable ``LIMES_NUM_THREADS``, or without
        it the cores that the process may use, by its affinity and by the quota of its container.

    Raises
    ------
    InputError
        If it is no whole number from 1; of the variable, when limes first computes.

    Examples
    --------
    >>> import limes
    >>> limes.set_threads(1)  # a worker of a server that has a process a core
    >>> limes.set_threads()
    """
    global WORKERS
    WORKERS = None if count is None else _checked("set_threads", count)
    _pool.cache_clear()


def workers() -> int:
    """Number of threads that may work at once."""
    global WORKERS
    if WORKERS is None:
        variable = os.environ.get(_VARIABLE)
        WORKERS = _usable_cores() if not variable else _checked(_VARIABLE, variable)
    return WORKERS


def _checked(name: str, count: int | str) -> int:
    is_whole = str(count).isdecimal() and not isinstance(count, bool)
    if not is_whole or int(count) < 1:
        raise InputError(f"{name}: the number of threads is a whole number from 1, not {count!r}")
    return int(count)


def _usable_cores() -> int:
    from joblib import cpu_count  # it knows containers' quotas, too

    return max(1, int(cpu_count()))


def is_shared(n: int, seconds: float) -> bool:
    """Whether `in_threads` shares n items, which take ``seconds`` together, among threads."""
    # nested calls run in the calling thread: threads that wait for threads of their pool wait for ever
    if n <= 1 or seconds < WORTH_SHARING or _this_thread.works_alone:
        return False
    return not current_thread().name.startswith(_NAME) and workers() > 1


def in_threads(work: Callable[[int], None], items: Sequence[int], seconds: float = WORTH_SHARING) -> None:
    """Call work(item) for all items, on all cores; raise the first error, which ends the others' work.

    All of it together takes about ``seconds`` in one thread.
    """
    if not is_shared(len(items), seconds):
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

    # the caller works too, so that nothing waits for a busy pool
    others = [_pool().submit(copy_context().run, work_off) for _ in range(min(workers(), len(items)) - 1)]
    try:
        work_off()
    finally:
        started = [other for other in others if not other.cancel()]
        wait(started)
    for other in started:
        other.result()


def in_workers(work: Callable[[int], None], items: Sequence[int], workers: int, stop: Event) -> None:
    """Call work(item), which calls the model, in ``workers`` threads, or in this one; raise the first error.

    An error sets ``stop``, which running work may look at, and no further item begins.
    """
    if workers == 1:
        for item in items:
            work(item)
        return
    # workers use the cores by themselves: BLAS has one thread, in the model too
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(copy_context().run, work, item) for item in items]
        try:
            for future in futures:
                future.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


class _BLAS:
    """Threads of BLAS libraries: one while any Python thread computes, else as many as the user has set."""

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
    """BLAS libraries with a number of threads for the process, and those with one for each Python thread."""
    import scipy.linalg  # noqa: F401 - loads its BLAS, beside numpy's
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    by_thread = [library for library in libraries if getattr(library, "threading_layer", "") == "openmp"]
    return [library for library in libraries if library not in by_thread], by_thread


class _ThisThread(local):
    def __init__(self) -> None:
        self.computes = False
        self.works_alone = False
        self.blas = _BLAS(lambda: _libraries()[1])


_process, _this_thread = _BLAS(lambda: _libraries()[0]), _ThisThread()


def _counters() -> tuple[_BLAS, ...]:
    return (_process, _this_thread.blas) if _libraries()[1] else (_process,)


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


# Compute with BLAS on one thread. Also decorates functions; may be nested
one_blas_thread = partial(_computing, computes=True)
# Inside it, call the user's model with the user's number of BLAS threads, unless other Python threads compute
user_blas_threads = partial(_computing, computes=False)


@contextmanager
def in_this_thread() -> Iterator[None]:
    """Compute in the calling thread alone: a service has a thread or a process for each core already."""
    before, _this_thread.works_alone = _this_thread.works_alone, True
    try:
        yield
    finally:
        _this_thread.works_alone = before


@cache
def _pool() -> ThreadPoolExecutor:
    """One pool a process: starting threads takes longer than explaining a row."""
    return ThreadPoolExecutor(workers() - 1, thread_name_prefix=_NAME)


if hasattr(os, "register_at_fork"):
    # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=_process.keep_this_thread)


# -- objects that threads share ---------------------------------------------------------------------------


class SharedState:
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
    """The ``most`` recently used values, of ``largest`` bytes together; threads may share it.

    The newest stays however large it is. Copies in other processes start empty.
    """

    def __init__(self, most: int, largest: int | None = None) -> None:
        self._most, self._largest = most, largest
        self._lock, self._total = Lock(), 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def get(self, key: K, make: Callable[[], V], size: Callable[[V], int] = lambda _: 0) -> V:
        """The value of a key, made if it is missing; threads that miss it at once may each make it."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        value = make()
        self.put(key, value, size(value))
        return value

    def find(self, key: K) -> V | None:
        """The value of a key, None if it is missing."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: K, value: V, size: int = 0) -> None:
        with self._lock:
            self._total += size - self._values.pop(key, (None, 0))[1]
            self._values[key] = (value, size)
            while len(self._values) > 1 and self._is_full:
                self._total -= self._values.popitem(last=False)[1][1]

    def take(self, key: K) -> V | None:
        with self._lock:
            value, size = self._values.pop(key, (None, 0))
            self._total -= size
            return value

    @property
    def _is_full(self) -> bool:
        return len(self._values) > self._most or (self._largest is not None and self._total > self._largest)

    def __reduce__(self) -> tuple[Any, ...]:
        return LRUCache, (self._most, self._largest)


# Where there is neither a terminal nor a notebook, every refresh is a line of a log
_LOG_SECONDS = 30.0
# Seconds after which a bar is shown, and from which on calls have a price; the share of the calls that is
# offered in their place, and the fewest
_SOON, _PRICED, _CHEAPER, _FEWEST_CALLS = 0.8, 5.0, 4, 200
# The bar of an explainer counts what takes time: rows, or calls of the model
_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} {unit} [{elapsed}, {remaining} left]"


def bars_are_live() -> bool:
    """Whether a bar is written again in its place: in a terminal or a notebook."""
    if "ipykernel" in sys.modules:
        return True
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # it is None, or closed
        return False


class Progress(Protocol):
    def __call__(
        self, total: int, unit: str = "rows", a_row: int = 0, /
    ) -> AbstractContextManager[Callable[[int], object]]:
        """A context whose value is called with numbers of finished steps, ``total`` in all.

        Of calls of the model ``a_row`` may be one row's.
        """


def progress_bar(total: int, what: str, *, unit: str, shown: bool = True, **options: Any) -> Any:
    """The bar of notebooks or terminals, for work that takes more than a second."""
    options = {"delay": 1.0, "leave": False, **options}
    is_open = not getattr(sys.stderr, "closed", False)  # a model may close it
    return tqdm_class()(total=total, desc=what, unit=unit, disable=not (shown and is_open), **options)


def tqdm_class() -> Any:
    """The bar of this place: text in a notebook without ipywidgets, where tqdm.auto would warn."""
    if "ipykernel" in sys.modules and find_spec("ipywidgets") is None:
        from tqdm.std import tqdm
    else:
        from tqdm.auto import tqdm
    return tqdm


def progress_of(*, shown: bool) -> Progress:
    return partial(_bar, shown=shown)


def in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def price(seconds: float, a_row: int) -> str:
    """Get what calls take, and what fewer would; errors fall with the square root of the number of calls."""
    if seconds < _PRICED:
        return ""
    fewer = a_row // _CHEAPER // 100 * 100
    less = in_words(seconds * fewer / a_row)
    more = f"; {less} with max_calls={fewer}, where errors are about twice as large"
    return f"up to about {in_words(seconds)}{more if fewer >= _FEWEST_CALLS else ''}"


def _bar(
    total: int, unit: str = "rows", a_row: int = 0, /, *, shown: bool
) -> AbstractContextManager[Callable[[int], object]]:
    # a log needs none of one row
    is_shown = shown and total > 1 and (total > a_row or bars_are_live())
    return _drawn(total, unit, a_row) if is_shown else nullcontext(lambda _: None)


@contextmanager
def _drawn(total: int, unit: str, a_row: int) -> Iterator[Callable[[int], object]]:
    is_live = bars_are_live()
    options: dict[str, Any] = {"mininterval": 0.1 if is_live else _LOG_SECONDS, "delay": _SOON}
    start, is_priced = monotonic(), not (a_row and is_live)

    def show() -> None:
        bar.last_print_t = bar.start_t + _SOON  # what is shown is cleared in the end
        bar.refresh()

    def advance(count: int) -> None:
        nonlocal is_priced
        if not is_priced and count:
            is_priced = True
            if text := price((monotonic() - start) / count * total, a_row):
                bar.write(text, file=sys.stderr)
        bar.update(count)

    with progress_bar(total, "explaining", unit=unit, bar_format=_FORMAT, **options) as bar:
        # the first steps may take longer
        timer = Timer(_SOON, show)
        timer.daemon = True
        if is_live and not bar.disable:
            timer.start()
        try:
            yield advance
        finally:
            timer.cancel()
