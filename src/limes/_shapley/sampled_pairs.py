r"""Pairs of contributions of a function, from calls: unbiased estimates with standard errors.

Every column keeps the row's value with probability t, for a uniform t, else has a drawn row's. Around such a
set s of kept columns the second difference of a pair does not depend on what s has of the two:

    D_ij = (-1)^{s_i + s_j} (f(s) - f(s with i changed) - f(s with j changed) + f(s with both changed)),

so that E D_ij = ∫₀¹ ∂_i∂_j F(t, ..., t) dt = φ_ij (``pairs.py``). One set with m columns that vary takes
1 + m + m (m - 1) / 2 answers for all its pairs. A set and its complement, with the same drawn row, are one
unit, and units are independent: their spread is the error, on its guard against what few of them showed or
none did, as that of walks is (``permutations.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limes._arrays import DIFFERENCE_ROUNDING, Floats
from limes._sampling.least_squares import rarity_factors, student_factors
from limes.exceptions import InputError
from limes.models._calling.caller import Calls

if TYPE_CHECKING:
    from limes._arrays import Bools, Ints
    from limes._shapley.permutations import PermutationSampler
    from limes._shapley.starts import Starts

WITHOUT_ROWS = (
    "pairs under law='joint' need the whole background, and rows of it were left out: pass a smaller "
    "background"
)
# Fewest units that show errors; those below which an estimate from sets and readable models is better
# (``few_rows.py``); and those of a form, which is not asked
_FEWEST, _SEVERAL, _OF_FORM = 4, 16, 128
# Rows of one question
_ROWS = 1 << 16
# With 95 % probability an event that n draws did not show has a probability below 3 / n; in standard errors
UNSEEN = 3.0 / 1.96


class SampledPairs(NamedTuple):
    """Interaction indices φ_ij of one row, (d, d, k), and standard errors of what the matrix has of them."""

    indices: Floats
    errors: Floats  # of φ_ij / 2 beside the diagonal, and of ½ Σ_j φ_ij on it


@dataclass(frozen=True, eq=False)
class PairSampler:
    """Pairs at single rows: same seed and same row, same result."""

    walks: PermutationSampler  # whose options these are

    def affords(self, columns: int) -> bool:
        """Whether ``max_calls`` suffice for units enough of as many columns that vary."""
        return not self.walks.asks or self.walks.sampling.max_calls >= 2 * _SEVERAL * len(_changes(columns))

    def at(self, row: Floats, starts: Starts, outputs: int) -> SampledPairs:
        """Pairs at one row (d,), by at most ``max_calls`` answers; InputError where these are too few."""
        walks, varies = self.walks, np.flatnonzero(self.walks.varies(starts, row))
        if starts.omitted is not None:
            raise InputError(WITHOUT_ROWS)
        if varies.size < 2:
            nothing = np.zeros((row.size, row.size, outputs))
            return SampledPairs(nothing, nothing)
        sampling, sets = walks.sampling, _changes(varies.size)
        units = sampling.max_calls // (2 * len(sets)) if walks.asks else _OF_FORM
        if units < _FEWEST:
            least = 2 * _FEWEST * len(sets)
            raise InputError(
                f"pairs of {varies.size} columns need {least:,} calls a row, and max_calls= is "
                f"{sampling.max_calls:,}: {walks.advice(least - sampling.max_calls)}"
            )
        if walks.check is not None:
            walks.check()
        rng = np.random.default_rng(walks.stream(row).spawn(1)[0].spawn(1)[0])
        z = starts.drawing(1, units).draw(rng, units).z
        # t has one value in each of as many slices as there are units
        t = (rng.permutation(units) + rng.random(units)) / units
        kept = rng.random((units, varies.size)) < t[:, None]
        differences = self._differences(row, z, varies, kept, sets, outputs)
        return _estimate(differences, varies, row.size)

    def _differences(
        self, row: Floats, z: Floats, varies: Ints, kept: Bools, sets: Bools, outputs: int
    ) -> tuple[Floats, Floats]:
        """D of each unit, the mean of its two sets, (units, m, m, k); the largest first differences, (k,).

        Where no column by itself changes an output, these are how far its answers are apart.
        """
        sampling = self.walks.sampling
        calls = Calls(
            self.walks.predict,
            batch_size=sampling.rows_a_call(2 * len(sets)),
            retry=sampling.retry,
            is_function=sampling.is_function,
        )
        ask, m = calls.one_pass(calls), varies.size
        first, second = np.triu_indices(m, 1)
        total, largest = np.zeros((len(z), m, m, outputs)), np.zeros(outputs)
        lowest, highest = np.full((2, outputs), np.inf) * [[1.0], [-1.0]]
        step = max(1, _ROWS // (2 * len(sets)))
        for start in range(0, len(z), step):
            some = slice(start, start + step)
            for its in (kept[some], ~kept[some]):
                chosen = its[:, None] ^ sets
                x = np.repeat(z[some, None], len(sets), axis=1)
                x[..., varies] = np.where(chosen, row[varies], x[..., varies])
                answers = np.asarray(ask(x.reshape(-1, row.size))).reshape(*chosen.shape[:2], outputs)
                alone = answers[:, 1 : m + 1] - answers[:, :1]
                both = answers[:, m + 1 :] - answers[:, :1] - alone[:, first] - alone[:, second]
                sign = np.where(its[:, first] == its[:, second], 1.0, -1.0)
                total[some, first, second] += 0.5 * sign[..., None] * both
                largest = np.maximum(largest, np.abs(alone).max(axis=(0, 1)))
                lowest = np.minimum(lowest, answers.min(axis=(0, 1)))
                highest = np.maximum(highest, answers.max(axis=(0, 1)))
        return total + total.swapaxes(1, 2), np.where(largest > 0.0, largest, highest - lowest)


def _changes(columns: int) -> Bools:
    """Which of m columns are changed: none, each by itself, and each two, (1 + m + m (m - 1) / 2, m)."""
    first, second = np.triu_indices(columns, 1)
    single = np.eye(columns, dtype=bool)
    return np.concatenate([np.zeros((1, columns), dtype=bool), single, single[first] | single[second]])


def _estimate(differences: tuple[Floats, Floats], varies: Ints, d: int) -> SampledPairs:
    """Means of units, with errors: at least what answers that are alike may hide.

    That is anything where all answers are the same.
    """
    each, largest = differences
    units = len(each)
    halves = 0.5 * each
    m = np.arange(varies.size)
    halves[:, m, m] = halves.sum(axis=2)
    errors = student_factors(np.array(units - 1)) * halves.std(axis=0, ddof=1) / np.sqrt(units)
    errors *= rarity_factors(halves)
    quiet = (np.abs(halves) <= DIFFERENCE_ROUNDING * largest).all(axis=0)
    unseen = np.where(largest > 0.0, UNSEEN * 0.5 * largest / (2 * units), np.inf)
    errors = np.hypot(errors, np.where(quiet, unseen, 0.0))
    indices = each.mean(axis=0)
    both = np.zeros((2, d, d, each.shape[-1]))
    both[:, varies[:, None], varies] = indices, errors
    return SampledPairs(*both)
