"""Fold preprocessing into a form: from a form over the model's columns to one over the user's columns.

A pipeline is f(φ_1(x_s(1)), φ_2(x_s(2)), ...): every column of the model is a function φ of one column of the
user's. Columns with the same source are one feature to the user, so a one-hot group comes back as one column:

- a sum of effects stays a sum, with the effects of one source added up;
- a product stays a product, with the factors of one source multiplied;
- a forest stays a forest, with every test on φ(x) turned into one on x (``fold_trees.py``);
- linear, quadratic and Gaussian forms keep their kind behind scalers;
- where a step raises the form is NaN (``guards.py``).

The feature maps of one source must share a domain. An encoder that refuses unknown values restricts its
column to the values that it knows; all other maps of the column are then evaluated there. An encoder that
accepts unknown values becomes a step function where another map reads the same column as a number.

Weighted sums of columns, as principal components are, stand in front of linear and quadratic models. A
component z_k = shift_k + Σ_j matrix[k, j] φ_j(x_s(j)) is not a function of one column. A linear model of
components is linear in the columns that these are made of, and a quadratic one quadratic: with z = A φ + b,

    c·z = (Aᵀc)·φ + b·c          zᵀMz = φᵀ(AᵀMA)φ + ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes._functions import Function, Identity, Lookup, SmoothFunctions, Stacked, Step
from limes.models._algebra import category_columns, combine, on_columns
from limes.models._folding.composition import compose, product_of
from limes.models._folding.feature_maps import (
    Affine,
    CurveMap,
    FeatureMap,
    LookupMap,
    ModelColumn,
    MonotoneMap,
    StepMap,
    numbers,
)
from limes.models._folding.fold_trees import fold_forest
from limes.models._folding.guards import Guard, undefined
from limes.models._reading import CannotRead
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


@dataclass(frozen=True, eq=False)
class _Effect:
    """g(φ(x)), times a loading in a sum."""

    map: FeatureMap
    function: Function
    loading: Floats = field(default_factory=lambda: np.ones(1))


def fold(
    form: Form, columns: Sequence[ModelColumn], names: Sequence[str], guards: Sequence[Guard] = ()
) -> Form:
    """The form of f(φ(x)), NaN where a guard finds that the model raises.

    Parameters
    ----------
    form
        A form over the model's columns.
    columns
        The feature maps of the model's columns.
    names
        (d,) names of the user's columns.
    guards
        The values that steps of the model refuse.
    """
    if form.size != len(columns):
        raise CannotRead(f"the model reads {form.size} columns and is given {len(columns)}")
    folded = _fold(form, on_common_domains(columns), names)
    others = (
        _unused_tables(columns, folded, len(names)),
        undefined(guards, len(names), outputs_of(folded)),
    )
    parts = [form for form in others if form is not None]
    return combine([folded, *parts]) if parts else folded


def _unused_tables(columns: Sequence[ModelColumn], form: Form, size: int) -> Reduced | None:
    """Return 0 as a sum over columns that an encoder looks up and the model does not use, None without any.

    This keeps their values categories: an encoder refuses other values.
    """
    used = category_columns(form)
    functions: list[Function | None] = [None] * size
    for column in columns:
        table = column.map
        if isinstance(table, LookupMap) and table.closed and column.source not in used:
            zero = np.zeros((1, table.keys.size))
            functions[column.source] = Lookup(table.keys, zero, np.zeros(1), np.zeros(1))
    if not any(functions):
        return None
    outputs = outputs_of(form)
    loadings = tuple(np.ones((1, *outputs)) for _ in functions)
    return Reduced(Sum(tuple(functions), loadings, np.zeros(outputs)))


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
        scaled = _SCALED[type(form)](form, scaling)
        return on_columns(scaled, [column.source for column in columns], len(names))
    if isinstance(form, Ridges):
        return _fold(form.expanded, columns, names)
    if not isinstance(form, Reducible):
        raise CannotRead(f"{type(form).__name__} cannot be folded behind a pipeline's steps")
    terms = form.reduce()
    if isinstance(terms, Sum):
        return Reduced(_fold_sum(terms, columns, names))
    return Reduced(_fold_products(terms, columns, names))


# -- scalers keep the kind --------------------------------------------------------------------------------


def _scalings(form: Any, columns: Sequence[ModelColumn], size: int) -> list[Affine] | None:
    """The affine maps of the columns; None if one that the form reads has another map.

    Linear and quadratic forms are NaN wherever a column is missing: every column of the user's must then
    be read, and nothing imputed. Kernels ignore columns of infinite scale.
    """
    reads = [True] * form.size
    if isinstance(form, GaussianKernels):
        reads = list(np.isfinite(form.scales))
    elif {column.source for column in columns} != set(range(size)):
        return None
    scalings = []
    for column, read in zip(columns, reads, strict=True):
        affine = _affine_of(column)
        if read and (affine is None or abs(_shift(affine)) > _CLOSED[type(form)]):
            return None
        scalings.append(affine or Affine(1.0))
    return scalings


def _affine_of(column: ModelColumn) -> Affine | None:
    """A scaler that leaves missing values missing."""
    phi = column.map
    return phi.affine if isinstance(phi, MonotoneMap) and np.isnan(phi.at_missing) else None


def _shift(affine: Affine) -> float:
    return affine.value - affine.slope * affine.center


def _slopes(scaling: Sequence[Affine]) -> tuple[Floats, Floats]:
    return np.array([a.slope for a in scaling]), np.array([_shift(a) for a in scaling])


def _scaled_linear(form: Linear, scaling: Sequence[Affine]) -> Linear:
    slope, shift = _slopes(scaling)
    outputs = (1,) * (form.coef.ndim - 1)
    return Linear(form.coef * slope.reshape(-1, *outputs), form.intercept + shift @ form.coef)


def _scaled_ridges(form: Ridges, scaling: Sequence[Affine]) -> Ridges:
    slope, shift = _slopes(scaling)
    return replace(form, weights=form.weights * slope, offsets=form.offsets + form.weights @ shift)


def _scaled_kernels(form: GaussianKernels, scaling: Sequence[Affine]) -> GaussianKernels:
    centers = [a.center + (z - a.value) / a.slope for z, a in zip(form.centers.T, scaling, strict=True)]
    slope, _ = _slopes(scaling)
    return replace(form, centers=np.stack(centers, axis=1), scale=form.scales / np.abs(slope))


_SCALED: Mapping[type, Callable[[Any, Sequence[Affine]], Form]] = {
    Linear: _scaled_linear,
    Quadratic: lambda form, scaling: form.affine(*_slopes(scaling)),
    GaussianKernels: _scaled_kernels,
    Ridges: _scaled_ridges,
}


# -- sums and products ------------------------------------------------------------------------------------


def _fold_sum(terms: Sum, columns: Sequence[ModelColumn], names: Sequence[str]) -> Sum:
    parts: list[list[_Effect]] = [[] for _ in names]
    for column, function, loading in zip(columns, terms.functions, terms.loadings, strict=True):
        if function is not None and loading.any():
            parts[column.source].append(_Effect(column.map, function, loading))
    outputs = terms.intercept.shape
    sums = [_naming_column(name, _sum_of, part, outputs) for name, part in zip(names, parts, strict=True)]
    return Sum(tuple(f for f, _ in sums), tuple(loading for _, loading in sums), terms.intercept)


def _sum_of(effects: Sequence[_Effect], outputs: tuple[int, ...]) -> tuple[Function | None, Floats]:
    """The effects of one source as one family of functions, with its loadings."""
    curves = [e for e in effects if _is_linear_in_curve(e)]
    others = [e for e in effects if not _is_linear_in_curve(e)]
    tables = [e for e in others if not isinstance(e.map, MonotoneMap | CurveMap)]
    families = [
        (compose(e.function, e.map), e.loading) for e in others if isinstance(e.map, MonotoneMap | CurveMap)
    ]
    families += [_sum_of_curves(curves, outputs)] if curves else []
    families += [_sum_of_tables(tables, outputs)] if tables else []
    if not families:
        return None, np.zeros((1, *outputs))
    functions = tuple(function for function, _ in families)
    loading = np.concatenate([loading for _, loading in families])
    return functions[0] if len(functions) == 1 else Stacked(functions), loading


def _sum_of_curves(effects: Sequence[_Effect], outputs: tuple[int, ...]) -> tuple[Function, Floats]:
    """One function an output: a basis of splines is computed once and added up."""
    count = int(np.prod(outputs))
    groups: dict[tuple[int, int], list[tuple[CurveMap, Floats]]] = {}
    for effect in effects:
        phi: Any = effect.map
        groups.setdefault((id(phi.basis), id(phi.before)), []).append((phi, effect.loading.reshape(count)))

    def total(x: Floats) -> Floats:
        values = np.zeros((count, x.size))
        for group in groups.values():
            basis = group[0][0].evaluate_basis(x)
            for phi, loading in group:
                values += np.outer(loading, numbers(phi.after(phi.from_basis(basis))))
        return values

    maps = [phi for group in groups.values() for phi, _ in group[:1]]
    breaks = dict.fromkeys(point for phi in maps for point in phi.breaks)
    return SmoothFunctions(total, tuple(breaks), maps[0].name), np.eye(count).reshape(count, *outputs)


def _is_linear_in_curve(effect: _Effect) -> bool:
    return isinstance(effect.map, CurveMap) and isinstance(effect.function, Identity)


def _sum_of_tables(effects: Sequence[_Effect], outputs: tuple[int, ...]) -> tuple[Function, Floats]:
    """One function an output: a one-hot group costs as much as one column."""
    grid = _Grid.from_maps([e.map for e in effects])
    count = int(np.prod(outputs))
    table = sum(e.loading.reshape(-1, count).T @ e.function(grid.values(e.map)) for e in effects)
    return grid.function(np.asarray(table)), np.eye(count).reshape(count, *outputs)


def _fold_products(
    terms: SumOfProducts, columns: Sequence[ModelColumn], names: Sequence[str]
) -> SumOfProducts:
    parts: list[list[_Effect]] = [[] for _ in names]
    for column, function in zip(columns, terms.functions, strict=True):
        if function is not None:
            parts[column.source].append(_Effect(column.map, function))
    factors = tuple(_naming_column(name, _product, part) for name, part in zip(names, parts, strict=True))
    return SumOfProducts(factors, terms.coef, terms.intercept)


def _product(factors: Sequence[_Effect]) -> Function | None:
    families = [compose(e.function, e.map) for e in factors if isinstance(e.map, MonotoneMap | CurveMap)]
    tables = [e for e in factors if not isinstance(e.map, MonotoneMap | CurveMap)]
    if tables:
        grid = _Grid.from_maps([e.map for e in tables])
        table = np.prod([e.function(grid.values(e.map)) for e in tables], axis=0)
        families.append(grid.function(table))
    return product_of(families) if families else None


def _naming_column(name: str, work: Callable[..., Any], *arguments: Any) -> Any:
    """Call, and name the user's column in the reason why it cannot be read."""
    try:
        return work(*arguments)
    except CannotRead as reason:
        raise CannotRead(f"column {name!r}: {reason}") from None


