"""A suggested bandwidth: its curves as a table and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limes.explanation.wording import number
from limes.show.axes import COLOURS, axes_or_new, bandwidth_axis, plain_frame, spread_labels
from limes.show.terminal import ascii_text, captured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import ConsoleOptions, Group, RenderableType

    from limes.diagnostics.bandwidth import Suggestion

_CURVES = ("locality", "fidelity", "noise", "drift")
_EVERY = 3  # lines of the table, in points of the curves
_MANY = 10.0


def plain_text(suggestion: Suggestion) -> str:
    """Return what is printed, without colours."""
    return captured(lambda _: _printed(suggestion))


def printed(suggestion: Suggestion, options: ConsoleOptions) -> RenderableType:
    """Return what rich prints."""
    return ascii_text(plain_text(suggestion)) if options.ascii_only else _printed(suggestion)


def _printed(suggestion: Suggestion) -> Group:
    """Return the suggestion, its reason and its curves."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("ν", justify="right")
    for name in _CURVES:
        table.add_column(name, justify="right")
    table.add_column("")
    chosen = int(np.argmin(np.abs(suggestion.bandwidths - suggestion.bandwidth)))
    for g in sorted({chosen, *range(0, suggestion.bandwidths.size, _EVERY)}):
        bandwidth = float(suggestion.bandwidths[g])
        remarks = ["suggested"] * (g == chosen) + ["the explainer's"] * bool(
            np.isclose(bandwidth, suggestion.current)
        )
        table.add_row(
            number(bandwidth, 3),
            *(_percent(float(getattr(suggestion, name)[g])) for name in _CURVES),
            ", ".join(remarks),
            style="bold" if g == chosen else "",
        )
    head = Text.assemble(
        ("bandwidth ", ""), (number(suggestion.bandwidth, 3), "bold"), f": {suggestion.reason}"
    )
    return Group(head, table)


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
    axes.axvline(suggestion.bandwidth, color="#222222", linewidth=1.2)
    axes.text(suggestion.bandwidth, 1.02, "suggested", fontsize=8.5, ha="center")
    if np.isfinite(suggestion.current):
        axes.axvline(suggestion.current, color="#888888", linewidth=1.0, linestyle=(0, (4, 3)))
    bandwidth_axis(axes, x)
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel("bandwidth ν (dashed: the explainer's)", fontsize=9)
    plain_frame(axes, 9)
    return axes
