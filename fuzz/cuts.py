"""Where a model changes as one column does, read off each library's own description of its trees.

A tree that compares float32(x) with a threshold t has its cut between two float32 numbers, where rounding of
the float64 value changes from down to up. More cuts than needed do no harm.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = Any
Cut = tuple[int, float]  # column, value


# Borders for missing values, which no law reaches
_FAR = 1e30


class NoCutsError(Exception):
    """The model's cuts are not known: it must be compared on points, or by draws."""


def cuts_of(model: Any, d: int) -> list[Array]:
    """Sorted cuts of each of d columns.

    Raises
    ------
    NoCutsError
        If a part of the model is of no known kind.
    """
    result: list[list[float]] = [[] for _ in range(d)]
    for column, value in _cuts(model):
        if abs(value) < _FAR:
            result[column].append(value)
    return [np.unique(np.asarray(values, dtype=float)) for values in result]


def _cuts(model: Any) -> Iterator[Cut]:
    reader = _READERS.get(type(model).__name__)
    if reader is None:
        raise NoCutsError(type(model).__name__)
    yield from reader(model)


def _rounded(value: float) -> Iterator[float]:
    """Float64 places where float32 rounding changes around a threshold: below, at, above."""
    yield value
    with np.errstate(over="ignore"):
        single = np.float32(value)
        below, above = np.nextafter(single, np.float32(-np.inf)), np.nextafter(single, np.float32(np.inf))
    value_of_single = float(single)
    # float32(x) <= t: the last x that is not rounded beyond t. float32(x) < t: the last that stays below it.
    yield (
        0.5 * (value_of_single + float(above))
        if value_of_single <= value
        else 0.5 * (float(below) + value_of_single)
    )
    if value_of_single == value:
        yield 0.5 * (float(below) + value_of_single)


def _both(column: int, values: Array) -> Iterator[Cut]:
    for value in np.unique(values):
        for cut in _rounded(float(value)):
            yield column, cut


def _tree(model: Any) -> Iterator[Cut]:
    tree = model.tree_
    inner = tree.children_left >= 0
    for column in np.unique(tree.feature[inner]):
        yield from _both(int(column), tree.threshold[inner & (tree.feature == column)])


def _histogram(model: Any) -> Iterator[Cut]:
    order = _preprocessed_order(model)
    for stage in model._predictors:  # noqa: SLF001 - there is no public way
        for predictor in stage:
            nodes = predictor.nodes
            for node in nodes[(nodes["is_leaf"] == 0) & (nodes["is_categorical"] == 0)]:
                yield order[int(node["feature_idx"])], float(node["num_threshold"])


def _preprocessed_order(model: Any) -> list[int]:
    """The model puts its categories first."""
    categorical = model.is_categorical_
    if categorical is None:
        return list(range(model.n_features_in_))
    flags = np.asarray(categorical)
    return [*np.flatnonzero(flags).tolist(), *np.flatnonzero(~flags).tolist()]


def _xgboost(model: Any) -> Iterator[Cut]:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    trainer = json.loads(bytes(booster.save_raw("json")))["learner"]["gradient_booster"]
    trees = trainer.get("model", trainer.get("gbtree", {}).get("model", {}))
    if "trees" not in trees:
        raise NoCutsError("linear booster")
    for tree in trees["trees"]:
        kinds = tree.get("split_type") or [0] * len(tree["left_children"])
        for node, child in enumerate(tree["left_children"]):
            if child >= 0 and kinds[node] == 0:
                value = float(np.float32(tree["split_conditions"][node]))
                yield from _both(int(tree["split_indices"][node]), np.array([value]))


def _lightgbm(model: Any) -> Iterator[Cut]:
    booster = getattr(model, "booster_", model)
    stack = [tree["tree_structure"] for tree in booster.dump_model()["tree_info"]]
    while stack:
        node = stack.pop()
        if "split_feature" not in node:
            continue
        if node["decision_type"] == "<=":
            yield int(node["split_feature"]), float(node["threshold"])
        stack += [node["left_child"], node["right_child"]]


