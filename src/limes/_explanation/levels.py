"""The coarse level of an account at two levels, which the provenance of the fine one holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from limes._explanation.attribution import changed, requested

Kind = TypeVar("Kind", bound=Any)


def coarse_level(explanation: Kind, stored: Mapping[str, Any]) -> Kind:
    """The coarse level: values and errors of sentences, or of coarse rectangles."""
    several = explanation.predictions.ndim == 2
    outputs = [stored["outputs"].index(name) for name in explanation.output_names]
    values, errors = (
        np.asarray(stored[name])[None, :, outputs if several else outputs[0]]
        for name in ("values", "standard_errors")
    )
    account, unknown = requested(explanation, "contributions"), np.full(values.shape, np.nan)
    numbers = {"values": values, "standard_errors": errors}
    if account is not None:
        account = account.changed(**numbers, alone=unknown, last=unknown)
    coefficients = requested(explanation, "coefficients")
    if coefficients is not None:
        no_fit = {
            "fidelity": np.full(explanation.predictions.shape, np.nan),
            "fidelity_errors": np.full(explanation.predictions.shape, np.inf),
        }
        coefficients = coefficients.changed(**numbers, **no_fit)
    return changed(
        explanation,
        coefficients=coefficients,
        contributions=account,
        feature_names=tuple(stored["names"]),
        conditions=(tuple(stored["conditions"]),),
        data=np.array([stored["data"]], dtype=object),
        provenance={name: fact for name, fact in explanation.provenance.items() if name != "coarse"}
        | stored["picture"],
    )
