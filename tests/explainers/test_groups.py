"""Groups of columns, against enumeration of all combinations of tuples by the model itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer
from sklearn.svm import SVR

import limes

EXACT = 1e-9
GROUPS = {"first": ["a", "c"], "second": ["b", "e"]}
MEMBERS = [["a", "c"], ["b", "e"], ["d"]]


def _table(n: int = 40, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 5)).round(1), columns=[*"abcde"])
    X["e"] = rng.integers(0, 3, n).astype(float)
    return X


def _targets(X: pd.DataFrame) -> np.ndarray:
    return np.sin(X["a"] * X["c"]) + X["b"] * X["e"] + X["d"] ** 2 + X["a"] * X["d"]


class Enumeration:
    """Tuples of each group of a background (n, d), drawn whole, and every column's cells as bins cut them."""

    def __init__(
        self,
        predict: Callable[[pd.DataFrame], np.ndarray],
        background: pd.DataFrame,
        row: pd.Series,
        ratio: float,
        quantiles: np.ndarray | None = None,
    ) -> None:
        self.predict, self.background, self.row = predict, background, row
        edges = {name: np.quantile(background[name], [0.25, 0.5, 0.75]) for name in background}
        self.tuples, self.weights, self.inside = [], [], []
        for names in MEMBERS:
            same = np.ones(len(background), dtype=bool)
            for name in names:
                cell = np.searchsorted(edges[name], background[name], side="left")
                same &= cell == np.searchsorted(edges[name], row[name], side="left")
            self.tuples.append(background[names].to_numpy())
            self.inside.append(same)
            self.weights.append(np.where(same, 1.0, ratio))

    def mean(self, choices: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """E f where each group has one of some tuples, with weights."""
        sizes = [range(len(w)) for _, w in choices]
        places = np.array([*itertools.product(*sizes)])
        weight = np.prod([w[p] / w.sum() for (_, w), p in zip(choices, places.T, strict=True)], axis=0)
        rows = pd.DataFrame(
            np.concatenate([t[p] for (t, _), p in zip(choices, places.T, strict=True)], axis=1),
            columns=[name for names in MEMBERS for name in names],
        )
        return np.tensordot(weight, self.predict(rows[[*self.background]]), axes=(0, 0))

    def choices(self, kept: tuple[int, ...] = ()) -> list[tuple[np.ndarray, np.ndarray]]:
        values = [self.row[names].to_numpy(dtype=float)[None] for names in MEMBERS]
        return [
            (values[g], np.ones(1)) if g in kept else (self.tuples[g], self.weights[g])
            for g in range(len(MEMBERS))
        ]

    def contributions(self) -> np.ndarray:
        G = len(MEMBERS)
        game = {
            s: self.mean(self.choices(s)) for k in range(G + 1) for s in itertools.combinations(range(G), k)
        }
        phi = []
        for g in range(G):
            others = [h for h in range(G) if h != g]
            phi.append(
                sum(
                    math.factorial(k)
                    * math.factorial(G - k - 1)
                    / math.factorial(G)
                    * (game[tuple(sorted((*s, g)))] - game[s])
                    for k in range(G)
                    for s in itertools.combinations(others, k)
                )
            )
        return np.array(phi)

    def coefficients(self) -> np.ndarray:
        beta = []
        for g in range(len(MEMBERS)):
            choices, (tuples, inside) = self.choices(), (self.tuples[g], self.inside[g])
            both = []
            for some in (inside, ~inside):
                its = (tuples[some], np.ones(some.sum())) if some.any() else self.choices((g,))[g]
                both.append(self.mean([*choices[:g], its, *choices[g + 1 :]]))
            beta.append(both[0] - both[1])
        return np.array(beta)


def _logistic(X: pd.DataFrame, y: np.ndarray) -> Any:
    return LogisticRegression().fit(X, y > np.median(y))


def _three_classes(X: pd.DataFrame, y: np.ndarray) -> Any:
    return LogisticRegression().fit(X, np.digitize(y, np.quantile(y, [0.3, 0.7])))


MODELS: dict[str, Callable[[pd.DataFrame, np.ndarray], Any]] = {
    "linear": LinearRegression().fit,
    "additive": make_pipeline(SplineTransformer(4), LinearRegression()).fit,
    "forest": RandomForestRegressor(5, max_depth=5, random_state=0).fit,
    "boosting": GradientBoostingRegressor(n_estimators=10, max_depth=3, random_state=0).fit,
    "kernels": SVR(gamma=0.3).fit,
    "logistic": _logistic,
    "three classes": _three_classes,
    "boosted probability": lambda X, y: GradientBoostingClassifier(
        n_estimators=5, max_depth=1, random_state=0
    ).fit(X, y > np.median(y)),
    "tanh network": MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", max_iter=50, random_state=0).fit,
}


def _predict(model: Any) -> Callable[[pd.DataFrame], np.ndarray]:
    return getattr(model, "predict_proba", model.predict)


@pytest.mark.filterwarnings("ignore:.*converge")
@pytest.mark.parametrize("bandwidth", [0.7, math.inf])
@pytest.mark.parametrize("name", [*MODELS])
def test_equals_enumeration(name: str, bandwidth: float) -> None:
    X = _table()
    model = MODELS[name](X, _targets(X))
    background = X.iloc[:14]
    explainer = limes.TabularExplainer(
        model, background, groups=GROUPS, law="empirical", bandwidth=bandwidth, method="exact"
    )
    assert explainer.feature_names == ("first", "second", "d")
    rows = X.iloc[[2, 20, 33]]
    explanation = explainer(rows)
    ratio = math.exp(-0.5 / bandwidth**2)
    for i in range(len(rows)):
        oracle = Enumeration(_predict(model), background, rows.iloc[i], ratio)
        size = np.abs(oracle.mean(oracle.choices())).max()
        for its, right in (
            (explanation.contributions, oracle.contributions()),
            (explanation.coefficients, oracle.coefficients()),
        ):
            np.testing.assert_allclose(its.values[i], right, rtol=EXACT, atol=EXACT * max(1.0, size))
