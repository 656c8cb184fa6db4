"""Ensembles and wrappers of scikit-learn: sums of the forms of their parts, or the form of one part.

Bagging and voting average parts, stacking adds them up by a linear model, boosting of classifiers adds up
votes, wrappers predict as the model inside. Ensembles that count votes, calibrate or take medians are
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Never

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.exceptions import InputError
from limes.models._algebra import combine, map_outputs, on_columns
from limes.models._identity import qualified_name
from limes.models._reading import (
    CannotRead,
    Schema,
    read_form,
    refuse_all_but_margin,
    refuse_replaced_methods,
)
from limes.models.forms._base import Form, Linear, outputs_of
from limes.models.forms._trees import Forest
from limes.models.readers.links import logistic_of, with_probabilities
from limes.models.readers.sklearn_trees import constant


def bagging(model: Any, method: str, schema: Schema | None) -> Form:
    """The mean of parts, each fitted on some of the columns."""
    if len(model.estimators_) != model.n_estimators:
        raise CannotRead(f"n_estimators={model.n_estimators} was changed after fit; fit the model again")
    pairs = zip(model.estimators_, model.estimators_features_, strict=True)
    parts = [_bagged(model, part, np.asarray(features), method, schema) for part, features in pairs]
    return combine(parts, np.full(len(parts), 1.0 / len(parts)))


def _bagged(model: Any, part: Any, features: Ints, method: str, schema: Schema | None) -> Form:
    if not hasattr(part, method):
        raise CannotRead(f"{type(part).__name__} has no {method}: the parts vote, which is not a sum")
    form = read_form(part, method, schema and _select(schema, features))
    if method == "predict_proba" and outputs_of(form) != (model.n_classes_,):
        form = map_outputs(form, np.eye(model.n_classes_)[part.classes_])  # a sample may miss a class
    if np.array_equal(features, np.arange(model.n_features_in_)):
        return form
    try:
        return on_columns(form, features, model.n_features_in_)
    except InputError as error:
        raise CannotRead(f"with bootstrap_features=True {error}") from error


def _select(schema: Schema, columns: Ints) -> Schema:
    return Schema(tuple(schema.names[j] for j in columns), tuple(schema.levels[j] for j in columns))


def voting(model: Any, method: str, schema: Schema | None) -> Form:
    """The weighted mean of parts: predictions of regressors, probabilities of classifiers ("soft")."""
    if hasattr(model, "classes_") and method != "predict_proba":
        raise CannotRead("VotingClassifier counts votes, which is not a sum; fit it with voting='soft'")
    parts = [read_form(part, method, schema) for part in model.estimators_]
    weights = np.ones(len(parts))
    if model.weights is not None:
        kept = [w for (_, part), w in zip(model.estimators, model.weights, strict=True) if part != "drop"]
        weights = np.asarray(kept, dtype=np.float64)
    return combine(parts, weights / weights.sum())


def stacking(model: Any, method: str, schema: Schema | None) -> Form:
    """A linear model of the parts' answers, and of the columns themselves with ``passthrough``."""
    if hasattr(model, "classes_") and method == "predict":
        raise CannotRead("StackingClassifier.predict returns labels; use output='margin'")
    final = read_form(model.final_estimator_, method, None)
    if not isinstance(final, Linear):
        raise CannotRead(
            f"{type(model.final_estimator_).__name__} as final_estimator is not linear in the parts' "
            "predictions"
        )
    parts, start = [], 0
    for part, part_method in zip(model.estimators_, model.stack_method_, strict=True):
        form = read_form(part, part_method, schema)
        used = _outputs_used(model, form, part_method)
        matrix = np.zeros((len(used), *final.coef.shape[1:]))
        matrix[used] = final.coef[start : start + used.sum()]
        parts.append(map_outputs(form, matrix if outputs_of(form) else matrix[0]))
        start += int(used.sum())
    if model.passthrough:
        _numbers_only(schema)
        parts.append(Linear(final.coef[start:]))
    return combine(parts, intercept=final.intercept)


def _outputs_used(model: Any, form: Form, method: str) -> Bools:
    """Return which of a part's outputs the final model reads: only the second of two probabilities."""
    used = np.ones(outputs_of(form) or 1, dtype=np.bool_)
    used[0] = not (method == "predict_proba" and len(model.classes_) == 2)
    return used


def _numbers_only(schema: Schema | None) -> None:
    if schema is not None and any(schema.levels):
        raise CannotRead("passthrough passes texts to the final estimator; encode them in a Pipeline")


def _per_other_class(model: Any) -> float:
    return 1.0 / (len(model.classes_) - 1)


