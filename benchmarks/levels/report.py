"""Tables of what was measured, for its page."""

from __future__ import annotations

import numpy as np


def text(result: dict) -> str:
    """Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    lines = [
        "| model | inputs | method | deletion: median, mean | insertion: median, mean | limes is better in |",
        "|---|---|---|---|---|---|",
        *(line for case in result["cases"] for line in _lines(case)),
    ]
    covered = ", ".join(f"{name} {share:.1%}" for name, share in result["covered"].items())
    return "\n\n".join(
        [
            f"Machine: {result['machine']}. {versions}. {result['calls']} calls each.",
            "\n".join(lines),
            f"95 % intervals that contain exact contributions, of the forest: {covered}.",
        ]
    )


def _lines(case: dict) -> list[str]:
    areas = {method: np.array(pairs) for method, pairs in case["areas"].items()}
    ours, lines = areas["limes"], []
    for method, its in areas.items():
        (median, mean), better = (its_of(its, axis=0) for its_of in (np.median, np.mean)), ""
        if method != "limes":
            better = f"{np.mean(ours[:, 0] < its[:, 0]):.0%}, {np.mean(ours[:, 1] > its[:, 1]):.0%}"
        cells = " | ".join(f"{median[i]:.3f}, {mean[i]:.3f}" for i in (0, 1))
        lines.append(f"| {case['model']} | {len(its)} | {method} | {cells} | {better} |")
    return lines
