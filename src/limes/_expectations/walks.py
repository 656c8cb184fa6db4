r"""Contributions of columns that no closed form gives: Shapley values by walks from drawn rows to the row.

A walk begins at a row z of the law w, replaces z's columns by those of the explained row ξ one after the
other in a random order, and ends at ξ, whose prediction is known. The change of the prediction at column j's
turn is an unbiased estimate of φ_j, and the changes of a walk add up to f(ξ) - f(z): d columns cost d calls.
The same z in the reversed order makes a pair of 2d - 1 calls. Columns at which z equals ξ already change
nothing, and cost nothing.

A group is a few pairs together, and groups are independent: errors are those of the mean of groups. Inside a
group

- rows z are a Latin hypercube (McKay, Beckman & Conover 1979): each column's levels fall into equal slices of
  [0, 1], one in each, so that what columns do by themselves averages out; the variance at equal calls was a
  half to a twentieth of that of independent rows, the less the columns interact;
- orders are rows of a random Latin square: no column has the same place twice.

Errors are twice on their guard against rare changes, as those of ``least_squares.py`` are: the variance is
multiplied by 1 + 2.34 / effective pairs, and where a column changes the prediction, or changes it otherwise
than usual, in fewer than 16 pairs of W, the rule of three bounds what W pairs may have missed: an event of
probability 3 / W, as large as the largest change that was seen. The bound does not keep walks from stopping.

Where E_w f is known, the groups' means of f(z) are a control variate: φ_j is the intercept of a line through
the groups' (mean of f(z) - E_w f, φ_j). Slopes of all columns add up to -1, so that base and contributions
still add up. Of a background's own rows f(z) is known, and so are the means of all columns: the pairs' φ_j
are fitted to f(z) and z, and read off at these means. The variance fell to a half to a fifth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from limes._arrays import Bools, Floats, Ints, fingerprint, streams
from limes._expectations.contributions import RowContributions
from limes._expectations.least_squares import (
    ENOUGH_ANSWERS,
    UNSEEN,
    Tolerance,
    error_of_mean,
    student_factors,
)
from limes._expectations.sampled import SEQUENCES, Sampling
from limes.designs._joint import OccurringRows
from limes.designs._marginals import Atoms
from limes.designs._product import ProductDesign
from limes.exceptions import InputError
from limes.models._calling.caller import Calls

# Most pairs of walks in a group. More even rows out further, but leave fewer groups, which show the errors
_MOST_PAIRS = 8
# Groups at the first look at the errors, and at least, where there are calls for several pairs a group
_FIRST_GROUPS, _GROUPS = 8, 10
# Fewest pairs that show errors
_FEWEST_PAIRS = 4
# Where answers repeat, so that pairs cost few calls: walks as if this multiple of the calls were allowed
_REPEATED = 8
# Numbers of an array of rows that are asked about together
_NUMBERS = 1 << 22
# Pairs for each coefficient that control variates have
_PAIRS_A_CONTROL = 4
# Differences below this share of the answers' size are rounding
_ROUNDING = 1e-9


class Starts(Protocol):
    """The law w that walks begin at."""

    @property
    def mean(self) -> Floats | None:
        """E_w f (k,), if it is known."""
        ...

    def varies(self, row: Floats) -> Bools:
        """Which columns of z may differ from the explained row's, (d,)."""
        ...

    def draw(self, rng: np.random.Generator, groups: int, size: int) -> Drawn:
        """The next rows, group by group."""
        ...


class Drawn(NamedTuple):
    """Rows z (W, d), and, if they are known, f(z) (W, k) and control variates of mean 0 (W, q).

    The first k controls are the outputs.
    """

    z: Floats
    answers: Floats | None = None
    controls: Floats | None = None


@dataclass(frozen=True, eq=False)
class ProductStarts:
    """Rows of independent columns."""

    design: ProductDesign
    mean: Floats | None = None

    def draw(self, rng: np.random.Generator, groups: int, size: int) -> Drawn:
        levels = _in_slices(rng, groups, size, self.design.size)
        return Drawn(self.design.draw(levels.reshape(-1, self.design.size))[0])

    def varies(self, row: Floats) -> Bools:
        laws = zip(self.design.laws, row, strict=True)
        return np.array([not all(_is_at(measure, value) for measure in law.measures) for law, value in laws])


def _is_at(measure: Any, value: float) -> bool:
    """Whether a measure has no other point than this value."""
    return isinstance(measure, Atoms) and bool(_same(measure.value, np.array(value)).all())


