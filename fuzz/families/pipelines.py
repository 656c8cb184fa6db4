"""Transformers in front of models: scalers, powers, splines, encoders, imputers, by columns or all alike."""

from __future__ import annotations

from typing import Any

from fuzz.families import kernels, linear, trees
from fuzz.families.columns import (
    CODES,
    FEW,
    FEW_POSITIVE,
    PLAIN_CODES,
    classes,
    number,
    pick,
    seeded,
    size,
    target,
)
from fuzz.options import Menu
from fuzz.script import Call, Raw, Setup, call
from fuzz.tables import TableCase

_P, _C = "sklearn.preprocessing.", "sklearn.compose."
_PIPE = "sklearn.pipeline.make_pipeline"
_NUMPY = ("log1p", "sqrt", "log", "square", "abs", "cbrt")


def _function(name: str) -> Call:
    return call(f"{_P}FunctionTransformer", Raw(f"np.{name}"))


def _transformer(rng: Any) -> tuple[Call, bool]:
    """A transformer of numbers, and whether it wants them positive."""
    kind = int(rng.integers(12))
    if kind < 4:
        return call(_P + ("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler")[kind]), False
    if kind == 4:
        return call(f"{_P}PowerTransformer", method=pick(rng, ("yeo-johnson", "box-cox"))), True
    if kind == 5:
        return call(
            f"{_P}QuantileTransformer", n_quantiles=10, output_distribution=pick(rng, ("uniform", "normal"))
        ), False
    if kind == 6:
        return _function(pick(rng, _NUMPY)), True
    if kind == 7:
        return call(f"{_P}SplineTransformer", n_knots=4, degree=pick(rng, (1, 2, 3))), False
    if kind == 8:
        return call(
            f"{_P}KBinsDiscretizer",
            n_bins=3,
            encode=pick(rng, ("onehot-dense", "ordinal")),
            quantile_method="averaged_inverted_cdf",
        ), False
    if kind == 9:
        return call(f"{_P}Binarizer", threshold=0.6), False
    if kind == 10:
        return call("sklearn.decomposition.PCA", n_components=1, random_state=0), False
    return call(f"{_P}MinMaxScaler", clip=True), False


def head(rng: Any) -> tuple[Call, str, tuple[Any, ...]]:
    """Return what stands last: linear, trees or kernels; its target and outputs."""
    kind = int(rng.integers(4))
    if kind == 0:
        model, y, menu = linear.task(rng)
        return model, y, menu.outputs
    if kind == 1:
        return kernels.machine(rng)
    if kind == 2:
        name = pick(rng, ("GradientBoostingRegressor", "HistGradientBoostingRegressor"))
        key = "n_estimators" if name[0] == "G" else "max_iter"
        return (
            Call(f"sklearn.ensemble.{name}", (), {key: 4, "max_depth": 3, "random_state": seeded(rng)}),
            target(rng),
            (None,),
        )
    return trees.small_trees(rng, "Regressor"), target(rng), (None,)


def scaled(rng: Any, seed: int) -> TableCase:
    """One or two transformers of all columns; few values, laws of points."""
    first, positive = _transformer(rng)
    steps = [first]
    if rng.random() < 0.3:
        steps.insert(0, call("sklearn.impute.SimpleImputer", strategy=pick(rng, ("mean", "median"))))
    if rng.random() < 0.3:
        steps.append(call(f"{_P}StandardScaler"))
    model, y, outputs = head(rng)
    reader = f"{first.short}, {model.short}"
    whole = Call(_PIPE, (*steps, model))
    if rng.random() < 0.1 and outputs == (None,):
        whole = call(f"{_C}TransformedTargetRegressor", whole, transformer=call(f"{_P}StandardScaler"))
    kinds = FEW_POSITIVE if positive else FEW
    columns = tuple(pick(rng, kinds) for _ in range(int(rng.choice([1, 2, 3]))))
    setup = Setup(seed, size(rng, 30, 100), columns, y, whole)
    slopes = model.short not in ("KernelRidge",)
    return TableCase(reader, setup, Menu(outputs, laws=("empirical",), slopes=slopes), "atoms")


def encoded(rng: Any, seed: int) -> TableCase:
    """Integer categories behind encoders, numbers beside them."""
    encoder = _encoder(rng)
    model, y, outputs = head(rng)
    rest = pick(rng, ("passthrough", call(f"{_P}StandardScaler")))
    numbers_too = int(rng.choice([0, 1, 2]))
    parts = call(f"{_C}ColumnTransformer", [("c", encoder, [0])], remainder=rest, sparse_threshold=0.0)
    columns = (
        pick(rng, CODES[:5] if encoder.short == "TargetEncoder" else PLAIN_CODES),
        *linear.few(rng, numbers_too),
    )
    setup = Setup(seed, size(rng, 40, 120), columns, y, call(_PIPE, parts, model))
    menu = Menu(outputs, laws=("empirical",), categorical=(0,), unnamed=True)
    return TableCase(f"{encoder.short}, {model.short}", setup, menu, "atoms")


