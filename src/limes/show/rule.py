"""A sparse explanation as a rule: weighted facts on the left, the prediction on the right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from limes.show.wording import number, one_line

_DIGITS = 3


def rule_text(
    weights: np.ndarray[tuple[int], np.dtype[np.float64]],
    facts: Sequence[str],
    name: str,
    prediction: float,
    intercept: float = 0.0,
) -> str:
    """Write the facts that have a weight, largest first.

    >>> rule_text(np.array([0.5, 0.0, -0.75]), ["income > 70", "age > 30", "debt > 35"], "score", -0.25)
    '-0.75 [debt > 35] + 0.5 [income > 70]  ->  score = -0.25'
    """
    order = np.argsort(-np.abs(weights), kind="stable")
    terms = [(float(weights[j]), f" [{one_line(facts[j])}]") for j in order if weights[j] != 0.0]
    if intercept != 0.0 or not terms:
        terms.insert(0, (intercept, ""))
    texts = [f"{'-' if w < 0 else '+'} {number(abs(w), _DIGITS)}{fact}" for w, fact in terms]
    first = texts[0][2:] if texts[0].startswith("+") else f"-{texts[0][2:]}"
    return f"{' '.join([first, *texts[1:]])}  ->  {one_line(name)} = {number(prediction)}"
