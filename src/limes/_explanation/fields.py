"""The fields of an explanation: read-only arrays, tuples of texts and plain facts, or an error."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._explanation.contributions import Contributions
from limes._explanation.json import NOT_FINITE
from limes._explanation.record import RowWarning
from limes._explanation.rules import Certificate
from limes.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limes._arrays import Objects


# Types of plain Python values, which JSON can hold
PLAIN = frozenset({type(None), bool, int, float, str})
_MISSING = frozenset({"NAType", "NaTType"})  # of pandas, compared by name: pandas stays unloaded
# Kinds of arrays that are accepted, the type that is stored, and its name; floats unless given
_FLOATS = ("fiu", np.float64, "numbers")
_WHOLE = ("iu", np.int64, "whole numbers")
_KINDS = {"calls": _WHOLE, "shared_calls": _WHOLE, "row_converged": ("b", np.bool_, "truth values")}
_METHODS = ("exact", "sampled")
# Axes of the fields that have rows (n), features (d) or outputs (k); arrays of one output have no axis k
ARRAYS = {
    **dict.fromkeys(("values", "standard_errors"), "ndk"),
    **dict.fromkeys(("intercepts", "predictions", "surrogate_predictions", "fidelity"), "nk"),
    "data": "nd",
    **dict.fromkeys(("calls", "shared_calls", "effective_rows", "row_converged"), "n"),
    **dict.fromkeys(("shares", "share_errors"), "ndk"),
    **dict.fromkeys(("surrogate_errors", "fidelity_errors"), "nk"),
}
TUPLES = {
    "feature_names": "d",
    "output_names": "k",
    "conditions": "nd",
    **dict.fromkeys(("row_warnings", "controls", "certificates", "ids"), "n"),
}
# None where all rows are exact
OF_SAMPLES = ("shares", "share_errors", "surrogate_errors", "shared_calls", "effective_rows", "controls")
# None also where the fit is yet to compute R²
_OPTIONAL = {*OF_SAMPLES, "fidelity", "fidelity_errors"}


def validated(stored: Mapping[str, Any]) -> dict[str, Any]:
    arrays = _arrays(stored)
    n, d, *k = arrays["values"].shape
    method, reason = stored["method"], stored["reason"]
    if method not in _METHODS:
        raise InputError(f"method={method!r} is not known; use one of {_METHODS}")
    if not isinstance(reason, str):
        raise InputError(f"reason is {reason!r}; pass a text")
    if (arrays["standard_errors"] < 0).any():
        raise InputError("standard_errors has negative entries; use 0 where a value is exact")
    facts = plain_fact(stored["provenance"], "provenance")
    if not isinstance(facts, dict):
        raise InputError(f"provenance is {facts!r}; pass a dictionary")
    ids = stored["ids"]
    if ids is None:
        ids = range(n)
    elif not set(map(type, ids := _entries("ids", ids, n))) <= PLAIN:
        ids = map(plain_cell, ids)
    controls = stored["controls"]
    outputs = _texts("output_names", stored["output_names"], *(k or [1]))
    if len(set(outputs)) != len(outputs) or not outputs:
        raise InputError(f"output_names is {outputs}; pass a different name for each output")
    account = stored["account"]
    return {
        **arrays,
        "account": account if account is None else Contributions.checked(account, arrays["values"].shape),
        "certificates": _certificates(stored["certificates"], n),
        "ids": tuple(ids),
        "errors": tuple((plain_cell(row), str(text)) for row, text in stored["errors"]),
        "feature_names": _texts("feature_names", stored["feature_names"], d),
        "output_names": outputs,
        "conditions": _text_rows("conditions", stored["conditions"], n, d),
        "row_warnings": _warning_rows(stored["row_warnings"], n),
        "controls": None if controls is None else _texts("controls", controls, n),
        "provenance": facts,
    }


def _certificates(certificates: Any, rows: int) -> tuple[Any, ...]:
    if isinstance(certificates, Sized) and not len(certificates):
        return ()
    entries = _entries("certificates", certificates, rows)
    for i, entry in enumerate(entries):
        if not isinstance(entry, Mapping | Certificate):
            kind = type(entry).__name__
            raise InputError(f"certificates[{i}] is {kind}: pass a Certificate for each row, or its fields")
    return tuple(_certificate(entry) for entry in entries)


def _certificate(entry: Certificate | Mapping[str, Any]) -> Certificate:
    facts = plain_fact(vars(entry) if isinstance(entry, Certificate) else entry, "certificates")
    try:
        return Certificate(**facts)
    except TypeError as problem:
        raise InputError(
            f"certificates have other fields than limes.SparseExplainer's ({problem}): write them again"
        ) from problem


def _arrays(stored: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    shape = _array("values", stored["values"]).shape
    if len(shape) not in (2, 3):
        raise InputError(
            f"values has shape {shape}; pass (rows, features) for one output or "
            "(rows, features, outputs) for several"
        )
    sizes = dict(zip("ndk", shape, strict=False))
    absent = {name for name in _OPTIONAL if stored[name] is None}
    arrays = {name: _array(name, stored[name]) for name in ARRAYS if name not in absent}
    if "fidelity" in arrays and "fidelity_errors" in absent:
        arrays["fidelity_errors"] = np.zeros_like(arrays["fidelity"])
    for name, array in arrays.items():
        wanted = tuple(sizes[axis] for axis in ARRAYS[name] if axis in sizes)
        if array.shape != wanted:
            raise InputError(
                f"{name} has shape {array.shape} but values has shape {shape}; "
                f"pass {name} with the shape {wanted}"
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
        return array if floats or set(map(type, array.flat)) <= PLAIN else plain_cells(array)
    if array.size and array.dtype.kind not in kinds:
        raise InputError(f"{name} is of type {array.dtype}; pass {words}")
    return array.astype(dtype, copy=False)


def _text_rows(name: str, value: Any, n: int, length: int | None) -> tuple[tuple[str, ...], ...]:
    rows = _entries(name, value, n)
    # rows may share a tuple, as most do their warnings: it is checked once, at its first row
    identities = [*map(id, rows)]
    first = dict(zip(reversed(identities), range(len(rows) - 1, -1, -1), strict=True))
    texts = {
        row: _texts(f"{name}[{i}]", rows[i], length) for row, i in sorted(first.items(), key=itemgetter(1))
    }
    return tuple(map(texts.__getitem__, identities))


def _warning_rows(value: Any, n: int) -> tuple[tuple[RowWarning, ...], ...]:
    rows = _entries("row_warnings", value, n)
    if all(type(row) is tuple and set(map(type, row)) <= {RowWarning} for row in rows):
        return rows
    # texts of no known kind
    texts = _text_rows("row_warnings", rows, n, None)
    return tuple(
        tuple(w if isinstance(w, RowWarning) else RowWarning(text) for w, text in zip(row, its, strict=True))
        for row, its in zip(rows, texts, strict=True)
    )


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


def entries_at(entries: tuple[Any, ...], positions: list[NDArray[np.intp]]) -> tuple[Any, ...]:
    first, *rest = positions
    return tuple(entries_at(entries[i], rest) if rest else entries[i] for i in first)


# -- plain values --------------------------------------------------------------------------------------------


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
