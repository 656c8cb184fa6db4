"""A diagnosis in the terminal, as HTML and as matplotlib pictures; and the curves of a suggested bandwidth.

Findings come first, then what is always reported. Pictures of pages are SVG that the template writes from
positions computed here; it escapes every text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from limes._arrays import Floats
from limes._diagnostics.bandwidth import CURVES
from limes._explanation.wording import (
    CONFIDENCE,
    count,
    difference,
    estimate,
    number,
    one_line,
    shorten,
    without_name,
)
from limes._show.axes import (
    COLOURS,
    FULL,
    axes_or_new,
    bandwidth_axis,
    ink,
    largest,
    log_ticks,
    plain_frame,
    spread_labels,
    ticks,
)
from limes._show.html import render
from limes.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from limes._diagnostics.bandwidth import BandwidthPath, Suggestion
    from limes._diagnostics.diagnosis import Diagnosis, RowDiagnosis
    from limes._diagnostics.finding import Finding
    from limes._diagnostics.tables import Profile

_STYLES = {"warning": "bold dark_orange", "note": "bold dodger_blue1"}
# The measures that are always printed
_PRINTED = ("fidelity R²", "local error")


def drawn(diagnosis: Diagnosis) -> Group:
    """Return the findings of one row, or how many rows have which, for rich to print."""
    if len(diagnosis) == 1:
        return Group(*_single(diagnosis.rows[0], diagnosis.method))
    return Group(*_several(diagnosis))


def _single(row: RowDiagnosis, method: str) -> Iterator[RenderableType]:
    e = row.explanation
    yield Text.assemble(
        (e.heading, "bold"),
        f": prediction {number(e.prediction)}, surrogate {number(e.surrogate)} ({method})",
    )
    yield Text()
    yield Text(row.verdict)
    yield Text()
    for finding, others in by_kind(row.findings):
        yield _headline(finding)
        yield Padding(Text(one_line(finding.sentence)), (0, 0, 0, 2))
        if others:
            yield Padding(Text(one_line(also(others))), (0, 0, 0, 2))
        yield Padding(Text(f"→ {one_line(finding.advice)}", style="italic"), (0, 0, 1, 2))
    yield _measures(row)
    rest = len(row.measures) - sum(measure.name in _PRINTED for measure in row.measures)
    yield Text(f"{count(rest, 'further measure')} in .rows[0].measures and to_html()", style="dim")


def by_kind(findings: Sequence[Finding]) -> list[tuple[Finding, list[Finding]]]:
    """Return the first finding of each kind, and the others of that kind; warnings come first."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.kind, []).append(finding)
    return [(group[0], group[1:]) for group in groups.values()]


def also(findings: Sequence[Finding]) -> str:
    """Return features and numbers of further findings of one kind."""
    parts = [f"{', '.join(f.features) or f.kind} ({number(f.number, 3)})" for f in findings]
    return f"The same holds for {', '.join(parts)}."


def _headline(finding: Finding) -> Text:
    return Text.assemble(
        (f"{finding.severity}: {finding.kind}", _STYLES[finding.severity]),
        "  ",
        (" ".join(filter(None, estimate(finding.number, finding.error))), "bold"),
        (f" {finding.unit}", "dim"),
    )


def _measures(row: RowDiagnosis) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("")
    for measure in row.measures:
        if measure.name not in _PRINTED:
            continue
        table.add_row(
            Text(measure.name),
            Text(" ".join(filter(None, estimate(measure.value, measure.error)))),
            Text(one_line(measure.remark), style="dim"),
        )
    return table


def _several(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    yield Text(f"{count(len(diagnosis), 'row')}, {diagnosis.method}", style="bold")
    counts = diagnosis.counts()
    yield Text(diagnosis.verdict)
    if not counts:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_lines=True)
    table.add_column("finding", no_wrap=True)
    table.add_column("warnings", justify="right")
    table.add_column("notes", justify="right")
    table.add_column("the first, and what to do")
    for kind, row, finding in first_of_each(diagnosis):
        text = Text.assemble(
            (f"{row}: ", "bold"), one_line(finding.sentence), "\n", (f"→ {finding.advice}", "italic")
        )
        many = [counts.get((kind, severity), 0) for severity in ("warning", "note")]
        table.add_row(
            Text(kind, style=_STYLES[finding.severity]), *(Text(str(m) if m else "") for m in many), text
        )
    yield table
    yield Text("Rows are named as in the explanation. One row, by its position: diagnosis[i]", style="dim")


