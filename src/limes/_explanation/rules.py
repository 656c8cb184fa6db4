"""Results of sparse explanations: the certificate of a rule, and a contrast; both also in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from limes._arrays import EqualByValue
from limes._explanation.drawing import Card, Printable
from limes._explanation.wording import (
    beside,
    cell,
    chosen,
    count,
    is_beside,
    label_text,
    number,
    one_line,
    percentage,
    percentages,
    signed_column,
)
from limes.exceptions import InputError


@dataclass(frozen=True, repr=False, eq=False)
class Certificate(EqualByValue, Printable):
    r"""Errors of one sparse explanation w, with its constant b, of f at x, with upper bounds.

    All errors are in units of the model's answers.

    Attributes
    ----------
    solver
        Name of the solver that computed w.
    fidelity
        Mean of (b + w·z - f(z))² over the rows that w was fitted on: biased downwards.
    fresh_fidelity
        This mean over fresh rows: unbiased.
    r2
        1 - fresh_fidelity / Var f, Var f over fresh rows: 0 for a rule no better than the mean.
    precision
        P(w) = E[|f(z) - f(x)| given w·z = w·x], on fresh rows or exactly; for more than 20 literals, given
        that all of them hold.
    precision_error
        Standard error of ``precision``; 0 where exact.
    coincidence
        Pr[w·z = w·x], or for more than 20 literals the probability that all hold.
    confidence
        Probability with which all ``bounds`` hold together, under ``assumption``.
    bounds
        Upper bounds: "fidelity" and "precision" by empirical Bernstein inequalities on fresh rows (for
        rules that are to hold "precision" by bets, which are tighter), and "precision_from_fidelity" =
        √(fidelity bound / coincidence), but for law "background", whose rows with facts are no others' part.
    objective, lower_bound, gap, nodes
        Of the problem that the solver solved; see :class:`limes._rules.problem.SparseSolution`. Where
        E[s f] is exact, ``objective`` is ``fresh_fidelity``, and only the distance to the bound is exact.
    proved, optimum
        Whether no rule of this size has a smaller error: under the law itself ("population", where E[s f] is
        exact), or in the sample that was drawn ("sample"). Never under an estimated E[s f] ("estimate"), nor
        where facts were added one by one ("search": laws of a table, unless no row of the sample errs).
    stability, near_ties
        For an estimate: how often resampled rows choose the same literals, and how often each of the others,
        by condition, where that is at least 10 %. NaN and empty otherwise.
    samples, fresh_samples
        Rows behind ``fidelity`` and ``fresh_fidelity``; where E[s f] is exact, 0 and the fresh ones for both.
    theory
        Without a constant, the 2025 paper's Theorem 2, mended: with the stated confidence the mean absolute
        error of w·z over all neighbours exceeds that over the sample by "accuracy" at most; and the samples
        for which that is 0.1. For answers and weights in [-1, 1].
    scale
        (low, high): the range of the answers.
    assumption
        The assumption that all bounds rest on where the range is not known; "" where it is.
    rule
        The explanation in words.
    coverage
        Share of the background's rows for which all facts of the rule hold; None without a background.
    background_rows
        How many rows the background has; None without one.
    agreement
        Of rules that are to hold: the share of these rows that are as the rule says, on the same side of
        ``threshold``, or within ``bounds["band"]`` of ``prediction``. None without such rows, and for
        "certain".
    neighbourhood
        What the neighbours are, in a clause: "neighbours keep 73% of the other columns".
    minimises
        The error that the facts minimise: the "fidelity" error of the weights, or, for rules that are to
        hold, the "precision" error or, for "class", P[other class given the facts]. Then ``objective``,
        ``lower_bound``, ``gap`` and ``proved`` are of that error in the sample of ``samples`` rows, or
        under the law itself ("population", where all rows were asked); ``bounds["band"]`` is the distance
        from ``prediction`` that at most 10 % of the neighbours with the facts exceed.
    facts
        The conditions of the rule.
    prediction, quantity
        The model's answer at x, and what it is: "probability" or "prediction".
    other_class, threshold
        P[other class given the facts], bounded by ``bounds["class"]``, None unless it is minimised; and the
        number between the classes, for "certain" that of the claim, if it has one.
    certified
        For k="smallest": the error whose bound is as small as was asked for; "" elsewhere. Where it is not
        the one that rules minimise, a shorter rule with other facts may meet it.
    fewest
        For k="smallest": the least number of facts that could meet the error by the sample, where rules
        minimise the error that is certified and are to hold; None elsewhere.
    columns, claim
        For "certain": the columns of the facts, and what they guarantee of the answer (">= 0.5"). Columns
        that the domain keeps together, as one-hot columns, make one fact.
    minimal, smallest
        For "certain", where ``proved`` says that the facts are sufficient, that is, that no row of the
        ``domain`` with these facts contradicts the claim: whether no fact can be dropped, and whether no set
        of fewer facts is sufficient. ``objective`` is then the number of facts, and ``lower_bound`` the
        number below which no set is sufficient.
    counterexamples
        For "certain": for each fact that is needed, in the order of the columns, a row of the domain, as
        values in the order of the table's columns, that shares all other facts and contradicts the claim by
        the model's own answer. Where no set of facts is sufficient, a row that shares all of them.
    counterexample_facts, counterexample_answers, counterexample_labels
        For "certain": of each counterexample the columns of the fact that it does not share, the model's
        answer, and the class that it predicts, where the claim is of classes.
    label
        For "certain": the class that the model predicts at x; "" where the claim is of none.
    seconds
        For "certain": the time that the search took.
    domain
        For "certain": the rows that were taken to be possible, in words.
    worst_case, worst_case_exact
        (low, high): bounds of the answers to rows of background values with all facts of the rule, whatever
        their other columns are; and whether rows reach both ends. None for models that are not read.

    References
    ----------
    Koriche et al. 2025, equations 1 to 3 and Theorem 2. Its Lemma 1, P ≤ √F, is false: the probability of the
    condition is missing.
    """

    solver: str
    fidelity: float
    fresh_fidelity: float
    precision: float
    precision_error: float
    coincidence: float
    confidence: float
    bounds: dict[str, float]
    objective: float
    lower_bound: float
    gap: float
    proved: bool
    nodes: int
    samples: int
    fresh_samples: int
    theory: dict[str, float]
    scale: tuple[float, float]
    rule: str
    r2: float = math.nan
    assumption: str = ""
    optimum: str = ""
    stability: float = math.nan
    near_ties: dict[str, float] = field(default_factory=dict)
    coverage: float | None = None
    agreement: float | None = None
    neighbourhood: str = ""
    worst_case: tuple[float, float] | None = None
    worst_case_exact: bool = False
    minimises: str = "fidelity"
    facts: tuple[str, ...] = ()
    prediction: float = math.nan
    quantity: str = "prediction"
    other_class: float | None = None
    threshold: float | None = None
    fewest: int | None = None
    certified: str = ""
    columns: tuple[str, ...] = ()
    claim: str = ""
    minimal: bool = False
    smallest: bool = False
    counterexamples: tuple[tuple[Any, ...], ...] = ()
    counterexample_facts: tuple[tuple[str, ...], ...] = ()
    counterexample_answers: tuple[float, ...] = ()
    counterexample_labels: tuple[str, ...] = ()
    label: str = ""
    background_rows: int | None = None
    seconds: float = math.nan
    domain: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        flat = ("scale", "worst_case", "facts", "columns", "domain")
        of_examples = ("counterexample_answers", "counterexample_labels")
        for name in (*flat, *of_examples):  # JSON makes lists of tuples
            ends = getattr(self, name)
            object.__setattr__(self, name, None if ends is None else tuple(ends))
        for name in ("counterexamples", "counterexample_facts"):
            object.__setattr__(self, name, tuple(map(tuple, getattr(self, name))))

    def __repr__(self) -> str:
        if self.minimises == "certain":
            return f"<Certificate: {_certain_sentence(self)}>"
        error, bound = math.sqrt(self.fresh_fidelity), math.sqrt(self.bounds["fidelity"])
        return (
            f"<Certificate: errs by {number(error, 3)} on fresh rows, at most {number(bound, 3)} with "
            f"{self.confidence:.0%} confidence>"
        )

    def _card(self) -> Card:
        if self.minimises == "certain":
            sentences = tuple(certificate_sentences(self))
            return Card(title="Certificate", subtitle=self.rule, remarks=sentences)
        together = f"The bounds hold together with {self.confidence:.0%} confidence."
        remarks = (*certificate_sentences(self), together)
        return Card(title="Certificate", subtitle=self.rule, remarks=remarks)


NO_WEIGHTS = (
    "facts that hold for certain have no weights; print the explanation, or read its certificate, rule() and "
    "to_frame(), or pass one of limes.TabularExplainer"
)


def is_certain(explanation: Any) -> bool:
    """Whether an explanation has facts that hold for certain, and no weights."""
    return are_certain(explanation.certificates)


def are_certain(certificates: Any) -> bool:
    """Whether certificates, or their fields as JSON holds them, are of facts that hold for certain."""
    if not isinstance(certificates, Iterable):
        return False
    kinds = (
        one.get("minimises") if isinstance(one, Mapping) else vars(one).get("minimises")
        for one in certificates
        if isinstance(one, Mapping | Certificate)
    )
    return "certain" in kinds


def check_weights(explanation: Any, what: str) -> None:
    """Refuse facts that hold for certain where weights are shown."""
    if is_certain(explanation):
        raise InputError(f"{what}: {NO_WEIGHTS}")


# Share of the neighbours with the facts for which a rule that holds states how far the answer moves
BAND = 0.9
_NUMBERS = (
    "no",
    "this fact",
    "both facts",
    "these three",
    "these four",
    "these five",
    "these six",
    "these seven",
)


def _prediction(certificate: Certificate) -> str:
    """Write the prediction, on its side of the threshold."""
    threshold = () if certificate.threshold is None else (certificate.threshold,)
    return beside(certificate.prediction, threshold)


def holding_sentence(certificate: Certificate) -> str:
    """Write what holds while the facts do."""
    n, bounds = len(certificate.facts), certificate.bounds
    named = _NUMBERS[n] if n < len(_NUMBERS) else f"these {n}"
    who = f"While {named} hold{'s' if n == 1 else ''}" if n else "Whatever changes"
    exact = bounds["precision"] == certificate.precision
    sure = "exactly" if exact else f"{certificate.confidence:.0%} sure"
    stays = (
        f"stays within {number(bounds['band'], 2)} of {_prediction(certificate)} for {BAND:.0%} of the "
        "neighbourhood"
    )
    if certificate.threshold is not None:
        side = "below" if certificate.prediction < certificate.threshold else "at or above"
        kept = math.floor(1000.0 * (1.0 - bounds["class"])) / 1000.0  # a bound is not rounded up
        where = (
            f"at least {kept:.1%} of the neighbourhood" if bounds["class"] > 0 else "the whole neighbourhood"
        )
        stays = f"is {side} {chosen(certificate.threshold)} for {where}, and {stays}"
    return f"{who}, the {certificate.quantity} {stays} ({sure})."


_BEST_OF = {
    "population": "No rule of this size errs less in these neighbours: proved",
    "sample": "No rule of this size errs less on the rows of the sample: proved",
}


def certificate_sentences(facts: Certificate) -> Iterator[str]:
    """Write a certificate: errors, what holds for all rows, whether the rule is the best of its size."""
    if facts.minimises == "certain":
        yield from _certain_sentences(facts)
        return
    sure, bounds = f"with {facts.confidence:.0%} confidence", facts.bounds
    if facts.minimises == "fidelity":
        error, bound = (number(math.sqrt(square), 3) for square in (facts.fresh_fidelity, bounds["fidelity"]))
        yield (
            f"In {count(facts.fresh_samples, 'simulated neighbour')} it errs by {error} (root mean square); "
            f"over all neighbours by at most {bound}, {sure}."
        )
    else:
        yield holding_sentence(facts)
    if facts.neighbourhood:
        yield f"{facts.neighbourhood[0].upper()}{facts.neighbourhood[1:]}."
    error = f" ± {number(facts.precision_error, 2)}" if facts.precision_error else ""
    yield (
        "Where its facts hold, the model's answer differs from this prediction by "
        f"{number(facts.precision, 3)}{error} on average; by at most "
        f"{number(bounds['precision'], 3)}, {sure}."
    )
    if facts.worst_case is not None:
        low, high = map(number, facts.worst_case)
        ends = "" if facts.worst_case_exact else " (bounds, which no row need reach)"
        yield f"Whatever the other columns are, the model then answers between {low} and {high}{ends}."
    if facts.coverage is not None:
        yield f"The facts hold in {_background_share(facts)}{_agreement(facts)}."
    yield _optimality(facts)
    if facts.certified or facts.fewest is not None:
        yield _fewest(facts)
    low, high = map(number, facts.scale)
    if facts.assumption:
        yield (
            f"Answers are assumed to lie in [{low}, {high}]: if one lies beyond, no bound holds; pass "
            "scale=(low, high)."
        )
    else:
        yield f"Answers are known to lie in [{low}, {high}], on which the bounds rest."


def _agreement(facts: Certificate) -> str:
    """Write how many of the table's own rows with the facts are as the rule says."""
    if facts.agreement is None:
        return ""
    where = f"within {number(facts.bounds['band'], 2)} of {_prediction(facts)}"
    if facts.threshold is not None:
        side = "below" if facts.prediction < facts.threshold else "at or above"
        where = f"{side} {chosen(facts.threshold)}"
    share = math.floor(1000.0 * facts.agreement) / 1000.0  # not all where it is nearly all
    return f"; in {share:.1%} of these the {facts.quantity} is {where}"


