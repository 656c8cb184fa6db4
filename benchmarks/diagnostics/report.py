"""A table of what was measured, for its page."""

from __future__ import annotations

from benchmarks.diagnostics.run import KINDS


def text(result: list[dict]) -> str:
    """CPU seconds, and rows with warnings + notes of each kind."""
    head = f"| table | model | explain, CPU s | diagnose, CPU s | {' | '.join(KINDS)} |"
    lines = [head, "|---" * (4 + len(KINDS)) + "|"]
    for case in result:
        cells = (_counts(case["warnings"][kind], case["notes"][kind]) for kind in KINDS)
        lines.append(
            f"| {case['table']} | {case['model']} | {case['explain_s']:.1f} | {case['diagnose_s']:.1f} "
            f"| {' | '.join(cells)} |"
        )
    return "\n".join(lines)


def _counts(warnings: int, notes: int) -> str:
    return f"{warnings} + {notes}" if warnings or notes else ""
