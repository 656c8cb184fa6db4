"""Validation of an explanation's fields: read-only arrays, tuples of texts and plain facts, or an error."""

from __future__ import annotations

import dataclasses
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.exceptions import InputError
from limes.explanation.plain import plain_cells, plain_fact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

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
    "row_converged": "n",
    "shares": "ndk",
    "share_errors": "ndk",
    "surrogate_errors": "nk",
    "fidelity_errors": "nk",
}
# None where exact
_OPTIONAL = ("shares", "share_errors", "surrogate_errors", "fidelity_errors", "shared_calls")
_TUPLES: dict[str, str] = {
    "feature_names": "d",
    "output_names": "k",
    "conditions": "nd",
    "row_warnings": "n",
    "controls": "n",
    "certificates": "n",
}


def data_field_names(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of an explanation that are stored: all but its explainer."""
    return tuple(f.name for f in dataclasses.fields(kind) if f.name != "explainer")


def validate(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an explanation as read-only arrays, tuples of texts and plain facts.

    Raises
    ------
    InputError
        Shapes, names or kinds do not agree.
    """
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
    names = _names(fields, arrays["values"].shape)
    if fields.get("controls") is not None:
        names["controls"] = _texts("controls", fields["controls"], len(arrays["values"]))
    return {**arrays, **names, "provenance": facts, "certificates": certificates}


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
    return selection


def _entries_at(entries: tuple[Any, ...], positions: list[Positions]) -> tuple[Any, ...]:
    first, *rest = positions
    return tuple(_entries_at(entries[i], rest) if rest else entries[i] for i in first)


def _certificates(certificates: Any, rows: int) -> tuple[Any, ...]:
    """Return a mapping of plain facts for each row, or () if there are no certificates."""
    if not len(certificates):
        return ()
    entries = _entries("certificates", certificates, rows)
    return tuple(plain_fact(certificate, "certificates") for certificate in entries)


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
    for name, array in arrays.items():
        if array.shape != shapes[name]:
            raise InputError(
                f"{name} has shape {array.shape} but values has shape {shape}; "
                f"pass {name} with the shape {shapes[name]}"
            )
        array.flags.writeable = False
    return arrays


def _array(name: str, value: Any) -> NDArray[Any]:
    """Return a copy with the data type of this field."""
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
