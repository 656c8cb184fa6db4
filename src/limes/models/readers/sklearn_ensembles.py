"""Trees of scikit-learn, ensembles of any models, and wrappers: sums of their parts, or the form of one part.

Forests, bagging and voting average parts, boosting adds trees up, stacking adds parts up by a linear model,
wrappers predict as the model inside. Ensembles that count votes, calibrate or take medians are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Never

import numpy as np

from limes._arrays import Floats, Ints
from limes.exceptions import InputError
from limes.models._algebra import combine, map_outputs, on_columns
from limes.models._identity import qualified_name
from limes.models._reading import (
    CannotRead,
    Schema,
    read_form,
    refuse_replaced_methods,
)
from limes.models.forms._base import Form, Linear, outputs_of
from limes.models.forms._trees import Forest, float32_threshold
from limes.models.readers.boosted_trees import BoosterTree, bits_of, codes_of, join_trees, of_output, parsing
from limes.models.readers.links import logistic_of, with_probabilities


def forest(model: Any, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001
    """One tree, or the mean of trees; for a classifier, the mean of their class shares."""
    if hasattr(model, "classes_") and method != "predict_proba":
        raise CannotRead(
            f"{type(model).__name__}.{method} returns labels; its probabilities are read exactly"
        )
    members = getattr(model, "estimators_", [model])
    share = 1.0 / len(members)
    return _joined([(member, _leaf_values(member) * share) for member in members])


def _leaf_values(model: Any) -> Floats:
    """(nodes,) for one target, (nodes, k) for k targets or class shares, one target's after the other's."""
    stored = np.asarray(model.tree_.value, dtype=np.float64)  # (nodes, targets, classes)
    if not hasattr(model, "classes_"):
        return stored[:, 0, 0] if stored.shape[1] == 1 else stored[:, :, 0]
    counts = np.atleast_1d(model.n_classes_)  # targets with fewer classes are filled up with zeros
    shares = [stored[:, target, :count] for target, count in enumerate(counts)]
    return np.concatenate([share / share.sum(axis=1, keepdims=True) for share in shares], axis=1)


def _structure(nodes: Any, columns: Ints) -> dict[str, Any]:
    """The tests of a tree, which rounds x to float32 before it compares."""
    leaf = nodes.children_left < 0
    return {
        "feature": np.where(leaf, -1, columns[np.where(leaf, 0, nodes.feature)]),
        "threshold": float32_threshold(np.where(leaf, 0.0, nodes.threshold)),
        "left": nodes.children_left.astype(np.int64),
        "right": nodes.children_right.astype(np.int64),
        "missing_left": np.asarray(nodes.missing_go_to_left, dtype=np.bool_),
        "covers": np.array(nodes.weighted_n_node_samples, dtype=np.float64),
    }


def _joined(trees: Sequence[tuple[Any, Floats]]) -> Forest:
    """The sum of trees with these values at their nodes."""
    forests = []
    for model, values in trees:
        refuse_replaced_methods(model)
        size = int(model.tree_.n_features)
        tests, roots = _structure(model.tree_, np.arange(size)), np.zeros(1, dtype=np.int64)
        intercept = np.zeros(values.shape[1:])
        forests.append(Forest(**tests, value=values, roots=roots, intercept=intercept, size=size))
    return Forest.joined(forests, intercept=forests[0].intercept)


def _constant(value: Floats, size: int) -> Forest:
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
        covers=np.ones(1),
    )


# -- boosting ---------------------------------------------------------------------------------------------


# with the exponential loss probabilities are the logistic of twice the margin
@with_probabilities("trees", where=lambda model: getattr(model, "loss", "log_loss") == "log_loss")
def boosting(model: Any, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001
    """Initial value + learning_rate · Σ trees: predictions of the regressor, margin of the classifier."""
    start = _start(model, schema)
    outputs = model.estimators_.shape[1]
    grown = _joined(
        [
            (member, of_output(_leaf_values(member) * model.learning_rate, k, outputs))
            for one_round in model.estimators_
            for k, member in enumerate(one_round)
        ]
    )
    return Forest.joined([grown, start], intercept=start.intercept)


def _start(model: Any, schema: Schema | None) -> Forest:
    init = model.init_
    name = type(init).__name__
    # a dummy's strategy "stratified" is random
    is_constant = isinstance(init, str) or name == "DummyRegressor"
    if is_constant or (name == "DummyClassifier" and init.strategy != "stratified"):
        # scikit-learn's own computation, on a row without names
        value = model._raw_predict_init(np.zeros((1, model.n_features_in_)))[0]  # noqa: SLF001
        return _constant(value[0] if value.size == 1 else value, model.n_features_in_)
    if hasattr(model, "classes_"):
        raise CannotRead(f"gradient boosting that starts from probabilities of {name} is no sum of trees")
    form = read_form(init, "predict", schema)
    if not isinstance(form, Forest):
        raise CannotRead(
            f"gradient boosting calls its initial {name} at rows rounded to float32, which can be "
            "read exactly for trees only"
        )
    return replace(form, threshold=float32_threshold(form.threshold))


@with_probabilities("trees")
def histogram(model: Any, method: str, schema: Schema | None) -> Forest:
    """Baseline + Σ trees: predictions of regressors with the identity link, margins of classifiers."""
    link = type(model._loss.link).__name__  # noqa: SLF001 - a loss passed by name has its link only there
    if method == "predict" and link != "IdentityLink":
        raise CannotRead(
            f"{type(model).__name__}(loss={model.loss!r}) predicts through {link}: it is no sum of trees; "
            "the sum, which is the logarithm of the prediction, is read exactly with output='margin'"
        )
    with parsing("scikit-learn"):
        columns, codes = _encoded_columns(model, schema)
        start = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1)  # noqa: SLF001
        trees = [
            _histogram_tree(member, columns, k, start.size)
            for one_round in model._predictors  # noqa: SLF001 - the trees are stored nowhere else
            for k, member in enumerate(one_round)
        ]
        return join_trees(trees, schema, codes, intercept=start, size=int(model.n_features_in_))


def _encoded_columns(model: Any, schema: Schema | None) -> tuple[Ints, dict[int, Floats]]:
    """The user's column of each encoded one, and the codes of columns of categories."""
    # Trees see categories first, each as its position among the categories of training, then numbers as they
    # are. A category that is not in the training data is missing.
    if model.is_categorical_ is None:
        return np.arange(model.n_features_in_), {}
    encoded = np.flatnonzero(model.is_categorical_)
    categories_of = model._preprocessor.named_transformers_["encoder"].categories_  # noqa: SLF001
    codes = {
        int(j): codes_of(categories.tolist(), schema, int(j))
        for j, categories in zip(encoded, categories_of, strict=True)
    }
    return np.concatenate([encoded, np.flatnonzero(~model.is_categorical_)]), codes


