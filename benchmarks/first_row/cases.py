"""Tables of many columns, and functions of them that answer in no time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

TRUTH_ROWS = 2**17


@dataclass(frozen=True)
class Network:
    """The probability of a fitted network with one hidden layer, by its weights alone."""

    weights: list[np.ndarray]
    intercepts: list[np.ndarray]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        hidden = np.maximum(X @ self.weights[0] + self.intercepts[0], 0.0)
        return 1.0 / (1.0 + np.exp(-(hidden @ self.weights[1] + self.intercepts[1])[:, 0]))


@dataclass(frozen=True)
class Probability:
    """The second column of a scikit-learn model's answers."""

    model: Any

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return self.model.predict_proba(X)[:, 1]


def table(kind: str, columns: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a kind of table, and a margin that depends on many columns, on few pairs, and on no others."""
    rng = np.random.default_rng(columns)
    if kind == "correlated":
        X = rng.normal(size=(rows, columns))
        X += 0.5 * np.roll(X, 1, axis=1)
        return X, 2 * np.sin(X[:, 0]) + X[:, 1] * X[:, 2] - X[:, 3:23].mean(axis=1) * np.sqrt(20)
    if kind == "one-hot":
        codes = rng.integers(10, size=(rows, columns // 10))
        X = (codes[:, :, None] == np.arange(10)).reshape(rows, -1).astype(float)
        return X, X @ rng.normal(size=columns) * 3 / np.sqrt(columns / 10) + 2 * X[:, 0] * X[:, 11]
    # counts of words, by Zipf's law
    often = np.minimum(0.5, 3.0 / np.arange(1, columns + 1) ** 0.8)
    X = rng.poisson(often, size=(rows, columns)).astype(float)
    return X, X @ (rng.normal(size=columns) / np.sqrt(often * columns)) * 1.5


def model_of(name: str, X: np.ndarray, margin: np.ndarray) -> Network | Probability:
    """A model that was fitted to decisions by the margin."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.neural_network import MLPClassifier

    y = margin + np.random.default_rng(0).logistic(size=len(X)) > np.median(margin)
    if name == "network":
        network = MLPClassifier((16,), max_iter=20, random_state=0).fit(X, y)
        return Network(network.coefs_, network.intercepts_)
    return Probability(HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(X, y))
