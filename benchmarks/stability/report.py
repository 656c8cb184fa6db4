"""A table of what was measured, for its page."""

from __future__ import annotations

GOAL = 0.05
_HEAD = "| case, d | `lime` | limes | limes, sampled | of it without a warning | below 5 % |"


def text(result: dict) -> str:
    """Markdown."""
    measured = [case for case in result["cases"] if "absent" not in case]
    absent = [f"{case['case']} ({case['absent']})" for case in result["cases"] if "absent" in case]
    lines = [_HEAD, "|---" * 6 + "|", *(_line(case) for case in measured)]
    blocks = [
        f"Machine: {result['machine']}. {result['seeds']} seeds, {result['rows']} rows a case.",
        "\n".join(lines),
    ]
    return "\n\n".join([*blocks, *([f"Absent: {'; '.join(absent)}."] if absent else [])])


def _line(case: dict) -> str:
    ours, sampled = case["limes"]["differ"], case["limes, sampled"]
    verdict = "yes" if max(ours, sampled["differ"]) < GOAL else "**no**"
    how = "exact: " if case["exact"] else ""
    return (
        f"| {case['case']}, {case['columns']} | {case['lime']['differ']:.0%} | {how}{ours:.1%} "
        f"| {sampled['differ']:.1%} | {sampled['unwarned']:.1%} | {verdict} |"
    )