def _certain_sentence(facts: Certificate) -> str:
    n = int(facts.objective)  # columns that are kept together make one fact
    who = "whatever its columns are"
    if n:
        these = "this fact" if n == 1 else f"these {n} facts"
        who = f"with {these}, whatever its other columns are"
    claim = f"a {facts.quantity} {facts.claim}"
    if facts.label and facts.threshold is not None:
        claim += f" (class {label_text(facts.label)})"
    row = "possible row" if facts.domain else "row"
    if facts.proved:
        return f"Every {row} {who}, has {claim}: proved"
    if facts.counterexamples:
        return f"Rows with all of these facts need not have {claim}: disproved by the counterexample"
    return f"That every {row} {who}, has {claim}, is not proved"


# Columns and relations of a domain that are named, and the end of a line about a column that is fixed
_NAMED, FIXED = 6, "as in the row"


def _possible_rows(facts: Certificate) -> Iterator[str]:
    """Write which rows are possible: columns that are fixed, relations, then ranges of other columns."""
    its = [line for line in facts.domain if line.partition(": ")[0] not in facts.columns]
    of_columns = [":" in line and " <= " not in line for line in its]
    ranked = sorted(range(len(its)), key=lambda i: 0 if its[i].endswith(f": {FIXED}") else 1 + of_columns[i])
    shown = [one_line(its[i]) for i in ranked[:_NAMED]]
    more = len(its) - len(shown)
    if shown:
        rest = f"; and {more} more in certificate.domain" if more else ""
        yield f"In possible rows the other columns are: {'; '.join(shown)}{rest}."


