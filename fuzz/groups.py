"""Groups of columns of a case: against the games of the model's own answers, whose players are whole groups.

A group that is not kept has the values of one row of the background, as a whole: all rows count 1 in whose
cells the explained row is, column by column, and the others e^{-1/(2ν²)}. Compared are contributions, alone,
last, pairs, the base, and how the columns of a group share its contribution. That is Shapley's value of

    Q(S) = Σ_H |H|! (G - 1 - |H|)! / G! · v(H ∪ S),     S ⊆ the group,

over all sets H of the other players, where columns of the group beside S have the values of one row.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from math import comb
from typing import Any, ClassVar

import numpy as np

from fuzz.accounts import AccountCase, AccountTrial, Numbers, game_of, shapley
from fuzz.answers import EXACT, Answers
from fuzz.grid import Truth
from fuzz.options import Options, draw_groups
from fuzz.pairs import PairNumbers, indices_of
from fuzz.tables import TooLargeError, Trial
from fuzz.verdict import Verdict

Array = Any

# Answers of the grid of one row, of the columns' contributions and of how the columns of groups share them
_LARGEST, _FINEST = 60_000, 1_000_000
# Answers that the model gives at once
_BATCH = 60_000


@dataclass(frozen=True)
class GroupCase(AccountCase):
    """A case of a table whose groups are compared."""

    prints: ClassVar[str] = "*[its.tolist() for its in (lambda c: (c.values, c.alone, c.last, c.pairs))" + (
        "(explanation.contributions)]"
    )

    def run(self) -> GroupTrial:
        """Run the case's script."""
        return GroupTrial.of(self)

    def options(self, rng: Any, trial: Trial) -> Options:
        """A set of options with groups, which slopes do not have."""
        options = super().options(rng, trial)
        if options.bins is None:
            options = replace(options, bins="quartile", law="empirical")
        return replace(options, groups=draw_groups(rng, trial.background.matrix.shape[1]))


