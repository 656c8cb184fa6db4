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
- *Columns that change nothing*: columns that answers follow are moved in a separate row each. All that do
  not change it are drawn anew at once in rows that were answered, every other one a row of which the control
  leaves much; where an answer changes, halves are drawn anew, until the column is found. Where answers in
  succession stay the same, the columns leave the game, and are drawn on both sides of all further pairs; the
  last calls look again, at the rows of which the control leaves most. Their contribution is 0, and its error
  the largest p A that no row tells against: p of the rule of three, an effect A in a share p of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from limes._arrays import DIFFERENCE_ROUNDING, Bools, Floats, Ints, are_complements
from limes._sampling.least_squares import ENOUGH_ANSWERS, UNSEEN, Tolerance, student_factors
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
from limes._shapley.starts import same
from limes._threads import one_blas_thread
from limes.models._calling.caller import Calls, PacedCalls
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
# Rows in which columns that change nothing are drawn anew at once, at first and in all; share of the calls
# for finding them; importance from which on a column is moved by itself
_TRIED, _CONFIRMED, _FOR_UNUSED, _IMPORTANT = 1, 14, 0.2, 0.03
# Share of the calls that is left for a last look at them, and most of these calls
_FOR_LAST_LOOK, _MOST_LAST_LOOK = 0.1, 80
# Draws, where answers repeat, as a multiple of the calls
_REPEATED = 8
# Growth between looks at the errors
_CAUTION, _LEAST_TIMES, _MOST_TIMES = 1.1, 1.5, 8.0
# Walks that are tried where all calls allow it, in pairs and as a share of the calls, and the factor by which
# errors of sets fall as their controls become better
_FEWEST_TRIED, _MOST_TRIED, _TRIAL, _GAIN = 8, 32, 0.1, 0.7
# A control is preferred to a simpler one if its score is below this multiple
_NEARLY_AS_GOOD = 0.95
# Rows that were answered before which a control is fitted to, at most
_MOST_BEFORE = 1024


class Before(NamedTuple):
    """Rows (n, d) of drawn values that were answered before, (n, k)."""

    x: Floats
    answers: Floats


