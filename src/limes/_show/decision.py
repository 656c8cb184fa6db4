"""A letter about one decision, as a page that prints on a sheet of paper, and as text.

It says what was decided, why, and what would have changed it; how each number came about stands below. A
number in it has as many digits as its error allows, and no error beside it: errors are in the explanation,
which is the record.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._checks import check_choice, check_number, is_count
from limes._explanation.certain import CertainView
from limes._explanation.drawing import fact_texts, write_text
from limes._explanation.fit import leading
from limes._explanation.rules import Contrast, check_weights, is_certain
from limes._explanation.selection import by_feature, by_size, single_row
from limes._explanation.view import (
    account_line,
    bar_units,
    certain_at,
    in_differences,
    is_probability,
    meaning,
    method_line,
    output_position,
    output_title,
    row_label,
    stated_facts,
    usual_is,
    warnings_of,
    what_holds,
)
from limes._explanation.wording import (
    CONFIDENCE,
    adding_up,
    beside,
    cell,
    chosen,
    count,
    difference,
    number,
    one_line,
    percentage,
    percentages,
)
from limes._show.axes import Scale
from limes._show.exports import Reason
from limes._show.exports import reasons as reasons_of
from limes._show.html import DRAWN, LONGEST_FACT, content_of, render
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from limes._explanation import Explanation
    from limes._explanation.attribution import Contributions

# Lines of the account: with reasons and a contrast they fill a sheet
_FEATURES = 8
# Facts that the letter states elsewhere, or that no reader can use
_STATED = (*DRAWN, "meaning", "slopes", "base", "quantity")
_SIGNIFICANT = 3
# What a reason ends with whose order is not certain: the letter says it once, below all reasons
_UNCERTAIN = " (order not certain)"
# What the line of the method ends with for those who wrote the program
_ADVICE = re.compile("; (its margin is exact|if it is a fitted model's method).*")
# How large errors are: they are in the record
_ERROR = re.compile(r"(?<=^estimated) to [\d.e+-]+ % of the largest contribution")
# Rounding of a sum of contributions, as a share of what is added
_ROUNDED = 1e-6


@dataclass(frozen=True, kw_only=True)
class Reasons:
    """Reasons of one direction, the strongest first, and what is not certain about their order."""

    heading: str
    sentences: tuple[str, ...]
    order: str = ""


@dataclass(frozen=True, kw_only=True)
class AccountLine:
    """A line of the account: what it is about, its number, and its bar in per cent of the width."""

    text: str
    number: str
    bar: tuple[float, float] | None = None
    raises: bool = True
    start: float = 0.0  # of the bar
    is_level: bool = False  # a prediction, and no difference of two


@dataclass(frozen=True, kw_only=True)
class Letter:
    """The content of a page about one decision, in its order."""

    title: str
    decision: str
    stated: str
    reasons: tuple[Reasons, ...]
    certain: CertainView | None  # facts that decide for certain
    contrast: tuple[str, ...]  # what would have changed the outcome
    about_contrast: tuple[str, ...]
    unit: str  # of the account
    account: tuple[AccountLine, ...]
    about_account: str
    limits: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]

    def text(self, width: int = 80) -> str:
        """Write it for a terminal, or a mail."""

        def folded(text: str, first: str = "", later: str = "") -> str:
            return fill(text, width, initial_indent=first, subsequent_indent=later)

        parts = [self.title, *filter(None, (self.decision, self.stated))]
        blocks = ["\n".join(map(folded, parts))]
        for group in self.reasons:
            lines = [folded(text, f"{i}. ", "   ") for i, text in enumerate(group.sentences, 1)]
            lines += [folded(group.order)] if group.order else []
            blocks.append("\n".join([group.heading, *lines]))
        if self.certain is not None:
            certain = [folded(text, "- ", "  ") for text in self.certain.texts]
            blocks.append("\n".join([_CERTAIN, *certain, *map(folded, self.certain.sentences)]))
        if self.contrast:
            blocks.append("\n".join([_CHANGED, *map(folded, (*self.contrast, *self.about_contrast))]))
        widest = max((len(part.number) for part in self.account), default=0)
        room = width - widest - 2
        lines = [f"{part.number:>{widest}}  {_cut(part.text, room)}" for part in self.account]
        blocks.append("\n".join([f"{_ACCOUNT}{self.unit}", *lines, folded(self.about_account)]))
        blocks.append("\n".join([_LIMITS, *(folded(text, "- ", "  ") for text in self.limits)]))
        facts = "; ".join(f"{name}: {fact}" for name, fact in self.facts)
        blocks.append("\n".join([_HISTORY, folded(facts)]))
        return "\n\n".join(blocks)


_CERTAIN = "Facts that decide it for certain"
_CHANGED = "What would have changed the outcome"
_ACCOUNT = "How the prediction came about"
_LIMITS = "What these numbers do not say"
_HISTORY = "How this was made"
_HEADINGS = {
    "certain": _CERTAIN,
    "changed": _CHANGED,
    "account": _ACCOUNT,
    "limits": _LIMITS,
    "made": _HISTORY,
}


def decision_page(
    explanation: Explanation,
    path: str | Path | None = None,
    *,
    row: int | str | None = None,
    output: str | int | None = None,
    decision: str = "",
    outcome: str = "outcome",
    threshold: float | None = None,
    sign: str | None = None,
    reasons: int = 4,
    catalogue: Mapping[str, Any] | None = None,
    contrast: Contrast | Sequence[Contrast] | None = None,
    facts: Explanation | None = None,
    title: str | None = None,
) -> str:
    """Return a self-contained page about one row, which prints on a sheet of paper, and write it to `path`.

    It has the decision; the main reasons for it; what would have changed it; the account of the prediction;
    what the numbers do not say; and how they were made. It has no errors, which are in the explanation: file
    that as the record, by :meth:`limes.Explanation.to_json`.

    Parameters
    ----------
    explanation
        An explanation of one row or many.
    path
        The file to write.
    row, output
        What the page is about, by position or name. Without a row that of several rows is about the first,
        with a ``FutureWarning``. The output is that with the largest prediction, of two classes the second,
        unless given.
    decision
        A sentence on what was decided. The page states the prediction below it.
    outcome
        A noun for it, such as "refusal", in the heading "Main reasons for this refusal".
    threshold
        The prediction that decides. It is the contrast's, where that is of the same output, unless given.
    sign : "-", "+" or "both"
        Whether reasons are values that lower the prediction, raise it, or both. Where there is a threshold,
        they are reasons for the outcome unless given: those that lower a prediction which is below it.
    reasons, catalogue
        How many reasons, and sentences for them: see :meth:`limes.Explanation.reasons`. A value whose sign is
        not certain is no reason. They are contributions, and of explanations that have none, such as those of
        rules, coefficients.
    contrast
        What ``SparseExplainer.contrast`` found at this row, or several of ``contrasts``. Columns that the
        explainer fixes stay, and the page says so.
    facts
        Facts that decide the row for certain: what ``SparseExplainer(objective="certain")`` returned of it.
        The page states them, with a row without each and what is proved.
    title
        Title of the page, "Decision on" and the row's name unless given.

    Raises
    ------
    InputError
        No row, feature or output has such a name, an option is not valid, or the folder does not exist.

    Examples
    --------
    >>> import limes
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, y)
    >>> explanation = limes.TabularExplainer(model, X)(X.iloc[:2])
    >>> page = limes.decision_page(explanation, row=1, threshold=0.5, decision="Referred to the committee.")
    >>> "Main reasons for this outcome" in page
    True
    """
    letter, one = letter_of(
        explanation,
        row=row,
        output=output,
        decision=decision,
        outcome=outcome,
        threshold=threshold,
        sign=sign,
        reasons=reasons,
        catalogue=catalogue,
        contrast=contrast,
        facts=facts,
        title=title,
    )
    return write_text(page_of(letter, one), path)


def page_of(letter: Letter, one: Explanation) -> str:
    """The page of a letter about one row and output, with the text, image or series that was explained."""
    drawn: dict[str, Any] = {"drawn": None}
    if "base" in one.provenance:
        content = content_of(one, features=_FEATURES)
        (output,) = content["rows"][0]["outputs"]
        # errors stand in the titles of what is drawn
        drawn = {**content, "drawn": output, "sampled": False, "plain": True, "classes": ()}
    return render("decision.html", {**drawn, "title": letter.title, "letter": letter, "headings": _HEADINGS})


def letter_of(
    explanation: Explanation,
    *,
    row: int | str | None = None,
    output: str | int | None = None,
    decision: str = "",
    outcome: str = "outcome",
    threshold: float | None = None,
    sign: str | None = None,
    reasons: int = 4,
    catalogue: Mapping[str, Any] | None = None,
    contrast: Contrast | Sequence[Contrast] | None = None,
    facts: Explanation | None = None,
    title: str | None = None,
) -> tuple[Letter, Explanation]:
    """The letter of `decision_page`, and the explanation of its row and output alone."""
    if not is_count(reasons):
        raise InputError(f"decision_page(reasons={reasons!r}): pass a number of reasons, 1 or more")
    if sign is not None:
        check_choice("sign", sign, ("both", "+", "-"))
    one = single_row(explanation, row, "limes.decision_page()")
    check_weights(one, "decision_page(explanation): pass facts=")
    # a rule's weights are of facts that are -1 or +1, and its changes are shown
    one = in_differences(one[..., output_position(one, output)])
    contrasts = [contrast] if isinstance(contrast, Contrast) else [*(contrast or ())]
    best = contrasts[0] if contrasts else None
    _check_row(one, contrasts)
    its = _Prediction.of(one, _threshold(one, threshold, best))
    account = _account(one)
    order, written, levels = _written(one, its, account)
    groups = _reasons(one, its, reasons, catalogue, sign or its.direction(best), outcome, account, written)
    cards = [each._card() for each in contrasts]  # noqa: SLF001 - as other media draw it
    label = row_label(one, 0)
    history = fact_texts(_facts(one), _STATED, LONGEST_FACT)
    letter = Letter(
        title=one_line(f"Decision on {label}" if title is None else title),
        decision=one_line(decision),
        stated=its.sentence(None if account is None else float(account.base_values.ravel()[0])),
        reasons=groups,
        certain=None if facts is None else _certain(one, facts),
        contrast=tuple(card.subtitle for card in cards),
        about_contrast=tuple(dict.fromkeys(remark for card in cards for remark in card.remarks)),
        unit=its.unit,
        account=_parts(one, its, account, order, written, levels),
        about_account=_about(one, account),
        limits=(*_caveats(account), *_warnings(one, account)),
        facts=(("method", _method(one, account)), *history),
    )
    return letter, one


def _check_row(one: Explanation, contrasts: Sequence[Contrast]) -> None:
    """Refuse contrasts of another row: their answer is another one, if it is of the same output."""
    (prediction,) = one.predictions.ravel().tolist()
    quantity = "probability" if is_probability(one) else "prediction"
    for contrast in contrasts:
        is_same = contrast.output == one.output_names[0] and contrast.quantity == quantity
        if is_same and not math.isclose(contrast.prediction, prediction, rel_tol=1e-6, abs_tol=1e-9):
            raise InputError(
                f"the contrast is of a row whose {contrast.quantity} is {number(contrast.prediction)}, and "
                f"the explained row has {number(prediction)}: pass the contrast of the same row and model"
            )


def _certain(one: Explanation, facts: Explanation) -> CertainView:
    """View facts that hold for certain, of the same row."""
    if not is_certain(facts):
        raise InputError(
            "facts= takes an explanation of limes.SparseExplainer(objective='certain'), of the same row"
        )
    if one.ids[0] not in facts.ids:
        raise InputError(f"facts= has no row {one.ids[0]!r}: pass the facts of the same row")
    place = facts.ids.index(one.ids[0])
    same = [cell(a) == cell(b) for a, b in zip(one.data[0], facts.data[place], strict=False)]
    if one.feature_names != facts.feature_names or not all(same):
        raise InputError("facts= is of a row with other values: pass the facts of the same row and columns")
    view = certain_at(facts, place)
    assert view is not None  # noqa: S101 - of facts that hold for certain
    return view


def _account(one: Explanation) -> Contributions | None:
    """The row's contributions, computed where they were not; None where an explanation shows coefficients."""
    return one.contributions if leading(one) == "contributions" else None


