r"""The range of a form's answers over rows, and its least answer in a box by a best-first search.

A box lists the values that each column may take, and contains all their combinations. A sum reaches the sum
of its columns' least effects. A forest is at least the sum of its trees' least leaves that the box reaches,
which is the answer itself where every tree reaches one leaf (``kernels/tree_bounds.cpp``). Otherwise the box
with the least bound is cut in two at a split of which it reaches both sides, until the box with the least
bound has one answer. The largest answers of f are the least of -f.

``answer_range`` needs no search: a sum lies in Σ_j [min f_j, max f_j], each over the values of column j, and
reaches both ends; a forest lies between the sums of its trees' least and largest leaves, a combination
between those of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from heapq import heappop, heappush
from itertools import count
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logsumexp, softmax

from limes import _kernels
from limes._arrays import Bools, Floats, Ints, times
from limes._functions import (
    LARGEST,
    Bump,
    Decay,
    Filled,
    Function,
    Identity,
    Lookup,
    Members,
    Polynomial,
    Power,
    Stacked,
    is_line,
)
from limes._functions import parts as families_of
from limes._functions import texture as texture_of
from limes.exceptions import InputError, NotReadableError
from limes.models._algebra import map_outputs
from limes.models.forms._base import (
    Combination,
    Form,
    GaussianKernels,
    Reducible,
    Sum,
    SumOfProducts,
    outputs_of,
)
from limes.models.forms._linked import Linked, Ridges, Softmax, as_sum
from limes.models.forms._links import CURVES
from limes.models.forms._trees import Forest
from limes.models.readers.links import Curve, matching_curve

Box = tuple[Floats, ...]


@dataclass(frozen=True, eq=False)
class Range:
    """Bounds over a box, and where to cut it: columns, thresholds and stakes of the cuts, (n,) each."""

    low: float
    high: float
    columns: Ints
    thresholds: Floats
    stakes: Floats

    def scaled(self, factor: float) -> Range:
        low, high = sorted((factor * self.low, factor * self.high))
        return Range(low, high, self.columns, self.thresholds, abs(factor) * self.stakes)


Kind = Literal["constant", "line", "other"]
_KINDS: tuple[Kind | None, ...] = (None, "constant", "line", "other")


@dataclass(frozen=True, eq=False)
class Texture:
    """How an answer depends on one column: where it may jump, and what it is in between."""

    breaks: Floats  # ascending
    # "constant", "line", or "other"; None where nothing depends on the column
    between: Kind | None = None

    def joined(self, other: Texture) -> Texture:
        between = max(self.between, other.between, key=_KINDS.index)
        return Texture(np.union1d(self.breaks, other.breaks), between)


UNREAD = Texture(np.zeros(0))


class Bounds:
    """Bounds of one form over boxes."""

    def values(self, rows: Floats) -> Floats:
        """Return what is bounded at rows (n, d), (n,)."""
        raise NotImplementedError

    def texture(self, j: int) -> Texture:
        """Return how what is bounded depends on column j."""
        raise NotImplementedError

    def __call__(self, box: Box) -> Range:
        """Return bounds that hold for every row of the box, and are reached where nothing is at stake."""
        raise NotImplementedError

    def lowest(self, box: Box, sign: float) -> Floats | None:  # noqa: ARG002 - columns may act together
        """Return the row with the least sign · f; None where columns cannot be minimised one by one."""
        return None

    def effects(self, box: Box) -> tuple[float, list[Floats]] | None:  # noqa: ARG002 - as above
        """Return a constant and the effects of each column's values that add up to f; None without such."""
        return None


def unbounded(reason: str, instead: str) -> NotReadableError:
    """Return the error about a model without bounds, which was not read for a ``reason``."""
    if "output='margin'" in reason:  # which would be of no help: the margin was tried, too
        reason = "neither its answers nor the margins behind them have some that are read"
    return NotReadableError(
        "objective='certain' needs a model with bounds over boxes, such as trees, sums, products of "
        "functions of columns and what is monotone in one of them: "
        f"{reason or 'this model has none that are read'}; {instead} takes any model"
    )


