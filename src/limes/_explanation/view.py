"""The view of an explanation that all media show: one row as a `RowView`, its texts, warnings and remarks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._arrays import ROUNDING
from limes._checks import check_choice
from limes._explanation.attribution import (
    NO_SURROGATE,
    Coefficients,
    account_warnings,
    changed,
    error_shares,
    is_by_covers,
)
from limes._explanation.certain import CertainView, certain_view
from limes._explanation.differences import CHANGE, REFERENCE, is_or_are
from limes._explanation.fit import account_at, additive_at, fidelity_at, leading, strongest_pairs
from limes._explanation.rules import NO_WEIGHTS, Certificate, certificate_sentences, is_certain
from limes._explanation.selection import by_size, name_positions, shown_of
from limes._explanation.wording import (
    CONFIDENCE,
    NOT_OF_COVERS,
    adding_up,
    cell,
    count,
    difference,
    estimate_text,
    estimates,
    is_missing,
    left_of,
    number,
    one_line,
    percentage,
    shorten,
    shorten_condition,
    signed_column,
)
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from limes._arrays import Floats
    from limes._explanation import Explanation
    from limes._explanation.attribution import Contributions
    from limes._warnings import RowWarning

# What the base is, from which contributions count: the model's average with other rows' values
AROUND = "is usual"
CHANGE_OF_USUAL = "is the change of what is usual"
MEANING = "how much the surrogate changes if the condition holds rather than not"

# Features that a print shows
MAX_FEATURES = 10
# R² below it is worth a sentence
PARTIAL_FIT = 0.5
# A column matters if its whole effect makes up this share of how the model varies around the row, and its
# coefficient hides that if it tells at most this share of the effect
MATTERS, CAPTURED = 0.2, 0.05
# Standard errors by which a sampled number must pass a threshold
SURE = 2.0
# Hundredths of a probability below which contributions are written as 0.0
_TINY_SHARE = 1e-3
# How contributions without errors were computed, without and with calls
_EXACTLY = ("read off the model", "from the model's answers")
# Smaller shares would be written as 0 %
_LEAST = 0.005
_ANONYMOUS = "output"
# Rounding of a sum of contributions, as a share of what is added
_ROUNDED = 1e-6
# What is in parentheses inside a reason, and what one ends with whose answers were those of a form
_DETAILS, _OF_FORM = re.compile(r" \([^()]*(\([^()]*\)[^()]*)*\)"), "(sampled from the read model)"
_PLACE = re.compile(r" at \(\d+, \d+\)$")
# What the condition of a feature that can be hidden says of it
_SHOWN = re.compile(r" (present|shown)(?=(, unused)?$)")


@dataclass(frozen=True)
class Share:
    """A column's contribution to the prediction, with its error, and what it adds alone and last."""

    value: float
    standard_error: float
    alone: float
    last: float

    @property
    def reach(self) -> float:
        """The length of its error bar to one side; 0 where it is exact, or the error is infinite."""
        reach = CONFIDENCE * self.standard_error
        return reach if np.isfinite(reach) else 0.0

    @property
    def ends(self) -> tuple[float, ...]:
        """Return what the value adds alone and last, where that is exact; estimates have no errors."""
        return () if self.standard_error else (self.alone, self.last)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One feature of one output: its condition, the row's value, its contribution or coefficient."""

    position: int
    feature: str
    condition: str
    data: str
    value: float
    standard_error: float
    deviation: float  # of the column, for a slope; else 1
    holds: str = ""  # the column and the row's value, ``bmi = 32.1``, or what is shown, ``"good"``
    share: Share | None = None  # in the account of the prediction

    @property
    def is_slope(self) -> bool:
        """Whether the value is a coefficient per unit of the column: its condition is the name alone."""
        return self.share is None and self.condition == self.feature

    @property
    def named(self) -> str:
        """Return what it is about: the value that contributes, or the condition of a coefficient."""
        return self.condition if self.share is None else self.holds

    @property
    def drawn(self) -> float:
        """The length of its bar: the contribution, or the coefficient, for a slope per standard deviation."""
        return self.value * self.deviation

    @property
    def drawn_error(self) -> float:
        return self.standard_error * self.deviation

    @property
    def reach(self) -> float:
        """The length of its error bar to one side; 0 where the error is infinite."""
        reach = CONFIDENCE * self.drawn_error
        return reach if np.isfinite(reach) else 0.0


def _or(lines: Sequence[Line] | None, every: Sequence[Line]) -> Sequence[Line]:
    return every if lines is None else lines


# Weights whose coefficients are Shapley values
SHAPLEY = "Shapley"


