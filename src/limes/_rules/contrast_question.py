"""The question that a contrast answers: which goal, what may change, what is minimised, how many answers.

Several answers change different sets of columns: none changes all columns of an earlier one. So at least
one column of each earlier answer stays, and the next answer is the best one over all smallest sets of columns
that have one of each (they hit all earlier answers): these columns are fixed, and the search is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np

from limes._arrays import Floats
from limes._checks import check_choice, check_count, check_size, check_threshold
from limes._explanation.fields import plain_cell
from limes._explanation.rules import Change, Contrast
from limes._explanation.wording import one_line
from limes._rules.bounds import Box, Crossing, Searched
from limes._rules.classes import Classes, ClassGoal, crossing_of
from limes._rules.contrast import (
    NO_CHANGE,
    Enough,
    SmallestChange,
    Target,
    changes_among,
    differ,
    fewest_changes,
    freed,
    listed_in,
    nearest,
    nearest_rows,
    obeying,
    verdict,
)
from limes._rules.domain import Domain
from limes._rules.least_cost import NODES, SAME_COST, Priced, cheapest_change
from limes._rules.literals import MOVES, SignRows, directed_positions
from limes._rules.model import Ask, ModelReading
from limes.exceptions import InputError

# Smallest sets of columns that hit the earlier answers and are tried
_MOST_FIXED = 200
# Least distance of a count of columns from the next one
_COUNTED = 1e-6


@dataclass(frozen=True, eq=False)
class Beyond:
    """The goal: which rows are enough, what is searched for them, and what a contrast states of it.

    ``searched`` are answers with their crossings; a row is enough where one of them is crossed.
    """

    enough: Enough
    searched: tuple[tuple[Searched, Crossing | None], ...]
    facts: Callable[[Floats], dict[str, Any]]  # of the row and the changed one, (2, columns)
    classes: Classes | None = None

    @classmethod
    def threshold(cls, goal: Target, ask: Ask, searched: Searched | None) -> Beyond:
        crossings = () if searched is None else ((searched, searched.crossing(goal.sign, goal.threshold)),)
        return cls(goal.enough(ask), crossings, lambda _: {"threshold": goal.threshold, "side": goal.side})

    @classmethod
    def other_class(cls, goal: ClassGoal, classes: Classes) -> Beyond:
        def facts(both: Floats) -> dict[str, Any]:
            now, new = classes(both).tolist()
            to = "" if goal.to is None else classes.text(goal.to)
            return {"label": classes.text(now), "new_label": classes.text(new), "to": to}

        crossings = tuple((its, crossing_of(its)) for its in classes.searched(goal))
        return cls(lambda rows: goal.reached(classes(rows)), crossings, facts, classes)

    def parts_classes(self, rows: Floats, answers: Floats, border: float | None) -> bool:
        """Whether one of two classes is to change, and answers lie on the sides of the border as they do."""
        if border is None or self.classes is None or len(self.classes.labels) != 2:
            return False
        above = np.sign(answers - border) * np.where(self.classes(rows) == 1, 1.0, -1.0)
        # the second class or the first is above, which depends on the output; at the border is either
        return any(bool(np.isin(above, (0.0, side)).all()) for side in (1.0, -1.0))


class ContrastOptions(TypedDict, total=False):
    """Options of ``SparseExplainer.contrast``."""

    below: float | None
    above: float | None
    to: Any
    minimize: str
    costs: Mapping[Any, float] | None
    exclude: Sequence[Any]
    fixed: Sequence[Any]
    directions: Mapping[Any, str] | None
    among: str
    nodes: int


OPTIONS = tuple(ContrastOptions.__annotations__)


@dataclass(frozen=True, kw_only=True)
class ContrastRequest:
    """The arguments of ``SparseExplainer.contrast``."""

    below: float | None = None
    above: float | None = None
    to: Any = None
    minimize: str = "columns"
    costs: Mapping[Any, float] | None = None
    exclude: Sequence[Any] = ()
    fixed: Sequence[Any] = ()
    directions: Mapping[Any, str] | None = None
    among: str = "values"
    nodes: int = NODES
    disjoint: bool = False  # whether several answers share no column

    def __post_init__(self) -> None:
        check_choice("among", self.among, ("values", "rows"))
        check_choice("minimize", self.minimize, ("columns", "cost"))
        check_count("nodes", self.nodes)
        if self.costs is not None and self.among != "rows" and self.minimize != "cost":
            raise InputError(
                "costs= goes with minimize='cost' or among='rows': other contrasts change the fewest columns"
            )
        if self.to is not None and not (self.below is None and self.above is None):
            raise InputError("pass to=, a class, or below= or above=, a number: a contrast has one goal")

    @property
    def is_of_classes(self) -> bool:
        """Whether a class is to be reached, or left, and no threshold."""
        return self.below is None and self.above is None

    def check_reach(self, is_probability: Callable[[], bool]) -> None:
        """Refuse a threshold that no probability crosses."""
        for name in ("below", "above"):
            check_threshold(name, getattr(self, name), is_probability)

    def beside(
        self, exclude: Sequence[Any], fixed: Sequence[Any], directions: Mapping[Any, str]
    ) -> ContrastRequest:
        """Return the request with what may not change whatever is requested."""
        return replace(
            self,
            exclude=(*exclude, *names_of("exclude", self.exclude)),
            fixed=(*fixed, *names_of("fixed", self.fixed)),
            directions={**directions, **check_directions(self.directions)},
        )

    def question(
        self,
        rows: SignRows,
        row: Floats,
        model: ModelReading,
        ask: Ask,
        domain: Domain | None,
        drawn: Callable[[], Floats],
    ) -> ContrastQuestion:
        """Return the question about one row."""
        still = np.union1d(
            rows.positions("exclude", self.exclude, row.size), rows.positions("fixed", self.fixed, row.size)
        )
        if domain is not None:
            still = np.union1d(still, domain.fixed).astype(np.int64)
        changing = np.setdiff1d(np.arange(row.size), still)
        values = freed(rows.box(row, changing[:0]), row, changing)
        directions, names = self.directions or {}, rows.names(row.size)
        values = _directed(values, row, rows, directions)
        moves = {
            j: direction
            for name, direction in directions.items()
            for j in directed_positions(rows, name, row.size)
            if j in changing
        }
        return ContrastQuestion(
            rows,
            row,
            values,
            self._goal(row, model, ask),
            self,
            domain=domain,
            drawn=drawn,
            constraints=(
                *(f"{one_line(names[j])} stays as it is" for j in still.tolist()),
                *(f"{one_line(names[j])} only {MOVES[move]}" for j, move in sorted(moves.items())),
                *(() if domain is None else domain.relation_texts()),
            ),
        )

    def _goal(self, row: Floats, model: ModelReading, ask: Ask) -> Beyond:
        if not (self.below is None and self.above is None):
            return Beyond.threshold(Target.of(self.below, self.above), ask, model.searched)
        classes = model.classes
        (now,) = classes(row[None, :]).tolist()
        goal = ClassGoal(now, None if self.to is None else classes.position(self.to))
        return Beyond.other_class(goal, classes)

    def weights(self, rows: SignRows, size: int) -> Floats:
        """Return what a unit of each column costs."""
        weights = np.ones(size)
        for name, cost in (self.costs or {}).items():
            weights[rows.positions("costs", (name,), size)] = check_size(f"costs[{name!r}]", cost, zero=True)
        return weights


def names_of(option: str, names: Any) -> tuple[Any, ...]:
    """Return names as a tuple; one text would be taken for its letters."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputError(f"{option} must be a list of names, got {names!r}")
    return tuple(names)