def bounds_of(form: Form) -> Bounds | None:
    """Return the bounds of a form of one output; None where boxes do not bound the form."""
    try:
        return _SumBounds(as_sum(form))
    except InputError:
        pass
    match form:
        case Forest():
            return ForestBounds(form)
        case Combination():
            parts = [bounds_of(part) for part in form.parts]
            bounded = [part for part in parts if part is not None]
            if len(bounded) < len(parts):
                return None
            return WeightedBounds(tuple(bounded), form.weights, float(form.intercept))
        case Linked() if form.curve.is_monotone and form.coef.size == 1:
            margin = bounds_of(form.margin)
            return None if margin is None else _LinkedBounds(margin, form)
        case GaussianKernels() if form.coef.ndim == 1:
            return KernelBounds(form)
        case Ridges() if form.scales.ndim == 1 and _is_monotone(form.activation):
            return RidgeBounds(form)
        case Linked() if form.curve.is_monotone and not outputs_of(form):
            with suppress(InputError):  # columns interact before the link
                return UnitBounds(form, form.terms) if _have_ranges(form.terms) else None
        case Reducible() if not outputs_of(form):
            terms = form.reduce()
            return ProductBounds(form, terms) if _have_ranges(terms) else None
    return None


def _have_ranges(terms: Sum | SumOfProducts) -> bool:
    """Whether the range of each column's functions between two values is known."""
    return all(function is None or _has_range(function) for function in terms.functions)


def _is_monotone(activation: str) -> bool:
    return activation == "identity" or CURVES[activation].is_monotone


def _kind_of(function: Function) -> Kind:
    if texture_of(function).constant:
        return "constant"
    return "line" if is_line(function) else "other"


def _breaks_of(function: Function) -> Floats:
    """Return where functions may jump or bend, ascending."""
    keys = np.concatenate([_keys_of(family) for family in families_of(function)])
    # numbers that are looked up differ from those on their two sides
    return np.unique(np.concatenate([texture_of(function).breaks, keys, np.nextafter(keys, -np.inf)]))


def _keys_of(function: Function) -> Floats:
    """Return the numbers that functions look up; any other number has another value."""
    match function:
        case Lookup():
            return function.keys
        case Members():
            return np.arange(float(function.group.size))
    return np.zeros(0)


@dataclass(frozen=True)
class Minimum:
    """The least answer over a box, or a lower bound of it where the search stopped early."""

    value: float  # lower bound of the answers in the box
    row: Floats | None  # a row whose answer is ``value``; None where the search stopped before


@dataclass
class Limit:
    """Values that are small enough: those below a number, unless the model itself says otherwise.

    Its answers are monotone in the value. So where the model refuses a row, larger values are not small
    enough, either, but for ``blur``, the rounding of two values.
    """

    below: float
    reaches: Callable[[Floats], bool]
    blur: float

    def admits(self, row: Floats, value: float) -> bool:
        if self.reaches(row):
            return True
        self.below = min(self.below, value + self.blur)
        return False


def least(bounds: Bounds, box: Box, *, sign: float = 1.0, boxes: int, limit: Limit | None = None) -> Minimum:
    """Search for the least value of sign · f over a box, or for a row that a limit admits."""
    number = count()
    ends, row = _signed(bounds(box), sign), bounds.lowest(box, sign)
    if row is not None and (limit is None or (ends.low < limit.below and limit.admits(row, ends.low))):
        return Minimum(ends.low, row)
    pending = [(ends.low, next(number), box, ends)]
    while pending:
        low, _, box, ends = heappop(pending)
        if limit is not None and low >= limit.below:
            return Minimum(low, None)
        is_one = not ends.stakes.any()
        if is_one or (limit is not None and ends.high < limit.below < np.inf):
            row = np.array([values[0] for values in box])
            if limit is None or limit.admits(row, ends.high):
                return Minimum(low, row)
            if is_one:
                continue
        if boxes == 0:
            return Minimum(low, None)
        boxes -= 1
        for part in _halves(box, ends):
            inner = _signed(bounds(part), sign)
            # roundings of sums must not lower a bound
            heappush(pending, (max(inner.low, low), next(number), part, inner))
    return Minimum(np.inf, None)


def _signed(ends: Range, sign: float) -> Range:
    return ends if sign > 0 else ends.scaled(-1.0)