# -- the common domain of the functions of one column ------------------------------------------------------

_NAN = np.array([np.nan])


def on_common_domains(columns: Sequence[ModelColumn]) -> list[ModelColumn]:
    """Return the columns; maps of one source are all ``LookupMap`` over the same keys, or none of them is."""
    sources: dict[int, list[FeatureMap]] = {}
    for column in columns:
        sources.setdefault(column.source, []).append(column.map)
    keys = {source: _common_keys(maps) for source, maps in sources.items()}
    closed = {
        source: any(isinstance(m, LookupMap) and m.closed for m in maps) for source, maps in sources.items()
    }
    return [
        replace(column, map=_on_domain(column.map, keys[column.source], closed=closed[column.source]))
        for column in columns
    ]


def _common_keys(maps: Sequence[FeatureMap]) -> Floats | None:
    """The values that a source can take; None if it is any number."""
    closed = [phi.keys for phi in maps if isinstance(phi, LookupMap) and phi.closed]
    if closed:
        keys = reduce(np.intersect1d, closed)
        if keys.size == 0:
            raise CannotRead("two encoders of one column share no category: they have no value in common")
        return keys
    keys_of = [phi.keys for phi in maps if isinstance(phi, LookupMap)]
    return reduce(np.union1d, keys_of) if len(keys_of) == len(maps) else None


