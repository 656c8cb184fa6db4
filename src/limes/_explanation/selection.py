"""Selection of rows, features and outputs by ``explanation[rows, features, outputs]``.

A position, a name, a slice, a mask or a list of positions and names: all become positions.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from limes._arrays import Floats

_ALL = slice(None)
_LISTED = 20  # names in a message
# Two probabilities that add up to 1 within this much are one
_ROUNDING = 1e-6


class UnknownNameError(InputError, KeyError):
    """No feature or output has this name."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # KeyError would show the message in quotes


def split_key(key: Any) -> tuple[Any, Any, Any]:
    """Return the parts of a key for rows, features and outputs; an ellipsis fills the gap."""
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


def by_size(sizes: Floats) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return positions by falling size, ties in their order, nan last."""
    return np.argsort(-np.where(np.isnan(sizes), -np.inf, sizes), kind="stable")


def is_single(part: Any) -> bool:
    """Return whether a part of a key is one position or one name."""
    return isinstance(part, str | int | np.integer) and not isinstance(part, bool)


def row_positions(part: Any, size: int) -> NDArray[np.intp]:
    """Return the positions of the rows that a part of a key selects; rows have no names."""
    pieces = [part] if isinstance(part, str) else part if isinstance(part, list) else []
    if names := [piece for piece in pieces if isinstance(piece, str)]:
        raise InputError(
            f"Rows have positions, not names, but {names[0]!r} was given; "
            f"for a feature write explanation[:, {names[0]!r}], "
            f"for an output explanation[..., {names[0]!r}]"
        )
    return name_positions(part, [""] * size, "row")


def name_positions(part: Any, names: Sequence[str], what: str) -> NDArray[np.intp]:
    """Return the positions among `names` that a part of a key selects; `what` names them in errors."""
    if isinstance(part, slice):
        return np.arange(len(names))[part]
    if is_single(part):
        return np.array(_one(part, names, what), dtype=np.intp)
    pieces = _pieces(part, what)
    if pieces and all(isinstance(piece, bool | np.bool_) for piece in pieces):
        return _masked(pieces, len(names), what)
    return np.array([i for piece in pieces for i in _one(piece, names, what)], dtype=np.intp)


def _pieces(part: Any, what: str) -> list[Any]:
    if isinstance(part, list | tuple | range):
        return list(part)
    if hasattr(part, "__array__") and np.ndim(part) == 1:
        return list(np.asarray(part))
    raise InputError(
        f"{part!r} selects no {what}; pass a position, a slice, a mask or a list"
        + ("" if what == "row" else ", or a name")
    )


def _masked(mask: list[Any], size: int, what: str) -> NDArray[np.intp]:
    if len(mask) != size:
        raise IndexError(f"The mask has {len(mask)} entries; pass one for each {what}: {size}")
    return np.flatnonzero(mask)


def _one(piece: Any, names: Sequence[str], what: str) -> list[int]:
    if isinstance(piece, str):
        return _named(piece, names, what)
    if isinstance(piece, bool | np.bool_) or not isinstance(piece, int | np.integer):
        raise InputError(f"{piece!r} of type {type(piece).__name__} is no position of a {what}")
    size = len(names)
    if not -size <= piece < size:
        number = "is 1" if size == 1 else f"are {size}"
        raise IndexError(f"There is no {what} {piece}: there {number}, counted from 0")
    return [int(piece) % size]


def _named(name: str, names: Sequence[str], what: str) -> list[int]:
    positions = [position for position, other in enumerate(names) if other == name]
    if not positions:
        raise UnknownNameError(_advice(name, names, what))
    return positions


def _advice(name: str, names: Sequence[str], what: str) -> str:
    close = get_close_matches(name, names, n=1, cutoff=0.4)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    listed = ", ".join(map(repr, names[:_LISTED]))
    return f"There is no {what} {name!r}.{guess} The {what}s are {listed}{more}."


def shown_of(predictions: Floats) -> list[int]:
    """Return the positions of the outputs to show, of predictions (..., k): of two classes the second."""
    outputs = list(range(predictions.shape[-1]))
    return outputs[1:] if predictions.size and _are_complementary(predictions) else outputs


def _are_complementary(predictions: Floats) -> bool:
    """Return whether predictions are the probabilities of two classes: one mirrors the other."""
    if predictions.shape[-1] != 2 or not np.isfinite(predictions).all():
        return False
    unit = (predictions >= -_ROUNDING) & (predictions <= 1 + _ROUNDING)
    return bool(unit.all() and (np.abs(predictions.sum(axis=-1) - 1) <= _ROUNDING).all())
