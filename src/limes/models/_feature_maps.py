"""Feature maps: a column of the model as a function φ(x) of one column of the user's. Four kinds.

| kind | φ(x) | made by |
|---|---|---|
| ``MonotoneMap`` | rises or falls with x | scalers, imputers, logarithms, power transforms |
| ``StepMap`` | constant between cuts | bins, thresholds, "is missing" |
| ``LookupMap`` | a value for each of finitely many x | encoders; any step on a column of text |
| ``CurveMap`` | anything smooth between kinks | splines, squares, sines |

``then`` composes them with the operations of transformers. Each is evaluated as the transformer itself
computes it, digit by digit, so that a threshold behind it can be moved to the very float64 where the model's
prediction changes. ``compose`` gives g(φ(x)): behind a scaler a power is a polynomial and a bump is a bump;
an interval is an interval behind anything that rises or falls; all others are curves, for quadrature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects
from limes._functions import (
    LARGEST,
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
from limes.models._reading import CannotRead

# Cells of a column inside a pipeline: numbers, or the user's own values
Values = Floats | Objects


def numbers(values: Values) -> Floats:
    """Float64, None as NaN."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        text = next(v for v in values if not is_number(v) and v is not None)
        raise CannotRead(f"it takes numbers, and the column holds {text!r}") from None


def is_missing(values: Values) -> Bools:
    """Whether each value is missing: None, NaN or pandas.NA."""
    if values.dtype.kind == "O":
        return np.array([is_blank(v) for v in values], dtype=np.bool_)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=np.bool_)


def is_blank(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number | np.bool_)


@dataclass(frozen=True)
class Affine:
    """value + slope (x - center), kept around a center so that large numbers do not cancel."""

    slope: float
    center: float = 0.0
    value: float = 0.0

    def then(self, other: Affine) -> Affine:
        center = self.center + (other.center - self.value) / self.slope
        return Affine(self.slope * other.slope, center, other.value)


@dataclass(frozen=True, eq=False)
class MonotoneMap:
    """φ rises (or falls) with x."""

    apply: Callable[[Values], Values]  # (n,) -> (n,), as the transformer computes it, at NaN too
    affine: Affine | None = None  # φ in closed form, except at NaN
    plain: bool = False  # φ(x) = x wherever x is not missing
    start: float = -np.inf  # φ(x) is NaN below it
    falling: bool = False
    kinks: tuple[float, ...] | None = None  # where φ is not smooth; None if it cannot be integrated
    name: str = ""  # for messages

    def __call__(self, values: Values) -> Values:
        with np.errstate(all="ignore"):
            return self.apply(values)

    @property
    def at_missing(self) -> float:
        return float(self(np.array([np.nan]))[0])

    def cut(self, levels: Floats) -> Floats:
        """Where φ crosses levels: φ(x) <= level ⟺ x <= cut; for a falling φ, φ(x) > level ⟺ x <= cut."""
        # The cuts (m,) are ±inf where φ never crosses. x runs from ``start`` on.
        cuts, multiple_crossings = self.crossings(levels)
        if multiple_crossings:
            raise CannotRead(
                "it is not monotone in the last digit of float64, where the model needs it to be"
            )
        return cuts

    def crossings(self, levels: Floats) -> tuple[Floats, dict[int, Floats]]:
        """Cuts, and by position all cuts of levels that φ crosses several times in its last digit."""
        # the last digit need not rise with x in logarithms, powers and ranks
        rounding = self.affine is None
        return _crossings(self._is_before, levels, start=self.start, non_monotone_rounding=rounding)

    def near(self, levels: Sequence[float] | Floats) -> tuple[float, ...]:
        """Finite points where φ crosses levels, to a few last digits."""
        if len(levels) == 0:
            return ()
        cuts, _ = _crossings(self._is_before, np.asarray(levels, dtype=np.float64), start=self.start)
        return tuple(cuts[np.isfinite(cuts)].tolist())

    @property
    def breaks(self) -> tuple[float, ...]:
        if self.kinks is None:
            raise CannotRead("it is read in front of trees only: its integrals are not known")
        return self.kinks

    def _is_before(self, x: Floats, levels: Floats) -> Bools:
        values = np.asarray(self(x), dtype=np.float64)
        return np.asarray(values > levels if self.falling else values <= levels)


