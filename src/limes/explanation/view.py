"""One row of an explanation for readers: which row and output, sorted by size, in words.

``explanation[rows, features, outputs]`` takes a position, a name, a slice, a mask or a list of positions and
names: all become positions. Terminal, HTML and plots all draw a `RowView`; none of them indexes arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.exceptions import InputError
from limes.explanation.wording import cell, count, error, number, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from limes._arrays import Floats
    from limes.explanation import Explanation


_ALL = slice(None)
_LISTED = 20  # names in a message


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
    """Tell whether a part of a key is one position or one name."""
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
    """Return the positions among `names` that a part of a key selects; `what` names them in errors.

    Raises
    ------
    UnknownNameError
        A name is not among `names`.
    IndexError
        A position, or the length of a mask, does not fit.
    InputError
        The part is not a position, name, slice, mask or list.
    """
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
        raise IndexError(f"There is no {what} {piece}: there are {size}, counted from 0")
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


MEANING = "change of the surrogate when the condition holds against when it does not"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One feature of one output: its condition, the row's value, its coefficient."""

    position: int
    feature: str
    condition: str
    data: str
    value: float
    standard_error: float


@dataclass(frozen=True, kw_only=True)
class OutputView:
    """One output of one row; its lines by falling size of the coefficient."""

    name: str
    prediction: float
    surrogate: float
    intercept: float
    fidelity: float
    fidelity_error: float
    lines: tuple[Line, ...]
    omitted: int  # features without a line

    @property
    def difference(self) -> float:
        """Error of the surrogate at the row."""
        return self.prediction - self.surrogate


@dataclass(frozen=True, kw_only=True)
class RowView:
    """One row: its outputs, its warnings, and the rule and certificate of a sparse explanation."""

    number: int
    outputs: tuple[OutputView, ...]
    calls: int
    warnings: tuple[str, ...]
    rule: str = ""
    certificate: tuple[tuple[str, str, str], ...] = ()  # name, number, remark


def with_outputs(array: Floats, explanation: Explanation) -> Floats:
    """Return the array with a last axis of outputs, of length one for a single output."""
    return array[..., None] if explanation.values.ndim == 2 else array


def view_row(explanation: Explanation, row: int, max_features: int) -> RowView:
    """Return one row with at most `max_features` lines an output."""
    outputs = range(len(explanation.output_names))
    facts = explanation.certificates[row] if explanation.certificates else {}
    return RowView(
        number=row,
        outputs=tuple(_view_output(explanation, row, k, max_features) for k in outputs),
        calls=int(explanation.calls[row]),
        warnings=_warnings(explanation, row),
        rule=facts.get("rule", ""),
        certificate=_certificate_lines(facts) if facts else (),
    )


def _view_output(explanation: Explanation, row: int, output: int, limit: int) -> OutputView:
    values = with_outputs(explanation.values, explanation)[row, :, output]
    order = by_size(np.abs(values))[:limit]

    def of_row(array: Floats) -> float:
        return float(with_outputs(array, explanation)[row, output])

    return OutputView(
        name=one_line(explanation.output_names[output]),
        prediction=of_row(explanation.predictions),
        surrogate=of_row(explanation.surrogate_predictions),
        intercept=of_row(explanation.intercepts),
        fidelity=of_row(explanation.fidelity),
        fidelity_error=0.0 if explanation.fidelity_errors is None else of_row(explanation.fidelity_errors),
        lines=tuple(_view_line(explanation, row, int(j), output) for j in order),
        omitted=len(values) - len(order),
    )


def _view_line(explanation: Explanation, row: int, feature: int, output: int) -> Line:
    index = (row, feature, output)
    return Line(
        position=feature,
        feature=one_line(explanation.feature_names[feature]),
        condition=one_line(explanation.conditions[row][feature]),
        data=cell(explanation.data[row, feature]),
        value=float(with_outputs(explanation.values, explanation)[index]),
        standard_error=float(with_outputs(explanation.standard_errors, explanation)[index]),
    )


def largest_output(explanation: Explanation, row: int) -> int:
    """Return the position of the output with the largest prediction for this row."""
    predictions = with_outputs(explanation.predictions, explanation)[row]
    return int(by_size(predictions)[0])


def _warnings(explanation: Explanation, row: int) -> tuple[str, ...]:
    warnings = tuple(one_line(warning) for warning in explanation.row_warnings[row])
    if explanation.row_converged[row]:
        return warnings
    calls = count(int(explanation.calls[row]), "model call")
    return (f"The tolerance was not reached within {calls}: the errors are larger than asked.", *warnings)


def _certificate_lines(facts: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Return name, number and remark of each part of a certificate."""
    sure, bounds = f"{facts['confidence']:.0%} sure", facts["bounds"]
    fresh, samples = count(facts["fresh_samples"], "fresh row"), count(facts["samples"], "row")
    precision_error = f"± {number(facts['precision_error'], 2)}" if facts["precision_error"] else "exact"
    low, high = facts["scale"]
    return (
        ("fidelity error", number(facts["fresh_fidelity"]), f"mean squared, {fresh}"),
        ("", f"≤ {number(bounds['fidelity'])}", sure),
        ("fidelity error, in sample", number(facts["fidelity"]), f"{samples} that the weights have seen"),
        (
            "precision error",
            number(facts["precision"]),
            f"mean |f(z) − f(x)| where w·z = w·x; {precision_error}",
        ),
        ("", f"≤ {number(bounds['precision'])}", sure),
        ("optimal", _optimality(facts), facts["solver"]),
        ("scale", f"[{number(low)}, {number(high)}]", "these answers count as −1 and 1 in all errors"),
    )


def _optimality(facts: Mapping[str, Any]) -> str:
    if facts["proved"]:
        return "proved"
    return f"within {facts['gap']:.1%}" if facts["lower_bound"] > 0 else "not known"


def method_line(explanation: Explanation, calls: int) -> str:
    """Return how the numbers were computed: exactly, or from how many model calls and why."""
    spent = count(calls, "model call")
    if explanation.method == "exact":
        how = one_line(explanation.reason) or "read off the model"
        return f"exact: {how}, no sampling ({spent})"
    why = f", because {one_line(explanation.reason)}" if explanation.reason else ""
    return f"sampled with {spent}{why}"


def meaning(explanation: Explanation) -> str:
    """Return what a coefficient means; designs without conditions state it in provenance["meaning"]."""
    return one_line(str(explanation.provenance.get("meaning", MEANING)))


def headline(view: OutputView) -> str:
    """Return prediction and surrogate of one output in a line."""
    return f"prediction {number(view.prediction)}, surrogate {number(view.surrogate)}"


def fidelity(view: OutputView) -> str:
    """Return R², with its error if it is sampled; "" where it was not computed."""
    if not np.isfinite(view.fidelity):
        return ""
    uncertain = f" {error(view.fidelity_error)}" if view.fidelity_error > 0 else ""
    return f"{number(view.fidelity, 3)}{uncertain}"
