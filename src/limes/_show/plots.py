"""The pictures of an explanation with matplotlib: they take ``ax=``, return it and show nothing.

Pictures of one row are drawn here; ``rows.py`` draws many rows, ``effects.py`` whole effects, ``texts.py``,
``images.py`` and ``series.py`` what their names say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limes._explanation.selection import name_positions
from limes._explanation.view import (
    Line,
    OutputView,
    headline,
    output_position,
    output_title,
    row_label,
    slope_facts,
    view_row,
)
from limes._explanation.wording import CONFIDENCE, count, shorten, signed_column
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
from limes._show.effects import PREDICTION, draw_effect, draw_effects
from limes._show.images import draw_image, side_by_side
from limes._show.rows import beeswarm, dependence, heatmap, mean_bar
from limes._show.series import draw_series
from limes._show.texts import draw_text, figure_size, pieces
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from limes._explanation import Explanation


@dataclass(frozen=True)
class Plots:
    """The pictures of one explanation.

    Most take ``ax=``, return it, and show nothing; ``images`` returns a figure. Some accept words for the
    picture: ``title=`` in place of the usual one; ``names=``, a mapping from features to displayed names; and
    ``unit=`` of the prediction.
    """

    explanation: Explanation

    def bar(
        self,
        row: int | None = None,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 10,
        names: Mapping[str, str] | None = None,
        title: str | None = None,
        unit: str = "",
    ) -> Axes:
        """Draw the largest coefficients: of one row as signed bars, of many as their mean size.

        Parameters
        ----------
        row : int
            Position of one row. The default is the only row, or else all rows together: mean absolute
            coefficients, with lines from the 10 % to the 90 % quantile over rows.
        output : name or position
            The default is the positive class of two, else the output with the largest prediction.
        ax : matplotlib Axes
            Axes to draw on; a new figure unless given.
        max_features : int
        names, title, unit
            Words for the picture.

        Returns
        -------
        Axes
            Error bars reach 1.96 standard errors to each side when one row is sampled. Slopes are drawn per
            standard deviation of their columns.
        """
        captions = Captions.of(self.explanation, names, title, unit)
        if row is None and len(self.explanation) > 1:
            return mean_bar(_one_output(self.explanation, output), ax, max_features, captions)
        return _bar(self.explanation, row or 0, output, ax, max_features, captions)

    def waterfall(
        self,
        row: int = 0,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 10,
        names: Mapping[str, str] | None = None,
        title: str | None = None,
        unit: str = "",
    ) -> Axes:
        """Draw how one row's coefficients add up: intercept, surrogate, what it misses, prediction.

        Slopes count from the columns' means: a step is the slope times the row's distance from its mean.

        Raises
        ------
        InputError
            If the explanation is sparse: its rule states the same.
        """
        captions = Captions.of(self.explanation, names, title, unit)
        return _waterfall(self.explanation, row, output, ax, max_features, captions)

    def beeswarm(
        self,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 10,
        names: Mapping[str, str] | None = None,
        title: str | None = None,
        unit: str = "",
    ) -> Axes:
        """Draw the coefficients of all rows, one dot a row, one line a feature.

        Dots that would overlap are stacked. Numbers are coloured by their rank among the values of the
        feature, grey where missing; categories have a colour each, and their names under their dots.

        Parameters
        ----------
        output : name or position
            The default is the positive class of two, else the output with the largest mean prediction.
        ax : matplotlib Axes
            Axes to draw on; a new figure unless given.
        max_features : int
        names, title, unit
            Words for the picture.

        Returns
        -------
        Axes
        """
        captions = Captions.of(self.explanation, names, title, unit)
        return beeswarm(_one_output(self.explanation, output), ax, max_features, captions)

    def heatmap(
        self,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 10,
        names: Mapping[str, str] | None = None,
        title: str | None = None,
        unit: str = "",
    ) -> Axes:
        """Draw the coefficients of all rows as colours, rows in order of decreasing prediction.

        Colours are full at the 99 % quantile of their sizes. Up to 30 rows are named.
        """
        captions = Captions.of(self.explanation, names, title, unit)
        return heatmap(_one_output(self.explanation, output), ax, max_features, captions)

    def dependence(
        self,
        feature: str | int,
        *,
        color: str | int | None = None,
        output: str | int | None = None,
        ax: Axes | None = None,
        names: Mapping[str, str] | None = None,
        title: str | None = None,
        unit: str = "",
    ) -> Axes:
        """Draw the coefficient of a feature against its value, one dot a row.

        Parameters
        ----------
        feature : name or position
        color : name or position
            Another feature, by whose values the dots are coloured.
        output : name or position
            The default is the positive class of two, else the output with the largest mean prediction.
        ax : matplotlib Axes
            Axes to draw on; a new figure unless given.
        names, title, unit
            Words for the picture.

        Returns
        -------
        Axes
            Lines reach 1.96 standard errors to each side where rows are sampled.
        """
        captions = Captions.of(self.explanation, names, title, unit)
        return dependence(_one_output(self.explanation, output), feature, color, ax, captions)

    def effect(
        self,
        feature: str | int,
        row: int = 0,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        title: str | None = None,
        unit: str = "",
    ) -> Axes:
        """Draw the whole effect of a feature around one row: a bar a cell, the row's own in colour.

        Parameters
        ----------
        feature : name or position
        row : int
        output : name or position
            The default is the positive class of two, else the output with the largest prediction.
        ax : matplotlib Axes
            Axes to draw on; a new figure unless given.
        title, unit
            Words for the picture.

        Returns
        -------
        Axes
            Whiskers reach 1.96 standard errors to each side where the model was sampled.
        """
        (position,) = name_positions(feature, self.explanation.feature_names, "feature")
        one = _one_row(self.explanation, row, output)
        effect = one.effects[int(position)]
        return draw_effect(effect, ax, title=title, unit=unit, quantity=_quantity(one))

    def effects(
        self,
        row: int = 0,
        output: str | int | None = None,
        *,
        ax: Sequence[Axes] | None = None,
        top: int = 6,
        unit: str = "",
    ) -> Sequence[Axes]:
        """Draw the largest whole effects around one row side by side, with one scale.

        Parameters
        ----------
        row : int
        output : name or position
            The default is the positive class of two, else the output with the largest prediction.
        ax : sequence of matplotlib Axes
            Axes to draw on, one for each; a new figure unless given.
        top : int
            Largest number of effects.
        unit : str
            Unit of the prediction.
        """
        one = _one_row(self.explanation, row, output)
        largest = sorted(one.effects, key=lambda effect: -effect.share)[:top]
        return draw_effects(largest, ax, unit=unit, quantity=_quantity(one))

    def bandwidth(
        self,
        row: int = 0,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 6,
        title: str | None = None,
    ) -> Axes:
        """Draw the coefficients of one row at other bandwidths, which the explainer computes.

        Raises
        ------
        InputError
            If the explanation comes from a file, or its explainer has no bandwidth.
        """
        from limes._diagnostics.bandwidth import paths
        from limes._show.diagnosis import draw_path

        one_row = self.explanation[row]
        refuse_empty(one_row)
        if not hasattr(one_row.explainer, "diagnostic_context"):
            raise InputError("plot.bandwidth() needs the explainer: plot what it returned, not a file")
        position = np.array([output_position(one_row, output)])
        context = one_row.explainer.diagnostic_context(one_row, output=position, calls=None)
        axes = draw_path(paths(context)[0], ax, max_features)
        if title is not None:
            write_title(axes, Captions({}, title, ""))
        return axes

    def text(
        self, output: str | int | None = None, *, ax: Axes | None = None, title: str | None = None
    ) -> Axes:
        """Draw the explained text, its words coloured by their coefficients.

        Characters that matplotlib's font does not have are drawn as boxes; the HTML page has them all.

        Parameters
        ----------
        output : name or position
            The default is the positive class of two, else the output with the largest prediction.
        ax : matplotlib Axes
            Axes to draw on; a new figure unless given.

        Returns
        -------
        Axes

        Raises
        ------
        InputError
            If the explanation is not of a text.
        """
        one = _one_output(self.explanation, output, row=0)
        coloured = pieces(one, 0, 0)
        if not coloured:
            raise InputError("There is no text to draw; explanations of limes.TextExplainer have one")
        if ax is None:
            ax = axes_or_new(None, figure_size(coloured))
            ax.figure.canvas.draw()  # the layout decides how wide characters are
        draw_text(ax, coloured)
        view = view_row(one, 0, 1).outputs[0]
        write_title(ax, Captions({}, title, ""), shorten(view.title, 48), f"{headline(view)} ({one.method})")
        return ax

    def series(
        self,
        output: str | int | None = None,
        *,
        channel: str | int | None = None,
        ax: Axes | None = None,
        title: str | None = None,
    ) -> Axes:
        """Draw the explained series on the colours of its segments' coefficients.

        Parameters
        ----------
        output : name or position
            The default is the positive class of two, else the output with the largest prediction.
        channel : name or position
            The first unless given.
        ax : matplotlib Axes
            Axes to draw on; a new figure unless given.

        Returns
        -------
        Axes

        Raises
        ------
        InputError
            If the explanation is not of a series by segments, or there is no such channel.
        """
        one = _one_output(self.explanation, output, row=0)
        return draw_series(one, channel, ax, Captions({}, title, ""))

    def image(
        self,
        output: str | int | None = None,
        *,
        kind: str = "overlay",
        top: int = 5,
        sign: str = "both",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the explained image.

        Parameters
        ----------
        output : name or position
            The default is the positive class of two, else the output with the largest prediction.
        kind : "overlay", "cutout", "boundaries" or "original"
            All superpixels in the colours of their coefficients; the top ones alone; outlines; the image.
        top, sign : int, and "+", "-" or "both"
            Number and sign of the superpixels that are cut out or outlined.
        ax : matplotlib Axes
            Axes to draw on; a new figure unless given.

        Returns
        -------
        Axes

        Raises
        ------
        InputError
            If the explanation is not of an image.
        """
        refuse_empty(self.explanation)
        position = output_position(self.explanation, output)
        axes = axes_or_new(ax, (4.2, 4.6))
        return draw_image(axes, self.explanation, position, kind=kind, top=top, sign=sign)

    def images(
        self,
        outputs: list[str | int] | None = None,
        *,
        kind: str = "overlay",
        top: int = 5,
        sign: str = "both",
    ) -> Figure:
        """Draw the image, and beside it one picture an output; see :meth:`image`."""
        refuse_empty(self.explanation)
        chosen = slice(None) if outputs is None else outputs
        positions = np.atleast_1d(name_positions(chosen, self.explanation.output_names, "output")).tolist()
        return side_by_side(self.explanation, positions, kind=kind, top=top, sign=sign)


def _one_output(explanation: Explanation, output: str | int | None, row: int | None = None) -> Explanation:
    """Return one output; by default that with the largest prediction of a row, or of all rows in the mean."""
    refuse_empty(explanation)
    return explanation[..., output_position(explanation, output, row)]


def _one_row(explanation: Explanation, row: int, output: str | int | None) -> Explanation:
    return _one_output(explanation[row], output, row=0)


def _quantity(one: Explanation) -> str:
    """Return what the effects of an explanation of one output are on."""
    title = output_title(one, 0)
    return PREDICTION if title == "prediction" else shorten(title, 24)


def _bar(
    explanation: Explanation,
    row: int,
    output: str | int | None,
    ax: Axes | None,
    max_features: int,
    captions: Captions,
) -> Axes:
    one = _one_row(explanation, row, output)
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
        return self.end - self.start

    @property
    def is_level(self) -> bool:
        """Whether it is a value of the model or of the surrogate, and no step."""
        return self.colour == ""


def _waterfall(
    explanation: Explanation,
    row: int,
    output: str | int | None,
    ax: Axes | None,
    max_features: int,
    captions: Captions,
) -> Axes:
    one = _one_row(explanation, row, output)
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
