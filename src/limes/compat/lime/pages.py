"""Pages have the numbers of lime's explanations, and the words of limes'."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from limes.explanation import Explanation

_PER_DEVIATION = (
    "change of the surrogate per standard deviation of a number, or when a category holds against when not"
)

__all__ = ["Fit", "with_numbers"]


@dataclass(frozen=True)
class Fit:
    """One label's surrogate, on some of the features; its score is NaN where it is not known yet."""

    coef: Mapping[int, float]
    errors: Mapping[int, float]
    intercept: float
    prediction: float
    score: float


def with_numbers(told: Explanation, fits: Sequence[Fit], place: Callable[[int], int]) -> Explanation:
    """The features of the fits, with their numbers; ``place`` says where ``told`` has a feature."""
    from limes.explainers.tables.tabular_model import SLOPE_MEANING

    used = list(dict.fromkeys(j for fit in fits for j in fit.coef))
    picked = told[:, [place(j) for j in used]]
    numbers: dict[str, Any] = {
        "values": [[fit.coef.get(j, 0.0) for fit in fits] for j in used],
        "standard_errors": [[fit.errors.get(j, 0.0) for fit in fits] for j in used],
        "intercepts": [fit.intercept for fit in fits],
        "surrogate_predictions": [fit.prediction for fit in fits],
    }
    changed: dict[str, Any] = dict.fromkeys(("shares", "share_errors", "surrogate_errors"))
    if any(len(fit.coef) < len(told.feature_names) for fit in fits):
        # limes' own is that of all features
        numbers["fidelity"] = [fit.score for fit in fits]
        changed["fidelity_errors"] = None
    if told.provenance.get("meaning") == SLOPE_MEANING:
        changed["provenance"] = {**told.provenance, "meaning": _PER_DEVIATION}
    for name, found in numbers.items():
        changed[name] = np.reshape(found, getattr(picked, name).shape)
    return replace(picked, **changed)
