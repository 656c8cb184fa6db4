"""Common parts of all pictures: axes, colours, frames, titles, and positions of ticks and labels."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import numpy as np

from limes._checks import is_count, unknown_option, with_options
from limes._explanation.wording import cell, number, shorten
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from limes._arrays import Bools, Floats, Objects
    from limes._explanation import Explanation
    from limes._explanation.view import Line

# Red raises and blue lowers, as in shap; safe for the colour-blind
RAISES, LOWERS, UNKNOWN = "#c8443c", "#3b6fb6", "#9a9a9a"
# Colours of parts without a sign, and of parts beside them
FULL, QUIET = "#6f7f93", "#8b97a5"
# Colours by Okabe and Ito
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#777777")

_LONGEST_LABEL = 40
# Share of a figure's width that matplotlib gives to axes that fill it
_USUAL_SHARE = 0.775


def sign_colour(value: float) -> str:
    return RAISES if value > 0 else LOWERS


def ink() -> str:
    """Return the colour of lines on this figure's paper: that of its text, dark or light."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return `ax`, or if it is None the axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    axes: Any = plt.subplots(figsize=size, layout="constrained")[1]
    return axes  # type: ignore[no-any-return]


def width_of(axes: Axes) -> float:
    """Return the width of axes and the labels to their left, in inches, before a layout moves them."""
    return float(axes.get_position().width) / _USUAL_SHARE * axes.figure.get_figwidth()  # type: ignore[union-attr]


# -- options of pictures -------------------------------------------------------------------------------------

_Method = TypeVar("_Method", bound=Callable[..., Any])


class Options(TypedDict, total=False):
    """The options that pictures share; see `limes._show.plots.Plots`."""

    ax: Axes | None
    names: Mapping[str, str] | None
    title: str | None
    unit: str


@dataclass(frozen=True)
class Canvas:
    """The values of `Options`: axes, and the user's words for a picture."""

    ax: Axes | None = None
    names: Mapping[str, str] | None = None
    title: str | None = None
    unit: str = ""

    def feature(self, name: str) -> str:
        return str((self.names or {}).get(name, name))

    def condition(self, line: Line) -> str:
        """Return a line's condition with the feature's new name in it."""
        if line.feature not in (self.names or {}):
            return line.condition
        named, new = rf"(?<!\w){re.escape(line.feature)}(?!\w)", self.feature(line.feature)
        return re.sub(named, lambda _: new, line.condition, count=1)

    def with_unit(self, label: str) -> str:
        """Return the label of an axis with the unit, which belongs to its first line."""
        first, *rest = label.split("\n")
        return "\n".join([f"{first} ({self.unit})" if self.unit else first, *rest])

    def line_axes(self, one: Explanation, max_features: int, height: float = 0.34) -> Axes:
        """Return axes with room for a line a feature, or a line a fact for a sparse explanation."""
        if not is_count(max_features):
            raise InputError(f"max_features={max_features!r}; pass 1 or more")
        facts = len(one.feature_names)
        if one.certificates:
            facts = max(1, int((one.coefficients.values != 0).any(axis=0).sum()))
        return axes_or_new(self.ax, (7.5, 1.6 + height * min(max_features, facts)))

    def write_title(self, axes: Axes, head: str, *rest: str) -> None:
        """Write the title: the user's in place of the picture's first line, else the picture's."""
        wrapped_title(axes, head if self.title is None else self.title, *rest)


def spelled_out(method: _Method) -> _Method:
    """Let `inspect.signature`, and so help and editors, see ``**options`` one by one; refuse unknown ones."""
    whole = with_options(method, ((f.name, f.default, f.type) for f in fields(Canvas)))

    @wraps(method)
    def checked(plots: Any, *arguments: Any, **options: Any) -> Any:
        if unknown := [name for name in options if name not in whole.parameters]:
            raise unknown_option(f"plot.{method.__name__}", unknown[0], list(whole.parameters)[1:])
        return method(plots, *arguments, **options)

    checked.__signature__ = whole  # type: ignore[attr-defined]
    return checked  # type: ignore[return-value]


# -- texts: a dollar sign in a name is a dollar sign, not the start of a formula -----------------------------


def set_title(axes: Axes, title: str, size: float = 10.5) -> None:
    axes.set_title(title, loc="left", fontsize=size, parse_math=False)


def wrapped_title(axes: Axes, *lines: str) -> None:
    set_title(axes, _wrapped(axes, lines, 12.5))


def write_below(axes: Axes, label: str) -> None:
    axes.set_xlabel(_wrapped(axes, label.split("\n"), 15.0), fontsize=9, parse_math=False)


