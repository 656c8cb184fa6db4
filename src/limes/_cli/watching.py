"""A process that watches the process of a command, so that a model cannot end it unnoticed.

A model may call ``os._exit(0)``, or C code behind it ``exit`` or ``abort``: no Python code runs after that,
and the exit code is the model's. So the command runs in a fork, which states its exit code over a pipe when
it has come to its end. One that ends without a statement has failed. If it was at rows of a table, it is
started again: it resumes from the finished parts, explains rows by a worker under supervision, and searches
for those that end it (`limes.scale._processes`). One that has stated its exit code, and does not end, is
ended: a model may leave a thread for which Python waits.

The fork is made before any library is imported, hence in a millisecond, and without threads. Where there is
no fork (Windows), the command runs in this process, and rows of tables always under supervision.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from select import select
from threading import Thread
from time import monotonic, sleep
from types import FrameType

from limes._surroundings import own_process, restore_process

# Stated in place of an exit code: this process explains rows, and a second one may resume
_AT_ROWS = 255
# Exit code of a command that was stopped by Ctrl-C and did not expect it
_INTERRUPTED = 130
# Signals that are passed on to the watched process, and that end it as they end any other
_STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
# Exit code of a command that SIGTERM ended, as shells state it
TERMINATED = 143
# Ctrl-C reaches a terminal's processes at once, so that the watched one is sent it twice, in seconds
_TWICE = 1.0
# Seconds that a process may take to end after it has stated its exit code, and between two looks at it
_GRACE, _LOOK, _GLANCE = 5.0, 1.0, 0.01


class _State:
    """For this process: where it states its exit code, if it is watched, and whether it is the second one."""

    statements: int | None = None
    is_second = False
    interrupted = -_TWICE
    terminated = inf  # when the first SIGTERM came


class Terminated(SystemExit):
    """The exception that SIGTERM raises within `ending_in_order`: an exit, which no model's error hides."""


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Make SIGTERM an exception, as Ctrl-C is, which releases locks and workers; a second one kills."""
    process = os.getpid()

    def terminate(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of handlers
        if os.getpid() != process or monotonic() - _State.terminated >= _TWICE:  # a fork of the model's
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        if _State.terminated == inf:
            _State.terminated = monotonic()
            raise Terminated(TERMINATED)

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        _State.terminated = inf
        signal.signal(signal.SIGTERM, before)


def rows_are_supervised() -> bool:
    """Whether rows must be explained by another process; if not, a second one may be started."""
    if _State.statements is None:
        return not hasattr(os, "fork")
    if not _State.is_second:
        os.write(_State.statements, bytes([_AT_ROWS]))
    return _State.is_second


def watched(run: Callable[[], int]) -> int:
    """The exit code of a command that is run in a watched process."""
    if not hasattr(os, "fork"):
        code = run()
        Thread(target=_end_late, args=(code,), daemon=True).start()
        return code
    if "numpy" in sys.modules:  # there may be threads, which a fork would lose
        return run()
    stated, code = _run_watched(run)
    if stated == [_AT_ROWS]:
        _warn(
            f"the process that explained rows ended ({_how(code)}). Finished parts are kept; a worker under "
            "supervision explains the other rows, and rows that end it are searched for"
        )
        _State.is_second = True
        stated, code = _run_watched(run)
    if stated and stated[-1] != _AT_ROWS:
        return stated[-1]
    _warn(
        f"the model, a library of it, or another program ended the process ({_how(code)}) before the command "
        "came to its end"
    )
    return 1


def _run_watched(run: Callable[[], int]) -> tuple[list[int], int]:
    """Return what a command in a fork stated, and its exit code, negative after a signal."""
    reading, writing = os.pipe()
    lifeline, life = os.pipe()  # is closed when this process ends, however it ends
    stops = [number for number in _STOPS if signal.getsignal(number) != signal.SIG_IGN]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, stops)  # until both processes handle them
    child = os.fork()
    if not child:
        os.close(reading)
        os.close(life)
        _State.statements = writing
        if signal.SIGINT in stops:
            signal.signal(signal.SIGINT, _interrupt)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _serve(run, writing, lifeline)
    os.close(writing)
    os.close(lifeline)
    before = {number: signal.signal(number, lambda n, _: _send(child, n)) for number in stops}
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    stated, status = _awaited(child, reading)
    for number, handler in before.items():
        signal.signal(number, handler)
    os.close(reading)
    os.close(life)
    code = os.waitstatus_to_exitcode(status)
    if -code in stops and stated[-1:] in (b"", bytes([_AT_ROWS])):
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)  # as the watched process was ended
    return [*stated], code


def _awaited(child: int, reading: int) -> tuple[bytes, int]:
    """Wait for the end of a process; return what it stated, and its status.

    Its pipe may close before it ends, as a model may close it, and stay open after that, as a process that
    the model started may have it.
    """
    stated, is_open, deadline = b"", True, inf
    ended = status = 0
    while True:
        if not ended:
            ended, status = os.waitpid(child, os.WNOHANG)
        wait = 0.0 if ended else min(_LOOK, max(0.0, deadline - monotonic()))
        if is_open and select([reading], [], [], wait)[0]:
            new = os.read(reading, 10)
            stated, is_open = stated + new, bool(new)
            if new and new[-1] != _AT_ROWS:
                deadline = monotonic() + _GRACE
        elif ended:
            return stated, status
        elif not is_open:
            sleep(_GLANCE)
        if monotonic() >= deadline and not ended:
            _send(child, signal.SIGKILL)


def _send(child: int, number: int) -> None:
    with suppress(ProcessLookupError):  # a signal to both may have ended it already
        os.kill(child, number)


def _serve(run: Callable[[], int], statements: int, lifeline: int) -> None:
    """Run the command, state its exit code, and leave; end with the process that watches."""

    def watch() -> None:
        os.read(lifeline, 1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
    own_process()
    process = os.getpid()
    try:
        code = run()
        if os.getpid() != process:  # a fork, which must not speak for the command
            os._exit(code)
        restore_process()
        if sys.stdout is not None:  # as it is where the command began without one
            sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - printed as Python does, and stated
        restore_process()
        traceback.print_exc()
        code = _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    os.write(statements, bytes([code]))
    raise SystemExit(code)


def _end_late(code: int) -> None:
    sleep(_GRACE)
    os._exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of handlers
    """Raise KeyboardInterrupt as Python does; this frame tells Ctrl-C from what a model raises."""
    before, _State.interrupted = _State.interrupted, monotonic()
    if _State.interrupted - before >= _TWICE:
        raise KeyboardInterrupt


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    return (
        f"signal {-code}, {signal.Signals(-code).name}" if -code in {*signal.Signals} else f"signal {-code}"
    )


def _warn(text: str) -> None:
    sys.stderr.write(f"\nlimes: {text}\n")  # a progress bar may have begun the line
