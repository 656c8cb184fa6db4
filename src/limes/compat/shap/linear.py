"""``LinearExplainer``: coefficients times the distance from the mean of the background."""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.compat.shap._base import (
    Account,
    Background,
    ExplainedRows,
    Explainer,
    background_of,
    linear_form,
    link_of,
    peer_error,
)
from limes.exceptions import InputError

_OPTIONS = {"algorithm", "output_names", "feature_names", "seed", "linearize_link", "data"}


class LinearExplainer(Explainer):
    """Contributions to a linear model's margin or prediction, φ_j = β_j (x_j - the background's mean of x_j).

    Parameters
    ----------
    model
        A linear model of scikit-learn, or a pair (coefficients (d,) or (k, d), intercept).
    masker
        Background rows (m, d), all of which count; or a pair (mean (d,), covariance), of which the mean is
        used.
    link, nsamples
        The identity alone; the second is ignored.
    feature_perturbation
        "interventional", or None, which is the same. Columns that depend on each other do not stand for each
        other.

    Attributes
    ----------
    expected_value : number or (k,)
        The output at the mean of the background.
    coef, intercept
        Those of the model.

    Raises
    ------
    InputError
        If the model is not linear, in which case the error is shap's, too, or the background is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from limes.compat import shap
    >>> explainer = shap.LinearExplainer((np.array([1.0, 2.0]), 0.5), np.array([[0.0, 0.0], [2.0, 2.0]]))
    >>> float(explainer.expected_value), explainer.shap_values(np.array([[3.0, 1.0]])).tolist()
    (3.5, [[2.0, 0.0]])
    """

    def __init__(
        self,
        model: Any,
        masker: Any = None,
        link: Any = None,
        nsamples: int = 1000,  # noqa: ARG002 - of the correlated game
        feature_perturbation: str | None = None,
        **_options: Any,
    ) -> None:
        unknown = sorted(_options.keys() - _OPTIONS)
        if unknown:
            raise TypeError(f"LinearExplainer() got an unexpected keyword argument {unknown[0]!r}")
        if feature_perturbation not in (None, "interventional"):
            advice = "" if feature_perturbation == "correlation_dependent" else " is not known; it"
            raise peer_error(
                "InvalidFeaturePerturbationError",
                f"feature_perturbation={feature_perturbation!r}{advice} is not explained here: use "
                "'interventional', or a TabularExplainer with groups of columns that depend on each other",
            )
        if link_of(link) is not None:
            raise InputError("link= of a linear model is the identity: its margin is explained")
        masker = _options.get("data") if masker is None else masker
        self.model, self.masker, self.link = model, masker, link
        self.feature_names, self.output_names = _options.get("feature_names"), _options.get("output_names")
        if isinstance(model, tuple) and len(model) == 2:
            coef, intercept = (np.asarray(each, dtype=np.float64) for each in model)
            coef = coef.T if coef.ndim == 2 else coef
        else:
            form = linear_form(model)
            if form is None:
                raise peer_error("InvalidModelError", f"An unknown model type was passed: {type(model)}")
            coef, intercept = form.coef, form.intercept
        self._coef, self.intercept = coef, intercept
        self.coef = coef.T
        if isinstance(masker, tuple) and len(masker) == 2:
            self.mean = np.asarray(masker[0], dtype=np.float64)
        else:
            self.mean = _mean(background_of(masker))
        if self.mean.shape != coef.shape[:1]:
            raise InputError(f"the background has {self.mean.size} columns, the model {len(coef)}")
        self.expected_value = self.mean @ coef + intercept

    def _account(self, rows: ExplainedRows, **_: Any) -> Account:
        x = np.asarray(rows.cells, dtype=np.float64)
        if x.shape[1:] != self.mean.shape:
            raise InputError(f"X has {x.shape[1]} columns, the model {self.mean.size}")
        away = x - self.mean
        values = away * self._coef if self._coef.ndim == 1 else away[:, :, None] * self._coef
        return Account(values, np.repeat(np.asarray(self.expected_value)[None], len(x), axis=0), None)

    def __call__(self, X: Any, *_: Any, silent: bool = False) -> Any:  # noqa: ARG002
        """Return shap's Explanation of rows ``X``; ``silent`` and options of samples are ignored."""
        return self._explanation(X)

    def shap_values(self, X: Any) -> Floats:
        """Contributions (n, d), or (n, d, k) of several outputs; without the first axis of one row ``X``."""
        return self._shap_values(X)


def _mean(background: Background) -> Floats:
    rows = np.asarray(
        background.rows.to_numpy() if hasattr(background.rows, "to_numpy") else background.rows,
        dtype=np.float64,
    )
    return np.asarray(np.average(rows, axis=0, weights=background.weights))
