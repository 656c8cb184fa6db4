"""Tables of what was measured, for its page."""

from __future__ import annotations

import math


def text(result: dict) -> str:
    """Markdown."""
    absent = [f"{case['case']} ({case['absent']})" for case in result["cases"] if "absent" in case]
    blocks = [
        f"Machine: {result['machine']}. {result['rows']} rows a case, {result['runs']} seeds.",
        *(_table(case) for case in result["cases"] if "absent" not in case),
    ]
    return "\n\n".join([*blocks, *([f"Absent: {'; '.join(absent)}."] if absent else [])])


def _table(case: dict) -> str:
    lines = case["lines"]
    names = list(dict.fromkeys(line["explainer"] for line in lines))
    measures = list(dict.fromkeys((line["measure"], line["better"]) for line in lines))
    result = {(line["measure"], line["explainer"]): line for line in lines}
    rows = [
        f"| {measure} ({better}) | {' | '.join(_cell(result[measure, name]) for name in names)} |"
        for measure, better in measures
    ]
    head = f"| measure (better) | {' | '.join(names)} |"
    return "\n".join(
        [f"**{case['case']} (d = {case['columns']})**\n", head, "|---" * (len(names) + 1) + "|", *rows]
    )


def _cell(line: dict) -> str:
    if not math.isfinite(line["mean"]):
        return "–"
    cell = f"{line['mean']:.3f} ± {line['error']:.3f}"
    return f"**{cell}**" if line["best"] else cell
