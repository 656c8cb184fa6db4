"""Many rows of a black box, several at a time, and what is left when that is cut short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from limes._arrays import Floats
from limes._streams import fingerprint
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
    predictions: Floats,
    *,
    heard: Callable[[int], object],
    workers: int = 1,
) -> tuple[list[Moments | None], BaseException | None]:
    """Moments at rows (n, d), each with its design, and the error that ended it if one did.

    ``predictions`` (n, ...) are the model's answers at the rows. Equal rows are sampled once. After an error
    a row has the moments that its calls so far allow, or None. All calls are kept: the same rows asked for
    again go on where they were. What is known of a row belongs to this call: others may run beside it.
    """
    keys = [fingerprint(row) for row in rows]
    equal = Counter(keys)
    first = list({key: i for i, key in reversed(list(enumerate(keys)))}.values())[::-1]
    stop = Event()

    def progressed(count: int) -> None:
        heard(count)
        if stop.is_set():
            raise _Stopped

    error: BaseException | None = None
    with expectation.rows(list(equal)) as states:

        def work(i: int) -> None:
            if stop.is_set():
                raise _Stopped
            moments = expectation.finished(
                designs[i], keys[i], states[keys[i]], heard=progressed, prediction=predictions[i]
            )
            heard(equal[keys[i]] * expectation.max_calls - int(moments.calls))

        try:
            _run(work, first, workers, stop)
        except _CUT_SHORT as cause:
            error = cause
        known = {
            keys[i]: expectation.so_far(designs[i], keys[i], states[keys[i]], prediction=predictions[i])
            for i in first
        }
    return [known[key] for key in keys], error


def _run(work: Callable[[int], None], rows: Sequence[int], workers: int, stop: Event) -> None:
    if workers == 1:
        for i in rows:
            work(i)
        return
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, i) for i in rows]
        try:
            for future in futures:
                future.result()
        except BaseException:
            # threads finish the batch they are at, and no other
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