def _halves(box: Box, ends: Range) -> tuple[Box, Box]:
    """Cut the column with the largest stakes at the median of its thresholds, weighted by their stakes."""
    stakes = np.bincount(ends.columns, ends.stakes, minlength=len(box))
    j = int(np.argmax(stakes))
    of_column = ends.columns == j
    thresholds, weight = ends.thresholds[of_column], ends.stakes[of_column]
    order = np.argsort(thresholds, kind="stable")
    middle = int(np.searchsorted(np.cumsum(weight[order]), 0.5 * weight.sum()))
    values = box[j]
    lower = values <= thresholds[order][min(middle, order.size - 1)]
    if lower.all() or not lower.any():
        lower = np.arange(values.size) < (values.size + 1) // 2
    return tuple((*box[:j], values[part], *box[j + 1 :]) for part in (lower, ~lower))  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class _SumBounds(Bounds):
    form: Sum

    def values(self, rows: Floats) -> Floats:
        return np.asarray(self.form.predict(rows))

    def texture(self, j: int) -> Texture:
        function = self.form.functions[j]
        if function is None or not np.any(self.form.loadings[j]):
            return UNREAD
        families = [*families_of(function)]
        between = max(map(_kind_of, families), key=_KINDS.index)
        return Texture(_breaks_of(function), between)

    def __call__(self, box: Box) -> Range:
        low = high = float(self.form.intercept)
        columns, middles, stakes = [], [], []
        for j, (function, loading) in enumerate(zip(self.form.functions, self.form.loadings, strict=True)):
            if function is None:
                continue
            effects = times(function(box[j]).T, loading)
            low, high = low + float(effects.min()), high + float(effects.max())
            columns.append(j)
            middles.append(float(box[j][(box[j].size - 1) // 2]))
            stakes.append(float(np.ptp(effects)))
        return Range(low, high, np.array(columns, dtype=np.int64), np.array(middles), np.array(stakes))

    def effects(self, box: Box) -> tuple[float, list[Floats]]:
        form = self.form
        return float(form.intercept), [
            np.zeros(values.size) if function is None else times(function(values).T, loading)
            for values, function, loading in zip(box, form.functions, form.loadings, strict=True)
        ]

    def lowest(self, box: Box, sign: float) -> Floats:
        row = np.array([values[0] for values in box])
        for j, (function, loading) in enumerate(zip(self.form.functions, self.form.loadings, strict=True)):
            if function is not None:
                row[j] = box[j][np.argmin(sign * times(function(box[j]).T, loading))]
        return row


@dataclass(frozen=True, eq=False)
class WeightedBounds(Bounds):
    """Bounds of a weighted sum of what has bounds."""

    parts: tuple[Bounds, ...]
    weights: Floats
    intercept: float

    def values(self, rows: Floats) -> Floats:
        return self.intercept + times(np.stack([part.values(rows) for part in self.parts], 1), self.weights)

    def texture(self, j: int) -> Texture:
        return reduce(Texture.joined, (part.texture(j) for part in self.parts))

    def __call__(self, box: Box) -> Range:
        parts = [part(box).scaled(float(w)) for part, w in zip(self.parts, self.weights, strict=True)]
        return Range(
            self.intercept + sum(part.low for part in parts),
            self.intercept + sum(part.high for part in parts),
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.thresholds for part in parts]),
            np.concatenate([part.stakes for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class _LinkedBounds(Bounds):
    margin: Bounds
    form: Linked

    def values(self, rows: Floats) -> Floats:
        curve = self.form.curve.function(self.margin.values(rows))
        return float(np.ravel(self.form.intercept)[0]) + self._coef * np.asarray(curve)

    def texture(self, j: int) -> Texture:
        return self.margin.texture(j)  # monotone: its ends are where the margin's are

    def __call__(self, box: Box) -> Range:
        of_margin = self.margin(box)
        ends = self.form.curve.function(np.array([of_margin.low, of_margin.high]))
        low, high = np.sort(float(np.ravel(self.form.intercept)[0]) + self._coef * ends)
        return Range(float(low), float(high), of_margin.columns, of_margin.thresholds, of_margin.stakes)

    def lowest(self, box: Box, sign: float) -> Floats | None:
        return self.margin.lowest(box, sign * np.sign(self._coef))

    @property
    def _coef(self) -> float:
        assert self.form.coef is not None  # noqa: S101 - set by __post_init__
        return float(self.form.coef.ravel()[0])


@dataclass(frozen=True, eq=False)
class ForestBounds(Bounds):
    """The least and the largest leaf of each tree."""

    form: Forest

    def values(self, rows: Floats) -> Floats:
        return self.form.predict(rows)

    def texture(self, j: int) -> Texture:
        tests = self.form.feature == j
        if not tests.any():
            return UNREAD
        of_set = self.form.set_of >= 0
        # a code that a set has differs from the numbers on its two sides
        codes = np.flatnonzero(self.form.sets[self.form.set_of[tests & of_set]].any(axis=0)).astype(
            np.float64
        )
        breaks = [self.form.threshold[tests & ~of_set], codes, np.nextafter(codes, -np.inf)]
        return Texture(np.unique(np.concatenate(breaks)), "constant")

    def __call__(self, box: Box) -> Range:
        form, trees = self.form, self.form.roots.size
        ends, missing = np.empty((form.size, 2)), np.empty(form.size, dtype=np.bool_)
        for j, values in enumerate(box):
            missing[j] = np.isnan(values[-1])
            numbers = values[: values.size - missing[j]]
            # (lower, upper] without a number between: only a missing value is possible
            ends[j] = (numbers[0], numbers[-1]) if numbers.size else (LARGEST, -LARGEST)
        ends = np.maximum(ends, -LARGEST)
        ends[:, 0] = np.nextafter(ends[:, 0], -np.inf)
        bounds, undecided = np.empty((2, trees)), np.empty(trees, dtype=np.int64)
        _kernels.bound_leaves(form.trees, ends, missing, self._codes(box), form.value, bounds, undecided)
        gaps = bounds[1] - bounds[0]
        open_ones = (undecided >= 0) & (gaps > 0.0)
        nodes = undecided[open_ones]
        low, high = bounds.sum(axis=1) + float(form.intercept)
        return Range(low, high, form.feature[nodes], form.threshold[nodes], gaps[open_ones])

    def _codes(self, box: Box) -> Bools:
        """Return which codes each column may take, and last whether any other number, (d, L + 1)."""
        codes = self.form.sets.shape[1]
        allowed = np.zeros((self.form.size, codes + 1), dtype=np.bool_)
        if not codes:
            return allowed
        for j in np.unique(self.form.feature[self.form.set_of >= 0]):
            numbers = box[j][~np.isnan(box[j])]
            is_code = (numbers >= 0) & (numbers < codes) & (numbers == np.floor(numbers))
            allowed[j, np.where(is_code, numbers, codes).astype(np.int64)] = True
        return allowed


def answer_range(form: Form, values: Box) -> tuple[float, float] | None:
    """Return the least and the largest answer of a form of one output; None where they are not bounded."""
    ends = _range(form, values)
    return None if ends is None or not np.isfinite(ends).all() else (float(ends[0]), float(ends[1]))


def _range(form: Form, values: Box) -> Floats | None:
    match form:
        case Forest():
            return form.extremes
        case Combination():
            parts = [_range(part, values) for part in form.parts]
            weighted = [w * p for w, p in zip(form.weights, parts, strict=True) if p is not None]
            if len(weighted) < len(parts):
                return None
            return np.asarray(float(form.intercept) + np.sort(weighted, axis=1).sum(axis=0))
        case Reducible():
            total = form.reduce()
            if isinstance(total, Sum):
                ends = _SumBounds(total)(values)
                return np.array([ends.low, ends.high])
    return None


# -- the margin behind answers ------------------------------------------------------------------------------
#
# Where answers are a monotone link of one margin, "answer above t" is "margin above link⁻¹(t)", or below
# it where the link falls, as that of 1 - P does. Margins are sums and forests, which have bounds; answers
# have none where the probability itself is not read (boosted trees), and equal ones where the link is flat.
# A softmax is the logistic function of one class's log-odds against the others,
#
#     log p_a / (1 - p_a) = -log Σ_{b≠a} e^{-(m_a - m_b)},
#
# which rises with each m_a - m_b, so that bounds of these differences bound it.
#
# The model's own answers decide. They differ from link(margin) by rounding, so the margin's threshold is
# where an answer *may* still be beyond t, and the model is asked about each row that the search finds.


# Halvings of an interval of margins, after which its end is known to more digits than margins are
_HALVINGS = 60
# Beyond it a link has reached the end of its range, or has none
_FARTHEST = 1e30
# Least weight of a class's columns where a box is cut: they stay open however unlikely the class is
_LEAST_WEIGHT = 1e-9


@dataclass(frozen=True)
class Crossing:
    """The goal on what is bounded: sign · margin < threshold, but for rounding."""

    sign: float
    threshold: float
    blur: float  # largest difference of two margins that the model may take for equal; inf where not known


@dataclass(frozen=True, eq=False)
class Searched:
    """Bounds over boxes, and the curve from what they bound to the answers."""

    bounds: Bounds
    curve: Curve | None = (
        None  # (n,) -> (n,), rising or falling; None where the answers themselves are bounded
    )
    tolerance: float = 0.0  # rounding of the model, relative to its largest numbers
    size: float = 0.0  # of the margins

    def answers(self, rows: Floats) -> Floats:
        """Return the answers at rows (n, d) by what was read, (n,)."""
        values = self.bounds.values(rows)
        return values if self.curve is None else np.asarray(self.curve(values))

    def rounding(self, threshold: float) -> float:
        """Return the largest difference of answers by what was read and of the model's, near a threshold."""
        if self.curve is None:
            return self.tolerance * max(self.size, abs(threshold))
        ends = np.abs(self.curve(np.array([-np.inf, np.inf])))
        return float(self.tolerance * max(abs(threshold), *ends[np.isfinite(ends)].tolist(), 0.0))

    def crossing(self, sign: float, threshold: float) -> Crossing | None:
        """Return the goal sign · answer < sign · threshold on what is bounded; None if none reaches it."""
        if self.curve is None:
            return Crossing(sign, sign * threshold, np.inf)
        first, last = self.curve(np.array([-np.inf, np.inf])).tolist()
        towards = sign if first < last else -sign
        best = first if towards > 0 else last
        largest = max([abs(threshold), *(abs(end) for end in (first, last) if np.isfinite(end))])
        blur = self.tolerance * largest
        # ends of probabilities and means are numbers that no rounding passes
        if sign * best >= sign * threshold + (0.0 if best in (0.0, 1.0) else blur):
            return None

        def may_reach(margin: float) -> bool:
            assert self.curve is not None  # noqa: S101 - checked above
            return bool(sign * self.curve(np.array([towards * margin]))[0] < sign * threshold + blur)

        off = self.tolerance * self.size
        return Crossing(towards, _last(may_reach) + off, 2.0 * off)


def _last(holds: Callable[[float], bool]) -> float:
    """Return a number, or infinity, up to which something holds that does not hold beyond."""
    low, high = -1.0, 1.0
    while not holds(low):
        low *= 2.0
        if low < -_FARTHEST:
            return -np.inf
    while holds(high):
        high *= 2.0
        if high > _FARTHEST:
            return np.inf
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


def searched_form(form: Form, rows: Floats, tolerance: float) -> Searched | None:
    """Return what a form of one output is searched on; ``rows`` (n, d) show the size of its margin."""
    match form:
        case Linked() if form.curve.is_monotone and np.count_nonzero(form.coef) == 1:
            (k,) = np.flatnonzero(form.coef)
            margin = form.margin if not outputs_of(form.margin) else form.margin.select(int(k))
            bounds, values = bounds_of(margin), margin.predict(rows)

            def answers(margins: Floats) -> Floats:
                return np.asarray(form.intercept + form.coef[k] * form.curve.function(margins))

        case Softmax() if np.count_nonzero(form.coef) == 1:
            (k,) = np.flatnonzero(form.coef)
            bounds, values = _odds_bounds(form.margin, int(k)), form.margin.predict(rows)

            def answers(margins: Floats) -> Floats:
                return np.asarray(form.intercept + form.coef[k] * expit(margins))

        case _:
            bounds = bounds_of(form)
            size = float(np.abs(form.predict(rows)).max())
            return None if bounds is None else Searched(bounds, None, tolerance, size)
    return None if bounds is None else Searched(bounds, answers, tolerance, float(np.abs(values).max()))


def searched_margin(
    margin: Form, column: int | None, rows: Floats, answers: Floats, tolerance: float
) -> Searched | None:
    """Return what answers (n,) at rows (n, d) are searched on, by the margin behind them; None if it is not.

    ``column`` is that of the answers among all predictions, None where the model has one output.
    """
    values, allowed = margin.predict(rows), tolerance * float(np.abs(answers).max())

    def pick(predictions: Floats) -> Floats:
        return predictions if column is None else predictions[:, column]

    if values.ndim == 1:
        curve, bounds = matching_curve(values, answers, pick, allowed), bounds_of(margin)
    else:
        curve, bounds = None, None
        # as a softmax, and as AdaBoost's, of margins over the number of other classes
        for factor in (1.0, 1.0 / max(values.shape[1] - 1, 1)):
            computed = pick(np.asarray(softmax(factor * values, axis=1)))
            if computed.shape == answers.shape and (np.abs(computed - answers) <= allowed).all():
                assert column is not None  # noqa: S101 - one answer of several
                curve, bounds = expit, _odds_bounds(margin, column, factor)
                break
    if curve is None or bounds is None:
        return None
    return Searched(bounds, curve, tolerance, float(np.abs(values).max()))


def _odds_bounds(margins: Form, k: int, factor: float = 1.0) -> Bounds | None:
    """Return the bounds of class k's log-odds; None where a difference of two margins has none."""
    (classes,) = outputs_of(margins)
    unit = factor * np.eye(classes)
    try:
        parts = [bounds_of(map_outputs(margins, unit[k] - unit[b])) for b in range(classes) if b != k]
    except InputError:
        return None
    bounded = [part for part in parts if part is not None]
    return _OddsBounds(tuple(bounded)) if len(bounded) == len(parts) else None


@dataclass(frozen=True, eq=False)
class _OddsBounds(Bounds):
    parts: tuple[Bounds, ...]  # of m_a - m_b, for each other class b

    def values(self, rows: Floats) -> Floats:
        return -np.asarray(logsumexp([-part.values(rows) for part in self.parts], axis=0))

    def texture(self, j: int) -> Texture:
        return reduce(Texture.joined, (part.texture(j) for part in self.parts))

    def __call__(self, box: Box) -> Range:
        parts = [part(box) for part in self.parts]
        lows, highs = np.array([[part.low, part.high] for part in parts]).T
        weights = np.maximum(softmax(-lows), _LEAST_WEIGHT)
        stakes: Any = [w * part.stakes for w, part in zip(weights, parts, strict=True)]
        return Range(
            -float(logsumexp(-lows)),
            -float(logsumexp(-highs)),
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.thresholds for part in parts]),
            np.concatenate(stakes),
        )


# -- kernel machines and networks ---------------------------------------------------------------------------
#
# Each term has a range over a box: a Gaussian kernel between those at the nearest and at the farthest point
# of the box from its centre, a monotone activation between those at the ends of its sum, a product of
# functions of columns between products of their ends. The sum of the terms lies between the sums of their
# ends, which no row need reach. Behind encoders and imputers columns have functions of categories and missing
# values, too.


@dataclass(frozen=True, eq=False)
class IntervalBounds(Bounds):
    """Bounds over all rows between the first and the last value of each column of a box."""

    form: Any

    def values(self, rows: Floats) -> Floats:
        return np.asarray(self.form.predict(rows))

    def texture(self, j: int) -> Texture:  # noqa: ARG002 - every column is alike
        return Texture(np.zeros(0), "other")

    def __call__(self, box: Box) -> Range:
        low, high, stakes = self.ends(box)
        return Range(low, high, np.arange(len(box)), self.cuts(box), stakes)

    def cuts(self, box: Box) -> Floats:
        """Return the threshold of each column at which a box is cut."""
        lower, upper = _corners(box)
        return 0.5 * (lower + upper)

    def ends(self, box: Box) -> tuple[float, float, Floats]:
        """Return a lower and an upper bound over a box, and what each column adds to their gap."""
        raise NotImplementedError


def _corners(box: Box) -> tuple[Floats, Floats]:
    """The first and the last value of each column of a box."""
    lower, upper = np.array([[values[0], values[-1]] for values in box]).T
    return lower, upper


@dataclass(frozen=True, eq=False)
class KernelBounds(IntervalBounds):
    """Bounds of Gaussian kernels, from the nearest and the farthest point of a box."""

    form: GaussianKernels

    def ends(self, box: Box) -> tuple[float, float, Floats]:
        (lower, upper), form, inverse = _corners(box), self.form, 1.0 / self.form.scales
        first, last = (lower - form.centers) * inverse, (upper - form.centers) * inverse
        near = np.where((first < 0.0) & (last > 0.0), 0.0, np.minimum(first**2, last**2))
        far = np.maximum(first**2, last**2)
        largest, least = np.exp(-0.5 * near.sum(axis=1)), np.exp(-0.5 * far.sum(axis=1))
        return _weighted(form.coef, least, largest, form.intercept, largest[:, None] * (far - near))


@dataclass(frozen=True, eq=False)
class RidgeBounds(IntervalBounds):
    """Bounds of monotone activations of linear sums."""

    form: Ridges

    def ends(self, box: Box) -> tuple[float, float, Floats]:
        (lower, upper), form = _corners(box), self.form
        ends = np.stack([form.weights * lower, form.weights * upper])
        inner = form.offsets + ends.min(axis=0).sum(axis=1), form.offsets + ends.max(axis=0).sum(axis=1)
        curve: Callable[[Floats], Any] = (
            (lambda s: s) if form.activation == "identity" else CURVES[form.activation].function
        )
        return _of_units(curve, form.scales, inner, np.abs(ends[1] - ends[0]), form.intercept)


def _has_range(function: Function) -> bool:
    families = [its.function if isinstance(its, Filled) else its for its in families_of(function)]
    return all(
        isinstance(its, Bump | Decay | Polynomial | Power | Identity) or texture_of(its).constant
        for its in families
    )


def _range_of(function: Function, values: Floats) -> tuple[Floats, Floats]:
    """Return the least and the largest of m functions over the numbers between values, and a missing one."""
    if isinstance(function, Stacked):
        parts = [_range_of(family, values) for family in function.families]
        return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])
    at = [function(values)]
    numbers = values[~np.isnan(values)]
    if numbers.size and numbers[0] < numbers[-1]:
        at.append(_between(function, float(numbers[0]), float(numbers[-1])))
    every = np.concatenate(at, axis=1)
    return every.min(axis=1), every.max(axis=1)


