"""Many rows as matplotlib pictures: mean sizes, swarms, heat maps, coefficients against values.

The functions are methods of ``explanation.plot`` (`limes._show.plots.Plots`), for one output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limes._explanation.fields import is_missing
from limes._explanation.selection import by_size, name_positions
from limes._explanation.view import bar_units, output_title, row_label, slope_facts
from limes._explanation.wording import CONFIDENCE, cell, count, number, shorten
from limes._show.axes import (
    COLOURS,
    FULL,
    LOWERS,
    RAISES,
    UNKNOWN,
    Captions,
    axes_or_new,
    ink,
    line_axes,
    longest_name,
    name_lines,
    plain_frame,
    signed_frame,
    spread_labels,
    turn,
    width_of,
    write_below,
    write_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from limes._arrays import Floats, Objects
    from limes._explanation import Explanation

_SPREAD = 0.38  # of the room of one feature, to each side of its line
_SLOTS = 80  # columns of dots that do not overlap along the axis
_LOW, _HIGH = 0.1, 0.9  # quantiles over rows
_FITS = 200  # rows whose R² is computed: their median hardly changes with more
_LABELLED = 30  # rows that are named under a heat map


def mean_bar(one: Explanation, ax: Axes | None, max_features: int, captions: Captions) -> Axes:
    """Draw mean |coefficient| over rows, with whiskers from the 10 % to the 90 % quantile."""
    axes = line_axes(ax, max_features, one)
    sizes = np.nan_to_num(np.abs(_drawn(one)), posinf=0.0)
    order = by_size(sizes.mean(axis=0))[:max_features]
    means = sizes.mean(axis=0)[order]
    low, high = np.quantile(sizes[:, order], [_LOW, _HIGH], axis=0)
    lines = np.arange(len(order))
    axes.barh(lines, means, height=0.66, color=FULL, alpha=0.75, zorder=2)
    axes.hlines(lines, low, high, color=ink(), linewidth=1.2, zorder=3)
    axes.scatter([*low, *high], [*lines, *lines], marker="|", s=40, color=ink(), linewidths=1.2, zorder=3)
    name_lines(axes, [captions.feature(one.feature_names[j]) for j in order])
    label = f"mean |coefficient|{_per(one)} of {count(len(one), 'row')}; lines: 10 % to 90 % of the rows"
    signed_frame(axes, captions.with_unit(label + _omitted(one, len(order))))
    write_title(axes, captions, *_rows_title(one))
    return axes


def beeswarm(one: Explanation, ax: Axes | None, max_features: int, captions: Captions) -> Axes:
    """Draw the coefficients of all rows, one dot a row, one line a feature."""
    has_texts = any(_has_texts(column) for column in one.data.T)
    axes = line_axes(ax, max_features, one, height=0.5 if has_texts else 0.34)
    order = by_size(np.abs(_drawn(one)).sum(axis=0))[:max_features]
    values = _drawn(one)[:, order]
    slots = _slots(values)
    dots, categories = None, []
    for line, j in enumerate(order):
        heights = line + _stacked(slots[:, line])
        if _has_texts(one.data[:, j]):
            categories.append((line, _category_dots(axes, values[:, line], heights, one.data[:, j])))
        else:
            dots = _ranked_dots(axes, values[:, line], heights, one.data[:, j]) or dots
    if dots is not None:
        _colour_bar(axes, dots, ("low", "high"), "the row's own value (rank)")
    name_lines(axes, [captions.feature(one.feature_names[j]) for j in order])
    for line, middles in categories:
        _write_categories(axes, line, middles)
        axes.set_ylim(len(order) - 0.35, -0.5)
    label = f"coefficient of the surrogate{_per(one)}, one dot a row"
    signed_frame(axes, captions.with_unit(label + _omitted(one, len(order))))
    write_title(axes, captions, *_rows_title(one))
    return axes


def _ranked_dots(axes: Axes, values: Floats, heights: Floats, cells: Objects) -> Any:
    """Draw dots in the colours of their ranks, grey where missing; return them for the colour bar."""
    ranks = _ranks(cells)
    ranked = ~np.isnan(ranks)
    axes.scatter(values[~ranked], heights[~ranked], s=14, color=UNKNOWN, linewidths=0, zorder=2)
    if not ranked.any():
        return None
    return axes.scatter(
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


def _category_dots(axes: Axes, values: Floats, heights: Floats, cells: Objects) -> dict[str, float]:
    """Draw dots in one colour a category, and return where the middle of each frequent one is."""
    names = np.array([cell(value) for value in cells.tolist()], dtype=object)
    levels, sizes = np.unique(names.astype(str), return_counts=True)
    frequent = levels[np.argsort(-sizes, kind="stable")][: len(COLOURS) - 2].tolist()
    others = ~np.isin(names.astype(str), frequent)
    axes.scatter(values[others], heights[others], s=14, color=UNKNOWN, linewidths=0, zorder=2)
    middles = {}
    for name, colour in zip(frequent, COLOURS, strict=False):
        rows = names == name
        axes.scatter(values[rows], heights[rows], s=14, color=colour, linewidths=0, zorder=3)
        middles[name] = float(np.median(values[rows]))
    return middles


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


def heatmap(one: Explanation, ax: Axes | None, max_features: int, captions: Captions) -> Axes:
    """Draw coefficients as colours, one column a row, by falling prediction, which is the line on top."""
    from matplotlib.colors import LinearSegmentedColormap

    axes = line_axes(ax, max_features, one)
    values = _drawn(one)
    order = by_size(np.abs(values).sum(axis=0))[:max_features]
    rows = by_size(one.predictions)
    shown = values[np.ix_(rows, order)].T
    reach = float(np.nanquantile(np.abs(shown), 0.99)) or float(np.nanmax(np.abs(shown), initial=0.0)) or 1.0
    paper = axes.get_facecolor()
    colours = LinearSegmentedColormap.from_list("coefficients", [LOWERS, paper, RAISES])
    picture = axes.imshow(
        shown, aspect="auto", cmap=colours, vmin=-reach, vmax=reach, interpolation="nearest"
    )
    _predictions_above(axes, one.predictions[rows])
    names = [captions.feature(one.feature_names[j]) for j in order]
    longest = longest_name(axes)
    labels = ["prediction", *(shorten(name, longest) for name in names)]
    axes.set_yticks([-1.1, *range(len(order))], labels=labels, fontsize=10, parse_math=False)
    axes.set_ylim(len(order) - 0.5, -1.75)
    axes.tick_params(length=0, labelsize=10)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    if len(one) <= _LABELLED:
        ids = [shorten(row_label(one, int(i)).removeprefix("row "), 12) for i in rows]
        axes.set_xticks(range(len(one)), labels=ids, rotation=90, fontsize=8, parse_math=False)
    else:
        axes.set_xticks([])
    write_below(axes, f"{count(len(one), 'row')}, by falling prediction{_omitted(one, len(order))}")
    label = captions.with_unit(f"coefficient{_per(one)}")
    _colour_bar(axes, picture, (number(-reach, 2), "0", number(reach, 2)), label)
    write_title(axes, captions, *_rows_title(one))
    return axes


def _predictions_above(axes: Axes, predictions: Floats) -> None:
    span = float(np.ptp(predictions)) or 1.0
    heights = -0.7 - 0.85 * (predictions - predictions.min()) / span
    axes.plot(np.arange(len(predictions)), heights, color=ink(), linewidth=1.2)
    if len(predictions) == 1:
        axes.plot([0], heights, marker="o", color=ink(), markersize=3)


def dependence(
    one: Explanation, feature: str | int, colour: str | int | None, ax: Axes | None, captions: Captions
) -> Axes:
    """Draw the coefficient of a feature against its value, one dot a row."""
    j = _feature(one, feature)
    y, errors = _drawn(one)[:, j], one.standard_errors[:, j] * bar_units(one)[:, j]
    axes = axes_or_new(ax, (7.5, 4.2))
    x, ticks = _places(one.data[:, j])
    axes.axhline(0.0, color=ink(), alpha=0.6, linewidth=0.8, zorder=1)
    plain_frame(axes, 9)
    if one.method == "sampled" and np.isfinite(errors).all():
        axes.vlines(x, y - CONFIDENCE * errors, y + CONFIDENCE * errors, color=ink(), alpha=0.18, zorder=1)
    if colour is None:
        axes.scatter(x, y, s=18, color=FULL, alpha=0.75, linewidths=0, zorder=3)
    else:
        _coloured_dots(axes, x, y, one, _feature(one, colour), captions)
    if ticks:
        axes.set_xticks(range(len(ticks)), labels=[shorten(t, 18) for t in ticks], parse_math=False)
        if sum(map(len, ticks)) > 60:
            turn(axes)
    name = captions.feature(one.feature_names[j])
    write_below(axes, shorten(name, 60))
    axes.set_ylabel(captions.with_unit(f"coefficient{_per(one)}"), fontsize=9, parse_math=False)
    head, *rest = _rows_title(one)
    write_title(axes, captions, f"{shorten(name, 30)}, {head}", *rest)
    return axes


def _feature(explanation: Explanation, feature: str | int) -> int:
    return int(np.atleast_1d(name_positions(feature, explanation.feature_names, "feature"))[0])


def _places(cells: Objects) -> tuple[Floats, list[str]]:
    """Return positions along x, and names of categories, [] for numbers; missing ones lie at the left."""
    if not _has_texts(cells):
        numbers = _numbers(cells)
        present = numbers[~np.isnan(numbers)]
        low, span = (present.min(), np.ptp(present)) if present.size else (0.0, 0.0)
        return np.where(np.isnan(numbers), low - 0.1 * (span or 1.0), numbers), []
    names = [cell(value) for value in cells.tolist()]
    levels = sorted(set(names))
    codes = np.array([levels.index(name) for name in names], dtype=float)
    # a sequence that fills the room evenly: no draw, so that pictures are the same every time
    return codes + 0.5 * ((np.arange(len(codes)) * 0.6180339887) % 1.0 - 0.5), levels


def _coloured_dots(
    axes: Axes, x: Floats, y: Floats, explanation: Explanation, by: int, captions: Captions
) -> None:
    cells, name = explanation.data[:, by], captions.feature(explanation.feature_names[by])
    if not _has_texts(cells):
        numbers = _numbers(cells)
        present = ~np.isnan(numbers)
        axes.scatter(x[~present], y[~present], s=18, color=UNKNOWN, linewidths=0, zorder=2)
        if present.any():
            dots = axes.scatter(
                x[present], y[present], c=numbers[present], s=18, cmap=_colours(), linewidths=0, zorder=3
            )
            bar = axes.figure.colorbar(dots, ax=axes, pad=0.02, aspect=30)
            bar.set_label(shorten(name, 40), fontsize=9)
            bar.ax.tick_params(labelsize=9, length=0)
            bar.outline.set_visible(False)
        return
    names = np.array([cell(value) for value in cells.tolist()]).astype(str)
    levels, sizes = np.unique(names, return_counts=True)
    frequent = levels[np.argsort(-sizes, kind="stable")][: len(COLOURS) - 1].tolist()
    groups = [(level, names == level, colour) for level, colour in zip(frequent, COLOURS, strict=False)]
    others = ~np.isin(names, frequent)
    if others.any():
        groups.append(("others", others, UNKNOWN))
    for label, rows, shade in groups:
        axes.scatter(x[rows], y[rows], s=18, color=shade, linewidths=0, label=shorten(label, 24), zorder=3)
    legend = axes.legend(title=shorten(name, 30), fontsize=8.5, title_fontsize=9, frameon=False)
    for entry in (legend.get_title(), *legend.get_texts()):
        entry.set_parse_math(False)


def _drawn(explanation: Explanation) -> Floats:
    """Return coefficients (n, d), slopes per standard deviation."""
    return np.asarray(explanation.values * bar_units(explanation))


def _per(explanation: Explanation) -> str:
    return " per standard deviation" if slope_facts(explanation) else ""


def _omitted(explanation: Explanation, shown: int) -> str:
    hidden = len(explanation.feature_names) - shown
    return f"\n{count(hidden, 'smaller one')} not shown" if hidden else ""


def _rows_title(explanation: Explanation) -> tuple[str, ...]:
    """Return the title: what is explained, and the median R² of some rows."""
    n = len(explanation)
    title = f"{shorten(output_title(explanation, 0), 36)}, {count(n, 'row')} ({explanation.method})"
    some = explanation[:: max(1, -(-n // _FITS))].fidelity
    fits = some[np.isfinite(some)]
    return (title, f"median R² {number(float(np.median(fits)), 2)}") if fits.size else (title,)


def _has_texts(cells: Objects) -> bool:
    """Return whether a column holds categories: no cell is a number, and some cell is not missing."""
    if cells.dtype != object:
        return False
    present = [value for value in cells.tolist() if not is_missing(value)]
    return bool(present) and all(isinstance(value, str | bool) for value in present)


def _numbers(cells: Objects) -> Floats:
    return np.array([float(v) if isinstance(v, int | float) else np.nan for v in cells.tolist()])


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
    numbers = _numbers(cells)
    _, places, sizes = np.unique(numbers, return_inverse=True, return_counts=True, equal_nan=False)
    middle = np.cumsum(sizes) - (sizes + 1) / 2
    n_ranked = int((~np.isnan(numbers)).sum())
    ranks: Floats = np.where(np.isnan(numbers), np.nan, middle[places] / max(n_ranked - 1, 1))
    return ranks


def _colours() -> Any:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    # Without its ends, which vanish on white or black; lightness alone separates low from high.
    return ListedColormap(colormaps["viridis"](np.linspace(0.12, 0.92, 256)))


def _colour_bar(axes: Axes, dots: Any, ends: tuple[str, ...], label: str) -> None:
    bar = axes.figure.colorbar(dots, ax=axes, pad=0.02, aspect=30)
    low, high = dots.get_clim()
    bar.set_ticks(np.linspace(low, high, len(ends)).tolist(), labels=list(ends))
    bar.set_label(label, fontsize=9)
    bar.ax.tick_params(labelsize=9, length=0)
    bar.outline.set_visible(False)
