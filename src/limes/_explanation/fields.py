"""The fields of an explanation: read-only arrays, tuples of texts and plain facts, or an error.

Cells of a table and facts of the provenance are plain Python values, so that JSON returns exactly what is
stored: ``None``, a truth value, a whole number, a float or a text; facts may nest in lists and dictionaries.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sized
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limes._arrays import Objects

    Positions = NDArray[np.intp]


_FLOATS = ("fiu", np.float64, "numbers")
_KINDS: dict[str, tuple[str, type, str]] = {
    "calls": ("iu", np.int64, "whole numbers"),
    "shared_calls": ("iu", np.int64, "whole numbers"),
    "row_converged": ("b", np.bool_, "truth values"),
}
_METHODS = ("exact", "sampled")
# Axes of the fields that have rows (n), features (d) or outputs (k); arrays of one output have no axis k
_ARRAYS: dict[str, str] = {
    "values": "ndk",
    "standard_errors": "ndk",
    "intercepts": "nk",
    "predictions": "nk",
    "surrogate_predictions": "nk",
    "fidelity": "nk",
    "data": "nd",
    "calls": "n",
    "shared_calls": "n",
    "effective_rows": "n",
    "row_converged": "n",
    "shares": "ndk",
    "share_errors": "ndk",
    "surrogate_errors": "nk",
    "fidelity_errors": "nk",
}
# None where exact; R² and its errors, where they are yet to be computed
_OPTIONAL = (
    *("shares", "share_errors", "surrogate_errors", "fidelity", "fidelity_errors"),
    *("shared_calls", "effective_rows"),
)
# None where all rows are exact
_OF_SAMPLES = ("shares", "share_errors", "surrogate_errors", "shared_calls", "effective_rows", "controls")
_NOT_STORED = ("explainer", "fit")
_TUPLES: dict[str, str] = {
    "feature_names": "d",
    "output_names": "k",
    "conditions": "nd",
    "row_warnings": "n",
    "controls": "n",
    "certificates": "n",
    "ids": "n",
}


def data_field_names(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of an explanation that are stored: all but its explainer and its fit."""
    return tuple(f.name for f in dataclasses.fields(kind) if f.name not in _NOT_STORED)


