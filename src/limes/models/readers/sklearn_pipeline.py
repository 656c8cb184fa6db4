"""Pipelines of scikit-learn: the prediction of the last step, over the input columns of the first.

The steps are folded, one after the other, into functions of the user's columns; the form that is read off the
last step is then folded behind those (``models/_folding.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from limes.models._documents import VECTORIZERS
from limes.models._feature_maps import (
    Codebook,
    LookupMap,
    ModelColumn,
    MonotoneMap,
    identity_map,
    is_blank,
    is_number,
)
from limes.models._folding import (
    EVERYTHING,
    LARGEST_SINGLE,
    Accepted,
    Guard,
    behind_scalers,
    expand_components,
    fold,
)
from limes.models._identity import qualified_name
from limes.models._reading import CannotRead, Schema, read_form, refuse_replaced_methods
from limes.models.forms._base import Form, Linear
from limes.models.forms._linked import Linked, Softmax
from limes.models.readers import sklearn_transformers as transformers
from limes.models.readers.sklearn_transformers import LINEAR_MAPS, Expand, Fold, StepColumns, linear_map


def pipeline(model: Any, method: str, schema: Schema | None) -> Form:
    """A Pipeline whose last step can be read, and whose other steps treat one column at a time."""
    last = model.steps[-1][1]
    if last is None or isinstance(last, str):
        raise CannotRead("the pipeline ends in 'passthrough' and predicts nothing")
    columns = _user_columns(model, schema)
    form, folded = _read_steps(model.steps, method, columns)
    form, parts = expand_components(form, folded.columns, type(last).__qualname__)
    return fold(form, parts, columns.names, folded.guards)


def without_samplers(model: Any, method: str, schema: Schema | None) -> Form:
    """A pipeline of imbalanced-learn, whose samplers change what is fitted, and nothing that is predicted."""
    from sklearn.pipeline import Pipeline

    steps = [step for step in model.steps if not hasattr(step[1], "fit_resample")]
    return pipeline(Pipeline(steps), method, schema)


def _user_columns(model: Any, schema: Schema | None) -> StepColumns:
    if schema is None:
        count = getattr(model, "n_features_in_", None)
        if count is None:
            raise CannotRead("the first step does not store how many columns it was fitted on")
        names = tuple(getattr(model, "feature_names_in_", [f"x{j}" for j in range(count)]))
        schema = Schema(names, ((),) * len(names))
    columns = []
    for j, (name, levels) in enumerate(zip(schema.names, schema.levels, strict=True)):
        phi: MonotoneMap | LookupMap = identity_map(f"column {name!r}")
        if levels:  # x holds codes, the model gets the user's values
            values = np.empty(len(levels) + 2, dtype=object)  # the last two: there is no other value; missing
            values[: len(levels)] = levels
            phi = LookupMap(np.arange(float(len(levels))), values, closed=True)
        columns.append(ModelColumn(j, phi))
    return StepColumns(tuple(columns), names=schema.names)


# -- from the first step to the last ----------------------------------------------------------------------


def _read_steps(
    steps: Sequence[tuple[str, Any]], method: str, columns: StepColumns
) -> tuple[Form, StepColumns]:
    (name, step), *rest = steps
    if not rest:
        return _read_last(step, method, columns)
    expand = _EXPANSIONS.get(qualified_name(type(step)))
    if expand is None:
        return _read_steps(rest, method, _fold_step(name, step, columns))
    return _read_expansion(name, step, expand, rest, method, columns)


def _read_last(step: Any, method: str, columns: StepColumns) -> tuple[Form, StepColumns]:
    """Read the estimator; its reader gets the texts that reach it as levels, and the form their codes."""
    columns = columns.with_guards(*_guards_of(step, columns))
    levels = [_texts(column) for column in columns.columns]
    names = getattr(step, "feature_names_in_", None)
    if names is None and not any(levels):
        return read_form(step, method, None), columns
    labels = range(len(levels)) if names is None or len(names) != len(levels) else names
    form = read_form(step, method, Schema(tuple(map(str, labels)), tuple(levels)))
    coded = [
        column.then(Codebook({v: float(i) for i, v in enumerate(texts)}, np.nan, np.nan)) if texts else column
        for column, texts in zip(columns.columns, levels, strict=True)
    ]
    return form, replace(columns, columns=tuple(coded))


def _texts(column: ModelColumn) -> tuple[Any, ...]:
    """The distinct values of a column that holds more than numbers."""
    if not isinstance(column.map, LookupMap) or column.map.values.dtype.kind != "O":
        return ()
    values = dict.fromkeys(v for v in column.map.values if not is_blank(v))
    return () if all(map(is_number, values)) else tuple(values)


def _read_expansion(
    name: str, step: Any, expand: Expand, rest: Sequence[tuple[str, Any]], method: str, columns: StepColumns
) -> tuple[Form, StepColumns]:
    """Functions of several columns, products or cosines of sums; then scalers and a linear model."""
    kind = type(step).__qualname__
    refuse_replaced_methods(step)
    columns.expect(int(step.n_features_in_))
    columns = columns.with_guards(*_guards_of(step, columns))
    count = len(step.get_feature_names_out())
    outputs = tuple(ModelColumn(t, identity_map()) for t in range(count))
    form, scaled = _read_steps(rest, method, StepColumns(outputs, sparse=columns.sparse))
    form, parts = expand_components(form, scaled.columns, type(rest[-1][1]).__qualname__)
    if isinstance(form, Linked | Softmax):
        raise CannotRead(f"behind {kind} margins are read, not what follows them: output='margin'")
    if not isinstance(form, Linear):
        raise CannotRead(f"behind {kind} linear models are read, not {type(rest[-1][1]).__qualname__}")
    scaling = [part.map.affine for part in parts if isinstance(part.map, MonotoneMap) and part.map.affine]
    if len(scaling) < len(parts):
        raise CannotRead(f"between {kind} and the model scalers are read only")
    linear: Any = behind_scalers(form, scaling, [part.source for part in parts], count)
    try:
        return expand(step, columns, linear)
    except CannotRead as reason:
        raise CannotRead(f"step {name!r} ({kind}): {reason}") from None


_EXPANSIONS: Mapping[str, Expand] = {
    "sklearn.Nystroem": transformers.nystroem,
    "sklearn.PolynomialFeatures": transformers.polynomial_features,
    "sklearn.RBFSampler": transformers.fourier_features,
    "sklearn.SkewedChi2Sampler": transformers.skewed_chi2_features,
}


# -- one step ---------------------------------------------------------------------------------------------


def _fold_step(name: str, step: Any, columns: StepColumns) -> StepColumns:
    if step is None or isinstance(step, str):
        return columns
    try:
        folded = _fold_of(step)(step, columns)
        return folded.with_guards(*columns.guards, *_guards_of(step, columns))
    except CannotRead as reason:
        raise CannotRead(f"step {name!r} ({type(step).__qualname__}): {reason}") from None
    except AttributeError as error:
        raise CannotRead(
            f"step {name!r} ({type(step).__qualname__}): it is not fitted, or fitted by a version of "
            f"scikit-learn that limes does not know ({error})"
        ) from error


def _fold_of(step: Any) -> Fold:
    fold_of_step = _FOLDS.get(qualified_name(type(step)))
    if fold_of_step is not None:
        refuse_replaced_methods(step)
        return fold_of_step
    if qualified_name(type(step)) in VECTORIZERS:
        raise CannotRead(
            "it splits texts into words, and here a text is one category: limes.CompositeExplainer(model, "
            "background) explains the words, beside the other columns"
        )
    for base in type(step).__mro__[1:]:
        if qualified_name(base) in _FOLDS:
            raise CannotRead(f"it is a subclass of {base.__qualname__}, and may do something else")
    raise CannotRead("limes does not know what it does to a single column")


def _nested(step: Any, columns: StepColumns) -> StepColumns:
    for name, inner in step.steps:
        columns = _fold_step(name, inner, columns)
    return columns


def _column_transformer(step: Any, columns: StepColumns) -> StepColumns:
    """Each transformer's columns side by side, in the order of ``transformers_``."""
    inputs = step._transformer_to_input_indices  # noqa: SLF001 - names, slices and masks, resolved
    parts = [(name, part) for name, part, _ in step.transformers_ if part != "drop" and len(inputs[name])]
    positions = _positions(step, columns, [i for name, _ in parts for i in inputs[name]])
    folded = []
    for name, part in parts:
        behind = _fold_part(step, name, part, columns.take([positions[i] for i in inputs[name]]))
        expected = step.output_indices_[name]
        if len(behind.columns) != expected.stop - expected.start:
            raise CannotRead(
                f"{name!r} returns {len(behind.columns)} columns and returned another number in training"
            )
        folded.append(behind)
    return _side_by_side(folded, sparse=bool(step.sparse_output_))


