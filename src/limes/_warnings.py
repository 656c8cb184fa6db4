"""Warnings about rows: one table of their codes, meanings and sentences, which all media show.

A warning is a text that also says its code, and the outputs that it is about. The facts that a sentence names
are found where they are known: by explainers, by the callers of models, and by the finished explanation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """Facts that warnings of one code share, and their sentences by name, with gaps in braces."""

    when: str
    reading: str  # the reading that they are about alone, "coefficients" or "contributions"; "" for both
    sentences: Mapping[str, str]


_COEFFICIENTS, _CONTRIBUTIONS = "coefficients", "contributions"
NOT_TRUSTED = "standard errors are not to be trusted"

_NEW_VALUES = (
    "{share} of the rows that the model was asked about hold values of {name} that do not occur in the "
    "background{others}: name columns whose numbers are codes in categorical=; law='empirical' asks about "
    "values that occur"
)

# In the order of their weight; long tables and JSON have the codes
WARNINGS: Mapping[str, Kind] = {
    "other side": Kind(
        "the surrogate lies on the other side of the decision's threshold than the model",
        _COEFFICIENTS,
        {
            "": "LIME's surrogate says {surrogate} where the model says {prediction}: the other side of "
            "{limit:g}"
        },
    ),
    "no probability": Kind(
        "the surrogate of a probability is below 0 or above 1",
        _COEFFICIENTS,
        {"": "LIME's surrogate says {surrogate} where the model says {prediction}: no probability"},
    ),
    "far": Kind(
        "the surrogate misses the prediction by more than all its coefficients together",
        _COEFFICIENTS,
        {
            "": "the surrogate misses the prediction by more than all its coefficients together: do not "
            "derive the prediction from them; limes.diagnose says more"
        },
    ),
    "combinations": Kind(
        "single columns account for less than half of how the model varies around the row, and the surrogate "
        "misses the prediction by more than a quarter of the largest bar",
        _COEFFICIENTS,
        {
            "": "single columns account for {captured:.0%} of how the model varies around the row; the rest "
            "is in combinations of columns, which limes.diagnose names"
        },
    ),
    "hidden effect": Kind(
        "a column's whole effect is a fifth or more of how the model varies around the row, and its "
        "coefficient tells next to nothing of it",
        _COEFFICIENTS,
        {
            "": "the coefficient tells next to nothing of the whole effect of {columns}, in shares of how "
            "the model varies around the row: read explanation.effects or contributions in its place"
        },
    ),
    "inconsistent": Kind(
        "the model answers differently for the same input",
        "",
        {
            "": "the model answered differently for the same input (up to {spread:.3g}): errors contain that "
            "spread, and the next call gives other numbers; call model.eval() if it is a network, set "
            "the temperature of a language model to 0, else fix the seed, or what is learnt from the batch"
        },
    ),
    "columns": Kind(
        "the model was fitted on columns of other names",
        "",
        {
            "": "{model} was fitted on the column {lacking}, and the background has {others} in its place: "
            "if the model takes columns by position, predictions are of the wrong column. Pass the columns "
            "that it was fitted on"
        },
    ),
    "unchanged": Kind(
        "the model answers the same whatever is changed",
        "",
        {
            "everywhere": "the model answered the same in all {calls:,} {rows}, so that {coefficients}: "
            "check that it receives what is explained",
            "elsewhere": "the model answered the same in all {calls:,} {rows}, and otherwise to what is "
            "explained, so that {coefficients}: take fewer, larger features",
            "rule": "the model answered the same in all {calls:,} fresh rows: no literal decides; check that "
            "it receives what is explained",
        },
    ),
    "errors": Kind(
        "standard errors are not to be trusted",
        _COEFFICIENTS,
        {
            "alike": "the model answered the same in all {calls:,} {rows}: an answer rarer than 3 in "
            f"{{calls:,}} may have been missed, so that {NOT_TRUSTED}; {{more}}, or widen the bandwidth",
            "nearly alike": "the model answered the same in all but {unlike:.0f} of {calls:,} {rows}: "
            f"{NOT_TRUSTED}; {{more}}",
            "few decide": "about {effective_clusters:.0f} of {calls:,} rows decide the coefficients: "
            f"{NOT_TRUSTED}; {{more}}",
            "fidelity": "few of {calls:,} rows decide how much the model varies: R² and shares cannot be "
            "estimated; {more}",
        },
    ),
    "tolerance": Kind(
        "errors are larger than the tolerance, or than 1.5 % of the largest coefficient",
        _COEFFICIENTS,
        {
            "given": "the tolerance is not met: after the model's answers to {calls:,} {rows} the largest "
            "error is {excess:.3g} times what is allowed{needed}",
            "needed": "; about {needed:,.0f} would be needed: {more}",
            "too many": "; more than {most:,} would be needed: pass a larger tolerance",
            "": "standard errors did not reach {accuracy}{spent}: {more}",
        },
    ),
    "cut short": Kind(
        "sampling ended early",
        _COEFFICIENTS,
        {"": "stopped after {calls:,} of at most {most:,} model calls; explain the row again to go on"},
    ),
    "new values": Kind(
        "the model was asked about values that do not occur in the background, for its coefficients",
        _COEFFICIENTS,
        {"": _NEW_VALUES},
    ),
    "impossible rows": Kind(
        "the model was asked about values that do not occur in the background, as the law= says",
        "",
        {"": _NEW_VALUES},
    ),
    "dummies": Kind(
        "columns are dummies of one column of categories, and are not in one group",
        "",
        {
            "": "exactly one of {first} … {last} is 1 in every row of the background, and perturbed rows "
            "have several or none: groups={option} makes them one column",
            "part": "at most one of {first} … {last} is 1 in every row of the background, and perturbed rows "
            "have several: groups={option} makes them one column",
            "several": "{count} sets of columns, the first of them {first} … {last}, have one 1 at most in "
            "every row of the background, and perturbed rows have several or none: groups={option} makes one "
            "column of each",
        },
    ),
    "few rows": Kind(
        "few rows of the sample count around the row",
        _COEFFICIENTS,
        {
            "": "only about {effective:.0f} {rows} count around this row, for {count} coefficients: {more}, "
            "or widen the bandwidth"
        },
    ),
    "collinear": Kind(
        "features change together in all rows that count",
        _COEFFICIENTS,
        {
            "": "{names}: collinear, their conditions change together in all rows that count; the "
            "coefficients of least norm are shown, and others fit as well"
        },
    ),
    "hardly changed": Kind(
        "a feature hardly changed in the sample",
        _COEFFICIENTS,
        {
            "": "{names}: hardly changed in the sample; the coefficient is {undetermined}, and its error "
            "cannot be estimated: {more}"
        },
    ),
    "hidden alike": Kind(
        "a feature looks the same hidden as shown, so that its coefficient is unknown",
        "",
        {
            "one": "{names}: the input stays the same when this feature is hidden, so that the coefficient "
            "is unknown; {advice}",
            "several": "{names}: the input stays the same when these features are hidden, so that the "
            "coefficients are unknown; {advice}",
        },
    ),
    "sampled": Kind(
        "the row is sampled, though the model is read",
        _COEFFICIENTS,
        {"": "sampled, as its expectation is not exact: {refusal}"},
    ),
    "order": Kind(
        "the order of coefficients is not certain",
        _COEFFICIENTS,
        {"": "the order of LIME's coefficients is not certain, they are equal within their errors: {pairs}"},
    ),
    "on an edge": Kind(
        "a value lies on the edge of its bin",
        _COEFFICIENTS,
        {
            "": "{name} = {value} lies on an edge of its bin: an arbitrarily small change of the value gives "
            "another explanation; limes.diagnose shows it"
        },
    ),
    "outside": Kind(
        "a value lies outside the background's range",
        "",
        {
            "": "{name} = {value} lies outside the background's range [{low}, {high}]: the model is asked "
            "where it has seen nothing",
            "more": "{count} more columns lie outside the background's range: {names}",
        },
    ),
    "unseen": Kind(
        "a category does not occur in the background, and the model takes it nevertheless",
        "",
        {
            "": "{name} = {value} does not occur in the background: the model is asked about a category that "
            "it may not know"
        },
    ),
    "does not vary": Kind(
        "a column does not vary in the background",
        _COEFFICIENTS,
        {"": "{name} does not vary in the background (it has one cell): its coefficient is 0"},
    ),
    "probabilities": Kind(
        "answers between 0 and 1 do not add up to 1",
        "",
        {
            "": "the model's {count} answers lie between 0 and 1 and add up to {total:.3g}: probabilities of "
            "classes would add up to 1. They are explained as they are; check the model"
        },
    ),
    "scores": Kind(
        "what claims to be probabilities is not: scores are explained as they are",
        "",
        {
            "sums": "predict_proba of {model} answers numbers that add up to {low:.3g} to {high:.3g} in each "
            "row: no probabilities of classes, but scores",
            "range": "predict_proba of {model} answers numbers from {low:.3g} to {high:.3g}: raw scores, as "
            "behind a custom objective. They are explained as they are, without a threshold",
        },
    ),
    "labels": Kind(
        "labels or scores are explained in another form, or as amounts",
        "",
        {
            "outliers": "{model}.predict answers 1 for inliers and -1 for outliers, which are explained as "
            "amounts: output='margin' explains the score behind them (decision_function)",
            "clusters": "{model}.predict answers numbers of clusters, which are no amounts: membership of "
            "each cluster (1 inside, 0 outside) is explained in their place",
            "classes": "{model}.predict answers labels, which are no amounts: {method} is explained in their "
            "place",
            "signs": "the model answers -1 and 1 alone, which are explained as amounts: if it tells outliers "
            "or classes, pass a function of its decision_function or predict_proba",
            "whole numbers": "the model answers whole numbers from {low} to {high} alone, which are "
            "explained as amounts: if they are classes or clusters, pass the fitted model itself, or a "
            "function of probabilities or distances",
        },
    ),
    "input": Kind(
        "the input is cut, out of its range, or split in an unusual way",
        "",
        {
            "one word": "the text has one word: its coefficient is the prediction less that of the text "
            "without it",
            "unsplit": "{word!r} is taken as one word, as its script puts no spaces between words: pass "
            "split= a tokenizer, or a callable text -> [(start, end), ...]",
            "beside features": "what is in no feature ({shown}) moves the answer: {without} for the features "
            "alone, {answer} for the text; pass split= to make features of it",
            "tokens": "the model reads the first {longest} of {count} tokens alone: words behind them count "
            "only where earlier ones are deleted, and not at all behind a mask; explain a part of the text",
            "window": "prompt and answer have {tokens:,} tokens, and {model} was made for {longest:,}: its "
            "answers to the longest prompts are not to be trusted",
            "known": "the answer has the probability {before} without any source and {after} with all of "
            "them: the model knows it, or the rest of the prompt tells it",
            "less likely": "the answer has the probability {before} without any source and {after} with all "
            "of them: the sources make it less likely",
            "unwritten": "{model} would write another answer: {its!r} where this one has {word!r}{place}",
            "one superpixel": "the whole image is one superpixel: its coefficient compares the image with "
            "its fill; choose other segments",
            "lost segment": "the segment {names} has no pixel in what the network sees, {height} x {width} "
            "(outside of it, too small, or below other masks): it is no feature",
            "lost segments": "the segments {names} have no pixel in what the network sees, {height} x "
            "{width} (outside of it, too small, or below other masks): they are no features",
            "another range": "the image has numbers of {dtype} from {low:.6g} up to {high:.6g}, and "
            "{passed}, so that the network gets {gets} in place of {expected}{why}; {cure}",
            "multiplied": "the image has numbers of {dtype}, and {passed}: they are multiplied by "
            "{factor}{cure}",
            "one segment": "the whole series is one segment: its coefficient compares the series with its "
            "fill",
            "index": "the index is not in order: steps are in the order of rows; pass series.sort_index()",
            "channels": "({steps}, {channels}) is one series of {steps} steps and {channels} channels here: "
            "pass list(numpy.asarray(series)) if it is {steps} series, or layout='last' to confirm it",
        },
    ),
    "fills": Kind(
        "fills of an image do not agree about a superpixel",
        "",
        {"": "the fills do not agree whether these raise or lower the answer: {names}"},
    ),
    "rule": Kind(
        "a rule is worse, or its bounds wider, than asked for",
        _COEFFICIENTS,
        {
            "range": "the model answers outside [{low:g}, {high:g}], the range seen around this row, by up "
            "to {excess:.3g} of its width: bounds hold for a known range; pass scale=(low, high)",
            "few fresh rows": "{fresh} fresh rows are too few for a certificate: the bound of the precision "
            "error is no smaller than its largest possible value; raise fresh",
            "box": "not proved optimal: a weight ends at the box of {box:g}, and the best rule within it is "
            "not searched for; pass solver='branch_and_bound', which does, or a larger box=, or none",
            "time": "not proved optimal within the time limit: gap {gap:.1%}; raise time_limit, or samples, "
            "so that literals are less correlated",
            "not sufficient, counterexample": "no set of these facts is sufficient: a row that shares all "
            "of them has another answer (certificate.counterexamples); pass facts='values', or finer bins",
            "not sufficient, open": "that the facts are sufficient was not proved {within}",
            "not minimal": "the facts are sufficient, but whether all of them are needed was not decided "
            "{within}",
            "not smallest": "no fact can be dropped, but that fewer than {size} other facts, {least} or "
            "more, are sufficient was not excluded {within}",
            "seen range": "the {certify} error of at most {error:g} rests on the range of the answers seen, "
            "[{low:g}, {high:g}]: pass scale=(low, high)",
            "not met": "no explanation of up to {size} literals has a certified {certify} error of "
            "{error:g}: this is the longest that was tried; raise error, or fresh",
            "worse than the mean": "R² is {r2:.3g}: the mean answer alone errs less than this rule, which "
            "does not describe the model around the row; raise k{intercept}",
            "poor": "R² is {r2:.3g}: the rule explains less than a tenth of the model's variance around a "
            "row; raise k",
        },
    ),
    "contribution errors": Kind(
        "errors of contributions, or of their base, are larger than the tolerance, or than 1.5 % of the "
        "largest contribution",
        _CONTRIBUTIONS,
        {
            "": "contributions are known to {share} of the largest one{spent}{more}",
            "base": "the base of the contributions is known to {share} of the largest one{spent}{more}",
            "unseen": "no value changed the answer{spent}: contributions are 0, or {most} where such a "
            "change is rarer than could be seen",
        },
    ),
    "contribution order": Kind(
        "the order of the largest contributions is not certain",
        _CONTRIBUTIONS,
        {"": "the order is not certain, contributions are equal within their errors: {pairs}"},
    ),
    "contributions": Kind(
        "contributions were not computed",
        _CONTRIBUTIONS,
        {"": "there are no contributions: {error}; reading explanation.contributions tries again"},
    ),
    "other": Kind("anything else, such as the warnings of files from earlier versions", "", {}),
}

# Meanings of warnings by their codes
CODES: Mapping[str, str] = {code: kind.when for code, kind in WARNINGS.items()}


def sentence(code: str, name: str = "", /, **facts: Any) -> str:
    """The sentence of a code, by its name where it has several, with these facts."""
    return WARNINGS[code].sentences[name].format(**facts)


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
    def of(cls, code: str, name: str = "", /, **facts: Any) -> RowWarning:
        """The sentence of a code, by its name where it has several, with these facts."""
        return cls(sentence(code, name, **facts), code)

    @classmethod
    def about(cls, outputs: Sequence[str], text: str, code: str) -> RowWarning:
        """A sentence about some of several outputs, whose names it ends with."""
        return cls(f"{text}{_named(outputs)}", code, outputs)

    @property
    def reading(self) -> str:
        """The reading that it is about, "coefficients" or "contributions"; "" for both."""
        return WARNINGS[self.code].reading if self.code in WARNINGS else ""

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
    """Return those about outputs of these names, or about all."""
    return tuple(w for w in warnings if not w.outputs or any(name in names for name in w.outputs))
