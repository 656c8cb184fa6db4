r"""Contributions of a black box from few answers: sets of kept columns, less a control whose own are exact.

Of a function f a pair of rows keeps the columns S of the explained row ξ and draws the others, and the other
way round. With s = |S| drawn by a law q, and uniform sets of a size,

    φ_j = φ_j(g) + E[a_j(S) (r(S) - r(S^c)) / 2] + (r(ξ) - E r) / d,    r = f - g,
    a_j = (1/s if j ∈ S else -1/(d - s)) / q(s),    q(s) ∝ 1 / √(s (d - s)),

so that each answer counts for every column, where a walk's counts for two: what a control leaves has a tenth
of the variance at 30 columns. Of the pair's products of columns, pairs of columns among them, half cancel.

- *Control* (``game_controls.py``): fitted to all answers but those of one part of the rows, from which it is
  subtracted, part by part; the one that leaves the least variance is chosen.
- *Base*: E g + the mean of f - g over rows of the law. The part of an error that it has is shared by columns.
- *Columns that change nothing*: columns that answers follow are moved in a separate row each. All others are
  moved at once, from kept to drawn and back, in rows that were answered, every other one a row of which the
  control leaves much; where an answer changes, halves are moved, until the column is found. Once
  `_CONFIRMED` rows do not change, the columns leave the game, and are kept in half of all further sets. The
  last calls look again, at the rows of which the control leaves most; a column that changes one comes back,
  with all pairs, as q is the mixture of all laws that sets were drawn by. The contribution of the others is
  0, and its error the largest p A that no row tells against: p of the rule of three, an effect A in a share
  p of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from limes._arrays import DIFFERENCE_ROUNDING, Bools, Floats, Ints, are_complements
from limes._sampling.least_squares import (
    ENOUGH_ANSWERS,
    Tolerance,
    rarity_factors,
    student_factors,
)
from limes._shapley.exact import RowContributions
from limes._shapley.game_controls import (
    BoostedGame,
    Bumps,
    ColumnFunctions,
    Game,
    GameLaw,
    IndependentDraws,
    OccurringDraws,
    SumOfPairs,
    bumps_fit,
    likely_columns,
)
from limes._shapley.permutations import ControlVariates, PermutationSampler, least_walked
from limes._shapley.starts import DrawnStarts, same
from limes._threads import one_blas_thread
from limes.models._calling.caller import Calls, paced_calls
from limes.models._calling.counts import AnswerCount

# Fewer calls are walked
_FEWEST = 96
# Pairs of walks from which on rows that occur, whose answers are known, are walked from: passes over a
# background leave the orders' error alone
_MANY_PAIRS = 40
# Calls of the first draws, at least, for each column, and as a share of all
_FIRST, _A_COLUMN, _FIRST_SHARE = 128, 8, 0.45
# Share of the rows that are drawn for the base
_FOR_BASE = 1 / 6
# Parts of the rows, without each of which a control is fitted
_PARTS = 4
# Importance from which on a column is moved by itself; rows that all others do not change before they leave
# the game, and share of the calls for finding them
_IMPORTANT, _CONFIRMED, _FOR_UNUSED = 0.03, 16, 0.2
# Rows that are looked at in one call at first, and the calls that following them takes, as a part of all
_AT_ONCE, _FOLLOWED = 8, 4
# Share of the calls that is left for a last look at columns that change nothing, and most of these calls
_FOR_LAST_LOOK, _MOST_LAST_LOOK = 0.1, 80
# Draws, where answers repeat, as a multiple of the calls
_REPEATED = 8
# Growth between looks at the errors
_CAUTION, _LEAST_TIMES, _MOST_TIMES = 1.1, 1.5, 8.0
# Walks that are tried where all calls allow it, in pairs and as a share of the calls, and the factor by which
# errors of sets fall as their controls become better
_FEWEST_TRIED, _MOST_TRIED, _TRIAL, _GAIN = 8, 32, 0.1, 0.7
# A control is preferred to a simpler one if its score is below this multiple; trees are tried unless bumps
# leave less than this share of what sums of pairs leave
_NEARLY_AS_GOOD, _SMOOTH = 0.95, 0.3
# Rows that were answered before which a control is fitted to, at most
_MOST_BEFORE = 1024


@dataclass(frozen=True, eq=False)
class SetSampler:
    """Contributions at single rows: same seed and same row, same result."""

    walks: PermutationSampler  # whose options these are, and which does what is left of few calls

    def at(
        self,
        law: GameLaw,
        prediction: Floats,
        before: DrawnStarts | None,
        spent: int,
        *,
        is_current: bool,
    ) -> RowContributions:
        """Contributions at the law's row, given f there (k,); ``spent`` calls were made before."""
        walks = self.walks
        most = walks.sampling.max_calls - spent
        d = int(law.varies.sum())
        is_walked = (
            isinstance(law, OccurringDraws)
            and len(law.starts.background) > 1
            and most >= _MANY_PAIRS * (2 * d - 1)
        )
        if most < max(_FEWEST, least_walked(d)) or d < 2 or is_walked:
            return walks.at(law.row, prediction, law.starts, None, spent, is_current=is_current)
        tally = AnswerCount()
        with tally.counting(), one_blas_thread():
            if walks.check is not None and not is_current:
                walks.check()
            account = _Sampled.of(walks, law, prediction, before, most).account()
        return replace(account, calls=np.array([tally.rows]))


