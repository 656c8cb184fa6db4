"""An explanation as matplotlib pictures: they take ``ax=``, return it and show nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._checks import is_count
from limes.exceptions import InputError
from limes.show import image_plot, text_plot
from limes.show.axes import axes_of
from limes.show.diagnosis.plots import draw_path
from limes.show.selection import name_positions
from limes.show.texts import pieces
from limes.show.view import Line, OutputView, headline, largest_output, view_row
from limes.show.wording import CONFIDENCE, count, number, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from limes._arrays import Floats
    from limes.explanation import Explanation

RAISES, LOWERS, UNKNOWN = "#2b7bba", "#e07b21", "#9a9a9a"  # told apart by the colour-blind
_LONGEST_LABEL = 40
_SPREAD = 0.38  # of the room of one feature, to each side of its line
_SLOTS = 80  # columns of dots that do not overlap along the axis


@dataclass(frozen=True)
class Plots:
    """The pictures of one explanation."""

    explanation: Explanation

    def bar(
        self,
        row: int = 0,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 10,
    ) -> Axes:
        """Draw the largest coefficients of one row as signed bars.

        Parameters
        ----------
        row : int
        output : name or position
            The output with the largest prediction for this row, unless given.
        ax : matplotlib Axes
            Where to draw; a new figure unless given.
        max_features : int

        Returns
        -------
        Axes
            Error bars reach 1.96 standard errors to each side when the explanation is sampled.
        """
        one_row = self.explanation[row]
        _refuse_empty(one_row)
        picked = largest_output(one_row, 0) if output is None else output
        return _bar(one_row[..., picked], _axes(ax, max_features, one_row), max_features)

    def bandwidth(
        self,
        row: int = 0,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 6,
    ) -> Axes:
        """Draw the coefficients of one row at other bandwidths; the explainer is asked for them.

        Raises
        ------
        InputError
            If the explanation comes from a file, or its explainer has no bandwidth.
        """
        one_row = self.explanation[row]
        _refuse_empty(one_row)
        if not hasattr(one_row.explainer, "scene"):
            raise InputError("plot.bandwidth() needs the explainer: plot what it returned, not a file")
        picked = largest_output(one_row, 0) if output is None else self._places(output)[0]
        scene = one_row.explainer.scene(one_row, output=np.array([picked]), calls=None)
        return draw_path(scene.paths()[0], ax, max_features)

    def text(self, output: str | int | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the text that is explained, its words coloured by their coefficients.

        Characters that matplotlib's font does not have are drawn as boxes; the HTML page has them all.

        Parameters
        ----------
        output : name or position
            The output with the largest prediction, unless given.
        ax : matplotlib Axes
            Where to draw; a new figure unless given.

        Returns
        -------
        Axes

        Raises
        ------
        InputError
            If the explanation is not of a text.
        """
        _refuse_empty(self.explanation)
        picked = largest_output(self.explanation, 0) if output is None else output
        return _text(self.explanation[..., picked], ax)

    def image(
        self,
        output: str | int | None = None,
        *,
        kind: str = "overlay",
        top: int = 5,
        sign: str = "both",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the image that is explained.

        Parameters
        ----------
        output : name or position
            The output with the largest prediction, unless given.
        kind : "overlay", "cutout", "boundaries" or "original"
            All superpixels in the colours of their coefficients; the top ones alone; outlines; the image.
        top, sign : int, and "+", "-" or "both"
            Which superpixels are cut out or outlined.
        ax : matplotlib Axes
            Where to draw; a new figure unless given.

        Returns
        -------
        Axes

        Raises
        ------
        InputError
            If the explanation is not of an image.
        """
        _refuse_empty(self.explanation)
        picked = largest_output(self.explanation, 0) if output is None else self._places(output)[0]
        return image_plot.draw(
            axes_of(ax, (4.2, 4.6)), self.explanation, picked, kind=kind, top=top, sign=sign
        )

    def images(
        self,
        outputs: list[str | int] | None = None,
        *,
        kind: str = "overlay",
        top: int = 5,
        sign: str = "both",
    ) -> Figure:
        """Draw the image, and beside it one picture an output; see :meth:`image`."""
        _refuse_empty(self.explanation)
        places = self._places(slice(None) if outputs is None else outputs)
        return image_plot.side_by_side(self.explanation, places, kind=kind, top=top, sign=sign)

    def _places(self, outputs: Any) -> list[int]:
        found = name_positions(outputs, self.explanation.output_names, "output")
        return [int(place) for place in np.atleast_1d(found)]

    def beeswarm(
        self,
        output: str | int | None = None,
        *,
        ax: Axes | None = None,
        max_features: int = 10,
    ) -> Axes:
        """Draw the coefficients of all rows, one dot a row, one line a feature.

        Dots that would overlap are stacked. Their colour is the rank of the row's own value among
        the values of the feature; grey where these are no numbers or missing.

        Parameters
        ----------
        output : name or position
            The last output, unless given.
        ax : matplotlib Axes
            Where to draw; a new figure unless given.
        max_features : int

        Returns
        -------
        Axes
        """
        one_output = self.explanation[..., -1 if output is None else output]
        _refuse_empty(one_output)
        axes = _axes(ax, max_features, one_output)
        return _beeswarm(one_output.top(max_features), axes, one_output)


def _refuse_empty(explanation: Explanation) -> None:
    if explanation.values.size == 0:
        raise InputError(
            f"There is nothing to draw: {len(explanation)} rows and "
            f"{len(explanation.feature_names)} features; draw an explanation that has both"
        )


def _axes(ax: Axes | None, max_features: int, explanation: Explanation) -> Axes:
    if not is_count(max_features):
        raise InputError(f"max_features={max_features!r}; give 1 or more")
    lines = min(max_features, len(explanation.feature_names))
    return axes_of(ax, (7.5, 1.6 + 0.34 * lines))


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
    ax.set_title(_bar_title(explanation, view), loc="left", fontsize=10.5, parse_math=False)
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
    hidden = f"\n{count(view.left_out, 'smaller one')} not shown" if view.left_out else ""
    return f"coefficient of the surrogate{errors}{hidden}"


def _text(explanation: Explanation, ax: Axes | None) -> Axes:
    found = pieces(explanation, 0, 0)
    if not found:
        raise InputError("There is no text to draw; explanations of limes.TextExplainer have one")
    if ax is None:
        ax = axes_of(None, text_plot.size(found))
        ax.figure.canvas.draw()  # the layout decides how wide characters are
    text_plot.draw(ax, found, RAISES, LOWERS)
    view = view_row(explanation, 0, 1).outputs[0]
    ax.set_title(_bar_title(explanation, view), loc="left", fontsize=10.5, parse_math=False)
    return ax


def _beeswarm(explanation: Explanation, ax: Axes, whole: Explanation) -> Axes:
    values = explanation.values
    slots = _slots(values)
    heights = np.column_stack([at + _stacked(column) for at, column in enumerate(slots.T)])
    ranks = np.column_stack([_ranks(column) for column in explanation.data.T])
    known = ~np.isnan(ranks)
    ax.scatter(values[~known], heights[~known], s=14, color=UNKNOWN, linewidths=0, zorder=2)
    if known.any():
        dots = ax.scatter(
            values[known],
            heights[known],
            c=ranks[known],
            s=14,
            cmap=_colours(),
            vmin=0.0,
            vmax=1.0,
            linewidths=0,
            zorder=3,
        )
        _colour_bar(ax, dots)
    _name_lines(ax, list(explanation.feature_names))
    left_out = len(whole.feature_names) - values.shape[1]
    hidden = f"\n{count(left_out, 'smaller one')} not shown" if left_out else ""
    _frame(ax, f"coefficient of the surrogate, one dot a row{hidden}")
    title = f"{shorten(explanation.output_names[0], 36)}: {count(len(explanation), 'row')}"
    ax.set_title(f"{title} ({explanation.method})", loc="left", fontsize=10.5, parse_math=False)
    return ax


def _slots(values: Floats) -> Floats:
    """Return in which narrow slot of the axis each dot lies; dots that cannot be drawn in -1."""
    known = np.isfinite(values)
    span = float(np.ptp(values[known])) if known.any() else 0.0
    lowest = values[known].min() if known.any() else 0.0
    shares = (np.where(known, values, lowest) - lowest) / (span or 1.0)
    return np.where(known, np.floor(_SLOTS * shares), -1.0)


def _stacked(slots: Floats) -> Floats:
    """Return heights around 0: dots of the same slot lie above each other."""
    order = _order_within(slots)
    # 0, 1, 2, 3, ... becomes 0, 1, -1, 2, ...: stacks grow to both sides of the line.
    heights = np.where(order % 2, (order + 1) / 2, -order / 2)
    factor: float = min(_SPREAD / max(np.abs(heights).max(), 1.0), 0.07)
    return np.asarray(heights * factor, dtype=float)


def _order_within(slots: Floats) -> Floats:
    """Return for each entry how many equal ones stand before it."""
    by_slot = np.argsort(slots, kind="stable")
    starts = np.searchsorted(slots[by_slot], slots[by_slot], side="left")
    order = np.empty(len(slots))
    order[by_slot] = np.arange(len(slots)) - starts
    return order


def _ranks(cells: Any) -> Floats:
    """Return ranks in [0, 1], equal ones for equal values; nan where there is no number."""
    numbers = np.array([float(cell) if isinstance(cell, int | float) else np.nan for cell in cells.tolist()])
    _, places, sizes = np.unique(numbers, return_inverse=True, return_counts=True, equal_nan=False)
    middle = np.cumsum(sizes) - (sizes + 1) / 2
    known = int((~np.isnan(numbers)).sum())
    ranks: Floats = np.where(np.isnan(numbers), np.nan, middle[places] / max(known - 1, 1))
    return ranks


def _colours() -> Any:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    # Without its palest end, which vanishes on white; lightness alone tells low from high.
    return ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.9, 256)))


def _colour_bar(ax: Axes, dots: Any) -> None:
    bar = ax.figure.colorbar(dots, ax=ax, pad=0.02, aspect=30)
    bar.set_ticks([0.0, 1.0], labels=["low", "high"])
    bar.set_label("the row's own value (rank)", fontsize=9)
    bar.ax.tick_params(labelsize=9, length=0)
    bar.outline.set_visible(False)


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
