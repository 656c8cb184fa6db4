"""Models of tables, and the one number of each that is explained."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.accuracy.tables import TABLES, Table
from benchmarks.speed.cases import AbsentError

Answer = Callable[[pd.DataFrame], np.ndarray]


class Clock:
    """Seconds of this process inside the model, and rows that it was asked for."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.rows = 0

    def around(self, answer: Answer) -> Answer:
        """The same answer, on the clock."""

        def timed(table: pd.DataFrame) -> np.ndarray:
            start = time.process_time()
            result = answer(table)
            self.seconds += time.process_time() - start
            self.rows += len(table)
            return result

        return timed


@dataclass(frozen=True)
class Case:
    """The input of a competitor: a model of a table, on the clock.

    Attributes
    ----------
    subject, output
        The model as limes takes it, and which of its numbers is explained.
    answer
        That number, (n,), as a function of a table.
    readable
        What limes can read and gives the same answers; None if there is nothing.
    """

    name: str
    table: Table
    clock: Clock
    subject: Any
    output: Any
    answer: Answer
    readable: Any

    @property
    def row(self) -> pd.DataFrame:
        """The row that is explained."""
        return self.table.X.iloc[:1]

    @property
    def size(self) -> int:
        """Number of columns d."""
        return self.table.X.shape[1]


def columns() -> Any:
    """Numbers are scaled, texts become a column a level."""
    return make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            make_column_selector(dtype_exclude="number"),
        ),
    )


def _pipeline(table: Table, last: Any) -> Pipeline:
    with warnings.catch_warnings():
        # a network that could have been trained for longer is a model as any other
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(columns(), last).fit(table.X, table.y)


def _method(name: str, table: Table, model: Pipeline, method: str, *, output: Any, readable: bool) -> Case:
    """An estimator explained through one of its methods; of probabilities that of class 1."""
    clock = Clock()
    ask = clock.around(getattr(model, method))
    # limes reads no model whose method was replaced: the one that it may read has no clock
    timed = copy(model)
    setattr(timed, method, ask)
    answer = (lambda X: ask(X)[:, 1]) if method == "predict_proba" else ask
    return Case(name, table, clock, timed, output, answer, model if readable else None)


def _callable(name: str, table: Table, ask: Answer, *, readable: Any = None) -> Case:
    """A function of tables, of which nothing is known."""
    clock = Clock()
    answer = clock.around(ask)
    return Case(name, table, clock, answer, None, answer, readable)


def forest(name: str, table: Table) -> Case:
    if table.classes:
        model = _pipeline(table, RandomForestClassifier(100, random_state=0))
        return _method(name, table, model, "predict_proba", output=1, readable=True)
    model = _pipeline(table, RandomForestRegressor(100, random_state=0))
    return _method(name, table, model, "predict", output=None, readable=True)


def perceptron(name: str, table: Table) -> Case:
    """One hidden layer of 100, scikit-learn's default."""
    if table.classes:
        model = _pipeline(table, MLPClassifier(max_iter=300, random_state=0))
        return _method(name, table, model, "predict_proba", output=1, readable=False)
    model = _pipeline(table, MLPRegressor(max_iter=300, random_state=0))
    return _method(name, table, model, "predict", output=None, readable=True)


def machine(name: str, table: Table) -> Case:
    """Support vectors: of classes the decision function."""
    if table.classes:
        return _method(
            name, table, _pipeline(table, SVC()), "decision_function", output="margin", readable=True
        )
    return _method(name, table, _pipeline(table, SVR()), "predict", output=None, readable=True)


def boosted(name: str, table: Table) -> Case:
    """The probability, whose margin can be read; or a callable, of which nothing can."""
    if table.classes:
        model = _pipeline(table, HistGradientBoostingClassifier(random_state=0))
        return _method(name, table, model, "predict_proba", output=1, readable=False)
    model = _pipeline(table, HistGradientBoostingRegressor(random_state=0))
    return _callable(name, table, model.predict, readable=model)


def network(name: str, table: Table) -> Case:
    """Two hidden layers of 64 in torch: a plain callable."""
    try:
        from benchmarks.accuracy.network import Network
    except ModuleNotFoundError as error:
        raise AbsentError(f"not installed: there is no module {error.name}") from error
    encode = columns().fit(table.X)
    net = Network(classes=table.classes).fit(encode.transform(table.X), table.y)
    return _callable(name, table, lambda X: net.predict(encode.transform(X)))


MODELS = {
    "random forest": forest,
    "MLP": perceptron,
    "SVM": machine,
    "boosted trees": boosted,
    "torch network": network,
}
NAMES = {f"{model}, {table}": (model, table) for table in TABLES for model in MODELS}


def build(name: str) -> Case:
    """Fit the model of a case.

    Raises
    ------
    AbsentError
        If the table's file, or a library, is not there.
    """
    model, table = NAMES[name]
    return MODELS[model](name, TABLES[table]())
