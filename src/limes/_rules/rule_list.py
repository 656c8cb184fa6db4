"""A list of rules that covers a table: what each says, for whom, how sure, and with which exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from limes._arrays import Bools
from limes._explanation.drawing import Card, Printable, drawer
from limes._explanation.fields import plain_cell
from limes._explanation.wording import count, number, one_line
from limes._rules.cells import Condition
from limes._rules.domain import Domain, Values

if TYPE_CHECKING:
    from rich.console import RenderableType

# Rows that a sentence names
_NAMED = 8


@dataclass(frozen=True, repr=False)
class CoveringRule(Printable):
    """One rule of a :class:`RuleList`: if all conditions hold, the answer is as claimed.

    Attributes
    ----------
    conditions
        What it says of columns: :class:`Condition`, all of which have to hold. None: the rule holds for every
        row.
    claim
        The answer that it states, in words: a class, or where the model's answer lies.
    low, high
        The claim in numbers: the answer is at least ``low`` and at most ``high``; infinite where there is no
        such end. At a threshold itself the claim says which side it is on.
    proved
        Whether every row of the domain that meets the conditions has the claimed answer.
    bound
        Upper bound of the share of rows, drawn in the rule, that have another answer; 0 where proved.
    draws, exceptions_drawn
        Fresh rows behind the bound, and how many of them had another answer.
    rows
        Positions of the table's rows that meet the conditions.
    new_rows
        Those that no earlier rule of the list covers and answers rightly.
    exceptions
        Those of ``rows`` where the model answers otherwise.
    coverage
        Share of the table's rows that meet the conditions.
    exception_ids
        Names of the exceptions: their index labels where the table has some, else their positions.

    Examples
    --------
    >>> import limes
    >>> X = [[1.0, 5.0], [2.0, 6.0], [3.0, 5.0], [4.0, 6.0]]
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, ["no", "no", "yes", "yes"])
    >>> audit = limes.rules.cover(tree, X)
    >>> audit.rules[0].text
    'x0 <= 2  ->  no'
    """

    conditions: tuple[Condition, ...]
    claim: str
    low: float
    high: float
    proved: bool
    bound: float
    draws: int
    exceptions_drawn: int
    rows: tuple[int, ...]
    new_rows: tuple[int, ...]
    exceptions: tuple[int, ...]
    coverage: float
    exception_ids: tuple[Any, ...] = ()

    @property
    def text(self) -> str:
        """The rule in words."""
        return f"{self._conditions}  ->  {one_line(self.claim)}"

    @property
    def _conditions(self) -> str:
        return " and ".join(one_line(each.text) for each in self.conditions) or "every row"

    @property
    def certificate(self) -> str:
        """How sure the claim is, in words."""
        return "certain" if self.proved else f"at most {number(100.0 * self.bound, 2)} % differ"

    def __repr__(self) -> str:
        return f"<CoveringRule: {self.text}>"

    def _card(self) -> Card:
        exceptions = _named("Exception", self.exception_ids or self.exceptions)
        return Card(
            title="Rule",
            subtitle=self.text,
            remarks=(f"{self._sentence}.", f"It holds for {count(len(self.rows), 'row')}.", *exceptions),
        )

    @property
    def _sentence(self) -> str:
        if self.proved:
            return "Every row of the domain that meets the conditions has this answer: proved"
        return (
            f"Of {self.draws:,} rows drawn in the rule {self.exceptions_drawn} had another answer: "
            f"{self.certificate}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        ends = {"low": _finite(self.low), "high": _finite(self.high)}
        conditions = [
            {**vars(each), "levels": None if each.levels is None else [*map(plain_cell, each.levels)]}
            for each in self.conditions
        ]
        lists = {name: [*getattr(self, name)] for name in ("rows", "new_rows", "exceptions")}
        ids = {"exception_ids": [*map(plain_cell, self.exception_ids)]}
        return {**vars(self), "text": self.text, "conditions": conditions, **ends, **lists, **ids}


def _finite(end: float) -> float | None:
    return end if np.isfinite(end) else None


@dataclass(frozen=True, repr=False)
class RuleList(Printable):
    """Rules that cover a table, in the order of what each adds; made by :func:`limes.rules.cover`.

    Attributes
    ----------
    rules
        :class:`CoveringRule`, one a line.
    size
        How many rows the table has.
    uncovered
        Positions of the rows that no rule answers rightly: those that meet none, and exceptions of all that
        they meet.
    objective
        "certain" or "precision".
    fewest
        No list of the candidates has fewer rules and covers these rows; None where ``max_rules`` ended the
        list.
    most
        With ``max_rules``: no list of that length covers more rows; None elsewhere.
    candidates
        How many rules were grown, of which these were chosen.
    untried
        How many of the uncovered rows were not looked at before the time was spent.
    complete
        Whether the search ended before the time was spent. If not, the list depends on the machine's speed.
    seconds
        The time that it took.
    confidence
        Probability with which all bounds of the list hold together.
    domain
        For which rows certain rules are proved, or what the law of draws keeps together, in words.
    output
        Name of the model's output.
    uncovered_ids
        Names of the uncovered rows: their index labels where the table has some, else their positions.

    Examples
    --------
    >>> import limes
    >>> X = [[1.0, 5.0], [2.0, 6.0], [3.0, 5.0], [4.0, 6.0]]
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, ["no", "no", "yes", "yes"])
    >>> audit = limes.rules.cover(tree, X)
    >>> len(audit.rules), audit.fewest, audit.uncovered
    (2, 2, ())
    >>> audit.holds([[2.0, 6.0]])
    array([[ True, False]])
    """

    rules: tuple[CoveringRule, ...]
    size: int
    uncovered: tuple[int, ...]
    objective: Literal["certain", "precision"]
    fewest: int | None
    most: int | None
    candidates: int
    untried: int
    complete: bool
    seconds: float
    confidence: float
    domain: tuple[str, ...]
    output: str
    _domain: Domain = field(repr=False, compare=False)
    _boxes: tuple[tuple[Values, ...], ...] = field(repr=False, compare=False)
    uncovered_ids: tuple[Any, ...] = ()

    @property
    def coverage(self) -> float:
        """Share of the table's rows that a rule covers."""
        return 1.0 - len(self.uncovered) / self.size

    def holds(self, X: Any) -> Bools:
        """Return which rules hold for rows of the same columns, (n, rules).

        Parameters
        ----------
        X
            Rows of a table, as the one that is covered.

        Raises
        ------
        InputError
            If columns do not match, or a cell cannot be read: says which.
        """
        matrix = self._domain.table.encode(X)
        return np.array(
            [
                np.all([its.contains(matrix[:, j]).astype(bool) for j, its in enumerate(box)], axis=0)
                for box in self._boxes
            ],
            dtype=np.bool_,
        ).T.reshape(len(matrix), len(self.rules))

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a data frame, one line a rule.

        Parameters
        ----------
        backend
            The library of the frame.
        """
        import narwhals as nw

        rules = self.rules
        columns: dict[str, Sequence[Any]] = {
            "rule": [rule._conditions for rule in rules],  # noqa: SLF001 - of one file
            "claim": [rule.claim for rule in rules],
            "certificate": [rule.certificate for rule in rules],
            "bound": [rule.bound for rule in rules],
            "coverage": [rule.coverage for rule in rules],
            "rows": [len(rule.rows) for rule in rules],
            "new_rows": [len(rule.new_rows) for rule in rules],
            "exceptions": [len(rule.exceptions) for rule in rules],
        }
        return nw.from_dict(columns, backend=backend).to_native()

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        kept = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        rules = [rule.to_dict() for rule in self.rules]
        lists = {"uncovered": [*self.uncovered], "domain": [*self.domain]}
        lists["uncovered_ids"] = [*map(plain_cell, self.uncovered_ids)]
        return {**kept, "rules": rules, "coverage": self.coverage, **lists}

    def __repr__(self) -> str:
        return f"<RuleList: {count(len(self.rules), 'rule')}, {self._covered}>"

    @property
    def _covered(self) -> str:
        return f"{self.size - len(self.uncovered):,} of {count(self.size, 'row')} covered"

    def _card(self) -> Card:
        return Card(
            title=f"{count(len(self.rules), 'rule')}, {self._covered}",
            columns=("rule", "rows", "new", "exceptions", "other answers", "answer") if self.rules else (),
            rows=[
                (
                    f"{place + 1}. {rule._conditions}",  # noqa: SLF001 - of one file
                    f"{len(rule.rows):,}",
                    f"{len(rule.new_rows):,}",
                    f"{len(rule.exceptions):,}",
                    "none, proved" if rule.proved else rule.certificate.removesuffix(" differ"),
                    one_line(rule.claim),
                )
                for place, rule in enumerate(self.rules)
            ],
            remarks=tuple(self._remarks()),
        )

    def _drawn(self, width: int) -> RenderableType:
        drawn: RenderableType = drawer("terminal").drawn_rules(self._card(), width)
        return drawn

    def _remarks(self) -> list[str]:
        remarks = []
        if self.rules and self.objective == "certain":
            remarks.append(
                "Every row of the domain that meets the conditions of a rule has its answer: proved by "
                "bounds of the model."
            )
        elif self.rules:
            remarks.append(
                "Other answers are a share of the rows that are drawn in a rule, each column from the "
                f"values of the table; with {self.confidence:.0%} confidence no share exceeds its bound. "
                "Exceptions are rows of the table."
            )
        if self.rules and self.fewest is not None:
            same = self.fewest >= len(self.rules)
            least = "it" if same else str(self.fewest)
            remarks.append(
                f"No list of the {count(self.candidates, 'candidate')} that covers these rows has fewer "
                f"{'rules' if same else f'than {least} rules'}."
            )
        if self.most is not None:
            remarks.append(
                f"No {count(len(self.rules), 'rule')} of the {count(self.candidates, 'candidate')} cover "
                f"more than {count(self.most, 'row')}."
            )
        if self.untried:
            untried = count(self.untried, "row")
            remarks.append(
                f"The time was spent before {untried} could be looked at: time_limit= allows more."
            )
        elif not self.complete:
            remarks.append("The time was spent before other rules were tried: time_limit= allows more.")
        names = self.uncovered_ids or self.uncovered
        return [*remarks, *_named("Row without a rule that answers it rightly", names)]


def _named(what: str, rows: Sequence[Any]) -> list[str]:
    if not rows:
        return []
    more = f", ... ({len(rows):,} in all)" if len(rows) > _NAMED else ""
    head, *tail = what.split(" ")
    plural = " ".join([f"{head}s" if len(rows) > 1 else head, *tail])
    return [f"{plural}: {', '.join(one_line(str(row)) for row in rows[:_NAMED])}{more}."]
