"""A short list of certain or precise rules that covers a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Never

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._checks import (
    as_number,
    check_choice,
    check_count,
    check_probability,
    check_seed,
    check_size,
    check_threshold,
    unknown_option,
)
from limes._explainers.tables.table import Table, ids_of
from limes._explanation.wording import number
from limes._rules.bounds import Searched, unbounded
from limes._rules.cells import Cells, Masks, holds
from limes._rules.classes import Classes, LargestBounds, class_labels
from limes._rules.contrast import Enough, Target
from limes._rules.covering import shortest, widest
from limes._rules.domain import Domain
from limes._rules.growing import (
    AnsweredRows,
    BoxLaw,
    CertainProof,
    DrawnProof,
    are_beyond,
    grown,
)
from limes._rules.literals import Literals, TableRows, check_columns, rows_of
from limes._rules.model import Ask, RuleModel
from limes._rules.neighbourhood import SIGNS
from limes._rules.rule_list import CoveringRule, RuleList
from limes._rules.sufficient import Claim, Finders, beyond_class, claim_of
from limes._threads import one_blas_thread
from limes.exceptions import InputError
from limes.models._calling.caller import ModelCaller, OneOutput
from limes.models._calling.outputs import THRESHOLDS, Output, behind_method, resolve

_OPTIONS = (
    "objective",
    "error",
    "within",
    "threshold",
    "output",
    "classes",
    "domain",
    "max_rules",
    "confidence",
    "samples",
    "time_limit",
    "rng",
)
# Largest share of other answers in a precise rule, unless the user says another one
_ERROR = 0.05
# Positions of classes differ by more
_HALF = 0.5
# Rows that are drawn to judge a part of a box, and how sure they are to be
_DRAWS, _RISK = 1000, 0.1


@one_blas_thread()
def cover(
    model: Any,
    X: Any,
    *,
    objective: str = "certain",
    error: float | None = None,
    within: float | None = None,
    threshold: float | None = None,
    output: Any = None,
    classes: Sequence[str] | None = None,
    domain: Domain | None = None,
    max_rules: int | None = None,
    confidence: float = 0.95,
    samples: int = 4000,
    time_limit: float = 60.0,
    rng: int | np.random.Generator | np.random.SeedSequence | None = None,
    **unknown: Never,
) -> RuleList:
    r"""Cover a table with a short list of rules that state what the model answers.

    A rule is a conjunction of conditions on columns with a claim: the class, or an interval of the answer.
    Rules grow around rows that none covers yet; of all that were grown a list is chosen, greedily (at most
    1 + ln n times the fewest) and, where that is small, by integer programming.

    Parameters
    ----------
    model
        A fitted estimator or a callable.
    X
        The table to cover: frame or array.
    objective
        "certain": every row of the ``domain`` that meets the conditions has the claimed answer, proved by
        bounds over boxes, for models that are read. "precision": at most a share ``error`` of the rows drawn
        in the rule, and of the table's rows in it, have another one. Each column is drawn from the table's
        values in the rule, independently of the others (columns that the ``domain`` keeps together are drawn
        together). Any model will do.
    error
        For "precision": the largest share of other answers, 0.05 by default.
    within
        Of numbers that are no probabilities: a rule claims that the answer is within this distance of that
        of the row around which it grew. With it probabilities are numbers, too.
    threshold
        The number between the two classes; 0.5 for probabilities, 0 for margins.
    output
        As for :class:`limes.TabularExplainer`. None: of three classes or more rules claim the class that the
        model predicts.
    classes
        Names of the answers below and above the threshold, or of all classes; by default those of the model.
    domain
        :class:`limes.Domain`: which rows are possible. None: every column takes any value between the least
        and the largest of ``X``, whole numbers where all of these are whole, and its levels. Values of ``X``
        are always possible.
    max_rules
        The longest list: as many rows as can be are covered then.
    confidence
        For "precision": probability with which all bounds of the list hold together.
    samples
        For "precision": fresh rows behind each bound.
    time_limit
        Seconds for the whole table; the list then has what was grown until then, and says so.
    rng
        For "precision": seed of the draws.

    Returns
    -------
    RuleList
        The rules, with coverage, exceptions and certificates, and the rows without one.

    Raises
    ------
    InputError
        If an option or a row is not usable.
    ModelError
        If the model fails.
    NotReadableError
        If ``objective="certain"`` and the model has no bounds over boxes.

    References
    ----------
    Chvátal, "A greedy heuristic for the set-covering problem", 1979.

    Examples
    --------
    >>> import limes
    >>> X = [[1.0, 5.0], [2.0, 6.0], [3.0, 5.0], [4.0, 6.0]]
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, ["no", "no", "yes", "yes"])
    >>> [rule.text for rule in limes.rules.cover(tree, X).rules]
    ['x0 <= 2  ->  no', 'x0 > 2  ->  yes']
    """
    if unknown:
        raise unknown_option("cover", next(iter(unknown)), _OPTIONS)
    began = perf_counter()
    check_choice("objective", objective, ("certain", "precision"))
    is_certain = objective == "certain"
    if is_certain and error is not None:
        raise InputError(
            "error= is the share of other answers that objective='precision' allows; certain rules "
            "allow no share: leave it out, and pass within= for an interval of the answer"
        )
    share = check_probability("error", _ERROR if error is None else error)
    limit = check_size("time_limit", time_limit)
    most = None if max_rules is None else check_count("max_rules", max_rules)
    confidence, samples = check_probability("confidence", confidence), check_count("samples", samples)
    seed = check_seed(rng)
    if domain is not None and not isinstance(domain, Domain):
        raise InputError(f"domain must be made by limes.Domain.fit, got {type(domain).__name__}")
    table = _Covered.of(
        model,
        X,
        output=output,
        domain=domain,
        threshold=None if threshold is None else as_number(threshold),
        within=None if within is None else check_size("within", within, zero=True),
        classes=classes,
    )

    def is_late() -> bool:
        return perf_counter() - began > limit

    search: _Search
    if is_certain:
        search = _Certain(table, is_late)
    else:
        search = _Precise(table, is_late, share, 1.0 - confidence, samples, seed)
    candidates, untried, complete = _candidates(table, search)
    return _listed(table, candidates, objective, most, (untried, complete), confidence, began)


@dataclass(frozen=True, eq=False)
class _Covered:
    """A table to cover: its rows in cells, the model's answers, and what rules claim of them."""

    rows: Floats
    answers: Floats
    cells: Cells
    places: Ints  # of the rows, in cells
    claim: Claim
    names: tuple[str, ...] | None  # of the answers below and above the threshold, or of all classes
    ask: Ask
    output: str
    bounded: Searched | None
    reason: str
    classes: Classes | None  # whose positions are the answers, of three or more
    ids: tuple[Any, ...]  # names of the rows

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        *,
        output: Any,
        domain: Domain | None,
        threshold: float | None,
        within: float | None,
        classes: Sequence[str] | None,
    ) -> _Covered:
        domain = Domain.of_ranges(Table.fit(X)) if domain is None else domain
        if domain.fixed:
            names = ", ".join(repr(domain.table.names[j]) for j in domain.fixed)
            raise InputError(
                f"fixed= keeps {names} as in one row, and a table has many: fit a domain without"
            )
        rows = rows_of(Literals.of_table(domain.table), None, "literal", SIGNS)
        model, output = behind_method(model, output)
        rows = rows.for_model(model)
        assert isinstance(rows, TableRows)  # noqa: S101 - literals are given
        check_columns(model, rows)
        its = resolve(model, output)
        ask = OneOutput(ModelCaller(model, its, rows.decode), its)
        reader = RuleModel(model, its, ask, rows, 1.0, "literal", "projection", "auto", None)
        matrix = rows.encode(X)
        domain = _with_rows(replace(domain, table=rows.literals.table), matrix)
        labels = class_labels(model)
        if len(labels) > 2 and (output, threshold, within) == (None, None, None):
            return cls.of_classes(reader, domain, matrix, classes, ids=tuple(ids_of(X, len(matrix))))
        claim, answers = _claim(its, threshold, within, len(labels)), ask(matrix)
        check_threshold(
            "threshold",
            threshold,
            lambda: its.method == "predict_proba" and ask.first.are_probabilities(add_up=False),
        )
        reading = reader.bind()
        searched = reading.searched
        cells = Cells.of(domain, matrix, None if searched is None else searched.bounds.texture)
        return cls(
            rows=matrix,
            answers=answers,
            cells=cells,
            places=cells.locate(matrix),
            claim=claim,
            names=_names(model, its, claim, classes),
            ask=ask,
            output=ask.name,
            bounded=searched,
            reason=reading.reason,
            classes=None,
            ids=tuple(ids_of(X, len(matrix))),
        )

    @classmethod
    def of_classes(
        cls,
        reader: RuleModel,
        domain: Domain,
        matrix: Floats,
        names: Sequence[str] | None,
        ids: tuple[Any, ...],
    ) -> _Covered:
        """The table of a model of three classes or more: answers are the positions of those it predicts."""
        classes = Classes(reader.model, reader.rows, reader.form_of)
        texts = tuple(map(str, classes.labels if names is None else names))
        if isinstance(names, str) or len(texts) != len(classes.labels):
            raise InputError(f"classes must be {len(classes.labels)} names, of {list(classes.labels)}")
        goals = [beyond_class(classes, now) for now in range(len(texts))]
        bounds = LargestBounds(tuple(its.bounds for goal in goals for its, _, _ in goal))

        def ask(rows: Floats) -> Floats:
            return classes(rows).astype(np.float64)

        cells = Cells.of(domain, matrix, bounds.texture if all(goals) else None)
        return cls(
            rows=matrix,
            answers=ask(matrix),
            cells=cells,
            places=cells.locate(matrix),
            claim=Claim(None, _HALF),
            names=texts,
            ask=ask,
            output="class",
            bounded=None,
            reason="",
            classes=classes,
            ids=ids,
        )

    def beyond(self, answer: float) -> list[tuple[Searched, Target, Enough]]:
        """Return what is searched for rows beyond the claim of a rule around a row with this answer."""
        its: list[tuple[Searched, Target, Enough]] = []
        if self.classes is not None:
            its = beyond_class(self.classes, int(answer))
        elif self.bounded is not None:
            its = [(self.bounded, goal, goal.enough(self.ask)) for goal in self.claim.targets(answer)]
        if not its:
            raise unbounded(self.reason, "objective='precision'")
        return its

    @property
    def judge(self) -> Ask:
        """Return the same answers, perhaps as they were read."""
        return self.ask if self.bounded is None else self.bounded.answers

    def text(self, answer: float) -> str:
        """Write what a rule around a row with this answer claims."""
        if self.classes is not None and self.names is not None:
            return self.names[int(answer)]
        if self.claim.error is not None:
            low, high = answer - self.claim.error, answer + self.claim.error
            return f"{self.output} from {number(low)} to {number(high)}"
        if self.names is not None:
            return self.names[self.claim.is_above(answer)]
        return f"{self.output} {self.claim.text(answer)}"

    def ends(self, answer: float) -> tuple[float, float]:
        if self.classes is not None:  # which are no numbers
            return -np.inf, np.inf
        ends = self.claim.within(answer, (-np.inf, np.inf))
        assert ends is not None  # noqa: S101 - of an interval
        return ends


