"""Acts of foreign code in a call, by kinds: each poison is what a model does where it meets its row.

`Poisoned` is a model whose first column names the poison of a row; in other rows it is 0 or 1. The module
imports limes only where it explains, since programs under test load it with the model.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import dataclasses
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

LONG = 1000.0


class Poison(NamedTuple):
    act: Any
    error: str | None = None  # what the row's error says; None where the row is explained


def throw(error):
    def act(table):
        raise error if isinstance(error, BaseException) else error()

    return act


class PrivateError(BaseException):
    pass


class PanicException(BaseException):
    """As PyO3 makes it for Rust's panics."""


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class SilentPanicError(BaseException):
    def __str__(self):
        raise PrivateError("no text")

    __repr__ = __str__


class LeavingTextError(Exception):
    def __str__(self):
        sys.exit(0)


class EndlessTextError(Exception):
    def __str__(self):
        return str(self)


class NumberTextError(Exception):
    def __str__(self):
        return 5


class HostileStr(str):
    __slots__ = ()

    def __format__(self, how):
        raise PrivateError("formatted")

    __len__ = __getitem__ = __add__ = __radd__ = encode = replace = __format__


class HostileTextError(Exception):
    def __str__(self):
        return HostileStr("a text of a private kind")


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    code: int = 7


class Nameless(type):
    @property
    def __name__(cls):
        raise PrivateError("no name")


class NamelessError(Exception, metaclass=Nameless):
    pass


class DisguisedError(BaseException):
    __class__ = property(lambda self: throw(PrivateError("no class"))(None))


class Code:
    def __repr__(self):
        raise PrivateError("no code")


class LockingError(Exception):
    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


class TwoArgumentsError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def looped():
    error, other = ValueError("in a loop"), KeyError("other")
    error.__context__, other.__context__ = other, error
    return error


def deep(table):
    return deep(table) + 1


def alarm(kind):
    """A time limit by a signal, as models set one; in threads, which have no signals, raised as it is."""

    def ring(number, frame):
        raise kind("too slow")

    def act(table):
        if threading.current_thread() is not threading.main_thread():
            ring(0, None)
        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        try:
            time.sleep(60)
        finally:
            signal.signal(signal.SIGALRM, before)

    return act


class Answer:
    """A value that is computed where it is read."""

    def __init__(self, error, shape=(1,)):
        self.error, self.shape = error, shape

    def __len__(self):
        return 1

    def __array__(self, *args, **options):
        raise self.error


def traced(table):
    def trace(frame, event, argument):
        raise PrivateError("traced")

    sys.settrace(trace)


ERRORS = {
    "exception": Poison(throw(RuntimeError("plain")), "raised RuntimeError on a batch of .* rows: plain"),
    "panic": Poison(throw(PanicException("index out of bounds")), "PanicException.*: index out of bounds"),
    "cancelled": Poison(throw(asyncio.CancelledError()), "raised CancelledError"),
    "own base": Poison(throw(PrivateError("my own")), "raised PrivateError.*: my own"),
    "group": Poison(throw(lambda: ExceptionGroup("several", [ValueError("a")])), "ExceptionGroup.*several"),
    "base group": Poison(
        throw(lambda: BaseExceptionGroup("several", [PrivateError("a"), KeyError()])),
        "BaseExceptionGroup.*several",
    ),
    "generator exit": Poison(throw(GeneratorExit()), "raised GeneratorExit"),
    "stop iteration": Poison(throw(StopIteration("end")), "raised StopIteration.*: end"),
    "exit": Poison(throw(SystemExit(0)), r"called sys.exit\(0\)"),
    "exit with a text": Poison(throw(SystemExit("no licence")), r"called sys.exit\('no licence'\)"),
    "exit with a code without a text": Poison(
        throw(lambda: SystemExit(Code())), r"called sys.exit\(\.\.\.\)"
    ),
    "no text": Poison(throw(SilentError()), "raised SilentError.*: an error whose text cannot be made"),
    "no text, base": Poison(throw(SilentPanicError()), "raised SilentPanicError.*text cannot be made"),
    "text that exits": Poison(throw(LeavingTextError()), "raised LeavingTextError.*text cannot be made"),
    "text without end": Poison(throw(EndlessTextError()), "raised EndlessTextError.*text cannot be made"),
    "text that is a number": Poison(throw(NumberTextError()), "raised NumberTextError.*text cannot be made"),
    "text of a private kind": Poison(
        throw(HostileTextError()), "raised HostileTextError.*: a text of a private kind"
    ),
    "frozen": Poison(throw(lambda: FrozenError(7)), "raised FrozenError"),
    "no name": Poison(throw(lambda: NamelessError("anonymous")), "raised an error.*: anonymous"),
    "another class": Poison(throw(lambda: DisguisedError("mask")), "raised DisguisedError"),
    "unpicklable": Poison(throw(lambda: LockingError("locked")), "raised LockingError.*: locked"),
    "pickled one way": Poison(throw(lambda: TwoArgumentsError(1, 2)), "raised TwoArgumentsError.*: 1 and 2"),
    "loop of contexts": Poison(throw(looped), "raised ValueError.*: in a loop"),
    "five megabytes": Poison(throw(lambda: ValueError("x" * 5_000_000)), "raised ValueError"),
    "control characters": Poison(throw(ValueError("\x1b]0;x\x07\0\n\r\u202e")), "raised ValueError"),
    "lone surrogates": Poison(throw(ValueError("caf\udce9 \ud83d")), "raised ValueError.*caf"),
    "recursion": Poison(deep, "raised RecursionError"),
    "memory": Poison(throw(MemoryError("none left")), "raised MemoryError"),
    "end of file": Poison(throw(EOFError("pipe")), "raised EOFError"),
    "broken pipe": Poison(throw(BrokenPipeError("pipe")), "raised BrokenPipeError"),
    "time limit": Poison(alarm(TimeoutError), "raised TimeoutError.*: too slow"),
    "no answer": Poison(lambda table: None, "returned|return"),
    "answer that raises": Poison(lambda table: Answer(RuntimeError("unread")), "unread"),
    "answer that panics": Poison(lambda table: Answer(PanicException("unread")), "PanicException.*unread"),
    "answer that exits": Poison(lambda table: Answer(SystemExit(3)), r"sys.exit\(3\)"),
    "answer without a text": Poison(lambda table: Answer(SilentError()), "text cannot be made"),
    "answer that is not finite": Poison(lambda table: np.full(len(table), np.nan), "finite"),
    "answer of another shape": Poison(lambda table: np.zeros((2, 3)), r"returned shape \(2, 3\)"),
    "tracer": Poison(traced, "raised PrivateError.*: traced"),
}