def check_directions(directions: Any) -> dict[Any, str]:
    """Return directions by name."""
    if not isinstance(directions, Mapping | None):
        raise InputError(f"directions must be like {{'age': 'up'}}, got {directions!r}")
    for name, direction in (directions or {}).items():
        check_choice(f"directions[{name!r}]", direction, tuple(MOVES))
    return dict(directions or {})


def _directed(values: Box, row: Floats, rows: SignRows, directions: Mapping[Any, str]) -> Box:
    """Return the values that columns may take where they only rise or fall."""
    allowed = list(values)
    for name, direction in directions.items():
        for j in directed_positions(rows, name, row.size):
            ahead = allowed[j] >= row[j] if direction == "up" else allowed[j] <= row[j]
            allowed[j] = allowed[j][ahead] if ahead.any() else row[j : j + 1]
    return tuple(allowed)


class ContrastQuestion:
    """A goal for one row, and the ``values`` that its columns may take."""

    def __init__(
        self,
        rows: SignRows,
        row: Floats,
        values: Box,
        beyond: Beyond,
        wanted: ContrastRequest,
        *,
        domain: Domain | None,
        drawn: Callable[[], Floats],
        constraints: tuple[str, ...],
    ) -> None:
        self._rows, self._row, self._values = rows, row, values
        self._beyond, self._wanted, self._drawn = beyond, wanted, drawn
        self._weights, self._constraints = wanted.weights(rows, row.size), constraints
        self._related = domain is not None and domain.has_relations
        self._obeys = obeying(values, domain.broken if domain is not None and self._related else None)
        self._answers: dict[frozenset[int], SmallestChange] = {}

    def contrasts(self, count: int, ask: Ask, border: float | None, **facts: Any) -> tuple[Contrast, ...]:
        """Return up to ``count`` answers, the best first, each without all columns of an earlier one.

        ``border`` is the number between two classes, if the answers have one.
        """
        answers = self._solved_all(count)
        return tuple(self._contrast(its, ask, border, i, facts) for i, its in enumerate(answers))

    def _solved_all(self, count: int) -> list[SmallestChange]:
        row, enough = self._row, self._beyond.enough
        if enough(np.stack([row, row]))[0]:
            return [SmallestChange((), row, "", 0.0, 0.0)]
        if self._wanted.among == "rows":
            table = self._rows.background()
            table = table[self._obeys(table)]
            return nearest_rows(table, row, self._rows.distances(table, row) @ self._weights, enough, count)
        answers: list[SmallestChange] = []
        while len(answers) < count:
            changed = [one.columns for one in answers]
            still = hitting_sets(changed)
            if self._wanted.disjoint:
                still = [frozenset(j for its in changed for j in its)]
            best = self._best_of(still[:_MOST_FIXED])
            if len(still) > _MOST_FIXED:
                reason = "there are too many sets of columns that may stay to try all"
                best = replace(best, reason=reason, low=0.0)
            if answers and best.row is None:
                break
            answers.append(best)
            if best.row is None:
                break
        return answers

    def _best_of(self, sets: Sequence[frozenset[int]]) -> SmallestChange:
        """Return the best answer over sets of columns that stay; a search ends where it can be none."""
        answers: list[SmallestChange] = []
        for still in sets:
            at_most = min((one.size for one in answers), default=np.inf)
            answers.append(self._best(still, at_most))
        return best_of(answers)

    def _best(self, still: frozenset[int], at_most: float) -> SmallestChange:
        """Return the best answer that leaves some columns, or that none is below ``at_most``."""
        for columns, answer in self._answers.items():
            # what is best with fewer columns fixed is best, if it leaves the others
            is_same = columns == still or (columns < still and still.isdisjoint(answer.columns))
            if is_same and (not answer.reason or answer.low >= at_most or answer.row is not None):
                return answer
        self._answers[still] = answer = self._solved(still, at_most)
        return answer

    def _solved(self, still: frozenset[int], at_most: float) -> SmallestChange:
        row, beyond = self._row, self._beyond
        values = freed(self._values, row, set(range(row.size)) - still)
        unit = self._wanted.minimize == "columns"
        priced = self._priced(values, unit=unit, at_most=at_most)
        if not beyond.searched:
            best = self._among_drawn(priced, "the model has no bounds that are read")
        else:
            best = best_of([self._searched(*its, priced) for its in beyond.searched])
            if best.row is None and best.reason and best.low < at_most:
                low = best.low
                best = replace(self._among_drawn(priced, "the search by bounds was cut short"), low=low)
        if best.row is None or not (unit or best.reason):
            return best
        best = nearest(best, row, values, beyond.enough, self._obeys)
        return best if unit or best.row is None else replace(best, size=priced.cost(best.row))

    def _searched(self, searched: Searched, crossing: Crossing | None, priced: Priced) -> SmallestChange:
        reaches = verdict(self._row, self._beyond.enough, self._obeys)
        start = None
        if self._wanted.minimize == "cost" and crossing is not None:
            # where the search is cut short, its answer is no dearer than the one of the fewest columns
            start = fewest_changes(searched, self._row, priced.values, crossing, reaches, at_most=np.inf).row
        if self._wanted.minimize == "cost" or self._related:  # relations part rows of the same answers
            return cheapest_change(searched, priced, crossing, reaches, self._obeys, start)
        fewest = fewest_changes(searched, self._row, priced.values, crossing, reaches, at_most=priced.at_most)
        if not fewest.reason or fewest.low >= priced.at_most:
            return fewest
        # a change of a column costs 1: bounds of the cost exclude what sets of columns do not
        other = cheapest_change(searched, priced, crossing, reaches, self._obeys)
        low = max(fewest.low, np.ceil(other.low - _COUNTED))
        best = fewest if fewest.size <= other.size else other
        return replace(best, low=low, reason="" if low >= best.size else best.reason or fewest.reason)

    def _priced(self, values: Box, *, unit: bool, at_most: float) -> Priced:
        costs = []
        for j, its in enumerate(values):
            rows = np.tile(self._row, (its.size, 1))
            rows[:, j] = its
            apart = differ(rows, self._row) if unit else self._rows.distances(rows, self._row)
            costs.append(apart[:, j] * (1.0 if unit else self._weights[j]))
        table = self._rows.some_background()
        table = self._possible(table, values) if len(table) else np.zeros((0, self._row.size))
        return Priced(self._row, values, tuple(costs), table, self._wanted.nodes, at_most)

    def _among_drawn(self, priced: Priced, why: str) -> SmallestChange:
        rows = self._possible(self._drawn(), priced.values)
        return changes_among(rows, self._row, self._beyond.enough, self._obeys, why, priced.of_rows)

    def _possible(self, rows: Floats, values: Box) -> Floats:
        """Return rows whose columns take listed values, else the row's, and that break no relation."""
        listed = np.column_stack([listed_in(rows[:, j], its) for j, its in enumerate(values)])
        rows = np.where(listed, rows, self._row)
        return rows[self._obeys(rows)]

    def _contrast(
        self,
        change: SmallestChange,
        ask: Ask,
        border: float | None,
        earlier: int,
        facts: Mapping[str, Any],
    ) -> Contrast:
        """Put an answer in the user's words; the model itself answers the row that the changes make."""
        row, rows, wanted = self._row, self._rows, self._wanted
        new = row if change.row is None else change.row
        both = np.stack([row, new])
        prediction, new_prediction = ask(both).tolist()
        is_parted = self._beyond.parts_classes(both, np.array([prediction, new_prediction]), border)
        names = rows.names(row.size)
        before, after = rows.originals(row[None, :])[0], rows.originals(new[None, :])[0]
        return Contrast(
            changes=tuple(
                Change(
                    names[j],
                    plain_cell(before[j]),
                    rows.condition(row, j),
                    plain_cell(after[j]),
                    rows.condition(new, j),
                )
                for j in change.columns
            ),
            prediction=prediction,
            new_prediction=new_prediction,
            reached=bool(self._beyond.enough(both)[1]),
            proved=not change.reason,
            reason=change.reason,
            minimizes="cost" if wanted.among == "rows" else wanted.minimize,
            objective=change.size,
            lower_bound=min(change.low, change.size),
            among=wanted.among,
            earlier=earlier,
            disjoint=wanted.disjoint,
            constraints=self._constraints,
            border=border if is_parted else None,
            **self._beyond.facts(both),
            **facts,
        )


def best_of(answers: Sequence[SmallestChange]) -> SmallestChange:
    """Return the best of answers to parts of a question, with a bound that holds for all parts."""
    best, low = min(answers, key=lambda one: one.size), min(one.low for one in answers)
    if best.row is None:
        reasons = [one.reason for one in answers if one.reason]
        return SmallestChange((), None, reasons[0], np.inf, low) if reasons else NO_CHANGE
    if low >= best.size * (1.0 - SAME_COST):
        return replace(best, low=best.size, reason="")
    return replace(best, low=low, reason=next(one.reason for one in answers if one.low == low))


def hitting_sets(sets: Sequence[Collection[int]]) -> list[frozenset[int]]:
    """Return all sets that have an element of each of some sets, and of which no part has, too."""
    hitting = {frozenset[int]()}
    for its in sets:
        new = {part if part & frozenset(its) else part | {j} for part in hitting for j in its}
        hitting = {part for part in new if not any(other < part for other in new)}
    return sorted(hitting, key=sorted)