def _wrapped(axes: Axes, lines: Sequence[str], per_inch: float) -> str:
    """Break lines into those that fit beside the names of lines, at a number of letters an inch."""
    names = max((len(label.get_text()) for label in axes.get_yticklabels()), default=0)
    room = max(18, int(per_inch * (width_of(axes) - names / 12.0 - 0.3)))
    return "\n".join(part for line in lines for part in wrap(line, room) or [""])


def shortened_names(axes: Axes, names: Sequence[str]) -> list[str]:
    """Shorten names to what fits beside a line: they take at most half of the width."""
    longest = min(_LONGEST_LABEL, max(12, int(6.0 * width_of(axes))))
    return [shorten(name, longest) for name in names]


def name_lines(axes: Axes, names: Sequence[str]) -> None:
    """Write a name at each line, the first on top."""
    axes.set_yticks(np.arange(len(names)), labels=shortened_names(axes, names), fontsize=10, parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)


def legend(axes: Axes, **options: Any) -> None:
    drawn = axes.legend(fontsize=8.5, frameon=False, **options)
    for entry in (drawn.get_title(), *drawn.get_texts()):
        entry.set_parse_math(False)


def turn(axes: Axes) -> None:
    for label in axes.get_xticklabels():
        label.set(rotation=35, horizontalalignment="right", rotation_mode="anchor")


def spread_labels(targets: Sequence[float], gap: float) -> list[float]:
    """Return label positions near their targets that are at least `gap` apart."""
    from scipy.optimize import isotonic_regression

    if not len(targets):
        return []
    order = np.argsort(targets, kind="stable")
    steps = gap * np.arange(len(order))
    positions = np.empty(len(order))
    # the nearest ascending positions with gaps: an isotonic fit of the positions less all gaps below them
    positions[order] = isotonic_regression(np.asarray(targets, dtype=np.float64)[order] - steps).x + steps
    return [float(y) for y in positions]


# -- frames --------------------------------------------------------------------------------------------------


def plain_frame(axes: Axes, labelsize: float) -> None:
    axes.grid(color=ink(), alpha=0.12, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=labelsize)
    axes.spines[:].set_visible(False)


def signed_frame(axes: Axes, label: str, *, zero: bool = True) -> None:
    """Draw a grid of numbers along x, and a line at 0."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if zero:
        axes.axvline(0.0, color=ink(), alpha=0.6, linewidth=0.8, zorder=1)
    axes.grid(axis="x", color=ink(), alpha=0.14, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))

    def tick(value: float, _: int) -> str:
        low, high = axes.get_xlim()
        # ticks that lie far from 0 and close together need more digits to differ
        ratio = max(abs(low), abs(high)) / ((high - low) or 1.0)
        return number(value, 3 + max(1, math.ceil(math.log10(max(ratio, 1.0)))))

    axes.xaxis.set_major_formatter(FuncFormatter(tick))
    axes.tick_params(axis="x", labelsize=9)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    write_below(axes, label)


def error_bars(axes: Axes, x: Any, y: Any, **options: Any) -> None:
    axes.errorbar(x, y, fmt="none", ecolor=ink(), zorder=3, **options)


def colour_bar(axes: Axes, drawn: Any, label: str, ends: tuple[str, ...] = ()) -> None:
    extend, values = "neither", drawn.get_array()
    if values is not None and not ends:
        low, high = drawn.get_clim()
        beyond = bool(np.min(values) < low), bool(np.max(values) > high)
        extend = {(True, True): "both", (True, False): "min", (False, True): "max"}.get(beyond, extend)
    bar = axes.figure.colorbar(drawn, ax=axes, pad=0.02, aspect=30, extend=extend, extendfrac=0.03)
    if ends:
        low, high = drawn.get_clim()
        bar.set_ticks(np.linspace(low, high, len(ends)).tolist(), labels=list(ends))
    bar.set_label(label, fontsize=9)
    bar.ax.tick_params(labelsize=9, length=0)
    bar.outline.set_visible(False)


# -- dots ---------------------------------------------------------------------------------------------------

_SPREAD = 0.38  # of the room of one feature, to each side of its line
_USUAL = (0.05, 0.95)  # quantiles at which a scale of colours ends
_FEW_SHADES = 12  # values that all have a separate colour, whatever their shares
_SLOTS = 80  # columns of dots that do not overlap along the axis


def number_dots(axes: Axes, x: Floats, y: Floats, numbers: Floats, size: int, **scale: float | None) -> Any:
    """Draw dots in the colours of their numbers, grey where missing; return them for the colour bar."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    present = ~np.isnan(numbers)
    axes.scatter(x[~present], y[~present], s=size, color=UNKNOWN, linewidths=0, zorder=4)
    if not present.any():
        return None
    # without its ends, which vanish on white or black; lightness alone separates low from high
    colours = ListedColormap(colormaps["viridis"](np.linspace(0.12, 0.92, 256)))
    dots: dict[str, Any] = {"c": numbers[present], "s": size, "cmap": colours, **scale}
    return axes.scatter(x[present], y[present], linewidths=0, zorder=3, **dots)


