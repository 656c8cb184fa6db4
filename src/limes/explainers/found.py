"""What a fit says of the rows of an explanation, as the explanation's own fields."""

from __future__ import annotations

from typing import Any, NamedTuple

from limes._arrays import Floats, Ints
from limes.pipeline import Fitted


class FittedRows(NamedTuple):
    """Rows (n, d), their cells (n, d), the model's predictions (n, ...) there, and their surrogates.

    ``source`` is the :class:`limes.explainers.tabular_model.TabularModel` that they come from.
    """

    source: Any
    rows: Floats
    cells: Ints
    predictions: Floats
    fitted: Fitted


def found(fitted: Fitted) -> dict[str, Any]:
    """Fields of an :class:`limes.Explanation`: coefficients, and how sure they are if sampled."""
    surrogate, sampled = fitted.surrogate, fitted.sampled
    fields = {
        "values": surrogate.coef,
        "standard_errors": surrogate.standard_errors,
        "intercepts": surrogate.intercept,
        "surrogate_predictions": fitted.at_instance,
        "fidelity": surrogate.fidelity,
        "calls": fitted.calls,
        "row_converged": fitted.converged,
    }
    if sampled is None:
        return fields
    return {
        **fields,
        "shares": surrogate.shares,
        "surrogate_errors": sampled.surrogate_errors,
        "fidelity_errors": sampled.fidelity_errors,
        "share_errors": sampled.share_errors,
        "controls": tuple(sampled.control.tolist()),
    }
