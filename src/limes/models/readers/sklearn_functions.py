"""Transformers of scikit-learn that compute a function of each column: numpy's, powers, ranks, splines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models._folding.feature_maps import Affine, CurveMap, MonotoneMap, StepMap, Values, numbers
from limes.models._folding.guards import Accepted, Guard
from limes.models._folding.operations import ModelColumn, Operation
from limes.models._reading import CannotRead
from limes.models.readers.sklearn_transformers import StepColumns, plain_copy, refuse_sparse, standard_scaler

# -- functions of numpy -----------------------------------------------------------------------------------

# Rising functions: the start of their domain, and where they are not smooth
_RISING: Mapping[str, tuple[float, tuple[float, ...]]] = {
    "log": (0.0, ()),
    "log2": (0.0, ()),
    "log10": (0.0, ()),
    "log1p": (-1.0, ()),
    "sqrt": (0.0, ()),
    "exp": (-np.inf, ()),
    "exp2": (-np.inf, ()),
    "expm1": (-np.inf, ()),
    "arcsinh": (-np.inf, ()),
    "arctan": (-np.inf, ()),
    "cbrt": (-np.inf, (0.0,)),
    "sinh": (-np.inf, ()),
    "tanh": (-np.inf, ()),
}
# Other functions: where they are not smooth, and whether they are even and rise with x > 0
_NON_MONOTONE: Mapping[str, tuple[tuple[float, ...], bool]] = {
    "absolute": ((0.0,), True),
    "fabs": ((0.0,), True),
    "square": ((), True),
    "cosh": ((), False),
    "cos": ((), False),
    "sin": ((), False),
}
_OTHERS: Mapping[str, Operation] = {
    "negative": MonotoneMap(lambda values: -numbers(values), Affine(-1.0), falling=True, kinks=()),
    "sign": StepMap(np.array([np.nextafter(0.0, -1.0), 0.0]), np.array([-1.0, 0.0, 1.0]), np.nan),
    "isnan": StepMap(np.zeros(0), np.zeros(1), 1.0),
}


def function_transformer(step: Any, columns: StepColumns) -> StepColumns:
    """A transformer without a function, or with one of numpy's."""
    if step.func is None:
        return columns
    name = getattr(step.func, "__name__", type(step.func).__name__)
    if step.func is not getattr(np, name, None) or step.kw_args:
        raise CannotRead(_unknown(name))
    refuse_sparse(columns)
    return columns.each([_operation(name, step.func)] * len(columns.columns))


def _operation(name: str, function: Any) -> Operation:
    label = f"FunctionTransformer({name})"
    if name in _RISING:
        start, kinks = _RISING[name]
        return MonotoneMap(lambda values: function(numbers(values)), start=start, kinks=kinks, name=label)
    if name in _NON_MONOTONE:
        kinks, even = _NON_MONOTONE[name]
        return CurveMap(lambda values: function(values)[None, :], kinks=kinks, even=even, name=label)
    if name in _OTHERS:
        return _OTHERS[name]
    raise CannotRead(_unknown(name))


def _unknown(name: str) -> str:
    return (
        f"limes does not know what the function {name!r} does to a column; it reads numpy's own "
        f"{', '.join((*_RISING, *_NON_MONOTONE, *_OTHERS))}"
    )


# -- powers and ranks -------------------------------------------------------------------------------------


def power_transformer(step: Any, columns: StepColumns) -> StepColumns:
    """Yeo-Johnson or Box-Cox, as the transformer computes it, one column at a time."""
    refuse_sparse(columns)
    columns.expect(int(step.n_features_in_))
    boxcox = step.method == "box-cox"
    start = float(np.nextafter(0.0, 1.0)) if boxcox else -np.inf
    label = f"PowerTransformer({step.method})"
    operations = []
    for j in range(step.n_features_in_):
        # standardised below: the transformer's scaler refuses the infinity that a huge number may become
        one = plain_copy(step, lambdas_=step.lambdas_[j : j + 1], standardize=False, n_features_in_=1)
        kinks = () if boxcox else (0.0,)
        operations.append(MonotoneMap(_Powers(one, start), start=start, kinks=kinks, name=label))
    powered = columns.each(operations)
    if boxcox:
        positive = Accepted(missing=True, lower=start)
        powered = powered.with_guards(*(Guard(column, positive, label) for column in columns.columns))
    if not step.standardize:
        return powered
    return standard_scaler(step._scaler, powered).with_guards(*powered.guards)  # noqa: SLF001


