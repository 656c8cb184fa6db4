"""From fitted surrogates to the fields of an explanation, and from its outputs back to the model's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limes._arrays import Ints
from limes.exceptions import InputError
from limes.explanation import Explanation
from limes.pipeline import Fitted


def explanation_fields(fitted: Fitted) -> dict[str, Any]:
    """Return fields of a :class:`limes.Explanation`: coefficients, and their errors if sampled."""
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


def output_positions(explanation: Explanation, output: Ints, outputs: Sequence[str]) -> Ints:
    """Return the positions of an explanation's chosen outputs among all outputs of the model."""
    unknown = [name for name in explanation.output_names if name not in outputs]
    if unknown:
        raise InputError(f"this explainer has no output {unknown[0]!r}, only {list(outputs)}")
    return np.array([outputs.index(explanation.output_names[k]) for k in output])
