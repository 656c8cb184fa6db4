"""One row of an explanation for readers: sorted by size, in words, one part an output.

Terminal, HTML and plots all draw a `RowView`; none of them indexes arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._explanation.fields import is_missing
from limes._explanation.fit import fidelity_at
from limes._explanation.rules import certificate_sentences
from limes._explanation.selection import by_size, name_positions, shown_of
from limes._explanation.wording import (
    cell,
    count,
    estimate,
    estimates,
    number,
    one_line,
    shorten,
    signed_column,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from limes._arrays import Floats
    from limes._explanation import Explanation

MEANING = "how much the surrogate changes if the condition holds rather than not"

# R² below the first is a warning, below the second a sentence
POOR_FIT, PARTIAL_FIT = 0.25, 0.5
# Standard errors by which a sampled R² must be below
_SURE = 2.0
_ANONYMOUS = "output"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One feature of one output: its condition, the row's value, its coefficient.

    ``drawn`` is the length of its bar: the coefficient, for a slope per standard deviation.
    """

    position: int
    feature: str
    condition: str
    data: str
    value: float
    standard_error: float
    deviation: float = 1.0

    @property
    def is_slope(self) -> bool:
        """Whether the coefficient is per unit of the column: its condition is the column's name alone."""
        return self.condition == self.feature

    @property
    def drawn(self) -> float:
        return self.value * self.deviation

    @property
    def drawn_error(self) -> float:
        return self.standard_error * self.deviation


@dataclass(frozen=True, kw_only=True)
class OutputView:
    """One output of one row; its lines by falling size of the coefficient.

    ``title`` is its name for readers, such as "P(target = 1)". ``fit`` returns R² and its standard error; it
    may take a while, and is called only when one of them is read.
    """

    position: int
    name: str
    title: str
    prediction: float
    surrogate: float
    intercept: float
    fit: Callable[[], tuple[float, float]]
    lines: tuple[Line, ...]
    omitted: int  # features without a line
    is_rule: bool  # a rule has no diagnosis

    @cached_property
    def _fit(self) -> tuple[float, float]:
        return self.fit()

    @property
    def fidelity(self) -> float:
        """R² under the weights."""
        return self._fit[0]

    @property
    def fidelity_error(self) -> float:
        """Standard error of R²; 0 where exact."""
        return self._fit[1]

    @property
    def remark(self) -> str:
        """Sentence on how little the surrogate captures; "" where it captures half or more."""
        return fit_remark(self.fidelity, self.fidelity_error, can_diagnose=not self.is_rule)

    @property
    def difference(self) -> float:
        return self.prediction - self.surrogate

    @property
    def fits_poorly(self) -> bool:
        return is_poor(self.fidelity, self.fidelity_error)


@dataclass(frozen=True, kw_only=True)
class RowView:
    """One row: its outputs, its warnings, and the rule and certificate of a sparse explanation."""

    number: int
    label: str
    outputs: tuple[OutputView, ...]
    calls: int
    shared_calls: int
    warnings: tuple[str, ...]
    rule: str = ""
    certificate: tuple[str, ...] = ()  # sentences


def with_outputs(array: Floats, explanation: Explanation) -> Floats:
    """Return the array with a last axis of outputs, of length one for a single output."""
    return array[..., None] if explanation.values.ndim == 2 else array


def view_row(explanation: Explanation, row: int, max_features: int) -> RowView:
    """Return one row with at most `max_features` lines an output."""
    facts = explanation.certificates[row] if explanation.certificates else {}
    return RowView(
        number=row,
        label=row_label(explanation, row),
        outputs=tuple(
            _view_output(explanation, row, k, max_features) for k in shown_outputs(explanation, row)
        ),
        calls=int(explanation.calls[row]),
        shared_calls=_shared(explanation, row),
        warnings=row_warnings(explanation, row),
        rule=headlined_rule(facts) if facts else "",
        certificate=certificate_sentences(facts) if facts else (),
    )


def _view_output(explanation: Explanation, row: int, output: int, limit: int) -> OutputView:
    values = with_outputs(explanation.values, explanation)[row, :, output]
    deviations = row_deviations(explanation, row)
    order = by_size(np.abs(values * deviations))[:limit]
    if explanation.certificates:  # a rule is its facts that have a weight
        order = order[values[order] != 0]

    def of_row(array: Floats) -> float:
        return float(with_outputs(array, explanation)[row, output])

    return OutputView(
        position=output,
        name=one_line(explanation.output_names[output]),
        title=output_title(explanation, output),
        prediction=of_row(explanation.predictions),
        surrogate=of_row(explanation.surrogate_predictions),
        intercept=of_row(explanation.intercepts),
        fit=lambda: fidelity_at(explanation, row, output),
        lines=tuple(_view_line(explanation, row, int(j), output, deviations[j]) for j in order),
        omitted=0 if explanation.certificates else len(values) - len(order),
        is_rule=bool(explanation.certificates),
    )