class GroupTrial(AccountTrial):
    """A case that was run."""

    def numbers(self, explanation: Any, options: Options) -> Numbers:
        account = explanation.contributions
        numbers = Numbers.of(explanation, account)
        if account.standard_errors.any():
            return numbers
        n, d = numbers.values.shape[:2]
        pairs = account.pairs.reshape(n, d, d, -1)
        indices = 2.0 * pairs * ~np.eye(d, dtype=bool)[:, :, None]
        parts = [numbers.stacked, indices.reshape(n, d * d, -1)]
        # under the joint law orders of a group's columns are drawn
        for g, its in enumerate(options.players(self.background.matrix.shape[1])):
            if its in options.groups and options.law != "joint":
                shares = account.within(g)
                if shares.standard_errors.any():  # of a function whose few rows are all there are
                    return replace(numbers, sampled=True)
                parts.append(shares.values.reshape(n, len(its), -1))
        return GroupNumbers(
            np.concatenate(parts, axis=1), numbers.base, numbers.predictions, numbers.sampled, pairs
        )

    def rounding(self, answers: Answers, options: Options, rows: Array) -> float:
        # four answers in single precision are subtracted
        single = 0.0 if answers.slope == EXACT else answers.slope
        return super().rounding(answers, options, rows) + single

    def _truth(
        self, answers: Answers, options: Options, rows: Array, widths: Array, largest: int = _LARGEST
    ) -> Truth:
        players = options.players(rows.shape[1])
        stacked, base, size = [], [], 0.0
        largest = max(largest, _LARGEST)
        for row in rows:
            if options.law == "joint":
                game, most = self._joint_of(answers, options, row, players)
                shares: list[Array] = []
            else:
                laws = [self._player(its, options, row, widths, len(players)) for its in players]
                game, most = self._game(answers, row, players, laws, largest)
                shares = [
                    self._within_group(answers, row, players, laws, g, largest)
                    for g, its in enumerate(players)
                    if its in options.groups
                ]
            parts = [np.concatenate(shapley(game)), indices_of(game).reshape(-1, game.shape[-1]), *shares]
            stacked.append(np.concatenate(parts))
            base.append(game[(0,) * len(players)])
            size = max(size, most)
        return Truth(np.stack(stacked), np.stack(base), size)

    def _player(
        self, its: tuple[int, ...], options: Options, row: Array, widths: Array, count: int
    ) -> tuple[Array, Array]:
        """Values (p, columns) that a player has where it is not kept, and their probabilities."""
        laws, nu = self.laws(options), options.nu(count)
        if its not in options.groups:
            (j,) = its
            values, mass = self._column(j, laws[j], float(row[j]), options.kind, nu, widths)
            return values[:, None], mass
        matrix = self.background.matrix
        same = np.ones(len(matrix), dtype=bool)
        for j in its:
            same &= np.array([laws[j].locate(x) for x in matrix[:, j]]) == laws[j].locate(float(row[j]))
        weights = _shares(~same, nu)
        values, place = np.unique(matrix[:, its], axis=0, return_inverse=True)
        return values, np.bincount(place.reshape(-1), weights, len(values))

    def _ask(
        self, answers: Answers, players: list[tuple[int, ...]], values: list[Array], largest: int
    ) -> Array:
        """Answers at all combinations of the players' values, (p_1, ..., p_G, k)."""
        shape = tuple(len(each) for each in values)
        if np.prod(shape, dtype=float) > largest:
            raise TooLargeError(f"a grid of {shape}")
        places = np.stack([each.ravel() for each in np.indices(shape)], axis=1)
        rows = np.empty((len(places), sum(map(len, players))))
        for its, each, place in zip(players, values, places.T, strict=True):
            rows[:, its] = each[place]
        parts = [
            answers.ask(self.background.table(rows[i : i + _BATCH])) for i in range(0, len(rows), _BATCH)
        ]
        return np.concatenate(parts).reshape(*shape, -1)

    def _game(
        self,
        answers: Answers,
        row: Array,
        players: list[tuple[int, ...]],
        laws: list[tuple[Array, Array]],
        largest: int,
    ) -> tuple[Array, float]:
        """v of all sets of players, (2, ..., 2, k), and the largest answer."""
        values = [
            np.concatenate([each, row[None, its]]) for its, (each, _) in zip(players, laws, strict=True)
        ]
        grid = self._ask(answers, players, values, largest)
        return game_of(grid, [mass for _, mass in laws]), float(np.abs(grid).max())

    def _within_group(
        self,
        answers: Answers,
        row: Array,
        players: list[tuple[int, ...]],
        laws: list[tuple[Array, Array]],
        group: int,
        largest: int,
    ) -> Array:
        """How the columns of a player share its contribution, (m, k)."""
        its, (drawn, mass) = players[group], laws[group]
        others = len(players) - 1
        inside = []
        for kept in itertools.product((False, True), repeat=len(its)):
            mixed = np.where(kept, row[[*its]], drawn)
            values, place = np.unique(mixed, axis=0, return_inverse=True)
            weights = np.bincount(place.reshape(-1), mass, len(values))
            game, _ = self._game(
                answers, row, players, [*laws[:group], (values, weights), *laws[group + 1 :]], largest
            )
            mean = np.zeros(game.shape[-1])
            for sets in itertools.product((0, 1), repeat=others):
                weight = 1.0 / ((others + 1) * comb(others, sum(sets)))
                mean += weight * game[(*sets[:group], 0, *sets[group:])]
            inside.append(mean)
        return shapley(np.array(inside).reshape(*(2,) * len(its), -1))[0]

    def _joint_of(
        self, answers: Answers, options: Options, row: Array, players: list[tuple[int, ...]]
    ) -> tuple[Array, float]:
        """v of all sets of players by the background's rows, whose players in another cell count."""
        matrix, laws = self.background.matrix, self.laws(options)
        other = np.stack(
            [
                np.array([law.locate(value) for value in column]) != law.locate(float(x))
                for law, column, x in zip(laws, matrix.T, row, strict=True)
            ],
            axis=1,
        )
        changed = sum(other[:, its].any(axis=1).astype(int) for its in players)
        weights = _shares(changed, options.nu(len(players)))
        games = []
        for kept in itertools.product((False, True), repeat=len(players)):
            mixed = matrix.copy()
            for its, keep in zip(players, kept, strict=True):
                if keep:
                    mixed[:, its] = row[[*its]]
            games.append(answers.ask(self.background.table(mixed)))
        game = np.einsum("n,snk->sk", weights, np.stack(games))
        return game.reshape(*(2,) * len(players), -1), float(np.abs(games).max())


def _shares(changed: Array, bandwidth: float) -> Array:
    """Weights e^{-changes/(2ν²)} that add up to 1."""
    changed = np.asarray(changed, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.nan_to_num(-0.5 * (changed - changed.min()) / np.float64(bandwidth) ** 2)
    return np.exp(log) / np.exp(log).sum()


@dataclass(frozen=True)
class GroupNumbers(PairNumbers):
    """Contributions, alone and last, indices, and shares within groups, one after the other (n, ., k)."""

    def fair(self, truth: Truth, answers: Answers) -> Verdict | None:
        """A fault where pairs or shares do not add up, or equal groups have unequal contributions."""
        d = self.pairs.shape[1]
        plain = Numbers(self.stacked[:, : 3 * d], self.base, self.predictions, self.sampled)
        expected = Truth(truth.beta[:, : 3 * d], truth.start, truth.size)
        return super().fair(truth, answers) or plain.fair(expected, answers)
