r"""Exact expectations of sums and of sums of products under a product design.

With mean_j(g) and contrast_j(g) the two functionals of column j (see ``designs/_coordinates.py``):

    f = Σ_j f_j(x_j):          β_j = contrast_j(f_j)
    f = Σ_i a_i ∏_j g_ij(x_j): β_j = Σ_i a_i contrast_j(g_ij) ∏_{k≠j} mean_k(g_ik)

and E_w f is the same with means alone. Only the contrast itself loses digits by cancellation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from limes._arrays import Floats, Ints, times
from limes._expectations.moments import Moments
from limes._expectations.product import ProductExpectation
from limes._functions import Function
from limes._kernels import add_node_products
from limes.designs._coordinates import CellMeans, Coordinate, functionals
from limes.designs._marginals import Marginal
from limes.designs._product import ProductDesign, ProductFamily
from limes.designs._rows import bases
from limes.designs._tilted_columns import TiltedColumn
from limes.exceptions import InputError, ModelError
from limes.models.forms._base import Reducible, Sum, SumOfProducts

# Patterns x terms multiplied at once: 32 MB of float64 for each of four arrays
_BLOCK = 4_000_000
# Terms that the kernel adds up at once
_KERNEL_BLOCK = 256


class ExactExpectation(ProductExpectation):
    """Moments of one form under many designs.

    A column's table is cached as long as designs share its law, as they do for all rows of one background
    under bin weights.

    Raises
    ------
    InputError
        If design and form have different numbers of columns.
    ModelError
        If the form has no finite value somewhere in the design's support (a linear model at a missing value).
    """

    def __init__(self, form: Reducible) -> None:
        self._form = form
        self._reduced = form.reduce()
        # law and table of a column, replaced together: a thread reads an entry once
        self._tables: dict[int, tuple[Marginal, CellMeans]] = {}
        # coordinate at a cell of a column, and its functionals; also replaced together
        self._cells: dict[tuple[int, int], tuple[Coordinate, tuple[Floats, Floats]]] = {}

    def moments(self, design: ProductDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        """E_w f and Cov_w(h, f), exactly."""
        self._check(design.size)
        columns: dict[int, _Patterns] = {}
        for j, function in enumerate(self._reduced.functions):
            if function is not None:
                coordinate = design.coordinates[j]
                mean, contrast = functionals(coordinate, self._table(j, coordinate, function))
                columns[j] = _Patterns(mean[None], contrast[None], np.zeros(1, dtype=np.int64))
        return self._moments(columns, design.variance[None]).take(np.array(0))

    @property
    def functions(self) -> Sequence[Function | None]:
        """Functions that are integrated, one a column."""
        return self._reduced.functions

    def of_columns(self, columns: Sequence[TiltedColumn]) -> Moments:
        """Moments at n rows, given each column's laws there."""
        patterns, rows = {}, np.arange(columns[0].center.size)
        for j, (basis, column) in enumerate(zip(bases(columns, self.functions), columns, strict=True)):
            if basis is not None:
                mean, contrast = np.einsum("nab,mnb->anm", column.mixing, _finite(basis, j))
                patterns[j] = _Patterns(mean, contrast, rows)
        return self._moments(patterns, np.stack([column.variance for column in columns], axis=1))

    def serves(self, family: ProductFamily) -> bool:
        """Return whether `of_cells` can be used: cells decide the designs, and its cache is small."""
        if not family.by_cell:
            return False
        cells = sum(law.cells.count for law in family.marginals)
        return cells * max(1, self._terms) <= _BLOCK

    def of_cells(self, family: ProductFamily, cells: Ints, variance: Floats) -> Moments:
        """Moments under the designs at n rows, given their cells and Var_w h, both (n, d).

        A column's functionals depend on its cell alone: they are looked up, and added in the order of
        `moments`, so that both return the same bits.
        """
        self._check(cells.shape[1])
        columns = {}
        for j, function in enumerate(self._reduced.functions):
            if function is not None:
                chosen, pattern = np.unique(cells[:, j], return_inverse=True)
                pairs = [self._at_cell(family, j, function, cell) for cell in chosen.tolist()]
                mean, contrast = (np.stack(each) for each in zip(*pairs, strict=True))
                columns[j] = _Patterns(mean, contrast, pattern)
        return self._moments(columns, variance)

    def _moments(self, columns: Mapping[int, _Patterns], variance: Floats) -> Moments:
        """Moments at n rows, given Var_w h (n, d)."""
        # infinite values are refused by `check_finite` of the surrogate, which names the features
        with np.errstate(over="ignore", invalid="ignore"):
            mean, contrast = _COMBINE[type(self._reduced)](self._reduced, columns, len(variance))
            variance = variance.reshape(*variance.shape, *(1,) * (contrast.ndim - 2))
            return Moments.exact(mean, contrast * variance, designs=(len(variance),))

    @property
    def _terms(self) -> int:
        """Largest number of functions of a column."""
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


class _Patterns(NamedTuple):
    """Mean and contrast of a column's m functions in P patterns, (P, m); the pattern of each row, (n,)."""

    mean: Floats
    contrast: Floats
    pattern: Ints


def _sum(form: Sum, columns: Mapping[int, _Patterns], rows: int) -> tuple[Floats, Floats]:
    outputs = form.intercept.shape
    mean = np.broadcast_to(form.intercept.astype(np.float64), (rows, *outputs))
    contrast = np.zeros((rows, len(form.functions), *outputs))
    for j, column in columns.items():
        mean = mean + times(column.mean, form.loadings[j])[column.pattern]
        contrast[:, j] = times(column.contrast, form.loadings[j])[column.pattern]
    return mean, contrast


def _sum_of_products(
    form: SumOfProducts, columns: Mapping[int, _Patterns], rows: int
) -> tuple[Floats, Floats]:
    outputs = form.intercept.shape
    coef = form.coef.reshape(len(form.coef), prod(outputs))
    total, changes = np.zeros((rows, coef.shape[1])), np.zeros((rows, len(columns), coef.shape[1]))
    patterns = np.array([column.pattern for column in columns.values()], dtype=np.int64).reshape(-1, rows)
    sizes = sum(len(column.mean) for column in columns.values())
    # whole blocks of the kernel: numbers are added in one order however many terms are passed at once
    step = _KERNEL_BLOCK * max(1, _BLOCK // (_KERNEL_BLOCK * max(1, sizes)))
    for start in range(0, len(coef), step):
        block = slice(start, start + step)
        add_node_products(
            [_real(column.mean[:, block]) for column in columns.values()],
            [_real(column.contrast[:, None, block]) for column in columns.values()],
            patterns,
            _real(coef[block].T),
            total,
            changes,
        )
    contrast = np.zeros((rows, len(form.functions), coef.shape[1]))
    contrast[:, list(columns)] = changes
    return form.intercept + total.reshape(rows, *outputs), contrast.reshape(*contrast.shape[:2], *outputs)


def _real(numbers: Floats) -> Floats:
    """Real numbers followed by imaginary parts of 0, the kernel's layout of complex numbers."""
    parts = np.zeros((*numbers.shape[:-1], 2 * numbers.shape[-1]))
    parts[..., : numbers.shape[-1]] = numbers
    return parts


_COMBINE: Mapping[type, Callable[..., tuple[Floats, Floats]]] = {
    Sum: _sum,
    SumOfProducts: _sum_of_products,
}