def _claim(output: Output, threshold: float | None, within: float | None, classes: int) -> Claim:
    if threshold is not None and within is not None:
        raise InputError("pass threshold= or within=, not both: rules claim a side, or an interval")
    if threshold is None and within is None and output.method not in THRESHOLDS:
        raise InputError(
            "rules need within=, the half width of the interval that they claim, or threshold=: only "
            "probabilities and margins have a default"
        )
    return claim_of(output, threshold, within, classes)


def _names(model: Any, output: Output, claim: Claim, classes: Sequence[str] | None) -> tuple[str, str] | None:
    """Return the names of the answers below and above the threshold; None where these have none."""
    if classes is not None:
        if isinstance(classes, str) or len(classes) != 2:
            raise InputError(
                f"classes must be two names, of the answers below and above the threshold, got {classes!r}"
            )
        return str(classes[0]), str(classes[1])
    labels = [*map(str, class_labels(model))]
    is_usual = claim.error is None and claim.threshold == THRESHOLDS.get(output.method)
    if len(labels) != 2 or not is_usual:
        return None
    column = output.columns[0] if isinstance(output.columns, list) else output.columns
    first, second = labels
    return (second, first) if column == 0 else (first, second)


def _with_rows(domain: Domain, matrix: Floats) -> Domain:
    """Return the domain with the values of rows (n, d), which must keep its relations."""
    for i, row in enumerate(matrix):
        if broken := domain.broken(row):
            raise InputError(f"row {i} breaks {broken!r} of the domain: leave that relation out")
    columns = []
    for values, x in zip(domain.columns, matrix.T, strict=True):
        wider = values
        for value in np.unique(x).tolist():
            if not wider.contains(np.array([value]))[0]:
                wider = wider.with_value(value)
        columns.append(wider)
    return replace(domain, columns=tuple(columns))


