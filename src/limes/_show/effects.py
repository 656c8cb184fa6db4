"""Whole effects as matplotlib pictures and cards: E_w[f | cell] - E_w f over the cells of a column.

A coefficient compares the row's own cell with all others; an effect shows each of them.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np

from limes._explanation.drawing import Card
from limes._explanation.fit import Effect, Effects, Interaction
from limes._explanation.wording import (
    CONFIDENCE,
    count,
    difference,
    estimates,
    shorten,
    signed_column,
    without_name,
)
from limes._show.axes import LOWERS, QUIET, RAISES, axes_or_new, ink, plain_frame, turn, width_of
from limes._show.terminal import signed_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from limes._arrays import Floats

_MOST_CELLS = 24
_COLUMNS = 3
# Letters of a title, and of the labels of cells side by side, in an inch of the picture
_LETTERS_PER_INCH, _LABELS_PER_INCH = 12.5, 9.0
# Cells side by side, in an inch of a picture among others
_CELLS_PER_INCH = 4.5
# What an effect is on, if that has no other name
PREDICTION = "the prediction"


def draw_effect(
    effect: Effect,
    ax: Axes | None = None,
    *,
    title: str | None = None,
    unit: str = "",
    quantity: str = PREDICTION,
) -> Axes:
    """Draw one effect on a quantity: a bar a cell, wider for frequent cells, the row's cell in colour.

    Whiskers reach 1.96 standard errors to each side.
    """
    chosen = _most_frequent(effect, _MOST_CELLS if ax is None else int(_CELLS_PER_INCH * width_of(ax)))
    values = np.asarray(effect.values, dtype=float)[chosen]
    errors = np.asarray(effect.standard_errors, dtype=float)[chosen]
    masses = np.asarray(effect.masses, dtype=float)[chosen]
    axes = axes_or_new(ax, (max(4.2, 1.6 + 0.75 * len(chosen)), 3.4))
    positions = np.arange(len(chosen))
    widths = 0.2 + 0.72 * masses / masses.max() if masses.max() > 0 else np.full(len(chosen), 0.8)
    current = chosen.index(effect.current)
    colours = [_colour(values[b]) if b == current else QUIET for b in positions]
    axes.bar(positions, values, width=widths, color=colours, zorder=2)
    if (errors > 0).any():
        axes.errorbar(positions, values, CONFIDENCE * errors, fmt="none", ecolor=ink(), capsize=2.5, zorder=3)
    axes.axhline(0.0, color=ink(), alpha=0.6, linewidth=0.8, zorder=1)
    plain_frame(axes, 9)
    axes.grid(axis="x", visible=False)
    labels = [shorten(without_name(effect.cells[b], effect.feature), 32) for b in chosen]
    axes.set_xticks(positions, labels=labels, fontsize=8.5, parse_math=False)
    if sum(map(len, labels)) > _LABELS_PER_INCH * width_of(axes):
        turn(axes)
    axes.get_xticklabels()[current].set_fontweight("bold")
    if len(chosen) < len(effect.cells):
        rarer = count(len(effect.cells) - len(chosen), "rarer cell")
        axes.set_xlabel(f"{rarer} not shown", fontsize=8.5)
    axes.margins(y=0.12)
    axes.set_ylabel(f"effect on {quantity}{f' ({unit})' if unit else ''}", fontsize=9, parse_math=False)
    value = f": {difference(float(values[current]))} in the row's cell"
    room = max(12, int(_LETTERS_PER_INCH * width_of(axes)) - len(value))
    heading = shorten(effect.feature, room) if title is None else title
    axes.set_title(heading + value, loc="left", fontsize=10, parse_math=False)
    return axes


def draw_effects(
    effects: Sequence[Effect],
    axes: Sequence[Axes] | None = None,
    *,
    unit: str = "",
    quantity: str = PREDICTION,
) -> Sequence[Axes]:
    """Draw effects side by side with one scale, the largest first, and return their axes."""
    order = sorted(effects, key=lambda effect: -float(np.ptp(effect.values)))
    if axes is None:
        axes = _grid(order)
    for effect, ax in zip(order, axes, strict=False):
        draw_effect(effect, ax, unit=unit, quantity=quantity)
    low = min(ax.get_ylim()[0] for ax in axes[: len(order)])
    high = max(ax.get_ylim()[1] for ax in axes[: len(order)])
    for k, ax in enumerate(axes[: len(order)]):
        ax.set_ylim(low, high)
        if k % _columns(len(order)):
            ax.set_ylabel("")
        if any(map(_is_turned, axes[: len(order)])):
            turn(ax)
    return axes


def _grid(effects: Sequence[Effect]) -> Sequence[Axes]:
    from matplotlib import pyplot as plt

    columns = _columns(len(effects))
    lines = -(-len(effects) // columns)
    size = (min(10.8, 5.4 * columns), 2.9 * lines)
    figure, grid = plt.subplots(lines, columns, figsize=size, layout="constrained", squeeze=False)
    panels = list(grid.ravel())
    for unused in panels[len(effects) :]:
        figure.delaxes(unused)
    return panels[: len(effects)]


def _columns(effects: int) -> int:
    """Return the number of pictures side by side: as few lines as `_COLUMNS` allow, all about full."""
    lines = -(-effects // _COLUMNS)
    return -(-effects // lines)


def _is_turned(axes: Axes) -> bool:
    return any(label.get_rotation() for label in axes.get_xticklabels())


def _colour(value: float) -> str:
    return RAISES if value > 0 else LOWERS


def _most_frequent(effect: Effect, most: int) -> list[int]:
    """Return the most frequent cells, at most this many, the row's among them, in their order."""
    order = np.argsort(-np.asarray(effect.masses), kind="stable").tolist()
    first = [effect.current, *(b for b in order if b != effect.current)]
    return sorted(first[: max(most, 4)])


