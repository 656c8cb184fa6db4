"""How often a diagnosis speaks where nothing is wrong, and where one thing is.

Models without a flaw: linear models on independent columns at random rows of the background (``plain``),
and those that LIME is made for (``well_behaved`` of ``tests/flaws.py``). Models with a flaw are made one kind
at a time.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LinearRegression

import limes


class Case(NamedTuple):
    """A model, its background, one row, and options of the explainer."""

    model: Any
    X: np.ndarray
    row: np.ndarray
    options: Mapping[str, Any] = {}


def linear(coef: np.ndarray) -> Any:
    """Return a fitted linear model."""
    model = LinearRegression()
    model.coef_, model.intercept_, model.n_features_in_ = coef, 0.0, coef.size
    return model


def plain(seed: int) -> Case:
    """Return a linear model on 2 to 8 independent columns, normal, uniform or skewed, at a random row."""
    rng = np.random.default_rng([1, seed])
    d = int(rng.integers(2, 9))
    kinds = [rng.normal(size=(500, d)), rng.uniform(-1.7, 1.7, (500, d)), rng.exponential(size=(500, d)) - 1]
    X = np.choose(rng.integers(0, 3, d), kinds)
    return Case(linear(rng.choice([-1.0, 1.0], d) * rng.uniform(0.3, 2.0, d)), X, X[rng.integers(500)])


def _uniform(rng: np.random.Generator, d: int) -> np.ndarray:
    return np.column_stack([rng.permutation(np.linspace(-10, 10, 1000)) for _ in range(d)])


def cancellation(seed: int) -> Case:
    """Return effects that are symmetric around the row's cell, whose contrast is about 0."""
    rng = np.random.default_rng([2, seed])
    d = int(rng.integers(2, 6))
    X, slope = _uniform(rng, d), rng.choice([-1.0, 1.0], d) * rng.uniform(1.0, 1.5, d)
    if seed % 2:  # a linear model in the middle one of five bins
        return Case(linear(slope), X, rng.uniform(-1.5, 1.5, d), {"bins": 5})
    steps = rng.uniform(3.0, 4.0) * np.array([1.0, -1.0, -1.0, 1.0])[rng.permutation(4)]
    steps -= steps.mean()

    def model(x: np.ndarray) -> np.ndarray:
        # no cell differs from the mean of the others by what they differ from each other
        wave = np.select([x[:, 0] < -5, x[:, 0] < 0, x[:, 0] < 5], [-4.0, 0.0, 4.0], 0.0)
        return wave + 0.1 * x[:, 1:] @ slope[1:]

    return Case(model, X, np.array([rng.uniform(6, 9), *rng.uniform(6, 9, d - 1)]), {"max_calls": 2048})


def alignment(seed: int) -> Case:
    """Return a bump far from the row that shares a cell with it."""
    rng = np.random.default_rng([3, seed])
    X = _uniform(rng, 2)
    low, high = rng.uniform(2.0, 4.0), rng.uniform(7.0, 9.0)

    def model(x: np.ndarray) -> np.ndarray:
        return ((x > low) & (x < high)).all(axis=1).astype(float)

    return Case(model, X, np.array([rng.uniform(5.5, 9), -rng.uniform(5.5, 9)]), {"max_calls": 2048})


def bandwidth(seed: int) -> Case:
    """Return a coefficient whose sign changes with ν, near the one that is used."""
    rng = np.random.default_rng([4, seed])
    share = rng.uniform(0.62, 0.75)
    X = _uniform(rng, 2)

    def model(x: np.ndarray) -> np.ndarray:
        return (x[:, 0] > 0) * ((x[:, 1] > 0) - share)

    crossing = 1 / np.sqrt(-2 * np.log((1 - share) / share))
    return Case(model, X, rng.uniform(3, 7, 2), {"bins": 2, "bandwidth": 1.5 * crossing, "max_calls": 4096})


def edge(seed: int) -> Case:
    """Return a row a hair's breadth from the edge of a bin."""
    rng = np.random.default_rng([5, seed])
    X = rng.normal(size=(500, 3))
    row = np.percentile(X, 90, axis=0)
    row[1] = np.percentile(X[:, 1], 75) + 1e-5 * rng.choice([-1, 1])
    return Case(linear(rng.uniform(0.8, 1.2, 3)), X, row)


