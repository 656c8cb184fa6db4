"""XGBoost: trees, dart and linear boosters, read off the model's own JSON.

A test is float32(x) < threshold, and categories of the set go right. Leaves and their sums are float32. A
model of scikit-learn's kind with ``missing=-999`` treats every x with float32(x) = -999 as NaN.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models._calling.outputs import Methods, Predict
from limes.models._reading import CannotRead, Schema
from limes.models._tree_rewriting import Window, without_missing_numbers
from limes.models.forms._base import Linear
from limes.models.forms._trees import Forest, float32_threshold
from limes.models.readers.boosted_trees import (
    BoosterTree,
    codes_of,
    column_name,
    join_trees,
    of_output,
    parsing,
    refuse_link,
)
from limes.models.readers.links import with_probabilities

Description = Mapping[str, Any]


# The objective of quantiles, and the version of XGBoost from which on those of a row are sorted
_QUANTILES, _SORTS = "reg:quantileerror", [3, 4]

# objective -> the margin of its base score, and whether its prediction is its margin
_OBJECTIVES: Mapping[str, tuple[Callable[[Floats], Floats], bool]] = {
    objective: (margin, is_margin)
    for objectives, margin, is_margin in (
        ("reg:squarederror reg:linear reg:squaredlogerror reg:pseudohubererror", np.asarray, True),
        ("reg:absoluteerror reg:quantileerror binary:logitraw", np.asarray, True),
        ("rank:pairwise rank:ndcg rank:map", np.asarray, True),
        ("binary:hinge multi:softmax multi:softprob", np.asarray, False),
        ("binary:logistic reg:logistic", lambda p: np.log(p) - np.log1p(-p), False),
        ("count:poisson reg:gamma reg:tweedie survival:cox survival:aft", np.log, False),
    )
    for objective in objectives.split()
}


def _is_logistic(model: Any) -> bool:
    objective = json.loads(model.get_booster().save_config())["learner"]["objective"]["name"]
    return objective in ("binary:logistic", "reg:logistic")


@with_probabilities(
    "trees",
    where=_is_logistic,
    scale=lambda model: float(getattr(model, "objective", "") in ("multi:softprob", "multi:softmax")),
)
def booster(model: Any, method: str, schema: Schema | None) -> Forest | Linear:
    """Base score + Σ trees, of a Booster or a model of scikit-learn's kind."""
    with parsing("XGBoost"):
        inner = model.get_booster() if hasattr(model, "get_booster") else model
        saved = json.loads(bytes(inner.save_raw("json")))
        learner = saved["learner"]
        start = _base_margin(learner, model, method)
        if start.size > 1 and learner["objective"]["name"] == _QUANTILES and saved["version"] >= _SORTS:
            raise CannotRead("XGBoost sorts the quantiles of a row, which are no sums of trees then")
        window = _missing_numbers(model)
        stored = learner["gradient_booster"]
        match stored["name"]:
            case "gblinear":
                return _linear(stored["model"], start, schema, window)
            case "gbtree":
                trees = stored["model"]
                weights = trees.get("weight_drop")  # of dropped trees, from version 3.4 on
            case "dart":
                trees, weights = stored["gbtree"]["model"], stored["weight_drop"]
            case family:
                raise CannotRead(f"limes cannot read the booster {family!r} of XGBoost yet")
        ends = trees["iteration_indptr"]
        # a model of scikit-learn's kind predicts with the rounds up to the best one
        best = learner["attributes"].get("best_iteration") if inner is not model else None
        count = ends[-1] if best is None else ends[int(best) + 1]
        read = [
            _tree(tree, group, start.size, weight, window)
            for tree, group, weight, _ in zip(
                trees["trees"], trees["tree_info"], weights or [1.0] * count, range(count), strict=False
            )
        ]
        size = int(learner["learner_model_param"]["num_feature"])
        codes = _codes(learner, trees, schema)
        return join_trees(read, schema, codes, intercept=start, size=size, unseen_is_missing=False)


