"""Sentences about an input in parts: the groups that these are in, and those that act together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from limes._explanation.fit import account_at
from limes._explanation.selection import by_size
from limes._explanation.view import what_holds, with_outputs
from limes._explanation.wording import adding_up, difference, one_line, shorten

if TYPE_CHECKING:
    from limes._explanation import Explanation

# Fact of a provenance: pairs of conditions by output, and what both have together that neither has alone
TOGETHER = "together"
# Pairs and groups that are named, and characters of a group's name; smaller pairs, as a share of the largest
# contribution, are not
_PAIRS, _GROUPS, _WIDTH, _LEAST = 3, 5, 32, 0.05
_PLACE = re.compile(r" at \d+$")


def sentences_of_parts(explanation: Explanation, output: int) -> tuple[str, ...]:
    """Sentences of the groups, and of parts that act together; () of an input without these."""
    if len(explanation) != 1:
        return ()
    return tuple(filter(None, (_of_groups(explanation, output), _of_pairs(explanation, output))))


def _of_groups(explanation: Explanation, output: int) -> str:
    coarse = explanation.levels[0]
    kind = explanation.provenance.get("coarse", {}).get("kind")
    if not isinstance(kind, str) or coarse is explanation:
        return ""
    account = coarse.contributions
    values, errors = (
        with_outputs(numbers, coarse)[0, :, output] for numbers in (account.values, account.standard_errors)
    )
    largest = by_size(np.abs(values))[:_GROUPS]
    its, their_errors = values[largest].tolist(), errors[largest].tolist()
    texts, _ = adding_up(its, their_errors, 0.0, float(values.sum()))
    named = (
        f"{shorten(coarse.feature_names[j], _WIDTH)} {' '.join(filter(None, text))}"
        for j, text in zip(largest, texts, strict=True)
    )
    more = len(values) - len(largest)
    reason = explanation.provenance["coarse"].get("reason", "")
    why = f", {one_line(reason)}" if isinstance(reason, str) and reason else ""
    return f"By {one_line(kind)}{why}: {', '.join(named)}{f', {more} more' if more else ''}."


def _of_pairs(explanation: Explanation, output: int) -> str:
    """Pairs of features that add more, or less, beside each other, if few calls show some."""
    pairs = explanation.provenance.get(TOGETHER, {}).get(explanation.output_names[output], ())
    places = {condition: j for j, condition in enumerate(explanation.conditions[0])}
    account = account_at(explanation, [0])
    if not pairs or account is None:
        return ""
    values, texts = with_outputs(account.values, explanation)[0, :, output], []
    for first, second, value in pairs:
        if {first, second} <= places.keys() and abs(value) > _LEAST * np.abs(values).max():
            names = (_PLACE.sub("", what_holds(explanation, 0, places[name])) for name in (first, second))
            texts.append(f"{' and '.join(names)} {'more' if value > 0 else 'less'} ({difference(value, 3)})")
    return f"Beside each other these add: {'; '.join(texts[:_PAIRS])}." if texts else ""
