"""R², and when a model counts as constant: one rule for every explainer, measure and drawing.

Answers 0.1, 0.1, 0.1 have a variance of 1e-34, and whatever is divided by it is noise. So

    f is constant        if sd(f) <= 1e-12 · size of f,
    R² = explained / Var f,    at most 1, and 1 where f is constant: there is nothing that is not explained.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Bools, Floats

# Relative rounding of a model's answers: sums of a few thousand terms in float64
ROUNDING = 1e-12


def is_constant(variance: Any, size: Any) -> Bools:
    """Whether a variance is rounding of numbers of this size; False where the variance is not known."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)) <= ROUNDING * np.abs(size))


def r_squared(explained: Any, variance: Any, size: Any, rest_error: Any = 0.0) -> tuple[Floats, Floats]:
    """R² and its standard error, ``rest_error`` being that of ``variance`` - ``explained``; NaN stays NaN."""
    constant = is_constant(variance, size)
    safe = np.where(constant, 1.0, variance)
    return (
        np.where(constant, 1.0, np.minimum(explained / safe, 1.0)),
        np.where(constant, 0.0, np.abs(explained / safe) * (rest_error / safe)),
    )