def _certain_sentences(facts: Certificate) -> Iterator[str]:
    yield f"{_certain_sentence(facts)}."
    yield from _possible_rows(facts)
    if facts.proved and facts.smallest:
        yield "No set of fewer facts is sufficient: proved."
    elif facts.proved:
        yield f"A sufficient set has {count(int(facts.lower_bound), 'fact')} or more."
    if facts.proved and facts.minimal and facts.facts:
        yield (
            "Each fact is needed: for each there is a row that shares all the others, and of which the claim "
            "is not true."
        )
    if facts.worst_case is not None:
        threshold = () if facts.threshold is None else (facts.threshold,)
        low, high = (beside(end, threshold) for end in facts.worst_case)
        ends = "" if facts.worst_case_exact else " (bounds, which no row need reach)"
        rows = "possible rows" if facts.domain else "rows"
        yield (
            f"In {rows} with these facts, of the table's values, the model answers from {low} to {high}"
            f"{ends}."
        )
    if facts.coverage is not None:
        yield f"The facts hold in {_background_share(facts)}."
    if math.isfinite(facts.seconds):
        boxes = "1 box" if facts.nodes == 1 else f"{facts.nodes:,} boxes"
        yield f"The search cut {boxes} of rows and took {number(facts.seconds, 2)} s."


