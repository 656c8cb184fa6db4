"""LightGBM: trees read off the model's own text, in float64 throughout.

A test is x <= threshold. Each node treats as missing: nothing (then NaN counts as 0), NaN, or zeros and NaN.
Categories of a node's set go left, all others right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from limes._arrays import Floats, Ints
from limes.models._calling.outputs import Methods, Predict
from limes.models._reading import CannotRead, Schema
from limes.models._tree_rewriting import Window, without_missing_numbers
from limes.models.forms._trees import Forest
from limes.models.readers.boosted_trees import (
    BoosterTree,
    bits_of,
    codes_of,
    join_trees,
    of_output,
    parsing,
    refuse_link,
)
from limes.models.readers.links import with_probabilities

# objectives that predict the sum of their trees; "" is a user's own objective
_IDENTITY = frozenset(
    ("regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg")
) | {"", "custom", "none"}
_LOGISTIC = ("binary sigmoid:1", "cross_entropy")
_VERSIONS = ("v3", "v4")
# |x| up to this is zero for LightGBM: 1e-35 as float32
ZERO = float(np.float32(1e-35))
_ZEROS = Window(float(np.nextafter(-ZERO, -np.inf)), ZERO, "zero_as_missing=True")
# bits of a node's decision type; the next two bits hold what counts as missing
_CATEGORICAL, _DEFAULT_LEFT = 1, 2
_MISSING_ZERO = 1

Fields = Mapping[str, str]


def _head(model: Any) -> Fields:
    return _sections(getattr(model, "booster_", model).model_to_string(num_iteration=1))[0]


def _is_logistic(model: Any) -> bool:
    """Whether probabilities are the logistic of the margin: of the sum, without a factor."""
    head = _head(model)
    return head.get("objective", "") in _LOGISTIC and "average_output" not in head


def _softmax_scale(model: Any) -> float:
    """1 for the softmax of several classes; 0 where each has a logistic function, or the user's own."""
    softmax = getattr(model, "objective_", "") in ("multiclass", "softmax")
    return float(softmax and "average_output" not in _head(model))


@with_probabilities("trees", where=_is_logistic, scale=_softmax_scale)
def booster(model: Any, method: str, schema: Schema | None) -> Forest:
    """Σ trees, or the mean of random forests, of a Booster or a model of scikit-learn's kind."""
    with parsing("LightGBM"):
        inner = getattr(model, "booster_", model)
        if hasattr(model, "get_params") and model.get_params().get("pred_early_stop"):
            raise CannotRead("pred_early_stop=True leaves out trees row by row: fit without it")
        text = inner.model_to_string()
        head, *stored = _sections(text)
        if head["version"] not in _VERSIONS:
            raise CannotRead(f"limes does not know version {head['version']!r} of LightGBM's text of a model")
        if method == "predict" and head.get("objective", "") not in _IDENTITY:
            refuse_link(model, head["objective"])
        outputs = int(head["num_tree_per_iteration"])
        # a random forest's own raw scores are sums, and its predictions means
        averages = "average_output" in head and method == "predict"
        share = outputs / len(stored) if averages else 1.0
        trees = [_tree(fields, i % outputs, outputs, share) for i, fields in enumerate(stored)]
        size = int(head["max_feature_idx"]) + 1
        codes = _codes(head, text, inner.pandas_categorical, schema)
        return join_trees(trees, schema, codes, intercept=np.zeros(outputs), size=size)


def _sections(text: str) -> list[Fields]:
    """The header and one section a tree, as key=value lines; a line without "=" is a flag."""
    body, _, _ = text.partition("\nend of trees")
    return [
        {key: value for key, _, value in (line.partition("=") for line in section.splitlines() if line)}
        for section in body.split("\nTree=")
    ]


def _tree(fields: Fields, group: int, outputs: int, share: float) -> BoosterTree:
    """Inner nodes first, then leaves; a child is the number i of an inner node, or ~i of a leaf."""
    if int(fields.get("is_linear", "0")):
        raise CannotRead("LightGBM with linear_tree=True has linear models in its leaves: fit it without")
    inner = int(fields["num_leaves"]) - 1
    value = np.concatenate([np.zeros(inner), _numbers(fields, "leaf_value") * share])
    if len(value) != 2 * inner + 1:
        raise CannotRead("a tree of the model has another number of leaves than it declares")
    kinds = _whole_numbers(fields, "decision_type")
    threshold = _numbers(fields, "threshold")
    # LightGBM treats all |x| <= 1e-35 as 0 when it predicts: thresholds are moved out of these
    nearest = np.where(threshold >= 0, ZERO, np.nextafter(-ZERO, -np.inf))
    threshold = np.where(np.abs(threshold) <= ZERO, nearest, threshold)
    by_category = (kinds & _CATEGORICAL) > 0
    missing = (kinds >> 2) & 3
    # NaN counts as 0 where nothing is missing; no category is missing, and NaN is in no set
    missing_left = np.where(missing > 0, (kinds & _DEFAULT_LEFT) > 0, threshold >= 0.0) & ~by_category
    left, right = (
        np.where(child >= 0, child, inner + ~child)
        for child in (_whole_numbers(fields, "left_child"), _whole_numbers(fields, "right_child"))
    )
    nothing = np.full(inner + 1, -1)
    tree = BoosterTree(
        feature=np.concatenate([_whole_numbers(fields, "split_feature"), nothing]),
        threshold=np.concatenate([threshold, np.zeros(inner + 1)]),
        left=np.concatenate([left, nothing]),
        right=np.concatenate([right, nothing]),
        missing_left=np.concatenate([missing_left, np.zeros(inner + 1, dtype=np.bool_)]),
        value=of_output(value, group, outputs),
        members=_members(fields, by_category),
        **_covers(fields, inner),
    )
    return without_missing_numbers(tree, (missing == _MISSING_ZERO) & ~by_category, _ZEROS)


