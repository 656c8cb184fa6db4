"""A diagnosis as matplotlib pictures: they take ``ax=``, return it and show nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limes.explanation.wording import CONFIDENCE, number, shorten
from limes.show.axes import (
    COLOURS,
    RAISES,
    axes_or_new,
    bandwidth_axis,
    largest,
    plain_frame,
    spread_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from limes.diagnostics.bandwidth import Path
    from limes.diagnostics.cancellation import Profile

_OTHER_CELL = "#b9c3cf"


def draw_path(path: Path, ax: Axes | None = None, max_features: int = 6) -> Axes:
    """Draw the coefficients that get largest over the bandwidths of one path."""
    axes = axes_or_new(ax, (7.5, 4.2))
    finite = np.isfinite(path.bandwidths)
    x = path.bandwidths[finite]
    chosen = largest(path, max_features)
    ends = []
    for j, colour in zip(chosen, COLOURS, strict=False):
        y, reach = path.values[finite, j], CONFIDENCE * path.errors[finite, j]
        axes.plot(x, y, color=colour, linewidth=1.8, zorder=3)
        if (reach > 0).any():
            finite_reach = np.isfinite(reach)
            low, high = (y - reach)[finite_reach], (y + reach)[finite_reach]
            axes.fill_between(x[finite_reach], low, high, color=colour, alpha=0.18, linewidth=0)
        ends.append(float(y[np.isfinite(y)][-1]))
    _name_lines(axes, path, chosen, ends, float(x[-1]))
    bandwidth_axis(axes, x)
    axes.axhline(0.0, color="#666666", linewidth=0.8)
    if np.isfinite(path.bandwidth):
        axes.axvline(path.bandwidth, color="#666666", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_xlabel("bandwidth ν (dashed: the explanation's)", fontsize=9)
    axes.set_ylabel("coefficient", fontsize=9)
    title = f"{shorten(path.row.output, 40)}: coefficients by bandwidth"
    axes.set_title(title, loc="left", fontsize=10.5, parse_math=False)
    plain_frame(axes, 8.5)
    return axes


def _name_lines(axes: Axes, path: Path, chosen: list[int], ends: list[float], x: float) -> None:
    """Write each feature's condition at the right end of its line, none over another."""
    low, high = axes.get_ylim()
    positions = spread_labels(ends, 0.055 * (high - low))
    for j, colour, y in zip(chosen, COLOURS, positions, strict=False):
        text = axes.text(
            x * 1.06,
            y,
            shorten(path.row.conditions[j], 30),
            color=colour,
            fontsize=8.5,
            va="center",
            parse_math=False,
        )
        text.set_clip_on(False)


def draw_profile(profile: Profile, ax: Axes | None = None) -> Axes:
    """Draw the mean of the model in each cell of one profile."""
    axes = axes_or_new(ax, (6.5, 1.2 + 0.32 * len(profile.texts)))
    positions = np.arange(len(profile.texts))
    center = float(profile.probability @ profile.mean)
    colours = [RAISES if b == profile.current else _OTHER_CELL for b in positions]
    axes.barh(positions, profile.mean - center, left=center, color=colours, height=0.7, zorder=2)
    if (profile.error > 0).any():
        axes.errorbar(
            profile.mean, positions, xerr=CONFIDENCE * profile.error, fmt="none", ecolor="#333333", zorder=3
        )
    axes.axvline(center, color="#666666", linewidth=0.8)
    axes.set_yticks(positions, labels=[shorten(text, 40) for text in profile.texts], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel("average of the model in the cell (blue: the row's own)", fontsize=9)
    title = f"{shorten(profile.name, 40)}: coefficient {number(profile.coef, 3)}"
    axes.set_title(title, loc="left", fontsize=10.5, parse_math=False)
    plain_frame(axes, 8.5)
    return axes