def _background_share(facts: Certificate) -> str:
    """Write how many of the background's rows have the facts."""
    assert facts.coverage is not None  # noqa: S101 - there is a background
    if facts.background_rows is None:
        return f"{percentage(facts.coverage)} of the background's rows"
    rows = round(facts.coverage * facts.background_rows)
    return f"{rows:,} of the background's {count(facts.background_rows, 'row')}"


def _fewest(facts: Certificate) -> str:
    if facts.fewest is None and facts.certified != facts.minimises:
        return (
            f"It is the first rule whose {facts.certified} error is as small as was asked for, among those "
            f"of least {facts.minimises} error with 1, 2, ... facts: fewer other facts may do."
        )
    if facts.fewest is None and facts.facts:
        return "The rules of fewer facts that were tried do not reach the error that was asked for."
    if not facts.facts:
        return "No fact is needed for the error that was asked for."
    if facts.fewest == len(facts.facts):
        return "Fewer facts do not reach the error that was asked for: proved on the same rows."
    return f"That {count(facts.fewest or 0, 'fact')} could reach the error is not excluded."


# A bound of a rule needs none of all rules: they are two statements
_OF_ITSELF = " Its bounds hold all the same: they rest on fresh rows, which had no part in the choice."


def _optimality(facts: Certificate) -> str:
    if facts.proved:
        return f"{_BEST_OF.get(facts.optimum, 'The best rule of this size: proved')}."
    if facts.optimum == "estimate":
        ties = ", ".join(f"{one_line(name)} ({share:.0%})" for name, share in facts.near_ties.items())
        chosen = f"Other samples choose the same facts in {facts.stability:.0%}"
        return chosen + (f"; others: {ties}." if ties else ".")
    if facts.optimum == "search":
        return (
            f"That it is the best rule of this size is not proved: facts were added one by one.{_OF_ITSELF}"
        )
    if facts.lower_bound > 0:
        error = "a squared error" if facts.minimises == "fidelity" else "an error"
        return f"The best rule of this size has {error} at most {facts.gap:.1%} smaller."
    if facts.minimises == "fidelity":
        return f"That it is the best rule of this size is not proved ({facts.solver})."
    why = "the search was cut short: time_limit= allows more"
    return f"That it is the best rule of this size is not proved ({why}).{_OF_ITSELF}"