def _on_domain(phi: FeatureMap, keys: Floats | None, *, closed: bool) -> FeatureMap:
    if keys is None:
        return _in_pieces(phi) if isinstance(phi, LookupMap) else phi
    if isinstance(phi, LookupMap) and np.array_equal(phi.keys, keys) and phi.closed == closed:
        return phi
    other = [np.nan] if closed or not isinstance(phi, LookupMap) else numbers(phi.values[-2:-1])
    return LookupMap(keys, np.concatenate([numbers(phi(keys)), other, numbers(phi(_NAN))]), closed)


def _in_pieces(phi: LookupMap) -> StepMap:
    """Each key becomes a piece that holds no other number."""
    cuts = np.unique(np.concatenate([np.nextafter(phi.keys, -np.inf), phi.keys]))
    return StepMap(cuts, numbers(phi(np.append(cuts, np.inf))), float(numbers(phi.values[-1:])[0]))


@dataclass(frozen=True, eq=False)
class _Grid:
    """Points of one source, one for each key or piece, that determine all of its functions.

    There are P of them: the keys and a stand-in for any other value, or a point of each piece; a missing
    value comes last, at P. ``ends`` are the keys, or the upper ends of all pieces but the last.
    """

    ends: Floats
    maps: Sequence[FeatureMap]

    @classmethod
    def from_maps(cls, maps: Sequence[FeatureMap]) -> _Grid:
        """Build the grid of maps of one source on a common domain, none of them ``MonotoneMap``."""
        first = maps[0]
        if isinstance(first, LookupMap):
            return cls(first.keys, maps)
        cuts = [phi.cuts for phi in maps if isinstance(phi, StepMap)]
        return cls(np.unique(np.concatenate(cuts)), maps)

    def values(self, phi: FeatureMap) -> Floats:
        """φ at every point, (P + 1,)."""
        if isinstance(phi, LookupMap):
            return numbers(phi.values)
        return numbers(phi(np.concatenate([self.ends, [np.inf, np.nan]])))

    def function(self, table: Floats) -> Function:
        """The functions with the values (m, P + 1) at the points."""
        first = self.maps[0]
        if not isinstance(first, LookupMap):
            return Step(self.ends, table[:, :-1], table[:, -1])
        other = np.full(len(table), np.nan) if first.closed else table[:, -2]
        return Lookup(self.ends, table[:, :-2], table[:, -1], other)


