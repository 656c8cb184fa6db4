"""Differences of accounts: contributions to f - g are differences of contributions, under one law."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from limes._explanation.attribution import NO_SURROGATE, Contributions, changed
from limes._explanation.wording import cell, one_line
from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._explanation.explanation import Explanation

# Facts of a provenance: the row that contributions lead from, and of which quantity numbers are changes
REFERENCE, CHANGE = "reference", "change of"
_FOR_LIME = "; explain rows with a background for LIME's view"
NO_CELLS = f"one other row is a law without bins{_FOR_LIME}"
OF_ACCOUNTS = f"this is a difference of two accounts{_FOR_LIME}"
OF_PROMPTS = "parts of a prompt have contributions alone"


def minus(explanation: Explanation, other: Explanation) -> Explanation:
    """The account of the difference of two explanations, row by row: see `Explanation.minus`."""
    _check_alike(explanation, other)
    account, its = explanation.contributions, other.contributions
    facts = {
        name: fact
        for name, fact in explanation.provenance.items()
        if other.provenance.get(name) == fact and name not in ("contributions", REFERENCE)
    }
    quantity = explanation.provenance.get("quantity", explanation.provenance.get("answer", ""))
    return changed(
        explanation,
        coefficients=None,
        contributions=Contributions(
            values=account.values - its.values,
            # valid however the two are correlated: they may share draws
            standard_errors=account.standard_errors + its.standard_errors,
            base_values=account.base_values - its.base_values,
            base_errors=account.base_errors + its.base_errors,
            alone=account.alone - its.alone,
            last=account.last - its.last,
            **spent_on_both(account, its),
        ),
        predictions=explanation.predictions - other.predictions,
        conditions=tuple(
            tuple(map(changed_value, explanation.feature_names, before, after))
            for before, after in zip(other.data, explanation.data, strict=True)
        ),
        **made_of_both(explanation, other),
        provenance=facts | {CHANGE: str(quantity), NO_SURROGATE: OF_ACCOUNTS},
        explainer=None,
        fit=None,
    )


def spent_on_both(account: Contributions, other: Contributions) -> dict[str, Any]:
    """The calls of contributions that two accounts make together, and whether both converged."""
    return {
        "calls": account.calls + other.calls,
        "row_converged": account.row_converged & other.row_converged,
    }


def made_of_both(explanation: Explanation, other: Explanation) -> dict[str, Any]:
    """How an explanation that two make together was computed: their methods, calls and warnings."""
    shared = [its for its in (explanation.shared_calls, other.shared_calls) if its is not None]
    warnings = (its.contributions.row_warnings for its in (explanation, other))
    return {
        "method": "exact" if explanation.method == other.method == "exact" else "sampled",
        "reason": explanation.reason or other.reason,
        "calls": explanation.calls + other.calls,
        "shared_calls": np.sum(shared, axis=0) if shared else None,
        "row_warnings": tuple(tuple(dict.fromkeys((*one, *its))) for one, its in zip(*warnings, strict=True)),
    }


def is_or_are(name: str) -> str:
    """The verb of "there is no fidelity", and "there are no effects"."""
    return "are" if name.endswith("s") else "is"


def changed_value(name: str, before: Any, after: Any) -> str:
    """A column with its two values in words."""
    first, last = cell(before), cell(after)
    return f"{one_line(name)} = {last}" if first == last else f"{one_line(name)}: {first} → {last}"


def _check_alike(explanation: Explanation, other: Any) -> None:
    if not hasattr(other, "contributions"):
        raise InputError(f"minus({type(other).__name__}): pass the other explanation")
    pairs = (
        ("features", explanation.feature_names, other.feature_names),
        ("outputs", explanation.output_names, other.output_names),
        ("rows", explanation.ids, other.ids),
    )
    for what, names, others in pairs:
        if names != others:
            only = [name for name in (*names, *others) if (name in names) != (name in others)]
            differ = f"{only[0]!r} is in one of them" if only else "their order differs"
            raise InputError(
                f"the two explanations have other {what} ({len(names)} and {len(others)}; {differ}): explain "
                f"the same {what} with both, in one order, or select them first"
            )
    if explanation.predictions.shape != other.predictions.shape:
        raise InputError("one of the explanations has an axis of outputs, and the other has none")
