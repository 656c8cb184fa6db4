"""A table of what was measured, for its page."""

from __future__ import annotations


def text(result: dict) -> str:
    """Markdown."""
    lines = [
        f"Machine: {result['machine']}, load {result['load']:.0f} from others' work. 20 columns, a forest of "
        "100 trees; with effects and the slider. Times to write are the processor's.",
        "",
        "| rows | size, kB | seconds to write | ms to the first rows, median | slowest |",
        "|---|---|---|---|---|",
    ]
    for case in result["cases"]:
        opened = (
            ("–", "–")
            if case["ms to open"] is None
            else (f"{case['ms to open']:.0f}", f"{case['slowest ms']:.0f}")
        )
        size, seconds = case["bytes"] / 1e3, case["seconds to write"]
        lines.append(f"| {case['rows']:,} | {size:,.0f} | {seconds:.1f} | {opened[0]} | {opened[1]} |")
    return "\n".join(lines)
