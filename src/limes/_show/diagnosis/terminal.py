"""A diagnosis in the terminal and as matplotlib pictures: findings first, then what is always reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limes._explanation.wording import CONFIDENCE, count, estimate, number, one_line, shorten
from limes._show.axes import (
    COLOURS,
    FULL,
    axes_or_new,
    bandwidth_axis,
    ink,
    largest,
    plain_frame,
    spread_labels,
)
from limes._show.terminal import ascii_text, captured

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from rich.console import ConsoleOptions, Group, RenderableType
    from rich.table import Table
    from rich.text import Text

    from limes._diagnostics.bandwidth import BandwidthPath
    from limes._diagnostics.cancellation import Profile
    from limes._diagnostics.diagnosis import Diagnosis, RowDiagnosis
    from limes._diagnostics.finding import Finding


_WIDEST = 110
_STYLES = {"warning": "bold dark_orange", "note": "bold dodger_blue1"}
# The measures that are always printed
_PRINTED = ("fidelity R²", "local error")


def one_line_summary(diagnosis: Diagnosis) -> str:
    """Return the number of rows and of findings."""
    severities = [finding.severity for finding in diagnosis.findings]
    counts = ", ".join(count(severities.count(s), s) for s in ("warning", "note"))
    return f"<Diagnosis: {count(len(diagnosis), 'row')}, {counts}, {diagnosis.method}>"


def plain_text(diagnosis: Diagnosis) -> str:
    """Return the printed text, without colours."""
    return captured(lambda _: _printed(diagnosis), _WIDEST)


def printed(diagnosis: Diagnosis, options: ConsoleOptions) -> RenderableType:
    """Return the renderable that rich prints."""
    return ascii_text(plain_text(diagnosis)) if options.ascii_only else _printed(diagnosis)


def _printed(diagnosis: Diagnosis) -> Group:
    from rich.console import Group

    if len(diagnosis) == 1:
        return Group(*_single(diagnosis.rows[0], diagnosis.method))
    return Group(*_several(diagnosis))


def _single(row: RowDiagnosis, method: str) -> Iterator[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    e = row.explanation
    yield Text.assemble(
        (f"row {row.number}, {e.title or one_line(e.output)}", "bold"),
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
    from rich.text import Text

    return Text.assemble(
        (f"{finding.severity}: {finding.kind}", _STYLES[finding.severity]),
        "  ",
        (" ".join(filter(None, estimate(finding.number, finding.error))), "bold"),
        (f" {finding.unit}", "dim"),
    )


def _measures(row: RowDiagnosis) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

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
    from rich import box
    from rich.table import Table
    from rich.text import Text

    n = len(diagnosis)
    yield Text(f"{count(n, 'row')}, {diagnosis.method}", style="bold")
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
            (f"row {row}: ", "bold"), one_line(finding.sentence), "\n", (f"→ {finding.advice}", "italic")
        )
        many = [counts.get((kind, severity), 0) for severity in ("warning", "note")]
        table.add_row(
            Text(kind, style=_STYLES[finding.severity]), *(Text(str(m) if m else "") for m in many), text
        )
    yield table
    yield Text(f"Numbers are rows of {n:,}. One row: diagnosis[i]", style="dim")


def first_of_each(diagnosis: Diagnosis) -> list[tuple[str, int, Finding]]:
    """Return the kinds of findings, those with warnings first, with the first row of the worst severity."""
    first: dict[str, tuple[int, Finding]] = {}
    for row in diagnosis.rows:
        for finding in row.findings:
            earlier = first.get(finding.kind)
            if earlier is None or (earlier[1].severity == "note" and finding.severity == "warning"):
                first[finding.kind] = row.number, finding
    counts = diagnosis.counts()
    order = sorted(
        first, key=lambda kind: (-counts.get((kind, "warning"), 0), -counts.get((kind, "note"), 0))
    )
    return [(kind, *first[kind]) for kind in order]


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


def draw_profile(profile: Profile, ax: Axes | None = None) -> Axes:
    """Draw the mean of the model in each cell of one profile."""
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
