"""Names of rows, those that could not be read among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from limes._arrays import Ints
from limes._explainers.tables.table import EncodedRows
from limes.exceptions import InputError


class RowNames(NamedTuple):
    ids: tuple[Any, ...]
    errors: tuple[tuple[Any, str], ...]

    def at(self, positions: Ints) -> RowNames:
        return RowNames(tuple(self.ids[i] for i in positions.tolist()), self.errors)

    def without(self, reasons: Mapping[int, str]) -> RowNames:
        errors = (*self.errors, *((self.ids[i], text) for i, text in sorted(reasons.items())))
        return RowNames(tuple(name for i, name in enumerate(self.ids) if i not in reasons), errors)


def row_names(X: Any, ids: Any, encoded: EncodedRows) -> RowNames:
    n = len(encoded.positions) + len(encoded.errors)
    if isinstance(ids, str) or not isinstance(ids, Iterable | None):
        raise InputError(f"ids={ids!r} must be a list of names, one for each of the {n} rows")
    names = ids_of(X, n) if ids is None else tuple(ids.tolist() if hasattr(ids, "tolist") else ids)
    if len(names) != n:
        raise InputError(f"ids has {len(names)} names for {n} rows: pass one for each row")
    kept = encoded.positions.tolist()
    chosen = names if len(kept) == n else tuple(names[i] for i in kept)
    return RowNames(chosen, tuple((names[i], text) for i, text in sorted(encoded.errors.items())))


def ids_of(X: Any, rows: int) -> tuple[Any, ...]:
    """Names of rows: the index of a pandas frame, the name of a row of one, else positions."""
    index: Any = getattr(X, "index", None)
    if not hasattr(index, "tolist") or isinstance(X, Mapping):
        return tuple(range(rows))
    if np.ndim(X) == 1:
        return (0 if X.name is None else X.name,)
    return tuple(index.tolist())
