"""Models, and what explains them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.speed.cases import BOOSTED, SHALLOW, build

# Background rows of interventional values
BACKGROUND = 100
# Engines, and rows of their batch: shap takes longer
TREES = {"limes": 1000, "shap": 100, "limes, joint law": 1000, "shap, 100 rows": 50}
ALONE = {"limes": 50}


@dataclass(frozen=True)
class Task:
    """A model, its table, and engines with the rows that each explains."""

    name: str
    model: Any
    X: np.ndarray
    engines: dict[str, int]


def _tree(name: str) -> Task:
    case = build(name)
    return Task(name, case.model, case.X, TREES)


def _logistic() -> Task:
    from sklearn.linear_model import LogisticRegression

    X, y = _table(30)
    return Task("logistic probability, 30 columns", LogisticRegression().fit(X, y > 0), X, {"limes": 200})


def _vectors() -> Task:
    from sklearn.svm import SVR

    X, y = _table(10)
    model = SVR(C=1.0, epsilon=0.05).fit(X[:310], y[:310])
    return Task(f"SVR, {len(model.support_)} vectors, 10 columns", model, X, ALONE)


def _network() -> Task:
    from sklearn.neural_network import MLPRegressor

    X, y = _table(10)
    model = MLPRegressor(hidden_layer_sizes=(100,), activation="tanh", max_iter=100, random_state=0)
    return Task("network, 100 tanh units, 10 columns", model.fit(X, y), X, ALONE)


def _table(columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, columns))
    X += 0.5 * np.roll(X, 1, axis=1)
    return X, 2 * np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3:].mean(axis=1) + rng.normal(size=3000)


MAKERS = {
    SHALLOW[0]: lambda: _tree(SHALLOW[0]),
    BOOSTED[0]: lambda: _tree(BOOSTED[0]),
    BOOSTED[1]: lambda: _tree(BOOSTED[1]),
    "logistic": _logistic,
    "SVR": _vectors,
    "network": _network,
}
