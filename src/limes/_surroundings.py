"""The state of a process that calls of a model may change, and that a run needs: it is put back.

This holds for a process that works for limes alone, a command or one of its workers. In a program of others
several threads may change standard streams at once, and a change does not state whose it is: there all stay
as they are. The working directory stays as the model sets it in either, since its next call may rely on it:
limes makes its own paths absolute before it calls a model.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from typing import Any, TextIO

# Standard streams that limes writes to, and their descriptors
_STREAMS = {"stdout": 1, "stderr": 2}


class Surroundings:
    """Standard streams, the rights of new files, and which warnings are errors."""

    def __init__(self) -> None:
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._filters = [*warnings.filters]
        self._streams: dict[str, TextIO | None] = {name: getattr(sys, name) for name in _STREAMS}
        self._copies: dict[int, int] = {}  # of descriptors
        for number in _STREAMS.values():
            with suppress(OSError):  # it was closed before the process began
                self._copies[number] = os.dup(number)

    def restore(self) -> None:
        """Put all of it back, as far as that is possible."""
        os.umask(self._umask)
        # filters that libraries add when they are imported stay
        if any(kind[0] == "error" and kind not in self._filters for kind in warnings.filters):
            warnings.filters = [
                kind for kind in warnings.filters if kind[0] != "error" or kind in self._filters
            ]
        for number, copy in self._copies.items():
            with suppress(OSError):  # the model closed all descriptors
                os.dup2(copy, number)
        for name, number in _STREAMS.items():
            stream = self._streams[name]
            if stream is not None and not _is_usable(stream):
                stream = self._streams[name] = _stream_of(number)
            setattr(sys, name, stream)


def _is_usable(stream: Any) -> bool:
    try:
        return not stream.closed
    except ValueError:  # its buffer was detached
        return False


def _stream_of(descriptor: int) -> TextIO | None:
    with suppress(OSError):
        return os.fdopen(os.dup(descriptor), "w", buffering=1, errors="backslashreplace")
    return None


class _Process:
    """The state of the process; its surroundings are None in a program of others."""

    surroundings: Surroundings | None = None


def own_process() -> None:
    """State that this process works for limes alone."""
    _Process.surroundings = Surroundings()


def process_is_owned() -> bool:
    return _Process.surroundings is not None


def restore_process() -> None:
    """Put back what calls of a model changed, if the process works for limes alone."""
    if _Process.surroundings is not None:
        _Process.surroundings.restore()
