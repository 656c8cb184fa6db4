"""The fields of an explanation in the form in which they are stored, or an error with advice."""

from __future__ import annotations

import dataclasses
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.exceptions import InputError
from limes.show.plain import plain_cells, plain_fact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Places = NDArray[np.intp]

_FLOATS = ("fiu", np.float64, "numbers")
_KINDS: dict[str, tuple[str, type, str]] = {
    "calls": ("iu", np.int64, "whole numbers"),
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
    "row_converged": "n",
    "shares": "ndk",
    "share_errors": "ndk",
    "surrogate_errors": "nk",
    "fidelity_errors": "nk",
}
# None where exact
_OPTIONAL = ("shares", "share_errors", "surrogate_errors", "fidelity_errors")
_TUPLES: dict[str, str] = {
    "feature_names": "d",
    "output_names": "k",
    "conditions": "nd",
    "row_warnings": "n",
    "controls": "n",
    "certificates": "n",
}


def names_of(kind: type) -> tuple[str, ...]:
    """Names of the fields of an explanation that are data: what made it is not stored."""
    return tuple(f.name for f in dataclasses.fields(kind) if f.name != "explainer")


def stored(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an explanation: read-only arrays, tuples of texts, plain facts.

    Raises
    ------
    InputError
        Shapes, names or kinds do not agree.
    """
    arrays = _arrays(given)
    method, reason = given["method"], given["reason"]
    if method not in _METHODS:
        raise InputError(f"method={method!r} is not known; use one of {_METHODS}")
    if not isinstance(reason, str):
        raise InputError(f"reason is {reason!r}; give a text")
    if (arrays["standard_errors"] < 0).any():
        raise InputError("standard_errors has negative entries; use 0 where a value is exact")
    facts = plain_fact(given["provenance"], "provenance")
    if not isinstance(facts, dict):
        raise InputError(f"provenance is {facts!r}; give a dictionary")
    certificates = _certificates(given["certificates"], len(arrays["values"]))
    names = _names(given, arrays["values"].shape)
    if given.get("controls") is not None:
        names["controls"] = _texts("controls", given["controls"], len(arrays["values"]))
    return {**arrays, **names, "provenance": facts, "certificates": certificates}


def picked(given: Mapping[str, Any], places: Mapping[str, Places], *, drops_axis: bool) -> dict[str, Any]:
    """Return the fields at these places of their axes; ``drops_axis`` leaves out axis k, of one output."""
    several = given["values"].ndim == 3
    found = {}
    for name, axes in _ARRAYS.items():
        array = given[name]
        if array is not None:
            for axis, letter in enumerate(axes if several else axes.replace("k", "")):
                array = array.take(places[letter], axis=axis)
            found[name] = array[..., 0] if several and drops_axis and "k" in axes else array
    for name, axes in _TUPLES.items():
        if given[name]:
            found[name] = _entries_at(given[name], [places[letter] for letter in axes])
    return found


def _entries_at(entries: tuple[Any, ...], places: list[Places]) -> tuple[Any, ...]:
    first, *rest = places
    return tuple(_entries_at(entries[i], rest) if rest else entries[i] for i in first)


def _certificates(given: Any, rows: int) -> tuple[Any, ...]:
    """One mapping of plain facts a row, or none at all."""
    if not len(given):
        return ()
    return tuple(plain_fact(one, "certificates") for one in _entries("certificates", given, rows))


def _arrays(given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    shape = _array("values", given["values"]).shape
    if len(shape) not in (2, 3):
        raise InputError(
            f"values has shape {shape}; give (rows, features) for one output or "
            "(rows, features, outputs) for several"
        )
    sizes = dict(zip("ndk", shape, strict=False))
    shapes = {name: tuple(sizes[axis] for axis in axes if axis in sizes) for name, axes in _ARRAYS.items()}
    absent = {name for name in _OPTIONAL if given.get(name) is None}
    arrays = {name: _array(name, given[name]) for name in shapes if name not in absent}
    for name, array in arrays.items():
        if array.shape != shapes[name]:
            raise InputError(
                f"{name} has shape {array.shape} but values has shape {shape}; "
                f"give {name} the shape {shapes[name]}"
            )
        array.flags.writeable = False
    return arrays


def _array(name: str, given: Any) -> NDArray[Any]:
    """Return a copy of the kind that belongs to this field."""
    kinds, wanted, words = _KINDS.get(name, _FLOATS)
    # a table of floats alone stays one: a million rows of boxed numbers are a gigabyte
    floats = isinstance(given, np.ndarray) and given.dtype == np.float64
    try:
        array = np.array(given, dtype=object if name == "data" and not floats else None)
    except ValueError as problem:
        raise InputError(f"{name} is ragged ({problem}); give rows of equal length") from problem
    if name == "data":
        return array if floats else plain_cells(array)
    if array.size and array.dtype.kind not in kinds:
        raise InputError(f"{name} is of type {array.dtype}; give {words}")
    return array.astype(wanted, copy=False)


def _names(given: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, tuple[Any, ...]]:
    n, d, *k = shape
    outputs = _texts("output_names", given["output_names"], *(k or [1]))
    if len(set(outputs)) != len(outputs) or not outputs:
        raise InputError(f"output_names is {outputs}; give each output its own name")
    return {
        "feature_names": _texts("feature_names", given["feature_names"], d),
        "output_names": outputs,
        "conditions": _text_rows("conditions", given["conditions"], n, d),
        "row_warnings": _text_rows("row_warnings", given["row_warnings"], n, None),
    }


def _text_rows(name: str, given: Any, n: int, length: int | None) -> tuple[tuple[str, ...], ...]:
    rows = _entries(name, given, n)
    # rows may share a tuple, as most do their warnings: it is checked once, where it comes first
    same = [*map(id, rows)]
    first = dict(zip(reversed(same), range(len(rows) - 1, -1, -1), strict=True))
    known = {
        row: _texts(f"{name}[{i}]", rows[i], length) for row, i in sorted(first.items(), key=itemgetter(1))
    }
    return tuple(map(known.__getitem__, same))


def _texts(name: str, given: Any, length: int | None) -> tuple[str, ...]:
    entries = _entries(name, given, length)
    if set(map(type, entries)) <= {str}:
        return entries
    for at, entry in enumerate(entries):
        if not isinstance(entry, str):
            raise InputError(f"{name}[{at}] is {entry!r}; give a text")
    return tuple(map(str, entries))


def _entries(name: str, given: Any, length: int | None) -> tuple[Any, ...]:
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise InputError(f"{name} is {given!r}; give a list")
    entries = tuple(given)
    if length is not None and len(entries) != length:
        raise InputError(f"{name} has {len(entries)} entries; give {length}, as values has")
    return entries
