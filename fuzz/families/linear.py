"""Linear models on numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fuzz.families.columns import FEW, classes, number, pick, seeded, size, target
from fuzz.options import Menu
from fuzz.script import Call, Setup, call
from fuzz.tables import TableCase

_L = "sklearn.linear_model."
_REGRESSORS = (
    "LinearRegression",
    "Ridge",
    "RidgeCV",
    "Lasso",
    "LassoCV",
    "ElasticNet",
    "ElasticNetCV",
    "Lars",
    "LassoLars",
    "BayesianRidge",
    "OrthogonalMatchingPursuit",
    "ARDRegression",
    "HuberRegressor",
    "TheilSenRegressor",
    "QuantileRegressor",
    "SGDRegressor",
    "RANSACRegressor",
    "TweedieRegressor",
    "PassiveAggressiveRegressor",
)
_TARGETS = ("MultiTaskLasso", "MultiTaskElasticNet", "LinearRegression", "Ridge", "MultiTaskLassoCV")
_CLASSIFIERS = (
    "LogisticRegression",
    "RidgeClassifier",
    "SGDClassifier",
    "Perceptron",
    "LogisticRegressionCV",
)
_RANDOM = {"SGDRegressor", "SGDClassifier", "Perceptron", "TheilSenRegressor", "RANSACRegressor"}


def regressor(rng: Any) -> Call:
    """A linear model of a quantity."""
    name = pick(rng, _REGRESSORS)
    options: dict[str, Any] = {"random_state": seeded(rng)} if name in _RANDOM else {}
    if name in ("Lasso", "ElasticNet", "Ridge", "QuantileRegressor"):
        options["alpha"] = pick(rng, (0.01, 0.1))
    if name == "TweedieRegressor":
        options["power"] = 0
    return Call(_L + name, (), options)


def classifier(rng: Any) -> Call:
    """A linear classifier, which has a margin."""
    name = pick(rng, (*_CLASSIFIERS, "LinearSVC", "LinearDiscriminantAnalysis"))
    if name == "LinearSVC":
        return call("sklearn.svm.LinearSVC", random_state=0)
    if name == "LinearDiscriminantAnalysis":
        return call("sklearn.discriminant_analysis.LinearDiscriminantAnalysis")
    return Call(_L + name, (), {"random_state": seeded(rng)} if name in _RANDOM else {})


def task(rng: Any) -> tuple[Call, str, Menu]:
    """A linear model with its target and outputs."""
    if rng.random() < 0.6:
        return regressor(rng), target(rng), Menu()
    return classifier(rng), classes(rng, int(rng.choice([2, 3]))), Menu(("margin",))


def few(rng: Any, d: int) -> tuple[str, ...]:
    """Columns of few values."""
    return tuple(str(pick(rng, FEW)) for _ in range(d))


def plain(rng: Any, seed: int) -> TableCase:
    """Smooth laws for one or two columns, laws of points for three."""
    if rng.random() < 0.15:
        name = pick(rng, _TARGETS)
        model, menu = Call(_L + name), Menu()
        y = f"np.column_stack([{target(rng)}, {target(rng)}])"
    else:
        model, y, menu = task(rng)
    if rng.random() < 0.4:
        setup = Setup(seed, size(rng, 30, 120), few(rng, 3), y, model)
        return TableCase(model.short, setup, Menu(menu.outputs, laws=("empirical",)), "atoms")
    columns = tuple(number(rng) for _ in range(int(rng.choice([1, 2]))))
    return TableCase(model.short, Setup(seed, size(rng), columns, y, model), menu, "smooth", 2.0)


def polynomial(rng: Any, seed: int) -> TableCase:
    """Quadratic models: products of columns."""
    head, y, menu = task(rng)
    features = call(
        "sklearn.preprocessing.PolynomialFeatures",
        2,
        include_bias=bool(rng.integers(2)),
        interaction_only=bool(rng.integers(2)),
    )
    steps = [features] if rng.random() < 0.5 else [call("sklearn.preprocessing.StandardScaler"), features]
    model = Call("sklearn.pipeline.make_pipeline", (*steps, head))
    if rng.random() < 0.5:
        setup = Setup(seed, size(rng, 30, 120), few(rng, int(rng.choice([2, 3]))), y, model)
        return TableCase(
            f"PolynomialFeatures, {head.short}", setup, Menu(menu.outputs, laws=("empirical",)), "atoms"
        )
    columns = tuple(number(rng, odd=False) for _ in range(int(rng.choice([1, 2]))))
    setup = Setup(seed, size(rng), columns, y, model)
    return TableCase(f"PolynomialFeatures, {head.short}", setup, menu, "smooth", 1.0)


def wide(rng: Any, seed: int) -> TableCase:
    """Many columns, by draws."""
    model, y, menu = task(rng)
    columns = tuple(number(rng, odd=False) for _ in range(int(rng.integers(4, 9))))
    menu = replace(menu, narrow=0.7, least=0.5)
    return TableCase(model.short, Setup(seed, size(rng, 100, 300), columns, y, model), menu, "draws")
