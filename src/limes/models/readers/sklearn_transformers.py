"""Transformers of scikit-learn, as operations on columns.

A *fold* maps a fitted transformer and its input columns, each a function of one column of the user's, to its
output columns. Expansions are functions of several columns before a linear model: products of two columns
make it quadratic, random Fourier features a sum of cosines of sums, Nystroem's a kernel machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats
from limes._functions import LARGEST
from limes.exceptions import InputError
from limes.models._feature_maps import (
    Affine,
    Codebook,
    CurveMap,
    ModelColumn,
    MonotoneMap,
    Operation,
    StepMap,
    Values,
    centered_map,
    identity_map,
    is_blank,
    is_missing,
    is_number,
    numbers,
    scaling_map,
)
from limes.models._folding import Accepted, Component, Guard, LinearMap
from limes.models._reading import CannotRead, dense
from limes.models.forms._base import Form, Linear, from_polynomial_features
from limes.models.forms._linked import Ridges
from limes.models.readers.sklearn_linear import machine_form


@dataclass(frozen=True, eq=False)
class StepColumns:
    """The columns between two steps of a pipeline."""

    columns: tuple[ModelColumn, ...]
    sparse: bool = False  # a sparse matrix, which some transformers scale in another way
    names: tuple[str, ...] = ()  # of the user's columns; () behind the first step
    guards: tuple[Guard, ...] = ()  # of the values that the steps so far accept

    def with_guards(self, *guards: Guard) -> StepColumns:
        """Add guards; duplicates count once."""
        return replace(self, guards=tuple(dict.fromkeys((*self.guards, *guards))))

    def each(self, operations: Sequence[Operation]) -> StepColumns:
        self.expect(len(operations))
        pairs = zip(self.columns, operations, strict=True)
        return StepColumns(tuple(c.then(o) for c, o in pairs), self.sparse)

    def every(self, operation: Operation) -> StepColumns:
        return self.each([operation] * len(self.columns))

    def take(self, positions: Sequence[int]) -> StepColumns:
        names = tuple(self.names[i] for i in positions) if self.names else ()
        return StepColumns(tuple(self.columns[i] for i in positions), self.sparse, names)

    def expect(self, count: int) -> None:
        if len(self.columns) != count:
            raise CannotRead(f"it was fitted on {count} columns and gets {len(self.columns)}")

    def refuse_sparse(self) -> None:
        if self.sparse:
            raise CannotRead("its input is a sparse matrix; use sparse_output=False in the step before")


# (fitted transformer, input columns) -> output columns
Fold = Callable[[Any, StepColumns], StepColumns]


# -- scalers ----------------------------------------------------------------------------------------------


def standard_scaler(step: Any, columns: StepColumns) -> StepColumns:
    """(x - mean) / scale."""
    return _centered(step, columns, step.mean_ if step.with_mean else 0.0, step.scale_)


def robust_scaler(step: Any, columns: StepColumns) -> StepColumns:
    """(x - center) / scale."""
    center = step.center_ if step.with_centering else 0.0
    return _centered(step, columns, center, step.scale_ if step.with_scaling else None)


def max_abs_scaler(step: Any, columns: StepColumns) -> StepColumns:
    """The step x / scale."""
    scaled = _centered(step, columns, 0.0, step.scale_)
    return _clipped(scaled, -1.0, 1.0) if getattr(step, "clip", False) else scaled


def _centered(step: Any, columns: StepColumns, center: Any, scale: Any) -> StepColumns:
    width = (int(step.n_features_in_),)
    scales = np.broadcast_to(1.0 if scale is None else scale, width).tolist()
    if columns.sparse:  # a sparse matrix is multiplied by 1 / scale, which may round differently
        return columns.each([_multiplied(1.0 / s) for s in scales])
    return columns.each(list(map(centered_map, np.broadcast_to(center, width).tolist(), scales)))


def _multiplied(factor: float) -> MonotoneMap:
    return scaling_map(lambda x: x * factor, Affine(factor))


def min_max_scaler(step: Any, columns: StepColumns) -> StepColumns:
    """The step x * scale + min."""
    low, high = map(float, step.feature_range)

    def scaling(scale: float, shift: float, lowest: float) -> Operation:
        return scaling_map(lambda x: x * scale + shift, Affine(scale, lowest, low))

    attributes = (np.asarray(values).tolist() for values in (step.scale_, step.min_, step.data_min_))
    scaled = columns.each(list(map(scaling, *attributes)))
    return _clipped(scaled, low, high) if step.clip else scaled


def times(weight: float, columns: StepColumns) -> StepColumns:
    """Multiply by the weight of a transformer in a union."""
    return columns.every(_multiplied(weight))


def _clipped(columns: StepColumns, low: float, high: float) -> StepColumns:
    return columns.every(MonotoneMap(lambda v: np.clip(numbers(v), low, high), kinks=(low, high)))


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
    flag: Operation = StepMap(np.zeros(0), np.zeros(1), 1.0)
    if not is_blank(step.missing_values):
        flag = partial(_equal, step.missing_values)
    flags = columns.take(step.features_.tolist()).every(flag)
    return replace(flags, sparse=bool(step.sparse is True))


def _fill(fill: Any, token: Any) -> Operation:
    """Replace missing values; None, NaN and pandas.NA are one."""
    if not is_blank(token):
        return lambda values: _replace(values, _equal(token, values) > 0, fill)
    return MonotoneMap(lambda v: _replace(v, is_missing(v), fill), Affine(1.0), plain=True, kinks=())


def _replace(values: Values, mask: Bools, fill: Any) -> Values:
    filled = values.copy() if is_number(fill) else values.astype(object)
    filled[mask] = fill
    return filled


def _equal(token: Any, values: Values) -> Floats:
    return np.array([bool(value == token) for value in values], dtype=np.float64)


# -- choices of columns, and one function for all of them --------------------------------------------------


def selector(step: Any, columns: StepColumns) -> StepColumns:
    """Keep the selected columns."""
    support = step.get_support()
    columns.expect(support.size)
    return replace(columns.take(np.flatnonzero(support).tolist()), names=())


def binarizer(step: Any, columns: StepColumns) -> StepColumns:
    """1 above the threshold."""
    return columns.every(StepMap(np.array([float(step.threshold)]), np.array([0.0, 1.0]), np.nan))


# Rising functions of numpy, and the start of their domain
_RISING = dict.fromkeys(("log", "log2", "log10", "log1p", "sqrt"), 0.0) | {"log1p": -1.0}
_RISING |= dict.fromkeys(("exp", "exp2", "expm1", "arcsinh", "arctan", "cbrt", "sinh", "tanh"), -np.inf)
# Other functions; those that are even and rise with x > 0; and those of both kinds that are not smooth at 0
_NON_MONOTONE = ["absolute", "fabs", "square", "cosh", "cos", "sin"]
_EVEN = ("absolute", "fabs", "square")
_KINKED = ("absolute", "cbrt", "fabs")
_OTHERS: Mapping[str, Operation] = {
    "negative": MonotoneMap(lambda values: -numbers(values), Affine(-1.0), falling=True, kinks=()),
    "sign": StepMap(np.array([np.nextafter(0.0, -1.0), 0.0]), np.array([-1.0, 0.0, 1.0]), np.nan),
    "isnan": StepMap(np.zeros(0), np.zeros(1), 1.0),
}


def function_transformer(step: Any, columns: StepColumns) -> StepColumns:
    """A transformer without a function, or with one of numpy's."""
    function = step.func
    if function is None:
        return columns
    name = getattr(function, "__name__", type(function).__name__)
    read = (*_RISING, *_NON_MONOTONE, *_OTHERS)
    if name not in read or function is not getattr(np, name) or step.kw_args:
        raise CannotRead(
            f"limes does not know what the function {name!r} does to a column; it reads numpy's own "
            f"{', '.join(read)}"
        )
    columns.refuse_sparse()
    label, kinks = f"FunctionTransformer({name})", (0.0,) if name in _KINKED else ()
    if name in _OTHERS:
        return columns.every(_OTHERS[name])
    if name in _RISING:
        start = _RISING[name]
        return columns.every(
            MonotoneMap(lambda values: function(numbers(values)), start=start, kinks=kinks, name=label)
        )
    even = name in _EVEN
    return columns.every(CurveMap(lambda x: function(x)[None, :], kinks=kinks, even=even, name=label))


