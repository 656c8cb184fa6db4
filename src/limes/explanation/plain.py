"""The user's values as plain Python ones, so that JSON returns exactly what is stored.

Cells of a table and facts of the provenance are treated alike: ``None``, a truth value, a whole
number, a float or a text; facts may nest in lists and dictionaries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._arrays import Objects

NOT_FINITE = "$float"
"""The one key of the JSON object that stands for a float which JSON has no number for."""

_PLAIN = frozenset({type(None), bool, int, float, str})
_MISSING = frozenset({"NAType", "NaTType"})  # of pandas, compared by name: pandas stays unloaded


def plain_cells(table: Objects) -> Objects:
    """Return the table with every cell plain; what has no plain form becomes its text."""
    flat = table.ravel().tolist()
    if set(map(type, flat)) <= _PLAIN:
        return table
    cells = np.empty(len(flat), dtype=object)
    cells[:] = [plain_cell(value) for value in flat]
    return cells.reshape(table.shape)


def plain_cell(value: Any) -> Any:
    """Return one cell as ``None``, bool, int, float or str (dates and the like as text)."""
    if type(value) in _PLAIN:
        return value
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, np.generic):
        return _plain_scalar(value)
    return str(value)


def _plain_scalar(value: np.generic) -> Any:
    if isinstance(value, np.datetime64 | np.timedelta64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.floating):
        return float(value)  # item() of a long double is a long double again
    item = value.item()
    return item if type(item) in _PLAIN else str(item)


def plain_fact(value: Any, where: str) -> Any:
    """Return a fact of the provenance with lists, dictionaries and plain cells only.

    Raises
    ------
    InputError
        A key is not a text, or a value has no JSON form. `where` is its path.
    """
    if isinstance(value, Mapping):
        return {_key(key, where): plain_fact(v, f"{where}[{key!r}]") for key, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain_fact(value.tolist(), where)
    if isinstance(value, list | tuple):
        if set(map(type, value)) <= _PLAIN:
            return list(value)
        return [plain_fact(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if type(value) in _PLAIN or isinstance(value, np.generic):
        return plain_cell(value)
    raise InputError(
        f"{where} is of type {type(value).__name__}, which JSON cannot hold; "
        "pass numbers, texts, None, lists or dictionaries of them"
    )


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str) or key == NOT_FINITE:
        raise InputError(f"{where} has the key {key!r}; use another text as its name")
    return str(key)


def is_missing(value: Any) -> bool:
    """Tell whether a plain cell stands for a missing value."""
    return value is None or (isinstance(value, float) and math.isnan(value))
