r"""Exact expectations of a forest in one pass over its nodes.

Let e be an edge of a tree, on column j, and I_e the set of x_j that is known below it. With mean_e and
contrast_e, the two functionals of 1[x_j in I_e], and anc(e) the last edge above e on the same column (mean
1, ρ 0 if there is none):

    down:   P(node)  = P(parent) · mean_e / mean_anc(e)           the probability to reach the node
    leaf:   G(leaf)  = value · P(leaf)
    up:     G(parent) += G(child),  and column j gains  G(e) · (ρ_e - ρ_anc(e)),  ρ = contrast / mean.

Then E_w f = Σ G(root), and a column's gains add up to its coefficient. mean, contrast and ρ depend on the
row only through the law of its column, which under bin weights is decided by the row's cell: tables of
nodes × cells, made once, serve all rows. Smooth weights and slopes have a law a row, and a table of nodes ×
1 is made for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import ModuleType
from typing import Literal

import numpy as np

from limes._arrays import Bools, Floats, Ints
from limes._threads import WORKERS, in_threads
from limes.designs.coordinates import Coordinate, Table
from limes.designs.product import ProductDesign, ProductFamily
from limes.exceptions import InputError
from limes.expectations.moments import Moments
from limes.functions import Function, Interval, Members
from limes.models.trees import Forest

# Rows that one thread carries down a tree together: their open path fits the processor's nearest memory.
_BLOCK = 128
# So few rows are quicker one at a time.
_FEW = 8
# A single row is shared among threads where a forest is so large that this pays.
_WORTH_SHARING = 50_000
# Tables of nodes × cells beyond this size are not made; rows then get a table each.
_LARGEST_TABLE = 2 << 30


class ForestExpectation:
    """Moments of one forest under many designs.

    Raises
    ------
    InputError
        If a design and the forest have different numbers of columns.
    """

    method: Literal["exact"] = "exact"

    def __init__(self, form: Forest) -> None:
        self._layout = _Layout.of(form)
        self._outputs = form.value.shape[1:]
        self._intercept = form.intercept
        self._known: tuple[ProductFamily, _Tables] | None = None

    def moments(self, design: ProductDesign, row: Floats | None = None) -> Moments:  # noqa: ARG002
        """E_w f and Cov_w(h, f) under one design."""
        self._check(design.size)
        if design.family is not None and design.cells is not None and self.serves(design.family):
            tables, cells = self._shared(design.family), design.cells
        else:
            tables = self._tables([(c,) for c in design.coordinates])
            cells = np.zeros(design.size, dtype=np.int64)
        mean, contrast = self._row(tables, cells)
        return self._moments(mean, contrast, design.variance)

    def serves(self, family: ProductFamily) -> bool:
        """Whether ``many`` can be used: cells decide the designs, and the tables are not too large."""
        widest = max(law.cells.count for law in family.marginals)
        return family.by_cell and 16 * widest * self._layout.column.size <= _LARGEST_TABLE

    def many(self, family: ProductFamily, cells: Ints, variance: Floats) -> Moments:
        """Moments under the designs at n rows, given their cells and Var_w h, both (n, d)."""
        self._check(len(family.marginals))
        tables = self._shared(family)
        n, d = cells.shape
        if n <= _FEW:
            rows = [self._row(tables, row) for row in cells]
            mean, contrast = (np.stack(part) for part in zip(*rows, strict=True))
            return self._moments(mean, contrast, variance)
        mean = np.zeros((n, self._layout.value.shape[1]))
        contrast = np.zeros((n, d, self._layout.value.shape[1]))
        explain = partial(_kernels().explain_block, *self._layout.for_blocks, tables.ratio, tables.change)

        def block(start: int) -> None:
            rows = slice(start, start + _BLOCK)
            explain(np.ascontiguousarray(cells[rows].T), mean[rows], contrast[rows])

        in_threads(block, range(0, n, _BLOCK))
        return self._moments(mean, contrast, variance)

    def _check(self, columns: int) -> None:
        if columns != self._layout.columns:
            raise InputError(f"the design has {columns} columns, the forest {self._layout.columns}")

    def _row(self, tables: _Tables, cells: Ints) -> tuple[Floats, Floats]:
        layout, outputs = self._layout, self._layout.value.shape[1]
        explain = partial(_kernels().explain_row, *layout.for_row, tables.ratio, tables.change, cells)
        parts = layout.parts
        mean = np.zeros((len(parts), outputs))
        contrast = np.zeros((len(parts), layout.columns, outputs))
        in_threads(lambda i: explain(*parts[i], mean[i], contrast[i]), range(len(parts)))
        return mean.sum(axis=0), contrast.sum(axis=0)

    def _shared(self, family: ProductFamily) -> _Tables:
        if self._known is None or self._known[0] is not family:
            self._known = family, self._tables(family.variants)
        return self._known[1]

    def _tables(self, variants: Sequence[Sequence[Coordinate]]) -> _Tables:
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
        ratio, change = (np.zeros((layout.column.size, widest)) for _ in range(2))
        _kernels().fill(*layout.for_tables, functionals, start, mixing, ratio, change)
        return _Tables(ratio, change)

    def _moments(self, mean: Floats, contrast: Floats, variance: Floats) -> Moments:
        mean = mean.reshape((*mean.shape[:-1], *self._outputs)) + self._intercept
        contrast = contrast.reshape((*contrast.shape[:-1], *self._outputs))
        gamma = contrast * variance.reshape((*variance.shape, *(1,) * len(self._outputs)))
        return Moments.exact(mean, gamma, designs=variance.shape[:-1])


@dataclass(frozen=True, eq=False)
class _Tables:
    """What every edge does to probabilities and coefficients, for each variant of its column, (N, V)."""

    ratio: Floats
    change: Floats


@dataclass(frozen=True, eq=False)
class _Layout:
    """A forest as the compiled passes want it: nodes depth first, each with the edge above it."""

    columns: int
    parent: Ints
    depth: Ints
    column: Ints
    is_leaf: Bools
    value: Floats
    same: Ints
    lower: Ints
    upper: Ints
    missing: Bools
    functions: tuple[Function | None, ...]
    ranks: Ints

    @classmethod
    def of(cls, form: Forest) -> _Layout:
        """Lay a forest out."""
        node, parent, depth, column, is_left, same = _kernels().preorder(
            form.feature, form.left, form.right, form.roots
        )
        above = np.where(parent >= 0, node[parent], 0)
        functions, ranks, rank = _thresholds(form)
        lower, upper, missing = _kernels().intervals(
            column, same, is_left, rank[above], form.missing_left[above], ranks
        )
        for j in np.unique(form.feature[form.set_of >= 0]):
            edges = np.flatnonzero(column == j)
            functions[j], which = _category_sets(form, int(j), node[edges])
            lower[edges], upper[edges], missing[edges] = 0, 1 + which, False
            ranks[j] = 1 + which.max()
        return cls(
            columns=form.size,
            parent=parent,
            depth=depth,
            column=column,
            is_leaf=form.feature[node] < 0,
            value=np.ascontiguousarray(form.value[node].reshape(node.size, -1)),
            same=same,
            lower=lower,
            upper=upper,
            missing=missing,
            functions=tuple(functions),
            ranks=ranks,
        )

    @property
    def for_tables(self) -> tuple[Ints, Ints, Ints, Ints, Bools]:
        """Arguments of ``fill``."""
        return self.column, self.same, self.lower, self.upper, self.missing

    @property
    def for_blocks(self) -> tuple[Ints, Ints, Bools, Floats]:
        """Arguments of ``explain_block``."""
        return self.depth, self.column, self.is_leaf, self.value

    @property
    def for_row(self) -> tuple[Ints, Ints, Bools, Floats]:
        """Arguments of ``explain_row``."""
        return self.parent, self.column, self.is_leaf, self.value

    @cached_property
    def parts(self) -> list[tuple[int, int]]:
        """Whole trees in runs of about equal size, one a thread where a single row is worth sharing."""
        count = WORKERS if self.column.size > _WORTH_SHARING else 1
        roots = np.flatnonzero(self.parent < 0)
        wanted = np.linspace(0, self.parent.size, count + 1)[1:-1]
        cuts = np.unique([0, *roots[np.minimum(np.searchsorted(roots, wanted), roots.size - 1)]])
        return list(zip(cuts, [*cuts[1:], self.parent.size], strict=True))


def _thresholds(form: Forest) -> tuple[list[Function | None], Ints, Ints]:
    """Of each column 0, 1[x <= t] for its thresholds t ascending, 1[x not missing], 1[x missing].

    Returns these functions, the rank of the last threshold plus one, and every inner node's rank among them.
    """
    functions: list[Function | None] = []
    ranks, rank = np.zeros(form.size, dtype=np.int64), np.zeros(form.feature.size, dtype=np.int64)
    for j in range(form.size):
        nodes = np.flatnonzero(form.feature == j)
        if not nodes.size:
            functions.append(None)
            continue
        cuts, place = np.unique(form.threshold[nodes], return_inverse=True)
        rank[nodes], ranks[j] = place + 1, cuts.size + 1
        upper = np.concatenate([[-np.inf], cuts, [np.inf, -np.inf]])
        only_missing = np.arange(upper.size) == upper.size - 1
        functions.append(Interval(np.full(upper.size, -np.inf), upper, only_missing))
    return functions, ranks, rank


def _category_sets(form: Forest, column: int, nodes: Ints) -> tuple[Function, Ints]:
    """The distinct sets known below the given nodes, between two empty ones, and which one each knows."""
    allowed, missing = form.reaching(column)
    known = np.column_stack([allowed[nodes], missing[nodes]])
    distinct, which = np.unique(known, axis=0, return_inverse=True)
    rows = np.pad(distinct, ((1, 1), (0, 0)))
    return Members(rows[:, :-1], rows[:, -1]), which.reshape(-1)


def _tabulated(coordinates: Sequence[Coordinate], function: Function) -> Iterator[tuple[Coordinate, Table]]:
    """Coordinates with their tables; those that share a law share the table."""
    table, law = None, None
    for coordinate in coordinates:
        if table is None or coordinate.marginal is not law:
            table, law = coordinate.tabulate(function), coordinate.marginal
        yield coordinate, table


def _kernels() -> ModuleType:
    """Compiled code is loaded, and numba with it, when a forest is explained."""
    from limes.expectations import forest_kernels

    return forest_kernels
