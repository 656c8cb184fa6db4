"""Controls of a column's value: a slider over the background's range, or a choice among its levels.

A value is sent as a number, as the position of a level, or as null where it is missing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from limes._arrays import EXACT, Floats
from limes._explainers.tables.columns import TableColumn
from limes._explanation.wording import cell, one_line
from limes.designs._marginals import BinCells, Marginal
from limes.exceptions import InputError

# A slider has about this many steps, each 1, 2 or 5 times a power of ten
_STEPS = 200


class Control(Protocol):
    """One column's control."""

    def facts(self) -> dict[str, Any]:
        """Return the facts from which the page draws the control."""
        ...

    def sent(self, value: float) -> float | None:
        """Return an encoded value as it is sent."""
        ...

    def encoded(self, value: Any) -> float:
        """Return the encoded value for a value that the page sent.

        Raises
        ------
        InputError
            If it is no value of the column.
        """
        ...


@dataclass(frozen=True)
class Slider:
    """A number between the background's extremes; ``edges`` are the inner edges of its bins."""

    column: TableColumn
    low: float
    high: float
    step: float
    edges: tuple[float, ...]

    def facts(self) -> dict[str, Any]:
        """Return range, step and edges."""
        return {
            "kind": "number",
            "name": one_line(self.column.name),
            "low": self.low,
            "high": self.high,
            "step": self.step,
            "edges": self.edges,
            "missing": self.column.missing,
        }

    def sent(self, value: float) -> float | None:
        """Return the number."""
        return None if math.isnan(value) else value

    def encoded(self, value: Any) -> float:
        """Return the number; the explainer checks whether it may be missing or is too large."""
        if value is None:
            return math.nan
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"column {self.column.name!r}: send a number, or null if missing")
        if self.column.integer and abs(value) > EXACT:
            raise InputError(f"column {self.column.name!r}: send a whole number up to 2**53")
        try:
            return float(value)
        except OverflowError:
            raise InputError(f"column {self.column.name!r}: the number is larger than any float64") from None


@dataclass(frozen=True)
class Choice:
    """One of the background's levels."""

    column: TableColumn

    def facts(self) -> dict[str, Any]:
        """Return the levels as texts."""
        return {
            "kind": "category",
            "name": one_line(self.column.name),
            "levels": [cell(level) for level in self.column.levels],
            "missing": self.column.missing,
        }

    def sent(self, value: float) -> float | None:
        """Return the position of the level."""
        return None if math.isnan(value) else int(self.column.places(np.array([value]))[0])

    def encoded(self, value: Any) -> float:
        """Return the level's number."""
        name, count = self.column.name, len(self.column.levels)
        if value is None and self.column.missing:
            return math.nan
        if type(value) is not int or not 0 <= value < count:
            allowed = " or null" if self.column.missing else ""
            raise InputError(f"column {name!r}: send the position of a level, 0 to {count - 1}{allowed}")
        return float(self.column.points[value])


def control_of(column: TableColumn, marginal: Marginal, values: Floats) -> Control:
    """Return the control of a column with these background values (n,)."""
    if column.categorical:
        return Choice(column)
    cells = marginal.cells
    edges = cells.edges[1:-1].tolist() if isinstance(cells, BinCells) else []
    numbers = values[~np.isnan(values)]
    low, high, whole = float(numbers.min()), float(numbers.max()), bool((numbers % 1 == 0).all())
    return Slider(column, low, high, _step(low, high, whole=whole), tuple(edges))


def _step(low: float, high: float, *, whole: bool) -> float:
    """Return the smallest of 1, 2, 5, 10, ... times a power of ten that makes few enough steps."""
    rough = (high / _STEPS - low / _STEPS) or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * (1 - 1e-9))
    return max(step, 1.0) if whole else step
