"""The question that certain facts answer: which rows, which facts, and which answers they exclude."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import as_number
from limes._explainers.tables.laws import value_texts
from limes._explainers.tables.table import Table
from limes._explanation.fields import plain_cell
from limes._explanation.rules import Certificate
from limes._explanation.wording import chosen, holding_text, label_text, number, one_line
from limes._rules.bounds import IntervalBounds, Searched, unbounded
from limes._rules.certain import FactSets, Finder, Goal, RowDomain, SufficientFacts, ValueSearch
from limes._rules.classes import Classes, ClassGoal
from limes._rules.contrast import Enough, Target, verdict
from limes._rules.domain import Domain, Values
from limes._rules.intervals import IntervalSearch
from limes._rules.leaves import LeafSearch, LeafTable, TooManyCellsError, forest_of
from limes._rules.literals import MOVES, Literals, SignRows, TableRows, directed_positions
from limes._rules.model import Ask, ModelReading
from limes._threads import LRUCache
from limes._warnings import RowWarning
from limes.designs._marginals import BinCells
from limes.exceptions import InputError
from limes.models._calling.outputs import THRESHOLDS, Output

# Tables of leaves that are kept: both signs, and rows with missing values
_TABLES = 8
# Seconds a row, unless the user says another number
TIME_LIMIT = 10.0
# What a search says that ended before its time
_BY_BOUNDS = "by bounds of the model over ranges of its columns, and more time would not help"


@dataclass(frozen=True)
class Claim:
    """A claim that facts guarantee: the answer is beyond a threshold, of a class, or moves by an error."""

    threshold: float | None
    error: float | None
    above_is_strict: bool = False  # whether an answer at the threshold is below it
    is_class: bool = False  # that the model predicts the row's class
    is_usual: bool = False  # whether the threshold is the one between two classes

    @property
    def is_of_classes(self) -> bool:
        """Whether rows that contradict the claim have another class."""
        return self.is_class or self.is_usual

    def targets(self, answer: float) -> tuple[Target, ...]:
        """Return the answers to exclude at a row with this answer."""
        if self.is_class:
            return ()
        if self.error is not None:
            return Target(answer - self.error, "below"), Target(answer + self.error, "above")
        assert self.threshold is not None  # noqa: S101 - one of the two
        t = self.threshold
        if self.is_above(answer):
            return (Target(float(np.nextafter(t, np.inf)) if self.above_is_strict else t, "below"),)
        return (Target(t if self.above_is_strict else float(np.nextafter(t, -np.inf)), "above"),)

    def is_above(self, answer: float) -> bool:
        assert self.threshold is not None  # noqa: S101 - of classes
        return answer > self.threshold if self.above_is_strict else answer >= self.threshold

    def within(self, answer: float, ends: tuple[float, float] | None) -> tuple[float, float] | None:
        """Return the part of an interval of answers that the claim leaves, at a row with this answer."""
        if ends is None:
            return None
        low, high = -np.inf, np.inf
        if self.error is not None:
            low, high = answer - self.error, answer + self.error
        elif self.threshold is not None:
            low, high = (self.threshold, np.inf) if self.is_above(answer) else (-np.inf, self.threshold)
        return max(ends[0], low), min(ends[1], high)

    def text(self, answer: float) -> str:
        if self.is_class:
            return ""
        if self.error is not None:
            return f"within {number(self.error)} of {number(answer)}"
        signs = (">", "<=") if self.above_is_strict else (">=", "<")
        assert self.threshold is not None  # noqa: S101 - one of the two
        return f"{signs[not self.is_above(answer)]} {chosen(self.threshold)}"


def claim_of(output: Output, threshold: Any, error: float | None, classes: int) -> Claim:
    """Return the claim of an output; an answer at the usual threshold has the class that ``predict`` says."""
    if isinstance(threshold, str) and threshold == "class":
        if error is not None or classes < 2:
            raise InputError("threshold='class' needs a classifier, and no error=")
        return Claim(None, None, is_class=True)
    if error is not None:
        if threshold is not None:
            raise InputError("pass threshold= or error=, not both: facts guarantee a side, or a distance")
        return Claim(None, error)
    if threshold is not None:
        between = as_number(threshold)
        if not np.isfinite(between):
            raise InputError(f"threshold must be a finite number, got {threshold!r}")
        return Claim(between, None)
    if output.method not in THRESHOLDS:
        raise InputError(
            "objective='certain' needs error=, the largest change of the answer, or threshold=: only "
            "probabilities and margins have a default"
        )
    # of two equal probabilities predict takes the first class
    column = output.columns[0] if isinstance(output.columns, list) else output.columns
    above_is_strict = classes == 2 and column != 0
    return Claim(THRESHOLDS[output.method], None, above_is_strict=above_is_strict, is_usual=classes == 2)


@dataclass(frozen=True, eq=False)
class CertainRule:
    """The facts of one row, and what its certificate says of them."""

    columns: Ints  # of the facts
    free: tuple[Values, ...]  # possible values of all columns
    rule: str
    claim: Claim
    fields: dict[str, Any]
    warnings: tuple[RowWarning, ...]


def beyond_class(classes: Classes, now: int) -> list[tuple[Searched, Target, Enough]]:
    """Return what is searched for rows of another class than one, and which rows have it; [] without."""
    goal = ClassGoal(now, None)
    return [
        (its, Target(0.0, "below"), lambda rows: goal.reached(classes(rows)))
        for its in classes.searched(goal)
    ]


class Finders:
    """Chooses the search of a row's domain, and keeps tables of leaves."""

    def __init__(self) -> None:
        self._tables: LRUCache[Any, LeafTable | None] = LRUCache(_TABLES)

    def __call__(
        self, searched: Searched, sign: float, of_row: RowDomain, missing: tuple[bool, ...]
    ) -> Finder:
        """Return the search of sign · f; ``missing`` says which columns of leaves have this value."""
        forest = forest_of(searched.bounds)
        ordered = {j for pair in of_row.domain.orders for j in pair}
        if isinstance(searched.bounds, IntervalBounds):
            return IntervalSearch(searched, sign, of_row)
        if forest is None:
            return ValueSearch(searched, sign, of_row)
        columns = of_row.domain.columns
        # runs of cells with gaps have no single interval, which orders need
        if any(missing[j] for j in ordered):
            return ValueSearch(searched, sign, of_row)

        def table() -> LeafTable | None:
            values = [replace(c, missing=m) for c, m in zip(columns, missing, strict=True)]
            try:
                return LeafTable(forest, values, sign)
            except TooManyCellsError:
                return None

        leaves = self._tables.get((searched, sign, missing), table)
        if leaves is None:
            return ValueSearch(searched, sign, of_row)
        try:
            return LeafSearch(leaves, of_row.free, of_row.facts)
        except TooManyCellsError:
            return ValueSearch(searched, sign, of_row)


