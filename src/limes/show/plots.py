"""An explanation as matplotlib pictures: they take ``ax=``, return it and show nothing.

The functions are the methods of ``explanation.plot`` (``limes/explanation/drawing.py``), which documents
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limes._checks import is_count
from limes.exceptions import InputError
from limes.explanation.selection import name_positions
from limes.explanation.view import Line, OutputView, headline, largest_output, view_row
from limes.explanation.wording import CONFIDENCE, count, number, shorten
from limes.show import images as image_plots
from limes.show.axes import LOWERS, RAISES, UNKNOWN, axes_or_new
from limes.show.texts import draw_text, figure_size, pieces

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from limes._arrays import Floats
    from limes.explanation import Explanation

_LONGEST_LABEL = 40
_SPREAD = 0.38  # of the room of one feature, to each side of its line
_SLOTS = 80  # columns of dots that do not overlap along the axis


def bar(
    explanation: Explanation, row: int, output: str | int | None, *, ax: Axes | None, max_features: int
) -> Axes:
    """Draw the largest coefficients of one row as signed bars."""
    one_row = explanation[row]
    _refuse_empty(one_row)
    selected = largest_output(one_row, 0) if output is None else output
    return _bar(one_row[..., selected], _axes(ax, max_features, one_row), max_features)


def beeswarm(
    explanation: Explanation, output: str | int | None, *, ax: Axes | None, max_features: int
) -> Axes:
    """Draw the coefficients of all rows, one dot a row, one line a feature."""
    one_output = explanation[..., -1 if output is None else output]
    _refuse_empty(one_output)
    axes = _axes(ax, max_features, one_output)
    return _beeswarm(one_output.top(max_features), axes, one_output)


def bandwidth(
    explanation: Explanation, row: int, output: str | int | None, *, ax: Axes | None, max_features: int
) -> Axes:
    """Draw the coefficients of one row at other bandwidths."""
    from limes.diagnostics.bandwidth import paths
    from limes.show.diagnosis.terminal import draw_path

    one_row = explanation[row]
    _refuse_empty(one_row)
    if not hasattr(one_row.explainer, "diagnostic_context"):
        raise InputError("plot.bandwidth() needs the explainer: plot what it returned, not a file")
    position = _output_positions(one_row, largest_output(one_row, 0) if output is None else output)[0]
    context = one_row.explainer.diagnostic_context(one_row, output=np.array([position]), calls=None)
    return draw_path(paths(context)[0], ax, max_features)


def text(explanation: Explanation, output: str | int | None, *, ax: Axes | None) -> Axes:
    """Draw the explained text, its words coloured by their coefficients."""
    _refuse_empty(explanation)
    one_output = explanation[..., largest_output(explanation, 0) if output is None else output]
    coloured = pieces(one_output, 0, 0)
    if not coloured:
        raise InputError("There is no text to draw; explanations of limes.TextExplainer have one")
    if ax is None:
        ax = axes_or_new(None, figure_size(coloured))
        ax.figure.canvas.draw()  # the layout decides how wide characters are
    draw_text(ax, coloured)
    _title(ax, _bar_title(one_output, view_row(one_output, 0, 1).outputs[0]))
    return ax


def image(
    explanation: Explanation, output: str | int | None, *, kind: str, top: int, sign: str, ax: Axes | None
) -> Axes:
    """Draw the explained image."""
    _refuse_empty(explanation)
    position = _output_positions(explanation, largest_output(explanation, 0) if output is None else output)[0]
    axes = axes_or_new(ax, (4.2, 4.6))
    return image_plots.draw_image(axes, explanation, position, kind=kind, top=top, sign=sign)


def images(
    explanation: Explanation, outputs: list[str | int] | None, *, kind: str, top: int, sign: str
) -> Figure:
    """Draw the image, and beside it one picture an output."""
    _refuse_empty(explanation)
    positions = _output_positions(explanation, slice(None) if outputs is None else outputs)
    return image_plots.side_by_side(explanation, positions, kind=kind, top=top, sign=sign)


def _output_positions(explanation: Explanation, outputs: Any) -> list[int]:
    positions = name_positions(outputs, explanation.output_names, "output")
    return [int(position) for position in np.atleast_1d(positions)]


def _refuse_empty(explanation: Explanation) -> None:
    if explanation.values.size == 0:
        raise InputError(
            f"There is nothing to draw: {len(explanation)} rows and "
            f"{len(explanation.feature_names)} features; draw an explanation that has both"
        )


def _axes(ax: Axes | None, max_features: int, explanation: Explanation) -> Axes:
    if not is_count(max_features):
        raise InputError(f"max_features={max_features!r}; pass 1 or more")
    lines = min(max_features, len(explanation.feature_names))
    return axes_or_new(ax, (7.5, 1.6 + 0.34 * lines))


def _bar(explanation: Explanation, ax: Axes, max_features: int) -> Axes:
    view = view_row(explanation, 0, max_features).outputs[0]
    values = np.array([line.value for line in view.lines])
    ax.barh(
        np.arange(len(values)),
        np.where(np.isfinite(values), values, np.nan),
        height=0.68,
        color=[RAISES if value > 0 else LOWERS for value in values],
        zorder=2,
    )
    if explanation.method == "sampled":
        _error_bars(ax, view.lines)
    _name_lines(ax, [line.condition for line in view.lines])
    _frame(ax, _bar_label(explanation, view))
    _title(ax, _bar_title(explanation, view))
    return ax


def _error_bars(ax: Axes, lines: tuple[Line, ...]) -> None:
    reach = [CONFIDENCE * line.standard_error for line in lines]
    ax.errorbar(
        [line.value for line in lines],
        np.arange(len(lines)),
        xerr=reach,
        fmt="none",
        ecolor="#333333",
        elinewidth=1.1,
        capsize=2.5,
        zorder=3,
    )


def _bar_title(explanation: Explanation, view: OutputView) -> str:
    return f"{shorten(view.name, 48)}\n{headline(view)} ({explanation.method})"


def _bar_label(explanation: Explanation, view: OutputView) -> str:
    errors = ", with 95 % error bars" if explanation.method == "sampled" else ""
    hidden = f"\n{count(view.omitted, 'smaller one')} not shown" if view.omitted else ""
    return f"coefficient of the surrogate{errors}{hidden}"


def _beeswarm(explanation: Explanation, ax: Axes, whole: Explanation) -> Axes:
    values = explanation.values
    slots = _slots(values)
    heights = np.column_stack([line + _stacked(column) for line, column in enumerate(slots.T)])
    ranks = np.column_stack([_ranks(column) for column in explanation.data.T])
    ranked = ~np.isnan(ranks)
    ax.scatter(values[~ranked], heights[~ranked], s=14, color=UNKNOWN, linewidths=0, zorder=2)
    if ranked.any():
        dots = ax.scatter(
            values[ranked],
            heights[ranked],
            c=ranks[ranked],
            s=14,
            cmap=_colours(),
            vmin=0.0,
            vmax=1.0,
            linewidths=0,
            zorder=3,
        )
        _colour_bar(ax, dots)
    _name_lines(ax, list(explanation.feature_names))
    omitted = len(whole.feature_names) - values.shape[1]
    remark = f"\n{count(omitted, 'smaller one')} not shown" if omitted else ""
    _frame(ax, f"coefficient of the surrogate, one dot a row{remark}")
    title = f"{shorten(explanation.output_names[0], 36)}: {count(len(explanation), 'row')}"
    _title(ax, f"{title} ({explanation.method})")
    return ax


def _slots(values: Floats) -> Floats:
    """Return the narrow slot of the axis in which each dot lies, -1 for dots that cannot be drawn."""
    finite = np.isfinite(values)
    span = float(np.ptp(values[finite])) if finite.any() else 0.0
    lowest = values[finite].min() if finite.any() else 0.0
    shares = (np.where(finite, values, lowest) - lowest) / (span or 1.0)
    return np.where(finite, np.floor(_SLOTS * shares), -1.0)


def _stacked(slots: Floats) -> Floats:
    """Return heights around 0 that stack the dots of a slot."""
    order = _order_within(slots)
    # 0, 1, 2, 3, ... becomes 0, 1, -1, 2, ...: stacks grow to both sides of the line.
    heights = np.where(order % 2, (order + 1) / 2, -order / 2)
    factor: float = min(_SPREAD / max(np.abs(heights).max(), 1.0), 0.07)
    return np.asarray(heights * factor, dtype=float)


def _order_within(slots: Floats) -> Floats:
    """Return for each entry the number of equal entries before it."""
    by_slot = np.argsort(slots, kind="stable")
    starts = np.searchsorted(slots[by_slot], slots[by_slot], side="left")
    order = np.empty(len(slots))
    order[by_slot] = np.arange(len(slots)) - starts
    return order


def _ranks(cells: Any) -> Floats:
    """Return ranks in [0, 1], equal for equal values, nan where a cell is not a number."""
    numbers = np.array([float(cell) if isinstance(cell, int | float) else np.nan for cell in cells.tolist()])
    _, places, sizes = np.unique(numbers, return_inverse=True, return_counts=True, equal_nan=False)
    middle = np.cumsum(sizes) - (sizes + 1) / 2
    n_ranked = int((~np.isnan(numbers)).sum())
    ranks: Floats = np.where(np.isnan(numbers), np.nan, middle[places] / max(n_ranked - 1, 1))
    return ranks


def _colours() -> Any:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    # Without its palest end, which vanishes on white; lightness alone separates low from high.
    return ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.9, 256)))


def _colour_bar(ax: Axes, dots: Any) -> None:
    bar = ax.figure.colorbar(dots, ax=ax, pad=0.02, aspect=30)
    bar.set_ticks([0.0, 1.0], labels=["low", "high"])
    bar.set_label("the row's own value (rank)", fontsize=9)
    bar.ax.tick_params(labelsize=9, length=0)
    bar.outline.set_visible(False)


def _title(ax: Axes, title: str) -> None:
    ax.set_title(title, loc="left", fontsize=10.5, parse_math=False)


def _name_lines(ax: Axes, names: list[str]) -> None:
    labels = [shorten(name, _LONGEST_LABEL) for name in names]
    # A dollar sign in a name is a dollar sign, not the start of a formula.
    ax.set_yticks(np.arange(len(labels)), labels=labels, fontsize=10, parse_math=False)
    ax.set_ylim(len(labels) - 0.5, -0.5)


def _frame(ax: Axes, label: str) -> None:
    from matplotlib.ticker import FuncFormatter

    ax.axvline(0.0, color="#666666", linewidth=0.8, zorder=1)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    ax.tick_params(axis="x", labelsize=9)
    ax.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.set_xlabel(label, fontsize=9)
