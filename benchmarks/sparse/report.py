"""A table of what was measured, for its page."""

from __future__ import annotations

from benchmarks.sparse.run import GOALS


def text(result: dict) -> str:
    """Markdown."""
    head = "| literals | projection, ms | goal | | whole explanation, ms |"
    lines = [_line(case) for case in result["cases"]]
    return "\n".join([f"Machine: {result['machine']}.\n", head, "|---" * 5 + "|", *lines])


def _line(case: dict) -> str:
    goal = GOALS.get(case["literals"])
    verdict = "" if goal is None else "reached" if case["path"] <= goal else "**missed**"
    goal_text = "" if goal is None else f"<= {goal:g}"
    return (
        f"| {case['literals']:,} | {case['path']:.2f} | {goal_text} | {verdict} | {case['explanation']:.1f} |"
    )
