"""Contributions of probabilities and networks, row by row: ``python -m benchmarks.links.wide``.

It measures this alone, and leaves the other figures of the part as they are. Seconds are of the processor,
generated data, one process; the median and the largest of single rows are those after the first four.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR

import limes
from benchmarks import readme
from benchmarks.progress import say
from benchmarks.speed.run import machine

COLUMNS = (20, 100, 400, 1000, 2000)
ALONE, BATCH, ROWS = 14, 20, 1500


def measure() -> dict[str, Any]:
    """A line for each number of columns, and one for each model."""
    with catch_warnings():
        simplefilter("ignore")
        return {
            "machine": machine(),
            "columns": [_timed(f"{d:,}", *_pipeline(d), output=1) for d in COLUMNS],
            "models": [_timed(name, model, X) for name, model, X in _models()],
        }


def _pipeline(columns: int) -> tuple[Any, pd.DataFrame]:
    """One-hot texts of two to six values in a quarter of the columns, numbers in the others."""
    rng, texts = np.random.default_rng(0), columns // 4
    names = [f"t{j}" for j in range(texts)], [f"n{j}" for j in range(columns - texts)]
    cells: dict[str, Any] = {name: rng.choice([*"abcdef"][: rng.integers(2, 7)], ROWS) for name in names[0]}
    cells |= {name: rng.normal(size=ROWS) for name in names[1]}
    X = pd.DataFrame(cells)
    label = rng.normal(size=ROWS) + 0.5 * X[names[1][:10]].sum(axis=1) > 0
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), names[0]), (StandardScaler(), names[1])
    )
    return make_pipeline(encoder, LogisticRegression(max_iter=200)).fit(X, label), X


def _models() -> Iterator[tuple[str, Any, Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 20))
    y = 10 * np.sin(X[:, 0] * X[:, 1]) + 5 * X[:, 2] + 3 * X[:, 3] ** 2 + rng.normal(size=ROWS)
    thirds = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    yield "logistic regression, three classes, 20 columns", LogisticRegression().fit(X, thirds), X
    network = MLPRegressor(hidden_layer_sizes=(100,), activation="tanh", max_iter=200, random_state=0)
    yield "network, 100 units (tanh), 20 columns", network.fit(X, (y - y.mean()) / y.std()), X
    yield "support vectors, 10 columns", SVR().fit(X[:, :10], y), X[:, :10]
    forest = RandomForestRegressor(100, max_depth=10, random_state=0)
    yield "random forest, 100 × depth 10, 20 columns", forest.fit(X, y), X


def _timed(name: str, model: Any, X: Any, **options: Any) -> dict[str, Any]:
    """Seconds of the constructor, of the first row, of single rows and of those of a batch."""
    say(name)
    construction, explainer = _seconds(lambda: limes.TabularExplainer(model, X[:1000], **options))
    single = [
        _seconds(lambda i=i: explainer.contributions(X[i : i + 1]))[0] for i in range(1000, 1000 + ALONE)
    ]
    batch, _ = _seconds(lambda: explainer.contributions(X[1100 : 1100 + BATCH]))
    later = single[4:]
    return {
        "name": name,
        "construction": construction,
        "first": single[0],
        "alone": median(later),
        "largest": max(later),
        "batch": batch / BATCH,
        "predict": _seconds(lambda: model.predict(X[:1]))[0],
    }


def _seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def text(result: dict[str, Any]) -> str:
    """Two tables, and how times grow with the columns."""
    lines = [
        "Contributions alone (`explainer.contributions`), processor time, 1,000 background rows. "
        f"Machine: {result['machine']}.",
        "",
    ]
    for heading, part in (("columns of a logistic pipeline", "columns"), ("model", "models")):
        lines += [
            f"| {heading} | constructor, s | first row, s | one row, ms | largest, ms | batch, ms a row | "
            "the model's own predict, ms |",
            "|---" * 7 + "|",
        ]
        lines += [_line(each) for each in result[part]] + [""]
    few, many = result["columns"][0], result["columns"][-1]
    octaves = np.log(COLUMNS[-1] / COLUMNS[0])
    exponents = ", ".join(
        f"{what} {np.log(many[name] / few[name]) / octaves:.2f}"
        for what, name in (("constructor", "construction"), ("one row", "alone"), ("batch", "batch"))
    )
    return "\n".join(
        [*lines, f"Growth from {COLUMNS[0]} to {COLUMNS[-1]:,} columns, exponents: {exponents}."]
    )


def _line(each: dict[str, Any]) -> str:
    milliseconds = " | ".join(f"{1e3 * each[name]:.3g}" for name in ("alone", "largest", "batch", "predict"))
    return f"| {each['name']} | {each['construction']:.2f} | {each['first']:.2f} | {milliseconds} |"


def main() -> None:
    from benchmarks.links import report

    result = {**readme.load("links"), "contributions": measure()}
    readme.save("links", result)
    # The rest of the page is of another day
    page = f"{report.text(result)}\n\n{report.draw(result)}"
    readme.replace("links", page, stamp=readme.stamp_of("links"))


if __name__ == "__main__":
    main()
