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
probability 3 / W, as large as the largest change that was seen. Walks go on while the bound is above four
tolerances. So a column that a black box ignores has a contribution of 0, and the error that W pairs cannot
exclude. A random model's noise at ξ, where all walks end, is shared by the columns: its spread over their
number is part of each error.

*Rows that occur* (``law="joint"``) are taken without replacement, pass after pass where there are calls for
all of them: what rows differ by then leaves the error. That of their orders is the variance between the pairs
of one row, or is bounded by how much the two walks of a pair differ. Where a share s of a background was left
out at random, means over n others have s / n times the variance between rows more.

*Control variates.* The changes of a function along the same walks, whose contributions are exact, are
subtracted, with a slope for each column: the margin's behind a curve (``curved_margins.py``), trees fitted to
answers that are of no walk (``set_sampler.py``, which does without walks unless many are allowed). Behind a
curve no model is asked, so that groups are larger, and walks go on until errors are 1 % of the largest
contribution, or some thousand pairs were walked.

Where E_w f is known, the groups' means of f(z) are a control variate: φ_j is the intercept of a line through
the groups' (mean of f(z) - E_w f, φ_j). Slopes of all columns add up to -1, so that base and contributions
still add up. Of a background's own rows f(z) is known, and so are the means of all columns: the pairs' φ_j
are fitted to f(z) and z, and read off at these means. The variance fell to a half to a fifth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from limes._arrays import DIFFERENCE_ROUNDING, Bools, Floats, Ints, fingerprint, streams
from limes._sampling.least_squares import (
    ENOUGH_ANSWERS,
    Tolerance,
    error_of_mean,
    rarity_factors,
    student_factors,
)
from limes._sampling.sampled import SEQUENCES, Sampling
from limes._shapley.curved_margins import CurvedMargin
from limes._shapley.exact import RowContributions
from limes._shapley.starts import DrawnStarts, Passes, Starts, TabulatedStarts, latin_orders, same
from limes._threads import in_threads
from limes.exceptions import InputError
from limes.models._calling.caller import Calls
from limes.models._calling.counts import AnswerCount

# Most pairs of walks in a group, of asked rows and behind a curve. More even rows out further, but leave
# fewer groups, which show the errors
_MOST_PAIRS, _MOST_BEHIND = 8, 32
# Groups at the first look at the errors, and at that behind a curve, and at least, where there are calls for
# several pairs a group
_FIRST_GROUPS, _FIRST_BEHIND, _GROUPS = 8, 16, 10
# SmallestChange pairs that show errors
_FEWEST_PAIRS = 4
# Where answers repeat, so that pairs cost few calls: walks as if this multiple of the calls were allowed
_REPEATED = 8
# Numbers of an array of rows that are asked about together
_NUMBERS = 1 << 22
# Changes of several outputs that are put together at once: more leave the processor's cache
_ESTIMATED = 1 << 19
# Pairs for each coefficient that control variates have
_PAIRS_A_CONTROL = 4
# Accuracy behind a curve, where no model is asked, and groups that a thread walks together there
_BEHIND, _TOGETHER = Tolerance(0.01, relative=True), 8
# Bound of what walks may have missed with which they stop, in units of the tolerance
_MISSED = 4.0
# Pairs that tell a column's most frequent change
_FOR_MEDIAN = 256
# Groups at the next look: as many as the errors call for, with some reserve, and at most this multiple
_CAUTION, _MOST_TIMES = 1.1, 8.0


def _calls_of_a_pair(columns: int) -> int:
    return max(1, 2 * columns - 1)


def least_walked(columns: int) -> int:
    """SmallestChange calls that contributions of columns which all vary are estimated from."""
    return _FEWEST_PAIRS * _calls_of_a_pair(columns)


class ControlVariates(NamedTuple):
    """Functions of a row that are like f, and whose contributions at the explained row are known."""

    contributions: Floats  # (d, m)
    # rows (n, d) to (n, m); margins behind a curve need none
    predict: Callable[[Floats], Floats] | None = None