@dataclass(frozen=True, eq=False)
class SetSampler:
    """Contributions at single rows: same seed and same row, same result."""

    walks: PermutationSampler  # whose options these are, and which does what is left of few calls

    def at(
        self,
        law: GameLaw,
        prediction: Floats,
        before: Before | None,
        spent: int,
        *,
        is_current: bool,
    ) -> RowContributions:
        """Contributions at the law's row, given f there (k,); ``spent`` calls were made before."""
        walks = self.walks
        most = walks.sampling.max_calls - spent
        d = int(law.varies.sum())
        is_walked = isinstance(law, OccurringDraws) and most >= _MANY_PAIRS * (2 * d - 1)
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
    """What controls leave of the rows that they were not fitted to, (n, k), and their games, by part."""

    rest: Floats
    games: Sequence[Game]
    everywhere: Sequence[Floats] = ()  # what each leaves of all rows

    @classmethod
    def of(
        cls, parts: list[Bools], rests: list[Floats], games: list[Game], everywhere: Sequence[Floats] = ()
    ) -> _Crossed:
        rest = np.zeros((len(parts[0]), rests[0].shape[1]))
        for out, its in zip(parts, rests, strict=True):
            rest[out] = its
        return cls(rest, games, everywhere)


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
    width: float | None = None
    spent: int = 0  # calls of walks that were tried
    used: set[int] = field(default_factory=set)  # columns that change answers
    looked: set[bytes] = field(default_factory=set)  # rows that columns which were left out do not change
    # what one column changes where it changes much, (k,)
    single: Floats = field(default_factory=lambda: np.zeros(0))
    rest: Floats = field(default_factory=lambda: np.zeros((0, 0)))  # what the control leaves of drawn rows

    @property
    def reserve(self) -> int:
        """Calls that are left for a last look at columns that were left out."""
        return min(int(_FOR_LAST_LOOK * self.most), _MOST_LAST_LOOK)

    @classmethod
    def of(
        cls,
        walks: PermutationSampler,
        law: GameLaw,
        prediction: Floats,
        before: Before | None,
        most: int,
    ) -> _Sampled:
        sampling = walks.sampling
        kind = PacedCalls if sampling.is_function else Calls
        calls = kind(
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
            before = Before(law.starts.background, law.starts.answers)
        if before is not None:
            some = np.unique(np.linspace(0, len(before.x) - 1, _MOST_BEFORE).astype(np.int64))
            x = before.x[some]
            none = np.zeros_like(x, dtype=np.bool_)
            answers = before.answers.reshape(len(before.x), -1)[some]
            one.before.append(_Draws(x, none, answers, np.full(len(x), -1)))
        return one

    def account(self) -> RowContributions:
        d, most = self.columns.size, self.most
        goal, drawn = min(max(_FIRST, _A_COLUMN * d), int(_FIRST_SHARE * most)), 0
        accuracy = self.walks.sampling.accuracy
        drawn += self._draw(goal)
        if self.walks.sampling.is_function:
            limit = min(most - self.reserve, len(self.calls) + int(_FOR_UNUSED * most))
            self._leave_out(_CONFIRMED, limit)
        goal = 2 * len(self.calls)
        while True:
            room = most - self.reserve - self.spent - len(self.calls)
            count = min(goal - len(self.calls), room, _REPEATED * most - drawn)
            drawn += self._draw(count) if count > 1 else 0
            is_last = room - count < 2 or drawn >= _REPEATED * most - 1 or count <= 1
            if is_last:
                self._look_again()
            of_game = self.estimate(is_last=is_last)
            estimate = self._with_unused(of_game)
            excess = estimate.excess(accuracy)
            if excess <= 1.0 and not is_last:
                estimate = self._with_unused(self.estimate(is_last=True) if self._look_again() else of_game)
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
        if pairs and self.columns.size > 1:
            kept[:, self.columns] = _sets(rng, pairs, self.columns.size)
        # columns that were left out are drawn on both sides: more rows would show what they change
        plays = np.isin(np.arange(d), self.columns)
        kept, other = kept & plays, ~kept & plays
        z = self.law.draw(rng, 2 * pairs)
        beside = self.law.draw(rng, for_base) if for_base else None
        sides = [
            np.where(its | ~self.law.varies, self.law.row, drawn)
            for its, drawn in ((kept, z[:pairs]), (other, z[pairs:]))
        ]
        questions = np.concatenate([*sides, *([] if beside is None else [beside])])
        answers = self._answers(questions) if len(questions) else np.zeros((0, self.prediction.size))
        part = (sum(size for size, _ in self.games) + np.arange(pairs)) % _PARTS
        self.pairs.append(
            (
                _Draws(sides[0], kept, answers[:pairs], part),
                _Draws(sides[1], other, answers[pairs : 2 * pairs], part),
            )
        )
        self.games.append((pairs, self.columns))
        if beside is not None:
            part = (sum(len(its.x) for its in self.others) + np.arange(for_base)) % _PARTS
            none = np.zeros_like(beside, dtype=np.bool_)
            self.others.append(_Draws(beside, none, answers[2 * pairs :], part))
        return len(questions)

    def _look_again(self) -> bool:
        room = min(self.reserve, self.most - self.spent - len(self.calls))
        return self.walks.sampling.is_function and room > 0 and self._leave_out(room, len(self.calls) + room)

    def _leave_out(self, enough: int, limit: int) -> bool:
        """Find columns that change nothing, and play without them: whether the game is another one."""
        rows, before = self._rows(), self.columns
        importance, rest = self._importance(rows)
        likely = self.columns[importance > _IMPORTANT * importance.max(initial=0.0)]
        self._find_used(rows, np.setdiff1d(likely, sorted(self.used)), limit)
        varies = np.flatnonzero(self.law.varies)
        by_importance = self.columns[np.argsort(-importance, kind="stable")]
        order = np.concatenate([by_importance, np.setdiff1d(varies, self.columns)])
        order = order[~np.isin(order, sorted(self.used))]
        if not order.size:
            return False
        movers, unchanged = self._tried(rows, order, rest, enough, limit)
        self.used |= movers
        unused = np.setdiff1d(order, sorted(movers)) if unchanged >= min(enough, _CONFIRMED) else order[:0]
        self.columns = np.setdiff1d(varies, unused)
        return not np.array_equal(self.columns, before)

    def _find_used(self, rows: _Draws, columns: Ints, limit: int) -> None:
        """Find those that change an answer, each in a separate row."""
        count = min(columns.size, limit - len(self.calls))
        if count < 1:
            return
        columns = columns[:count]
        start = rows.take(self.rng.choice(np.flatnonzero(rows.part >= 0), count))
        each = np.arange(count), columns
        kept = start.kept.copy()
        kept[each] = ~kept[each]
        x = start.x.copy()
        x[each] = np.where(kept[each], self.law.row[columns], self.law.draw(self.rng, count)[each])
        moved = _Draws(x, kept, self._answers(x), start.part)
        self.trials.append(moved)
        changed = (np.abs(moved.answers - start.answers) > self._rounding(rows)).any(axis=1)
        self.used |= set(columns[changed].tolist())

    def _rounding(self, rows: _Draws) -> Floats:
        size = np.maximum(np.abs(rows.answers).max(axis=0), np.abs(self.prediction))
        return np.asarray(DIFFERENCE_ROUNDING * size)

    def _tried(
        self, rows: _Draws, candidates: Ints, rest: Floats, enough: int, limit: int
    ) -> tuple[set[int], int]:
        """Candidates that change answers, and in how many rows in succession the others did not.

        Every other row is one of those whose ``rest`` (n,) is largest. It is 0 rows where calls run out.
        """
        rounding = self._rounding(rows)
        fresh = np.flatnonzero(rows.part >= 0)
        fresh = fresh[[x.tobytes() not in self.looked for x in rows.x[fresh]]]
        outliers, others = fresh[np.argsort(-rest[fresh], kind="stable")], self.rng.permutation(fresh)
        places = list(dict.fromkeys(np.stack([outliers, others], axis=1).ravel().tolist()))
        used, unchanged = set[int](), 0
        while unchanged < enough and places:
            tested = np.array([j for j in candidates.tolist() if j not in used], dtype=np.int64)
            count = min(_TRIED if not unchanged else enough - unchanged, len(places))
            count = min(count, limit - len(self.calls))
            if not tested.size or count < 1:
                break
            some, places = np.array(places[:count]), places[count:]
            start = rows.take(some)
            kept = (self.rng.random(start.x.shape) < 0.5) & self.law.varies
            to = np.where(kept, self.law.row, self.law.draw(self.rng, count))
            moved = self._moved(start, to, kept, tested, np.full(count, tested.size))
            changed = (np.abs(moved.answers - start.answers) > rounding).any(axis=1)
            self.looked |= {x.tobytes() for x in start.x[~changed]}
            unchanged = 0 if changed.any() else unchanged + count
            movers = self._movers(start, to, kept, tested, np.flatnonzero(changed), rounding, limit)
            if changed.any() and not movers:
                return used, 0
            used |= movers
        return used, unchanged

    def _moved(self, start: _Draws, to: Floats, kept: Bools, columns: Ints, steps: Ints) -> _Draws:
        """Rows with the first ``steps`` of these columns moved, and their answers."""
        moves = np.zeros(start.x.shape, dtype=np.bool_)
        moves[:, columns] = np.arange(columns.size) < steps[:, None]
        x, its = np.where(moves, to, start.x), np.where(moves, kept, start.kept)
        # in the part of the rows that they are like
        moved = _Draws(x, its, self._answers(x), start.part)
        self.trials.append(moved)
        return moved

    def _movers(
        self, start: _Draws, to: Floats, kept: Bools, columns: Ints, at: Ints, rounding: Floats, limit: int
    ) -> set[int]:
        """A column for each row ``at`` these places that changes its answer, by halves."""
        lower, upper = np.zeros(at.size, dtype=np.int64), np.full(at.size, columns.size)
        some = start.take(at)
        low = some.answers.copy()
        while (open_ := upper - lower > 1).any():
            if len(self.calls) + open_.sum() > limit:
                return set()
            its = np.flatnonzero(open_)
            middle = (lower[its] + upper[its]) // 2
            part = some.take(its)
            moved = self._moved(part, to[at[its]], kept[at[its]], columns, middle)
            changed = (np.abs(moved.answers - low[its]) > rounding).any(axis=1)
            upper[its[changed]] = middle[changed]
            lower[its[~changed]] = middle[~changed]
            low[its[~changed]] = moved.answers[~changed]
        return set(columns[lower].tolist())

    def _importance(self, rows: _Draws) -> tuple[Floats, Floats]:
        """How much columns matter, (m,), and what they leave of rows, (n,)."""
        functions, places = self._functions(rows)
        importance, rest = np.zeros(self.columns.size), np.zeros(len(rows.x))
        if np.ptp(rows.answers, axis=0).any():
            values, answers = functions(rows.x, rows.kept), _scaled(rows.answers)[0]
            for fitted in SumOfPairs.fit(functions, values, answers):
                importance[places] += fitted.importance
                rest = np.abs(answers - fitted.predict(values)).max(axis=1)
        return importance, rest

    # -- estimates -------------------------------------------------------------------------------------------

    def _rows(self) -> _Draws:
        """All rows: of one side of the pairs, of the other side, of the base, and others."""
        sides = [[both[i] for both in self.pairs] for i in (0, 1)]
        many = [*sides[0], *sides[1], *self.others, *self.trials, *self.before]
        return _Draws.joined(many, self.law.row.size, self.prediction.size)

    def _functions(self, rows: _Draws) -> tuple[ColumnFunctions, Ints]:
        """Functions of the columns in the game, or of those that answers follow most, and their places."""
        functions = ColumnFunctions(self.law, self.columns)
        values = functions(rows.x, rows.kept)
        places = likely_columns(values, functions.column, rows.answers)
        if places.size < self.columns.size:
            functions = ColumnFunctions(self.law, self.columns[places])
        return functions, places

    def _has_all(self, game: tuple[int, Ints]) -> bool:
        """Whether its sets are of all columns that are in the game now."""
        return bool(np.isin(self.columns, game[1]).all())

    def _weights(self, kept: Bools) -> Floats:
        """a_j(S) of sets (n, m), by the mixed law of their sizes."""
        n, m = kept.shape
        if m < 2:
            return np.zeros((n, m))
        sizes = kept.sum(axis=1)
        games = [game for game in self.games if self._has_all(game)]
        total = sum(pairs for pairs, _ in games)
        law = sum(pairs / total * law_of_sizes(columns.size, m) for pairs, columns in games)
        inside = (sizes > 0) & (sizes < m)
        size = np.where(inside, sizes, 1)[:, None]
        rest = np.where(inside, m - sizes, 1)[:, None]
        weights = np.where(kept, 1.0 / size, -1.0 / rest) / np.asarray(law)[size]
        return np.where(inside[:, None], weights, 0.0)

    def estimate(self, *, is_last: bool) -> _Estimate:
        """Contributions by all answers so far."""
        rows = self._rows()
        answers, prediction = rows.answers, self.prediction
        if are_complements(np.concatenate([answers, prediction[None]])):
            rows, prediction = rows._replace(answers=answers[:, 1:]), prediction[1:]
        scaled, unit = _scaled(rows.answers)
        pairs = sum(size for size, _ in self.games)
        crossed = self._cross_fitted(rows._replace(answers=scaled))
        self.single = self.single * unit
        estimate = self._combined(rows, crossed, unit, prediction, pairs)
        excess = self._with_unused(estimate).excess(self.walks.sampling.accuracy)
        if is_last and excess > 1.0 and self.columns.size > 1 and "pairs" in crossed:
            crossed |= self._with_rest(rows._replace(answers=scaled), crossed)
            estimate = self._combined(rows, crossed, unit, prediction, pairs)
        return estimate

    def _cross_fitted(self, rows: _Draws) -> dict[str, _Crossed]:
        """What each quick control leaves where it was not fitted."""
        answers, m = rows.answers, self.columns.size
        parts = [rows.part == part for part in range(_PARTS)]
        levels = [answers[~out].mean(axis=0) for out in parts]
        self.single = np.zeros(answers.shape[1])
        games = [_constant(level, m) for level in levels]
        kinds = {
            "none": _Crossed.of(
                parts, [answers[out] - level for out, level in zip(parts, levels, strict=True)], games
            )
        }
        if not m or not np.ptp(answers, axis=0).any():
            return kinds
        functions, places = self._functions(rows)
        values = functions(rows.x, rows.kept)
        fits = [SumOfPairs.fit(functions, values[~out], answers[~out]) for out in parts]
        self.single = fits[0][1].changes(values)
        for name, its in zip(("columns", "pairs"), zip(*fits, strict=True), strict=True):
            predicted = [one.predict(values) for one in its]
            rests = [answers[out] - p[out] for out, p in zip(parts, predicted, strict=True)]
            games = [_embedded(one.game(), places, m) for one in its]
            everywhere = [answers - p for p in predicted]
            kinds[name] = _Crossed.of(parts, rests, games, everywhere)
        return kinds

    def _with_rest(self, rows: _Draws, crossed: dict[str, _Crossed]) -> dict[str, _Crossed]:
        """Controls of what sums of pairs leave."""
        law, pairs = self.law, crossed["pairs"]
        columns = self._functions(rows)[1]
        used = self.columns[columns]
        parts = [rows.part == part for part in range(_PARTS)]
        # both kinds are fitted without the first part, and the one that leaves less of it without the others
        before = (pairs.rest[parts[0]] ** 2).sum(axis=0)
        first: dict[str, tuple[float, Any]] = {}
        fits: dict[str, Callable[[Floats, Floats], Any]] = {}

        def fitted_to(name: str, i: int) -> Any:
            return fits[name](rows.x[~parts[i]], pairs.everywhere[i][~parts[i]])

        def rest_of(fitted: Any, i: int) -> Floats:
            return np.asarray(pairs.everywhere[i][parts[i]] - fitted.predict(rows.x[parts[i]]))

        def add(name: str, fit: Callable[[Floats, Floats], Any]) -> None:
            fits[name] = fit
            fitted = fitted_to(name, 0)
            if fitted is not None:
                share = (rest_of(fitted, 0) ** 2).sum(axis=0) / np.where(before > 0, before, 1.0)
                first[name] = float(share.min()), fitted

        def bumps(x: Floats, y: Floats) -> Bumps:
            fitted, self.width = Bumps.fit(law, used, x, y, self.width)
            return fitted

        if bumps_fit(law, used):
            self.width = None
            add("bumps", bumps)
        if law.starts.omitted is None:
            add("trees", partial(BoostedGame.fit, law, used))
        if not first:
            return {}
        best = min(first, key=lambda name: first[name][0])
        if first[best][0] >= _NEARLY_AS_GOOD:
            return {}
        fitted = [first[best][1], *(fitted_to(best, i) for i in range(1, _PARTS))]
        rests = [rest_of(its, i) for i, its in enumerate(fitted)]
        games = [
            game.plus(_embedded(its.game(), columns, self.columns.size))
            for its, game in zip(fitted, pairs.games, strict=True)
        ]
        return {best: _Crossed.of(parts, rests, games)}

    def _combined(
        self,
        rows: _Draws,
        crossed: dict[str, _Crossed],
        unit: Floats,
        prediction: Floats,
        pairs: int,
    ) -> _Estimate:
        law, m, k = self.law, self.columns.size, prediction.size
        drawn = 2 * pairs + sum(len(its.x) for its in self.others)
        # pairs whose sets are of all columns in the game
        sizes = [size for size, _ in self.games]
        usable = np.flatnonzero(np.repeat([self._has_all(game) for game in self.games], sizes))
        weights = self._weights(rows.kept[usable][:, self.columns])
        square = (weights**2).sum(axis=1)
        halves = {name: 0.5 * (its.rest[usable] - its.rest[usable + pairs]) for name, its in crossed.items()}
        parts = np.bincount(rows.part[usable], minlength=_PARTS) / max(usable.size, 1)
        pairs = usable.size
        # rows of which nothing in the game is kept follow the law
        at_base = np.flatnonzero(~rows.kept[:drawn, self.columns].any(axis=1))
        scores = {name: square @ its**2 for name, its in halves.items()}
        of_base = {name: (its.rest[at_base] ** 2).sum(axis=0) for name, its in crossed.items()}
        result = _Estimate(*(np.zeros(k) for _ in range(2)), *(np.zeros((m, k)) for _ in range(4)))
        self.rest = np.zeros((drawn, k))
        rounding = DIFFERENCE_ROUNDING * np.maximum(np.abs(rows.answers).max(axis=0), np.abs(prediction))
        for o in range(k):
            if isinstance(law, OccurringDraws):
                base, base_error = float(law.weights @ law.starts.answers[:, o - k]), 0.0
            else:
                its = crossed[_least(of_base, o)]
                rest = its.rest[at_base, o]
                of_part = np.bincount(rows.part[at_base], minlength=_PARTS) / len(rest)
                mean = sum(
                    p * float(law.weights @ game.base[:, o])
                    for p, game in zip(of_part, its.games, strict=True)
                )
                base = float(mean + rest.mean()) * unit[o]
                # what is rare may be met in other rows alone
                every = _error_of_mean(its.rest[:drawn, o][:, None]) * np.sqrt(drawn / len(rest))
                base_error = float(np.maximum(_error_of_mean(rest[:, None]), every)[0]) * unit[o]
            name = _least(scores, o)
            self.rest[:, o] = crossed[name].rest[:drawn, o] * unit[o]
            half, games = halves[name][:, o], crossed[name].games
            psi = weights * half[:, None]
            values, alone, last = (
                sum(
                    p * np.tensordot(_row_weights(law, getattr(game, which)), getattr(game, which)[..., o], 1)
                    for p, game in zip(parts, games, strict=True)
                )
                * unit[o]
                for which in ("values", "alone", "last")
            )
            phi = values + psi.mean(axis=0) * unit[o] if pairs else values
            phi = phi + (prediction[o] - base - phi.sum()) / max(m, 1)
            phi[np.abs(phi) <= rounding[o]] = 0.0
            errors = (
                np.hypot(_error_of_mean(psi) * unit[o], base_error / max(m, 1))
                if m > 1
                else np.full(m, base_error)
            )
            # half a difference that few pairs have may be missed by as many
            away = np.abs(half - np.median(half)) * unit[o]
            unlike = int((away > rounding[o]).sum())
            if unlike < min(ENOUGH_ANSWERS, pairs // 2):
                largest = max(
                    2.0 * away.max(initial=0.0), float(np.abs(rows.answers[:, o] - prediction[o]).max())
                )
                if largest <= rounding[o]:
                    largest = 1.0 if 0.0 <= prediction[o] <= 1.0 else np.inf
                bound = 3.0 / 1.96 / pairs * largest
                errors = np.maximum(errors, bound)
                base_error = max(base_error, bound) if isinstance(law, IndependentDraws) else base_error
            errors = np.hypot(errors, law.rounding * np.abs(phi).max(initial=0.0))
            omitted = law.starts.omitted
            if omitted is not None:
                rows_phi = (
                    sum(p * game.values[..., o] for p, game in zip(parts, games, strict=True)) * unit[o]
                )
                away = rows_phi - law.weights @ rows_phi
                variance = omitted.share * (law.weights @ away**2) / omitted.effective
                errors = np.hypot(errors, np.sqrt(variance))
                base_error = float(np.hypot(base_error, np.sqrt(omitted.base[o - k])))
            result.base[o], result.base_errors[o] = base, base_error
            result.values[:, o], result.errors[:, o] = phi, errors
            result.alone[:, o], result.last[:, o] = alone + phi - values, last + phi - values
        return result

    def _with_unused(self, result: _Estimate) -> _Estimate:
        """The same for all columns."""
        d, k = self.law.row.size, result.base.size
        values, errors, alone, last = (np.zeros((d, k)) for _ in range(4))
        unused = np.setdiff1d(np.flatnonzero(self.law.varies), self.columns)
        errors[unused] = self._unseen(unused) if self.columns.size else result.base_errors
        for total, its in (
            (values, result.values),
            (errors, result.errors),
            (alone, result.alone),
            (last, result.last),
        ):
            total[self.columns] = its
        noise = self.walks.sampling.spread
        moving = self.columns if self.columns.size else unused
        errors[moving] = np.hypot(errors[moving], noise / max(moving.size, 1))
        return _Estimate(result.base, np.hypot(result.base_errors, noise), values, errors, alone, last)

    def _unseen(self, unused: Ints) -> Floats:
        """Errors (u, k) of columns that were left out: what they may change in rows that tell nothing of it.

        Nothing of size A happened in a row that was looked at, nor where the control leaves less than half of
        A, unless what it leaves otherwise makes up for it. So many rows bound the share in which it happens.
        """
        rows, k = self._rows(), self.rest.shape[1]
        x, answers = rows.x[: len(self.rest)], rows.answers[:, -k:]
        drawn = (~same(x[:, unused], self.law.row[unused])).mean(axis=0)[:, None]
        is_looked = np.array([row.tobytes() in self.looked for row in x])
        rests = np.sort(np.abs(self.rest[~is_looked]), axis=0)
        count = np.arange(len(rests))[:, None] ** 2 / max(len(rests), 1)
        largest = np.minimum(self.single, np.abs(answers - self.prediction[-k:]).max(axis=0))
        sizes = np.concatenate([np.minimum(2.0 * rests, np.abs(answers).max(axis=0) * 2.0), largest[None]])
        counts = np.concatenate([count, [[len(rests)]]])
        bounds = sizes / np.maximum(is_looked.sum() + drawn[:, :, None] * counts, 1.0)
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


def _scaled(answers: Floats) -> tuple[Floats, Floats]:
    """Answers in units, (n, k) and (k,), whose squares are numbers."""
    unit = np.abs(answers).max(axis=0, initial=0.0)
    unit = np.where(unit > 0, unit, 1.0)
    return answers / unit, unit


def _row_weights(law: GameLaw, numbers: Floats) -> Floats:
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


def _least(scores: dict[str, Floats], output: int) -> str:
    name, *others = scores
    for other in others:
        if scores[other][output] < _NEARLY_AS_GOOD * scores[name][output]:
            name = other
    return name


def _error_of_mean(numbers: Floats) -> Floats:
    """Standard errors of means of n independent numbers (n, m), which few large ones widen."""
    count = len(numbers)
    if count < 2:
        return np.full(numbers.shape[1], np.inf)
    away = (numbers - numbers.mean(axis=0)) ** 2
    total, fourth = away.sum(axis=0), (away**2).sum(axis=0)
    rarity = np.divide(fourth, total**2, out=np.zeros_like(total), where=total**2 > 0)
    variance = total / (count - 1) / count
    return np.asarray(np.sqrt(variance * (1.0 + UNSEEN * rarity)) * student_factors(np.array(count - 1)))


def _sets(rng: np.random.Generator, count: int, m: int) -> Bools:
    """Sets (count, m) of sizes of `law_of_sizes`, a slice of it each."""
    below = np.cumsum(law_of_sizes(m, m))
    levels = (rng.permutation(count) + rng.random(count)) / count
    sizes = np.searchsorted(below, levels * below[-1], side="right")
    ranks = np.argsort(np.argsort(rng.random((count, m)), axis=1), axis=1)
    return np.asarray(ranks < np.clip(sizes, 1, m - 1)[:, None])


def law_of_sizes(columns: int, m: int) -> Floats:
    """P(|S| = 0, ..., m) of the m columns in the game, of sets of all ``columns``."""
    if columns < 2:
        return np.full(m + 1, 1.0 / (m + 1))
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