def _histogram_tree(member: Any, columns: Ints, output: int, outputs: int) -> BoosterTree:
    nodes = member.nodes
    leaf = nodes["is_leaf"].astype(np.bool_)
    sets = bits_of(member.raw_left_cat_bitsets)
    by_category = np.flatnonzero(nodes["is_categorical"].astype(np.bool_) & ~leaf)
    return BoosterTree(
        feature=columns[np.where(leaf, 0, nodes["feature_idx"])],
        threshold=nodes["num_threshold"].astype(np.float64),
        left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
        missing_left=nodes["missing_go_to_left"].astype(np.bool_),
        value=of_output(nodes["value"].astype(np.float64), output, outputs),
        members={int(i): np.flatnonzero(sets[nodes["bitset_idx"][i]]) for i in by_category},
        covers=nodes["count"].astype(np.float64),
    )


@with_probabilities("trees", scale=lambda model: 1.0 / (len(model.classes_) - 1))
def adaboost(model: Any, method: str, schema: Schema | None) -> Form:  # noqa: ARG001
    """Margin of AdaBoostClassifier, multi-class SAMME: a tree adds w to its class, -w / (K - 1) to others."""
    # Zhu, Zou, Rosset & Hastie 2009, Multi-class AdaBoost
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


# -- isolation forests -------------------------------------------------------------------------------------
#
# The mean path length L is a sum of trees, the anomaly score -2^(-L(x) / c) is a monotone function of it,
# with c the mean path length of a search tree of as many samples. L itself is explained: it is small for
# anomalies.


@dataclass(frozen=True, eq=False)
class PathLength:
    """The mean path length of a fitted IsolationForest, as a model; small is anomalous."""

    forest: Any

    def predict(self, X: Any) -> Floats:
        """Mean path lengths (n,) of rows, from the scores of the forest itself."""
        scores = -np.asarray(self.forest.score_samples(X), dtype=np.float64)
        return np.asarray(-np.log2(scores) * _mean_path(self.forest.max_samples_))


