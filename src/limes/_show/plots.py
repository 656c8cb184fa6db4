"""One row as matplotlib pictures: they take ``ax=``, return it and show nothing.

The functions are the methods of ``explanation.plot`` (``limes/_explanation/drawing.py``), which documents
them; pictures of many rows are in ``rows.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._explanation.selection import name_positions
from limes._explanation.view import (
    Line,
    OutputView,
    headline,
    main_output,
    row_label,
    slope_facts,
    view_row,
)
from limes._explanation.wording import CONFIDENCE, count, shorten, signed_column
from limes._show import images as image_plots
from limes._show.axes import (
    LOWERS,
    RAISES,
    Captions,
    axes_or_new,
    ink,
    line_axes,
    name_lines,
    refuse_empty,
    signed_frame,
    write_title,
)
from limes._show.texts import draw_text, figure_size, pieces
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from limes._explanation import Explanation


def bar(
    explanation: Explanation,
    row: int,
    output: str | int | None,
    *,
    ax: Axes | None,
    max_features: int,
    captions: Captions,
) -> Axes:
    """Draw the largest coefficients of one row as signed bars."""
    one = one_output(explanation, row, output)
    axes = line_axes(ax, max_features, one)
    view = view_row(one, 0, max_features).outputs[0]
    values = np.array([line.drawn for line in view.lines])
    axes.barh(
        np.arange(len(values)),
        np.where(np.isfinite(values), values, np.nan),
        height=0.68,
        color=[RAISES if value > 0 else LOWERS for value in values],
        zorder=2,
    )
    if one.method == "sampled":
        _error_bars(axes, view.lines)
    name_lines(axes, [captions.condition(line.condition, line.feature) for line in view.lines])
    signed_frame(axes, captions.with_unit(_bar_label(one, view)))
    write_title(axes, captions, _row_title(explanation, row, view), f"{headline(view)} ({one.method})")
    return axes


def one_output(explanation: Explanation, row: int, output: str | int | None) -> Explanation:
    """Return one row and one output."""
    one_row = explanation[row]
    refuse_empty(one_row)
    return one_row[..., main_output(one_row, 0) if output is None else output]


def _row_title(explanation: Explanation, row: int, view: OutputView) -> str:
    """Return what is explained, and its row if there are several rows, or the row has a name."""
    title = shorten(view.title, 44)
    position = int(np.arange(len(explanation))[row])
    named = len(explanation) > 1 or explanation.ids != (0,)
    return f"{title}, {shorten(row_label(explanation, position), 24)}" if named else title


def _error_bars(axes: Axes, lines: tuple[Line, ...]) -> None:
    axes.errorbar(
        [line.drawn for line in lines],
        np.arange(len(lines)),
        xerr=[CONFIDENCE * line.drawn_error for line in lines],
        fmt="none",
        ecolor=ink(),
        elinewidth=1.1,
        capsize=2.5,
        zorder=3,
    )


def _bar_label(explanation: Explanation, view: OutputView) -> str:
    errors = ", with 95 % error bars" if explanation.method == "sampled" else ""
    hidden = f"\n{count(view.omitted, 'smaller one')} not shown" if view.omitted else ""
    scaled = " per standard deviation" if slope_facts(explanation) else ""
    return f"coefficient of the surrogate{scaled}{errors}{hidden}"


@dataclass(frozen=True)
class _Step:
    """A line of a waterfall: from one value to another, or a level where both are the same."""

    name: str
    start: float
    end: float
    colour: str = ""

    @property
    def size(self) -> float:
        """Signed length of the step."""
        return self.end - self.start

    @property
    def is_level(self) -> bool:
        """Whether it is a value of the model or of the surrogate, and no step."""
        return self.colour == ""


def waterfall(
    explanation: Explanation,
    row: int,
    output: str | int | None,
    *,
    ax: Axes | None,
    max_features: int,
    captions: Captions,
) -> Axes:
    """Draw how coefficients lead from the intercept to the surrogate, and what is left to the prediction."""
    one = one_output(explanation, row, output)
    if one.certificates:
        raise InputError("a sparse explanation is a rule: print explanation.rule(), or draw plot.bar()")
    view = view_row(one, 0, len(one.feature_names)).outputs[0]
    steps = _waterfall_steps(one, view, max_features, captions)
    axes = axes_or_new(ax, (7.5, 1.4 + 0.34 * len(steps)))
    _draw_steps(axes, steps)
    name_lines(axes, [step.name for step in steps])
    signed_frame(axes, captions.with_unit(view.title), zero=False)
    write_title(axes, captions, _row_title(explanation, row, view), f"{headline(view)} ({one.method})")
    return axes


def _waterfall_steps(
    explanation: Explanation, view: OutputView, max_features: int, captions: Captions
) -> list[_Step]:
    lacking = {line.feature for line in view.lines if line.data == "missing"}
    slopes = slope_facts(explanation).items()
    means = {name: facts["mean"] for name, facts in slopes if name not in lacking}
    # the prediction does not depend on a feature whose coefficient is unknown
    lines = [line for line in view.lines if not np.isnan(line.value)]
    at = view.intercept + sum(line.value * means.get(line.feature, 0.0) for line in lines)
    parts = [(_part(line, explanation, means), line) for line in lines]
    parts.sort(key=lambda pair: -abs(pair[0]))
    steps = [_Step("surrogate at the means" if means else "intercept", at, at)]
    for size, line in parts[:max_features]:
        steps.append(_moved(captions.condition(line.condition, line.feature), at, at + size))
        at += size
    if len(parts) > max_features:
        steps.append(_moved(count(len(parts) - max_features, "smaller one"), at, view.surrogate))
    return [
        *steps,
        _Step("surrogate", view.surrogate, view.surrogate),
        _Step("not captured", view.surrogate, view.prediction, _REST),
        _Step("prediction", view.prediction, view.prediction),
    ]


# The step that no coefficient explains
_REST = "#a8842c"


def _moved(name: str, start: float, end: float) -> _Step:
    return _Step(name, start, end, RAISES if end > start else LOWERS)


def _part(line: Line, explanation: Explanation, means: Mapping[str, float]) -> float:
    """Return a feature's contribution: its coefficient, or a slope times the distance from the mean."""
    if line.feature not in means:
        return line.value
    return line.value * (float(explanation.data[0, line.position]) - means[line.feature])


