"""Tables of what was measured, for its page."""

from __future__ import annotations

import numpy as np


def text(result: dict) -> str:
    """Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    lines = [
        "| model | calls | method | deletion: median, mean | insertion: median, mean | limes is better in |",
        "|---|---|---|---|---|---|",
        *(line for case in result["cases"] for line in _lines(case)),
    ]
    photographs = len(result["cases"][0]["photographs"])
    return f"Machine: {result['machine']}. {versions}. {photographs} photographs.\n\n" + "\n".join(lines)


def _lines(case: dict) -> list[str]:
    """A line for each method and seed."""
    areas = {method: np.array(its) for method, its in case["areas"].items()}
    ours, lines = areas["limes"], []
    for method, seeds in areas.items():
        for seed, its in enumerate(seeds):
            median, mean = np.median(its, axis=0), its.mean(axis=0)
            cells = " | ".join(f"{median[i]:.3f}, {mean[i]:.3f}" for i in (0, 1))
            name = f"{method}, seed {seed}" if len(seeds) > 1 else method
            better = ""
            if method != "limes":  # both of its seeds against this one
                better = f"{np.mean(ours[..., 0] < its[:, 0]):.0%}, {np.mean(ours[..., 1] > its[:, 1]):.0%}"
            lines.append(f"| {case['model']} | {case['calls']:,} | {name} | {cells} | {better} |")
    return lines
