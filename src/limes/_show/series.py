"""The series of an explanation, its segments coloured by their coefficients.

The provenance of a series' explanation holds the series and the steps of each condition's segment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limes._explanation.view import headline, view_row, with_outputs
from limes._explanation.wording import difference, shorten
from limes._show.axes import (
    LOWERS,
    RAISES,
    Captions,
    axes_or_new,
    ink,
    plain_frame,
    write_title,
)
from limes._show.texts import FAINTEST
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

    from limes._arrays import Floats
    from limes._explanation import Explanation

# Full colour of the largest coefficient; paler, so that the line stays visible
_STRONGEST = 0.55
# The picture in a page: its width and height, and the number of stretches of steps that a line is drawn
# through
_WIDTH, _HEIGHT, _MOST_STRETCHES = 1000, 100, 400
_MOST_CHANNELS = 12


@dataclass(frozen=True)
class Stretch:
    """Steps of one segment: ``strength`` is its coefficient's size as a share of the largest."""

    start: int
    end: int
    value: float
    strength: float


@dataclass(frozen=True)
class Lane:
    """One channel: its values (T,), and its stretches."""

    name: str
    values: Floats
    stretches: tuple[Stretch, ...]


def lanes(explanation: Explanation, row: int, output: int) -> tuple[Lane, ...]:
    """Return the channels of an explained series, () for other explanations."""
    facts = explanation.provenance
    if not all(isinstance(facts.get(name), dict) for name in ("series", "stretches")):
        return ()
    coefficients = with_outputs(explanation.values, explanation)[row, :, output].tolist()
    largest = max((abs(v) for v in coefficients if np.isfinite(v)), default=0.0) or 1.0
    try:
        values = np.array(facts["series"]["values"], dtype=np.float64)
        names = [str(name) for name in facts["series"]["channels"]] or [""]
        stretches: list[list[Stretch]] = [[] for _ in values]
        for condition, value in zip(explanation.conditions[row], coefficients, strict=True):
            for channel, start, end in facts["stretches"].get(condition, ()):
                strength = abs(value) / largest if np.isfinite(value) else 0.0
                stretches[int(channel)].append(Stretch(int(start), int(end), value, strength))
        return tuple(Lane(*lane) for lane in zip(names, values, map(tuple, stretches), strict=True))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"the series of this explanation is damaged: {error}") from error


# -- in a page -----------------------------------------------------------------------------------------------


def drawn_lanes(explanation: Explanation, row: int, output: int) -> list[dict[str, Any]]:
    """Return channels as rectangles and a path in a picture of 1000 x 100."""
    return [
        {
            "name": lane.name,
            "stretches": [
                {
                    "x": round(_WIDTH * stretch.start / len(lane.values), 1),
                    "width": round(_WIDTH * (stretch.end - stretch.start) / len(lane.values), 1),
                    "sign": "p" if stretch.value > 0 else "m",
                    "opacity": round(_STRONGEST * stretch.strength, 2),
                    "coefficient": difference(stretch.value),
                }
                for stretch in lane.stretches
                if stretch.strength >= FAINTEST
            ],
            "path": _path(lane.values),
        }
        for lane in lanes(explanation, row, output)[:_MOST_CHANNELS]
    ]


def _path(values: Floats) -> str:
    """Return an SVG path through a series; of a long one through the ends of each stretch's range."""
    low, high = float(values.min()), float(values.max())
    heights = 0.94 - 0.88 * (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
    return "M" + "L".join(
        f"{_WIDTH * (step + 0.5) / len(values):.1f} {_HEIGHT * heights[step]:.1f}" for step in _steps(heights)
    )


def _steps(heights: Floats) -> Iterator[int]:
    if len(heights) <= 2 * _MOST_STRETCHES:
        yield from range(len(heights))
        return
    for part in np.array_split(np.arange(len(heights)), _MOST_STRETCHES):
        yield from sorted({int(part[np.argmin(heights[part])]), int(part[np.argmax(heights[part])])})


# -- with matplotlib -----------------------------------------------------------------------------------------


def draw_series(one: Explanation, channel: str | int | None, ax: Axes | None, captions: Captions) -> Axes:
    """Draw one channel of the explained series on its segments' colours, for the one output."""
    channels = lanes(one, 0, 0)
    if not channels:
        raise InputError(
            "There is no series to draw; explanations of limes.SeriesExplainer by segments have one"
        )
    lane = channels[_position(channel, [lane.name for lane in channels])]
    axes = axes_or_new(ax, (7.5, 3.0))
    for stretch in lane.stretches:
        colour = RAISES if stretch.value > 0 else LOWERS
        axes.axvspan(
            stretch.start - 0.5,
            stretch.end - 0.5,
            color=colour,
            alpha=_STRONGEST * stretch.strength,
            linewidth=0,
        )
    axes.plot(np.arange(len(lane.values)), lane.values, color=ink(), linewidth=1.3)
    plain_frame(axes, 9)
    axes.set_xlim(-0.5, len(lane.values) - 0.5)
    _name_ticks(axes, [str(tick) for tick in one.provenance["series"]["ticks"]])
    if lane.name:
        axes.set_ylabel(shorten(lane.name, 30), fontsize=9, parse_math=False)
    view = view_row(one, 0, 1).outputs[0]
    write_title(axes, captions, shorten(view.title, 48), f"{headline(view)} ({one.method})")
    return axes


def _position(channel: str | int | None, names: list[str]) -> int:
    if channel is None:
        return 0
    if channel in names:
        return names.index(str(channel))
    if isinstance(channel, int) and -len(names) <= channel < len(names):
        return channel
    raise InputError(f"channel={channel!r} is neither one of {names} nor a position")


def _name_ticks(axes: Axes, names: list[str]) -> None:
    """Write the names of some steps."""
    from matplotlib.ticker import MaxNLocator

    places = [int(p) for p in MaxNLocator(6, integer=True).tick_values(0, len(names) - 1)]
    shown = [place for place in places if 0 <= place < len(names)]
    axes.set_xticks(shown, labels=[shorten(names[place], 12) for place in shown], parse_math=False)
