"""A diagnosis in the terminal: findings first, then the numbers that are always told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import StringIO
from typing import TYPE_CHECKING

from limes.show.wording import count, error, number, one_line

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, Group, RenderableType
    from rich.table import Table
    from rich.text import Text

    from limes.diagnostics.diagnosis import Diagnosis, RowDiagnosis
    from limes.diagnostics.finding import Finding

_WIDEST = 110
_STYLES = {"warning": "bold dark_orange", "note": "bold dodger_blue1"}
_SILENT = "Nothing was found that would make this explanation misleading."


def one_line_summary(diagnosis: Diagnosis) -> str:
    """Return size, and how many findings there are."""
    severities = [finding.severity for finding in diagnosis.findings]
    counts = ", ".join(count(severities.count(s), s) for s in ("warning", "note"))
    return f"<Diagnosis: {count(len(diagnosis), 'row')}, {counts}, {diagnosis.method}>"


def plain_text(diagnosis: Diagnosis) -> str:
    """Return what is printed, without colours."""
    from rich.console import Console

    console = Console(file=StringIO(), force_terminal=False, color_system=None)
    console.width = min(console.width, _WIDEST)
    with console.capture() as captured:
        console.print(_printed(diagnosis))
    text = "\n".join(line.rstrip() for line in captured.get().splitlines())
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def printed(diagnosis: Diagnosis, options: ConsoleOptions) -> RenderableType:
    """Return what rich prints."""
    from rich.text import Text

    if options.ascii_only:
        return Text(plain_text(diagnosis).encode("ascii", "replace").decode("ascii"))
    return _printed(diagnosis)


def _printed(diagnosis: Diagnosis) -> Group:
    from rich.console import Group

    if len(diagnosis) == 1:
        return Group(*_single(diagnosis.rows[0], diagnosis.method))
    return Group(*_several(diagnosis))


def _single(row: RowDiagnosis, method: str) -> Iterator[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    facts = row.facts
    yield Text.assemble(
        (f"row {row.number}, {one_line(facts.output)}", "bold"),
        f": prediction {number(facts.prediction)}, surrogate {number(facts.surrogate)} ({method})",
    )
    yield Text()
    if not row.findings:
        yield Text(_SILENT)
    for finding in row.findings:
        yield _headline(finding)
        yield Padding(Text(one_line(finding.sentence)), (0, 0, 0, 2))
        yield Padding(Text(f"→ {one_line(finding.advice)}", style="italic"), (0, 0, 1, 2))
    yield _measures(row)


def _headline(finding: Finding) -> Text:
    from rich.text import Text

    uncertain = f" {error(finding.error)}" if finding.error > 0 else ""
    return Text.assemble(
        (f"{finding.severity}: {finding.kind}", _STYLES[finding.severity]),
        "  ",
        (f"{number(finding.number)}{uncertain}", "bold"),
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
        uncertain = f" {error(measure.error)}" if measure.error > 0 else ""
        table.add_row(
            Text(measure.name),
            Text(f"{number(measure.value, 3)}{uncertain}"),
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
    if not counts:
        yield Text(_SILENT)
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
    silent = sum(not row.findings for row in diagnosis.rows)
    yield Text(f"numbers are rows of {n:,}; {silent:,} have no finding. One row: diagnosis[i]", style="dim")


def first_of_each(diagnosis: Diagnosis) -> list[tuple[str, int, Finding]]:
    """Kind, row and finding: of each kind the first of its worst severity, kinds with warnings first."""
    found: dict[str, tuple[int, Finding]] = {}
    for row in diagnosis.rows:
        for finding in row.findings:
            known = found.get(finding.kind)
            if known is None or (known[1].severity == "note" and finding.severity == "warning"):
                found[finding.kind] = row.number, finding
    counts = diagnosis.counts()
    order = sorted(
        found, key=lambda kind: (-counts.get((kind, "warning"), 0), -counts.get((kind, "note"), 0))
    )
    return [(kind, *found[kind]) for kind in order]
