"""XGBoost: trees, dart and linear boosters, read off the model's own JSON.

A test is float32(x) < threshold, and categories of the set go right. Leaves and their sums are float32. A
model of scikit-learn's kind with ``missing=-999`` treats every x with float32(x) = -999 as NaN.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes.models._calling.outputs import Methods
from limes.models._reading import CannotRead, Schema, refuse_all_but_margin
from limes.models._tree_rewriting import Window, without_missing_numbers
from limes.models.forms._base import Linear
from limes.models.forms._trees import Forest, float32_threshold
from limes.models.readers.boosted_trees import (
    BoosterTree,
    CategoryCodes,
    codes_of,
    column_name,
    join_trees,
    parsing,
)
from limes.models.readers.links import with_probabilities

Description = Mapping[str, Any]


def _same(score: Floats) -> Floats:
    return score


def _logit(probability: Floats) -> Floats:
    return np.log(probability) - np.log1p(-probability)


# objective -> the margin of its base score, and whether its prediction is its margin
_OBJECTIVES: Mapping[str, tuple[Callable[[Floats], Floats], bool]] = {
    objective: (margin, is_margin)
    for objectives, margin, is_margin in (
        ("reg:squarederror reg:linear reg:squaredlogerror reg:pseudohubererror", _same, True),
        ("reg:absoluteerror reg:quantileerror binary:logitraw", _same, True),
        ("rank:pairwise rank:ndcg rank:map", _same, True),
        ("binary:hinge multi:softmax multi:softprob", _same, False),
        ("binary:logistic reg:logistic", _logit, False),
        ("count:poisson reg:gamma reg:tweedie survival:cox survival:aft", np.log, False),
    )
    for objective in objectives.split()
}


def _is_logistic(model: Any) -> bool:
    """Return whether probabilities are the logistic of the margin, by the booster's own objective."""
    objective = json.loads(model.get_booster().save_config())["learner"]["objective"]["name"]
    return objective in ("binary:logistic", "reg:logistic")


def _softmax_scale(model: Any) -> float:
    return float(getattr(model, "objective", "") in ("multi:softprob", "multi:softmax"))


@partial(with_probabilities, where=_is_logistic, scale=_softmax_scale)
def booster(model: Any, method: str, schema: Schema | None) -> Forest | Linear:
    """Base score + Σ trees, of a Booster or a model of scikit-learn's kind."""
    name = type(model).__name__
    if hasattr(model, "predict_proba"):
        refuse_all_but_margin(model, method, "trees")
    with parsing("XGBoost"):
        inner = model.get_booster() if hasattr(model, "get_booster") else model
        learner = json.loads(bytes(inner.save_raw("json")))["learner"]
        start = _base_margin(learner, name, method)
        family = learner["gradient_booster"]["name"]
        if family not in _FAMILIES:
            raise CannotRead(f"limes cannot read the booster {family!r} of XGBoost yet")
        rounds = None if inner is model else _best_round(learner)
        return _FAMILIES[family](learner, start, rounds, schema, _missing_numbers(model))


def _base_margin(learner: Description, name: str, method: str) -> Floats:
    """The constant that boosting starts from, () or (k,)."""
    objective = learner["objective"]["name"]
    if objective not in _OBJECTIVES:
        raise CannotRead(f"limes does not know how XGBoost's objective {objective!r} predicts")
    margin, is_prediction = _OBJECTIVES[objective]
    if method == "predict" and not is_prediction:
        raise CannotRead(
            f"{name} with objective {objective!r} does not predict the sum of its trees, but a function of "
            "it; the sum is read exactly with output='margin'"
        )
    about = learner["learner_model_param"]
    outputs = max(int(about["num_class"]), int(about.get("num_target", 1)), 1)
    score = np.array([float(s) for s in about["base_score"].strip("[]").split(",")])
    # stored as float32
    start = np.broadcast_to(margin(score.astype(np.float32).astype(np.float64)), (outputs,))
    return start if outputs > 1 else start[0]


