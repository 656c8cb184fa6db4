r"""Exact expectations of a forest in one pass over its nodes.

Let e be an edge of a tree, on column j, and I_e the set of x_j that reaches the node below it. With mean_e
and contrast_e, the two functionals of 1[x_j in I_e], and anc(e) the last edge above e on the same column
(mean 1, ρ 0 without one):

    down:   P(node)  = P(parent) · mean_e / mean_anc(e)           the probability to reach the node
    leaf:   G(leaf)  = value · P(leaf)
    up:     G(parent) += G(child),  and column j gains  G(e) · (ρ_e - ρ_anc(e)),  ρ = contrast / mean.

Then E_w f = Σ G(root), and a column's gains add up to its coefficient. mean, contrast and ρ depend on the
row only through the law of its column, which under bin weights is decided by the row's cell: all rows share
one table of splits × cells. Under smooth weights and for slopes every row has its own laws, and the pass
computes the numbers on the way. Means given every cell of every column come out of another pass, at about 1.6
times the cost: ``kernels/forest_effects.h``; contributions (``_shapley/exact.py``) take another again, in
which columns keep the row's value with probability t: ``kernels/forest_contributions.h``; pairs of columns
(``_shapley/pairs.py``) one more: ``kernels/forest_pairs.h``. The passes are compiled: ``kernels/forest_*``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import roots_jacobi

from limes import _kernels
from limes._arrays import Bools, Floats, Ints, Places, aligned, distinct_flags, padded
from limes._expectations.exact import ExactExpectation
from limes._expectations.moments import Moments, ProductExpectation
from limes._functions import LARGEST, BoxesOfTuples, Function, Interval, Members
from limes._threads import WORTH_SHARING, LRUCache, in_threads, is_shared
from limes._tuples import Tuples
from limes.designs._column import SMALLEST_MASS, Column, IndicatorColumn
from limes.designs._marginals import Marginal, TupleCells
from limes.designs._product import ProductFamily, Rows
from limes.exceptions import InputError
from limes.models.forms._trees import Forest
from limes.models.forms._tuples import ForestOfTuples, SetsAt

# Rows of one call of the kernel: few enough that all threads have work.
_BLOCK = 128
# Rows of one call for effects of cells: the kernel takes them through the trees together.
_EFFECTS_BLOCK = 256
# Up to this many rows are quicker one at a time; sums are then added up in another order.
_FEW = 8
# Bytes of the largest table of splits × cells, and of all cached ones; of the largest one where columns have
# more than a few cells. Beyond it each block of rows has a table of the cells that occur in it
_LARGEST_TABLE, _FEW_CELLS, _LARGEST_OF_MANY = 2 << 30, 512, 1 << 27
# Number of cached tables: a diagnosis compares several bandwidths
_TABLES = 4
# Seconds that a split of one row takes, measured: for its coefficients, and for its contributions
_OF_ONE_SPLIT, _OF_ONE_CONTRIBUTION = 12e-9, 2e-8
# Runs of trees that threads share for the coefficients of one row
_RUNS = 8
# Rows of one call for contributions, and splits whose contributions are added up before they join the others
_CONTRIBUTIONS_BLOCK, _SPLITS_TOGETHER = 128, 16_384
# Rows of one call for pairs, and seconds that a split of one row takes, measured
_PAIRS_BLOCK, _OF_ONE_PAIRED = 64, 1e-7
# Up to this many rows share too few divisions to pay for tables: their contributions are computed one by one
_SINGLE = 3


# Rows, masses of edges under the laws that they have, and which of these each row has
_Masses: TypeAlias = tuple[slice, Floats, Ints]


class ForestExpectation(ProductExpectation):
    """Moments of one forest under many designs.

    Contributions and pairs of a row are the same to the last bit in any call.
    """

    columns: int  # number of columns d
    constant: Floats  # (k,), sum of the trees that are one leaf
    # for each column the indicators whose differences are its edges; None where no split reads it
    functions: tuple[Function | None, ...]
    ranks: Ints  # (d,), position of the last threshold's indicator of each column
    # (column, same, lower, upper, missing, above, is_left), each (N,): see ``kernels/forest_layout.cpp``
    edges: tuple[Ints, Ints, Ints, Ints, Bools, Ints, Bools]
    nodes: Ints  # (N,), the form's node below each edge
    splits: _kernels.Splits  # in the layout of the compiled passes, depth first
    starts: Ints  # first split of each tree with a split, and the number S of all splits
    interacting: Ints  # of each such tree the largest number of different columns on a path

    def __init__(self, form: Forest | ForestOfTuples) -> None:
        self._form = form
        self._lay_out()
        # for rows together, and for single ones: 32 bytes a split and cell each
        self._tables: LRUCache[ProductFamily, Floats] = LRUCache(_TABLES, _LARGEST_TABLE)
        self._tables_of_single: LRUCache[ProductFamily, Floats] = LRUCache(_TABLES, _LARGEST_TABLE)
        self._shares: LRUCache[ProductFamily, Floats] = LRUCache(_TABLES, _LARGEST_TABLE)
        # probabilities of edges as rows together read them, and single ones: 16 bytes a split and cell each
        self._masses: LRUCache[ProductFamily, Floats] = LRUCache(_TABLES, _LARGEST_TABLE)
        self._masses_of_single: LRUCache[ProductFamily, Floats] = LRUCache(_TABLES, _LARGEST_TABLE)
        self._in_one_order = False

    def reproducible(self) -> ForestExpectation:
        """Return a copy that adds up all trees in one order; see ``TabularModel.expectation``."""
        other = ForestExpectation.__new__(ForestExpectation)
        vars(other).update(vars(self), _in_one_order=True)
        return other

    def __getstate__(self) -> dict[str, Any]:
        # a copy in another process lays the forest out again, which takes less time than sending it
        of_rows = "_tables", "_tables_of_single", "_shares", "_masses", "_masses_of_single"
        kept = ("_form", *of_rows, "_in_one_order")
        return {name: vars(self)[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lay_out()

    def shares_tables(self, family: ProductFamily | None) -> bool:
        """Whether cells decide the designs, and the table of splits × cells is not too large."""
        if family is None or not family.by_cell:
            return False
        size, widest = 32 * padded(family.widest) * self.size, family.widest
        return size <= (_LARGEST_TABLE if widest <= _FEW_CELLS and not self._has_groups else _LARGEST_OF_MANY)

    @cached_property
    def _has_groups(self) -> bool:
        """Whether a column is a group, of which rows in boxes of tuples are soon counted."""
        return any(isinstance(function, BoxesOfTuples) for function in self.functions)

    def rows_at_once(self, family: ProductFamily) -> int:
        return super().rows_at_once(family) if self.shares_tables(family) or not family.by_cell else _BLOCK

    def account_seconds(self, family: ProductFamily) -> float:
        # measured: splits, and nodes of t, eight at once
        return super().account_seconds(family) + 6.5e-9 * self._work

    def at(self, rows: Rows) -> Moments:
        if len(rows.cells.T) != self.columns:
            raise InputError(f"the design has {len(rows.cells.T)} columns, the forest {self.columns}")
        family, (n, d) = rows.family, rows.cells.shape
        variance = rows.features.variance
        mean, contrast = np.zeros((n, self.outputs)), np.zeros((n, d, self.outputs))
        if family is not None and self.shares_tables(family):
            self._by_table(family.columns, rows.cells, mean, contrast, family)
            return self._moments(mean, contrast, variance)
        if family is not None and family.by_cell:
            for start in range(0, n, _BLOCK):
                some = slice(start, start + _BLOCK)
                columns, cells = _occurring(family, rows.cells[some])
                self._by_table(columns, cells, mean[some], contrast[some])
            return self._moments(mean, contrast, variance)
        fixed = rows.nearly_fixed
        if fixed.all():
            return self._leaves.at(rows)
        for i, row in enumerate(zip(*self._at_rows(rows), strict=True)):
            law = partial(_kernels.explain_law, self.splits, self.intervals, *row)
            mean[i], contrast[i] = self._one(law)
        moments = self._moments(mean, contrast, variance)
        if fixed.any():
            exact = self._leaves.at(rows.take(np.flatnonzero(fixed)))
            moments.mean[fixed], moments.gamma[fixed] = exact.mean, exact.gamma
        return moments

    def _by_table(
        self,
        columns: Sequence[Column],
        cells: Ints,
        mean: Floats,
        contrast: Floats,
        family: ProductFamily | None = None,
    ) -> None:
        """Fill the means and contrasts of rows with these laws of their columns, maybe those of a family."""
        if len(cells) > _FEW or self._in_one_order:
            table = self._table(columns) if family is None else self._shared(family)
            self._blocks(table, np.ascontiguousarray(cells, dtype=np.uint32), mean, contrast)
            return

        def tabulate() -> Floats:
            return self._cell_by_cell(self._table(columns))

        single = self._tables_of_single
        table = tabulate() if family is None else single.get(family, tabulate, lambda table: table.nbytes)
        one_row = partial(_kernels.explain_row, self.splits, table)
        for i, row in enumerate(cells.astype(np.uint32)):
            mean[i], contrast[i] = self._one(partial(one_row, row))

    def _cell_by_cell(self, numbers: Floats) -> Floats:
        """Numbers of edges (S, m, V) as single rows read them: (V, S, m), with splits sorted by column."""
        return np.ascontiguousarray(numbers[self._by_column].transpose(2, 0, 1))

    def _at_rows(self, rows: Rows) -> tuple[Floats, Floats]:
        """Two functionals of each column's indicators, (n, ranks, 2), and their mixing, (n, d, 2, 2)."""
        start = self.start
        functionals = np.zeros((len(rows), start[-1], 2))
        mixing = np.zeros((*rows.cells.shape, 2, 2))
        for j, function in enumerate(self.functions):
            if function is not None:
                column, law = rows.columns[j], rows.index[:, j]
                functionals[:, start[j] : start[j + 1]] = column.basis(function)[:, law].transpose(1, 0, 2)
                mixing[:, j] = column.mixing[law]
        return functionals, mixing

    def given_cells(self, family: ProductFamily, cells: Ints) -> Floats:
        """E_w[f | x_j in cell b], (n, d, B, k), up to a constant a row and column; every cell has a mass."""
        table = self._shared(family)
        shares = self._shares.get(family, lambda: self._shares_of(family), lambda table: table.nbytes)
        means = np.zeros((*cells.shape, table.shape[2], self.outputs))
        add = partial(_kernels.effects_block, self.splits, table, shares)
        codes = np.ascontiguousarray(cells, dtype=np.uint32)

        def block(start: int) -> None:
            rows = slice(start, start + _EFFECTS_BLOCK)
            add(codes[rows], means[rows], "")

        in_threads(block, range(0, len(cells), _EFFECTS_BLOCK))
        return means

    def contributions(self, family: ProductFamily, x: Floats, cells: Ints) -> tuple[Floats, Floats]:
        """E_w f (n, k), and contributions, those of values alone, and last, (n, 3, d, k), at rows (n, d)."""
        base = np.zeros((len(x), self.outputs))
        sums = np.zeros((len(x), 3, self.columns, self.outputs))
        for some, masses, laws in self._masses_at(family, x, cells, by_cell=True):
            self._add_contributions(masses, x[some], laws, base[some], sums[some])
        return base + self.constant + np.reshape(self._form.intercept, -1), sums

    def pairs(self, family: ProductFamily, x: Floats, cells: Ints) -> Floats:
        """Shapley interaction indices of pairs of columns at rows (n, d): (n, d, d, k), 0 on the diagonal.

        The numbers of a row are the same to the last bit in any call.
        """
        return self._pairs_at(x, self._masses_at(family, x, cells, by_cell=False))

    def _pairs_at(self, x: Floats, blocks: Iterable[tuple[slice, Floats, Ints]]) -> Floats:
        """Pairs by blocks of rows, with the masses of edges there, and the rows' laws in these."""
        d = self.columns
        sums = np.zeros((len(x), d * (d - 1) // 2, self.outputs))
        for some, masses, laws in blocks:
            self._add_pairs(masses, x[some], laws, sums[some])
        first, second = np.tril_indices(d, -1)
        pairs = np.zeros((len(x), d, d, self.outputs))
        pairs[:, first, second] = pairs[:, second, first] = sums
        return pairs

    def _masses_at(
        self, family: ProductFamily, x: Floats, cells: Ints, *, by_cell: bool
    ) -> Iterator[_Masses]:
        """Blocks of rows x in these cells (n, d), the masses of edges there, and the rows' laws in these.

        ``by_cell`` states whether masses of few rows are cell by cell: see `_cell_by_cell`.
        """
        if self.shares_tables(family):
            single = by_cell and len(x) <= _SINGLE
            cache = self._masses_of_single if single else self._masses
            masses = cache.get(
                family, lambda: self._edge_masses(family.columns, single=single), lambda m: m.nbytes
            )
            yield slice(0, len(x)), masses, cells
        elif family.by_cell:
            for start in range(0, len(x), _CONTRIBUTIONS_BLOCK):
                some = slice(start, start + _CONTRIBUTIONS_BLOCK)
                columns, laws = _occurring(family, cells[some])
                yield some, self._masses_of(columns, single=by_cell and len(laws) <= _SINGLE), laws
        else:
            for i in range(len(x)):
                masses = self._edge_masses(family.at(x[i]).coordinates, single=by_cell)
                yield slice(i, i + 1), masses, np.zeros_like(cells[:1])

    def contributions_by_covers(self, x: Floats) -> tuple[Floats, Floats]:
        """The same at rows (n, d) under the law of covers, of a form that has covers: see `cover_shares`."""
        base = np.zeros((len(x), self.outputs))
        sums = np.zeros((len(x), 3, self.columns, self.outputs))
        shares = self._cell_by_cell(self.cover_shares) if len(x) <= _SINGLE else self.cover_shares
        self._add_contributions(shares, x, np.zeros(x.shape, dtype=np.int64), base, sums)
        return base + self.constant + np.reshape(self._form.intercept, -1), sums

    def pairs_by_covers(self, x: Floats) -> Floats:
        """The same of pairs."""
        return self._pairs_at(x, [(slice(0, len(x)), self.cover_shares, np.zeros(x.shape, dtype=np.int64))])

    @cached_property
    def cover_shares(self) -> Floats:
        """For both edges below every split, the share of covers that takes them, (S, 2, 1).

        It is the product over the splits of the edge's column, down to the edge, of the child's part of the
        covers, and has the place of the probability of an interval: it is the leaf's own, and no law of the
        table's. Where no training row came to a split, both of its children have half.
        """
        form, (column, same, _, _, _, above, is_left) = self._form, self.edges
        assert isinstance(form, Forest)  # noqa: S101 - groups have a law of a table
        inner = np.flatnonzero(form.feature >= 0)
        part = np.ones(form.feature.size)
        for child in (form.left[inner], form.right[inner]):
            part[child] = np.divide(
                form.covers[child],
                form.covers[inner],
                out=np.full(inner.size, 0.5),
                where=form.covers[inner] > 0.0,
            )
        share, edge = part[self.nodes], same
        while (edge >= 0).any():
            share = share * np.where(edge >= 0, part[self.nodes[edge]], 1.0)
            edge = np.where(edge >= 0, same[edge], -1)
        below = np.flatnonzero(column >= 0)
        shares = np.zeros((self.size, 2, 1))
        shares[above[below], 1 - is_left[below], 0] = share[below]
        return shares

    def _add_contributions(self, masses: Floats, x: Floats, cells: Ints, base: Floats, sums: Floats) -> None:
        codes, places, passes = cells.astype(np.uint32), self.places(x), self.passes
        add_rows = _kernels.add_single_rows if len(x) <= _SINGLE else _kernels.add_contributions

        def add(
            rows: slice,
            some: Sequence[tuple[Places, Floats, Floats]],
            base: Floats,
            sums: Floats,
            sets: tuple[Bools, Ints],
        ) -> None:
            its = codes[rows], places[rows], *sets
            for each in some:
                add_rows(self.splits, self.tests, masses, *its, *each, base, sums, "")

        seconds = _OF_ONE_CONTRIBUTION * len(x) * self._work
        if len(x) > _CONTRIBUTIONS_BLOCK or not is_shared(len(passes), seconds):

            def block(start: int) -> None:
                rows = slice(start, start + _CONTRIBUTIONS_BLOCK)
                add(rows, passes, base[rows], sums[rows], self.members(x[rows]))

            in_threads(block, range(0, len(x), _CONTRIBUTIONS_BLOCK))
            return
        # threads share the trees of few rows, which are added up in the same order
        parts = [(np.zeros_like(base), np.zeros_like(sums)) for _ in passes]
        sets = self.members(x)
        in_threads(
            lambda i: add(slice(None), passes[i : i + 1], *parts[i], sets), range(len(passes)), seconds
        )
        for of_base, of_sums in parts:
            base += of_base
            sums += of_sums

    def _add_pairs(self, masses: Floats, x: Floats, cells: Ints, sums: Floats) -> None:
        codes, places, passes = cells.astype(np.uint32), self.places(x), self.pair_passes

        def add(rows: slice, which: int, sums: Floats) -> None:
            members, first = self.members(x[rows])
            numbers = masses, codes[rows], places[rows], members, first, *passes[which]
            _kernels.add_forest_pairs(self.splits, self.tests, *numbers, sums, "")

        blocks = [slice(start, start + _PAIRS_BLOCK) for start in range(0, len(x), _PAIRS_BLOCK)]
        if len(blocks) > 1:

            def block(b: int) -> None:
                for which in range(len(passes)):
                    add(blocks[b], which, sums[blocks[b]])

            in_threads(block, range(len(blocks)))
            return
        # few rows are shared by trees, and added up in the same order
        parts = [np.zeros_like(sums) for _ in passes]
        work = sum(int(np.diff(self.starts)[trees].sum()) for trees, _, _ in passes)
        seconds = _OF_ONE_PAIRED * len(x) * work
        in_threads(lambda which: add(slice(None), which, parts[which]), range(len(passes)), seconds)
        for part in parts:
            sums += part

    def _masses_of(self, columns: Sequence[Column], *, single: bool) -> Floats:
        """The same of the few laws of a block of rows."""
        return self._edge_masses(columns, single=single, few=True)

    def _edge_masses(self, columns: Sequence[Column], *, single: bool, few: bool = False) -> Floats:
        """P(x in the interval of an edge) of both edges below every split, for each law: (S, 2, V).

        For ``single`` rows (V, S, 2): see `_cell_by_cell`. Of the ``few`` laws of some rows, the
        few tuples of their cells are counted in boxes; of all laws, boxes have their counts already.
        """
        groups = self._groups if few else None
        counted = np.zeros(len(columns), dtype=np.bool_) if groups is None else groups.counted(columns)
        functionals, mixing = self._functionals(columns, counted)
        masses = np.zeros((self.size, 2, functionals.shape[1]))
        _kernels.edge_masses(self.splits, self.intervals, functionals, mixing, counted, masses)
        if groups is not None and counted.any():
            groups.add_masses(columns, masses)
        return self._cell_by_cell(masses) if single else masses

    @cached_property
    def _leaves(self) -> ExactExpectation:
        """The plain expectation: slower, but it takes no differences of probabilities near 1."""
        return ExactExpectation(self._form)

    def _one(self, explain: Callable[[int, int, Floats, Floats], None]) -> tuple[Floats, Floats]:
        """Add up the mean (k,) and contrasts (d, k) of one row over runs of trees."""
        runs = self._runs()
        mean = np.zeros((len(runs), self.outputs))
        contrast = np.zeros((len(runs), self.columns, self.outputs))
        in_threads(lambda i: explain(*runs[i], mean[i], contrast[i]), range(len(runs)))
        return mean.sum(axis=0), contrast.sum(axis=0)

    def _runs(self) -> list[tuple[int, int]]:
        """Runs of trees, (first, last + 1), that threads share for a single row: as many on any machine."""
        starts = self.starts
        if self._in_one_order or _OF_ONE_SPLIT * self.size < WORTH_SHARING:
            return [(0, starts.size - 1)]
        return _runs(starts, _RUNS)

    def _blocks(self, table: Floats, cells: Places, mean: Floats, contrast: Floats) -> None:
        explain = partial(_kernels.explain_block, self.splits, table)

        def block(start: int) -> None:
            rows = slice(start, start + _BLOCK)
            explain(cells[rows], mean[rows], contrast[rows], "")

        in_threads(block, range(0, len(cells), _BLOCK))

    def _shared(self, family: ProductFamily) -> Floats:
        return self._tables.get(family, lambda: self._table(family.columns), lambda table: table.nbytes)

    def _table(self, columns: Sequence[Column]) -> Floats:
        """Ratios and changes of the edges below every split, for each law of its column: (S, 4, ≥ V)."""
        functionals, mixing = self._functionals(columns)
        table = np.zeros((self.size, 4, padded(functionals.shape[1])))
        _kernels.tabulate(*self.edges, functionals, self.start, mixing, table)
        return table

    def _functionals(self, columns: Sequence[Column], left_out: Bools | None = None) -> tuple[Floats, Floats]:
        """Two functionals of each column's indicators, (ranks, V, 2), and their mixing, (d, V, 2, 2)."""
        widest = max(column.size for column in columns)
        functionals = np.zeros((self.start[-1], widest, 2))
        mixing = np.zeros((len(columns), widest, 2, 2))
        for j, (column, function) in enumerate(zip(columns, self.functions, strict=True)):
            if function is not None and (left_out is None or not left_out[j]):
                functionals[self.start[j] : self.start[j + 1], : column.size] = column.basis(function)
                mixing[j, : column.size] = column.mixing
        return functionals, mixing

    def _shares_of(self, family: ProductFamily) -> Floats:
        """Shares of the edges below every split, (S, 4, ≥ B).

        Two tables an edge: 1 / P(edge) by the row's cell, and P(edge | cell). Where most entries of the
        second are 1, it stores P - 1, so that the kernel skips zeros: effects are centred afterwards.
        """
        column, _, lower, upper, missing, above, is_left = self.edges
        shares = np.zeros((self.size, 4, padded(family.widest)))
        for j, function in enumerate(self.functions):
            if function is None:
                continue
            edge, cells = np.flatnonzero(column == j), family.columns[j]
            means = family.marginals[j].expect(function)
            inside = means[upper[edge]] - means[lower[edge]] + missing[edge, None] * means[-1]
            inside = np.maximum(inside, 0.0)
            reached = inside @ np.ascontiguousarray(cells.masses.T)
            inverse = np.divide(1.0, reached, out=np.zeros_like(reached), where=reached > 0.0)
            zeros, ones = (inside == 0.0).sum(axis=1), (inside == 1.0).sum(axis=1)
            inside[(ones > zeros) | ((ones == zeros) & (inside[:, -1] == 1.0))] -= 1.0
            split, side = above[edge], 1 - is_left[edge]
            shares[split, side, : cells.size] = inverse
            shares[split, 2 + side, : cells.size] = inside
        return shares

    def _moments(self, mean: Floats, contrast: Floats, variance: Floats) -> Moments:
        shape = self._form.intercept.shape
        mean = (mean + self.constant).reshape((*mean.shape[:-1], *shape)) + self._form.intercept
        contrast = contrast.reshape((*contrast.shape[:-1], *shape))
        return Moments.exact(mean, contrast * aligned(variance, contrast), designs=variance.shape[:-1])

    # -- the layout -----------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        """Lay the forest out as the kernels read it."""
        whole = self._form
        form, tested = (whole, whole.feature) if isinstance(whole, Forest) else (whole.forest, whole.feature)
        edges, is_left = np.zeros((5, tested.size), np.int64), np.zeros(tested.size, np.bool_)
        count = _kernels.preorder(tested, form.left, form.right, form.roots, edges, is_left)
        # the nodes of all trees, depth first
        (node, parent, depth, column, same), is_left = edges[:, :count], is_left[:count]
        upper_node = np.where(parent >= 0, node[parent], 0)
        functions, ranks, rank = _thresholds(form, tested, whole.size)
        bounds, missing = np.zeros((2, node.size), dtype=np.int64), np.zeros(node.size, dtype=np.bool_)
        _kernels.intervals(
            column, same, is_left, rank[upper_node], form.missing_left[upper_node], ranks, bounds, missing
        )
        lower, upper = bounds
        by_set = np.unique(form.feature[form.set_of >= 0]).tolist()
        sets_of: dict[int, SetsAt] = {j: partial(_category_sets, form, j) for j in by_set}
        if not isinstance(whole, Forest):
            sets_of = whole.sets_of(sets_of)
        for j, sets_at in sets_of.items():
            of_column = np.flatnonzero(column == j)
            functions[j], which = sets_at(node[of_column])
            lower[of_column], upper[of_column], missing[of_column] = 0, 1 + which, False
            ranks[j] = 1 + which.max()
        is_leaf = form.feature[node] < 0
        number = np.cumsum(~is_leaf) - 1
        above = np.where(parent >= 0, number[parent], 0)
        value = form.value[node].reshape(node.size, -1)
        split, alone = np.flatnonzero(~is_leaf), is_leaf & (parent < 0)
        leaves = np.zeros((split.size, 2, value.shape[1]))
        leaf = np.flatnonzero(is_leaf & ~alone)
        leaves[above[leaf], 1 - is_left[leaf]] = value[leaf]
        has_leaf = np.zeros(split.size, dtype=np.bool_)
        has_leaf[above[leaf]] = True
        starts = np.append(np.flatnonzero(parent[split] < 0), split.size)
        is_first = np.zeros(split.size, dtype=np.bool_)  # whether no split above has the column
        is_first[above[parent >= 0]] = same[parent >= 0] < 0
        self.columns, self.constant = whole.size, value[alone].sum(axis=0)
        self.functions, self.ranks = tuple(functions), ranks
        self.edges, self.nodes = (column, same, lower, upper, missing, above, is_left), node
        self.splits = _kernels.Splits(
            whole.size,
            depth[split].astype(np.uint32),
            has_leaf,
            tested[node[split]].astype(np.uint32),
            above[split].astype(np.uint32),
            (1 - is_left[split]).astype(np.uint32),
            leaves,
        )
        self.starts = starts
        self._by_column = np.argsort(tested[node[split]], kind="stable")
        self.interacting = _most_columns(depth[split], above[split], is_first, starts)

    @property
    def size(self) -> int:
        return int(self.starts[-1])

    @property
    def outputs(self) -> int:
        return self.constant.size

    @cached_property
    def start(self) -> Ints:
        """First indicator of each column, and the number of all."""
        sizes = [0 if f is None else self.ranks[j] + 2 for j, f in enumerate(self.functions)]
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    @cached_property
    def intervals(self) -> _kernels.Intervals:
        """The edges in the layout of the pass for one row."""
        return _kernels.Intervals(self.splits, *self.edges, self.start)

    @cached_property
    def tests(self) -> _kernels.Intervals:
        """The edges in the layout of the passes for contributions, which ask where rows go."""
        return self.intervals if self._groups is None else self._groups.intervals

    @cached_property
    def _test_start(self) -> Ints:
        """The same as `start` of `tests`."""
        return self.start if self._groups is None else self._groups.start

    @cached_property
    def _groups(self) -> GroupTests | None:
        if not self._has_groups:
            return None
        assert isinstance(self._form, ForestOfTuples)  # noqa: S101 - others have no groups
        nodes = self.nodes[self._form.feature[self.nodes] >= 0]
        return GroupTests(self._form, self.splits, nodes, self.edges, np.diff(self.start), self.functions)

    @cached_property
    def cuts(self) -> dict[int, Floats]:
        """Thresholds of the columns of numbers that a split reads, ascending."""
        return {j: f.upper[1:-2] for j, f in enumerate(self.functions) if isinstance(f, Interval)}

    @cached_property
    def sets(self) -> dict[int, Members | BoxesOfTuples]:
        """Sets of categories, or of tuples, of the other columns that a split reads."""
        return {j: f for j, f in enumerate(self.functions) if isinstance(f, Members | BoxesOfTuples)}

    def places(self, x: Floats) -> Places:
        """Position among all indicators of the first threshold not below each value of rows (n, d)."""
        points, starts, missing = self._searched
        places = np.empty(x.shape, dtype=np.int64)
        # an indicator is 1 at -inf where it is 1 at the smallest number
        values = np.ascontiguousarray(np.maximum(x, -LARGEST))
        _kernels.locate(values, points, starts, np.zeros(x.shape[1], dtype=np.bool_), missing, places)
        return (places + (1 + self._test_start[:-1])).astype(np.uint32)

    @cached_property
    def _searched(self) -> tuple[Floats, Ints, Ints]:
        """Thresholds of all columns, where those of each begin, and the place of missing values less one."""
        cuts = [self.cuts.get(j, np.zeros(0)) for j in range(self.columns)]
        sizes = np.array([its.size for its in cuts], dtype=np.int64)
        return np.concatenate(cuts), np.concatenate([[0], np.cumsum(sizes)]), sizes + 1

    def members(self, x: Floats) -> tuple[Bools, Ints]:
        """Whether values of rows (n, d) are in the sets of columns, (sets, n).

        Of a column, its indicators' first position less that of its sets, (d,); -1 without sets.
        """
        of_groups = {} if self._groups is None else self._groups.flags(x)
        first, parts, count = np.full(x.shape[1], -1, dtype=np.int64), [np.zeros((0, len(x)), np.bool_)], 0
        for j, sets in self.sets.items():
            first[j] = self._test_start[j] - count
            parts.append(of_groups[j] if j in of_groups else sets(x[:, j]) > 0.0)
            count += len(parts[-1])
        return np.concatenate(parts), first

    @cached_property
    def pair_passes(self) -> list[tuple[Places, Floats, Floats]]:
        """Trees, nodes t (T, 2) and weights (T,) of passes that add up to the pairs."""
        # n nodes are exact up to degree 2n - 1, and pairs of c columns have degree c - 2
        return self._passes_by(self.interacting // 2, _legendre)

    @cached_property
    def passes(self) -> list[tuple[Places, Floats, Floats]]:
        """Trees, nodes t (T, 2) and weights (3, T) of passes that add up to the contributions.

        Trees of few columns need few nodes; the kernel takes 4 or 8 at once, of many trees or few.
        """
        # n nodes with both ends are exact up to degree 2n - 3, and c columns have degree c - 1
        return self._passes_by((self.interacting + 3) // 2, _lobatto)

    def _passes_by(
        self, needed: Ints, rule: Callable[[int], tuple[Floats, Floats]]
    ) -> list[tuple[Places, Floats, Floats]]:
        """Passes by a quadrature that has the nodes that each tree needs, or more."""
        nodes = np.where(needed <= 4, 4, 8 * -(-needed // 8))
        passes = []
        for count in np.unique(nodes).tolist():
            trees = np.flatnonzero(nodes == count)
            t, weights = rule(count)
            ends = np.cumsum(np.diff(self.starts)[trees]) // _SPLITS_TOGETHER
            for run in np.split(trees.astype(np.uint32), 1 + np.flatnonzero(np.diff(ends))):
                for first in range(0, count, 8):
                    at = slice(first, first + 8)
                    passes.append((run, t[at], np.ascontiguousarray(weights[..., at])))
        return passes

    @cached_property
    def _work(self) -> int:
        """Splits that the passes for contributions of a row walk."""
        sizes = np.diff(self.starts)
        return sum(int(sizes[trees].sum()) for trees, _, _ in self.passes)


class _Group(NamedTuple):
    """A group that is tested."""

    tuples: Tuples
    members: Ints  # its columns
    splits: Ints  # on it
    tests: _kernels.Tests  # of these splits, one each
    different: _kernels.Tests
    size: int  # number of different tests
    boxes: BoxesOfTuples  # that its edges have
    box: Ints  # of each edge
    place: tuple[Ints, Ints]  # of each edge: the place of its split among these, and the side


class GroupTests:
    """Tests of groups at the splits of a forest: which way rows go, and the probabilities of groups' boxes.

    A split tests one column of a group. So a row is in the box of an edge if it is in that of the last edge
    above on the same group, and goes the edge's way at the split: no box is listed. The background's tuples
    go down alike, and their rows in each box are counted: ``kernels/tuple_masses.cpp``.
    """

    intervals: _kernels.Intervals  # of the edges; of groups, positions of different tests are the left sides'
    start: Ints  # first indicator, or test, of each column or group, and the number of all

    def __init__(
        self,
        form: ForestOfTuples,
        splits: _kernels.Splits,
        nodes: Ints,
        edges: tuple[Ints, Ints, Ints, Ints, Bools, Ints, Bools],
        sizes: Ints,
        functions: Sequence[Function | None],
    ) -> None:
        """The form's ``nodes`` (S,) are those of splits, ``sizes`` (G,) numbers of columns' indicators."""
        self._splits, self._count, self._decode = splits, nodes.size, form.grouping.decode
        self._columns, self._groups = form.grouping.columns, dict[int, _Group]()
        column, same, lower, upper, missing, above, is_left = edges
        lower, upper, missing, sizes = lower.copy(), upper.copy(), missing.copy(), sizes.copy()
        trees = form.forest.trees
        for g, tuples in enumerate(form.grouping.tuples):
            its = np.flatnonzero(column == g)
            if tuples is None or not its.size:
                continue
            boxes, box = functions[g], upper[its]
            assert isinstance(boxes, BoxesOfTuples)  # noqa: S101 - the sets of a group
            first, which = form.distinct_tests(nodes[above[its]])
            lower[its], upper[its], missing[its], sizes[g] = 0, which, False, first.size
            of_group = np.unique(above[its])
            place = np.searchsorted(of_group, above[its]), 1 - is_left[its]
            tests = _kernels.Tests(trees, nodes[of_group]), _kernels.Tests(trees, nodes[above[its[first]]])
            self._groups[g] = _Group(
                tuples, form.grouping.members[g], of_group, *tests, first.size, boxes, box, place
            )
        self.start = np.concatenate([[0], np.cumsum(sizes)])
        self.intervals = _kernels.Intervals(
            splits, column, same, lower, upper, missing, above, is_left, self.start
        )

    def flags(self, x: Floats) -> dict[int, Bools]:
        """Whether rows (n, G) go left at the different tests of each group, (tests, n)."""
        columns, flags = np.ascontiguousarray(self._decode(x).T), dict[int, Bools]()
        for g, group in self._groups.items():
            flags[g] = np.empty((group.size, len(x)), dtype=np.bool_)
            _kernels.test_rows(group.different, columns, flags[g])
        return flags

    def counted(self, columns: Sequence[Column]) -> Bools:
        """Groups whose probabilities `add_masses` counts, (G,): none where more than cells decides laws."""
        counted = np.zeros(len(columns), dtype=np.bool_)
        counted[[*self._groups]] = all(_is_by_cell(columns[g]) for g in self._groups)
        return counted

    def add_masses(self, columns: Sequence[Column], masses: Floats) -> None:
        """Write the probabilities of groups' boxes under their laws, rows of masses (S, 2, V)."""
        for g, group in self._groups.items():
            column = columns[g]
            assert isinstance(column, IndicatorColumn)  # noqa: S101 - see `counted`
            cells = column.marginal.cells
            assert isinstance(cells, TupleCells)  # noqa: S101 - the law of a group
            inside = cells.rows[column.cell]
            rows = np.stack([inside, cells.rows.sum() - inside], axis=1)
            tuples = [cells.tuples_in(cell) for cell in column.cell.tolist()]
            self._write(group, tuples, column.mixing[:, 0] / np.maximum(rows, 1.0), self._rows, masses)

    @cached_property
    def _rows(self) -> Floats:
        """Background rows in the groups' boxes below every split, (S, 2)."""
        rows = np.zeros((self._count, 2))
        for group in self._groups.values():
            split, side = group.place
            rows[group.splits[split], side] = group.boxes.of_background[group.box]
        return rows

    def _write(
        self, group: _Group, tuples: Sequence[Ints], scales: Floats, rows: Floats, masses: Floats
    ) -> None:
        """Write rows of masses for laws that have these tuples of the background in their cells."""
        every = np.concatenate(tuples)
        x = np.zeros((self._columns, every.size))
        x[group.members] = group.tuples.background[every].T
        ends, counts = np.cumsum([its.size for its in tuples]), group.tuples.counts[every].astype(np.uint32)
        forest = self._splits, self.intervals, group.tests, group.splits
        _kernels.tuple_masses(*forest, x, counts, ends, scales, rows, masses)


def _is_by_cell(column: Column) -> bool:
    return isinstance(column, IndicatorColumn) and isinstance(column.law, Marginal)


def _occurring(family: ProductFamily, cells: Ints) -> tuple[list[IndicatorColumn], Ints]:
    """The columns with the laws that occur in rows (n, d), and the positions of these."""
    each = [np.unique(of_column, return_inverse=True) for of_column in cells.T]
    columns = [column.select(which) for column, (which, _) in zip(family.columns, each, strict=True)]
    return columns, np.stack([place for _, place in each], axis=1)


def _most_columns(depth: Ints, parent: Ints, is_first: Bools, starts: Ints) -> Ints:
    """The largest number of different columns on a path of each tree, from its splits."""
    if not depth.size:
        return np.zeros(0, dtype=np.int64)
    columns = is_first.astype(np.int64)
    order = np.argsort(depth, kind="stable")
    for level in np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)[1:]:
        columns[level] += columns[parent[level]]
    return np.maximum.reduceat(columns, starts[:-1])


def _lobatto(count: int) -> tuple[Floats, Floats]:
    """Nodes t and 1 - t (T, 2) of a quadrature with both ends; its weights, and each end's, (3, T)."""
    x, of_jacobi = roots_jacobi(count - 2, 1.0, 1.0)
    # nothing but a division tells the ends from 0 and 1
    ends = np.array([[SMALLEST_MASS, 1.0], [1.0, SMALLEST_MASS]])
    weights = np.zeros((3, count))
    weights[0, 1:-1] = 0.5 * of_jacobi / ((1.0 - x) * (1.0 + x))
    weights[0, [0, -1]] = 1.0 / (count * (count - 1))
    weights[1, 0] = weights[2, -1] = 1.0
    return np.concatenate([ends[:1], 0.5 * np.stack([1.0 + x, 1.0 - x], axis=1), ends[1:]]), weights


def _legendre(count: int) -> tuple[Floats, Floats]:
    """Nodes t and 1 - t (T, 2) of a quadrature without ends, and its weights, (T,)."""
    x, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * np.stack([1.0 + x, 1.0 - x], axis=1), 0.5 * weights


def _runs(starts: Ints, count: int) -> list[tuple[int, int]]:
    """Cut the trees into at most ``count`` runs of about equal numbers of splits."""
    wanted = starts[-1] * np.arange(1, count) / count
    cuts = [0, *np.searchsorted(starts, wanted).tolist(), starts.size - 1]
    return [(first, last) for first, last in pairwise(cuts) if first < last]


def _thresholds(form: Forest, tested: Ints, size: int) -> tuple[list[Function | None], Ints, Ints]:
    """Columns' 0, 1[x <= t] with t ascending, 1[present], 1[missing]; last ranks; inner nodes' ranks."""
    functions: list[Function | None] = []
    ranks, rank = np.zeros(size, dtype=np.int64), np.zeros(tested.size, dtype=np.int64)
    for j in range(size):
        nodes = np.flatnonzero(tested == j)
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
    """Distinct sets of categories that reach the nodes, between two empty ones, and each node's set."""
    allowed, missing, group = form.reaching(column)
    reaching = np.column_stack([allowed[nodes], missing[nodes]])
    first, which = distinct_flags(reaching)
    rows = np.pad(reaching[first], ((1, 1), (0, 0)))
    return Members(rows[:, :-2], rows[:, -1], rows[:, -2], group), which
