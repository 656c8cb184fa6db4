"""Linear models of scikit-learn, read and compared with their own predictions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn import cross_decomposition
from sklearn import linear_model as linear
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

import limes
from internals import READERS
from limes.models import forms

pytestmark = pytest.mark.filterwarnings("ignore:Class PassiveAggressive")
LEFT_OUT = not hasattr(linear, "PassiveAggressiveRegressor")  # scikit-learn 1.10 leaves it out

# Predictions and forms add the same few products in another order.
SAME = 1e-11

DIABETES = load_diabetes(return_X_y=True)
SECOND = DIABETES[0] @ np.arange(10.0) * 300 + DIABETES[1]

ONE_TARGET = {
    "LinearRegression": [{}, {"fit_intercept": False}, {"positive": True}],
    "Ridge": [{}, {"fit_intercept": False}, {"solver": "lsqr"}],
    "RidgeCV": [{}, {"fit_intercept": False}],
    "Lasso": [{"alpha": 0.1}, {"alpha": 1e4}],
    "LassoCV": [{"cv": 3, "random_state": 0}],
    "LassoLars": [{"alpha": 0.1}, {"alpha": 0.1, "fit_intercept": False}],
    "LassoLarsCV": [{"cv": 3}],
    "LassoLarsIC": [{}],
    "Lars": [{"n_nonzero_coefs": 4}],
    "LarsCV": [{"cv": 3}],
    "ElasticNet": [{"alpha": 0.1}, {"alpha": 0.1, "fit_intercept": False}],
    "ElasticNetCV": [{"cv": 3, "random_state": 0}],
    "OrthogonalMatchingPursuit": [{}, {"n_nonzero_coefs": 3, "fit_intercept": False}],
    "OrthogonalMatchingPursuitCV": [{"cv": 3}],
    "BayesianRidge": [{}, {"fit_intercept": False}],
    "ARDRegression": [{}],
    "HuberRegressor": [{}, {"fit_intercept": False}],
    "TheilSenRegressor": [{"random_state": 0, "max_subpopulation": 100, "n_subsamples": 100}],
    "QuantileRegressor": [{"alpha": 0.01}, {"fit_intercept": False, "quantile": 0.9, "alpha": 0.0}],
    "SGDRegressor": [{"random_state": 0}, {"random_state": 0, "average": True, "fit_intercept": False}],
    "PassiveAggressiveRegressor": [{"random_state": 0}, {"random_state": 0, "fit_intercept": False}],
    "PLSRegression": [{}, {"n_components": 5, "scale": False}],
    "CCA": [{"n_components": 1}],
    "PLSCanonical": [{"n_components": 1}],
    "LinearSVR": [{"random_state": 0}, {"random_state": 0, "fit_intercept": False}],
}
SEVERAL_TARGETS = {
    "LinearRegression": [{}, {"fit_intercept": False}],
    "Ridge": [{}, {"fit_intercept": False}],
    "RidgeCV": [{}],
    "Lasso": [{"alpha": 0.1}],
    "LassoLars": [{"alpha": 0.1}],
    "Lars": [{}],
    "ElasticNet": [{"alpha": 0.1}],
    "MultiTaskLasso": [{"alpha": 0.1}, {"alpha": 0.1, "fit_intercept": False}],
    "MultiTaskElasticNet": [{"alpha": 0.1}],
    "MultiTaskLassoCV": [{"cv": 3, "random_state": 0}],
    "MultiTaskElasticNetCV": [{"cv": 3, "random_state": 0}, {"cv": 3, "fit_intercept": False}],
    "PLSRegression": [{"n_components": 4}, {"n_components": 3, "scale": False}],
    "CCA": [{"n_components": 1}, {"n_components": 1, "scale": False}],
    "PLSCanonical": [{"n_components": 1}],
    "OrthogonalMatchingPursuit": [{"n_nonzero_coefs": 3}],
}
CLASSIFIERS = {
    "LogisticRegression": [{}, {"fit_intercept": False}, {"class_weight": "balanced", "C": 0.1}],
    "LogisticRegressionCV": [{"cv": 3, "Cs": 3}],
    "RidgeClassifier": [{}, {"class_weight": "balanced", "fit_intercept": False}],
    "RidgeClassifierCV": [{}],
    "SGDClassifier": [{"random_state": 0}, {"loss": "log_loss", "random_state": 0, "fit_intercept": False}],
    "PassiveAggressiveClassifier": [{"random_state": 0}, {"random_state": 0, "fit_intercept": False}],
    "Perceptron": [{"random_state": 0}, {"random_state": 0, "class_weight": "balanced"}],
    "LinearSVC": [{"random_state": 0}, {"random_state": 0, "fit_intercept": False}],
    "LinearDiscriminantAnalysis": [{}, {"solver": "lsqr", "shrinkage": "auto"}, {"solver": "eigen"}],
}


def named(name):
    for home in (linear, cross_decomposition, {"LinearSVR": LinearSVR, "LinearSVC": LinearSVC}):
        result = home.get(name) if isinstance(home, dict) else getattr(home, name, None)
        if result is not None:
            return result
    return LinearDiscriminantAnalysis


def cases(table):
    return [
        pytest.param(name, options, id=f"{name} {options}")
        for name, all_ in table.items()
        for options in all_
        if not (name.startswith("PassiveAggressive") and LEFT_OUT)
    ]


def fitted(model, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence is not what is tested
        return model.fit(*data, **options)


def rows_like(X, count=1000):
    """Background rows, and rows far outside of it."""
    rng = np.random.default_rng(0)
    drawn = X[rng.integers(len(X), size=count)] + rng.normal(size=(count, X.shape[1])) * X.std(axis=0)
    drawn[0], drawn[1] = 0.0, 1e6
    return drawn


def assert_same(form, expected, x):
    result = form.predict(x)
    assert result.shape == expected.shape
    # each row against its own size: a row of 1e6 must not hide the others
    size = np.abs(expected).reshape(len(x), -1).max(axis=1) + np.abs(x).max(axis=1)
    gap = np.abs(result - expected).reshape(len(x), -1).max(axis=1)
    assert (gap <= SAME * size * max(1.0, np.abs(getattr(form, "coef", np.ones(1))).max())).all()


@pytest.mark.parametrize(("name", "options"), cases(ONE_TARGET))
def test_one_target(name, options):
    X, y = DIABETES
    model = fitted(named(name)(**options), X, y)
    form = limes.models.read(model)
    assert isinstance(form, forms.Linear)
    x = rows_like(X)
    assert_same(form, model.predict(x), x)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize(("name", "options"), cases(SEVERAL_TARGETS))
def test_several_targets(name, options, columns):
    """One column of targets is not the same as a vector, and each class has its own mind about that."""
    X, y = DIABETES
    model = fitted(named(name)(**options), X, np.column_stack([y, SECOND])[:, :columns])
    form, x = limes.models.read(model), rows_like(X)
    assert_same(form, model.predict(x), x)
    if model.predict(x).ndim == 2:
        assert_same(limes.models.read(model, 0), model.predict(x)[:, 0], x)
        assert_same(limes.models.read(model, [columns - 1]), model.predict(x)[:, [columns - 1]], x)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine])
@pytest.mark.parametrize(("name", "options"), cases(CLASSIFIERS))
def test_margins(name, options, load):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = fitted(named(name)(**options), X, y)
    form, x = limes.models.read(model, "margin"), rows_like(X)
    assert isinstance(form, forms.Linear)
    assert_same(form, model.decision_function(x), x)
    # without probabilities the margin is what is explained
    default = limes.models.read(model)
    if hasattr(model, "predict_proba") and len(model.classes_) == 2:
        assert isinstance(default, forms.Linked)
        assert_same(default, model.predict_proba(x), x)
    elif hasattr(model, "predict_proba") and len(model.classes_) == 3 and name != "SGDClassifier":
        assert isinstance(default, forms.Softmax)
        assert_same(default, model.predict_proba(x), x)
    elif hasattr(model, "predict_proba"):
        assert isinstance(default, forms.BlackBox)
        assert "output='margin'" in default.reason
        assert np.array_equal(default.predict(x), model.predict_proba(x))
    else:
        assert_same(default, model.decision_function(x), x)


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-1, 1], [2.0, 7.0]])
def test_labels_of_any_kind(labels):
    X, y = load_breast_cancer(return_X_y=True)
    model = fitted(linear.LogisticRegression(max_iter=50), X, np.array(labels)[y])
    form, x = limes.models.read(model, "margin"), rows_like(X)
    assert_same(form, model.decision_function(x), x)
    one = limes.models.read(model, labels[1])
    assert isinstance(one, forms.Linked)
    assert_same(one, model.predict_proba(x)[:, 1], x)


def test_sample_weights_and_dataframes_change_nothing():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    weights = np.random.default_rng(0).uniform(size=len(y))
    model = linear.Ridge().fit(X, y, sample_weight=weights)
    assert_same(limes.models.read(model), model.predict(X), X.to_numpy())


def test_models_of_float32_are_read_in_float64():
    X, y = DIABETES
    model = linear.LinearRegression().fit(X.astype(np.float32), y.astype(np.float32))
    x = rows_like(X)
    assert_same(limes.models.read(model), model.predict(x), x)


@pytest.mark.parametrize("make", [linear.SGDClassifier, linear.LogisticRegression, linear.SGDRegressor])
def test_sparsified_coefficients(make):
    X, y = load_iris(return_X_y=True)
    model = fitted(make(), X, y).sparsify()
    answer = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    result = limes.models.read(model, "margin" if hasattr(model, "classes_") else None)
    assert np.allclose(result.predict(X), answer, rtol=1e-9)


def test_sparse_coefficients_of_one_row():
    """scikit-learn 1.6 makes (1, d) of coefficients (d,) in sparsify(); predictions stay (n,)."""
    X, y = load_iris(return_X_y=True)
    model = fitted(linear.SGDRegressor(), X, y)
    expected = model.predict(X)
    model.coef_ = scipy.sparse.csr_matrix(model.coef_.reshape(1, -1))
    form = limes.models.read(model)
    assert form.predict(X).shape == (150,)
    assert np.allclose(form.predict(X), expected, rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False, "nu": 0.2}], ids=str)
def test_the_margin_of_a_linear_one_class_machine(options):
    X, _ = DIABETES
    model = linear.SGDOneClassSVM(random_state=0, **options).fit(X)
    form, x = limes.models.read(model, "margin"), rows_like(X)
    assert isinstance(form, forms.Linear)
    assert_same(form, model.decision_function(x), x)
    labels = limes.models.read(model)
    assert isinstance(labels, forms.BlackBox)
    assert "sign of its margin" in labels.reason


@pytest.mark.parametrize("columns", [1, 2])
def test_coefficients_of_partial_least_squares(columns):
    """The model centres and scales; the difference of two means of a column says it all."""
    X, y = load_diabetes(return_X_y=True, scaled=False)
    target = np.column_stack([y, y**2])[:, :columns]
    model = cross_decomposition.PLSRegression(4).fit(X, target)
    result = limes.TabularExplainer(model, X, law="empirical")(X[:3])
    slope = (model.predict(X + 1e6 * np.eye(10)[2]) - model.predict(X)) / 1e6
    for i, row in enumerate(X[:3]):
        edges = np.percentile(X[:, 2], [25, 50, 75])
        in_cell = np.searchsorted(edges, X[:, 2]) == np.searchsorted(edges, row[2])
        gap = X[in_cell, 2].mean() - X[~in_cell, 2].mean()
        assert result.method == "exact"
        assert np.allclose(result.coefficients.values[i, 2], slope[0] * gap, rtol=1e-8)


def test_every_linear_class_is_tested():
    listed = {
        name.split(".")[1] for name, entry in READERS.items() if entry.reader.startswith("sklearn_linear:")
    }
    elsewhere = {"GammaRegressor", "PoissonRegressor", "SGDOneClassSVM", "TweedieRegressor"}
    elsewhere |= {
        "BernoulliNB",
        "ComplementNB",
        "GaussianNB",
        "MultinomialNB",
        "QuadraticDiscriminantAnalysis",
    }
    elsewhere |= {"GaussianProcessRegressor", "KernelRidge", "NuSVC", "NuSVR", "OneClassSVM", "SVC", "SVR"}
    assert listed <= set(ONE_TARGET) | set(SEVERAL_TARGETS) | set(CLASSIFIERS) | elsewhere
