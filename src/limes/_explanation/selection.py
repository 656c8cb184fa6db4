"""Selection of rows, features and outputs by ``explanation[rows, features, outputs]``.

A position, a name, a slice, a mask or a list of positions and names: all become positions.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import are_probabilities
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from limes._arrays import Floats

_ALL = slice(None)
_LISTED = 20  # names in a message


class UnknownNameError(InputError, KeyError):
    """No row, feature or output has this name."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # KeyError would show the message in quotes


def split_key(key: Any) -> tuple[Any, Any, Any]:
    parts = list(key) if isinstance(key, tuple) else [key]
    gaps = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(parts) - len(gaps) > 3 or len(gaps) > 1:
        raise IndexError(
            "An explanation has rows, features and outputs; pass at most one entry for each "
            "and at most one ellipsis"
        )
    if gaps:
        parts[gaps[0] : gaps[0] + 1] = [_ALL] * (4 - len(parts))
    row, feature, output = parts + [_ALL] * (3 - len(parts))
    return row, feature, output


def selected(
    array: NDArray[Any], axes: str, positions: Mapping[str, Any], *, several: bool, drops_axis: bool
) -> NDArray[Any]:
    """Return the part of an array of an explanation at positions of its axes, of "n", "d" and "k".

    ``several`` states whether there is an axis of outputs, ``drops_axis`` whether one output is taken of it.
    """
    for axis, letter in enumerate(axes if several else axes.replace("k", "")):
        array = array.take(positions[letter], axis=axis)
    return array[..., 0] if several and drops_axis and "k" in axes else array


def by_size(sizes: Floats) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return positions by falling size, ties in their order, nan last."""
    return np.argsort(-np.where(np.isnan(sizes), -np.inf, sizes), kind="stable")


def is_single(part: Any) -> bool:
    return isinstance(part, str | int | np.integer) and not isinstance(part, bool)


def row_positions(part: Any, ids: Sequence[Any]) -> NDArray[np.intp]:
    """Return the positions of rows, by position or by a text that names them; numbers are positions."""
    try:
        return name_positions(part, [name if isinstance(name, str) else None for name in ids], "row")
    except UnknownNameError as error:
        name = next(piece for piece in ([part] if isinstance(part, str) else part) if isinstance(piece, str))
        raise UnknownNameError(
            f"{error} For a feature write explanation[:, {name!r}], for an output explanation[..., {name!r}]."
        ) from None


def single_row(explanation: Any, row: int | str) -> Any:
    """Return one row, by position or by a name that no other row has."""
    one = explanation[row]
    if len(one) != 1:
        raise InputError(f"{len(one)} rows are called {row!r}: pass the position of one")
    return one


def name_positions(part: Any, names: Sequence[str | None], what: str) -> NDArray[np.intp]:
    """Return the positions among `names` that a part of a key selects; `what` names them in errors."""
    size = len(names)
    if isinstance(part, slice):
        return np.arange(size)[part]
    if is_single(part):
        pieces = [part]
    elif isinstance(part, list | tuple | range):
        pieces = list(part)
    elif hasattr(part, "__array__") and np.ndim(part) == 1:
        pieces = list(np.asarray(part))
    else:
        raise InputError(
            f"{part!r} selects no {what}; pass a position, a slice, a mask or a list"
            + ("" if what == "row" else ", or a name")
        )
    if pieces and all(isinstance(piece, bool | np.bool_) for piece in pieces):
        if len(pieces) != size:
            raise IndexError(f"The mask has {len(pieces)} entries; pass one for each {what}: {size}")
        return np.flatnonzero(pieces)
    return np.array([i for piece in pieces for i in _one(piece, names, what)], dtype=np.intp)


def _one(piece: Any, names: Sequence[str | None], what: str) -> list[int]:
    size = len(names)
    if isinstance(piece, str):
        if positions := [position for position, name in enumerate(names) if name == piece]:
            return positions
        named = [name for name in names if name is not None]
        if not named:
            raise UnknownNameError(f"There is no {what} {piece!r}: {what}s have positions, counted from 0.")
        close = get_close_matches(piece, named, n=1, cutoff=0.4)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        more = f" and {len(named) - _LISTED} more" if len(named) > _LISTED else ""
        listed = ", ".join(map(repr, named[:_LISTED]))
        raise UnknownNameError(f"There is no {what} {piece!r}.{guess} The {what}s are {listed}{more}.")
    if isinstance(piece, bool | np.bool_) or not isinstance(piece, int | np.integer):
        raise InputError(f"{piece!r} of type {type(piece).__name__} is no position of a {what}")
    if not -size <= piece < size:
        number = "is 1" if size == 1 else f"are {size}"
        raise IndexError(f"There is no {what} {piece}: there {number}, counted from 0")
    return [int(piece) % size]


def shown_of(predictions: Floats) -> list[int]:
    """Return the positions of the outputs to show, of predictions (..., k): of two classes the second."""
    outputs = list(range(predictions.shape[-1]))
    mirrored = len(outputs) == 2 and predictions.size > 0 and are_probabilities(predictions.reshape(-1, 2))
    return outputs[1:] if mirrored else outputs
