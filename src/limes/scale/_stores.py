"""Files of this machine and objects of stores, S3, Google Cloud Storage and Azure, by the same operations.

A `StorePath` has the part of `pathlib.Path` that tables need, so that code is written once for a `Place`,
which is one of the two. Both appear whole or not at all: a file is written beside its place and renamed, an
object becomes visible by one put, or by the completion of its upload in pieces.

Stores are those of ``pyarrow.fs``, with its options after a question mark, credentials from the environment:
``s3://bucket/folder?region=eu-west-1&endpoint_override=http://127.0.0.1:9000``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import Event, Thread
from time import sleep
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlsplit
from urllib.request import url2pathname
from uuid import uuid4

import pyarrow as pa
import pyarrow.fs as pa_fs

from limes._checks import is_secret, listed, without_credentials
from limes.exceptions import InputError

T = TypeVar("T")

# Schemes of stores that pyarrow.fs knows, whose objects appear whole
_STORES = ("s3", "gs", "gcs", "abfs", "abfss")
_ELSEWHERE = "credentials are read from the environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
# Prefix of files that are not whole yet; readers of Parquet folders skip names with a leading point
BESIDE = ".unfinished-"
# Bytes that are hashed at a time
_BLOCK = 4 << 20


@lru_cache(maxsize=16)
def _filesystem(url: str) -> tuple[Any, str]:
    """The file system of a bucket's URL, and the bucket's path in it."""
    try:
        system, path = pa_fs.FileSystem.from_uri(url)
    except (OSError, ValueError, NotImplementedError) as error:  # pyarrow's errors are of these types too
        raise InputError(
            f"{_without_secrets(url)} is no store that can be used ({without_credentials(str(error))}): pass "
            "s3://bucket/folder, with pyarrow's options after a question mark, and credentials in the "
            "environment"
        ) from error
    return system, path.strip("/")


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@dataclass(frozen=True, order=True)
class StorePath:
    """An object of a store, or a folder of objects; its methods are those of `pathlib.Path`."""

    key: str  # bucket and name of the object
    url: str  # of its bucket, with the options with which its store is opened

    @property
    def filesystem(self) -> Any:
        return _filesystem(self.url)[0]

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.key.split("/"))

    @property
    def name(self) -> str:
        return self.parts[-1]

    @property
    def parent(self) -> StorePath:
        return StorePath(self.key.rpartition("/")[0], self.url)

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix

    def __truediv__(self, name: str) -> StorePath:
        return StorePath(f"{self.key}/{name}", self.url)

    def __str__(self) -> str:
        return f"{urlsplit(self.url).scheme}://{self.key}"

    def absolute(self) -> StorePath:
        return self

    resolve = absolute

    def is_dir(self) -> bool:
        return bool(self.filesystem.get_file_info(self.key).type == pa_fs.FileType.Directory)

    def is_file(self) -> bool:
        return bool(self.filesystem.get_file_info(self.key).type == pa_fs.FileType.File)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        pass  # a store has no folders

    def stat(self) -> SimpleNamespace:
        info = self.filesystem.get_file_info(self.key)
        if info.type != pa_fs.FileType.File:
            raise FileNotFoundError(f"no object {self}")
        return SimpleNamespace(st_size=info.size, st_mtime_ns=info.mtime_ns)  # the time of its put

    def iterdir(self) -> Iterator[StorePath]:
        selector = pa_fs.FileSelector(self.key, allow_not_found=True)
        return (StorePath(info.path, self.url) for info in self.filesystem.get_file_info(selector))

    def files_below(self) -> Iterator[StorePath]:
        selector = pa_fs.FileSelector(self.key, recursive=True, allow_not_found=True)
        below = self.filesystem.get_file_info(selector)
        return (StorePath(info.path, self.url) for info in below if info.is_file)

    def read_bytes(self) -> bytes:
        with streamed(self) as stream:
            content: bytes = stream.read()
        return content

    def unlink(self, *, missing_ok: bool = False) -> None:
        try:
            self.filesystem.delete_file(self.key)
        except FileNotFoundError:
            if not missing_ok:
                raise


Place: TypeAlias = Path | StorePath


def place_of(where: str | Place) -> Place:
    if isinstance(where, StorePath | Path):
        return where
    # Path("s3://bucket/out") would be the local folder s3:/bucket/out
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):/", where)  # of two letters or more: C:/ is a drive
    if scheme is None:
        return Path(where)
    kind = scheme[1].lower()
    if kind == "file":
        return Path(url2pathname(urlsplit(where).path))
    parts = re.fullmatch(r"[^:]+://(?P<bucket>[^/?]+)(?P<key>[^?]*)(?P<options>\?.*)?", where)
    if kind not in _STORES or parts is None:
        raise InputError(
            f"{_without_secrets(where)}: {scheme[1]} is no known kind of store; pass a path, or a URL that "
            f"begins with {listed([f'{name}://' for name in ('file', *_STORES)])}"
        )
    user, at, _ = parts["bucket"].rpartition("@")  # abfs://container@account, gs://anonymous@bucket
    if ":" in user or (at and kind == "s3"):
        raise InputError(
            f"{_without_secrets(where)}: leave out user and password, which any list of processes shows; "
            f"{_ELSEWHERE}"
        )
    for name, value in parse_qsl((parts["options"] or "?")[1:], keep_blank_values=True):
        if is_secret(name) or "@" in value:  # endpoint_override=http://user:password@host
            raise InputError(
                f"{_without_secrets(where)}: leave out the option {name}, whose credential any list of "
                f"processes shows; {_ELSEWHERE}"
            )
    url = f"{kind}://{parts['bucket']}{parts['options'] or ''}"
    return StorePath(f"{_filesystem(url)[1]}{parts['key']}".rstrip("/"), url)


def opened(place: Place) -> Any:
    """Open for reading anywhere in it; to be closed by the caller, as a stream is."""
    if isinstance(place, StorePath):
        return place.filesystem.open_input_file(place.key)
    return pa.OSFile(str(place))


def streamed(place: Place, compression: str | None = None) -> Any:
    if isinstance(place, StorePath):
        return place.filesystem.open_input_stream(place.key, compression=compression)
    return pa.input_stream(str(place), compression)


class _Watched:
    """A file that records I/O errors, to tell a failing store from a damaged file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.error: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._file, name)

        def watched(*arguments: Any) -> Any:
            try:
                return attribute(*arguments)
            except OSError as error:
                self.error = error
                raise

        return watched if callable(attribute) else attribute


