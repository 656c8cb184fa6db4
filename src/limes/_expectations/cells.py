r"""Effects of cells, exactly: E_w[f | x_j in cell b] - E_w f, and what pairs of cells add to them.

Columns are independent under w. With V_ij(b) = E[g_ij | cell b], its mean m_ij = Σ_b q_jb V_ij(b) and its
deviation D_ij(b) = V_ij(b) - m_ij, a sum of products f = c + Σ_i a_i ∏_j g_ij(x_j) has

    effect_j(b)   = Σ_i a_i D_ij(b) ∏_{l≠j} m_il
    pair_jk(b, c) = Σ_i a_i D_ij(b) D_ik(c) ∏_{l≠j,k} m_il
                  = E_w[f | b, c] - E_w[f | b] - E_w[f | c] + E_w f,

and a sum Σ_j f_j(x_j) has the deviations of f_j themselves, and no pair effects. A forest's effects are
computed by one compiled pass over its nodes, for many rows at once (``forest.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from limes._arrays import Floats, Ints
from limes._expectations.forest import ForestExpectation
from limes._expectations.one_hot import centred
from limes._functions import Function
from limes.designs._marginals import Marginal
from limes.designs._product import ProductDesign, ProductFamily, Rows
from limes.models.forms._base import Combination, Form, Reducible, Sum, SumOfProducts
from limes.models.forms._trees import Forest

# Terms x cells of all columns that are tabulated: 80 MB of float64
_MOST_NUMBERS = 10_000_000


class CellEffects(Protocol):
    """Effects of cells of one form under any design of one family, for k outputs."""

    @property
    def interacts(self) -> bool:
        """Whether pairs of columns may have effects."""
        ...

    def effects(self, cells: Ints, designs: Sequence[ProductDesign], masses: Floats, counts: Ints) -> Floats:
        """E_w[f | cell] - E_w f for every cell of each column under n designs, (n, d, B, k).

        ``cells`` (n, d) are those of the rows; ``masses`` (n, d, B) and ``counts`` (n, d) come from
        `cell_masses`. Effects are 0 beyond a column's last cell.
        """
        ...

    def pairs(self, design: ProductDesign, columns: Sequence[tuple[int, int]]) -> list[Floats] | None:
        """Effects of pairs of cells of these columns, (p_j, p_k, k) each; None if that takes too long."""
        ...


def exact_cells(form: Form, expectation: object, family: ProductFamily) -> CellEffects | None:
    """Choose the exact effects of a form; None where no exact ones are feasible."""
    terms = _feasible_terms(form, family)
    if isinstance(expectation, ForestExpectation) and expectation.shares_tables(family):
        return ForestCells(expectation, family, terms)
    return None if terms is None else TermCells(terms)


def _feasible_terms(form: Form, family: ProductFamily) -> list[tuple[float, Sum | SumOfProducts]] | None:
    """Return the form as a weighted sum of sums and sums of products; None if their tables are too large."""
    cells = sum(law.cells.count for law in family.marginals)
    leaves = [part for _, part in _parts(form, 1.0) if isinstance(part, Forest)]
    if any((part.feature < 0).sum() * cells > _MOST_NUMBERS for part in leaves):
        return None
    terms = []
    for weight, part in _parts(form, 1.0):
        if not isinstance(part, Reducible):
            return None
        reduced = part.reduce()
        if isinstance(reduced, SumOfProducts) and len(reduced.coef) * cells > _MOST_NUMBERS:
            return None
        terms.append((weight, reduced))
    return terms


def _parts(form: Form, weight: float) -> Iterator[tuple[float, Form]]:
    if not isinstance(form, Combination):
        yield weight, form
        return
    for part, share in zip(form.parts, form.weights, strict=True):
        yield from _parts(part, weight * float(share))


class TermCells:
    """Effects of a weighted sum of sums and sums of products."""

    def __init__(self, terms: list[tuple[float, Sum | SumOfProducts]]) -> None:
        self._terms = terms
        # law and table of a column, replaced together: a thread reads an entry once
        self._tables: dict[tuple[int, int], tuple[Marginal, Floats]] = {}

    @property
    def interacts(self) -> bool:
        """Whether any term is a product."""
        return not all(isinstance(terms, Sum) for _, terms in self._terms)

    def effects(
        self,
        cells: Ints,  # noqa: ARG002 - the designs decide them
        designs: Sequence[ProductDesign],
        masses: Floats,
        counts: Ints,
    ) -> Floats:
        """E_w[f | cell] - E_w f for every cell of each column under n designs, (n, d, B, k)."""
        # the cells of one background have the same means in a sum, whatever the row
        shared = not self.interacts and designs[0].family is not None
        distinct = designs[:1] if shared else designs
        means = np.zeros((len(distinct), *masses.shape[1:], self._terms[0][1].intercept.size))
        for into, design in zip(means, distinct, strict=True):
            for column, values in zip(into, self._means(design), strict=True):
                column[: len(values)] = values
        return _centred(means, masses, counts)

    def _means(self, design: ProductDesign) -> list[Floats]:
        outputs = self._terms[0][1].intercept.size
        total = [np.zeros((c.marginal.cells.count, outputs)) for c in design.coordinates]
        for i, (weight, terms) in enumerate(self._terms):
            tables = self._values(i, terms, design)
            if isinstance(terms, Sum):
                for j, table in tables.items():
                    total[j] += weight * (table.T @ terms.loadings[j].reshape(-1, outputs))
                continue
            coef = weight * terms.coef.reshape(-1, outputs)
            means = {j: table @ design.coordinates[j].probability for j, table in tables.items()}
            for j, table in tables.items():
                total[j] += table.T @ (coef * _product(means, {j}, len(coef))[:, None])
        return total

    def pairs(self, design: ProductDesign, columns: Sequence[tuple[int, int]]) -> list[Floats] | None:
        """Effects of pairs of cells of these columns, (p_j, p_k, k) each."""
        outputs = self._terms[0][1].intercept.size
        sizes = [c.marginal.cells.count for c in design.coordinates]
        total = [np.zeros((sizes[j], sizes[k], outputs)) for j, k in columns]
        for i, (weight, terms) in enumerate(self._terms):
            if isinstance(terms, Sum):
                continue
            tables, coef = self._values(i, terms, design), weight * terms.coef.reshape(-1, outputs)
            means = {j: table @ design.coordinates[j].probability for j, table in tables.items()}
            for at, (j, k) in enumerate(columns):
                if j in tables and k in tables:
                    others = _product(means, {j, k}, len(coef))
                    for output in range(outputs):
                        weighted = tables[j] * (coef[:, output] * others)[:, None]
                        total[at][:, :, output] += weighted.T @ tables[k]
        masses = [c.probability for c in design.coordinates]
        return [centred(values, masses[j], masses[k]) for values, (j, k) in zip(total, columns, strict=True)]

    def _values(self, i: int, terms: Sum | SumOfProducts, design: ProductDesign) -> dict[int, Floats]:
        """E[g_j | cell] of the columns that the terms read, (m, p) each."""
        columns = ((j, function) for j, function in enumerate(terms.functions) if function is not None)
        return {j: self._table((i, j), design.coordinates[j].marginal, function) for j, function in columns}

    def _table(self, key: tuple[int, int], law: Marginal, function: Function) -> Floats:
        entry = self._tables.get(key)
        if entry is None or entry[0] is not law:
            entry = self._tables[key] = (law, law.expect(function))
        return entry[1]


class ForestCells:
    """Effects of a forest under weights that count cells."""

    def __init__(
        self,
        expectation: ForestExpectation,
        family: ProductFamily,
        terms: list[tuple[float, Sum | SumOfProducts]] | None,
    ) -> None:
        self._expectation, self._family = expectation, family
        self._terms = None if terms is None else TermCells(terms)

    @property
    def interacts(self) -> bool:
        """True: a tree may split on several columns."""
        return True

    def effects(
        self,
        cells: Ints,
        designs: Sequence[ProductDesign],  # noqa: ARG002 - cells decide them
        masses: Floats,
        counts: Ints,
    ) -> Floats:
        """E_w[f | cell] - E_w f for every cell of each column under n designs, (n, d, B, k)."""
        if self._every_cell_counts:
            means = self._expectation.given_cells(self._family, cells)
        else:
            means = np.stack([self._each_as_instance(row) for row in cells])
        return _centred(means, masses, counts)

    @cached_property
    def _every_cell_counts(self) -> bool:
        return all((column.masses > 0.0).all() for column in self._family.columns)

    def _each_as_instance(self, cells: Ints) -> Floats:
        """E_w[f | cell], (d, B, k), by a pass for each cell: E_w f + Γ / α where the cell is the instance's.

        α is positive even for a cell without background rows.
        """
        sizes = [law.cells.count for law in self._family.marginals]
        column, cell = np.array([(j, b) for j, size in enumerate(sizes) for b in range(size)]).T
        patterns = np.repeat(cells[None], len(column), axis=0)
        patterns[np.arange(len(column)), column] = cell
        features = self._family.features(patterns)
        moments = self._expectation.at(Rows.in_cells(self._family, patterns))
        place = np.arange(len(column)), column
        gamma = moments.gamma.reshape(*patterns.shape, -1)[place]
        values = moments.mean.reshape(len(column), -1) + gamma / features.inclusion[place][:, None]
        means = np.zeros((len(sizes), max(sizes), values.shape[1]))
        means[column, cell] = values
        return means

    def pairs(self, design: ProductDesign, columns: Sequence[tuple[int, int]]) -> list[Floats] | None:
        """Effects of pairs of cells of these columns, by the leaves; None if these are too many."""
        return None if self._terms is None else self._terms.pairs(design, columns)


def cell_masses(family: ProductFamily, cells: Ints, designs: Sequence[ProductDesign]) -> tuple[Floats, Ints]:
    """P_w(cell) of every column under n designs, (n, d, B), 0 beyond its last cell; numbers of cells, (n, d).

    ``cells`` (n, d) are those of the rows that the designs, of one family, belong to.
    """
    if family.by_cell:
        counts = np.array([law.cells.count for law in family.marginals])
        return family.masses[np.arange(cells.shape[1]), cells], np.broadcast_to(counts, cells.shape)
    rows = [[coordinate.probability for coordinate in design.coordinates] for design in designs]
    counts = np.array([[q.size for q in row] for row in rows])
    masses = np.zeros((*counts.shape, counts.max()))
    for into, row in zip(masses, rows, strict=True):
        for column, q in zip(into, row, strict=True):
            column[: q.size] = q
    return masses, counts


def _centred(means: Floats, masses: Floats, counts: Ints) -> Floats:
    """Means of cells (n or 1, d, >= B, k) less their mean, (n, d, B, k); 0 beyond the last cell."""
    means = means[:, :, : masses.shape[2]]
    exists = np.arange(masses.shape[2]) < counts[..., None]
    means = np.broadcast_to(means, (*masses.shape, means.shape[3]))
    away = means - np.einsum("ndb,ndbk->ndk", masses, means)[:, :, None]
    return np.where(exists[..., None], away, 0.0)


def _product(means: dict[int, Floats], without: set[int], size: int) -> Floats:
    """Products (m,) of the columns' means, except those of some columns."""
    total = np.ones(size)
    for j, mean in means.items():
        if j not in without:
            total = total * mean
    return total
