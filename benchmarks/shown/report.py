"""A table of what was measured, for its page."""

from __future__ import annotations

from typing import Any


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
