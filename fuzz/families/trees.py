"""scikit-learn's trees and what is made of them."""

from __future__ import annotations

from typing import Any

from fuzz.families.columns import CODES, MISSING_CODES, classes, number, pick, seeded, size, target
from fuzz.options import Menu
from fuzz.script import Call, Setup, call
from fuzz.tables import TableCase

_E, _T = "sklearn.ensemble.", "sklearn.tree."
# Weights so narrow that features hardly vary are nothing for draws
DRAWN = Menu(narrow=0.7, least=0.5)


def dimension(rng: Any) -> int:
    """Columns, few enough for a grid."""
    return int(rng.choice([1, 2, 2, 3, 3]))


def growth(rng: Any) -> dict[str, Any]:
    """Parameters of one tree."""
    result: dict[str, Any] = {"max_depth": int(rng.integers(1, 5)), "random_state": seeded(rng)}
    if rng.random() < 0.3:
        result["min_samples_leaf"] = int(rng.integers(2, 8))
    if rng.random() < 0.2:
        result["max_features"] = 0.7
    return result


def _probabilities(labels: str, count: int) -> tuple[Any, ...]:
    """Outputs of a classifier: all, one label, some labels."""
    names = ["no", "so", "yes"] if "'no'" in labels else [0, 1, 2]
    return (None, "probability", names[1], [names[1], names[0]] if count == 3 else [names[0]])


def small_trees(rng: Any, kind: str) -> Call:
    """A tree or a small forest, "Regressor" or "Classifier"."""
    name = pick(rng, ("DecisionTree", "ExtraTree", "RandomForest", "ExtraTrees"))
    result = growth(rng)
    if name in ("RandomForest", "ExtraTrees"):
        result["n_estimators"] = int(rng.integers(2, 7))
        return Call(f"{_E}{name}{kind}", (), result)
    return Call(f"{_T}{name}{kind}", (), result)


def plain(rng: Any, seed: int) -> TableCase:
    """Trees and forests, regressors of one or two targets and classifiers."""
    d, missing = dimension(rng), rng.random() < 0.35
    kind = pick(rng, ("Regressor", "Classifier"))
    model = small_trees(rng, kind)
    if missing and "Extra" in model.name:
        missing = False
    columns = tuple(number(rng, missing=missing) for _ in range(d))
    if kind == "Classifier":
        count = int(rng.choice([2, 3]))
        labels = classes(rng, count)
        return TableCase(
            model.short,
            Setup(seed, size(rng), columns, labels, model),
            Menu(_probabilities(labels, count)),
        )
    y = target(rng)
    y = f"np.column_stack([{y}, {target(rng)}])" if rng.random() < 0.2 else y
    return TableCase(model.short, Setup(seed, size(rng), columns, y, model), Menu())


def boosting(rng: Any, seed: int) -> TableCase:
    """Gradient boosting of scikit-learn's first kind, and AdaBoost."""
    columns = tuple(number(rng) for _ in range(dimension(rng)))
    name = pick(rng, ("GradientBoostingRegressor", "GradientBoostingClassifier", "AdaBoostClassifier"))
    options: dict[str, Any] = {"n_estimators": int(rng.integers(2, 9)), "random_state": seeded(rng)}
    if name == "AdaBoostClassifier":
        options["estimator"] = call(
            f"{_T}DecisionTreeClassifier", max_depth=int(rng.integers(1, 4)), random_state=0
        )
    else:
        options |= {"max_depth": int(rng.integers(1, 4)), "learning_rate": pick(rng, (0.1, 0.5, 1.0))}
        if rng.random() < 0.3:
            options["subsample"] = 0.7
    if name == "GradientBoostingRegressor":
        options["loss"] = pick(rng, ("squared_error", "absolute_error", "huber", "quantile"))
        if rng.random() < 0.2:
            options["init"] = pick(rng, ("zero", call(f"{_T}DecisionTreeRegressor", max_depth=2)))
    model = Call(_E + name, (), options)
    y = target(rng) if "Regressor" in name else classes(rng, int(rng.choice([2, 3])))
    menu = Menu() if "Regressor" in name else Menu(("margin",))
    return TableCase(name, Setup(seed, size(rng), columns, y, model), menu)


def histogram(rng: Any, seed: int) -> TableCase:
    """Histogram boosting, with missing values and integer categories."""
    d = dimension(rng)
    kind = pick(rng, ("Regressor", "Classifier"))
    options: dict[str, Any] = {
        "max_iter": int(rng.integers(2, 9)),
        "max_depth": int(rng.integers(1, 5)),
        "min_samples_leaf": int(rng.integers(1, 6)),
        "learning_rate": pick(rng, (0.1, 0.5, 1.0)),
        "random_state": seeded(rng),
    }
    codes, fit = (), "X, y"
    columns = [number(rng, missing=True) for _ in range(d)]
    if rng.random() < 0.5:
        codes = (0,)
        columns[0] = pick(rng, CODES[:3] + MISSING_CODES)
        options["categorical_features"] = [0]
        if rng.random() < 0.3:
            fit = "X[C[0] != 2], y[C[0] != 2]"
    y = target(rng) if kind == "Regressor" else classes(rng, int(rng.choice([2, 3])))
    model = Call(f"{_E}HistGradientBoosting{kind}", (), options)
    outputs = (None,) if kind == "Regressor" else ("margin",)
    setup = Setup(seed, size(rng, 60), tuple(columns), y, model, fit=fit)
    return TableCase(model.short, setup, Menu(outputs, categorical=codes, unnamed=bool(codes)))


