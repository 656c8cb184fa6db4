"""Transformers of scikit-learn, as operations on columns.

A *fold* maps a fitted transformer and its input columns, each a function of one column of the user's, to its
output columns. Only the exact class counts: a subclass may do something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats
from limes.models._folding.components import Component, LinearMap
from limes.models._folding.feature_maps import (
    Affine,
    MonotoneMap,
    StepMap,
    Values,
    identity_map,
    is_blank,
    is_missing,
    is_number,
    numbers,
)
from limes.models._folding.guards import Guard
from limes.models._folding.operations import ModelColumn, Operation, Pointwise
from limes.models._reading import CannotRead


@dataclass(frozen=True, eq=False)
class StepColumns:
    """The columns between two steps of a pipeline.

    Attributes
    ----------
    columns
        The columns, in order.
    sparse
        Whether they are a sparse matrix, which some transformers scale in another way.
    names
        Names of the user's columns; () behind the first step.
    guards
        Guards of the values that the steps so far accept.
    """

    columns: tuple[ModelColumn, ...]
    sparse: bool = False
    names: tuple[str, ...] = ()
    guards: tuple[Guard, ...] = ()

    def with_guards(self, *guards: Guard) -> StepColumns:
        """Add guards; duplicates count once."""
        return replace(self, guards=tuple(dict.fromkeys((*self.guards, *guards))))

    def each(self, operations: Sequence[Operation]) -> StepColumns:
        """Apply one operation to each column."""
        self.expect(len(operations))
        pairs = zip(self.columns, operations, strict=True)
        return StepColumns(tuple(c.then(o) for c, o in pairs), self.sparse)

    def take(self, positions: Sequence[int]) -> StepColumns:
        """Select columns, with their names."""
        names = tuple(self.names[i] for i in positions) if self.names else ()
        return StepColumns(tuple(self.columns[i] for i in positions), self.sparse, names)

    def expect(self, count: int) -> None:
        """Raise unless there are ``count`` columns."""
        if len(self.columns) != count:
            raise CannotRead(f"it was fitted on {count} columns and gets {len(self.columns)}")


# (fitted transformer, input columns) -> output columns
Fold = Callable[[Any, StepColumns], StepColumns]


# -- scalers ----------------------------------------------------------------------------------------------


def standard_scaler(step: Any, columns: StepColumns) -> StepColumns:
    """(x - mean) / scale."""
    width = int(step.n_features_in_)
    center = _constants(step.mean_ if step.with_mean else 0.0, width)
    return columns.each(_centered(center, _constants(step.scale_, width, 1.0), sparse=columns.sparse))


def robust_scaler(step: Any, columns: StepColumns) -> StepColumns:
    """(x - center) / scale."""
    width = int(step.n_features_in_)
    center = _constants(step.center_ if step.with_centering else 0.0, width)
    scale = _constants(step.scale_ if step.with_scaling else 1.0, width)
    return columns.each(_centered(center, scale, sparse=columns.sparse))


def max_abs_scaler(step: Any, columns: StepColumns) -> StepColumns:
    """The step x / scale."""
    width = int(step.n_features_in_)
    scaled = columns.each(_centered(np.zeros(width), _constants(step.scale_, width), sparse=columns.sparse))
    return _clipped(scaled, -1.0, 1.0) if getattr(step, "clip", False) else scaled


def min_max_scaler(step: Any, columns: StepColumns) -> StepColumns:
    """The step x * scale + min."""
    low, high = map(float, step.feature_range)

    def scaling(scale: float, shift: float, lowest: float) -> Operation:
        return _scaling(lambda x: x * scale + shift, Affine(scale, lowest, low))

    attributes = map(_listed, (step.scale_, step.min_, step.data_min_))
    scaled = columns.each([scaling(*values) for values in zip(*attributes, strict=True)])
    return _clipped(scaled, low, high) if step.clip else scaled


def times(weight: float, columns: StepColumns) -> StepColumns:
    """Multiply by the weight of a transformer in a union."""
    return columns.each([_scaling(lambda x: x * weight, Affine(weight))] * len(columns.columns))


def _centered(center: Floats, scale: Floats, *, sparse: bool) -> list[Operation]:
    """(x - center) / scale; a sparse matrix is multiplied by 1 / scale, which may round differently."""

    def scaling(c: float, s: float) -> Operation:
        if sparse:
            inverse = 1.0 / s
            return _scaling(lambda x: x * inverse, Affine(1.0 / s))
        return _scaling(lambda x: (x - c) / s, Affine(1.0 / s, c))

    return [scaling(c, s) for c, s in zip(_listed(center), _listed(scale), strict=True)]


def _scaling(apply: Callable[[Floats], Floats], affine: Affine) -> MonotoneMap:
    if not (np.isfinite(affine.slope) and affine.slope != 0.0):
        raise CannotRead(f"it multiplies a column by {affine.slope}")
    return MonotoneMap(lambda v: apply(numbers(v)), affine, falling=affine.slope < 0, kinks=())


def _clipped(columns: StepColumns, low: float, high: float) -> StepColumns:
    clip = MonotoneMap(lambda v: np.clip(numbers(v), low, high), kinks=(low, high))
    return columns.each([clip] * len(columns.columns))


def _constants(values: Any, width: int, default: float = 0.0) -> Floats:
    if values is None:
        values = default
    return np.broadcast_to(np.asarray(values, dtype=np.float64), (width,))


def _listed(values: Any) -> list[float]:
    return [float(v) for v in np.asarray(values)]


# -- missing values ---------------------------------------------------------------------------------------


def simple_imputer(step: Any, columns: StepColumns) -> StepColumns:
    """Replace missing values by a constant; columns without any value in training are dropped."""
    fills = np.asarray(step.statistics_)
    columns.expect(fills.size)
    empty = is_missing(fills)
    kept = [j for j in range(fills.size) if step.keep_empty_features or not empty[j]]
    dtype = getattr(step, "_fill_dtype", fills.dtype)  # the imputer casts the constants to it
    filling = [_fill(fill, step.missing_values) for fill in fills[kept].astype(dtype).tolist()]
    imputed = columns.take(kept).each(filling)
    if step.indicator_ is None:
        return imputed
    flags = missing_indicator(step.indicator_, columns)
    return StepColumns(imputed.columns + flags.columns, columns.sparse)


def missing_indicator(step: Any, columns: StepColumns) -> StepColumns:
    """1 where a value is missing."""
    token = step.missing_values
    flag: Operation = StepMap(np.zeros(0), np.zeros(1), 1.0)
    if not is_blank(token):
        flag = Pointwise(lambda values: _equal(values, token).astype(np.float64))
    chosen = columns.take(step.features_.tolist())
    return replace(chosen.each([flag] * len(chosen.columns)), sparse=bool(step.sparse is True))


def _fill(fill: Any, token: Any) -> Operation:
    """Replace missing values; None, NaN and pandas.NA are one."""
    if not is_blank(token):
        return Pointwise(lambda values: _replace(values, _equal(values, token), fill))
    return MonotoneMap(lambda v: _replace(v, is_missing(v), fill), Affine(1.0), plain=True, kinks=())


def _replace(values: Values, mask: Bools, fill: Any) -> Values:
    filled = values.copy() if is_number(fill) else values.astype(object)
    filled[mask] = fill
    return filled


def _equal(values: Values, token: Any) -> Bools:
    return np.array([bool(value == token) for value in values], dtype=np.bool_)


# -- one function for all columns -------------------------------------------------------------------------


def binarizer(step: Any, columns: StepColumns) -> StepColumns:
    """1 above the threshold."""
    jump = StepMap(np.array([float(step.threshold)]), np.array([0.0, 1.0]), np.nan)
    return columns.each([jump] * len(columns.columns))


def refuse_sparse(columns: StepColumns) -> None:
    """Refuse a sparse matrix."""
    if columns.sparse:
        raise CannotRead("its input is a sparse matrix; use sparse_output=False in the step before")


# -- selecting columns -------------------------------------------------------------------------------------


def selector(step: Any, columns: StepColumns) -> StepColumns:
    """Keep the selected columns."""
    support = step.get_support()
    columns.expect(support.size)
    return replace(columns.take(np.flatnonzero(support).tolist()), names=())


# -- calling a transformer itself --------------------------------------------------------------------------


def plain_copy(step: Any, **state: Any) -> Any:
    """Copy a fitted transformer without its column names, and with other attributes."""
    plain = copy(step)
    plain.__dict__.pop("feature_names_in_", None)
    plain.__dict__.pop("_sklearn_output_config", None)
    vars(plain).update(state)
    return plain


# -- weighted sums of columns ----------------------------------------------------------------------------


LINEAR_MAPS = (
    "FactorAnalysis",
    "FastICA",
    "GaussianRandomProjection",
    "IncrementalPCA",
    "LinearDiscriminantAnalysis",
    "PCA",
    "SparseRandomProjection",
    "TruncatedSVD",
)
# Rows of one call of a step
_BLOCK = 1000


def linear_map(step: Any, columns: StepColumns) -> StepColumns:
    """Shift + matrix @ x, from the step's own output at 0 and at the unit vectors."""
    columns.expect(int(step.n_features_in_))
    plain, width = plain_copy(step), len(columns.columns)
    shift = _transform(plain, np.zeros((1, width)))[0]
    units = [np.eye(min(_BLOCK, width - i), width, i) for i in range(0, width, _BLOCK)]
    matrix = np.concatenate([_transform(plain, block) - shift for block in units]).T
    mixing = LinearMap(columns.columns, matrix, shift, type(step).__qualname__)
    return StepColumns(tuple(Component(k, identity_map(), mixing) for k in range(shift.size)))


def _transform(step: Any, rows: Floats) -> Floats:
    output = step.transform(rows)
    return np.asarray(output.toarray() if hasattr(output, "toarray") else output, dtype=np.float64)
