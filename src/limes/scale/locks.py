"""A lock on a file, which the operating system frees when the process that holds it ends, however it ends."""

from __future__ import annotations

import sys
from typing import IO, Any

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[Any]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: IO[Any]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def locked(file: IO[Any]) -> bool:
    """Take the lock of an open file, until it is closed; False where another process has it."""
    try:
        _lock(file)
    except (BlockingIOError, PermissionError):
        return False
    return True
