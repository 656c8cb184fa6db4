r"""The cheapest change of a row that takes a prediction beyond a threshold, with a proof or the gap.

A change costs what its columns cost, Σ_j c_j(x'_j): the cheapest row of a box takes the cheapest value of
each column, so that a box has a least cost as it has a least answer. Boxes are searched in the order of their
least cost. One whose bound is not below the threshold is dropped, and so are values that alone cost more than
the cheapest change seen. The first box whose cheapest row is beyond the threshold has the optimum; where the
search stops before, the least cost of the boxes that are left is a lower bound.

Of a sum Σ_j f_j(x_j) each column's values are choices of a cost and an effect, one a column (a
multiple-choice knapsack): partial choices are extended column by column. Those that another one betters in
both, and those whose cost with the linear relaxation of the columns that are left exceeds the best choice,
are dropped.

References
----------
Cui, Chen, He and Chen, "Optimal action extraction for random forests and boosted trees", KDD 2015; Parmentier
and Vidal, "Optimal counterfactual explanations in tree ensembles", ICML 2021; Sinha and Zoltners, "The
multiple-choice knapsack problem", Operations Research 1979.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

import numpy as np

from limes._arrays import Floats, Ints
from limes._rules.bounds import Bounds, Box, Crossing, Limit, Range, Searched
from limes._rules.contrast import CUT_SHORT, NO_CHANGE, Obeys, Reaches, SmallestChange, changed_columns

# Boxes that the search cuts at most, unless the user says another number
NODES = 5000
# Partial choices of a sum's columns that are kept at first, later, and extended at a time
_FEW_CHOICES, _MOST_CHOICES, _AT_A_TIME = 100, 2000, 1_000_000
# Partial choices that are compared with each other
_COMPARED = 100_000
# Choices of a sum that the model is asked about, the cheapest first
_ASKED_ABOUT = 50
# Values of a column that a descent tries, passes over all columns, and rows of the background it starts from
_TRIED, _PASSES, _STARTS = 64, 20, 4
# Costs are equal up to rounding
SAME_COST = 1e-12


@dataclass(frozen=True, eq=False)
class Priced:
    """Listed values of each column, what each costs, and how many changes a search cuts boxes for."""

    row: Floats
    values: Box
    costs: Box  # of each value
    table: Floats  # rows, (n, d), from which a descent may start
    nodes: int
    at_most: float = np.inf  # a change that costs as much is of no use

    def cost(self, row: Floats) -> float:
        """Return the cost of a row of listed values."""
        return float(sum(self.costs[j][self.place(j, x)] for j, x in enumerate(row.tolist())))

    def place(self, j: int, x: float) -> int:
        """Return the place of a value among those of column j."""
        column = self.values[j]
        return column.size - 1 if np.isnan(x) else int(np.searchsorted(column[~np.isnan(column)], x))

    def of_rows(self, rows: Floats) -> Floats:
        """Return the costs of rows of listed values, (n,)."""
        return np.array([self.cost(row) for row in rows])


def cheapest_change(
    searched: Searched,
    priced: Priced,
    crossing: Crossing | None,
    reaches: Reaches,
    obeys: Obeys,
    start: Floats | None = None,
) -> SmallestChange:
    """Search for the cheapest row of listed values that is beyond a threshold.

    ``obeys`` states which rows are possible, and ``reaches`` what the model says of those. ``start`` is a row
    that is beyond it, if one is known.
    """
    if crossing is None:
        return NO_CHANGE
    bounds, sign = searched.bounds, crossing.sign
    low, effects = 0.0, bounds.effects(priced.values)
    if effects is not None:
        base, of_columns = effects
        room = crossing.threshold - sign * base
        choice = cheapest_choice([sign * its for its in of_columns], priced.costs, room)
        if choice is None:
            return NO_CHANGE
        best = _of_choice(choice, priced, reaches, obeys)
        if best is not None:
            return best
        low = choice.low
    limit = Limit(crossing.threshold, reaches, np.inf)
    return _Cheapest(bounds, priced, sign, limit, obeys, start).search(low)


def _of_choice(choice: Choices, priced: Priced, reaches: Reaches, obeys: Obeys) -> SmallestChange | None:
    """Return the cheapest choice if it is possible and the model agrees; else None, or one that is close."""
    for i, (places, cost) in enumerate(
        zip(choice.places[:_ASKED_ABOUT], choice.costs.tolist(), strict=False)
    ):
        row = np.array([values[k] for values, k in zip(priced.values, places.tolist(), strict=True)])
        if not obeys(row[None, :])[0]:
            return None
        if reaches(row):
            is_first = i == 0 and choice.low >= cost * (1.0 - SAME_COST)
            reason = "" if is_first else CUT_SHORT if i == 0 else "other changes come within a rounding"
            low = cost if is_first else choice.low
            return SmallestChange(changed_columns(row, priced.row), row, reason, cost, low)
    return None


# -- boxes --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Part:
    """A box, as runs of listed values [first, last) of each column, and its cheapest row."""

    first: Ints
    last: Ints
    cheapest: Ints  # places of the values
    ends: Range
    is_tried: bool  # whether the cheapest row has been tried


@dataclass(eq=False)
class _Cheapest:
    """The search over boxes, and the cheapest row so far."""

    bounds: Bounds
    priced: Priced
    sign: float
    limit: Limit
    obeys: Obeys
    start: Floats | None

    def __post_init__(self) -> None:
        self.best: Floats | None = None
        self.cost = np.inf

    def search(self, low: float) -> SmallestChange:
        """Return the cheapest row, with ``low``, or a better bound, where that is not proved."""
        sizes = np.array([values.size for values in self.priced.values])
        whole = self._part(np.zeros(sizes.size, dtype=np.int64), sizes, None)
        if whole is None:
            return self._result(np.inf)
        self._descend()
        number, cut = count(), 0
        pending = [(max(low, self._cost(whole)), next(number), whole)]
        while pending:
            cost, _, part = heappop(pending)
            if cost >= self.cost * (1.0 - SAME_COST):
                return self._result(self.cost)
            if not part.is_tried and self._try(self._row(part.cheapest)):
                return self._result(self.cost)
            if cut >= self.priced.nodes or cost >= self.priced.at_most:
                return self._result(cost)
            cut += 1
            for first, last in self._halves(part):
                inner = self._part(first, last, part)
                if inner is not None and (its := max(cost, self._cost(inner))) < self.cost:
                    heappush(pending, (its, next(number), inner))
        return self._result(self.cost)

    def _result(self, low: float) -> SmallestChange:
        if self.best is None:
            return NO_CHANGE if low == np.inf else SmallestChange((), None, CUT_SHORT, np.inf, low)
        is_proved = low >= self.cost * (1.0 - SAME_COST)
        columns = changed_columns(self.best, self.priced.row)
        reason = "" if is_proved else CUT_SHORT
        return SmallestChange(columns, self.best, reason, self.cost, self.cost if is_proved else low)

    def _cost(self, part: _Part) -> float:
        return float(
            sum(costs[k] for costs, k in zip(self.priced.costs, part.cheapest.tolist(), strict=True))
        )

    def _row(self, places: Ints) -> Floats:
        return np.array([v[k] for v, k in zip(self.priced.values, places.tolist(), strict=True)])

    def _try(self, row: Floats) -> bool:
        """Return whether a row is possible and enough; the best so far is kept."""
        value = float(self.sign * self.bounds.values(row[None, :])[0])
        if value >= self.limit.below or not self.obeys(row[None, :])[0]:
            return False
        if not self.limit.admits(row, value):
            return False
        cost = self.priced.cost(row)
        if cost < self.cost:
            self.best, self.cost = row, cost
        return True

    def _part(self, first: Ints, last: Ints, outer: _Part | None) -> _Part | None:
        """Return a box without values that alone cost too much; None where no row of it is enough."""
        costs = self.priced.costs
        cheapest = np.array(
            [a + int(np.argmin(c[a:b])) for c, a, b in zip(costs, first.tolist(), last.tolist(), strict=True)]
        )
        if self.cost < np.inf:
            least = np.array([c[k] for c, k in zip(costs, cheapest.tolist(), strict=True)])
            room = self.cost - (float(least.sum()) - least)
            first, last = first.copy(), last.copy()
            for j, c in enumerate(costs):
                kept = np.flatnonzero(c[first[j] : last[j]] < room[j])
                if not kept.size:
                    return None
                first[j], last[j] = first[j] + kept[0], first[j] + kept[-1] + 1
        ends = self.bounds(self._box(first, last))
        ends = ends if self.sign > 0 else ends.scaled(-1.0)
        if ends.low >= self.limit.below:
            return None
        is_tried = outer is not None and np.array_equal(cheapest, outer.cheapest)
        if not is_tried and ends.high < self.limit.below:
            self._try(self._row(cheapest))
            is_tried = True
        return _Part(first, last, cheapest, ends, is_tried)

    def _box(self, first: Ints, last: Ints) -> Box:
        ends = zip(self.priced.values, first.tolist(), last.tolist(), strict=True)
        return tuple(values[a:b] for values, a, b in ends)

    def _halves(self, part: _Part) -> list[tuple[Ints, Ints]]:
        """Cut a box where its bound has most at stake, or between any two values; nothing of a single row."""
        sizes = part.last - part.first
        stakes = np.bincount(part.ends.columns, part.ends.stakes, minlength=sizes.size)
        stakes = np.where(sizes > 1, stakes, -1.0)
        if (sizes <= 1).all():
            return []
        j = int(np.argmax(stakes)) if stakes.max() > 0.0 else int(np.argmax(sizes))
        values = self.priced.values[j][part.first[j] : part.last[j]]
        cut = values.size // 2
        if stakes[j] > 0.0:
            of_column = part.ends.columns == j
            thresholds, weight = part.ends.thresholds[of_column], part.ends.stakes[of_column]
            order = np.argsort(thresholds, kind="stable")
            middle = int(np.searchsorted(np.cumsum(weight[order]), 0.5 * weight.sum()))
            below = int((values <= thresholds[order][min(middle, order.size - 1)]).sum())
            cut = below if 0 < below < values.size else cut
        lower, upper = part.last.copy(), part.first.copy()
        lower[j] = upper[j] = part.first[j] + cut
        return [(part.first, lower), (upper, part.last)]

    # -- rows to begin with ---------------------------------------------------------------------------------

    def _descend(self) -> None:
        """Make rows of the background that are enough cheaper, one column at a time."""
        table = self.priced.table
        if len(table):
            table = table[self.sign * self.bounds.values(table) < self.limit.below]
            table = table[self.obeys(table)] if len(table) else table
        starts = table[np.argsort(self.priced.of_rows(table), kind="stable")[:_STARTS]]
        first = [] if self.start is None else [self.start]
        for row in [*first, *starts, *self._climbed()]:
            its = row
            for _ in range(_PASSES):
                new = self._cheaper(its)
                if new is None:
                    break
                its = new
            if not self._try(its):
                self._try(row)

    def _cheaper(self, row: Floats) -> Floats | None:
        """Return a row that is enough and cheaper, by changes of single columns; None without one."""
        tried, saved, of_column = [], [], []
        for j, (values, costs) in enumerate(zip(self.priced.values, self.priced.costs, strict=True)):
            now = costs[self.priced.place(j, row[j])]
            cheaper = np.flatnonzero(costs < now)
            cheaper = _some(cheaper[np.argsort(costs[cheaper], kind="stable")])
            rows = np.tile(row, (cheaper.size, 1))
            rows[:, j] = values[cheaper]
            tried.append(rows)
            saved.append(now - costs[cheaper])
            of_column.append(np.full(cheaper.size, j))
        rows, savings, columns = (np.concatenate(its) for its in (tried, saved, of_column))
        enough = self._enough(rows)
        order = enough[np.argsort(-savings[enough], kind="stable")]
        # the change of each column that saves most, and all that save more with it
        each = order[np.sort(np.unique(columns[order], return_index=True)[1])]
        together = np.tile(row, (each.size, 1))
        for k, its in enumerate(each.tolist()):
            together[k:, columns[its]] = rows[its, columns[its]]
        kept = self._enough(together)
        return together[kept[-1]] if kept.size else None

    def _enough(self, rows: Floats) -> Ints:
        """Return which rows, (n, d), are beyond the threshold, and possible."""
        if not len(rows):
            return np.empty(0, dtype=np.int64)
        enough = np.flatnonzero(self.sign * self.bounds.values(rows) < self.limit.below)
        return enough[self.obeys(rows[enough])] if enough.size else enough

    def _climbed(self) -> list[Floats]:
        """Return the row that the changes with the largest effect for their cost make, if it is enough."""
        row = self.priced.row.copy()
        value = float(self.sign * self.bounds.values(row[None, :])[0])
        for _ in range(2 * row.size):
            tried, added = [], []
            for j, (values, costs) in enumerate(zip(self.priced.values, self.priced.costs, strict=True)):
                places = _some(np.arange(values.size))
                rows = np.tile(row, (places.size, 1))
                rows[:, j] = values[places]
                tried.append(rows)
                added.append(costs[places] - costs[self.priced.place(j, row[j])])
            rows, more = np.concatenate(tried), np.concatenate(added)
            gained = value - self.sign * self.bounds.values(rows)
            needed = value - self.limit.below
            useful = np.minimum(gained, needed) if needed > 0 else gained
            rate = np.where(gained > 0, useful / np.maximum(more, SAME_COST), -np.inf)
            best = int(np.argmax(rate))
            if not rate[best] > 0:
                return []
            row, value = rows[best], value - float(gained[best])
            if value < self.limit.below:
                return [row] if self.obeys(row[None, :])[0] else []
        return []


def _some(places: Ints) -> Ints:
    """Return some of some places, the first and the last among them."""
    if places.size <= _TRIED:
        return places
    return np.asarray(places[np.linspace(0, places.size - 1, _TRIED).astype(np.int64)])


# -- sums ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Choices:
    """Choices of one value a column, the cheapest first, and a lower bound of the cost of any."""

    places: Ints  # (choices, columns)
    costs: Floats
    low: float


def cheapest_choice(effects: Sequence[Floats], costs: Sequence[Floats], room: float) -> Choices | None:
    """Choose a value a column so that effects add up to less than ``room``, and costs to the least.

    None where no choice does. Few partial choices say what the best one costs at most, the relaxation's price
    λ of an effect at least: a value whose c + λ e is above its column's least by more than the difference is
    in no better choice.
    """
    places = [_undominated(cost, effect) for cost, effect in zip(costs, effects, strict=True)]
    relaxed = _Relaxed([(c[its], e[its]) for c, e, its in zip(costs, effects, places, strict=True)])
    best = relaxed.rounded(room)
    if best is None:
        return None
    price = relaxed.price(room)
    best = min(best, _one_column_more(effects, costs, places, room, price))
    places = _of_use(effects, costs, places, room, price, best)
    few = _extended(effects, costs, places, room, best, _FEW_CHOICES)
    if few.costs.size == 0:  # by a rounding of what is just below the room
        return few
    best = min(best, float(few.costs[0]))
    places = _of_use(effects, costs, places, room, price, best)
    return _extended(effects, costs, places, room, best, _MOST_CHOICES)


def _one_column_more(
    effects: Sequence[Floats], costs: Sequence[Floats], places: Sequence[Ints], room: float, price: float
) -> float:
    """Return the least cost of each column's best value at a price, and what one column adds to be enough."""
    chosen = np.array(
        [its[np.argmin(c[its] + price * e[its])] for c, e, its in zip(costs, effects, places, strict=True)]
    )
    cost = np.array([c[i] for c, i in zip(costs, chosen, strict=True)])
    effect = np.array([e[i] for e, i in zip(effects, chosen, strict=True)])
    best = np.inf
    for j, its in enumerate(places):
        others = np.arange(len(places)) != j
        (first,) = _first_below(effects[j][its], np.array([effect[others].sum()]), room)
        if first < its.size:
            best = min(best, float(cost[others].sum() + costs[j][its[first]]))
    return best


