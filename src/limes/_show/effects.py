"""Whole effects as curves and bars over a column's cells: one column, or the largest of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from limes._explanation.fit import Effect
from limes._explanation.view import output_title
from limes._explanation.wording import CONFIDENCE, count, difference, one_line, shorten, without_name
from limes._show.axes import (
    QUIET,
    axes_or_new,
    error_bars,
    ink,
    plain_frame,
    set_title,
    sign_colour,
    turn,
    width_of,
)
from limes.exceptions import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from limes._arrays import Floats
    from limes._explanation import Explanation


# Quantiles over rows
_ENDS = (0.1, 0.9)
_MOST_CELLS = 24
_COLUMNS = 3
# Letters of a title, and of the labels of cells side by side, in an inch of the picture
_LETTERS_PER_INCH, _LABELS_PER_INCH = 12.5, 9.0
_CELLS_PER_INCH = 4.5  # cells side by side, in an inch of a picture among others
_PREDICTION = "the prediction"  # what an effect is on, if that has no other name


def quantity_of(one: Explanation) -> str:
    title = output_title(one, 0)
    return _PREDICTION if title == "prediction" else shorten(title, 24)


class MeanEffect(NamedTuple):
    """The effects of a column around n rows: their mean, and quantiles over rows, (p,)."""

    effect: Effect
    low: Floats
    high: Floats
    rows: int


def mean_effect(one: Explanation, feature: int) -> MeanEffect:
    """Average a column's effects on an explanation's one output over its rows."""
    d = len(one.feature_names)
    each = [one.effects.at(row * d + feature) for row in range(len(one))]
    first = each[0]
    if any(effect.cells != first.cells for effect in each):
        raise InputError(
            f"{one_line(first.feature)!r} has other cells around each row, as columns with slopes have: "
            "pass row="
        )
    values = np.array([effect.values for effect in each], dtype=np.float64)
    low, high = np.nanquantile(values, _ENDS, axis=0)
    mean = replace(
        first,
        values=np.nanmean(values, axis=0),
        standard_errors=np.zeros(values.shape[1]),
        masses=np.mean([effect.masses for effect in each], axis=0),
        share=float(np.nanmean([effect.share for effect in each])),
    )
    return MeanEffect(mean, low, high, len(one))


def draw_effect(
    effect: Effect | MeanEffect,
    ax: Axes | None = None,
    *,
    title: str | None = None,
    unit: str = "",
    quantity: str = _PREDICTION,
) -> Axes:
    """Draw one effect on a quantity: a bar a cell, wider for frequent cells, the row's cell in colour.

    Of many rows bars are means, and lines reach from the 10 % to the 90 % quantile over rows.
    """
    over_rows = effect if isinstance(effect, MeanEffect) else None
    effect = effect.effect if isinstance(effect, MeanEffect) else effect
    most = max(4, _MOST_CELLS if ax is None else int(_CELLS_PER_INCH * width_of(ax)))
    order = np.argsort(-np.asarray(effect.masses), kind="stable").tolist()
    chosen = sorted([effect.current, *(b for b in order if b != effect.current)][:most])
    current = -1 if over_rows else chosen.index(effect.current)
    values, errors, masses = (
        np.asarray(array, dtype=float)[chosen]
        for array in (effect.values, effect.standard_errors, effect.masses)
    )
    axes = axes_or_new(ax, (max(4.2, 1.6 + 0.75 * len(chosen)), 3.4))
    positions = np.arange(len(chosen))
    widths = 0.2 + 0.72 * masses / masses.max() if masses.max() > 0 else np.full(len(chosen), 0.8)
    colours = [sign_colour(values[b]) if b == current else QUIET for b in positions]
    axes.bar(positions, values, width=widths, color=colours, zorder=2)
    if over_rows:
        axes.vlines(
            positions, over_rows.low[chosen], over_rows.high[chosen], color=ink(), linewidth=1.2, zorder=3
        )
    elif (errors > 0).any():
        error_bars(axes, positions, values, yerr=CONFIDENCE * errors, capsize=2.5)
    axes.axhline(0.0, color=ink(), alpha=0.6, linewidth=0.8, zorder=1)
    plain_frame(axes, 9)
    axes.grid(axis="x", visible=False)
    labels = [shorten(without_name(effect.cells[b], effect.feature), 32) for b in chosen]
    axes.set_xticks(positions, labels=labels, fontsize=8.5, parse_math=False)
    if sum(map(len, labels)) > _LABELS_PER_INCH * width_of(axes):
        turn(axes)
    if not over_rows:
        axes.get_xticklabels()[current].set_fontweight("bold")
    if len(chosen) < len(effect.cells):
        rarer = count(len(effect.cells) - len(chosen), "rarer cell")
        axes.set_xlabel(f"{rarer} not shown", fontsize=8.5)
    axes.margins(y=0.12)
    axes.set_ylabel(f"effect on {quantity}{f' ({unit})' if unit else ''}", fontsize=9, parse_math=False)
    if over_rows:
        value = f"mean of {count(over_rows.rows, 'row')}; lines: 10 % to 90 %"
    else:
        value = f"{difference(float(values[current]))} on average in the row's cell"
    room = max(24, int(_LETTERS_PER_INCH * width_of(axes)))
    set_title(axes, _title(effect.feature, value, room) if title is None else f"{title}: {value}", 10)
    return axes


def _title(name: str, value: str, room: int) -> str:
    """A name and a value in one line, or a long name above it: names may differ at their ends."""
    name = one_line(name)
    if len(name) + len(value) + 2 <= room:
        return f"{name}: {value}"
    return "\n".join([*wrap(shorten(name, 2 * room - 8), room), value])


def draw_effects(
    effects: Sequence[Effect | MeanEffect],
    axes: Sequence[Axes] | None = None,
    *,
    unit: str = "",
    quantity: str = _PREDICTION,
) -> Sequence[Axes]:
    """Draw effects side by side with one scale, the largest first."""
    order = sorted(effects, key=lambda effect: -_range(effect))
    # as few lines of pictures as `_COLUMNS` allow, all about full
    lines = -(-len(order) // _COLUMNS)
    columns = -(-len(order) // lines)
    if axes is None:
        axes = _grid(len(order), lines, columns)
    for effect, ax in zip(order, axes, strict=False):
        draw_effect(effect, ax, unit=unit, quantity=quantity)
    drawn = axes[: len(order)]
    low, high = min(ax.get_ylim()[0] for ax in drawn), max(ax.get_ylim()[1] for ax in drawn)
    turned = any(label.get_rotation() for ax in drawn for label in ax.get_xticklabels())
    for k, ax in enumerate(drawn):
        ax.set_ylim(low, high)
        if k % columns:
            ax.set_ylabel("")
        if turned:
            turn(ax)
    return axes


def _range(effect: Effect | MeanEffect) -> float:
    values = effect.effect.values if isinstance(effect, MeanEffect) else effect.values
    return float(np.ptp(values))


def _grid(pictures: int, lines: int, columns: int) -> Sequence[Axes]:
    from matplotlib import pyplot as plt

    size = (min(10.8, 5.4 * columns), 2.9 * lines)
    figure, grid = plt.subplots(lines, columns, figsize=size, layout="constrained", squeeze=False)
    panels = list(grid.ravel())
    for unused in panels[pictures:]:
        figure.delaxes(unused)
    return panels[:pictures]