def _positions(step: Any, columns: StepColumns, used: Sequence[int]) -> Mapping[int, int]:
    """Present positions of the columns of the training data: by name where both sides have names."""
    fitted = getattr(step, "feature_names_in_", None)
    if fitted is not None and all(fitted[i] in columns.names for i in used):
        return {i: columns.names.index(fitted[i]) for i in used}
    columns.expect(int(step.n_features_in_))
    return {i: i for i in used}


def _feature_union(step: Any, columns: StepColumns) -> StepColumns:
    parts = [(name, part) for name, part in step.transformer_list if part != "drop"]
    folded = [_fold_part(step, name, part, columns) for name, part in parts]
    return _side_by_side(folded, sparse=any(part.sparse for part in folded))


def _fold_part(step: Any, name: str, part: Any, columns: StepColumns) -> StepColumns:
    """The columns behind one transformer of several, times its weight."""
    folded = _fold_step(name, part, columns)
    weight = (step.transformer_weights or {}).get(name)
    if weight is None:
        return folded
    return transformers.times(float(weight), folded).with_guards(*folded.guards)


def _side_by_side(parts: Sequence[StepColumns], *, sparse: bool) -> StepColumns:
    columns = tuple(column for part in parts for column in part.columns)
    return StepColumns(columns, sparse).with_guards(*(guard for part in parts for guard in part.guards))


