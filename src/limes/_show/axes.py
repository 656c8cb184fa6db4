"""Common parts of all pictures: axes, colours, frames, and positions of lines, ticks and labels."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._checks import did_you_mean, is_count
from limes._explanation.wording import number, shorten
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from limes._arrays import Floats
    from limes._diagnostics.bandwidth import BandwidthPath
    from limes._explanation import Explanation

# Red raises and blue lowers, as in shap; safe for the colour-blind
RAISES, LOWERS, UNKNOWN = "#c8443c", "#3b6fb6", "#9a9a9a"
# Colours of parts without a sign, and of parts beside them
FULL, QUIET = "#6f7f93", "#8b97a5"
# Colours by Okabe and Ito
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#777777")


_LONGEST_LABEL = 40


@dataclass(frozen=True)
class Captions:
    """The user's words for a picture: ``names`` of features, a ``title``, a ``unit``."""

    names: Mapping[str, str]
    title: str | None
    unit: str

    @classmethod
    def of(
        cls, explanation: Explanation, names: Mapping[str, str] | None, title: str | None, unit: str
    ) -> Captions:
        """Check the words against an explanation."""
        names = dict(names or {})
        unknown = [name for name in names if name not in explanation.feature_names]
        if unknown:
            guess = did_you_mean(unknown[0], explanation.feature_names)
            raise InputError(f"names={{{unknown[0]!r}: ...}}: there is no feature {unknown[0]!r}{guess}")
        return cls(names, title, unit)

    def feature(self, name: str) -> str:
        return str(self.names.get(name, name))

    def condition(self, condition: str, name: str) -> str:
        """Return a condition with the feature's new name in it."""
        if name not in self.names:
            return condition
        return re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", lambda _: self.feature(name), condition, count=1)

    def with_unit(self, label: str) -> str:
        """Return the label of an axis with the unit, which belongs to its first line."""
        first, *rest = label.split("\n")
        return "\n".join([f"{first} ({self.unit})" if self.unit else first, *rest])


def ink() -> str:
    """Return the colour of lines on this figure's paper: that of its text, dark or light."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def refuse_empty(explanation: Explanation) -> None:
    """Raise InputError if there are no rows or no features."""
    if explanation.values.size == 0:
        raise InputError(
            f"There is nothing to draw: {len(explanation)} rows and "
            f"{len(explanation.feature_names)} features; draw an explanation that has both"
        )


def line_axes(ax: Axes | None, max_features: int, explanation: Explanation, height: float = 0.34) -> Axes:
    """Return `ax`, or axes with room for a line a feature, or a line a fact for a sparse explanation."""
    if not is_count(max_features):
        raise InputError(f"max_features={max_features!r}; pass 1 or more")
    facts = len(explanation.feature_names)
    if explanation.certificates:
        facts = max(1, int((explanation.values != 0).any(axis=0).sum()))
    lines = min(max_features, facts)
    return axes_or_new(ax, (7.5, 1.6 + height * lines))


def write_title(axes: Axes, captions: Captions, *lines: str) -> None:
    """Write the title: the user's in place of the picture's first line, else the picture's."""
    head = lines[:1] if captions.title is None else (captions.title,)
    room = _letters(axes, 12.5)
    wrapped = [part for line in (*head, *lines[1:]) for part in wrap(line, room) or [""]]
    axes.set_title("\n".join(wrapped), loc="left", fontsize=10.5, parse_math=False)


def write_below(axes: Axes, label: str) -> None:
    """Write the label of x, in as many lines as it needs."""
    room = _letters(axes, 15.0)
    wrapped = [part for line in label.split("\n") for part in wrap(line, room)]
    axes.set_xlabel("\n".join(wrapped), fontsize=9, parse_math=False)


def width_of(axes: Axes) -> float:
    """Return the width of axes and the labels to their left, in inches, before a layout moves them."""
    return float(axes.get_position().width) / _USUAL_SHARE * axes.figure.get_figwidth()  # type: ignore[union-attr]


def _letters(axes: Axes, per_inch: float) -> int:
    """Return the number of letters that fit beside the names of lines."""
    names = max((len(label.get_text()) for label in axes.get_yticklabels()), default=0)
    return max(18, int(per_inch * (width_of(axes) - names / 12.0 - 0.3)))


# Share of a figure's width that matplotlib gives to axes that fill it
_USUAL_SHARE = 0.775


def longest_name(axes: Axes) -> int:
    """Return the number of letters of a name that fit beside a line: names take at most half of the width."""
    return min(_LONGEST_LABEL, max(12, int(6.0 * width_of(axes))))


def name_lines(axes: Axes, names: Sequence[str]) -> None:
    """Write a name at each line, the first on top."""
    longest = longest_name(axes)
    # A dollar sign in a name is a dollar sign, not the start of a formula.
    labels = [shorten(name, longest) for name in names]
    axes.set_yticks(np.arange(len(labels)), labels=labels, fontsize=10, parse_math=False)
    axes.set_ylim(len(labels) - 0.5, -0.5)


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
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    write_below(axes, label)


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return `ax`, or if it is None the axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    axes: Any = plt.subplots(figsize=size, layout="constrained")[1]
    return axes  # type: ignore[no-any-return]


def turn(axes: Axes) -> None:
    """Turn the labels below the picture, so that their ends are at their ticks."""
    for label in axes.get_xticklabels():
        label.set(rotation=35, horizontalalignment="right", rotation_mode="anchor")


def plain_frame(axes: Axes, labelsize: float) -> None:
    """Draw a pale grid and neither spines nor tick marks."""
    axes.grid(color=ink(), alpha=0.12, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=labelsize)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)


def bandwidth_axis(axes: Axes, bandwidths: Floats) -> None:
    """Make x a logarithmic axis over these bandwidths."""
    low, high = float(bandwidths[0]), float(bandwidths[-1])
    ticks = log_ticks(low, high)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_xticks(ticks, labels=[number(t, 2) for t in ticks])
    axes.minorticks_off()


def largest(path: BandwidthPath, most: int) -> list[int]:
    """Return the features with the largest coefficients at any bandwidth, at most one for each colour."""
    sizes = np.nanmax(np.abs(np.nan_to_num(path.values)), axis=0)
    order = np.argsort(-sizes, kind="stable")[: min(most, len(COLOURS))]
    return [int(j) for j in order if sizes[j] > 0]


def spread_labels(targets: Sequence[float], gap: float) -> list[float]:
    """Return label positions near their targets that are at least `gap` apart."""
    order = np.argsort(targets, kind="stable")
    ascending = np.array([targets[k] for k in order], dtype=np.float64)
    steps = gap * np.arange(ascending.size)
    # the nearest ascending positions with gaps: an isotonic fit of the positions less all gaps below them
    positions = np.empty(ascending.size)
    positions[order] = _isotonic(ascending - steps) + steps
    return [float(y) for y in positions]


def _isotonic(values: Floats) -> Floats:
    """Return the nearest values that do not descend, by pooling adjacent violators."""
    pools: list[list[float]] = []
    for value in values:
        pools.append([float(value)])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    return np.array([np.mean(pool) for pool in pools for _ in pool])


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers between two ends, with 0 if it lies between."""
    from matplotlib.ticker import MaxNLocator

    values = MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(t) for t in values if low <= t <= high]


def log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 or 5 times a power of ten between two ends."""
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    every = sorted(float(m * p) for p in powers for m in (1, 2, 5))
    inside = [t for t in every if low <= t <= high]
    return inside if len(inside) <= 9 else [t for t in inside if f"{t:.0e}".startswith("1")]