def identity_map(name: str = "") -> MonotoneMap:
    return MonotoneMap(lambda values: values, Affine(1.0), plain=True, kinks=(), name=name)


def scaling_map(apply: Callable[[Floats], Floats], affine: Affine) -> MonotoneMap:
    if not (np.isfinite(affine.slope) and affine.slope != 0.0):
        raise CannotRead(f"it multiplies a column by {affine.slope}")
    return MonotoneMap(lambda v: apply(numbers(v)), affine, falling=affine.slope < 0, kinks=())


def centered_map(center: float, scale: float) -> MonotoneMap:
    return scaling_map(lambda x: (x - center) / scale, Affine(1.0 / scale, center))


@dataclass(frozen=True, eq=False)
class StepMap:
    """values[k] where cuts[k - 1] < x <= cuts[k], and ``missing`` where x is NaN; cuts (c,) ascend."""

    cuts: Floats
    values: Values
    missing: Any

    def __call__(self, values: Values) -> Values:
        missing = is_missing(values)
        if self.cuts.size == 0:
            return np.asarray(np.where(missing, self.missing, self.values[0]))
        piece = np.searchsorted(self.cuts, np.where(missing, 0.0, numbers(values)), side="left")
        return np.asarray(np.where(missing, self.missing, self.values[piece]))


@dataclass(frozen=True, eq=False)
class LookupMap:
    """values[k] where x = keys[k], keys (K,) ascending."""

    keys: Floats
    values: Values  # (K + 2,): the last two are those of any other x, and of NaN
    closed: bool  # whether the model refuses any other x

    def __call__(self, values: Values) -> Values:
        x = numbers(values)
        position = np.searchsorted(self.keys, x)
        is_key = np.append(self.keys, np.nan)[position] == x
        position = np.where(is_key, position, self.keys.size)
        return self.values[np.where(np.isnan(x), self.keys.size + 1, position)]


@dataclass(frozen=True, eq=False)
class CurveMap:
    """φ(x) = after(basis(before(x))[index]), which need neither rise nor fall."""

    basis: Callable[[Floats], Floats]  # (n,) -> (K, n), computed together, as the splines of a column
    index: int = 0
    kinks: tuple[float, ...] = ()  # points y = before(x) where the basis is not smooth
    even: bool = False  # whether basis(-y) = basis(y), and rises with y > 0
    name: str = ""  # for messages
    before: MonotoneMap = field(default_factory=identity_map)
    after: MonotoneMap = field(default_factory=identity_map)

    def __call__(self, values: Values) -> Values:
        return self.after(self.evaluate_basis(values)[self.index])

    def evaluate_basis(self, values: Values) -> Floats:
        with np.errstate(all="ignore"):
            return self.basis(numbers(self.before(values)))

    @property
    def at_missing(self) -> float:
        return float(self(np.array([np.nan]))[0])

    @property
    def breaks(self) -> tuple[float, ...]:
        if self.after.kinks is None:
            raise CannotRead("its integrals are not known")
        return self.before.breaks + self.before.near(self.kinks)


FeatureMap = MonotoneMap | StepMap | LookupMap | CurveMap


# -- crossings of a level --------------------------------------------------------------------------------


_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
# Neighbouring numbers of a cut that are checked on each side, of which the outer ones must be as expected
_NEAR, _MARGIN = 48, 16