# -- calling a transformer itself --------------------------------------------------------------------------


def _plain_copy(step: Any, **state: Any) -> Any:
    """Copy a fitted transformer without its column names, and with other attributes."""
    plain = copy(step)
    plain.__dict__.pop("feature_names_in_", None)
    plain.__dict__.pop("_sklearn_output_config", None)
    vars(plain).update(state)
    return plain


LINEAR_MAPS = (
    "FactorAnalysis FastICA GaussianRandomProjection IncrementalPCA LinearDiscriminantAnalysis PCA "
    "SparseRandomProjection TruncatedSVD"
)
# Rows of one call of a step
_BLOCK = 1000


def linear_map(step: Any, columns: StepColumns) -> StepColumns:
    """Shift + matrix @ x, from the step's own output at 0 and at the unit vectors."""
    columns.expect(int(step.n_features_in_))
    plain, width = _plain_copy(step), len(columns.columns)
    shift = dense(plain.transform(np.zeros((1, width))))[0]
    units = [np.eye(min(_BLOCK, width - i), width, i) for i in range(0, width, _BLOCK)]
    matrix = np.concatenate([dense(plain.transform(block)) - shift for block in units]).T
    mixing = LinearMap(columns.columns, matrix, shift, type(step).__qualname__)
    return StepColumns(tuple(Component(k, identity_map(), mixing) for k in range(shift.size)))


