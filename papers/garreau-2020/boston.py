"""The setting of Figures 5 and 6: Boston housing, columns of mean 0 and variance 1, ν = 1, n = 1000."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from papers.common.tabular import TabularLime

FILE = Path(os.environ.get("LIMES_DATA", Path(__file__).parents[3] / "shared" / "data")) / "tabular"
FILE /= "boston_housing.csv.gz"
BANDWIDTH, SAMPLES, RUNS, ROW = 1.0, 1000, 20, 0


@cache
def boston() -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Standardised columns, prices, and names."""
    frame = pd.read_csv(FILE)
    X, y = frame.drop(columns="target").astype(float), frame["target"].to_numpy(float)
    return ((X - X.mean()) / X.std()).to_numpy(), y, list(X)


def lime() -> TabularLime:
    """Gaussian quartile bins, as the paper's algorithm has them."""
    return TabularLime.gaussian(np.zeros(13), 1.0)
