"""A table of what was measured, for its page."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

WAYS = ("limes", "kernel", "permutation")
_HEAD = (
    *("case (columns)", "rows asked: limes, Kernel, Permutation", "squared error: limes", "Kernel"),
    *("Permutation", "Kernel / limes", "Permutation / limes", "95 % intervals cover"),
)
_OF_TREES = (
    *("model", "ms a row, median", "most", "ms of all threads, median", "most"),
    *("error / largest bar, median", "most"),
)


def text(result: dict) -> str:
    """Markdown."""
    lines = [*_beside_shap(result), ""] if result["cases"] else []
    return "\n".join([f"Machine: {result['machine']}.", *lines, *_trees(result["trees"])])


def _beside_shap(result: dict) -> Iterator[str]:
    cases = result["cases"]
    yield f"{result['rows']} rows and {result['seeds']} seeds a case, {result['background']} background rows."
    yield "Squared errors: shares of the exact values' mean square."
    yield ""
    yield f"| {' | '.join(_HEAD)} |"
    yield "|---" * len(_HEAD) + "|"
    yield from map(_line, cases)
    yield ""
    for way, name in zip(WAYS[1:], ("KernelExplainer", "PermutationExplainer"), strict=True):
        ratios = [case["squares"][way] / case["squares"]["limes"] for case in cases]
        yield f"Below {name}: {np.median(ratios):.1f} times in the median, {min(ratios):.1f} at least."
    yield f"{np.mean([case['covered'] for case in cases]):.1%} of all intervals cover."


def _trees(records: list[dict]) -> Iterator[str]:
    yield "Probabilities of boosted trees, 20 columns (friedman1), row by row, all cores, no model asked:"
    yield ""
    yield f"| {' | '.join(_OF_TREES)} |"
    yield "|---" * len(_OF_TREES) + "|"
    for its in records:
        (clock, cpu), (most_clock, most_cpu) = its["ms"], its["most_ms"]
        yield (
            f"| {its['model']} | {clock:.0f} | {most_clock:.0f} | {cpu:.0f} | {most_cpu:.0f} "
            f"| {its['error']:.2%} | {its['largest_error']:.2%} |"
        )


def _line(case: dict) -> str:
    return f"| {' | '.join(_entries(case))} |"


def _entries(case: dict) -> Iterator[str]:
    calls, squares, size = case["asked"], case["squares"], case["size"]
    yield f"{case['case']} ({case['columns']})"
    yield ", ".join(f"{calls[way]:,.0f}" for way in WAYS)
    yield from (f"{squares[way] / size:.1e}" for way in WAYS)
    yield from (f"{squares[way] / squares['limes']:.1f}" for way in WAYS[1:])
    yield f"{case['covered']:.1%}"
