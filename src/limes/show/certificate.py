"""A certificate in words: a name, a number, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limes.show.wording import count, number


def certificate_lines(facts: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return lines (name, number, remark) of a certificate, none of an empty one."""
    if not facts:
        return []
    sure, bounds = f"{facts['confidence']:.0%} sure", facts["bounds"]
    fresh, seen = count(facts["fresh_samples"], "fresh row"), count(facts["samples"], "row")
    how = f"± {number(facts['precision_error'], 2)}" if facts["precision_error"] else "exact"
    low, high = facts["scale"]
    return [
        ("fidelity error", number(facts["fresh_fidelity"]), f"mean squared, {fresh}"),
        ("", f"≤ {number(bounds['fidelity'])}", sure),
        ("fidelity error, in sample", number(facts["fidelity"]), f"{seen} that the weights have seen"),
        ("precision error", number(facts["precision"]), f"mean |f(z) − f(x)| where w·z = w·x; {how}"),
        ("", f"≤ {number(bounds['precision'])}", sure),
        ("optimal", _optimal(facts), facts["solver"]),
        ("scale", f"[{number(low)}, {number(high)}]", "these answers count as −1 and 1 in all errors"),
    ]


def _optimal(facts: Mapping[str, Any]) -> str:
    if facts["proved"]:
        return "proved"
    return f"within {facts['gap']:.1%}" if facts["lower_bound"] > 0 else "not known"
