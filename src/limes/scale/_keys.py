"""Keys that repeat in a table of any length.

A worker hashes the keys of its part, a few array operations a column, and stores eight bytes a row beside it.
The driver deals hashes out to temporary files, so that equal ones are in one file and a file fits in memory.
Different keys may share a hash, so repeated ones are looked up in the table. pyarrow's ``group_by`` would
hold all keys in memory, and has no hash by which to deal them out.
"""

from __future__ import annotations

from limes._checks import require

require("pyarrow", "limes.scale for files", package="'limes[scale]'")

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from hashlib import sha256
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from limes._arrays import Ints
from limes.scale._parts import SPREAD, Folder, Hashes, hashes_of_bits
from limes.scale._stores import Place, parsed

# Largest number of hashes that the driver holds in memory, eight bytes each, and of those looked up
_HELD, _LOOKED_UP = 1 << 22, 1000
# Hash of a null
_NULL = np.uint64(0x94D049BB133111EB)


def key_hashes(lines: pa.Table, keys: Sequence[str]) -> tuple[Ints, Hashes]:
    """Hash the keys of each row of a part; return the first line of each row, and the hashes.

    A row with several lines counts once, and one that was unreadable, whose keys are unknown, does not count.
    """
    row = lines["row"].to_numpy()
    first = np.flatnonzero(np.diff(row, prepend=-1))
    lost = pc.is_valid(lines["error"])
    for key in keys:
        lost = pc.and_(lost, pc.is_null(lines[key]))
    first = first[~lost.to_numpy()[first]]
    cells = lines.select(keys).take(pa.array(first))
    bits = [_bits(cells[key].combine_chunks()) for key in keys]
    return first, hashes_of_bits(np.column_stack(bits))


def _bits(column: Any) -> Hashes:
    """64 bits a cell, equal where cells are equal."""
    kind = column.type
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_dictionary(kind):
        return _bits(column.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        bits = _text_bits(column)
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 and pa.types.is_temporal(kind) else pa.int64()
        whole = pc.cast(column, width, safe=False).fill_null(0)
        bits = whole.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    elif pa.types.is_floating(kind):
        bits = (pc.cast(column, pa.float64()).fill_null(0.0).to_numpy() + 0.0).view(np.uint64)
    else:  # lists, structs, decimals: one by one
        digests = [sha256(repr(cell).encode()).digest()[:8] for cell in column.to_pylist()]
        bits = np.frombuffer(b"".join(digests), np.uint64)
    return np.where(valid, bits, _NULL)


def _text_bits(column: Any) -> Hashes:
    """Σ_i b_i p^i of the bytes b of each text, modulo 2⁶⁴, mixed with its length."""
    column = pc.cast(column, pa.large_binary()).fill_null(b"")
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    sizes = np.diff(ends)
    text = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    text = text[ends[0] : ends[-1]].astype(np.uint64) + np.uint64(1)
    powers = np.full(max(1, sizes.max(initial=0)), SPREAD)
    powers[0] = 1
    place = np.arange(len(text)) - np.repeat(ends[:-1] - ends[0], sizes)
    sums = np.concatenate([[np.uint64(0)], np.cumsum(text * np.cumprod(powers)[place], dtype=np.uint64)])
    at = ends - ends[0]
    hashes: Hashes = (sums[at[1:]] - sums[at[:-1]]) ^ (sizes.astype(np.uint64) << np.uint64(32))
    return hashes


def repeated_keys(folder: Folder, parts: Sequence[int], keys: Sequence[str], rows: int) -> str:
    if not keys:
        return ""
    repeats, count = _repeated((_hashes_of(folder, number, keys) for number in parts), -(-rows // _HELD))
    first: dict[Any, int] = {}
    for number in parts if len(repeats) else ():
        lines = _lines(folder.part(number), keys)
        starts, hashes = key_hashes(lines, keys)
        shared = lines.take(pa.array(starts[np.isin(hashes, repeats)]))
        columns = (map(_hashable, shared[key].to_pylist()) for key in keys)
        for row, cells in zip(shared["row"].to_pylist(), zip(*columns, strict=True), strict=True):
            if first.setdefault(cells, row) != row:
                example = ", ".join(f"{name}={cell!r}" for name, cell in zip(keys, cells, strict=True))
                return f"keys are not unique ({count:,} repeated): {example} in rows {first[cells]} and {row}"
    return ""


def _hashes_of(folder: Folder, number: int, keys: Sequence[str]) -> Hashes:
    stored = folder.keys(number)
    return key_hashes(_lines(folder.part(number), keys), keys)[1] if stored is None else stored


def _lines(path: Place, keys: Sequence[str]) -> pa.Table:
    table: pa.Table = parsed(path, lambda file: pq.read_table(file, columns=["row", "error", *keys]))
    return table


def _repeated(parts: Iterable[Hashes], shares: int) -> tuple[Hashes, int]:
    """Hashes that repeat, at most the first ``_LOOKED_UP``; and the number of rows that repeat a hash."""
    repeats: list[Hashes] = []
    count = 0
    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in range(shares)]
        for hashes in parts:
            for i, file in enumerate(files):
                file.write(hashes[hashes % np.uint64(shares) == i].tobytes())
        for file in files:
            file.seek(0)
            values, counts = np.unique(np.frombuffer(file.read(), np.uint64), return_counts=True)
            count += int((counts - 1).sum())
            repeats.append(values[counts > 1][:_LOOKED_UP])
    return np.concatenate(repeats)[:_LOOKED_UP], count


def _hashable(cell: Any) -> Any:
    """Make lists and structs hashable."""
    if isinstance(cell, list):
        return tuple(map(_hashable, cell))
    return tuple((name, _hashable(value)) for name, value in cell.items()) if isinstance(cell, dict) else cell
