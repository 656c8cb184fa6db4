"""Models and rows that are explained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.datasets import fetch_california_housing, make_friedman1
from sklearn.ensemble import RandomForestRegressor

from benchmarks.data import DATA

ROWS = 20_000


class AbsentError(Exception):
    """A competitor says why it is not measured in a case."""


@dataclass(frozen=True)
class Case:
    """The input of a competitor."""

    name: str
    model: Any
    X: np.ndarray


@cache
def friedman() -> tuple[np.ndarray, np.ndarray]:
    """20,000 rows, 20 columns, 5 of which matter."""
    return make_friedman1(ROWS, 20, noise=1.0, random_state=0)


@cache
def california() -> tuple[np.ndarray, np.ndarray]:
    """California housing: 8 columns."""
    local = DATA / "tabular" / "california_housing.csv.gz"
    if local.exists():
        table = np.genfromtxt(local, delimiter=",", skip_header=1)
        return table[:ROWS, :-1], table[:ROWS, -1]
    X, y = fetch_california_housing(return_X_y=True)
    return X[:ROWS], y[:ROWS]


def _forest(depth: int | None) -> RandomForestRegressor:
    return RandomForestRegressor(100, max_depth=depth, random_state=0, n_jobs=2)


def _xgboost() -> Any:
    from xgboost import XGBRegressor

    return XGBRegressor(n_estimators=300, max_depth=6, random_state=0, n_jobs=2)


def _lightgbm() -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_estimators=300, num_leaves=31, random_state=0, n_jobs=2, verbose=-1)


SHALLOW = (
    "random forest 100 x depth 10, friedman1 (d = 20)",
    "random forest 100 x depth 10, California (d = 8)",
)
BOOSTED = ("XGBoost 300 x depth 6, friedman1 (d = 20)", "LightGBM 300 x 31 leaves, friedman1 (d = 20)")
FULL_DEPTH = ("random forest 100, full depth, friedman1 (d = 20)",)
# The case whose rows are multiplied, to see time and memory grow.
GROWTH = SHALLOW[1]

CASES: dict[str, tuple[Callable[[], tuple[np.ndarray, np.ndarray]], Callable[[], Any]]] = {
    SHALLOW[0]: (friedman, lambda: _forest(10)),
    SHALLOW[1]: (california, lambda: _forest(10)),
    BOOSTED[0]: (friedman, _xgboost),
    BOOSTED[1]: (friedman, _lightgbm),
    FULL_DEPTH[0]: (friedman, lambda: _forest(None)),
}


def tiny() -> Case:
    """For a competitor's first call, which loads and compiles its code."""
    X, y = make_friedman1(100, 5, random_state=0)
    return Case("tiny", RandomForestRegressor(2, max_depth=2, random_state=0).fit(X, y), X)


def build(name: str) -> Case:
    """Fit a case's model; it then predicts on one thread, as the libraries that call it like it best."""
    data, make = CASES[name]
    X, y = data()
    model = make().fit(X, y)
    model.set_params(n_jobs=1)
    return Case(name, model, X)
