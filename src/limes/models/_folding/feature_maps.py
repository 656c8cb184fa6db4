"""Feature maps: a column of the model as a function φ(x) of one column of the user's. Four kinds.

| kind | φ(x) | made by |
|---|---|---|
| ``MonotoneMap`` | rises or falls with x | scalers, imputers, logarithms, power transforms |
| ``StepMap`` | constant between cuts | bins, thresholds, "is missing" |
| ``LookupMap`` | a value for each of finitely many x | encoders; any step on a column of text |
| ``CurveMap`` | anything smooth between kinks | splines, squares, sines |

``then`` composes them with the operations of transformers. Each is evaluated as the transformer itself
computes it, digit by digit, so that a threshold behind it can be moved to the very float64 where the model's
prediction changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects
from limes.models._reading import CannotRead

# Cells of a column inside a pipeline: numbers, or the user's own values
Values = Floats | Objects


def numbers(values: Values) -> Floats:
    """Convert to float64, None to NaN."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        text = next(v for v in values if not is_number(v) and v is not None)
        raise CannotRead(f"it takes numbers, and the column holds {text!r}") from None


def is_missing(values: Values) -> Bools:
    """Return whether each value is missing: None, NaN or pandas.NA."""
    if values.dtype.kind == "O":
        return np.array([is_blank(v) for v in values], dtype=np.bool_)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=np.bool_)