def _draw_steps(axes: Axes, steps: list[_Step]) -> None:
    ends = [end for step in steps for end in (step.start, step.end)]
    low, high = min(ends), max(ends)
    room = (high - low) or 1.0
    # sums and what is added to them have the same decimals, by the largest that is added
    added = max((abs(step.size) for step in steps if not step.is_level), default=0.0)
    numbers = [step.end if step.is_level else step.size for step in steps]
    texts = signed_column(numbers, significant=3, size=added or None)
    for i, (step, text) in enumerate(zip(steps, texts, strict=True)):
        if step.is_level:
            axes.plot([step.end] * 2, [i - 0.36, i + 0.36], color=ink(), linewidth=3.0, zorder=3)
        else:
            axes.barh(i, step.size, left=step.start, height=0.66, color=step.colour, zorder=2)
        if i + 1 < len(steps):
            axes.plot([step.end] * 2, [i, i + 1], color=ink(), linewidth=0.6, alpha=0.5, zorder=1)
        axes.text(
            max(step.start, step.end) + 0.02 * room,
            i,
            text.removeprefix("+") if step.is_level else text,
            va="center",
            fontsize=9,
            fontweight="bold" if step.is_level else "normal",
            zorder=4,
        )
    axes.set_xlim(low - 0.04 * room, high + 0.2 * room)


def bandwidth(
    explanation: Explanation,
    row: int,
    output: str | int | None,
    *,
    ax: Axes | None,
    max_features: int,
    captions: Captions,
) -> Axes:
    """Draw the coefficients of one row at other bandwidths."""
    from limes._diagnostics.bandwidth import paths
    from limes._show.diagnosis.terminal import draw_path

    one_row = explanation[row]
    refuse_empty(one_row)
    if not hasattr(one_row.explainer, "diagnostic_context"):
        raise InputError("plot.bandwidth() needs the explainer: plot what it returned, not a file")
    position = _output_positions(one_row, main_output(one_row, 0) if output is None else output)[0]
    context = one_row.explainer.diagnostic_context(one_row, output=np.array([position]), calls=None)
    axes = draw_path(paths(context)[0], ax, max_features)
    if captions.title is not None:
        write_title(axes, captions)
    return axes


def text(explanation: Explanation, output: str | int | None, *, ax: Axes | None, captions: Captions) -> Axes:
    """Draw the explained text, its words coloured by their coefficients."""
    refuse_empty(explanation)
    one_output = explanation[..., main_output(explanation, 0) if output is None else output]
    coloured = pieces(one_output, 0, 0)
    if not coloured:
        raise InputError("There is no text to draw; explanations of limes.TextExplainer have one")
    if ax is None:
        ax = axes_or_new(None, figure_size(coloured))
        ax.figure.canvas.draw()  # the layout decides how wide characters are
    draw_text(ax, coloured)
    view = view_row(one_output, 0, 1).outputs[0]
    write_title(ax, captions, shorten(view.title, 48), f"{headline(view)} ({explanation.method})")
    return ax


def image(
    explanation: Explanation, output: str | int | None, *, kind: str, top: int, sign: str, ax: Axes | None
) -> Axes:
    """Draw the explained image."""
    refuse_empty(explanation)
    position = _output_positions(explanation, main_output(explanation, 0) if output is None else output)[0]
    axes = axes_or_new(ax, (4.2, 4.6))
    return image_plots.draw_image(axes, explanation, position, kind=kind, top=top, sign=sign)


def images(
    explanation: Explanation, outputs: list[str | int] | None, *, kind: str, top: int, sign: str
) -> Figure:
    """Draw the image, and beside it one picture an output."""
    refuse_empty(explanation)
    positions = _output_positions(explanation, slice(None) if outputs is None else outputs)
    return image_plots.side_by_side(explanation, positions, kind=kind, top=top, sign=sign)


def _output_positions(explanation: Explanation, outputs: Any) -> list[int]:
    positions = name_positions(outputs, explanation.output_names, "output")
    return [int(position) for position in np.atleast_1d(positions)]
