"""Which reader reads which class, found by name: no library is imported that the model is not from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# Sums of a thousand terms in another order differ by less than this, relative to the largest prediction.
_DOUBLE = 1e-9


class Entry(NamedTuple):
    """A reader, ``module:function`` below ``limes.models``, and how closely the library itself adds up."""

    reader: str
    tolerance: float = _DOUBLE


def _entries(library: str, reader: str, names: str, tolerance: float = _DOUBLE) -> dict[str, Entry]:
    return {f"{library}.{name}": Entry(reader, tolerance) for name in names.split()}


READERS: Mapping[str, Entry] = {
    **_entries(
        "sklearn",
        "sklearn_linear:regressor",
        "LinearRegression Ridge RidgeCV Lasso LassoCV LassoLars LassoLarsCV LassoLarsIC Lars "
        "LarsCV ElasticNet ElasticNetCV MultiTaskLasso MultiTaskElasticNet "
        "OrthogonalMatchingPursuit BayesianRidge ARDRegression HuberRegressor "
        "TheilSenRegressor QuantileRegressor SGDRegressor LinearSVR",
    ),
    **_entries(
        "sklearn",
        "sklearn_linear:classifier",
        "LogisticRegression LogisticRegressionCV RidgeClassifier RidgeClassifierCV "
        "SGDClassifier Perceptron LinearSVC LinearDiscriminantAnalysis",
    ),
    **_entries(
        "sklearn",
        "sklearn_trees:tree",
        "DecisionTreeRegressor DecisionTreeClassifier ExtraTreeRegressor ExtraTreeClassifier",
    ),
    **_entries(
        "sklearn",
        "sklearn_trees:forest",
        "RandomForestRegressor RandomForestClassifier ExtraTreesRegressor ExtraTreesClassifier",
    ),
    **_entries(
        "sklearn",
        "sklearn_trees:boosting",
        "GradientBoostingRegressor GradientBoostingClassifier",
    ),
}
