"""What the rows of a call are called: an index, or what the user passes as ``ids``; and rows with errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from limes._arrays import Ints
from limes._explainers.tables.table import EncodedRows
from limes.exceptions import InputError


class RowNames(NamedTuple):
    """Names of explained rows, and of those that have an error, with its text."""

    ids: tuple[Any, ...]
    errors: tuple[tuple[Any, str], ...]

    def at(self, positions: Ints) -> RowNames:
        """Return the names of some of the explained rows."""
        return RowNames(tuple(self.ids[i] for i in positions.tolist()), self.errors)


def row_names(X: Any, ids: Any, encoded: EncodedRows) -> RowNames:
    """Name the rows of X, by ``ids`` if they are passed.

    Raises
    ------
    InputError
        If there are not as many names as rows.
    """
    n = len(encoded.positions) + len(encoded.errors)
    names = ids_of(X, n) if ids is None else tuple(ids.tolist() if hasattr(ids, "tolist") else ids)
    if len(names) != n:
        raise InputError(f"ids has {len(names)} entries; pass one for each of the {n} rows")
    kept = encoded.positions.tolist()
    chosen = names if len(kept) == n else tuple(names[i] for i in kept)
    return RowNames(chosen, tuple((names[i], text) for i, text in sorted(encoded.errors.items())))


def ids_of(X: Any, rows: int) -> tuple[Any, ...]:
    """Return the names of rows: the index of a pandas frame, the name of a row of one, else positions."""
    index: Any = getattr(X, "index", None)
    if not hasattr(index, "tolist") or isinstance(X, Mapping):
        return tuple(range(rows))
    if np.ndim(X) == 1:
        return (0 if X.name is None else X.name,)
    return tuple(index.tolist())
