"""The data sets of Table 3 that are at hand, as ±1 literals with a trained network."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import limes

DATA = Path(os.environ.get("LIMES_DATA", "../shared/data"))


@dataclass(frozen=True)
class Published:
    """In-sample RMSE of Table 1 (k = 7, σ = 1) and precision error of Table 2."""

    name: str
    cvx: float
    iht: float
    lime: float
    maple: float
    mip: float
    precision: float | None = None


@dataclass(frozen=True)
class Source:
    """A file, what it stands for, and the numbers that were published for that."""

    file: str
    note: str
    published: Published | None


SETS = (
    Source(
        "airfoil_self_noise", "", Published("Airfoil Self Noise", 0.040, 0.055, 0.321, 0.218, 0.049, 0.042)
    ),
    Source(
        "autompg", "column choice is ours", Published("Auto MPG", 0.031, 0.069, 0.338, 0.122, 0.039, 0.019)
    ),
    Source("bike_sharing", "", Published("Bike Sharing", 0.040, 0.080, 0.183, 0.121, 0.048, 0.041)),
    Source("liver_disorders", "", Published("Liver Disorders", 0.059, 0.091, 0.209, 0.147, 0.068, 0.010)),
    Source("machine_cpu", "", Published("Machine CPU", 0.039, 0.128, 0.312, 0.190, 0.055, 0.035)),
    Source(
        "medical_charges",
        "another year",
        Published("Medical Charges", 0.040, 0.049, 0.408, 0.204, 0.049, 0.012),
    ),
    Source("ailerons", "", Published("Ailerons", 0.050, 0.201, 0.647, 0.113, 0.085)),
    Source("auto_imports", "201 of 205 rows", Published("Auto Imports", 0.067, 0.232, 0.528, 0.148, 0.107)),
    Source(
        "geographical_origin_of_music", "", Published("Geographical OM", 0.148, 0.259, 0.662, 0.174, 0.202)
    ),
    Source(
        "online_news_popularity",
        "4954 of 39644 rows",
        Published("Online News", 0.010, 0.051, 0.069, 0.046, 0.028),
    ),
    Source("pollution", "", Published("Pollution", 0.045, 0.171, 0.478, 0.133, 0.082)),
    Source("student_performance", "", Published("Student Performance", 0.074, 0.143, 0.454, 0.169, 0.105)),
    Source("rte_electricity_standin", "stand-in for RTE Consumption", None),
    Source("trim32_standin", "stand-in for DNA Methylation", None),
)


@dataclass(frozen=True, eq=False)
class Task:
    """A network over literals, and rows to explain."""

    predict: object
    train: np.ndarray
    test: np.ndarray
    error: float


def prepared(file: str) -> Task:
    """4-bin literals, target scaled to [-1, 1], scikit-learn's default network on three quarters of rows."""
    import pandas as pd
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPRegressor

    path = DATA / "tabular" / f"{file}.csv.gz"
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    y = frame.pop("target").to_numpy(dtype=float)
    if file == "medical_charges":
        y = np.log(y)
    y = 2 * (y - y.min()) / (y.max() - y.min()) - 1
    signs = limes.Literals.fit(frame, bins=4).transform(frame)
    train, test, answers, held = train_test_split(signs, y, random_state=0)
    model = MLPRegressor(random_state=0).fit(train, answers)
    return Task(model.predict, train, test, float(np.mean((model.predict(test) - held) ** 2)))