@dataclass(frozen=True, kw_only=True)
class OutputView:
    """One output of one row, by its contributions, or by its coefficients; its lines by falling size."""

    position: int
    title: str  # its name for readers, "P(target = 1)"
    label: str  # of a class, "target = 1"; "" of no probability, or of a change of one
    in_points: bool  # whether contributions are written in hundredths, as those of probabilities
    prediction: float
    lines: tuple[Line, ...]
    omitted: int  # features without a line
    sampled: bool  # whether numbers have errors
    is_rule: bool  # whose certificate says how well it fits
    # of contributions
    where: str  # the base is, "is usual"
    base: float | None  # to which contributions are added; None of coefficients
    base_error: float
    is_whole: bool  # whether contributions of all features are there
    each: Mapping[int, tuple[float, float]]  # contributions of all features, with their errors
    # of coefficients
    surrogate: float
    whose: str  # surrogate it is
    intercept: float
    fit: Callable[[], tuple[float, float]]  # R² and its error; it may take a while
    additive: Callable[[], float]  # R² of whole effects; it may take a while

    @cached_property
    def _fit(self) -> tuple[float, float]:
        return self.fit()

    @property
    def fidelity(self) -> float:
        return self._fit[0]

    @property
    def r2(self) -> str:
        """R² with two digits; "" where it was not computed."""
        return f"{self.fidelity:.2f}" if np.isfinite(self.fidelity) else ""

    @property
    def remark(self) -> str:
        return "" if self.is_rule else fit_remark(*self._fit)

    @property
    def is_probability(self) -> bool:
        """Whether its contributions are written in hundredths."""
        return self.in_points

    @property
    def headline(self) -> str:
        """The prediction and what it is compared with, as a sentence."""
        if self.base is not None:
            below, above, _ = self._written[1]
            if self.where == CHANGE_OF_USUAL:
                unit = " points" if self.in_points else ""
                below, above = (text if text.startswith("-") else f"+{text}" for text in (below, above))
                return f"{above}{unit}; {below}{unit} {self.where}"
            if self.label:
                return f"{above} % chance of {self.label}; {below} % {self.where}"
            return f"prediction {above}; {below} {self.where}"
        fit = f", R² {self.r2}" if self.r2 else ""
        # a rule's parts add up to the prediction
        surrogate = "" if self.is_rule else f", {self.whose} surrogate {number(self.surrogate)}"
        return f"prediction {number(self.prediction)}{surrogate}{fit}"

    @property
    def titled(self) -> str:
        """The headline behind the output's name, where that does not say it."""
        named = self.title == "prediction" or (self.base is not None and self.label != "")
        return self.headline if named else f"{self.title}: {self.headline}"

    @property
    def surrogate_line(self) -> str:
        """How single columns describe the model beside the surrogate."""
        additive = self.additive()
        if not np.isfinite(additive):
            return ""
        return f"Curves of single columns have R² {max(additive, 0.0):.2f} around the row."

    @property
    def facts(self) -> list[tuple[str, str]]:
        gap = ("not captured at the row", difference(self.prediction - self.surrogate))
        return [
            ("prediction", number(self.prediction)),
            *([] if self.is_rule else [("surrogate", number(self.surrogate))]),
            *([("R²", estimate_text(*self._fit))] if self.r2 else []),
            *([] if self.is_rule else [gap]),
            ("intercept", number(self.intercept)),
        ]

    def shares(self, lines: Sequence[Line] | None = None) -> list[float]:
        """Contributions of some features, all unless given, and of all others together, if there are any."""
        some = [line.value for line in _or(lines, self.lines)]
        rest = self.prediction - (self.base or 0.0) - sum(some)
        return [*some, rest] if self.others(lines) else some

    def others(self, lines: Sequence[Line] | None = None) -> str:
        """Return what the others are called that are not among these; "" without others."""
        hidden = len(self.lines) - len(_or(lines, self.lines)) + self.omitted
        return "all others" if not self.is_whole else f"{hidden} others" if hidden > 1 else "1 other" * hidden

    def account_texts(
        self, lines: Sequence[Line] | None = None
    ) -> tuple[list[tuple[str, str]], tuple[str, str, str]]:
        """Write `shares` with their errors; and the base, the prediction and their difference.

        A number is written the same whichever lines are shown: all add up, and the others are what is left.
        """
        texts, levels = self._written
        some = [texts[line.position] for line in _or(lines, self.lines)]
        if not self.others(lines):
            return some, levels
        return [*some, (left_of(levels[2], [text for text, _ in some], self.shares(lines)[-1]), "")], levels

    @cached_property
    def _written(self) -> tuple[dict[int, tuple[str, str]], tuple[str, str, str]]:
        """Return what is written of each feature, and the levels; probabilities in hundredths."""
        unit = 100.0 if self.is_probability else 1.0
        base, prediction = unit * (self.base or 0.0), unit * self.prediction
        parts, errors = ([unit * pair[i] for pair in self.each.values()] for i in (0, 1))
        if not self.is_whole:
            parts, errors = [*parts, prediction - base - sum(parts)], [*errors, 0.0]
        # of hundredths a tenth is enough for people, and where all are tiny the tenth has no digits
        largest, of_base = max(map(abs, parts), default=0.0), unit * self.base_error
        digits = 2 if self.is_probability and largest < 10.0 else 3
        decimals = 1 if self.is_probability and largest < _TINY_SHARE else None
        texts, levels = adding_up(
            parts, errors, base, prediction, digits, start_error=of_base, decimals=decimals
        )
        return dict(zip(self.each, texts, strict=False)), levels

    def texts(self, significant: int = 4, most: int | None = None) -> list[tuple[str, str]]:
        """Write the first coefficients and their standard errors, "" where exact: with the same decimals."""
        lines = self.lines[:most]
        # but for slopes, whose units differ
        groups = [[line] for line in lines] if any(line.is_slope for line in lines) else [lines]
        if not self.sampled:
            columns = [signed_column((line.value for line in group), significant) for group in groups]
            return [(text, "") for column in columns for text in column]
        return [
            text
            for group in groups
            for text in estimates([x.value for x in group], [x.standard_error for x in group], significant)
        ]