class _Draws(NamedTuple):
    """Rows of one kind, with what of them is kept, (n, d), and their answers, (n, k)."""

    x: Floats
    kept: Bools
    answers: Floats
    part: Ints  # (n,), -1 of those that all controls may be fitted to

    def take(self, at: Ints) -> _Draws:
        return _Draws(self.x[at], self.kept[at], self.answers[at], self.part[at])

    @classmethod
    def joined(cls, many: list[_Draws], d: int, k: int) -> _Draws:
        none = cls(np.zeros((0, d)), np.zeros((0, d), dtype=np.bool_), np.zeros((0, k)), np.zeros(0, int))
        return cls(*(np.concatenate(arrays) for arrays in zip(none, *many, strict=True)))


class _Crossed(NamedTuple):
    """Controls, each fitted without one part of the rows."""

    everywhere: Sequence[Floats]  # what each leaves of all rows, (n, k)
    games: Sequence[Game]
    rest: Floats  # what is left where they were not fitted, (n, k)

    @classmethod
    def of(cls, parts: Sequence[Bools], everywhere: Sequence[Floats], games: Sequence[Game]) -> _Crossed:
        rest = np.zeros_like(everywhere[0])
        for out, its in zip(parts, everywhere, strict=True):
            rest[out] = its[out]
        return cls(everywhere, games, rest)

    def games_of(self, shares: Floats, output: int) -> Game:
        """Numbers (R, ...) of an output, with a share of each part's control."""
        pairs = [*zip(shares, self.games, strict=True)]
        return Game(*(sum(p * game[i][..., output] for p, game in pairs) for i in range(4)))


class _Estimate(NamedTuple):
    base: Floats  # (k,)
    base_errors: Floats
    values: Floats  # (d, k)
    errors: Floats
    alone: Floats
    last: Floats

    def excess(self, accuracy: Tolerance) -> float:
        """The largest error, the base's among them, in units of the tolerance."""
        return float(accuracy.with_base(self.values, self.errors, self.base_errors))