def _covers(fields: Fields, inner: int) -> dict[str, Any]:
    """Numbers of training rows at inner nodes and leaves, which versions before 3 may lack."""
    if "leaf_count" not in fields:
        return {"no_covers": "the model's text has no numbers of training rows at its leaves"}
    counts = [_numbers(fields, "internal_count")] if inner else []
    return {"covers": np.concatenate([*counts, _numbers(fields, "leaf_count")])}


def _numbers(fields: Fields, key: str) -> Floats:
    return np.array(fields[key].split(), dtype=np.float64)


def _whole_numbers(fields: Fields, key: str) -> Ints:
    return _numbers(fields, key).astype(np.int64)


def _members(fields: Fields, by_category: Any) -> dict[int, Any]:
    """The categories of each node's set, which its threshold numbers."""
    if not by_category.any():
        return {}
    bounds = _whole_numbers(fields, "cat_boundaries")
    set_of = _whole_numbers(fields, "threshold")
    bits = bits_of(np.array(fields["cat_threshold"].split(), dtype=np.uint32)[:, None])
    return {
        int(node): np.flatnonzero(bits[bounds[set_of[node]] : bounds[set_of[node] + 1]])
        for node in np.flatnonzero(by_category)
    }


def _codes(head: Fields, text: str, categories: Any, schema: Schema | None) -> dict[int, Floats]:
    """Codes of the pandas columns that had categories when the model was fitted, in their order."""
    # These columns must be inferred. Columns of texts are always among them. The parameters list the columns
    # that training treated as categories; if the parameters are not stored, the columns that the model splits
    # by category have a list of categories for their range.
    if not categories:
        return {}
    parameter = re.search(r"^\[categorical_feature: ([\d,]+)\]$", text, flags=re.MULTILINE)
    declared = set() if parameter is None else {int(j) for j in parameter[1].split(",")}
    infos = head["feature_infos"].split(" ")
    texts = [j for j in range(len(infos)) if schema is not None and schema.levels[j]]
    listed = {j for j, info in enumerate(infos) if not info.startswith("[") and info != "none"}
    for columns in (texts, sorted(declared.union(texts)), sorted(listed.union(texts))):
        if len(columns) == len(categories):
            return {j: codes_of(list(names), schema, j) for j, names in zip(columns, categories, strict=True)}
    raise CannotRead(
        f"the model was fitted on {len(categories)} pandas columns of categories, and it does not store "
        "which: store these categories as texts, or as plain whole numbers named in "
        "categorical_feature=, and fit again"
    )


# -- methods ----------------------------------------------------------------------------------------------


def _margin(model: Any) -> Predict:
    return partial(model.predict, raw_score=True)


def _direct(model: Any, method: str) -> Predict:
    from joblib import cpu_count

    # the estimator's own number of threads: LightGBM keeps the last one for its next training
    threads = model.n_jobs
    if threads is None:
        threads = int(cpu_count(only_physical_cores=True))
    elif threads < 0:
        threads = max(int(cpu_count()) + 1 + threads, 1)
    return partial(_answers, model, method == "decision_function", threads)


def _answers(model: Any, is_margin: bool, threads: int, rows: Floats) -> Floats:
    return np.asarray(model.booster_.predict(rows, raw_score=is_margin, num_threads=threads))


METHODS: Methods = {
    ("lightgbm.Booster", "decision_function"): _margin,
    ("lightgbm.LGBMModel", "decision_function"): _margin,
}
DIRECT: Mapping[tuple[str, str], Callable[[Any, str], Predict]] = {
    ("lightgbm.LGBMClassifier", "decision_function"): _direct,
    ("lightgbm.LGBMRanker", "decision_function"): _direct,
    ("lightgbm.LGBMRanker", "predict"): _direct,
    ("lightgbm.LGBMRegressor", "decision_function"): _direct,
    ("lightgbm.LGBMRegressor", "predict"): _direct,
}
