"""Guards: a form must not be finite where the model raises.

scikit-learn's steps check their input. A logarithm turns a number below 0 into NaN, most estimators raise on
NaN, and a form that was read off them would hide it: trees send NaN to one side. A *guard* holds the values
that a step accepts in one of its columns. Its function of the user's column is 0 where the step accepts the
value, NaN where it raises, and is added to the form: a law that reaches there has no exact explanation, and
the error names the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats
from limes._functions import Function, Lookup, SmoothFunctions, Stacked
from limes.models._folding.feature_maps import (
    CurveMap,
    LookupMap,
    ModelColumn,
    MonotoneMap,
    StepMap,
    Values,
    numbers,
)
from limes.models.forms._base import Reduced, Sum

_LARGEST = float(np.finfo(np.float64).max)
# The largest float32: no number of a table is beyond it
_NEVER = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Accepted:
    """The numbers that a step accepts: from ``lower`` to ``upper``, and NaN if it takes missing values."""

    missing: bool = False
    lower: float = -_LARGEST
    upper: float = _LARGEST

    @property
    def all_numbers(self) -> bool:
        """Whether all numbers that a table can hold are accepted."""
        return min(-self.lower, self.upper) >= _NEVER

    def test(self, values: Values) -> Bools:
        """Return which values (n,) are accepted."""
        v = numbers(values)
        return np.asarray(np.where(np.isnan(v), self.missing, (v >= self.lower) & (v <= self.upper)))


# For steps that check nothing: infinite numbers, and missing ones, are accepted
EVERYTHING = Accepted(missing=True, lower=-np.inf, upper=np.inf)


@dataclass(frozen=True, eq=False)
class Guard:
    """The values that a step accepts in one of its columns.

    Attributes
    ----------
    column
        The step's input column.
    accepted
        The numbers that do not raise.
    step
        Class of the step, for messages.
    """

    column: ModelColumn
    accepted: Accepted
    step: str

    @property
    def key(self) -> object:
        """Guards with equal keys are equal: splines of one column share one, as scaling keeps them finite."""
        phi = self.column.map
        if not isinstance(phi, CurveMap) or phi.after.affine is None or not self.accepted.all_numbers:
            return self
        return self.column.source, id(phi.basis), id(phi.before), self.accepted, self.step

    def function(self) -> Function | None:
        """0 where the step accepts the value, NaN where it raises; None if no number of a table raises.

        A law has missing values only if the background has them, on which the model itself is called.
        """
        if self.accepted == EVERYTHING:
            return None
        return _FUNCTIONS[type(self.column.map)](self, self.column.map)

    def on_numbers(self, breaks: tuple[float, ...]) -> SmoothFunctions:
        """Return 0 where accepted and NaN elsewhere, as a function of a column of numbers."""
        phi, accepted = self.column.map, self.accepted
        name = getattr(phi, "name", "") or "a column"
        limits = "no missing or infinite values" if not accepted.missing else "no infinite values"
        if not accepted.all_numbers:
            limits += f", and numbers from {accepted.lower:.6g} to {accepted.upper:.6g} only"

        def zero_or_nan(x: Floats) -> Floats:
            return np.where(accepted.test(phi(x)), 0.0, np.nan)[None, :]

        return SmoothFunctions(zero_or_nan, breaks, f"{name}: {self.step} takes {limits}")


def _of_monotone(guard: Guard, phi: MonotoneMap) -> Function | None:
    accepted = guard.accepted
    if phi.affine is not None and accepted.all_numbers:
        return None  # only a number near 1e308 overflows when it is scaled
    ends = numbers(phi(np.array([-_LARGEST, _LARGEST])))
    if accepted.test(ends).all() and not np.isnan(ends).any():
        return None
    with np.errstate(over="ignore"):
        edges = phi.near([np.nextafter(accepted.lower, -np.inf), accepted.upper])
    return guard.on_numbers((*edges, *([phi.start] if np.isfinite(phi.start) else [])))


def _of_curve(guard: Guard, phi: CurveMap) -> Function | None:
    return guard.on_numbers(phi.before.kinks or ())


def _of_steps(guard: Guard, phi: StepMap) -> Function | None:
    return None if guard.accepted.test(phi.values).all() else guard.on_numbers(tuple(phi.cuts.tolist()))


def _of_lookup(guard: Guard, phi: LookupMap) -> Function | None:
    accepted = guard.accepted.test(phi.values[: phi.keys.size])
    if accepted.all():
        return None
    return Lookup(phi.keys, np.where(accepted, 0.0, np.nan)[None, :], np.zeros(1), np.zeros(1))


_FUNCTIONS: Mapping[type, Callable[[Guard, Any], Function | None]] = {
    MonotoneMap: _of_monotone,
    CurveMap: _of_curve,
    StepMap: _of_steps,
    LookupMap: _of_lookup,
}


def undefined(guards: Sequence[Guard], size: int, outputs: tuple[int, ...]) -> Reduced | None:
    """A sum over the user's columns: 0 where every guard accepts, NaN elsewhere. None if always 0."""
    by_column: list[list[Function]] = [[] for _ in range(size)]
    for guard in {guard.key: guard for guard in guards}.values():
        function = guard.function()
        if function is not None:
            by_column[guard.column.source].append(function)
    if not any(by_column):
        return None
    functions = tuple(Stacked(tuple(column)) if column else None for column in by_column)
    loadings = tuple(np.ones((max(1, len(column)), *outputs)) for column in by_column)
    return Reduced(Sum(functions, loadings, np.zeros(outputs)))
