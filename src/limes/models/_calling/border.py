"""The border around foreign code: whatever a model does in a call, the program goes on after the call.

A model may raise anything: ``SystemExit``, ``GeneratorExit`` and ``KeyboardInterrupt`` pass through ``except
Exception`` and end a program without a word, and so do errors of libraries that derive from
``BaseException``, such as the panics of Rust and asyncio's ``CancelledError``. Raised by a model they are
failures of the model like any other, also where their text cannot be made. Raised by a handler of a signal
they are the program's: Ctrl-C, or SIGTERM with a handler that calls ``sys.exit``.

A child that a model forked, and that comes back out of the call, would carry on the program beside its
parent: it ends here.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import current_thread, main_thread
from traceback import walk_tb
from types import CodeType, FunctionType, MethodType, TracebackType
from typing import Any

import numpy as np

from limes._surroundings import process_is_owned, restore_process

# What a call of the user's code may raise on its own account; `failure_text` raises a signal's own again
FAILURES = (BaseException,)
# In place of a text that cannot be made
_NO_TEXT = "an error whose text cannot be made"
# The folder of limes, whose handlers of signals are the program's
_HOME = str(Path(__file__).parents[2])


class Border:
    """A context around a call of foreign code, inside of the ``try`` that reports its failure.

    It is no generator: the context of one sets attributes of an error, which the error may refuse.
    """

    def __enter__(self) -> None:
        self._process = os.getpid()
        self._recursion = sys.getrecursionlimit()
        self._numpy = np.errstate()
        self._numpy.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if os.getpid() != self._process:
            os._exit(_code_of(error))
        if sys.getrecursionlimit() < self._recursion:  # which the rest of the program needs
            sys.setrecursionlimit(self._recursion)
        self._numpy.__exit__(kind, error, traceback)
        restore_process()


def _code_of(error: BaseException | None) -> int:
    """The exit code of a child that returned from a call, or raised this."""
    code: Any = error
    if error is not None and _is(error, SystemExit):
        code = getattr(error, "code", None)
    return code & 0xFF if type(code) is int else int(code is not None)


def _is(error: BaseException, kind: type[BaseException]) -> bool:
    """As ``isinstance``, which would ask the error for its class."""
    return issubclass(type(error), kind)


def failure_text(error: BaseException, place: str = "") -> str:
    """Such as "raised KeyError on a batch of 3 rows: 'age'"; raises what a handler of a signal raised."""
    place = place and f" {place}"
    if _is_of_signal(error):
        raise error
    if _is(error, SystemExit):
        code = _total(lambda: "" if error.code is None else repr(error.code), "...")  # type: ignore[attr-defined]
        return f"called sys.exit({code}){place}"
    name, text = _total(lambda: type(error).__name__, "an error"), text_of(error)
    return f"raised {name}{place}{text and f': {text}'}"


def text_of(error: BaseException) -> str:
    """The text of an error, whatever making it does."""
    return _total(lambda: str(error), _NO_TEXT)


def _total(make: Callable[[], str], otherwise: str) -> str:
    try:
        text = make()
    except FAILURES as error:
        if _is_of_signal(error):
            raise
        return otherwise
    return "".join((text,))  # without methods that a subclass of str may have


def _is_of_signal(error: BaseException) -> bool:
    """Whether a handler of a signal raised an exit; only the main thread runs handlers."""
    if _is(error, Exception) or current_thread() is not main_thread():
        return False
    handlers = [handler for handler in map(signal.getsignal, signal.valid_signals()) if callable(handler)]
    # Python's handler of Ctrl-C has no frame: while it is in force, a KeyboardInterrupt is the user's
    if _is(error, KeyboardInterrupt) and signal.default_int_handler in handlers:
        return True
    codes = [code for handler in handlers if (code := _code(handler)) is not None]
    if process_is_owned():  # others are the model's, such as that of a time limit
        codes = [code for code in codes if code.co_filename.startswith(_HOME)]
    return any(frame.f_code in codes for frame, _ in walk_tb(error.__traceback__))


def _code(handler: Any) -> CodeType | None:
    while isinstance(handler, partial):
        handler = handler.func
    if not isinstance(handler, FunctionType | MethodType):
        handler = type(handler).__call__  # an object; it has no code if it is of C
    code: CodeType | None = getattr(handler, "__code__", None)
    return code
