"""Wrappers of scikit-learn that hand questions on to what they wrap, and models that answer a constant."""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models.read import CannotRead, read_form
from limes.models.readers.sklearn_ensembles import side_by_side
from limes.models.readers.sklearn_trees import constant
from limes.models.reductions import Form
from limes.models.schema import Schema
from limes.models.trees import Forest


def frozen(model: Any, method: str, schema: Schema | None) -> Form:
    """A FrozenEstimator hands every question on."""
    return read_form(model.estimator, method, schema)


def inliers(model: Any, method: str, schema: Schema | None) -> Form:
    """RANSAC predicts by the model that it fitted on the inliers."""
    return read_form(model.estimator_, method, schema)


def class_targets(model: Any, method: str, schema: Schema | None) -> Form:
    """MultiOutputClassifier: the probabilities of one classifier a target, one after the other."""
    return side_by_side([read_form(part, method, schema) for part in model.estimators_])


def one_vs_rest(model: Any, method: str, schema: Schema | None) -> Form:
    """One margin a class; with two classes the margin of the second.

    Probabilities of two classes, and of labels that do not exclude each other, are those of the parts. Those
    of several classes are divided by their sum, and are no sum themselves.
    """
    parts = [_part(model, part, method, schema) for part in model.estimators_]
    if method == "decision_function":
        return parts[0] if len(parts) == 1 else side_by_side(parts)
    if method == "predict_proba" and len(parts) == 1:
        return parts[0]
    if method == "predict_proba" and model.multilabel_:
        return side_by_side([part.select(1) for part in parts])
    raise CannotRead(
        f"{method} of OneVsRestClassifier divides the answers of its parts by their sum, which is not a sum "
        "of effects; its margins, where the parts have margins, are read exactly with output='margin'"
    )


def _part(model: Any, part: Any, method: str, schema: Schema | None) -> Form:
    """A part that saw one class only answers a constant."""
    if type(part).__name__ != "_ConstantPredictor":
        return read_form(part, method, schema)
    seen = float(np.ravel(part.y_)[0])
    answer = np.array(seen) if method == "decision_function" else np.array([1.0 - seen, seen])
    return constant(answer, _columns(model, schema))


def dummy_regressor(model: Any, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001
    """The constant that it learnt; one target has no axis of its own."""
    answer = np.asarray(model.constant_, dtype=np.float64)[0]
    return constant(answer[0] if model.n_outputs_ == 1 else answer, _columns(model, schema))


def dummy_classifier(model: Any, method: str, schema: Schema | None) -> Forest:
    """The shares that it learnt, one target's after the other's; strategy "stratified" draws lots."""
    if method != "predict_proba":
        raise CannotRead(f"DummyClassifier.{method} answers labels; its probabilities are read exactly")
    if model.strategy == "stratified":
        raise CannotRead(
            "DummyClassifier(strategy='stratified') draws lots: each call answers something else"
        )
    return constant(_shares(model, _columns(model, schema)), _columns(model, schema))


def _shares(model: Any, size: int) -> Floats:
    """scikit-learn's own answer to a row, which it does not look at."""
    answer = model.predict_proba(np.zeros((1, size)))
    shares = np.concatenate(answer, axis=1) if isinstance(answer, list) else answer
    return np.asarray(shares[0], dtype=np.float64)


def _columns(model: Any, schema: Schema | None) -> int:
    """How many columns there are."""
    size = getattr(model, "n_features_in_", None) if schema is None else len(schema.names)
    if size is None:
        raise CannotRead(f"{type(model).__name__} does not say how many columns it was fitted on")
    return int(size)
