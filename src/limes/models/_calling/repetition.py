"""Whether a model is a function: the same input, asked twice in other company, has the same answer.

Dropout that was left on, randomness without a seed, a scaler that is fitted to each batch: such a model has
no limit, and what is computed from its answers has errors even where every input was asked.
"""

from __future__ import annotations

import numpy as np

from limes._arrays import Floats
from limes.models._calling.caller import Retry, with_retries
from limes.models._identity import REFIT_ROUNDING, Predict

# Inputs that are asked twice: once together, once in parts, in another order and other company
_INPUTS = 4
_PARTS = (np.array([2, 3, 1]), np.array([0]))
# Rows that the check asks about
CHECK_CALLS = 2 * _INPUTS


def few_inputs(rows: Floats) -> Floats:
    """Return four of the rows (n, d), evenly spread."""
    return rows[np.linspace(0, len(rows) - 1, _INPUTS).astype(np.int64)]


def few_subsets(d: int) -> Floats:
    """Return four subsets of d features: all, either half, and none."""
    half = np.arange(d) % 2.0
    return np.stack([np.ones(d), half, 1.0 - half, np.zeros(d)])


def spread_of_answers(ask: Predict, inputs: Floats, retry: Retry | None = None) -> float:
    """Return the largest difference of two answers to one of four inputs (4, d); 0 if it is rounding.

    Raises
    ------
    ModelError
        If the model fails.
    """
    together = with_retries(ask, inputs, retry).reshape(_INPUTS, -1)
    again = np.empty_like(together)
    for part in _PARTS:
        again[part] = with_retries(ask, inputs[part], retry).reshape(len(part), -1)
    difference = np.abs(again - together).max(axis=0)
    rounding = REFIT_ROUNDING * np.abs(together).max(axis=0)
    return float(np.where(difference > rounding, difference, 0.0).max())


def repetition_warnings(spread: float) -> tuple[str, ...]:
    """Return the warning about a model whose answers to one input differ by ``spread``; () for a function."""
    if spread == 0.0:
        return ()
    return (
        f"the model answered differently for the same input (up to {spread:.3g}): errors contain that "
        "spread, and the next call gives other numbers; call model.eval() if it is a network, else fix its "
        "seed, or what it learns from the batch",
    )
