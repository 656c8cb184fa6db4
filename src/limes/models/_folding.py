"""Fold preprocessing into a form: from a form over the model's columns to one over the user's columns.

A pipeline is f(φ_1(x_s(1)), φ_2(x_s(2)), ...): every column of the model is a function φ of one column of the
user's. Columns with the same source are one feature to the user, so a one-hot group comes back as one column.
Sums stay sums, with the effects of one source added up, products stay products, forests stay forests
(``_tree_rewriting.py``); linear, quadratic and Gaussian forms keep their kind behind scalers.

Weighted sums of columns, z = A φ + b, as principal components are, stand in front of linear and quadratic
models, which are linear and quadratic in the columns that they are made of:

    c·z = (Aᵀc)·φ + b·c          zᵀMz = φᵀ(AᵀMA)φ + ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from limes._arrays import Bools, Floats
from limes._functions import LARGEST, Function, Identity, Lookup, SmoothFunctions, Stacked, Step
from limes.models._algebra import behind_affine, category_columns, combine, on_columns, scaled_columns
from limes.models._feature_maps import (
    Affine,
    CurveMap,
    FeatureMap,
    LookupMap,
    ModelColumn,
    MonotoneMap,
    StepMap,
    Values,
    compose,
    numbers,
    product_of,
)
from limes.models._reading import CannotRead
from limes.models._tree_rewriting import fold_forest
from limes.models.forms._base import (
    Combination,
    Form,
    GaussianKernels,
    Linear,
    Quadratic,
    Reduced,
    Reducible,
    Sum,
    SumOfProducts,
    outputs_of,
)
from limes.models.forms._linked import Linked, Ridges, Softmax
from limes.models.forms._trees import Forest

# How many of its units a scaled column may lie from 0 before a closed form in x would cancel digits
_CLOSED: Mapping[type, float] = {Linear: 1e3, Ridges: 1e3, Quadratic: 1e2, GaussianKernels: np.inf}


def fold(
    form: Form, columns: Sequence[ModelColumn], names: Sequence[str], guards: Sequence[Guard] = ()
) -> Form:
    """The form of f(φ(x)) over the user's columns, NaN where a guard finds that the model raises."""
    if form.size != len(columns):
        raise CannotRead(f"the model reads {form.size} columns and is given {len(columns)}")
    folded = _fold(form, on_common_domains(columns), names)
    undefined = _undefined(columns, guards, folded, len(names))
    return folded if undefined is None else combine([folded, undefined])


def _fold(form: Form, columns: Sequence[ModelColumn], names: Sequence[str]) -> Form:
    if isinstance(form, Combination):
        parts = [_fold(part, columns, names) for part in form.parts]
        return combine(parts, form.weights, intercept=form.intercept)
    if isinstance(form, Linked | Softmax):
        return replace(form, margin=_fold(form.margin, columns, names))
    if isinstance(form, Forest):
        return fold_forest(form, columns, names)
    scaling = _scalings(form, columns, len(names)) if type(form) in _CLOSED else None
    if scaling is not None:
        return behind_scalers(form, scaling, [column.source for column in columns], len(names))
    if isinstance(form, Ridges):
        return _fold(form.expanded, columns, names)
    if not isinstance(form, Reducible):
        raise CannotRead(f"{type(form).__name__} cannot be folded behind a pipeline's steps")
    terms = form.reduce()
    effects = list(zip(names, _by_source(terms, columns, len(names)), strict=True))
    if isinstance(terms, SumOfProducts):
        products = tuple(_naming_column(name, _product, factors) for name, factors in effects)
        return Reduced(SumOfProducts(products, terms.coef, terms.intercept))
    outputs = terms.intercept.shape
    sums = [_naming_column(name, _sum_of, parts, outputs) for name, parts in effects]
    functions, loadings = zip(*sums, strict=True)
    return Reduced(Sum(functions, loadings, terms.intercept))


# -- scalers keep the kind --------------------------------------------------------------------------------


