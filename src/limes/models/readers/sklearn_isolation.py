"""Isolation forests: the mean path length is a sum of trees, the anomaly score is not.

score = -2^(-L(x) / c): a monotone function of the mean path length L, c being the mean path length of a
search tree of as many samples. L itself is explained exactly: rows that are isolated early have a small one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes.exceptions import InputError
from limes.models.identity import qualified_name
from limes.models.read import CannotRead, refuse_replaced_methods
from limes.models.readers.grown import GrownTree, Naming, described_by, forest
from limes.models.schema import Schema
from limes.models.trees import Forest, float32_threshold


@dataclass(frozen=True, eq=False)
class PathLength:
    """The mean path length of a fitted IsolationForest, as a model; small is anomalous."""

    forest: Any

    def predict(self, X: Any) -> Floats:
        """Mean path lengths (n,) of rows, found from the scores that the forest itself gives."""
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
        If it is no fitted isolation forest, or trees of one sample, which isolate nothing.

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


def isolation(model: Any, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001 - a reader has these
    """Refuse: no method of the forest itself is a sum of trees."""
    raise CannotRead(
        f"IsolationForest.{method} is 2**(-path length) or a threshold on it, and not a sum of trees; its "
        "mean path length is read exactly: give limes.models.path_length(model)"
    )


def path_lengths(model: PathLength, method: str, schema: Schema | None) -> Forest:  # noqa: ARG001 - there is one method
    """The mean over trees of depth + the mean path length of the samples left in the leaf."""
    isolating = model.forest
    if qualified_name(type(isolating)) != "sklearn.IsolationForest":
        raise CannotRead(
            f"{type(isolating).__qualname__} is no IsolationForest itself, and may score in another way"
        )
    refuse_replaced_methods(isolating)
    size = int(isolating.n_features_in_)
    share = 1.0 / len(isolating.estimators_)
    with described_by("scikit-learn"):
        trees = [
            _tree(member.tree_, np.asarray(columns), share)
            for member, columns in zip(isolating.estimators_, isolating.estimators_features_, strict=True)
        ]
    return forest(trees, Naming(schema), intercept=np.zeros(()), size=size)


def _tree(nodes: Any, columns: Ints, share: float) -> GrownTree:
    leaf = nodes.children_left < 0
    return GrownTree(
        feature=np.where(leaf, -1, columns[np.where(leaf, 0, nodes.feature)]),
        threshold=float32_threshold(np.where(leaf, 0.0, nodes.threshold)),
        left=nodes.children_left,
        right=nodes.children_right,
        missing_left=np.asarray(nodes.missing_go_to_left, dtype=np.bool_),
        value=share * (nodes.compute_node_depths() - 1.0 + _mean_path(nodes.n_node_samples)),
    )


def _mean_path(samples: Any) -> Floats:
    """Mean length of an unsuccessful search in a binary tree of so many samples."""
    n = np.asarray(samples, dtype=np.float64)
    many = np.maximum(n, 3.0)
    found = 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many
    return np.where(n > 2, found, np.where(n == 2, 1.0, 0.0))