def usual_range(values: Floats) -> tuple[float | None, float | None]:
    """Ends of a scale of colours, which a few far values do not stretch; None where nothing stretches it.

    A scale ends at the 5 % and the 95 % quantile of a column of many values.
    """
    present = values[np.isfinite(values)]
    if np.unique(present).size <= _FEW_SHADES:
        return None, None
    low, high = np.quantile(present, _USUAL).tolist()
    return (low, high) if low < high else (None, None)


def frequent(cells: Objects, most: int) -> tuple[list[tuple[str, str, Bools]], Bools]:
    """Return names, colours and rows (n,) of the most frequent categories, and all other rows."""
    names = np.array([cell(value) for value in cells.tolist()]).astype(str)
    levels, sizes = np.unique(names, return_counts=True)
    frequent = levels[np.argsort(-sizes, kind="stable")][:most].tolist()
    groups = [(name, colour, names == name) for name, colour in zip(frequent, COLOURS, strict=False)]
    return groups, ~np.isin(names, frequent)


def numbers(cells: Objects) -> Floats:
    return np.array([float(v) if isinstance(v, int | float) else np.nan for v in cells.tolist()])


def slots(values: Floats) -> Floats:
    """Return the narrow slot of the axis in which each dot lies, -1 for dots that cannot be drawn."""
    finite = np.isfinite(values)
    span = float(np.ptp(values[finite])) if finite.any() else 0.0
    lowest = values[finite].min() if finite.any() else 0.0
    shares = (np.where(finite, values, lowest) - lowest) / (span or 1.0)
    return np.where(finite, np.floor(_SLOTS * shares), -1.0)


def stacked_heights(slots: Floats) -> Floats:
    """Return heights around 0 that stack the dots of a slot."""
    by_slot = np.argsort(slots, kind="stable")
    starts = np.searchsorted(slots[by_slot], slots[by_slot], side="left")
    order = np.empty(len(slots))  # for each dot the number of dots of its slot before it
    order[by_slot] = np.arange(len(slots)) - starts
    # 0, 1, 2, 3, ... becomes 0, 1, -1, 2, ...: stacks grow to both sides of the line
    heights = np.where(order % 2, (order + 1) / 2, -order / 2)
    factor: float = min(_SPREAD / max(np.abs(heights).max(), 1.0), 0.07)
    return np.asarray(heights * factor, dtype=float)


def ranks(cells: Any) -> Floats:
    """Return ranks in [0, 1], equal for equal values, nan where a cell is not a number."""
    from scipy.stats import rankdata

    values = numbers(cells)
    count = int((~np.isnan(values)).sum())
    return np.asarray((rankdata(values, nan_policy="omit") - 1.0) / max(count - 1, 1))


# -- the map from numbers to positions in the pictures of pages ----------------------------------------------


@dataclass(frozen=True)
class Scale:
    """The linear map from numbers between ``low`` and ``high`` to positions between ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float

    def positions(self, values: Any) -> Any:
        # divided, by a power of two, before subtracted: the whole range of floats is wider than a float
        size = 2.0 ** (math.frexp(max(abs(self.low), abs(self.high)))[1] - 1)
        slope = (self.end - self.start) / ((self.high / size - self.low / size) or 1.0)
        return self.start + slope * (values / size - self.low / size)

    def position(self, value: float) -> float:
        return round(float(self.positions(value)), 1) + 0.0  # "-0.0" is no position

    def between(self, start: float, end: float) -> tuple[float, float] | None:
        """Return left end and width; None for a bar without an end."""
        if not (math.isfinite(start) and math.isfinite(end)):
            return None
        left, right = sorted((self.position(start), self.position(end)))
        return left, round(right - left, 1)


def log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 or 5 times a power of ten between two ends."""
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    every = sorted(float(m * p) for p in powers for m in (1, 2, 5))
    inside = [t for t in every if low <= t <= high]
    return inside if len(inside) <= 9 else [t for t in inside if f"{t:.0e}".startswith("1")]


def even_ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most ``most`` multiples of 1, 2 or 5 times a power of ten between two ends, low < high."""
    if not (high > low and math.isfinite(high - low)):
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    for size in (1, 2, 5, 10, 20, 50):
        step = size * power
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            # decimal numbers as people write them, and no -0
            return [float(f"{multiple * step:.12g}") + 0.0 for multiple in range(first, last + 1)] or [low]
    return [low]