def _crossings(
    before: Callable[[Floats, Floats], Bools],
    levels: Floats,
    *,
    start: float,
    non_monotone_rounding: bool = False,
) -> tuple[Floats, dict[int, Floats]]:
    """The last x >= start before each level (m,) is crossed; ±inf where it never is, or always was."""
    # before: whether x lies before the crossing of its level. With non_monotone_rounding the neighbours of
    # each cut are checked, and all cuts (an odd number) of levels crossed several times returned by position.
    levels = np.asarray(levels, dtype=np.float64)
    first = _key_of(np.full(levels.shape, max(start, -LARGEST)))
    last = _key_of(np.full(levels.shape, LARGEST))
    none, all_ = ~before(_float_of(first), levels), before(_float_of(last), levels)
    low, high = first, last
    # over the float64 numbers in their order, 64 steps from end to end, and of the function as it is
    # computed: this ends at the very number, whatever was rounded on the way
    while (low + 1 < high).any():
        middle = (low & high) + ((low ^ high) >> 1)  # the mean, without overflow
        is_before = before(_float_of(middle), levels)
        low, high = np.where(is_before, middle, low), np.where(is_before, high, middle)
    cuts = np.where(all_, np.inf, np.where(none, -np.inf, _float_of(low)))
    inside = np.flatnonzero(~none & ~all_ & (low > first + _NEAR) & (low < last - _NEAR))
    if not non_monotone_rounding or inside.size == 0:
        return cuts, {}
    window = np.arange(-_NEAR, _NEAR + 1)
    keys = low[inside][:, None] + window
    sides = before(_float_of(keys.reshape(-1)), np.repeat(levels[inside], window.size)).reshape(keys.shape)
    multiple = np.flatnonzero((sides != (window <= 0)).any(axis=1))
    if multiple.size and (sides[multiple, -_MARGIN:].any() or not sides[multiple, :_MARGIN].all()):
        raise CannotRead("it is not monotone; use StandardScaler, or no scaler at all, in front of trees")
    turns = {int(i): np.flatnonzero(sides[i, 1:] != sides[i, :-1]) for i in multiple}
    return cuts, {int(inside[i]): _float_of(keys[i, at]) for i, at in turns.items()}


def _key_of(x: Floats) -> Ints:
    """Integers in the order of the floats, neighbours one apart."""
    bits = np.asarray(x, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & _MAGNITUDE))


def _float_of(key: Ints) -> Floats:
    magnitude = np.abs(key).view(np.float64)
    return np.where(key >= 0, magnitude, -magnitude)


# -- operations of transformers, and their composition with the maps before them -------------------------


@dataclass(frozen=True, eq=False)
class Codebook:
    """An encoder's codes of categories, of a missing value, and of an unknown one; None where it raises."""

    codes: Mapping[Any, float]
    missing: float | None
    other: float | None

    def code(self, value: Any) -> float | None:
        return self.missing if is_blank(value) else self.codes.get(value, self.other)

    def __call__(self, values: Values) -> Floats:
        codes = [self.code(value) for value in values]
        if None in codes:
            value = values[codes.index(None)]
            shown = "missing values" if is_blank(value) else repr(value)
            raise CannotRead(f"{shown} was not in the training data, and it refuses unknown values")
        return np.array(codes, dtype=np.float64)

    def lenient(self) -> Codebook:
        """The codes with NaN where the encoder raises."""
        missing, other = (np.nan if code is None else code for code in (self.missing, self.other))
        return Codebook(self.codes, missing, other)


# A map, a codebook, or a function that is evaluated value by value, so that it composes with lookups only
Operation = MonotoneMap | StepMap | CurveMap | Codebook | Callable[[Values], Values]


@dataclass(frozen=True, eq=False)
class ModelColumn:
    source: int
    map: FeatureMap

    def then(self, operation: Operation) -> ModelColumn:
        return replace(self, map=then(self.map, operation))


