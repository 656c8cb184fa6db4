"""Write what was measured: JSON, and a table in README.md."""

from __future__ import annotations

import json
from typing import Any

from benchmarks import readme


def write(result: dict[str, Any]) -> None:
    """Both."""
    (readme.RESULTS / "shown.json").write_text(json.dumps(result, indent=1) + "\n")
    readme.replace("shown", text(result))


def text(result: dict[str, Any]) -> str:
    """Markdown."""
    head = [
        "items",
        "calls",
        "library",
        "left without the first",
        "correlation of two seeds",
        "first ten in both",
    ]
    lines = [f"| {' | '.join(head)} |", "|---|---|---|---|---|---|"]
    for row in result["rows"]:
        seeds = ["" if row[name] is None else f"{row[name]:.3f}" for name in ("correlation", "shared")]
        cells = [
            f"{row['items']} {row['part']}",
            str(row["calls"]),
            row["library"],
            f"{row['left']:.3f}",
            *seeds,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n\n".join([f"Machine: {result['machine']}.", "\n".join(lines)])