@dataclass(frozen=True, kw_only=True)
class RowView:
    """One row: its outputs, its warnings, and the rule and certificate of a sparse explanation."""

    label: str
    method: str
    outputs: tuple[OutputView, ...]
    record: Callable[[], tuple[str, ...]]  # the warnings; they may take a while
    rule: str = ""
    certificate: tuple[str, ...] = ()  # sentences
    account: Contributions | None = None  # of all features, (1, d, ...)
    certain: CertainView | None = None  # facts that hold for certain, in the place of coefficients

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        return self.record()


def coloured(explanation: Explanation, row: int, view: RowView) -> Explanation:
    """Return the row, with contributions in the place of coefficients where the view has them."""
    one = explanation[row]
    return one if view.account is None else in_their_place(one, view.account)


def in_their_place(explanation: Explanation, account: Contributions) -> Explanation:
    """Return the explanation with contributions for coefficients, as numbers of features that are drawn.

    What is rounding beside the prediction is 0: it has no colour.
    """
    unknown = np.full(explanation.predictions.shape, np.nan)
    shape = (*explanation.data.shape, *explanation.predictions.shape[1:])
    values = account.values.reshape(shape)
    size = np.maximum(np.abs(explanation.predictions), np.abs(account.base_values.reshape(unknown.shape)))
    drawn = Coefficients(
        values=np.where(np.abs(values) <= ROUNDING * size[:, None], 0.0, values),
        standard_errors=account.standard_errors.reshape(shape),
        intercepts=account.base_values.reshape(unknown.shape),
        surrogate_predictions=explanation.predictions,
        calls=account.calls,
        row_converged=account.row_converged,
        fidelity=unknown,
        fidelity_errors=np.full(unknown.shape, np.inf),
    )
    return changed(explanation, coefficients=drawn, contributions=account, method=account.method)


def in_differences(explanation: Explanation) -> Explanation:
    """Return the explanation with what a fact of a rule changes, in the place of its weight on -1 and +1."""
    factor = explanation.provenance.get("difference")
    if factor is None:
        return explanation
    its = explanation.coefficients
    values = factor * its.values
    its = its.changed(
        values=values,
        standard_errors=factor * its.standard_errors,
        intercepts=its.intercepts - (values - its.values).sum(axis=1),
    )
    return changed(
        explanation,
        coefficients=its,
        provenance={name: fact for name, fact in explanation.provenance.items() if name != "difference"},
    )


def named_account(explanation: Explanation, of: str) -> Contributions | None:
    """The contributions, computed if they must be, where they are the reading that is named; else None.

    An InputError says what to pass where they do not exist.
    """
    if check_choice("of", of, ("coefficients", "contributions")) == "coefficients":
        return None
    try:
        return explanation.contributions
    except InputError as error:
        raise InputError(f"{error}; or pass of='coefficients', LIME's") from error