def power_transformer(step: Any, columns: StepColumns) -> StepColumns:
    """Yeo-Johnson or Box-Cox, as the transformer computes it, one column at a time."""
    columns.refuse_sparse()
    columns.expect(int(step.n_features_in_))
    boxcox = step.method == "box-cox"
    start = float(np.nextafter(0.0, 1.0)) if boxcox else -np.inf
    label = f"PowerTransformer({step.method})"

    def powers(lambdas: Floats) -> MonotoneMap:
        # standardised below: the transformer's scaler refuses the infinity that a huge number may become
        one = _plain_copy(step, lambdas_=lambdas, standardize=False, n_features_in_=1)
        outputs = _Transformed(one, start)
        kinks = () if boxcox else (0.0,)
        return MonotoneMap(lambda values: outputs(numbers(values))[0], start=start, kinks=kinks, name=label)

    powered = columns.each([powers(step.lambdas_[j : j + 1]) for j in range(step.n_features_in_)])
    if boxcox:
        positive = Accepted(missing=True, lower=start)
        powered = powered.with_guards(*(Guard(column, positive, label) for column in columns.columns))
    if not step.standardize:
        return powered
    return standard_scaler(step._scaler, powered).with_guards(*powered.guards)  # noqa: SLF001


class _Transformed:
    """The outputs of a transformer of one column, (n,) -> (K, n); NaN where it raises."""

    def __init__(
        self, step: Any, low: float, high: float = np.inf, count: int = 1, missing: float = np.nan
    ) -> None:
        self._step, self._count, self._missing = step, count, missing
        self.low, self.high = low, high

    def __call__(self, x: Floats) -> Floats:
        outputs = np.where(np.isnan(x), self._missing, np.full((self._count, x.size), np.nan))
        valid = (x >= self.low) & (x <= self.high)
        if valid.any():
            outputs[:, valid] = np.asarray(self._step.transform(x[valid][:, None]), dtype=np.float64).T
        return outputs


# scikit-learn's: this close to the ends of the ranks a normal output jumps to its smallest or largest value
_BOUNDS_THRESHOLD = 1e-7


def quantile_transformer(step: Any, columns: StepColumns) -> StepColumns:
    """Ranks, as the transformer computes them, one column at a time."""
    columns.refuse_sparse()
    of_column, normal = step._transform_col, step.output_distribution == "normal"  # noqa: SLF001 - transform also checks its input

    def ranks(quantiles: Floats) -> MonotoneMap:
        ends = quantiles[[0, -1]] + np.array([_BOUNDS_THRESHOLD, -_BOUNDS_THRESHOLD])
        kinks = np.unique(np.concatenate([quantiles, ends if normal else []]))
        return MonotoneMap(
            lambda values: np.asarray(of_column(numbers(values).copy(), quantiles, False)),
            kinks=tuple(kinks.tolist()),
            name="QuantileTransformer",
        )

    return columns.each([ranks(np.array(quantiles)) for quantiles in step.quantiles_.T])


# Periods on both sides of the first whose knots are breaks of the quadrature
_PERIODS = 20


