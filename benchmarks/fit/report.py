"""Write what was measured: JSON, and a table in README.md."""

from __future__ import annotations

import json

from benchmarks import readme


def write(found: list[dict]) -> None:
    """JSON, and the table in README.md."""
    (readme.RESULTS / "fit.json").write_text(json.dumps(found, indent=1) + "\n")
    readme.replace("fit", text(found))


def text(found: list[dict]) -> str:
    """The table."""
    head = (
        "| table | model | R² of LIME | of effects | with 3 pairs "
        "| explain, ms a row of 1,000 | R² | effects, a row of 20 | pairs |"
    )
    lines = [
        f"| {c['table']} ({c['columns']}) | {c['model']} | {c['lime']:.2f} | {c['additive']:.2f} "
        f"| {c['pairs']:.2f} | {c['explain_ms']:.2f} | {c['fidelity_ms']:.2f} | {c['effects_ms']:.1f} "
        f"| {c['pairs_ms']:.1f} |"
        for c in found
    ]
    return "\n".join([head, "|---" * 9 + "|", *lines])
