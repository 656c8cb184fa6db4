"""Where a model raises: a form must not be finite there.

scikit-learn's steps check what they are given. A logarithm makes NaN of a number below 0, most estimators
raise on NaN, and no read form of theirs would show it: trees send NaN to one side. A *guard* remembers what
a step accepts of one of its columns. Its function of the user's column is 0 where the step answers, NaN where
it raises, and is added to the form: a law that goes there has no exact explanation, and the error says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats
from limes.curves import Curves
from limes.functions import Function, Lookup, Stacked
from limes.models.folding.feature_maps import CurveMap, LookupMap, MonotoneMap, StepMap, Values, numbers
from limes.models.folding.operations import ModelColumn
from limes.models.forms.base import Sum
from limes.models.forms.combination import Reduced

_LARGEST = float(np.finfo(np.float64).max)
# No column of a table holds as large numbers, which float32 cannot
_NEVER = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Accepted:
    """The numbers that a step answers to: from ``lower`` to ``upper``, NaN where it takes missing values."""

    missing: bool = False
    lower: float = -_LARGEST
    upper: float = _LARGEST

    def __contains__(self, value: float) -> bool:
        return bool(self.test(np.array([value]))[0])

    @property
    def is_finite(self) -> bool:
        """Whether all numbers are accepted that a table may hold."""
        return min(-self.lower, self.upper) >= _NEVER

    def test(self, values: Values) -> Bools:
        """Which values (n,) are accepted."""
        v = numbers(values)
        return np.asarray(np.where(np.isnan(v), self.missing, (v >= self.lower) & (v <= self.upper)))


@dataclass(frozen=True, eq=False)
class Guard:
    """What a step accepts of a column that it is given.

    Attributes
    ----------
    column
        The column, as the step is given it.
    accepted
        The numbers that the step answers to.
    step
        Its class, for errors.
    """

    column: ModelColumn
    accepted: Accepted
    step: str

    @property
    def key(self) -> object:
        """Guards with one key say the same: those of all splines of a column that are scaled at most."""
        track = self.column.map
        if not isinstance(track, CurveMap) or track.after.affine is None or not self.accepted.is_finite:
            return self
        return self.column.source, id(track.basis), id(track.before), self.accepted, self.step

    def function(self) -> Function | None:
        """0 where the step answers, NaN where it raises; None if it raises at missing values at most.

        A missing value is in a law only if it is in the background, where the model itself is asked.
        """
        return _FUNCTIONS[type(self.column.map)](self, self.column.map)

    def curves(self, breaks: tuple[float, ...]) -> Curves:
        """The function, of a column that has numbers."""
        track, accepted = self.column.map, self.accepted
        name = getattr(track, "name", "") or "a column"
        limits = "no missing or infinite values" if not accepted.missing else "no infinite values"
        if not accepted.is_finite:
            limits += f", and numbers from {accepted.lower:.6g} to {accepted.upper:.6g} only"

        def undefined_at(x: Floats) -> Floats:
            return np.where(accepted.test(track(x)), 0.0, np.nan)[None, :]

        return Curves(undefined_at, breaks, f"{name}: {self.step} takes {limits}")


def _of_monotone(guard: Guard, track: MonotoneMap) -> Function | None:
    accepted = guard.accepted
    if track.affine is not None and accepted.is_finite:
        return None  # a scaled column would have to be as large itself
    ends = numbers(track(np.array([-_LARGEST, _LARGEST])))
    if accepted.test(ends).all() and not np.isnan(ends).any():
        return None
    with np.errstate(over="ignore"):
        edges = track.near([np.nextafter(accepted.lower, -np.inf), accepted.upper])
    return guard.curves((*edges, *([track.start] if np.isfinite(track.start) else [])))


def _of_curve(guard: Guard, track: CurveMap) -> Function | None:
    return guard.curves(track.before.kinks or ())


def _of_pieces(guard: Guard, track: StepMap) -> Function | None:
    return None if guard.accepted.test(track.values).all() else guard.curves(tuple(track.cuts.tolist()))


def _of_finite(guard: Guard, track: LookupMap) -> Function | None:
    known = guard.accepted.test(track.values[: track.keys.size])
    if known.all():
        return None
    return Lookup(track.keys, np.where(known, 0.0, np.nan)[None, :], np.zeros(1), np.zeros(1))


_FUNCTIONS: Mapping[type, Callable[[Guard, Any], Function | None]] = {
    MonotoneMap: _of_monotone,
    CurveMap: _of_curve,
    StepMap: _of_pieces,
    LookupMap: _of_finite,
}


def undefined(guards: Sequence[Guard], size: int, outputs: tuple[int, ...]) -> Reduced | None:
    """A sum over the user's columns: 0 where every guard accepts, NaN elsewhere. None if always 0."""
    found: list[list[Function]] = [[] for _ in range(size)]
    for guard in {guard.key: guard for guard in guards}.values():
        function = guard.function()
        if function is not None:
            found[guard.column.source].append(function)
    if not any(found):
        return None
    functions = tuple(Stacked(tuple(each)) if each else None for each in found)
    loadings = tuple(np.ones((max(1, len(each)), *outputs)) for each in found)
    return Reduced(Sum(functions, loadings, np.zeros(outputs)))