def spline_transformer(step: Any, columns: StepColumns) -> StepColumns:
    """B-splines of each column, as the transformer computes them."""
    columns.expect(int(step.n_features_in_))
    outputs: list[ModelColumn] = []
    guards: list[Guard] = []
    for column, spline in zip(columns.columns, step.bsplines_, strict=True):
        count = spline.c.shape[1] - (not step.include_bias)
        one = _plain_copy(
            step, bsplines_=[spline], n_features_in_=1, n_features_out_=count, sparse_output=False
        )
        first, last = float(spline.t[spline.k]), float(spline.t[-spline.k - 1])
        knots = np.unique(spline.t)
        if step.extrapolation == "periodic":
            turns = np.arange(-_PERIODS, _PERIODS + 1) * (last - first)
            knots = np.unique(knots[(first <= knots) & (knots <= last)] + turns[:, None])
        low, high = -LARGEST, LARGEST  # infinite numbers are refused
        if step.extrapolation == "error":
            low, high = first, last
            within = Accepted(missing=True, lower=low, upper=high)
            guards.append(Guard(column, within, "SplineTransformer(extrapolation='error')"))
        missing = 0.0 if getattr(step, "handle_missing", "error") == "zeros" else np.nan
        basis = _Transformed(one, low, high, count, missing)
        # the splines of one column share the basis
        curves = [CurveMap(basis, k, tuple(knots.tolist()), name="SplineTransformer") for k in range(count)]
        outputs += map(column.then, curves)
    return StepColumns(tuple(outputs), bool(step.sparse_output)).with_guards(*guards)


# -- encoders and bins -----------------------------------------------------------------------------------


# The slot of a category without a column
_NOWHERE = -1.0


@dataclass(frozen=True)
class _Categories:
    """Categories of one column in their order, and the position of the missing value among them, if any."""

    values: list[Any]
    missing: int | None

    @classmethod
    def from_array(cls, categories: Any) -> _Categories:
        values = np.asarray(categories).tolist()
        blank = [i for i, value in enumerate(values) if is_blank(value)]
        if len(blank) > 1:
            raise CannotRead(
                "it distinguishes None from NaN in one column, and limes takes both as missing; use one of "
                "them"
            )
        return cls(values, blank[0] if blank else None)

    def codebook(self, codes: Sequence[float], *, other: float | None) -> Codebook:
        """A code for each category; a missing value that is not among them counts as any other value."""
        by_value = {
            v: float(c) for i, (v, c) in enumerate(zip(self.values, codes, strict=True)) if i != self.missing
        }
        return Codebook(by_value, other if self.missing is None else float(codes[self.missing]), other)

    def grouped(self, infrequent: Any, left_out: int | None = None) -> list[float]:
        """0, 1, ... for frequent categories in their order, the next number for all infrequent ones."""
        # ``left_out`` is the position of a category without a number.
        values = [] if infrequent is None else np.asarray(infrequent).tolist()
        has_missing = self.missing is not None
        rare = {self.missing if has_missing and is_blank(v) else self.values.index(v) for v in values}
        frequent = [i for i in range(len(self.values)) if i not in rare and i != left_out]
        code = {position: float(number) for number, position in enumerate(frequent)}
        return [code.get(i, float(len(frequent))) for i in range(len(self.values))]


def one_hot_encoder(step: Any, columns: StepColumns) -> StepColumns:
    """A column for each category that is neither dropped nor in the common column of infrequent ones."""
    columns.expect(len(step.categories_))
    dropped = [None] * len(step.categories_) if step.drop_idx_ is None else step.drop_idx_
    outputs: list[ModelColumn] = []
    for column, values, rare, drop in zip(
        columns.columns, step.categories_, _infrequent(step), dropped, strict=True
    ):
        categories = _Categories.from_array(values)
        slots = categories.grouped(rare)
        shared = _NOWHERE if rare is None else max(slots)
        choices = {"error": None, "ignore": _NOWHERE, "infrequent_if_exist": shared, "warn": shared}
        unknown = _look_up(choices, step.handle_unknown)
        if drop is not None:
            dropped_slot = slots[int(drop)]
            unknown = None if unknown is None else _without(unknown, dropped_slot)
            slots = [_without(slot, dropped_slot) for slot in slots]
        outputs += _flags(column.then(categories.codebook(slots, other=unknown)), int(max(slots)) + 1)
    return StepColumns(tuple(outputs), bool(step.sparse_output))


def _without(slot: float, dropped: float) -> float:
    return _NOWHERE if slot == dropped else slot - (slot > dropped)


def _flags(column: ModelColumn, count: int) -> list[ModelColumn]:
    """One column for each slot: 1 in it, 0 elsewhere."""
    return [column.then(partial(_is_slot, slot)) for slot in range(count)]


def _is_slot(slot: int, values: Values) -> Values:
    x = numbers(values)
    flags: Values = x == slot
    undefined = np.isnan(x)
    return np.where(undefined, np.nan, flags) if undefined.any() else flags