class Question:
    """Which facts of rows are sufficient for a claim, under a domain."""

    def __init__(
        self,
        rows: SignRows,
        domain: Domain | None,
        facts: Literal["values", "literals"],
        claim: Claim,
        time_limit: float,
        fixed: Sequence[Any] = (),
        directions: Mapping[Any, str] | None = None,
    ) -> None:
        self._rows, self._passed, self.facts = rows, domain, facts
        self._claim, self._time_limit = claim, time_limit
        self._fixed, self._directions = fixed, directions or {}
        self._finders, self._domain = Finders(), LRUCache[int, Domain](1)

    def domain_of(self, size: int) -> Domain:
        """Return which rows of ``size`` columns are possible: fixed ones keep their values."""
        return self._domain.get(size, lambda: self._bound(size))

    def _bound(self, size: int) -> Domain:
        domain = self._proposed(size) if self._passed is None else self._passed
        fixed = {*domain.fixed, *self._rows.positions("fixed", self._fixed, size).tolist()}
        return replace(domain, fixed=tuple(sorted(fixed)))

    def _proposed(self, size: int) -> Domain:
        if isinstance(self._rows, TableRows):
            return Domain.of_ranges(self._rows.literals.table)
        pair = self._rows.values
        domain = Domain.of_ranges(Table.fit(np.repeat(np.array(pair)[:, None], size, axis=1)))
        return replace(domain, columns=(Values.of(*pair),) * size)

    def solve(
        self, reading: ModelReading, row: Floats, ask: Ask, excluded: Ints, *, name: str, quantity: str
    ) -> CertainRule:
        """Find the facts of a row; the model is asked about rows near the border, and about those found."""
        domain = self.domain_of(row.size)
        if broken := domain.broken(row):
            raise InputError(f"the row breaks {broken!r} of the domain: leave that relation out")
        of_row = self._of_row(domain, row, excluded)
        answer, missing = float(ask(row[None, :])[0]), tuple(f.missing for f in of_row.free)
        beyond, claim = self._beyond(reading, row, answer, ask), self._claim.text(answer)
        if self._claim.is_class:
            name = quantity = "predicted class"
            (place,) = reading.classes(row[None, :]).tolist()
            claim = f"of {one_line(reading.classes.text(place))}"
        goals = [
            Goal(its, goal, self._finders(its, goal.sign, of_row, missing), of_row, verdict(row, enough))
            for its, goal, enough in beyond
        ]
        result = FactSets(goals, of_row, self._time_limit).solve()
        examples = _confirmed(result, [enough for _, _, enough in beyond], row)
        rows = np.stack([row, *(example for _, example in examples)])
        label, *labels = self._labels(reading, rows)
        columns = sorted(j for i in result.units for j in of_row.units[i])
        facts, names = tuple(self._text(row, j) for j in columns), self._rows.names(row.size)
        is_minimal = result.proved and len({i for i, _ in examples}) == len(result.units)
        fields = {
            "facts": facts,
            "columns": tuple(names[j] for j in columns),
            "claim": claim,
            "proved": result.proved,
            "minimal": is_minimal or result.smallest,
            "smallest": result.smallest,
            "counterexamples": tuple(
                tuple(plain_cell(value) for value in cells)
                for cells in self._rows.originals(np.array([r for _, r in examples]).reshape(-1, row.size))
            ),
            "counterexample_facts": tuple(
                tuple(names[j] for j in (of_row.units[i] if i >= 0 else ())) for i, _ in examples
            ),
            "counterexample_answers": tuple(ask(rows)[1:].tolist()),
            "counterexample_labels": tuple(labels) if label else (),
            "label": label,
            "threshold": self._claim.threshold,
            "objective": float(len(result.units)),
            "lower_bound": float(result.fewest),
            "gap": 1.0 - result.fewest / len(result.units) if result.units else 0.0,
            "optimum": "domain",
            "nodes": result.nodes,
            "seconds": result.seconds,
            "coverage": self._coverage(domain, row, columns),
            "domain": tuple(self._lines(domain, of_row)) if isinstance(self._rows, TableRows) else (),
            "prediction": answer,
            "quantity": quantity,
        }
        sure = "for certain" if result.proved else "(not proved)"
        then = ("class", label_text(label)) if label else (name, claim)
        # columns that are kept together make one fact
        texts = dict(zip(columns, map(one_line, facts), strict=True))
        units = sorted(sorted(of_row.units[i]) for i in result.units)
        together = [" and ".join(texts[j] for j in its) for its in units]
        rule = holding_text(together, then[0], f"{then[1]} {sure}")
        warnings = tuple(self._warnings(result, is_minimal))
        facts_of = np.array(columns, dtype=np.int64)
        return CertainRule(facts_of, of_row.free, rule, self._claim, fields, warnings)

    def _labels(self, reading: ModelReading, rows: Floats) -> list[str]:
        """Return the classes that the model predicts at rows; "" where the claim is of none."""
        if not self._claim.is_of_classes:
            return [""] * len(rows)
        classes = reading.classes
        return [classes.text(place) for place in classes(rows).tolist()]

    def _beyond(
        self, reading: ModelReading, row: Floats, answer: float, ask: Ask
    ) -> list[tuple[Searched, Target, Enough]]:
        """Return what is searched for answers that the facts have to exclude, and which rows have them."""
        beyond: list[tuple[Searched, Target, Enough]] = []
        if self._claim.is_class:
            classes = reading.classes
            beyond = beyond_class(classes, int(classes(row[None, :])[0]))
        elif (searched := reading.searched) is not None:
            beyond = [(searched, goal, goal.enough(ask)) for goal in self._claim.targets(answer)]
        if not beyond:
            raise unbounded(reading.reason, "objective='class' or 'precision'")
        return beyond

    def _of_row(self, domain: Domain, row: Floats, excluded: Ints) -> RowDomain:
        free, facts, moves = [], [], self._moves(row.size)
        for j, (values, x) in enumerate(zip(domain.columns, row.tolist(), strict=True)):
            if j in domain.fixed:
                free.append(Values.of(x))
                facts.append(Values.of(x))
            else:
                free.append(_ahead(values.with_value(x), x, moves.get(j)))
                facts.append(_ahead(self._fact(j, x, values), x, moves.get(j)))
        units = tuple(its for its in domain.units if not np.isin(its, excluded).any())
        loose = tuple(j for its in domain.units if np.isin(its, excluded).any() for j in its)
        return RowDomain(domain, row, tuple(free), tuple(facts), units, loose)

    def _moves(self, size: int) -> dict[int, str]:
        """Return the columns that only rise or only fall."""
        return {
            j: move
            for name, move in self._directions.items()
            for j in directed_positions(self._rows, name, size)
        }

    def _fact(self, j: int, x: float, values: Values) -> Values:
        """Return the values of column j that share the row's fact."""
        if self.facts == "values" or np.isnan(x) or not isinstance(self._rows, TableRows):
            return Values.of(x)
        cells = self._rows.literals.columns[j].law.cells
        if not isinstance(cells, BinCells):
            return Values.of(x)
        ends = np.concatenate([[-np.inf], cells.points, [np.inf]])
        cell = int(cells.locate(np.array([x]))[0])
        return values.with_value(x).between(float(ends[cell]), float(ends[cell + 1]))

    def _lines(self, domain: Domain, of_row: RowDomain) -> Iterator[str]:
        """Write the possible rows; columns that only rise or fall with the values that are ahead."""
        moves = self._moves(of_row.size)
        ahead = {j: of_row.free[j] for j in moves}
        columns = tuple(ahead.get(j, values) for j, values in enumerate(domain.columns))
        return replace(domain, columns=columns).lines({j: MOVES[move] for j, move in moves.items()})

    def _text(self, row: Floats, j: int) -> str:
        if self.facts == "literals" or not isinstance(self._rows, TableRows):
            return self._rows.condition(row, j)
        return value_texts(self._rows.literals.table.columns[j], row[j : j + 1])[0]

    def _coverage(self, domain: Domain, row: Floats, columns: Sequence[int]) -> float | None:
        if self.facts == "literals" or not isinstance(self._rows, TableRows):
            return self._rows.coverage(row, np.array(columns, dtype=np.int64))
        x = domain.table.matrix[:, columns]
        return float(((x == row[columns]) | (np.isnan(x) & np.isnan(row[columns]))).all(axis=1).mean())

    def _warnings(self, result: SufficientFacts, is_minimal: bool) -> list[RowWarning]:
        # a search that ends before its time would decide no more with more of it
        is_late = result.seconds >= self._time_limit
        within = f"in {self._time_limit:g} seconds: raise time_limit" if is_late else _BY_BOUNDS
        if not result.proved:
            name = "not sufficient, counterexample" if result.counterexamples else "not sufficient, open"
            return [RowWarning.of("rule", name, within=within)]
        if not (result.smallest or is_minimal):
            return [RowWarning.of("rule", "not minimal", within=within)]
        if not result.smallest:
            size, least = len(result.units), result.fewest
            return [RowWarning.of("rule", "not smallest", size=size, least=least, within=within)]
        return []


