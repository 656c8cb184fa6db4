"""Algebra of forms: their sums, linear maps of their outputs, and moves and replacements of their columns.

Readers of votes, bags and stacks compose forms with it. Sums are kept small: many forests become one, linear
parts become one, kernels of one scale become one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limes._arrays import Floats, Ints
from limes._functions import by_category
from limes._tuples import ColumnGroups
from limes.exceptions import InputError
from limes.models.forms._base import (
    Additive,
    Boxes,
    Combination,
    Form,
    GaussianKernels,
    Linear,
    Multiplicative,
    Quadratic,
    Reduced,
    Reducible,
    Sum,
    SumOfProducts,
    outputs_of,
)
from limes.models.forms._linked import Linked, Ridges, Softmax
from limes.models.forms._presence import Switches, SwitchProducts, presence_products
from limes.models.forms._trees import Forest
from limes.models.forms._tuples import ForestOfTuples, OverTuples, grouped_terms

# Forms whose outputs can be mapped linearly
_MAPPED = (Reducible, Linked, Ridges, Softmax)


def _plain(form: Any) -> tuple[list[Any], Floats]:
    """A form as a sum of parts whose outputs can be mapped, and a constant."""
    if isinstance(form, Combination):
        parts: list[Any] = []
        constant = form.intercept
        for weight, part in zip(form.weights, form.parts, strict=True):
            inner, extra = _plain(part)
            parts += [each.map_outputs(lambda values, w=weight: w * values) for each in inner]
            constant = constant + weight * extra
        return parts, constant
    if isinstance(form, Additive | Multiplicative):
        form = Reduced(form.reduce())
    if not isinstance(form, _MAPPED):
        raise InputError(f"{type(form).__name__} is no form that can be added to others")
    return [form], np.zeros(outputs_of(form))


def map_outputs(form: Form, matrix: ArrayLike) -> Form:
    """f(x) · matrix, a number or (q,) for one output, (k,) or (k, q) for k outputs; q outputs, or one."""
    m, axes = np.asarray(matrix, dtype=np.float64), len(outputs_of(form))
    parts, constant = _plain(form)
    changed = [part.map_outputs(lambda values: np.tensordot(values, m, axes=axes)) for part in parts]
    return combine(changed, intercept=np.tensordot(constant, m, axes=axes))


def combine(parts: Sequence[Form], weights: ArrayLike | None = None, *, intercept: ArrayLike = 0.0) -> Form:
    """Σ_i weights[i] · parts[i] + intercept, in as few parts as possible."""
    factors = np.ones(len(parts)) if weights is None else np.asarray(weights, dtype=np.float64)
    flat, constant = _plain(Combination(parts, factors, np.asarray(intercept, dtype=np.float64)))
    merged = _merged(flat)
    if len(merged) > 1:
        return Combination(merged, np.ones(len(merged)), constant)
    whole: Any = merged[0]
    if isinstance(whole, Reduced):
        return Reduced(replace(whole.terms, intercept=whole.intercept + constant))
    shifted: Form = replace(whole, intercept=whole.intercept + constant)
    return shifted


def _merged(parts: Sequence[Any]) -> list[Any]:
    groups: dict[Any, list[Any]] = {}
    for part in parts:
        scale = part.scales.tobytes() if isinstance(part, GaussianKernels) else None
        key = (type(part), scale) if type(part) in _MERGE else id(part)
        groups.setdefault(key, []).append(part)
    merged: list[Any] = []
    for group in groups.values():
        if len(group) == 1:
            merged += group
            continue
        try:
            merged.append(_MERGE[type(group[0])](group, sum(part.intercept for part in group)))
        except InputError:  # one forest splits a column by threshold, another by category
            merged += group
    return merged


def _stack_kernels(group: Sequence[GaussianKernels], intercept: Floats) -> Form:
    centers, coef = (np.concatenate([getattr(part, name) for part in group]) for name in ("centers", "coef"))
    return GaussianKernels(centers, coef, group[0].scale, intercept)


def _add_arrays(group: Sequence[Any], intercept: Floats) -> Form:
    new = {name: sum(getattr(part, name) for part in group) for name in group[0].output_arrays}
    whole: Form = replace(group[0], **new, intercept=intercept)
    return whole


# Sums of forms of one kind
_MERGE: Mapping[type, Callable[..., Form]] = {
    Forest: lambda group, intercept: Forest.joined(group, intercept=intercept),
    GaussianKernels: _stack_kernels,
    Linear: _add_arrays,
    Quadratic: _add_arrays,
}


def on_columns(form: Form, columns: Sequence[int] | Ints, size: int) -> Form:
    """The form of f(x[:, columns]) over x with ``size`` columns; a column may occur twice."""
    positions = np.asarray(columns, dtype=np.int64)
    parts, constant = _plain(form)
    return combine([_moved(part, positions, size) for part in parts], intercept=constant)


def scaled_columns(form: Form, slopes: Floats, shifts: Floats, columns: Any, size: int) -> Form:
    """f(slopes · x[:, columns] + shifts) of a linear or quadratic form, or of ridges."""
    from scipy.sparse import csr_array

    matrix = csr_array((slopes, columns, np.arange(len(slopes) + 1)), shape=(len(slopes), size))
    return behind_affine(form, matrix, shifts)


def behind_affine(form: Form, matrix: Any, shift: Floats) -> Form:
    """f(matrix @ x + shift) of a linear or quadratic form, or of ridges; the matrix may be sparse."""

    def transposed(values: Floats) -> Floats:
        """The transposed matrix times the first axis."""
        return np.asarray(matrix.T @ values.reshape(len(values), -1)).reshape(-1, *values.shape[1:])

    match form:
        case Linear():
            return Linear(transposed(form.coef), form.intercept + shift @ form.coef)
        case Quadratic():
            gradient = form.coef + np.tensordot(shift, form.matrix + form.matrix.swapaxes(0, 1), axes=1)
            squares = transposed(transposed(form.matrix).swapaxes(0, 1)).swapaxes(0, 1)
            return Quadratic(squares, transposed(gradient), form.predict(shift[None, :])[0])
        case Ridges():
            weights, offsets = transposed(form.weights.T).T, form.offsets + form.weights @ shift
            return replace(form, weights=weights, offsets=offsets)
    raise InputError(f"{type(form).__name__} is not read behind sums of columns")


def _moved(form: Any, positions: Ints, size: int) -> Form:
    match form:
        case Forest():
            feature = np.where(form.feature >= 0, positions[form.feature], -1)
            return replace(form, feature=feature, size=size)
        case Linear() | Quadratic() | Ridges():
            return scaled_columns(form, np.ones(positions.size), np.zeros(positions.size), positions, size)
        case Linked() | Softmax():
            return replace(form, margin=on_columns(form.margin, positions, size))
        case GaussianKernels():
            return _move_kernels(form, positions, size)
    return _move_reduced(form, positions, size)


def _move_kernels(form: GaussianKernels, positions: Ints, size: int) -> Form:
    """Two bumps of one column are a bump between them, times a factor of their distance."""
    centers, precision = np.zeros((len(form.centers), size)), np.zeros(size)
    exponent = np.zeros(len(form.centers))
    for j, column in enumerate(positions):
        p, q, center = form.scales[j] ** -2.0, precision[column], form.centers[:, j]
        if p > 0:
            exponent -= 0.5 * p * q / (p + q) * (center - centers[:, column]) ** 2
            centers[:, column] = (p * center + q * centers[:, column]) / (p + q)
            precision[column] = p + q
    height = np.exp(exponent).reshape(-1, *(1,) * (form.coef.ndim - 1))
    with np.errstate(divide="ignore"):
        scale = 1.0 / np.sqrt(precision)
    return GaussianKernels(centers, form.coef * height, scale, form.intercept)


def _move_reduced(form: Any, positions: Ints, size: int) -> Form:
    if len(set(positions.tolist())) < positions.size:
        raise InputError(f"{type(form).__name__} cannot read a column twice")
    terms = form.reduce()
    source = {int(column): j for j, column in enumerate(positions)}
    if isinstance(terms, SumOfProducts):
        functions = tuple(terms.functions[source[j]] if j in source else None for j in range(size))
        return Reduced(replace(terms, functions=functions))
    effects = {column: (terms.functions[j], terms.loadings[j]) for column, j in source.items()}
    return Reduced(Sum.of_columns(size, effects, terms.intercept))


# -- groups of columns -----------------------------------------------------------------------------------


def grouped(form: Any, grouping: ColumnGroups) -> Form:
    """A form over columns and groups, with the structure of the one over columns; see ``forms/_tuples.py``.

    Where that is lost, as of a link whose sum would need too large a table, its answers are left.
    """
    try:
        return _grouped(form, grouping)
    except InputError:
        return OverTuples(form, grouping)


def _grouped(form: Any, grouping: ColumnGroups) -> Form:
    match form:
        case Combination():
            return replace(form, parts=tuple(_grouped(part, grouping) for part in form.parts))
        case Linked() | Softmax():
            return replace(form, margin=_grouped(form.margin, grouping))
        case Ridges():
            return _grouped(form.expanded, grouping)
        case Forest():
            return ForestOfTuples(form, grouping)
        case Reducible():
            return Reduced(grouped_terms(form.reduce(), grouping))
    return OverTuples(form, grouping)


# -- columns of categories -------------------------------------------------------------------------------


def category_columns(form: Form) -> frozenset[int]:
    """Positions of the columns that a form splits by sets of categories or looks up in a table."""
    if isinstance(form, Combination):
        return frozenset().union(*(category_columns(part) for part in form.parts))
    if isinstance(form, Linked | Softmax):
        return category_columns(form.margin)
    if isinstance(form, Forest):
        return frozenset(np.unique(form.feature[form.set_of >= 0]).tolist())
    if not isinstance(form, Reducible):
        return frozenset()
    functions = form.reduce().functions
    return frozenset(j for j, f in enumerate(functions) if f is not None and by_category(f))


# -- columns of two values ------------------------------------------------------------------------------


def over_switches(form: Form, switches: Switches) -> Form:
    """f(x(z)) as a form over superpixels z."""
    if isinstance(form, Combination):
        parts = [over_switches(part, switches) for part in form.parts]
        return Combination(parts, form.weights, form.intercept)
    if isinstance(form, Linked):
        return replace(form, margin=over_switches(form.margin, switches))
    if isinstance(form, Ridges):
        return over_switches(form.expanded, switches)
    if isinstance(form, Softmax):
        raise InputError(
            "probabilities of three classes over pixels have no exact expectation; their margins have"
        )
    if form.size != switches.labels.size:
        raise InputError(f"the form reads {form.size} columns, the image has {switches.labels.size} numbers")
    if isinstance(form, Linear):  # Σ over the columns p of j of λ_p (shown_p - fill_p), and Σ_p λ_p fill_p
        moved = switches.shown - switches.fill
        coef = switches.sums(form.coef * moved.reshape(-1, *(1,) * (form.coef.ndim - 1)))
        return Linear(coef, form.intercept + switches.fill @ form.coef)
    if isinstance(form, Forest | Boxes):
        return presence_products(form, switches)
    if isinstance(form, Reducible):
        reduced = form.reduce()
        if isinstance(reduced, Sum):
            return _linear_in_switches(reduced, switches)
        return SwitchProducts.from_products(reduced, switches)
    raise InputError(f"a {type(form).__name__} over pixels is no sum, no product and no tree")


def _linear_in_switches(terms: Sum, switches: Switches) -> Linear:
    intercept = np.array(terms.intercept, dtype=np.float64)
    effects = np.zeros((switches.labels.size, *intercept.shape))
    for j, (function, loading) in enumerate(zip(terms.functions, terms.loadings, strict=True)):
        if function is not None:
            both = np.array([switches.fill[j], switches.shown[j]])
            off, on = np.tensordot(function(both), loading, axes=(0, 0))
            effects[j] = on - off
            intercept = intercept + off
    return Linear(switches.sums(effects), intercept)