def thread(target, *arguments, daemon=False):
    threading.Thread(target=target, args=arguments, daemon=daemon).start()


def pool(table):
    executor = ThreadPoolExecutor(1)
    executor.submit(time.sleep, LONG)


def process(table):
    """A process that is no daemon: multiprocessing waits for it at the end of this one."""
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(12.0,)).start()


def program(table):
    subprocess.Popen(["/bin/sleep", "12"])


def to_deleted_folder(table):
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)


def streams(value):
    def act(table):
        sys.stdout = sys.stderr = sys.stdin = value

    return act


def to_streams(act):
    """Return those of a model may be gone already, by another row."""

    def on_each(table):
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, ValueError):
                act(stream)

    return on_each


def closed_descriptors(table):
    for number in (0, 1, 2):
        with suppress(OSError):
            os.close(number)


def redirected(table):
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def forked(error=None, *, waits=False):
    """A fork whose child comes back out of the call, as it does where a model forgets ``os._exit``."""

    def act(table):
        child = os.fork()
        if not child and error is not None:
            raise error
        if child and waits:
            status = os.waitpid(child, 0)[1]
            if os.waitstatus_to_exitcode(status) != (error.code if isinstance(error, SystemExit) else 0):
                raise RuntimeError(f"the child ended with {status}")

    return act


def ignored_signals(table):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)


def low_recursion(table):
    for limit in range(30, 2000):
        try:
            sys.setrecursionlimit(limit)
        except RecursionError:
            continue
        return


def seeds(table):
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - what old libraries do


def silent_hooks(table):
    sys.excepthook = threading.excepthook = sys.unraisablehook = throw(PrivateError("hook"))


def overwrites(table):
    """Writes into the table that it was given, as a step that scales in place does."""
    if isinstance(table, np.ndarray):
        table[:] = -1.0
    else:
        table.iloc[:, 1:] = -1.0


