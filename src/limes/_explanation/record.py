"""The record of warnings of every row, ``Explanation.row_warnings``, which all media show.

Explainers write the record, in the words of ``_warnings.py``. What follows from the finished explanation is
added when the record is first read: that errors are larger than agreed, and that single columns say little
where the surrogate misses the prediction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from limes._explanation.attribution import OF_ERRORS, account_warnings
from limes._explanation.fit import effects_at
from limes._explanation.view import PARTIAL_FIT, SURE, accuracy, bar_units, shown_outputs, with_outputs
from limes._explanation.wording import count
from limes._warnings import RowWarning, by_output, of_outputs, sentence

if TYPE_CHECKING:
    from limes._arrays import Floats
    from limes._explanation import Explanation

Record: TypeAlias = tuple[tuple[RowWarning, ...], ...]
# Share of the largest bar that a miss of the prediction exceeds where it matters what single columns capture
_QUARTER = 0.25
# Codes of warnings that imply that errors are larger than agreed
_SAY_IT_ALREADY = ("errors", "unchanged", "cut short", "tolerance", "rule")


def completed(explanation: Explanation, record: Record) -> Record:
    """The record of every row with what the finished coefficients add to it."""
    fit = explanation.fit
    if fit is not None and fit.make_warnings is not None:  # coefficients were not asked for, but are shown
        record = tuple(of_outputs(its, explanation.output_names) for its in fit.all_warnings())
    numbers = effects_at(explanation)
    combinations, hidden = _combinations(explanation, *numbers[:2]), _hidden_effects(explanation, numbers[2])
    short = {
        i
        for i in np.flatnonzero(~explanation.coefficients.row_converged).tolist()
        if not any(warning.code in _SAY_IT_ALREADY for warning in record[i])
    }
    rows = [*record]
    for i in {*combinations, *hidden, *short}:
        inaccurate = _inaccurate(explanation, i) if i in short else ()
        added = (*combinations.get(i, ()), *hidden.get(i, ()), *inaccurate)
        # a selection of rows may have them already
        rows[i] = _joined(record[i], added)
    return tuple(rows)


def _inaccurate(explanation: Explanation, row: int) -> tuple[RowWarning, ...]:
    """Warn that errors are larger than agreed; nothing where there are no errors."""
    if np.isnan(explanation.coefficients.standard_errors[row]).all():
        return ()
    shared = 0 if explanation.shared_calls is None else explanation.shared_calls[row]
    calls = int(explanation.calls[row] + shared)
    spent = f" with {count(calls, 'model call')}" if calls else ""
    is_joint = explanation.provenance.get("law") == "joint"
    more = "use a larger background" if is_joint else "pass a larger max_calls"
    more = "raise samples" if explanation.certificates else more
    return (
        RowWarning.of("tolerance", accuracy=accuracy(explanation, "coefficients"), spent=spent, more=more),
    )


def _hidden_effects(
    explanation: Explanation, hidden: Mapping[int, Floats]
) -> dict[int, tuple[RowWarning, ...]]:
    """Warn of columns whose coefficients vanish, while their whole effects (d, k) matter."""
    names, by_row, shown = explanation.feature_names, {}, shown_outputs(explanation)
    for i, shares in hidden.items():
        sentences = [""] * len(explanation.output_names)
        for k in shown:
            columns = [
                (float(shares[j, k]), names[j]) for j in np.flatnonzero(~np.isnan(shares[:, k])).tolist()
            ]
            if columns:
                each = " and ".join(f"{name} ({share:.0%})" for share, name in sorted(columns, reverse=True))
                sentences[k] = sentence("hidden effect", columns=each)
        if warnings := by_output(sentences, explanation.output_names, "hidden effect"):
            by_row[i] = warnings
    return by_row


def _combinations(
    explanation: Explanation, captured: Floats, errors: Floats
) -> dict[int, tuple[RowWarning, ...]]:
    """Warn where whole effects capture little, of models whose effects have a closed form."""
    errors_at_rows = np.abs(with_outputs(explanation.coefficients.local_errors, explanation))
    misses = errors_at_rows > _QUARTER * largest_bars(explanation)
    little = misses & (captured + SURE * errors < PARTIAL_FIT)
    by_row, shown = {}, shown_outputs(explanation)
    for i in np.flatnonzero(little.any(axis=1)).tolist():
        sentences = [""] * len(explanation.output_names)
        for k in shown:
            if little[i, k]:
                sentences[k] = sentence("combinations", captured=max(captured[i, k], 0.0))
        if warnings := by_output(sentences, explanation.output_names, "combinations"):
            by_row[i] = warnings
    return by_row


def largest_bars(explanation: Explanation) -> Floats:
    """The largest bars of rows and outputs, (n, k); a selection of features keeps those of all."""
    of_all: Floats | None = vars(explanation).get("_largest")
    if of_all is not None:
        return of_all
    values = explanation.coefficients.values
    bars = np.abs(with_outputs(values, explanation) * bar_units(explanation)[..., None])
    return np.asarray(bars.max(axis=1, initial=0.0))


class _RecordOfWarnings:
    """The field of an explanation whose rows are completed, by what was asked for, when it is first read."""

    def __get__(self, explanation: Any, owner: type) -> Any:
        if explanation is None:
            return MISSING  # it has no default
        state = vars(explanation)
        if not state.get("_is_complete", False):
            record = state["row_warnings"]
            if state["coefficients"] is not None:
                record = completed(explanation, record)
            if (account := state["contributions"]) is not None:
                about_it = account_warnings(explanation, account, range(len(explanation)))
                others = (tuple(w for w in row if w.code not in OF_ERRORS) for row in record)
                record = tuple(map(_joined, others, about_it))
            state["row_warnings"], state["_is_complete"] = record, True
        return state["row_warnings"]

    def __set__(self, explanation: Any, value: Any) -> None:
        vars(explanation)["row_warnings"] = value


def _joined(*records: tuple[RowWarning, ...]) -> tuple[RowWarning, ...]:
    return tuple({str(warning): warning for record in records for warning in record}.values())


def record_of_warnings() -> Any:
    """A required field of an explanation, which is completed when it is first read."""
    return _RecordOfWarnings()
