"""Linear models of scikit-learn: predictions of regressors, margins of classifiers and behind log links."""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models.calling.methods import has_identity_link
from limes.models.forms.additive import Linear
from limes.models.reading import CannotRead, Schema, refuse_all_but_margin


def regressor(model: Any, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """coef_ (d,) or (k, d), intercept_ a number or (k,)."""
    coef, intercept = _coefficients(model)
    if hasattr(model.coef_, "toarray"):
        coef = coef.reshape(-1)  # models that have sparsify() predict one target
    if coef.ndim == 1 and intercept.ndim == 1:
        intercept = intercept[0]  # SGDRegressor and LinearSVR store one number in an array
    return Linear(coef.T, intercept)


def classifier(model: Any, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """coef_ (k, d), intercept_ (k,); two classes have one margin."""
    refuse_all_but_margin(model, method, "effects")
    coef, intercept = _coefficients(model)
    if coef.ndim == 1 or len(coef) == 1:  # RidgeClassifier stores (d,) for two classes
        return Linear(coef.reshape(-1), intercept.reshape(-1)[0])
    return Linear(coef.T, intercept)


def generalized(model: Any, method: str, schema: Schema | None) -> Linear:
    """The sum coef · x + intercept: the prediction with the identity link, its logarithm with log."""
    if method == "predict" and not has_identity_link(model):
        raise CannotRead(
            f"{type(model).__name__} predicts exp(coef · x + intercept), which is not a sum of effects; the "
            "logarithm of the prediction is read exactly with output='margin'"
        )
    return regressor(model, method, schema)


def partial_least_squares(model: Any, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """The sum coef · (x - mean) + intercept; coef_ (k, d) is in the units of the columns already."""
    coef, intercept = _coefficients(model)
    mean = np.asarray(model._x_mean, dtype=np.float64)  # noqa: SLF001 - stored nowhere else
    intercept = intercept - coef @ mean
    one_output = model._predict_1d  # noqa: SLF001 - whether predictions are (n,) or (n, 1)
    return Linear(coef[0], intercept[0]) if one_output else Linear(coef.T, intercept)


def one_class(model: Any, method: str, schema: Schema | None) -> Linear:  # noqa: ARG001
    """The sum coef · x - offset."""
    if method != "decision_function":
        raise CannotRead(
            f"{method} of SGDOneClassSVM is the sign of its margin, which is not a sum of effects; the "
            "margin is read exactly with output='margin'"
        )
    coef = np.asarray(_dense(model.coef_), dtype=np.float64).reshape(-1)
    return Linear(coef, -np.asarray(model.offset_, dtype=np.float64).reshape(-1)[0])


def _coefficients(model: Any) -> tuple[Floats, Floats]:
    coef = np.asarray(_dense(model.coef_), dtype=np.float64)
    return coef, np.asarray(model.intercept_, dtype=np.float64)


def _dense(coef: Any) -> Any:
    return coef.toarray() if hasattr(coef, "toarray") else coef  # after sparsify()
