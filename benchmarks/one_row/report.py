"""A table of what was measured, for its page."""

from __future__ import annotations

import numpy as np

# What limes wants to reach against lime: CPU by its default, by its cheapest control; squared error
DEFAULT_TIME, CHEAP_TIME, EVERY_ERROR, MEDIAN_ERROR = 2.0, 1.0, 1 / 3, 1 / 10


def text(result: dict) -> str:
    """Markdown."""
    lines = [
        f"Machine: {result['machine']}. Medians of {result['rounds']} fresh explainers a case.",
        "",
        "| case | calls | CPU, ms: limes | cheapest control | `lime` | limes / `lime` | cheapest / `lime` "
        "| clock / `lime` | squared error: limes | `lime` | limes / `lime` |",
        "|---" * 11 + "|",
    ]
    errors, default, cheap = [], [], []
    for case in result["cases"]:
        ours, other, lime = case["ms"].values()
        square, square_lime = case["squares"]["limes"], case["squares"]["lime"]
        wall = case["wall_ms"]["limes"] / case["wall_ms"]["lime"]
        errors.append(square / square_lime)
        default.append(ours / lime)
        cheap.append(other / lime)
        lines.append(
            f"| {case['case']} | {case['calls']:,} | {ours:.0f} | {other:.0f} | {lime:.0f} "
            f"| {default[-1]:.2f} | {cheap[-1]:.2f} | {wall:.2f} | {square:.1e} | {square_lime:.1e} "
            f"| {errors[-1]:.3f} |"
        )
    goals = [
        ("CPU, default control, largest", max(default), DEFAULT_TIME),
        ("CPU, cheapest control, largest", max(cheap), CHEAP_TIME),
        ("squared error, largest", max(errors), EVERY_ERROR),
        ("squared error, median", float(np.median(errors)), MEDIAN_ERROR),
    ]
    lines += ["", "| limes / `lime` | measured | goal | |", "|---|---|---|---|"]
    for what, value, goal in goals:
        reached = "reached" if value <= goal else "**missed**"
        lines.append(f"| {what} | {value:.2f} | {goal:.2f} | {reached} |")
    return "\n".join(lines)
