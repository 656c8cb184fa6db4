"""The explained series: its line on segments in the colours of their numbers, with axes of time and value.

All channels and outputs of a row share one scale of colours. A lane is a channel: pages, reports and
matplotlib draw its line, terminals columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._explanation.view import with_outputs
from limes._explanation.wording import difference, number, shorten
from limes._show.axes import (
    LOWERS,
    RAISES,
    Scale,
    axes_or_new,
    colour_bar,
    even_ticks,
    ink,
    plain_frame,
    sign_colour,
)
from limes._show.inputs import FAINTEST, largest_size, of_output
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from limes._arrays import Floats
    from limes._explanation import Explanation

# Full colour of the largest coefficient; paler, so that the line stays visible
_PALE = 0.55
# The picture in a page: its width and height, and most stretches of steps that a line is drawn through
_LANE_WIDTH, _LANE_HEIGHT, _MOST_STRETCHES = 1000, 100, 400
# Heights of the lowest and the highest value, from the top
_LOWEST, _HIGHEST = 0.94, 0.06
_MOST_CHANNELS = 12
# Names of steps, or values, along an axis
_MOST_TICKS, _MOST_VALUES = 7, 4
# Characters that the names along an axis have room for, and between two of them
_ROOM, _APART = 66, 3


@dataclass(frozen=True)
class Stretch:
    """Steps of one segment of a channel."""

    start: int
    end: int
    value: float
    strength: float  # its coefficient's size as a share of the largest


@dataclass(frozen=True)
class Lane:
    """One channel."""

    name: str
    values: Floats  # (T,)
    stretches: list[Stretch]
    ticks: Sequence[str]  # names of the steps, (T,)
    axis: str  # name of the steps
    largest: float  # size of the row's largest coefficient: full colour

    @property
    def scale(self) -> Scale:
        """The height of a value, from the top, as a share of the picture."""
        low, high = float(self.values.min()), float(self.values.max())
        middle = (_LOWEST + _HIGHEST) / 2
        return Scale(low, high, _LOWEST, _HIGHEST) if high > low else Scale(low, low, middle, middle)

    @property
    def steps_named(self) -> list[int]:
        """Steps whose names stand below the axis."""
        room = max(2, min(_MOST_TICKS, _ROOM // (_APART + max(map(len, map(_short, self.ticks))))))
        return [int(place) for place in even_ticks(0, len(self.ticks) - 1, room) if place == int(place)]

    @property
    def values_named(self) -> list[float]:
        low, high = float(self.values.min()), float(self.values.max())
        return even_ticks(low, high, _MOST_VALUES) if high > low else [low]


def lanes(explanation: Explanation, row: int, output: int) -> list[Lane]:
    """Return the channels of an explained series, [] for other explanations."""
    facts = explanation.provenance
    if not all(isinstance(facts.get(name), dict) for name in ("series", "stretches")):
        return []
    coefficients, _ = of_output(explanation, row, output)
    largest = largest_size(with_outputs(explanation.coefficients.values, explanation)[row])
    try:
        values = np.array(facts["series"]["values"], dtype=np.float64)
        names = [str(name) for name in facts["series"]["channels"]] or [""]
        steps = [str(tick) for tick in facts["series"]["ticks"]]
        axis = str(facts["series"].get("axis", ""))
        channels = [
            Lane(name, line, [], steps, axis, largest) for name, line in zip(names, values, strict=True)
        ]
        for condition, value in zip(explanation.conditions[row], coefficients, strict=True):
            for channel, start, end in facts["stretches"].get(condition, ()):
                strength = abs(value) / largest if largest and np.isfinite(value) else 0.0
                channels[int(channel)].stretches.append(Stretch(int(start), int(end), value, strength))
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise InputError(f"the series of this explanation is damaged: {error}") from error
    if not steps or any(lane.values.shape != (len(steps),) for lane in channels):
        raise InputError(f"the series of this explanation is damaged: it has {len(steps)} names of steps")
    return channels


def _short(name: str) -> str:
    return shorten(name, 20)


def drawn_lanes(explanation: Explanation, row: int, output: int) -> list[dict[str, Any]]:
    """Return channels as rectangles and a path in the picture of a page, and the names along its axes."""
    return [
        {
            "name": lane.name,
            "stretches": [
                {
                    "x": round(_LANE_WIDTH * stretch.start / len(lane.values), 1),
                    "width": round(_LANE_WIDTH * (stretch.end - stretch.start) / len(lane.values), 1),
                    "sign": "p" if stretch.value > 0 else "m",
                    "opacity": round(_PALE * stretch.strength, 2),
                    "coefficient": difference(stretch.value),
                }
                for stretch in lane.stretches
                if stretch.strength >= FAINTEST
            ],
            "path": _path(lane),
            # per cent of the width and the height
            "across": [
                {"at": round(100 * (step + 0.5) / len(lane.values), 1), "text": _short(lane.ticks[step])}
                for step in lane.steps_named
            ],
            "up": [
                {"at": round(100 * float(lane.scale.positions(value)), 1), "text": number(value, 3)}
                for value in lane.values_named
            ],
            "axis": lane.axis,
            "largest": number(lane.largest, 2),
        }
        for lane in lanes(explanation, row, output)[:_MOST_CHANNELS]
    ]


# The picture in a terminal: columns, and rows of eighths of a character
_COLUMNS, _ROWS = 64, 5
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def columns(lane: Lane, room: int) -> tuple[list[str], list[Stretch | None], str]:
    """Return a channel as rows of characters, top first, each column's stretch, and the names below.

    They are at most ``room`` wide.
    """
    values, count, width = lane.values, len(lane.values), max(1, min(room, _COLUMNS))
    width = width // count * count if count <= width else width
    first = np.arange(width) * count // width
    behind = np.maximum(first + 1, np.arange(1, width + 1) * count // width)
    # of several steps the one farthest from the mean: peaks are seen
    away = np.abs(values - values.mean())
    shown = values[[a + int(np.argmax(away[a:b])) for a, b in zip(first, behind, strict=True)]]
    low, span = values.min(), np.ptp(values)
    # at least an eighth: a column of the smallest value is seen
    heights = 1 + np.rint((8 * _ROWS - 1) * (shown - low) / span) if span > 0 else np.full(width, 4.0 * _ROWS)
    rows = [
        "".join(_EIGHTHS[int(np.clip(height - 8 * row, 0, 8))] for height in heights.tolist())
        for row in reversed(range(_ROWS))
    ]
    by_step = {step: one for one in lane.stretches for step in range(one.start, one.end)}
    below = " " * width
    for step in lane.steps_named:
        name, middle = _short(lane.ticks[step]), int((step + 0.5) * width / count)
        start = max(0, middle - len(name) // 2)
        fits = start + len(name) <= max(width, room)
        if fits and not below[max(0, start - 1) : start + len(name) + 1].strip():
            below = f"{below[:start]}{name}{below[start + len(name) :]}"
    return rows, [by_step.get(int(step)) for step in first], below.rstrip()


def _path(lane: Lane) -> str:
    """Return an SVG path through a series; of a long one through the ends of each stretch's range."""
    values, count = lane.values, len(lane.values)
    heights = np.broadcast_to(lane.scale.positions(values), values.shape)
    steps = [*range(count)]
    if count > 2 * _MOST_STRETCHES:
        parts = np.array_split(np.arange(count), _MOST_STRETCHES)
        ends = [{int(part[np.argmin(heights[part])]), int(part[np.argmax(heights[part])])} for part in parts]
        steps = [step for both in ends for step in sorted(both)]
    return "M" + "L".join(
        f"{_LANE_WIDTH * (step + 0.5) / count:.1f} {_LANE_HEIGHT * heights[step]:.1f}" for step in steps
    )


