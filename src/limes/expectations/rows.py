"""Many rows of a black box, several at a time, and what is left when that is cut short."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from limes._arrays import Floats
from limes.exceptions import ModelError
from limes.expectations.moments import Moments
from limes.expectations.sampled import SampledExpectation
from limes.expectations.sampling import SampledDesign

# What may cut an explanation short without any fault of ours
_CUT_SHORT = (ModelError, KeyboardInterrupt)


class _Stopped(Exception):  # noqa: N818 - tells threads that another one has failed
    pass


def sampled_rows(
    expectation: SampledExpectation,
    designs: Sequence[SampledDesign],
    rows: Floats,
    *,
    heard: Callable[[int], object],
    workers: int = 1,
) -> tuple[list[Moments | None], BaseException | None]:
    """Moments at rows (n, d), each with its design, and the error that ended it if one did.

    After an error a row has the moments that its calls so far allow, or None. All calls are kept: the same
    rows asked for again go on where they were.
    """
    stop = Event()

    def told(count: int) -> None:
        heard(count)
        if stop.is_set():
            raise _Stopped

    def work(i: int) -> Moments:
        if stop.is_set():
            raise _Stopped
        found = expectation.moments(designs[i], rows[i], heard=told)
        heard(expectation.max_calls - int(found.calls))
        return found

    error: BaseException | None = None
    try:
        _run(work, len(rows), workers, stop)
    except _CUT_SHORT as cause:
        error = cause
    found = [expectation.so_far(design, row) for design, row in zip(designs, rows, strict=True)]
    if error is None:
        expectation.forget()
    return found, error


def _run(work: Callable[[int], Moments], count: int, workers: int, stop: Event) -> None:
    if workers == 1:
        for i in range(count):
            work(i)
        return
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, i) for i in range(count)]
        try:
            for future in futures:
                future.result()
        except BaseException:
            # threads finish the batch they are at, and no other
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
