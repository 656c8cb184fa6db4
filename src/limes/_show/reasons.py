"""The largest coefficients of a row as sentences, in their order, with a mark where it is not certain.

Two sizes |β| are distinct if they differ by more than 1.96 standard errors of their difference, and a sign is
certain if the coefficient is as far from 0. Exact coefficients are distinct unless they are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._checks import did_you_mean, is_count
from limes._explanation.view import Line, main_output, output_title, view_row
from limes._explanation.wording import CONFIDENCE, number
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._explanation import Explanation

Catalogue = Mapping[str, Any]


class Reason(str):
    """A sentence about one coefficient.

    Attributes
    ----------
    feature, condition, data
        The feature, its condition at the row, and the row's value, as texts.
    value, standard_error
        The coefficient and its standard error.
    certain
        Whether its place among the reasons, and its sign, are certain.
    """

    __slots__ = ("certain", "condition", "data", "feature", "standard_error", "value")

    feature: str
    condition: str
    data: str
    value: float
    standard_error: float
    certain: bool

    @classmethod
    def of(cls, line: Line, sentence: str, *, certain: bool) -> Reason:
        """Return the sentence about a line of an explanation."""
        reason = cls(sentence if certain else f"{sentence} (order not certain)")
        reason.feature, reason.condition, reason.data = line.feature, line.condition, line.data
        reason.value, reason.standard_error = line.value, line.standard_error
        reason.certain = certain
        return reason


def reasons(
    explanation: Explanation,
    k: int,
    catalogue: Catalogue | None,
    row: int,
    output: str | int | None,
    sign: str,
) -> tuple[Reason, ...]:
    """Return the k largest coefficients of a row as sentences; see ``Explanation.reasons``."""
    if not is_count(k):
        raise InputError(f"reasons(k={k!r}): k is the number of reasons; pass 1 or more")
    if sign not in _SIGNS:
        raise InputError(f"sign={sign!r}; pass one of {[*_SIGNS]}")
    _check_names(catalogue or {}, explanation.feature_names)
    one = explanation[row][..., main_output(explanation[row], 0) if output is None else output]
    title = output_title(one, 0)
    title = "the prediction" if title == "prediction" else title
    lines = [line for line in view_row(one, 0, len(one.feature_names)).outputs[0].lines if _SIGNS[sign](line)]
    return tuple(
        Reason.of(line, _sentence(line, title, catalogue or {}), certain=_is_certain(lines, place))
        for place, line in enumerate(lines[:k])
    )


_SIGNS = {
    "both": lambda line: abs(line.value) > 0,  # one that is unknown is no reason
    "+": lambda line: line.value > 0,
    "-": lambda line: line.value < 0,
}


def _check_names(catalogue: Catalogue, names: tuple[str, ...]) -> None:
    for name, entry in catalogue.items():
        if name not in names:
            raise InputError(f"catalogue: there is no feature {name!r}{did_you_mean(name, names)}")
        pair = isinstance(entry, tuple | list) and len(entry) == 2 and all(isinstance(e, str) for e in entry)
        if not isinstance(entry, str) and not pair:
            raise InputError(
                f"catalogue[{name!r}] is {entry!r}; pass a text, or a pair of texts: where it raises the "
                "prediction, and where it lowers it"
            )


def _sentence(line: Line, title: str, catalogue: Catalogue) -> str:
    entry = catalogue.get(line.feature)
    if entry is None:
        verb = "raises" if line.value > 0 else "lowers"
        cause = f"each further unit of {line.feature}" if line.is_slope else line.condition
        return f"{cause} {verb} {title} by {number(abs(line.value))}"
    text = entry if isinstance(entry, str) else entry[0 if line.value > 0 else 1]
    return text.replace("{condition}", line.condition).replace("{value}", line.data)


def _is_certain(lines: list[Line], place: int) -> bool:
    """Return whether a line is surely smaller than the one before, larger than the next, and not 0."""
    line = lines[place]
    neighbours = lines[max(place - 1, 0) : place] + lines[place + 1 : place + 2]
    apart = all(
        abs(abs(line.drawn) - abs(other.drawn)) > CONFIDENCE * np.hypot(line.drawn_error, other.drawn_error)
        for other in neighbours
    )
    return bool(apart and abs(line.value) > CONFIDENCE * line.standard_error)