def then(first: FeatureMap, second: Operation) -> FeatureMap:
    """Compose: first the map, then the operation."""
    lenient = second.lenient() if isinstance(second, Codebook) else second
    if isinstance(first, LookupMap):
        count = first.keys.size
        codes = second(first.values[:count]) if count else np.zeros(0)
        refused = isinstance(second, Codebook) and second.code(first.values[count]) is None
        values = np.concatenate([codes, lenient(first.values[count:])])
        return LookupMap(first.keys, values, first.closed or refused)
    if isinstance(first, StepMap):
        return StepMap(first.cuts, second(first.values), lenient(_single(first.missing))[0])
    if isinstance(first, CurveMap):
        if not isinstance(second, MonotoneMap):
            raise CannotRead(f"behind {first.name} scalers and linear models are read only")
        return replace(first, after=_both_monotone(first.after, second))
    return _behind_monotone(first, second)


def _behind_monotone(first: MonotoneMap, second: Operation) -> FeatureMap:
    match second:
        case MonotoneMap():
            return _both_monotone(first, second)
        case StepMap():
            return _pieces_of_monotone(first, second)
        case Codebook():
            return _codes_of_monotone(first, second)
        case CurveMap():
            return replace(second, before=first, name=_joint_name(first, second))
    raise CannotRead("it treats some numbers of a column of numbers differently from the others")


def _joint_name(first: MonotoneMap, second: MonotoneMap | CurveMap) -> str:
    return " behind ".join(name for name in (first.name, second.name) if name)


def _single(value: Any) -> Values:
    return np.array([value], dtype=np.float64 if isinstance(value, float) else object)


def _both_monotone(first: MonotoneMap, second: MonotoneMap) -> MonotoneMap:
    start = first.start
    if np.isfinite(start) and not np.isnan(second.at_missing):
        raise CannotRead(
            "it replaces missing values, and so those of a step before it that is undefined for some "
            "numbers; impute first"
        )
    if np.isfinite(second.start):
        if first.falling:
            raise CannotRead("it is not defined everywhere, behind a step that turns the order around")
        below = first.cut(np.array([np.nextafter(second.start, -np.inf)]))[0]
        start = max(start, float(np.nextafter(below, np.inf)))
    smooth = first.kinks is not None and second.kinks is not None
    return MonotoneMap(
        lambda values: second(first(values)),
        first.affine.then(second.affine) if first.affine and second.affine else None,
        first.plain and second.plain,
        start,
        first.falling ^ second.falling,
        first.breaks + first.near(second.breaks) if smooth else None,
        _joint_name(first, second),
    )


def _pieces_of_monotone(first: MonotoneMap, second: StepMap) -> StepMap:
    at_missing = second(_single(first.at_missing))
    return StepMap(*_in_order(first, second.cuts, second.values, at_missing), at_missing[0])


def _in_order(phi: MonotoneMap, cuts: Floats, values: Values, undefined: Values) -> tuple[Floats, Values]:
    """Cuts and values (..., c + 1) of a step function of φ as one of x; ``undefined`` is its value at NaN."""
    cuts = phi.cut(cuts)
    if phi.falling:
        cuts, values = cuts[::-1], values[..., ::-1]
    if np.isfinite(phi.start):  # below it φ is NaN
        below = np.nextafter(phi.start, -np.inf)
        cuts = np.append(below, np.maximum(cuts, below))
        values = np.concatenate([undefined, values], axis=-1)
    return cuts, values


def _codes_of_monotone(first: MonotoneMap, second: Codebook) -> LookupMap:
    if not first.plain:
        raise CannotRead("it encodes numbers as categories after another step has changed them")
    texts = [key for key in second.codes if not is_number(key)]
    if texts:
        raise CannotRead(
            f"it has categories such as {texts[0]!r}, but the column is taken as numbers; explain with "
            "TabularExplainer and a background that holds the same values as the training data"
        )
    keys = np.array(sorted(float(key) for key in second.codes))
    lenient = second.lenient()
    values = np.concatenate([lenient(keys), [lenient.other], lenient(_single(first.at_missing))])
    return LookupMap(keys, values, closed=second.other is None)