def _same(x: Floats, y: Floats) -> Bools:
    """Whether values are equal, or both missing."""
    return np.asarray((x == y) | (np.isnan(x) & np.isnan(y)))


@dataclass(frozen=True, eq=False)
class OccurringStarts:
    """Rows of a background with weights, whose answers are known: in the order of these, a slice each."""

    background: Floats  # (N, d)
    answers: Floats  # (N, k)
    around: OccurringRows

    mean: None = None  # the controls have it

    @cached_property
    def _controls(self) -> Floats:
        """Answers and columns in units of their deviations, with mean 0, (N, k + d)."""
        numbers, weights = np.column_stack([self.answers, self.background]), self.around.weights
        present = ~np.isnan(numbers)
        mass = weights @ present
        mean = np.divide(
            weights @ np.where(present, numbers, 0.0), mass, out=np.zeros_like(mass), where=mass > 0
        )
        # what is missing is the mean, which moves no mean
        centred = np.where(present, numbers - mean, 0.0)
        deviation = np.sqrt(weights @ centred**2)
        return np.asarray(centred / np.where(deviation > 0, deviation, 1.0))

    def draw(self, rng: np.random.Generator, groups: int, size: int) -> Drawn:
        # any fixed order is unbiased; the last output is the positive one of two classes
        order = np.argsort(self.answers[:, -1], kind="stable")
        below = np.cumsum(self.around.weights[order])
        levels = _in_slices(rng, groups, size, 1).reshape(-1) * below[-1]
        # a row without weight ends where it begins, and no level lies there
        places = np.searchsorted(below, levels, side="right")
        chosen = order[np.minimum(places, np.flatnonzero(self.around.weights[order])[-1])]
        return Drawn(self.background[chosen], self.answers[chosen], self._controls[chosen])

    def varies(self, row: Floats) -> Bools:
        return np.asarray(~_same(self.background, row).all(axis=0))


def _in_slices(rng: np.random.Generator, groups: int, size: int, d: int) -> Floats:
    """Points (groups, size, d) of the unit cube: each column has one in each of ``size`` equal slices."""
    slices = np.broadcast_to(np.arange(size)[:, None], (groups, size, d))
    return np.asarray((rng.permuted(slices, axis=1) + rng.random(slices.shape)) / size)


def _orders(rng: np.random.Generator, groups: int, size: int, d: int) -> Ints:
    """Random orders of d columns (groups · size, d); in a group of up to d no column has a place twice."""
    names, turns, shifts = (rng.permuted(np.tile(np.arange(d), (groups, 1)), axis=1) for _ in range(3))
    shifts = shifts[:, np.arange(size) % d]
    square = (shifts[:, :, None] + turns[:, None, :]) % d
    return np.take_along_axis(names[:, None, :], square, axis=2).reshape(-1, d)


