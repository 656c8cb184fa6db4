"""Desks for tests: a forest on numbers, and a table with categories, missing values and hostile names."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import limes
from internals import PatientProtocol, WhatIfSession

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


def desk_of(model, X, *, background=None, ids=None, **options):
    """A desk as the command line makes it, and the model and explainer behind it."""
    background = X if background is None else background
    explainer = limes.TabularExplainer(model, background, **options)
    literals = limes.Literals.fit(background)

    def rules(output):
        return limes.SparseExplainer(model, literals=literals, k=min(3, X.shape[1]), output=output, rng=0)

    names = [*map(str, range(len(X)))] if ids is None else ids
    desk = WhatIfSession(explainer, X, names, rules)
    return SimpleNamespace(desk=desk, explainer=explainer, rules=rules, X=X, model=model)


@cache
def patients():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return desk_of(RandomForestRegressor(10, max_depth=5, random_state=0).fit(X, y), X)


@cache
def flowers():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return desk_of(RandomForestClassifier(10, max_depth=3, random_state=0).fit(X, y), X)


@cache
def patchy():
    """A second row with a missing value, which the background does not know."""
    base = patients()
    X = base.X.copy()
    X.iloc[1, 2] = np.nan
    return desk_of(base.model, X, background=base.X)


@cache
def hostile():
    """Names, levels, classes and ids that would run if anything were taken for HTML."""
    rng = np.random.default_rng(0)
    levels = np.array([f"a {EVIL}", "b", "c"], dtype=object)
    X = pd.DataFrame({f"x {EVIL}": rng.normal(size=200).round(2), f"kind {EVIL}": rng.choice(levels, 200)})
    X[f"x {EVIL}"] = X[f"x {EVIL}"].where(rng.random(200) > 0.1)
    y = np.where((X.iloc[:, 0].fillna(0) > 0) ^ (X.iloc[:, 1] == "b"), f"high {EVIL}", "low")
    columns = make_column_transformer(
        (OneHotEncoder(), [X.columns[1]]), (SimpleImputer(), [X.columns[0]]), remainder="drop"
    )
    model = make_pipeline(columns, RandomForestClassifier(10, max_depth=4, random_state=0)).fit(X, y)
    return desk_of(model, X, ids=[f"{i} {EVIL}" for i in range(len(X))])


def _late(table):
    """A function of days, hours and months."""
    days = (table["opened"] - pd.Timestamp("2023-01-01")) / pd.Timedelta("1D")
    return (
        days / 100
        + table["seen"].dt.hour / 24
        + table["wait"] / pd.Timedelta("30D")
        + table["month"].dt.month
    )


@cache
def visits():
    """Times, durations and periods."""
    rng = np.random.default_rng(0)
    opened = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 150, 300), unit="D")
    seen = opened.tz_localize("Europe/Madrid") + pd.to_timedelta(rng.integers(0, 1440, 300), unit="min")
    wait = pd.to_timedelta(rng.integers(0, 90, 300), unit="D")
    month = pd.PeriodIndex(opened, freq="M")
    return desk_of(_late, pd.DataFrame({"opened": opened, "seen": seen, "wait": wait, "month": month}))


@contextmanager
def running(app):
    """Serve an application in a thread, and return its address."""
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, http=PatientProtocol, log_level="critical")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
