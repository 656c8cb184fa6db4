"""CatBoost: trees read off the model's own JSON.

A test is float32(x) > border. In a symmetric tree all nodes of a level share one test, and the tests'
results are the bits of the leaf's number. Categories are read where CatBoost compares them one by one
(one_hot_max_size); it stores the hash of their text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from limes._arrays import Floats, Ints
from limes.models._calling.outputs import Methods
from limes.models._reading import CannotRead, Schema, refuse_all_but_margin
from limes.models.forms._trees import Forest, float32_threshold
from limes.models.readers.boosted_trees import (
    BoosterTree,
    CategoryCodes,
    column_name,
    join_trees,
    parsing,
)
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


def _softmax_scale(model: Any) -> float:
    """1 for the softmax of several classes; 0 where each class has a logistic function."""
    return float(model.get_all_params().get("loss_function") == "MultiClass")


@partial(with_probabilities, scale=_softmax_scale)
def booster(model: Any, method: str, schema: Schema | None) -> Forest:
    """Bias + scale · Σ trees: raw formula values."""
    _refuse_links(model, method)
    with parsing("CatBoost"):
        stored = _exported(model)
        columns = _SplitReader(model, stored["features_info"], schema)
        scale, bias = stored["scale_and_bias"]
        start = np.atleast_1d(np.asarray(bias, dtype=np.float64))
        trees = [_symmetric(tree, columns, start.size) for tree in stored.get("oblivious_trees", [])]
        trees += [_nested(tree, columns, start.size) for tree in stored.get("trees", [])]
        trees = trees or [_in_levels([], np.zeros(1 if start.size == 1 else (1, start.size)))]
        return join_trees(
            [replace(tree, value=tree.value * scale) for tree in trees],
            CategoryCodes(schema, columns.codes),
            intercept=start if start.size > 1 else start[0],
            size=len(model.feature_names_),
        )


def _refuse_links(model: Any, method: str) -> None:
    name = type(model).__name__
    if hasattr(model, "predict_proba"):
        refuse_all_but_margin(model, method, "trees")
    # only CatBoostRegressor chooses by its loss
    default = getattr(model, "_get_default_prediction_type", lambda: "RawFormulaVal")()
    if method == "predict" and default != "RawFormulaVal":
        raise CannotRead(
            f"{name} with this loss predicts {default!r}, a function of the sum of its trees; the sum is "
            "read exactly with output='margin'"
        )


def _exported(model: Any, pool: Any = None) -> Description:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", pool=pool)
        stored: Description = json.loads(path.read_text(encoding="utf-8"))
    return stored


class _SplitReader:
    """Translates tests: CatBoost's columns to the user's, and its hashes to the texts behind them."""

    def __init__(self, model: Any, about: Description, schema: Schema | None) -> None:
        self._model = model
        self._schema = schema
        self._numbers = {f["feature_index"]: f for f in about.get("float_features", [])}
        self._categories = {f["feature_index"]: f for f in about.get("categorical_features", [])}
        self._kinds: Mapping[str, Callable[[Description], CatBoostSplit]] = {
            "FloatFeature": self._by_border,
            "OneHotFeature": self._by_category,
        }
        # by column: the hash of every code
        self.codes: dict[int, Floats] = {}

    def split(self, test: Description) -> CatBoostSplit:
        """Translate one test."""
        kind = test["split_type"]
        if kind == "OnlineCtr":
            raise CannotRead(
                "CatBoost replaces categories by statistics of the target, which are not read: fit with "
                "one_hot_max_size at least the number of categories, or use method='sampled'"
            )
        if kind not in self._kinds:
            raise CannotRead(f"CatBoost splits by {kind!r}, which limes cannot read")
        return self._kinds[kind](test)

    def _by_border(self, test: Description) -> CatBoostSplit:
        about = self._numbers[test["float_feature_index"]]
        threshold = float(float32_threshold(np.float32(test["border"])))
        return CatBoostSplit(
            about["flat_feature_index"], threshold, None, _MISSING_LEFT[about["nan_value_treatment"]]
        )

    def _by_category(self, test: Description) -> CatBoostSplit:
        about = self._categories[test["cat_feature_index"]]
        column = int(about["flat_feature_index"])
        if column not in self.codes:
            self.codes[column] = self._code_hashes(column, np.array(about["values"], dtype=np.int64) & _HASH)
        return CatBoostSplit(column, 0.0, int(test["value"]) & _HASH, missing_left=False)

    def _code_hashes(self, column: int, used: Ints) -> Floats:
        """The hash of each text, or of each whole number, that the column may hold."""
        levels = self._schema.levels[column] if self._schema is not None else ()
        hashes = self._hashes([str(level) for level in levels] or [str(i) for i in range(_TRIED)])
        if not levels and not np.isin(used, hashes).all():
            raise CannotRead(
                f"{column_name(self._schema, column)} has categories that are no whole numbers from 0 to "
                f"{_TRIED - 1}: store them as texts, and fit again"
            )
        return hashes.astype(np.float64)

    def _hashes(self, texts: Sequence[str]) -> Ints:
        """CatBoost's 32-bit hashes of texts, which it exports beside a model for the rows of a pool."""
        positions = {f["flat_feature_index"] for f in self._categories.values()}
        names = self._model.feature_names_
        rows = [[text if j in positions else 0.0 for j in range(len(names))] for text in texts]
        pool = import_module("catboost").Pool(rows, cat_features=sorted(positions), feature_names=names)
        pairs = _exported(self._model, pool)["features_info"]["cat_features_hash"]
        by_text = {pair["value"]: int(pair["hash"]) for pair in pairs}
        return np.array([by_text[text] for text in texts], dtype=np.int64)


