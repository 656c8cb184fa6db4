"""A model's column as a function φ(x) of one column of the user's: four kinds.

| kind | φ(x) | made by |
|---|---|---|
| ``Monotone`` | rises or falls with x | scalers, imputers, logarithms, power transforms |
| ``Pieces`` | constant between cuts | bins, thresholds, "is missing" |
| ``Finite`` | a value for each of finitely many x | encoders; whatever happens to a column of text |
| ``Curve`` | anything smooth between kinks | splines, squares, sines |

``feature_maps.then`` puts one after the other. Every kind is evaluated as the transformer itself computes
it, digit by digit, so that a threshold behind it can be moved to the very number where the model changes its
mind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats
from limes.models.folding.passages import passages
from limes.models.folding.values import Values, is_missing, numbers
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
        """Finite places where φ passes levels, to a few last digits."""
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


def itself(name: str = "") -> Monotone:
    """φ(x) = x."""
    return Monotone(lambda values: values, Affine(1.0), plain=True, kinks=(), name=name)


@dataclass(frozen=True, eq=False)
class Curve:
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
    before: Monotone = field(default_factory=itself)
    after: Monotone = field(default_factory=itself)

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


FeatureMap = Monotone | Pieces | Finite | Curve
