"""A table of what was measured, for its page."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

WAYS = ("limes", "kernel", "permutation")
_HEAD = (
    *("case (columns)", "rows asked: limes, Kernel, Permutation", "squared error: limes", "Kernel"),
    *("Permutation", "Kernel / limes", "Permutation / limes", "95 % intervals cover"),
)
_OF_ACCOUNTS = (
    *("function", "max_calls", "rows asked, most", "rms error", "of walks", "ratio", "95 % intervals cover"),
    *("error of the base", "its intervals cover", "stated error of unused columns"),
)
_OF_TREES = (
    *("model", "ms a row, median", "most", "ms of all threads, median", "most"),
    *("error / largest bar, median", "most"),
)


def text(result: dict) -> str:
    """Markdown."""
    lines = [*_beside_shap(result), ""] if result["cases"] else []
    accounts = [*_accounts(result["accounts"]), ""] if result.get("accounts") else []
    return "\n".join([f"Machine: {result['machine']}.", *lines, *accounts, *_trees(result["trees"])])


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


def _accounts(records: list[dict]) -> Iterator[str]:
    yield "Contributions alone, of 30 columns, 500 and 1,000 rows asked in all; shares of the largest one:"
    yield ""
    yield f"| {' | '.join(_OF_ACCOUNTS)} |"
    yield "|---" * len(_OF_ACCOUNTS) + "|"
    for its in records:
        yield (
            f"| {its['case']} | {its['calls']:,} | {its['rows']:,.0f} | {its['error']:.2%} "
            f"| {its['walks']:.2%} | {its['error'] / its['walks']:.2f} | {its['covered']:.1%} "
            f"| {its['base']:.2%} | {its['base_covered']:.0%} | {its['unused']:.2%} |"
        )
    ratios = [its["error"] / its["walks"] for its in records]
    yield ""
    yield (
        f"Errors are {np.median(ratios):.2f} of those of walks in the median, {max(ratios):.2f} at most; "
        f"{np.mean([its['covered'] for its in records]):.1%} of all intervals cover, "
        f"{np.mean([its['base_covered'] for its in records]):.1%} of the bases'."
    )


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