def _scalings(form: Any, columns: Sequence[ModelColumn], size: int) -> list[Affine] | None:
    """The affine maps of the columns; None if one that the form reads has another map."""
    reads = [True] * form.size
    if isinstance(form, GaussianKernels):  # which ignore columns of infinite scale
        reads = list(np.isfinite(form.scales))
    elif {column.source for column in columns} != set(range(size)):
        # linear and quadratic forms are NaN wherever a column is missing: each of the user's must be read
        return None
    scalings = []
    for column, read in zip(columns, reads, strict=True):
        affine = _affine_of(column)
        if read and (affine is None or abs(_shift(affine)) > _CLOSED[type(form)]):
            return None
        scalings.append(affine or Affine(1.0))
    return scalings


def _affine_of(column: ModelColumn) -> Affine | None:
    phi = column.map
    return phi.affine if isinstance(phi, MonotoneMap) and np.isnan(phi.at_missing) else None


def _shift(affine: Affine) -> float:
    return affine.value - affine.slope * affine.center


def behind_scalers(form: Form, scaling: Sequence[Affine], sources: Sequence[int], size: int) -> Form:
    """The form behind affine maps, each of one of ``size`` columns."""
    slope, shift = np.array([a.slope for a in scaling]), np.array([_shift(a) for a in scaling])
    if not isinstance(form, GaussianKernels):
        return scaled_columns(form, slope, shift, sources, size)
    centers = [a.center + (z - a.value) / a.slope for z, a in zip(form.centers.T, scaling, strict=True)]
    scaled = replace(form, centers=np.stack(centers, axis=1), scale=form.scales / np.abs(slope))
    return on_columns(scaled, sources, size)


# -- sums and products ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Effect:
    """g(φ(x)), times a loading in a sum."""

    map: FeatureMap
    function: Function
    loading: Floats

    @property
    def is_table(self) -> bool:
        return not isinstance(self.map, MonotoneMap | CurveMap)

    def composed(self) -> Function:
        phi: Any = self.map
        return compose(self.function, phi)


def _by_source(terms: Sum | SumOfProducts, columns: Sequence[ModelColumn], size: int) -> list[list[_Effect]]:
    parts: list[list[_Effect]] = [[] for _ in range(size)]
    loadings = terms.loadings if isinstance(terms, Sum) else [np.ones(1)] * len(columns)
    for column, function, loading in zip(columns, terms.functions, loadings, strict=True):
        if function is not None and loading.any():
            parts[column.source].append(_Effect(column.map, function, loading))
    return parts


def _sum_of(effects: Sequence[_Effect], outputs: tuple[int, ...]) -> tuple[Function | None, Floats]:
    """The effects of one source as one family of functions, with its loadings."""
    curves: list[_Effect] = []
    tables: list[_Effect] = []
    families: list[tuple[Function, Floats]] = []
    for effect in effects:
        if effect.is_table:
            tables.append(effect)
        elif isinstance(effect.map, CurveMap) and isinstance(effect.function, Identity):
            curves.append(effect)
        else:
            families.append((effect.composed(), effect.loading))
    # one function an output: a basis of splines, or a one-hot group, costs as much as one column
    count = int(np.prod(outputs))
    units = np.eye(count).reshape(count, *outputs)
    if curves:
        families.append((_sum_of_curves(curves, count), units))
    if tables:
        weights = [e.loading.reshape(-1, count).T for e in tables]
        table = _table_of(tables, lambda values: sum(map(np.matmul, weights, values)))
        families.append((table, units))
    if not families:
        return None, np.zeros((1, *outputs))
    functions = tuple(function for function, _ in families)
    loading = np.concatenate([loading for _, loading in families])
    return functions[0] if len(functions) == 1 else Stacked(functions), loading