def _facts(one: Explanation) -> dict[str, Any]:
    """Get what the provenance states of the numbers shown, as people read them: the record has all digits."""
    facts = stated_facts(one)
    if "law of contributions" in facts and leading(one) == "contributions":
        # the law and the penalty of LIME's surrogate concern no number of the letter
        facts = {name: fact for name, fact in facts.items() if name not in ("law", "ridge")}
    return {
        name: number(fact, 6) if isinstance(fact, float) else fact
        for name, fact in facts.items()
        if fact is not None
    }


def _method(one: Explanation, account: Contributions | None) -> str:
    text = method_line(one) if account is None else account_line(one, account)
    return _ADVICE.sub("", _ERROR.sub("", text))


# -- the prediction ------------------------------------------------------------------------------------------


def _threshold(one: Explanation, threshold: float | None, contrast: Contrast | None) -> float | None:
    """The threshold, or the contrast's, where that is of the prediction that is explained."""
    if threshold is not None:
        return check_number("threshold", threshold)
    prediction = float(one.predictions.ravel()[0])
    if contrast is None or not math.isclose(contrast.prediction, prediction, rel_tol=1e-6, abs_tol=1e-9):
        return None
    return contrast.border if contrast.threshold is None else contrast.threshold


@dataclass(frozen=True)
class _Prediction:
    """A prediction in words, and the threshold that decides."""

    value: float
    title: str  # "P(good)", "log-odds of good", "prediction"
    label: str  # of the class of a probability; "" of other outputs
    is_log_odds: bool
    threshold: float | None
    base: str  # where the model has the base, in words; "" of a table

    @classmethod
    def of(cls, one: Explanation, threshold: float | None) -> _Prediction:
        title = output_title(one, 0)
        if title == one_line(one.output_names[0]) != "prediction":
            title = f"prediction of {title}"
        label = title[2:-1] if is_probability(one) and title.startswith("P(") else ""
        return cls(
            float(one.predictions.ravel()[0]),
            title,
            label,
            one.provenance.get("quantity") == "log-odds",
            threshold,
            one_line(str(one.provenance.get("base", ""))),
        )

    @property
    def scale(self) -> float:
        """Probabilities are written in hundredths."""
        return 100.0 if self.label else 1.0

    @property
    def subject(self) -> str:
        return f"the chance of {self.label}" if self.label else f"the {self.title}"

    @property
    def unit(self) -> str:
        return ", in percentage points" if self.label else ""

    def effect(self, text: str) -> str:
        """The size of a difference that is written with its sign."""
        size = text.lstrip("+-")
        if not self.label:
            return size
        return f"{size} percentage point{'' if size == '1' else 's'}"

    def direction(self, contrast: Contrast | None) -> str:
        """Which values are reasons for the outcome: "-", "+", or "both" without a threshold."""
        if self.threshold is None:
            return "both"
        if self.value == self.threshold:
            return "+" if contrast is not None and contrast.side == "below" else "-"
        return "+" if self.value > self.threshold else "-"

    def level(self, value: float, *threshold: float) -> str:
        """A prediction with enough digits that it is not written like a threshold it differs from."""
        if self.label:
            return percentages([value], *threshold)[0]
        return beside(value, threshold, _SIGNIFICANT)

    def exactly(self, threshold: float) -> str:
        """A number that somebody chose, as it was chosen."""
        return f"{chosen(self.scale * threshold)}{' %' if self.label else ''}"

    def sentence(self, base: float | None) -> str:
        others = () if self.threshold is None else (self.threshold,)
        value = self.level(self.value, *others)
        if self.label:
            stated = f"{value} chance of {self.label}"
        else:
            stated = f"{self.title[0].upper()}{self.title[1:]}: {value}"
        if self.is_log_odds:
            stated += f" (a chance of {percentage(_logistic(self.value))})"
        if self.threshold is not None:
            side = (
                "at" if self.value == self.threshold else "below" if self.value < self.threshold else "above"
            )
            stated += f", {side} the threshold of {self.exactly(self.threshold)}"
        usual = "" if base is None else f"; {self.level(base)} {self.base or 'is usual'}"
        return f"{stated}{usual}."