@dataclass(frozen=True, eq=False)
class PermutationSampler:
    """Contributions at single rows by walks: same seed and same row, same result.

    ``predict`` maps rows (n, d) to (n,) or (n, k); ``asks`` states whether it is the model's.
    """

    predict: Callable[[Floats], Floats]
    sampling: Sampling
    asks: bool = True  # calls of a form are not counted
    # raises an InputError if the model is no longer the one whose predictions are known
    check: Callable[[], None] | None = None
    # what to do where n calls are missing
    advice: Callable[[int], str] = "use {} more".format
    # columns (d,) that a form reads: walks cannot have missed a change by the others
    reads: Bools | None = None

    def at(
        self,
        row: Floats,
        prediction: Floats,
        starts: Starts,
        others: ControlVariates | None = None,
        spent: int = 0,
        *,
        is_current: bool = True,
    ) -> RowContributions:
        """Contributions at one row (d,), given f there (k,), and functions whose contributions are known.

        ``spent`` calls of those that are allowed were made before. A model that may be another one than
        explained the row is checked first.
        """
        if isinstance(self.predict, CurvedMargin):
            return self._behind(self.predict, row, prediction, starts, others)
        tally = AnswerCount()
        with tally.counting():
            account = self._by_calls(row, prediction, starts, others, spent, is_current=is_current)
        calls = np.array([tally.rows if self.asks else 0])
        return replace(account, calls=calls)

    def _by_calls(
        self,
        row: Floats,
        prediction: Floats,
        starts: Starts,
        others: ControlVariates | None,
        spent: int,
        *,
        is_current: bool,
    ) -> RowContributions:
        most_calls, accuracy = max(0, self.sampling.max_calls - spent), self.sampling.accuracy
        varies = self.varies(starts, row)
        a_pair = _calls_of_a_pair(int(varies.sum()))
        pairs = most_calls // a_pair
        if pairs < _FEWEST_PAIRS:
            least = least_walked(int(varies.sum()))
            raise InputError(
                f"{most_calls:,} calls are left for contributions of {varies.sum()} columns, which need "
                f"{least:,}: {self.advice(least - most_calls)}"
            )
        if self.check is not None and not is_current:
            self.check()
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
        rows = _AskedRows(row, prediction, varies, calls.one_pass(calls), others)
        walk = _Walk(row, prediction, varies, size, rows.along, others)
        rng, drawing = np.random.default_rng(self.stream(row)), starts.drawing(size, pairs)
        walk.passes = drawing.passes

        def walked(groups: int) -> Sequence[_Pairs]:
            return [walk.pairs(drawing.draw(rng, count), rng) for count in _in_steps(groups, walk)]

        def room() -> int:
            its = min(most_calls - len(calls), _REPEATED * most_calls - walk.groups * a_group)
            return its // a_group

        estimate = walk.until(accuracy, starts.mean, walked, room)
        # the last change of each walk has the noise of the answer at ξ
        noise = np.where(varies[:, None], self.sampling.spread / max(int(varies.sum()), 1), 0.0)
        estimate = estimate._replace(
            errors=np.hypot(estimate.errors, noise),
            base_errors=np.hypot(estimate.base_errors, noise.sum(axis=0)),
        )
        return walk.result(_with_omitted(estimate, walk, starts))

    def _behind(
        self,
        form: CurvedMargin,
        row: Floats,
        prediction: Floats,
        starts: Starts,
        others: ControlVariates | None,
    ) -> RowContributions:
        """The same without a call: groups are walked on all cores, with a stream of random numbers each."""
        stream = self.stream(row)
        starts = TabulatedStarts.of(starts, row, np.random.default_rng(stream.spawn(1)[0]))
        # of two probabilities one is enough
        first = 1 if form.is_complement(row) else 0
        walk = _Walk(
            row,
            prediction[first:],
            self.varies(starts, row),
            _MOST_BEHIND,
            partial(_along_margins, form, row, first),
            others,
        )
        most = form.most_pairs(row.size) // walk.size

        def walked(groups: int) -> Sequence[_Pairs]:
            counts = _in_steps(groups, walk, _TOGETHER)
            rngs, pairs = list(map(np.random.default_rng, stream.spawn(len(counts)))), dict[int, _Pairs]()

            def one(i: int) -> None:
                drawing = starts.drawing(walk.size, counts[i] * walk.size)
                pairs[i] = walk.pairs(drawing.draw(rngs[i], counts[i]), rngs[i])

            in_threads(one, range(len(counts)))
            return [pairs[i] for i in range(len(counts))]

        accuracy = self.sampling.tolerance or _BEHIND
        mean = None if starts.mean is None else starts.mean[first:]
        estimate = walk.until(accuracy, mean, walked, lambda: most - walk.groups)
        account = walk.result(_with_omitted(estimate, walk, starts))
        return account.with_complement() if first else account

    def varies(self, starts: Starts, row: Floats) -> Bools:
        """Which columns may change a prediction on the way to the row, (d,)."""
        varies = starts.varies(row)
        return varies if self.reads is None else varies & self.reads

    def stream(self, row: Floats) -> np.random.SeedSequence:
        # the first streams are those of the explanation's own draws
        return streams(self.sampling.seed, fingerprint(row), SEQUENCES + 1)[SEQUENCES]


