"""A table of what was measured, for README.md."""

from __future__ import annotations

from typing import Any


def text(rows: list[dict[str, Any]]) -> str:
    """Markdown: limes' seconds and memory as shares of the pipeline's own."""
    head = "device | weights | calls | pipeline alone | limes, a pair | limes, a pipeline"
    lines = [f"| {head} |", "|---|---|---|---|---|---|"]
    for row in rows:
        alone = row["figures"]["alone"]
        cells = [row["machine"], row["precision"], f"{row['calls']:,}", _figures(alone, alone)]
        cells += [_figures(row["figures"][way], alone) for way in ("pair", "pipeline")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _figures(figures: dict[str, float], alone: dict[str, float]) -> str:
    seconds, megabytes = figures["seconds"], figures["megabytes"]
    stated = f"{seconds:.1f} s, {megabytes:,.0f} MB"
    if figures is alone:
        return stated
    return f"{stated} ({seconds / alone['seconds']:.2f}, {megabytes / alone['megabytes']:.2f})"
