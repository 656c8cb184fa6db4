"""Rows that share their keys, found in a table of any length with little memory.

Every row's keys are hashed. Hashes are dealt out to files, so that equal ones meet and a file fits in memory;
what occurs twice is then looked up in the table, as equal hashes are only a suspicion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

# Hashes that are held in memory, eight bytes each; suspicions that are looked up
_HELD, _LOOKED_UP = 1 << 22, 1000

Hashes = npt.NDArray[np.int64]


def repeated(paths: Sequence[Path], keys: Sequence[str], rows: int) -> str:
    """Say which rows of files of explanations share their keys; nothing where none do."""
    if not keys:
        return ""
    twice, count = _twice(paths, keys, rows)
    first: dict[Any, int] = {}
    for path in paths if len(twice) else ():
        for row, cells in _rows(path, keys):
            if hash(cells) in twice and first.setdefault(cells, row) != row:
                said = ", ".join(f"{name}={cell!r}" for name, cell in zip(keys, cells, strict=True))
                return f"keys are not unique ({count:,} repeated): {said} in rows {first[cells]} and {row}"
    return ""


def _twice(paths: Sequence[Path], keys: Sequence[str], rows: int) -> tuple[set[int], int]:
    """Hashes that occur twice, or the first of many; and how many rows have one that an earlier row has."""
    shares = -(-rows // _HELD)
    found: set[int] = set()
    count = 0
    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in range(shares)]
        for path in paths:
            hashes = np.fromiter((hash(cells) for _, cells in _rows(path, keys)), np.int64)
            for i, file in enumerate(files):
                file.write(hashes[hashes % shares == i].tobytes())
        for file in files:
            file.seek(0)
            values, counts = np.unique(np.frombuffer(file.read(), np.int64), return_counts=True)
            count += int((counts - 1).sum())
            found |= set(values[counts > 1][: _LOOKED_UP - len(found)].tolist())
    return found, count


def _rows(path: Path, keys: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Rows of a part and their keys; a row with several lines, once."""
    table = pq.read_table(path, columns=["row", *keys])
    row = table["row"].to_numpy()
    table = table.take(np.flatnonzero(np.diff(row, prepend=-1)))
    return zip(table["row"].to_pylist(), zip(*(table[k].to_pylist() for k in keys), strict=True), strict=True)
