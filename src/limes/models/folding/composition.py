"""Bricks behind a function of the column: g(φ(x)) as a brick of x; and products of bricks.

Behind a scaler a power is a polynomial and a bump is a bump; an interval is an interval behind anything that
rises or falls. What is left are curves, to be integrated by quadrature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.curves import Curves, Decay
from limes.functions import (
    Bump,
    Filled,
    Function,
    Identity,
    Interval,
    Lookup,
    Members,
    Polynomial,
    Power,
    Shape,
    Stacked,
    Step,
)
from limes.models.folding.feature_maps import CurveMap, MonotoneMap, numbers
from limes.models.reading import CannotRead

# Points that a kernel behind another function may add to the breaks of quadrature
_MOST_BREAKS = 4096
# exp(-z² / 2) is 0 for float64 sums beyond, and smooth enough for one panel on so many of its widths
_BUMP_REACH, _BUMP_PANEL = 9.5, 2.0
# Distances from the center of exp(-|z|) between which it is smooth enough for one panel
_DECAY_POINTS = np.array([-45.0, -9.0, 0.0, 9.0, 45.0])


def compose(function: Function, track: MonotoneMap | CurveMap) -> Function:
    """g(φ(x)).

    Raises
    ------
    CannotRead
        If it is no brick.
    """
    if isinstance(track, CurveMap):
        if not isinstance(function, _SMOOTH):
            raise CannotRead(f"behind {track.name} scalers and linear models are read only")
        return _curves(function, track)
    if type(function) not in _BEHIND:
        raise CannotRead(f"{type(function).__name__} functions cannot be folded behind a transformer")
    return _BEHIND[type(function)](function, track)


def _curves(
    function: Function, track: MonotoneMap | CurveMap, levels: Sequence[float] | Floats = ()
) -> Curves:
    """g(φ(x)) by quadrature; ``levels`` are values of φ where g is not smooth."""
    own = track.near(levels) if isinstance(track, MonotoneMap) else ()
    return Curves(lambda x: function(numbers(track(x))), tuple(dict.fromkeys(track.breaks + own)), track.name)


def at_missing(function: Function, track: MonotoneMap) -> Floats:
    """g(φ(NaN)), (m,)."""
    return np.asarray(function(np.array([track.at_missing]))[:, 0], dtype=np.float64)


def _identity(function: Identity, track: MonotoneMap) -> Function:
    if track.affine is None:
        return _curves(function, track)
    a = track.affine
    return Polynomial(np.array([[a.value, a.slope, 0.0]]), a.center, at_missing(function, track))


# Powers of z = value + slope (x - center), as polynomials in x - center
_EXPANDED: tuple[Callable[[float, float], tuple[float, float, float]], ...] = (
    lambda value, slope: (1.0, 0.0, 0.0),  # noqa: ARG005
    lambda value, slope: (value, slope, 0.0),
    lambda value, slope: (value * value, 2.0 * value * slope, slope * slope),
)


def _power(function: Power, track: MonotoneMap) -> Function:
    if track.affine is None:
        return _curves(function, track)
    a = track.affine
    table = np.array([expand(a.value, a.slope) for expand in _EXPANDED])
    return Polynomial(table[function.exponent], a.center, at_missing(function, track))


def _polynomial(function: Polynomial, track: MonotoneMap) -> Function:
    if track.affine is None:
        return _curves(function, track)
    a = track.affine
    table = np.array([expand(a.value - function.center, a.slope) for expand in _EXPANDED])
    return Polynomial(function.coefficients @ table, a.center, at_missing(function, track))


def _bump(function: Bump, track: MonotoneMap) -> Function:
    if track.affine is None:
        return _curves(function, track, _bump_panels(function))
    a = track.affine
    moved = Bump(a.center + (function.center - a.value) / a.slope, function.precision * a.slope**2)
    if np.isnan(track.at_missing):
        return moved
    return Filled(moved, np.ones(function.center.size), at_missing(function, track))


def _bump_panels(function: Bump) -> Floats:
    """Points that cut the places of all bumps into panels of two widths."""
    if function.center.size == 0:
        return np.zeros(0)
    width = 1.0 / np.sqrt(function.precision)
    low = function.center.min() - _BUMP_REACH * width
    high = function.center.max() + _BUMP_REACH * width
    count = (high - low) / (_BUMP_PANEL * width)
    if count > _MOST_BREAKS:
        raise CannotRead("its kernels are too narrow to be integrated behind it; put a scaler in its place")
    return np.linspace(low, high, int(count) + 2)


def _decay(function: Decay, track: MonotoneMap) -> Function:
    if track.affine is None:
        points = np.unique(function.center[:, None] + _DECAY_POINTS / function.rate)
        if points.size > _MOST_BREAKS:
            raise CannotRead("its kernels are too many to be integrated behind it; put a scaler in its place")
        return _curves(function, track, points)
    a = track.affine
    moved = Decay(a.center + (function.center - a.value) / a.slope, function.rate * abs(a.slope))
    if np.isnan(track.at_missing):
        return moved
    return Filled(moved, np.ones(function.center.size), at_missing(function, track))


def _interval(function: Interval, track: MonotoneMap) -> Function:
    lower, upper = track.cut(function.lower), track.cut(function.upper)
    if track.falling:
        lower, upper = upper, lower
    if np.isfinite(track.start):
        if function.missing.any():
            raise CannotRead("a logarithm or root may be undefined where the model has an answer")
        lower = np.maximum(lower, np.nextafter(track.start, -np.inf))
    return Interval(lower, upper, at_missing(function, track) > 0.5)


def _step(function: Step, track: MonotoneMap) -> Function:
    cuts, values = track.cut(function.cuts), function.values
    if track.falling:
        cuts, values = cuts[::-1], values[:, ::-1]
    if np.isfinite(track.start):
        below = np.nextafter(track.start, -np.inf)
        cuts = np.append(below, np.maximum(cuts, below))
        values = np.concatenate([function.missing[:, None], values], axis=1)
    return Step(cuts, values, at_missing(function, track))


def _lookup(function: Lookup, track: MonotoneMap) -> Function:
    _only_plain(track)
    return Lookup(function.keys, function.values, at_missing(function, track), function.other)


def _members(function: Members, track: MonotoneMap) -> Function:
    _only_plain(track)
    return Members(function.allowed, at_missing(function, track) > 0.5, function.other)


def _only_plain(track: MonotoneMap) -> None:
    if not track.plain:
        raise CannotRead("the model takes a column for categories that a step before it has scaled")


def _shape(function: Shape | Curves, track: MonotoneMap) -> Function:
    return _curves(function, track, function.breaks)


def _filled(function: Filled, track: MonotoneMap) -> Function:
    inner = compose(function.function, track)
    return Filled(inner, function.factor, at_missing(function, track))


def _stacked(function: Stacked, track: MonotoneMap) -> Function:
    return Stacked(tuple(compose(family, track) for family in function.families))


_SMOOTH = (Identity, Power, Polynomial, Shape, Curves)
_BEHIND: Mapping[type, Callable[[Any, MonotoneMap], Function]] = {
    Identity: _identity,
    Power: _power,
    Polynomial: _polynomial,
    Bump: _bump,
    Interval: _interval,
    Step: _step,
    Lookup: _lookup,
    Members: _members,
    Shape: _shape,
    Curves: _shape,
    Decay: _decay,
    Filled: _filled,
    Stacked: _stacked,
}


# -- products ---------------------------------------------------------------------------------------------


def product_of(functions: Sequence[Function]) -> Function:
    """The product of families of one size, function by function.

    Raises
    ------
    CannotRead
        If it is no brick.
    """
    return reduce(_times, functions)


def _times(first: Function, second: Function) -> Function:
    kinds = (type(first), type(second))
    for pair, swapped in ((kinds, False), (kinds[::-1], True)):
        if pair in _PRODUCTS:
            product = _PRODUCTS[pair](second, first) if swapped else _PRODUCTS[pair](first, second)
            if product is not None:
                return product
    raise CannotRead(
        f"the model multiplies two functions of one column ({kinds[0].__name__} and {kinds[1].__name__}), "
        "which has no integral in closed form; hand the column on once only"
    )


def _polynomials(first: Polynomial, second: Polynomial) -> Function | None:
    moved = _recentered(second, first.center)
    product = np.zeros((len(moved), 5))
    for power in range(3):
        product[:, power : power + 3] += first.coefficients[:, power : power + 1] * moved
    if product[:, 3:].any():
        return None
    return Polynomial(product[:, :3], first.center, first.missing * second.missing)


def _recentered(function: Polynomial, center: float) -> Floats:
    table = np.array([expand(center - function.center, 1.0) for expand in _EXPANDED])
    return np.asarray(function.coefficients @ table)


def _intervals(first: Interval, second: Interval) -> Function:
    return Interval(
        np.maximum(first.lower, second.lower),
        np.minimum(first.upper, second.upper),
        first.missing & second.missing,
    )


def _steps(first: Step, second: Step) -> Function:
    cuts = np.union1d(first.cuts, second.cuts)
    ends = np.append(cuts, np.inf)
    return Step(cuts, first(ends) * second(ends), first.missing * second.missing)


def _curves_times(first: Curves, second: Any) -> Function:
    """By quadrature: the other one bends at its own breaks, if anywhere."""
    breaks = dict.fromkeys((*first.breaks, *getattr(second, "breaks", ())))
    return Curves(lambda x: first(x) * second(x), tuple(breaks), first.name)


def _constant_times(first: Step, second: Any) -> Function | None:
    """A step without a cut tells only whether x is missing."""
    if first.cuts.size:
        return None
    missing = first.missing * second(np.array([np.nan]))[:, 0]
    return Filled(second, first.values[:, 0], missing)


_PRODUCTS: Mapping[tuple[type, type], Callable[[Any, Any], Function | None]] = {
    (Polynomial, Polynomial): _polynomials,
    (Interval, Interval): _intervals,
    (Step, Step): _steps,
    **{(Curves, kind): _curves_times for kind in (Curves, Polynomial, Shape)},
    **{(Step, kind): _constant_times for kind in (Polynomial, Bump, Interval, Filled, Shape, Curves, Decay)},
}
