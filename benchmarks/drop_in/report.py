"""Write what was measured: JSON, and a table in README.md."""

from __future__ import annotations

import json

from benchmarks import readme


def write(result: dict) -> None:
    """Both."""
    readme.RESULTS.mkdir(exist_ok=True)
    (readme.RESULTS / "drop_in.json").write_text(json.dumps(result, indent=1) + "\n")
    readme.replace("drop_in", text(result))


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
