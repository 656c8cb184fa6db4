"""The data sets of Table 3 as ±1 literals with a trained network, and what was published for them.

A set is run when its file is at hand: a table of the name in ``published.csv`` with a column "target".
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import limes

DATA = Path(os.environ.get("LIMES_DATA", "../shared/data"))
FOLDER = Path(__file__).parent
# How a file differs from the published set
NOTES = {
    "autompg": "column choice is ours",
    "medical_charges": "20,000 rows of another year",
    "auto_imports": "201 of 205 rows",
    "online_news_popularity": "4,954 of 39,644 rows",
    "rte_electricity_standin": "stand-in for RTE Consumption",
    "trim32_standin": "stand-in for DNA Methylation",
}
STAND_INS = ("rte_electricity_standin", "trim32_standin")


@cache
def published() -> dict[str, dict[str, str]]:
    """Tables 1 to 4 as printed: set -> column -> text, "" where nothing was printed."""
    with (FOLDER / "published.csv").open() as lines:
        return {row["set"]: row for row in csv.DictReader(lines)}


def number(file: str, column: str) -> float | None:
    """Return a published number, or None where the paper states no number."""
    text = published().get(file, {}).get(column, "")
    return float(text) if text else None


def path(file: str) -> Path:
    """Return the table of a set."""
    return DATA / "tabular" / f"{file}.csv.gz"


def available() -> list[str]:
    """Return the sets whose file is at hand, stand-ins last."""
    return [file for file in (*published(), *STAND_INS) if path(file).exists()]


def label(file: str) -> str:
    """Return a set's name, and how its file differs."""
    name = published().get(file, {}).get("name", file)
    return name + (f" ({NOTES[file]})" if file in NOTES else "")


@dataclass(frozen=True, eq=False)
class Task:
    """A network over literals, rows to explain, and the columns of Table 3."""

    predict: object
    train: np.ndarray
    test: np.ndarray
    categorical: int
    numeric: int
    rows: int
    error: float

    def instance(self, i: int) -> np.ndarray:
        """Return the i-th test row in an order that is fixed."""
        order = np.random.default_rng(0).permutation(len(self.test))
        return self.test[order[i % len(order)]]


def table(file: str):
    """Return the literals of a set as -1 and +1, its target between 0 and 1, and its columns' types."""
    import pandas as pd

    frame = pd.read_csv(path(file), keep_default_na=False, na_values=[""])
    y = frame.pop("target").to_numpy(dtype=float)
    if file == "medical_charges":
        y = np.log(y)
    y = (y - y.min()) / (y.max() - y.min())
    return limes.Literals.fit(frame, bins=4).transform(frame), y, frame.dtypes


def prepared(file: str) -> Task:
    """4-bin literals, target scaled to [-1, 1], scikit-learn's default network on three quarters of rows."""
    from pandas.api.types import is_numeric_dtype
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPRegressor

    signs, y, types = table(file)
    train, test, answers, expected = train_test_split(signs, 2 * y - 1, random_state=0)
    model = MLPRegressor(random_state=0).fit(train, answers)
    numeric = sum(map(is_numeric_dtype, types))
    error = float(np.mean((model.predict(test) - expected) ** 2))
    return Task(model.predict, train, test, len(types) - numeric, numeric, len(signs), error)
