"""Readers: from a library's fitted model to a form, ``module:function`` by ``library.Class``.

A library is added by a module here and a line of the table: nothing is imported before a model of the library
is read. A module that has the library's name may have

``METHODS``
    (class or a base of it, method) -> find, where ``find(model)`` is table -> predictions, or None: for what
    the library has under another name than scikit-learn.
``DIRECT``
    (class, method) -> find, where ``find(model, method)`` is rows (n, d) of numbers -> predictions, without
    the checks of an estimator, which take ten times as long as one row of a booster. These predictions are
    never displayed: they are compared with a form's, to detect that the estimator was fitted again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["EXACT_TOLERANCE", "LIBRARIES", "READERS", "SINGLE_TOLERANCE", "Entry"]

# Sums of a thousand terms in another order differ by less than this, relative to the largest prediction.
EXACT_TOLERANCE = 1e-9
# Tolerance where tables or libraries are in float32: XGBoost adds in it, and each of a thousand sums is off
# by up to 6e-8 of itself, in random directions.
SINGLE_TOLERANCE = 1e-5
# Kernel machines add up terms that are thousands of times larger than their sum.
_CANCELLING = 1e-6


class Entry(NamedTuple):
    """A reader, ``module:function`` in ``limes.models.readers``, and the rounding error of the library."""

    reader: str
    tolerance: float = EXACT_TOLERANCE


def _entries(library: str, reader: str, names: str, tolerance: float = EXACT_TOLERANCE) -> dict[str, Entry]:
    return {f"{library}.{name}": Entry(reader, tolerance) for name in names.split()}


READERS: Mapping[str, Entry] = {
    **_entries(
        "sklearn",
        "sklearn_linear:regressor",
        "LinearRegression Ridge RidgeCV Lasso LassoCV LassoLars LassoLarsCV LassoLarsIC Lars "
        "LarsCV ElasticNet ElasticNetCV MultiTaskLasso MultiTaskLassoCV MultiTaskElasticNet "
        "MultiTaskElasticNetCV OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV BayesianRidge "
        "ARDRegression HuberRegressor TheilSenRegressor QuantileRegressor SGDRegressor "
        "PassiveAggressiveRegressor LinearSVR",
    ),
    **_entries("sklearn", "sklearn_linear:generalized", "GammaRegressor PoissonRegressor TweedieRegressor"),
    **_entries("sklearn", "sklearn_linear:partial_least_squares", "CCA PLSCanonical PLSRegression"),
    **_entries("sklearn", "sklearn_linear:one_class", "SGDOneClassSVM"),
    **_entries(
        "sklearn",
        "sklearn_linear:classifier",
        "LogisticRegression LogisticRegressionCV RidgeClassifier RidgeClassifierCV "
        "SGDClassifier PassiveAggressiveClassifier Perceptron LinearSVC LinearDiscriminantAnalysis",
    ),
    **_entries("sklearn", "sklearn_linear:quadratic", "QuadraticDiscriminantAnalysis"),
    **_entries("sklearn", "sklearn_linear:counts", "MultinomialNB ComplementNB"),
    **_entries("sklearn", "sklearn_linear:binary", "BernoulliNB"),
    **_entries("sklearn", "sklearn_linear:normal", "GaussianNB"),
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
    **_entries("sklearn", "sklearn_kernels:regressor", "SVR NuSVR", _CANCELLING),
    **_entries("sklearn", "sklearn_kernels:classifier", "SVC NuSVC", _CANCELLING),
    **_entries("sklearn", "sklearn_kernels:one_class", "OneClassSVM", _CANCELLING),
    **_entries("sklearn", "sklearn_kernels:ridge", "KernelRidge", _CANCELLING),
    **_entries("sklearn", "sklearn_kernels:gaussian_process", "GaussianProcessRegressor", _CANCELLING),
    **_entries("sklearn", "networks:regressor", "MLPRegressor"),
    **_entries("sklearn", "networks:classifier", "MLPClassifier"),
    **_entries("onnxruntime", "onnx:session", "InferenceSession", SINGLE_TOLERANCE),
    **_entries("torch", "networks:sequential", "Sequential", SINGLE_TOLERANCE),
    **_entries("sklearn", "sklearn_ensembles:bagging", "BaggingRegressor BaggingClassifier"),
    **_entries("sklearn", "sklearn_ensembles:voting", "VotingRegressor VotingClassifier"),
    **_entries("sklearn", "sklearn_ensembles:stacking", "StackingRegressor StackingClassifier"),
    **_entries("sklearn", "sklearn_ensembles:adaboost", "AdaBoostClassifier"),
    **_entries("sklearn", "sklearn_ensembles:calibrated", "CalibratedClassifierCV"),
    **_entries("sklearn", "sklearn_ensembles:targets", "MultiOutputRegressor MultiOutputClassifier"),
    **_entries("sklearn", "sklearn_ensembles:transformed_target", "TransformedTargetRegressor"),
    **_entries(
        "sklearn",
        "sklearn_ensembles:wrapper",
        "FrozenEstimator GridSearchCV HalvingGridSearchCV HalvingRandomSearchCV RANSACRegressor "
        "RandomizedSearchCV",
    ),
    **_entries(
        "sklearn",
        "sklearn_ensembles:refused",
        "AdaBoostRegressor ClassifierChain FixedThresholdClassifier "
        "OneVsOneClassifier OutputCodeClassifier RegressorChain TunedThresholdClassifierCV",
    ),
    **_entries("sklearn", "sklearn_ensembles:one_vs_rest", "OneVsRestClassifier"),
    **_entries("sklearn", "sklearn_ensembles:dummy_regressor", "DummyRegressor"),
    **_entries("sklearn", "sklearn_ensembles:dummy_classifier", "DummyClassifier"),
    **_entries(
        "interpret",
        "interpret:machine",
        "ExplainableBoostingRegressor ExplainableBoostingClassifier",
    ),
    **_entries(
        "sklearn",
        "sklearn_trees:histogram",
        "HistGradientBoostingRegressor HistGradientBoostingClassifier",
    ),
    **_entries(
        "xgboost",
        "xgboost:booster",
        "Booster XGBRegressor XGBClassifier XGBRFRegressor XGBRFClassifier XGBRanker",
        SINGLE_TOLERANCE,
    ),
    **_entries("lightgbm", "lightgbm:booster", "Booster LGBMRegressor LGBMClassifier LGBMRanker"),
    **_entries(
        "catboost", "catboost:booster", "CatBoost CatBoostRegressor CatBoostClassifier CatBoostRanker"
    ),
    **_entries(
        "statsmodels",
        "statsmodels:result",
        "BinaryResultsWrapper GLMResultsWrapper GeneralizedPoissonResultsWrapper L1BinaryResultsWrapper "
        "L1PoissonResultsWrapper MultinomialResultsWrapper NegativeBinomialResultsWrapper "
        "PoissonResultsWrapper RLMResultsWrapper RegressionResultsWrapper RegularizedResultsWrapper",
    ),
    **_entries("sklearn", "sklearn_trees:isolation", "IsolationForest"),
    **_entries("limes", "sklearn_trees:path_lengths", "PathLength"),
    **_entries("sklearn", "sklearn_pipeline:pipeline", "Pipeline"),
}

# Libraries with a module of their name
LIBRARIES = frozenset(
    name.split(".")[0] for name, entry in READERS.items() if entry.reader.startswith(f"{name.split('.')[0]}:")
)