@dataclass(frozen=True, eq=False)
class Change(EqualByValue):
    """One column that changes: its value and condition at the row, and the new ones."""

    feature: str
    value: Any
    condition: str
    new_value: Any
    new_condition: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Contrast(EqualByValue, Printable):
    """The columns that have to change for a prediction to be beyond a threshold, or for another class.

    Attributes
    ----------
    changes
        The best set of changes that was seen to be enough; empty where the row is beyond the threshold
        already, and where no row of background values is beyond it.
    prediction, new_prediction
        Predictions at the row, and at the row with the changes.
    threshold, side
        The threshold, and the side of it to reach: "below" or "above". None where a class is to change.
    border
        Where one of two classes is to change: the number between them, 0.5 for probabilities and 0 for
        margins, if the predictions lie on both sides of it as the classes do; None elsewhere.
    label, new_label, to
        The class that the model predicts at the row, that at the row with the changes, and the one that was
        to be reached; "" for any other. All are "" where a threshold is to be reached.
    reached
        Whether the changes are enough.
    minimizes
        "columns": the changes are as few as can be. "cost": they cost as little as can be, and of ``among``
        "rows" the changed row is the row of the background whose change costs least.
    objective, lower_bound, gap
        How many columns change, or what they cost; a number that no other change is below; and
        1 - lower_bound / objective, 0 where it is proved. Infinite objective: none was seen.
    proved
        Whether bounds of the model's form over all background values show that no other change is better, or,
        where the threshold is not reached, that no row reaches it.
    reason
        Why this is not proved.
    output
        Name of the output.
    quantity
        What the predictions are: "probability", which sentences state in percent, or "prediction".
    among
        "values": columns change one by one. "rows": the changed row is a row of the background.
    earlier, disjoint
        How many earlier answers it differs from: it leaves a column of each of them as it is, or all columns.
    constraints
        Which columns may not change, or only in one direction, and relations of the domain, in words.

    Examples
    --------
    >>> import limes
    >>> X = [[0.0, 5.0], [1.0, 6.0], [2.0, 7.0], [3.0, 8.0]]
    >>> explainer = limes.SparseExplainer(lambda X: X[:, 0] + X[:, 1], literals=limes.Literals.fit(X), k=1)
    >>> explainer.contrast([[3.0, 8.0]], below=9.5).changes[0].feature
    'x0'

    The cheapest change, in standard deviations, and the class of a classifier:

    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit(X, [0, 0, 1, 1])
    >>> explainer = limes.SparseExplainer(model, literals=limes.Literals.fit(X), directions={"x1": "down"})
    >>> contrast = explainer.contrast([[3.0, 8.0]], minimize="cost")
    >>> contrast.label, contrast.new_label, contrast.proved, round(contrast.objective, 3)
    ('1', '0', True, 2.683)
    """

    changes: tuple[Change, ...]
    prediction: float
    new_prediction: float
    threshold: float | None = None
    side: Literal["below", "above"] | None = None
    reached: bool
    proved: bool
    reason: str
    output: str
    quantity: str = "prediction"
    minimizes: str = "columns"
    objective: float = math.nan
    lower_bound: float = 0.0
    among: str = "values"
    earlier: int = 0
    disjoint: bool = False
    constraints: tuple[str, ...] = ()
    border: float | None = None
    label: str = ""
    new_label: str = ""
    to: str = ""

    @property
    def gap(self) -> float:
        """How much smaller the objective of another change may be, as a share."""
        if self.objective <= self.lower_bound:
            return 0.0
        return 1.0 if math.isinf(self.objective) else 1.0 - self.lower_bound / self.objective

    def __repr__(self) -> str:
        return f"<Contrast: {_contrast_sentence(self)}>"

    def _card(self) -> Card:
        # a condition that held before says nothing
        conditions = [
            one_line(c.new_condition) if c.new_condition != c.condition else "" for c in self.changes
        ]
        columns = ("column", "now", "then", *(["which is"] if any(conditions) else []))
        return Card(
            title="Contrast",
            subtitle=_contrast_sentence(self),
            columns=columns if self.changes else (),
            rows=[
                (one_line(c.feature), cell(c.value), cell(c.new_value), condition)[: len(columns)]
                for c, condition in zip(self.changes, conditions, strict=True)
            ],
            remarks=(*self._proof(), *self._cost(), *self._constraints(), *self._plausible()),
        )

    def _proof(self) -> tuple[str, ...]:
        # a row that is beyond the threshold already needs no proof
        if self.reached and not self.changes:
            return ()
        if not self.reached:
            return (_NONE_REACHED[self.among] if self.proved else f"Not proved: {self.reason}.",)
        if self.among == "rows":
            obey = " and obey the constraints" if self.constraints else ""
            return (
                f"Of the background's rows that are {self._goal}{obey}, it is the nearest: all were tried.",
            )
        what = "the fewest columns" if self.minimizes == "columns" else "the cheapest change"
        if self.earlier:
            others = "the earlier answer" if self.earlier == 1 else "each earlier answer"
            kept = "all columns" if self.disjoint else "a column"
            what += f" that leave{'' if self.minimizes == 'columns' else 's'} {kept} of {others} as "
            what += "they are" if self.disjoint else "it is"
        if not self.proved:
            return (f"Not proved to be {what}: {self.reason}{self._gap()}.",)
        if self.minimizes == "columns":
            return (f"Proved to be {what}: no values of fewer columns are enough.",)
        return (f"Proved to be {what}: no values of the background that cost less are enough.",)

    @property
    def _goal(self) -> str:
        """The other side, in words: "below 0.5"."""
        if self.side is None:
            return f"of class {label_text(self.to)}" if self.to else "of another class"
        return f"{self.side} {_numbers(self)[2]}"

    def _gap(self) -> str:
        if self.lower_bound <= 0.0:
            return ""
        if self.minimizes == "columns":
            return f"; {count(int(self.lower_bound), 'column')} or more are needed"
        return f"; none costs less than {_rounded_down(self.lower_bound)}"

    def _cost(self) -> tuple[str, ...]:
        if self.minimizes != "cost" or not self.changes:
            return ()
        return (
            f"It costs {number(self.objective, 3)}, in standard deviations of the columns and their costs.",
        )

    def _constraints(self) -> tuple[str, ...]:
        return (f"Constraints: {'; '.join(self.constraints)}.",) if self.constraints else ()

    def _plausible(self) -> tuple[str, ...]:
        if not self.changes:
            return ()
        return (_IS_A_ROW if self.among == "rows" else _PLAUSIBLE,)


