"""Whole effects as matplotlib pictures: E_w[f | cell] - E_w f over the cells of a column, drawn from arrays.

A coefficient compares the row's own cell with all others; an effect shows each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limes._explanation.selection import name_positions
from limes._explanation.view import output_title
from limes._explanation.wording import CONFIDENCE, count, difference, shorten
from limes._show.axes import LOWERS, QUIET, RAISES, axes_or_new, ink, plain_frame, turn, width_of
from limes._show.diagnosis.html import without_name
from limes._show.plots import one_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from limes._arrays import Floats
    from limes._explanation import Explanation
    from limes._explanation.effects import Effect

_MOST_CELLS = 24
_COLUMNS = 3
# Letters of a title, and of the labels of cells side by side, in an inch of the picture
_LETTERS_PER_INCH, _LABELS_PER_INCH = 12.5, 9.0
# Cells side by side, in an inch of a picture among others
_CELLS_PER_INCH = 4.5
# What an effect is on, if that has no other name
_PREDICTION = "the prediction"


class Curve(NamedTuple):
    """An effect as it is drawn: its cells, arrays (p,) over them, and the position of the row's cell."""

    feature: str
    cells: Sequence[str]
    values: Floats
    standard_errors: Floats
    masses: Floats
    current: int

    @classmethod
    def of(cls, effect: Effect) -> Curve:
        """Return the drawn fields of an effect."""
        return cls(*(getattr(effect, name) for name in cls._fields))


def effect(
    explanation: Explanation,
    feature: str | int,
    row: int,
    output: str | int | None,
    *,
    ax: Axes | None,
    title: str | None,
    unit: str,
) -> Axes:
    """Draw the effect of one feature around one row."""
    (position,) = name_positions(feature, explanation.feature_names, "feature")
    one = one_output(explanation, row, output)
    curve = Curve.of(one.effects[int(position)])
    return draw_effect(curve, ax, title=title, unit=unit, quantity=_quantity(one))


def effects(
    explanation: Explanation,
    row: int,
    output: str | int | None,
    *,
    axes: Sequence[Axes] | None,
    top: int,
    unit: str,
) -> Sequence[Axes]:
    """Draw the effects around one row that explain most."""
    one = one_output(explanation, row, output)
    largest = sorted(one.effects, key=lambda curve: -curve.share)[:top]
    return draw_effects([Curve.of(curve) for curve in largest], axes, unit=unit, quantity=_quantity(one))


def _quantity(one: Explanation) -> str:
    """Return what the effects of an explanation of one output are on."""
    title = output_title(one, 0)
    return _PREDICTION if title == "prediction" else shorten(title, 24)


def draw_effect(
    curve: Curve,
    ax: Axes | None = None,
    *,
    title: str | None = None,
    unit: str = "",
    quantity: str = _PREDICTION,
) -> Axes:
    """Draw one effect on a quantity: a bar a cell, wider for frequent cells, the row's cell in colour.

    Whiskers reach 1.96 standard errors to each side.
    """
    chosen = _most_frequent(curve, _MOST_CELLS if ax is None else int(_CELLS_PER_INCH * width_of(ax)))
    values = np.asarray(curve.values, dtype=float)[chosen]
    errors = np.asarray(curve.standard_errors, dtype=float)[chosen]
    masses = np.asarray(curve.masses, dtype=float)[chosen]
    axes = axes_or_new(ax, (max(4.2, 1.6 + 0.75 * len(chosen)), 3.4))
    positions = np.arange(len(chosen))
    widths = 0.2 + 0.72 * masses / masses.max() if masses.max() > 0 else np.full(len(chosen), 0.8)
    current = chosen.index(curve.current)
    colours = [_colour(values[b]) if b == current else QUIET for b in positions]
    axes.bar(positions, values, width=widths, color=colours, zorder=2)
    if (errors > 0).any():
        axes.errorbar(positions, values, CONFIDENCE * errors, fmt="none", ecolor=ink(), capsize=2.5, zorder=3)
    axes.axhline(0.0, color=ink(), alpha=0.6, linewidth=0.8, zorder=1)
    plain_frame(axes, 9)
    axes.grid(axis="x", visible=False)
    labels = [shorten(without_name(curve.cells[b], curve.feature), 32) for b in chosen]
    axes.set_xticks(positions, labels=labels, fontsize=8.5, parse_math=False)
    if sum(map(len, labels)) > _LABELS_PER_INCH * width_of(axes):
        turn(axes)
    axes.get_xticklabels()[current].set_fontweight("bold")
    if len(chosen) < len(curve.cells):
        rarer = count(len(curve.cells) - len(chosen), "rarer cell")
        axes.set_xlabel(f"{rarer} not shown", fontsize=8.5)
    axes.margins(y=0.12)
    axes.set_ylabel(f"effect on {quantity}{f' ({unit})' if unit else ''}", fontsize=9, parse_math=False)
    value = f": {difference(float(values[current]))} in the row's cell"
    room = max(12, int(_LETTERS_PER_INCH * width_of(axes)) - len(value))
    heading = shorten(curve.feature, room) if title is None else title
    axes.set_title(heading + value, loc="left", fontsize=10, parse_math=False)
    return axes


def draw_effects(
    curves: Sequence[Curve],
    axes: Sequence[Axes] | None = None,
    *,
    unit: str = "",
    quantity: str = _PREDICTION,
) -> Sequence[Axes]:
    """Draw effects side by side with one scale, the largest first, and return their axes."""
    order = sorted(curves, key=lambda curve: -float(np.ptp(curve.values)))
    if axes is None:
        axes = _grid(order)
    for curve, ax in zip(order, axes, strict=False):
        draw_effect(curve, ax, unit=unit, quantity=quantity)
    low = min(ax.get_ylim()[0] for ax in axes[: len(order)])
    high = max(ax.get_ylim()[1] for ax in axes[: len(order)])
    for k, ax in enumerate(axes[: len(order)]):
        ax.set_ylim(low, high)
        if k % _columns(len(order)):
            ax.set_ylabel("")
        if any(map(_is_turned, axes[: len(order)])):
            turn(ax)
    return axes


def _grid(curves: Sequence[Curve]) -> Sequence[Axes]:
    from matplotlib import pyplot as plt

    columns = _columns(len(curves))
    lines = -(-len(curves) // columns)
    size = (min(10.8, 5.4 * columns), 2.9 * lines)
    figure, grid = plt.subplots(lines, columns, figsize=size, layout="constrained", squeeze=False)
    panels = list(grid.ravel())
    for unused in panels[len(curves) :]:
        figure.delaxes(unused)
    return panels[: len(curves)]


def _columns(curves: int) -> int:
    """Return the number of pictures side by side: as few lines as `_COLUMNS` allow, all about full."""
    lines = -(-curves // _COLUMNS)
    return -(-curves // lines)


def _is_turned(axes: Axes) -> bool:
    return any(label.get_rotation() for label in axes.get_xticklabels())


def _colour(value: float) -> str:
    return RAISES if value > 0 else LOWERS


def _most_frequent(curve: Curve, most: int) -> list[int]:
    """Return the most frequent cells, at most this many, the row's among them, in their order."""
    order = np.argsort(-np.asarray(curve.masses), kind="stable").tolist()
    first = [curve.current, *(b for b in order if b != curve.current)]
    return sorted(first[: max(most, 4)])
