"""What an estimator of scikit-learn answers to, and what it raises at: its tags say whether it takes NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limes.models.folding.guards import Accepted, Guard
from limes.models.folding.kinds import Finite
from limes.models.folding.values import is_blank, is_number
from limes.models.readers.sklearn_transformers import Columns

# Estimators that hand rows on to others as they are, and where they keep these; of both kinds, as "Regressor"
_HANDED_ON_TO = {
    "Bagging": "estimators_",
    "FrozenEstimator": "estimator",
    "GridSearchCV": "best_estimator_",
    "HalvingGridSearchCV": "best_estimator_",
    "HalvingRandomSearchCV": "best_estimator_",
    "MultiOutput": "estimators_",
    "OneVsRest": "estimators_",
    "RandomizedSearchCV": "best_estimator_",
    "Stacking": "estimators_",
    "TransformedTarget": "regressor_",
    "Voting": "estimators_",
}
# Steps that check nothing themselves
_CONTAINERS = ("ColumnTransformer", "FeatureUnion", "Pipeline")
# These round to float32 first, and raise at what is then infinite
_SINGLE = ("DecisionTree", "ExtraTree", "ExtraTrees", "GradientBoosting", "IsolationForest", "RandomForest")
_LARGEST_SINGLE = float(np.finfo(np.float32).max)


def guards_of(step: Any, columns: Columns) -> tuple[Guard, ...]:
    """Guards of all columns of numbers that a fitted step is given."""
    accepted = _accepted(step, sparse=columns.sparse)
    return tuple(
        Guard(column, each, name)
        for each, name in accepted
        for column in columns.columns
        if not (isinstance(column.map, Finite) and _holds_text(column.map.values))
    )


def _holds_text(values: Any) -> bool:
    return values.dtype.kind == "O" and not all(is_number(v) or is_blank(v) for v in values)


def _accepted(step: Any, *, sparse: bool) -> Sequence[tuple[Accepted, str]]:
    """What a step accepts in any column, with the class that says so."""
    kind = type(step)
    name = kind.__qualname__
    if kind.__module__.split(".")[0] != "sklearn" or name in _CONTAINERS:
        return ()
    family = name.removesuffix("Classifier").removesuffix("Regressor")
    if family in _HANDED_ON_TO:
        parts = getattr(step, _HANDED_ON_TO[family])
        each = [_accepted(part, sparse=sparse) for part in (parts if isinstance(parts, list) else [parts])]
        return tuple(dict.fromkeys(answer for answers in each for answer in answers))
    from sklearn.utils import get_tags

    tags = get_tags(step)
    if tags.no_validation:
        return ()
    if family in _SINGLE:
        missing = bool(tags.input_tags.allow_nan) and not sparse
        return ((Accepted(missing, -_LARGEST_SINGLE, _LARGEST_SINGLE), name),)
    return ((Accepted(bool(tags.input_tags.allow_nan)), name),)
