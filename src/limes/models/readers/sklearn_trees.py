"""Trees of scikit-learn: single trees, forests, gradient boosting, isolation forests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes.exceptions import InputError
from limes.models._identity import qualified_name
from limes.models._reading import (
    CannotRead,
    Schema,
    read_form,
    refuse_all_but_margin,
    refuse_replaced_methods,
)
from limes.models.forms._trees import Forest, float32_threshold
from limes.models.readers.boosted_trees import (
    BoosterTree,
    CategoryCodes,
    bits_of,
    codes_of,
    join_trees,
    parsing,
)
from limes.models.readers.links import with_probabilities


def tree(model: Any, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001
    """One tree."""
    _refuse_labels(model, method)
    values = _leaf_values(model)
    return _in_float32(_structure(model, values, np.zeros(values.shape[1:])))


def forest(model: Any, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001
    """The mean of trees; for a classifier, the mean of their class shares."""
    _refuse_labels(model, method)
    share = 1.0 / len(model.estimators_)
    leaf_values = [_leaf_values(member) * share for member in model.estimators_]
    zero = np.zeros(leaf_values[0].shape[1:])
    trees = [_structure(m, v, zero) for m, v in zip(model.estimators_, leaf_values, strict=True)]
    return _in_float32(Forest.joined(trees, intercept=zero))


def _is_log_loss(model: Any) -> bool:
    """Return whether probabilities are the logistic of the margin; with the exponential loss of twice it."""
    return getattr(model, "loss", "log_loss") == "log_loss"


@partial(with_probabilities, where=_is_log_loss)
def boosting(model: Any, method: str, schema: Schema | None) -> Forest:
    """Initial value + learning_rate · Σ trees: predictions of the regressor, margin of the classifier."""
    if hasattr(model, "classes_"):
        refuse_all_but_margin(model, method, "trees")
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
    """The initial value of boosting: a constant, or trees."""
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
            f"gradient boosting calls its initial {name} at rows rounded to float32, which can be "
            "read exactly for trees only"
        )
    return _in_float32(form)


def _is_constant_classifier(init: Any) -> bool:
    """Return whether a dummy predicts the same for every row; strategy "stratified" is random."""
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
            f"{type(model).__name__}.{method} returns labels; its probabilities are read exactly"
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


# -- histogram gradient boosting ---------------------------------------------------------------------------
#
# Its trees see encoded columns: categories first, each as its position among the categories of training, then
# numbers as they are. A category that is not in the training data is missing.


@with_probabilities
def histogram(model: Any, method: str, schema: Schema | None) -> Forest:
    """Baseline + Σ trees: predictions of regressors with the identity link, margins of classifiers."""
    _refuse_links(model, method)
    with parsing("scikit-learn"):
        columns, codes = _columns(model, schema)
        start = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1)  # noqa: SLF001
        outputs = start.size
        trees = [
            _histogram_tree(member, columns, class_of=k if outputs > 1 else None, outputs=outputs)
            for one_round in model._predictors  # noqa: SLF001 - the trees are stored nowhere else
            for k, member in enumerate(one_round)
        ]
        return join_trees(
            trees,
            CategoryCodes(schema, codes),
            intercept=start[0] if outputs == 1 else start,
            size=int(model.n_features_in_),
        )


def _refuse_links(model: Any, method: str) -> None:
    if hasattr(model, "classes_"):
        refuse_all_but_margin(model, method, "trees")
    link = type(model._loss.link).__name__  # noqa: SLF001 - a loss passed by name has its link only there
    if method == "predict" and link != "IdentityLink":
        raise CannotRead(
            f"{type(model).__name__}(loss={model.loss!r}) predicts through {link}: it is no sum of trees; "
            "the sum, which is the logarithm of the prediction, is read exactly with output='margin'"
        )


def _columns(model: Any, schema: Schema | None) -> tuple[Ints, dict[int, Floats]]:
    """The user's column of each encoded one, and the codes of columns of categories."""
    if model.is_categorical_ is None:
        return np.arange(model.n_features_in_), {}
    encoded = np.flatnonzero(model.is_categorical_)
    plain = np.flatnonzero(~model.is_categorical_)
    categories_of = model._preprocessor.named_transformers_["encoder"].categories_  # noqa: SLF001
    codes = {
        int(j): codes_of(categories.tolist(), schema, int(j))
        for j, categories in zip(encoded, categories_of, strict=True)
    }
    return np.concatenate([encoded, plain]), codes


def _histogram_tree(member: Any, columns: Ints, *, class_of: int | None, outputs: int) -> BoosterTree:
    nodes = member.nodes
    leaf = nodes["is_leaf"].astype(np.bool_)
    value = nodes["value"].astype(np.float64)
    sets = bits_of(member.raw_left_cat_bitsets)
    by_category = np.flatnonzero(nodes["is_categorical"].astype(np.bool_) & ~leaf)
    return BoosterTree(
        feature=np.where(leaf, -1, columns[np.where(leaf, 0, nodes["feature_idx"])]),
        threshold=nodes["num_threshold"].astype(np.float64),
        left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
        missing_left=nodes["missing_go_to_left"].astype(np.bool_),
        value=value if class_of is None else np.outer(value, np.eye(outputs)[class_of]),
        members={int(i): np.flatnonzero(sets[nodes["bitset_idx"][i]]) for i in by_category},
    )


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


def isolation(model: Any, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001 - the signature of readers
    """Refuse: no method of the forest itself is a sum of trees."""
    raise CannotRead(
        f"IsolationForest.{method} is 2**(-path length) or a threshold on it, and not a sum of trees; its "
        "mean path length is read exactly: pass limes.models.path_length(model)"
    )


def path_lengths(model: PathLength, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001 - there is one method
    """The mean over trees of depth + the mean path length of the samples in the leaf."""
    isolating = model.forest
    if qualified_name(type(isolating)) != "sklearn.IsolationForest":
        raise CannotRead(
            f"{type(isolating).__qualname__} is no IsolationForest itself, and may score in another way"
        )
    refuse_replaced_methods(isolating)
    size = int(isolating.n_features_in_)
    share = 1.0 / len(isolating.estimators_)
    with parsing("scikit-learn"):
        trees = [
            _isolation_tree(member.tree_, np.asarray(columns), share)
            for member, columns in zip(isolating.estimators_, isolating.estimators_features_, strict=True)
        ]
    return join_trees(trees, CategoryCodes(schema), intercept=np.zeros(()), size=size)


def _isolation_tree(nodes: Any, columns: Ints, share: float) -> BoosterTree:
    leaf = nodes.children_left < 0
    return BoosterTree(
        feature=np.where(leaf, -1, columns[np.where(leaf, 0, nodes.feature)]),
        threshold=float32_threshold(np.where(leaf, 0.0, nodes.threshold)),
        left=nodes.children_left,
        right=nodes.children_right,
        missing_left=np.asarray(nodes.missing_go_to_left, dtype=np.bool_),
        value=share * (nodes.compute_node_depths() - 1.0 + _mean_path(nodes.n_node_samples)),
    )


def _mean_path(samples: Any) -> Floats:
    """Mean length of an unsuccessful search in a binary tree of n samples."""
    n = np.asarray(samples, dtype=np.float64)
    many = np.maximum(n, 3.0)
    length = 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many
    return np.where(n > 2, length, np.where(n == 2, 1.0, 0.0))