def _missing_numbers(model: Any) -> Window | None:
    """The numbers that the model treats as missing besides NaN: all that float32 rounds to ``missing``."""
    marker = getattr(model, "missing", np.nan)
    if marker is None or np.isnan(marker):
        return None
    single = np.float32(marker)
    ends = float32_threshold(np.array([np.nextafter(single, np.float32(-np.inf)), single]))
    return Window(float(ends[0]), float(ends[1]), f"missing={marker}")


def _best_round(learner: Description) -> int | None:
    """Number of rounds that a model of scikit-learn's kind predicts with; None for all."""
    best = learner["attributes"].get("best_iteration")
    return None if best is None else int(best) + 1


def _trees(
    learner: Description,
    start: Floats,
    rounds: int | None,
    schema: Schema | None,
    window: Window | None,
    *,
    model: Description | None = None,
    weights: Sequence[float] | None = None,
) -> Forest:
    model = learner["gradient_booster"]["model"] if model is None else model
    ends = model["iteration_indptr"]
    count = ends[-1] if rounds is None else ends[rounds]
    size = int(learner["learner_model_param"]["num_feature"])
    weights = [1.0] * count if weights is None else weights
    trees = [
        _tree(stored, group, start.size, weight, window)
        for stored, group, weight, _ in zip(
            model["trees"], model["tree_info"], weights, range(count), strict=False
        )
    ]
    categories = CategoryCodes(schema, _codes(learner, model, schema), unseen_is_missing=False)
    return join_trees(trees, categories, intercept=start, size=size)


def _dart(
    learner: Description, start: Floats, rounds: int | None, schema: Schema | None, window: Window | None
) -> Forest:
    dart = learner["gradient_booster"]
    model, weights = dart["gbtree"]["model"], dart["weight_drop"]
    return _trees(learner, start, rounds, schema, window, model=model, weights=weights)


def _linear(
    learner: Description,
    start: Floats,
    rounds: int | None,  # noqa: ARG001
    schema: Schema | None,
    window: Window | None,
) -> Linear:
    """All rounds are in the same weights; a missing value counts as 0, which no linear form does."""
    if window is not None:
        raise CannotRead(
            f"a linear booster of XGBoost takes a number for missing ({window.name}): replace it by NaN in "
            "the table, and fit with missing=numpy.nan"
        )
    if np.ptp(start) > 0:
        raise CannotRead(
            "a linear booster of XGBoost whose outputs start from different base scores, which versions of "
            "XGBoost add up differently: fit it with base_score=0.5"
        )
    weights = np.array(learner["gradient_booster"]["model"]["weights"], dtype=np.float32)
    table = weights.astype(np.float64).reshape(-1, start.size)
    if schema is not None and any(schema.levels):
        raise CannotRead("a linear booster of XGBoost on columns of texts")
    return (
        Linear(table[:-1], start + table[-1]) if start.ndim else Linear(table[:-1, 0], start + table[-1, 0])
    )


_FAMILIES: Mapping[str, Callable[..., Forest | Linear]] = {
    "gbtree": _trees,
    "dart": _dart,
    "gblinear": _linear,
}


def _tree(stored: Description, group: int, outputs: int, weight: float, window: Window | None) -> BoosterTree:
    left = np.array(stored["left_children"], dtype=np.int64)
    leaf = left < 0
    right = np.where(leaf, -1, np.array(stored["right_children"], dtype=np.int64))
    condition = np.array(stored["split_conditions"], dtype=np.float32)
    missing_left = np.array(stored["default_left"], dtype=np.bool_)
    members = _members(stored)
    swapped = np.zeros(leaf.size, dtype=np.bool_)
    swapped[list(members)] = True  # categories of the set go right
    tree = BoosterTree(
        feature=np.where(leaf, -1, np.array(stored["split_indices"], dtype=np.int64)),
        threshold=float32_threshold(np.nextafter(condition, np.float32(-np.inf))),
        left=np.where(swapped, right, left),
        right=np.where(swapped, left, right),
        missing_left=missing_left ^ swapped,
        value=_values(stored, leaf, condition, group, outputs) * float(np.float32(weight)),
        members=members,
    )
    if window is None:
        return tree
    if members:
        raise CannotRead(
            f"the model splits by categories, and takes a number for missing ({window.name}): replace it by "
            "NaN in the table, and fit with missing=numpy.nan"
        )
    return without_missing_numbers(tree, ~leaf, window)


