"""The page of ``benchmarks.covers``."""

from __future__ import annotations

from typing import Any


def text(result: dict[str, Any]) -> str:
    """Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    lines = [
        f"Machine: {result['machine']}; one thread, CPU time, milliseconds a row, medians of alternating "
        f"calls. {versions}. Batches of {result['batch']:,} rows; the model's own is `pred_contribs` or its "
        "like.",
        "",
        "| model | one row: limes, numbers | limes, call | shap | the model's own | batch: limes, numbers "
        "| limes, call | shap | the model's own | pairs: limes | shap | apart from shap, the model's own |",
        "|---" * 12 + "|",
    ]
    for case in result["cases"]:
        cells = [
            f"{case[size][name]:.3g}" if name in case[size] else "–"
            for size in ("one row", "batch")
            for name in ("numbers", "call", "shap", "library")
        ]
        cells += [f"{case['pairs'][name]:.3g}" for name in ("numbers", "shap")]
        near = ", ".join(f"{case['apart'][who]:.0e}" for who in ("shap", "library") if who in case["apart"])
        lines.append(f"| {case['case']} | {' | '.join(cells)} | {near} |")
    return "\n".join(lines)