def in_contributions(explanation: Explanation) -> Explanation:
    """Return the explanation with contributions, and the rows' values, for coefficients and conditions."""
    names, one = explanation.feature_names, in_their_place(explanation, explanation.contributions)
    if shows_conditions(explanation):  # pictures are drawn by the conditions of what is shown
        return one
    return changed(
        one,
        conditions=tuple(
            tuple(f"{name} = {cell(value)}" for name, value in zip(names, row, strict=True))
            for row in explanation.data
        ),
        provenance={name: fact for name, fact in explanation.provenance.items() if name != "slopes"},
    )


def with_outputs(array: Floats, explanation: Explanation) -> Floats:
    """Return the array with a last axis of outputs, of length one for a single output."""
    return array[..., None] if explanation.predictions.ndim == 1 else array


def view_row(
    explanation: Explanation, row: int, max_features: int, *, account: Contributions | None = None
) -> RowView:
    """View a row, by the ``account`` of its prediction if that is given, contributions (1, d, ...)."""
    certain = certain_at(explanation, row)
    explanation = explanation if certain else in_differences(explanation)
    certificate = explanation.certificates[row] if explanation.certificates else None
    return RowView(
        label=row_label(explanation, row),
        method=method_line(explanation, row) if account is None else account_line(explanation, account),
        # facts that hold for certain have no numbers
        outputs=()
        if certain
        else tuple(
            _view_output(explanation, row, k, max_features, account)
            for k in _predicted_first(explanation, row)
        ),
        record=lambda: warnings_of(explanation, _record_at(explanation, row, account)),
        rule="" if certificate is None else headlined_rule(certificate),
        certificate=() if certificate is None else tuple(certificate_sentences(certificate)),
        account=account,
        certain=certain,
    )


def certain_at(explanation: Explanation, row: int) -> CertainView | None:
    """View the facts that hold for certain; None of other explanations."""
    if not is_certain(explanation):
        return None
    names, cells = explanation.feature_names, explanation.data[row].tolist()
    return certain_view(explanation.certificates[row], names, cells, output_title(explanation, 0))


def _record_at(explanation: Explanation, row: int, account: Contributions | None) -> tuple[RowWarning, ...]:
    """Warnings about what a view shows of a row: its contributions, or its coefficients."""
    if is_certain(explanation):
        return explanation.row_warnings[row]
    if account is None:
        # no other row's are completed
        record: tuple[RowWarning, ...] = explanation[row].coefficients.row_warnings[0]
        return record
    return account_warnings(explanation, account, [row])[0]


def _predicted_first(explanation: Explanation, row: int) -> list[int]:
    """The outputs that are shown of a row; of classes the predicted one comes first, then their own order."""
    outputs = shown_outputs(explanation)
    if not is_probability(explanation):
        return outputs
    first = main_output(explanation, row)
    return sorted(outputs, key=lambda output: output != first)


def _view_output(
    explanation: Explanation, row: int, output: int, limit: int, account: Contributions | None
) -> OutputView:
    numbers = explanation.coefficients if account is None else account
    place = row if account is None else 0
    values, errors = (
        with_outputs(array, explanation)[place, :, output]
        for array in (numbers.values, numbers.standard_errors)
    )
    deviations = np.ones(len(values)) if account is not None else bar_units(explanation, [row])[0]
    order = by_size(np.abs(values * deviations))[:limit]
    is_rule = bool(explanation.certificates)
    if is_rule:  # it is its facts that have a weight
        order = order[values[order] != 0]
    title = output_title(explanation, output)
    return OutputView(
        position=output,
        title=title,
        label=title[2:-1] if is_probability(explanation) and title.startswith("P(") else "",
        in_points=is_probability(explanation) and "P(" in title,
        prediction=float(with_outputs(explanation.predictions, explanation)[row, output]),
        lines=tuple(
            Line(
                position=j,
                feature=one_line(explanation.feature_names[j]),
                condition=one_line(explanation.conditions[row][j]),
                data=cell(explanation.data[row, j]),
                value=float(values[j]),
                standard_error=float(errors[j]),
                deviation=float(deviations[j]),
                holds=what_holds(explanation, row, j),
                share=None if account is None else _share(explanation, account, j, output),
            )
            for j in order.tolist()
        ),
        omitted=0 if is_rule else len(values) - len(order),
        sampled=bool((errors > 0.0).any()),  # a method without errors has NaN
        is_rule=is_rule,
        **(
            _of_surrogate(explanation, row, output)
            if account is None
            else _of_account(explanation, row, output, account)
        ),
    )


def _share(explanation: Explanation, account: Contributions, j: int, output: int) -> Share:
    arrays = account.values, account.standard_errors, account.alone, account.last
    return Share(*(float(with_outputs(array, explanation)[0, j, output]) for array in arrays))


