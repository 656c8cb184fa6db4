"""What the user's code did when a call of it failed: it raised an error, or tried to end the program.

``SystemExit``, ``GeneratorExit`` and ``KeyboardInterrupt`` pass through ``except Exception``, and end a
program without a word. Raised by a model they are failures of the model like any other. Raised by a signal
they are the program's: Ctrl-C, or SIGTERM with a handler that calls ``sys.exit``.
"""

from __future__ import annotations

import signal
from functools import partial
from threading import current_thread, main_thread
from traceback import walk_tb
from types import CodeType, FunctionType, MethodType
from typing import Any

# What a call of the user's code may raise on its own account
FAILURES = (Exception, SystemExit, GeneratorExit, KeyboardInterrupt)


def failure_text(error: BaseException, place: str = "") -> str:
    """Return what the user's code did: "raised KeyError on a batch of 3 rows: 'age'".

    Raises
    ------
    BaseException
        The error itself, if it is an exit that the program was sent by a signal.
    """
    place = place and f" {place}"
    if isinstance(error, Exception):
        return f"raised {type(error).__name__}{place}: {error}"
    if _is_of_signal(error):
        raise error
    if isinstance(error, SystemExit):
        code = "" if error.code is None else repr(error.code)
        return f"called sys.exit({code}){place}"
    return f"raised {type(error).__name__}{place}"


def _is_of_signal(error: BaseException) -> bool:
    """Return whether a handler of a signal raised an exit; only the main thread runs handlers.

    Python's handler of Ctrl-C has no frame: while it is in force, a KeyboardInterrupt is the user's.
    """
    if current_thread() is not main_thread():
        return False
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    if isinstance(error, KeyboardInterrupt) and signal.default_int_handler in handlers:
        return True
    codes = {_code(handler) for handler in handlers if callable(handler)}
    return any(frame.f_code in codes for frame, _ in walk_tb(error.__traceback__))


def _code(handler: Any) -> CodeType | None:
    while isinstance(handler, partial):
        handler = handler.func
    if not isinstance(handler, FunctionType | MethodType):
        handler = type(handler).__call__  # an object; it has no code if it is of C
    code: CodeType | None = getattr(handler, "__code__", None)
    return code