def _view_line(explanation: Explanation, row: int, feature: int, output: int, deviation: float) -> Line:
    index = (row, feature, output)
    return Line(
        position=feature,
        feature=one_line(explanation.feature_names[feature]),
        condition=one_line(explanation.conditions[row][feature]),
        data=cell(explanation.data[row, feature]),
        value=float(with_outputs(explanation.values, explanation)[index]),
        standard_error=float(with_outputs(explanation.standard_errors, explanation)[index]),
        deviation=float(deviation),
    )


def coefficient_texts(lines: Sequence[Line], *, sampled: bool, significant: int = 4) -> list[tuple[str, str]]:
    """Write coefficients and their standard errors, "" where exact.

    They have the same decimals, but for slopes, whose units differ.
    """
    if len(lines) > 1 and any(line.is_slope for line in lines):
        alone = (coefficient_texts([line], sampled=sampled, significant=significant) for line in lines)
        return [text for (text,) in alone]
    values = [line.value for line in lines]
    if not sampled:
        return [(text, "") for text in signed_column(values, significant)]
    return estimates(values, [line.standard_error for line in lines], significant)


def slope_facts(explanation: Explanation) -> Mapping[str, Mapping[str, float]]:
    """Return mean and deviation of each feature that has a slope, by its name."""
    slopes = explanation.provenance.get("slopes", {})
    return {name: slopes[name] for name in explanation.feature_names if name in slopes}


def row_deviations(explanation: Explanation, row: int) -> Floats:
    """Return standard deviations (d,) of columns with slopes at a row, the unit of their bars; 1 for others.

    A row that lacks a column's value has no slope there, but a condition.
    """
    slopes, deviations = slope_facts(explanation), np.ones(len(explanation.feature_names))
    for j, name in enumerate(explanation.feature_names):
        if name in slopes and not is_missing(explanation.data[row, j]):
            deviations[j] = slopes[name]["deviation"]
    return deviations


def slope_deviations(explanation: Explanation) -> Floats:
    """Return standard deviations (d,) of columns with slopes; 1 for others."""
    slopes, names = slope_facts(explanation), explanation.feature_names
    return np.array([slopes[name]["deviation"] if name in slopes else 1.0 for name in names])


def bar_units(explanation: Explanation) -> Floats:
    """Return the units of all rows' bars, (n, d)."""
    return np.stack([row_deviations(explanation, row) for row in range(len(explanation))])


def row_label(explanation: Explanation, row: int) -> str:
    """Return the label of a row: "row 3", or its name."""
    label = explanation.ids[row]
    return f"row {label}" if isinstance(label, int) else one_line(str(label))


def left_out(explanation: Explanation) -> str:
    """Return a sentence on how many rows have no explanation, and why the first has none; "" if all have."""
    if not explanation.errors:
        return ""
    row, why = explanation.errors[0]
    total = len(explanation) + len(explanation.errors)
    return (
        f"{len(explanation.errors):,} of {total:,} rows have no explanation (explanation.errors); "
        f"{one_line(str(row))}: {one_line(why)}"
    )


def shown_outputs(explanation: Explanation, row: int | None = None) -> list[int]:
    """Return the positions of the outputs that are shown, of one row or of all: of two classes the second."""
    predictions = with_outputs(explanation.predictions, explanation)
    return shown_of(predictions if row is None else predictions[row])


def main_output(explanation: Explanation, row: int | None) -> int:
    """Return the position of the output with the largest prediction; of two classes the positive one.

    Without a ``row`` it is the largest mean prediction of all rows.
    """
    predictions = with_outputs(explanation.predictions, explanation)
    predictions = predictions if row is None else predictions[row : row + 1]
    shown = shown_of(predictions)
    return shown[int(by_size(predictions.mean(axis=0)[shown])[0])]


def output_position(explanation: Explanation, output: str | int | None, row: int | None = 0) -> int:
    """Return the position of an output, by its name or position; `main_output` for None."""
    if output is None:
        return main_output(explanation, row)
    return int(np.atleast_1d(name_positions(output, explanation.output_names, "output"))[0])


def output_title(explanation: Explanation, output: int) -> str:
    """Return the title of an output: "P(target = 1)", "log-odds of Bad", "prediction"."""
    name = one_line(explanation.output_names[output])
    facts = explanation.provenance
    quantity = facts.get("quantity", _QUANTITIES.get(facts.get("answer")))
    if name == _ANONYMOUS:
        return "margin" if quantity == "margin" else "prediction"
    label = f"target = {name}" if _is_bare(name) else name
    return _TITLES.get(quantity, "{name}").format(label=label, name=name)


# Quantities by the method that is called
_QUANTITIES: Mapping[Any, str] = {"predict_proba": "probability", "decision_function": "margin"}
_TITLES: Mapping[Any, str] = {
    "probability": "P({label})",
    "log-odds": "log-odds of {label}",
    "margin": "margin of {label}",
}


