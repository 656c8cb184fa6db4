"""Explain rows of real tables with everyday models; hold the exact result against the sampler."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import limes
from benchmarks.data import DATA
from benchmarks.progress import say

ROWS = 100


def encoded(last: Any) -> Any:
    """The model behind imputation, scaling and one-hot encoding."""
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (texts, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, last)


CASES = [
    ("california_housing", RandomForestRegressor(100, max_depth=10, random_state=0), None),
    ("california_housing", GradientBoostingRegressor(random_state=0), None),
    ("wine_quality_white", RandomForestRegressor(100, random_state=0), None),
    ("boston_housing", RandomForestRegressor(100, random_state=0), None),
    ("adult", encoded(LogisticRegression(max_iter=1000)), "margin"),
    ("adult", encoded(RandomForestClassifier(100, max_depth=10, random_state=0)), ">50K"),
]


def measure() -> list[dict]:
    """All cases whose table is there."""
    result = []
    for name, model, output in CASES:
        path = DATA / "tabular" / f"{name}.csv.gz"
        if path.exists():
            say(f"{name}: {model}")
            result.append(_case(name, path, model, output))
    say("done\n")
    return result


def _case(name: str, path: Path, model: Any, output: str | None) -> dict:
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    X, y = table.drop(columns="target"), table["target"]
    model.fit(X, y)
    start = time.perf_counter()
    explainer = limes.TabularExplainer(model, X, output=output)
    prepared = time.perf_counter() - start
    explanation = explainer(X.iloc[:1])
    start = time.perf_counter()
    explainer(X.iloc[:ROWS], progress=False)
    batch = time.perf_counter() - start
    check = limes.TabularExplainer(model, X, output=output, method="sampled", rng=1)(X.iloc[:5])
    score = (check.coefficients.values - explainer(X.iloc[:5]).coefficients.values) / np.where(
        check.coefficients.standard_errors > 0, check.coefficients.standard_errors, 1
    )
    top = explanation.top(1)
    return {
        "table": name,
        "rows": len(X),
        "columns": X.shape[1],
        "model": type(model[-1] if hasattr(model, "steps") else model).__name__,
        "output": output or "predict",
        "method": explanation.method,
        "prepare_s": prepared,
        "ms_a_row": 1e3 * batch / ROWS,
        "strongest": f"{top.conditions[0][0]}: {top.contributions.values.ravel()[0]:+.3g}",
        "largest_z": float(np.abs(score).max()),
    }
