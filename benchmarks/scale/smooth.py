"""``python -m benchmarks.scale.smooth``: rows under smooth weights and slopes, each with laws of its columns.

CPU time a row of one call with ``--rows`` rows of 23 columns, after a call with two, and of R² of the first
hundred of them, which is computed when it is read; each model in a new process. The table is printed; with
``--save`` it goes into results/scale_smooth.json and pages/scale.md too.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, PowerTransformer, SplineTransformer, StandardScaler
from sklearn.svm import SVR

import limes
from benchmarks import readme
from benchmarks.progress import say
from benchmarks.scale.wide import COLUMNS, NAMES
from benchmarks.speed.memory import fresh
from benchmarks.speed.run import machine

_OPTIONS: dict[str, dict[str, Any]] = {
    'weights="euclidean"': {"weights": "euclidean"},
    "bins=None": {"bins": None},
}
# Rows whose R² is read
_FITS = 100
# Of columns with holes
_MISSING = 0.1


def _scaled(*steps: Any) -> Callable[..., Any]:
    return lambda X, y: make_pipeline(StandardScaler(), *steps).fit(X, y)


def _votes(X: pd.DataFrame, y: np.ndarray) -> Any:
    forest = RandomForestRegressor(50, max_depth=8, random_state=0, n_jobs=2)
    return VotingRegressor([("forest", forest), ("line", LinearRegression())]).fit(X, y)


def _boosted(X: pd.DataFrame, y: np.ndarray) -> Any:
    from xgboost import XGBRegressor

    return (
        XGBRegressor(n_estimators=300, max_depth=6, random_state=0, n_jobs=2).fit(X, y).set_params(n_jobs=1)
    )


def _explainable(X: pd.DataFrame, y: np.ndarray) -> Any:
    from interpret.glassbox import ExplainableBoostingRegressor

    return ExplainableBoostingRegressor(interactions=0, random_state=0, n_jobs=1).fit(X, y)


# How it is fitted, the library it needs, and whether columns have holes
MODELS: dict[str, tuple[Callable[[pd.DataFrame, np.ndarray], Any], str, bool]] = {
    "linear model in a Pipeline": (_scaled(LinearRegression()), "sklearn", False),
    "logistic regression, probability": (
        lambda X, y: _scaled(LogisticRegression())(X, y > y.mean()),
        "sklearn",
        False,
    ),
    "Poisson regression": (lambda X, y: _scaled(PoissonRegressor())(X, np.abs(y)), "sklearn", False),
    "polynomial of degree 2": (_scaled(PolynomialFeatures(2), LinearRegression()), "sklearn", False),
    "splines": (
        lambda X, y: make_pipeline(SplineTransformer(), LinearRegression()).fit(X, y),
        "sklearn",
        False,
    ),
    "power transform": (
        lambda X, y: make_pipeline(PowerTransformer(), LinearRegression()).fit(X, y),
        "sklearn",
        False,
    ),
    "random forest 50 x depth 8": (
        lambda X, y: RandomForestRegressor(50, max_depth=8, random_state=0, n_jobs=2).fit(X, y),
        "sklearn",
        False,
    ),
    "XGBoost 300 x depth 6": (_boosted, "xgboost", False),
    "XGBoost 300 x depth 6, a tenth missing": (_boosted, "xgboost", True),
    "voting, forest and linear": (_votes, "sklearn", False),
    "SVR, 300 vectors": (lambda X, y: _scaled(SVR(C=10.0))(X[:300], y[:300]), "sklearn", False),
    "explainable boosting": (_explainable, "interpret", False),
}


def measure(rows: int) -> dict[str, Any]:
    """Every model under every option."""
    result: dict[str, Any] = {"machine": machine(), "rows": rows, "runs": []}
    for name, (_, library, _) in MODELS.items():
        if find_spec(library) is None:
            continue
        for option in _OPTIONS:
            say(f"{name}, {option}")
            result["runs"].append({"model": name, "option": option, **fresh(_timed, name, option, rows)})
    say("done\n")
    return result


def _timed(name: str, option: str, rows: int) -> dict[str, Any]:
    fit, _, holes = MODELS[name]
    X, y = make_friedman1(5_000, COLUMNS, noise=1.0, random_state=0)
    if holes:
        X[np.random.default_rng(0).random(X.shape) < _MISSING] = np.nan
    table = pd.DataFrame(X, columns=NAMES)
    explainer = limes.TabularExplainer(fit(table, y), table, **_OPTIONS[option])
    explainer(table[:2], progress=False)
    start = time.process_time()
    explanation = explainer(table[:rows], progress=False)
    explained = time.process_time()
    some = explanation[:_FITS]
    assert np.isfinite(some.fidelity).all()
    return {
        "milliseconds": 1e3 * (explained - start) / rows,
        "fidelity_milliseconds": 1e3 * (time.process_time() - explained) / len(some),
        "method": explanation.method,
        "load": os.getloadavg()[0],
    }


def text(result: dict[str, Any]) -> str:
    """Markdown."""
    runs = {(run["model"], run["option"]): run for run in result["runs"]}
    lines = [
        f"Machine: {result['machine']}. {COLUMNS} columns, {result['rows']} rows; one run each. "
        "CPU time a row.",
        "",
        f"| model | {' | '.join(f'`{option}`, ms | R², ms' for option in _OPTIONS)} | method | load |",
        "|---" * (3 + 2 * len(_OPTIONS)) + "|",
    ]
    for model in dict.fromkeys(model for model, _ in runs):
        of_model = [runs[model, option] for option in _OPTIONS]
        times = " | ".join(
            f"{run['milliseconds']:.1f} | {run['fidelity_milliseconds']:.1f}" for run in of_model
        )
        methods = ", ".join(dict.fromkeys(run["method"] for run in of_model))
        lines.append(f"| {model} | {times} | {methods} | {max(run['load'] for run in of_model):.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.smooth", description=__doc__)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--save", action="store_true", help="also into results/ and pages/")
    arguments = parser.parse_args()
    result = measure(arguments.rows)
    print(text(result))
    if arguments.save:
        readme.save("scale_smooth", result)
        readme.replace("scale_smooth", text(result))


# Processes that measure are spawned, and import this file again.
if __name__ == "__main__":
    main()
