r"""Exact expectations of a forest in one pass over its nodes.

Let e be an edge of a tree, on column j, and I_e the set of x_j that is known below it. With mean_e and
contrast_e, the two functionals of 1[x_j in I_e], and anc(e) the last edge above e on the same column (mean
1, ρ 0 if there is none):

    down:   P(node)  = P(parent) · mean_e / mean_anc(e)           the probability to reach the node
    leaf:   G(leaf)  = value · P(leaf)
    up:     G(parent) += G(child),  and column j gains  G(e) · (ρ_e - ρ_anc(e)),  ρ = contrast / mean.

Then E_w f = Σ G(root), and a column's gains add up to its coefficient. mean, contrast and ρ depend on the
row only through the law of its column, which under bin weights is decided by the row's cell: a table of
splits × cells, made once, serves all rows. Smooth weights and slopes have a law a row, and a table of splits
× 1 is made for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import Literal

import numpy as np

from limes._arrays import Floats, Ints, Places
from limes._recent import Recent
from limes._threads import in_threads
from limes.designs.coordinates import Coordinate, Table
from limes.designs.product import ProductDesign, ProductFamily
from limes.exceptions import InputError
from limes.expectations.exact import ExactExpectation
from limes.expectations.forest_layout import Layout, kernels, one_run
from limes.expectations.moments import Moments
from limes.functions import Function
from limes.models.forms.trees import Forest

# Rows that one thread carries down a tree together: their open path fits the processor's nearest memory.
_BLOCK = 128
# So few rows are quicker one at a time; sums are then added up in another order.
_FEW = 8
# Tables of splits × cells beyond this size are not made; rows then get a table each.
_LARGEST_TABLE = 2 << 30
# Tables that are kept, of so many bytes together: a diagnosis looks at several bandwidths
_TABLES = 4


class ForestExpectation:
    """Moments of one forest under many designs.

    Raises
    ------
    InputError
        If a design and the forest have different numbers of columns.
    """

    method: Literal["exact"] = "exact"

    def __init__(self, form: Forest) -> None:
        self._form = form
        self._layout = Layout.of(form)
        self._outputs = form.value.shape[1:]
        self._intercept = form.intercept
        self._tables: Recent[ProductFamily, Floats] = Recent(_TABLES, _LARGEST_TABLE)
        self._few = _FEW

    def reproducible(self) -> ForestExpectation:
        """The same, adding up in one order however many rows and cores there are: slower for few rows."""
        other = copy(self)
        vars(other).update(_few=0, _layout=replace(self._layout, runs=one_run(self._layout.runs)))
        return other

    def moments(self, design: ProductDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        """E_w f and Cov_w(h, f) under one design."""
        self._check(design.size)
        if any(column.nearly_fixed for column in design.coordinates):
            return self._leaves.moments(design)
        if design.family is not None and design.cells is not None and self.serves(design.family):
            table, cells = self._shared(design.family), design.cells
        else:
            table = self._table([(c,) for c in design.coordinates])
            cells = np.zeros(design.size, dtype=np.int64)
        return self._moments(*self._row(table, cells), design.variance)

    def serves(self, family: ProductFamily) -> bool:
        """Whether ``many`` can be used: cells decide the designs, and the table is not too large."""
        widest = max(law.cells.count for law in family.marginals)
        return family.by_cell and 32 * widest * self._layout.depth.size <= _LARGEST_TABLE

    def many(self, family: ProductFamily, cells: Ints, variance: Floats) -> Moments:
        """Moments under the designs at n rows, given their cells and Var_w h, both (n, d)."""
        self._check(len(family.marginals))
        table = self._shared(family)
        n, d = cells.shape
        mean, contrast = np.zeros((n, self._layout.outputs)), np.zeros((n, d, self._layout.outputs))
        if n <= self._few:
            for i, row in enumerate(cells):
                mean[i], contrast[i] = self._row(table, row)
        elif self._layout.runs:
            self._blocks(table, cells.astype(np.uint32), mean, contrast)
        return self._moments(mean, contrast, variance)

    @cached_property
    def _leaves(self) -> ExactExpectation:
        """The plain engine: slower, but an interval's probability is no difference there."""
        return ExactExpectation(self._form)

    def _check(self, columns: int) -> None:
        if columns != self._layout.columns:
            raise InputError(f"the design has {columns} columns, the forest {self._layout.columns}")

    def _row(self, table: Floats, cells: Ints) -> tuple[Floats, Floats]:
        layout = self._layout
        explain = partial(kernels().explain_row, *layout.splits, table, cells.astype(np.uint32))
        mean = np.zeros((len(layout.runs), layout.outputs))
        contrast = np.zeros((len(layout.runs), layout.columns, layout.outputs))
        in_threads(lambda i: explain(layout.runs[i], mean[i], contrast[i]), range(len(layout.runs)))
        return mean.sum(axis=0), contrast.sum(axis=0)

    def _blocks(self, table: Floats, cells: Places, mean: Floats, contrast: Floats) -> None:
        layout = self._layout
        explain = partial(kernels().explain_block, layout.depth, layout.has_leaf, *layout.splits, table)

        def block(start: int) -> None:
            rows = slice(start, start + _BLOCK)
            explain(np.ascontiguousarray(cells[rows].T), mean[rows], contrast[rows])

        in_threads(block, range(0, len(cells), _BLOCK))

    def _shared(self, family: ProductFamily) -> Floats:
        return self._tables.get(family, lambda: self._table(family.variants), lambda table: table.nbytes)

    def _table(self, variants: Sequence[Sequence[Coordinate]]) -> Floats:
        """What the edges below every split do, for each variant of its column: (S, V, 4)."""
        layout = self._layout
        widest = max(len(column) for column in variants)
        sizes = [0 if f is None else layout.ranks[j] + 2 for j, f in enumerate(layout.functions)]
        start = np.concatenate([[0], np.cumsum(sizes)])
        functionals = np.zeros((start[-1], widest, 2))
        mixing = np.zeros((len(variants), widest, 2, 2))
        for j, function in enumerate(layout.functions):
            if function is None:
                continue
            for v, (coordinate, table) in enumerate(_tabulated(variants[j], function)):
                functionals[start[j] : start[j + 1], v] = coordinate.basis(table)
                mixing[j, v] = coordinate.mixing
        edges = np.zeros((layout.depth.size, widest, 4))
        kernels().fill(*layout.edges, functionals, start, mixing, edges)
        return edges

    def _moments(self, mean: Floats, contrast: Floats, variance: Floats) -> Moments:
        mean = (mean + self._layout.constant).reshape((*mean.shape[:-1], *self._outputs)) + self._intercept
        contrast = contrast.reshape((*contrast.shape[:-1], *self._outputs))
        gamma = contrast * variance.reshape((*variance.shape, *(1,) * len(self._outputs)))
        return Moments.exact(mean, gamma, designs=variance.shape[:-1])


def _tabulated(coordinates: Sequence[Coordinate], function: Function) -> Iterator[tuple[Coordinate, Table]]:
    """Coordinates with their tables; those that share a law share the table."""
    table, law = None, None
    for coordinate in coordinates:
        if table is None or coordinate.marginal is not law:
            table, law = coordinate.tabulate(function), coordinate.marginal
        yield coordinate, table