def draw_series(
    explanation: Explanation, output: int, channel: str | int | None, ax: Axes | None, label: str
) -> Axes:
    """Draw a channel for one output by position; ``label`` is the word for the colours' numbers."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    channels = lanes(explanation, 0, output)
    if not channels:
        raise InputError(
            "There is no series to draw; explanations of limes.SeriesExplainer by segments have one"
        )
    lane = channels[_channel(channel, [lane.name for lane in channels])]
    axes = axes_or_new(ax, (7.5, 3.0))
    for stretch in lane.stretches:
        colour, alpha = sign_colour(stretch.value), _PALE * stretch.strength
        axes.axvspan(stretch.start - 0.5, stretch.end - 0.5, color=colour, alpha=alpha, linewidth=0)
    axes.plot(np.arange(len(lane.values)), lane.values, color=ink(), linewidth=1.3)
    plain_frame(axes, 9)
    axes.set_xlim(-0.5, len(lane.values) - 0.5)
    shown = lane.steps_named
    axes.set_xticks(shown, labels=[_short(lane.ticks[step]) for step in shown], parse_math=False)
    axes.set_xlabel(shorten(lane.axis, 40), fontsize=9, parse_math=False)
    axes.set_ylabel(shorten(lane.name or "value", 30), fontsize=9, parse_math=False)
    if lane.largest:
        ends = [(*_rgb(LOWERS), _PALE), (*_rgb(LOWERS), 0.0), (*_rgb(RAISES), 0.0), (*_rgb(RAISES), _PALE)]
        colours = LinearSegmentedColormap.from_list(
            "pale", list(zip((0.0, 0.5, 0.5, 1.0), ends, strict=True))
        )
        colour_bar(axes, ScalarMappable(Normalize(-lane.largest, lane.largest), colours), label)
    return axes


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))


def _channel(channel: str | int | None, names: list[str]) -> int:
    if channel is None:
        return 0
    if channel in names:
        return names.index(str(channel))
    if isinstance(channel, int) and -len(names) <= channel < len(names):
        return channel
    raise InputError(f"channel={channel!r} is neither one of {names} nor a position")
