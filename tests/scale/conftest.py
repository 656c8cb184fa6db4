"""A cluster, a table with keys, an explainer, and its explanations, which every engine must reproduce."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes


@pytest.fixture(scope="package")
def cluster():
    """Two workers on this machine, which take seconds to start, and compute even when idle."""
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "localhost:0"}
    with distributed.LocalCluster(**options) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def table():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X.iloc[:, :5].assign(id=[f"patient {i}" for i in range(len(X))]), y


@pytest.fixture(scope="module")
def explainer(table):
    X = table[0].drop(columns="id")
    return limes.TabularExplainer(RandomForestRegressor(8, random_state=0).fit(X, table[1]), X)


@pytest.fixture(scope="module")
def whole(table, explainer):
    result = limes.scale.explain_frame(explainer, table[0])
    result.insert(1, "id", table[0]["id"].to_numpy())
    return result
