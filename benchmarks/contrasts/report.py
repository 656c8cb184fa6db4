"""Tables of what was measured, for its page."""

from __future__ import annotations

from typing import Any

import numpy as np


def text(result: dict[str, Any]) -> str:
    """Markdown."""
    names = ["table", "model", "least", "proved", "median", "seconds", "slowest", "largest gap"]
    names += [f"{result['answers']} answers: seconds", "proved", "flip the model", "rows that contradict"]
    table = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|", *map(_line, result["cases"])]
    counts = result["enumerated"]
    enumerated = (
        f"Enumeration of all rows of {counts['instances']} small instances, with a column that is fixed, one "
        f"that only rises, and random costs: of {2 * counts['instances']} contrasts {counts['flips']} flip "
        f"the model or no row does; of {counts['fewest proved']} that claim the fewest columns "
        f"{counts['fewest']} are, of {counts['least proved']} that claim the least cost {counts['least']}; "
        f"{counts['bounds']} lower bounds hold."
    )
    first = result["cases"][0]
    about = (
        f"Machine: {result['machine']}. {len(first['proved'])} rows a model, "
        f"{len(first['several'])} of several answers; objectives and seconds of CPU are medians, of the "
        f"whole call. The optimiser asked about {result['searched']:,} rows for each row."
    )
    return "\n".join([f"{about}\n", *table, "", enumerated])


def _line(case: dict[str, Any]) -> str:
    is_cost = case["minimize"] == "cost"
    cells = [
        case["table"],
        case["model"],
        "cost" if is_cost else "columns",
        f"{sum(case['proved'])} of {len(case['proved'])}",
        f"{np.median(case['objective']):.2f}" if is_cost else f"{np.median(case['objective']):.0f}",
        f"{np.median(case['seconds']):.2f}",
        f"{max(case['seconds']):.1f}",
        f"{max(case['gap']):.0%}",
        f"{np.median(case['several seconds']):.2f}",
        f"{sum(case['several proved'])} of {sum(case['several'])}",
        f"{sum(case['flips'])} of {len(case['flips'])}",
        sum(case["contradicted"]) if is_cost else "",
    ]
    return "| " + " | ".join(map(str, cells)) + " |"
