"""Tables of what was measured, for its page."""

from __future__ import annotations

from typing import Any

import numpy as np


def text(result: dict[str, Any]) -> str:
    """Markdown."""
    names = ["table", "model", "columns", "facts", "smallest proved", "seconds", "slowest"]
    names += [
        "minimal alone: seconds",
        "proved",
        "facts",
        "counterexamples confirmed",
        "rows that contradict",
    ]
    table = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|", *map(_line, result["cases"])]
    cases = result["cases"]
    first = max(float(np.median(case["first seconds"])) for case in cases)
    share = all(np.mean(case["smallest"]) >= result["share"] for case in cases)
    seconds = [np.median(case["seconds"]) for case in cases]
    goals = (
        f"Goals: a minimal set in at most {result['goal']:g} s in the median row of each model "
        f"({first:.2f} s): {'reached' if first <= result['goal'] else '**missed**'}; a smallest one within "
        f"{result['limit']:g} s for at least {result['share']:.0%} of the rows: "
        f"{'reached' if share else '**missed**'}. Slowest median of a "
        f"smallest set: {max(seconds):.2f} s."
    )
    counts = result["enumerated"]
    enumerated = (
        f"Enumeration of all rows, and of all sets of columns, of {counts['instances']} small instances: "
        f"{counts['sufficient']} sets are sufficient; of {counts['said minimal']} that claim to be "
        f"minimal {counts['minimal']} are; of {counts['said smallest']} that claim to be smallest "
        f"{counts['smallest']} are."
    )
    about = (
        f"Machine: {result['machine']}. {len(cases[0]['facts'])} rows a model; facts and seconds of CPU are "
        "medians, of the whole call. The optimiser asked each model about "
        f"{result['searched'] // len(cases):,} rows with the facts."
    )
    return "\n".join([f"{about}\n", *table, f"\n{goals}\n", enumerated])


def _line(case: dict[str, Any]) -> str:
    cells = [
        case["table"],
        case["model"],
        case["columns"],
        f"{np.median(case['facts']):.0f} ({min(case['facts'])}-{max(case['facts'])})",
        f"{sum(case['smallest'])} of {len(case['smallest'])}",
        f"{np.median(case['seconds']):.2f}",
        f"{max(case['seconds']):.1f}",
        f"{np.median(case['first seconds']):.2f}",
        f"{sum(case['first minimal'])} of {len(case['first minimal'])}",
        f"{np.median(case['first facts']):.0f}",
        f"{sum(case['confirmed'])} of {sum(case['facts'])}",
        sum(case["contradicted"]),
    ]
    return "| " + " | ".join(map(str, cells)) + " |"
