"""Cells and facts as plain Python values, which JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._explanation.json import NOT_FINITE
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._arrays import Objects

PLAIN = frozenset({type(None), bool, int, float, str})
_MISSING = frozenset({"NAType", "NaTType"})  # of pandas, compared by name: pandas stays unloaded


def plain_cells(table: Objects) -> Objects:
    """Return a table of plain cells."""
    cells = np.empty(table.size, dtype=object)
    cells[:] = [plain_cell(value) for value in table.flat]
    return cells.reshape(table.shape)


def plain_cell(value: Any) -> Any:
    """Return one cell as ``None``, bool, int, float or str; what has no plain form becomes its text."""
    if type(value) in PLAIN:
        return value
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, np.datetime64 | np.timedelta64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.floating):
        return float(value)  # item() of a long double is a long double again
    item = value.item() if isinstance(value, np.generic) else value
    return item if type(item) in PLAIN else str(item)


def plain_fact(value: Any, where: str) -> Any:
    """Return a fact that JSON can hold; ``where`` names it in errors."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or key == NOT_FINITE:
                raise InputError(f"{where} has the key {key!r}; use another text as its name")
        return {
            str(key): fact if type(fact) in PLAIN else plain_fact(fact, f"{where}[{key!r}]")
            for key, fact in value.items()
        }
    if isinstance(value, np.ndarray):
        return plain_fact(value.tolist(), where)
    if isinstance(value, list | tuple):
        if set(map(type, value)) <= PLAIN:
            return list(value)
        return [plain_fact(fact, f"{where}[{i}]") for i, fact in enumerate(value)]
    if isinstance(value, np.generic):
        return plain_cell(value)
    raise InputError(
        f"{where} is of type {type(value).__name__}, which JSON cannot hold; "
        "pass numbers, texts, None, lists or dictionaries of them"
    )
