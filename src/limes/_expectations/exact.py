r"""Exact expectations of sums and of sums of products under a product design.

With mean_j(g) and contrast_j(g) the two functionals of column j (see ``designs/_coordinates.py``):

    f = Σ_j f_j(x_j):          β_j = contrast_j(f_j)
    f = Σ_i a_i ∏_j g_ij(x_j): β_j = Σ_i a_i contrast_j(g_ij) ∏_{k≠j} mean_k(g_ik)

and E_w f is the same with means alone. Nothing large is subtracted beyond the contrast itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.moments import Moments
from limes._functions import Function
from limes.designs._coordinates import CellMeans, Coordinate, functionals
from limes.designs._marginals import Marginal
from limes.designs._product import ProductDesign, ProductFamily
from limes.designs._tilted_columns import TiltedColumn
from limes.designs._tilted_rows import bases
from limes.exceptions import InputError, ModelError
from limes.models.forms._base import Reducible, Sum, SumOfProducts

# columns x terms multiplied at once: 32 MB of float64 for each of three arrays
_BLOCK = 4_000_000


class ExactExpectation:
    """Moments of one form under many designs.

    A column's table is cached as long as designs share its law, as they do for all rows of one background
    under bin weights.

    Raises
    ------
    InputError
        If design and form have different numbers of columns.
    ModelError
        If the form has no finite value somewhere the design goes (a linear model at a missing value).
    """

    method: Literal["exact"] = "exact"

    def __init__(self, form: Reducible) -> None:
        self._form = form
        self._reduced = form.reduce()
        # law and table of a column, replaced together: a thread reads an entry once
        self._tables: dict[int, tuple[Marginal, CellMeans]] = {}
        # coordinate at a cell of a column, and its functionals; replaced together too
        self._cells: dict[tuple[int, int], tuple[Coordinate, tuple[Floats, Floats]]] = {}

    def moments(self, design: ProductDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        """E_w f and Cov_w(h, f), exactly."""
        self._check(design.size)
        columns: dict[int, tuple[Floats, Floats]] = {}
        for j, function in enumerate(self._reduced.functions):
            if function is not None:
                coordinate = design.coordinates[j]
                columns[j] = functionals(coordinate, self._table(j, coordinate, function))
        # infinite values are refused by `check_finite` of the surrogate, which names the features
        with np.errstate(over="ignore", invalid="ignore"):
            mean, contrast = _COMBINE[type(self._reduced)](self._reduced, columns)
            variance = design.variance.reshape(-1, *(1,) * mean.ndim)
            return Moments.exact(mean, contrast * variance)

    @property
    def functions(self) -> Sequence[Function | None]:
        """What is integrated over each column."""
        return self._reduced.functions

    def of_columns(self, columns: Sequence[TiltedColumn]) -> Moments:
        """Moments at n rows, given each column's laws there."""
        each = zip(bases(columns, self.functions), columns, strict=True)
        pairs = [
            None if basis is None else np.einsum("nab,mnb->anm", column.mixing, _finite(basis, j))
            for j, (basis, column) in enumerate(each)
        ]
        variance = np.stack([column.variance for column in columns], axis=1)
        combine = _COMBINE[type(self._reduced)]
        with np.errstate(over="ignore", invalid="ignore"):
            rows = [
                combine(
                    self._reduced,
                    {j: (pair[0, i], pair[1, i]) for j, pair in enumerate(pairs) if pair is not None},
                )
                for i in range(len(variance))
            ]
            mean, contrast = (np.stack(arrays) for arrays in zip(*rows, strict=True))
            gamma = contrast * variance.reshape(*variance.shape, *(1,) * (contrast.ndim - 2))
            return Moments.exact(mean, gamma, designs=(len(variance),))

    def serves(self, family: ProductFamily) -> bool:
        """Whether `many` can be used: cells decide the designs, and what it caches is small."""
        if not family.by_cell:
            return False
        cells = sum(law.cells.count for law in family.marginals)
        return cells * max(1, self._terms) <= _BLOCK

    def many(self, family: ProductFamily, cells: Ints, variance: Floats) -> Moments:
        """Moments under the designs at n rows, given their cells and Var_w h, both (n, d).

        A column's functionals depend on its cell alone: they are looked up, and added in the order of
        `moments`, to the same bits.
        """
        self._check(cells.shape[1])
        columns = {
            j: {b: self._at_cell(family, j, function, b) for b in np.unique(cells[:, j]).tolist()}
            for j, function in enumerate(self._reduced.functions)
            if function is not None
        }
        with np.errstate(over="ignore", invalid="ignore"):
            mean, contrast = _COMBINE_MANY[type(self._reduced)](self._reduced, columns, cells)
            variance = variance.reshape(*variance.shape, *(1,) * (contrast.ndim - 2))
            return Moments.exact(mean, contrast * variance, designs=(len(cells),))

    @property
    def _terms(self) -> int:
        """Functions of a column, at most."""
        reduced = self._reduced
        if isinstance(reduced, Sum):
            return max(map(len, reduced.loadings), default=0)
        return len(reduced.coef)

    def _at_cell(self, family: ProductFamily, j: int, function: Function, cell: int) -> tuple[Floats, Floats]:
        coordinate = family.variants[j][cell]
        entry = self._cells.get((j, cell))
        if entry is None or entry[0] is not coordinate:
            entry = coordinate, functionals(coordinate, self._table(j, coordinate, function))
            self._cells[j, cell] = entry
        return entry[1]

    def _check(self, columns: int) -> None:
        if columns != self._form.size:
            raise InputError(
                f"the design has {columns} columns, the form ({type(self._form).__name__}) "
                f"has {self._form.size}"
            )

    def _table(self, j: int, coordinate: Coordinate, function: Function) -> CellMeans:
        entry = self._tables.get(j)
        if entry is None or entry[0] is not coordinate.marginal:
            table = coordinate.tabulate(function)
            _finite(table.values, j)
            entry = self._tables[j] = (coordinate.marginal, table)
        return entry[1]


