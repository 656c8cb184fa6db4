"""Contributions from one row to another: against Shapley values of the model's own answers to their mixtures.

The other row is the first of the background. The game is v(S) = f(row_S, other_rest), at all 2^d mixtures of
its columns and groups.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

import limes
from fuzz.accounts import AccountCase, AccountTrial, Numbers, shapley
from fuzz.answers import EXACT, answers_of
from fuzz.grid import Truth
from fuzz.options import Options, draw_groups
from fuzz.tables import Trial
from fuzz.verdict import CRASH, SAMPLED, SKIPPED, Verdict, compare

Array = Any

# Columns whose mixtures are all asked about, and rounding of a sum of answers, of the largest one
_COLUMNS, _SUM = 8, 1e-13


@dataclass(frozen=True)
class DifferenceCase(AccountCase):
    """A case of a table whose rows are compared with one of the background."""

    prints: ClassVar[str] = (
        "*[getattr(explanation.explainer.between(explanation.data.tolist(), X[:1]).contributions, name)"
        ".tolist() for name in ('values', 'alone', 'last', 'base_values')]"
    )

    def run(self) -> DifferenceTrial:
        """Run the case's script."""
        return DifferenceTrial.of(self)

    def options(self, rng: Any, trial: Trial) -> Options:
        """A set of options, at times with groups."""
        options = super().options(rng, trial)
        d = trial.background.matrix.shape[1]
        return options if options.bins is None else replace(options, groups=draw_groups(rng, d))


class DifferenceTrial(AccountTrial):
    """A case that was run."""

    def _checked(self, options: Options, rows: Array) -> Verdict:
        if rows.shape[1] > _COLUMNS:
            return Verdict(SKIPPED, detail="too many mixtures")
        rows, other = self._within(options, rows), self.background.matrix[:1]
        tables = self.background.table(rows)
        players = options.players(rows.shape[1])
        owner = np.array([next(g for g, its in enumerate(players) if j in its) for j in range(rows.shape[1])])
        sets = np.array([*itertools.product((False, True), repeat=len(players))])[:, owner]
        mixed = np.where(sets, rows[:, None], other).reshape(-1, rows.shape[1])
        if not self._takes(self.background.table(mixed)):
            return Verdict(SKIPPED, detail="the model takes not all mixtures")
        try:
            explanation = self.explainer(options).between(tables, self.background.table(other))
            numbers = Numbers.of(explanation, explanation.contributions)
        except limes.exceptions.LimesError as error:
            return self._after(error, options, tables)
        except Exception as error:  # noqa: BLE001 - any other error is a fault of the library
            return Verdict(CRASH, len(rows), f"{type(error).__name__}: {error}", 0)
        answers = answers_of(self.model, options.output, self.background.table(self.background.matrix[:200]))
        wrong = numbers.adds_up(answers)
        if wrong is not None or numbers.sampled:
            return wrong or Verdict(SAMPLED)
        truth = _truth(answers.ask(self.background.table(mixed)), len(rows), len(players))
        single = 0.0 if answers.slope == EXACT else answers.slope
        verdict = compare(
            numbers.stacked,
            numbers.base,
            *truth,
            slope=answers.slope,
            level=max(answers.slope, answers.level),
            rounding=_SUM + single,
        )
        return verdict if verdict.fault else numbers.fair(truth, answers) or verdict


def _truth(predictions: Array, rows: int, columns: int) -> Truth:
    """Contributions, those alone, and last, one after the other, (n, 3 d, k), and the base, (n, k)."""
    games = np.asarray(predictions, dtype=float).reshape(rows, *(2,) * columns, -1)
    stacked = np.stack([np.concatenate(shapley(game)) for game in games])
    return Truth(stacked, np.stack([game[(0,) * columns] for game in games]), float(np.abs(games).max()))
