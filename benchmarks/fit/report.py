"""A table of what was measured, for its page."""

from __future__ import annotations

from statistics import median


def text(result: list[dict]) -> str:
    """The table."""
    head = (
        "| table | model | R² of LIME | of effects | with 3 pairs "
        "| explain, CPU ms a row of 1,000 | R² | effects | pairs, a row of 20 | suggestion best |"
    )
    lines = [
        f"| {c['table']} ({c['columns']}) | {c['model']} | {c['lime']:.2f} | {c['additive']:.2f} "
        f"| {c['pairs']:.2f} | {c['explain_ms']:.2f} | {c['fidelity_ms']:.2f} | {c['effects_ms']:.2f} "
        f"| {c['pairs_ms']:.1f} | {sum(c['suggested'])} of {len(c['suggested'])} |"
        for c in result
    ]
    return "\n".join([head, "|---" * 10 + "|", *lines, "", _summary(result)])


def _summary(result: list[dict]) -> str:
    lime, additive, pairs = (median(c[name] for c in result) for name in ("lime", "additive", "pairs"))
    wins = [win for c in result for win in c["suggested"]]
    return (
        f"Medians of the {len(result)} lines: LIME {lime:.2f}, effects {additive:.2f}, with 3 pairs "
        f"{pairs:.2f}. On fresh draws the suggested design has the best R² of those offered, or one within "
        f"0.01 of it, in {sum(wins)} of {len(wins)} rows."
    )
