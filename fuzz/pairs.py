"""Pairs of contributions of a case: against the Shapley interaction indices of the model's own answers.

The games are those of `accounts`: the mean answer where the columns of a coalition have the row's values.
Beside that oracle

- the pairs of a column add up to its contribution, and all to the prediction less the base;
- the matrix is symmetric.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np

from fuzz.accounts import AccountCase, AccountTrial, Numbers, shapley
from fuzz.answers import EXACT, Answers
from fuzz.grid import Truth
from fuzz.options import Options
from fuzz.verdict import MISMATCH, Verdict

Array = Any

# By how much what is added up differs, of the largest answer
_SUM = 1e-11


@dataclass(frozen=True)
class PairCase(AccountCase):
    """A case of a table whose pairs are compared."""

    prints: ClassVar[str] = "explanation.contributions.pairs.tolist()"

    def run(self) -> PairTrial:
        """Run the case's script."""
        return PairTrial.of(self)


class PairTrial(AccountTrial):
    """A case that was run."""

    def numbers(self, explanation: Any, options: Options) -> PairNumbers:  # noqa: ARG002 - of any
        account = explanation.contributions
        if account.standard_errors.any():
            return PairNumbers.of(explanation, account)
        n, d = explanation.coefficients.values.shape[:2]
        pairs = account.pairs.reshape(n, d, d, -1)
        numbers = PairNumbers.of(explanation, account)
        # a pair's index is at both places, half each
        indices = 2.0 * pairs * ~np.eye(d, dtype=bool)[:, :, None]
        stacked = np.concatenate([numbers.values, indices.reshape(n, d * d, -1)], axis=1)
        return PairNumbers(stacked, numbers.base, numbers.predictions, numbers.sampled, pairs)

    def rounding(self, answers: Answers, options: Options, rows: Array) -> float:
        # four answers in single precision are subtracted
        single = 0.0 if answers.slope == EXACT else answers.slope
        return super().rounding(answers, options, rows) + single

    def of_game(self, game: Array) -> Array:
        """Contributions and indices of all pairs, (d + d d, k)."""
        return np.concatenate([shapley(game)[0], indices_of(game).reshape(-1, game.shape[-1])])


def indices_of(game: Array) -> Array:
    """Interaction indices (d, d, k) of v over all coalitions (2, ..., 2, k)."""
    d = game.ndim - 1
    indices = np.zeros((d, d, game.shape[-1]))
    for i, j in itertools.combinations(range(d), 2):
        changes = np.diff(np.diff(game, axis=j), axis=i).take(0, axis=j).take(0, axis=i)
        for others in itertools.product((0, 1), repeat=d - 2):
            indices[i, j] += changes[others] / ((d - 1) * comb(d - 2, sum(others)))
        indices[j, i] = indices[i, j]
    return indices


@dataclass(frozen=True)
class PairNumbers(Numbers):
    """Contributions and indices, (n, d + d d, k), and the matrices, (n, d, d, k)."""

    pairs: Array = None

    @property
    def values(self) -> Array:
        return super().values if self.pairs is None else self.stacked[:, : self.pairs.shape[1]]

    def fair(self, truth: Truth, answers: Answers) -> Verdict | None:
        """A fault where pairs do not add up to contributions, or are not symmetric."""
        size = max(_SUM, answers.slope) * truth.size
        off = np.abs(self.pairs.sum(axis=2) - self.values) > size
        if off.any():
            return self._fault(MISMATCH, off, "pairs do not add up to the contribution", self.base)
        off = (self.pairs != self.pairs.swapaxes(1, 2)).any(axis=1)
        return self._fault(MISMATCH, off, "pairs are not symmetric", self.base) if off.any() else None