def _of_use(
    effects: Sequence[Floats],
    costs: Sequence[Floats],
    places: Sequence[Ints],
    room: float,
    price: float,
    best: float,
) -> list[Ints]:
    """Return the places of values that may be in a choice that costs at most ``best``."""
    priced = [c[its] + price * e[its] for c, e, its in zip(costs, effects, places, strict=True)]
    size = sum(float(np.abs(its).max()) for its in priced) + price * abs(room) + best
    more = best - (sum(float(its.min()) for its in priced) - price * room) + SAME_COST * size
    return [its[each <= each.min() + more] for its, each in zip(places, priced, strict=True)]


def _extended(
    effects: Sequence[Floats],
    costs: Sequence[Floats],
    fronts: Sequence[Ints],
    room: float,
    best: float,
    most: int,
) -> Choices:
    """Extend partial choices column by column; ``most`` of them are kept, those of least bound."""
    # the column of most values is last: what it has to add is then known, and no combination is listed
    order = sorted(range(len(fronts)), key=lambda j: fronts[j].size)
    rest = _Relaxed([(costs[j][fronts[j]], effects[j][fronts[j]]) for j in order])
    low, sums, total = np.inf, np.zeros(1), np.zeros(1)
    places = np.zeros((1, 0), dtype=np.int64)
    for k, j in enumerate(order[:-1]):
        its, parts = fronts[j], []
        each = max(1, _AT_A_TIME // its.size)
        for start in range(0, total.size, each):
            cost = total[start : start + each, None] + costs[j][its]
            effect = sums[start : start + each, None] + effects[j][its]
            bound = cost + rest.cost(k + 1, effect, room)
            parent, step = np.nonzero(bound <= best * (1.0 + SAME_COST))
            chosen = (cost[parent, step], effect[parent, step], bound[parent, step])
            parts.append((*chosen, start + parent, step))
        cost, effect, bound, parent, step = (np.concatenate(some) for some in zip(*parts, strict=True))
        if bound.size > _COMPARED:
            part = np.argpartition(bound, _COMPARED)
            low = min(low, float(bound[part[_COMPARED]]))
            part = np.sort(part[:_COMPARED])
            cost, effect, bound = cost[part], effect[part], bound[part]
            parent, step = parent[part], step[part]
        kept = _undominated(cost, effect)
        if kept.size > most:
            kept = kept[np.argsort(bound[kept], kind="stable")]
            low = min(low, float(bound[kept[most]]))
            kept = kept[:most]
        total, sums = cost[kept], effect[kept]
        places = np.concatenate([places[parent[kept]], its[step[kept]][:, None]], axis=1)
        if not kept.size:
            break
    else:
        its = fronts[order[-1]]
        last = _first_below(effects[order[-1]][its], sums, room)
        reached = np.flatnonzero(last < its.size)
        place = its[last[reached]]
        total, places = total[reached] + costs[order[-1]][place], places[reached]
        places = np.concatenate([places, place[:, None]], axis=1)
    if not len(places) or places.shape[1] < len(order):
        return Choices(np.zeros((0, len(fronts)), dtype=np.int64), np.zeros(0), 0.0)
    cheapest = np.argsort(total, kind="stable")
    in_order = np.empty((cheapest.size, len(fronts)), dtype=np.int64)
    in_order[:, order] = places[cheapest]
    return Choices(in_order, total[cheapest], min(low, float(total[cheapest[0]])))


def _first_below(effects: Floats, sums: Floats, room: float) -> Ints:
    """Return the first of falling effects with which each sum is below the room, or their number."""
    first = np.searchsorted(-effects, sums - room, "right")
    # the sum itself decides where roundings differ
    is_above = (first < effects.size) & (sums + effects[np.minimum(first, effects.size - 1)] >= room)
    return np.asarray(first + is_above)


def _undominated(cost: Floats, effect: Floats) -> Ints:
    """Return the places, by rising cost, where the effect is below that of all that cost less or the same."""
    order = np.lexsort((effect, cost))
    least = np.minimum.accumulate(effect[order])
    is_new = np.concatenate([[True], least[1:] < least[:-1]]) if order.size else np.zeros(0, dtype=np.bool_)
    return np.asarray(order[is_new])


class _Relaxed:
    """The linear relaxation of the choices of the last columns: parts of a step between two values count."""

    def __init__(self, columns: Sequence[tuple[Floats, Floats]]) -> None:
        self._lines = []
        base_cost = base_effect = 0.0
        steps = np.zeros((0, 3))  # cost, fall of the effect and its rate, the largest rates first
        self._lines.append((base_cost, base_effect, np.zeros(1), np.zeros(1)))
        for cost, effect in reversed(columns):
            base_cost, base_effect = base_cost + float(cost[0]), base_effect + float(effect[0])
            steps = np.concatenate([steps, _hull_steps(cost, effect)])
            steps = steps[np.argsort(-steps[:, 2], kind="stable")]
            ends = np.concatenate([np.zeros((1, 2)), np.cumsum(steps[:, :2], axis=0)])
            self._lines.append((base_cost, base_effect, ends[:, 1], ends[:, 0]))
        self._lines.reverse()

    def cost(self, k: int, effect: Floats, room: float) -> Floats:
        """Return the least cost of columns k, k + 1, ... that brings effects below ``room``, or inf."""
        base_cost, base_effect, lowered, costs = self._lines[k]
        needed = effect + base_effect - room
        # roundings of sums must not exclude a choice that just does
        slack = SAME_COST * (abs(room) + np.abs(effect) + abs(base_effect) + lowered[-1])
        return np.where(
            needed > lowered[-1] + slack, np.inf, base_cost + np.interp(needed - slack, lowered, costs)
        )

    def price(self, room: float) -> float:
        """Return what the relaxation of all columns pays for an effect of 1 at its end."""
        _, base_effect, lowered, costs = self._lines[0]
        place = int(np.searchsorted(lowered, base_effect - room, "right"))
        if not 0 < place < lowered.size:
            return 0.0
        fall = max(float(lowered[place] - lowered[place - 1]), np.finfo(float).tiny)
        return float(costs[place] - costs[place - 1]) / fall

    def rounded(self, room: float) -> float | None:
        """Return what the relaxation of all columns costs where its last step is whole; None without one."""
        base_cost, base_effect, lowered, costs = self._lines[0]
        place = int(np.searchsorted(lowered, base_effect - room, "right"))
        return None if place >= lowered.size else base_cost + float(costs[place])


def _hull_steps(cost: Floats, effect: Floats) -> Floats:
    """Return the steps (cost, fall of the effect, rate) of the lower convex hull of a front."""
    hull: list[int] = []
    for i in range(cost.size):
        while len(hull) > 1 and _is_above(cost, effect, hull[-2], hull[-1], i):
            hull.pop()
        hull.append(i)
    more, fall = np.diff(cost[hull]), -np.diff(effect[hull])
    # rates fall along a hull; where roundings differ, the order of a column's steps stays
    rates = np.minimum.accumulate(fall / np.maximum(more, np.finfo(float).tiny))
    return np.column_stack([more, fall, rates])


def _is_above(cost: Floats, effect: Floats, a: int, b: int, c: int) -> bool:
    """Return whether point b lies on or above the line from a to c."""
    return bool(
        (effect[b] - effect[a]) * (cost[c] - cost[a]) >= (effect[c] - effect[a]) * (cost[b] - cost[a])
    )