def validate(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an explanation as read-only arrays, tuples of texts and plain facts."""
    arrays = _arrays(fields)
    method, reason = fields["method"], fields["reason"]
    if method not in _METHODS:
        raise InputError(f"method={method!r} is not known; use one of {_METHODS}")
    if not isinstance(reason, str):
        raise InputError(f"reason is {reason!r}; pass a text")
    if (arrays["standard_errors"] < 0).any():
        raise InputError("standard_errors has negative entries; use 0 where a value is exact")
    facts = plain_fact(fields["provenance"], "provenance")
    if not isinstance(facts, dict):
        raise InputError(f"provenance is {facts!r}; pass a dictionary")
    certificates = _certificates(fields["certificates"], len(arrays["values"]))
    ids = _ids(fields["ids"], len(arrays["values"]))
    errors = tuple((plain_cell(row), str(text)) for row, text in fields["errors"])
    names = _names(fields, arrays["values"].shape)
    if fields.get("controls") is not None:
        names["controls"] = _texts("controls", fields["controls"], len(arrays["values"]))
    return {
        **arrays,
        **names,
        "provenance": facts,
        "certificates": certificates,
        "ids": ids,
        "errors": errors,
    }


def select(
    fields: Mapping[str, Any], positions: Mapping[str, Positions], *, drops_axis: bool
) -> dict[str, Any]:
    """Return the fields at these positions of their axes; ``drops_axis`` drops axis k of a single output."""
    several = fields["values"].ndim == 3
    selection = {}
    for name, axes in _ARRAYS.items():
        array = fields[name]
        if array is not None:
            for axis, letter in enumerate(axes if several else axes.replace("k", "")):
                array = array.take(positions[letter], axis=axis)
            selection[name] = array[..., 0] if several and drops_axis and "k" in axes else array
    for name, axes in _TUPLES.items():
        if fields[name]:
            selection[name] = _entries_at(fields[name], [positions[letter] for letter in axes])
    if selection.get("controls") and not any(selection["controls"]):
        # the exact rows among sampled ones
        selection |= {**dict.fromkeys(_OF_SAMPLES), "method": "exact", "reason": ""}
    return selection


def _entries_at(entries: tuple[Any, ...], positions: list[Positions]) -> tuple[Any, ...]:
    first, *rest = positions
    return tuple(_entries_at(entries[i], rest) if rest else entries[i] for i in first)


def _certificates(certificates: Any, rows: int) -> tuple[Any, ...]:
    """Return a mapping of plain facts for each row, or () if there are no certificates."""
    if isinstance(certificates, Sized) and not len(certificates):
        return ()
    entries = _entries("certificates", certificates, rows)
    for i, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            kind = type(entry).__name__
            raise InputError(f"certificates[{i}] is {kind}: pass a mapping of plain facts for each row")
    return tuple(plain_fact(certificate, "certificates") for certificate in entries)


def _ids(ids: Any, rows: int) -> tuple[Any, ...]:
    """Return a plain name for each row: its position where it has none."""
    if ids is None:
        return tuple(range(rows))
    entries = _entries("ids", ids, rows)
    return entries if set(map(type, entries)) <= _PLAIN else tuple(map(plain_cell, entries))


def _arrays(fields: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    shape = _array("values", fields["values"]).shape
    if len(shape) not in (2, 3):
        raise InputError(
            f"values has shape {shape}; pass (rows, features) for one output or "
            "(rows, features, outputs) for several"
        )
    sizes = dict(zip("ndk", shape, strict=False))
    shapes = {name: tuple(sizes[axis] for axis in axes if axis in sizes) for name, axes in _ARRAYS.items()}
    absent = {name for name in _OPTIONAL if fields.get(name) is None}
    arrays = {name: _array(name, fields[name]) for name in shapes if name not in absent}
    if "fidelity" in arrays and "fidelity_errors" in absent:
        arrays["fidelity_errors"] = np.zeros_like(arrays["fidelity"])
    for name, array in arrays.items():
        if array.shape != shapes[name]:
            raise InputError(
                f"{name} has shape {array.shape} but values has shape {shape}; "
                f"pass {name} with the shape {shapes[name]}"
            )
        array.flags.writeable = False
    return arrays


def _array(name: str, value: Any) -> NDArray[Any]:
    kinds, dtype, words = _KINDS.get(name, _FLOATS)
    # a table of floats alone stays one: a million rows of boxed numbers are a gigabyte
    floats = isinstance(value, np.ndarray) and value.dtype == np.float64
    try:
        array = np.array(value, dtype=object if name == "data" and not floats else None)
    except ValueError as problem:
        raise InputError(f"{name} is ragged ({problem}); pass rows of equal length") from problem
    if name == "data":
        return array if floats else plain_cells(array)
    if array.size and array.dtype.kind not in kinds:
        raise InputError(f"{name} is of type {array.dtype}; pass {words}")
    return array.astype(dtype, copy=False)


def _names(fields: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, tuple[Any, ...]]:
    n, d, *k = shape
    outputs = _texts("output_names", fields["output_names"], *(k or [1]))
    if len(set(outputs)) != len(outputs) or not outputs:
        raise InputError(f"output_names is {outputs}; pass a different name for each output")
    return {
        "feature_names": _texts("feature_names", fields["feature_names"], d),
        "output_names": outputs,
        "conditions": _text_rows("conditions", fields["conditions"], n, d),
        "row_warnings": _text_rows("row_warnings", fields["row_warnings"], n, None),
    }


def _text_rows(name: str, value: Any, n: int, length: int | None) -> tuple[tuple[str, ...], ...]:
    rows = _entries(name, value, n)
    # rows may share a tuple, as most do their warnings: it is checked once, at its first row
    identities = [*map(id, rows)]
    first = dict(zip(reversed(identities), range(len(rows) - 1, -1, -1), strict=True))
    texts = {
        row: _texts(f"{name}[{i}]", rows[i], length) for row, i in sorted(first.items(), key=itemgetter(1))
    }
    return tuple(map(texts.__getitem__, identities))


def _texts(name: str, value: Any, length: int | None) -> tuple[str, ...]:
    entries = _entries(name, value, length)
    if set(map(type, entries)) <= {str}:
        return entries
    for i, entry in enumerate(entries):
        if not isinstance(entry, str):
            raise InputError(f"{name}[{i}] is {entry!r}; pass a text")
    return tuple(map(str, entries))


def _entries(name: str, value: Any, length: int | None) -> tuple[Any, ...]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise InputError(f"{name} is {value!r}; pass a list")
    entries = tuple(value)
    if length is not None and len(entries) != length:
        raise InputError(f"{name} has {len(entries)} entries; pass {length}, as values has")
    return entries


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
    """Return a fact of the provenance with lists, dictionaries and plain cells only."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {
            _key(key, where): v if type(v) in _PLAIN else plain_fact(v, f"{where}[{key!r}]")
            for key, v in value.items()
        }
    if isinstance(value, np.ndarray):
        return plain_fact(value.tolist(), where)
    if isinstance(value, list | tuple):
        if set(map(type, value)) <= _PLAIN:
            return list(value)
        return [plain_fact(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, np.generic):
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
    """Return whether a plain cell is a missing value."""
    return value is None or (isinstance(value, float) and math.isnan(value))
