"""Explain each decision online: rows of concurrent requests are explained together.

One row costs a service what its model costs, and 64 rows at once a few times that: a `Batcher` collects the
rows that arrive within a few milliseconds. See the pages "Explain each decision online" and
"Decisions explained by a service" of the documentation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from queue import Empty, Full, Queue
from threading import Lock, Thread, current_thread
from time import monotonic
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeAlias

from limes._checks import check_count, check_size
from limes._explainers.tables.compiled import CompiledExplainer, PlainContributions
from limes._explainers.tabular import TabularExplainer
from limes.exceptions import InputError, LimesError

__all__ = ["Batcher", "BusyError", "CompiledExplainer", "PlainContributions"]


class BusyError(LimesError):
    """More requests wait than `Batcher` was allowed to keep: answer "try again later" (HTTP 503).

    Examples
    --------
    >>> import limes.serve
    >>> issubclass(limes.serve.BusyError, limes.exceptions.LimesError)
    True
    """


class _Request(NamedTuple):
    rows: Any
    answer: Future[PlainContributions]


# What ends the thread
_END = None
_Queue: TypeAlias = "Queue[_Request | None]"


class Batcher:
    """Collect rows of concurrent requests, and explain them together in one thread.

    A request waits at most ``wait`` seconds for others, and then for the rows that are being explained. Its
    numbers are those that it would have alone, and an error in one request is that request's.

    Parameters
    ----------
    explain : CompiledExplainer
        What ``explainer.compiled()`` returned.
    max_rows : int
        Most requests that are explained together.
    wait : float
        Seconds to wait for further requests after the first one; 0 takes those that are there.
    max_waiting : int
        Most requests that wait; more raise a `BusyError`.

    Raises
    ------
    InputError
        If ``explain`` is something else, or a number is out of range.

    Examples
    --------
    >>> import limes.serve
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> explainer = limes.TabularExplainer(Ridge(alpha=0).fit(X, [0, 2, 1, 3]), X)
    >>> with limes.serve.Batcher(explainer.compiled()) as batcher:
    ...     answers = [batcher.submit(row) for row in X]
    ...     [answer.result().predictions.round(9).tolist() for answer in answers]
    [[0.0], [2.0], [1.0], [3.0]]
    """

    def __init__(
        self, explain: CompiledExplainer, *, max_rows: int = 64, wait: float = 0.005, max_waiting: int = 4096
    ) -> None:
        if isinstance(explain, TabularExplainer):
            raise InputError("pass explainer.compiled(), and not the explainer")
        if not isinstance(explain, CompiledExplainer):
            raise InputError(
                f"explain is a {type(explain).__name__}: pass what explainer.compiled() returned"
            )
        self._explain = explain
        self._max_rows = check_count("max_rows", max_rows)
        self._wait = check_size("wait", wait, zero=True)
        self._waiting: _Queue = Queue(check_count("max_waiting", max_waiting))
        self._lock, self._thread, self._is_closed = Lock(), None, False

    _thread: Thread | None

    def submit(self, row: Any) -> Future[PlainContributions]:
        """Ask for the contributions of a row; the future has them, or the row's error.

        Parameters
        ----------
        row
            As ``CompiledExplainer`` takes it.

        Raises
        ------
        BusyError
            If ``max_waiting`` requests wait already.
        InputError
            If the batcher was closed.
        """
        request = _Request(row, Future())
        with self._lock:
            if self._is_closed:
                raise InputError("the batcher was closed")
            if self._thread is None or not self._thread.is_alive():
                # in the process that serves: a server may have forked after the batcher was made, or used
                self._waiting = Queue(self._waiting.maxsize)
                self._thread = Thread(target=self._work, name="limes-batcher", daemon=True)
                self._thread.start()
            try:
                self._waiting.put_nowait(request)
            except Full:
                raise BusyError(f"{self._waiting.maxsize:,} requests wait already: try again later") from None
        return request.answer

    def __call__(self, row: Any, timeout: float | None = None) -> PlainContributions:
        """Contributions of a row, waited for in this thread.

        Parameters
        ----------
        row
            As ``CompiledExplainer`` takes it.
        timeout
            Seconds to wait; None: as long as it takes.

        Raises
        ------
        TimeoutError
            If they take longer; and as `submit`, and the row's own error.
        """
        answer = self.submit(row)
        try:
            return answer.result(timeout)
        except TimeoutError:
            answer.cancel()
            raise

    async def explain(self, row: Any, timeout: float | None = None) -> PlainContributions:
        """Contributions of a row, awaited in asyncio's loop.

        Parameters
        ----------
        row
            As ``CompiledExplainer`` takes it.
        timeout
            Seconds to wait; None: as long as it takes.

        Raises
        ------
        TimeoutError
            If they take longer; and as `submit`, and the row's own error.
        """
        # a request that was given up is not computed any more
        return await asyncio.wait_for(asyncio.wrap_future(self.submit(row)), timeout)

    def close(self) -> None:
        """Answer the requests that wait, and end."""
        with self._lock:
            self._is_closed, thread = True, self._thread
        if thread is not None and thread.is_alive():
            self._waiting.put(_END)
            if thread is not current_thread():  # a callback of a request closes it
                thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _work(self) -> None:
        is_open = True
        while is_open:
            requests, is_open = self._collected()
            self._answer(requests)

    def _collected(self) -> tuple[list[_Request], bool]:
        """Requests to be explained together, and whether others may follow."""
        requests: list[_Request] = []
        request = self._waiting.get()
        until = monotonic() + self._wait
        while request is not _END:
            requests.append(request)
            remaining = until - monotonic()
            try:
                if len(requests) == self._max_rows:
                    return requests, True
                request = (
                    self._waiting.get(timeout=remaining) if remaining > 0 else self._waiting.get_nowait()
                )
            except Empty:
                return requests, True
        return requests, False

    def _answer(self, requests: Sequence[_Request]) -> None:
        # cancelled ones are not computed
        wanted = [request for request in requests if request.answer.set_running_or_notify_cancel()]
        if not wanted:
            return
        try:
            results: Sequence[Any] = self._explain.each([request.rows for request in wanted])
        except BaseException as error:  # noqa: BLE001 - else their callers would wait for ever
            results = [error] * len(wanted)
        for request, result in zip(wanted, results, strict=True):
            if isinstance(result, BaseException):
                request.answer.set_exception(result)
            else:
                request.answer.set_result(result)
