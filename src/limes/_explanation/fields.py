"""The fields of an explanation: read-only arrays, tuples of texts and plain facts, or an error.

`validated` is the one schema of what is written, which explainers fill, and of what is read: JSON comes from
anybody. Numbers and texts are shown without a further look at their types.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sized
from dataclasses import is_dataclass
from functools import cache
from operator import itemgetter
from types import GenericAlias, UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import numpy as np

from limes._checks import as_number
from limes._explanation.attribution import (
    COEFFICIENT_AXES,
    CONTRIBUTION_AXES,
    OF_SAMPLES,
    PAIR_AXES,
    Coefficients,
    Contributions,
)
from limes._explanation.json import NOT_FINITE
from limes._explanation.rules import Certificate, are_certain
from limes._warnings import RowWarning
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
ARRAYS = {"predictions": "nk", "data": "nd", "calls": "n", "shared_calls": "n"}
TUPLES = {
    "feature_names": "d",
    "output_names": "k",
    "conditions": "nd",
    **dict.fromkeys(("row_warnings", "certificates", "ids"), "n"),
}
# Types of the facts of the provenance that are shown other than as their text
FACTS: Mapping[str, Any] = {
    "answer": str,
    "quantity": str,
    "difference": float,
    "slopes": GenericAlias(dict, (str, {"mean": float, "deviation": float})),
    "together": dict[str, tuple[tuple[str, str, float], ...]],
    "spans": dict[str, tuple[tuple[int, int], ...]],
    "superpixels": dict[str, int],
}
_BOUNDS = {"fidelity": float, "precision": float}
# None where all rows are exact, or where the fit is yet to compute R²
_OPTIONAL = {*OF_SAMPLES, "shared_calls", "fidelity", "fidelity_errors"}


def validated(stored: Mapping[str, Any]) -> dict[str, Any]:
    # earlier versions stored weights of facts that hold for certain
    rules = stored["certificates"]
    is_empty = isinstance(rules, Sized) and not len(rules)
    its = None if not is_empty and are_certain(rules) else stored["coefficients"]
    coefficients, shape = _coefficients(its)
    if shape is None:
        shape = _shape(stored)
    arrays = _arrays(stored, ARRAYS, shape, "values" if coefficients else "the explanation")
    n, d, *k = shape
    method, reason = stored["method"], stored["reason"]
    if method not in _METHODS:
        raise InputError(f"method={method!r} is not known; use one of {_METHODS}")
    if not isinstance(reason, str):
        raise InputError(f"reason is {reason!r}; pass a text")
    facts = plain_fact(stored["provenance"], "provenance")
    if not isinstance(facts, dict):
        raise InputError(f"provenance is {facts!r}; pass a dictionary")
    pictures = facts.get("pictures")  # of the parts of an input; what is no dictionary is drawn nowhere
    for its in (facts, *(pictures.values() if isinstance(pictures, dict) else ())):
        if isinstance(its, dict):
            _check_types("provenance", its, FACTS)
    ids = range(n) if stored["ids"] is None else _entries("ids", stored["ids"], n)
    outputs = _texts("output_names", stored["output_names"], *(k or [1]))
    if len(set(outputs)) != len(outputs) or not outputs:
        raise InputError(f"output_names is {outputs}; pass a different name for each output")
    account = stored["contributions"]
    return {
        **arrays,
        "coefficients": coefficients,
        "contributions": None if account is None else _account(account, shape),
        "certificates": _certificates(stored["certificates"], n),
        "ids": plain_ids(ids),
        "errors": tuple(map(_error, _entries("errors", stored["errors"], None))),
        "feature_names": _texts("feature_names", stored["feature_names"], d),
        "output_names": outputs,
        "conditions": _text_rows("conditions", stored["conditions"], n, d),
        "row_warnings": _warning_rows(stored["row_warnings"], n),
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
    _check_types("certificates", facts, _types_of_certificates())
    try:
        certificate = Certificate(**facts)
    except TypeError as problem:
        raise InputError(
            f"certificates have other fields than limes.SparseExplainer's ({problem}): write them again"
        ) from problem
    bounds = dict(_BOUNDS)
    if certificate.minimises != "fidelity":
        has_class = certificate.threshold is not None and certificate.minimises == "class"
        bounds |= {"band": float} | ({"class": float} if has_class else {})
    _check_types("certificates", facts, {"bounds": bounds})
    if certificate.fresh_fidelity < 0 or certificate.bounds["fidelity"] < 0:
        raise InputError("certificates have a negative squared error: write them again")
    if not math.isfinite(certificate.bounds.get("class", 0.0)):
        raise InputError("certificates bound a probability by no finite number: write them again")
    return certificate


@cache
def _types_of_certificates() -> Mapping[str, Any]:
    return get_type_hints(Certificate)


def _check_types(where: str, values: Mapping[str, Any], types: Mapping[str, Any]) -> None:
    for name, kind in types.items():
        if name in values and not _is_of(values[name], kind):
            words = getattr(kind, "__name__", kind) if not get_args(kind) else kind
            raise InputError(f"{where}[{name!r}] is {values[name]!r}; pass {words}")


def _is_of(value: Any, kind: Any) -> bool:
    """Return whether a plain value is of a type as annotations state it, or has these keys."""
    if isinstance(kind, Mapping):
        return isinstance(value, Mapping) and all(
            name in value and _is_of(value[name], its) for name, its in kind.items()
        )
    origin, parts = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return any(_is_of(value, part) for part in parts)
    if origin is dict:
        return isinstance(value, Mapping) and all(_is_of(part, parts[1]) for part in value.values())
    if origin is tuple:  # a list, once it is plain
        each = parts[:1] * len(value) if parts[-1] is ... and isinstance(value, list) else parts
        return isinstance(value, list) and len(value) == len(each) and all(map(_is_of, value, each))
    if kind is float:
        return isinstance(value, float) or not np.isnan(as_number(value))
    return kind is Any or type(value) is kind


def _error(entry: Any) -> tuple[Any, str]:
    """Return the name of a row without an explanation, and the reason."""
    if not isinstance(entry, list | tuple) or len(entry) != 2 or not isinstance(entry[1], str):
        raise InputError(f"errors has the entry {entry!r}; pass the name of a row and a text")
    return plain_cell(entry[0]), str(entry[1])


def _account(stored: Any, shape: tuple[int, ...]) -> Contributions:
    """Return contributions, or their arrays by name, for values of this shape, read-only."""
    facts = stored if isinstance(stored, Mapping) else vars(stored) if is_dataclass(stored) else {}
    arrays = {}
    # pairs are stored where they were asked for, and both arrays of them
    has_pairs = any(facts.get(name) is not None for name in PAIR_AXES)
    for name, axes in {**CONTRIBUTION_AXES, **(PAIR_AXES if has_pairs else {})}.items():
        wanted = _sizes(axes, shape)
        value = facts.get(name)
        if name in _LATER and value is None:  # stored by an earlier version
            value = _LATER[name](facts, wanted)
        array = _array(name, value, "account: ")
        array = array.reshape(wanted) if 0 in wanted and not array.size else array
        if array.shape != wanted:
            raise InputError(f"account: {name} has shape {array.shape}; pass the shape {wanted}")
        array.flags.writeable = False
        arrays[name] = array
    return Contributions(**arrays)


def _sizes(axes: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes of axes, as values of this shape have them."""
    sizes = dict(zip("ndk", shape, strict=False))
    return tuple(sizes[axis] for axis in axes if axis in sizes)


