"""``python -m benchmarks pairs``: pairs of columns, groups of columns, and contributions from row to row.

CPU time of one thread, medians of alternating calls. Pairs are those of ``explainer.contributions(rows)``,
with the contributions; shap's and the libraries' are by covers. A group of 100 dummies is beside the column
that they stand for.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.progress import say
from benchmarks.speed.cases import friedman
from benchmarks.speed.run import machine

BATCH = 20
_VERSIONS = ("shap", "xgboost-cpu", "lightgbm", "scikit-learn")
_LEVELS = 100


def _models() -> dict[str, Callable[[], Any]]:
    def forest() -> Any:
        from sklearn.ensemble import RandomForestRegressor

        return RandomForestRegressor(100, max_depth=10, random_state=0, n_jobs=1)

    def xgboost() -> Any:
        import xgboost

        return xgboost.XGBRegressor(n_estimators=300, max_depth=6, random_state=0, n_jobs=1)

    def lightgbm() -> Any:
        import lightgbm

        return lightgbm.LGBMRegressor(n_estimators=300, random_state=0, n_jobs=1, verbose=-1)

    return {
        "random forest 100 x depth 10": forest,
        "XGBoost 300 x depth 6": xgboost,
        "LightGBM 300 x 31 leaves": lightgbm,
    }


def measure(rounds: int = 5, cases: str = "") -> dict[str, Any]:
    """Records of pairs for each model, of groups, and of differences."""
    import limes

    warnings.simplefilter("ignore")
    limes.set_threads(1)
    record: dict[str, Any] = {
        "machine": machine(),
        "versions": {name: version(name) for name in _VERSIONS},
        "batch": BATCH,
        "cases": [],
    }
    for name, make in _models().items():
        if cases.lower() in name.lower():
            say(name)
            record["cases"].append({"case": name, **_pairs(make(), rounds)})
    record["groups"] = _groups(rounds)
    return record


def _cpu(work: Callable[[], Any]) -> float:
    """Milliseconds of all threads."""
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start)


def _alternating(works: dict[str, Callable[[int], Any]], rounds: int) -> dict[str, float]:
    """The median of each, after one round that does not count."""
    spent: dict[str, list[float]] = {name: [] for name in works}
    for i in range(-1, rounds):
        for name, work in works.items():
            took = _cpu(partial(work, max(i, 0)))
            if i >= 0:
                spent[name].append(took)
    return {name: float(np.median(its)) for name, its in spent.items()}


def _pairs(model: Any, rounds: int) -> dict[str, Any]:
    import shap

    import limes

    X, y = friedman()
    model.fit(X[:10_000], y[:10_000])
    rows = X[10_000:]
    explainer, peer = limes.TabularExplainer(model, X[:1_000]), shap.TreeExplainer(model)
    compiled = explainer.compiled()

    def ours(some: np.ndarray) -> Any:
        return explainer.contributions(some).contributions.pairs

    works: dict[str, Callable[[int], Any]] = {
        "limes": lambda i: ours(rows[i : i + 1]),
        "shap": lambda i: peer.shap_interaction_values(rows[i : i + 1]),
    }
    if type(model).__module__.startswith("xgboost"):
        import xgboost

        booster = model.get_booster()
        works["library"] = lambda i: booster.predict(xgboost.DMatrix(rows[i : i + 1]), pred_interactions=True)
    one = _alternating(works, rounds)
    batch = _alternating({"limes": lambda i: ours(rows[BATCH * i : BATCH * (i + 1)])}, rounds)["limes"]
    between = _alternating(
        {
            "compiled": lambda i: compiled.between(rows[i], rows[i + 100]),
            "call": lambda i: explainer.between(rows[i], rows[i + 100]),
        },
        10 * rounds,
    )
    return {"one row": one, "batch": batch / BATCH, "between": between}


def _groups(rounds: int) -> dict[str, Any]:
    """A forest on a category of 100 levels as codes, as dummies, and as dummies in one group."""
    from sklearn.ensemble import RandomForestRegressor

    import limes

    rng = np.random.default_rng(0)
    level, others = rng.integers(_LEVELS, size=4_000), rng.normal(size=(4_000, 5))
    y = rng.normal(size=_LEVELS)[level] + others[:, 0] * (level < _LEVELS / 2) + others[:, 1]
    plain = pd.DataFrame(others, columns=[f"x{j}" for j in range(5)])
    column = plain.assign(level=level.astype(float))
    dummies = pd.concat([plain, pd.get_dummies(level, prefix="level", dtype=float)], axis=1)
    names = [name for name in dummies if name.startswith("level_")]
    explainers = {}
    for kind, table in (("column", column), ("dummies", dummies), ("group", dummies)):
        model = RandomForestRegressor(100, max_depth=8, max_features=0.3, random_state=0).fit(table, y)
        options = {"groups": {"level": names}} if kind == "group" else {}
        explainers[kind] = limes.TabularExplainer(model, table[:1_000], **options), table
    compiled = {kind: (its.compiled(), table.to_numpy()) for kind, (its, table) in explainers.items()}
    one = _alternating(
        {kind: lambda i, its=its, rows=rows: its(rows[i : i + 1]) for kind, (its, rows) in compiled.items()},
        10 * rounds,
    )
    batch = _alternating(
        {
            kind: lambda i, its=its, rows=rows: its(rows[200 * i : 200 * (i + 1)])
            for kind, (its, rows) in compiled.items()
        },
        rounds,
    )
    return {"one row": one, "batch": {kind: its / 200 for kind, its in batch.items()}}
