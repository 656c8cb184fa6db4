"""Selection of rows, features and outputs by ``explanation[rows, features, outputs]``.

A position, a name, a slice, a mask or a list of positions and names: all become positions.
"""

from __future__ import annotations

import warnings
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import are_probabilities
from limes._checks import did_you_mean
from limes._names import AmbiguousNameError, Names, is_whole, text_of
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from limes._arrays import Floats

_ALL = slice(None)
_LISTED = 20  # names in a message
# Facts of the provenance of texts, images and series, whose features are no columns
_OF_INPUTS = ("spans", "superpixels", "stretches", "pictures")


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
    """Return the positions of rows, by position or by their names; whole numbers are positions."""
    try:
        return name_positions(part, ids, "row")
    except UnknownNameError as error:
        name = next(piece for piece in ([part] if isinstance(part, str) else part) if isinstance(piece, str))
        raise UnknownNameError(
            f"{error} For a feature write explanation[:, {name!r}], for an output explanation[..., {name!r}]."
        ) from None


def single_row(explanation: Any, row: int | str | None, call: str = "") -> Any:
    """Return one row, by position or by a name that no other row has; the only or first one if None.

    A ``call`` whose text does not name its row warns where there are several and none was chosen.
    """
    if row is None and len(explanation) > 1:
        warnings.warn(
            f"{call} is about the first row alone, and the explanation has {len(explanation)} rows: pass "
            "row=, a position or a name, or choose one, as in explanation[0]; a later version refuses "
            "several rows without row=",
            FutureWarning,
            stacklevel=4,  # whoever called the method
        )
    one = explanation[0 if row is None else row]
    if len(one) != 1:
        raise InputError(f"{len(one)} rows are called {row!r}: pass the position of one")
    return one


def feature_names_of(explanation: Any) -> Names:
    """Return the names by which features are found: those of the user's table, where it is at hand.

    Words are no names of columns: they may be numbers, and whole numbers are positions then.
    """
    keys: Mapping[str, Any] = getattr(explanation.explainer, "_column_keys", {})
    by_text = not any(fact in explanation.provenance for fact in _OF_INPUTS)
    return Names([keys.get(name, name) for name in explanation.feature_names], by_text=by_text)


def by_feature(option: str, values: Mapping[Any, Any], explanation: Any) -> dict[str, Any]:
    """Return the values of a mapping by the texts of the features that its keys name."""
    names, texts = feature_names_of(explanation), {}
    for name, value in values.items():
        positions = names.positions(name)
        if not positions:
            groups = explanation.provenance.get("groups", {})
            owner = next((group for group, members in groups.items() if name in members), None)
            advice = did_you_mean(name, explanation.feature_names)
            if owner is not None:
                advice = f": this column is in the group {owner!r}, which is one feature; name the group"
            raise InputError(f"{option}: there is no feature {name!r}{advice}")
        texts[explanation.feature_names[positions[0]]] = value
    return texts


def name_positions(part: Any, names: Names | Sequence[Any], what: str) -> NDArray[np.intp]:
    """Return the positions among `names` that a part of a key selects; `what` names them in errors.

    Whole numbers are positions among a sequence; among `Names` they may also be names.
    """
    size = len(names)
    if isinstance(part, slice):
        return np.arange(size)[part]
    if not isinstance(names, Names) and is_whole(part):
        return np.array([_position(int(part), size, what)], dtype=np.intp)
    labels = names if isinstance(names, Names) else Names(names, by_text=False)
    pieces = _pieces(part, labels, what)
    if pieces and all(isinstance(piece, bool | np.bool_) for piece in pieces):
        called = [labels.called(piece) for piece in pieces]
        if len(pieces) == size:
            if all(called) and [*np.flatnonzero(pieces)] != [i for its in called for i in its]:
                raise AmbiguousNameError(
                    f"{part!r} is a mask of the {what}s, and these are their names: pass texts, "
                    f"{[*map(text_of, pieces)]}, or positions"
                )
            return np.flatnonzero(pieces)
        if not all(called):
            raise IndexError(f"The mask has {len(pieces)} entries; pass one for each {what}: {size}")
    return np.array([i for piece in pieces for i in _one(piece, labels, what)], dtype=np.intp)


def _pieces(part: Any, names: Names, what: str) -> list[Any]:
    if names.called(part):
        return names.pieces(part)
    if is_single(part):
        return [part]
    if isinstance(part, list | tuple | range):
        return [*part]
    if hasattr(part, "__array__") and np.ndim(part) == 1:
        return [*np.asarray(part)]
    raise InputError(
        f"{part!r} selects no {what}; pass a position, a slice, a mask or a list"
        + ("" if what == "row" else ", or a name")
        + did_you_mean(part, map(text_of, names.names)) * (what != "row")
    )


def _one(piece: Any, names: Names, what: str) -> list[int]:
    positions = names.positions(piece)
    if positions:
        return positions
    if is_whole(piece):
        return [_position(int(piece), len(names), what)]
    if not isinstance(piece, str):
        raise InputError(f"{piece!r} of type {type(piece).__name__} is no position of a {what}")
    named = names.texts
    if not named:
        raise UnknownNameError(f"There is no {what} {piece!r}: {what}s have positions, counted from 0.")
    close = get_close_matches(piece, named, n=1, cutoff=0.4)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    more = f" and {len(named) - _LISTED} more" if len(named) > _LISTED else ""
    listed = ", ".join(map(repr, named[:_LISTED]))
    raise UnknownNameError(f"There is no {what} {piece!r}.{guess} The {what}s are {listed}{more}.")


def _position(piece: int, size: int, what: str) -> int:
    if not -size <= piece < size:
        number = "is 1" if size == 1 else f"are {size}"
        raise IndexError(f"There is no {what} {piece}: there {number}, counted from 0")
    return piece % size


def shown_of(predictions: Floats) -> list[int]:
    """Return the positions of the outputs to show, of predictions (..., k): of two classes the second."""
    outputs = list(range(predictions.shape[-1]))
    mirrored = len(outputs) == 2 and predictions.size > 0 and are_probabilities(predictions.reshape(-1, 2))
    return outputs[1:] if mirrored else outputs
