"""One run at a time in a folder.

On this machine the lock is one of the operating system, which frees the lock of a dead process. Stores have
no locks: there the lock is a lease, an object with the run's token and a count that a thread raises every few
seconds. A lease whose count stands still belongs to a dead run, and is taken over; clocks are never compared.
If two runs take the lease at the same moment, both write it, and the run that then reads the other's token
stops. Should both continue, they write the same bytes: a worker refuses a part of another run.
"""

from __future__ import annotations

from limes._checks import require

require("pyarrow", "limes.scale for files", package="'limes[scale]'")

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from time import sleep
from uuid import uuid4

from limes.exceptions import InputError
from limes.scale._stores import Place, StorePath

# Seconds between two renewals of a lease; a lease that stands still for this many renewals is dead
_RENEWAL, _DEAD = 5.0, 2.5


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Hold the lock of a folder.

    Raises
    ------
    InputError
        Another run holds it.
    OSError
        The lock cannot be written.
    """
    if isinstance(place, StorePath):
        lease = _Lease(place)
        lease.take()
        try:
            yield
        finally:
            lease.release()
        return
    with _file_lock(place):
        yield


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    try:
        lock = FileLock(path, timeout=0).acquire()
    except Timeout:
        raise _busy(path) from None
    with lock:
        yield


def _busy(place: Place) -> InputError:
    folder = str(place).rpartition("/")[0]
    return InputError(f"another run is at work in {folder}: wait until it ends, or pass another folder")


class _Lease:
    """The right to write into a folder of a store."""

    def __init__(self, place: StorePath) -> None:
        self._place = place
        self._token = uuid4().hex
        self._count = 0
        self._stop = Event()
        self._lost = False
        self._thread = Thread(target=self._renew, daemon=True)

    def take(self) -> None:
        """Take the lease; raise InputError if a live run holds it."""
        holder = self._read()
        if holder is not None:
            sleep(_RENEWAL * _DEAD)
            if self._read() not in (holder, None):
                raise _busy(self._place)
        self._write()
        read = self._read()
        if read is None or read[0] != self._token:
            raise _busy(self._place)
        self._thread.start()

    def release(self) -> None:
        """Release the lock; a lease in a store that does not answer expires."""
        self._stop.set()
        self._thread.join()
        if not self._lost:
            with suppress(OSError):
                self._place.unlink(missing_ok=True)

    def _renew(self) -> None:
        while not (self._lost or self._stop.wait(_RENEWAL)):
            with suppress(OSError):  # a store may not answer for a moment
                holder = self._read()
                self._lost = holder is not None and holder[0] != self._token
                if not self._lost:
                    self._write()

    def _read(self) -> tuple[str, int] | None:
        try:
            token, count = json.loads(self._place.read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):  # not the lease of a run
            return "", 0
        return token, count

    def _write(self) -> None:
        self._count += 1
        self._place.write_whole(json.dumps([self._token, self._count]).encode())
