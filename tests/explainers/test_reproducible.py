"""A reproducible explainer gives a row the same explanation in every batch, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import (
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVR
from xgboost import XGBRegressor

import limes
from effort import crossed, repeats
from internals import _threads
from internals import forest as forest_expectation

FOREST = RandomForestRegressor(6, random_state=0)
MODELS = {
    "forest": FOREST,
    "boosting": GradientBoostingRegressor(n_estimators=6),
    "xgboost": XGBRegressor(n_estimators=6),
    "lightgbm": LGBMRegressor(n_estimators=6, verbose=-1),
    "linear": make_pipeline(StandardScaler(), Ridge()),
    "quadratic": make_pipeline(StandardScaler(), PolynomialFeatures(2), LinearRegression()),
    "kernels": make_pipeline(StandardScaler(), KernelRidge(kernel="rbf", gamma=0.1)),
    "support vectors": make_pipeline(StandardScaler(), SVR(C=100)),
    "combination": VotingRegressor([("linear", LinearRegression()), ("forest", FOREST)]),
}
OPTIONS = {"bins": {}, "smooth": {"weights": "euclidean"}, "slopes": {"bins": None}, "ridge": {"ridge": 1.0}}


def assert_steady(explainer, X, sizes=(1, 9)):
    """The whole table at once against pieces of it."""
    whole = fields(explainer.reproducible(X, progress=False))
    part = repeats(len(X), min(len(X), 36))
    for size in sizes:
        cut = [
            fields(explainer.reproducible(X.iloc[i : i + size], progress=False)) for i in range(0, part, size)
        ]
        for one, pieces in zip(whole, zip(*cut, strict=True), strict=True):
            assert np.array_equal(one[:part], np.concatenate(pieces)[:part])


def fields(explanation):
    return (
        explanation.coefficients.values,
        explanation.coefficients.standard_errors,
        explanation.coefficients.intercepts,
        explanation.predictions,
    )


@pytest.mark.parametrize(("name", "options"), crossed(MODELS, repeats([*OPTIONS], ["bins", "slopes"])))
def test_exact_explanations_are_the_same_in_any_company(name, options):
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X, y = X.iloc[:200, 2:7], y[:200]
    explainer = limes.TabularExplainer(MODELS[name].fit(X, y), X, **OPTIONS[options])
    assert explainer.method == "exact"
    assert_steady(explainer, X.iloc[: repeats(18, 9)] * 1.001)


@pytest.mark.parametrize(
    ("model", "output"),
    [(RandomForestClassifier(5, random_state=0), None), (LogisticRegression(max_iter=5000), "margin")],
)
def test_so_are_those_of_several_outputs(model, output):
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :5]
    explainer = limes.TabularExplainer(model.fit(X, y), X, output=output)
    assert explainer.method == "exact"
    assert_steady(explainer, X)


def test_columns_of_single_precision_are_no_exception():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X.astype(np.float32)
    assert_steady(limes.TabularExplainer(LinearRegression().fit(X, y), X), X)


def test_so_are_samples_and_the_predictions_beside_them():
    X = load_diabetes(as_frame=True).data.iloc[:, :3]
    inner, outer = np.random.default_rng(0).normal(size=(3, 50)), np.random.default_rng(1).normal(size=50)

    def network(X):  # matrix products take another order for one row than for many
        return np.tanh(10 * X.to_numpy() @ inner) @ outer

    assert not np.array_equal(network(X)[:26], [network(X.iloc[i : i + 1])[0] for i in range(26)])
    assert_steady(limes.TabularExplainer(network, X, max_calls=64, control="none"), X.iloc[:26])


@pytest.mark.parametrize("options", ["bins", "smooth"])
@pytest.mark.parametrize("name", ["forest", "combination"])
def test_trees_are_added_up_in_one_order_on_any_number_of_cores(name, options, monkeypatch):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    result = []
    monkeypatch.setattr(forest_expectation, "_OF_ONE_SPLIT", 1.0)
    explainer = limes.TabularExplainer(MODELS[name].fit(X, y), X, **OPTIONS[options])
    for cores in (1, 5):
        monkeypatch.setattr(_threads, "WORKERS", cores)
        result.append(
            (
                explainer.reproducible(X.iloc[:5]).coefficients.values,
                explainer(X.iloc[:5]).coefficients.values,
            )
        )
    assert np.array_equal(result[0][0], result[1][0])
    assert np.array_equal(result[0][1], result[1][1])
