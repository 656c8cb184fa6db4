"""A certificate in plain sentences, the same in the terminal, on pages and in notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from limes._explanation.wording import count, number, one_line

_BEST_OF = {
    "population": "No rule of this size errs less in these neighbours: proved",
    "sample": "No rule of this size errs less on the rows of the sample: proved",
}


def certificate_sentences(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a certificate's statements: errors, whether the rule is the best, what holds for all rows."""
    return tuple(_sentences(facts))


def _sentences(facts: Mapping[str, Any]) -> Iterator[str]:
    sure, bounds = f"with {facts['confidence']:.0%} confidence", facts["bounds"]
    yield (
        f"In {count(facts['fresh_samples'], 'simulated neighbour')} it errs by "
        f"{number(math.sqrt(facts['fresh_fidelity']), 3)} (root mean square); over all neighbours by at most "
        f"{number(math.sqrt(bounds['fidelity']), 3)}, {sure}."
    )
    error = f" ± {number(facts['precision_error'], 2)}" if facts["precision_error"] else ""
    yield (
        "Where its facts hold, the model's answer differs from this prediction by "
        f"{number(facts['precision'], 3)}{error} on average; by at most "
        f"{number(bounds['precision'], 3)}, {sure}."
    )
    if facts.get("worst_case") is not None:
        low, high = map(number, facts["worst_case"])
        ends = "" if facts["worst_case_exact"] else " (bounds, which no row need reach)"
        yield f"Whatever the other columns are, the model then answers between {low} and {high}{ends}."
    if facts.get("coverage") is not None:
        yield f"The facts hold in {facts['coverage']:.1%} of the background's rows."
    yield _optimality(facts)
    low, high = map(number, facts["scale"])
    if facts.get("assumption"):
        yield (
            f"Answers are assumed to lie in [{low}, {high}]: if one lies beyond, no bound holds; pass "
            "scale=(low, high)."
        )
    else:
        yield f"Answers are known to lie in [{low}, {high}], on which the bounds rest."


def _optimality(facts: Mapping[str, Any]) -> str:
    """Return whether the rule is the best of its size, and of what, or how firm the choice is."""
    if facts["proved"]:
        return f"{_BEST_OF.get(facts.get('optimum', ''), 'The best rule of this size: proved')}."
    if facts.get("optimum") == "estimate":
        ties = ", ".join(f"{one_line(name)} ({share:.0%})" for name, share in facts["near_ties"].items())
        chosen = f"Other samples choose the same facts in {facts['stability']:.0%}"
        return chosen + (f"; others: {ties}." if ties else ".")
    if facts["lower_bound"] > 0:
        return f"The best rule of this size has a squared error at most {facts['gap']:.1%} smaller."
    return f"That it is the best rule of this size is not proved ({facts['solver']})."
