"""Which reader reads which class, found by name: no library is imported that the model is not from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# Sums of a thousand terms in another order differ by less than this, relative to the largest prediction.
EXACT_TOLERANCE = 1e-9
# The same where tables or libraries are in float32.
SINGLE_TOLERANCE = 1e-5
# XGBoost adds in float32: each of a thousand sums is off by up to 6e-8 of itself, in random directions.
_FLOAT32 = 1e-5

# Kernel machines add up terms that are thousands of times larger than their sum.
_CANCELLING = 1e-6


class Entry(NamedTuple):
    """A reader, ``module:function`` below ``limes.models``, and how closely the library itself adds up."""

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
    **_entries("sklearn", "sklearn_discriminant:quadratic", "QuadraticDiscriminantAnalysis"),
    **_entries("sklearn", "sklearn_bayes:counts", "MultinomialNB ComplementNB"),
    **_entries("sklearn", "sklearn_bayes:binary", "BernoulliNB"),
    **_entries("sklearn", "sklearn_bayes:normal", "GaussianNB"),
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
    **_entries("sklearn", "sklearn_ensembles:bagging", "BaggingRegressor BaggingClassifier"),
    **_entries("sklearn", "sklearn_ensembles:voting", "VotingRegressor VotingClassifier"),
    **_entries("sklearn", "sklearn_ensembles:stacking", "StackingRegressor StackingClassifier"),
    **_entries("sklearn", "sklearn_ensembles:adaboost", "AdaBoostClassifier"),
    **_entries("sklearn", "sklearn_ensembles:targets", "MultiOutputRegressor"),
    **_entries("sklearn", "sklearn_ensembles:transformed_target", "TransformedTargetRegressor"),
    **_entries(
        "sklearn",
        "sklearn_ensembles:search",
        "GridSearchCV RandomizedSearchCV HalvingGridSearchCV HalvingRandomSearchCV",
    ),
    **_entries(
        "sklearn",
        "sklearn_ensembles:refused",
        "AdaBoostRegressor CalibratedClassifierCV ClassifierChain FixedThresholdClassifier "
        "OneVsOneClassifier OutputCodeClassifier RegressorChain TunedThresholdClassifierCV",
    ),
    **_entries("sklearn", "sklearn_wrappers:frozen", "FrozenEstimator"),
    **_entries("sklearn", "sklearn_wrappers:inliers", "RANSACRegressor"),
    **_entries("sklearn", "sklearn_wrappers:one_vs_rest", "OneVsRestClassifier"),
    **_entries("sklearn", "sklearn_wrappers:class_targets", "MultiOutputClassifier"),
    **_entries("sklearn", "sklearn_wrappers:dummy_regressor", "DummyRegressor"),
    **_entries("sklearn", "sklearn_wrappers:dummy_classifier", "DummyClassifier"),
    **_entries(
        "interpret",
        "interpret:machine",
        "ExplainableBoostingRegressor ExplainableBoostingClassifier",
    ),
    **_entries(
        "sklearn",
        "sklearn_boosting:histogram",
        "HistGradientBoostingRegressor HistGradientBoostingClassifier",
    ),
    **_entries(
        "xgboost",
        "xgboost:booster",
        "Booster XGBRegressor XGBClassifier XGBRFRegressor XGBRFClassifier XGBRanker",
        _FLOAT32,
    ),
    **_entries("lightgbm", "lightgbm:booster", "Booster LGBMRegressor LGBMClassifier LGBMRanker"),
    **_entries(
        "catboost", "catboost:booster", "CatBoost CatBoostRegressor CatBoostClassifier CatBoostRanker"
    ),
    **_entries("sklearn", "sklearn_isolation:isolation", "IsolationForest"),
    **_entries("limes", "sklearn_isolation:path_lengths", "PathLength"),
    **_entries("sklearn", "sklearn_pipeline:pipeline", "Pipeline"),
}