def _logistic(value: float) -> float:
    from scipy.special import expit

    return float(expit(value))


# -- the account ---------------------------------------------------------------------------------------------


def _written(
    one: Explanation, its: _Prediction, account: Contributions | None
) -> tuple[list[int], list[str], tuple[str, str]]:
    """Features by falling size, what is written of each one's number, and the base and the prediction."""
    if account is None:
        coefficients = one.coefficients.values.ravel()
        drawn = np.abs(coefficients * bar_units(one)[0])
        texts = [difference(its.scale * value, _SIGNIFICANT) for value in coefficients.tolist()]
        return [j for j in by_size(drawn).tolist() if drawn[j] > 0], texts, ("", "")
    values = its.scale * account.values.ravel()
    errors = its.scale * account.standard_errors.ravel()
    base, end = its.scale * float(account.base_values.ravel()[0]), its.scale * its.value
    rest = end - base - float(values.sum())  # of features that were not selected
    size = abs(end) + abs(base) + float(np.abs(values).sum())
    parts = [*values.tolist(), rest if abs(rest) > _ROUNDED * size else 0.0]
    digits = _digits(values, errors)
    if its.label:  # a tenth of a percentage point is enough, where the largest is one or more
        digits = min(digits, max(2, 2 + math.floor(math.log10(np.abs(values).max(initial=0.0) or 1.0))))
    pairs, (below, above, _) = adding_up(parts, [0.0] * len(parts), base, end, digits)
    return by_size(np.abs(values)).tolist(), [text for text, _ in pairs], (below, above)


