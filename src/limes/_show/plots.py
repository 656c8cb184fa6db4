"""The pictures of an explanation with matplotlib: one row, many rows, whole effects.

``inputs.py`` draws texts, series and images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from limes._checks import did_you_mean
from limes._diagnostics.summary import cohorts_of
from limes._explanation.fit import leading
from limes._explanation.rules import check_weights
from limes._explanation.selection import by_feature, by_size, feature_names_of, name_positions, single_row
from limes._explanation.view import (
    OutputView,
    bar_units,
    in_contributions,
    in_differences,
    is_probability,
    named_account,
    output_position,
    output_title,
    row_label,
    slope_facts,
    view_row,
    whose_surrogate,
)
from limes._explanation.wording import (
    CONFIDENCE,
    cell,
    count,
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
    usual_range,
    width_of,
    wrapped_title,
    write_below,
)
from limes._show.cohorts import cohort_bars
from limes._show.effects import draw_effect, draw_effects, mean_effect, quantity_of
from limes._show.inputs import draw_image, draw_text, part_of, pieces, side_by_side
from limes._show.pairs import draw_pairs, has_texts, partner_of
from limes._show.series import draw_series
from limes._show.waterfall import account_steps, draw_steps, surrogate_steps
from limes.exceptions import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from limes._arrays import Floats, Objects
    from limes._explanation import Explanation
    from limes._explanation.view import Line


@dataclass(frozen=True)
class Plots:
    """The pictures of one explanation: they return axes, and show nothing; ``images`` returns a figure.

    Many have these parameters:

    output : name or position
        The default is the positive class of two, else the output with the largest prediction: of the row, or
        in the mean of all rows.
    of : "contributions" or "coefficients"
        Contributions to the prediction, the default where the explanation can have them; or LIME's
        coefficients.
    max_features : int
        Most features that are drawn, those with the largest numbers.
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
    of: str = ""  # what is drawn, unless a picture has its own; "": what speaks first

    def __post_init__(self) -> None:
        check_weights(self.explanation, "plot")
        object.__setattr__(self, "of", self.of or leading(self.explanation))
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
        by: Any = None,
        of: str | None = None,
        max_features: int = 10,
        **options: Unpack[Options],
    ) -> Axes:
        """Draw the largest contributions, or coefficients: of one row as signed bars, of many as mean sizes.

        Contributions of features that are not drawn have a bar of their sum.

        Parameters
        ----------
        row : int
            Position of one row. The default is the only row, or else all rows together: mean absolute
            contributions, with lines from the 10 % to the 90 % quantile over rows.
        by
            Cohorts of the rows, as `limes.summary` takes them: each feature has a bar for each.
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
        if by is not None:
            one = _one_output(self.explanation, output)
            return cohort_bars(one, cohorts_of(one, by, of), of, max_features, canvas)
        if row is None and len(self.explanation) > 1:
            return _mean_bar(_measured(_one_output(self.explanation, output), of), of, max_features, canvas)
        one = _one_row(self.explanation, 0 if row is None else row, output)
        axes = canvas.line_axes(one, max_features)
        view = view_row(one, 0, max_features, account=named_account(one, of)).outputs[0]
        bars = [(_name(canvas, line), line.drawn) for line in view.lines]
        if of == "contributions" and view.others():
            bars.append((view.others(), view.shares()[-1]))
        names, values = [name for name, _ in bars], np.array([size for _, size in bars])
        positions = np.arange(len(values))
        drawn = np.where(np.isfinite(values), values, np.nan)
        axes.barh(positions, drawn, height=0.68, color=[*map(sign_colour, values)], zorder=2)
        if view.sampled:
            # the sum of all others has none that is known
            reach = [line.reach for line in view.lines]
            its = slice(len(reach))
            error_bars(axes, values[its], positions[its], xerr=reach, elinewidth=1.1, capsize=2.5)
        name_lines(axes, names)
        errors = ", with 95 % error bars" if view.sampled else ""
        hidden = of == "coefficients" and view.omitted
        more = f"\n{count(view.omitted, 'smaller one')} not shown" if hidden else ""
        signed_frame(axes, canvas.with_unit(f"{_words(one, of)}{_per(one, of)}{errors}{more}"))
        _in_percent(axes.xaxis, one, of)
        self._title_row(axes, 0 if row is None else row, view, canvas)
        return axes

    @spelled_out
    def waterfall(
        self,
        row: int | str = 0,
        output: str | int | None = None,
        *,
        max_features: int = 10,
        ends: bool = False,
        **options: Unpack[Options],
    ) -> Axes:
        """Draw how the features' contributions add up, from what is usual to the row's prediction.

        Estimated ones have error bars of 1.96 standard errors to each side. Where the explanation cannot have
        contributions the surrogate's coefficients are drawn, and what they miss; slopes count from the
        columns' means there. The parameters are those of `Plots`.

        Parameters
        ----------
        row, output, max_features, ax, names, title, unit
            See `Plots`.
        ends : bool
            Draw a thin line below each bar, from what the feature adds alone, before all others, to what it
            adds last: where these are apart it interacts with others. Exact contributions have them.

        Raises
        ------
        InputError
            If the explanation is sparse: its rule states the same.
        """
        canvas = self._canvas(options)
        one = _one_row(self.explanation, row, output)
        if one.certificates:
            raise InputError("a sparse explanation is a rule: print explanation.rule(), or draw plot.bar()")
        of = self.of
        view = view_row(one, 0, len(one.feature_names), account=named_account(one, of)).outputs[0]
        if view.base is None:
            steps = surrogate_steps(one, view, max_features, canvas)
        else:
            steps = account_steps(view, max_features, canvas, ends=ends)
        axes = axes_or_new(canvas.ax, (7.5, 1.4 + 0.34 * len(steps)))
        draw_steps(axes, steps)
        name_lines(axes, [step.name for step in steps])
        below = "\n95 % error bars" if view.base is not None and view.sampled else ""
        if ends and view.base is not None and not view.sampled:
            below = "\nthin lines: what the value adds alone, and last"
        signed_frame(axes, canvas.with_unit(view.title) + below, zero=False)
        _in_percent(axes.xaxis, one, of)
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
        """Draw the contributions, or coefficients, of all rows, one dot a row, one line a feature.

        The last line has each row's sum of the contributions that have no line. Dots that would overlap are
        stacked. Numbers are coloured by their rank among the values of the feature, grey where missing;
        categories have a colour each, and their names under their dots. The parameters are those of `Plots`.
        """
        of = of or self.of
        canvas = self._canvas(options)
        one = _measured(_one_output(self.explanation, output), of)
        axes = canvas.line_axes(one, max_features, 0.5 if any(map(has_texts, one.data.T)) else 0.34)
        drawn = _drawn(one)
        order, rest = by_size(np.abs(drawn).sum(axis=0)), []
        if of == "contributions" and len(order) > max_features:
            rest = [drawn[:, order[max_features:]].sum(axis=1)]
        order = order[:max_features]
        values = np.column_stack([drawn[:, order], *rest])
        columns = slots(values)
        dots, categories = None, []
        for line, j in enumerate(order):
            heights = line + stacked_heights(columns[:, line])
            if has_texts(one.data[:, j]):
                categories.append((line, _category_dots(axes, values[:, line], heights, one.data[:, j])))
            else:
                shades = ranks(one.data[:, j])
                dots = number_dots(axes, values[:, line], heights, shades, 14, vmin=0.0, vmax=1.0) or dots
        for its in rest:
            heights = len(order) + stacked_heights(columns[:, len(order)])
            axes.scatter(its, heights, s=14, color=UNKNOWN, linewidths=0, zorder=3)
        if dots is not None:
            colour_bar(axes, dots, "the row's own value (rank)", ("low", "high"))
        name_lines(axes, [*_features(canvas, one, order), *[_others(one, len(order))] * len(rest)])
        for line, middles in categories:
            _write_categories(axes, line, middles)
            axes.set_ylim(len(order) + len(rest) - 0.35, -0.5)
        lacks = any(not has_texts(cells) and np.isnan(numbers(cells)).any() for cells in one.data[:, order].T)
        label = f"{_words(one, of)}{_per(one, of)}, one dot a row{'; grey: missing' if lacks else ''}"
        signed_frame(axes, canvas.with_unit(label + ("" if rest else _omitted(one, len(order)))))
        _in_percent(axes.xaxis, one, of)
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
        """Draw the contributions, or coefficients, of all rows as colours, rows by falling prediction.

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
        names = shortened_names(axes, _features(canvas, one, order))
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
        label = canvas.with_unit(f"{_words(one, of)}{_per(one, of)}")
        largest = _unit(one, of) * reach
        colour_bar(axes, picture, label, (number(-largest, 2), "0", number(largest, 2)))
        canvas.write_title(axes, *_rows_title(one, of))
        return axes

    @spelled_out
    def pairs(
        self,
        row: int | str = 0,
        output: str | int | None = None,
        *,
        max_features: int = 8,
        **options: Unpack[Options],
    ) -> Axes:
        """Draw which features act together in one row: each pair once, and what each feature adds by itself.

        All cells add up to the prediction less the base. The parameters are those of `Plots`; an InputError
        is raised where contributions have no pairs.
        """
        canvas = self._canvas(options)
        one = _one_row(self.explanation, row, output)
        view = view_row(one, 0, 1, account=named_account(one, "contributions")).outputs[0]
        axes = draw_pairs(one, canvas, max_features)
        self._title_row(axes, row, view, canvas)
        return axes

    @spelled_out
    def dependence(
        self,
        feature: Any,
        *,
        color: Any = "auto",
        output: str | int | None = None,
        of: str | None = None,
        **options: Unpack[Options],
    ) -> Axes:
        """Draw the contribution, or coefficient, of a feature against its value, one dot a row.

        Parameters
        ----------
        feature : name or position
            As the table names its column, by the text of that, or by position.
        color : name or position, "auto", or None
            Another feature, by whose values the dots are coloured. "auto" is the one with the largest mean
            |pair| of contributions, none where all are 0; and without quick exact pairs, the one that
            explains most of what rows of like values differ by.
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
        _check_order(one, j)
        units = bar_units(one)[:, j]
        y, reach = (
            one.coefficients.values[:, j] * units,
            CONFIDENCE * one.coefficients.standard_errors[:, j] * units,
        )
        axes = axes_or_new(canvas.ax, (7.5, 4.2))
        x, ticks, lacking = _places(one.data[:, j])
        axes.axhline(0.0, color=ink(), alpha=0.6, linewidth=0.8, zorder=1)
        plain_frame(axes, 9)
        if reach.any() and np.isfinite(reach).all():
            axes.vlines(x, y - reach, y + reach, color=ink(), alpha=0.18, zorder=1)
        auto = isinstance(color, str) and color == "auto" and "auto" not in one.feature_names
        if color is None:
            by = None
        elif auto:
            by = partner_of(_one_output(self.explanation, output), j, y, of)
        else:
            by = _feature(one, color)
        if by is None:
            axes.scatter(x, y, s=18, color=FULL, alpha=0.75, linewidths=0, zorder=3)
        else:
            _coloured_dots(axes, x, y, one.data[:, by], canvas.feature(one.feature_names[by]))
        if ticks:
            axes.set_xticks(range(len(ticks)), labels=[shorten(t, 18) for t in ticks], parse_math=False)
            if sum(map(len, ticks)) > 60:
                turn(axes)
        if lacking is not None:
            _name_missing(axes, lacking)
        name = canvas.feature(one.feature_names[j])
        write_below(axes, shorten(name, 60))
        label = canvas.with_unit(f"{_words(one, of)}{_per(one, of)}")
        axes.set_ylabel(label, fontsize=9, parse_math=False)
        _in_percent(axes.yaxis, one, of)
        head, *rest = _rows_title(one, of)
        canvas.write_title(axes, f"{shorten(name, 30)}, {head}", *rest)
        return axes

    def effect(
        self,
        feature: Any,
        row: int | str | None = None,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        title: str | None = None,
        unit: str = "",
    ) -> Axes:
        """Draw the whole effect of a feature around one row: a bar a cell, the row's own in colour.

        Whiskers reach 1.96 standard errors to each side where the model was sampled. Without ``row`` bars are
        means over all rows, and lines reach from the 10 % to the 90 % quantile over rows. The parameters are
        those of `Plots`.

        Raises
        ------
        InputError
            If a column with slopes, whose cells lie around each row, is to be averaged.
        """
        position = _feature(self.explanation, feature)
        if row is None and len(self.explanation) > 1:
            every = _one_output(self.explanation, output)
            mean = mean_effect(every, position)
            return draw_effect(mean, ax, title=title, unit=unit, quantity=quantity_of(every))
        one = _one_row(self.explanation, 0 if row is None else row, output)
        return draw_effect(one.effects.at(position), ax, title=title, unit=unit, quantity=quantity_of(one))

    def effects(
        self,
        row: int | str | None = None,
        output: str | int | None = None,
        *,
        ax: Sequence[Axes] | None = None,
        top: int = 6,
        unit: str = "",
    ) -> Sequence[Axes]:
        """Draw the largest whole effects around one row, or of all in the mean, side by side on one scale.

        Parameters
        ----------
        row : int
            Position of one row. Without it whole curves are averaged over all rows: see :meth:`effect`.
        output, unit
            See `Plots`.
        ax : sequence of matplotlib Axes
            Axes to draw on, one for each; a new figure unless given.
        top : int
            Largest number of effects.
        """
        if row is None and len(self.explanation) > 1:
            every = _one_output(self.explanation, output)
            means = [mean_effect(every, j) for j in range(len(every.feature_names))]
            means = sorted(means, key=lambda mean: -mean.effect.share)[:top]
            return draw_effects(means, ax, unit=unit, quantity=quantity_of(every))
        one = _one_row(self.explanation, 0 if row is None else row, output)
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
        one = _one_output(self.explanation, output, row=0)
        coloured = pieces(part_of(_measured(one, of), part, "text"), 0, 0)
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
        one = _one_output(self.explanation, output, row=0)
        position = output_position(whole, output, 0)
        return _titled_input(draw_series(whole, position, channel, ax, _words(one, of)), one, title, of)

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
        canvas.write_title(axes, title, f"{view.headline} ({'estimated' if view.sampled else 'exact'})")


def _refuse_empty(explanation: Explanation) -> None:
    if explanation.data.size == 0:
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


def _words(one: Explanation, of: str) -> str:
    """Return what numbers are, as axes say it."""
    if of == "contributions":
        return f"contribution to {output_title(one, 0).replace('prediction', 'the prediction')}"
    if one.certificates:
        return "weight in the rule"
    return f"{whose_surrogate(one).removesuffix(chr(39) + 's')} coefficient"


def _unit(one: Explanation, of: str) -> float:
    return 100.0 if of == "contributions" and is_probability(one) else 1.0


def _in_percent(axis: Axis, one: Explanation, of: str) -> None:
    """Write numbers along an axis in hundredths, where they are contributions to a probability."""
    if _unit(one, of) != 1.0:
        axis.set_major_formatter(lambda value, _: number(100.0 * value, 6).replace("-", "\N{MINUS SIGN}"))


def _name(canvas: Canvas, line: Line) -> str:
    """Return what a line is called: the value that contributes, or the condition of a coefficient."""
    return canvas.condition(line if line.share is None else replace(line, condition=line.holds))


def _features(canvas: Canvas, one: Explanation, order: Any) -> list[str]:
    return [canvas.feature(one.feature_names[j]) for j in order]


def _others(one: Explanation, shown: int) -> str:
    hidden = len(one.feature_names) - shown
    return f"sum of {count(hidden, 'other')}"


def _measured(explanation: Explanation, of: str) -> Explanation:
    return explanation if named_account(explanation, of) is None else in_contributions(explanation)


def _feature(explanation: Explanation, feature: Any) -> int:
    positions = name_positions(feature, feature_names_of(explanation), "feature")
    if not positions.size:
        raise InputError(f"{feature!r} is no feature: pass the name of one, or its position")
    return int(positions[0])


def _titled_input(axes: Axes, one: Explanation, title: str | None, of: str) -> Axes:
    view = view_row(one, 0, 1, account=named_account(one, of)).outputs[0]
    head = shorten(view.title, 48) if title is None else title
    wrapped_title(axes, head, f"{view.headline} ({'estimated' if view.sampled else 'exact'})")
    return axes


def _drawn(explanation: Explanation) -> Floats:
    """Return coefficients (n, d), slopes per standard deviation."""
    return np.asarray(explanation.coefficients.values * bar_units(explanation))


def _per(explanation: Explanation, of: str) -> str:
    if of == "contributions":
        return ", percentage points" if is_probability(explanation) else ""
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


# Combinations of a group's values that an axis has places for
_COMBINATIONS = 20


def _check_order(one: Explanation, feature: int) -> None:
    """Raise an InputError for a group of columns with more combinations than an axis can name."""
    name, count = one.feature_names[feature], len({*one.data[:, feature].tolist()})
    if name in one.provenance.get("groups", {}) and count > _COMBINATIONS:
        raise InputError(
            f"dependence: {name!r} is a group of columns with {count} combinations in these rows, which have "
            "no order on an axis: draw a column, explained without groups=, or read contributions.within"
            f"({name!r})"
        )


# -- many rows -----------------------------------------------------------------------------------------------

_LOW, _HIGH = 0.1, 0.9  # quantiles over rows
_FITS = 200  # rows whose R² is computed: their median hardly changes with more
_LABELLED = 30  # rows that are named under a heat map


def _mean_bar(one: Explanation, of: str, max_features: int, canvas: Canvas) -> Axes:
    axes = canvas.line_axes(one, max_features)
    sizes = np.nan_to_num(np.abs(_drawn(one)), posinf=0.0)
    order, names = by_size(sizes.mean(axis=0)), []
    if of == "contributions" and len(order) > max_features:
        sizes = np.column_stack([sizes, sizes[:, order[max_features:]].sum(axis=1)])
        names = [_others(one, max_features)]
    order = order[:max_features]
    lines = np.append(order, sizes.shape[1] - 1) if names else order
    low, high = np.quantile(sizes[:, lines], [_LOW, _HIGH], axis=0)
    at = np.arange(len(lines))
    axes.barh(at, sizes.mean(axis=0)[lines], height=0.66, color=FULL, alpha=0.75, zorder=2)
    axes.hlines(at, low, high, color=ink(), linewidth=1.2, zorder=3)
    axes.scatter([*low, *high], [*at, *at], marker="|", s=40, color=ink(), linewidths=1.2, zorder=3)
    name_lines(axes, [*_features(canvas, one, order), *names])
    what = f"mean |{_words(one, of)}| over {count(len(one), 'row')}{_per(one, of)}"
    label = f"{what}; lines: 10 % to 90 % of them"
    signed_frame(axes, canvas.with_unit(label + ("" if names else _omitted(one, len(order)))))
    _in_percent(axes.xaxis, one, of)
    canvas.write_title(axes, *_rows_title(one, of))
    return axes


def _omitted(explanation: Explanation, shown: int) -> str:
    hidden = len(explanation.feature_names) - shown
    return f"\n{count(hidden, 'smaller one')} not shown" if hidden else ""


def _rows_title(explanation: Explanation, of: str) -> tuple[str, ...]:
    """Return what is explained, and of coefficients the median R² of some rows."""
    n = len(explanation)
    how = "exact" if explanation.method == "exact" else "estimated"
    title = f"{shorten(output_title(explanation, 0), 36)}, {count(n, 'row')} ({how})"
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
    if not has_texts(cells):
        values = numbers(cells)
        low, high = usual_range(values)
        dots = number_dots(axes, x, y, values, 18, vmin=low, vmax=high)
        if dots is not None:
            colour_bar(axes, dots, shorten(name, 40))
        return
    groups, others = frequent(cells, len(COLOURS) - 1)
    if others.any():
        groups.append(("others", UNKNOWN, others))
    for label, colour, rows in groups:
        axes.scatter(x[rows], y[rows], s=18, color=colour, linewidths=0, label=shorten(label, 24), zorder=3)
    legend(axes, title=shorten(name, 30), title_fontsize=9)


def _name_missing(axes: Axes, place: float) -> None:
    """Write where the dots without a number are; numbers along the axis begin to the right of it."""
    low, high = axes.get_xlim()
    shown = [tick for tick in axes.get_xticks().tolist() if place + 0.05 * (high - low) < tick <= high]
    written = [number(tick, 6).replace("-", "\N{MINUS SIGN}") for tick in shown]
    axes.set_xticks([place, *shown], labels=["missing", *written])
    axes.set_xlim(low, high)


def _places(cells: Objects) -> tuple[Floats, list[str], float | None]:
    """Return positions along x, names of categories, [] for numbers, and where missing numbers are, if any.

    These lie at the left.
    """
    if not has_texts(cells):
        values = numbers(cells)
        present = values[~np.isnan(values)]
        low, span = (present.min(), np.ptp(present)) if present.size else (0.0, 0.0)
        beside = float(low - 0.1 * (span or 1.0))
        places = np.where(np.isnan(values), beside, values)
        return places, [], beside if present.size < values.size else None
    names = [cell(value) for value in cells.tolist()]
    levels = sorted(set(names))
    codes = np.array([levels.index(name) for name in names], dtype=float)
    # a sequence that fills the room evenly: no draw, so that pictures are the same every time
    return codes + 0.5 * ((np.arange(len(codes)) * 0.6180339887) % 1.0 - 0.5), levels, None
