"""A model's column as a function φ(x) of one column of the user's: three kinds, closed under composition.

| kind | φ(x) | made by |
|---|---|---|
| ``Monotone`` | rises or falls with x | scalers, imputers, logarithms, power transforms |
| ``Pieces`` | constant between cuts | bins, thresholds, "is missing" |
| ``Finite`` | a value for each of finitely many x | encoders; whatever happens to a column of text |

``then`` puts one after the other. Every kind is evaluated as the transformer itself computes it, digit by
digit, so that a threshold behind it can be moved to the very number where the model changes its mind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats
from limes.models.folding.passages import passages
from limes.models.folding.values import Values, is_blank, is_missing, is_number, numbers
from limes.models.read import CannotRead


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
class Monotone:
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
    """

    apply: Callable[[Values], Values]
    affine: Affine | None = None
    plain: bool = False
    start: float = -np.inf
    falling: bool = False
    kinks: tuple[float, ...] | None = None

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

        def passed(x: Floats, levels: Floats) -> Bools:
            found = np.asarray(self(x), dtype=np.float64)
            return np.asarray(found > levels if self.falling else found <= levels)

        return passages(passed, levels, start=self.start, trembling=self.affine is None)


@dataclass(frozen=True, eq=False)
class Pieces:
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
class Finite:
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


FeatureMap = Monotone | Pieces | Finite


@dataclass(frozen=True, eq=False)
class Codebook:
    """What an encoder makes of a category, a missing value, an unknown one; None where it refuses."""

    codes: Mapping[Any, float]
    missing: float | None
    other: float | None

    def __call__(self, values: Values) -> Floats:
        return np.array([self._code(v, blank) for v, blank in zip(values, is_missing(values), strict=True)])

    def _code(self, value: Any, missing: bool) -> float:
        code = self.missing if missing else self.codes.get(value, self.other)
        if code is None:
            shown = "missing values" if missing else repr(value)
            raise CannotRead(f"it has not met {shown} in training and refuses what it does not know")
        return code

    def refuses(self, value: Any) -> bool:
        """Whether it has no code for a value."""
        if is_blank(value):
            return self.missing is None
        return self.other is None and value not in self.codes

    def lenient(self) -> Codebook:
        """The same with NaN where it refuses."""
        missing, other = (np.nan if code is None else code for code in (self.missing, self.other))
        return Codebook(self.codes, missing, other)


@dataclass(frozen=True, eq=False)
class Pointwise:
    """A function that is known value by value only: it can follow where finitely many values are left."""

    apply: Callable[[Values], Values]

    def __call__(self, values: Values) -> Values:
        return self.apply(values)


Operation = Monotone | Pieces | Codebook | Pointwise


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a model: a function of one of the user's columns, given by its position."""

    source: int
    map: FeatureMap

    def then(self, operation: Operation) -> Column:
        """The column after an operation."""
        return replace(self, map=then(self.map, operation))


def itself() -> Monotone:
    """φ(x) = x."""
    return Monotone(lambda values: values, Affine(1.0), plain=True, kinks=())


def then(first: FeatureMap, second: Operation) -> FeatureMap:
    """First one, then the other.

    Raises
    ------
    CannotRead
        If the two make no function of the three kinds.
    """
    if isinstance(first, Finite):
        return _after_finite(first, second)
    if isinstance(first, Pieces):
        return Pieces(first.cuts, second(first.values), _lenient(second)(_single(first.missing))[0])
    return _AFTER_MONOTONE[type(second)](first, second)


def _after_finite(first: Finite, second: Operation) -> Finite:
    count = first.keys.size
    known = second(first.values[:count]) if count else np.zeros(0)
    others = _lenient(second)(first.values[count:])
    refused = isinstance(second, Codebook) and second.refuses(first.values[count])
    return Finite(first.keys, np.concatenate([known, others]), first.closed or refused)


def _lenient(operation: Operation) -> Operation:
    return operation.lenient() if isinstance(operation, Codebook) else operation


def _single(value: Any) -> Values:
    return np.array([value], dtype=np.float64 if isinstance(value, float) else object)


def _both_monotone(first: Monotone, second: Monotone) -> Monotone:
    start = first.start
    if np.isfinite(start) and not np.isnan(second.at_missing):
        raise CannotRead(
            "it replaces missing values, among them those that a step before it makes of numbers "
            "that it has no answer for; impute first"
        )
    if np.isfinite(second.start):
        if first.falling:
            raise CannotRead("it is not defined everywhere, behind a step that turns the order around")
        below = first.cut(np.array([np.nextafter(second.start, -np.inf)]))[0]
        start = max(start, float(np.nextafter(below, np.inf)))
    return Monotone(
        lambda values: second(first(values)),
        first.affine.then(second.affine) if first.affine and second.affine else None,
        first.plain and second.plain,
        start,
        first.falling ^ second.falling,
        _joint_kinks(first, second),
    )


def _joint_kinks(first: Monotone, second: Monotone) -> tuple[float, ...] | None:
    if first.kinks is None or second.kinks is None:
        return None
    return first.kinks + tuple(first.cut(np.array(second.kinks)).tolist() if second.kinks else ())


def _pieces_of_monotone(first: Monotone, second: Pieces) -> Pieces:
    cuts, values = first.cut(second.cuts), second.values
    if first.falling:
        cuts, values = cuts[::-1], values[::-1]
    at_missing = second(_single(first.at_missing))[0]
    if np.isfinite(first.start):  # below it φ is NaN
        below = np.nextafter(first.start, -np.inf)
        cuts, values = np.append(below, np.maximum(cuts, below)), np.append(at_missing, values)
    return Pieces(cuts, values, at_missing)


def _codes_of_monotone(first: Monotone, second: Codebook) -> Finite:
    if not first.plain:
        raise CannotRead("it encodes numbers as categories after another step has changed them")
    lost = [key for key in second.codes if not is_number(key)]
    if lost:
        raise CannotRead(
            f"it knows categories such as {lost[0]!r}, but the column is taken as numbers; explain with "
            "TabularExplainer and a background that holds the same values as the training data"
        )
    keys = np.array(sorted(float(key) for key in second.codes))
    lenient = second.lenient()
    values = np.concatenate([lenient(keys), [lenient.other], lenient(_single(first.at_missing))])
    return Finite(keys, values, closed=second.other is None)


def _refused(first: Monotone, second: Pointwise) -> FeatureMap:  # noqa: ARG001
    raise CannotRead("it treats single numbers of a column of numbers in a way of their own")


_AFTER_MONOTONE: Mapping[type, Callable[[Monotone, Any], FeatureMap]] = {
    Monotone: _both_monotone,
    Pieces: _pieces_of_monotone,
    Codebook: _codes_of_monotone,
    Pointwise: _refused,
}
