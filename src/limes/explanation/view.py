"""One row of an explanation for readers: sorted by size, in words, one part an output.

Terminal, HTML and plots all draw a `RowView`; none of them indexes arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.explanation.selection import by_size
from limes.explanation.wording import cell, count, error, number, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limes._arrays import Floats
    from limes.explanation import Explanation

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
        rule=_headlined_rule(facts) if facts else "",
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
    sampled = f"{samples} that the weights have seen"
    in_sample = ("fidelity error, in sample", number(facts["fidelity"]), sampled)
    return (
        ("fidelity error", number(facts["fresh_fidelity"]), f"mean squared, {fresh}"),
        ("", f"≤ {number(bounds['fidelity'])}", sure),
        *([in_sample] if facts["samples"] else []),
        (
            "precision error",
            number(facts["precision"]),
            f"mean |f(z) − f(x)| where w·z = w·x; {precision_error}",
        ),
        ("", f"≤ {number(bounds['precision'])}", sure),
        ("optimal", *_optimality(facts)),
        ("answers", f"in [{number(low)}, {number(high)}]", _assumption(facts)),
    )


_OPTIMAL_OF = {"population": "of all rules of this size", "sample": "for the rows of the sample"}


def _optimality(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Return whether the rule is the best of its size, and of what, or how firm the choice is."""
    if facts["proved"]:
        return "proved", f"{_OPTIMAL_OF.get(facts.get('optimum', ''), '')} ({facts['solver']})"
    if facts.get("optimum") == "estimate":
        ties = ", ".join(f"{one_line(name)} ({share:.0%})" for name, share in facts["near_ties"].items())
        chosen = f"resampled rows choose the same literals in {facts['stability']:.0%}"
        return "estimated", chosen + (f"; others: {ties}" if ties else "")
    return f"within {facts['gap']:.1%}" if facts["lower_bound"] > 0 else "not known", facts["solver"]


def _assumption(facts: Mapping[str, Any]) -> str:
    if facts.get("assumption"):
        return "assumed: all bounds hold if no answer lies beyond; pass scale=(low, high)"
    return "known: all bounds hold"


def _headlined_rule(facts: Mapping[str, Any]) -> str:
    """Return the rule, behind a verdict where it is worse than the mean."""
    r2 = facts.get("r2", math.nan)
    if r2 < 0.0:
        verdict = "worse than the mean answer, no description of the model here"
        return f"R² {number(r2, 3)}: {verdict}. {facts['rule']}"
    return str(facts["rule"])


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
