"""How much of a model sparse rules tell on real tables, with and without a constant of the same size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import limes
from benchmarks.data import table_path
from benchmarks.progress import say

TABLES = (
    "liver_disorders", "machine_cpu", "auto_imports", "airfoil_self_noise", "autompg_full",
    "bike_sharing_full", "ailerons", "online_news_popularity",
)  # fmt: skip
ROWS, MOST, FRESH = 6, 1000, 4000
MODELS = {
    "linear": Ridge(),
    "tree": DecisionTreeRegressor(max_depth=8, random_state=0),
    "forest": RandomForestRegressor(20, max_depth=8, random_state=0),
    "boosting": HistGradientBoostingRegressor(max_iter=40, random_state=0),
    "network": MLPRegressor(hidden_layer_sizes=(30, 30), max_iter=80, early_stopping=True, random_state=0),
}
# Facts and a constant: the same number of terms without a constant, and one fact more
RULES: dict[str, dict[str, Any]] = {
    "3 facts and a constant": {"k": 3, "intercept": True},
    "4 facts": {"k": 4, "intercept": False},
    "4 facts and a constant": {"k": 4, "intercept": True},
}


def measure() -> list[dict[str, Any]]:
    """R² of every rule on fresh rows, a line each."""
    lines = []
    for table in TABLES:
        say(f"sparse: {table}" + (f"\n{text(lines)}" if lines else ""))
        for model, explainers, rows in _cases(table):
            for rule, explainer in explainers.items():
                r2 = [c.r2 for c in explainer(rows, progress=False).certificates]
                lines.append({"table": table, "model": model, "rule": rule, "r2": r2})
    return lines


def _cases(table: str) -> Iterator[tuple[str, dict[str, limes.SparseExplainer], pd.DataFrame]]:
    path = table_path(table)
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""]).head(MOST)
    x, y = frame.drop(columns="target"), frame["target"]
    texts = list(x.columns[[not pd.api.types.is_numeric_dtype(kind) for kind in x.dtypes]])
    numbers = [name for name in x.columns if name not in texts]
    test = np.random.default_rng(0).permutation(len(x))
    train, shown = np.sort(test[: -len(x) // 4]), x.iloc[test[-ROWS:]]
    literals = limes.Literals.fit(x.iloc[train])
    y = (y - y.mean()) / y.std()
    for name, model in MODELS.items():
        columns = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts),
            (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        )
        fitted = make_pipeline(columns, model).fit(x.iloc[train], y.iloc[train])
        options: dict[str, Any] = {"literals": literals, "fresh": FRESH}
        yield (
            name,
            {rule: limes.SparseExplainer(fitted, **options, **how) for rule, how in RULES.items()},
            shown,
        )


def text(lines: list[dict[str, Any]]) -> str:
    """Markdown."""
    head = "| rule | explanations | R² < 0 | median R² |\n|---|---|---|---|"
    rows = []
    for rule in RULES:
        r2 = np.concatenate([line["r2"] for line in lines if line["rule"] == rule])
        rows.append(f"| {rule} | {r2.size} | {np.mean(r2 < 0):.1%} | {np.median(r2):.2f} |")
    return "\n".join([head, *rows])


if __name__ == "__main__":
    print(text(measure()))