STATES = {
    "thread": Poison(lambda table: thread(time.sleep, LONG)),
    "daemon": Poison(lambda table: thread(time.sleep, LONG, daemon=True)),
    "thread that raises": Poison(lambda table: thread(throw(PrivateError("aside")), None)),
    "thread that exits": Poison(lambda table: thread(sys.exit, 9)),
    "pool of threads": Poison(pool),
    "process": Poison(process),
    "program": Poison(program),
    "end that waits": Poison(lambda table: atexit.register(time.sleep, LONG)),
    "end that exits": Poison(lambda table: atexit.register(os._exit, 9)),
    "directory": Poison(lambda table: os.chdir("/")),
    "deleted directory": Poison(to_deleted_folder),
    "streams that are None": Poison(streams(None)),
    "streams that are objects": Poison(streams(object())),
    "closed streams": Poison(to_streams(lambda stream: stream.close())),
    "detached streams": Poison(to_streams(lambda stream: stream.detach())),
    "closed descriptors": Poison(closed_descriptors),
    "redirected": Poison(redirected),
    "prints": Poison(to_streams(lambda stream: stream.write("p" * 100_000 + "\n"))),
    "errors of numpy": Poison(lambda table: np.seterr(all="raise")),
    "warnings that are errors": Poison(lambda table: warnings.simplefilter("error")),
    "low limit of recursion": Poison(low_recursion),
    "rights of files": Poison(lambda table: os.umask(0o777)),
    "ignored signals": Poison(ignored_signals),
    "no environment": Poison(lambda table: os.environ.clear()),
    "seeds": Poison(seeds),
    "hooks": Poison(silent_hooks),
    "writes into its table": Poison(overwrites),
    "fork": Poison(forked()),
    "fork that waits": Poison(forked(waits=True)),
    "fork that exits": Poison(forked(SystemExit(5), waits=True)),
    "fork that raises": Poison(forked(RuntimeError("child"))),
    "fork that panics": Poison(forked(PanicException("child"))),
}
# A program of others keeps what these do: its streams, files and end are its own
ENDS = ("thread", "pool of threads", "process", "program", "end that waits", "end that exits")
KEPT = (*ENDS, "rights of files", "warnings that are errors")
# In a program of others these count as the program's: its handlers look like the model's
OWNED = {
    "interrupt": Poison(throw(KeyboardInterrupt("key")), "raised KeyboardInterrupt"),
    "time limit of another base": Poison(alarm(PrivateError), "raised PrivateError.*: too slow"),
    "time limit that exits": Poison(alarm(SystemExit), r"called sys.exit\('too slow'\)"),
}


def end_in_c(table):
    ctypes.CDLL(None).exit(0)


def crash(table):
    ctypes.string_at(0)


def close_all(table):
    os.closerange(0, 256)


EXITS = {
    "os._exit(0)": Poison(lambda table: os._exit(0), r"ends its worker \(exit code 0\)"),
    "os._exit(9)": Poison(lambda table: os._exit(9), r"ends its worker \(exit code 9\)"),
    "exit in C": Poison(end_in_c, r"ends its worker \(exit code 0\)"),
    "abort": Poison(lambda table: os.abort(), "SIGABRT"),
    "crash": Poison(crash, "SIGSEGV"),
    "kill": Poison(lambda table: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
    "all descriptors": Poison(close_all, "ends its worker"),
}
ALL = {**ERRORS, **STATES, **OWNED, **EXITS}
# The first column of a poison's row
CODES = {name: 1000.0 + i for i, name in enumerate(ALL)}
_NAMES = {code: name for name, code in CODES.items()}


class Poisoned:
    """A model that acts where it meets the row of a poison, and answers the same without it."""

    def __init__(self, *, calm=False):
        self.calm = calm

    def predict(self, table):
        rows = np.array(table, dtype=float)
        answer = None
        for code in [] if self.calm else rows[np.isin(rows[:, 0], [*_NAMES]), 0]:
            answer = ALL[_NAMES[code]].act(table)
            if not isinstance(answer, Answer | np.ndarray) and answer is not None:
                answer = None
            if ALL[_NAMES[code]].error is not None:
                return answer
        return np.minimum(rows[:, 1], 0.5) * rows[:, 2] + (rows[:, 0] > 0)


# -- tables of poisons ---------------------------------------------------------------------------------------


def _numbers(seed, rows):
    rng = np.random.default_rng(seed)
    columns = {"code": rng.integers(0, 2, rows) * 1.0, "a": rng.normal(size=rows), "b": rng.normal(size=rows)}
    return pd.DataFrame(columns)


BACKGROUND = _numbers(0, 60)
# Calm rows before each row of a poison, and one after the last
BETWEEN = 3


def rows_of(names):
    rows = _numbers(1, (BETWEEN + 1) * len(names) + 1)
    rows.loc[BETWEEN :: BETWEEN + 1, "code"] = [CODES[name] for name in names]
    return rows


def explained(model, rows):
    import limes

    explainer = limes.TabularExplainer(model, BACKGROUND, law="joint", max_calls=256)
    return limes.scale.explain_frame(explainer, rows)


def check(lines, calm, names):
    """Hold a table against that of a calm model: poisons have their errors, other rows the same bits."""
    assert lines["row"].tolist() == list(range((BETWEEN + 1) * len(names) + 1))
    failed = {
        (BETWEEN + 1) * i + BETWEEN: name for i, name in enumerate(names) if ALL[name].error is not None
    }
    assert lines.loc[lines["error"].notna(), "row"].tolist() == [*failed], lines["error"].dropna().tolist()
    for row, name in failed.items():
        assert re.search(ALL[name].error, lines["error"][row]), (name, lines["error"][row])
        assert lines["error"][row].isprintable(), name
    good, expected = (
        table[lines["error"].isna()].astype({"error": object}).reset_index(drop=True)
        for table in (lines, calm)
    )
    pd.testing.assert_frame_equal(good, expected, check_exact=True)