# Fields of contributions that earlier versions did not store
_LATER: Mapping[str, Any] = {
    "base_errors": lambda facts, wanted: np.full(wanted, np.nan),  # noqa: ARG005
    "row_converged": lambda facts, wanted: _converged(facts).reshape(wanted),
}


def _converged(facts: Mapping[str, Any]) -> NDArray[np.bool_]:
    values, errors = (np.asarray(facts[name], dtype=float) for name in ("values", "standard_errors"))
    # of files of earlier versions alone: others need no least squares
    from limes._sampling.least_squares import DEFAULT_TOLERANCE

    several = values if values.ndim == 3 else values[..., None]
    return np.asarray(DEFAULT_TOLERANCE.excess(several, errors.reshape(several.shape)) <= 1.0)


def _coefficients(stored: Any) -> tuple[Coefficients | None, tuple[int, ...] | None]:
    """Return coefficients with arrays that are read-only, and the shape of the values; None without any."""
    if stored is None:
        return None, None
    if not isinstance(stored, Coefficients):
        raise InputError(f"coefficients is {type(stored).__name__}; pass Coefficients")
    facts = stored.stored
    shape = _array("values", facts["values"]).shape
    if len(shape) not in (2, 3):
        raise InputError(
            f"values has shape {shape}; pass (rows, features) for one output or "
            "(rows, features, outputs) for several"
        )
    arrays = _arrays(facts, COEFFICIENT_AXES, shape, "values")
    if "fidelity" in arrays and "fidelity_errors" not in arrays:
        arrays["fidelity_errors"] = np.zeros_like(arrays["fidelity"])
        arrays["fidelity_errors"].flags.writeable = False
    if (arrays["standard_errors"] < 0).any():
        raise InputError("standard_errors has negative entries; use 0 where a value is exact")
    controls = facts["controls"]
    controls = None if controls is None else _texts("controls", controls, shape[0])
    return Coefficients(**facts | arrays | {"controls": controls}), shape