# -- cards ---------------------------------------------------------------------------------------------------

_MOST_LINES = 30


@singledispatch
def card(effects: Effect | Effects | Interaction) -> Card:
    """Return numbers, bars and their meaning."""
    raise NotImplementedError(type(effects).__name__)


@card.register
def _(effect: Effect) -> Card:
    reach = _largest([effect.values])
    exact = not effect.standard_errors.any()
    values, errors = effect.values.tolist(), effect.standard_errors.tolist()
    texts = [(text, "") for text in _signed_texts(effect.values)] if exact else _estimated(values, errors)
    lines = zip(effect.cells, effect.masses.tolist(), texts, values, strict=True)
    return Card(
        title=f"effect of {effect.feature}{_on(effect.output)}: {effect.share:.0%} of the variance",
        columns=["cell", "mass", "effect", *([] if exact else ["± std. error"]), "", ""],
        rows=[
            [
                cell,
                f"{mass:.0%}",
                text,
                *([] if exact else [uncertain]),
                signed_bar(value, reach).plain,
                "the row" if b == effect.current else "",
            ]
            for b, (cell, mass, (text, uncertain), value) in enumerate(lines)
        ][:_MOST_LINES],
        bars=4 - exact,
        strong=effect.current if effect.current < _MOST_LINES else None,
        remarks=("effect: the model's average in the cell, less its average around the row",),
    )


@card.register
def _(effects: Effects) -> Card:
    shown = [effect for effect in effects if effect.output in effects.shown_outputs] or [*effects]
    entries = sorted(shown, key=lambda effect: -np.nan_to_num(effect.share))[:_MOST_LINES]
    current = [effect.values[effect.current] for effect in entries]
    reach = _largest([effect.values for effect in entries])
    low, high = ([end.reduce(effect.values) for effect in entries] for end in (np.fmin, np.fmax))
    numbers = [_signed_texts(np.array(column)) for column in (low, high, current)]
    rows, names = len({effect.row for effect in effects}), len({effect.feature for effect in effects})
    outputs = len({effect.output for effect in shown})
    of_rows = f" around {count(rows, 'row')}" if rows > 1 else ""
    on_output = _on(shown[0].output) if outputs == 1 and len(shown) < len(effects) else ""
    hidden = max(0, len(shown) - _MOST_LINES)
    return Card(
        title=f"whole effects of {count(names, 'column')}{on_output}{of_rows}, those that explain most first",
        columns=[
            *(["row"] if rows > 1 else []),
            *(["output"] if outputs > 1 else []),
            "column",
            "share",
            "lowest",
            "highest",
            "at the row",
            "",
        ],
        rows=[
            [
                *([str(effect.row)] if rows > 1 else []),
                *([effect.output] if outputs > 1 else []),
                effect.cells[effect.current],
                f"{effect.share:.1%}",
                *texts,
                signed_bar(value, reach).plain,
            ]
            for effect, texts, value in zip(entries, zip(*numbers, strict=True), current, strict=True)
        ],
        bars=5 + (rows > 1) + (outputs > 1),
        remarks=(
            "share: of the model's variance around the row",
            "lowest, highest: of the effects of the column's cells",
            *([f"{hidden:,} smaller ones are not shown: .effects[i]"] if hidden else []),
        ),
    )


@card.register
def _(pair: Interaction) -> Card:
    first, second = pair.cells
    texts = iter(_signed_texts(pair.values.reshape(-1)))
    names = " and ".join(pair.features)
    return Card(
        title=f"{names}{_on(pair.output)}: {pair.share:.1%} of the variance beyond their effects",
        columns=["", *second, ""],
        rows=[
            [cell, *(next(texts) for _ in second), "the row" if b == pair.current[0] else ""]
            for b, cell in enumerate(first)
        ],
        strong=pair.current[0],
        remarks=(f"the row: {first[pair.current[0]]} and {second[pair.current[1]]}",),
    )


def _on(output: str) -> str:
    return "" if output == "output" else f" on {output}"


def _largest(values: Sequence[Floats]) -> float:
    numbers = np.concatenate([np.abs(array[np.isfinite(array)]) for array in values])
    return float(numbers.max(initial=0.0))


def _estimated(values: list[float], errors: list[float]) -> list[tuple[str, str]]:
    """Write a column of numbers with their errors; "?" for cells with too few rows."""
    finite = [i for i, value in enumerate(values) if np.isfinite(value)]
    texts = estimates([values[i] for i in finite], [errors[i] for i in finite])
    written = dict(zip(finite, texts, strict=True))
    return [written.get(i, ("?", "")) for i in range(len(values))]


def _signed_texts(values: Floats) -> list[str]:
    """Write a column of numbers; "?" for cells with too few rows."""
    texts = iter(signed_column(values[np.isfinite(values)].tolist()))
    return [next(texts) if finite else "?" for finite in np.isfinite(values).tolist()]