def _encoder(rng: Any) -> Call:
    return pick(
        rng,
        (
            call(f"{_P}OneHotEncoder", sparse_output=False),
            call(f"{_P}OneHotEncoder", sparse_output=False, handle_unknown="ignore", drop="if_binary"),
            call(f"{_P}OneHotEncoder", sparse_output=False, drop="first"),
            call(f"{_P}OneHotEncoder", sparse_output=False, min_frequency=0.2),
            call(f"{_P}OrdinalEncoder"),
            call(f"{_P}TargetEncoder", target_type="continuous", random_state=0, cv=3),
        ),
    )


_TEXTS = "np.array(['u', 'v', 'w', 'x', 'y', 'z'])[C[0].astype(int) % 6]"


def columns(rng: Any, seed: int) -> TableCase:
    """A frame with texts, missing numbers and integers; a transformer for each."""
    encoder = call(f"{_P}OneHotEncoder", sparse_output=False, handle_unknown="ignore")
    if rng.random() < 0.4:
        encoder = call(f"{_P}OrdinalEncoder")
    filled = call(
        _PIPE,
        call("sklearn.impute.SimpleImputer", add_indicator=bool(rng.integers(2))),
        call(f"{_P}StandardScaler"),
    )
    parts = call(
        f"{_C}ColumnTransformer",
        [("k", encoder, ["k"]), ("a", filled, ["a"])],
        remainder=pick(rng, ("passthrough", "drop")),
        sparse_threshold=0.0,
    )
    model, y, outputs = head(rng)
    table = f"pd.DataFrame({{'k': {_TEXTS}, 'a': C[1], 'b': C[2]}})"
    missing = f"np.where(r.random(n) < 0.2, np.nan, {pick(rng, FEW)})"
    setup = Setup(
        seed,
        size(rng, 40, 120),
        (pick(rng, PLAIN_CODES), missing, pick(rng, FEW)),
        y,
        call(_PIPE, parts, model),
        table,
    )
    return TableCase(f"ColumnTransformer, {model.short}", setup, Menu(outputs, laws=("empirical",)), "atoms")


def additive(rng: Any, seed: int) -> TableCase:
    """Explainable boosting machines."""
    kind = pick(rng, ("Regressor", "Classifier"))
    d = int(rng.choice([1, 2, 3]))
    options = {
        "max_rounds": 15,
        "outer_bags": 1,
        "interactions": int(rng.integers(0, 2)) if d > 1 else 0,
        "random_state": seeded(rng),
        "n_jobs": 1,
    }
    model = Call(f"interpret.glassbox.ExplainableBoosting{kind}", (), options)
    cells = [pick(rng, FEW) for _ in range(d)]
    if rng.random() < 0.3:
        cells[-1] = f"np.where(r.random(n) < 0.2, np.nan, {cells[-1]})"
    y = target(rng) if kind == "Regressor" else classes(rng)
    outputs = (None,) if kind == "Regressor" else ("margin",)
    setup = Setup(seed, size(rng, 60, 150), tuple(cells), y, model)
    return TableCase(model.short, setup, Menu(outputs, laws=("empirical",)), "atoms")


def margins(rng: Any, seed: int) -> TableCase:
    """Sums behind links: naive Bayes, quadratic discriminants, generalised linear models."""
    name = pick(rng, tuple(_MARGINS))
    y = classes(rng) if "Regressor" not in name else f"np.exp({target(rng)} / 100)"
    kinds = FEW_POSITIVE if name in ("MultinomialNB", "ComplementNB") else FEW
    columns = tuple(pick(rng, kinds) for _ in range(int(rng.choice([1, 2, 3]))))
    model = Call(_MARGINS[name] + name)
    setup = Setup(seed, size(rng, 40, 120), columns, y, model)
    return TableCase(name, setup, Menu(("margin",), laws=("empirical",)), "atoms")


_MARGINS = {
    "GaussianNB": "sklearn.naive_bayes.",
    "MultinomialNB": "sklearn.naive_bayes.",
    "BernoulliNB": "sklearn.naive_bayes.",
    "QuadraticDiscriminantAnalysis": "sklearn.discriminant_analysis.",
    "PoissonRegressor": "sklearn.linear_model.",
    "GammaRegressor": "sklearn.linear_model.",
}


def stepwise(rng: Any, seed: int) -> TableCase:
    """Trees behind scalers, under smooth laws."""
    steps = [call(_P + pick(rng, ("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler")))]
    model = trees.small_trees(rng, "Regressor")
    cells = tuple(number(rng, odd=False) for _ in range(trees.dimension(rng)))
    setup = Setup(seed, size(rng), cells, target(rng), Call(_PIPE, (*steps, model)))
    return TableCase(f"{steps[0].short}, {model.short}", setup, Menu())
