"""The pictures of an explanation with matplotlib: one row, many rows, whole effects.

``inputs.py`` draws texts, series and images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from limes._checks import check_choice, did_you_mean
from limes._explanation.fit import account_at
from limes._explanation.selection import by_feature, by_size, feature_names_of, name_positions, single_row
from limes._explanation.view import (
    OutputView,
    bar_units,
    in_contributions,
    in_differences,
    output_position,
    output_title,
    row_label,
    slope_facts,
    view_row,
)
from limes._explanation.wording import (
    CONFIDENCE,
    cell,
    count,
    is_missing,
    number,
    shorten,
)
from limes._show.axes import (
    COLOURS,
    FULL,
    LOWERS,
    RAISES,
    UNKNOWN,
    Canvas,
    Options,
    axes_or_new,
    colour_bar,
    error_bars,
    frequent,
    ink,
    legend,
    name_lines,
    number_dots,
    numbers,
    plain_frame,
    ranks,
    shortened_names,
    sign_colour,
    signed_frame,
    slots,
    spelled_out,
    spread_labels,
    stacked_heights,
    turn,
    width_of,
    wrapped_title,
    write_below,
)
from limes._show.effects import draw_effect, draw_effects, quantity_of
from limes._show.inputs import draw_image, draw_text, part_of, pieces, side_by_side
from limes._show.series import draw_series
from limes._show.waterfall import account_steps, account_to_draw, draw_steps, surrogate_steps
from limes.exceptions import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from limes._arrays import Floats, Objects
    from limes._explanation import Explanation


@dataclass(frozen=True)
class Plots:
    """The pictures of one explanation: they return axes, and show nothing; ``images`` returns a figure.

    Many have these parameters:

    output : name or position
        The default is the positive class of two, else the output with the largest prediction: of the row, or
        in the mean of all rows.
    of : "coefficients" or "contributions"
        LIME's coefficients, or shares of the predictions; see ``explanation.contributions``.
    max_features : int
        Most features that are drawn, those with the largest coefficients.
    part : name
        The text, series or image that is drawn, of several inputs; the first unless given.
    ax : matplotlib Axes
        Axes to draw on; a new figure unless given.
    names : mapping from features to texts
        Displayed names.
    title : str
        Title in place of the usual one.
    unit : str
        Unit of the prediction.
    """

    explanation: Explanation
    of: str = "coefficients"  # what is drawn, unless a picture has its own

    def __post_init__(self) -> None:
        object.__setattr__(self, "explanation", in_differences(self.explanation))

    def __call__(self, **options: Any) -> Axes:
        """Draw how one row's prediction adds up; the mean sizes of many rows; a sparse rule's weights."""
        is_account = len(self.explanation) == 1 and not self.explanation.certificates
        return self.waterfall(**options) if is_account else self.bar(**options)

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            pictures = [other for other in vars(Plots) if not other.startswith("_")]
            advice = f"; it is {_OTHER_PLOTS[name]}" if name in _OTHER_PLOTS else did_you_mean(name, pictures)
            raise AttributeError(f"plot has no picture {name!r}{advice}")

    @spelled_out
    def bar(
        self,
        row: int | str | None = None,
        output: str | int | None = None,
        *,
        of: str | None = None,
        max_features: int = 10,
        **options: Unpack[Options],
    ) -> Axes:
        """Draw the largest coefficients, or contributions: of one row as signed bars, of many as mean sizes.

        Parameters
        ----------
        row : int
            Position of one row. The default is the only row, or else all rows together: mean absolute
            coefficients, with lines from the 10 % to the 90 % quantile over rows.
        output, of, max_features, ax, names, title, unit
            See `Plots`.

        Returns
        -------
        Axes
            Error bars reach 1.96 standard errors to each side when one row is sampled. Slopes are drawn per
            standard deviation of their columns.
        """
        of = of or self.of
        canvas = self._canvas(options)
        if row is None and len(self.explanation) > 1:
            return _mean_bar(_measured(_one_output(self.explanation, output), of), of, max_features, canvas)
        one = _measured(_one_row(self.explanation, row or 0, output), of)
        axes = canvas.line_axes(one, max_features)
        view = view_row(one, 0, max_features).outputs[0]
        values = np.array([line.drawn for line in view.lines])
        positions = np.arange(len(values))
        drawn = np.where(np.isfinite(values), values, np.nan)
        axes.barh(positions, drawn, height=0.68, color=[*map(sign_colour, values)], zorder=2)
        if view.sampled:
            reach = [CONFIDENCE * line.drawn_error for line in view.lines]
            error_bars(axes, values, positions, xerr=reach, elinewidth=1.1, capsize=2.5)
        name_lines(axes, [canvas.condition(line) for line in view.lines])
        errors = ", with 95 % error bars" if view.sampled else ""
        hidden = f"\n{count(view.omitted, 'smaller one')} not shown" if view.omitted else ""
        label = f"{_WORDS[of]}{_per(one)}{errors}{hidden}"
        signed_frame(axes, canvas.with_unit(label))
        self._title_row(axes, row or 0, view, canvas)
        return axes

    @spelled_out
    def waterfall(
        self,
        row: int | str = 0,
        output: str | int | None = None,
        *,
        max_features: int = 10,
        **options: Unpack[Options],
    ) -> Axes:
        """Draw how the features' contributions add up, from the average around the row to its prediction.

        The thin line below a bar reaches from what the feature adds alone to what it adds last: where these
        are apart it interacts with others. Estimated ones have error bars of 1.96 standard errors to each
        side. Where there are no contributions the surrogate's coefficients are drawn, and what they miss;
        slopes count from the columns' means there. The parameters are those of `Plots`.

        Raises
        ------
        InputError
            If the explanation is sparse: its rule states the same.
        """
        canvas = self._canvas(options)
        one = _one_row(self.explanation, row, output)
        if one.certificates:
            raise InputError("a sparse explanation is a rule: print explanation.rule(), or draw plot.bar()")
        view = view_row(one, 0, len(one.feature_names), account=account_to_draw(one)).outputs[0]
        if view.base is None:
            steps = surrogate_steps(one, view, max_features, canvas)
        else:
            steps = account_steps(view, max_features, canvas)
        axes = axes_or_new(canvas.ax, (7.5, 1.4 + 0.34 * len(steps)))
        draw_steps(axes, steps)
        name_lines(axes, [step.name for step in steps])
        lines = "95 % error bars" if view.estimates_account else "what the value adds alone, and last"
        below = "" if view.base is None else f"\nthin lines: {lines}"
        signed_frame(axes, canvas.with_unit(view.title) + below, zero=False)
        self._title_row(axes, row, view, canvas)
        return axes

    @spelled_out
    def beeswarm(
        self,
        output: str | int | None = None,
        *,
        of: str | None = None,
        max_features: int = 10,
        **options: Unpack[Options],
    ) -> Axes:
        """Draw the coefficients, or contributions, of all rows, one dot a row, one line a feature.

        Dots that would overlap are stacked. Numbers are coloured by their rank among the values of the
        feature, grey where missing; categories have a colour each, and their names under their dots. The
        parameters are those of `Plots`.
        """
        of = of or self.of
        canvas = self._canvas(options)
        one = _measured(_one_output(self.explanation, output), of)
        axes = canvas.line_axes(one, max_features, 0.5 if any(map(_has_texts, one.data.T)) else 0.34)
        drawn = _drawn(one)
        order = by_size(np.abs(drawn).sum(axis=0))[:max_features]
        values = drawn[:, order]
        columns = slots(values)
        dots, categories = None, []
        for line, j in enumerate(order):
            heights = line + stacked_heights(columns[:, line])
            if _has_texts(one.data[:, j]):
                categories.append((line, _category_dots(axes, values[:, line], heights, one.data[:, j])))
            else:
                shades = ranks(one.data[:, j])
                dots = number_dots(axes, values[:, line], heights, shades, 14, vmin=0.0, vmax=1.0) or dots
        if dots is not None:
            colour_bar(axes, dots, "the row's own value (rank)", ("low", "high"))
        name_lines(axes, [canvas.feature(one.feature_names[j]) for j in order])
        for line, middles in categories:
            _write_categories(axes, line, middles)
            axes.set_ylim(len(order) - 0.35, -0.5)
        label = f"{_WORDS[of]}{_per(one)}, one dot a row"
        signed_frame(axes, canvas.with_unit(label + _omitted(one, len(order))))
        canvas.write_title(axes, *_rows_title(one, of))
        return axes

    @spelled_out
    def heatmap(
        self,
        output: str | int | None = None,
        *,
        of: str | None = None,
        max_features: int = 10,
        **options: Unpack[Options],
    ) -> Axes:
        """Draw the coefficients, or contributions, of all rows as colours, rows by falling prediction.

        Colours are full at the 99 % quantile of their sizes. Up to 30 rows are named. The parameters are
        those of `Plots`.
        """
        of = of or self.of
        from matplotlib.colors import LinearSegmentedColormap

        canvas = self._canvas(options)
        one = _measured(_one_output(self.explanation, output), of)
        axes = canvas.line_axes(one, max_features)
        values = _drawn(one)
        order = by_size(np.abs(values).sum(axis=0))[:max_features]
        rows = by_size(one.predictions)
        shown = values[np.ix_(rows, order)].T
        reach = (
            float(np.nanquantile(np.abs(shown), 0.99)) or float(np.nanmax(np.abs(shown), initial=0.0)) or 1.0
        )
        ends = [LOWERS, axes.get_facecolor(), RAISES]
        colours = LinearSegmentedColormap.from_list("coefficients", ends)
        scale = {"cmap": colours, "vmin": -reach, "vmax": reach}
        picture = axes.imshow(shown, aspect="auto", interpolation="nearest", **scale)  # type: ignore[arg-type]
        predictions = one.predictions[rows]
        heights = -0.7 - 0.85 * (predictions - predictions.min()) / (float(np.ptp(predictions)) or 1.0)
        axes.plot(np.arange(len(rows)), heights, color=ink(), linewidth=1.2)
        if len(rows) == 1:
            axes.plot([0], heights, marker="o", color=ink(), markersize=3)
        names = shortened_names(axes, [canvas.feature(one.feature_names[j]) for j in order])
        places = [-1.1, *range(len(order))]
        axes.set_yticks(places, labels=["prediction", *names], fontsize=10, parse_math=False)
        axes.set_ylim(len(order) - 0.5, -1.75)
        axes.tick_params(length=0, labelsize=10)
        axes.spines[:].set_visible(False)
        if len(one) <= _LABELLED:
            ids = [shorten(row_label(one, int(i)).removeprefix("row "), 12) for i in rows]
            axes.set_xticks(range(len(one)), labels=ids, rotation=90, fontsize=8, parse_math=False)
        else:
            axes.set_xticks([])
        write_below(axes, f"{count(len(one), 'row')}, by falling prediction{_omitted(one, len(order))}")
        label = canvas.with_unit(f"{of[:-1]}{_per(one)}")
        colour_bar(axes, picture, label, (number(-reach, 2), "0", number(reach, 2)))
        canvas.write_title(axes, *_rows_title(one, of))
        return axes

    @spelled_out
    def dependence(
        self,
        feature: Any,
        *,
        color: Any = None,
        output: str | int | None = None,
        of: str | None = None,
        **options: Unpack[Options],
    ) -> Axes:
        """Draw the coefficient, or contribution, of a feature against its value, one dot a row.

        Parameters
        ----------
        feature : name or position
            As the table names its column, by the text of that, or by position.
        color : name or position
            Another feature, by whose values the dots are coloured.
        output, of, ax, names, title, unit
            See `Plots`.

        Returns
        -------
        Axes
            Lines reach 1.96 standard errors to each side where rows are sampled.
        """
        of = of or self.of
        canvas = self._canvas(options)
        one = _measured(_one_output(self.explanation, output), of)
        j = _feature(one, feature)
        units = bar_units(one)[:, j]
        y, reach = (
            one.coefficients.values[:, j] * units,
            CONFIDENCE * one.coefficients.standard_errors[:, j] * units,
        )
        axes = axes_or_new(canvas.ax, (7.5, 4.2))
        x, ticks = _places(one.data[:, j])
        axes.axhline(0.0, color=ink(), alpha=0.6, linewidth=0.8, zorder=1)
        plain_frame(axes, 9)
        if one.method == "sampled" and np.isfinite(reach).all():
            axes.vlines(x, y - reach, y + reach, color=ink(), alpha=0.18, zorder=1)
        if color is None:
            axes.scatter(x, y, s=18, color=FULL, alpha=0.75, linewidths=0, zorder=3)
        else:
            by = _feature(one, color)
            _coloured_dots(axes, x, y, one.data[:, by], canvas.feature(one.feature_names[by]))
        if ticks:
            axes.set_xticks(range(len(ticks)), labels=[shorten(t, 18) for t in ticks], parse_math=False)
            if sum(map(len, ticks)) > 60:
                turn(axes)
        name = canvas.feature(one.feature_names[j])
        write_below(axes, shorten(name, 60))
        axes.set_ylabel(canvas.with_unit(f"{of[:-1]}{_per(one)}"), fontsize=9, parse_math=False)
        head, *rest = _rows_title(one, of)
        canvas.write_title(axes, f"{shorten(name, 30)}, {head}", *rest)
        return axes

    def effect(
        self,
        feature: Any,
        row: int | str = 0,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        title: str | None = None,
        unit: str = "",
    ) -> Axes:
        """Draw the whole effect of a feature around one row: a bar a cell, the row's own in colour.

        Whiskers reach 1.96 standard errors to each side where the model was sampled. The parameters are those
        of `Plots`.
        """
        position = _feature(self.explanation, feature)
        one = _one_row(self.explanation, row, output)
        return draw_effect(one.effects.at(position), ax, title=title, unit=unit, quantity=quantity_of(one))

    def effects(
        self,
        row: int | str = 0,
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
        output, unit
            See `Plots`.
        ax : sequence of matplotlib Axes
            Axes to draw on, one for each; a new figure unless given.
        top : int
            Largest number of effects.
        """
        one = _one_row(self.explanation, row, output)
        largest = sorted(one.effects, key=lambda effect: -effect.share)[:top]
        return draw_effects(largest, ax, unit=unit, quantity=quantity_of(one))

    def bandwidth(
        self,
        row: int | str = 0,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 6,
        title: str | None = None,
    ) -> Axes:
        """Draw the coefficients of one row at other bandwidths, which the explainer computes.

        The parameters are those of `Plots`.

        Raises
        ------
        InputError
            If the explanation comes from a file, or its explainer has no bandwidth.
        """
        from limes._diagnostics.bandwidth import paths
        from limes._show.diagnostics import draw_path

        one_row = self.explanation[row]
        _refuse_empty(one_row)
        if not hasattr(one_row.explainer, "_diagnostic_context"):
            raise InputError("plot.bandwidth() needs the explainer: plot what it returned, not a file")
        position = np.array([output_position(one_row, output)])
        context = one_row.explainer._diagnostic_context(one_row, output=position, calls=None)  # noqa: SLF001
        axes = draw_path(paths(context)[0], ax, max_features)
        if title is not None:
            wrapped_title(axes, title)
        return axes

    def text(
        self,
        output: str | int | None = None,
        *,
        of: str | None = None,
        part: str | None = None,
        ax: Axes | None = None,
        title: str | None = None,
    ) -> Axes:
        """Draw the explained text, its words coloured by their coefficients or contributions.

        Characters that matplotlib's font does not have are drawn as boxes; the HTML page has them all. The
        parameters are those of `Plots`.

        Raises
        ------
        InputError
            If the explanation is not of a text.
        """
        of = of or self.of
        one = _measured(_one_output(self.explanation, output, row=0), of)
        coloured = pieces(part_of(one, part, "text"), 0, 0)
        if not coloured:
            raise InputError("There is no text to draw; explanations of limes.TextExplainer have one")
        return _titled_input(draw_text(ax, coloured), one, title, of)

    def series(
        self,
        output: str | int | None = None,
        *,
        of: str | None = None,
        part: str | None = None,
        channel: str | int | None = None,
        ax: Axes | None = None,
        title: str | None = None,
    ) -> Axes:
        """Draw the explained series on the colours of its segments' coefficients or contributions.

        All outputs and channels have one scale of colours.

        Parameters
        ----------
        output, of, part, ax, title
            See `Plots`.
        channel : name or position
            The first unless given.

        Raises
        ------
        InputError
            If the explanation is not of a series by segments, or there is no such channel.
        """
        of = of or self.of
        whole = part_of(_measured(self.explanation, of), part, "series")
        one = _one_output(whole, output, row=0)
        position = output_position(whole, output, 0)
        return _titled_input(draw_series(whole, position, channel, ax, _WORDS[of]), one, title, of)

    def image(
        self,
        output: str | int | None = None,
        *,
        of: str | None = None,
        part: str | None = None,
        kind: str = "overlay",
        top: int = 5,
        sign: str = "both",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the explained image.

        Parameters
        ----------
        output, of, part, ax
            See `Plots`.
        kind : "overlay", "cutout", "boundaries" or "original"
            All superpixels in the colours of their numbers; the top ones alone; outlines; the image.
        top, sign : int, and "+", "-" or "both"
            Number and sign of the superpixels that are cut out or outlined.

        Raises
        ------
        InputError
            If the explanation is not of an image.
        """
        of = of or self.of
        _refuse_empty(self.explanation)
        position = output_position(self.explanation, output)
        axes = axes_or_new(ax, (4.2, 4.6))
        measured = part_of(_measured(self.explanation, of), part, "image")
        return draw_image(axes, measured, position, kind=kind, top=top, sign=sign)

    def images(
        self,
        outputs: list[str | int] | None = None,
        *,
        of: str | None = None,
        part: str | None = None,
        kind: str = "overlay",
        top: int = 5,
        sign: str = "both",
    ) -> Figure:
        """Draw the image, and beside it one picture an output; see :meth:`image`."""
        of = of or self.of
        _refuse_empty(self.explanation)
        chosen = slice(None) if outputs is None else outputs
        positions = np.atleast_1d(name_positions(chosen, self.explanation.output_names, "output")).tolist()
        measured = part_of(_measured(self.explanation, of), part, "image")
        return side_by_side(measured, positions, of=of, kind=kind, top=top, sign=sign)

    def _canvas(self, options: Options) -> Canvas:
        if names := options.get("names"):
            options = {**options, "names": by_feature("names=", names, self.explanation)}
        return Canvas(**options)

    def _title_row(self, axes: Axes, row: int | str, view: OutputView, canvas: Canvas) -> None:
        """Write what is explained, and its row if there are several rows, or the row has a name."""
        explanation, title = self.explanation, shorten(view.title, 44)
        if len(explanation) > 1 or explanation.ids != (0,):
            title = f"{title}, {shorten(row_label(explanation[row], 0), 24)}"
        line = view.headline.removeprefix("prediction ") if view.base is not None else view.headline
        canvas.write_title(axes, title, f"{line} ({'sampled' if view.sampled else 'exact'})")


def _refuse_empty(explanation: Explanation) -> None:
    if explanation.coefficients.values.size == 0:
        raise InputError(
            f"There is nothing to draw: {len(explanation)} rows and "
            f"{len(explanation.feature_names)} features; draw an explanation that has both"
        )


def _one_output(explanation: Explanation, output: str | int | None, row: int | None = None) -> Explanation:
    """Return one output; by default that with the largest prediction of a row, or of all rows in the mean."""
    _refuse_empty(explanation)
    return explanation[..., output_position(explanation, output, row)]


def _one_row(explanation: Explanation, row: int | str, output: str | int | None) -> Explanation:
    return _one_output(single_row(explanation, row), output, row=0)


_WORDS = {"coefficients": "coefficient of the surrogate", "contributions": "contribution to the prediction"}


def _measured(explanation: Explanation, of: str) -> Explanation:
    check_choice("of", of, tuple(_WORDS))
    return explanation if of == "coefficients" else in_contributions(explanation)


def _feature(explanation: Explanation, feature: Any) -> int:
    positions = name_positions(feature, feature_names_of(explanation), "feature")
    if not positions.size:
        raise InputError(f"{feature!r} is no feature: pass the name of one, or its position")
    return int(positions[0])


def _titled_input(axes: Axes, one: Explanation, title: str | None, of: str) -> Axes:
    account = account_at(one, [0]) if of == "contributions" else None
    view = view_row(one, 0, 1, account=account).outputs[0]
    head = shorten(view.title, 48) if title is None else title
    wrapped_title(axes, head, f"{view.headline} ({one.method})")
    return axes


def _drawn(explanation: Explanation) -> Floats:
    """Return coefficients (n, d), slopes per standard deviation."""
    return np.asarray(explanation.coefficients.values * bar_units(explanation))


def _per(explanation: Explanation) -> str:
    return " per standard deviation" if slope_facts(explanation) else ""


# Pictures of shap and lime, and their counterparts
_OTHER_PLOTS = {
    "force": "plot.waterfall()",
    "decision": "plot.waterfall()",
    "summary": "plot.beeswarm()",
    "scatter": "plot.dependence()",
    "partial_dependence": "plot.effect()",
    "path": "limes.diagnose(explanation).plot.bandwidth()",
    "pyplot": "plot.bar()",
}


# -- many rows -----------------------------------------------------------------------------------------------

_LOW, _HIGH = 0.1, 0.9  # quantiles over rows
_FITS = 200  # rows whose R² is computed: their median hardly changes with more
_LABELLED = 30  # rows that are named under a heat map


def _mean_bar(one: Explanation, of: str, max_features: int, canvas: Canvas) -> Axes:
    axes = canvas.line_axes(one, max_features)
    sizes = np.nan_to_num(np.abs(_drawn(one)), posinf=0.0)
    order = by_size(sizes.mean(axis=0))[:max_features]
    low, high = np.quantile(sizes[:, order], [_LOW, _HIGH], axis=0)
    lines = np.arange(len(order))
    axes.barh(lines, sizes.mean(axis=0)[order], height=0.66, color=FULL, alpha=0.75, zorder=2)
    axes.hlines(lines, low, high, color=ink(), linewidth=1.2, zorder=3)
    axes.scatter([*low, *high], [*lines, *lines], marker="|", s=40, color=ink(), linewidths=1.2, zorder=3)
    name_lines(axes, [canvas.feature(one.feature_names[j]) for j in order])
    label = f"mean |{of[:-1]}|{_per(one)} of {count(len(one), 'row')}; lines: 10 % to 90 % of the rows"
    signed_frame(axes, canvas.with_unit(label + _omitted(one, len(order))))
    canvas.write_title(axes, *_rows_title(one, of))
    return axes


def _omitted(explanation: Explanation, shown: int) -> str:
    hidden = len(explanation.feature_names) - shown
    return f"\n{count(hidden, 'smaller one')} not shown" if hidden else ""


def _rows_title(explanation: Explanation, of: str) -> tuple[str, ...]:
    """Return what is explained, and of coefficients the median R² of some rows."""
    n = len(explanation)
    title = f"{shorten(output_title(explanation, 0), 36)}, {count(n, 'row')} ({explanation.method})"
    if of == "contributions":
        return (title,)
    some = explanation[:: max(1, -(-n // _FITS))].fidelity
    fits = some[np.isfinite(some)]
    return (title, f"median R² {number(float(np.median(fits)), 2)}") if fits.size else (title,)


def _category_dots(axes: Axes, x: Floats, heights: Floats, cells: Objects) -> dict[str, float]:
    """Draw dots in one colour a category, and return where the middle of each frequent one is."""
    groups, others = frequent(cells, len(COLOURS) - 2)
    axes.scatter(x[others], heights[others], s=14, color=UNKNOWN, linewidths=0, zorder=2)
    for _, colour, rows in groups:
        axes.scatter(x[rows], heights[rows], s=14, color=colour, linewidths=0, zorder=3)
    return {name: float(np.median(x[rows])) for name, _, rows in groups}


def _write_categories(axes: Axes, line: int, middles: dict[str, float]) -> None:
    """Write the categories under their dots, none over another."""
    from matplotlib.patheffects import withStroke

    low, high = axes.get_xlim()
    texts = [shorten(name, 16) for name in middles]
    # of all letters that fit beside the names of features
    letter = (high - low) / (12.0 * max(1.0, width_of(axes) - 2.5))
    gap = letter * (max(map(len, texts)) + 1)
    most = max(1, int((high - low) / gap))
    places = spread_labels([*middles.values()][:most], gap)
    legible = [withStroke(linewidth=2.5, foreground=axes.get_facecolor())]  # over other columns' dots
    for text, place, colour in zip(texts, places, COLOURS, strict=False):
        written = axes.text(
            place, line + 0.45, text, color=colour, fontsize=8, ha="center", va="center", parse_math=False
        )
        written.set(path_effects=legible, zorder=4)


def _coloured_dots(axes: Axes, x: Floats, y: Floats, cells: Objects, name: str) -> None:
    """Draw dots in the colours of another column's values, and say which."""
    if not _has_texts(cells):
        dots = number_dots(axes, x, y, numbers(cells), 18)
        if dots is not None:
            colour_bar(axes, dots, shorten(name, 40))
        return
    groups, others = frequent(cells, len(COLOURS) - 1)
    if others.any():
        groups.append(("others", UNKNOWN, others))
    for label, colour, rows in groups:
        axes.scatter(x[rows], y[rows], s=18, color=colour, linewidths=0, label=shorten(label, 24), zorder=3)
    legend(axes, title=shorten(name, 30), title_fontsize=9)


def _has_texts(cells: Objects) -> bool:
    """Whether a column holds categories: no cell is a number, and some cell is not missing."""
    if cells.dtype != object:
        return False
    present = [value for value in cells.tolist() if not is_missing(value)]
    return bool(present) and all(isinstance(value, str | bool) for value in present)


def _places(cells: Objects) -> tuple[Floats, list[str]]:
    """Return positions along x, and names of categories, [] for numbers; missing ones lie at the left."""
    if not _has_texts(cells):
        values = numbers(cells)
        present = values[~np.isnan(values)]
        low, span = (present.min(), np.ptp(present)) if present.size else (0.0, 0.0)
        return np.where(np.isnan(values), low - 0.1 * (span or 1.0), values), []
    names = [cell(value) for value in cells.tolist()]
    levels = sorted(set(names))
    codes = np.array([levels.index(name) for name in names], dtype=float)
    # a sequence that fills the room evenly: no draw, so that pictures are the same every time
    return codes + 0.5 * ((np.arange(len(codes)) * 0.6180339887) % 1.0 - 0.5), levels
