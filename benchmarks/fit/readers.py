"""R² of every kind of model that is read, against draws: ``python -m benchmarks.fit.readers``.

The draws are rows of the explained row's law w, on which the user's own model is called. R² is to differ from
theirs by no more than both errors allow.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    PolynomialFeatures,
    PowerTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import limes
from benchmarks import readme
from benchmarks.progress import say

DRAWS, BLOCK = 1 << 20, 1 << 15
DESIGNS: dict[str, dict[str, Any]] = {"quartiles": {}, "slopes": {"bins": None}}


class Reader(NamedTuple):
    """A model, what it is fitted to (``y``, ``classes`` or ``counts``), and which output is explained."""

    model: Any
    target: str = "y"
    output: str | None = None


def _probability(model: Any, **options: Any) -> Reader:
    return Reader(model, "classes", **options)


def _margin(model: Any) -> Reader:
    return Reader(model, "classes", "margin")


def _other(module: str, name: str, **options: Any) -> Callable[[], Any]:
    """Return what makes a model of a library that need not be installed."""
    return lambda: getattr(import_module(module), name)(**options)


_TREES = {"n_estimators": 30, "random_state": 0}
READERS: dict[str, Reader] = {
    "ridge": Reader(Ridge()),
    "logistic, margin": _margin(LogisticRegression()),
    "logistic, probability": _probability(LogisticRegression()),
    "linear discriminant, probability": _probability(LinearDiscriminantAnalysis()),
    "naive Bayes, margin": _margin(GaussianNB()),
    "naive Bayes, probability": _probability(GaussianNB()),
    "calibrated logistic, probability": _probability(CalibratedClassifierCV(LogisticRegression(), cv=3)),
    "boosted stumps, probability": _probability(GradientBoostingClassifier(max_depth=1, **_TREES)),
    "Poisson": Reader(PoissonRegressor(), "counts"),
    "tree": Reader(DecisionTreeRegressor(max_depth=7, random_state=0)),
    "random forest": Reader(RandomForestRegressor(**_TREES)),
    "random forest, probability": _probability(RandomForestClassifier(**_TREES)),
    "extra trees": Reader(ExtraTreesRegressor(**_TREES)),
    "gradient boosting": Reader(GradientBoostingRegressor(**_TREES)),
    "gradient boosting, margin": _margin(GradientBoostingClassifier(**_TREES)),
    "histogram boosting": Reader(HistGradientBoostingRegressor(max_iter=30, random_state=0)),
    "XGBoost": Reader(_other("xgboost", "XGBRegressor", **_TREES)),
    "LightGBM": Reader(_other("lightgbm", "LGBMRegressor", verbose=-1, **_TREES)),
    "CatBoost": Reader(
        _other(
            "catboost",
            "CatBoostRegressor",
            iterations=30,
            verbose=0,
            random_seed=0,
            allow_writing_files=False,
        )
    ),
    "EBM": Reader(
        _other(
            "interpret.glassbox",
            "ExplainableBoostingRegressor",
            interactions=2,
            max_rounds=50,
            random_state=0,
        )
    ),
    "SVR": Reader(SVR()),
    "kernel ridge, Laplacian": Reader(KernelRidge(kernel="laplacian", gamma=0.3)),
    "Gaussian process": Reader(GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None)),
    "quadratic": Reader(make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge())),
    "network, tanh": Reader(
        MLPRegressor(hidden_layer_sizes=(10,), activation="tanh", max_iter=300, random_state=0)
    ),
    "random features": Reader(make_pipeline(RBFSampler(n_components=20, random_state=0), Ridge())),
    "Nystroem": Reader(make_pipeline(Nystroem(n_components=20, random_state=0), Ridge())),
    "bagging": Reader(BaggingRegressor(n_estimators=5, random_state=0)),
    "stacking": Reader(StackingRegressor([("a", Ridge()), ("b", RandomForestRegressor(**_TREES))])),
    "AdaBoost": Reader(AdaBoostRegressor(n_estimators=5, random_state=0)),
    "binned": Reader(make_pipeline(KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), Ridge())),
    "power transform": Reader(make_pipeline(PowerTransformer(), Ridge())),
    "splines": Reader(make_pipeline(SplineTransformer(extrapolation="linear"), Ridge())),
    "principal components": Reader(make_pipeline(PCA(3), Ridge())),
}


def measure(draws: int = DRAWS) -> Iterator[dict[str, Any]]:
    """Yield a record for each reader and design."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    X[:, 3] = np.round(X[:, 3])
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3] + 0.1 * rng.normal(size=300)
    targets = {"y": y, "classes": (y > 0).astype(int), "counts": np.exp(y / 3)}
    for name, reader in READERS.items():
        say(name)
        try:
            model = reader.model() if callable(reader.model) else reader.model
        except ImportError:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, targets[reader.target])
        output = reader.output or (1 if reader.target == "classes" else None)
        for design, options in DESIGNS.items():
            explainer = limes.TabularExplainer(model, X, output=output, **options)
            explanation = explainer(X[:1], progress=False)
            if explanation.method == "exact":
                r2, error = _by_draws(
                    model, reader, explainer.design(X[0]), explanation.coefficients.values[0], draws
                )
                yield {
                    "reader": name,
                    "design": design,
                    "r2": float(explanation.fidelity[0]),
                    "error": float(explanation.fidelity_errors[0]),
                    "draws": r2,
                    "draws_error": error,
                }
            else:
                yield {"reader": name, "design": design, "reason": explanation.reason}


