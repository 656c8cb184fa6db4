"""Models, and tables of rows like California's: resampled, and moved so that none are quite alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.ensemble import RandomForestRegressor

from benchmarks.speed.cases import california

NAMES = (
    "MedInc",
    "HouseAge",
    "AveRooms",
    "AveBedrms",
    "Population",
    "AveOccup",
    "Latitude",
    "Longitude",
)
# Rows of a row group, which are drawn together
_GROUP = 100_000
_JITTER = 0.02


def _xgboost() -> Any:
    from xgboost import XGBRegressor

    return XGBRegressor(n_estimators=300, max_depth=6, random_state=0, n_jobs=2)


FOREST, BOOSTED, SMALL = "random forest 100 x depth 10", "XGBoost 300 x depth 6", "random forest 10 x depth 6"
MODELS: dict[str, Callable[[], Any]] = {
    FOREST: lambda: RandomForestRegressor(100, max_depth=10, random_state=0, n_jobs=2),
    BOOSTED: _xgboost,
    SMALL: lambda: RandomForestRegressor(10, max_depth=6, random_state=0, n_jobs=2),
}


@dataclass(frozen=True)
class Case:
    """A model and what bins are learnt from."""

    model: Any
    background: pd.DataFrame


def write_case(name: str, folder: Path) -> Path:
    """Fit a model, which then predicts on one thread, and put it in a file."""
    path = folder / f"{name}.joblib"
    if not path.exists():
        X, y = california()
        background = pd.DataFrame(X, columns=NAMES)
        joblib.dump(Case(MODELS[name]().fit(background, y).set_params(n_jobs=1), background), path)
    return path


def write_table(count: int, folder: Path) -> Path:
    """Draw rows into a Parquet file; the first ones are the same whatever the number."""
    path = folder / f"{count}.parquet"
    if path.exists():
        return path
    X, _ = california()
    schema = pa.schema([(name, pa.float64()) for name in NAMES])
    with pq.ParquetWriter(path, schema) as file:
        for first in range(0, count, _GROUP):
            rng = np.random.default_rng([0, first])
            rows = X[rng.integers(len(X), size=_GROUP)] * (
                1 + _JITTER * rng.normal(size=(_GROUP, X.shape[1]))
            )
            file.write_table(pa.table([*rows[: count - first].T], schema=schema))
    return path
