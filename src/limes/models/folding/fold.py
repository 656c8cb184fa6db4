"""Forms over the columns that a model sees, folded into forms over the columns that the user has.

A pipeline is f(φ_1(x_s(1)), φ_2(x_s(2)), ...): every column of the model is a function φ of one column of the
user's. Columns with the same source are one feature to the user, so a one-hot group comes back as one column:

- a sum of effects stays a sum, with the effects of one source added up;
- a product stays a product, with the factors of one source multiplied;
- a forest stays a forest, with every test on φ(x) turned into one on x (``fold_trees.py``);
- linear, quadratic and Gaussian forms keep their kind behind scalers;
- where a step raises the form is NaN (``guards.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.curves import Curves
from limes.functions import Function, Identity, Lookup, Stacked, Step
from limes.models.algebra import combine, on_columns
from limes.models.folding.composition import compose, product_of
from limes.models.folding.feature_maps import (
    Affine,
    CurveMap,
    FeatureMap,
    LookupMap,
    MonotoneMap,
    StepMap,
    numbers,
)
from limes.models.folding.fold_trees import fold_forest
from limes.models.folding.guards import Guard, undefined
from limes.models.folding.operations import ModelColumn
from limes.models.forms.additive import Linear
from limes.models.forms.base import Form, Reducible, Sum, SumOfProducts
from limes.models.forms.combination import Combination, Reduced, outputs_of
from limes.models.forms.kernels import GaussianKernels
from limes.models.forms.quadratic import Quadratic
from limes.models.forms.trees import Forest
from limes.models.reading import CannotRead

# How far, in its own unit, a scaled column may lie from 0 before a closed form in x would cancel digits
_CLOSED: Mapping[type, float] = {Linear: 1e3, Quadratic: 1e2, GaussianKernels: np.inf}


@dataclass(frozen=True, eq=False)
class Effect:
    """g(φ(x)), times a loading where it is one of a sum."""

    map: FeatureMap
    function: Function
    loading: Floats = field(default_factory=lambda: np.ones(1))


def fold(
    form: Form, columns: Sequence[ModelColumn], names: Sequence[str], guards: Sequence[Guard] = ()
) -> Form:
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


def _fold(form: Form, columns: Sequence[ModelColumn], names: Sequence[str]) -> Form:
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


def _scalings(form: Any, columns: Sequence[ModelColumn], size: int) -> list[Affine] | None:
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
        affine = track.affine if isinstance(track, MonotoneMap) and np.isnan(track.at_missing) else None
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


def _fold_sum(terms: Sum, columns: Sequence[ModelColumn], names: Sequence[str]) -> Sum:
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
    tables = [e for e in others if not isinstance(e.map, MonotoneMap | CurveMap)]
    families = [
        (compose(e.function, e.map), e.loading) for e in others if isinstance(e.map, MonotoneMap | CurveMap)
    ]
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
    groups: dict[tuple[int, int], list[tuple[CurveMap, Floats]]] = {}
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
    return Curves(added, tuple(breaks), tracks[0].name), np.eye(count).reshape(count, *outputs)


def _is_linear_in_curve(effect: Effect) -> bool:
    return isinstance(effect.map, CurveMap) and isinstance(effect.function, Identity)


def _added_tables(effects: Sequence[Effect], outputs: tuple[int, ...]) -> tuple[Function, Floats]:
    """One function an output: a one-hot group costs as much as one column."""
    grid = Grid.of([e.map for e in effects])
    count = int(np.prod(outputs))
    table = sum(e.loading.reshape(-1, count).T @ e.function(grid.values(e.map)) for e in effects)
    return grid.function(np.asarray(table)), np.eye(count).reshape(count, *outputs)


def _fold_products(
    terms: SumOfProducts, columns: Sequence[ModelColumn], names: Sequence[str]
) -> SumOfProducts:
    parts: list[list[Effect]] = [[] for _ in names]
    for column, function in zip(columns, terms.functions, strict=True):
        if function is not None:
            parts[column.source].append(Effect(column.map, function))
    found = tuple(_of_column(name, _multiplied, part) for name, part in zip(names, parts, strict=True))
    return SumOfProducts(found, terms.coef, terms.intercept)


def _multiplied(factors: Sequence[Effect]) -> Function | None:
    """The factors of one source as one factor."""
    rising = [compose(e.function, e.map) for e in factors if isinstance(e.map, MonotoneMap | CurveMap)]
    tables = [e for e in factors if not isinstance(e.map, MonotoneMap | CurveMap)]
    if tables:
        grid = Grid.of([e.map for e in tables])
        table = np.prod([e.function(grid.values(e.map)) for e in tables], axis=0)
        rising.append(grid.function(table))
    return product_of(rising) if rising else None


def _of_column(name: str, work: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return work(*arguments)
    except CannotRead as reason:
        raise CannotRead(f"column {name!r}: {reason}") from None


# -- the common domain of the functions of one column ----------------------------------------------------


_NAN = np.array([np.nan])


def on_common_domains(columns: Sequence[ModelColumn]) -> list[ModelColumn]:
    """The same columns, those of one source either all ``LookupMap`` over the same keys, or none."""
    sources: dict[int, list[FeatureMap]] = {}
    for column in columns:
        sources.setdefault(column.source, []).append(column.map)
    keys = {source: _common_keys(maps) for source, maps in sources.items()}
    closed = {source: any(_is_closed(m) for m in maps) for source, maps in sources.items()}
    return [
        replace(column, map=_moved(column.map, keys[column.source], closed=closed[column.source]))
        for column in columns
    ]


def _is_closed(track: FeatureMap) -> bool:
    return isinstance(track, LookupMap) and track.closed


def _common_keys(maps: Sequence[FeatureMap]) -> Floats | None:
    """The values of a source, None if it lives on the line."""
    closed = [track.keys for track in maps if isinstance(track, LookupMap) and track.closed]
    if closed:
        keys = reduce(np.intersect1d, closed)
        if keys.size == 0:
            raise CannotRead("two encoders of one column share no category: there is no value that both know")
        return keys
    found = [track.keys for track in maps if isinstance(track, LookupMap)]
    return reduce(np.union1d, found) if len(found) == len(maps) else None


def _moved(track: FeatureMap, keys: Floats | None, *, closed: bool) -> FeatureMap:
    if keys is None:
        return _in_pieces(track) if isinstance(track, LookupMap) else track
    if isinstance(track, LookupMap) and np.array_equal(track.keys, keys) and track.closed == closed:
        return track
    other = [np.nan] if closed or not isinstance(track, LookupMap) else numbers(track.values[-2:-1])
    return LookupMap(keys, np.concatenate([numbers(track(keys)), other, numbers(track(_NAN))]), closed)


def _in_pieces(track: LookupMap) -> StepMap:
    """Each key is a piece as narrow as a number."""
    cuts = np.unique(np.concatenate([np.nextafter(track.keys, -np.inf), track.keys]))
    return StepMap(cuts, numbers(track(np.append(cuts, np.inf))), float(numbers(track.values[-1:])[0]))


@dataclass(frozen=True, eq=False)
class Grid:
    """The places of one source that tell everything about functions that live on values or in pieces.

    ``places`` is (P,): the keys, and a stand-in (None among them) for any other value; or a point of each
    piece. A missing value comes last, at P.
    """

    ends: Floats
    maps: Sequence[FeatureMap]

    @classmethod
    def of(cls, maps: Sequence[FeatureMap]) -> Grid:
        """Of maps of one source, after ``on_common_domains``; none of them ``MonotoneMap``."""
        first = maps[0]
        if isinstance(first, LookupMap):
            return cls(first.keys, maps)
        cuts = [track.cuts for track in maps if isinstance(track, StepMap)]
        return cls(np.unique(np.concatenate(cuts)), maps)

    def values(self, track: FeatureMap) -> Floats:
        """φ at every place, (P + 1,)."""
        if isinstance(track, LookupMap):
            return numbers(track.values)
        return numbers(track(np.concatenate([self.ends, [np.inf, np.nan]])))

    def function(self, table: Floats) -> Function:
        """The functions that have the values (m, P + 1) there."""
        first = self.maps[0]
        if not isinstance(first, LookupMap):
            return Step(self.ends, table[:, :-1], table[:, -1])
        other = np.full(len(table), np.nan) if first.closed else table[:, -2]
        return Lookup(self.ends, table[:, :-2], table[:, -1], other)
