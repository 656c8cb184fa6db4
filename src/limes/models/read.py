"""Read a model: what is known of its structure, as a form.

Readers are found by the name of the model's class and loaded when they are needed, so that no library is
imported that the user's model does not come from. Only the exact class counts: a subclass may predict
something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import ReadMismatchError
from limes.models.outputs import Asker, Output, resolve
from limes.models.reductions import BlackBox, Form

# Sums of a thousand terms in another order differ by less than this, relative to the largest prediction.
READ_TOLERANCE = 1e-9


class CannotRead(Exception):  # noqa: N818 - caught inside this package, never seen by users
    """A reader's way to say why it leaves a model to sampling."""


Reader = Callable[[Any, str], Form]

# "library.ClassName" -> "module:function"; the function maps (model, method) to the form of that method's
# answer.
READERS: Mapping[str, str] = {
    "sklearn.LinearRegression": "sklearn_linear:regressor",
    "sklearn.Ridge": "sklearn_linear:regressor",
    "sklearn.RidgeCV": "sklearn_linear:regressor",
    "sklearn.Lasso": "sklearn_linear:regressor",
    "sklearn.LassoCV": "sklearn_linear:regressor",
    "sklearn.LassoLars": "sklearn_linear:regressor",
    "sklearn.LassoLarsCV": "sklearn_linear:regressor",
    "sklearn.LassoLarsIC": "sklearn_linear:regressor",
    "sklearn.Lars": "sklearn_linear:regressor",
    "sklearn.LarsCV": "sklearn_linear:regressor",
    "sklearn.ElasticNet": "sklearn_linear:regressor",
    "sklearn.ElasticNetCV": "sklearn_linear:regressor",
    "sklearn.MultiTaskLasso": "sklearn_linear:regressor",
    "sklearn.MultiTaskElasticNet": "sklearn_linear:regressor",
    "sklearn.OrthogonalMatchingPursuit": "sklearn_linear:regressor",
    "sklearn.BayesianRidge": "sklearn_linear:regressor",
    "sklearn.ARDRegression": "sklearn_linear:regressor",
    "sklearn.HuberRegressor": "sklearn_linear:regressor",
    "sklearn.TheilSenRegressor": "sklearn_linear:regressor",
    "sklearn.QuantileRegressor": "sklearn_linear:regressor",
    "sklearn.SGDRegressor": "sklearn_linear:regressor",
    "sklearn.LinearSVR": "sklearn_linear:regressor",
    "sklearn.LogisticRegression": "sklearn_linear:classifier",
    "sklearn.LogisticRegressionCV": "sklearn_linear:classifier",
    "sklearn.RidgeClassifier": "sklearn_linear:classifier",
    "sklearn.RidgeClassifierCV": "sklearn_linear:classifier",
    "sklearn.SGDClassifier": "sklearn_linear:classifier",
    "sklearn.Perceptron": "sklearn_linear:classifier",
    "sklearn.LinearSVC": "sklearn_linear:classifier",
    "sklearn.LinearDiscriminantAnalysis": "sklearn_linear:classifier",
    "sklearn.DecisionTreeRegressor": "sklearn_trees:tree",
    "sklearn.DecisionTreeClassifier": "sklearn_trees:tree",
    "sklearn.ExtraTreeRegressor": "sklearn_trees:tree",
    "sklearn.ExtraTreeClassifier": "sklearn_trees:tree",
    "sklearn.RandomForestRegressor": "sklearn_trees:forest",
    "sklearn.RandomForestClassifier": "sklearn_trees:forest",
    "sklearn.ExtraTreesRegressor": "sklearn_trees:forest",
    "sklearn.ExtraTreesClassifier": "sklearn_trees:forest",
    "sklearn.GradientBoostingRegressor": "sklearn_trees:boosting",
    "sklearn.GradientBoostingClassifier": "sklearn_trees:boosting",
}


def read(model: Any, output: Any = None) -> Form | BlackBox:
    """Read off a fitted model the form of one of its outputs.

    Parameters
    ----------
    model
        A fitted estimator, or a callable (n, d) -> (n,) or (n, k).
    output
        As for :class:`limes.TabularExplainer`.

    Returns
    -------
    Form or BlackBox
        A form that predicts what the model predicts; a BlackBox, with the reason, where the model cannot be
        read.

    Raises
    ------
    InputError
        If the model has no such output.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> import limes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> limes.models.read(LinearRegression().fit(X, y)).coef.shape
    (10,)
    """
    return read_output(model, resolve(model, output))


def read_output(model: Any, output: Output, decode: Callable[[Floats], Any] = np.asarray) -> Form | BlackBox:
    """Read, for an output that is already resolved; ``decode`` as for :class:`Asker`."""
    try:
        form = _reader(model)(model, output.method)
    except CannotRead as reason:
        return BlackBox(Asker(model, output, decode), str(reason))
    return form if output.columns is None else form.select(output.columns)


def check_against(model_predict: Callable[[Floats], Floats], form: Form, rows: Floats) -> None:
    """Compare the form with the model's own predictions.

    Raises
    ------
    ReadMismatchError
        Naming the first row where they differ by more than 1e-9 of the largest prediction.
    """
    expected, found = model_predict(rows), form.predict(rows)
    if expected.shape != found.shape:
        raise ReadMismatchError(
            f"the model predicts shape {expected.shape}, what was read off it {found.shape}"
        )
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    wrong = ~(np.abs(expected - found) <= READ_TOLERANCE * scale)
    if wrong.any():
        row = int(np.argmax(wrong.reshape(len(rows), -1).any(axis=1)))
        raise ReadMismatchError(
            f"background row {row}: the model predicts {expected[row]}, what was read off it gives "
            f"{found[row]}; use method='sampled', and please report the model's class and version"
        )


def _reader(model: Any) -> Reader:
    kind = type(model)
    library = kind.__module__.split(".")[0]
    name = f"{library}.{kind.__qualname__}"
    if name not in READERS:
        raise CannotRead(_why_not(kind))
    module, function = READERS[name].split(":")
    reader: Reader = getattr(import_module(f"limes.models.{module}"), function)
    return reader


def _why_not(kind: type) -> str:
    for base in kind.__mro__[1:]:
        if f"{base.__module__.split('.')[0]}.{base.__qualname__}" in READERS:
            return f"{kind.__qualname__} is a subclass of {base.__qualname__}, and may predict something else"
    return f"limes cannot read {kind.__qualname__} yet"
