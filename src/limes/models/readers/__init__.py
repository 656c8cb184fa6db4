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


def _entries(
    library: str, module: str, readers: Mapping[str, str], tolerance: float = EXACT_TOLERANCE
) -> dict[str, Entry]:
    """Entries of a module's readers, with the classes that each reads."""
    return {
        f"{library}.{name}": Entry(f"{module}:{reader}", tolerance)
        for reader, names in readers.items()
        for name in names.split()
    }


_LINEAR = {
    "regressor": "LinearRegression Ridge RidgeCV Lasso LassoCV LassoLars LassoLarsCV LassoLarsIC Lars "
    "LarsCV ElasticNet ElasticNetCV MultiTaskLasso MultiTaskLassoCV MultiTaskElasticNet "
    "MultiTaskElasticNetCV OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV BayesianRidge "
    "ARDRegression HuberRegressor TheilSenRegressor QuantileRegressor SGDRegressor "
    "PassiveAggressiveRegressor LinearSVR",
    "generalized": "GammaRegressor PoissonRegressor TweedieRegressor",
    "partial_least_squares": "CCA PLSCanonical PLSRegression",
    "one_class": "SGDOneClassSVM",
    "classifier": "LogisticRegression LogisticRegressionCV RidgeClassifier RidgeClassifierCV "
    "SGDClassifier PassiveAggressiveClassifier Perceptron LinearSVC LinearDiscriminantAnalysis",
    "quadratic": "QuadraticDiscriminantAnalysis",
    "counts": "MultinomialNB ComplementNB",
    "binary": "BernoulliNB",
    "normal": "GaussianNB",
}
_KERNELS = {
    "support_regressor": "SVR NuSVR",
    "support_classifier": "SVC NuSVC",
    "support_one_class": "OneClassSVM",
    "kernel_ridge": "KernelRidge",
    "gaussian_process": "GaussianProcessRegressor",
}
_ENSEMBLES = {
    "forest": "DecisionTreeRegressor DecisionTreeClassifier ExtraTreeRegressor ExtraTreeClassifier "
    "RandomForestRegressor RandomForestClassifier ExtraTreesRegressor ExtraTreesClassifier",
    "boosting": "GradientBoostingRegressor GradientBoostingClassifier",
    "histogram": "HistGradientBoostingRegressor HistGradientBoostingClassifier",
    "bagging": "BaggingRegressor BaggingClassifier",
    "voting": "VotingRegressor VotingClassifier",
    "stacking": "StackingRegressor StackingClassifier",
    "adaboost": "AdaBoostClassifier",
    "calibrated": "CalibratedClassifierCV",
    "targets": "MultiOutputRegressor MultiOutputClassifier",
    "transformed_target": "TransformedTargetRegressor",
    "wrapper": "FixedThresholdClassifier FrozenEstimator GridSearchCV HalvingGridSearchCV "
    "HalvingRandomSearchCV RANSACRegressor RandomizedSearchCV SelfTrainingClassifier "
    "TunedThresholdClassifierCV",
    "refused": "AdaBoostRegressor ClassifierChain IsolationForest OneVsOneClassifier OutputCodeClassifier "
    "RegressorChain",
    "one_vs_rest": "OneVsRestClassifier",
    "dummy": "DummyClassifier DummyRegressor",
}
_BOOSTER = "Booster XGBRegressor XGBClassifier XGBRFRegressor XGBRFClassifier XGBRanker"
_RESULT = (
    "BinaryResultsWrapper GLMResultsWrapper GeneralizedPoissonResultsWrapper L1BinaryResultsWrapper "
    "L1PoissonResultsWrapper MixedLMResultsWrapper MultinomialResultsWrapper NegativeBinomialResultsWrapper "
    "PoissonResultsWrapper RLMResultsWrapper RegressionResultsWrapper RegularizedResultsWrapper"
)
READERS: Mapping[str, Entry] = {
    **_entries("sklearn", "sklearn_linear", _LINEAR),
    **_entries("sklearn", "sklearn_linear", _KERNELS, _CANCELLING),
    **_entries("sklearn", "sklearn_ensembles", _ENSEMBLES),
    **_entries("sklearn", "sklearn_pipeline", {"pipeline": "Pipeline"}),
    **_entries("imblearn", "sklearn_pipeline", {"without_samplers": "Pipeline"}),
    **_entries("sklearn", "networks", {"regressor": "MLPRegressor", "classifier": "MLPClassifier"}),
    **_entries("onnxruntime", "networks", {"session": "InferenceSession"}, SINGLE_TOLERANCE),
    **_entries("torch", "networks", {"sequential": "Sequential"}, SINGLE_TOLERANCE),
    **_entries("limes", "sklearn_ensembles", {"path_lengths": "PathLength"}),
    **_entries(
        "interpret", "interpret", {"machine": "ExplainableBoostingRegressor ExplainableBoostingClassifier"}
    ),
    **_entries("xgboost", "xgboost", {"booster": _BOOSTER}, SINGLE_TOLERANCE),
    **_entries("lightgbm", "lightgbm", {"booster": "Booster LGBMRegressor LGBMClassifier LGBMRanker"}),
    **_entries(
        "catboost", "catboost", {"booster": "CatBoost CatBoostRegressor CatBoostClassifier CatBoostRanker"}
    ),
    **_entries("statsmodels", "statsmodels", {"result": _RESULT}),
}

# Libraries with a module of their name
LIBRARIES = frozenset(
    name.split(".")[0] for name, entry in READERS.items() if entry.reader.startswith(f"{name.split('.')[0]}:")
)
