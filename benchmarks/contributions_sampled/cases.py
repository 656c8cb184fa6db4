"""Twelve functions of which nothing is read: networks and boosted trees on tables, and four formulas."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.data import DATA

# Columns of a table at most: the truth is the sum over all sets of columns
_MOST, _ROWS = 12, 3000
TABLES = ("california_housing", "wine_quality_white", "german_credit", "adult")


@dataclass(frozen=True)
class Case:
    """A function of a matrix's rows, which counts what it is asked."""

    name: str
    X: np.ndarray
    answer: Callable[[np.ndarray], np.ndarray]


class Counter:
    """Rows that a function was asked for."""

    def __init__(self, answer: Callable[[np.ndarray], np.ndarray]) -> None:
        self.answer, self.rows = answer, 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.rows += len(x)
        return self.answer(np.asarray(x, dtype=np.float64))


def cases() -> Iterator[Case]:
    for name in TABLES:
        X, y = _table(name)
        is_class = len(np.unique(y)) == 2
        for kind, make in (("network", _network), ("boosting", _boosting)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a network that could be fitted for longer
                model = make(is_class).fit(X, y)
            yield Case(f"{name}, {kind}", X, _of_class_1(model) if is_class else model.predict)
    X = np.random.default_rng(0).normal(size=(_ROWS, 10))
    for name, function in FUNCTIONS.items():
        yield Case(f"function: {name}", X, function)


def _network(is_class: bool) -> Any:
    kind = MLPClassifier if is_class else MLPRegressor
    return make_pipeline(StandardScaler(), kind(hidden_layer_sizes=(50, 50), max_iter=100, random_state=0))


def _boosting(is_class: bool) -> Any:
    return (HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor)(random_state=0)


def _of_class_1(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: model.predict_proba(x)[:, 1]


def _table(name: str) -> tuple[np.ndarray, np.ndarray]:
    path = DATA / "tabular" / f"{name}.csv.gz"
    table = pd.read_csv(path, keep_default_na=False, na_values=[""]).dropna().iloc[:_ROWS]
    y = table.pop("target")
    is_number = [pd.api.types.is_numeric_dtype(column) for column in table.dtypes]
    codes = [
        column if number else pd.factorize(column)[0]
        for number, (_, column) in zip(is_number, table.items(), strict=True)
    ]
    X = np.column_stack(codes).astype(np.float64)[:, :_MOST]
    if not pd.api.types.is_numeric_dtype(y.dtype):
        return X, pd.factorize(y)[0]
    return X, ((y - y.mean()) / y.std()).to_numpy()


FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "product": lambda x: np.prod(1.0 + 0.3 * np.tanh(x), axis=1),
    "steps": lambda x: (x[:, 0] > 0) + 2.0 * ((x[:, 1] > 0.2) & (x[:, 2] < 0.5)) + (x[:, :5] > 0).all(axis=1),
    "kink": lambda x: np.maximum(x @ np.linspace(-1.0, 2.0, x.shape[1]), 0.3),
    "probability": lambda x: 1.0 / (1.0 + np.exp(-2.0 * x[:, 0] - x[:, 1] * x[:, 2] + x[:, 3:].sum(axis=1))),
}
