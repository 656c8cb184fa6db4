r"""The rule of three: least errors of coefficients where nearly all answers are alike.

If n rows all give the same answer, another answer has a probability of at most 3 / n, at 95 % confidence. A
feature has two sides: rows that keep it, and rows that change it. Where fewer than 16 rows of a side differ
from the most frequent answer, the coefficient may be off by 3 · range · W, with W the root mean square
influence of a row of that side. Its standard error is therefore at least range · W · 3 / 1.96.

The range of answers is that of the sample and the instance; for answers between 0 and 1 it is 1. If all are
alike, and nothing bounds the model's range, the error is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limes._arrays import Bools, Floats, Ints

# Added to a count of clusters, so that the interval ±1.96 √(count + UNSEEN) covers its expectation
UNSEEN = (3.0 / 1.96) ** 2
# From this number of rows that differ from the most frequent answer, the sandwich estimator is reliable
_ENOUGH = 16
# Differences below this share of the largest answer are rounding
_ROUNDING = 1e-9
# Residuals within this share of the answers' standard deviation are explained by the control
_EXPLAINED = 1e-2


@dataclass(frozen=True, eq=False)
class AnswerStatistics:
    """Statistics of answers (n, k) that bound unseen ones; all rows that the answers explain share them.

    Attributes
    ----------
    size, usual, std
        Largest |f|, the most frequent answer and the standard deviation, (k,).
    differs
        Rows that differ from the most frequent answer, (n, k).
    reach
        Range of the answers, (k,); 0 where all are alike.
    probable
        Whether all answers lie between 0 and 1, (k,).
    """

    size: Floats
    usual: Floats
    std: Floats
    differs: Bools
    reach: Floats
    probable: Bools

    @classmethod
    def from_rows(cls, f: Floats) -> AnswerStatistics:
        """Compute the statistics of answers f (n, k)."""
        size, usual = np.abs(f).max(axis=0), _usual(f)
        distance = np.abs(f - usual)
        differs = distance > _ROUNDING * size
        farthest = np.where(differs, distance, 0.0).max(axis=0)
        return cls(
            size=size,
            usual=usual,
            std=f.std(axis=0),
            differs=differs,
            reach=np.maximum(farthest, np.where(differs.any(axis=0), np.ptp(f, axis=0), 0.0)),
            probable=np.asarray(((f >= 0) & (f <= 1)).all(axis=0)),
        )

    def reach_around(self, prediction: Floats | None) -> Floats:
        """Range of answers and of the model's prediction (..., k) at the instance, if there is one: (..., k).

        1 where all are probabilities.
        """
        if prediction is None:
            return np.where(self.probable, 1.0, self.reach)
        distance = np.abs(prediction - self.usual)
        reach = np.maximum(self.reach, np.where(distance > self.rounding, distance, 0.0))
        return np.where(self.probable & (prediction >= 0) & (prediction <= 1), 1.0, reach)

    @property
    def rounding(self) -> Floats:
        """Largest differences of answers that are rounding errors, (k,)."""
        return _ROUNDING * self.size

    @property
    def negligible(self) -> Floats:
        """Largest residuals that count as explained by the control, (k,)."""
        return _EXPLAINED * self.std


@dataclass(frozen=True, eq=False)
class RareAnswers:
    """Answers, and residuals, that differ from the most frequent one of each output.

    Attributes
    ----------
    differs
        Rows whose answer and residual both differ, (n, k).
    reach
        Range of the answers, (k,); 0 where all are alike and nothing bounds them.
    n_unlike
        Number of rows that differ in their answer, (k,).
    unexplained
        Rows whose residual is not negligible, (n, k).
    std
        Standard deviation of the answers, (k,).
    """

    differs: Bools
    reach: Floats
    n_unlike: Ints
    unexplained: Bools
    std: Floats

    @classmethod
    def from_rows(cls, answers: AnswerStatistics, errors: Floats, prediction: Floats | None) -> RareAnswers:
        """Compare answers, residuals (n, k), and the model's prediction (k,) at the instance, if any."""
        return cls(
            differs=answers.differs & (np.abs(errors - _usual(errors)) > answers.rounding),
            reach=answers.reach_around(prediction),
            n_unlike=answers.differs.sum(axis=0),
            unexplained=np.abs(errors) > answers.negligible,
            std=answers.std,
        )

    def least_variances(self, influence: Floats) -> Floats:
        """Return the least variances (m, k) that unseen answers add to m sums with influences (m, n)."""
        reach = np.where(self.reach > 0, self.reach, np.inf)
        unlike = _rare_variances(influence, self.differs, reach)
        return np.maximum(unlike, _rare_variances(influence, self.unexplained, self.std))


def _rare_variances(influence: Floats, differs: Bools, reach: Floats) -> Floats:
    """Return variances (m, k) of events of size ``reach`` (k,), which few differing rows cannot rule out."""
    total = np.zeros((len(influence), reach.size))
    values = differs.astype(np.float64)
    for side in (influence > 0, influence < 0):
        n_differs = np.asarray(side @ values)
        if (n_differs >= _ENOUGH).all():
            continue
        count = np.maximum(side.sum(axis=1), 1)
        typical = np.where(side, influence, 0.0) ** 2 @ np.ones(influence.shape[1]) / count
        total += rare_variances(typical, n_differs, reach)
    return total


def rare_variances(typical: Floats, n_differs: Floats, reach: Floats) -> Floats:
    """Return variances (..., m, k) that unseen events of size ``reach`` (..., k) add to m sums over one side.

    ``typical`` (..., m) is the mean square of the influence of the side's rows, of which ``n_differs``
    (..., m, k) differ.
    """
    with np.errstate(invalid="ignore"):
        variances = UNSEEN * typical[..., None] * reach[..., None, :] ** 2
    return np.where((n_differs < _ENOUGH) & (typical[..., None] > 0), variances, 0.0)


def count_unlike(f: Floats) -> Ints:
    """Return the number of answers f (n, k) that differ from the most frequent one of each output, (k,)."""
    with np.errstate(over="ignore"):  # differences of the largest numbers are larger still
        distance = np.abs(f - _usual(f))
    return np.asarray((distance > _ROUNDING * np.abs(f).max(axis=0)).sum(axis=0))


def _usual(values: Floats) -> Floats:
    """Return a value near the median of each column: the most frequent one, where most are equal."""
    middle = len(values) // 2
    return np.asarray(np.partition(values, middle, axis=0)[middle])