def _symmetric(stored: Description, columns: _SplitReader, outputs: int) -> BoosterTree:
    values = np.array(stored["leaf_values"], dtype=np.float64)
    splits = [columns.split(test) for test in stored["splits"] or []]
    return _in_levels(splits, values if outputs == 1 else values.reshape(-1, outputs))


def _in_levels(splits: Sequence[CatBoostSplit], values: Floats) -> BoosterTree:
    """The tree whose level i tests splits[i], its nodes numbered level by level.

    Bit i of a leaf's number is the result of test i: "greater than the border" goes right, "is the
    category" goes left.
    """
    depth = len(splits)
    if len(values) != 2**depth:
        raise CannotRead(f"a tree of {depth} tests has {len(values)} leaves")
    inner = 2**depth - 1
    level = np.floor(np.log2(np.arange(1, inner + 1))).astype(np.int64)
    path = np.arange(2**depth)
    number = np.zeros(2**depth, dtype=np.int64)
    for i, split in enumerate(splits):
        went_right = (path >> (depth - 1 - i)) & 1
        number |= (went_right if split.category is None else 1 - went_right) << i
    leaves = np.full(2**depth, -1)
    nodes = np.arange(inner)
    return BoosterTree(
        feature=np.concatenate([np.array([s.column for s in splits], dtype=np.int64)[level], leaves]),
        threshold=np.concatenate([np.array([s.threshold for s in splits])[level], np.zeros(leaves.size)]),
        left=np.concatenate([2 * nodes + 1, leaves]),
        right=np.concatenate([2 * nodes + 2, leaves]),
        missing_left=np.concatenate(
            [np.array([s.missing_left for s in splits], dtype=np.bool_)[level], leaves > 0]
        ),
        value=np.concatenate([np.zeros((inner, *values.shape[1:])), values[number]]),
        members={
            int(node): np.array([category])
            for node in nodes
            if (category := splits[level[node]].category) is not None
        },
    )


def _nested(stored: Description, columns: _SplitReader, outputs: int) -> BoosterTree:
    """A tree of another grow policy, stored as nested nodes; a test that holds goes right."""
    nodes: list[tuple[CatBoostSplit, Any]] = []
    waiting = [(stored, -1, 0)]
    children: dict[tuple[int, int], int] = {}
    while waiting:
        node, parent, side = waiting.pop()
        position = children[parent, side] = len(nodes)
        if "split" not in node:
            nodes.append((_LEAF, node["value"]))
            continue
        split = columns.split(node["split"])
        nodes.append((split, np.zeros(outputs) if outputs > 1 else 0.0))
        # the side of rows that fail the test: a category that passes goes left
        no = int(split.category is not None)
        waiting += [(node["left"], position, no), (node["right"], position, 1 - no)]
    splits = [node[0] for node in nodes]
    return BoosterTree(
        feature=np.array([s.column for s in splits]),
        threshold=np.array([s.threshold for s in splits]),
        left=np.array([children.get((i, 0), -1) for i in range(len(nodes))]),
        right=np.array([children.get((i, 1), -1) for i in range(len(nodes))]),
        missing_left=np.array([s.missing_left for s in splits]),
        value=np.array([node[1] for node in nodes], dtype=np.float64),
        members={i: np.array([s.category]) for i, s in enumerate(splits) if s.category is not None},
    )


METHODS: Methods = {
    ("catboost.CatBoost", "decision_function"): lambda model: partial(
        model.predict, prediction_type="RawFormulaVal"
    ),
}
