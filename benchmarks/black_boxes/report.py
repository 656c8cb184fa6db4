"""A table of what was measured, for its page."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

# What limes wants to reach against lime, of a thousand rows, at each bandwidth: calls, seconds, squared error
GOALS = {0.75: (50.0, 10.0, 5.0), 0.25: (50.0, 10.0, 1.0)}


def text(result: dict) -> str:
    """Markdown."""
    cases = [case for case in result["cases"] if "absent" not in case]
    absent = [f"{case['case']} ({case['absent']})" for case in result["cases"] if "absent" in case]
    about = (
        f"Machine: {result['machine']}. limes: {result['rows']:,} rows; `lime`: {result['lime_rows']} rows "
        f"of {result['lime_calls']:,} calls, counted {result['rows'] / result['lime_rows']:g} times."
    )
    blocks = [about, "\n".join(_summary(cases)), "\n".join(_table(cases))]
    return "\n\n".join([*blocks, *([f"Absent: {'; '.join(absent)}."] if absent else [])])


def _ratios(cases: list[dict], what: str) -> np.ndarray:
    return np.array([case["lime"][what] / case["limes"][what] for case in cases])


def _summary(cases: list[dict]) -> Iterator[str]:
    yield "| bandwidth | `lime` over limes | median | lowest | highest | goal, in every case | |"
    yield "|---" * 7 + "|"
    for bandwidth, goals in GOALS.items():
        of_bandwidth = [case for case in cases if case["bandwidth"] == bandwidth]
        for what, goal in zip(("calls", "seconds", "mse"), goals, strict=True):
            if of_bandwidth:
                result = _ratios(of_bandwidth, what)
                cells = [
                    f"{bandwidth}√d",
                    {"mse": "squared error"}.get(what, what),
                    *(f"{number:.3g}" for number in (np.median(result), result.min(), result.max(), goal)),
                    "reached" if result.min() >= goal else "**missed**",
                ]
                yield f"| {' | '.join(cells)} |"


_HEAD = (
    *("case", "d", "bandwidth", "calls", "seconds", "squared error", "coverage", "rows from the pool"),
    *("`lime`: calls", "seconds", "squared error", "error of the truth"),
)


def _table(cases: list[dict]) -> Iterator[str]:
    yield f"| {' | '.join(_HEAD)} |"
    yield "|---" * len(_HEAD) + "|"
    for case in cases:
        ours, lime = case["limes"], case["lime"]
        yield (
            f"| {case['case']} | {case['columns']} | {case['bandwidth']}√d | {ours['calls']:,} "
            f"| {ours['seconds']:.1f} | {ours['mse']:.1e} | {ours['coverage']:.3f} | {ours['shared']:.0%} "
            f"| {lime['calls']:,.0f} | {lime['seconds']:.0f} | {lime['mse']:.1e} | {case['truth_mse']:.1e} |"
        )