# -- candidates ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A rule that was grown around a row, and how sure it is."""

    masks: Masks
    seed: int
    inside: Bools  # the table's rows that meet its conditions
    meets: Bools  # those of all rows that have the claimed answer
    proved: bool
    bound: float
    draws: int
    events: int

    @property
    def covers(self) -> Bools:
        return self.inside & self.meets

    def is_like(self, other: _Candidate) -> bool:
        """Whether another rule has the same conditions and covers the same rows."""
        same = all(np.array_equal(a, b) for a, b in zip(self.masks, other.masks, strict=True))
        return same and np.array_equal(self.covers, other.covers)


@dataclass(eq=False)
class _Search:
    """Grows rules around rows of a table."""

    table: _Covered
    is_late: Callable[[], bool]

    def __post_init__(self) -> None:
        table = self.table
        self.answered = AnsweredRows(table.rows, table.places, table.answers)

    def grow(self, seed: int, targets: tuple[Target, ...], wanted: Bools) -> _Candidate | None:
        """Return a rule that holds for a row and many wanted ones; None without one."""
        raise NotImplementedError

    def candidate(self, masks: Masks, seed: int, targets: tuple[Target, ...], **sure: Any) -> _Candidate:
        table = self.table
        meets = ~are_beyond(targets, table.answers)
        return _Candidate(masks, seed, holds(masks, table.places), meets, **sure)


