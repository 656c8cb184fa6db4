"""The array types that every stage speaks."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
# positions in compiled loops
Places: TypeAlias = NDArray[np.uint32]
Bools: TypeAlias = NDArray[np.bool_]
Objects: TypeAlias = NDArray[Any]


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