def composed(rng: Any, seed: int) -> TableCase:
    """Bagging, voting, stacking, searches and transformed targets of trees."""
    columns = tuple(number(rng, odd=rng.random() < 0.5) for _ in range(dimension(rng)))
    name = pick(rng, tuple(_COMPOSED))
    kind = pick(rng, ("Regressor", "Classifier")) if name != "TransformedTarget" else "Regressor"
    model = _COMPOSED[name](rng, kind)
    labels = classes(rng, int(rng.choice([2, 3])))
    stacked = name == "Stacking" and kind == "Classifier"
    outputs = (None,) if kind == "Regressor" else ("margin",) if stacked else (None, "probability")
    y = target(rng) if kind == "Regressor" else labels
    return TableCase(model.short, Setup(seed, size(rng, 60, 200), columns, y, model), Menu(outputs))


def _bagging(rng: Any, kind: str) -> Call:
    options = {"n_estimators": int(rng.integers(2, 5)), "random_state": seeded(rng)}
    if rng.random() < 0.4:
        options["max_features"] = 0.7
    part = _bagging(rng, kind) if rng.random() < 0.1 else small_trees(rng, kind)
    return Call(f"{_E}Bagging{kind}", (part,), options)


def _voting(rng: Any, kind: str) -> Call:
    parts = [(f"m{i}", small_trees(rng, kind)) for i in range(2)]
    options: dict[str, Any] = {"voting": "soft"} if kind == "Classifier" else {}
    if rng.random() < 0.5:
        options["weights"] = [1.0, float(rng.integers(2, 5))]
    return Call(f"{_E}Voting{kind}", (parts,), options)


def _stacking(rng: Any, kind: str) -> Call:
    parts = [(f"m{i}", small_trees(rng, kind)) for i in range(2)]
    last = "RidgeCV" if kind == "Regressor" else "LogisticRegression"
    return call(f"{_E}Stacking{kind}", parts, final_estimator=call(f"sklearn.linear_model.{last}"), cv=3)


def _search(rng: Any, kind: str) -> Call:
    tree = call(f"{_T}DecisionTree{kind}", random_state=seeded(rng))
    return Call("sklearn.model_selection.GridSearchCV", (tree, {"max_depth": [1, 2, 3]}), {"cv": 2})


def _transformed(rng: Any, kind: str) -> Call:
    return call(
        "sklearn.compose.TransformedTargetRegressor",
        small_trees(rng, kind),
        transformer=call("sklearn.preprocessing." + pick(rng, ("StandardScaler", "MinMaxScaler"))),
    )


_COMPOSED = {
    "Bagging": _bagging,
    "Voting": _voting,
    "Stacking": _stacking,
    "Search": _search,
    "TransformedTarget": _transformed,
}


def targets(rng: Any, seed: int) -> TableCase:
    """Several targets by a model each."""
    columns = tuple(number(rng) for _ in range(dimension(rng)))
    part = pick(
        rng,
        (
            small_trees(rng, "Regressor"),
            call(f"{_E}GradientBoostingRegressor", n_estimators=3, max_depth=2),
            call(f"{_E}HistGradientBoostingRegressor", max_iter=3, max_depth=3),
        ),
    )
    y = f"np.column_stack([{target(rng)}, {target(rng)}])"
    model = call("sklearn.multioutput.MultiOutputRegressor", part)
    return TableCase(model.short, Setup(seed, size(rng), columns, y, model), Menu())


def isolation(rng: Any, seed: int) -> TableCase:
    """Path lengths of isolation forests."""
    columns = tuple(number(rng, odd=False) for _ in range(int(rng.choice([1, 2]))))
    model = call(
        f"{_E}IsolationForest",
        n_estimators=int(rng.integers(2, 5)),
        max_samples=int(rng.integers(8, 24)),
        random_state=seeded(rng),
    )
    setup = Setup(seed, size(rng), columns, "None", model, fit="X", wrap="limes.models.path_length")
    return TableCase("IsolationForest", setup, Menu())


def wide(rng: Any, seed: int) -> TableCase:
    """More columns than a grid can have, by draws."""
    d = int(rng.integers(4, 9))
    columns = tuple(number(rng, odd=False) for _ in range(d))
    name = pick(rng, ("RandomForestRegressor", "GradientBoostingRegressor"))
    model = Call(_E + name, (), {"n_estimators": 20, "max_depth": 5, "random_state": seeded(rng)})
    return TableCase(name, Setup(seed, size(rng, 150, 400), columns, target(rng), model), DRAWN, "draws")
