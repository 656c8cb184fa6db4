"""A table of what was measured, for README.md."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

WAYS = ("limes", "kernel", "permutation")
_HEAD = (
    *("case (columns)", "rows asked: limes, Kernel, Permutation", "squared error: limes", "Kernel"),
    *("Permutation", "Kernel / limes", "Permutation / limes", "95 % intervals cover"),
)


def text(result: dict) -> str:
    """Markdown."""
    cases = result["cases"]
    what = f"{result['rows']} rows and {result['seeds']} seeds a case, {result['background']} background rows"
    lines = [
        f"Machine: {result['machine']}. {what}. Squared errors are shares of the mean square of exact values.",
        "",
        f"| {' | '.join(_HEAD)} |",
        "|---" * len(_HEAD) + "|",
        *map(_line, cases),
        "",
    ]
    for way, name in zip(WAYS[1:], ("KernelExplainer", "PermutationExplainer"), strict=True):
        ratios = [case["squares"][way] / case["squares"]["limes"] for case in cases]
        lines.append(
            f"Below {name}: {np.median(ratios):.1f} times in the median, {min(ratios):.1f} at least."
        )
    lines.append(f"{np.mean([case['covered'] for case in cases]):.1%} of all intervals cover.")
    return "\n".join(lines)


def _line(case: dict) -> str:
    return f"| {' | '.join(_entries(case))} |"


def _entries(case: dict) -> Iterator[str]:
    asked, squares, size = case["asked"], case["squares"], case["size"]
    yield f"{case['case']} ({case['columns']})"
    yield ", ".join(f"{asked[way]:,.0f}" for way in WAYS)
    yield from (f"{squares[way] / size:.1e}" for way in WAYS)
    yield from (f"{squares[way] / squares['limes']:.1f}" for way in WAYS[1:])
    yield f"{case['covered']:.1%}"
