"""Whole effects as small pictures beside their coefficients: one line over the cells of a column.

A coefficient compares the row's cell with all others; the line shows the cells that it averages over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limes._arrays import Floats
    from limes._explanation import Explanation
    from limes._explanation.effects import Effect
    from limes._explanation.view import Line

# The height of a picture that is as wide as its column has cells, and the part of it above and below 0
_HEIGHT, _SWING = 16, 7
# More cells than this are too narrow to be seen
_MOST_CELLS = 40


@dataclass(frozen=True)
class Sparkline:
    """One effect: its number of cells, the position of the row's, and an SVG path."""

    count: int
    current: int
    path: str


def sparklines(
    explanation: Explanation, row: int, output: int, lines: Sequence[Line]
) -> list[Sparkline | None]:
    """Draw the effects of a row's columns on one scale; None for words and superpixels."""
    if explanation.fit is None or not explanation.fit.has_curves:
        return [None] * len(lines)
    effects = explanation[row].effects[output * len(explanation.feature_names) :]
    try:
        chosen = [effects[line.position] for line in lines]
    except InputError:  # effects of thousands of columns are too large: the page shows coefficients alone
        return [None] * len(lines)
    finite = [np.abs(effect.values[np.isfinite(effect.values)]).max(initial=0.0) for effect in chosen]
    return [_sparkline(effect, float(max(finite, default=0.0)) or 1.0) for effect in chosen]


def _sparkline(effect: Effect, largest: float) -> Sparkline | None:
    count = len(effect.cells)
    if not 2 <= count <= _MOST_CELLS:
        return None
    return Sparkline(count, effect.current, _steps(effect.values / largest))


def _steps(heights: Floats) -> str:
    """Return the path of a step function of heights from -1 to 1; it is broken where they are NaN."""
    path, joined = "", False
    for b, height in enumerate(heights.tolist()):
        if np.isfinite(height):
            y = f"{_HEIGHT / 2 - _SWING * height:.1f}".removesuffix(".0")
            path += f"V{y}H{b + 1}" if joined else f"M{b} {y}H{b + 1}"
        joined = bool(np.isfinite(height))
    return path