# -- functions behind a map: g(φ(x)) as a function of x ----------------------------------------------------

# Points that a kernel behind a feature map may add to the breaks of quadrature
_MOST_BREAKS = 4096
# exp(-z² / 2) is 0 in float64 sums beyond the reach, and smooth enough for one panel of this many widths
_BUMP_REACH, _BUMP_PANEL = 9.5, 2.0
# Distances from the center of exp(-|z|) between which it is smooth enough for one panel
_DECAY_POINTS = np.array([-45.0, -9.0, 0.0, 9.0, 45.0])
_SMOOTH = (Identity, Power, Polynomial, Shape, SmoothFunctions)


def compose(function: Function, phi: MonotoneMap | CurveMap) -> Function:
    """g(φ(x))."""
    if isinstance(phi, CurveMap):
        if not isinstance(function, _SMOOTH):
            raise CannotRead(f"behind {phi.name} scalers and linear models are read only")
        return _curves(function, phi)
    match function:
        case Identity() | Power() | Polynomial() | Bump() | Decay():
            if phi.affine is None:
                return _curves(function, phi, _kernel_breaks(function))
            return _behind_scaler(function, phi, phi.affine)
        case Shape() | SmoothFunctions():
            return _curves(function, phi, function.breaks)
        case Interval() | Step():
            return _behind_order(function, phi)
        case Lookup() | Members():
            return _behind_plain(function, phi)
        case Filled():
            return Filled(compose(function.function, phi), function.factor, _at_missing(function, phi))
        case Stacked():
            return Stacked(tuple(compose(family, phi) for family in function.families))
    raise CannotRead(f"{type(function).__name__} functions cannot be folded behind a transformer")


def _curves(
    function: Function, phi: MonotoneMap | CurveMap, levels: Sequence[float] | Floats = ()
) -> SmoothFunctions:
    """g(φ(x)) by quadrature; ``levels`` are values of φ where g is not smooth."""
    crossings = phi.near(levels) if isinstance(phi, MonotoneMap) else ()
    breaks = tuple(dict.fromkeys(phi.breaks + crossings))
    return SmoothFunctions(lambda x: function(numbers(phi(x))), breaks, phi.name)


def _at_missing(function: Function, phi: MonotoneMap) -> Floats:
    return np.asarray(function(np.array([phi.at_missing]))[:, 0], dtype=np.float64)


def _powers(value: float, slope: float) -> Floats:
    """1, z and z² of z = value + slope t, as polynomials in t."""
    return np.array(
        [[1.0, 0.0, 0.0], [value, slope, 0.0], [value * value, 2.0 * value * slope, slope * slope]]
    )


def _behind_scaler(
    function: Identity | Power | Polynomial | Bump | Decay, phi: MonotoneMap, a: Affine
) -> Function:
    missing = _at_missing(function, phi)
    if isinstance(function, Identity):
        return Polynomial(_powers(a.value, a.slope)[1:2], a.center, missing)
    if isinstance(function, Power):
        return Polynomial(_powers(a.value, a.slope)[function.exponent], a.center, missing)
    if isinstance(function, Polynomial):
        table = _powers(a.value - function.center, a.slope)
        return Polynomial(function.coefficients @ table, a.center, missing)
    center = a.center + (function.center - a.value) / a.slope
    moved: Function
    if isinstance(function, Bump):
        moved = Bump(center, function.precision * a.slope**2)
    else:
        moved = Decay(center, function.rate * abs(a.slope))
    return moved if np.isnan(phi.at_missing) else Filled(moved, np.ones(center.size), missing)