_NONE_REACHED = {
    "values": "Proved by bounds of the model over all background values.",
    "rows": "All rows of the background that are possible were tried.",
}
_PLAUSIBLE = "All other columns stay as they are: the changed row need not be a plausible one."
_IS_A_ROW = "The changed row is a row of the background."


def _rounded_down(low: float) -> str:
    """Write a lower bound, which is not rounded up, with three digits."""
    digits = 2 - math.floor(math.log10(low))
    return number(math.floor(low * 10.0**digits) / 10.0**digits, 3)


def _contrast_sentence(contrast: Contrast) -> str:
    if contrast.side is None:
        return _class_sentence(contrast)
    (before, after, threshold), subject = _numbers(contrast), _subject(contrast)
    verb = "fall" if contrast.side == "below" else "rise"
    if not contrast.reached:
        return f"{_none(contrast)} {subject} {verb} {contrast.side} {threshold}; it is {before}."
    capital = f"{subject[0].upper()}{subject[1:]}"
    if not contrast.changes:
        return f"{capital} is {before}, {contrast.side} {threshold} already."
    changes = _changes_text(contrast)
    if contrast.quantity == "probability":
        return f"{capital} would {verb} from {before} to {after}, {contrast.side} {threshold}, if {changes}."
    return f"{capital} would {verb} {contrast.side} {threshold} if {changes}: from {before} to {after}."


