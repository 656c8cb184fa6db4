"""Frames of pandas with thousands of columns: blocks of usual cells are read and made at once.

A library's own series takes some hundred microseconds a column, and blocks of cells take none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limes._arrays import Floats, Objects
from limes._explainers.tables.columns import TableColumn


def usual_cells(frame: Any) -> dict[int, Objects]:
    """The cells of the columns that hold numbers of numpy, or no other cells than texts, by position."""
    alike: dict[Any, list[int]] = {}
    for j, dtype in enumerate(frame.dtypes):
        kinds = "biufO" if isinstance(dtype, np.dtype) else ""
        if (kinds and dtype.kind in kinds) or type(dtype).__name__ == "StringDtype":
            alike.setdefault(dtype, []).append(j)
    cells = dict[int, Objects]()
    for dtype, places in alike.items():
        if isinstance(dtype, np.dtype) and dtype.kind != "O":
            block = np.ascontiguousarray(frame.iloc[:, places].to_numpy().T)
            cells |= zip(places, block, strict=True)
            continue
        for j, its in zip(places, frame.iloc[:, places].to_numpy(dtype=object).T, strict=True):
            if its.size and set(map(type, its.tolist())) == {str}:
                cells[j] = np.ascontiguousarray(its)
    return cells


def usual_column(column: TableColumn, values: Floats) -> Any:
    """A native array of pandas for numbers that stand for themselves, or categories; None for others."""
    if column.quantity is not None or (column.template is not None and not column.categorical):
        return None
    if column.template is None:
        return narrow(values, column.dtype)
    return column.template.array.take(column.places(values))


def narrow(values: Floats, dtype: np.dtype[Any]) -> Objects:
    """Cast back to the user's dtype; whole numbers become floats where the matrix holds others."""
    # a truncated value is not the one that is explained
    with np.errstate(invalid="ignore", over="ignore"):
        cast = values.astype(dtype)
    return cast if dtype.kind == "f" or np.array_equal(cast, values) else values.copy()


def frame_of(kind: Any, arrays: Sequence[Any], labels: Any) -> Any:
    """A frame of these arrays."""
    frame = kind(dict(enumerate(arrays)), copy=True)
    frame.columns = labels
    return frame