def _of_account(explanation: Explanation, row: int, output: int, account: Contributions) -> dict[str, Any]:
    """Return what a view of contributions has, and nothing of a surrogate."""
    values, errors = (
        with_outputs(array, explanation)[0, :, output] for array in (account.values, account.standard_errors)
    )
    base, base_error = (
        float(with_outputs(its, explanation)[0, output]) for its in (account.base_values, account.base_errors)
    )
    prediction = float(with_outputs(explanation.predictions, explanation)[row, output])
    # a selection of features has not all of them
    size = abs(prediction) + abs(base) + np.abs(values).sum()
    return {
        "where": where_base_is(explanation),
        "base": base,
        "base_error": base_error,
        "is_whole": not abs(prediction - base - values.sum()) > _ROUNDED * size,
        "each": dict(enumerate(zip(values.tolist(), errors.tolist(), strict=True))),
        "surrogate": np.nan,
        "whose": "",
        "intercept": np.nan,
        "fit": lambda: (np.nan, np.nan),
        "additive": lambda: np.nan,
    }


def _of_surrogate(explanation: Explanation, row: int, output: int) -> dict[str, Any]:
    """Return what a view of coefficients has, and nothing of contributions."""
    surrogate, intercept = (
        float(with_outputs(array, explanation)[row, output])
        for array in (explanation.coefficients.surrogate_predictions, explanation.coefficients.intercepts)
    )
    # weights of facts that are to hold describe no neighbourhood
    fits = not explanation.certificates or explanation.certificates[row].minimises == "fidelity"
    return {
        "where": "",
        "base": None,
        "base_error": 0.0,
        "is_whole": True,
        "each": {},
        "surrogate": surrogate,
        "whose": whose_surrogate(explanation),
        "intercept": intercept,
        "fit": lambda: fidelity_at(explanation, row, output) if fits else (np.nan, np.nan),
        "additive": lambda: float(additive_at(explanation, [row])[0][0, output]),
    }


def whose_surrogate(explanation: Explanation) -> str:
    """The method whose limit the coefficients are: "LIME's", "KernelSHAP's", "MAPLE's"."""
    facts = explanation.provenance
    if facts.get("weights") == SHAPLEY:
        return "KernelSHAP's"
    return "MAPLE's" if "features kept" in facts else "LIME's"


def slope_facts(explanation: Explanation) -> Mapping[str, Mapping[str, float]]:
    """Return mean and deviation of each feature that has a slope, by its name."""
    slopes = explanation.provenance.get("slopes", {})
    return {name: slopes[name] for name in explanation.feature_names if name in slopes}


def slope_deviations(explanation: Explanation) -> Floats:
    """Return standard deviations (d,) of columns with slopes, the unit of their bars; 1 for others."""
    slopes, names = slope_facts(explanation), explanation.feature_names
    return np.array(
        [slopes[name]["deviation"] if name in slopes else 1.0 for name in names], dtype=np.float64
    )


def bar_units(explanation: Explanation, rows: Any = slice(None)) -> Floats:
    """Return the units of rows' bars, (n, d); a row that lacks a column's value has no slope there."""
    cells = explanation.data[rows]
    units = np.tile(slope_deviations(explanation), (len(cells), 1))
    for j in np.flatnonzero((units != 1.0).any(axis=0)):
        units[[is_missing(value) for value in cells[:, j].tolist()], j] = 1.0
    return units


def contributions(explanation: Explanation) -> tuple[Floats, Floats]:
    """Return the contribution of each feature at the rows, and the base to which contributions are added."""
    # the prediction does not depend on a feature whose coefficient is unknown
    values, base = (
        np.nan_to_num(explanation.coefficients.values, copy=True, nan=0.0),
        explanation.coefficients.intercepts.copy(),
    )
    for name, facts in slope_facts(explanation).items():
        j = explanation.feature_names.index(name)
        # A slope adds its product with the distance from the mean; the base is the surrogate at the means. A
        # row that lacks the value has a condition in the slope's place, which adds its coefficient.
        distance = explanation.data[:, j].astype(np.float64) - facts["mean"]
        distance = distance.reshape(-1, *(1 for _ in values.shape[2:]))
        base += np.where(np.isnan(distance), 0.0, facts["mean"]) * values[:, j]
        values[:, j] *= np.where(np.isnan(distance), 1.0, distance)
    return values, base


def row_label(explanation: Explanation, row: int) -> str:
    label = explanation.ids[row]
    return f"row {label}" if isinstance(label, int) else one_line(str(label))