def _values(stored: Description, leaf: Any, condition: Any, group: int, outputs: int) -> Floats:
    """(N,) for one output, (N, k) for k: a tree adds to one of them, or all."""
    if int(stored["tree_param"]["size_leaf_vector"]) <= 1:
        value = np.where(leaf, condition, 0.0).astype(np.float64)
        return value if outputs == 1 else np.outer(value, np.eye(outputs)[group])
    if "leaf_weights" not in stored:
        values = np.array(stored["base_weights"], dtype=np.float32).reshape(leaf.size, outputs)
        return values.astype(np.float64)
    weights = np.array(stored["leaf_weights"], dtype=np.float32).reshape(-1, outputs)
    position = np.where(leaf, np.array(stored["right_children"], dtype=np.int64), 0)
    return weights[position].astype(np.float64)


def _members(stored: Description) -> dict[int, Ints]:
    categories = np.array(stored["categories"], dtype=np.int64)
    parts = zip(
        stored["categories_nodes"], stored["categories_segments"], stored["categories_sizes"], strict=True
    )
    return {int(node): categories[start : start + length] for node, start, length in parts}


def _codes(learner: Description, model: Description, schema: Schema | None) -> dict[int, Floats]:
    """Codes of the categories whose names the model stores; XGBoost before 3.1 stores none."""
    columns = model.get("cats", {}).get("enc", [])
    stored = [_names(column, column_name(schema, j)) for j, column in enumerate(columns)]
    codes_by_column = {j: codes_of(names, schema, j) for j, names in enumerate(stored) if names}
    if schema is None:
        return codes_by_column
    for j, kind in enumerate(learner.get("feature_types", [])):
        if kind == "c" and schema.levels[j] and j not in codes_by_column:
            raise CannotRead(
                f"{column_name(schema, j)} holds texts, and the model stores only numbers for its "
                "categories: fit it with XGBoost 3.1 or later"
            )
    for j, codes in codes_by_column.items():
        unseen = [level for level, code in zip(schema.levels[j], codes, strict=False) if np.isnan(code)]
        if unseen and not all(str(name).isascii() for name in stored[j]):
            raise CannotRead(_cut_short(column_name(schema, j)))
        if unseen:
            raise CannotRead(
                f"{column_name(schema, j)} of the background has the category {unseen[0]!r}, which is not "
                "in the training data: XGBoost refuses it, or takes it for another. Make it missing, or drop "
                "its rows"
            )
    return codes_by_column


def _names(column: Description, label: str) -> list[Any]:
    """The categories of one column in the order of their numbers."""
    values = column["values"]
    if "offsets" not in column:
        return list(values)
    text, ends = bytes(value % 256 for value in values), column["offsets"]
    try:
        return [text[a:b].decode() for a, b in pairwise(ends)]
    except UnicodeDecodeError:
        raise CannotRead(_cut_short(label)) from None


def _cut_short(label: str) -> str:
    """XGBoost 3.2 counts letters where it stores bytes."""
    return (
        f"{label} has categories with letters beyond ASCII, whose names XGBoost itself stores cut short: "
        "rename these categories with ASCII letters, and fit again"
    )


# -- methods ----------------------------------------------------------------------------------------------


def _matrix(model: Any, table: Any) -> Any:
    """Convert a table to XGBoost's; columns without names are matched by position."""
    matrix = import_module("xgboost").DMatrix
    if isinstance(table, np.ndarray):
        return matrix(table, feature_names=model.feature_names, feature_types=model.feature_types)
    return matrix(table, enable_categorical=True)


METHODS: Methods = {
    ("xgboost.XGBModel", "decision_function"): lambda model: partial(model.predict, output_margin=True),
    ("xgboost.Booster", "predict"): lambda model: lambda table: model.predict(_matrix(model, table)),
    ("xgboost.Booster", "decision_function"): lambda model: (
        lambda table: model.predict(_matrix(model, table), output_margin=True)
    ),
}
