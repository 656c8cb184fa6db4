"""Diagnoses, suggested bandwidths and summaries in the terminal, as HTML and as matplotlib pictures.

Findings come first, then what is always reported. Pictures of pages are SVG that the template writes from
positions computed here; it escapes every text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from limes._arrays import is_constant
from limes._diagnostics.finding import by_reading
from limes._explanation.drawing import Card
from limes._explanation.wording import (
    CONFIDENCE,
    count,
    difference,
    estimate_text,
    number,
    one_line,
    shorten,
    signed_column,
    without_name,
)
from limes._show.axes import (
    COLOURS,
    FULL,
    Scale,
    axes_or_new,
    error_bars,
    legend,
    log_ticks,
    plain_frame,
    set_title,
    spread_labels,
)
from limes._show.html import render
from limes._show.terminal import numbers_table
from limes._warnings import CODES
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes

    from limes._arrays import Floats
    from limes._diagnostics.bandwidth import BandwidthPath
    from limes._diagnostics.diagnosis import Diagnosis, RowDiagnosis
    from limes._diagnostics.finding import Finding, Measure
    from limes._diagnostics.summary import Summary
    from limes._diagnostics.tables import Profile

_STYLES = {"warning": "bold dark_orange", "note": "bold dodger_blue1"}
# The measures that are always printed
_PRINTED = (
    *("error of contributions", "error of the base", "order of features", "outside the data"),
    *("fidelity R²", "local error"),
)


# -- a diagnosis in the terminal -----------------------------------------------------------------------------


def drawn(diagnosis: Diagnosis) -> Group:
    if len(diagnosis) == 1:
        return Group(*_single(diagnosis.rows[0], diagnosis.method))
    return Group(*_several(diagnosis))


def _single(row: RowDiagnosis, method: str) -> Iterator[RenderableType]:
    e = row.explanation
    surrogate = f"prediction {number(e.prediction)}, surrogate {number(e.surrogate)} ({method})"
    shown = 0
    (findings, of_lime), (measures, its_measures) = by_reading(row.findings), by_reading(row.measures)
    if row.headline:
        yield Text.assemble((e.label, "bold"), f": {row.headline}")
        shown += yield from _part(row.verdict_on_contributions, findings, measures)
    else:
        of_lime, its_measures = [*findings, *of_lime], [*measures, *its_measures]
    yield Text.assemble(("LIME's view" if row.headline else e.heading, "bold"), f": {surrogate}")
    shown += yield from _part(row.verdict_on_lime, of_lime, its_measures)
    rest = count(len(row.measures) - shown, "further measure")
    yield Text(f"{rest} in .rows[0].measures and to_html()", style="dim")


def _part(
    verdict: str, findings: Sequence[Finding], measures: Sequence[Measure]
) -> Generator[RenderableType, None, int]:
    """Write about one reading; return how many measures were drawn."""
    yield Text()
    yield Text(verdict)
    yield Text()
    for finding, also in by_kind(findings):
        yield Text.assemble(
            (f"{finding.severity}: {finding.kind}", _STYLES[finding.severity]),
            "  ",
            (estimate_text(finding.number, finding.error), "bold"),
            (f" {finding.unit}", "dim"),
        )
        yield Padding(Text(one_line(finding.sentence)), (0, 0, 0, 2))
        if also:
            yield Padding(Text(one_line(also)), (0, 0, 0, 2))
        yield Padding(Text(f"→ {one_line(finding.advice)}", style="italic"), (0, 0, 1, 2))
    table = numbers_table()
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("")
    printed = [measure for measure in measures if measure.name in _PRINTED]
    for measure in printed:
        remark = Text(one_line(measure.remark), style="dim")
        table.add_row(Text(measure.name), Text(estimate_text(measure.value, measure.error)), remark)
    if printed:
        yield table
    return len(printed)


def by_kind(findings: Sequence[Finding]) -> Iterator[tuple[Finding, str]]:
    """Yield the first finding of each kind, and a sentence on others of that kind, in their order."""
    for title in dict.fromkeys(finding.title for finding in findings):
        first, *others = (finding for finding in findings if finding.title == title)
        kind = first.kind
        parts = [f"{', '.join(f.features) or kind} ({number(f.number, 3)})" for f in others]
        yield first, f"The same holds for {', '.join(parts)}." if parts else ""


def _several(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    yield Text(f"{count(len(diagnosis), 'row')}, {diagnosis.method}", style="bold")
    counts = _counts(diagnosis)
    yield Text(diagnosis.verdict)
    if not counts:
        return
    table = numbers_table(show_lines=True)
    table.add_column("finding", no_wrap=True)
    table.add_column("warnings", justify="right")
    table.add_column("notes", justify="right")
    table.add_column("the first, and what to do")
    for row, finding in _first_of_each(diagnosis):
        text = Text.assemble(
            (f"{row}: ", "bold"), one_line(finding.sentence), "\n", (f"→ {finding.advice}", "italic")
        )
        many = [Text(str(counts.get((finding.title, severity)) or "")) for severity in ("warning", "note")]
        table.add_row(Text(finding.title, style=_STYLES[finding.severity]), *many, text)
    yield table
    yield Text("Rows are named as in the explanation. One row, by its position: diagnosis[i]", style="dim")


def _counts(diagnosis: Diagnosis) -> Mapping[tuple[str, str], int]:
    """The number of rows with each (title, severity)."""
    return Counter(
        pair for row in diagnosis.rows for pair in dict.fromkeys((f.title, f.severity) for f in row.findings)
    )


def _first_of_each(diagnosis: Diagnosis) -> list[tuple[str, Finding]]:
    """Return each kind's first finding of the worst severity, and its row.

    Those about contributions come first, and of these, and of LIME's, those with the most warnings.
    """
    first: dict[str, tuple[str, Finding]] = {}
    for row in diagnosis.rows:
        for finding in row.findings:
            earlier = first.get(finding.title)
            if earlier is None or (earlier[1].severity == "note" and finding.severity == "warning"):
                first[finding.title] = row.explanation.label, finding
    counts = _counts(diagnosis)

    def rank(title: str) -> tuple[bool, int, int]:
        warnings, notes = (counts.get((title, severity), 0) for severity in ("warning", "note"))
        return first[title][1].reading == "coefficients", -warnings, -notes

    return [first[title] for title in sorted(first, key=rank)]


# -- a diagnosis as a page -----------------------------------------------------------------------------------

MAX_ROWS = 20
MAX_LINES, MAX_PROFILES, MAX_CELLS = 6, 6, 16
_WIDTH, _HEIGHT = 860.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 60.0, 230.0, 12.0, 36.0


def page(diagnosis: Diagnosis) -> str:
    return render("diagnosis_page.html", _content(diagnosis))


def fragment(diagnosis: Diagnosis) -> str:
    return render("diagnosis.html", _content(diagnosis))


def _content(diagnosis: Diagnosis) -> dict[str, Any]:
    rows = diagnosis.rows[:MAX_ROWS]
    omitted = len(diagnosis) - len(rows)
    return {
        "title": f"Diagnosis of {count(len(diagnosis), 'row')}",
        "diagnosis": diagnosis,
        "counts": _counts(diagnosis),
        "kinds": _first_of_each(diagnosis),
        "rows": [
            (
                row,
                *([*by_kind(its)] for its in by_reading(row.findings)),
                _path(row.path),
                [*map(_profile, row.profiles[:MAX_PROFILES])],
            )
            for row in rows
        ],
        "omitted": count(omitted, "further row") if omitted else "",
    }


def _largest(path: BandwidthPath, most: int) -> list[int]:
    """Return the features with the largest coefficients at any bandwidth, at most one for each colour."""
    sizes = np.nanmax(np.abs(np.nan_to_num(path.values)), axis=0)
    order = np.argsort(-sizes, kind="stable")[: min(most, len(COLOURS))]
    return [int(j) for j in order if sizes[j] > 0]


def _path(path: BandwidthPath) -> dict[str, Any]:
    from matplotlib.ticker import MaxNLocator

    finite = np.isfinite(path.bandwidths)
    x, chosen = path.bandwidths[finite], _largest(path, MAX_LINES)
    values, reach = path.values[finite][:, chosen], CONFIDENCE * path.errors[finite][:, chosen]
    reach = np.where(np.isfinite(reach), reach, 0.0)
    low, high = float(np.nanmin(values - reach, initial=0)), float(np.nanmax(values + reach, initial=0))
    across = Scale(float(np.log(x[0])), float(np.log(x[-1])), _LEFT, _WIDTH - _RIGHT)
    up = Scale(low, high, _HEIGHT - _BOTTOM, _TOP)
    xs = across.positions(np.log(x))
    ends = [up.position(v[np.isfinite(v)][-1]) for v in values.T]
    ticks = MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _LEFT,
        "right": _WIDTH - _RIGHT,
        "bottom": _HEIGHT - _BOTTOM,
        "top": _TOP,
        "zero": up.position(0.0),
        "current": across.position(np.log(path.bandwidth)) if np.isfinite(path.bandwidth) else None,
        "bandwidth": number(path.bandwidth, 3),
        "xticks": [(across.position(np.log(t)), number(t, 2)) for t in log_ticks(x[0], x[-1])],
        "yticks": [(up.position(t), number(t, 3)) for t in ticks if low <= t <= high],
        "lines": [
            {
                "colour": colour,
                "points": _points(xs, up.positions(v)),
                "band": _band(xs, up.positions(v - r), up.positions(v + r)) if (r > 0).any() else "",
                "end": end,
                "label_at": label,
                "label": shorten(path.row.conditions[j], 32),
                "title": one_line(path.row.conditions[j]),
            }
            for j, colour, v, r, end, label in zip(
                chosen, COLOURS, values.T, reach.T, ends, spread_labels(ends, 15.0), strict=False
            )
        ],
    }


def _points(x: Floats, y: Floats) -> str:
    finite = np.isfinite(y)
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[finite], y[finite], strict=True))


def _band(x: Floats, lower: Floats, upper: Floats) -> str:
    x, lower, upper = (a[np.isfinite(lower) & np.isfinite(upper)] for a in (x, lower, upper))
    return f"{_points(x, lower)} {_points(x[::-1], upper[::-1])}"


def _profile(profile: Profile) -> dict[str, Any]:
    average = float(profile.probability @ profile.mean)
    # the most frequent cells, the instance's among them, in their order
    order = np.argsort(-profile.probability, kind="stable").tolist()
    cells = sorted([profile.current, *(b for b in order if b != profile.current)][:MAX_CELLS])
    lower, upper = profile.mean - CONFIDENCE * profile.error, profile.mean + CONFIDENCE * profile.error
    scale = Scale(min(lower.min(), average), max(upper.max(), average), 2.0, 98.0)
    omitted = len(profile.texts) - len(cells)
    explained = profile.explained / profile.between if profile.between > 0 else 0.0
    return {
        "name": one_line(profile.name),
        "coef": difference(profile.coef),
        "explained": f"{explained:.0%}",
        "center": scale.position(average),
        "cells": [
            {
                "text": without_name(one_line(profile.texts[b]), one_line(profile.name)),
                "current": b == profile.current,
                "bar": scale.between(average, profile.mean[b]),
                "whisker": scale.between(lower[b], upper[b]) if profile.error[b] > 0 else None,
                "mean": number(profile.mean[b]),
            }
            for b in cells
        ],
        "omitted": count(omitted, "rarer cell") if omitted else "",
    }


# -- bandwidths and profiles with matplotlib -----------------------------------------------------------------


@dataclass(frozen=True)
class DiagnosisPlots:
    """The pictures of one diagnosis; they take ``ax=``, return it and show nothing."""

    diagnosis: Diagnosis

    def bandwidth(self, row: int = 0, *, ax: Axes | None = None, max_features: int = 6) -> Axes:
        """Draw the coefficients of one row at other bandwidths, of the features with the largest ones.

        Bands reach 1.96 standard errors to each side where the path is sampled.
        """
        return draw_path(self.diagnosis.rows[row].path, ax, max_features)

    def profile(self, feature: str | None = None, row: int = 0, *, ax: Axes | None = None) -> Axes:
        """Draw the mean of the model in each cell of a feature, by default the one that hides most.

        Raises
        ------
        InputError
            If the feature has no profile: it is not cut into cells, or not in this diagnosis.
        """
        profiles = self.diagnosis.rows[row].profiles
        profile = next((p for p in profiles if feature in (None, p.name)), None)
        if profile is None:
            raise InputError(
                f"there is no profile of {feature!r}; there are {[profile.name for profile in profiles]}"
            )
        axes = axes_or_new(ax, (6.5, 1.2 + 0.32 * len(profile.texts)))
        positions = np.arange(len(profile.texts))
        average = float(profile.probability @ profile.mean)
        colours = [FULL if b == profile.current else _OTHER_CELL for b in positions]
        axes.barh(positions, profile.mean - average, left=average, color=colours, height=0.7, zorder=2)
        if (profile.error > 0).any():
            error_bars(axes, profile.mean, positions, xerr=CONFIDENCE * profile.error)
        axes.axvline(average, color="#666666", linewidth=0.8)
        axes.set_yticks(positions, labels=[shorten(text, 40) for text in profile.texts], parse_math=False)
        axes.invert_yaxis()
        axes.set_xlabel("average of the model in the cell (dark: the row's)", fontsize=9)
        set_title(axes, f"{shorten(profile.name, 40)}: coefficient {number(profile.coef, 3)}")
        plain_frame(axes, 8.5)
        return axes


_OTHER_CELL = "#b9c3cf"


def draw_path(path: BandwidthPath, ax: Axes | None = None, max_features: int = 6) -> Axes:
    axes = axes_or_new(ax, (7.5, 4.2))
    finite = np.isfinite(path.bandwidths)
    x = path.bandwidths[finite]
    chosen = _largest(path, max_features)
    ends = []
    for j, colour in zip(chosen, COLOURS, strict=False):
        y, reach = path.values[finite, j], CONFIDENCE * path.errors[finite, j]
        axes.plot(x, y, color=colour, linewidth=1.8, zorder=3)
        if (reach > 0).any():
            drawn = np.isfinite(reach)
            low, high = (y - reach)[drawn], (y + reach)[drawn]
            axes.fill_between(x[drawn], low, high, color=colour, alpha=0.18, linewidth=0)
        ends.append(float(y[np.isfinite(y)][-1]))
    low, high = axes.get_ylim()
    names = [shorten(path.row.conditions[j], 30) for j in chosen]
    _name_ends(axes, x, spread_labels(ends, 0.055 * (high - low)), names, 8.5)
    _bandwidth_axis(axes, x, "the explanation's")
    axes.axhline(0.0, color="#666666", linewidth=0.8)
    if np.isfinite(path.bandwidth):
        axes.axvline(path.bandwidth, color="#666666", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_ylabel("coefficient", fontsize=9)
    set_title(axes, f"{shorten(path.row.title or path.row.output, 40)}: coefficients by bandwidth")
    plain_frame(axes, 8.5)
    return axes


def _name_ends(axes: Axes, x: Floats, heights: list[float], names: Sequence[str], size: float) -> None:
    for name, colour, y in zip(names, COLOURS, heights, strict=False):
        axes.text(x[-1] * 1.06, y, name, color=colour, fontsize=size, va="center", parse_math=False)


def _bandwidth_axis(axes: Axes, bandwidths: Floats, dashed: str) -> None:
    low, high = float(bandwidths[0]), float(bandwidths[-1])
    ticks = log_ticks(low, high)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_xticks(ticks, labels=[number(t, 2) for t in ticks])
    axes.minorticks_off()
    axes.set_xlabel(f"bandwidth ν (dashed: {dashed})", fontsize=9)


# -- a summary of many rows ----------------------------------------------------------------------------------

MAX_FEATURES = 15
_BARS = 16
_GAP = 3  # spaces between two columns of the table
_SHORTEST = 10  # characters of a name


def summary_table(summary: Summary, width: int) -> Group:
    """Return table and remarks; a narrow table has no bars, then no quantiles: names are kept."""
    order = summary.order()[:MAX_FEATURES]
    largest = summary.mean_abs.max(initial=0.0)
    shares = [summary.mean_abs[j] / largest if largest > 0 else 0.0 for j in order]
    columns: dict[str, list[Any]] = {
        "feature": [Text(shorten(summary.names[j], 32)) for j in order],
        **_summary_columns(summary, order),
        "": [Text("█" * round(_BARS * share), style="grey62") for share in shares],
    }

    def width_of(names: Iterable[str]) -> int:
        return sum(max(len(name), *map(len, columns[name])) + _GAP for name in names)

    for name in ("", "10 %", "90 %"):
        if width_of(columns) > width:
            del columns[name]
    # numbers are never cut
    room = max(_SHORTEST, width - width_of(name for name in columns if name != "feature") - _GAP)
    columns["feature"] = [Text(shorten(text.plain, room)) for text in columns["feature"]]
    grid = numbers_table()
    for name in columns:
        grid.add_column(name, justify="left" if name in ("feature", "") else "right", no_wrap=True)
    for cells in zip(*columns.values(), strict=True):
        grid.add_row(*cells)
    head = Text.assemble((one_line(summary.output), "bold"), f": {_summarised(summary)}")
    return Group(head, grid, *_summary_remarks(summary, len(order)))


def summary_card(summary: Summary) -> Card:
    order = summary.order()[:MAX_FEATURES]
    columns = {"feature": [one_line(summary.names[j]) for j in order], **_summary_columns(summary, order)}
    return Card(
        title=f"{summary.output}: {_summarised(summary)}",
        columns=list(columns),
        rows=[list(cells) for cells in zip(*columns.values(), strict=True)],
        remarks=[text.plain for text in _summary_remarks(summary, len(order))],
    )


def _summarised(summary: Summary) -> str:
    points = ", in percentage points" if summary.unit != 1.0 else ""
    return f"{summary.of} of {count(summary.rows, 'row')}{points}"


def _summary_columns(summary: Summary, order: list[int]) -> dict[str, list[str]]:
    # a standard deviation over rows is 0 where it is rounding
    constant = [is_constant(float(summary.spread[j]) ** 2, summary.mean_abs[j]) for j in order]
    unit, deviations = summary.unit, np.where(constant, 0.0, summary.spread[order])
    sizes, spreads, means, lows, highs = (
        signed_column(unit * its, 3, size=unit * float(summary.mean_abs.max(initial=0.0)))
        for its in (
            *(summary.mean_abs[order], deviations),
            *(summary.mean[order], summary.low[order], summary.high[order]),
        )
    )
    size, mean, above = "mean |β|", "mean β", "β > 0"
    if summary.of == "contributions":
        size, mean, above = "mean |contribution|", "mean", "> 0"
    return {
        size: [text.removeprefix("+") for text in sizes],
        "spread": [text.removeprefix("+") for text in spreads],
        mean: means,
        "10 %": lows,
        "90 %": highs,
        above: [f"{summary.positive[j]:.0%}" for j in order],
    }


def _summary_remarks(summary: Summary, shown: int) -> Iterator[Text]:
    if shown < len(summary.names):
        yield Text(f"{len(summary.names) - shown} smaller features in .to_dict()", style="dim")
    pick = summary.pick
    yield Text.assemble(
        ("rows to look at: ", "bold"),
        ", ".join(one_line(str(name)) for name in pick.ids or pick.rows),
        (f"  (they show features with {pick.coverage:.0%} of all importance; ", "dim"),
        (f"the best {count(len(pick.rows), 'row')} show{'s' * (len(pick.rows) == 1)} ", "dim"),
        (f"at most {pick.bound:.0%})", "dim"),
    )
    for code, rows in summary.warnings.items():
        yield Text(f"{rows:,} of {count(summary.rows, 'row')}, {code!r}: {CODES.get(code, code)}")
    for cohort in summary.cohorts:
        top = np.argsort(-cohort.mean_abs, kind="stable")[:3]
        sizes, means = (
            signed_column([summary.unit * its[j] for j in top], 3) for its in (cohort.mean_abs, cohort.mean)
        )
        largest = ", ".join(
            f"{one_line(summary.names[j])} {size.removeprefix('+')} (mean {mean})"
            for j, size, mean in zip(top, sizes, means, strict=True)
        )
        levels = [number(summary.unit * its, 3) for its in (cohort.prediction, cohort.base)]
        stated = "mean prediction {}, usual {}" if summary.of == "contributions" else "mean prediction {}"
        yield Text.assemble(
            (f"{shorten(cohort.name, 40)}", "bold"),
            f" ({count(cohort.rows, 'row')}, {stated.format(*levels)}): {largest}",
        )


@dataclass(frozen=True)
class SummaryPlots:
    """The pictures of one summary; they take ``ax=``, return it and show nothing."""

    summary: Summary

    def importance(self, *, ax: Axes | None = None, max_features: int = 12) -> Axes:
        """Draw mean sizes as bars, with one standard deviation over rows to each side."""
        summary, order = self.summary, self.summary.order()[:max_features]
        axes = axes_or_new(ax, (6.5, 1.3 + 0.34 * len(order)))
        positions, sizes, spread = np.arange(len(order)), summary.mean_abs[order], summary.spread[order]
        axes.barh(positions, sizes, color=FULL, height=0.66, zorder=2)
        reach = [np.minimum(spread, sizes), spread]
        error_bars(axes, sizes, positions, xerr=reach, elinewidth=1.0, capsize=2.5)
        label = f"mean |{summary.of[:-1]}|, lines: one standard deviation over rows"
        self._label(axes, order, label, f"{summary.rows:,} rows")
        return axes

    def cohorts(self, *, ax: Axes | None = None, max_features: int = 10) -> Axes:
        """Draw mean sizes of each cohort, one dot a cohort.

        Raises
        ------
        InputError
            If the summary has no cohorts.
        """
        summary, order = self.summary, self.summary.order()[:max_features]
        if not summary.cohorts:
            raise InputError('there are no cohorts to draw: limes.summary(explanation, by="a feature")')
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
        self._label(axes, order, f"mean |{summary.of[:-1]}| of a cohort", "cohorts")
        legend(axes, loc="lower right")
        return axes

    def _label(self, axes: Axes, order: list[int], label: str, title: str) -> None:
        names = [shorten(self.summary.names[j], 36) for j in order]
        axes.set_yticks(np.arange(len(names)), labels=names, parse_math=False, fontsize=10)
        axes.invert_yaxis()
        plain_frame(axes, 9)
        if self.summary.unit != 1.0:
            label = f"{label}, percentage points"
            axes.xaxis.set_major_formatter(lambda value, _: number(100.0 * value, 6))
        axes.set_xlabel(label, fontsize=9)
        set_title(axes, f"{shorten(self.summary.output, 36)}: {title}")
