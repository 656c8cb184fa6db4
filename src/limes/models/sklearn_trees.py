"""Trees of scikit-learn: single trees, forests, gradient boosting."""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models.read import CannotRead
from limes.models.schema import Schema
from limes.models.trees import Forest, float32_threshold


def tree(model: Any, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001
    """One tree."""
    values = _leaf_values(model)
    return _structure(model, values, np.zeros(values.shape[1:]))


def forest(model: Any, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001
    """The mean of trees; a classifier's is the mean of their class shares."""
    share = 1.0 / len(model.estimators_)
    leaf_values = [_leaf_values(member) * share for member in model.estimators_]
    zero = np.zeros(leaf_values[0].shape[1:])
    trees = [_structure(m, v, zero) for m, v in zip(model.estimators_, leaf_values, strict=True)]
    return Forest.joined(trees, intercept=zero)


def boosting(model: Any, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001
    """Initial value + learning_rate · Σ trees: predictions of the regressor, margin of the classifier."""
    if method == "predict_proba":
        raise CannotRead(
            "the probabilities of GradientBoostingClassifier are not a sum of trees; "
            "its margin is read exactly with output='margin'"
        )
    if type(model.init_).__name__ not in ("DummyRegressor", "DummyClassifier", "str"):
        raise CannotRead(
            f"gradient boosting that starts from {type(model.init_).__name__} is not a sum of trees alone"
        )
    rounds, outputs = model.estimators_.shape
    trees = []
    for r in range(rounds):
        for k in range(outputs):
            member = model.estimators_[r, k]
            effect = _leaf_values(member) * model.learning_rate
            values = effect if outputs == 1 else np.outer(effect, np.eye(outputs)[k])
            trees.append(_structure(member, values, np.zeros(values.shape[1:])))
    # scikit-learn's own computation of the constant that boosting starts from, on a row without names
    start = model._raw_predict_init(np.zeros((1, model.n_features_in_)))[0]  # noqa: SLF001
    return Forest.joined(trees, intercept=start[0] if outputs == 1 else start)


def _leaf_values(model: Any) -> Floats:
    """(nodes,) for one target, (nodes, k) for k targets or class shares."""
    stored = np.asarray(model.tree_.value, dtype=np.float64)  # (nodes, targets, classes)
    if not hasattr(model, "classes_"):
        return stored[:, 0, 0] if stored.shape[1] == 1 else stored[:, :, 0]
    if stored.shape[1] > 1:
        raise CannotRead("a classifier of several targets at once")
    shares = stored[:, 0, :]
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _structure(model: Any, values: Floats, intercept: Floats) -> Forest:
    nodes = model.tree_
    leaf = nodes.children_left < 0
    return Forest(
        feature=np.where(leaf, -1, nodes.feature).astype(np.int64),
        threshold=np.where(leaf, 0.0, float32_threshold(nodes.threshold)),
        left=nodes.children_left.astype(np.int64),
        right=nodes.children_right.astype(np.int64),
        missing_left=np.asarray(nodes.missing_go_to_left, dtype=np.bool_),
        value=values,
        roots=np.zeros(1, dtype=np.int64),
        intercept=intercept,
        size=int(nodes.n_features),
    )
