"""A table and a picture of what was measured, for its page."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.speed import goals, scaling

COLUMNS = (
    "",
    "answers",
    "rows a call",
    "ms a row",
    "x limes, batch",
    "x limes, one row",
    "ready after, s",
    "MB, peak",
    "MB, held",
)

GROWTH = (
    "Random forest 100 x depth 10 on rows like California's, each number of rows in a separate process. "
    "Memory is above the model and the rows, and counts limes's code. Rows in the same cells are computed "
    "once, and among more rows there are more of them."
)
DIFFERENCES = "Largest difference from the first that answers the same, relative to its largest value"


def draw(result: dict) -> str:
    """Draw the picture, and return its Markdown."""
    scaling.draw(result["growth"])
    return "![time against nodes and rows](../results/scaling.png)"


def text(result: dict) -> str:
    """Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    blocks = [f"Machine: {result['machine']}. {versions}. Median of {result['rounds']} rounds."]
    for case in result["cases"]:
        blocks += _case(case)
    blocks += ["## Goals", goals.text(result["cases"])]
    if "growth" in result:
        blocks += ["## Growth", GROWTH, scaling.text(result["growth"])]
    return "\n\n".join(blocks)


def _case(case: dict) -> Iterator[str]:
    yield f"**{case['case']}**"
    rows = [_row(who, figures) for who, figures in case["competitors"].items()]
    yield "\n".join([f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|", *rows])
    if case["absent"]:
        yield "Absent: " + "; ".join(f"{who} ({reason})" for who, reason in case["absent"].items()) + "."
    differences = {
        who: f["difference"] for who, f in case["competitors"].items() if f["difference"] is not None
    }
    if differences:
        result = ", ".join(f"{who} {difference:.0e}" for who, difference in differences.items())
        yield f"{DIFFERENCES}: {result}."


def _row(who: str, figures: dict) -> str:
    memory = figures["memory"]
    megabytes = f"{memory['peak_mb']:.0f} | {memory['held_mb']:.0f}" if memory else " | "
    times = f"{figures['times_limes']:.3g} | {figures['times_limes_one']:.3g}"
    milliseconds = 1e3 * figures["seconds_a_row"]
    return (
        f"| {who} | {figures['answers']} | {figures['rows']:,} | {milliseconds:.3g} | {times} "
        f"| {figures['prepare_s']:.2g} | {megabytes} |"
    )
