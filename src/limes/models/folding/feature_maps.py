"""A model's column as a function φ(x) of one column of the user's: four kinds.

| kind | φ(x) | made by |
|---|---|---|
| ``MonotoneMap`` | rises or falls with x | scalers, imputers, logarithms, power transforms |
| ``StepMap`` | constant between cuts | bins, thresholds, "is missing" |
| ``LookupMap`` | a value for each of finitely many x | encoders; whatever happens to a column of text |
| ``CurveMap`` | anything smooth between kinks | splines, squares, sines |

``feature_maps.then`` puts one after the other. Every kind is evaluated as the transformer itself computes
it, digit by digit, so that a threshold behind it can be moved to the very number where the model changes its
mind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints, Objects
from limes.models.reading import CannotRead


@dataclass(frozen=True)
class Affine:
    """value + slope (x - center), kept around a center so that large numbers do not cancel."""

    slope: float
    center: float = 0.0
    value: float = 0.0

    def then(self, other: Affine) -> Affine:
        """Another one after it."""
        center = self.center + (other.center - self.value) / self.slope
        return Affine(self.slope * other.slope, center, other.value)


@dataclass(frozen=True, eq=False)
class MonotoneMap:
    """φ rises (or falls) with x.

    Attributes
    ----------
    apply
        (n,) -> (n,), as the transformer computes it; what it makes of NaN is what becomes of a missing value.
    affine
        The same in closed form, away from NaN; None where there is none.
    plain
        φ(x) = x wherever x is not missing.
    start
        φ(x) is NaN below it.
    kinks
        Points where φ is not smooth; None where it cannot be integrated.
    name
        What it is, for errors; "" where that is not worth saying.
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
        """φ(NaN)."""
        return float(self(np.array([np.nan]))[0])

    def cut(self, levels: Floats) -> Floats:
        """Where φ passes levels (m,): φ(x) <= level ⟺ x <= cut; for a falling φ, φ(x) > level ⟺ x <= cut.

        ±inf where it never does. For x from ``start`` on.

        Raises
        ------
        CannotRead
            If φ passes a level more than once, in its last digit.
        """
        cuts, ragged = self.passages(levels)
        if ragged:
            raise CannotRead("in the last digit of float64 it is not monotone where the model needs it to be")
        return cuts

    def passages(self, levels: Floats) -> tuple[Floats, dict[int, Floats]]:
        """The same, and all cuts, by place, of levels that φ passes back and forth in its last digit."""
        return passages(self._passed, levels, start=self.start, trembling=self.affine is None)

    def near(self, levels: Sequence[float] | Floats) -> tuple[float, ...]:
        """LookupMap places where φ passes levels, to a few last digits."""
        if len(levels) == 0:
            return ()
        cuts, _ = passages(self._passed, np.asarray(levels, dtype=np.float64), start=self.start)
        return tuple(cuts[np.isfinite(cuts)].tolist())

    @property
    def breaks(self) -> tuple[float, ...]:
        """Points where φ is not smooth.

        Raises
        ------
        CannotRead
            If they are not known.
        """
        if self.kinks is None:
            raise CannotRead("it is read in front of trees only: its integrals are not known")
        return self.kinks

    def _passed(self, x: Floats, levels: Floats) -> Bools:
        found = np.asarray(self(x), dtype=np.float64)
        return np.asarray(found > levels if self.falling else found <= levels)


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
        place = np.searchsorted(self.cuts, np.where(missing, 0.0, numbers(values)), side="left")
        return np.asarray(np.where(missing, self.missing, self.values[place]))


@dataclass(frozen=True, eq=False)
class LookupMap:
    """values[k] where x = keys[k], keys (K,) ascending.

    ``values`` is (K + 2,): behind those of the keys it holds what any other x gives, and what NaN gives.
    ``closed`` says that the model refuses any other x.
    """

    keys: Floats
    values: Values
    closed: bool

    def __call__(self, values: Values) -> Values:
        x = numbers(values)
        place = np.searchsorted(self.keys, x)
        known = np.append(self.keys, np.nan)[place] == x
        place = np.where(known, place, self.keys.size)
        return self.values[np.where(np.isnan(x), self.keys.size + 1, place)]