def parsed(place: Place, parse: Callable[[Any], T]) -> T:
    """Parse a file; an error of pyarrow's then means that the file is damaged, not that a store fails."""
    if isinstance(place, Path):
        with opened(place) as file:
            return parse(file)
    with suppress(OSError, pa.ArrowException), opened(place) as file:
        return parse(file)
    watched = None  # once more, to see whether the store is at fault, or what is in the file
    try:
        with opened(place) as file:
            watched = _Watched(file)
            return parse(pa.PythonFile(watched, mode="r"))
    except (OSError, pa.ArrowException) as error:
        if watched is not None and watched.error is None:
            raise
        raise InputError(
            f"{place} could not be read: {error}. Finished parts are kept: run the same command again when "
            "the store answers"
        ) from error


def write_whole(place: Place, content: bytes) -> None:
    """Write a file or an object so that it is whole or missing."""
    if isinstance(place, StorePath):  # a put that is cut off leaves no object
        with place.filesystem.open_output_stream(place.key, compression=None) as stream:
            stream.write(content)
        return
    beside = place.with_name(f"{BESIDE}{place.name}.{uuid4().hex}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def checksum(place: Place) -> str | None:
    """SHA-256 of a file or an object, None if there is no such file."""
    digest = sha256()
    if isinstance(place, Path) and not place.is_file():
        return None
    try:
        with streamed(place) as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    except FileNotFoundError:
        return None
    return digest.hexdigest()


# Seconds between two renewals of a lease; a lease that stands still for this many renewals is dead
_RENEWAL, _DEAD = 5.0, 2.5


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Hold the lock of a folder: the operating system's, which frees that of a dead process, or a lease."""
    if isinstance(place, StorePath):
        with _leased(place):
            yield
        return
    from filelock import FileLock, Timeout

    try:
        lock = FileLock(place, timeout=0).acquire()
    except Timeout:
        raise _busy(place) from None
    with lock:
        yield


def _busy(place: Place) -> InputError:
    return InputError(f"another run is at work in {place.parent}: wait until it ends, or pass another folder")


@contextmanager
def _leased(place: StorePath) -> Iterator[None]:
    """Hold the right to write into a folder of a store, which has no locks.

    It is an object with the run's token and a count that a thread raises every few seconds. A lease whose
    count stands still belongs to a dead run, and is taken over; clocks are never compared. If two runs take
    the lease at the same moment, both write it, and the run that then reads the other's token stops. Should
    both continue, they write the same bytes: a worker refuses a part of another run.
    """
    token, stop, lost = uuid4().hex, Event(), Event()

    def write(times: int) -> None:
        write_whole(place, json.dumps([token, times]).encode())

    def renew() -> None:
        for times in count(2):
            if lost.is_set() or stop.wait(_RENEWAL):
                return
            with suppress(OSError):  # a store may not answer for a moment
                holder = _holder(place)
                if holder is not None and holder[0] != token:
                    lost.set()
                else:
                    write(times)

    holder = _holder(place)
    if holder is not None:
        sleep(_RENEWAL * _DEAD)
        if _holder(place) not in (holder, None):
            raise _busy(place)
    write(1)
    holder = _holder(place)
    if holder is None or holder[0] != token:
        raise _busy(place)
    thread = Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        if not lost.is_set():
            with suppress(OSError):  # a lease in a store that does not answer expires
                place.unlink(missing_ok=True)


def _holder(place: StorePath) -> tuple[str, int] | None:
    """Token and count of a lease; None without one."""
    try:
        token, times = json.loads(place.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):  # not the lease of a run
        return "", 0
    return token, times
