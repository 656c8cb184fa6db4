"""Functions behind a feature map: g(φ(x)) as a function of x; and products of functions of one column.

Behind a scaler a power is a polynomial and a bump is a bump; an interval is an interval behind anything that
rises or falls. All others are curves, to be integrated by quadrature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._functions import (
    Bump,
    Decay,
    Filled,
    Function,
    Identity,
    Interval,
    Lookup,
    Members,
    Polynomial,
    Power,
    Shape,
    SmoothFunctions,
    Stacked,
    Step,
)
from limes.models._folding.feature_maps import Affine, CurveMap, MonotoneMap, numbers
from limes.models._reading import CannotRead

# Points that a kernel behind a feature map may add to the breaks of quadrature
_MOST_BREAKS = 4096
# exp(-z² / 2) is 0 in float64 sums beyond the reach, and smooth enough for one panel of this many widths
_BUMP_REACH, _BUMP_PANEL = 9.5, 2.0
# Distances from the center of exp(-|z|) between which it is smooth enough for one panel
_DECAY_POINTS = np.array([-45.0, -9.0, 0.0, 9.0, 45.0])


def compose(function: Function, phi: MonotoneMap | CurveMap) -> Function:
    """g(φ(x))."""
    if isinstance(phi, CurveMap):
        if not isinstance(function, _SMOOTH):
            raise CannotRead(f"behind {phi.name} scalers and linear models are read only")
        return _curves(function, phi)
    if type(function) in _AFFINE:
        if phi.affine is None:
            return _curves(function, phi, _kernel_breaks(function))
        return _AFFINE[type(function)](function, phi, phi.affine)
    if type(function) not in _COMPOSE:
        raise CannotRead(f"{type(function).__name__} functions cannot be folded behind a transformer")
    return _COMPOSE[type(function)](function, phi)


def _curves(
    function: Function, phi: MonotoneMap | CurveMap, levels: Sequence[float] | Floats = ()
) -> SmoothFunctions:
    """g(φ(x)) by quadrature; ``levels`` are values of φ where g is not smooth."""
    crossings = phi.near(levels) if isinstance(phi, MonotoneMap) else ()
    breaks = tuple(dict.fromkeys(phi.breaks + crossings))
    return SmoothFunctions(lambda x: function(numbers(phi(x))), breaks, phi.name)


def _at_missing(function: Function, phi: MonotoneMap) -> Floats:
    """g(φ(NaN)), (m,)."""
    return np.asarray(function(np.array([phi.at_missing]))[:, 0], dtype=np.float64)


def _identity_behind(function: Identity, phi: MonotoneMap, a: Affine) -> Function:
    return Polynomial(np.array([[a.value, a.slope, 0.0]]), a.center, _at_missing(function, phi))


# Powers of z = value + slope (x - center), as polynomials in x - center
_EXPANDED: tuple[Callable[[float, float], tuple[float, float, float]], ...] = (
    lambda value, slope: (1.0, 0.0, 0.0),  # noqa: ARG005
    lambda value, slope: (value, slope, 0.0),
    lambda value, slope: (value * value, 2.0 * value * slope, slope * slope),
)


def _power_behind(function: Power, phi: MonotoneMap, a: Affine) -> Function:
    table = np.array([expand(a.value, a.slope) for expand in _EXPANDED])
    return Polynomial(table[function.exponent], a.center, _at_missing(function, phi))


def _polynomial_behind(function: Polynomial, phi: MonotoneMap, a: Affine) -> Function:
    table = np.array([expand(a.value - function.center, a.slope) for expand in _EXPANDED])
    return Polynomial(function.coefficients @ table, a.center, _at_missing(function, phi))


def _kernel_behind(function: Bump | Decay, phi: MonotoneMap, a: Affine) -> Function:
    center = a.center + (function.center - a.value) / a.slope
    moved: Function
    if isinstance(function, Bump):
        moved = Bump(center, function.precision * a.slope**2)
    else:
        moved = Decay(center, function.rate * abs(a.slope))
    if np.isnan(phi.at_missing):
        return moved
    return Filled(moved, np.ones(center.size), _at_missing(function, phi))


def _kernel_breaks(function: Function) -> Floats | tuple[float, ...]:
    """Values of φ between which kernels are smooth enough for one panel of the quadrature."""
    if isinstance(function, Bump):
        return _bump_panels(function)
    if not isinstance(function, Decay):
        return ()
    points = np.unique(function.center[:, None] + _DECAY_POINTS / function.rate)
    if points.size > _MOST_BREAKS:
        raise CannotRead("its kernels are too many to be integrated behind it; put a scaler in its place")
    return np.asarray(points)


def _bump_panels(function: Bump) -> Floats:
    """Points that cut the reach of all bumps into panels of two widths."""
    if function.center.size == 0:
        return np.zeros(0)
    width = 1.0 / np.sqrt(function.precision)
    low = function.center.min() - _BUMP_REACH * width
    high = function.center.max() + _BUMP_REACH * width
    count = (high - low) / (_BUMP_PANEL * width)
    if count > _MOST_BREAKS:
        raise CannotRead("its kernels are too narrow to be integrated behind it; put a scaler in its place")
    return np.linspace(low, high, int(count) + 2)


def _interval_behind(function: Interval, phi: MonotoneMap) -> Function:
    lower, upper = phi.cut(function.lower), phi.cut(function.upper)
    if phi.falling:
        lower, upper = upper, lower
    if np.isfinite(phi.start):
        if function.missing.any():
            raise CannotRead("a logarithm or root may be undefined where the model has a prediction")
        lower = np.maximum(lower, np.nextafter(phi.start, -np.inf))
    return Interval(lower, upper, _at_missing(function, phi) > 0.5)


def _step_behind(function: Step, phi: MonotoneMap) -> Function:
    cuts, values = phi.cut(function.cuts), function.values
    if phi.falling:
        cuts, values = cuts[::-1], values[:, ::-1]
    if np.isfinite(phi.start):
        below = np.nextafter(phi.start, -np.inf)
        cuts = np.append(below, np.maximum(cuts, below))
        values = np.concatenate([function.missing[:, None], values], axis=1)
    return Step(cuts, values, _at_missing(function, phi))


def _lookup_behind(function: Lookup, phi: MonotoneMap) -> Function:
    _refuse_scaled(phi)
    return Lookup(function.keys, function.values, _at_missing(function, phi), function.other)


def _members_behind(function: Members, phi: MonotoneMap) -> Function:
    _refuse_scaled(phi)
    return Members(function.allowed, _at_missing(function, phi) > 0.5, function.other)


def _refuse_scaled(phi: MonotoneMap) -> None:
    if not phi.plain:
        raise CannotRead("the model takes a column for categories that a step before it has scaled")


def _shape_behind(function: Shape | SmoothFunctions, phi: MonotoneMap) -> Function:
    return _curves(function, phi, function.breaks)


def _filled_behind(function: Filled, phi: MonotoneMap) -> Function:
    inner = compose(function.function, phi)
    return Filled(inner, function.factor, _at_missing(function, phi))


def _stacked_behind(function: Stacked, phi: MonotoneMap) -> Function:
    return Stacked(tuple(compose(family, phi) for family in function.families))


_SMOOTH = (Identity, Power, Polynomial, Shape, SmoothFunctions)
# Functions that keep their kind, or become polynomials, behind a scaler
_AFFINE: Mapping[type, Callable[[Any, MonotoneMap, Affine], Function]] = {
    Identity: _identity_behind,
    Power: _power_behind,
    Polynomial: _polynomial_behind,
    Bump: _kernel_behind,
    Decay: _kernel_behind,
}
_COMPOSE: Mapping[type, Callable[[Any, MonotoneMap], Function]] = {
    Interval: _interval_behind,
    Step: _step_behind,
    Lookup: _lookup_behind,
    Members: _members_behind,
    Shape: _shape_behind,
    SmoothFunctions: _shape_behind,
    Filled: _filled_behind,
    Stacked: _stacked_behind,
}


# -- products ---------------------------------------------------------------------------------------------


def product_of(functions: Sequence[Function]) -> Function:
    """The product of families of one size, function by function."""
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
        "which has no integral in closed form; pass the column on only once"
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


def _curves_times(first: SmoothFunctions, second: Any) -> Function:
    """Return a product to be integrated by quadrature; the second function is also smooth between breaks."""
    breaks = dict.fromkeys((*first.breaks, *getattr(second, "breaks", ())))
    return SmoothFunctions(lambda x: first(x) * second(x), tuple(breaks), first.name)


def _constant_times(first: Step, second: Any) -> Function | None:
    """A step without a cut depends only on whether x is missing."""
    if first.cuts.size:
        return None
    missing = first.missing * second(np.array([np.nan]))[:, 0]
    return Filled(second, first.values[:, 0], missing)


_PRODUCTS: Mapping[tuple[type, type], Callable[[Any, Any], Function | None]] = {
    (Polynomial, Polynomial): _polynomials,
    (Interval, Interval): _intervals,
    (Step, Step): _steps,
    **{(SmoothFunctions, kind): _curves_times for kind in (SmoothFunctions, Polynomial, Shape)},
    **{
        (Step, kind): _constant_times
        for kind in (Polynomial, Bump, Interval, Filled, Shape, SmoothFunctions, Decay)
    },
}