def left_out(explanation: Explanation) -> str:
    """Return how many rows have no explanation, and why the first has none; "" if all have."""
    if not explanation.errors:
        return ""
    row, why = explanation.errors[0]
    total = len(explanation) + len(explanation.errors)
    return (
        f"{len(explanation.errors):,} of {total:,} rows have no explanation (explanation.errors); "
        f"{one_line(str(row))}: {one_line(why)}"
    )


def shown_outputs(explanation: Explanation) -> list[int]:
    """Return the positions of the outputs that are shown, the same of all rows: of two classes the second.

    So it is for changes of their probabilities, which add up to 0.
    """
    predictions = with_outputs(explanation.predictions, explanation)
    if CHANGE in explanation.provenance and is_probability(explanation) and predictions.shape[-1] == 2:
        mirrored = np.abs(predictions.sum(axis=-1)) <= ROUNDING
        return [1] if mirrored.all() else [0, 1]
    return shown_of(predictions)


def main_output(explanation: Explanation, row: int | None) -> int:
    """Return the output with the largest prediction, without a row in the mean; of two classes the second.

    Of an answer and its parts, the answer.
    """
    predictions, shown = with_outputs(explanation.predictions, explanation), shown_outputs(explanation)
    if explanation.provenance.get("quantity") == LOG_PROBABILITY:
        return shown[0]
    predictions = predictions if row is None else predictions[row : row + 1]
    return shown[int(by_size(predictions.mean(axis=0)[shown])[0])]


def output_position(explanation: Explanation, output: str | int | None, row: int | None = 0) -> int:
    if output is None:
        return main_output(explanation, row)
    return int(np.atleast_1d(name_positions(output, explanation.output_names, "output"))[0])


# Of a text that a model writes, whose parts are further outputs
LOG_PROBABILITY = "log-probability"
# Quantities by the method that is called
_QUANTITIES: Mapping[Any, str] = {"predict_proba": "probability", "decision_function": "margin"}
_TITLES: Mapping[Any, str] = {
    "probability": "P({label})",
    "log-odds": "log-odds of {label}",
    LOG_PROBABILITY: "log p({name})",
    "margin": "margin of {label}",
    "score": "score of {label}",
}


def output_title(explanation: Explanation, output: int) -> str:
    """Return the title of an output: "P(target = 1)", "log-odds of Bad", "prediction"."""
    title = _title_of(explanation, one_line(explanation.output_names[output]))
    return f"change of {title}" if CHANGE in explanation.provenance else title


def _title_of(explanation: Explanation, name: str) -> str:
    facts = explanation.provenance
    quantity = facts.get("quantity", _QUANTITIES.get(facts.get("answer")))
    if name == _ANONYMOUS:
        return "margin" if quantity == "margin" else "prediction"
    label = f"target = {name}" if _is_bare(name) else name
    return _TITLES.get(quantity, "{name}").format(label=label, name=name)


def is_probability(explanation: Explanation) -> bool:
    """Whether the outputs are probabilities of classes."""
    facts = explanation.provenance
    quantity: str | None = facts.get("quantity", _QUANTITIES.get(facts.get("answer")))
    return quantity == "probability"


def _is_bare(name: str) -> bool:
    """Whether the label of a class means nothing by itself: a number, true or false."""
    try:
        float(name)
    except ValueError:
        return name in ("True", "False")
    return True


def warnings_of(explanation: Explanation, record: Sequence[RowWarning]) -> tuple[str, ...]:
    """Return the texts of a record, with the outputs' titles where several are shown."""
    shown = [explanation.output_names[k] for k in shown_outputs(explanation)]

    def text(warning: RowWarning) -> str:
        names = [name for name in shown if name in warning.outputs]
        if not names or len(shown) == 1:
            return warning.sentence if names else warning
        titles = (output_title(explanation, explanation.output_names.index(name)) for name in names)
        return f"{', '.join(titles)}: {warning.sentence}"

    return tuple(one_line(text(warning)) for warning in record)


def accuracy(explanation: Explanation, of: str) -> str:
    """Return the accuracy that ``row_converged`` of a reading refers to: the tolerance, or the default."""
    size, share, _ = one_line(str(explanation.provenance.get("tolerance", "1.5%"))).partition("%")
    return f"{size}% of the largest {of.removesuffix('s')}" if share else size


def stated_facts(explanation: Explanation) -> dict[str, Any]:
    """Return the provenance as media state it, which show the reading that leads."""
    facts = dict(explanation.provenance)
    return (
        facts | {"tolerance": accuracy(explanation, leading(explanation))} if "tolerance" in facts else facts
    )


