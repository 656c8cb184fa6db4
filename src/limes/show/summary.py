"""A summary of many rows: a table in the terminal, and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np

from limes.exceptions import InputError
from limes.show.axes import axes_of
from limes.show.wording import number, shorten, signed_column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from rich.console import Group
    from rich.text import Text

    from limes.diagnostics.summary import Summary

MAX_FEATURES = 15
_BARS = 16
_SIZE, _SPREAD = "#2b7bba", "#333333"


def plain_text(summary: Summary) -> str:
    """Return what is printed, without colours."""
    from rich.console import Console

    console = Console(file=StringIO(), force_terminal=False, color_system=None)
    with console.capture() as captured:
        console.print(printed(summary))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def printed(summary: Summary) -> Group:
    """Return table and remarks for rich."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    order = summary.order()[:MAX_FEATURES]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("feature", min_width=10)
    for name in ("mean |β|", "± spread", "mean β", "10 %", "90 %", "β > 0"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    columns = [signed_column(a[order], 3) for a in (summary.mean, summary.low, summary.high)]
    largest = summary.mean_abs.max(initial=0.0)
    for place, j in enumerate(order):
        bar = "█" * round(_BARS * summary.mean_abs[j] / largest) if largest > 0 else ""
        table.add_row(
            Text(shorten(summary.names[j], 32)),
            number(summary.mean_abs[j], 3),
            number(summary.spread[j], 2),
            *(column[place] for column in columns),
            f"{summary.positive[j]:.0%}",
            Text(bar, style="dodger_blue1"),
        )
    head = Text.assemble((summary.output, "bold"), f": {summary.rows:,} rows")
    return Group(head, table, *_remarks(summary, len(order)))


def _remarks(summary: Summary, shown: int) -> Iterator[Text]:
    from rich.text import Text

    if shown < len(summary.names):
        yield Text(f"{len(summary.names) - shown} smaller features in .to_dict()", style="dim")
    pick = summary.pick
    rows = ", ".join(map(str, pick.rows))
    yield Text.assemble(
        ("rows to look at: ", "bold"),
        rows,
        (f"  (they show features with {pick.coverage:.0%} of all importance; ", "dim"),
        (f"the best {len(pick.rows)} rows show at most {pick.bound:.0%})", "dim"),
    )
    for cohort in summary.cohorts:
        top = np.argsort(-cohort.mean_abs, kind="stable")[:3]
        told = ", ".join(f"{summary.names[j]} {number(cohort.mean_abs[j], 3)}" for j in top)
        yield Text.assemble((f"{shorten(cohort.name, 40)}", "bold"), f" ({cohort.rows:,} rows): {told}")


@dataclass(frozen=True)
class SummaryPlots:
    """The pictures of one summary; they take ``ax=``, return it and show nothing."""

    summary: Summary

    def importance(self, *, ax: Axes | None = None, max_features: int = 12) -> Axes:
        """Draw mean |β| as bars, with one standard deviation over rows to each side."""
        found = self.summary
        order = found.order()[:max_features]
        axes = axes_of(ax, (6.5, 1.3 + 0.34 * len(order)))
        places = np.arange(len(order))
        axes.barh(places, found.mean_abs[order], color=_SIZE, height=0.66, zorder=2)
        axes.errorbar(
            found.mean_abs[order],
            places,
            xerr=[np.minimum(found.spread[order], found.mean_abs[order]), found.spread[order]],
            fmt="none",
            ecolor=_SPREAD,
            elinewidth=1.0,
            capsize=2.5,
            zorder=3,
        )
        _named(axes, [found.names[j] for j in order])
        axes.set_xlabel("mean |coefficient|, lines: one standard deviation over rows", fontsize=9)
        title = f"{shorten(found.output, 36)}: {found.rows:,} rows"
        axes.set_title(title, loc="left", fontsize=10.5, parse_math=False)
        return axes

    def cohorts(self, *, ax: Axes | None = None, max_features: int = 10) -> Axes:
        """Draw mean |β| of each cohort, one dot a cohort.

        Raises
        ------
        InputError
            If the summary has no cohorts.
        """
        from limes.show.diagnosis.picture import COLOURS

        found = self.summary
        if not found.cohorts:
            raise InputError('there are no cohorts to draw: limes.summary(explanation, cohorts="a feature")')
        order = found.order()[:max_features]
        axes = axes_of(ax, (7.0, 1.6 + 0.34 * len(order)))
        for k, cohort in enumerate(found.cohorts):
            axes.scatter(
                cohort.mean_abs[order],
                np.arange(len(order)),
                s=42,
                color=COLOURS[k % len(COLOURS)],
                marker="osD^v"[(k // len(COLOURS)) % 5],
                label=f"{shorten(cohort.name, 34)} ({cohort.rows:,})",
                zorder=3,
            )
        _named(axes, [found.names[j] for j in order])
        axes.set_xlabel("mean |coefficient| of a cohort", fontsize=9)
        axes.set_title(f"{shorten(found.output, 36)}: cohorts", loc="left", fontsize=10.5, parse_math=False)
        legend = axes.legend(fontsize=8.5, frameon=False, loc="lower right")
        for text in legend.get_texts():
            text.set_parse_math(False)
        return axes


def _named(axes: Axes, names: list[str]) -> None:
    labels = [shorten(name, 36) for name in names]
    axes.set_yticks(np.arange(len(names)), labels=labels, parse_math=False, fontsize=10)
    axes.invert_yaxis()
    axes.grid(color="#e3e7ec", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=9)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
