"""Operations of transformers on a column, and their composition with the feature maps before them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models._folding.feature_maps import (
    CurveMap,
    FeatureMap,
    LookupMap,
    MonotoneMap,
    StepMap,
    Values,
    is_blank,
    is_missing,
    is_number,
)
from limes.models._reading import CannotRead


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
    """Compose: first the map, then the operation.

    Raises
    ------
    CannotRead
        If the composition is not of one of the four kinds.
    """
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
