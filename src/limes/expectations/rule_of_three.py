r"""Errors that answers which were all alike may still have.

Of n rows that all gave the same answer it is known, at 95 %, that another answer has a probability of at most
3 / n. Where fewer than 16 rows differ from the most frequent answer, a coefficient with influences W_i on the
rows of one side (its feature kept, or changed) may therefore be off by 3 · range · W, and a standard error is
never less than range · W · 3 / 1.96.

The range of answers is what was seen, at the instance too; for answers between 0 and 1 it is 1. If no other
answer was ever seen, and the model's range is not known, neither is the error: it is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.expectations.contributions import UNSEEN

# Rows that differ from the most frequent answer, from which on they tell their own variance
_ENOUGH = 16
# Differences below this share of the largest answer are rounding
_ROUNDING = 1e-9
# Residuals within this share of the answers' standard deviation are explained
_EXPLAINED = 1e-2


@dataclass(frozen=True, eq=False)
class Rarity:
    """Rows that differ from the most frequent answer, or residual, of each output.

    Attributes
    ----------
    differs
        (n, k).
    reach
        Range of the answers, (k,); 0 where no other answer was seen and none can be guessed.
    answers
        How many rows differ by their answer, (k,).
    unexplained
        Rows whose residual is not negligible, (n, k).
    deviation
        Standard deviation of the answers, (k,).
    """

    differs: Bools
    reach: Floats
    answers: Ints
    unexplained: Bools
    deviation: Floats

    @classmethod
    def of(cls, f: Floats, errors: Floats, prediction: Floats | None) -> Rarity:
        """Of answers f and their residuals (n, k), and the model's prediction (k,) at the instance."""
        size = np.abs(f).max(axis=0)
        usual = _usual(f)
        other, left = (np.abs(v - _usual(v)) > _ROUNDING * size for v in (f, errors))
        both = f if prediction is None else np.vstack([f, prediction])
        reach = np.where(np.abs(both - usual) > _ROUNDING * size, np.abs(both - usual), 0.0)
        reach = np.maximum(reach.max(axis=0), np.where(other.any(axis=0), np.ptp(f, axis=0), 0.0))
        probable = ((both >= 0) & (both <= 1)).all(axis=0)
        deviation = f.std(axis=0)
        unexplained = np.abs(errors) > _EXPLAINED * deviation
        return cls(other & left, np.where(probable, 1.0, reach), other.sum(axis=0), unexplained, deviation)

    def variances(self, influence: Floats) -> Floats:
        """What the variances of sums with influences (m, n) must be raised by, (m, k)."""
        reach = np.where(self.reach > 0, self.reach, np.inf)
        unlike = _raised(influence, self.differs, reach)
        return np.maximum(unlike, _raised(influence, self.unexplained, self.deviation))


def _raised(influence: Floats, differs: Bools, reach: Floats) -> Floats:
    """Variances (m, k) of events of size ``reach`` (k,) that rows, of which few differ, do not exclude."""
    total = np.zeros((len(influence), reach.size))
    for side in (influence > 0, influence < 0):
        count = np.maximum(side.sum(axis=1), 1)
        typical = np.where(side, influence, 0.0) ** 2 @ np.ones(influence.shape[1]) / count
        rare = side @ differs.astype(np.float64) < _ENOUGH
        with np.errstate(invalid="ignore"):
            raised = UNSEEN * typical[:, None] * reach**2
        total += np.where(rare & (typical[:, None] > 0), raised, 0.0)
    return total


def _usual(values: Floats) -> Floats:
    """The most frequent value of each column where most are equal: a median that occurs."""
    middle = len(values) // 2
    return np.asarray(np.partition(values, middle, axis=0)[middle])
