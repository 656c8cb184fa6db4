"""A suggested bandwidth: its curves as a table and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limes._explanation.wording import number
from limes._show import cards
from limes._show.axes import COLOURS, axes_or_new, bandwidth_axis, ink, plain_frame, spread_labels
from limes._show.cards import Card

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import ConsoleOptions, RenderableType

    from limes._diagnostics.bandwidth import Suggestion

_CURVES = ("locality", "fidelity", "noise", "drift")
_EVERY = 3  # lines of the table, in points of the curves
_MANY = 10.0


def plain_text(suggestion: Suggestion) -> str:
    """Return the printed text, without colours."""
    return cards.plain_text(card(suggestion))


def printed(suggestion: Suggestion, options: ConsoleOptions) -> RenderableType:
    """Return the renderable that rich prints."""
    return cards.printed(card(suggestion), options)


def card(suggestion: Suggestion) -> Card:
    """Return the suggestion, its reason and its curves."""
    chosen = int(np.argmin(np.abs(suggestion.bandwidths - suggestion.bandwidth)))
    points = sorted({chosen, *range(0, suggestion.bandwidths.size, _EVERY)})
    return Card(
        title=f"bandwidth {number(suggestion.bandwidth, 3)}",
        subtitle=suggestion.reason,
        columns=["ν", *_CURVES, ""],
        rows=[
            [
                number(float(suggestion.bandwidths[g]), 3),
                *(_percent(float(getattr(suggestion, name)[g])) for name in _CURVES),
                _remark(suggestion, g, chosen),
            ]
            for g in points
        ],
        strong=points.index(chosen),
        remarks=_MEANINGS,
    )


def _remark(suggestion: Suggestion, g: int, chosen: int) -> str:
    current = bool(np.isclose(float(suggestion.bandwidths[g]), suggestion.current))
    return ", ".join(["suggested"] * (g == chosen) + ["in use"] * current)


_MEANINGS = (
    "locality: share of the row's conditions that hold in a perturbed row. fidelity: R² of the surrogate.",
    "noise: standard error of lime's own fit to 5,000 rows, as a share of the coefficients.",
    "drift: change of the coefficients between ν / √2 and √2 ν, as a share of them.",
)


def _percent(share: float) -> str:
    if np.isnan(share):
        return "?"
    return f"{share:.0%}" if share < _MANY else f"> {_MANY:.0%}"


def draw(suggestion: Suggestion, ax: Axes | None = None) -> Axes:
    """Draw the curves over ν."""
    axes = axes_or_new(ax, (7.0, 4.0))
    x = suggestion.bandwidths
    curves = [np.clip(getattr(suggestion, name), 0.0, 1.0) for name in _CURVES]
    for curve, colour in zip(curves, COLOURS, strict=False):
        axes.plot(x, curve, color=colour, linewidth=1.8)
    ends = [float(curve[np.isfinite(curve)][-1]) for curve in curves]
    for name, colour, y in zip(_CURVES, COLOURS, spread_labels(ends, 0.055), strict=False):
        axes.text(x[-1] * 1.06, y, name, color=colour, fontsize=9, va="center")
    axes.axvline(suggestion.bandwidth, color=ink(), linewidth=1.2)
    axes.text(suggestion.bandwidth, 1.02, "suggested", fontsize=8.5, ha="center")
    if np.isfinite(suggestion.current):
        axes.axvline(suggestion.current, color="#888888", linewidth=1.0, linestyle=(0, (4, 3)))
    bandwidth_axis(axes, x)
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel("bandwidth ν (dashed: in use)", fontsize=9)
    plain_frame(axes, 9)
    return axes
