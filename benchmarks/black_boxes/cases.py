"""Five models of which nothing is read, on five tables: probabilities of class 1, functions of frames."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from benchmarks.accuracy import tables
from benchmarks.accuracy.cases import columns
from benchmarks.accuracy.tables import Table


class Clock:
    """Rows that a model was asked for."""

    def __init__(self, answer: Callable[[pd.DataFrame], np.ndarray]) -> None:
        self.answer, self.rows = answer, 0

    def __call__(self, table: pd.DataFrame) -> np.ndarray:
        self.rows += len(table)
        return self.answer(table)


@dataclass(frozen=True)
class Case:
    """A model of a table, as a function that counts."""

    table: Table
    ask: Clock


def _bunch(load: Callable[..., Any]) -> Table:
    bunch = load(as_frame=True)
    return Table(bunch.data, (bunch.target == 1).to_numpy(int), classes=True)


def _above_the_median(table: Table) -> Table:
    return replace(table, y=(table.y > np.median(table.y)).astype(int), classes=True)


TABLES: dict[str, Callable[[], Table]] = {
    "iris": partial(_bunch, load_iris),
    "wine recognition": partial(_bunch, load_wine),
    "breast cancer": tables.breast_cancer,
    "California": lambda: _above_the_median(tables.numbers("california_housing")),
    "adult": tables.adult,
}


def _xgboost() -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=100, max_depth=4, random_state=0, n_jobs=1)


def _stack() -> Any:
    first = [
        ("line", LogisticRegression(max_iter=500)),
        ("trees", RandomForestClassifier(30, random_state=0)),
    ]
    return StackingClassifier(first, LogisticRegression(), cv=3)


MODELS: dict[str, Callable[[], Any]] = {
    "network": lambda: MLPClassifier(hidden_layer_sizes=(64, 64), max_iter=100, random_state=0),
    "SVC": lambda: SVC(probability=True, random_state=0),
    "nearest neighbours": lambda: KNeighborsClassifier(15),
    "XGBoost": _xgboost,
    "stacked pipeline": _stack,
}
NAMES = {f"{model}, {table}": (model, table) for table in TABLES for model in MODELS}


def build(name: str) -> Case:
    """Fit the model of a case.

    Raises
    ------
    AbsentError
        If the table's file is not there.
    """
    model, table_name = NAMES[name]
    table = TABLES[table_name]()
    with warnings.catch_warnings():
        # a network that could have been trained for longer is a model as any other
        warnings.simplefilter("ignore")
        fitted = make_pipeline(columns(), MODELS[model]()).fit(table.X, table.y)
    return Case(table, Clock(lambda X: fitted.predict_proba(X)[:, 1]))
