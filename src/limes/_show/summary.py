"""A summary of many rows: a table in the terminal, and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from limes._arrays import is_constant
from limes._explanation.drawing import Card
from limes._explanation.wording import number, one_line, shorten, signed_column
from limes._show.axes import COLOURS, FULL, axes_or_new, ink, plain_frame
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

    from limes._diagnostics.summary import Summary

MAX_FEATURES = 15
_BARS = 16
# Spaces between two columns of the table
_GAP = 3


def table(summary: Summary, width: int) -> Group:
    """Return table and remarks; a narrow table has no bars, then no quantiles: names are kept."""
    order = summary.order()[:MAX_FEATURES]
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    largest = summary.mean_abs.max(initial=0.0)
    shares = [summary.mean_abs[j] / largest if largest > 0 else 0.0 for j in order]
    columns: dict[str, list[Any]] = {
        "feature": [Text(shorten(summary.names[j], 32)) for j in order],
        **_columns(summary, order),
        "": [Text("█" * round(_BARS * share), style="grey62") for share in shares],
    }
    for name in ("", "10 %", "90 %"):
        if sum(max(len(name), *map(len, cells)) + _GAP for name, cells in columns.items()) > width:
            del columns[name]
    for name in columns:
        at_start = name in ("feature", "")
        grid.add_column(name, justify="left" if at_start else "right", no_wrap=True)
    for cells in zip(*columns.values(), strict=True):
        grid.add_row(*cells)
    head = Text.assemble((one_line(summary.output), "bold"), f": {summary.rows:,} rows")
    return Group(head, grid, *_remarks(summary, len(order)))


def _remarks(summary: Summary, shown: int) -> Iterator[Text]:
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
        largest = ", ".join(f"{one_line(summary.names[j])} {number(cohort.mean_abs[j], 3)}" for j in top)
        yield Text.assemble((f"{shorten(cohort.name, 40)}", "bold"), f" ({cohort.rows:,} rows): {largest}")


def _columns(summary: Summary, order: list[int]) -> dict[str, list[str]]:
    """Return the numbers of features in this order, column by column."""
    return {
        "mean |β|": [number(summary.mean_abs[j], 3) for j in order],
        "± spread": [_spread(summary, j) for j in order],
        "mean β": signed_column(summary.mean[order], 3),
        "10 %": signed_column(summary.low[order], 3),
        "90 %": signed_column(summary.high[order], 3),
        "β > 0": [f"{summary.positive[j]:.0%}" for j in order],
    }


def card(summary: Summary) -> Card:
    """Return the table of the summary, and its rows to inspect."""
    order = summary.order()[:MAX_FEATURES]
    columns = {"feature": [one_line(summary.names[j]) for j in order], **_columns(summary, order)}
    return Card(
        title=f"{summary.output}: {summary.rows:,} rows",
        columns=list(columns),
        rows=[list(cells) for cells in zip(*columns.values(), strict=True)],
        remarks=[text.plain for text in _remarks(summary, len(order))],
    )


def _spread(summary: Summary, j: int) -> str:
    """Write a standard deviation over rows; 0 where it is rounding."""
    spread = float(summary.spread[j])
    return number(0.0 if is_constant(spread**2, summary.mean_abs[j]) else spread, 2)


@dataclass(frozen=True)
class SummaryPlots:
    """The pictures of one summary; they take ``ax=``, return it and show nothing."""

    summary: Summary

    def importance(self, *, ax: Axes | None = None, max_features: int = 12) -> Axes:
        """Draw mean |β| as bars, with one standard deviation over rows to each side."""
        summary = self.summary
        order = summary.order()[:max_features]
        axes = axes_or_new(ax, (6.5, 1.3 + 0.34 * len(order)))
        positions = np.arange(len(order))
        axes.barh(positions, summary.mean_abs[order], color=FULL, height=0.66, zorder=2)
        axes.errorbar(
            summary.mean_abs[order],
            positions,
            xerr=[np.minimum(summary.spread[order], summary.mean_abs[order]), summary.spread[order]],
            fmt="none",
            ecolor=ink(),
            elinewidth=1.0,
            capsize=2.5,
            zorder=3,
        )
        _name_lines(axes, [summary.names[j] for j in order])
        axes.set_xlabel("mean |coefficient|, lines: one standard deviation over rows", fontsize=9)
        title = f"{shorten(summary.output, 36)}: {summary.rows:,} rows"
        axes.set_title(title, loc="left", fontsize=10.5, parse_math=False)
        return axes

    def cohorts(self, *, ax: Axes | None = None, max_features: int = 10) -> Axes:
        """Draw mean |β| of each cohort, one dot a cohort.

        Raises
        ------
        InputError
            If the summary has no cohorts.
        """
        summary = self.summary
        if not summary.cohorts:
            raise InputError('there are no cohorts to draw: limes.summary(explanation, cohorts="a feature")')
        order = summary.order()[:max_features]
        axes = axes_or_new(ax, (7.0, 1.6 + 0.34 * len(order)))
        for k, cohort in enumerate(summary.cohorts):
            axes.scatter(
                cohort.mean_abs[order],
                np.arange(len(order)),
                s=42,
                color=COLOURS[k % len(COLOURS)],
                marker="osD^v"[(k // len(COLOURS)) % 5],
                label=f"{shorten(cohort.name, 34)} ({cohort.rows:,})",
                zorder=3,
            )
        _name_lines(axes, [summary.names[j] for j in order])
        axes.set_xlabel("mean |coefficient| of a cohort", fontsize=9)
        axes.set_title(f"{shorten(summary.output, 36)}: cohorts", loc="left", fontsize=10.5, parse_math=False)
        legend = axes.legend(fontsize=8.5, frameon=False, loc="lower right")
        for text in legend.get_texts():
            text.set_parse_math(False)
        return axes


def _name_lines(axes: Axes, names: list[str]) -> None:
    labels = [shorten(name, 36) for name in names]
    axes.set_yticks(np.arange(len(names)), labels=labels, parse_math=False, fontsize=10)
    axes.invert_yaxis()
    plain_frame(axes, 9)
