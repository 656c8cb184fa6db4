"""Contributions of a case: against the Shapley values of the model's own answers at all coalitions.

v(S) is the mean answer where the columns of S have the row's values: over the grid of points of the other
columns, or, of the joint law, over the background's rows. Beside that oracle

- base and contributions add up to the prediction, whether exact or sampled;
- columns that change no answer on the grid have none;
- columns that the game treats alike have equal ones.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import partial
from math import comb
from typing import Any, ClassVar

import numpy as np

import limes
from fuzz.answers import EXACT, Answers, answers_of
from fuzz.grid import Truth, part_of, settled
from fuzz.nodes import quadrature
from fuzz.options import Options
from fuzz.tables import TableCase, Trial, rounding_of
from fuzz.verdict import CRASH, MISMATCH, NOT_FINITE, SAMPLED, SKIPPED, VANISHING, Verdict, compare

Array = Any

# Answers of the grid of one row, and of one whose panels were halved
_LARGEST, _FINEST = 30_000, 1_000_000
# What columns that the model ignores may get, and by how much equal ones may differ, of the largest answer
_NONE, _ALIKE = 1e-12, 1e-9
# Rounding of the model's own answers, of which contributions are differences, of the largest
_SUMS = 1e-11


@dataclass(frozen=True)
class AccountCase(TableCase):
    """A case of a table whose contributions are compared.

    The first two columns of ``twins`` have the same values.
    """

    twins: bool = False

    prints: ClassVar[str] = "*[getattr(explanation.contributions, name).tolist() for name in " + (
        "('values', 'alone', 'last', 'base_values')]"
    )

    @classmethod
    def of(cls, case: TableCase, *, twins: bool = False) -> AccountCase:
        """The same case."""
        return cls(**vars(case), twins=twins)

    def run(self) -> AccountTrial:
        """Run the case's script."""
        return AccountTrial.of(self)

    def options(self, rng: Any, trial: Trial) -> Options:
        """A set of options, at times with the joint law."""
        options = super().options(rng, trial)
        cut = options.bins is not None and options.weights == "bins"
        # the joint law has cells of columns, too, that a model which takes them for categories ignores
        return replace(options, law="joint", named=True) if cut and rng.random() < 0.3 else options

    def rows(self, rng: Any, trial: Trial, count: int) -> Array:
        """Rows to explain."""
        rows = super().rows(rng, trial, count)
        if self.twins:
            rows[:, 1] = rows[:, 0]
        return rows


def game_of(grid: Array, masses: list[Array]) -> Array:
    """v of all coalitions, (2, ..., 2, k), by answers to drawn values of each player, and last the row's."""
    game = grid
    for j, mass in enumerate(masses):
        sides = np.zeros((2, mass.size + 1))
        sides[0, :-1], sides[1, -1] = mass, 1.0
        game = np.moveaxis(np.tensordot(sides, game, (1, j)), 0, j)
    return game