@partial(with_probabilities, scale=_per_other_class)
def adaboost(model: Any, method: str, schema: Schema | None) -> Form:
    """Margin of AdaBoostClassifier, multi-class SAMME: a tree adds w to its class, -w / (K - 1) to others.

    References
    ----------
    Zhu, Zou, Rosset & Hastie 2009, Multi-class AdaBoost.
    """
    refuse_all_but_margin(model, method, "trees")
    classes = len(model.classes_)
    if classes < 2:
        raise CannotRead("AdaBoostClassifier was fitted on one class: its margin is 0 everywhere")
    weights = np.asarray(model.estimator_weights_, dtype=np.float64)
    margins = np.eye(classes) - (1.0 - np.eye(classes)) / (classes - 1)
    if classes == 2:
        margins = margins[:, 1] - margins[:, 0]
    parts = [_votes(part, model.classes_, margins, schema) for part in model.estimators_]
    return combine(parts, weights[: len(parts)] / weights.sum())


def _votes(part: Any, classes: Any, margins: Floats, schema: Schema | None) -> Forest:
    """A tree whose leaves hold the margins of the class that they vote for."""
    form = read_form(part, "predict_proba", schema) if hasattr(part, "tree_") else None
    if not isinstance(form, Forest):
        raise CannotRead(
            f"AdaBoostClassifier of {type(part).__name__}: the votes of a tree are a sum of its leaves, "
            "those of other models are not"
        )
    # ties are broken as in the tree itself: by the values that it stores, before they are normalised
    winner = np.argmax(part.tree_.value[:, 0, :], axis=1)
    values = margins[np.searchsorted(classes, part.classes_)[winner]]
    return replace(form, value=values, intercept=np.zeros(margins.shape[1:]))


def calibrated(model: Any, method: str, schema: Schema | None) -> Form:
    """The mean of σ(-(a · margin + b)) over parts that are calibrated by a sigmoid."""
    if method != "predict_proba" or len(model.classes_) != 2 or model.method != "sigmoid":
        raise CannotRead(
            "calibrated probabilities are read for two classes with method='sigmoid'; explain the margin of "
            "model.calibrated_classifiers_[0].estimator instead"
        )
    parts = []
    for part in model.calibrated_classifiers_:
        if not hasattr(part.estimator, "decision_function"):
            raise CannotRead(
                f"the sigmoid of {type(part.estimator).__name__} calibrates its probabilities, which are no "
                "sum of effects"
            )
        (sigmoid,) = part.calibrators
        margin = read_form(part.estimator, "decision_function", schema)
        try:
            parts.append(logistic_of(combine([margin], [-sigmoid.a_], intercept=-sigmoid.b_)))
        except InputError as error:
            raise CannotRead(f"calibrated margins are read where they are additive: {error}") from error
    return combine(parts, np.full(len(parts), 1.0 / len(parts)))


def targets(model: Any, method: str, schema: Schema | None) -> Form:
    """One model a target, of MultiOutputRegressor and MultiOutputClassifier: their outputs side by side."""
    return side_by_side([read_form(part, method, schema) for part in model.estimators_])


def side_by_side(parts: Sequence[Form]) -> Form:
    """Concatenate the outputs of all parts."""
    ends = np.cumsum([int(np.prod(outputs_of(part))) for part in parts])
    unit = np.split(np.eye(ends[-1]), ends[:-1])
    pairs = zip(parts, unit, strict=True)
    return combine([map_outputs(part, rows if outputs_of(part) else rows[0]) for part, rows in pairs])


def transformed_target(model: Any, method: str, schema: Schema | None) -> Form:
    """The inverse of the target's transformation, where it is affine, behind the regressor."""
    transformer = model.transformer_
    refuse_replaced_methods(transformer)
    inverse = _INVERSE.get(qualified_name(type(transformer)))
    if inverse is None:
        raise CannotRead(
            f"the inverse of {type(transformer).__qualname__} is not known to be affine; explain "
            "model.regressor_ instead"
        )
    form = read_form(model.regressor_, method, schema)
    outputs = outputs_of(form)
    scale, shift = inverse(transformer, outputs or (1,))
    if outputs:
        return combine([map_outputs(form, np.diag(scale))], intercept=shift)
    if model._training_dim == 1:  # noqa: SLF001 - whether predictions are (n,) or (n, 1)
        return combine([map_outputs(form, scale[0])], intercept=shift[0])
    return combine([map_outputs(form, scale)], intercept=shift)


def _standard(transformer: Any, outputs: tuple[int, ...]) -> tuple[Floats, Floats]:
    scale = transformer.scale_ if transformer.with_std else np.ones(outputs)
    return np.asarray(scale), np.asarray(transformer.mean_ if transformer.with_mean else np.zeros(outputs))


def _min_max(transformer: Any, outputs: tuple[int, ...]) -> tuple[Floats, Floats]:  # noqa: ARG001
    return 1.0 / transformer.scale_, -transformer.min_ / transformer.scale_


