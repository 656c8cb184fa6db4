"""A table of what was measured, for its page."""

from __future__ import annotations

from collections.abc import Iterator

_HEAD = (
    *("table (rows × columns)", "model", "R², product law", "joint law", "top-3 features shared"),
    *("Σ\\|β\\| product / joint", "effective rows", "laws apart", "warnings, notes", "ms a row"),
)


def text(result: dict) -> str:
    """Markdown."""
    lines = [f"Machine: {result['machine']}. {result['rows']} rows a case.", "", *_table(result["cases"])]
    attack = result["attack"]
    if attack is not None and "absent" not in attack:
        lines += ["", *_attack(attack)]
    return "\n".join(lines)


def _table(cases: list[dict]) -> Iterator[str]:
    yield f"| {' | '.join(_HEAD)} |"
    yield "|---" * len(_HEAD) + "|"
    for case in cases:
        if "absent" in case:
            continue
        product, joint = case["fidelity"]
        yield (
            f"| {case['table']} ({case['rows']:,} × {case['columns']}) | {case['model']} | {product:.3f} "
            f"| {joint:.3f} | {case['top']:.0%} | {case['size']:.2f} | {case['effective']:.1%} "
            f"| {case['apart']:.2f} | {case['warnings']:.0%}, {case['notes']:.0%} | {case['ms']:.1f} |"
        )


def _attack(attack: dict) -> Iterator[str]:
    yield (
        f"The scaffolding attack on adult, on rows that its detector (right in {attack['detector']:.0%}) was "
        "not fitted to:"
    )
    yield ""
    yield "| law | rows whose largest coefficient is that of the sex | rows where `diagnose` reports it |"
    yield "|---|---|---|"
    for law, name in (("truncnorm", "product"), ("joint", "joint")):
        yield f"| {name} | {attack[law]['bias first']:.0%} | {attack[law]['reported']:.0%} |"
