"""CatBoost: trees read off the model's own JSON.

A test is float32(x) > border. In a symmetric tree all nodes of a level share one test, and the tests'
results are the bits of the leaf's number. Categories are read where CatBoost compares them one by one
(one_hot_max_size); it stores the hash of their text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from limes._arrays import Floats, Ints
from limes.models._calling.outputs import Methods
from limes.models._reading import CannotRead, Schema
from limes.models.forms._trees import Forest, float32_threshold
from limes.models.readers.boosted_trees import BoosterTree, column_name, join_trees, parsing
from limes.models.readers.links import with_probabilities

Description = Mapping[str, Any]


class CatBoostSplit(NamedTuple):
    """A test: x <= threshold goes left, or one category does."""

    column: int
    threshold: float
    category: int | None
    missing_left: bool


_LEAF = CatBoostSplit(-1, 0.0, None, missing_left=False)
# the child of a missing value, by CatBoost's treatment of them; right is "greater than the border"
_MISSING_LEFT = {"AsIs": True, "AsFalse": True, "AsTrue": False}
# whole numbers whose hashes are compared with the categories of a column of numbers
_TRIED = 10_000
# hashes have 32 bits, and are written as signed numbers in some places
_HASH = 0xFFFFFFFF


# with another loss each of several classes has a logistic function
@with_probabilities(
    "trees", scale=lambda model: float(model.get_all_params().get("loss_function") == "MultiClass")
)
def booster(model: Any, method: str, schema: Schema | None) -> Forest:
    """Bias + scale · Σ trees: raw formula values."""
    # only CatBoostRegressor chooses by its loss
    default = getattr(model, "_get_default_prediction_type", lambda: "RawFormulaVal")()
    if method == "predict" and default != "RawFormulaVal":
        raise CannotRead(
            f"{type(model).__name__} with this loss predicts {default!r}, a function of the sum of its "
            "trees; the sum is read exactly with output='margin'"
        )
    with parsing("CatBoost"):
        stored = _exported(model)
        columns = _SplitReader(model, stored["features_info"], schema)
        scale, bias = stored["scale_and_bias"]
        start = np.atleast_1d(np.asarray(bias, dtype=np.float64))
        outputs = () if start.size == 1 else (start.size,)
        trees = [
            _in_levels(
                [columns.split(test) for test in tree["splits"] or []],
                np.array(tree["leaf_values"], dtype=np.float64).reshape(-1, *outputs),
                tree.get("leaf_weights"),
            )
            for tree in stored.get("oblivious_trees", [])
        ]
        trees += [_nested(tree, columns, outputs) for tree in stored.get("trees", [])]
        trees = trees or [_in_levels([], np.zeros((1, *outputs)), [1.0])]
        trees = [replace(tree, value=tree.value * scale) for tree in trees]
        size = len(model.feature_names_)
        return join_trees(trees, schema, columns.codes, intercept=start, size=size)


def _exported(model: Any, pool: Any = None) -> Description:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", pool=pool)
        stored: Description = json.loads(path.read_text(encoding="utf-8"))
    return stored


class _SplitReader:
    """Translates tests: CatBoost's columns to the user's, and its hashes to the texts behind them."""

    def __init__(self, model: Any, about: Description, schema: Schema | None) -> None:
        self._model, self._schema = model, schema
        self._numbers = {f["feature_index"]: f for f in about.get("float_features", [])}
        self._categories = {f["feature_index"]: f for f in about.get("categorical_features", [])}
        self.codes: dict[int, Floats] = {}  # by column: the hash of every code

    def split(self, test: Description) -> CatBoostSplit:
        kind = test["split_type"]
        if kind == "FloatFeature":
            about = self._numbers[test["float_feature_index"]]
            threshold = float(float32_threshold(np.float32(test["border"])))
            missing_left = _MISSING_LEFT[about["nan_value_treatment"]]
            return CatBoostSplit(about["flat_feature_index"], threshold, None, missing_left)
        if kind == "OneHotFeature":
            about = self._categories[test["cat_feature_index"]]
            column = int(about["flat_feature_index"])
            if column not in self.codes:
                self.codes[column] = self._code_hashes(column, np.array(about["values"], dtype=np.int64))
            return CatBoostSplit(column, 0.0, int(test["value"]) & _HASH, missing_left=False)
        if kind == "OnlineCtr":
            raise CannotRead(
                "CatBoost replaces categories by statistics of the target, which are not read: fit with "
                "one_hot_max_size at least the number of categories, or use method='sampled'"
            )
        raise CannotRead(f"CatBoost splits by {kind!r}, which limes cannot read")

    def _code_hashes(self, column: int, used: Ints) -> Floats:
        """The hash of each text, or of each whole number, that the column may hold."""
        # They are CatBoost's, which exports hashes beside a model for the rows of a pool.
        levels = self._schema.levels[column] if self._schema is not None else ()
        texts = [str(level) for level in levels] or [str(i) for i in range(_TRIED)]
        positions = {f["flat_feature_index"] for f in self._categories.values()}
        names = self._model.feature_names_
        rows = [[text if j in positions else 0.0 for j in range(len(names))] for text in texts]
        pool = import_module("catboost").Pool(rows, cat_features=sorted(positions), feature_names=names)
        pairs = _exported(self._model, pool)["features_info"]["cat_features_hash"]
        by_text = {pair["value"]: int(pair["hash"]) for pair in pairs}
        hashes = np.array([by_text[text] for text in texts], dtype=np.int64)
        if not levels and not np.isin(used & _HASH, hashes).all():
            raise CannotRead(
                f"{column_name(self._schema, column)} has categories that are no whole numbers from 0 to "
                f"{_TRIED - 1}: store them as texts, and fit again"
            )
        return hashes.astype(np.float64)


def _tree(
    splits: Sequence[CatBoostSplit], left: Any, right: Any, value: Any, covers: Floats | None
) -> BoosterTree:
    without = "CatBoost stored this model without the weights of its leaves"
    return BoosterTree(
        feature=np.array([s.column for s in splits]),
        threshold=np.array([s.threshold for s in splits]),
        left=np.asarray(left),
        right=np.asarray(right),
        missing_left=np.array([s.missing_left for s in splits]),
        value=np.asarray(value, dtype=np.float64),
        members={i: np.array([s.category]) for i, s in enumerate(splits) if s.category is not None},
        **({"no_covers": without} if covers is None else {"covers": covers}),
    )


def _in_levels(splits: Sequence[CatBoostSplit], values: Floats, weights: Any) -> BoosterTree:
    """The tree of a test a level, its nodes numbered level by level; weights of leaves, or None."""
    # Bit i of a leaf's number is the result of test i: "greater than the border" goes right, "is the
    # category" goes left. The last test comes first, as where CatBoost itself adds up weights of leaves to
    # those of inner nodes: the function is the same in any order, and covers are not.
    depth = len(splits)
    if len(values) != 2**depth:
        raise CannotRead(f"a tree of {depth} tests has {len(values)} leaves")
    path = np.arange(2**depth)
    number = np.zeros(2**depth, dtype=np.int64)
    for i, split in enumerate(splits):
        went_right = (path >> i) & 1
        number |= (went_right if split.category is None else 1 - went_right) << i
    leaves, inner = np.full(2**depth, -1), np.arange(2**depth - 1)
    covers = None
    if weights is not None:
        levels = [np.asarray(weights, dtype=np.float64)[number]]
        while levels[0].size > 1:
            levels.insert(0, levels[0].reshape(-1, 2).sum(axis=1))
        covers = np.concatenate(levels)
    return _tree(
        [split for i, split in enumerate(reversed(splits)) for _ in range(2**i)] + [_LEAF] * 2**depth,
        np.concatenate([2 * inner + 1, leaves]),
        np.concatenate([2 * inner + 2, leaves]),
        np.concatenate([np.zeros((inner.size, *values.shape[1:])), values[number]]),
        covers,
    )


def _nested(stored: Description, columns: _SplitReader, outputs: tuple[int, ...]) -> BoosterTree:
    """A tree of another grow policy, stored as nested nodes; a test that holds goes right."""
    nodes: list[tuple[CatBoostSplit, Any]] = []
    weights: list[float | None] = []  # None of a leaf that has none
    waiting = [(stored, -1, 0)]
    children: dict[tuple[int, int], int] = {}
    while waiting:
        node, parent, side = waiting.pop()
        position = children[parent, side] = len(nodes)
        if "split" not in node:
            nodes.append((_LEAF, node["value"]))
            weights.append(node.get("weight"))
            continue
        split = columns.split(node["split"])
        nodes.append((split, np.zeros(outputs)))
        weights.append(0.0)
        # the side of rows that fail the test: a category that passes goes left
        no = int(split.category is not None)
        waiting += [(node["left"], position, no), (node["right"], position, 1 - no)]
    left, right = ([children.get((i, side), -1) for i in range(len(nodes))] for side in (0, 1))
    covers = None
    if None not in weights:
        covers = np.array(weights, dtype=np.float64)
        for i in reversed(range(len(nodes))):  # children come after their parent
            if left[i] >= 0:
                covers[i] = covers[left[i]] + covers[right[i]]
    return _tree([split for split, _ in nodes], left, right, [value for _, value in nodes], covers)


METHODS: Methods = {
    ("catboost.CatBoost", "decision_function"): lambda model: partial(
        model.predict, prediction_type="RawFormulaVal"
    ),
}