@dataclass(eq=False)
class _Sampled:
    """All that is drawn for one row."""

    law: GameLaw
    walks: PermutationSampler
    prediction: Floats  # (k,)
    most: int
    ask: Callable[[Floats], Floats]
    calls: Calls
    rng: np.random.Generator
    columns: Ints  # in the game
    pairs: list[tuple[_Draws, _Draws]] = field(default_factory=list)
    games: list[tuple[int, Ints]] = field(default_factory=list)  # pairs, and the columns their sets are of
    others: list[_Draws] = field(default_factory=list)  # for the base
    trials: list[_Draws] = field(default_factory=list)
    before: list[_Draws] = field(default_factory=list)
    spent: int = 0  # calls of walks that were tried
    used: set[int] = field(default_factory=set)  # columns that change answers
    looked: set[bytes] = field(default_factory=set)  # rows that the other columns did not change
    # what one column changes where it changes much, (k,), and what the control leaves of drawn rows, (n, k)
    single: Floats = field(default_factory=lambda: np.zeros(0))
    rest: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def reserve(self) -> int:
        """Calls that are left for a last look at columns that may change nothing."""
        if not self.walks.sampling.is_function or len(self.used) == self.law.varies.sum():
            return 0
        return min(int(_FOR_LAST_LOOK * self.most), _MOST_LAST_LOOK)

    @classmethod
    def of(
        cls,
        walks: PermutationSampler,
        law: GameLaw,
        prediction: Floats,
        before: DrawnStarts | None,
        most: int,
    ) -> _Sampled:
        sampling = walks.sampling
        make = paced_calls if sampling.is_function else Calls
        calls = make(
            walks.predict,
            # what random answers have in common within a call must differ between parts
            batch_size=sampling.rows_a_call(max(1, most // 32)),
            retry=sampling.retry,
            is_function=sampling.is_function,
        )
        rng = np.random.default_rng(walks.stream(law.row).spawn(1)[0])
        columns = np.flatnonzero(law.varies)
        one = cls(law, walks, prediction, most, calls.one_pass(calls), calls, rng, columns)
        if isinstance(law, OccurringDraws):
            before = DrawnStarts(law.starts.background, law.starts.answers)
        if before is not None:
            some = np.unique(np.linspace(0, len(before.z) - 1, _MOST_BEFORE).astype(np.int64))
            x = before.z[some]
            none = np.zeros_like(x, dtype=np.bool_)
            answers = np.asarray(before.answers).reshape(len(before.z), -1)[some]
            one.before.append(_Draws(x, none, answers, np.full(len(x), -1)))
        return one

    def account(self) -> RowContributions:
        d, most = self.columns.size, self.most
        accuracy = self.walks.sampling.accuracy
        drawn = self._draw(min(max(_FIRST, _A_COLUMN * d), int(_FIRST_SHARE * most)))
        if self.walks.sampling.is_function:
            limit = min(most - self.reserve, len(self.calls) + int(_FOR_UNUSED * most))
            self._leave_out(limit)
        goal = 2 * len(self.calls)
        while True:
            room = most - self.reserve - self.spent - len(self.calls)
            count = min(goal - len(self.calls), room, _REPEATED * most - drawn)
            drawn += self._draw(count) if count > 1 else 0
            is_last = room - count < 2 or drawn >= _REPEATED * most - 1 or count <= 1
            estimate = self.estimate(is_last=is_last)
            excess = estimate.excess(accuracy)
            if is_last or excess <= 1.0:
                return self._result(estimate)
            if not self.spent and (walked := self._walked(estimate)) is not None:
                return walked
            grown = np.clip(_CAUTION * excess**2, _LEAST_TIMES, _MOST_TIMES)
            goal = int(min(grown * len(self.calls), most))

    def _walked(self, estimate: _Estimate) -> RowContributions | None:
        """Contributions by walks with what is left, if a few of them promise smaller errors."""
        walks, law = self.walks, self.law
        a_pair = 2 * int(law.varies.sum()) - 1
        trial = min(int(_TRIAL * self.most), _MOST_TRIED * a_pair)
        if trial < _FEWEST_TRIED * a_pair or isinstance(law, OccurringDraws):
            return None
        others = self._trees()

        def walked(sampler: PermutationSampler, spent: int) -> RowContributions:
            return sampler.at(law.row, self.prediction, law.starts, others, spent)

        tried = walked(replace(walks, sampling=replace(walks.sampling, max_calls=trial)), 0)
        calls, self.spent = len(self.calls), int(tried.calls[0])
        rest = self.most - calls - self.spent
        by_walks = np.sqrt((tried.errors**2).mean() * self.spent / rest)
        by_sets = np.sqrt((estimate.errors**2).mean() * calls / (calls + rest))
        if not by_walks < _GAIN * by_sets:
            return None
        return walked(walks, walks.sampling.max_calls - rest)

    def _trees(self) -> ControlVariates | None:
        """Trees fitted to all answers so far."""
        rows = self._rows()
        trees = BoostedGame.fit(self.law, self.columns, rows.x, rows.answers)
        if trees is None:
            return None
        values = np.zeros((self.law.row.size, self.prediction.size))
        values[self.columns] = trees.game().values[0]
        return ControlVariates(values, trees.predict)

    # -- draws -----------------------------------------------------------------------------------------------

    def _answers(self, x: Floats) -> Floats:
        return np.asarray(self.ask(x)).reshape(len(x), -1)

    def _draw(self, count: int) -> int:
        """Draw about this many rows; return how many."""
        has_base = isinstance(self.law, IndependentDraws)
        for_base = max(2, round(_FOR_BASE * count)) if has_base else 0
        for_base = min(for_base, count)
        pairs = (count - for_base) // 2
        rng, d = self.rng, self.law.row.size
        kept = rng.random((pairs, d)) < 0.5
        # columns that were left out are kept in half of the sets, of whatever size
        sets = self.columns if self.columns.size > 1 else self.columns[:0]
        if pairs and sets.size:
            kept[:, sets] = _sets(rng, pairs, sets.size)
        kept &= self.law.varies
        other = ~kept & self.law.varies
        z = self.law.draw(rng, pairs)
        beside = self.law.draw(rng, for_base) if for_base else None
        sides = [np.where(its | ~self.law.varies, self.law.row, z) for its in (kept, other)]
        questions = np.concatenate([*sides, *([] if beside is None else [beside])])
        answers = self._answers(questions) if len(questions) else np.zeros((0, self.prediction.size))
        part = (sum(size for size, _ in self.games) + np.arange(pairs)) % _PARTS
        self.pairs.append(
            (
                _Draws(sides[0], kept, answers[:pairs], part),
                _Draws(sides[1], other, answers[pairs : 2 * pairs], part),
            )
        )
        self.games.append((pairs, sets))
        if beside is not None:
            part = (sum(len(its.x) for its in self.others) + np.arange(for_base)) % _PARTS
            none = np.zeros_like(beside, dtype=np.bool_)
            self.others.append(_Draws(beside, none, answers[2 * pairs :], part))
        return len(questions)

    def _leave_out(self, limit: int) -> None:
        """Find columns that change nothing, and play without them."""
        rows = self._rows()
        importance, rest = self._importance(rows)
        self._move_each(rows, self.columns[importance > _IMPORTANT * importance.max(initial=0.0)], limit)
        self._look(rows, self.columns[np.argsort(-importance, kind="stable")], rest, _CONFIRMED, limit)

    def _move_each(self, rows: _Draws, columns: Ints, limit: int) -> None:
        """Find columns that change an answer when they are moved, each in a separate row."""
        columns = columns[: max(0, limit - len(self.calls))]
        if not columns.size:
            return
        start = rows.take(self.rng.choice(np.flatnonzero(rows.part >= 0), columns.size))
        moves = np.arange(self.law.row.size) == columns[:, None]
        kept = np.where(moves, ~start.kept, start.kept)
        to = np.where(kept, self.law.row, self.law.draw(self.rng, columns.size))
        moved = self._moved(start, to, kept, moves)
        self.used |= set(columns[self._differ(moved, start.answers)].tolist())

    def _look(self, rows: _Draws, order: Ints, rest: Floats, enough: int, limit: int) -> None:
        """Move all columns that no answer showed to matter at once, in rows that were answered.

        Every other row is one of those of which ``rest`` (n,) is largest. If enough rows do not change, the
        columns leave the game.
        """
        fresh = np.flatnonzero(rows.part[: rest.size] >= 0)
        fresh = fresh[[x.tobytes() not in self.looked for x in rows.x[fresh]]]
        outliers, others = fresh[np.argsort(-rest[fresh], kind="stable")], self.rng.permutation(fresh)
        places = list(dict.fromkeys(np.stack([outliers, others], axis=1).ravel().tolist()))
        count, draws = _AT_ONCE, self._drawn_rows()
        while len(self.looked) < enough and places:
            columns = order[~np.isin(order, [*self.used])]
            # a change is followed to its column
            steps = columns.size.bit_length()
            room = limit - len(self.calls) - steps
            if not columns.size or room < 1:
                break
            count = min(count, len(places), room, enough - len(self.looked))
            start = rows.take(np.array(places[:count]))
            kept = ~start.kept & self.law.varies
            to = np.where(kept, self.law.row, np.array([*islice(draws, count)]))
            changed = self._differ(self._moved(start, to, kept, _mask(columns, kept.shape)), start.answers)
            self.looked |= {x.tobytes() for x in start.x[~changed]}
            changing = np.flatnonzero(changed)
            if changing.size:
                # several may lead to the same column
                few = changing[: max(1, (limit - len(self.calls)) // (_FOLLOWED * steps))]
                self.used |= set(self._movers(start.take(few), to[few], kept[few], columns).tolist())
            # the rows are looked at again, without these
            places = [places[i] for i in changing] + places[count:]
            count = _AT_ONCE if changing.size else 2 * count
        of_used = np.isin(np.arange(self.law.row.size), [*self.used])
        self.columns = np.flatnonzero(of_used if len(self.looked) >= _CONFIRMED else self.law.varies)

    def _drawn_rows(self) -> Iterator[Floats]:
        while True:
            yield from self.law.draw(self.rng, _MOST_LAST_LOOK)

    def _movers(self, start: _Draws, to: Floats, kept: Bools, columns: Ints) -> Ints:
        """A column for each row that changes its answer, as all ``columns`` do together, by halves."""
        place = np.full(self.law.row.size, columns.size)
        place[columns] = np.arange(columns.size)
        lower, upper = np.zeros(len(to), dtype=np.int64), np.full(len(to), columns.size)
        low = start.answers.copy()
        while (open_ := np.flatnonzero(upper - lower > 1)).size:
            middle = (lower[open_] + upper[open_]) // 2
            moved = self._moved(start.take(open_), to[open_], kept[open_], place < middle[:, None])
            differs = self._differ(moved, low[open_])
            upper[open_[differs]] = middle[differs]
            same = open_[~differs]
            lower[same], low[same] = middle[~differs], moved.answers[~differs]
        return np.asarray(columns[lower])

    def _moved(self, start: _Draws, to: Floats, kept: Bools, moves: Bools) -> _Draws:
        """Rows in which columns are moved, and their answers."""
        x, its = np.where(moves, to, start.x), np.where(moves, kept, start.kept)
        # in the part of the rows that they are like
        moved = _Draws(x, its, self._answers(x), start.part)
        self.trials.append(moved)
        return moved

    def _differ(self, one: _Draws, other: Floats) -> Bools:
        answers = np.concatenate([both[0].answers for both in self.pairs])
        size = np.maximum(np.abs(answers).max(axis=0, initial=0.0), np.abs(self.prediction))
        return np.asarray((np.abs(one.answers - other) > DIFFERENCE_ROUNDING * size).any(axis=1))

    def _importance(self, rows: _Draws) -> tuple[Floats, Floats]:
        """How much columns in the game matter, (m,), and what they leave of rows, (n,)."""
        answers, importance = scaled(rows.answers)[0], np.zeros(self.columns.size)
        rest = answers - answers.mean(axis=0)
        if self.columns.size and rest.any():
            functions, values, places = self._functions(rows)
            for fitted in SumOfPairs.fit(functions, values, answers):
                importance[places] += fitted.importance
                rest = answers - fitted.predict(values)
        return importance, np.abs(rest).max(axis=1)

    # -- estimates -------------------------------------------------------------------------------------------

    def _rows(self) -> _Draws:
        """All rows: of one side of the pairs, of the other side, of the base, and others."""
        sides = [[both[i] for both in self.pairs] for i in (0, 1)]
        many = [*sides[0], *sides[1], *self.others, *self.trials, *self.before]
        return _Draws.joined(many, self.law.row.size, self.prediction.size)

    def _functions(self, rows: _Draws) -> tuple[ColumnFunctions, Floats, Ints]:
        """Functions of the columns in the game, or of those that answers follow most; values, and places."""
        functions = ColumnFunctions(self.law, self.columns)
        values = functions(rows.x, rows.kept)
        places = likely_columns(values, functions.column, rows.answers)
        if places.size < self.columns.size:
            functions = ColumnFunctions(self.law, self.columns[places])
            values = functions(rows.x, rows.kept)
        return functions, values, places

    def estimate(self, *, is_last: bool) -> _Estimate:
        """Contributions by all answers so far."""
        rows, prediction = self._rows(), self.prediction
        if are_complements(np.concatenate([rows.answers, prediction[None]])):
            rows, prediction = rows._replace(answers=rows.answers[:, 1:]), prediction[1:]
        in_units, unit = scaled(rows.answers)
        rows = rows._replace(answers=in_units)
        crossed, places = self._cross_fitted(rows)
        estimate = self._combined(rows, crossed, prediction, unit)
        excess = estimate.excess(self.walks.sampling.accuracy)
        if is_last and excess > 1.0 and self.columns.size > 1 and "pairs" in crossed:
            crossed |= self._with_rest(rows, crossed["pairs"], places)
            estimate = self._combined(rows, crossed, prediction, unit)
        if not is_last or not self.reserve:
            return estimate
        before, order = self.columns, np.flatnonzero(self.law.varies)
        self._look(self._rows(), order, self.rest.max(axis=1), self.most, self.most - self.spent)
        if not np.array_equal(before, self.columns):
            return self.estimate(is_last=True)
        return self._combined(rows, crossed, prediction, unit)

    def _cross_fitted(self, rows: _Draws) -> tuple[dict[str, _Crossed], Ints]:
        """Quick controls, and the places of the columns that they are of."""
        answers, m = rows.answers, self.columns.size
        parts = [rows.part == part for part in range(_PARTS)]
        levels = [answers[~out].mean(axis=0) for out in parts]
        self.single = np.zeros(answers.shape[1])
        games = [_constant(level, m) for level in levels]
        kinds = {"none": _Crossed.of(parts, [answers - level for level in levels], games)}
        if not m or not np.ptp(answers, axis=0).any():
            return kinds, np.arange(0)
        functions, values, places = self._functions(rows)
        fits = [SumOfPairs.fit(functions, values[~out], answers[~out]) for out in parts]
        self.single = fits[0][1].changes(values)
        for name, its in zip(("columns", "pairs"), zip(*fits, strict=True), strict=True):
            everywhere = [answers - one.predict(values) for one in its]
            kinds[name] = _Crossed.of(parts, everywhere, [_embedded(one.game(), places, m) for one in its])
        return kinds, places

    def _with_rest(self, rows: _Draws, pairs: _Crossed, places: Ints) -> dict[str, _Crossed]:
        """Controls of what sums of pairs leave."""
        law, kinds, used, m = self.law, dict[str, _Crossed](), self.columns[places], self.columns.size
        parts = [rows.part == part for part in range(_PARTS)]

        def add(name: str, predicted: Sequence[Floats], games: Sequence[Game]) -> None:
            everywhere = [its - one for its, one in zip(pairs.everywhere, predicted, strict=True)]
            both = [its.plus(_embedded(one, places, m)) for its, one in zip(pairs.games, games, strict=True)]
            kinds[name] = _Crossed.of(parts, everywhere, both)

        def shares(rest: Floats, out: Bools) -> Floats:
            """For what sums of pairs leave of some rows, (k,)."""
            before = (pairs.rest[out] ** 2).sum(axis=0)
            return np.asarray((rest[out] ** 2).sum(axis=0) / np.where(before > 0, before, 1.0))

        def trees(i: int) -> BoostedGame | None:
            return BoostedGame.fit(law, used, rows.x[~parts[i]], pairs.everywhere[i][~parts[i]])

        most = np.full(rows.answers.shape[1], _NEARLY_AS_GOOD)
        if bumps_fit(law, used):
            bumps = Bumps.without_each(law, used, rows.x, pairs.everywhere, parts)
            add("bumps", np.split(bumps.predict(rows.x), _PARTS, axis=1), bumps.game().split(_PARTS))
            if (shares(kinds["bumps"].rest, rows.part >= 0) < _SMOOTH).all():
                return kinds
            most = np.minimum(most, shares(kinds["bumps"].rest, parts[0]))
        # the first part shows whether trees are worth their time
        first = trees(0) if law.starts.omitted is None else None
        if first and (shares(pairs.everywhere[0] - first.predict(rows.x), parts[0]) < most).any():
            fits = [first, *filter(None, map(trees, range(1, _PARTS)))]
            if len(fits) == _PARTS:
                add("trees", [its.predict(rows.x) for its in fits], [its.game() for its in fits])
        return kinds

    def _combined(
        self, rows: _Draws, crossed: dict[str, _Crossed], prediction: Floats, unit: Floats
    ) -> _Estimate:
        """The same, each output by the control that leaves least."""
        pairs, k = sum(size for size, _ in self.games), unit.size
        drawn = 2 * pairs + sum(len(its.x) for its in self.others)
        self.rest = np.zeros((drawn, k))
        weights = weights_of_sets(rows.kept[:pairs], self.columns, self.games)
        each = [self._of_output(o, rows, crossed, prediction, unit, weights) for o in range(k)]
        of_game = _Estimate(*(np.stack(numbers, axis=-1) for numbers in zip(*each, strict=True)))
        whole = self._with_unused(of_game, rows, prediction / unit)
        noise = self.walks.sampling.spread
        moving = self.columns if self.columns.size else np.flatnonzero(self.law.varies)
        estimate = _Estimate(*(numbers * unit for numbers in whole))
        estimate.errors[moving] = np.hypot(estimate.errors[moving], noise / max(moving.size, 1))
        return estimate._replace(base_errors=np.hypot(estimate.base_errors, noise))

    def _of_output(
        self,
        o: int,
        rows: _Draws,
        crossed: dict[str, _Crossed],
        predictions: Floats,
        unit: Floats,
        weights: Floats,
    ) -> _Estimate:
        """One output's, in units of its answers."""
        law, (pairs, m), prediction = self.law, weights.shape, float(predictions[o] / unit[o])
        base, base_error = self._base(o, rows, crossed, unit)
        halves = {
            name: 0.5 * (its.rest[:pairs, o] - its.rest[pairs : 2 * pairs, o])
            for name, its in crossed.items()
        }
        square = (weights**2).sum(axis=1)
        name = _least({name: float(square @ half**2) for name, half in halves.items()})
        half = halves[name]
        self.rest[:, o] = np.abs(crossed[name].rest[: len(self.rest), o])
        shares = np.bincount(rows.part[:pairs], minlength=_PARTS) / max(pairs, 1)
        game = crossed[name].games_of(shares, o)
        values, alone, last = (row_weights(law, its) @ its for its in game[1:])
        psi = weights * half[:, None]
        phi = values + psi.mean(axis=0) if pairs else values
        phi = phi + (prediction - base - phi.sum()) / max(m, 1)
        size = max(float(np.abs(rows.answers[:, o]).max()), abs(prediction))
        phi[np.abs(phi) <= DIFFERENCE_ROUNDING * size] = 0.0
        errors = np.hypot(wide_error_of_mean(psi), base_error / m) if m > 1 else np.full(m, base_error)
        possible = (1.0 if 0.0 <= predictions[o] <= 1.0 else np.inf) / unit[o]
        largest = float(np.abs(rows.answers[:, o] - prediction).max())
        bound = _unlike(half, largest, possible, DIFFERENCE_ROUNDING * size)
        errors = np.maximum(errors, bound)
        if isinstance(law, IndependentDraws):
            base_error = max(base_error, bound)
        errors = np.hypot(errors, law.rounding * np.abs(phi).max(initial=0.0))
        if (omitted := law.starts.omitted) is not None:
            weighed = row_weights(law, game.values)
            away = game.values - weighed @ game.values
            errors = np.hypot(errors, np.sqrt(omitted.share * (weighed @ away**2) / omitted.effective))
        numbers = base, base_error, phi, errors, alone + phi - values, last + phi - values
        return _Estimate(*map(np.asarray, numbers))

    def _base(self, o: int, rows: _Draws, crossed: dict[str, _Crossed], unit: Floats) -> tuple[float, float]:
        """E f and its error, of an output, in units of its answers."""
        law, drawn = self.law, len(self.rest)
        if isinstance(law, OccurringDraws):
            omitted, output = law.starts.omitted, o - unit.size
            error = 0.0 if omitted is None else float(np.sqrt(omitted.base[output]))
            return float(law.weights @ law.starts.answers[:, output]) / unit[o], error / unit[o]
        # rows of which nothing in the game is kept follow the law
        its = np.flatnonzero(~rows.kept[:drawn, self.columns].any(axis=1))
        name = _least({name: float((one.rest[its, o] ** 2).sum()) for name, one in crossed.items()})
        rest = crossed[name].rest[:drawn, o]
        shares = np.bincount(rows.part[its], minlength=_PARTS) / its.size
        mean = float(law.weights @ crossed[name].games_of(shares, o).base)
        # what is rare may be met in other rows alone
        every = float(wide_error_of_mean(rest[:, None])[0]) * np.sqrt(drawn / its.size)
        return mean + float(rest[its].mean()), max(float(wide_error_of_mean(rest[its, None])[0]), every)

    def _with_unused(self, of_game: _Estimate, rows: _Draws, prediction: Floats) -> _Estimate:
        """The same for all columns."""
        d, k = self.law.row.size, of_game.base.size
        unused = np.setdiff1d(np.flatnonzero(self.law.varies), self.columns)
        whole = _Estimate(of_game.base, of_game.base_errors, *(np.zeros((d, k)) for _ in range(4)))
        for numbers, its in zip(whole[2:], of_game[2:], strict=True):
            numbers[self.columns] = its
        if unused.size:
            unseen = self._unseen(unused, rows, prediction) if self.columns.size else of_game.base_errors
            whole.errors[unused] = unseen
        return whole

    def _unseen(self, unused: Ints, rows: _Draws, prediction: Floats) -> Floats:
        """Errors (u, k) of columns that were left out: what they may change in rows that tell nothing of it.

        Nothing of size A happened in a row that was looked at, nor where the control leaves less than half of
        A, unless what it leaves otherwise makes up for it. So many rows bound the share in which it happens.
        """
        x, answers = rows.x[: len(self.rest)], np.abs(rows.answers)
        moved = (~same(x[:, unused], self.law.row[unused])).mean(axis=0)
        met = np.minimum(moved, 1.0 - moved)[:, None, None]
        is_looked = np.array([row.tobytes() in self.looked for row in x])
        rests = np.sort(self.rest[~is_looked], axis=0)
        count = np.arange(len(rests))[:, None] ** 2 / max(len(rests), 1)
        largest = np.minimum(self.single, np.abs(rows.answers[: len(x)] - prediction).max(axis=0))
        sizes = np.concatenate([np.minimum(2.0 * rests, 2.0 * answers.max(axis=0)), largest[None]])
        counts = np.concatenate([count, [[len(rests)]]])
        bounds = sizes / np.maximum(len(self.looked) + met * counts, 1.0)
        return np.asarray(3.0 / 1.96 * bounds.max(axis=1))

    def _result(self, estimate: _Estimate) -> RowContributions:
        base = self.prediction[self.prediction.size - estimate.base.size :] - estimate.values.sum(axis=0)
        numbers = (
            base,
            estimate.values,
            estimate.errors,
            estimate.alone,
            estimate.last,
            np.array(0),
            estimate.base_errors,
        )
        account = RowContributions(*(np.asarray(number)[None] for number in numbers))
        return account if estimate.base.size == self.prediction.size else account.with_complement()


def _unlike(half: Floats, largest: float, possible: float, rounding: float) -> float:
    """Bound of what pairs may have missed: half a difference that few pairs have may be missed by as many."""
    away = np.abs(half - np.median(half)) if half.size else half
    if int((away > rounding).sum()) >= min(ENOUGH_ANSWERS, half.size // 2):
        return 0.0
    largest = max(2.0 * away.max(initial=0.0), largest)
    return 3.0 / 1.96 / half.size * (largest if largest > rounding else possible)


def _mask(columns: Ints, shape: tuple[int, ...]) -> Bools:
    """Which columns are among these, for each row."""
    return np.broadcast_to(np.isin(np.arange(shape[1]), columns), shape)


def scaled(answers: Floats) -> tuple[Floats, Floats]:
    """Answers in units, (n, k) and (k,), whose squares are numbers."""
    unit = np.abs(answers).max(axis=0, initial=0.0)
    unit = np.where(unit > 0, unit, 1.0)
    return answers / unit, unit


def row_weights(law: GameLaw, numbers: Floats) -> Floats:
    return law.weights if len(numbers) == law.weights.size else np.ones(1)


def _constant(level: Floats, m: int) -> Game:
    none = np.zeros((1, m, level.size))
    return Game(level[None], none, none, none)


def _embedded(game: Game, places: Ints, m: int) -> Game:
    """A game of some columns as one of all."""
    if game.values.shape[1] == m:
        return game

    def whole(numbers: Floats) -> Floats:
        padded = np.zeros((len(numbers), m, numbers.shape[2]))
        padded[:, places] = numbers
        return padded

    return Game(game.base, *map(whole, game[1:]))


def _least(scores: dict[str, float]) -> str:
    name, *others = scores
    for other in others:
        if scores[other] < _NEARLY_AS_GOOD * scores[name]:
            name = other
    return name


def wide_error_of_mean(numbers: Floats) -> Floats:
    """Standard errors of means of n independent numbers (n, m), which few large ones widen."""
    count = len(numbers)
    if count < 2:
        return np.full(numbers.shape[1], np.inf)
    errors = numbers.std(axis=0, ddof=1) / np.sqrt(count) * rarity_factors(numbers)
    return np.asarray(errors * student_factors(np.array(count - 1)))


def _sets(rng: np.random.Generator, count: int, m: int) -> Bools:
    """Sets (count, m) of sizes of `law_of_sizes`, a slice of it each."""
    below = np.cumsum(law_of_sizes(m, m))
    levels = (rng.permutation(count) + rng.random(count)) / count
    sizes = np.searchsorted(below, levels * below[-1], side="right")
    ranks = np.argsort(np.argsort(rng.random((count, m)), axis=1), axis=1)
    return np.asarray(ranks < np.clip(sizes, 1, m - 1)[:, None])


def weights_of_sets(kept: Bools, columns: Ints, games: Sequence[tuple[int, Ints]]) -> Floats:
    """a_j(S) of sets (n, d), for the m columns in the game, (n, m).

    Sets were drawn in games: a number of pairs, and the columns that sizes were drawn for, of which there are
    two or more, or none. All others were kept in half of the sets.
    """
    kept = kept[:, columns]
    n, m = kept.shape
    sizes = kept.sum(axis=1)
    inside = (sizes > 0) & (sizes < m)
    law, total = np.zeros(n), sum(pairs for pairs, _ in games)
    for pairs, its in games:
        members = np.isin(columns, its)
        count, sized = int(members.sum()), kept[:, members].sum(axis=1)
        shares = law_of_sizes(its.size, count) if count else np.ones(1)
        # of sets of a size, beside uniform sets
        odds = _log_choose(m, sizes) - _log_choose(count, sized) - (m - count) * np.log(2.0)
        law += pairs / max(total, 1) * shares[sized] * np.exp(odds)
    size, rest = np.where(inside, sizes, 1)[:, None], np.where(inside, m - sizes, 1)[:, None]
    weights = np.where(kept, 1.0 / size, -1.0 / rest) / np.where(inside, law, 1.0)[:, None]
    return np.where(inside[:, None], weights, 0.0)


def law_of_sizes(columns: int, m: int) -> Floats:
    """P(|S| = 0, ..., m) of the m columns in the game, of sets of all ``columns``."""
    s = np.arange(1, columns)
    share = 1.0 / np.sqrt(s * (columns - s))
    share /= share.sum()
    if m == columns:
        return np.concatenate([[0.0], share, [0.0]])
    inside = np.arange(m + 1)[:, None]
    possible = (inside <= s) & (s - inside <= columns - m)
    rest = np.where(possible, s - inside, 0)
    log = _log_choose(m, np.where(possible, inside, 0)) + _log_choose(columns - m, rest)
    log = log - _log_choose(columns, s)
    return np.asarray(np.where(possible, np.exp(log), 0.0) @ share)


def _log_choose(n: int, r: Ints) -> Floats:
    from scipy.special import gammaln

    return np.asarray(gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1))