def fidelity(seed: int) -> Case:
    """Return a product of two columns: no sum of effects is like it."""
    rng = np.random.default_rng([6, seed])
    X = rng.normal(size=(500, 3))

    def model(x: np.ndarray) -> np.ndarray:
        return np.sign(x[:, 0]) * np.sign(x[:, 1]) * (1 + 0.1 * x[:, 2])

    return Case(model, X, rng.normal(size=3), {"max_calls": 2048, "bandwidth": 5.0})


def local_error(seed: int) -> Case:
    """Return a spike at the row."""
    rng = np.random.default_rng([7, seed])
    X = rng.normal(size=(500, 3))
    row, height = X[0], rng.uniform(6.0, 9.0)

    def model(x: np.ndarray) -> np.ndarray:
        return x.sum(axis=1) + height * np.sqrt(3) * (np.abs(x - row).max(axis=1) < 1e-3)

    return Case(model, X, row, {"max_calls": 2048})


def dependence(seed: int) -> Case:
    """Return a model that answers by another column where two columns, which are one, differ.

    Rows that occur never show it: Slack et al. 2020.
    """
    rng = np.random.default_rng([8, seed])
    X, factor = rng.normal(size=(1000, 4)), rng.uniform(0.5, 2)
    X[:, 2] = factor * X[:, 0] + 0.02 * rng.normal(size=1000)
    shown, hidden = rng.uniform(0.5, 1.5, 2)

    def model(x: np.ndarray) -> np.ndarray:
        occurs = np.abs(x[:, 2] - factor * x[:, 0]) < 0.1
        return np.where(occurs, hidden * x[:, 0], shown * x[:, 1])

    outer = np.flatnonzero((np.abs(X[:, :2]) > 0.8).all(axis=1))
    return Case(model, X, X[rng.choice(outer)], {"max_calls": 2048})


FLAWS: Mapping[str, Callable[[int], Case]] = {
    "cancellation": cancellation,
    "alignment": alignment,
    "bandwidth": bandwidth,
    "edge": edge,
    "fidelity": fidelity,
    "local error": local_error,
    "dependence": dependence,
}


def findings(case: Case, calls: int = 1024) -> list[Any]:
    """Explain and diagnose one row."""
    options = {"control": "additive", **case.options}
    explainer = limes.TabularExplainer(case.model, case.X, **options)
    return [
        *limes.diagnose(explainer(case.row[None], progress=False), max_calls=calls, progress=False).findings
    ]


def false_alarms(make: Callable[[int], Case], models: int) -> dict[str, Any]:
    """Return how many models a diagnosis speaks of and warns of, and the kinds."""
    spoke = warned = 0
    kinds: Counter[str] = Counter()
    for seed in range(models):
        result = findings(make(seed))
        spoke += bool(result)
        warned += any(f.severity == "warning" for f in result)
        kinds.update({f.kind for f in result})
    return {"models": models, "spoke": spoke, "warned": warned, "kinds": dict(kinds)}


def detection(kind: str, models: int) -> dict[str, Any]:
    """Return in how many models a flaw is reported, and in how many as a warning."""
    results = [[f for f in findings(FLAWS[kind](seed)) if f.kind == kind] for seed in range(models)]
    return {
        "models": models,
        "reported": sum(map(bool, results)),
        "warned": sum(any(f.severity == "warning" for f in result) for result in results),
    }


def well_behaved(seed: int) -> Case:
    """Return a model that LIME is made for, of ``tests/flaws.py``."""
    path = str(Path(__file__).parents[2] / "tests")
    if path not in sys.path:
        sys.path.append(path)
    case = import_module("flaws").well_behaved(seed)
    return Case(case.model, case.X, case.row)


def table(models: int = 200, each: int = 100) -> Iterator[str]:
    """Yield the lines of a table: false alarms of models without a flaw, and detection of each flaw."""
    yield "| models | number | reported | as a warning | kinds |"
    yield "|---" * 5 + "|"
    for name, make in (("well-behaved", well_behaved), ("plain linear", plain)):
        alarms = false_alarms(make, models)
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(alarms["kinds"].items()))
        yield f"| {name}: no flaw | {models} | {alarms['spoke']} | {alarms['warned']} | {kinds} |"
    for kind in FLAWS:
        result = detection(kind, each)
        yield f"| {kind} | {each} | {result['reported']} | {result['warned']} | |"


if __name__ == "__main__":
    for line in table(*map(int, sys.argv[1:])):
        print(line, flush=True)