def _catboost(model: Any) -> Iterator[Cut]:
    for column, borders in model.get_borders().items():
        yield from _both(int(column), np.asarray(borders, dtype=float))


def _parts(*attributes: str) -> Callable[[Any], Iterator[Cut]]:
    def cuts(model: Any) -> Iterator[Cut]:
        for attribute in attributes:
            held = getattr(model, attribute, None)
            if held is None:
                continue
            for part in (
                np.ravel(np.asarray(held, dtype=object)) if isinstance(held, list | np.ndarray) else [held]
            ):
                if part != "zero" and part is not None:
                    yield from _cuts(part)

    return cuts


def _bagging(model: Any) -> Iterator[Cut]:
    for part, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        for column, value in _cuts(part):
            yield int(columns[column]), value


def _pipeline(model: Any) -> Iterator[Cut]:
    """Cuts behind scalers, carried back: right to a rounding of float64."""
    steps = [step for _, step in model.steps[:-1]]
    if not {type(step).__name__ for step in steps} <= _SCALERS:
        raise NoCutsError("Pipeline")
    last = list(_cuts(model.steps[-1][1]))
    for column, value in last:
        row = np.zeros((1, model.n_features_in_))
        row[0, column] = value
        for step in reversed(steps):
            row = step.inverse_transform(row)
        yield column, float(row[0, column])


_SCALERS = {"StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler"}


def _nothing(_: Any) -> Iterator[Cut]:
    yield from ()


def _explainable(model: Any) -> Iterator[Cut]:
    """A value on a cut belongs to the bin above it; categories have no cuts."""
    for column, resolutions in enumerate(model.bins_):
        for bins in resolutions:
            if isinstance(bins, dict):
                raise NoCutsError(f"{type(model).__name__} of categories")
            for cut in bins:
                yield column, float(cut)
                yield column, float(np.nextafter(cut, -np.inf))


_READERS: dict[str, Callable[[Any], Iterator[Cut]]] = {
    **dict.fromkeys(
        ("DecisionTreeRegressor", "DecisionTreeClassifier", "ExtraTreeRegressor", "ExtraTreeClassifier"),
        _tree,
    ),
    **dict.fromkeys(
        ("RandomForestRegressor", "RandomForestClassifier", "ExtraTreesRegressor", "ExtraTreesClassifier"),
        _parts("estimators_"),
    ),
    **dict.fromkeys(
        ("GradientBoostingRegressor", "GradientBoostingClassifier"), _parts("estimators_", "init_")
    ),
    **dict.fromkeys(("DummyRegressor", "DummyClassifier"), _nothing),
    "ExplainableBoostingClassifier": _explainable,
    **dict.fromkeys(("HistGradientBoostingRegressor", "HistGradientBoostingClassifier"), _histogram),
    **dict.fromkeys(
        ("XGBRegressor", "XGBClassifier", "XGBRFRegressor", "XGBRFClassifier", "Booster"), _xgboost
    ),
    **dict.fromkeys(("LGBMRegressor", "LGBMClassifier"), _lightgbm),
    **dict.fromkeys(("CatBoostRegressor", "CatBoostClassifier"), _catboost),
    **dict.fromkeys(("BaggingRegressor", "BaggingClassifier"), _bagging),
    **dict.fromkeys(
        (
            "VotingRegressor",
            "VotingClassifier",
            "StackingRegressor",
            "StackingClassifier",
            "MultiOutputRegressor",
        ),
        _parts("estimators_"),
    ),
    **dict.fromkeys(("AdaBoostClassifier", "AdaBoostRegressor"), _parts("estimators_")),
    "TransformedTargetRegressor": _parts("regressor_"),
    "GridSearchCV": _parts("best_estimator_"),
    "IsolationForest": _bagging,
    "PathLength": _parts("forest"),
    "Pipeline": _pipeline,
}