def first_of_each(diagnosis: Diagnosis) -> list[tuple[str, str, Finding]]:
    """Return the kinds of findings, those with warnings first, with the first row of the worst severity."""
    first: dict[str, tuple[str, Finding]] = {}
    for row in diagnosis.rows:
        for finding in row.findings:
            earlier = first.get(finding.kind)
            if earlier is None or (earlier[1].severity == "note" and finding.severity == "warning"):
                first[finding.kind] = row.explanation.label, finding
    counts = diagnosis.counts()
    order = sorted(
        first, key=lambda kind: (-counts.get((kind, "warning"), 0), -counts.get((kind, "note"), 0))
    )
    return [(kind, *first[kind]) for kind in order]


# -- as a page -----------------------------------------------------------------------------------------------

MAX_ROWS = 20
MAX_LINES, MAX_PROFILES, MAX_CELLS = 6, 6, 16
_WIDTH, _HEIGHT = 860.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 60.0, 230.0, 12.0, 36.0


def page(diagnosis: Diagnosis) -> str:
    """Return a page that needs nothing but a browser."""
    return render("diagnosis_page.html", _content(diagnosis))


def fragment(diagnosis: Diagnosis) -> str:
    """Return a part of a page whose style touches nothing outside itself."""
    return render("diagnosis.html", _content(diagnosis))


def _content(diagnosis: Diagnosis) -> dict[str, Any]:
    rows = diagnosis.rows[:MAX_ROWS]
    omitted = len(diagnosis) - len(rows)
    return {
        "title": f"Diagnosis of {count(len(diagnosis), 'row')}",
        "diagnosis": diagnosis,
        "counts": diagnosis.counts(),
        "kinds": first_of_each(diagnosis),
        "also": also,
        "rows": [
            (row, by_kind(row.findings), _path(row.path), [*map(_profile, row.profiles[:MAX_PROFILES])])
            for row in rows
        ],
        "omitted": count(omitted, "further row") if omitted else "",
    }


def _path(path: BandwidthPath) -> dict[str, Any]:
    finite = np.isfinite(path.bandwidths)
    x, chosen = path.bandwidths[finite], largest(path, MAX_LINES)
    values, reach = path.values[finite][:, chosen], CONFIDENCE * path.errors[finite][:, chosen]
    reach = np.where(np.isfinite(reach), reach, 0.0)
    low, high = np.nanmin(values - reach, initial=0.0), np.nanmax(values + reach, initial=0.0)
    across = _Scale(float(np.log(x[0])), float(np.log(x[-1])), _LEFT, _WIDTH - _RIGHT)
    up = _Scale(float(low), float(high), _HEIGHT - _BOTTOM, _TOP)
    xs = across.positions(np.log(x))
    ends = [up.position(v[np.isfinite(v)][-1]) for v in values.T]
    labels = spread_labels(ends, 15.0)
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
        "yticks": [(up.position(t), number(t, 3)) for t in ticks(low, high)],
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
                chosen, COLOURS, values.T, reach.T, ends, labels, strict=False
            )
        ],
    }