def _between(function: Function, first: float, last: float) -> Floats:
    """Return values of m functions among which their extremes between two numbers are, (m, n)."""
    match function:
        case Filled():
            return _between(function.function, first, last) * function.factor[:, None]
        case Bump() | Decay():  # they rise up to the center and fall behind it
            center = np.clip(function.center, first, last)
            exponent = (
                0.5 * function.precision * (center - function.center) ** 2
                if isinstance(function, Bump)
                else function.rate * np.abs(center - function.center)
            )
            return np.asarray(np.exp(-exponent))[:, None]
        case Polynomial():
            c = function.coefficients
            with np.errstate(divide="ignore", invalid="ignore"):
                t = np.clip(-0.5 * c[:, 1] / c[:, 2], first - function.center, last - function.center)
            t = np.where(c[:, 2] == 0.0, first - function.center, t)
            return (c[:, 0] + c[:, 1] * t + c[:, 2] * t * t)[:, None]
        case Power():
            return function(np.clip([0.0], first, last))
        case Identity():
            return np.array([[first]])
    # constant between breaks, at each of which the piece before it ends
    breaks = _breaks_of(function)
    inside = breaks[(breaks >= first) & (breaks < last)]
    return np.asarray(function(np.concatenate([[first], inside, np.nextafter(inside, np.inf)])))