def _with_omitted(estimate: _Estimate, walk: _Walk, starts: Starts) -> _Estimate:
    """Errors with what rows that were left out of a background would change of the means over it."""
    omitted = starts.omitted
    if omitted is None:
        return estimate
    phi = np.concatenate([part.phi for part in walk.parts])
    variance = omitted.share * phi.var(axis=0, ddof=1) / omitted.effective
    factor = student_factors(np.array(len(phi) - 1))
    return estimate._replace(
        errors=np.hypot(estimate.errors, factor * np.sqrt(variance)),
        base_errors=np.hypot(estimate.base_errors, np.sqrt(omitted.base)),
    )


def _in_steps(groups: int, walk: _Walk, most: int | None = None) -> list[int]:
    """Numbers of groups that are walked together, few enough to bound memory."""
    d = walk.row.size
    step = max(1, _NUMBERS // (2 * walk.size * (d + 1) * d))
    step = step if most is None else min(step, most)
    return [min(step, groups - first) for first in range(0, groups, step)]


def _along_margins(
    form: CurvedMargin, row: Floats, first: int, z: Floats, at_z: Floats | None, paths: Ints
) -> tuple[Floats, Floats]:
    del at_z  # walks begin there anyway
    both = form.along(row, np.concatenate([z, z]), paths.reshape(-1, row.size))
    answers, margins = (each.reshape(*paths.shape[:2], row.size + 1, -1) for each in both)
    return answers[..., first:], margins


class _Estimate(NamedTuple):
    """Contributions (d, k) and their errors: those seen, and bounds (d, k) of what may be unseen.

    ``base_errors`` are those of the walks' whole changes, (1, k).
    """

    values: Floats
    errors: Floats
    unseen: Floats
    base_errors: Floats

    def excess(self, accuracy: Tolerance) -> float:
        """The largest error, the base's among them, in units of the tolerance."""
        # walks that never changed the prediction tell nothing but what they may have missed
        errors = np.maximum(self.errors, self.unseen / _MISSED) if self.values.any() else self.unseen
        return float(accuracy.with_base(self.values, errors, self.base_errors[0]))


# Rows z (W, d), f(z) (W, k) if it is known, and orders of columns (2, W, d), there and back, to answers after
# each step (2, W, d + 1, k), and to those of `Others` (2, W, d + 1, m)
Along: TypeAlias = Callable[[Floats, Floats | None, Ints], tuple[Floats, Floats | None]]


@dataclass(frozen=True, eq=False)
class _AskedRows:
    """A function that is asked about the rows of walks to ξ (d,), whose prediction is (k,)."""

    row: Floats
    prediction: Floats
    varies: Bools  # (d,)
    ask: Callable[[Floats], Floats]
    others: ControlVariates | None

    def along(self, z: Floats, at_z: Floats | None, paths: Ints) -> tuple[Floats, Floats | None]:
        d = self.row.size
        place = np.argsort(paths, axis=2)
        differs = ~same(z, self.row) & self.varies
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
        beside = None
        if self.others is not None and self.others.predict is not None:
            rows = np.where(place[:, :, None] < np.arange(d + 1)[:, None], self.row, z[:, None])
            beside = self.others.predict(rows.reshape(-1, d)).reshape(*asks.shape, -1)
        return np.take_along_axis(answers, latest[..., None], axis=2), beside


class _Pairs(NamedTuple):
    """Sums over W pairs of walks."""

    phi: Floats  # what columns change, (W, d, k)
    starts: Floats  # f(z), (W, k)
    controls: Floats  # control variates of mean 0, (W, 1, q), or of each column, (W, d, m)
    places: Ints  # of z in a background, (W,); or none
    gaps: Floats  # squares of half of what the walk back changes otherwise, added up, (d, k)
    # sums of what columns do as the first and as the last one of a walk, (2, d, k), and of how many walks
    ends: Floats
    counts: Floats


@dataclass(eq=False)
class _Walk:
    """All walks to one row ξ (d,), whose prediction is (k,)."""

    row: Floats
    prediction: Floats
    varies: Bools  # (d,)
    size: int  # of a group, in pairs
    along: Along
    others: ControlVariates | None = None
    passes: Passes | None = None
    parts: list[_Pairs] = field(default_factory=list)

    @property
    def groups(self) -> int:
        return sum(len(part.phi) for part in self.parts) // self.size

    def until(
        self,
        accuracy: Tolerance,
        mean: Floats | None,
        walked: Callable[[int], Sequence[_Pairs]],
        room: Callable[[], int],
    ) -> _Estimate:
        """Walk groups until the tolerance is met, or there is no room for more."""
        goal = _FIRST_GROUPS if self.size <= _MOST_PAIRS else _FIRST_BEHIND
        estimate: _Estimate | None = None
        while True:
            # decided before these groups are drawn: a group is never left out because of what it costs
            count = min(goal - self.groups, room())
            if count > 0:
                self.parts += walked(count)
            elif estimate is not None:
                return estimate
            estimate = self.estimate(mean)
            excess = estimate.excess(accuracy)
            if excess <= 1.0:
                return estimate
            needed = min(_CAUTION * self.groups * excess**2, _MOST_TIMES * self.groups)
            goal = max(int(needed), self.groups + -(-self.groups // 4))

    def pairs(self, drawn: DrawnStarts, rng: np.random.Generator) -> _Pairs:
        """Walk from further groups of rows."""
        z, at_z, controls, places = drawn
        order = latin_orders(rng, len(z) // self.size, self.size, self.row.size)
        paths = np.stack([order, order[:, ::-1]])
        answers, beside = self.along(z, at_z, paths)
        place = np.argsort(paths, axis=2)[..., None]
        changes = np.diff(answers, axis=2)
        ends, counts = np.zeros((2, self.row.size, self.prediction.size)), np.zeros((2, self.row.size))
        for end, at in enumerate((0, -1)):
            columns = paths[:, :, at].reshape(-1)
            counts[end] = np.bincount(columns, minlength=self.row.size)
            for k, its in enumerate(changes[:, :, at].reshape(-1, self.prediction.size).T):
                ends[end, :, k] = np.bincount(columns, its, minlength=self.row.size)
        if controls is not None:
            controls = controls[:, None]
        elif beside is not None and self.others is not None:
            its = np.take_along_axis(np.diff(beside, axis=2), place, axis=2)
            controls = 0.5 * (its[0] + its[1]) - self.others.contributions
        else:
            controls = np.empty((len(z), 1, 0))
        forward, back = np.take_along_axis(changes, place, axis=2)
        gaps = (0.25 * (forward - back) ** 2).sum(axis=0)
        places = np.empty(0, dtype=np.int64) if places is None else places
        return _Pairs(0.5 * (forward + back), answers[0, :, 0], controls, places, gaps, ends, counts)

    def estimate(self, mean: Floats | None) -> _Estimate:
        """Contributions by all walks so far, given E_w f (k,), if it is known."""
        k, numbers = self.prediction.size, self.groups * self.size * self.row.size
        step = max(1, _ESTIMATED // numbers)
        blocks = [slice(first, first + step) for first in range(0, k, step)]
        estimates = dict[int, _Estimate]()

        def one(i: int) -> None:
            estimates[i] = self._estimate(blocks[i], mean)

        in_threads(one, range(len(blocks)))
        each = zip(*(estimates[i] for i in range(len(blocks))), strict=True)
        return _Estimate(*(np.concatenate(parts, axis=1) for parts in each))

    def _estimate(self, outputs: slice, mean: Floats | None) -> _Estimate:
        phi, starts = (
            np.concatenate([getattr(part, name)[..., outputs] for part in self.parts])
            for name in ("phi", "starts")
        )
        controls, places = (
            np.concatenate([getattr(part, name) for part in self.parts]) for name in ("controls", "places")
        )
        # the first ones by themselves, where pairs are few
        sizes = controls.shape[2], 0 if self.others is not None else self.prediction.size
        used = next((q for q in sizes if len(phi) >= _PAIRS_A_CONTROL * (1 + q)), 0)
        reduced, widened = _controlled(phi, controls[:, :, :used])
        # one more column has the walks' whole changes, whose errors are those of the base
        changes, phi = _with_whole(phi), _with_whole(reduced)
        widened = np.append(np.broadcast_to(widened, (len(self.varies), 1)), [[widened.max()]], axis=0)
        prediction = self.prediction[outputs]
        size = np.maximum(np.abs(starts).max(axis=0), np.abs(prediction))
        by_group = phi.reshape(-1, self.size, *phi.shape[1:]).mean(axis=1)
        values, errors = by_group.mean(axis=0), error_of_mean(by_group)
        if self.passes is not None:
            gaps = np.sum([part.gaps[:, outputs] for part in self.parts], axis=0) / len(phi)
            gaps = np.concatenate([gaps, np.zeros((1, gaps.shape[1]))])  # both walks of a pair begin at z
            errors = _error_of_passes(phi, places, gaps, self.passes)
        if mean is not None:
            starts = starts.reshape(len(by_group), self.size, -1).mean(axis=1)
            values, errors = _with_mean(by_group, starts, mean[outputs], DIFFERENCE_ROUNDING * size)
        errors = errors * rarity_factors(phi) * widened
        rounding = DIFFERENCE_ROUNDING * size
        is_share = (prediction >= 0.0) & (prediction <= 1.0)

        def unseen(columns: slice, varies: Bools) -> Floats:
            its = changes[:, columns]
            largest = np.abs(its).max(axis=(0, 1))
            largest = np.where(largest > rounding, largest, np.where(is_share, 1.0, np.inf))
            bound = _unseen(its, varies, largest, rounding)
            if not used:
                return bound
            # what controls leave may be as rare as what columns change; where they leave nothing of any walk,
            # one that was not drawn may leave as much as the largest change, unless f(z) is the control
            rest = np.abs(phi[:, columns] - values[columns]).max(axis=(0, 1))
            if columns is not whole or self.others is not None:
                rest = np.where(rest > rounding, rest, largest)
            return np.maximum(bound, _unseen(phi[:, columns], varies, rest, rounding))

        columns, whole = slice(0, -1), slice(-1, None)
        base_unseen = unseen(whole, np.array([self.varies.any() and mean is None]))
        return _Estimate(
            values[columns],
            errors[columns],
            unseen(columns, self.varies),
            np.maximum(errors[whole], base_unseen),
        )

    def result(self, estimate: _Estimate) -> RowContributions:
        values, errors = estimate.values, np.maximum(estimate.errors, estimate.unseen)
        ends, counts = (sum(getattr(part, name) for part in self.parts) for name in ("ends", "counts"))
        counts = counts[..., None]
        ends = np.divide(ends, counts, out=np.full(ends.shape, np.nan), where=counts > 0)
        # the changes of all walks lead to ξ, so that this is the mean of f(z), or the known one
        base = self.prediction - values.sum(axis=0)
        numbers = (base, values, errors, ends[0], ends[1], 0, estimate.base_errors[0])
        return RowContributions(*(np.asarray(number)[None] for number in numbers))


def _with_whole(phi: Floats) -> Floats:
    """Changes (W, d, k) and their sums, (W, d + 1, k)."""
    return np.concatenate([phi, phi.sum(axis=1, keepdims=True)], axis=1)


def _unseen(phi: Floats, varies: Bools, largest: Floats, rounding: Floats) -> Floats:
    """Errors (d, k) by which pairs may have missed rare changes; 0 where enough pairs have changes."""
    # of few pairs the ones that are unlike most others; the median is the most frequent change then
    unlike = (np.abs(phi - np.median(phi[:_FOR_MEDIAN], axis=0)) > rounding).sum(axis=0)
    few = varies[:, None] & (unlike < min(ENOUGH_ANSWERS, len(phi) // 2))
    return np.where(few, 3.0 / 1.96 / len(phi) * largest, 0.0)


def _controlled(phi: Floats, controls: Floats) -> tuple[Floats, Floats]:
    """Changes (W, d, k) less what controls (W, d or 1, q) of mean 0 explain, and factors on errors."""
    pairs, _, q = controls.shape
    if q == 0:
        return phi, np.ones((phi.shape[1], 1))
    mean = controls.mean(axis=0)
    centred = (controls - mean).transpose(1, 2, 0)
    # controls that vary by rounding alone tell nothing
    centred = np.where(np.abs(centred) > DIFFERENCE_ROUNDING * np.abs(controls).max(), centred, 0.0)
    # a sum of many products has the rounding of each: what is smaller may be below 0
    least = pairs * np.finfo(np.float64).eps
    inverse = np.linalg.pinv(centred @ centred.transpose(0, 2, 1), rcond=least, hermitian=True)
    slopes = inverse @ (centred @ phi.transpose(1, 0, 2))
    explained = (controls.transpose(1, 0, 2) @ slopes).transpose(1, 0, 2)
    # q slopes were fitted, and are the less certain the further the sample's means are from the known ones
    leverage = pairs * np.einsum("cq,cqr,cr->c", mean, inverse, mean)
    return phi - explained, np.sqrt((pairs - 1) / (pairs - 1 - q) * (1.0 + leverage))[:, None]


def _error_of_passes(phi: Floats, places: Ints, gaps: Floats, passes: Passes) -> Floats:
    """Errors (d, k) of the mean of changes (W, d, k) of walks from these places of a background.

    Rows differ, and so do the orders of one row's walks. The latter's variance is that between its pairs, or,
    where rows are hardly met twice, at most the mean square of half of what a pair's two walks differ by
    (d, k), as these vary against each other. The former counts as far as rows are met unevenly.
    """
    pairs = len(phi)
    between = phi.var(axis=0, ddof=1)
    _, row, counts = np.unique(places, return_inverse=True, return_counts=True)
    freedom = pairs - len(counts)
    if freedom < ENOUGH_ANSWERS:
        within, freedom = np.minimum(gaps, between), pairs - 1
    else:
        sums = np.zeros((len(counts), *phi.shape[1:]))
        np.add.at(sums, row, phi)
        within = ((phi - (sums / counts[:, None, None])[row]) ** 2).sum(axis=0) / freedom
    rest = pairs % passes.pairs
    uneven = rest * (1.0 - rest / passes.pairs) + pairs / passes.pairs * passes.uneven
    variance = within / pairs + np.maximum(between - within, 0.0) * uneven / pairs**2
    return np.asarray(np.sqrt(variance) * student_factors(np.array(freedom)))


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
