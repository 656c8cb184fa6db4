"""A control only where it pays: where rows that it has not seen are told better than by a linear fit.

Least squares of the residual takes the linear part of f away in any case, so that a control that tells
little more than that adds its own noise and nothing else. Fits to different rows must not differ in whether
there is a control: their residuals would not have the same slopes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.expectations.controls.control import Control, Fitted, Zero
from limes.expectations.controls.shrinkage import ridge_path

# Every so manieth row is not shown to either
_LEFT_OUT = 4
# What a control may leave of the variance that a linear fit leaves
_WORTH = 0.9
# A linear fit leaves so much of a linear function, for its penalty
_SEEN = 1e-6


def worthwhile(control: Control) -> Control:
    """The control, or none. What the first fit to so many rows decides holds for all others to as many."""
    decided: dict[int, bool] = {}

    def fit(design: Any, x: Floats, f: Floats) -> Fitted:
        if len(x) not in decided:
            decided[len(x)] = _pays(control, design, x, f)
        return control(design, x, f) if decided[len(x)] else Zero(f.shape[1])

    return fit


def _pays(control: Control, design: Any, x: Floats, f: Floats) -> bool:
    out = np.arange(len(x)) % _LEFT_OUT == 0
    intercept, coef = ridge_path(x[~out], f[~out])
    linear = (f[out] - intercept - x[out] @ coef).var(axis=0).sum()
    left = (f[out] - control(design, x[~out], f[~out]).predict(x[out])).var(axis=0).sum()
    return bool(left < _WORTH * linear and linear > _SEEN * f.var(axis=0).sum())