def headlined_rule(certificate: Certificate) -> str:
    """Return the rule of a certificate, behind a verdict where its fit is worse than the mean."""
    if certificate.r2 < 0.0 and certificate.minimises == "fidelity":
        verdict = "worse than the mean answer, no description of the model here"
        return f"R² {number(certificate.r2, 3)}: {verdict}. {certificate.rule}"
    return certificate.rule


def method_line(explanation: Explanation, row: int | None = None) -> str:
    """Return how a row's numbers were computed, or all: exactly, or from how many model calls and why."""
    rows = slice(None) if row is None else slice(row, row + 1)
    calls = int(explanation.calls[rows].sum())
    shared = 0 if explanation.shared_calls is None else int(explanation.shared_calls[rows].max(initial=0))
    spent, reason = count(calls, "model call"), one_line(explanation.reason)
    if calls < (total := int(explanation.calls.sum())):
        spent += f" ({total:,} for all {len(explanation):,} rows)"
    if explanation.method == "exact":
        checks = f" ({spent} to certify it)" if explanation.certificates else f", no sampling ({spent})"
        return f"exact: {reason or 'read off the model'}{checks}"
    # details in parentheses are for those who read `reason`
    reason = _DETAILS.sub("", reason).strip()
    why = f", because {reason}" if reason else ""
    if explanation.reason.endswith(_OF_FORM):
        advice = "; its margin is exact: output='margin'" if "output='margin'" in reason else why
        return f"sampled from the model as it was read, no model calls{advice}"
    if is_certain(explanation):  # its certificate has averages, too
        return f"exact: facts by bounds of the model; averages over neighbours are sampled ({spent}){why}"
    both = f", and {shared:,} that rows share" if shared else ""
    return f"sampled with {spent}{both}{why}"


def account_line(explanation: Explanation, account: Contributions) -> str:
    """Return how contributions were computed: exactly, or to which error and from how many model calls."""
    # what the model answered for coefficients serves contributions, too
    calls = int(account.calls.sum() + explanation.calls.sum())
    n, k = len(account.values), len(explanation.output_names)
    values, errors, of_base = (
        np.nan_to_num(its.reshape(n, -1, k), posinf=np.inf)
        for its in (account.values, account.standard_errors, account.base_errors)
    )
    reason = one_line(explanation.reason)
    if not errors.any():
        how = reason if reason and explanation.method == "exact" else _EXACTLY[calls > 0]
        return f"exact: {how}, no sampling ({count(calls, 'model call')})"
    share = max(0.001, *(error_shares(values, its).max(initial=0.0) for its in (errors, of_base)))
    worst = " in the worst row" if n > 1 else ""
    accuracy_text = f"estimated to {percentage(share)} of the largest contribution{worst}"
    if np.isinf(errors).all():
        accuracy_text = "sampled"
    if not account.calls.any():
        return f"{accuracy_text}, from the model as it was read, no model calls"
    shared = 0 if explanation.shared_calls is None else int(explanation.shared_calls.max(initial=0))
    both = f", and {shared:,} that rows share" if shared else ""
    why = _DETAILS.sub("", reason).strip()
    return f"{accuracy_text} with {count(calls, 'model call')}{both}{f', because {why}' if why else ''}"


def where_base_is(explanation: Explanation) -> str:
    """Return where the model has the base of contributions; designs that hide features state it."""
    facts = explanation.provenance
    if REFERENCE in facts:
        return f"at {one_line(str(facts[REFERENCE]))}"
    return CHANGE_OF_USUAL if CHANGE in facts else one_line(str(facts.get("base", AROUND)))


def usual_is(explanation: Explanation) -> str:
    """Return what the base of a table's contributions is."""
    law = explanation.provenance.get("law")
    if REFERENCE in explanation.provenance:
        return f"the model's answer at {one_line(str(explanation.provenance[REFERENCE]))}"
    if CHANGE in explanation.provenance:
        return "the change of the model's average with other values of the columns"
    if law == "joint":
        # without a bandwidth all rows weigh the same
        is_even = explanation.provenance.get("bandwidth") == np.inf
        likeness = "" if is_even else ", by their likeness to this one"
        return f"the model's average over the background's rows{likeness}"
    if law == "covers":
        return "the average of the trees over their training rows, as they count these"
    return "the model's average with other values of the columns, drawn from the background"


def shows_conditions(explanation: Explanation) -> bool:
    """Whether contributions are of what conditions say, and not of the row's values."""
    return not explanation.provenance.keys().isdisjoint(("base", REFERENCE, CHANGE))