def _ahead(values: Values, x: float, move: str | None) -> Values:
    """Return the values that a column may take from x on, where it only rises or only falls."""
    if move is None:
        return values
    if np.isnan(x):
        return Values.of(x)
    return values.between(np.nextafter(x, -np.inf), np.inf) if move == "up" else values.between(-np.inf, x)


def _confirmed(result: SufficientFacts, enough: Sequence[Enough], row: Floats) -> list[tuple[int, Floats]]:
    """Return the counterexamples that the model itself confirms."""
    if not result.counterexamples:
        return []
    rows = np.stack([row, *(example for _, example in result.counterexamples)])
    beyond = np.any([its(rows)[1:] for its in enough], axis=0)
    return [example for example, holds in zip(result.counterexamples, beyond, strict=True) if holds]


def with_certain(certificate: Certificate, certain: CertainRule | None) -> Certificate:
    """Return a certificate that states what is certain, if something is."""
    if certain is None:
        return certificate
    worst_case = certificate.worst_case
    if certain.fields["proved"]:  # the search proves more than the bounds of the answers alone
        worst_case = certain.claim.within(certain.fields["prediction"], worst_case)
    is_exact = certificate.worst_case_exact and worst_case == certificate.worst_case
    return replace(certificate, **certain.fields, worst_case=worst_case, worst_case_exact=is_exact)


def check_facts(facts: Any, literals: Literals | None, domain: Any) -> Literal["values", "literals"]:
    """Return what a fact is: by default the literal where there are literals, else the row's value."""
    if facts not in (None, "values", "literals"):
        raise InputError(f"facts must be 'values' or 'literals', got {facts!r}")
    if facts == "literals" and literals is None:
        raise InputError("facts='literals' needs literals=limes.Literals.fit(background)")
    if domain is not None and not isinstance(domain, Domain):
        raise InputError(f"domain must be made by limes.Domain.fit, got {type(domain).__name__}")
    if literals is not None and domain is not None:
        first, second = literals.table, domain.table
        if (first.names, [c.levels for c in first.columns]) != (
            second.names,
            [c.levels for c in second.columns],
        ):
            raise InputError(
                "literals= and domain= are of two tables, with other columns or categories: fit both on one"
            )
    return "values" if facts == "values" or literals is None else "literals"