def _base_margin(learner: Description, model: Any, method: str) -> Floats:
    """The constant that boosting starts from, (k,)."""
    objective = learner["objective"]["name"]
    if objective not in _OBJECTIVES:
        raise CannotRead(f"limes does not know how XGBoost's objective {objective!r} predicts")
    margin, is_prediction = _OBJECTIVES[objective]
    if method == "predict" and not is_prediction:
        refuse_link(model, objective)
    about = learner["learner_model_param"]
    outputs = max(int(about["num_class"]), int(about.get("num_target", 1)), 1)
    score = np.array([float(s) for s in about["base_score"].strip("[]").split(",")])
    # stored as float32
    return np.broadcast_to(margin(score.astype(np.float32).astype(np.float64)), (outputs,))


def _missing_numbers(model: Any) -> Window | None:
    """The numbers that the model treats as missing besides NaN: all that float32 rounds to ``missing``."""
    marker = getattr(model, "missing", np.nan)
    if marker is None or np.isnan(marker):
        return None
    single = np.float32(marker)
    ends = float32_threshold(np.array([np.nextafter(single, np.float32(-np.inf)), single]))
    return Window(float(ends[0]), float(ends[1]), f"missing={marker}")


def _linear(model: Description, start: Floats, schema: Schema | None, window: Window | None) -> Linear:
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
    if schema is not None and any(schema.levels):
        raise CannotRead("a linear booster of XGBoost on columns of texts")
    table = np.array(model["weights"], dtype=np.float32).astype(np.float64).reshape(-1, start.size)
    coef, intercept = table[:-1], start + table[-1]
    return Linear(coef, intercept) if start.size > 1 else Linear(coef[:, 0], intercept[0])


def _tree(stored: Description, group: int, outputs: int, weight: float, window: Window | None) -> BoosterTree:
    left = np.array(stored["left_children"], dtype=np.int64)
    leaf = left < 0
    right = np.where(leaf, -1, np.array(stored["right_children"], dtype=np.int64))
    condition = np.array(stored["split_conditions"], dtype=np.float32)
    missing_left = np.array(stored["default_left"], dtype=np.bool_)
    categories = np.array(stored["categories"], dtype=np.int64)
    segments = zip(stored["categories_segments"], stored["categories_sizes"], strict=True)
    members = {
        int(node): categories[start : start + length]
        for node, (start, length) in zip(stored["categories_nodes"], segments, strict=True)
    }
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
        covers=np.array(stored["sum_hessian"], dtype=np.float32).astype(np.float64),
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
        return of_output(value, group, outputs)
    if "leaf_weights" not in stored:
        values = np.array(stored["base_weights"], dtype=np.float32).reshape(leaf.size, outputs)
        return values.astype(np.float64)
    weights = np.array(stored["leaf_weights"], dtype=np.float32).reshape(-1, outputs)
    position = np.where(leaf, np.array(stored["right_children"], dtype=np.int64), 0)
    return weights[position].astype(np.float64)


def _codes(learner: Description, model: Description, schema: Schema | None) -> dict[int, Floats]:
    """XGBoost before 3.1 stores no names of categories, nor do slices."""
    columns, kinds = model.get("cats", {}).get("enc", []), learner.get("feature_types", [])
    stored = [_names(column, column_name(schema, j)) for j, column in enumerate(columns)]
    if schema is not None and schema.categories and not stored:
        # slices and older versions take the codes of the table's own dtype
        pairs = zip(kinds, schema.categories, strict=False)
        stored = [list(names) if kind == "c" else [] for kind, names in pairs]
    codes_by_column = {j: codes_of(names, schema, j) for j, names in enumerate(stored) if names}
    if schema is None:
        return codes_by_column
    for j, kind in enumerate(kinds):
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


def _of_booster(model: Any, **options: Any) -> Predict:
    """Columns without names are matched by position."""
    matrix = import_module("xgboost").DMatrix

    def predict(table: Any) -> Any:
        if isinstance(table, np.ndarray):
            names, types = model.feature_names, model.feature_types
            return model.predict(matrix(table, feature_names=names, feature_types=types), **options)
        return model.predict(matrix(table, enable_categorical=True), **options)

    return predict


METHODS: Methods = {
    ("xgboost.XGBModel", "decision_function"): lambda model: partial(model.predict, output_margin=True),
    ("xgboost.Booster", "predict"): _of_booster,
    ("xgboost.Booster", "decision_function"): partial(_of_booster, output_margin=True),
}
