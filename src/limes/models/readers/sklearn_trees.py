"""Trees of scikit-learn: single trees, forests, gradient boosting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models.read import CannotRead, read_form, refuse_replaced_methods
from limes.models.schema import Schema
from limes.models.trees import Forest, float32_threshold


def tree(model: Any, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001
    """One tree."""
    _refuse_labels(model, method)
    values = _leaf_values(model)
    return _in_float32(_structure(model, values, np.zeros(values.shape[1:])))


def forest(model: Any, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001
    """The mean of trees; a classifier's is the mean of their class shares."""
    _refuse_labels(model, method)
    share = 1.0 / len(model.estimators_)
    leaf_values = [_leaf_values(member) * share for member in model.estimators_]
    zero = np.zeros(leaf_values[0].shape[1:])
    trees = [_structure(m, v, zero) for m, v in zip(model.estimators_, leaf_values, strict=True)]
    return _in_float32(Forest.joined(trees, intercept=zero))


def boosting(model: Any, method: str, schema: Schema | None) -> Forest:
    """Initial value + learning_rate · Σ trees: predictions of the regressor, margin of the classifier."""
    if hasattr(model, "classes_") and method != "decision_function":
        raise CannotRead(
            f"{method} of GradientBoostingClassifier is not a sum of trees; "
            "its margin is read exactly with output='margin'"
        )
    start = _start(model, schema)
    rounds, outputs = model.estimators_.shape
    trees = []
    for r in range(rounds):
        for k in range(outputs):
            member = model.estimators_[r, k]
            effect = _leaf_values(member) * model.learning_rate
            values = effect if outputs == 1 else np.outer(effect, np.eye(outputs)[k])
            trees.append(_structure(member, values, np.zeros(values.shape[1:])))
    grown = _in_float32(Forest.joined(trees, intercept=np.zeros(start.intercept.shape)))
    return Forest.joined([grown, start], intercept=start.intercept)


def _start(model: Any, schema: Schema | None) -> Forest:
    """What boosting starts from: a constant, or trees."""
    init = model.init_
    name = type(init).__name__
    if isinstance(init, str) or name == "DummyRegressor" or _is_constant_classifier(init):
        # scikit-learn's own computation, on a row without names
        value = model._raw_predict_init(np.zeros((1, model.n_features_in_)))[0]  # noqa: SLF001
        return constant(value[0] if value.size == 1 else value, model.n_features_in_)
    if hasattr(model, "classes_"):
        raise CannotRead(f"gradient boosting that starts from probabilities of {name} is no sum of trees")
    form = read_form(init, "predict", schema)
    if not isinstance(form, Forest):
        raise CannotRead(
            f"gradient boosting asks the {name} that it starts from at rows rounded to float32, "
            "which can be read exactly for trees only"
        )
    return _in_float32(form)


def _is_constant_classifier(init: Any) -> bool:
    """Whether a dummy says the same of every row; strategy "stratified" draws lots."""
    return type(init).__name__ == "DummyClassifier" and init.strategy != "stratified"


def constant(value: Floats, size: int) -> Forest:
    """A forest of one leaf."""
    return Forest(
        feature=np.full(1, -1),
        threshold=np.zeros(1),
        left=np.full(1, -1),
        right=np.full(1, -1),
        missing_left=np.zeros(1, dtype=np.bool_),
        value=np.zeros((1, *np.shape(value))),
        roots=np.zeros(1, dtype=np.int64),
        intercept=np.asarray(value, dtype=np.float64),
        size=size,
    )


def _refuse_labels(model: Any, method: str) -> None:
    if hasattr(model, "classes_") and method != "predict_proba":
        raise CannotRead(
            f"{type(model).__name__}.{method} answers labels; its probabilities are read exactly"
        )


def _leaf_values(model: Any) -> Floats:
    """(nodes,) for one target, (nodes, k) for k targets or class shares, one target's after the other's."""
    stored = np.asarray(model.tree_.value, dtype=np.float64)  # (nodes, targets, classes)
    if not hasattr(model, "classes_"):
        return stored[:, 0, 0] if stored.shape[1] == 1 else stored[:, :, 0]
    counts = np.atleast_1d(model.n_classes_)  # targets with fewer classes are filled up with zeros
    shares = [stored[:, target, :count] for target, count in enumerate(counts)]
    return np.concatenate([share / share.sum(axis=1, keepdims=True) for share in shares], axis=1)


def _structure(model: Any, values: Floats, intercept: Floats) -> Forest:
    refuse_replaced_methods(model)
    nodes = model.tree_
    leaf = nodes.children_left < 0
    return Forest(
        feature=np.where(leaf, -1, nodes.feature).astype(np.int64),
        threshold=np.where(leaf, 0.0, nodes.threshold),
        left=nodes.children_left.astype(np.int64),
        right=nodes.children_right.astype(np.int64),
        missing_left=np.asarray(nodes.missing_go_to_left, dtype=np.bool_),
        value=values,
        roots=np.zeros(1, dtype=np.int64),
        intercept=intercept,
        size=int(nodes.n_features),
    )


def _in_float32(form: Forest) -> Forest:
    """The forest that rounds x to float32 before it compares."""
    return replace(form, threshold=float32_threshold(form.threshold))
