"""Models of real tables, numbers only, as all three libraries take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.accuracy.tables import TABLES, Table


@dataclass(frozen=True, eq=False)
class Case:
    """A fitted model of a table, and the method of it whose answers are explained.

    Attributes
    ----------
    trees
        Whether ``shap`` has a tree explainer for it.
    """

    name: str
    model: Any
    X: np.ndarray
    method: str
    trees: bool

    def ask(self, x: np.ndarray) -> np.ndarray:
        """(n, d) -> (n,)."""
        return np.asarray(getattr(self.model, self.method)(x)).ravel()

    @property
    def output(self) -> str | None:
        """As limes calls it."""
        return "margin" if self.method == "decision_function" else None


def _fitted(model: Any, table: Callable[[], Table], *, method: str = "predict", trees: bool = True) -> Any:
    def build(name: str) -> Case:
        result = table()
        X = result.X.to_numpy()
        return Case(name, model.fit(X, result.y), X, method, trees)

    return build


CASES = {
    "random forest 100 x depth 10, California": _fitted(
        RandomForestRegressor(100, max_depth=10, random_state=0), TABLES["California"]
    ),
    "boosted trees, wine": _fitted(GradientBoostingRegressor(random_state=0), TABLES["wine"]),
    "margin of boosted trees, breast cancer": _fitted(
        GradientBoostingClassifier(random_state=0), TABLES["breast cancer"], method="decision_function"
    ),
    "MLP, diabetes": _fitted(
        make_pipeline(StandardScaler(), MLPRegressor(max_iter=2000, random_state=0)),
        TABLES["diabetes"],
        trees=False,
    ),
}