def _kernel_breaks(function: Function) -> Floats:
    """Values of φ between which kernels are smooth enough for one panel of the quadrature."""
    if isinstance(function, Decay):
        points = np.unique(function.center[:, None] + _DECAY_POINTS / function.rate)
        if points.size > _MOST_BREAKS:
            raise CannotRead("its kernels are too many to be integrated behind it; put a scaler in its place")
        return np.asarray(points)
    if not isinstance(function, Bump) or function.center.size == 0:
        return np.zeros(0)
    # panels of two widths
    width = 1.0 / np.sqrt(function.precision)
    low = function.center.min() - _BUMP_REACH * width
    high = function.center.max() + _BUMP_REACH * width
    count = (high - low) / (_BUMP_PANEL * width)
    if count > _MOST_BREAKS:
        raise CannotRead("its kernels are too narrow to be integrated behind it; put a scaler in its place")
    return np.linspace(low, high, int(count) + 2)


def _behind_order(function: Interval | Step, phi: MonotoneMap) -> Function:
    missing = _at_missing(function, phi)
    if isinstance(function, Interval):
        lower, upper = phi.cut(function.lower), phi.cut(function.upper)
        if phi.falling:
            lower, upper = upper, lower
        if np.isfinite(phi.start):
            if function.missing.any():
                raise CannotRead("a logarithm or root may be undefined where the model has a prediction")
            lower = np.maximum(lower, np.nextafter(phi.start, -np.inf))
        return Interval(lower, upper, missing > 0.5)
    return Step(*_in_order(phi, function.cuts, function.values, function.missing[:, None]), missing)


def _behind_plain(function: Lookup | Members, phi: MonotoneMap) -> Function:
    if not phi.plain:
        raise CannotRead("the model takes a column for categories that a step before it has scaled")
    missing = _at_missing(function, phi)
    if isinstance(function, Members):
        return replace(function, missing=missing > 0.5)
    return Lookup(function.keys, function.values, missing, function.other)


# -- products of functions of one column ------------------------------------------------------------------


def product_of(functions: Sequence[Function]) -> Function:
    return reduce(_times, functions)


def _times(first: Function, second: Function) -> Function:
    product = _product(first, second) or _product(second, first)
    if product is None:
        raise CannotRead(
            f"the model multiplies two functions of one column ({type(first).__name__} and "
            f"{type(second).__name__}), which has no integral in closed form; pass the column on only once"
        )
    return product


def _product(first: Function, second: Function) -> Function | None:
    match first, second:
        case Polynomial(), Polynomial():
            return _polynomials(first, second)
        case Interval(), Interval():
            lower, upper = np.maximum(first.lower, second.lower), np.minimum(first.upper, second.upper)
            return Interval(lower, upper, first.missing & second.missing)
        case Step(), Step():
            cuts = np.union1d(first.cuts, second.cuts)
            ends = np.append(cuts, np.inf)
            return Step(cuts, first(ends) * second(ends), first.missing * second.missing)
        case SmoothFunctions(), SmoothFunctions() | Polynomial() | Shape():
            # the second function is also smooth between breaks
            breaks = dict.fromkeys((*first.breaks, *getattr(second, "breaks", ())))
            return SmoothFunctions(lambda x: first(x) * second(x), tuple(breaks), first.name)
        case Step(), Polynomial() | Bump() | Interval() | Filled() | Shape() | SmoothFunctions() | Decay():
            if first.cuts.size == 0:  # the step depends only on whether x is missing
                missing = first.missing * second(np.array([np.nan]))[:, 0]
                return Filled(second, first.values[:, 0], missing)
    return None


def _polynomials(first: Polynomial, second: Polynomial) -> Polynomial | None:
    moved = second.coefficients @ _powers(first.center - second.center, 1.0)
    product = np.zeros((len(moved), 5))
    for power in range(3):
        product[:, power : power + 3] += first.coefficients[:, power : power + 1] * moved
    if product[:, 3:].any():
        return None
    return Polynomial(product[:, :3], first.center, first.missing * second.missing)
