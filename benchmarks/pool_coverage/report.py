"""A table of what was measured, for its page."""

from __future__ import annotations

GOAL = 0.93


def text(result: dict) -> str:
    """Markdown."""
    lines = [
        f"Machine: {result['machine']}. {result['seeds']} pools of {result['calls']:,} answers a case, "
        f"{result['rows']} rows each; a case counts pools that serve all of them.",
        "",
        "| case | bandwidth | pools | coefficients covered | differences covered | both at least 93 % |",
        "|---" * 6 + "|",
    ]
    for case in result["cases"]:
        one, other = case["coefficients"], case["differences"]
        enough = min(one["covered"], other["covered"]) >= GOAL
        lines.append(
            f"| {case['case']} | {case['bandwidth']}√d | {case['pools']} "
            f"| {one['covered']:.3f} ± {one['error']:.3f} | {other['covered']:.3f} ± {other['error']:.3f} "
            f"| {'yes' if enough else '**no**'} |"
        )
    return "\n".join(lines)