_SELECTORS = (
    "GenericUnivariateSelect RFE RFECV SelectFdr SelectFpr SelectFromModel SelectFwe SelectKBest "
    "SelectPercentile SequentialFeatureSelector VarianceThreshold"
)
_FOLDS: Mapping[str, Fold] = {
    "sklearn.Binarizer": transformers.binarizer,
    "sklearn.ColumnTransformer": _column_transformer,
    "sklearn.FeatureUnion": _feature_union,
    "sklearn.FunctionTransformer": transformers.function_transformer,
    "sklearn.KBinsDiscretizer": transformers.k_bins_discretizer,
    "sklearn.MaxAbsScaler": transformers.max_abs_scaler,
    "sklearn.MinMaxScaler": transformers.min_max_scaler,
    "sklearn.MissingIndicator": transformers.missing_indicator,
    "sklearn.OneHotEncoder": transformers.one_hot_encoder,
    "sklearn.OrdinalEncoder": transformers.ordinal_encoder,
    "sklearn.Pipeline": _nested,
    "sklearn.PowerTransformer": transformers.power_transformer,
    "sklearn.QuantileTransformer": transformers.quantile_transformer,
    "sklearn.RobustScaler": transformers.robust_scaler,
    "sklearn.SimpleImputer": transformers.simple_imputer,
    "sklearn.SplineTransformer": transformers.spline_transformer,
    "sklearn.StandardScaler": transformers.standard_scaler,
    "sklearn.TargetEncoder": transformers.target_encoder,
    **{f"sklearn.{name}": transformers.selector for name in _SELECTORS.split()},
    **{f"sklearn.{name}": linear_map for name in LINEAR_MAPS.split()},
}


# -- what a step accepts ---------------------------------------------------------------------------------


# Estimators that pass rows on unchanged, without "Regressor" or "Classifier", and the attribute with those
# that get them
_PASSED_ON_TO = {
    name: attribute
    for attribute, names in {
        "best_estimator_": "GridSearchCV HalvingGridSearchCV HalvingRandomSearchCV RandomizedSearchCV",
        "calibrated_classifiers_": "CalibratedClassifierCV",
        "estimator": "_Calibrated FrozenEstimator",
        "estimators_": "Bagging MultiOutput OneVsRest Stacking Voting",
        "regressor_": "TransformedTarget",
    }.items()
    for name in names.split()
}
# Steps that check no input themselves
_CONTAINERS = ("ColumnTransformer", "FeatureUnion", "Pipeline")
# _INFINITE checks no numbers, and sends infinite ones down its trees; classes of _SINGLE round to float32
# first, and raise where the result is infinite
_INFINITE = "HistGradientBoosting"
_SINGLE = ("DecisionTree", "ExtraTree", "ExtraTrees", "GradientBoosting", "IsolationForest", "RandomForest")


def _guards_of(step: Any, columns: StepColumns) -> tuple[Guard, ...]:
    return tuple(
        Guard(column, each, name)
        for each, name in _accepted(step, sparse=columns.sparse)
        for column in columns.columns
        if not _texts(column)
    )


def _accepted(step: Any, *, sparse: bool) -> Sequence[tuple[Accepted, str]]:
    """The values that a step accepts in any column, by its tags, with the class that checks them."""
    kind = type(step)
    name = kind.__qualname__
    if kind.__module__.split(".")[0] != "sklearn" or name in _CONTAINERS:
        return ()
    family = name.removesuffix("Classifier").removesuffix("Regressor")
    if family in _PASSED_ON_TO:
        parts = getattr(step, _PASSED_ON_TO[family])
        parts = parts if isinstance(parts, list) else [parts]
        accepted = (pair for part in parts for pair in _accepted(part, sparse=sparse))
        return tuple(dict.fromkeys(accepted))
    from sklearn.utils import get_tags

    tags = get_tags(step)
    if tags.no_validation:
        return ()
    if family == _INFINITE:
        return ((EVERYTHING, name),)
    missing = bool(tags.input_tags.allow_nan)
    if family in _SINGLE:
        return ((Accepted(missing and not sparse, -LARGEST_SINGLE, LARGEST_SINGLE), name),)
    return ((Accepted(missing), name),)
