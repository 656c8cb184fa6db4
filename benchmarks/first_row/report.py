"""A table of what was measured, for its page."""

from __future__ import annotations

# What limes wants to reach: the clock, in units of lime's up to 100 columns, and in seconds of more; calls up
# to 100 columns; megabytes; squared error, in units of lime's
RATIO, SECONDS, CALLS, MEGABYTES, ERROR = 2.0, {500: 3.0, 2000: 10.0, 10_000: 60.0}, 5000, 2000, 0.5


def text(result: dict) -> str:
    """Markdown."""
    lines = [
        f"Machine: {result['machine']}. Medians of new processes, {result['rounds']} of each library, "
        "of more than 500 columns one.",
        "",
        "| case | seconds: limes | `lime` | limes / `lime` | CPU: limes | `lime` | calls: limes | `lime` "
        "| MB at the peak: limes | `lime` | control | largest error, of the largest coefficient "
        "| squared error, limes / `lime` |",
        "|---" * 13 + "|",
    ]
    goals = []
    for case in result["cases"]:
        ours, lime, squares = case["limes"], case["lime"], case["squares"]
        ratio = ours["seconds"] / lime["seconds"]
        error = squares["limes"] / squares["lime"] if squares else None
        lines.append(
            f"| {case['case']} | {ours['seconds']:.2f} | {lime['seconds']:.2f} | {ratio:.2f} "
            f"| {ours['cpu']:.2f} | {lime['cpu']:.2f} | {ours['calls']:,.0f} | {lime['calls']:,.0f} "
            f"| {ours['mb']:,.0f} | {lime['mb']:,.0f} | {case['control']} | {case['error']:.1%} "
            f"| {_number(error)} |"
        )
        goals.append((case["columns"], ratio, ours, error))
    narrow = [one for one in goals if one[0] <= 100]
    rows = [
        ("limes / `lime`, up to 100 columns, largest", [ratio for _, ratio, _, _ in narrow], RATIO),
        ("calls, up to 100 columns, most", [ours["calls"] for _, _, ours, _ in narrow], CALLS),
        ("squared error, limes / `lime`, largest", [error for *_, error in narrow if error], ERROR),
    ]
    for width, most in SECONDS.items():
        seconds = [ours["seconds"] for columns, _, ours, _ in goals if columns == width]
        rows.append((f"seconds, {width:,} columns, most", seconds, most))
    rows.append(("MB at the peak, most", [ours["mb"] for _, _, ours, _ in goals], MEGABYTES))
    lines += ["", "| | measured | goal | |", "|---|---|---|---|"]
    for what, values, goal in rows:
        if values:
            reached = "reached" if max(values) <= goal else "**missed**"
            lines.append(f"| {what} | {max(values):,.4g} | {goal:,.4g} | {reached} |")
    return "\n".join(lines)


def _number(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3f}"