class AccountTrial(Trial):
    """A case that was run."""

    def numbers(self, explanation: Any, options: Options) -> Numbers:  # noqa: ARG002 - of any
        """Return what the library says."""
        return Numbers.of(explanation, explanation.contributions)

    def of_game(self, game: Array) -> Array:
        """The same of v over all coalitions (2, ..., 2, k): contributions, alone, and last, (3 d, k)."""
        return np.concatenate(shapley(game))

    def _checked(self, options: Options, rows: Array) -> Verdict:
        if self.case.shape == "draws" or rows.shape[1] > 6:
            return Verdict(SKIPPED, detail="no grid")
        rows = self._within(options, rows)
        tables = self.background.table(rows)
        try:
            numbers = self.numbers(self._explained(options, tables), options)
        except limes.exceptions.LimesError as error:
            return self._after(error, options, tables)
        except Exception as error:  # noqa: BLE001 - any other error is a fault of the library
            return Verdict(CRASH, len(rows), f"{type(error).__name__}: {error}", 0)
        answers = self._answers(options, self.background.table(self.background.matrix[:200]))
        wrong = numbers.adds_up(answers)
        if wrong is not None or numbers.sampled:
            return wrong or Verdict(SAMPLED)
        return self._judged(numbers, answers, options, rows)

    def _explained(self, options: Options, tables: Any) -> Any:
        """The explanation of rows that is checked."""
        return self.explainer(options)(tables, progress=False)

    def _answers(self, options: Options, sample: Any) -> Answers:
        """How the answers are got that it is about."""
        return answers_of(self.model, options.output, sample)

    def rounding(self, answers: Answers, options: Options, rows: Array) -> float:  # noqa: ARG002 - of any
        """How far rounding moves what is compared, of the largest answer."""
        far = np.nanmax(np.abs(self.background.matrix), axis=0)
        return _SUMS + rounding_of(self.laws(options), far, options.nu(rows.shape[1]))

    def _judged(self, numbers: Numbers, answers: Answers, options: Options, rows: Array) -> Verdict:
        rounding = self.rounding(answers, options, rows)

        def judge(values: Array, base: Array, truth: Truth, share: float = 1.0) -> Verdict:
            return compare(
                values,
                base,
                *truth,
                slope=share * answers.slope,
                level=share * max(answers.slope, answers.level),
                rounding=rounding,
            )

        games = partial(self._truth, answers, options, rows)
        truth = games(self.widths)
        verdict = judge(numbers.stacked, numbers.base, truth)
        if verdict.kind == MISMATCH and self.case.shape == "smooth" and options.law != "joint":
            truth = settled(truth, self.widths, partial(games, largest=_FINEST), judge)
            verdict = judge(numbers.stacked, numbers.base, truth)
        return verdict if verdict.fault else numbers.fair(truth, answers) or verdict

    def laws(self, options: Options) -> list[Any]:
        """Each column's law, the background's values unless one is named; of the joint law, its cells."""
        if options.law == "joint":
            return super().laws(replace(options, law="truncnorm"))
        return super().laws(replace(options, law="empirical") if options.law == "truncnorm" else options)

    def _truth(
        self, answers: Answers, options: Options, rows: Array, widths: Array, largest: int = _LARGEST
    ) -> Truth:
        """Return what `of_game` says of all rows, and the base, (n, k)."""
        games, size = [], 0.0
        for row in rows:
            if options.law == "joint":
                game, most = self._joint(answers, options, row)
            else:
                game, most = self._product(answers, options, row, widths, largest)
            games.append(game)
            size = max(size, most)
        d = rows.shape[1]
        return Truth(
            np.stack([self.of_game(game) for game in games]),
            np.stack([game[(0,) * d] for game in games]),
            size,
        )

    def _product(
        self, answers: Answers, options: Options, row: Array, widths: Array, largest: int
    ) -> tuple[Array, float]:
        """v of all coalitions, (2, ..., 2, k), by the grid of the columns' points and the row's values."""
        laws, nu = self.laws(options), options.nu(row.size)
        points_and_masses = [
            self._column(*each, options.kind, nu, widths)
            for each in zip(range(row.size), laws, row, strict=True)
        ]
        points = [np.append(values, x) for (values, _), x in zip(points_and_masses, row, strict=True)]
        grid = self._grid(answers, options, points, largest)
        return game_of(grid, [mass for _, mass in points_and_masses]), float(np.abs(grid).max())

    def _column(self, j: int, law: Any, x: float, kind: str, nu: float, widths: Array) -> tuple[Array, Array]:
        """Points of a column and their probabilities."""
        if self.case.shape == "smooth":
            law = law.weighted(float(x), kind, nu)
            values, p = quadrature(law, self.cuts[j], widths[j] * law.scale)
            return values, part_of(law, float(x), p, values).mean
        at = self._points(j, law)
        return at.values, self._part(law, at, float(x), kind, nu, j).mean

    def _joint(self, answers: Answers, options: Options, row: Array) -> tuple[Array, float]:
        """The same by the background's rows."""
        matrix, laws = self.background.matrix, self.laws(options)
        changed = sum(
            np.array([law.locate(value) for value in column]) != law.locate(x)
            for law, column, x in zip(laws, matrix.T, row, strict=True)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.nan_to_num(-0.5 * (changed - changed.min()) / np.float64(options.nu(row.size)) ** 2)
        weights = np.exp(log) / np.exp(log).sum()
        sets = np.array([*itertools.product((False, True), repeat=row.size)])
        mixed = np.where(sets[:, None], row, matrix).reshape(-1, row.size)
        predictions = answers.ask(self.background.table(mixed)).reshape(len(sets), len(matrix), -1)
        game = np.einsum("n,snk->sk", weights, predictions)
        return game.reshape(*(2,) * row.size, -1), float(np.abs(predictions).max())


def shapley(game: Array) -> tuple[Array, Array, Array]:
    """Contributions, those of each value alone, and last, (d, k), of v over all coalitions (2, ..., 2, k)."""
    d = game.ndim - 1
    values, alone, last = np.zeros((3, d, game.shape[-1]))
    for j in range(d):
        changes = np.diff(game, axis=j).take(0, axis=j)
        for others in itertools.product((0, 1), repeat=d - 1):
            values[j] += changes[others] / (d * comb(d - 1, sum(others)))
        alone[j], last[j] = changes[(0,) * (d - 1)], changes[(1,) * (d - 1)]
    return values, alone, last


@dataclass(frozen=True)
class Numbers:
    """Numbers of the library: contributions, alone and last, (n, 3 d, k), base and predictions (n, k)."""

    stacked: Array
    base: Array
    predictions: Array
    sampled: bool

    @classmethod
    def of(cls, explanation: Any, account: Any) -> Numbers:
        n, d = explanation.data.shape
        parts = [getattr(account, name).reshape(n, d, -1) for name in ("values", "alone", "last")]
        return cls(
            np.concatenate(parts, axis=1),
            account.base_values.reshape(n, -1),
            np.asarray(explanation.predictions, dtype=float).reshape(n, -1),
            bool((account.standard_errors > 0).any()),
        )

    @property
    def values(self) -> Array:
        return self.stacked[:, : self.stacked.shape[1] // 3]

    def adds_up(self, answers: Answers) -> Verdict | None:
        """A fault where the sum is not the prediction."""
        total = self.base + self.values.sum(axis=1)
        size = np.abs(self.base) + np.abs(self.values).sum(axis=1)
        # a sum in float32 is rounded as its largest terms are, and outputs have terms of one size
        share = VANISHING if answers.level == EXACT else 1.0
        size = np.maximum(size, share * np.abs(self.predictions).max())
        if not np.isfinite(total).all():
            return self._fault(NOT_FINITE, ~np.isfinite(total), "a contribution is not finite", total)
        off = np.abs(total - self.predictions) > max(answers.slope, answers.level) * size
        return (
            self._fault(MISMATCH, off, "they do not add up to the prediction", total) if off.any() else None
        )

    def fair(self, truth: Truth, answers: Answers) -> Verdict | None:
        """A fault where a column that the model ignores has a share, or equal columns have unequal ones."""
        n, d = len(self.base), self.values.shape[1]
        expected = truth.beta[:, :d]
        rounding = 1e-14 * truth.size  # of sums over many points
        ignored = (np.abs(truth.beta.reshape(n, 3, d, -1)) <= rounding).all(axis=1)
        off = (ignored & (np.abs(self.values) > _NONE * truth.size)).any(axis=1)
        if off.any():
            return self._fault(MISMATCH, off, "an ignored column has a share", self.base)
        for i, j in itertools.combinations(range(d), 2):
            alike = (np.abs(expected[:, i] - expected[:, j]) <= _NONE * truth.size).all(axis=1)
            gap = np.abs(self.values[:, i] - self.values[:, j]) > max(_ALIKE, answers.slope) * truth.size
            if (alike[:, None] & gap).any():
                return self._fault(
                    MISMATCH, alike[:, None] & gap, "equal columns have unequal shares", self.base
                )
        return None

    def _fault(self, kind: str, off: Array, detail: str, total: Array) -> Verdict:
        row = int(np.argmax(off.any(axis=1)))
        return Verdict(kind, len(total), detail, row, [total[row].tolist()], [self.predictions[row].tolist()])