def itself(name: str = "") -> MonotoneMap:
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
        Which of them.
    kinks
        Points y = before(x) where the basis is not smooth.
    even
        Whether basis(-y) = basis(y), and rises with y > 0.
    name
        What it is, for errors.
    """

    basis: Callable[[Floats], Floats]
    index: int = 0
    kinks: tuple[float, ...] = ()
    even: bool = False
    name: str = ""
    before: MonotoneMap = field(default_factory=itself)
    after: MonotoneMap = field(default_factory=itself)

    def __call__(self, values: Values) -> Values:
        return self.after(self.of_basis(self.evaluated(values)))

    def evaluated(self, values: Values) -> Floats:
        """The whole basis, (K, n)."""
        with np.errstate(all="ignore"):
            return self.basis(numbers(self.before(values)))

    def of_basis(self, values: Floats) -> Floats:
        """The values of this one, (n,), of those of the whole basis, (K, n)."""
        return np.asarray(values[self.index])

    @property
    def at_missing(self) -> float:
        """φ(NaN)."""
        return float(self(np.array([np.nan]))[0])

    @property
    def breaks(self) -> tuple[float, ...]:
        """Points x where φ may not be smooth; what happens behind the basis may add some."""
        if self.after.kinks is None:
            raise CannotRead("its integrals are not known")
        return self.before.breaks + self.before.near(self.kinks)


FeatureMap = MonotoneMap | StepMap | LookupMap | CurveMap


# -- values of a column ----------------------------------------------------------------------------------


Values = Floats | Objects


def numbers(values: Values) -> Floats:
    """Numbers as float64, None as NaN; text cannot be."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        text = next(v for v in values if not is_number(v) and v is not None)
        raise CannotRead(f"it takes numbers, and the column holds {text!r}") from None


def is_missing(values: Values) -> Bools:
    """None, NaN and pandas.NA."""
    if values.dtype.kind == "O":
        return np.array([is_blank(v) for v in values], dtype=np.bool_)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=np.bool_)


def is_blank(value: Any) -> bool:
    """Whether one value is missing."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def is_number(value: Any) -> bool:
    """Whether one value is a number."""
    return isinstance(value, int | float | np.number | np.bool_)


# -- crossings of a level --------------------------------------------------------------------------------


_LARGEST = float(np.finfo(np.float64).max)
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
# Beside a cut so many neighbouring numbers are looked at, and the outer ones must be as expected.
_NEAR, _MARGIN = 48, 16

# (x, levels) -> whether x still lies before the passage of its level
Passed = Callable[[Floats, Floats], Bools]


def passages(
    before: Passed, levels: Floats, *, start: float = -np.inf, trembling: bool = False
) -> tuple[Floats, dict[int, Floats]]:
    """The last x before each level is passed; ±inf where it never is, or always was.

    Parameters
    ----------
    before
        (x, levels) -> bools: True for small x and False for large.
    levels
        (m,).
    start
        The smallest x.
    trembling
        Logarithms, powers and ranks are computed to a last digit that need not rise with x: look at the
        neighbours of each cut.

    Returns
    -------
    cuts, ragged
        (m,); and for levels that are passed back and forth, by place, all cuts: an odd number.

    Raises
    ------
    CannotRead
        If a level is passed back and forth further than a few last digits.
    """
    levels = np.asarray(levels, dtype=np.float64)
    first = _key_of(np.full(levels.shape, max(start, -_LARGEST)))
    last = _key_of(np.full(levels.shape, _LARGEST))
    none, all_ = ~before(_float_of(first), levels), before(_float_of(last), levels)
    low, high = first, last
    while (low + 1 < high).any():
        middle = (low & high) + ((low ^ high) >> 1)  # the mean, without overflow
        here = before(_float_of(middle), levels)
        low, high = np.where(here, middle, low), np.where(here, high, middle)
    cuts = np.where(all_, np.inf, np.where(none, -np.inf, _float_of(low)))
    inside = np.flatnonzero(~none & ~all_ & (low > first + _NEAR) & (low < last - _NEAR))
    if not trembling or inside.size == 0:
        return cuts, {}
    return cuts, _ragged(before, inside, low[inside], levels[inside])


def _ragged(before: Passed, places: Ints, low: Ints, levels: Floats) -> dict[int, Floats]:
    """Look at the neighbours of cuts, one by one."""
    window = np.arange(-_NEAR, _NEAR + 1)
    keys = low[:, None] + window
    found = before(_float_of(keys.reshape(-1)), np.repeat(levels, window.size)).reshape(keys.shape)
    odd = np.flatnonzero((found != (window <= 0)).any(axis=1))
    if odd.size and (found[odd, -_MARGIN:].any() or not found[odd, :_MARGIN].all()):
        raise CannotRead("it is not monotone; use StandardScaler, or no scaler at all, in front of trees")
    turns = {int(i): np.flatnonzero(found[i, 1:] != found[i, :-1]) for i in odd}
    return {int(places[i]): _float_of(keys[i, at]) for i, at in turns.items()}


def _key_of(x: Floats) -> Ints:
    """Whole numbers in the order of the floats, neighbours one apart."""
    bits = np.asarray(x, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & _MAGNITUDE))


def _float_of(key: Ints) -> Floats:
    magnitude = np.abs(key).view(np.float64)
    return np.where(key >= 0, magnitude, -magnitude)