@dataclass(frozen=True, eq=False)
class Walks:
    """Contributions at single rows by walks: same seed and same row, same result.

    ``predict`` maps rows (n, d) to (n,) or (n, k); ``asks`` states whether it is the model's.
    """

    predict: Callable[[Floats], Floats]
    sampling: Sampling
    asks: bool = True  # calls of a form are not counted

    def at(self, row: Floats, prediction: Floats, starts: Starts) -> RowContributions:
        """Contributions at one row (d,), given f there (k,)."""
        most_calls, accuracy = self.sampling.max_calls, self.sampling.accuracy
        varies = starts.varies(row)
        a_pair = max(1, 2 * int(varies.sum()) - 1)
        pairs = most_calls // a_pair
        if pairs < _FEWEST_PAIRS:
            raise InputError(
                f"max_calls={most_calls} is too few for contributions of {varies.sum()} columns; use at "
                f"least {_FEWEST_PAIRS * a_pair}"
            )
        size = _MOST_PAIRS
        while size > 1 and pairs < _GROUPS * size:
            size //= 2
        a_group = size * a_pair
        calls = Calls(
            self.predict,
            batch_size=self.sampling.rows_a_call(a_group),
            retry=self.sampling.retry,
            is_function=self.sampling.is_function,
        )
        walk = _Walk(row, prediction, varies, size, calls.one_pass(calls))
        # the first streams are those of the explanation's own draws
        rng = np.random.default_rng(streams(self.sampling.seed, fingerprint(row), SEQUENCES + 1)[SEQUENCES])
        step = max(1, _NUMBERS // (2 * size * (row.size + 1) * row.size))
        goal = _FIRST_GROUPS
        while True:
            # decided before these groups are drawn: a group is never left out because of what it costs
            room = min(most_calls - len(calls), _REPEATED * most_calls - walk.groups * a_group)
            count = min(goal - walk.groups, room // a_group)
            for first in range(0, count, step):
                walk.on(rng, starts, min(step, count - first))
            estimate = walk.estimate(starts.mean)
            if estimate.excess(accuracy) <= 1.0 or walk.groups < goal:
                return walk.result(estimate, calls=len(calls) if self.asks else 0)
            goal *= 2


class _Estimate(NamedTuple):
    """Contributions (d, k) and their errors: those seen, and bounds (d, k) of what may be unseen."""

    values: Floats
    errors: Floats
    unseen: Floats

    def excess(self, accuracy: Tolerance) -> float:
        """The largest error in units of the tolerance."""
        # walks that never changed the prediction tell nothing but what they may have missed
        errors = self.errors if self.values.any() else self.unseen
        return float(accuracy.excess(self.values, errors))


@dataclass(eq=False)
class _Walk:
    """All walks to one row ξ (d,), whose prediction is (k,)."""

    row: Floats
    prediction: Floats
    varies: Bools  # (d,)
    size: int  # of a group, in pairs
    ask: Callable[[Floats], Floats]
    # of each pair what columns change (d, k), f(z) (k,), and control variates (q,)
    parts: list[tuple[Floats, Floats, Floats]] = field(default_factory=list)
    # sums of what columns do as the first and as the last one of a walk, (2, d, k), and of how many walks
    ends: Floats = field(init=False)
    count: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.ends = np.zeros((2, self.row.size, self.prediction.size))
        self.count = np.zeros((2, self.row.size), dtype=np.int64)

    @property
    def groups(self) -> int:
        return sum(len(phi) for phi, _, _ in self.parts) // self.size

    def on(self, rng: np.random.Generator, starts: Starts, groups: int) -> None:
        """Walk further groups."""
        z, at_z, controls = starts.draw(rng, groups, self.size)
        order = _orders(rng, groups, self.size, self.row.size)
        paths = np.stack([order, order[:, ::-1]])
        answers = self._answers(z, at_z, paths)
        changes = np.diff(answers, axis=2)
        for end, at in enumerate((0, -1)):
            np.add.at(self.ends[end], paths[:, :, at], changes[:, :, at])
            np.add.at(self.count[end], paths[:, :, at], 1)
        by_column = np.take_along_axis(changes, np.argsort(paths, axis=2)[..., None], axis=2)
        controls = np.empty((len(z), 0)) if controls is None else controls
        self.parts.append((by_column.mean(axis=0), answers[0, :, 0], controls))

    def _answers(self, z: Floats, at_z: Floats | None, paths: Ints) -> Floats:
        """Answers (2, W, d + 1, k) after each step of W pairs of walks from rows z (W, d)."""
        d = self.row.size
        place = np.argsort(paths, axis=2)
        differs = ~_same(z, self.row)
        moves = np.take_along_axis(np.broadcast_to(differs, paths.shape), paths, axis=2)
        moved, total = moves.cumsum(axis=2), differs.sum(axis=1)[:, None]
        # steps that lead to a new row, and those of them that lead to ξ
        new = np.concatenate([np.ones((*moves.shape[:2], 1), dtype=np.bool_), moves], axis=2)
        arrives = new & (np.concatenate([np.zeros_like(moved[:, :, :1]), moved], axis=2) == total)
        asks = new & ~arrives
        # both walks of a pair begin at the same row
        asks[1, :, 0] = False
        if at_z is not None:
            asks[0, :, 0] = False
        at = np.nonzero(asks)
        questions = np.where(place[at[0], at[1]] < at[2][:, None], self.row, z[at[1]])
        answers = np.empty((*asks.shape, self.prediction.size))
        if len(questions):
            answers[asks] = self.ask(questions).reshape(len(questions), -1)
        if at_z is not None:
            answers[0, :, 0] = at_z
        answers[1, :, 0] = answers[0, :, 0]
        answers[arrives] = self.prediction
        latest = np.maximum.accumulate(np.where(new, np.arange(d + 1), 0), axis=2)
        return np.take_along_axis(answers, latest[..., None], axis=2)

    def estimate(self, mean: Floats | None) -> _Estimate:
        """Contributions by all walks so far, given E_w f (k,), if it is known."""
        phi, starts, controls = (np.concatenate(each) for each in zip(*self.parts, strict=True))
        outputs = self.prediction.size
        used = next((q for q in (controls.shape[1], outputs) if len(phi) >= _PAIRS_A_CONTROL * (1 + q)), 0)
        changes, (phi, widened) = phi, _controlled(phi, controls[:, :used])
        size = np.maximum(np.abs(starts).max(axis=0), np.abs(self.prediction))
        by_group = phi.reshape(-1, self.size, *phi.shape[1:]).mean(axis=1)
        values, errors = by_group.mean(axis=0), error_of_mean(by_group)
        if mean is not None:
            starts = starts.reshape(len(by_group), self.size, -1).mean(axis=1)
            values, errors = _with_mean(by_group, starts, mean, _ROUNDING * size)
        squares = (phi - phi.mean(axis=0)) ** 2
        total, fourth = squares.sum(axis=0), (squares**2).sum(axis=0)
        rarity = np.divide(fourth, total**2, out=np.zeros_like(total), where=total**2 > 0)
        errors = errors * np.sqrt(1.0 + UNSEEN * rarity) * widened
        return _Estimate(values, errors, self._unseen(changes, _ROUNDING * size))

    def _unseen(self, phi: Floats, rounding: Floats) -> Floats:
        """Errors (d, k) by which pairs may have missed rare changes; 0 where enough pairs have changes."""
        pairs, largest = len(phi), np.abs(phi).max(axis=(0, 1))
        # of few pairs the ones that are unlike most others; the median is the most frequent change then
        unlike = (np.abs(phi - np.median(phi, axis=0)) > rounding).sum(axis=0)
        is_share = (self.prediction >= 0.0) & (self.prediction <= 1.0)
        largest = np.where(largest > rounding, largest, np.where(is_share, 1.0, np.inf))
        few = self.varies[:, None] & (unlike < min(ENOUGH_ANSWERS, pairs // 2))
        return np.where(few, 3.0 / 1.96 / pairs * largest, 0.0)

    def result(self, estimate: _Estimate, calls: int) -> RowContributions:
        values, errors = estimate.values, np.maximum(estimate.errors, estimate.unseen)
        ends = np.where(self.count[..., None] > 0, self.ends, np.nan) / np.maximum(self.count[..., None], 1)
        # the changes of all walks lead to ξ, so that this is the mean of f(z), or the known one
        base = self.prediction - values.sum(axis=0)
        return RowContributions(
            base[None], values[None], errors[None], ends[0][None], ends[1][None], np.array([calls])
        )


def _controlled(phi: Floats, controls: Floats) -> tuple[Floats, float]:
    """Changes (W, d, k) less what controls (W, q) of mean 0 explain, and a factor on the mean's error."""
    pairs, q = controls.shape
    if q == 0:
        return phi, 1.0
    mean = controls.mean(axis=0)
    centred = controls - mean
    slopes = np.linalg.lstsq(centred, phi.reshape(pairs, -1), rcond=None)[0]
    explained = (controls @ slopes).reshape(phi.shape)
    # q slopes were fitted, and are the less certain the further the sample's means are from the known ones
    leverage = pairs * float(mean @ np.linalg.pinv(centred.T @ centred, hermitian=True) @ mean)
    return phi - explained, float(np.sqrt((pairs - 1) / (pairs - 1 - q) * (1.0 + leverage)))


def _with_mean(phi: Floats, starts: Floats, mean: Floats, rounding: Floats) -> tuple[Floats, Floats]:
    """Values and errors (d, k) where f(z) has this mean (k,), by a line through the groups."""
    groups, values = len(phi), phi.mean(axis=0)
    away, gap = starts - starts.mean(axis=0), mean - starts.mean(axis=0)
    spread = (away**2).sum(axis=0)
    usable = (spread > groups * rounding**2) & (groups > 2)
    safe = np.where(usable, spread, 1.0)
    slope = np.einsum("gdk,gk->dk", phi, away) / safe
    rest = phi - values - slope * away[:, None]
    freedom = max(1, groups - 2)
    variance = (rest**2).sum(axis=0) / freedom * (1.0 / groups + gap**2 / safe)
    errors = np.sqrt(variance) * student_factors(np.array(freedom))
    return np.where(usable, values + slope * gap, values), np.where(usable, errors, error_of_mean(phi))