def _by_draws(model: Any, reader: Reader, design: Any, coef: np.ndarray, draws: int) -> tuple[float, float]:
    """R² of the coefficients on rows of w by the user's model, and its standard error."""
    rng, f, residuals = np.random.default_rng(1), np.empty(draws), np.empty(draws)
    for start in range(0, draws, BLOCK):
        at = slice(start, start + BLOCK)
        x, h = design.draw(rng.random((min(BLOCK, draws - start), coef.size)))
        f[at] = _answers(model, reader, x)
        residuals[at] = f[at] - h @ coef
    away, rest = (f - f.mean()) ** 2, (residuals - residuals.mean()) ** 2
    ratio = rest.mean() / away.mean()
    return float(1.0 - ratio), float(np.std(rest - ratio * away) / away.mean() / np.sqrt(draws))


def _answers(model: Any, reader: Reader, x: np.ndarray) -> np.ndarray:
    if reader.target != "classes":
        return np.asarray(model.predict(x)).reshape(-1)
    if reader.output is None:
        return np.asarray(model.predict_proba(x))[:, 1]
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(x))
    logs = np.asarray(model.predict_log_proba(x))
    return logs[:, 1] - logs[:, 0]


def deviation(record: dict[str, Any]) -> float:
    """The difference of both R² in units of both errors; rounding counts as no difference."""
    gap = abs(record["r2"] - record["draws"])
    allowed = np.hypot(record["error"], record["draws_error"])
    return 0.0 if gap < 1e-9 else float(gap / allowed) if allowed > 0 else np.inf


def text(records: list[dict[str, Any]]) -> str:
    """The table, a line a reader."""
    lines = [
        "| model | R², quartiles | by draws | errors apart | R², slopes | by draws | errors apart |",
        "|---" * 7 + "|",
    ]
    for name in dict.fromkeys(record["reader"] for record in records):
        cells = [
            _cells(r) for design in DESIGNS for r in records if (r["reader"], r["design"]) == (name, design)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    exact = [record for record in records if "r2" in record]
    largest = max(deviation(record) for record in exact)
    closed = sum(record["error"] == 0 for record in exact)
    return "\n".join(
        [
            *lines,
            "",
            f"{len(exact)} R² beside {DRAWS:,} draws each: the largest difference is {largest:.1f} of both "
            f"errors. {closed} are in closed form and have no error.",
        ]
    )


def _cells(record: dict[str, Any]) -> str:
    if "r2" not in record:
        return "sampled | | "
    error = f" ± {record['error']:.4f}" if record["error"] else ""
    by_draws = f"{record['draws']:.4f} ± {record['draws_error']:.4f}"
    return f"{record['r2']:.4f}{error} | {by_draws} | {deviation(record):.1f}"


if __name__ == "__main__":
    readme.replace("fit of readers", text([*measure()]), by="benchmarks.fit.readers")