@dataclass(frozen=True, eq=False)
class _ColumnBounds(IntervalBounds):
    """Bounds of what reads functions of columns: of categories over those in a box, else over intervals."""

    terms: Any  # whose ``functions`` are those of the columns, or None

    def texture(self, j: int) -> Texture:
        function = self.terms.functions[j]
        if function is None:
            return UNREAD
        if texture_of(function).constant:
            return Texture(_breaks_of(function), "constant")
        return Texture(np.zeros(0), "other")

    def cuts(self, box: Box) -> Floats:
        # between the values of a category there are no others
        return np.array([values[(values.size - 1) // 2] for values in box])

    def _ranges(self, j: int, values: Floats) -> tuple[Floats, Floats]:
        """Return the ends of the functions of column j."""
        function = self.terms.functions[j]
        if texture_of(function).constant:  # every piece has a value in the box
            its = function(values)
            return its.min(axis=1), its.max(axis=1)
        return _range_of(function, values)


@dataclass(frozen=True, eq=False)
class ProductBounds(_ColumnBounds):
    """Bounds of Σ_i coef_i ∏_j φ_ij(x_j): each product lies between those of its factors' ends."""

    def ends(self, box: Box) -> tuple[float, float, Floats]:
        terms: SumOfProducts = self.terms
        least = largest = np.ones(terms.coef.size)
        shares = np.zeros((terms.coef.size, len(box)))
        for j, (function, values) in enumerate(zip(terms.functions, box, strict=True)):
            if function is None:
                continue
            low, high = self._ranges(j, values)
            products = np.stack([least * low, least * high, largest * low, largest * high])
            least, largest = products.min(axis=0), products.max(axis=0)
            size = np.maximum(np.abs(low), np.abs(high))
            shares[:, j] = (high - low) / np.maximum(size, np.finfo(float).tiny)
        size = np.maximum(np.abs(least), np.abs(largest))
        return _weighted(terms.coef, least, largest, terms.intercept, size[:, None] * shares)


@dataclass(frozen=True, eq=False)
class UnitBounds(_ColumnBounds):
    """Bounds of Σ_k coef_k · link(Σ_j f_jk(x_j)): a monotone link is between those of its sum's ends."""

    form: Linked

    def ends(self, box: Box) -> tuple[float, float, Floats]:
        terms: Sum = self.terms
        inner, spread = (
            [terms.intercept.copy(), terms.intercept.copy()],
            np.zeros((terms.intercept.size, len(box))),
        )
        for j, (function, loading) in enumerate(zip(terms.functions, terms.loadings, strict=True)):
            if function is None:
                continue
            low, high = self._effects(j, box[j], loading)
            inner[0] += low
            inner[1] += high
            spread[:, j] = high - low
        return _of_units(self.form.curve.function, self.form.coef.ravel(), inner, spread, self.form.intercept)

    def _effects(self, j: int, values: Floats, loading: Floats) -> tuple[Floats, Floats]:
        """Return the ends of what column j adds to each sum, (K,)."""
        function = self.terms.functions[j]
        if texture_of(function).constant or is_line(function):
            effects = times(function(values).T, loading)
            return effects.min(axis=0), effects.max(axis=0)
        low, high = self._ranges(j, values)
        ends = np.stack([low[:, None] * loading, high[:, None] * loading])
        return ends.min(axis=0).sum(axis=0), ends.max(axis=0).sum(axis=0)


def _of_units(
    curve: Callable[[Floats], Any], scales: Floats, inner: Sequence[Floats], spread: Floats, intercept: Floats
) -> tuple[float, float, Floats]:
    """Return the ends of Σ_h scales_h · curve(s_h), s between ``inner`` and spread by column, (h, d)."""
    least, largest = np.sort([curve(inner[0]), curve(inner[1])], axis=0)
    share = spread / np.maximum(spread.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return _weighted(scales, least, largest, intercept, (largest - least)[:, None] * share)


def _weighted(
    weights: Floats, least: Floats, largest: Floats, intercept: Floats, gaps: Floats
) -> tuple[float, float, Floats]:
    """Return the ends of Σ weight · term, and the gap that each column adds; ``gaps`` are (terms, d)."""
    ends = np.stack([weights * least, weights * largest])
    low, high = float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())
    base = float(np.ravel(intercept)[0])
    # roundings of sums must not lower an upper bound, nor raise a lower one
    blur = np.finfo(float).eps * sum(gaps.shape) * float(np.abs(ends).sum() + abs(base))
    return base + low - blur, base + high + blur, np.abs(weights) @ gaps