def path_length(model: Any) -> PathLength:
    """The mean path length of an isolation forest, as a model that can be explained exactly.

    Parameters
    ----------
    model
        A fitted ``sklearn.ensemble.IsolationForest``.

    Returns
    -------
    PathLength
        A model: ``predict(X)`` is (n,), -c log2(-score_samples(X)).

    Raises
    ------
    InputError
        If it is no fitted isolation forest, or its trees have one sample, and isolate nothing.

    References
    ----------
    Liu, Ting & Zhou, "Isolation forest", 2008, equations 1 and 2.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import IsolationForest
    >>> import limes
    >>> X, _ = load_diabetes(return_X_y=True)
    >>> model = limes.models.path_length(IsolationForest(n_estimators=20, random_state=0).fit(X))
    >>> limes.TabularExplainer(model, X)(X[:1]).method
    'exact'
    """
    if not hasattr(model, "estimators_") or not hasattr(model, "max_samples_"):
        raise InputError(f"path_length needs a fitted IsolationForest, got {type(model).__name__}")
    if model.max_samples_ < 2:
        raise InputError("an isolation forest of trees of one sample has path lengths 0 only")
    return PathLength(model)


def path_lengths(model: PathLength, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001 - there is one method
    """The mean over trees of depth + the mean path length of the samples in the leaf."""
    isolating = model.forest
    if qualified_name(type(isolating)) != "sklearn.IsolationForest":
        raise CannotRead(
            f"{type(isolating).__qualname__} is no IsolationForest itself, and may score in another way"
        )
    refuse_replaced_methods(isolating)
    share = 1.0 / len(isolating.estimators_)
    trees = []
    with parsing("scikit-learn"):
        for member, columns in zip(isolating.estimators_, isolating.estimators_features_, strict=True):
            nodes = member.tree_
            depth = nodes.compute_node_depths() - 1.0 + _mean_path(nodes.n_node_samples)
            trees.append(BoosterTree(**_structure(nodes, np.asarray(columns)), value=share * depth))
    return join_trees(trees, schema, {}, intercept=0.0, size=int(isolating.n_features_in_))


def _mean_path(samples: Any) -> Floats:
    """Mean length of an unsuccessful search in a binary tree of n samples."""
    n = np.asarray(samples, dtype=np.float64)
    many = np.maximum(n, 3.0)
    length = 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many
    return np.where(n > 2, length, np.where(n == 2, 1.0, 0.0))


# -- means and sums of any models -------------------------------------------------------------------------


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
    if schema is not None:
        names, levels = schema.names, schema.levels
        schema = Schema(tuple(names[j] for j in features), tuple(levels[j] for j in features))
    form = read_form(part, method, schema)
    if method == "predict_proba" and outputs_of(form) != (model.n_classes_,):
        form = map_outputs(form, np.eye(model.n_classes_)[part.classes_])  # a sample may miss a class
    if np.array_equal(features, np.arange(model.n_features_in_)):
        return form
    try:
        return on_columns(form, features, model.n_features_in_)
    except InputError as error:
        raise CannotRead(f"with bootstrap_features=True {error}") from error


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
        # of two probabilities the final model reads the second only
        used = np.ones(outputs_of(form) or 1, dtype=np.bool_)
        used[0] = not (part_method == "predict_proba" and len(model.classes_) == 2)
        matrix = np.zeros((len(used), *final.coef.shape[1:]))
        matrix[used] = final.coef[start : start + used.sum()]
        parts.append(map_outputs(form, matrix if outputs_of(form) else matrix[0]))
        start += int(used.sum())
    if model.passthrough:
        if schema is not None and any(schema.levels):
            raise CannotRead("passthrough passes texts to the final estimator; encode them in a Pipeline")
        parts.append(Linear(final.coef[start:]))
    return combine(parts, intercept=final.intercept)


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
    return _side_by_side([read_form(part, method, schema) for part in model.estimators_])


def _side_by_side(parts: Sequence[Form]) -> Form:
    ends = np.cumsum([int(np.prod(outputs_of(part))) for part in parts])
    unit = np.split(np.eye(ends[-1]), ends[:-1])
    pairs = zip(parts, unit, strict=True)
    return combine([map_outputs(part, rows if outputs_of(part) else rows[0]) for part, rows in pairs])


# -- wrappers, and models that predict a constant --------------------------------------------------------


_INSIDE = ("best_estimator_", "estimator_", "estimator")


def wrapper(model: Any, method: str, schema: Schema | None) -> Form:
    """The model inside: of a search the best estimator, which it refitted, of RANSAC that of the inliers.

    Thresholds change labels alone, and self-training what the model inside was fitted on.
    """
    name = next(name for name in _INSIDE if hasattr(model, name))
    return read_form(getattr(model, name), method, schema)


def transformed_target(model: Any, method: str, schema: Schema | None) -> Form:
    """The inverse of the target's transformation, where it is affine, behind the regressor."""
    refuse_replaced_methods(model.transformer_)
    form = read_form(model.regressor_, method, schema)
    outputs = outputs_of(form)
    scale, shift = _inverse(model.transformer_, outputs or (1,))
    if outputs:
        return combine([map_outputs(form, np.diag(scale))], intercept=shift)
    if model._training_dim == 1:  # noqa: SLF001 - whether predictions are (n,) or (n, 1)
        scale, shift = scale[0], shift[0]
    return combine([map_outputs(form, scale)], intercept=shift)


def _inverse(transformer: Any, outputs: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Scale and shift of a transformer's inverse, scale · y + shift."""
    fitted, ones, zeros = transformer, np.ones(outputs), np.zeros(outputs)
    scale, shift = ones, zeros
    match qualified_name(type(fitted)):
        case "sklearn.FunctionTransformer":
            if fitted.inverse_func is not None:
                raise CannotRead("the target is transformed by functions; explain model.regressor_ instead")
        case "sklearn.MaxAbsScaler":
            scale = fitted.scale_
        case "sklearn.MinMaxScaler":
            scale, shift = 1.0 / fitted.scale_, -fitted.min_ / fitted.scale_
        case "sklearn.RobustScaler":
            scale = fitted.scale_ if fitted.with_scaling else ones
            shift = fitted.center_ if fitted.with_centering else zeros
        case "sklearn.StandardScaler":
            scale = fitted.scale_ if fitted.with_std else ones
            shift = fitted.mean_ if fitted.with_mean else zeros
        case _:
            raise CannotRead(
                f"the inverse of {type(fitted).__qualname__} is not known to be affine; explain "
                "model.regressor_ instead"
            )
    return np.asarray(scale), np.asarray(shift)


def one_vs_rest(model: Any, method: str, schema: Schema | None) -> Form:
    """One margin a class, of two classes the second's; probabilities of two classes, or several labels."""
    parts = [_part(model, part, method, schema) for part in model.estimators_]
    if method == "decision_function":
        return parts[0] if len(parts) == 1 else _side_by_side(parts)
    if method == "predict_proba" and len(parts) == 1:
        return parts[0]
    if method == "predict_proba" and model.multilabel_:
        return _side_by_side([part.select(1) for part in parts])
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
    return _constant(value, _columns(model, schema))


def dummy(model: Any, method: str, schema: Schema | None) -> Forest:
    """The constant of training, or its class shares; one target's after the other's."""
    if hasattr(model, "classes_") and method != "predict_proba":
        raise CannotRead(f"DummyClassifier.{method} returns labels; its probabilities are read exactly")
    if model.strategy == "stratified":
        raise CannotRead("DummyClassifier(strategy='stratified') is random: each call returns another result")
    size = _columns(model, schema)
    # scikit-learn's own prediction at a row, which does not depend on the row
    predictions = getattr(model, method)(np.zeros((1, size)))
    values = np.concatenate(predictions, axis=1) if isinstance(predictions, list) else predictions
    return _constant(values[0], size)


def _columns(model: Any, schema: Schema | None) -> int:
    size = getattr(model, "n_features_in_", None) if schema is None else len(schema.names)
    if size is None:
        raise CannotRead(f"{type(model).__name__} does not store how many columns it was fitted on")
    return int(size)


# -- refused ----------------------------------------------------------------------------------------------


def refused(model: Any, method: str, schema: Schema | None) -> Never:  # noqa: ARG001
    """Refuse ensembles and wrappers that are no sums, with the reason."""
    raise CannotRead(_REFUSED[type(model).__qualname__].format(method=method))


_CHAIN = "each model of a chain reads the predictions of those before it, so that effects are not a sum"
_REFUSED: Mapping[str, str] = {
    "AdaBoostRegressor": "AdaBoostRegressor predicts the weighted median of its trees, which is not a sum",
    "ClassifierChain": _CHAIN,
    "IsolationForest": "IsolationForest.{method} is 2**(-path length) or a threshold on it, and not a sum of "
    "trees; its mean path length is read exactly: pass limes.models.path_length(model)",
    "OneVsOneClassifier": "OneVsOneClassifier counts the votes of pairs of classes, which is not a sum; "
    "fit a OneVsRestClassifier, or explain the margin of one pair, model.estimators_[0]",
    "OutputCodeClassifier": "OutputCodeClassifier predicts the class whose code is nearest, which is not a "
    "sum; fit a OneVsRestClassifier, or explain one of model.estimators_",
    "RegressorChain": _CHAIN,
}