def heading_of(where: str) -> str:
    """Return the heading of a column with what contributes, by where the base is."""
    if where in (AROUND, CHANGE_OF_USUAL):
        return "value"
    return "change" if where.startswith("at ") else "shown"


# Pairs that a row shows, and the least they may be, as a share of the largest contribution
_PAIRS_SHOWN, _LEAST_PAIR = 3, 0.05


def pair_sentence(explanation: Explanation, pairs: Floats, values: Floats, output: int) -> str:
    """The strongest pairs (d, d, k) of one row with contributions (d, k), as a sentence; "" without any."""
    largest = float(np.abs(values[:, output]).max(initial=0.0))
    strongest = strongest_pairs(pairs[..., output], _PAIRS_SHOWN, _LEAST_PAIR * largest)
    if not strongest:
        return ""
    unit, names = 100.0 if is_probability(explanation) else 1.0, explanation.feature_names
    texts = signed_column([unit * pair.value for pair in strongest], 3)
    each = ", ".join(
        f"{names[pair.features[0]]} and {names[pair.features[1]]} {text}"
        for pair, text in zip(strongest, texts, strict=True)
    )
    points = " points" if unit > 1.0 else ""
    return one_line(f"Act together: {each}{points}; half of each is in either contribution.")


def what_holds(explanation: Explanation, row: int, feature: int) -> str:
    """Return the column with the row's value, or of designs that hide features what is shown."""
    facts = explanation.provenance
    if not shows_conditions(explanation):
        return f"{one_line(explanation.feature_names[feature])} = {cell(explanation.data[row, feature])}"
    condition = one_line(explanation.conditions[row][feature])
    if "base" not in facts:
        return condition
    # a picture shows where a superpixel is
    return _PLACE.sub("", _SHOWN.sub("", condition))


def meaning(explanation: Explanation) -> str:
    """Return what a coefficient means; designs without conditions state it in provenance["meaning"]."""
    return one_line(str(explanation.provenance.get("meaning", MEANING)))


def fit_remark(fidelity: float, error: float = 0.0) -> str:
    """Return how much the surrogate captures, as a sentence, where that is surely less than half."""
    if not fidelity + SURE * error < PARTIAL_FIT:
        return ""
    share = f"{max(fidelity, 0.0):.0%}" if fidelity >= _LEAST else "nothing"
    return (
        f"The surrogate captures {share} of how the model varies around this row: a coefficient compares "
        "what the row has with all else, one number for a whole curve."
    )


def why_not_computed(explanation: Any, name: str) -> str:
    """Why an explanation has no ``name``, which a fit would compute."""
    if is_by_covers(explanation):
        return NOT_OF_COVERS.format(name=name)
    if (why := explanation.provenance.get(NO_SURROGATE)) is not None:
        return f"there {is_or_are(name)} no {name}: {why}"
    if is_certain(explanation):
        return f"{name}: {NO_WEIGHTS}"
    if explanation.certificates:
        return f"a rule has no {name}: use a TabularExplainer"
    if explanation.provenance.get("weights") == SHAPLEY:
        return f"an account at two levels has no {name}: explain without hierarchy=True"
    return (
        f"{name} needs the explainer that made the explanation, and a saved explanation has only R²: explain "
        "the rows again"
    )


def one_line_summary(explanation: Explanation) -> str:
    n, d = explanation.data.shape
    several = len(explanation.output_names) > 1
    outputs = f" x {count(len(explanation.output_names), 'output')}" if several else ""
    account = account_at(explanation, [0]) if n and leading(explanation) == "contributions" else None
    method = explanation.method if account is None else account.method
    size = f"{count(n, 'row')} x {count(d, 'feature')}{outputs}, {method}"
    if not (n and d):
        return f"<Explanation: {size}>"
    whole = view_row(explanation, 0, max_features=3, account=account)
    row = f"{row_label(explanation, 0)}, " if n > 1 else ""
    if whole.certain is not None:
        return f"<Explanation: {size}; {row}{shorten(explanation.certificates[0].rule, 160)}>"
    views = whole.outputs
    largest = main_output(explanation, 0)
    view = next(output for output in views if output.position == largest)
    if view.base is None:
        texts = signed_column((line.value for line in view.lines), significant=3)
    else:
        texts = [text for text, _ in view.account_texts()[0]]
    named = [shorten_condition(line.named, line.feature, 32) for line in view.lines]
    first = [f"{name} {text}" for name, text in zip(named, texts, strict=False)]
    more = ", ..." if view.omitted else ""
    return f"<Explanation: {size}; {row}{shorten(view.title, 24)}: {', '.join(first)}{more}>"