def _class_sentence(contrast: Contrast) -> str:
    now, new = label_text(contrast.label), label_text(contrast.new_label)
    if not contrast.reached:
        to = label_text(contrast.to) if contrast.to else f"another one than {now}"
        return f"{_none(contrast)} the class {to}" + (f"; it is {now}." if contrast.to else ".")
    if not contrast.changes:
        return f"The class is {now} already."
    (before, after), subject = _numbers(contrast)[:2], _subject(contrast)
    return (
        f"The class would be {new} in the place of {now} if {_changes_text(contrast)}; {subject} would be "
        f"{after}, it is {before}."
    )


def _none(contrast: Contrast) -> str:
    if contrast.among == "rows":
        return "No row of the background that is possible makes"
    return "No row of background values makes" if contrast.proved else "No row that was tried makes"


def _changes_text(contrast: Contrast) -> str:
    return " and ".join(
        f"{one_line(change.feature)} were {cell(change.new_value)} instead of {cell(change.value)}"
        for change in contrast.changes
    )


def _subject(contrast: Contrast) -> str:
    name, what = one_line(contrast.output), "chance" if contrast.quantity == "probability" else "prediction"
    return f"the {what}" + ("" if name == "output" else f" of {label_text(contrast.output)}")


def _numbers(contrast: Contrast) -> tuple[str, ...]:
    """Write both predictions, and the threshold where there is one."""
    predictions = [contrast.prediction, contrast.new_prediction]
    between = contrast.border if contrast.threshold is None else contrast.threshold
    thresholds = [] if between is None else [between]
    if contrast.quantity == "probability":
        return percentages(predictions, *thresholds)
    texts = [text.removeprefix("+") for text in signed_column(predictions)]
    if not contrast.changes:
        texts[0] = number(contrast.prediction)
    written = (
        text if is_beside(text, value, thresholds) else beside(value, thresholds)
        for text, value in zip(texts, predictions, strict=True)
    )
    return (*written, *map(chosen, thresholds))