def ordinal_encoder(step: Any, columns: StepColumns) -> StepColumns:
    """The number of a category; separate codes for NaN and for unknown categories."""
    unknown = _look_up({"error": None, "use_encoded_value": step.unknown_value}, step.handle_unknown)
    codebooks = []
    for values, rare in zip(step.categories_, _infrequent(step), strict=True):
        categories = _Categories.from_array(values)
        missing = categories.missing if categories.missing is not None and values[-1] is not None else None
        codes = categories.grouped(rare, left_out=missing)
        if missing is not None:
            codes[missing] = float(step.encoded_missing_value)
        codebooks.append(categories.codebook(codes, other=None if unknown is None else float(unknown)))
    return StepColumns(columns.each(codebooks).columns)


def target_encoder(step: Any, columns: StepColumns) -> StepColumns:
    """The mean target of a category, or of all rows if unknown; a column for each of several classes."""
    columns.expect(len(step.categories_))
    unknown = np.atleast_1d(np.asarray(step.target_mean_, dtype=np.float64))
    outputs = []
    for j, (column, values) in enumerate(zip(columns.columns, step.categories_, strict=True)):
        categories = _Categories.from_array(values)
        for k, mean in enumerate(unknown):
            codes = step.encodings_[j * unknown.size + k].tolist()
            outputs.append(column.then(categories.codebook(codes, other=float(mean))))
    return StepColumns(tuple(outputs))


def k_bins_discretizer(step: Any, columns: StepColumns) -> StepColumns:
    """The bin [edge, next edge) of a number, or a column for each bin."""
    single = MonotoneMap(lambda values: numbers(values).astype(np.float32).astype(np.float64))
    outputs: list[ModelColumn] = []
    columns.expect(len(step.bin_edges_))
    for column, edges, count in zip(columns.columns, step.bin_edges_, step.n_bins_.tolist(), strict=True):
        inner = np.asarray(edges[1:-1], dtype=np.float64)
        bins = StepMap(np.nextafter(inner, -np.inf), np.arange(inner.size + 1.0), np.nan)
        binned = (column.then(single) if step.dtype is np.float32 else column).then(bins)
        outputs += [binned] if step.encode == "ordinal" else _flags(binned, count)
    return StepColumns(tuple(outputs), step.encode == "onehot")


def _infrequent(step: Any) -> Sequence[Any]:
    if step.min_frequency is None and step.max_categories is None:
        return [None] * len(step.categories_)
    rare: Sequence[Any] = step.infrequent_categories_
    return rare


def _look_up(choices: Mapping[str, Any], choice: str) -> Any:
    if choice not in choices:
        raise CannotRead(f"limes does not know handle_unknown={choice!r}")
    return choices[choice]


# -- functions of several columns, before linear models --------------------------------------------------


# (fitted transformer, input columns, linear form over its outputs) -> form over its columns, and these
Expand = Callable[[Any, StepColumns, Linear], tuple[Form, StepColumns]]


def polynomial_features(step: Any, columns: StepColumns, form: Linear) -> tuple[Form, StepColumns]:
    """Products of two columns, squares, and columns."""
    try:
        return from_polynomial_features(np.asarray(step.powers_), form.coef, form.intercept), columns
    except InputError as error:
        raise CannotRead(f"PolynomialFeatures of degree 2 is read: {error}") from error


def fourier_features(step: Any, columns: StepColumns, form: Linear) -> tuple[Form, StepColumns]:
    """√(2/m) cos(w_h·x + b_h)."""
    scale = np.sqrt(2.0 / step.n_components)
    weights, offsets = np.asarray(step.random_weights_), np.asarray(step.random_offset_)
    return Ridges(weights.T, offsets, scale * form.coef, "cos", form.intercept), columns


def skewed_chi2_features(step: Any, columns: StepColumns, form: Linear) -> tuple[Form, StepColumns]:
    """√(2/m) cos(w_h·log(x + skewedness) + b_h); the transformer raises from -skewedness downwards."""
    columns.refuse_sparse()
    skewedness = float(step.skewedness)
    start = float(np.nextafter(-skewedness, np.inf))
    label = type(step).__qualname__
    log = MonotoneMap(
        lambda values: np.asarray(np.log(numbers(values) + skewedness)), start=start, kinks=(), name=label
    )
    guards = (Guard(column, Accepted(lower=start), label) for column in columns.columns)
    return fourier_features(step, columns.every(log).with_guards(*columns.guards, *guards), form)


def nystroem(step: Any, columns: StepColumns, form: Linear) -> tuple[Form, StepColumns]:
    """K(x, components) normalizationᵀ: a kernel machine with the components as centers."""
    if step.kernel_params:
        raise CannotRead("kernel_params= is for kernels that limes does not read")
    coef = np.asarray(step.normalization_, dtype=np.float64).T @ form.coef
    return machine_form(step, step.components_, coef, form.intercept, step.gamma), columns
