"""Real tables, cut to a size at which every model trains in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes

from benchmarks.data import DATA
from benchmarks.speed.cases import AbsentError

MOST_ROWS = 4000


@dataclass(frozen=True)
class Table:
    """Columns, and what is to be predicted: numbers of variance 1, or classes 0 and 1."""

    X: pd.DataFrame
    y: np.ndarray
    classes: bool


def diabetes() -> Table:
    return _numbers(load_diabetes(as_frame=True).frame)


def breast_cancer() -> Table:
    bunch = load_breast_cancer(as_frame=True)
    return Table(bunch.data, bunch.target.to_numpy(), classes=True)


def adult() -> Table:
    """Eight columns of text; a missing text is a separate category, as in the source."""
    frame = _file("adult")
    text = frame.select_dtypes(exclude="number").columns
    frame[text] = frame[text].astype(object).fillna("?")
    return Table(frame.drop(columns="target"), (frame["target"] == ">50K").to_numpy(int), classes=True)


def numbers(name: str) -> Table:
    """A table of LIMES_DATA with numbers only."""
    return _numbers(_file(name))


def _file(name: str) -> pd.DataFrame:
    """The table in random order, cut to at most the limit of rows."""
    path = DATA / "tabular" / f"{name}.csv.gz"
    if not path.exists():
        raise AbsentError(f"{path} is not there; LIMES_DATA says where tables are")
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    return frame.sample(min(MOST_ROWS, len(frame)), random_state=0).reset_index(drop=True)


def _numbers(frame: pd.DataFrame) -> Table:
    y = frame["target"].to_numpy(float)
    return Table(frame.drop(columns="target").astype(float), (y - y.mean()) / y.std(), classes=False)


TABLES = {
    "diabetes": diabetes,
    "breast cancer": breast_cancer,
    "California": partial(numbers, "california_housing"),
    "adult": adult,
    "wine": partial(numbers, "wine_quality_white"),
}