def _digits(values: Any, errors: Any) -> int:
    """Significant digits of the largest number, of which the last is no smaller than the errors."""
    largest, error = (float(np.max(np.abs(each), initial=0.0)) for each in (values, errors))
    if not (0.0 < error < math.inf and largest > 0.0):
        return _SIGNIFICANT
    return min(max(math.floor(math.log10(largest)) - math.floor(math.log10(error)) + 1, 1), _SIGNIFICANT)


def _parts(
    one: Explanation,
    its: _Prediction,
    account: Contributions | None,
    order: Sequence[int],
    written: Sequence[str],
    levels: tuple[str, str],
) -> tuple[AccountLine, ...]:
    """The lines of the account: the base, the largest contributions, all others together, the prediction."""
    shown = list(order[:_FEATURES])
    if account is None:
        units = bar_units(one)[0]
        sizes = [float(one.coefficients.values.ravel()[j] * units[j]) for j in shown]
        scale = Scale(min([0.0, *sizes]), max([0.0, *sizes]), 0, 99)
        return tuple(
            AccountLine(
                text=one_line(one.conditions[0][j]),
                number=written[j],
                bar=scale.between(0.0, size),
                raises=size > 0,
                start=scale.position(0.0),
            )
            for j, size in zip(shown, sizes, strict=True)
        )
    values, base = account.values.ravel(), float(account.base_values.ravel()[0])
    sizes, numbers = [float(values[j]) for j in shown], [written[j] for j in shown]
    names = [what_holds(one, 0, j) for j in shown]
    hidden = [j for j in range(len(values)) if j not in shown]
    if hidden or written[-1] != "0":
        names.append(_others(len(hidden), whole=float(written[-1]) == 0.0))
        sizes.append(its.value - base - sum(sizes))
        numbers.append(_rest(numbers, levels, sizes[-1]))
    starts = (base + np.concatenate([[0.0], np.cumsum(sizes)])).tolist()
    scale = Scale(min(starts), max(starts), 0, 99)
    sign = " %" if its.label else ""
    where = f"{its.base[0].upper()}{its.base[1:]}" if its.base else "Usual"
    return (
        AccountLine(text=where, number=f"{levels[0]}{sign}", start=scale.position(base), is_level=True),
        *(
            AccountLine(
                text=name,
                number=text,
                bar=scale.between(start, start + size) if size else None,
                raises=size > 0,
                start=scale.position(start),
            )
            for name, text, size, start in zip(names, numbers, sizes, starts, strict=False)
        ),
        AccountLine(
            text="This prediction",
            number=f"{levels[1]}{sign}",
            start=scale.position(its.value),
            is_level=True,
        ),
    )


