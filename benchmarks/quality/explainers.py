"""The three libraries at their defaults: (X, seed) -> explanations of all rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import shap
from lime.lime_tabular import LimeTabularExplainer
from sklearn.linear_model import Ridge

import limes
from benchmarks.quality.cases import Case
from limes.evaluate import Attribution
from limes.theory import measured_errors

# Background rows of shap, as many as its own maskers keep
_BACKGROUND = 100
Explain = Callable[[np.ndarray, int], Any]


class _Measured(Ridge):
    """``lime``'s own ridge; beside it the standard errors of its fit, which ``lime`` does not say."""

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray) -> _Measured:
        self.errors_ = measured_errors(X, y, sample_weight)
        return super().fit(X, y, sample_weight)


def by_lime(case: Case) -> Explain:
    """5,000 rows, all features."""

    def explain(X: np.ndarray, seed: int) -> Attribution:
        explainer = LimeTabularExplainer(
            case.X, mode="regression", feature_selection="none", random_state=seed
        )
        values, errors = [], []
        for row in X:
            fit = _Measured(alpha=1.0, fit_intercept=True)
            result = explainer.explain_instance(row, case.ask, num_features=X.shape[1], model_regressor=fit)
            values.append(limes.evaluate.attribution(result).values[0])
            errors.append(fit.errors_)
        return Attribution(np.array(values), np.array(errors))

    return explain


def by_shap(case: Case) -> Explain:
    """Trees by TreeExplainer, exactly; others by permutations, as ``shap.Explainer`` chooses."""
    background = shap.sample(case.X, _BACKGROUND, random_state=0)
    if case.trees:
        trees = shap.TreeExplainer(case.model, background)
        return lambda X, seed: trees(X)  # noqa: ARG005 - there is nothing to draw

    def explain(X: np.ndarray, seed: int) -> Any:
        masker = shap.maskers.Independent(background)
        return shap.PermutationExplainer(case.ask, masker, seed=seed)(X, silent=True)

    return explain


def by_limes(case: Case, *, method: str = "auto") -> Explain:
    """Exact where the model can be read; sampled with a control that takes a tenth of the default's time."""
    explainers: dict[int, limes.TabularExplainer] = {}

    def explain(X: np.ndarray, seed: int) -> limes.Explanation:
        if seed not in explainers:
            explainers[seed] = limes.TabularExplainer(
                case.model, case.X, output=case.output, method=method, control="additive", rng=seed
            )
        return explainers[seed](X, progress=False)

    return explain


EXPLAINERS: dict[str, Callable[[Case], Explain]] = {
    "lime": by_lime,
    "shap": by_shap,
    "limes": by_limes,
    "limes, sampled": partial(by_limes, method="sampled"),
}
