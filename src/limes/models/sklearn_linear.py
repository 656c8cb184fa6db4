"""Linear models of scikit-learn: predictions of regressors, margins of classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np

from limes.models.additive import Linear
from limes.models.read import CannotRead
from limes.models.schema import Schema


def regressor(model: Any, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """coef_ (d,) or (k, d), intercept_ a number or (k,)."""
    coef = np.asarray(model.coef_, dtype=np.float64)
    intercept = np.asarray(model.intercept_, dtype=np.float64)
    if coef.ndim == 1 and intercept.ndim == 1:
        intercept = intercept[0]  # SGDRegressor and LinearSVR keep one number in an array
    return Linear(coef.T, intercept)


def classifier(model: Any, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """coef_ (k, d), intercept_ (k,); two classes have one margin."""
    if method != "decision_function":
        raise CannotRead(
            f"the probabilities of {type(model).__name__} are not a sum of effects; "
            "its margin is read exactly with output='margin'"
        )
    coef = np.asarray(model.coef_, dtype=np.float64)
    intercept = np.asarray(model.intercept_, dtype=np.float64)
    if len(coef) == 1:
        return Linear(coef[0], intercept.reshape(-1)[0])
    return Linear(coef.T, intercept)