def _max_abs(transformer: Any, outputs: tuple[int, ...]) -> tuple[Floats, Floats]:
    return np.asarray(transformer.scale_), np.zeros(outputs)


def _robust(transformer: Any, outputs: tuple[int, ...]) -> tuple[Floats, Floats]:
    scale = transformer.scale_ if transformer.with_scaling else np.ones(outputs)
    return np.asarray(scale), np.asarray(
        transformer.center_ if transformer.with_centering else np.zeros(outputs)
    )


def _identity(transformer: Any, outputs: tuple[int, ...]) -> tuple[Floats, Floats]:
    if transformer.inverse_func is not None:
        raise CannotRead("the target is transformed by functions; explain model.regressor_ instead")
    return np.ones(outputs), np.zeros(outputs)


# The inverses of scalers are scale · y + shift.
_INVERSE: Mapping[str, Callable[[Any, tuple[int, ...]], tuple[Floats, Floats]]] = {
    "sklearn.FunctionTransformer": _identity,
    "sklearn.MaxAbsScaler": _max_abs,
    "sklearn.MinMaxScaler": _min_max,
    "sklearn.RobustScaler": _robust,
    "sklearn.StandardScaler": _standard,
}


def refused(model: Any, method: str, schema: Schema | None) -> Never:  # noqa: ARG001
    """Refuse ensembles and wrappers that are no sums, with the reason."""
    raise CannotRead(_REFUSED[type(model).__qualname__])


_CHAIN = "each model of a chain reads the predictions of those before it, so that effects are not a sum"
_THRESHOLD = "a thresholded wrapper is sampled; explain the wrapped model.estimator_ instead"
_REFUSED: Mapping[str, str] = {
    "AdaBoostRegressor": "AdaBoostRegressor predicts the weighted median of its trees, which is not a sum",
    "ClassifierChain": _CHAIN,
    "FixedThresholdClassifier": _THRESHOLD,
    "OneVsOneClassifier": "OneVsOneClassifier counts the votes of pairs of classes, which is not a sum; "
    "fit a OneVsRestClassifier, or explain the margin of one pair, model.estimators_[0]",
    "OutputCodeClassifier": "OutputCodeClassifier predicts the class whose code is nearest, which is not a "
    "sum; fit a OneVsRestClassifier, or explain one of model.estimators_",
    "RegressorChain": _CHAIN,
    "TunedThresholdClassifierCV": _THRESHOLD,
}


# -- wrappers, and models that predict a constant --------------------------------------------------------


_INSIDE: Mapping[str, str] = {"FrozenEstimator": "estimator", "RANSACRegressor": "estimator_"}


def wrapper(model: Any, method: str, schema: Schema | None) -> Form:
    """The model inside: of a search the best estimator, which it refitted, of RANSAC that of the inliers."""
    return read_form(getattr(model, _INSIDE.get(type(model).__name__, "best_estimator_")), method, schema)


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
        f"{method} of OneVsRestClassifier divides the predictions of its parts by their sum, which is not a "
        "sum of effects; its margins, where the parts have margins, are read exactly with output='margin'"
    )


def _part(model: Any, part: Any, method: str, schema: Schema | None) -> Form:
    """A part that was fitted on one class predicts a constant."""
    if type(part).__name__ != "_ConstantPredictor":
        return read_form(part, method, schema)
    label = float(np.ravel(part.y_)[0])
    value = np.array(label) if method == "decision_function" else np.array([1.0 - label, label])
    return constant(value, _columns(model, schema))


def dummy_regressor(model: Any, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001
    """The constant of training; (k,) for several targets."""
    value = np.asarray(model.constant_, dtype=np.float64)[0]
    return constant(value[0] if model.n_outputs_ == 1 else value, _columns(model, schema))


def dummy_classifier(model: Any, method: str, schema: Schema | None) -> Forest:
    """The class shares of training, one target's after the other's; strategy "stratified" is random."""
    if method != "predict_proba":
        raise CannotRead(f"DummyClassifier.{method} returns labels; its probabilities are read exactly")
    if model.strategy == "stratified":
        raise CannotRead("DummyClassifier(strategy='stratified') is random: each call returns another result")
    return constant(_shares(model, _columns(model, schema)), _columns(model, schema))


def _shares(model: Any, size: int) -> Floats:
    """scikit-learn's own prediction at a row, which does not depend on the row."""
    predictions = model.predict_proba(np.zeros((1, size)))
    shares = np.concatenate(predictions, axis=1) if isinstance(predictions, list) else predictions
    return np.asarray(shares[0], dtype=np.float64)


def _columns(model: Any, schema: Schema | None) -> int:
    size = getattr(model, "n_features_in_", None) if schema is None else len(schema.names)
    if size is None:
        raise CannotRead(f"{type(model).__name__} does not know how many columns it was fitted on")
    return int(size)
