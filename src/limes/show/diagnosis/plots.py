"""A diagnosis as matplotlib pictures: they take ``ax=``, return it and show nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limes.exceptions import InputError
from limes.show.axes import axes_of
from limes.show.diagnosis.picture import COLOURS, largest, log_ticks, spread_labels
from limes.show.wording import CONFIDENCE, number, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from limes.diagnostics.bandwidth import Path
    from limes.diagnostics.cancellation import Profile
    from limes.diagnostics.diagnosis import Diagnosis

_OWN, _OTHER = "#2b7bba", "#b9c3cf"


@dataclass(frozen=True)
class DiagnosisPlots:
    """The pictures of one diagnosis."""

    diagnosis: Diagnosis

    def bandwidth(self, row: int = 0, *, ax: Axes | None = None, max_features: int = 6) -> Axes:
        """Draw the coefficients of one row at other bandwidths, those that get largest.

        Bands reach 1.96 standard errors to each side where the path is sampled.
        """
        return draw_path(self.diagnosis.rows[row].path, ax, max_features)

    def profile(self, feature: str | None = None, row: int = 0, *, ax: Axes | None = None) -> Axes:
        """Draw what the model is on average in each cell of a feature, by default the one that hides most.

        Raises
        ------
        InputError
            If the feature has no profile: it is not cut into cells, or not of this diagnosis.
        """
        profiles = self.diagnosis.rows[row].profiles
        chosen = [profile for profile in profiles if feature in (None, profile.name)]
        if not chosen:
            raise InputError(
                f"there is no profile of {feature!r}; there are {[profile.name for profile in profiles]}"
            )
        return draw_profile(chosen[0], ax)


def draw_path(path: Path, ax: Axes | None = None, max_features: int = 6) -> Axes:
    """Draw one path."""
    axes = axes_of(ax, (7.5, 4.2))
    finite = np.isfinite(path.bandwidths)
    x = path.bandwidths[finite]
    chosen = largest(path, max_features)
    ends = []
    for j, colour in zip(chosen, COLOURS, strict=False):
        y, reach = path.values[finite, j], CONFIDENCE * path.errors[finite, j]
        axes.plot(x, y, color=colour, linewidth=1.8, zorder=3)
        if (reach > 0).any():
            known = np.isfinite(reach)
            axes.fill_between(
                x[known], (y - reach)[known], (y + reach)[known], color=colour, alpha=0.18, linewidth=0
            )
        ends.append(float(y[np.isfinite(y)][-1]))
    _name_lines(axes, path, chosen, ends, float(x[-1]))
    axes.set_xscale("log")
    axes.set_xlim(x[0], x[-1])
    axes.set_xticks(log_ticks(x[0], x[-1]), labels=[number(t, 2) for t in log_ticks(x[0], x[-1])])
    axes.minorticks_off()
    axes.axhline(0.0, color="#666666", linewidth=0.8)
    if np.isfinite(path.bandwidth):
        axes.axvline(path.bandwidth, color="#666666", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_xlabel("bandwidth ν (dashed: the explanation's)", fontsize=9)
    axes.set_ylabel("coefficient", fontsize=9)
    title = f"{shorten(path.facts.output, 40)}: coefficients by bandwidth"
    axes.set_title(title, loc="left", fontsize=10.5, parse_math=False)
    _frame(axes)
    return axes


def _name_lines(axes: Axes, path: Path, chosen: list[int], ends: list[float], x: float) -> None:
    """Write each feature's condition at the right end of its line, none over another."""
    low, high = axes.get_ylim()
    places = spread_labels(ends, 0.055 * (high - low))
    for j, colour, y in zip(chosen, COLOURS, places, strict=False):
        text = axes.text(
            x * 1.06,
            y,
            shorten(path.facts.conditions[j], 30),
            color=colour,
            fontsize=8.5,
            va="center",
            parse_math=False,
        )
        text.set_clip_on(False)


def draw_profile(profile: Profile, ax: Axes | None = None) -> Axes:
    """Draw one profile."""
    axes = axes_of(ax, (6.5, 1.2 + 0.32 * len(profile.texts)))
    places = np.arange(len(profile.texts))
    center = float(profile.probability @ profile.mean)
    colours = [_OWN if b == profile.own else _OTHER for b in places]
    axes.barh(places, profile.mean - center, left=center, color=colours, height=0.7, zorder=2)
    if (profile.error > 0).any():
        axes.errorbar(
            profile.mean, places, xerr=CONFIDENCE * profile.error, fmt="none", ecolor="#333333", zorder=3
        )
    axes.axvline(center, color="#666666", linewidth=0.8)
    axes.set_yticks(places, labels=[shorten(text, 40) for text in profile.texts], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel("average of the model in the cell (blue: the row's own)", fontsize=9)
    title = f"{shorten(profile.name, 40)}: coefficient {number(profile.coef, 3)}"
    axes.set_title(title, loc="left", fontsize=10.5, parse_math=False)
    _frame(axes)
    return axes


def _frame(axes: Axes) -> None:
    axes.grid(color="#e3e7ec", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8.5, length=0)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