def _others(hidden: int, *, whole: bool) -> str:
    return count(hidden, "other") if whole else "All others"


def _rest(numbers: Sequence[str], levels: tuple[str, str], size: float) -> str:
    """Return what the written numbers leave of the written difference."""
    if any("e" in text or "n" in text for text in (*numbers, *levels)):  # also inf and nan
        return difference(size, _SIGNIFICANT)
    rest = Decimal(levels[1]) - Decimal(levels[0]) - sum(map(Decimal, numbers), Decimal(0))
    return f"{rest:+f}" if rest else f"{abs(rest):f}" if size else "0"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 1, 1)]}…"


def _about(one: Explanation, account: Contributions | None) -> str:
    if account is None:
        return f"A number is a coefficient of the surrogate: {meaning(one)}."
    if "base" in one.provenance:
        return "Each line is a Shapley value: what showing a part changes, over all orders of the parts."
    return (
        f"Usual is {usual_is(one)}. Each line is a Shapley value: what the row's own value changes, over all "
        "orders of the columns."
    )


def _caveats(account: Contributions | None) -> tuple[str, ...]:
    means = (
        "a coefficient is what the model's average changes with a condition"
        if account is None
        else "a contribution is how far a value moves the model's answer"
    )
    return (
        f"They describe the model, not the world: {means}; it does not promise that another value would have "
        "this effect in reality.",
    )