def is_blank(value: Any) -> bool:
    """Return whether one value is missing."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def is_number(value: Any) -> bool:
    """Return whether one value is a number."""
    return isinstance(value, int | float | np.number | np.bool_)


@dataclass(frozen=True)
class Affine:
    """value + slope (x - center), kept around a center so that large numbers do not cancel."""

    slope: float
    center: float = 0.0
    value: float = 0.0

    def then(self, other: Affine) -> Affine:
        """The composition: this map first, then the other."""
        center = self.center + (other.center - self.value) / self.slope
        return Affine(self.slope * other.slope, center, other.value)


@dataclass(frozen=True, eq=False)
class MonotoneMap:
    """φ rises (or falls) with x.

    Attributes
    ----------
    apply
        (n,) -> (n,), as the transformer computes it; its value at NaN is that of a missing value.
    affine
        φ in closed form, except at NaN; None without one.
    plain
        φ(x) = x wherever x is not missing.
    start
        φ(x) is NaN below it.
    kinks
        Points where φ is not smooth; None if it cannot be integrated.
    name
        For messages; "" omits it.
    """

    apply: Callable[[Values], Values]
    affine: Affine | None = None
    plain: bool = False
    start: float = -np.inf
    falling: bool = False
    kinks: tuple[float, ...] | None = None
    name: str = ""

    def __call__(self, values: Values) -> Values:
        with np.errstate(all="ignore"):
            return self.apply(values)

    @property
    def at_missing(self) -> float:
        return float(self(np.array([np.nan]))[0])

    def cut(self, levels: Floats) -> Floats:
        """Return where φ crosses levels: φ(x) <= level ⟺ x <= cut; for a falling φ, φ(x) > level ⟺ x <= cut.

        The cuts (m,) are ±inf where φ never crosses. x runs from ``start`` on.
        """
        cuts, multiple_crossings = self.crossings(levels)
        if multiple_crossings:
            raise CannotRead("in the last digit of float64 it is not monotone where the model needs it to be")
        return cuts

    def crossings(self, levels: Floats) -> tuple[Floats, dict[int, Floats]]:
        """Return `cut`, and by position all cuts of levels that φ crosses several times in its last digit."""
        rounding = self.affine is None
        return crossings(self._is_before, levels, start=self.start, non_monotone_rounding=rounding)

    def near(self, levels: Sequence[float] | Floats) -> tuple[float, ...]:
        """Finite points where φ crosses levels, to a few last digits."""
        if len(levels) == 0:
            return ()
        cuts, _ = crossings(self._is_before, np.asarray(levels, dtype=np.float64), start=self.start)
        return tuple(cuts[np.isfinite(cuts)].tolist())

    @property
    def breaks(self) -> tuple[float, ...]:
        """Points where φ is not smooth."""
        if self.kinks is None:
            raise CannotRead("it is read in front of trees only: its integrals are not known")
        return self.kinks

    def _is_before(self, x: Floats, levels: Floats) -> Bools:
        values = np.asarray(self(x), dtype=np.float64)
        return np.asarray(values > levels if self.falling else values <= levels)


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
    """values[k] where x = keys[k], keys (K,) ascending.

    ``values`` is (K + 2,): the last two are those of any other x, and of NaN. ``closed`` means that the model
    refuses any other x.
    """

    keys: Floats
    values: Values
    closed: bool

    def __call__(self, values: Values) -> Values:
        x = numbers(values)
        position = np.searchsorted(self.keys, x)
        is_key = np.append(self.keys, np.nan)[position] == x
        position = np.where(is_key, position, self.keys.size)
        return self.values[np.where(np.isnan(x), self.keys.size + 1, position)]


def identity_map(name: str = "") -> MonotoneMap:
    """φ(x) = x."""
    return MonotoneMap(lambda values: values, Affine(1.0), plain=True, kinks=(), name=name)


@dataclass(frozen=True, eq=False)
class CurveMap:
    """φ(x) = after(basis(before(x))[index]), which need neither rise nor fall.

    Attributes
    ----------
    basis
        (n,) -> (K, n): functions that are computed together, as the splines of a column.
    index
        The function of the basis that this is.
    kinks
        Points y = before(x) where the basis is not smooth.
    even
        Whether basis(-y) = basis(y), and rises with y > 0.
    name
        For messages.
    """

    basis: Callable[[Floats], Floats]
    index: int = 0
    kinks: tuple[float, ...] = ()
    even: bool = False
    name: str = ""
    before: MonotoneMap = field(default_factory=identity_map)
    after: MonotoneMap = field(default_factory=identity_map)

    def __call__(self, values: Values) -> Values:
        return self.after(self.from_basis(self.evaluate_basis(values)))

    def evaluate_basis(self, values: Values) -> Floats:
        """The whole basis, (K, n)."""
        with np.errstate(all="ignore"):
            return self.basis(numbers(self.before(values)))

    def from_basis(self, values: Floats) -> Floats:
        """Select the values of this function, (n,), from those of the whole basis, (K, n)."""
        return np.asarray(values[self.index])

    @property
    def at_missing(self) -> float:
        return float(self(np.array([np.nan]))[0])

    @property
    def breaks(self) -> tuple[float, ...]:
        """Points x where φ may not be smooth."""
        if self.after.kinks is None:
            raise CannotRead("its integrals are not known")
        return self.before.breaks + self.before.near(self.kinks)


FeatureMap = MonotoneMap | StepMap | LookupMap | CurveMap


# -- crossings of a level --------------------------------------------------------------------------------


_LARGEST = float(np.finfo(np.float64).max)
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
# Neighbouring numbers of a cut that are checked on each side, of which the outer ones must be as expected
_NEAR, _MARGIN = 48, 16


def crossings(
    before: Callable[[Floats, Floats], Bools],
    levels: Floats,
    *,
    start: float = -np.inf,
    non_monotone_rounding: bool = False,
) -> tuple[Floats, dict[int, Floats]]:
    """Find the last x before each level is crossed, by bisection; ±inf where it never is, or always was.

    Bisection runs over the float64 numbers in their order, 64 steps from end to end, and evaluates the
    function as it is computed; so it ends at the very number, whatever was rounded on the way.

    Parameters
    ----------
    before
        (x, levels) -> whether x lies before the crossing of its level: True for small x and False for large.
    levels
        (m,).
    start
        The smallest x.
    non_monotone_rounding
        Whether the last digit need not rise with x, as in logarithms, powers and ranks: then the neighbours
        of each cut are checked.

    Returns
    -------
    cuts, multiple_crossings
        (m,); and all cuts, an odd number, of levels that are crossed several times, by position.
    """
    levels = np.asarray(levels, dtype=np.float64)
    first = _key_of(np.full(levels.shape, max(start, -_LARGEST)))
    last = _key_of(np.full(levels.shape, _LARGEST))
    none, all_ = ~before(_float_of(first), levels), before(_float_of(last), levels)
    low, high = first, last
    while (low + 1 < high).any():
        middle = (low & high) + ((low ^ high) >> 1)  # the mean, without overflow
        is_before = before(_float_of(middle), levels)
        low, high = np.where(is_before, middle, low), np.where(is_before, high, middle)
    cuts = np.where(all_, np.inf, np.where(none, -np.inf, _float_of(low)))
    inside = np.flatnonzero(~none & ~all_ & (low > first + _NEAR) & (low < last - _NEAR))
    if not non_monotone_rounding or inside.size == 0:
        return cuts, {}
    return cuts, _multiple_crossings(before, inside, low[inside], levels[inside])


def _multiple_crossings(
    before: Callable[[Floats, Floats], Bools], positions: Ints, low: Ints, levels: Floats
) -> dict[int, Floats]:
    """Evaluate the neighbours of each cut, and find the levels that are crossed several times."""
    window = np.arange(-_NEAR, _NEAR + 1)
    keys = low[:, None] + window
    sides = before(_float_of(keys.reshape(-1)), np.repeat(levels, window.size)).reshape(keys.shape)
    multiple = np.flatnonzero((sides != (window <= 0)).any(axis=1))
    if multiple.size and (sides[multiple, -_MARGIN:].any() or not sides[multiple, :_MARGIN].all()):
        raise CannotRead("it is not monotone; use StandardScaler, or no scaler at all, in front of trees")
    turns = {int(i): np.flatnonzero(sides[i, 1:] != sides[i, :-1]) for i in multiple}
    return {int(positions[i]): _float_of(keys[i, at]) for i, at in turns.items()}


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

    def __call__(self, values: Values) -> Floats:
        return np.array([self._code(v, blank) for v, blank in zip(values, is_missing(values), strict=True)])

    def _code(self, value: Any, missing: bool) -> float:
        code = self.missing if missing else self.codes.get(value, self.other)
        if code is None:
            shown = "missing values" if missing else repr(value)
            raise CannotRead(f"{shown} was not in the training data, and it refuses unknown values")
        return code

    def refuses(self, value: Any) -> bool:
        """Return whether the encoder raises at a value."""
        if is_blank(value):
            return self.missing is None
        return self.other is None and value not in self.codes

    def lenient(self) -> Codebook:
        """Return the codes with NaN where the encoder raises."""
        missing, other = (np.nan if code is None else code for code in (self.missing, self.other))
        return Codebook(self.codes, missing, other)


@dataclass(frozen=True, eq=False)
class Pointwise:
    """A function that can only be evaluated value by value, so that it composes with lookups only."""

    apply: Callable[[Values], Values]

    def __call__(self, values: Values) -> Values:
        return self.apply(values)


Operation = MonotoneMap | StepMap | Codebook | Pointwise | CurveMap


@dataclass(frozen=True, eq=False)
class ModelColumn:
    """A column of a model: the feature map of one of the user's columns, given by its position."""

    source: int
    map: FeatureMap

    def then(self, operation: Operation) -> ModelColumn:
        """The column after an operation."""
        return replace(self, map=then(self.map, operation))


