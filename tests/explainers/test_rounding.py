"""Answers whose level is far above their spread: libraries in float32 round away what is explained.

The oracle asks the library itself about every row of a small law, and shares no code with limes.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import limes

VALUES, CELL, BANDWIDTH = 12, 3, 1.3
EDGES = np.arange(VALUES // CELL + 1.0) * CELL - 0.5
RNG = np.random.default_rng(0)
X = pd.DataFrame({name: RNG.permutation(np.repeat(np.arange(float(VALUES)), 20)) for name in "abc"})
Z = np.sin(X.a) + X.b * (X.c > 5) / 6 + 0.2 * RNG.normal(size=len(X))
SPREAD = float(Z.std())
ALL = pd.DataFrame(list(product(range(VALUES), repeat=3)), columns=list("abc"), dtype=float)
ROW = X.iloc[[7]]
OPTIONS = {"bins": [EDGES] * 3, "law": "empirical", "bandwidth": BANDWIDTH, "max_calls": 4096}
RATIOS = [10.0**power for power in range(3, 9)]


def truth(predict) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and contributions (3, k), by the model's answers to all 1,728 rows of the law."""
    f = np.asarray(predict(ALL), dtype=np.float64).reshape(len(ALL), -1)
    row = ROW.to_numpy()[0].astype(int)
    same = np.arange(VALUES) // CELL == row[:, None] // CELL
    laws = np.where(same, 1.0, np.exp(-0.5 / BANDWIDTH**2))
    laws /= laws.sum(axis=1, keepdims=True)
    weights = np.einsum("i,j,k->ijk", *laws).ravel()
    z = (ALL.to_numpy() // CELL == row // CELL).astype(float)
    center = f.mean(axis=0)
    root = np.sqrt(weights)[:, None]
    design = np.column_stack([np.ones(len(z)), z])
    coef = np.linalg.lstsq(root * design, root * (f - center), rcond=None)[0][1:]

    def value(fixed: set[int]) -> np.ndarray:
        kept = [np.eye(VALUES)[row[j]] if j in fixed else laws[j] for j in range(3)]
        return np.einsum("i,j,k->ijk", *kept).ravel() @ (f - center)

    account = np.zeros_like(coef)
    for order in permutations(range(3)):
        for place, j in enumerate(order):
            account[j] += (value({*order[: place + 1]}) - value({*order[:place]})) / 6
    return coef, account


def xgb(kind="XGBRegressor", **options):
    library = pytest.importorskip("xgboost")
    return getattr(library, kind)(**{"n_estimators": 20, "max_depth": 3, "n_jobs": 1, **options})


def booster(y):
    library = pytest.importorskip("xgboost")
    return library.train({"max_depth": 3, "nthread": 1}, library.DMatrix(X, y), 20)


class TwoTargets:
    """The first target at the ordinary level, the second far away."""

    def __init__(self, **options):
        self.options = options

    def fit(self, X, y):
        return xgb(**self.options).fit(X, np.column_stack([Z, y]))


class Trained:
    def fit(self, X, y):
        return booster(y)


BOOSTERS = {
    "estimator": lambda: xgb(),
    "Booster": Trained,
    "pipeline": lambda: make_pipeline(StandardScaler(), xgb()),
    "vote": lambda: VotingRegressor([("a", xgb()), ("b", Ridge())]),
    "random forest": lambda: xgb("XGBRFRegressor"),
    "dart": lambda: xgb(booster="dart"),
    "base_score": lambda: xgb(base_score=0.5, learning_rate=1.0),
    "two targets": TwoTargets,
    "vector leaves": lambda: TwoTargets(multi_strategy="multi_output_tree"),
    "gblinear": lambda: xgb(booster="gblinear", max_depth=None),
    "scaled target": lambda: TransformedTargetRegressor(xgb(), transformer=StandardScaler()),
    "absolute error": lambda: xgb(objective="reg:absoluteerror"),
    # in float64
    "lightgbm": lambda: pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1),
    "catboost": lambda: pytest.importorskip("catboost").CatBoostRegressor(
        n_estimators=20, verbose=0, allow_writing_files=False, thread_count=1
    ),
    "forest": lambda: RandomForestRegressor(10, random_state=0),
    "histograms": lambda: HistGradientBoostingRegressor(max_iter=20),
    "linear": LinearRegression,
    "kernel": lambda: make_pipeline(StandardScaler(), SVR()),
}
DOUBLE = ("lightgbm", "catboost", "forest", "histograms", "linear", "kernel")


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("name", BOOSTERS)
def test_exact_is_right_whatever_the_level(name, ratio):
    model = BOOSTERS[name]().fit(X, Z + ratio * SPREAD)

    def predict(rows):
        if name != "Booster":
            return model.predict(rows)
        return model.predict(pytest.importorskip("xgboost").DMatrix(rows))

    coef, account = truth(predict)
    explanation = limes.TabularExplainer(model, X, **OPTIONS)(ROW, progress=False)
    values, errors = (
        a[0].reshape(3, -1)
        for a in (explanation.coefficients.values, explanation.coefficients.standard_errors)
    )
    contributions = explanation.contributions
    shares, of_shares = (a[0].reshape(3, -1) for a in (contributions.values, contributions.standard_errors))
    if explanation.method == "exact":
        assert (np.abs(values - coef).max(axis=0) <= 1e-3 * np.abs(coef).max(axis=0)).all()
        assert (np.abs(shares - account).max(axis=0) <= 1e-3 * np.abs(account).max(axis=0)).all()
        return
    assert name not in DOUBLE
    assert "adds in single precision: rounding of" in explanation.reason
    assert "explained is the model with this rounding" in explanation.reason
    unit = 1e-9 * np.abs(coef).max(axis=0)
    assert (np.abs(values - coef) <= 5 * errors + unit).all()
    assert (np.abs(shares - account) <= 5 * of_shares + unit).all()


@pytest.mark.parametrize("control", ["additive", "network", "tree", "kernel"])
def test_controls_lose_no_digits_far_from_zero(control):
    """A network is fitted in single precision: coefficients used to miss by forty standard errors."""

    def function(rows):
        return 2.0**24 + np.sin(rows["a"]) * rows["b"] / 4.0

    coef, _ = truth(function)
    explanation = limes.TabularExplainer(function, X, control=control, **OPTIONS)(ROW, progress=False)
    assert (
        np.abs(explanation.coefficients.values[0] - coef[:, 0])
        <= 4 * explanation.coefficients.standard_errors[0]
    ).all()
    assert explanation.coefficients.standard_errors.max() < 0.1 * np.abs(coef).max()