def _finite(values: Floats, j: int) -> Floats:
    """Return the integrals of column j's functions; raise ModelError where the model has no finite value."""
    if not np.isfinite(values).all():
        raise ModelError(
            f"the model has no finite value everywhere in column {j}: it cannot take a missing or an "
            "extreme value that the background holds there; impute it in a Pipeline"
        )
    return values


# mean and contrast of each column's functions
_Functionals = Mapping[int, tuple[Floats, Floats]]


def _sum(form: Sum, columns: _Functionals) -> tuple[Floats, Floats]:
    mean = form.intercept.astype(np.float64)
    contrast = np.zeros((len(form.functions), *form.intercept.shape))
    for j, (average, difference) in columns.items():
        mean = mean + np.tensordot(average, form.loadings[j], axes=1)
        contrast[j] = np.tensordot(difference, form.loadings[j], axes=1)
    return mean, contrast


def _sum_of_products(form: SumOfProducts, columns: _Functionals) -> tuple[Floats, Floats]:
    mean = form.intercept.astype(np.float64)
    contrast = np.zeros((len(form.functions), *form.intercept.shape))
    step = max(1, _BLOCK // max(1, len(columns)))
    for start in range(0, len(form.coef), step):
        block = slice(start, start + step)
        coef = form.coef[block]
        others, whole = _products_without_one([average[block] for average, _ in columns.values()], len(coef))
        mean = mean + np.tensordot(whole, coef, axes=1)
        for j, rest in zip(columns, others, strict=True):
            contrast[j] += np.tensordot(columns[j][1][block] * rest, coef, axes=1)
    return mean, contrast


def _products_without_one(factors: list[Floats], m: int) -> tuple[list[Floats], Floats]:
    """For each factor the product of all others (no division: factors may be 0), and the whole product."""
    after = [np.ones(m)]
    for factor in reversed(factors[1:]):
        after.append(after[-1] * factor)
    after.reverse()
    before, others = np.ones(m), []
    for factor, rest in zip(factors, after, strict=False):
        others.append(before * rest)
        before = before * factor
    return others, before


# the same, at each cell of a column that occurs
_ByCell = Mapping[int, Mapping[int, tuple[Floats, Floats]]]


def _sums(form: Sum, columns: _ByCell, cells: Ints) -> tuple[Floats, Floats]:
    n, outputs = len(cells), form.intercept.shape
    mean = np.broadcast_to(form.intercept.astype(np.float64), (n, *outputs))
    contrast = np.zeros((n, len(form.functions), *outputs))
    for j, by_cell in columns.items():
        table = np.zeros((2, max(by_cell) + 1, *outputs))
        for cell, (average, difference) in by_cell.items():
            table[0, cell] = np.tensordot(average, form.loadings[j], axes=1)
            table[1, cell] = np.tensordot(difference, form.loadings[j], axes=1)
        mean = mean + table[0, cells[:, j]]
        contrast[:, j] = table[1, cells[:, j]]
    return mean, contrast


def _sums_of_products(form: SumOfProducts, columns: _ByCell, cells: Ints) -> tuple[Floats, Floats]:
    rows = (
        _sum_of_products(form, {j: by_cell[row[j]] for j, by_cell in columns.items()})
        for row in cells.tolist()
    )
    means, contrasts = zip(*rows, strict=True)
    return np.stack(means), np.stack(contrasts)


_COMBINE_MANY: Mapping[type, Callable[..., tuple[Floats, Floats]]] = {
    Sum: _sums,
    SumOfProducts: _sums_of_products,
}
_COMBINE: Mapping[type, Callable[..., tuple[Floats, Floats]]] = {
    Sum: _sum,
    SumOfProducts: _sum_of_products,
}
