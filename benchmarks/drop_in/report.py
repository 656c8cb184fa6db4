"""A table of what was measured, for its page."""

from __future__ import annotations


def text(result: dict) -> str:
    """Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    lines = ["| figure | | goal | |", "|---|---|---|---|"]
    lines += [_line(name, value, result["goals"].get(name)) for name, value in result["figures"].items()]
    return "\n\n".join([f"Machine: {result['machine']}. {versions}.", "\n".join(lines)])


def _line(name: str, value: float, goal: float | None) -> str:
    if goal is None:
        return f"| {name} | {value:.3g} | | |"
    return f"| {name} | {value:.3g} | {goal:g} | {'reached' if value >= goal else '**missed**'} |"