def then(first: FeatureMap, second: Operation) -> FeatureMap:
    """Compose: first the map, then the operation."""
    if isinstance(first, LookupMap):
        return _after_finite(first, second)
    if isinstance(first, StepMap):
        return StepMap(first.cuts, second(first.values), _lenient(second)(_single(first.missing))[0])
    if isinstance(first, CurveMap):
        return _AFTER_CURVE[type(second)](first, second)
    return _AFTER_MONOTONE[type(second)](first, second)


def _after_finite(first: LookupMap, second: Operation) -> LookupMap:
    count = first.keys.size
    codes = second(first.values[:count]) if count else np.zeros(0)
    others = _lenient(second)(first.values[count:])
    refused = isinstance(second, Codebook) and second.refuses(first.values[count])
    return LookupMap(first.keys, np.concatenate([codes, others]), first.closed or refused)


def _lenient(operation: Operation) -> Operation:
    return operation.lenient() if isinstance(operation, Codebook) else operation


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
    return MonotoneMap(
        lambda values: second(first(values)),
        first.affine.then(second.affine) if first.affine and second.affine else None,
        first.plain and second.plain,
        start,
        first.falling ^ second.falling,
        _joint_kinks(first, second),
        _joint_name(first.name, second.name),
    )


def _joint_kinks(first: MonotoneMap, second: MonotoneMap) -> tuple[float, ...] | None:
    if first.kinks is None or second.kinks is None:
        return None
    return first.kinks + first.near(second.kinks)


def _joint_name(first: str, second: str) -> str:
    return " behind ".join(name for name in (first, second) if name)


def _pieces_of_monotone(first: MonotoneMap, second: StepMap) -> StepMap:
    cuts, values = first.cut(second.cuts), second.values
    if first.falling:
        cuts, values = cuts[::-1], values[::-1]
    at_missing = second(_single(first.at_missing))[0]
    if np.isfinite(first.start):  # below it φ is NaN
        below = np.nextafter(first.start, -np.inf)
        cuts, values = np.append(below, np.maximum(cuts, below)), np.append(at_missing, values)
    return StepMap(cuts, values, at_missing)


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


def _refused(first: MonotoneMap, second: Pointwise) -> FeatureMap:  # noqa: ARG001
    raise CannotRead("it treats some numbers of a column of numbers differently from the others")


def _curve_of_monotone(first: MonotoneMap, second: CurveMap) -> CurveMap:
    name = _joint_name(first.name, second.name)
    return replace(second, before=_both_monotone(first, second.before), name=name)


def _monotone_of_curve(first: CurveMap, second: MonotoneMap) -> CurveMap:
    return replace(first, after=_both_monotone(first.after, second))


def _refused_behind_curve(first: CurveMap, second: Operation) -> FeatureMap:  # noqa: ARG001
    raise CannotRead(f"behind {first.name} scalers and linear models are read only")


_AFTER_MONOTONE: Mapping[type, Callable[[MonotoneMap, Any], FeatureMap]] = {
    MonotoneMap: _both_monotone,
    StepMap: _pieces_of_monotone,
    Codebook: _codes_of_monotone,
    Pointwise: _refused,
    CurveMap: _curve_of_monotone,
}
_AFTER_CURVE: Mapping[type, Callable[[CurveMap, Any], FeatureMap]] = {
    MonotoneMap: _monotone_of_curve,
    StepMap: _refused_behind_curve,
    Codebook: _refused_behind_curve,
    Pointwise: _refused_behind_curve,
    CurveMap: _refused_behind_curve,
}