@dataclass(eq=False)
class _Certain(_Search):
    def __post_init__(self) -> None:
        super().__post_init__()
        self._finders = Finders()
        for answer in np.unique(self.table.answers).tolist():
            self.table.beyond(answer)  # without bounds no row is proved

    def grow(self, seed: int, targets: tuple[Target, ...], wanted: Bools) -> _Candidate | None:
        table = self.table
        row = table.rows[seed]
        beyond = table.beyond(float(table.answers[seed]))
        proof = CertainProof(
            table.cells, beyond, self._finders, row, targets, self.answered, table.judge, self.is_late
        )
        masks = grown(table.cells, proof, table.places[seed], table.places[wanted], self.is_late)
        if masks is None:
            return None
        return self.candidate(masks, seed, targets, proved=True, bound=0.0, draws=0, events=0)


class _Precise(_Search):
    def __init__(
        self,
        table: _Covered,
        is_late: Callable[[], bool],
        error: float,
        risk: float,
        samples: int,
        seed: int,
    ) -> None:
        super().__init__(table, is_late)
        self._error, self._risk, self._samples, self._seed = error, risk, samples, seed
        self._law = BoxLaw(table.cells, table.rows, table.places)
        self._tests, self._streams = 0, self._seeds()

    def _seeds(self) -> Iterator[np.random.Generator]:
        place = 0
        while True:
            yield np.random.default_rng([self._seed, place])
            place += 1

    def grow(self, seed: int, targets: tuple[Target, ...], wanted: Bools) -> _Candidate | None:
        table, error = self.table, self._error
        while not self.is_late():
            proof = DrawnProof(
                self._law, targets, self.answered, table.ask, table.judge, error, _RISK, _DRAWS, self._streams
            )
            masks = grown(table.cells, proof, table.places[seed], table.places[wanted], self.is_late)
            if masks is None:
                return None
            # all tests together go wrong no more often than one alone
            self._tests += 1
            risk = self._risk / (self._tests * (self._tests + 1))
            bound, events = proof.bound(masks, self._samples, risk)
            if bound <= self._error:
                return self.candidate(
                    masks,
                    seed,
                    targets,
                    proved=False,
                    bound=bound,
                    draws=self._samples,
                    events=events,
                )
            error *= 0.7  # fresh rows refute what was chosen by others: choose more strictly
        return None


