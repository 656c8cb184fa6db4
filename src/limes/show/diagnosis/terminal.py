"""A diagnosis in the terminal: findings first, then the numbers that are always reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limes.explanation.wording import count, error, number, one_line
from limes.show.console import ascii_text, captured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import ConsoleOptions, Group, RenderableType
    from rich.table import Table
    from rich.text import Text

    from limes.diagnostics.diagnosis import Diagnosis, RowDiagnosis
    from limes.diagnostics.finding import Finding

_WIDEST = 110
_STYLES = {"warning": "bold dark_orange", "note": "bold dodger_blue1"}
_SILENT = "Nothing was found that would make this explanation misleading."


def one_line_summary(diagnosis: Diagnosis) -> str:
    """Return the number of rows and of findings."""
    severities = [finding.severity for finding in diagnosis.findings]
    counts = ", ".join(count(severities.count(s), s) for s in ("warning", "note"))
    return f"<Diagnosis: {count(len(diagnosis), 'row')}, {counts}, {diagnosis.method}>"


def plain_text(diagnosis: Diagnosis) -> str:
    """Return what is printed, without colours."""
    return captured(lambda _: _printed(diagnosis), _WIDEST)


def printed(diagnosis: Diagnosis, options: ConsoleOptions) -> RenderableType:
    """Return what rich prints."""
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
        (f"row {row.number}, {one_line(e.output)}", "bold"),
        f": prediction {number(e.prediction)}, surrogate {number(e.surrogate)} ({method})",
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
