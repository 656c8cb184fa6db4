"""Arrays of every stage: their types, sums in one order, and random streams of rows.

A stream depends on the user's seed and on the row alone, not on its position in a batch.
"""

from __future__ import annotations

from hashlib import blake2b
from math import prod
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
# cells of values, or bytes that tell them apart
CellNumbers: TypeAlias = NDArray[np.integer[Any]]
# positions in compiled loops
Places: TypeAlias = NDArray[np.uint32]
Bools: TypeAlias = NDArray[np.bool_]
Objects: TypeAlias = NDArray[Any]
# of any precision
Reals: TypeAlias = NDArray[np.floating[Any]]

EXACT = 2.0**53  # beyond it float64 cannot tell neighbouring whole numbers apart


def is_wide(value: Any) -> bool:
    """Tell whether a value is a whole number that float64 may not tell from its neighbours."""
    return isinstance(value, Integral) and abs(int(value)) >= EXACT


def distinct_rows(codes: Ints) -> tuple[Ints, Ints]:
    """Distinct rows of a matrix of small codes >= 0, and the place among them of each row."""
    if len(codes) == 1:
        return codes, np.zeros(1, dtype=np.int64)
    sizes = codes.max(axis=0, initial=0) + 1
    if np.log2(sizes.astype(np.float64)).sum() >= 62:
        rows, place = np.unique(codes, axis=0, return_inverse=True)
        return rows, place.reshape(-1)
    # one number a row, in base of the sizes, sorts ten times faster than rows do
    number = codes @ np.concatenate([[1], np.cumprod(sizes[:-1])])
    _, first, place = np.unique(number, return_index=True, return_inverse=True)
    return codes[first], place


def first_of_each(place: Ints, count: int) -> Ints:
    first = np.zeros(count, dtype=np.int64)
    first[place[::-1]] = np.arange(len(place))[::-1]
    return first


def times(x: Floats, coef: Floats) -> Floats:
    """Products x @ coef, (n, m) and (m, ...) -> (n, ...), the same to the last bit for any number of rows.

    Each row is added up by itself and in one order; BLAS takes another for few rows, or for the last ones.
    """
    rows = np.ascontiguousarray(x)
    columns = [(rows * column).sum(axis=1) for column in coef.reshape(len(coef), prod(coef.shape[1:])).T]
    return np.column_stack(columns).reshape(len(rows), *coef.shape[1:])


def power_of_two(x: Floats) -> Floats:
    """The largest power of two that is no larger than x > 0, elementwise; 1 where x is 0 or infinite."""
    x = np.asarray(x, dtype=np.float64)
    regular = (x > 0) & np.isfinite(x)
    return np.ldexp(1.0, np.where(regular, np.frexp(x)[1] - 1, 0))


def mean_and_std(x: Floats) -> tuple[float, float]:
    """Mean and standard deviation of finite numbers (n,) of any size, without over- or underflow.

    Of ordinary numbers they are what ``x.mean()`` and ``x.std()`` are, to the last bit.
    """
    size = power_of_two(np.abs(x).max())
    mean = float((x / size).mean() * size)
    away = x - mean
    unit = power_of_two(np.abs(away).max())
    return mean, float(np.sqrt(((away / unit) ** 2).mean()) * unit)


def column_stds(x: Floats) -> Floats:
    """Standard deviation of the finite numbers of each column, (n, d) -> (d,); 0 for columns without any."""
    finite = [column[np.isfinite(column)] for column in x.T]
    return np.array([mean_and_std(column)[1] if column.size else 0.0 for column in finite])


def fingerprint(row: Floats) -> int:
    """Hash the values of a row."""
    canonical = np.where(np.isnan(row), np.nan, row + 0.0)  # one NaN, one zero
    return int.from_bytes(blake2b(canonical.tobytes(), digest_size=16).digest(), "little")


def streams(seed: int, key: int, count: int) -> list[np.random.SeedSequence]:
    """Spawn ``count`` independent streams for a row of this fingerprint."""
    return np.random.SeedSequence([seed, key]).spawn(count)


def padded(cells: int) -> int:
    """Return the length of a compiled look-up table of n cells: up to 16 fit registers of four."""
    return -(-cells // 4) * 4 if cells <= 16 else cells
