"""Histogram gradient boosting of scikit-learn.

Its trees see encoded columns: categories first, each as its place among the categories of training, then
numbers as they are. A category that training did not know is missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes.models.read import CannotRead
from limes.models.readers.grown import GrownTree, Naming, codes_of, described_by, forest, refuse_classes
from limes.models.schema import Schema
from limes.models.trees import Forest


def histogram(model: Any, method: str, schema: Schema | None) -> Forest:
    """Baseline + Σ trees: predictions of regressors with the identity link, margins of classifiers."""
    _refuse_links(model, method)
    with described_by("scikit-learn"):
        columns, codes = _columns(model, schema)
        start = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1)  # noqa: SLF001
        outputs = start.size
        trees = [
            _tree(member, columns, class_of=k if outputs > 1 else None, outputs=outputs)
            for one_round in model._predictors  # noqa: SLF001 - the trees are kept nowhere else
            for k, member in enumerate(one_round)
        ]
        return forest(
            trees,
            Naming(schema, codes),
            intercept=start[0] if outputs == 1 else start,
            size=int(model.n_features_in_),
        )


def _refuse_links(model: Any, method: str) -> None:
    refuse_classes(model, method)
    link = type(model._loss.link).__name__  # noqa: SLF001 - a loss given by name keeps its link there only
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
    known = model._preprocessor.named_transformers_["encoder"].categories_  # noqa: SLF001
    codes = {
        int(j): codes_of(categories.tolist(), schema, int(j))
        for j, categories in zip(encoded, known, strict=True)
    }
    return np.concatenate([encoded, plain]), codes


def _tree(member: Any, columns: Ints, *, class_of: int | None, outputs: int) -> GrownTree:
    nodes = member.nodes
    leaf = nodes["is_leaf"].astype(np.bool_)
    value = nodes["value"].astype(np.float64)
    sets = _bits(member.raw_left_cat_bitsets)
    by_category = np.flatnonzero(nodes["is_categorical"].astype(np.bool_) & ~leaf)
    return GrownTree(
        feature=np.where(leaf, -1, columns[np.where(leaf, 0, nodes["feature_idx"])]),
        threshold=nodes["num_threshold"].astype(np.float64),
        left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
        missing_left=nodes["missing_go_to_left"].astype(np.bool_),
        value=value if class_of is None else np.outer(value, np.eye(outputs)[class_of]),
        members={int(i): np.flatnonzero(sets[nodes["bitset_idx"][i]]) for i in by_category},
    )


def _bits(words: Any) -> Bools:
    """Bit b of word w says whether category 32 w + b is in the set: (S, W) -> (S, 32 W)."""
    words = np.asarray(words, dtype=np.uint32)
    bits = (words[:, :, None] >> np.arange(32, dtype=np.uint32)) & 1
    return np.asarray(bits.reshape(len(words), 32 * words.shape[1]), dtype=np.bool_)
