"""Linear models of scikit-learn: predictions of regressors, margins of classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models.additive import Linear
from limes.models.read import CannotRead
from limes.models.schema import Schema


def regressor(model: Any, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """coef_ (d,) or (k, d), intercept_ a number or (k,)."""
    coef, intercept = _coefficients(model)
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
    coef, intercept = _coefficients(model)
    if coef.ndim == 1 or len(coef) == 1:  # RidgeClassifier keeps (d,) for two classes
        return Linear(coef.reshape(-1), intercept.reshape(-1)[0])
    return Linear(coef.T, intercept)


def _coefficients(model: Any) -> tuple[Floats, Floats]:
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_  # after sparsify()
    return np.asarray(coef, dtype=np.float64), np.asarray(model.intercept_, dtype=np.float64)