class _Powers:
    """The output of a power transformer of one column; NaN below its start, where it raises."""

    def __init__(self, step: Any, start: float) -> None:
        self._step, self._start = step, start

    def __call__(self, values: Values) -> Floats:
        x = numbers(values)
        powers = np.full(x.shape, np.nan)
        valid = x >= self._start
        if valid.any():
            powers[valid] = np.asarray(self._step.transform(x[valid][:, None]), dtype=np.float64)[:, 0]
        return powers


# scikit-learn's: this close to the ends of the ranks a normal output jumps to its smallest or largest value
_BOUNDS_THRESHOLD = 1e-7


def quantile_transformer(step: Any, columns: StepColumns) -> StepColumns:
    """Ranks, as the transformer computes them, one column at a time."""
    refuse_sparse(columns)
    of_column, normal = step._transform_col, step.output_distribution == "normal"  # noqa: SLF001 - transform also checks its input
    label = "QuantileTransformer"

    def ranks(quantiles: Floats) -> MonotoneMap:
        ends = quantiles[[0, -1]] + np.array([_BOUNDS_THRESHOLD, -_BOUNDS_THRESHOLD])
        kinks = np.unique(np.concatenate([quantiles, ends if normal else []]))
        return MonotoneMap(
            lambda values: np.asarray(of_column(numbers(values).copy(), quantiles, False)),
            kinks=tuple(kinks.tolist()),
            name=label,
        )

    return columns.each([ranks(np.array(quantiles)) for quantiles in step.quantiles_.T])


# -- splines ----------------------------------------------------------------------------------------------

# Periods on both sides of the first whose knots are breaks of the quadrature
_PERIODS = 20


def spline_transformer(step: Any, columns: StepColumns) -> StepColumns:
    """B-splines of each column, as the transformer computes them."""
    columns.expect(int(step.n_features_in_))
    outputs: list[ModelColumn] = []
    guards: list[Guard] = []
    for column, spline in zip(columns.columns, step.bsplines_, strict=True):
        count = spline.c.shape[1] - (not step.include_bias)
        one = plain_copy(
            step, bsplines_=[spline], n_features_in_=1, n_features_out_=count, sparse_output=False
        )
        basis = _Splines(one, count)
        first = column.then(CurveMap(basis, kinks=_knots(step, spline), name="SplineTransformer"))
        outputs += [_with_index(first, column, basis, k) for k in range(count)]
        if step.extrapolation == "error":
            within = Accepted(missing=True, lower=basis.low, upper=basis.high)
            guards.append(Guard(column, within, "SplineTransformer(extrapolation='error')"))
    return StepColumns(tuple(outputs), bool(step.sparse_output)).with_guards(*guards)


def _with_index(first: ModelColumn, column: ModelColumn, basis: _Splines, index: int) -> ModelColumn:
    """Another spline of the same column, which shares the basis."""
    if isinstance(first.map, CurveMap):
        return replace(first, map=replace(first.map, index=index))
    return column.then(CurveMap(basis, index))


def _knots(step: Any, spline: Any) -> tuple[float, ...]:
    knots = np.unique(spline.t)
    if step.extrapolation == "periodic":
        first, last = spline.t[spline.k], spline.t[-spline.k - 1]
        turns = np.arange(-_PERIODS, _PERIODS + 1) * (last - first)
        knots = np.unique(knots[(first <= knots) & (knots <= last)] + turns[:, None])
    return tuple(knots.tolist())


class _Splines:
    """The splines of one column, (n,) -> (K, n); NaN where the transformer raises."""

    def __init__(self, step: Any, count: int) -> None:
        self._step, self._count = step, count
        spline = step.bsplines_[0]
        whole = step.extrapolation != "error"
        self.low = -np.inf if whole else float(spline.t[spline.k])
        self.high = np.inf if whole else float(spline.t[-spline.k - 1])
        self._missing = 0.0 if getattr(step, "handle_missing", "error") == "zeros" else np.nan

    def __call__(self, y: Floats) -> Floats:
        basis = np.where(np.isnan(y), self._missing, np.full((self._count, y.size), np.nan))
        valid = np.isfinite(y) & (y >= self.low) & (y <= self.high)
        if valid.any():
            basis[:, valid] = np.asarray(self._step.transform(y[valid][:, None]), dtype=np.float64).T
        return basis
