"""Write what was measured: JSON, a table in README.md, a picture."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.speed import scaling

HOME = Path(__file__).parent.parent
BEGIN, END = "<!-- speed: written by python -m benchmarks -->", "<!-- end of speed -->"


def write(result: dict, growth: dict) -> None:
    """All three."""
    result = {**result, "growth": growth}
    scaling.draw(growth)
    (HOME / "results").mkdir(exist_ok=True)
    (HOME / "results" / "speed.json").write_text(json.dumps(result, indent=1) + "\n")
    readme = HOME / "README.md"
    text = readme.read_text()
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    readme.write_text(f"{head}{BEGIN}\n\n{table(result)}\n{END}{tail}")


def table(result: dict) -> str:
    """Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    lines = [f"Machine: {result['machine']}. {versions}. Median of {result['rounds']} rounds.", ""]
    for case in result["cases"]:
        prepared = case["preparation"]["limes"]
        lines += [
            f"**{case['case']}**: limes prepares in {prepared['seconds']:.2f} s "
            f"({prepared['memory_mb']:.0f} MB more at the peak)",
            "",
            "| | ms a row | times limes |",
            "|---|---|---|",
        ]
        lines += [
            f"| {who} | {1e3 * seconds:.3g} | {case['times_limes'][who]:.3g} |"
            for who, seconds in case["seconds_a_row"].items()
        ]
        lines.append("")
    lines += ["### Growth", "", "Random forest 100 x depth 10 on California-like rows:", ""]
    lines += [scaling.table(result["growth"]), "", "![time against nodes and rows](results/scaling.png)", ""]
    return "\n".join(lines)