class _Scale:
    """The map from numbers to positions in a picture."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self._low, self._start = low, start
        self._slope = (end - start) / ((high - low) or 1.0)

    def positions(self, values: Floats) -> Floats:
        return np.asarray(self._start + self._slope * (values - self._low))

    def position(self, value: float) -> float:
        return round(float(self.positions(np.asarray(value))), 1)


def _points(x: Floats, y: Floats) -> str:
    finite = np.isfinite(y)
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[finite], y[finite], strict=True))


def _band(x: Floats, lower: Floats, upper: Floats) -> str:
    x, lower, upper = (a[np.isfinite(lower) & np.isfinite(upper)] for a in (x, lower, upper))
    return f"{_points(x, lower)} {_points(x[::-1], upper[::-1])}"


def _profile(profile: Profile) -> dict[str, Any]:
    center = float(profile.probability @ profile.mean)
    cells = _most_frequent(profile)
    reach = CONFIDENCE * profile.error
    ends = np.concatenate([profile.mean - reach, profile.mean + reach, [center]])
    scale = _Scale(float(ends.min()), float(ends.max()), 2.0, 98.0)
    omitted = len(profile.texts) - len(cells)
    explained = profile.explained / profile.between if profile.between > 0 else 0.0
    return {
        "name": one_line(profile.name),
        "coef": difference(profile.coef),
        "explained": f"{explained:.0%}",
        "center": scale.position(center),
        "average": number(center),
        "cells": [
            {
                "text": without_name(one_line(profile.texts[b]), one_line(profile.name)),
                "current": b == profile.current,
                "x": min(scale.position(center), scale.position(profile.mean[b])),
                "width": round(abs(scale.position(profile.mean[b]) - scale.position(center)), 1),
                "whisker": (
                    scale.position(profile.mean[b] - reach[b]),
                    scale.position(profile.mean[b] + reach[b]),
                )
                if reach[b] > 0
                else None,
                "mean": number(profile.mean[b]),
            }
            for b in cells
        ],
        "omitted": count(omitted, "rarer cell") if omitted else "",
    }


def _most_frequent(profile: Profile) -> list[int]:
    """Return the most frequent cells, the instance's among them, in their order."""
    order = np.argsort(-profile.probability, kind="stable").tolist()
    first = [profile.current, *(b for b in order if b != profile.current)]
    return sorted(first[:MAX_CELLS])


# -- with matplotlib -----------------------------------------------------------------------------------------


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
        return _draw_profile(profile, ax)


_OTHER_CELL = "#b9c3cf"


def draw_path(path: BandwidthPath, ax: Axes | None = None, max_features: int = 6) -> Axes:
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
    title = f"{shorten(path.row.title or path.row.output, 40)}: coefficients by bandwidth"
    axes.set_title(title, loc="left", fontsize=10.5, parse_math=False)
    plain_frame(axes, 8.5)
    return axes


def _name_lines(axes: Axes, path: BandwidthPath, chosen: list[int], ends: list[float], x: float) -> None:
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


def _draw_profile(profile: Profile, ax: Axes | None = None) -> Axes:
    axes = axes_or_new(ax, (6.5, 1.2 + 0.32 * len(profile.texts)))
    positions = np.arange(len(profile.texts))
    center = float(profile.probability @ profile.mean)
    colours = [FULL if b == profile.current else _OTHER_CELL for b in positions]
    axes.barh(positions, profile.mean - center, left=center, color=colours, height=0.7, zorder=2)
    if (profile.error > 0).any():
        axes.errorbar(
            profile.mean, positions, xerr=CONFIDENCE * profile.error, fmt="none", ecolor=ink(), zorder=3
        )
    axes.axvline(center, color="#666666", linewidth=0.8)
    axes.set_yticks(positions, labels=[shorten(text, 40) for text in profile.texts], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel("average of the model in the cell (dark: the row's)", fontsize=9)
    title = f"{shorten(profile.name, 40)}: coefficient {number(profile.coef, 3)}"
    axes.set_title(title, loc="left", fontsize=10.5, parse_math=False)
    plain_frame(axes, 8.5)
    return axes


def draw_suggestion(suggestion: Suggestion, ax: Axes | None = None) -> Axes:
    """Draw the curves over ν."""
    axes = axes_or_new(ax, (7.0, 4.0))
    x = suggestion.bandwidths
    curves = [np.clip(getattr(suggestion, name), 0.0, 1.0) for name in CURVES]
    for curve, colour in zip(curves, COLOURS, strict=False):
        axes.plot(x, curve, color=colour, linewidth=1.8)
    ends = [float(curve[np.isfinite(curve)][-1]) for curve in curves]
    for name, colour, y in zip(CURVES, COLOURS, spread_labels(ends, 0.055), strict=False):
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
