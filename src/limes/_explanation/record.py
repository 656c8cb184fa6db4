"""The record of warnings of every row, ``Explanation.row_warnings``, which all media show.

A warning is a text that also says its kind, and the outputs that it is about. Explainers write the record.
What follows from the finished explanation is added when the record is first read: that errors are larger than
agreed, and that single columns say little where the surrogate misses the prediction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from limes._explanation.fit import effects_at
from limes._explanation.view import PARTIAL_FIT, SURE, accuracy, bar_units, shown_outputs, with_outputs
from limes._explanation.wording import count

if TYPE_CHECKING:
    from limes._arrays import Floats
    from limes._explanation import Explanation

# Kinds of warnings by their codes, in the order of their weight; long tables and JSON have the codes
CODES: Mapping[str, str] = {
    "other side": "the surrogate lies on the other side of the decision's threshold than the model",
    "no probability": "the surrogate of a probability is below 0 or above 1",
    "far": "the surrogate misses the prediction by more than all its coefficients together",
    "combinations": "single columns account for less than half of how the model varies around the row, and "
    "the surrogate misses the prediction by more than a quarter of the largest bar",
    "hidden effect": "a column's whole effect is a fifth or more of how the model varies around the row, "
    "and its coefficient tells next to nothing of it",
    "inconsistent": "the model answers differently for the same input",
    "columns": "the model was fitted on columns of other names",
    "unchanged": "the model answers the same whatever is changed",
    "errors": "standard errors are not to be trusted",
    "tolerance": "errors are larger than the tolerance, or than 1.5 % of the largest coefficient",
    "cut short": "sampling ended early",
    "new values": "the model was asked about values that do not occur in the background",
    "few rows": "few rows of the sample count around the row",
    "collinear": "features change together in all rows that count",
    "hardly changed": "a feature hardly changed in the sample",
    "hidden alike": "a feature looks the same hidden as shown, so that its coefficient is unknown",
    "sampled": "the row is sampled, though the model is read",
    "order": "the order of coefficients is not certain",
    "on an edge": "a value lies on the edge of its bin",
    "outside": "a value lies outside the background's range",
    "does not vary": "a column does not vary in the background",
    "probabilities": "answers between 0 and 1 do not add up to 1",
    "scores": "what claims to be probabilities is not: scores are explained as they are",
    "labels": "labels or scores are explained in another form, or as amounts",
    "input": "the input is cut, out of its range, or split in an unusual way",
    "fills": "fills of an image do not agree about a superpixel",
    "rule": "a rule is worse, or its bounds wider, than asked for",
    "contributions": "contributions were not computed",
    "other": "anything else, such as the warnings of files from earlier versions",
}


# Codes of warnings that are about one of the two readings alone
_OF_COEFFICIENTS = frozenset(
    (
        *("other side", "no probability", "far", "combinations", "hidden effect", "errors", "tolerance"),
        *("few rows", "collinear", "hardly changed", "sampled", "order", "on an edge", "rule"),
    )
)
_OF_CONTRIBUTIONS = frozenset(("contributions",))


class RowWarning(str):
    """A warning about a row; its ``code`` is one of ``CODES``, its ``outputs`` are names, none for all."""

    __slots__ = ("code", "outputs")

    code: str
    outputs: tuple[str, ...]

    def __new__(cls, text: str, code: str = "other", outputs: Iterable[str] = ()) -> RowWarning:
        warning = super().__new__(cls, text)
        warning.code, warning.outputs = code, tuple(outputs)
        return warning

    @classmethod
    def about(cls, outputs: Sequence[str], sentence: str, code: str) -> RowWarning:
        """A sentence about some of several outputs, whose names it ends with."""
        return cls(f"{sentence}{_named(outputs)}", code, outputs)

    @property
    def reading(self) -> str:
        """The reading that it is about, "coefficients" or "contributions"; "" for both."""
        if self.code in _OF_COEFFICIENTS:
            return "coefficients"
        return "contributions" if self.code in _OF_CONTRIBUTIONS else ""

    def __reduce__(self) -> tuple[Any, ...]:
        return RowWarning, (str(self), self.code, self.outputs)

    @property
    def sentence(self) -> str:
        """The text without the names of the outputs."""
        return self.removesuffix(_named(self.outputs))

    def extended(self, by: str) -> RowWarning:
        return RowWarning.about(self.outputs, f"{self.sentence}{by}", self.code)


def _named(outputs: Sequence[str]) -> str:
    return f" (output {', '.join(outputs)})" if outputs else ""


def by_output(sentences: Sequence[str], outputs: Sequence[str], code: str) -> tuple[RowWarning, ...]:
    """Warnings with sentences about outputs, "" for none; outputs with the same one share it.

    A sentence about all outputs names none.
    """
    owners: dict[str, list[str]] = {}
    for sentence, output in zip(sentences, outputs, strict=True):
        if sentence:
            owners.setdefault(sentence, []).append(output)
    return tuple(
        RowWarning(sentence, code) if len(its) == len(outputs) else RowWarning.about(its, sentence, code)
        for sentence, its in owners.items()
    )


def of_outputs(warnings: Iterable[RowWarning], names: Collection[str]) -> tuple[RowWarning, ...]:
    """Those about outputs of these names, or about all."""
    return tuple(w for w in warnings if not w.outputs or any(name in names for name in w.outputs))


# -- the record ----------------------------------------------------------------------------------------------

Record: TypeAlias = tuple[tuple[RowWarning, ...], ...]
# Share of the largest bar that a miss of the prediction exceeds where it matters what single columns capture
_QUARTER = 0.25
# Codes of warnings that imply that errors are larger than agreed
_SAY_IT_ALREADY = ("errors", "unchanged", "cut short", "tolerance", "rule")


def completed(explanation: Explanation, record: Record) -> Record:
    """The record of every row with what the finished explanation adds to it."""
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
        rows[i] = tuple({str(w): w for w in (*record[i], *added)}.values())
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
    text = f"standard errors did not reach {accuracy(explanation)}{spent}: {more}"
    return (RowWarning(text, "tolerance"),)


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
                sentences[k] = (
                    f"the coefficient tells next to nothing of the whole effect of {each}, in shares of how "
                    "the model varies around the row: read explanation.effects or contributions in its place"
                )
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
                sentences[k] = (
                    f"single columns account for {max(captured[i, k], 0.0):.0%} of how the model varies "
                    "around the row; the rest is in combinations of columns, which limes.diagnose names"
                )
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
    """The field of an explanation that is ``completed`` when it is first read."""

    def __get__(self, explanation: Any, owner: type) -> Any:
        if explanation is None:
            return MISSING  # it has no default
        state = vars(explanation)
        if not state.get("_is_complete", False):
            state["row_warnings"] = completed(explanation, state["row_warnings"])
            state["_is_complete"] = True
        return state["row_warnings"]

    def __set__(self, explanation: Any, value: Any) -> None:
        vars(explanation)["row_warnings"] = value


def record_of_warnings() -> Any:
    """A required field of an explanation, which is completed when it is first read."""
    return _RecordOfWarnings()