def _candidates(table: _Covered, search: _Search) -> tuple[list[_Candidate], int, bool]:
    """Grow rules until all rows are covered that can be, then others around the same rows.

    Also return how many rows were not looked at before the time was spent, and whether it was not.
    """
    uncovered = np.ones(len(table.rows), dtype=np.bool_)
    remaining, candidates = uncovered.copy(), list[_Candidate]()

    def grow(seed: int, wanted: Bools) -> None:
        targets = table.claim.targets(float(table.answers[seed]))
        candidate = search.grow(seed, targets, wanted & ~are_beyond(targets, table.answers))
        if candidate is None:
            return
        if not any(candidate.is_like(other) for other in candidates):
            candidates.append(candidate)
        for rows in (uncovered, remaining):
            rows &= ~candidate.covers

    while remaining.any():
        seed = _seed(table, remaining)
        grow(seed, uncovered)
        if search.is_late():
            return candidates, int(remaining.sum()), False
        remaining[seed] = False
    for seed in [candidate.seed for candidate in candidates]:
        if search.is_late():
            return candidates, 0, False
        grow(seed, np.ones(len(table.rows), dtype=np.bool_))
    return candidates, 0, not search.is_late()


def _seed(table: _Covered, remaining: Bools) -> int:
    """Return a row to grow around: one whose answer is farthest from the threshold, or most usual."""
    places = np.flatnonzero(remaining)
    answers = table.answers[places]
    if table.claim.error is None:
        assert table.claim.threshold is not None  # noqa: S101 - one of the two
        return int(places[np.argmax(np.abs(answers - table.claim.threshold))])
    ordered = np.sort(answers)
    low, high = answers - table.claim.error, answers + table.claim.error
    alike = np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low)
    return int(places[np.argmax(alike)])


def _listed(
    table: _Covered,
    candidates: list[_Candidate],
    objective: str,
    most: int | None,
    ended: tuple[int, bool],
    confidence: float,
    began: float,
) -> RuleList:
    covers = np.array([candidate.covers for candidate in candidates]).reshape(
        len(candidates), len(table.rows)
    )
    chosen, is_cut = shortest(covers), False
    if most is not None and len(chosen.positions) > most:
        chosen, is_cut = widest(covers, most), True
    rules, covered = [], np.zeros(len(table.rows), dtype=np.bool_)
    for position in chosen.positions:
        candidate = candidates[position]
        answer = float(table.answers[candidate.seed])
        low, high = table.ends(answer)
        rules.append(
            CoveringRule(
                conditions=table.cells.conditions(candidate.masks),
                claim=table.text(answer),
                low=low,
                high=high,
                proved=candidate.proved,
                bound=candidate.bound,
                draws=candidate.draws,
                exceptions_drawn=candidate.events,
                rows=_positions(candidate.inside),
                new_rows=_positions(candidate.covers & ~covered),
                exceptions=_positions(candidate.inside & ~candidate.meets),
                coverage=float(candidate.inside.mean()),
                exception_ids=_ids_at(table.ids, candidate.inside & ~candidate.meets),
            )
        )
        covered |= candidate.covers
    return RuleList(
        rules=tuple(rules),
        size=len(table.rows),
        uncovered=_positions(~covered),
        uncovered_ids=_ids_at(table.ids, ~covered),
        objective="certain" if objective == "certain" else "precision",
        fewest=None if is_cut else chosen.bound,
        most=chosen.bound if is_cut else None,
        candidates=len(candidates),
        untried=ended[0],
        complete=ended[1],
        seconds=perf_counter() - began,
        confidence=confidence,
        domain=tuple(table.cells.domain.lines()),
        output=table.output,
        _domain=table.cells.domain,
        _boxes=tuple(table.cells.values(candidates[position].masks) for position in chosen.positions),
    )


def _ids_at(ids: Sequence[Any], rows: Bools) -> tuple[Any, ...]:
    return tuple(ids[i] for i in _positions(rows))


def _positions(rows: Bools) -> tuple[int, ...]:
    return tuple(np.flatnonzero(rows).tolist())