def _sum_of_curves(effects: Sequence[_Effect], count: int) -> SmoothFunctions:
    groups: dict[tuple[int, int], list[tuple[CurveMap, Floats]]] = {}
    for effect in effects:
        phi: Any = effect.map
        groups.setdefault((id(phi.basis), id(phi.before)), []).append((phi, effect.loading.reshape(count)))

    def total(x: Floats) -> Floats:
        values = np.zeros((count, x.size))
        for group in groups.values():
            basis = group[0][0].evaluate_basis(x)
            for phi, loading in group:
                values += np.outer(loading, numbers(phi.after(basis[phi.index])))
        return values

    maps = [group[0][0] for group in groups.values()]
    breaks = dict.fromkeys(point for phi in maps for point in phi.breaks)
    return SmoothFunctions(total, tuple(breaks), maps[0].name)


def _product(factors: Sequence[_Effect]) -> Function | None:
    families = [e.composed() for e in factors if not e.is_table]
    tables = [e for e in factors if e.is_table]
    if tables:
        families.append(_table_of(tables, lambda values: reduce(np.multiply, values)))
    return product_of(families) if families else None


def _naming_column(name: str, work: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return work(*arguments)
    except CannotRead as reason:
        raise CannotRead(f"column {name!r}: {reason}") from None


# -- the common domain of the functions of one column ------------------------------------------------------
#
# An encoder that refuses unknown values restricts its column to the values that it knows; all other maps of
# the column are then evaluated there. An encoder that accepts unknown values becomes a step function where
# another map reads the same column as a number.


def on_common_domains(columns: Sequence[ModelColumn]) -> list[ModelColumn]:
    """Columns whose maps of one source are all ``LookupMap`` over the same keys, or none of them is."""
    sources: dict[int, list[FeatureMap]] = {}
    for column in columns:
        sources.setdefault(column.source, []).append(column.map)
    domains = {source: _domain(maps) for source, maps in sources.items()}
    its = [_on_domain(column.map, *domains[column.source]) for column in columns]
    pairs = zip(columns, its, strict=True)
    return [column if column.map is phi else replace(column, map=phi) for column, phi in pairs]


def _domain(maps: Sequence[FeatureMap]) -> tuple[Floats | None, bool]:
    """The values that a source can take, None if it is any number; whether others are refused."""
    lookups = [phi for phi in maps if isinstance(phi, LookupMap)]
    closed = [phi.keys for phi in lookups if phi.closed]
    if closed:
        keys = reduce(np.intersect1d, closed)
        if keys.size == 0:
            raise CannotRead("two encoders of one column share no category: they have no value in common")
        return keys, True
    if len(lookups) < len(maps):
        return None, False
    # columns of one encoder share its keys
    return reduce(np.union1d, {id(phi.keys): phi.keys for phi in lookups}.values()), False


def _on_domain(phi: FeatureMap, keys: Floats | None, closed: bool) -> FeatureMap:
    if keys is None and isinstance(phi, LookupMap):
        # each key becomes a piece that holds no other number
        cuts = np.unique(np.concatenate([np.nextafter(phi.keys, -np.inf), phi.keys]))
        return StepMap(cuts, numbers(phi(np.append(cuts, np.inf))), float(numbers(phi.values[-1:])[0]))
    if keys is None:
        return phi
    if isinstance(phi, LookupMap) and phi.closed == closed and _are_equal(phi.keys, keys):
        return phi
    other = [np.nan] if closed or not isinstance(phi, LookupMap) else numbers(phi.values[-2:-1])
    missing = numbers(phi(np.array([np.nan])))
    return LookupMap(keys, np.concatenate([numbers(phi(keys)), other, missing]), closed)


def _are_equal(some: Floats, others: Floats) -> bool:
    return some is others or np.array_equal(some, others)


def _table_of(effects: Sequence[_Effect], together: Callable[[Iterator[Floats]], Any]) -> Function:
    """Functions of one source, looked up; ``together`` combines their values (m, P) at P common points."""
    # A point for each key, one for any other value, or one of each piece; a missing value comes last.
    first = effects[0].map
    if isinstance(first, LookupMap):
        ends = first.keys
        points = (phi.values for e in effects if isinstance(phi := e.map, LookupMap))
    else:
        ends = np.unique(np.concatenate([e.map.cuts for e in effects if isinstance(e.map, StepMap)]))
        points = (e.map(np.append(ends, [np.inf, np.nan])) for e in effects)
    # one after the other: an encoder may have thousands of columns
    table = np.asarray(together(e.function(numbers(x)) for e, x in zip(effects, points, strict=True)))
    if not isinstance(first, LookupMap):
        return Step(ends, table[:, :-1], table[:, -1])
    others = np.full(len(table), np.nan) if first.closed else table[:, -2]
    return Lookup(ends, table[:, :-2], table[:, -1], others)


# -- weighted sums of columns ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LinearMap:
    """shift + matrix @ φ, with φ the input columns of a step."""

    columns: tuple[ModelColumn, ...]
    matrix: Floats  # (k, n)
    shift: Floats  # (k,)
    step: str


@dataclass(frozen=True, eq=False)
class Component(ModelColumn):
    """A column of a model: a function of one row of a linear map; ``source`` is the row."""

    linear_map: LinearMap


def expand_components(
    form: Form, columns: Sequence[ModelColumn], model: str
) -> tuple[Form, Sequence[ModelColumn]]:
    """A form over components as a form over the inputs of their linear maps; ``model`` is for messages."""
    while any(isinstance(column, Component) for column in columns):
        matrix, shift, columns = _base_of(columns)
        form = _composed(form, matrix, shift, model)
    return form, columns


def _base_of(columns: Sequence[ModelColumn]) -> tuple[Floats, Floats, Sequence[ModelColumn]]:
    """A and b of columns = A base + b, and the base."""
    base: list[ModelColumn] = []
    start: dict[int, int] = {}
    rows: list[tuple[int, Floats, float]] = []
    for column in columns:
        if not isinstance(column, Component):
            rows.append((len(base), np.ones(1), 0.0))
            base.append(column)
            continue
        mixing = column.linear_map
        if id(mixing) not in start:
            start[id(mixing)] = len(base)
            base.extend(mixing.columns)
        affine = _affine_of(column)
        if affine is None:
            raise CannotRead(f"between {mixing.step} and the model scalers are read only")
        shift = affine.value + affine.slope * (mixing.shift[column.source] - affine.center)
        rows.append((start[id(mixing)], affine.slope * mixing.matrix[column.source], float(shift)))
    matrix = np.zeros((len(columns), len(base)))
    for row, (first, weights, _) in zip(matrix, rows, strict=True):
        row[first : first + weights.size] = weights
    return matrix, np.array([shift for _, _, shift in rows]), base


def _composed(form: Form, matrix: Floats, shift: Floats, model: str) -> Form:
    """f(matrix @ φ + shift)."""
    if isinstance(form, Combination):
        parts = [_composed(part, matrix, shift, model) for part in form.parts]
        return Combination(parts, form.weights, form.intercept)
    if isinstance(form, Linked | Softmax):
        return replace(form, margin=_composed(form.margin, matrix, shift, model))
    if isinstance(form, Linear | Quadratic | Ridges):
        return behind_affine(form, matrix, shift)
    raise CannotRead(
        f"behind sums of columns, as principal components are, linear models are read only, not {model}"
    )


# -- guards: a form must not be finite where the model raises ----------------------------------------------
#
# scikit-learn's steps check their input. A logarithm turns a number below 0 into NaN, most estimators raise
# on NaN, and a form that was read off them would hide it: trees send NaN to one side. A guard's function of
# the user's column is 0 where the step accepts the value, NaN where it raises, and is added to the form: a
# law that reaches there has no exact explanation, and the error names the step.

# No number of a table is beyond the largest float32
LARGEST_SINGLE = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Accepted:
    """The numbers that a step accepts: from ``lower`` to ``upper``, and NaN if it takes missing values."""

    missing: bool = False
    lower: float = -LARGEST
    upper: float = LARGEST

    @property
    def all_numbers(self) -> bool:
        """Whether all numbers that a table can hold are accepted."""
        return min(-self.lower, self.upper) >= LARGEST_SINGLE

    def test(self, values: Values) -> Bools:
        v = numbers(values)
        return np.asarray(np.where(np.isnan(v), self.missing, (v >= self.lower) & (v <= self.upper)))


# For steps that check nothing: infinite numbers, and missing ones, are accepted
EVERYTHING = Accepted(missing=True, lower=-np.inf, upper=np.inf)


@dataclass(frozen=True, eq=False)
class Guard:
    """The values that a step accepts in one of its columns."""

    column: ModelColumn  # the step's input column
    accepted: Accepted
    step: str  # its class, for messages

    @property
    def key(self) -> object:
        """Guards with equal keys are equal: splines of one column share one, as scaling keeps them finite."""
        phi = self.column.map
        if not isinstance(phi, CurveMap) or phi.after.affine is None or not self.accepted.all_numbers:
            return self
        return self.column.source, id(phi.basis), id(phi.before), self.accepted, self.step

    def function(self) -> Function | None:
        """0 where the step accepts the value, NaN where it raises; None if no number of a table raises."""
        # A law has missing values only if the background has them, on which the model itself is called.
        phi, accepted = self.column.map, self.accepted
        if accepted == EVERYTHING:
            return None
        match phi:
            case MonotoneMap():
                return self._of_monotone(phi)
            case CurveMap():
                return self._on_numbers(phi.before.kinks or ())
            case StepMap():
                return None if accepted.test(phi.values).all() else self._on_numbers(tuple(phi.cuts.tolist()))
            case LookupMap():
                passes = accepted.test(phi.values[: phi.keys.size])
                table = np.where(passes, 0.0, np.nan)[None, :]
                return None if passes.all() else Lookup(phi.keys, table, np.zeros(1), np.zeros(1))

    def _of_monotone(self, phi: MonotoneMap) -> Function | None:
        accepted = self.accepted
        if phi.affine is not None and accepted.all_numbers:
            return None  # only a number near 1e308 overflows when it is scaled
        ends = numbers(phi(np.array([-LARGEST, LARGEST])))
        if accepted.test(ends).all() and not np.isnan(ends).any():
            return None
        with np.errstate(over="ignore"):
            edges = phi.near([np.nextafter(accepted.lower, -np.inf), accepted.upper])
        return self._on_numbers((*edges, *([phi.start] if np.isfinite(phi.start) else [])))

    def _on_numbers(self, breaks: tuple[float, ...]) -> SmoothFunctions:
        phi, accepted = self.column.map, self.accepted
        name = getattr(phi, "name", "") or "a column"
        limits = "no missing or infinite values" if not accepted.missing else "no infinite values"
        if not accepted.all_numbers:
            limits += f", and numbers from {accepted.lower:.6g} to {accepted.upper:.6g} only"

        def zero_or_nan(x: Floats) -> Floats:
            return np.where(accepted.test(phi(x)), 0.0, np.nan)[None, :]

        return SmoothFunctions(zero_or_nan, breaks, f"{name}: {self.step} takes {limits}")


def _undefined(
    columns: Sequence[ModelColumn], guards: Sequence[Guard], form: Form, size: int
) -> Reduced | None:
    """A sum over the user's columns: 0 where every guard accepts, NaN elsewhere. None if always 0."""
    # Columns that an encoder looks up and the model does not use are looked up here: their values stay
    # categories, as the encoder refuses other values.
    by_column: list[list[Function]] = [[] for _ in range(size)]
    used = category_columns(form)
    for column in columns:
        table = column.map
        if isinstance(table, LookupMap) and table.closed and column.source not in used:
            zeros = np.zeros((1, table.keys.size))
            by_column[column.source] = [Lookup(table.keys, zeros, np.zeros(1), np.zeros(1))]
    for guard in {guard.key: guard for guard in guards}.values():
        function = guard.function()
        if function is not None:
            by_column[guard.column.source].append(function)
    if not any(by_column):
        return None
    outputs = outputs_of(form)
    functions = tuple(Stacked(tuple(column)) if column else None for column in by_column)
    loadings = tuple(np.ones((max(1, len(column)), *outputs)) for column in by_column)
    return Reduced(Sum(functions, loadings, np.zeros(outputs)))