def _shape(stored: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of values, of an explanation that has no coefficients."""
    if stored["contributions"] is None and not are_certain(stored["certificates"]):
        raise InputError("an explanation has coefficients or contributions; pass one of them, or both")
    predictions = _array("predictions", stored["predictions"]).shape
    return (*predictions[:1], len(_entries("feature_names", stored["feature_names"], None)), *predictions[1:])


def _arrays(
    stored: Mapping[str, Any], axes: Mapping[str, str], shape: tuple[int, ...], whose: str
) -> dict[str, NDArray[Any]]:
    arrays = {
        name: _array(name, stored[name]) for name in axes if not (name in _OPTIONAL and stored[name] is None)
    }
    for name, array in arrays.items():
        wanted = _sizes(axes[name], shape)
        if array.shape != wanted:
            raise InputError(
                f"{name} has shape {array.shape} but {whose} has shape {shape}; "
                f"pass {name} with the shape {wanted}"
            )
        array.flags.writeable = False
    return arrays


def _array(name: str, value: Any, where: str = "") -> NDArray[Any]:
    kinds, dtype, words = _KINDS.get(name, _FLOATS)
    # a table of floats alone stays one: a million rows of boxed numbers are a gigabyte
    floats = isinstance(value, np.ndarray) and value.dtype == np.float64
    try:
        array = np.array(value, dtype=object if name == "data" and not floats else None)
    except ValueError as problem:
        raise InputError(f"{where}{name} is ragged ({problem}); pass rows of equal length") from problem
    if name == "data":
        return plain_data(array)
    if array.size and array.dtype.kind not in kinds:
        raise InputError(f"{where}{name} is of type {array.dtype}; pass {words}")
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


def plain_ids(ids: Iterable[Any]) -> tuple[Any, ...]:
    names = tuple(ids)
    return names if set(map(type, names)) <= PLAIN else tuple(map(plain_cell, names))


def plain_data(table: NDArray[Any]) -> NDArray[Any]:
    """Return a table of plain cells, or of floats, that is read-only."""
    if table.dtype != np.float64 and not set(map(type, table.flat)) <= PLAIN:
        table = plain_cells(table)
    table.flags.writeable = False
    return table


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