# -- weighted sums of columns ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LinearMap:
    """shift + matrix @ φ, with φ the input columns of a step; matrix (k, n), shift (k,)."""

    columns: tuple[ModelColumn, ...]
    matrix: Floats
    shift: Floats
    step: str


@dataclass(frozen=True, eq=False)
class Component(ModelColumn):
    """A column of a model: a function of one row of a linear map; ``source`` is the row."""

    linear_map: LinearMap


def expand_components(
    form: Form, columns: Sequence[ModelColumn], model: str
) -> tuple[Form, Sequence[ModelColumn]]:
    """Write a form over components as a form over the inputs of their linear maps.

    Parameters
    ----------
    form
        A form over the columns.
    columns
        The model's columns, some of them components.
    model
        Class of the model that the form was read off, for messages.
    """
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
    if isinstance(form, Combination):
        parts = [_composed(part, matrix, shift, model) for part in form.parts]
        return Combination(parts, form.weights, form.intercept)
    if isinstance(form, Linked | Softmax):
        return replace(form, margin=_composed(form.margin, matrix, shift, model))
    if type(form) not in _MIXED:
        raise CannotRead(
            f"behind sums of columns, as principal components are, linear models are read only, not {model}"
        )
    return _MIXED[type(form)](form, matrix, shift)


def _mixed_linear(form: Linear, matrix: Floats, shift: Floats) -> Linear:
    return Linear(matrix.T @ form.coef, form.intercept + shift @ form.coef)


def _mixed_quadratic(form: Quadratic, matrix: Floats, shift: Floats) -> Quadratic:
    gradient = form.coef + np.tensordot(shift, form.matrix + form.matrix.swapaxes(0, 1), axes=1)
    squares = np.einsum("ia,jb,ij...->ab...", matrix, matrix, form.matrix, optimize=True)
    return Quadratic(squares, np.tensordot(matrix.T, gradient, axes=1), form.predict(shift[None, :])[0])


def _mixed_ridges(form: Ridges, matrix: Floats, shift: Floats) -> Ridges:
    return replace(form, weights=form.weights @ matrix, offsets=form.offsets + form.weights @ shift)


_MIXED: Mapping[type, Callable[[Any, Floats, Floats], Form]] = {
    Linear: _mixed_linear,
    Quadratic: _mixed_quadratic,
    Ridges: _mixed_ridges,
}