def _warnings(one: Explanation, account: Contributions | None) -> tuple[str, ...]:
    """Warnings of the numbers that are shown."""
    record = one.row_warnings[0] if account is None else one.contributions.row_warnings[0]
    return tuple(f"{text[0].upper()}{text[1:].rstrip('.')}." for text in warnings_of(one, record) if text)


# -- reasons -------------------------------------------------------------------------------------------------


def _reasons(
    one: Explanation,
    its: _Prediction,
    k: int,
    catalogue: Mapping[str, Any] | None,
    sign: str,
    outcome: str,
    account: Contributions | None,
    written: Sequence[str],
) -> tuple[Reasons, ...]:
    of = "coefficients" if account is None else "contributions"
    by_name = by_feature("catalogue", catalogue or {}, one)
    effects = {
        one_line(name): its.effect(text) for name, text in zip(one.feature_names, written, strict=False)
    }
    holds = {one_line(name): what_holds(one, 0, j) for j, name in enumerate(one.feature_names)}
    entries = {name: _with_effect(entry, effects.get(one_line(name), "")) for name, entry in by_name.items()}
    every = reasons_of(one, len(one.feature_names) or 1, entries, 0, 0, sign, of, "units")
    # a value that may as well speak for the other side is no reason
    sure = [reason for reason in every if abs(reason.value) > CONFIDENCE * reason.standard_error]
    shown, later = sure[:k], sure[k : k + 1]

    def sentence(reason: Reason) -> str:
        if reason.feature in entries:
            return str(reason).removesuffix(_UNCERTAIN)
        verb = "raises" if reason.value > 0 else "lowers"
        cause = reason.condition if account is None else holds.get(reason.feature, reason.condition)
        if account is None and cause == reason.feature:
            cause = f"each further unit of {reason.feature}"
        size = effects.get(reason.feature) or its.effect(number(its.scale * abs(reason.value), _SIGNIFICANT))
        return f"{cause} {verb} {its.subject} by {size}."

    if sign == "both":
        groups = [
            (verb, [r for r in shown if (r.value > 0) == up])
            for verb, up in (("raises", True), ("lowers", False))
        ]
        return tuple(
            Reasons(
                heading=f"What {verb} {its.subject} most",
                sentences=tuple(map(sentence, some)),
                order=_order(some, ()),
            )
            for verb, some in groups
            if some
        )
    verb = "raises" if sign == "+" else "lowers"
    heading = f"Main reason{'' if len(shown) == 1 else 's'} for this {one_line(outcome)}"
    if not shown:
        return (Reasons(heading=heading, sentences=(f"No value surely {verb} {its.subject}.",)),)
    return (Reasons(heading=heading, sentences=tuple(map(sentence, shown)), order=_order(shown, later)),)


def _with_effect(entry: Any, effect: str) -> Any:
    """A catalogue's entry with the number that the account has; what is no text is refused elsewhere."""
    if isinstance(entry, str):
        return entry.replace("{effect}", effect)
    return tuple(_with_effect(text, effect) for text in entry) if isinstance(entry, tuple | list) else entry


def _order(shown: Sequence[Reason], later: Sequence[Reason]) -> str:
    """Which places of the reasons are not certain, in words."""
    tied = [
        abs(a.value) - abs(b.value) <= CONFIDENCE * math.hypot(a.standard_error, b.standard_error)
        for a, b in zip(shown, [*shown[1:], *later], strict=False)
    ]
    sentences, start = [], 0
    while start < len(shown) - 1:
        end = start
        while end < len(shown) - 1 and tied[end]:
            end += 1
        if end > start:
            link = "and" if end == start + 1 else "to"
            sentences.append(f"The order of reasons {start + 1} {link} {end + 1} is not certain.")
        start = max(end, start + 1)
    if later and tied and len(tied) == len(shown) and tied[-1]:
        sentences.append("A further reason may be as strong as the last one.")
    return " ".join(sentences)
