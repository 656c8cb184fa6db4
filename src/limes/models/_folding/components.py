"""Weighted sums of columns, as principal components are, in front of linear and quadratic models.

A component z_k = shift_k + Σ_j matrix[k, j] φ_j(x_s(j)) is not a function of one column. A linear model of
components is linear in the columns that these are made of, and a quadratic one quadratic: with z = A φ + b,

    c·z = (Aᵀc)·φ + b·c          zᵀMz = φᵀ(AᵀMA)φ + ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.models._folding.feature_maps import MonotoneMap
from limes.models._folding.operations import ModelColumn
from limes.models._reading import CannotRead
from limes.models.forms._base import Combination, Form
from limes.models.forms._linked import Linked, Ridges
from limes.models.forms._reducible import Linear, Quadratic
from limes.models.forms._softmax import Softmax


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

    Raises
    ------
    CannotRead
        If the form is not linear or quadratic, or something else than a scaler follows a linear map.
    """
    while any(isinstance(column, Component) for column in columns):
        matrix, shift, columns = _base(columns)
        form = _compose(form, matrix, shift, model)
    return form, columns


def _base(columns: Sequence[ModelColumn]) -> tuple[Floats, Floats, Sequence[ModelColumn]]:
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
        phi = column.map
        affine = phi.affine if isinstance(phi, MonotoneMap) and np.isnan(phi.at_missing) else None
        if affine is None:
            raise CannotRead(f"between {mixing.step} and the model scalers are read only")
        shift = affine.value + affine.slope * (mixing.shift[column.source] - affine.center)
        rows.append((start[id(mixing)], affine.slope * mixing.matrix[column.source], float(shift)))
    matrix = np.zeros((len(columns), len(base)))
    for row, (first, weights, _) in zip(matrix, rows, strict=True):
        row[first : first + weights.size] = weights
    return matrix, np.array([shift for _, _, shift in rows]), base


def _compose(form: Form, matrix: Floats, shift: Floats, model: str) -> Form:
    if isinstance(form, Combination):
        parts = [_compose(part, matrix, shift, model) for part in form.parts]
        return Combination(parts, form.weights, form.intercept)
    if isinstance(form, Linked | Softmax):
        return replace(form, margin=_compose(form.margin, matrix, shift, model))
    if type(form) not in _COMPOSE:
        raise CannotRead(
            f"behind sums of columns, as principal components are, linear models are read only, not {model}"
        )
    return _COMPOSE[type(form)](form, matrix, shift)


def _linear(form: Linear, matrix: Floats, shift: Floats) -> Linear:
    return Linear(matrix.T @ form.coef, form.intercept + shift @ form.coef)


def _quadratic(form: Quadratic, matrix: Floats, shift: Floats) -> Quadratic:
    gradient = form.coef + np.tensordot(shift, form.matrix + form.matrix.swapaxes(0, 1), axes=1)
    squares = np.einsum("ia,jb,ij...->ab...", matrix, matrix, form.matrix, optimize=True)
    return Quadratic(squares, np.tensordot(matrix.T, gradient, axes=1), form.predict(shift[None, :])[0])


def _ridges(form: Ridges, matrix: Floats, shift: Floats) -> Ridges:
    return replace(form, weights=form.weights @ matrix, offsets=form.offsets + form.weights @ shift)


_COMPOSE: Mapping[type, Callable[[Any, Floats, Floats], Form]] = {
    Linear: _linear,
    Quadratic: _quadratic,
    Ridges: _ridges,
}
