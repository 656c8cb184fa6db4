"""Forms over the columns that a model sees, folded into forms over the columns that the user has.

A pipeline is f(φ_1(x_s(1)), φ_2(x_s(2)), ...): every column of the model is a function φ of one column of the
user's. Columns with the same source are one feature to the user, so a one-hot group comes back as one column:

- a sum of effects stays a sum, with the effects of one source added up;
- a product stays a product, with the factors of one source multiplied;
- a forest stays a forest, with every test on φ(x) turned into one on x (``folding_trees.py``);
- linear, quadratic and Gaussian forms keep their kind behind scalers;
- where a step raises the form is NaN (``guards.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.functions import Function, Identity, SmoothFunctions, Stacked
from limes.models.additive import Linear
from limes.models.algebra import combine, on_columns
from limes.models.combination import Combination, Reduced, outputs_of
from limes.models.folding.composed import behind, multiplied
from limes.models.folding.domains import Grid, on_common_domains
from limes.models.folding.feature_maps import Column
from limes.models.folding.fold_trees import fold_forest
from limes.models.folding.guards import Guard, undefined
from limes.models.folding.kinds import Affine, Curve, FeatureMap, Monotone
from limes.models.folding.values import numbers
from limes.models.kernels import GaussianKernels
from limes.models.quadratic import Quadratic
from limes.models.read import CannotRead
from limes.models.reductions import Form, Reducible, Sum, SumOfProducts
from limes.models.trees import Forest

# How far, in its own unit, a scaled column may lie from 0 before a closed form in x would cancel digits
_CLOSED: Mapping[type, float] = {Linear: 1e3, Quadratic: 1e2, GaussianKernels: np.inf}


@dataclass(frozen=True, eq=False)
class Effect:
    """g(φ(x)), times a loading where it is one of a sum."""

    map: FeatureMap
    function: Function
    loading: Floats = field(default_factory=lambda: np.ones(1))


def fold(form: Form, columns: Sequence[Column], names: Sequence[str], guards: Sequence[Guard] = ()) -> Form:
    """The form of f(φ(x)), NaN where a guard says that the model raises.

    Parameters
    ----------
    form
        Over the model's columns.
    columns
        What each of them is.
    names
        (d,) of the user's columns.
    guards
        What steps of the model refuse.

    Raises
    ------
    CannotRead
        If it is no form: says which column is in the way.
    """
    if form.size != len(columns):
        raise CannotRead(f"the model reads {form.size} columns and is given {len(columns)}")
    folded = _fold(form, on_common_domains(columns), names)
    guarding = undefined(guards, len(names), outputs_of(folded))
    return folded if guarding is None else combine([folded, guarding])


def _fold(form: Form, columns: Sequence[Column], names: Sequence[str]) -> Form:
    if isinstance(form, Combination):
        parts = [_fold(part, columns, names) for part in form.parts]
        return combine(parts, form.weights, intercept=form.intercept)
    if isinstance(form, Forest):
        return fold_forest(form, columns, names)
    scaling = _scalings(form, columns, len(names)) if type(form) in _CLOSED else None
    if scaling is not None:
        scaled = _SCALED[type(form)](form, scaling)
        return on_columns(scaled, [column.source for column in columns], len(names))
    if not isinstance(form, Reducible):
        raise CannotRead(f"{type(form).__name__} cannot be folded behind a pipeline's steps")
    terms = form.reduce()
    if isinstance(terms, Sum):
        return Reduced(_fold_sum(terms, columns, names))
    return Reduced(_fold_products(terms, columns, names))


# -- scalers keep the kind --------------------------------------------------------------------------------


def _scalings(form: Any, columns: Sequence[Column], size: int) -> list[Affine] | None:
    """What scales each column, None if something else happens to one that the form reads.

    Linear and quadratic forms answer NaN wherever a column is missing: every column of the user's must then
    be read, and nothing filled in. Kernels leave out columns of infinite scale.
    """
    reads = [True] * form.size
    if isinstance(form, GaussianKernels):
        reads = list(np.isfinite(form.scales))
    elif {column.source for column in columns} != set(range(size)):
        return None
    found = []
    for column, read in zip(columns, reads, strict=True):
        track = column.map
        affine = track.affine if isinstance(track, Monotone) and np.isnan(track.at_missing) else None
        if read and (affine is None or abs(_shift(affine)) > _CLOSED[type(form)]):
            return None
        found.append(affine or Affine(1.0))
    return found


def _shift(affine: Affine) -> float:
    return affine.value - affine.slope * affine.center


def _slopes(scaling: Sequence[Affine]) -> tuple[Floats, Floats]:
    return np.array([a.slope for a in scaling]), np.array([_shift(a) for a in scaling])


def _scaled_linear(form: Linear, scaling: Sequence[Affine]) -> Linear:
    slope, shift = _slopes(scaling)
    outputs = (1,) * (form.coef.ndim - 1)
    return Linear(form.coef * slope.reshape(-1, *outputs), form.intercept + shift @ form.coef)


def _scaled_quadratic(form: Quadratic, scaling: Sequence[Affine]) -> Quadratic:
    return form.affine(*_slopes(scaling))


def _scaled_kernels(form: GaussianKernels, scaling: Sequence[Affine]) -> GaussianKernels:
    centers = [a.center + (z - a.value) / a.slope for z, a in zip(form.centers.T, scaling, strict=True)]
    slope, _ = _slopes(scaling)
    return replace(form, centers=np.stack(centers, axis=1), scale=form.scales / np.abs(slope))


_SCALED: Mapping[type, Callable[[Any, Sequence[Affine]], Form]] = {
    Linear: _scaled_linear,
    Quadratic: _scaled_quadratic,
    GaussianKernels: _scaled_kernels,
}


# -- sums and products ------------------------------------------------------------------------------------


def _fold_sum(terms: Sum, columns: Sequence[Column], names: Sequence[str]) -> Sum:
    parts: list[list[Effect]] = [[] for _ in names]
    for column, function, loading in zip(columns, terms.functions, terms.loadings, strict=True):
        if function is not None and loading.any():
            parts[column.source].append(Effect(column.map, function, loading))
    outputs = terms.intercept.shape
    found = [_of_column(name, _added, part, outputs) for name, part in zip(names, parts, strict=True)]
    return Sum(tuple(f for f, _ in found), tuple(loading for _, loading in found), terms.intercept)


def _added(effects: Sequence[Effect], outputs: tuple[int, ...]) -> tuple[Function | None, Floats]:
    """The effects of one source as one family of functions, with its loadings."""
    curves = [e for e in effects if _is_linear_in_curve(e)]
    others = [e for e in effects if not _is_linear_in_curve(e)]
    tables = [e for e in others if not isinstance(e.map, Monotone | Curve)]
    families = [(behind(e.function, e.map), e.loading) for e in others if isinstance(e.map, Monotone | Curve)]
    families += [_added_curves(curves, outputs)] if curves else []
    families += [_added_tables(tables, outputs)] if tables else []
    if not families:
        return None, np.zeros((1, *outputs))
    functions = tuple(function for function, _ in families)
    loading = np.concatenate([loading for _, loading in families])
    return functions[0] if len(functions) == 1 else Stacked(functions), loading


def _added_curves(effects: Sequence[Effect], outputs: tuple[int, ...]) -> tuple[Function, Floats]:
    """One function an output: a basis of splines is computed once and added up."""
    count = int(np.prod(outputs))
    groups: dict[tuple[int, int], list[tuple[Curve, Floats]]] = {}
    for effect in effects:
        track: Any = effect.map
        groups.setdefault((id(track.basis), id(track.before)), []).append(
            (track, effect.loading.reshape(count))
        )

    def added(x: Floats) -> Floats:
        total = np.zeros((count, x.size))
        for group in groups.values():
            values = group[0][0].evaluated(x)
            for track, loading in group:
                total += np.outer(loading, numbers(track.after(track.of_basis(values))))
        return total

    tracks = [track for group in groups.values() for track, _ in group[:1]]
    breaks = dict.fromkeys(point for track in tracks for point in track.breaks)
    return SmoothFunctions(added, tuple(breaks), tracks[0].name), np.eye(count).reshape(count, *outputs)


def _is_linear_in_curve(effect: Effect) -> bool:
    return isinstance(effect.map, Curve) and isinstance(effect.function, Identity)


def _added_tables(effects: Sequence[Effect], outputs: tuple[int, ...]) -> tuple[Function, Floats]:
    """One function an output: a one-hot group costs as much as one column."""
    grid = Grid.of([e.map for e in effects])
    count = int(np.prod(outputs))
    table = sum(e.loading.reshape(-1, count).T @ e.function(grid.values(e.map)) for e in effects)
    return grid.function(np.asarray(table)), np.eye(count).reshape(count, *outputs)


def _fold_products(terms: SumOfProducts, columns: Sequence[Column], names: Sequence[str]) -> SumOfProducts:
    parts: list[list[Effect]] = [[] for _ in names]
    for column, function in zip(columns, terms.functions, strict=True):
        if function is not None:
            parts[column.source].append(Effect(column.map, function))
    found = tuple(_of_column(name, _multiplied, part) for name, part in zip(names, parts, strict=True))
    return SumOfProducts(found, terms.coef, terms.intercept)


def _multiplied(factors: Sequence[Effect]) -> Function | None:
    """The factors of one source as one factor."""
    rising = [behind(e.function, e.map) for e in factors if isinstance(e.map, Monotone | Curve)]
    tables = [e for e in factors if not isinstance(e.map, Monotone | Curve)]
    if tables:
        grid = Grid.of([e.map for e in tables])
        table = np.prod([e.function(grid.values(e.map)) for e in tables], axis=0)
        rising.append(grid.function(table))
    return multiplied(rising) if rising else None


def _of_column(name: str, work: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return work(*arguments)
    except CannotRead as reason:
        raise CannotRead(f"column {name!r}: {reason}") from None
