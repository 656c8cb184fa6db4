"""One line that says what is being measured, and since when."""

from __future__ import annotations

import sys
import time

_START = time.monotonic()


def say(what: str) -> None:
    """Overwrite the line on a terminal; add one to a log."""
    minutes, seconds = divmod(int(time.monotonic() - _START), 60)
    clear, end = ("\r\x1b[K", "") if sys.stderr.isatty() else ("", "\n")
    print(f"{clear}[{minutes:02}:{seconds:02}] {what}", end=end, file=sys.stderr, flush=True)
