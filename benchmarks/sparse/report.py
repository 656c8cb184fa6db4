"""Write what was measured: JSON, and a table in README.md."""

from __future__ import annotations

import json

from benchmarks import readme
from benchmarks.sparse.run import GOALS


def write(result: dict) -> None:
    """JSON, and a table in README.md."""
    readme.RESULTS.mkdir(exist_ok=True)
    (readme.RESULTS / "sparse.json").write_text(json.dumps(result, indent=1) + "\n")
    readme.replace("sparse", text(result))


def text(result: dict) -> str:
    """Markdown."""
    head = "| literals | projection, ms | goal | | whole explanation, ms |"
    lines = [_line(case) for case in result["cases"]]
    return "\n".join([f"Machine: {result['machine']}.\n", head, "|---" * 5 + "|", *lines])


def _line(case: dict) -> str:
    goal = GOALS.get(case["literals"])
    told = "" if goal is None else "reached" if case["path"] <= goal else "**missed**"
    asked = "" if goal is None else f"<= {goal:g}"
    return f"| {case['literals']:,} | {case['path']:.2f} | {asked} | {told} | {case['explanation']:.1f} |"
