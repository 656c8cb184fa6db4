"""``python -m benchmarks covers``: contributions by the trees' counts of training rows, of three libraries.

limes, ``shap.TreeExplainer(model)`` and the model's own ``pred_contribs`` answer the same question. CPU time
of one thread; single rows and batches take turns, and the median counts. limes is measured twice: the numbers
alone, and the whole call that makes an explanation, asks the model for its answers and compares.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.progress import say
from benchmarks.speed.cases import friedman
from benchmarks.speed.run import machine

BATCH, OF_PAIRS = 100, 1
_VERSIONS = ("shap", "xgboost-cpu", "lightgbm", "catboost", "scikit-learn")


def _models() -> dict[str, Callable[[], tuple[Any, Callable[[Any, np.ndarray], Any] | None]]]:
    """A fitted model, and its library's contributions, by the name of the case."""

    def forest() -> Any:
        from sklearn.ensemble import RandomForestRegressor

        return RandomForestRegressor(20, max_depth=8, random_state=0, n_jobs=1), None

    def xgboost() -> Any:
        import xgboost

        def library(model: Any, rows: np.ndarray) -> Any:
            return model.get_booster().predict(xgboost.DMatrix(rows), pred_contribs=True)

        return xgboost.XGBRegressor(n_estimators=300, max_depth=6, random_state=0, n_jobs=1), library

    def lightgbm() -> Any:
        import lightgbm

        model = lightgbm.LGBMRegressor(n_estimators=300, random_state=0, n_jobs=1, verbose=-1)
        return model, lambda fitted, rows: fitted.predict(rows, pred_contrib=True)

    def catboost() -> Any:
        import catboost

        options = {
            "iterations": 300,
            "depth": 6,
            "random_seed": 0,
            "verbose": 0,
            "allow_writing_files": False,
        }

        def library(model: Any, rows: np.ndarray) -> Any:
            return model.get_feature_importance(catboost.Pool(rows), type="ShapValues", thread_count=1)

        return catboost.CatBoostRegressor(thread_count=1, **options), library

    return {
        "XGBoost 300 x depth 6": xgboost,
        "LightGBM 300 x 31 leaves": lightgbm,
        "CatBoost 300 x depth 6": catboost,
        "random forest 20 x depth 8": forest,
    }


def measure(rounds: int = 7, cases: str = "") -> dict[str, Any]:
    """A record for each model."""
    warnings.simplefilter("ignore")
    versions = {name: version(name) for name in _VERSIONS}
    record: dict[str, Any] = {"machine": machine(), "versions": versions, "batch": BATCH, "cases": []}
    for name, make in _models().items():
        if cases.lower() in name.lower():
            say(name)
            record["cases"].append({"case": name, **_measured(*make(), rounds)})
    return record


def _cpu(work: Callable[[], Any]) -> float:
    """Milliseconds of all threads."""
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start)


def _measured(model: Any, library: Callable[[Any, np.ndarray], Any] | None, rounds: int) -> dict[str, Any]:
    import shap

    import limes
    from limes._shapley.covers import Covers

    limes.set_threads(1)
    X, y = friedman()
    model.fit(X[:10_000], y[:10_000])
    rows = X[10_000 : 10_000 + BATCH].astype(np.float32).astype(float)
    covers, explainer = Covers(limes.models.read(model)), limes.TabularExplainer(model, law="covers")
    peer = shap.TreeExplainer(model)

    def theirs(some: np.ndarray) -> Any:
        return peer.shap_values(some, check_additivity=False)

    works: dict[str, Callable[[np.ndarray], Any]] = {
        "numbers": covers.contributions,
        "call": explainer,
        "shap": theirs,
        **({"library": partial(library, model)} if library is not None else {}),
    }
    values = covers.contributions(rows[:50]).values[..., 0]
    largest = float(np.abs(values).max())
    apart = {"shap": float(np.abs(values - theirs(rows[:50])).max() / largest)}
    if library is not None:
        apart["library"] = float(
            np.abs(values - np.asarray(library(model, rows[:50]))[:, :-1]).max() / largest
        )
    one: dict[str, list[float]] = {name: [] for name in works}
    batch: dict[str, list[float]] = {name: [] for name in works}
    pairs: dict[str, list[float]] = {"numbers": [], "shap": []}
    for i in range(-1, rounds):
        for name, work in works.items():
            spent = _cpu(partial(work, rows[i : i + 1] if i >= 0 else rows[:1]))
            if i >= 0:  # the first round is of empty caches
                one[name].append(spent)
    for _ in range(3):
        for name, work in works.items():
            batch[name].append(_cpu(partial(work, rows)) / BATCH)
        some = rows[:OF_PAIRS]
        pairs["numbers"].append(_cpu(partial(covers.pairs, some)) / OF_PAIRS)
        pairs["shap"].append(_cpu(partial(peer.shap_interaction_values, some)) / OF_PAIRS)
    return {
        "one row": _medians(one),
        "batch": _medians(batch),
        "pairs": _medians(pairs),
        "apart": apart,
    }


def _medians(times: dict[str, list[float]]) -> dict[str, float]:
    return {name: float(np.median(its)) for name, its in times.items()}
