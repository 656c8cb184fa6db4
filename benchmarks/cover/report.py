"""Tables of what was measured, for its page."""

from __future__ import annotations

from typing import Any

import numpy as np


def text(result: dict[str, Any]) -> str:
    """Markdown."""
    names = ["table", "model", "columns", "objective", "rules", "no list has fewer than", "candidates"]
    names += ["rows covered", "by ten rules", "conditions a rule", "exceptions", "seconds", "other answers"]
    table = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|", *map(_line, result["cases"])]
    about = (
        f"Machine: {result['machine']}. {result['rows']} rows a table, at most {result['limit']:g} s a list "
        "(cut: not all was tried until then); certain rules, and those with at most "
        f"{result['error']:.0%} of other answers."
    )
    certain = [case for case in result["cases"] if case["objective"] == "certain"]
    precise = [case for case in result["cases"] if case["objective"] == "precision"]
    shares = np.array([share for case in certain for share in case["shares"]])
    pairs = [pair for case in precise for pair in zip(case["shares"], case["bounds"], strict=True)]
    above = sum(share > bound for share, bound in pairs)
    drawn = (
        f"{result['drawn']:,} rows were drawn in each rule: of {shares.size} certain rules "
        f"{int((shares > 0).sum())} have one with another answer; of {len(pairs)} precise rules {above} have "
        "a larger share of other answers than their bound."
    )
    return "\n".join([f"{about}\n", *table, f"\n{drawn}"])


def _line(case: dict[str, Any]) -> str:
    cells = [
        case["table"],
        case["model"],
        case["columns"],
        case["objective"],
        case["rules"],
        case["fewest"],
        case["candidates"],
        f"{case['coverage']:.0%}",
        f"{case['first ten']:.0%}",
        f"{np.median(case['conditions']):.0f}" if case["conditions"] else "",
        case["exceptions"],
        f"{case['seconds']:.0f}{'' if case['complete'] else ' (cut)'}",
        f"{max(case['shares'], default=0.0):.1%} at most",
    ]
    return "| " + " | ".join(map(str, cells)) + " |"