def _is_bare(name: str) -> bool:
    """Return whether the label of a class means nothing by itself: a number, true or false."""
    try:
        float(name)
    except ValueError:
        return name in ("True", "False")
    return True


def row_warnings(explanation: Explanation, row: int) -> tuple[str, ...]:
    """Return the warnings of a row, with one that errors are larger than agreed where no other states it."""
    warnings = tuple(one_line(warning) for warning in explanation.row_warnings[row])
    if warnings or explanation.row_converged[row] or np.isnan(explanation.standard_errors[row]).all():
        return warnings
    calls = int(explanation.calls[row]) + _shared(explanation, row)
    spent = f" with {count(calls, 'model call')}" if calls else ""
    joint = explanation.provenance.get("law") == "joint"
    more = "use a larger background" if joint else "pass a larger max_calls"
    return (f"Standard errors did not reach {accuracy(explanation)}{spent}: {more}.",)


def accuracy(explanation: Explanation) -> str:
    """Return the accuracy that ``row_converged`` refers to: the tolerance, or the default."""
    return one_line(str(explanation.provenance.get("tolerance", "1.5% of the largest coefficient")))


def headlined_rule(facts: Mapping[str, Any]) -> str:
    """Return the rule, behind a verdict where it is worse than the mean."""
    r2 = facts.get("r2", math.nan)
    if r2 < 0.0:
        verdict = "worse than the mean answer, no description of the model here"
        return f"R² {number(r2, 3)}: {verdict}. {facts['rule']}"
    return str(facts["rule"])


def _shared(explanation: Explanation, row: int) -> int:
    return 0 if explanation.shared_calls is None else int(explanation.shared_calls[row])


def method_line(explanation: Explanation, calls: int, shared_calls: int) -> str:
    """Return how the numbers were computed: exactly, or from how many model calls and why."""
    spent = count(calls, "model call")
    if explanation.method == "exact":
        how = one_line(explanation.reason) or "read off the model"
        if explanation.certificates:
            return f"exact: {how} ({spent} to certify it)"
        return f"exact: {how}, no sampling ({spent})"
    why = f", because {one_line(explanation.reason)}" if explanation.reason else ""
    if not shared_calls:
        return f"sampled with {spent}{why}"
    alone = f", and {spent}" if calls else ""
    return f"sampled from a pool of {count(shared_calls, 'model call')} that rows share{alone}{why}"


def meaning(explanation: Explanation) -> str:
    """Return what a coefficient means; designs without conditions state it in provenance["meaning"]."""
    return one_line(str(explanation.provenance.get("meaning", MEANING)))


def headline(view: OutputView) -> str:
    """Return prediction, surrogate and R² of one output in a line."""
    fit = f", R² {fidelity(view)}" if fidelity(view) else ""
    return f"prediction {number(view.prediction)}, surrogate {number(view.surrogate)}{fit}"


def fidelity(view: OutputView) -> str:
    """Return R², with its error if it is sampled; "" where it was not computed."""
    if not np.isfinite(view.fidelity):
        return ""
    return " ".join(filter(None, estimate(view.fidelity, view.fidelity_error)))


def fit_remark(fidelity: float, error: float = 0.0, *, can_diagnose: bool = True) -> str:
    """Return how much the surrogate captures, as a sentence, where that is surely less than half."""
    if not fidelity + _SURE * error < PARTIAL_FIT:
        return ""
    share = f"{max(fidelity, 0.0):.0%}" if fidelity >= _LEAST else "nothing"
    captured = f"The surrogate captures {share} of how the model varies around this row"
    if not is_poor(fidelity, error):
        return f"{captured}; the rest is in none of its coefficients."
    advice = " limes.diagnose(explanation) shows what they miss." if can_diagnose else ""
    return (
        f"{captured}: its coefficients are averages over the neighbourhood, and do not describe the model "
        f"there.{advice}"
    )


# Smaller shares would be written as 0 %
_LEAST = 0.005


def is_poor(fidelity: float, error: float = 0.0) -> bool:
    """Return whether R² is surely so low that it is a warning."""
    return fidelity + _SURE * error < POOR_FIT


def one_line_summary(explanation: Explanation) -> str:
    """Return size, method and the largest features of the first row."""
    n, d = explanation.values.shape[:2]
    several = len(explanation.output_names) > 1
    outputs = f" x {count(len(explanation.output_names), 'output')}" if several else ""
    size = f"{count(n, 'row')} x {count(d, 'feature')}{outputs}, {explanation.method}"
    if not (n and d):
        return f"<Explanation: {size}>"
    view = view_row(explanation, 0, max_features=3).outputs[-1]
    texts = signed_column((line.value for line in view.lines), significant=3)
    first = [f"{shorten(line.condition, 32)} {text}" for line, text in zip(view.lines, texts, strict=True)]
    more = ", ..." if view.omitted else ""
    row = f"{row_label(explanation, 0)}, " if n > 1 else ""
    return f"<Explanation: {size}; {row}{shorten(view.title, 24)}: {', '.join(first)}{more}>"
