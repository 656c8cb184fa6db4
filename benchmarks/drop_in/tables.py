"""Rows of tables at lime's defaults, 5,000 samples, with random forests of 100 trees.

Every round explains another row. Explainers are built and engine "limit" has read the forest (at its first
row) before the clock starts; the time of that reading is reported too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from benchmarks.drop_in.turns import in_turn
from benchmarks.progress import say

LEAST = 50.0
# more than others have: some of these calls take less than a millisecond
ROUNDS = 15
# lime selects forward up to six features, which takes it longer, and ranks above
FEATURES = (6, 10)
CLASSES, NUMBERS = "forest, wine (d = 13)", "forest, diabetes (d = 10)"
GOALS = {f"{name}, engine limit: times less": LEAST for name in (CLASSES, NUMBERS)}


def measure() -> dict[str, float]:
    """Seconds a row, and how many times ``lime``'s they are."""
    X, y = load_wine(return_X_y=True)
    classes = RandomForestClassifier(100, random_state=0).fit(X, y)
    figures = _case(CLASSES, X, classes.predict_proba, "classification")
    X, y = load_diabetes(return_X_y=True)
    numbers = RandomForestRegressor(100, random_state=0).fit(X, y)
    return figures | _case(NUMBERS, X, numbers.predict, "regression")


def _case(name: str, X: np.ndarray, predict: Callable[[Any], Any], mode: str) -> dict[str, float]:
    say(f"drop-in: {name}")
    explain = {
        "lime": _theirs(X, mode),
        "engine lime": _limes(X, mode, "lime"),
        "engine limit": _limes(X, mode, "limit"),
    }
    start = time.perf_counter()
    explain["engine limit"](predict)
    figures = {f"{name}, engine limit: s of the first row": time.perf_counter() - start}
    read = explain["engine limit"]
    # the forest itself is what can be read; a watched one is a function
    readers = {"lime": explain["lime"], "engine limit": lambda _: read(predict)}
    totals = {way: cost.total for way, cost in in_turn(predict, readers, ROUNDS).items()}
    figures |= {f"{name}, {way}: s": total for way, total in totals.items()}
    figures[f"{name}, engine limit: times less"] = totals["lime"] / totals["engine limit"]
    of_function = in_turn(predict, {"engine limit": explain["engine limit"]}, ROUNDS)["engine limit"]
    figures[f"{name}, engine limit of a function: s"] = of_function.total
    for count in FEATURES:
        ways = {way: partial(explain[way], num_features=count) for way in ("lime", "engine lime")}
        outside = {way: cost.outside for way, cost in in_turn(predict, ways, ROUNDS).items()}
        figures |= {f"{name}, {count} features, {way}: s outside the model": s for way, s in outside.items()}
        times = outside["lime"] / outside["engine lime"]
        figures[f"{name}, {count} features, engine lime: times less outside the model"] = times
    return figures


def _theirs(X: np.ndarray, mode: str) -> Callable[..., Any]:
    from lime.lime_tabular import LimeTabularExplainer

    return _row_by_row(LimeTabularExplainer(X, mode=mode, random_state=0), X)


def _limes(X: np.ndarray, mode: str, engine: str) -> Callable[..., Any]:
    from limes.compat.lime.lime_tabular import LimeTabularExplainer

    return _row_by_row(LimeTabularExplainer(X, mode=mode, random_state=0, engine=engine), X)


def _row_by_row(explainer: Any, X: np.ndarray) -> Callable[..., Any]:
    rows = cycle(X)
    return lambda model, **options: explainer.explain_instance(next(rows), model, **options)
