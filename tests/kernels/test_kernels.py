"""Every compiled kernel against its definition, entry for entry, and against input that makes no sense."""

from importlib import import_module
from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest

import plain_kernels as plain
from effort import repeats

# `make kernels` and `make sanitize` put a build of their own on the path
kernels = import_module("_kernels" if find_spec("_kernels") else "limes._kernels")

EXACT = 1e-12  # sums of at most a few thousand terms, in another order


def close(actual, expected):
    expected = np.asarray(expected)
    np.testing.assert_allclose(
        actual, expected, rtol=0, atol=EXACT * max(1.0, np.abs(expected).max(initial=0))
    )


# -- trees -------------------------------------------------------------------------------------------------


def nodes_of(trees):
    """Arguments of `kernels.Trees`."""
    columns = 1 + int(trees.feature.max(initial=0))
    tests = (trees.feature, trees.threshold, trees.left, trees.right, trees.missing_left)
    return [columns, *tests, trees.set_of, trees.sets, trees.roots]


def leaves_of(trees, x):
    total = np.zeros((len(x), trees.value.shape[1]))
    kernels.add_leaves(kernels.Trees(*nodes_of(trees)), x, trees.value, total)
    return total


@pytest.mark.parametrize("codes", [0, 6])
@pytest.mark.parametrize("outputs", [1, 3])
def test_rows_reach_the_leaves_they_should(codes, outputs):
    rng = np.random.default_rng(outputs)
    trees = plain.Trees.random(rng, 8, 6, 4, outputs, codes=codes)
    x = rng.choice([-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0, 7.0, 1e300, np.inf, -np.inf, np.nan], (200, 4))
    close(leaves_of(trees, x), [trees.predict(row) for row in x])


@pytest.mark.parametrize("rows", [33, 64, 65, 512, 513, 1100])
@pytest.mark.parametrize("codes", [0, 6])
def test_rows_that_go_down_together_have_the_bits_of_single_ones(rows, codes):
    rng = np.random.default_rng(rows)
    trees = plain.Trees.random(rng, 12, 7, 4, 2, codes=codes)
    x = np.where(rng.random((rows, 4)) < 0.1, np.nan, rng.integers(-4, 8, (rows, 4)) / 2.0)
    alone = np.concatenate([leaves_of(trees, x[i : i + 1]) for i in range(rows)])
    assert np.array_equal(leaves_of(trees, x), alone)


def test_no_rows_no_trees_and_lone_leaves():
    rng = np.random.default_rng(0)
    trees = plain.Trees.random(rng, 3, 4, 2, 2)
    assert leaves_of(trees, np.zeros((0, 2))).shape == (0, 2)
    lone = plain.Trees.random(rng, 2, 0, 2, 2)
    close(leaves_of(lone, np.zeros((3, 2))), np.tile(lone.value.sum(axis=0), (3, 1)))
    trees.roots = trees.roots[:0]
    close(leaves_of(trees, np.ones((3, 2))), np.zeros((3, 2)))


@pytest.mark.parametrize("walks", [0, 1, 64, 150])
@pytest.mark.parametrize("codes", [0, 6])
@pytest.mark.parametrize("outputs", [1, 3])
def test_walks_have_the_values_of_the_rows_on_their_way(walks, codes, outputs):
    rng = np.random.default_rng(walks)
    trees = plain.Trees.random(rng, 9, 6, 4, outputs, codes=codes)
    trees.value[rng.random(trees.value.shape) < 0.3] = 0.0
    values = [-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0, 7.0, 1e300, np.inf, -np.inf, np.nan]
    starts, end = rng.choice(values, (walks, 4)), rng.choice(values, 4)
    orders = rng.permuted(np.tile(np.arange(4), (walks, 1)), axis=1)
    found = np.zeros((walks, 5, outputs))
    nodes = kernels.Trees(4, *nodes_of(trees)[1:])
    kernels.add_walks(nodes, trees.value, end, starts, orders, found)
    for start, order, its in zip(starts, orders, found, strict=True):
        row = start.copy()
        for step in range(5):
            close(its[step], trees.predict(row))
            if step < 4:
                row[order[step]] = end[order[step]]
    alone = np.zeros_like(found)
    for i in range(walks):
        one = slice(i, i + 1)
        kernels.add_walks(nodes, trees.value, end, starts[one], orders[one], alone[one])
    assert np.array_equal(found, alone)


def test_walks_need_every_column_once():
    trees = plain.Trees.random(np.random.default_rng(0), 2, 3, 3, 1)
    nodes, row, values = kernels.Trees(3, *nodes_of(trees)[1:]), np.zeros((1, 3)), np.zeros((1, 4, 1))
    for order in ([0, 1, 1], [0, 1, 3], [-1, 0, 1]):
        with pytest.raises(ValueError, match="every column once"):
            kernels.add_walks(nodes, trees.value, row[0], row, np.array([order]), values)


def preorder_of(trees):
    edges, is_left = np.zeros((5, trees.feature.size), np.int64), np.zeros(trees.feature.size, np.bool_)
    count = kernels.preorder(trees.feature, trees.left, trees.right, trees.roots, edges, is_left)
    return edges[:, :count], is_left[:count]


def test_nodes_come_depth_first_with_the_last_edge_on_their_column():
    trees = plain.Trees.random(np.random.default_rng(1), 5, 7, 3, 1)
    (node, parent, depth, column, same), is_left = preorder_of(trees)
    leaves = dict(trees.paths())
    assert [n for n in node if trees.feature[n] < 0] == list(leaves)
    for at, (here, above) in enumerate(zip(node, parent, strict=True)):
        path, edge = [], at
        while parent[edge] >= 0:
            path.append((node[parent[edge]], bool(is_left[edge])))
            edge = parent[edge]
        assert depth[at] == len(path)
        assert column[at] == (trees.feature[node[above]] if above >= 0 else -1)
        if trees.feature[here] < 0:
            assert path[::-1] == leaves[here]
        earlier, edge = -1, above
        while edge >= 0 and earlier < 0:
            earlier, edge = (edge if column[edge] == column[at] else -1), parent[edge]
        assert same[at] == earlier


def test_intervals_are_what_the_path_leaves_of_a_column():
    rng = np.random.default_rng(2)
    trees = plain.Trees.random(rng, 6, 7, 3, 1)
    (node, parent, _, column, same), is_left = preorder_of(trees)
    cuts = np.unique(trees.threshold)
    rank = np.searchsorted(cuts, trees.threshold[np.where(parent >= 0, node[parent], 0)]) + 1
    missing_left = trees.missing_left[np.where(parent >= 0, node[parent], 0)]
    bounds, missing = np.zeros((2, node.size), np.int64), np.zeros(node.size, np.bool_)
    whole = np.full(3, cuts.size + 1)
    kernels.intervals(
        *map(np.ascontiguousarray, (column, same, is_left, rank, missing_left)), whole, bounds, missing
    )
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    for at in np.flatnonzero(parent >= 0):
        edge, on_path = at, []
        while parent[edge] >= 0:
            on_path.append((node[parent[edge]], bool(is_left[edge])))
            edge = parent[edge]
        of_column = [(n, left) for n, left in on_path if trees.feature[n] == column[at]]
        low = max([-np.inf, *(trees.threshold[n] for n, left in of_column if not left)])
        high = min([np.inf, *(trees.threshold[n] for n, left in of_column if left)])
        assert ends[bounds[0, at]] == low
        assert ends[bounds[1, at]] == max(low, high)
        assert missing[at] == all(trees.missing_left[n] == left for n, left in of_column)


# -- forests -----------------------------------------------------------------------------------------------


def laid_out(rng, trees, depth, columns, outputs, width):
    """Arguments of `kernels.Splits` of random trees, and a random table; a lone root is left out."""
    forest = plain.Trees.random(rng, trees, depth, columns, outputs, leaf=0.15)
    (node, parent, level, _, _), is_left = preorder_of(forest)
    is_split = forest.feature[node] >= 0
    number = np.cumsum(is_split) - 1
    split = np.flatnonzero(is_split)
    above = np.where(parent >= 0, number[parent], 0)
    leaves, has_leaf = np.zeros((split.size, 2, outputs)), np.zeros(split.size, np.bool_)
    for at in np.flatnonzero(~is_split & (parent >= 0)):
        leaves[above[at], 0 if is_left[at] else 1] = forest.value[node[at]]
        has_leaf[above[at]] = True
    own = np.where(parent[split] < 0, np.arange(split.size), above[split])
    places = [a.astype(np.uint32) for a in (forest.feature[node[split]], own, ~is_left[split])]
    table = rng.random((split.size, 4, width))
    return [columns, level[split].astype(np.uint32), has_leaf, *places, leaves], table


@pytest.mark.parametrize("width", [4, 8, 12, 16, 17, 40])
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_forests_moments_leaf_by_leaf(width, outputs):
    rng = np.random.default_rng(width + outputs)
    arguments, table = laid_out(rng, 6, 7, 5, outputs, width)
    splits, trees = kernels.Splits(*arguments), int((arguments[1] == 0).sum())
    cells = rng.integers(0, width, (70, 5)).astype(np.uint32)
    by_set = {}
    for only in kernels.instructions():
        mean, contrast = np.zeros((70, outputs)), np.zeros((70, 5, outputs))
        kernels.explain_block(splits, table, cells, mean, contrast, only)
        by_set[only] = mean, contrast
    for i in (0, 1, 63, 64, 69):
        expected = plain.mean_and_contrast(arguments[3:6], arguments[6], table, cells[i])
        row = np.zeros(outputs), np.zeros((5, outputs))
        kernels.explain_row(splits, table, cells[i], 0, 2, *row)
        kernels.explain_row(splits, table, cells[i], 2, trees, *row)
        for actual in (row, *((mean[i], contrast[i]) for mean, contrast in by_set.values())):
            close(actual[0], expected[0])
            close(actual[1], expected[1])


def test_a_rows_bits_do_not_depend_on_its_block():
    rng = np.random.default_rng(0)
    arguments, table = laid_out(rng, 10, 8, 4, 2, 8)
    splits, cells = kernels.Splits(*arguments), rng.integers(0, 8, (150, 4)).astype(np.uint32)

    def moments(rows):
        mean, contrast = np.zeros((len(rows), 2)), np.zeros((len(rows), 4, 2))
        kernels.explain_block(splits, table, rows, mean, contrast, "")
        return np.concatenate([mean[:, None], contrast], axis=1)

    whole = moments(cells)
    for first, last in ((0, 1), (3, 4), (60, 70), (1, 150)):
        assert np.array_equal(moments(np.ascontiguousarray(cells[first:last])), whole[first:last])


def edge_above(splits, s):
    """Last edge (split, side) on the column of split s above it; None without one."""
    column, parent, side = splits
    at = s
    while parent[at] != at:
        edge = parent[at], side[at]
        if column[edge[0]] == column[s]:
            return edge
        at = parent[at]
    return None


@pytest.mark.parametrize("width", [4, 8, 12, 16, 17])
@pytest.mark.parametrize("outputs", [1, 3])
def test_means_given_cells_leaf_by_leaf(width, outputs):
    rng = np.random.default_rng(width)
    arguments, table = laid_out(rng, 6, 7, 5, outputs, width)
    places, leaves = arguments[3:6], arguments[6]
    reached, given = rng.uniform(0.1, 1.0, (2, len(leaves), 2, width))
    given[rng.random(given.shape) < 0.5] = 0.0  # an interval reaches few cells
    for s in range(len(leaves)):
        above = edge_above(places, s)
        table[s, :2] = reached[s] / (1.0 if above is None else reached[above])
    shares = np.ascontiguousarray(np.concatenate([1.0 / reached, given], axis=1))
    splits, cells = kernels.Splits(*arguments), rng.integers(0, width, (70, 5)).astype(np.uint32)
    expected = {i: plain.means_given_cells(places, leaves, reached, given, cells[i]) for i in (0, 63, 64, 69)}
    for only in kernels.instructions():
        means = np.zeros((70, 5, width, outputs))
        kernels.effects_block(splits, table, shares, cells, means, only)
        for i, of_row in expected.items():
            close(means[i], of_row)
        alone = np.zeros((3, 5, width, outputs))
        kernels.effects_block(splits, table, shares, np.ascontiguousarray(cells[60:63]), alone, only)
        assert np.array_equal(alone, means[60:63])


class Routed:
    """A random forest of numbers with missing values, in the layout of the pass for contributions."""

    def __init__(self, rng, columns, outputs):
        self.forest = forest = plain.Trees.random(rng, 6, 7, columns, outputs, leaf=0.15)
        (node, parent, level, column, same), is_left = preorder_of(forest)
        is_split = forest.feature[node] >= 0
        number, split = np.cumsum(is_split) - 1, np.flatnonzero(is_split)
        above = np.where(parent >= 0, number[parent], 0)
        self.leaves, has_leaf = np.zeros((split.size, 2, outputs)), np.zeros(split.size, np.bool_)
        for at in np.flatnonzero(~is_split & (parent >= 0)):
            self.leaves[above[at], 0 if is_left[at] else 1] = forest.value[node[at]]
            has_leaf[above[at]] = True
        own = np.where(parent[split] < 0, np.arange(split.size), above[split])
        self.node = node[split]
        self.places = [a.astype(np.uint32) for a in (forest.feature[self.node], own, ~is_left[split])]
        arguments = (columns, level[split].astype(np.uint32), has_leaf, *self.places, self.leaves)
        self.splits, self.trees = kernels.Splits(*arguments), np.flatnonzero(level[split] == 0).size
        self.cuts = [np.unique(forest.threshold[forest.feature == j]) for j in range(columns)]
        ranks = np.array([cuts.size + 1 for cuts in self.cuts])
        rank = np.zeros(forest.feature.size, np.int64)
        for j, cuts in enumerate(self.cuts):
            rank[forest.feature == j] = 1 + np.searchsorted(cuts, forest.threshold[forest.feature == j])
        self.start = np.concatenate([[0], np.cumsum(ranks + 2)])
        upper = np.where(parent >= 0, node[parent], 0)
        bounds, missing = np.zeros((2, node.size), np.int64), np.zeros(node.size, np.bool_)
        kernels.intervals(
            *(column, same, is_left, rank[upper], forest.missing_left[upper], ranks, bounds, missing)
        )
        self.intervals = kernels.Intervals(
            *(self.splits, column, same, *bounds, missing, above, is_left, self.start)
        )

    def places_of(self, x):
        """Ranks of the first indicators that are 1 at rows."""
        places = np.zeros(x.shape, np.uint32)
        for j, cuts in enumerate(self.cuts):
            at = np.where(np.isnan(x[:, j]), cuts.size + 2, 1 + np.searchsorted(cuts, x[:, j]))
            places[:, j] = self.start[j] + at
        return places

    def inside(self, row):
        """Whether a row is in the intervals of both edges below each split, (S, 2)."""
        goes = np.array([self.forest.goes_left(n, row[self.forest.feature[n]]) for n in self.node])
        inside = np.stack([goes, ~goes], axis=1)
        for s in range(len(goes)):
            edge = edge_above(self.places, s)
            if edge is not None:  # parents come first
                inside[s] &= inside[edge]
        return inside


@pytest.mark.parametrize("nodes", [4, 8])
@pytest.mark.parametrize("outputs", [1, 3])
def test_contributions_of_a_forest_leaf_by_leaf(nodes, outputs):
    rng, columns, width = np.random.default_rng(nodes + outputs), 4, 5
    routed = Routed(rng, columns, outputs)
    x = np.where(rng.random((70, columns)) < 0.1, np.nan, rng.integers(-4, 5, (70, columns)) / 2.0)
    masses = rng.uniform(0.1, 1.0, (len(routed.leaves), 2, width))
    cells = rng.integers(0, width, x.shape).astype(np.uint32)
    inner, shares = np.polynomial.legendre.leggauss(nodes - 2)
    # the ends, without a weight of the integral, are so near that only a division tells them from 0 and 1
    tiny = 1e-120
    t = np.concatenate([[[tiny, 1.0]], 0.5 * np.stack([1 + inner, 1 - inner], axis=1), [[1.0, tiny]]])
    weights = np.zeros((3, nodes))
    weights[0, 1:-1] = 0.5 * shares
    weights[1, 0] = weights[2, -1] = 1.0
    members, first = np.zeros((0, 70), np.bool_), np.full(columns, -1)
    by_set = {}
    for only in kernels.instructions():
        base, sums = np.zeros((70, outputs)), np.zeros((70, 3, columns, outputs))
        for trees in np.array_split(np.arange(routed.trees, dtype=np.uint32), 2):
            kernels.add_contributions(
                *(routed.splits, routed.intervals, masses, cells, routed.places_of(x), members, first, trees),
                *(t, weights, base, sums, only),
            )
        by_set[only] = base, sums
    for i in (0, 1, 31, 32, 69):
        inside = routed.inside(x[i])
        expected = plain.forest_contributions(routed.places, routed.leaves, masses, inside, cells[i])
        for base, sums in by_set.values():
            close(base[i], expected[0])
            close(sums[i], expected[1])


def joint_contributions(trees, x, background, weights, runs=((0, None),)):
    """Base and sums of rows x against a background."""
    last, outputs = len(trees.roots), trees.value.shape[1]
    arguments = nodes_of(trees)
    base, sums = np.zeros((len(x), outputs)), np.zeros((len(x), 3, arguments[0], outputs))
    of_columns = [np.ascontiguousarray(rows[:, : arguments[0]].T) for rows in (x, background)]
    for first, end in runs:
        kernels.add_joint_contributions(
            *(kernels.Trees(*arguments), trees.value, first, last if end is None else end),
            *(*of_columns, weights, base, sums),
        )
    return base, sums


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("codes", [0, 5])
def test_joint_contributions_coalition_by_coalition(outputs, codes):
    rng = np.random.default_rng(outputs)
    trees = plain.Trees.random(rng, 5, 6, 4, outputs, codes=codes)
    # a library that compares by "<" has thresholds next to 0
    trees.threshold[trees.threshold == 0.0] = -5e-324
    x, background = np.where(rng.random((2, 9, 4)) < 0.1, np.nan, rng.integers(-4, 6, (2, 9, 4)) / 2.0)
    x[0] = background[3]
    weights = rng.random((9, 9))
    base, sums = joint_contributions(trees, x, background, weights, ((0, 2), (2, None)))
    shared = joint_contributions(trees, x, background, weights[:1])
    for i in range(9):
        expected = plain.joint_contributions(trees, x[i], background, weights[i])
        close(base[i], expected[0])
        close(sums[i], expected[1])
        alike = plain.joint_contributions(trees, x[i], background, weights[0])
        close(shared[0][i], alike[0])
        close(shared[1][i], alike[1])


def test_joint_contributions_have_the_bits_of_single_rows():
    rng = np.random.default_rng(3)
    trees = plain.Trees.random(rng, 10, 9, 5, 2)
    x, background, weights = rng.normal(size=(40, 5)), rng.normal(size=(60, 5)), rng.random((40, 60))
    for rows_weights in (weights, weights[:1]):
        base, sums = joint_contributions(trees, x, background, rows_weights)
        for rows in (slice(0, 1), slice(7, 8), slice(20, 33)):
            its = rows_weights[rows] if len(rows_weights) > 1 else rows_weights
            one = joint_contributions(trees, x[rows], background, np.ascontiguousarray(its))
            assert np.array_equal(one[0], base[rows])
            assert np.array_equal(one[1], sums[rows])


def test_paths_of_too_many_columns_or_splits_are_refused():
    feature, left, right = chain(4001)
    nodes = (np.zeros(4001), left, right, np.zeros(4001, np.bool_), np.full(4001, -1))
    rest = (np.zeros((0, 0), np.bool_), np.ones((4001, 1)), np.zeros(1, np.int64))
    rows = np.zeros((1, 3))
    with pytest.raises(ValueError, match="1024 splits"):
        joint_contributions(plain.Trees(feature, *nodes, *rest), rows, rows, np.ones((1, 1)))
    wide = np.where(feature >= 0, np.arange(4001) // 2 % 70, -1)
    rows = np.zeros((1, 70))
    with pytest.raises(ValueError, match="64 columns"):
        joint_contributions(plain.Trees(wide, *nodes, *rest), rows, rows, np.ones((1, 1)))


@pytest.mark.parametrize("width", [4, 8, 12, 16, 17])
@pytest.mark.parametrize("outputs", [1, 2])
def test_squares_of_a_pool_row_by_row(width, outputs):
    rng = np.random.default_rng(width)
    cells, answers = rng.integers(0, width, (128, 3)).astype(np.uint32), rng.normal(size=(outputs, 128))
    factors, curves = rng.uniform(0.1, 1, (5, 3, width)), rng.normal(size=(5, 3, outputs, width))
    bases = rng.normal(size=(5, outputs))
    expected = [plain.pool_squares(cells, answers, factors[i], curves[i], bases[i]) for i in range(5)]
    for only in kernels.instructions():
        weights, squares = np.zeros((5, 2)), np.zeros((5, outputs, 3))
        kernels.squares_of_pool(cells, answers, factors, curves, bases, weights, squares, only)
        for i, (of_weights, of_squares) in enumerate(expected):
            close(weights[i], of_weights)
            close(squares[i], of_squares)
        one = np.zeros((1, 2)), np.zeros((1, outputs, 3))
        kernels.squares_of_pool(cells, answers, factors[3:4], curves[3:4], bases[3:4], *one, only)
        assert np.array_equal(one[0][0], weights[3])
        assert np.array_equal(one[1][0], squares[3])
    with pytest.raises(ValueError, match="64 rows"):
        kernels.squares_of_pool(
            cells[:100], answers[:, :100].copy(), factors, curves, bases, weights, squares, ""
        )
    with pytest.raises(ValueError, match="out of range"):
        kernels.squares_of_pool(cells + 99, answers, factors, curves, bases, weights, squares, "")


def law_by_law(trees, node, parent, is_left, edges, functionals, start, mixing):
    """One row's pass computes what the table holds: the same bits."""
    is_split, above = trees.feature[node] >= 0, edges[5]
    split, leaf = np.flatnonzero(is_split), np.flatnonzero(~is_split & (parent >= 0))
    depth = np.zeros(node.size, np.uint32)
    for at in np.flatnonzero(parent >= 0):
        depth[at] = depth[parent[at]] + 1
    leaves, has_leaf = np.zeros((split.size, 2, 1)), np.zeros(split.size, np.bool_)
    leaves[above[leaf], 1 - is_left[leaf]] = trees.value[node[leaf]]
    has_leaf[above[leaf]] = True
    own = np.where(parent[split] < 0, np.arange(split.size), above[split])
    places = [a.astype(np.uint32) for a in (trees.feature[node[split]], own, ~is_left[split])]
    splits = kernels.Splits(2, depth[split], has_leaf, *places, leaves)
    edges = [*map(np.ascontiguousarray, (*edges, is_left))]
    intervals = kernels.Intervals(splits, *edges, start)
    count = int((depth[split] == 0).sum())
    for v in range(functionals.shape[1]):
        one = np.ascontiguousarray(functionals[:, [v]]), np.ascontiguousarray(mixing[:, [v]])
        table = np.zeros((split.size, 4, 1))
        kernels.tabulate(*edges, one[0], start, one[1], table)
        tabulated, computed = ((np.zeros(1), np.zeros((2, 1))) for _ in range(2))
        kernels.explain_row(splits, table, np.zeros(2, np.uint32), 0, count, *tabulated)
        kernels.explain_law(splits, intervals, one[0][:, 0], one[1][:, 0], 0, count, *computed)
        assert np.array_equal(tabulated[0], computed[0])
        assert np.array_equal(tabulated[1], computed[1])
    broken = [*edges]
    broken[1] = np.where(broken[1] >= 0, broken[1] + 2**40, -1)
    with pytest.raises(ValueError, match="above them"):
        kernels.Intervals(splits, *broken, start)
    with pytest.raises(ValueError, match="functionals"):
        kernels.explain_law(splits, intervals, one[0][1:, 0], one[1][:, 0], 0, count, *computed)


def test_tables_hold_the_ratios_of_intervals():
    """Columns of three values with probabilities p: functionals are P(x <= t, cell) for two cells."""
    rng = np.random.default_rng(3)
    trees = plain.Trees.random(rng, 4, 5, 2, 1)
    (node, parent, _, column, same), is_left = preorder_of(trees)
    cuts = np.unique(trees.threshold)
    rank = np.searchsorted(cuts, trees.threshold[np.where(parent >= 0, node[parent], 0)]) + 1
    missing_left = trees.missing_left[np.where(parent >= 0, node[parent], 0)]
    bounds, missing = np.zeros((2, node.size), np.int64), np.zeros(node.size, np.bool_)
    kernels.intervals(
        *map(np.ascontiguousarray, (column, same, is_left, rank, missing_left)),
        np.full(2, cuts.size + 1), bounds, missing,
    )  # fmt: skip
    values = np.sort(rng.uniform(-2, 2, (2, 9)), axis=1)  # of each column; the last one counts as missing
    variants = 3
    chance = rng.dirichlet(np.ones(9), (2, variants, 2))  # of a value, in the cell and out of it
    alpha = rng.uniform(0.2, 0.8, (2, variants))
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    functionals = np.zeros((2 * (ends.size + 1), variants, 2))
    start = np.array([0, ends.size + 1, 2 * (ends.size + 1)])
    mixing = np.zeros((2, variants, 2, 2))
    for j, v in product(range(2), range(variants)):
        for at, end in enumerate(ends):
            functionals[start[j] + at, v] = (chance[j, v, :, :8] * (values[j, :8] <= end)).sum(axis=1)
        functionals[start[j + 1] - 1, v] = chance[j, v, :, 8]
        mixing[j, v] = [[alpha[j, v], 1 - alpha[j, v]], [1.0, -1.0]]
    is_split = trees.feature[node] >= 0
    above = np.where(parent >= 0, (np.cumsum(is_split) - 1)[parent], 0)
    table = np.full((is_split.sum(), 4, 4), np.nan)
    kernels.tabulate(
        *map(np.ascontiguousarray, (column, same, bounds[0], bounds[1], missing, above, is_left)),
        functionals, start, mixing, table,
    )  # fmt: skip

    edges = (column, same, *bounds, missing, above)
    law_by_law(trees, node, parent, is_left, edges, functionals, start, mixing)

    def numbers(at, v):
        """Mean of the interval's indicator, and contrast over mean."""
        if at < 0:
            return 1.0, 0.0
        j, (low, high) = column[at], ends[bounds[:, at]]
        inside = np.append((low < values[j, :8]) & (values[j, :8] <= high), missing[at])
        s, o = (chance[j, v] * inside).sum(axis=1)
        mean = alpha[j, v] * s + (1 - alpha[j, v]) * o
        return mean, (s - o) / mean if mean > 1e-12 else 0.0

    for at, v in product(np.flatnonzero(parent >= 0), range(variants)):
        (mean, rho), (before, rho_before) = numbers(at, v), numbers(same[at], v)
        side = 0 if is_left[at] else 1
        close(table[above[at], side, v], mean / before if before > 1e-12 else 0.0)
        close(table[above[at], 2 + side, v], rho - rho_before)


# -- cells -------------------------------------------------------------------------------------------------


def test_values_lie_between_edges_or_on_levels():
    edges, levels = np.array([-1.0, 0.0, 0.0, 2.5]), np.array([-np.inf, -3.0, 0.0, 4.0])
    x = np.array([-np.inf, -3.0, -1.0, -0.0, 0.0, 1e-300, 2.5, np.nextafter(2.5, 3), 4.0, np.inf, np.nan])
    rows, cells = np.column_stack([x, x, x]), np.zeros((x.size, 3), np.int64)
    points, starts = np.concatenate([edges, levels]), np.array([0, 4, 8, 8])
    kernels.locate(rows, points, starts, np.array([False, True, False]), np.array([5, -1, -1]), cells)
    for at, value in enumerate(x):
        equal = [i for i, level in enumerate(levels) if level == value]
        missing = np.isnan(value)
        assert cells[at, 0] == (5 if missing else sum(edge < value for edge in edges))
        assert cells[at, 1] == (equal[0] if equal else -1)
        assert cells[at, 2] == (-1 if missing else 0)


# -- words and switches ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("outputs", [1, 2])
def test_texts_subset_by_subset(d, outputs):
    rng = np.random.default_rng(d)
    y, c, within = rng.random(d), rng.normal(size=(d, outputs)), rng.random(d + 1)
    profile, loss = np.zeros((outputs, d + 1)), np.zeros((d, outputs))
    start, rest = np.zeros((1 + outputs, 1)), np.zeros((1 + outputs, 1))
    start[0] = 1.0
    kernels.add_node(y, c, within, d + 1, 0.7, profile, loss, start, rest)
    expected = plain.text_node(y, c, within, 0.7)
    close(profile, expected[0])
    close(loss, expected[1])


def test_long_texts_that_are_computed_twice_add_up():
    """Beyond 128 words states are computed again; E[(1 - z_j) g | r] summed over j is (d - r) E[g | r]."""
    d, rng = 300, np.random.default_rng(4)
    y, c = rng.uniform(0.9, 1.0, d), rng.normal(size=(d, 1))
    start, rest = np.array([[1.0], [0.0]]), np.zeros((2, 1))
    for r in (1, 130, 299):
        within = np.zeros(d + 1)
        within[r] = 1.0
        profile, loss = np.zeros((1, d + 1)), np.zeros((d, 1))
        kernels.add_node(y, c, within, d + 1, 1.0, profile, loss, start, rest)
        np.testing.assert_allclose(loss.sum(), (d - r) * profile[0, r], rtol=1e-9)


@pytest.mark.parametrize("d", [3, 8, 21])
@pytest.mark.parametrize("outputs", [1, 2])
def test_effects_of_words_set_by_set(d, outputs):
    rng = np.random.default_rng(d)
    a, c = rng.random(d), 4.0 * rng.normal(size=(outputs, d))
    a[2], c[:, 2] = 0.0, 0.0  # a word without weight
    b, base, weights = rng.normal(size=outputs), rng.random(outputs), rng.normal(size=(5, d + 1))
    words, excess = np.array([0, 1]), np.array([0.0, 0.0, 0.0, 0.7])

    def value(z):
        norm = z @ a + excess[int(z[0] + 2 * z[1])]
        margin = b + (c @ z / np.sqrt(norm) if norm > 0 else 0.0)
        return 1.0 / (1.0 + np.exp(-margin))

    sizes = rng.integers(d + 1, size=40)
    sizes[:3] = 0, 1, d
    sizes[21::2] = sizes[20::2]  # pairs of one size
    effects, totals = np.zeros((outputs, d)), np.zeros((outputs, 3))
    kernels.add_subsets(
        c, a, b, base, words, np.array([0, 2]), excess, np.array([0, 4]), sizes, weights, 5, effects, totals
    )
    expected, sums = plain.word_effects(value, d, base, sizes.tolist(), weights, 5)
    close(effects, expected)
    close(totals, sums)


@pytest.mark.parametrize("d", [0, 1, 4, 9])
def test_products_switch_by_switch(d):
    rng = np.random.default_rng(d)
    on, off = rng.normal(size=(3, d)), rng.normal(size=(3, d))
    law, every, within = rng.random((3, d + 1))
    mean, coef = np.zeros(3), np.zeros((3, d))
    kernels.add_products(on, off, law, every, within, mean, coef)
    for i in range(3):
        expected = plain.switch_product(on[i], off[i], law, every, within)
        close(mean[i], expected[0])
        close(coef[i], expected[1])


def test_every_path_of_a_text_and_no_other():
    rng = np.random.default_rng(5)
    for _ in range(20):
        trees = plain.Trees.random(rng, 3, 5, 4, 1)
        word_of = np.array([0, 2, -1, 1])
        value_of, fill = rng.normal(size=4), rng.normal(size=4)
        nodes, no = kernels.Trees(4, *nodes_of(trees)[1:]), np.zeros(0, np.int64)
        paths, factors = kernels.presence_paths(
            word_of, value_of, fill, 3, nodes, no, no, no, np.zeros(0, np.bool_)
        )
        leaf = np.zeros(paths, np.int64)
        of_path, word, present = (
            np.zeros(factors, np.int64),
            np.zeros(factors, np.int64),
            np.zeros(factors, np.bool_),
        )
        again = kernels.presence_paths(word_of, value_of, fill, 3, nodes, leaf, of_path, word, present)
        assert again == (paths, factors)
        for z in product([False, True], repeat=3):
            x = [value_of[j] if w >= 0 and z[w] else fill[j] for j, w in enumerate(word_of)]
            met = np.ones(paths, np.bool_)
            np.logical_and.at(met, of_path, np.array(z)[word] == present)
            close(trees.value[leaf[met]].sum(axis=0), trees.predict(x))


# -- the exact search --------------------------------------------------------------------------------------


def search(p, seed=0):
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], (400, p))
    return signs.T @ signs / 400 + 1e-3, rng.normal(size=p), np.ones(p), np.array([0.3, 0.1, 0.2])


@pytest.mark.parametrize("slots", [2, 3, 6])
def test_shares_of_the_pairwise_bound(slots):
    gram, moments, ones, swept = search(12)
    q = np.zeros(12)
    eta, floor = kernels.tighten(gram, moments, ones, swept, slots, 9.0, 0.5, 0.1, np.inf, 0, q)
    assert eta == 0.1
    close(floor, 9.0 + 2 * 0.1 * 0.5 - (swept[0] + 2 * 0.1 * swept[1] + 0.01 * swept[2]))
    close(q, plain.pairwise_shares(gram, moments + 0.1 * ones, slots))
    _, better = kernels.tighten(gram, moments, ones, swept, slots, 9.0, 0.5, 0.1, np.inf, 40, q)
    least = np.sort(plain.pairwise_shares(gram, moments + 0.1, slots))[-slots:].sum()
    assert better - np.sort(q)[-slots:].sum() >= floor - least - EXACT


def test_the_best_pair_of_all():
    gram, moments, ones, swept = search(14, seed=1)

    def objective(i, j):
        part = np.ix_([i, j], [i, j])
        b, one = moments[[i, j]], ones[[i, j]]
        alpha = swept[0] + b @ np.linalg.solve(gram[part], b)
        beta = swept[1] + b @ np.linalg.solve(gram[part], one)
        delta = swept[2] + one @ np.linalg.solve(gram[part], one)
        return 9.0 - alpha + (beta - 0.5) ** 2 / delta

    pairs = {(i, j): objective(i, j) for i in range(14) for j in range(i + 1, 14)}
    value, first, second = kernels.best_pair(gram, moments, ones, swept, 9.0, 0.5, np.inf)
    assert (first, second) == min(pairs, key=pairs.get)
    close(value, min(pairs.values()))
    assert kernels.best_pair(gram, moments, ones, swept, 9.0, 0.5, -1e9) == (-1e9, -1, -1)


def test_sweeping_in_is_the_schur_complement():
    gram, moments, ones, swept = search(7)
    rest = np.zeros((4, 4)), np.zeros(4), np.zeros(4), np.zeros(3)
    kernels.sweep_in(gram, moments, ones, swept, 2, *rest)
    row = gram[2, 3:] / gram[2, 2]
    close(rest[0], gram[3:, 3:] - np.outer(gram[3:, 2], row))
    close(rest[1], moments[3:] - row * moments[2])
    close(rest[2], ones[3:] - row * ones[2])
    close(rest[3], swept + np.array([moments[2] ** 2, moments[2], 1.0]) / gram[2, 2])


# -- input that makes no sense -----------------------------------------------------------------------------


def refuses(kernel, arguments):
    """Whether a kernel raises ValueError."""
    try:
        kernel(*arguments)
    except ValueError:
        return True
    return False


def test_nonsense_is_refused_and_nothing_is_read_beyond_an_array():
    """Random numbers in every place of every array: a ValueError, or an answer."""
    rng = np.random.default_rng(6)
    refused = 0
    for _ in range(300):
        arguments, table = laid_out(rng, 3, 3, 3, 1, 4)
        if len(table) == 0:
            continue
        cells, trees = rng.integers(0, 4, (5, 3)).astype(np.uint32), np.array([0, 1])
        victim = [arguments[1], *arguments[3:6], cells, cells, trees][rng.integers(7)]
        victim.flat[rng.integers(victim.size)] = rng.choice([0, 1, 5, 77, 2**31, 2**32 - 1])
        mean, contrast = np.zeros((5, 1)), np.zeros((5, 3, 1))
        try:
            splits = kernels.Splits(*arguments)
        except ValueError:
            refused += 1
            continue
        row = (splits, table, cells[0], *trees.tolist(), mean[0], contrast[0])
        block = (splits, table, cells, mean, contrast, "")
        refused += refuses(kernels.explain_block, block) + refuses(kernels.explain_row, row)
    assert refused > 100


@pytest.mark.parametrize("child", ["itself", "its parent", "its root", "its sibling's"])
def test_nodes_in_a_circle_are_refused(child):
    """A walk down such a tree would never end, or would count a leaf twice."""
    trees = plain.Trees.random(np.random.default_rng(1), 1, 3, 3, 1, leaf=0.0)
    root, parent = 0, trees.left[0]
    node, sibling = trees.left[parent], trees.right[parent]
    kernels.Trees(*nodes_of(trees))
    target = {"itself": node, "its parent": parent, "its root": root, "its sibling's": trees.left[sibling]}
    trees.right[node] = target[child]
    with pytest.raises(ValueError, match="ancestor"):
        kernels.Trees(*nodes_of(trees))


def test_trees_may_share_nodes_and_children_may_come_first():
    trees = plain.Trees.random(np.random.default_rng(2), 2, 4, 3, 2)
    trees.roots = np.array([0, 0, trees.roots[1], int(trees.left[0])])
    x = np.random.default_rng(3).normal(size=(20, 3))
    close(leaves_of(trees, x), [trees.predict(row) for row in x])
    backwards = np.arange(trees.feature.size)[::-1]
    for name in ("feature", "threshold", "missing_left", "set_of", "value"):
        setattr(trees, name, np.ascontiguousarray(getattr(trees, name)[::-1]))
    for name in ("left", "right"):
        children = getattr(trees, name)[::-1]
        setattr(trees, name, np.where(children >= 0, backwards[children], -1))
    trees.roots = backwards[trees.roots]
    close(leaves_of(trees, x), [trees.predict(row) for row in x])


def test_wrong_shapes_and_types_are_refused():
    trees = plain.Trees.random(np.random.default_rng(0), 2, 3, 3, 1)
    with pytest.raises(ValueError, match="total"):
        kernels.add_leaves(kernels.Trees(*nodes_of(trees)), np.zeros((4, 3)), trees.value, np.zeros((5, 1)))
    with pytest.raises(ValueError, match="column"):
        leaves_of(trees, np.zeros((4, 1)))
    with pytest.raises(TypeError):
        leaves_of(trees, np.zeros((4, 3), dtype=np.float32))
    arguments, table = laid_out(np.random.default_rng(0), 2, 3, 2, 1, 4)
    cells, mean, contrast = np.zeros((1, 2), np.uint32), np.zeros((1, 1)), np.zeros((1, 2, 1))
    with pytest.raises(ValueError, match="instructions"):
        kernels.explain_block(kernels.Splits(*arguments), table, cells, mean, contrast, "mmx")


@pytest.mark.parametrize("columns", [0, 1, 3])
@pytest.mark.parametrize("rows", [0, 1, 65])
def test_kernels_of_next_to_nothing(rows, columns):
    """No rows, no columns, no nodes, one node: an answer of zeros, or a ValueError."""
    no, one = np.zeros(0, np.int64), np.zeros(1, np.int64)
    leaf = (
        one - 1,
        np.zeros(1),
        one - 1,
        one - 1,
        np.zeros(1, np.bool_),
        one - 1,
        np.zeros((0, 0), np.bool_),
    )
    total = np.zeros((rows, 1))
    kernels.add_leaves(
        kernels.Trees(columns, *leaf, one), np.zeros((rows, columns)), np.full((1, 1), 3.0), total
    )
    assert (total == 3.0).all()
    edges, is_left = np.zeros((5, 1), np.int64), np.zeros(1, np.bool_)
    assert kernels.preorder(one - 1, one - 1, one - 1, one, edges, is_left) == 1
    assert kernels.preorder(no, no, no, no, edges[:, :0].copy(), is_left[:0]) == 0
    places = np.zeros(0, np.uint32)
    mean, contrast = np.zeros((rows, 1)), np.zeros((rows, columns, 1))
    splits = kernels.Splits(
        columns, places, np.zeros(0, np.bool_), places, places, places, np.zeros((0, 2, 1))
    )
    cells, table = np.zeros((rows, columns), np.uint32), np.zeros((0, 4, 4))
    kernels.explain_block(splits, table, cells, mean, contrast, "")
    assert not mean.any()
    if rows:
        kernels.explain_row(splits, table, cells[0], 0, 0, mean[0], contrast[0])
        assert not mean.any()


def chain(count):
    """One tree of ``count`` nodes whose right child is always a leaf."""
    node = np.arange(count)
    inner = node % 2 == 0
    inner[-1] = False
    feature = np.where(inner, node % 3, -1)
    left, right = np.where(inner, node + 2, -1), np.where(inner, node + 1, -1)
    return feature, left, right


def test_a_million_nodes():
    """A path half a million splits deep, down to its end and back."""
    count = 1_000_001
    feature, left, right = chain(count)
    edges, is_left = np.zeros((5, count), np.int64), np.zeros(count, np.bool_)
    roots = np.zeros(1, np.int64)
    assert kernels.preorder(feature, left, right, roots, edges, is_left) == count
    assert edges[2].max() == count // 2
    threshold = np.where(feature >= 0, -np.arange(count) / 2.0, 0.0)
    no_sets = (np.full(count, -1), np.zeros((0, 0), np.bool_))
    value = np.arange(count, dtype=float)[:, None]
    x, total = np.array([[-np.inf] * 3, [1.0] * 3, [-1000.0] * 3]), np.zeros((3, 1))
    trees = kernels.Trees(3, feature, threshold, left, right, np.zeros(count, np.bool_), *no_sets, roots)
    kernels.add_leaves(trees, x, value, total)
    assert total[:, 0].tolist() == [count - 1, 1, 2003]


def pool(rng, d, kind, n=480, count=2):
    """Cells, explained rows and weights."""
    cells = rng.choice(4, p=[0.6, 0.2, 0.1, 0.1], size=(d, n)).astype(kind)
    return cells, rng.integers(4, size=(count, d)).astype(kind), rng.random((count, d + 1))


def errors_of(rng, cells, instances, weights, outputs=2, parts=2, sequences=4, separate=False):
    """Arguments of `pool_errors`."""
    (d, n), count = cells.shape, len(instances)
    answers, differs = rng.normal(size=(n, outputs)), rng.integers(2, size=(n, outputs)).astype(np.uint8)
    residuals = np.where(rng.random((n, outputs)) < 0.7, 0.25, rng.normal(size=(n, outputs)))
    coef = rng.normal(size=(count, outputs, parts, d + 1, 5)) / d
    coef[..., 0], coef[..., 3] = 0.0, 0.02  # most residuals stay alike
    coef[..., 4] = coef[:, :1, :1, :, 4]
    sums = [(outputs, d + 1, 7), (outputs, sequences, d + 2), (outputs, 10), (4,)]
    return [
        *(cells, instances, weights / n, answers, residuals, differs, np.array([[1e-9] * 2, [0.2] * 2])),
        *(coef, rng.normal(size=(count, outputs)), *(np.full((count, *shape), np.nan) for shape in sums)),
        separate,
    ]


def calls(rng):
    """Every kernel beside those of forests' moments, with arguments that make sense."""
    trees = plain.Trees.random(rng, 3, 5, 3, 1, codes=4)
    count = trees.feature.size
    (node, parent, _, column, same), is_left = preorder_of(trees)
    flags, ends = np.zeros(count, np.bool_), np.zeros((2, count), np.int64)
    rank, whole = rng.integers(1, 5, count), np.full(3, 6)
    is_split = trees.feature[node] >= 0
    above = np.where(parent >= 0, (np.cumsum(is_split) - 1)[parent], 0)
    edges = (np.zeros((5, count), np.int64), np.zeros(count, np.bool_))
    gram, moments, ones, swept = search(5)
    y, c, within = rng.random(6), rng.normal(size=(6, 1)), rng.random(7)
    some = np.zeros(4, np.int64)
    routed = Routed(rng, 3, 1)
    codes, weights = np.zeros((5, 3), np.uint32), rng.random((5, 6))
    return {
        "add_contributions": [
            *(routed.splits, routed.intervals, rng.random((len(routed.leaves), 2, 4)), codes, codes.copy()),
            *(np.zeros((0, 5), np.bool_), np.full(3, -1), np.arange(routed.trees, dtype=np.uint32)),
            *(rng.random((4, 2)), rng.random((3, 4)), np.zeros((5, 1)), np.zeros((5, 3, 3, 1)), ""),
        ],
        "add_joint_contributions": [
            *(kernels.Trees(*nodes_of(trees)), trees.value, 0, 3, rng.normal(size=(3, 5))),
            *(rng.normal(size=(3, 6)), weights, np.zeros((5, 1)), np.zeros((5, 3, 3, 1))),
        ],
        "preorder": [trees.feature, trees.left, trees.right, trees.roots, *edges],
        "intervals": [column, same, is_left, rank, flags, whole, ends, flags.copy()],
        "tabulate": [
            *(column, same, ends[0], ends[1] + 1, flags, above, is_left, rng.random((24, 2, 2))),
            *(np.arange(0, 25, 8), rng.random((3, 2, 2, 2)), np.zeros((int(is_split.sum()), 4, 4))),
        ],
        "add_leaves": [
            *(kernels.Trees(*nodes_of(trees)), rng.normal(size=(5, 3)), trees.value, np.zeros((5, 1))),
        ],
        "add_walks": [
            *(
                kernels.Trees(3, *nodes_of(trees)[1:]),
                trees.value,
                rng.normal(size=3),
                rng.normal(size=(2, 3)),
            ),
            *(np.array([[0, 1, 2], [2, 1, 0]]), np.zeros((2, 4, 1))),
        ],
        "Trees": nodes_of(trees),
        "Splits": laid_out(rng, 3, 5, 3, 1, 4)[0],
        "locate": [
            *(rng.normal(size=(5, 3)), np.sort(rng.normal(size=6)), np.array([0, 2, 6, 6])),
            *(np.array([False, True, False]), np.array([2, -1, 0]), np.zeros((5, 3), np.int64)),
        ],
        "presence_paths": [
            *(
                np.array([0, 1, -1]),
                rng.normal(size=3),
                rng.normal(size=3),
                2,
                kernels.Trees(*nodes_of(trees)),
            ),
            *(some, some.copy(), some.copy(), np.zeros(4, np.bool_)),
        ],
        "pool_sums": [*pool(rng, 4, np.uint8, 24), rng.normal(size=(24, 3)), np.zeros((2, 2, 5, 3))],
        "pool_gram": [*pool(rng, 4, np.uint8, 24), np.zeros((2, 2, 5, 5)), *np.zeros((2, 2, 5))],
        "pool_errors": errors_of(rng, *pool(rng, 4, np.uint8, 24)),
        "add_node": [
            *(y, c, within, 5, 0.7, np.zeros((1, 7)), np.zeros((6, 1)), np.ones((2, 1)), np.zeros((2, 1)))
        ],
        "add_products": [*rng.random((2, 3, 6)), *rng.random((3, 7)), np.zeros(3), np.zeros((3, 6))],
        "tighten": [gram, moments, ones, swept, 3, 9.0, 0.5, 0.1, 1e9, 5, np.zeros(5)],
        "best_pair": [gram, moments, ones, swept, 9.0, 0.5, 1e9],
        "sweep_in": [gram, moments, ones, swept, 1, np.zeros((3, 3)), np.zeros(3), np.zeros(3), np.zeros(3)],
    }


def copy(argument):
    """A copy that a kernel may write to."""
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def spoiled(rng, argument):
    """An entry that makes no sense, or an array that is too short."""
    if isinstance(argument, kernels.Trees | kernels.Splits | kernels.Intervals):
        return argument
    if not isinstance(argument, np.ndarray):
        return type(argument)(rng.choice([0, 1, 4, 60]))
    argument = argument.copy()
    if rng.random() < 0.4:
        axis = int(rng.integers(argument.ndim))
        return np.ascontiguousarray(argument.take(range(argument.shape[axis] // 2), axis=axis))
    values = [0.0, 1e300, np.nan, np.inf, -np.inf] if argument.dtype.kind == "f" else [-1, 0, 1, 77, 2**40]
    if argument.size:
        argument.flat[rng.integers(argument.size)] = rng.choice(values)
    return argument


@pytest.mark.parametrize("name", calls(np.random.default_rng(0)))
def test_spoiled_arguments_are_refused_or_answered(name):
    """Under `make sanitize`, no read or write beyond an array."""
    rng, kernel, refused = np.random.default_rng(7), getattr(kernels, name), 0
    drawn = [calls(rng)[name] for _ in range(10)]  # all kernels' arguments, which takes longer than a call
    kernel(*calls(rng)[name])
    for i in range(repeats(200, 60)):
        arguments = [copy(argument) for argument in drawn[i % len(drawn)]]
        place = int(rng.integers(len(arguments)))
        arguments[place] = spoiled(rng, arguments[place])
        refused += refuses(kernel, arguments)
    assert refused > repeats(20, 6)


# -- pools ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 5, 6, 23, 64, 130])
@pytest.mark.parametrize("kind", [np.uint8, np.uint32])
def test_sums_over_a_pool_are_those_of_its_matrix(d, kind):
    rng = np.random.default_rng(d)
    cells, instances, weights = pool(rng, d, kind)
    for size, parts in ((7, 4), (1, 1)):
        values, sums = rng.normal(size=(480, size)), np.full((2, parts, d + 1, size), np.nan)
        kernels.pool_sums(cells, instances, weights, values, sums)
        for i in range(2):
            close(sums[i], plain.pool_sums(cells, instances[i], weights[i], values, parts))
    gram, squares, numbers = np.full((2, 2, d + 1, d + 1), np.nan), *np.full((2, 2, d + 1), np.nan)
    kernels.pool_gram(cells, instances, weights, gram, squares, numbers)
    for i in range(2):
        z, w = plain.around(cells, instances[i], weights[i])
        close(gram[i], plain.pool_sums(cells, instances[i], weights[i], z, 2))
        close(squares[i], w**2 @ z)
        close(numbers[i], z.sum(axis=0))


@pytest.mark.parametrize("d", [1, 23, 70])
@pytest.mark.parametrize("kind", [np.uint8, np.uint32])
@pytest.mark.parametrize("separate", [False, True])
def test_sums_of_errors_are_those_of_each_row(d, kind, separate):
    rng = np.random.default_rng(d)
    arguments = errors_of(rng, *pool(rng, d, kind), separate=separate)
    kernels.pool_errors(*arguments)
    cells, instances, weights, answers, residuals, differs, limits, coef, center, *result, _ = arguments
    for i, k in product(range(2), range(2)):
        columns = (answers[:, k], residuals[:, k], differs[:, k], limits[:, k], coef[i, k], center[i, k])
        expected = plain.pool_errors(cells, instances[i], weights[i], *columns, separate, 4)
        for actual, exact in zip([*(sums[i, k] for sums in result[:3]), result[3][i]], expected, strict=True):
            np.testing.assert_allclose(actual, exact, rtol=1e-9, atol=1e-12 * np.abs(exact).max())


def test_explained_rows_have_the_same_bits_by_themselves():
    rng = np.random.default_rng(0)
    arguments = errors_of(rng, *pool(rng, 23, np.uint8, count=3))
    kernels.pool_errors(*arguments)
    for i in range(3):
        alone = [a[i : i + 1].copy() if len(a) == 3 else a for a in arguments[:-1]]
        kernels.pool_errors(*alone, False)
        for whole, one in zip(arguments[-5:-1], alone[-4:], strict=True):
            assert np.array_equal(whole[i : i + 1], one)


def test_pools_refuse_what_does_not_belong_together():
    rng = np.random.default_rng(0)
    cells, instances, weights = pool(rng, 5, np.uint8)
    values = np.ones((480, 2))
    for wrong in ((2, 7, 6, 2), (2, 4, 5, 2), (2, 4, 6, 1), (1, 4, 6, 2)):
        with pytest.raises(ValueError):
            kernels.pool_sums(cells, instances, weights, values, np.zeros(wrong))
    with pytest.raises(ValueError):
        kernels.pool_sums(cells, instances[:, :4].copy(), weights, values, np.zeros((2, 4, 6, 2)))
    with pytest.raises(ValueError):
        kernels.pool_gram(cells, instances, weights, np.zeros((2, 1, 6, 5)), *np.zeros((2, 2, 6)))
    arguments = errors_of(rng, cells, instances, weights)
    for place in range(3, len(arguments) - 1):
        wrong = [*arguments]
        wrong[place] = np.ascontiguousarray(wrong[place][..., :-1])
        with pytest.raises(ValueError):
            kernels.pool_errors(*wrong)


# -- exponentials of sums of words --------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 5, 9])
def test_waves_are_means_over_subsets(d):
    rng = np.random.default_rng(d)
    nodes = 3
    on = rng.normal(size=(nodes, d)) + 1j * rng.normal(size=(nodes, d))
    off, weights = (
        rng.uniform(0.2, 1.0, size=(nodes, d)),
        rng.normal(size=nodes) + 1j * rng.normal(size=nodes),
    )
    within, width = rng.uniform(size=d + 1), np.array([d + 1, d, 1])
    profile, loss = np.zeros(d + 1), np.zeros(d)
    kernels.add_waves(
        np.ascontiguousarray(on.real), np.ascontiguousarray(on.imag), off, width,
        np.ascontiguousarray(weights.real), np.ascontiguousarray(weights.imag), within, profile, loss,
    )  # fmt: skip
    expected, without = np.zeros(d + 1), np.zeros(d)
    subsets = np.array(list(product((0, 1), repeat=d)))
    kept = subsets.sum(axis=1)
    for n in range(nodes):
        values = (weights[n] * np.prod(np.where(subsets == 1, on[n], off[n]), axis=1)).real
        for r in range(width[n]):
            expected[r] += values[kept == r].mean()
            without += within[r] * ((1 - subsets) * values[:, None])[kept == r].mean(axis=0)
    close(profile, expected)
    close(loss, without)


@pytest.mark.parametrize("seed", range(12))
def test_node_products_are_products(seed):
    rng = np.random.default_rng(seed)
    rows, nodes, outputs = rng.integers(1, 9), rng.choice([1, 7, 256, 600]), rng.integers(1, 4)
    factors = rng.integers(1, 5)
    widths, counts = rng.integers(1, 4, size=factors), rng.integers(1, 6, size=factors)

    def numbers(*shape):
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)

    def in_parts(values):
        return np.concatenate([values.real, values.imag], axis=-1)

    means = [numbers(count, nodes) for count in counts]
    replaced = [numbers(count, width, nodes) for count, width in zip(counts, widths, strict=True)]
    patterns = np.stack([rng.integers(count, size=rows) for count in counts])
    weights = numbers(outputs, nodes)
    sums = rng.normal(size=(rows, outputs))
    changes = rng.normal(size=(rows, widths.sum(), outputs))
    expected_sums, expected_changes = sums.copy(), changes.copy()
    kernels.add_node_products(
        [in_parts(mean) for mean in means],
        [in_parts(change) for change in replaced],
        patterns,
        in_parts(weights),
        sums,
        changes,
    )
    for i in range(rows):
        chosen = np.array([mean[patterns[f, i]] for f, mean in enumerate(means)])
        expected_sums[i] += (weights * chosen.prod(axis=0)).sum(axis=1).real
        place = 0
        for f in range(factors):
            others = np.delete(chosen, f, axis=0).prod(axis=0)
            for change in replaced[f][patterns[f, i]]:
                expected_changes[i, place] += (weights * others * change).sum(axis=1).real
                place += 1
    close(sums, expected_sums)
    close(changes, expected_changes)


@pytest.mark.parametrize("seed", range(12))
def test_kept_products_are_products(seed):
    rng = np.random.default_rng(seed)
    rows, nodes, outputs = rng.integers(1, 9), rng.choice([1, 7, 256, 600]), rng.integers(1, 4)
    counts, points = rng.integers(1, 6, size=rng.integers(1, 5)), rng.integers(1, 4)

    def numbers(*shape):
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)

    def in_parts(values):
        return np.concatenate([values.real, values.imag], axis=-1)

    means, kept = [numbers(count, nodes) for count in counts], [numbers(points, nodes) for _ in counts]
    patterns = np.stack([rng.integers(count, size=rows) for count in counts])
    at, weights = rng.integers(points, size=(counts.size, rows)), numbers(outputs, nodes)
    shares = rng.random((counts.size, rows, 2))
    sums, changes = rng.normal(size=(rows, outputs)), rng.normal(size=(rows, counts.size, outputs))
    expected_sums, expected_changes = sums.copy(), changes.copy()
    arrays = [in_parts(mean) for mean in means], [in_parts(each) for each in kept]
    kernels.add_kept_products(*arrays, patterns, at, shares, in_parts(weights), sums, changes)
    for i in range(rows):
        g = np.array([each[at[f, i]] for f, each in enumerate(kept)])
        m = np.array([each[patterns[f, i]] for f, each in enumerate(means)])
        mixed = shares[:, i, :1] * g + shares[:, i, 1:] * m
        expected_sums[i] += (weights * mixed.prod(axis=0)).sum(axis=1).real
        for f in range(counts.size):
            others = np.delete(mixed, f, axis=0).prod(axis=0) * shares[f, i].sum()
            expected_changes[i, f] += (weights * others * (g[f] - m[f])).sum(axis=1).real
    close(sums, expected_sums)
    close(changes, expected_changes)


def test_kept_products_refuse_what_does_not_fit():
    table, patterns = np.ones((1, 4)), np.zeros((1, 3), dtype=np.int64)
    numbers = [np.ones((1, 3, 2)), np.ones((1, 4)), np.zeros((3, 1)), np.zeros((3, 1, 1))]
    fitting = [[table], [table], patterns, patterns, *numbers]
    kernels.add_kept_products(*fitting)
    wrong = [
        (0, [np.ones((1, 6))]),
        (1, [np.ones((1, 6))]),
        (1, []),
        (2, np.ones((1, 3), dtype=np.int64)),
        (3, np.ones((1, 3), dtype=np.int64)),
        (3, np.zeros((2, 3), dtype=np.int64)),
        (4, np.ones((1, 3, 1))),
        (5, np.ones((2, 4))),
        (6, np.zeros((2, 1))),
        (7, np.zeros((3, 2, 1))),
    ]
    for place, array in wrong:
        with pytest.raises(ValueError, match=r"must|no such pattern"):
            kernels.add_kept_products(*fitting[:place], array, *fitting[place + 1 :])


def test_node_products_refuse_what_does_not_fit():
    table, change, patterns = np.ones((1, 4)), np.ones((1, 1, 4)), np.zeros((1, 3), dtype=np.int64)
    fitting = [[table], [change], patterns, np.ones((1, 4)), np.zeros((3, 1)), np.zeros((3, 1, 1))]
    kernels.add_node_products(*fitting)
    wrong = [
        (0, [np.ones((1, 6))]),
        (1, [np.ones((2, 1, 4))]),
        (1, []),
        (2, np.ones((1, 3), dtype=np.int64)),
        (2, np.zeros((2, 3), dtype=np.int64)),
        (3, np.ones((2, 4))),
        (4, np.zeros((2, 1))),
        (5, np.zeros((3, 2, 1))),
    ]
    for place, array in wrong:
        with pytest.raises(ValueError, match=r"must|no such pattern"):
            kernels.add_node_products(*fitting[:place], array, *fitting[place + 1 :])


@pytest.mark.parametrize("seed", range(repeats(40, 12)))
def test_exponentials_are_sums_over_points(seed):
    rng = np.random.default_rng(seed)
    counts = rng.choice([0, 1, 63, 64, 65, 200], size=rng.integers(1, 6))
    start = np.concatenate([[0], np.cumsum(counts)])
    value, weight = rng.normal(size=start[-1]), rng.normal(size=(2, start[-1]))
    equidistant = rng.choice([0, 1, 2, 64, 65, 300])
    poles = rng.normal(size=rng.integers(0 if equidistant else 1, 4))
    contour = rng.normal() + 1j * (rng.normal() + rng.random() * np.arange(equidistant))
    nodes = np.concatenate([contour, poles])
    offsets = rng.normal(size=(counts.size, nodes.size))
    offsets[:, :equidistant] = offsets[:, :1]
    sums = rng.normal(size=(counts.size, 2, 2, nodes.size))
    expected = sums[:, :, 0] + 1j * sums[:, :, 1]
    for i in range(counts.size):
        of_row = slice(start[i], start[i + 1])
        waves = np.exp(np.multiply.outer(nodes, value[of_row]) - offsets[i, :, None])
        expected[i] += weight[:, of_row] @ waves.T
    kernels.add_exponentials(
        value, weight, start, nodes.view(np.float64).reshape(-1, 2), int(equidistant), offsets, sums
    )
    close(sums[:, :, 0], expected.real)
    close(sums[:, :, 1], expected.imag)


def test_exponentials_refuse_what_does_not_fit():
    value, start, nodes = np.ones(3), np.array([0, 1, 3]), np.ones((4, 2))
    fitting = [value, np.ones((2, 3)), start, nodes, 4, np.ones((2, 4)), np.zeros((2, 2, 2, 4))]
    kernels.add_exponentials(*fitting)
    wrong = [
        (0, np.ones(2)),
        (1, np.ones((3, 2))),
        (2, np.array([0, 1, 2])),
        (2, np.array([1, 1, 3])),
        (2, np.array([0, 4, 3])),
        (2, np.array([0, 3])),
        (3, np.ones((3, 2))),
        (4, 5),
        (4, -1),
        (5, np.ones((2, 3))),
        (6, np.zeros((2, 2, 2, 3))),
        (6, np.zeros((1, 2, 2, 4))),
    ]
    for place, argument in wrong:
        with pytest.raises(ValueError, match=r"must|fewer nodes"):
            kernels.add_exponentials(*fitting[:place], argument, *fitting[place + 1 :])


def test_waves_refuse_what_does_not_fit():
    two, one = np.ones((1, 2)), np.ones(1)
    fitting = [two, two, two, np.array([3]), one, one, np.ones(3), np.zeros(3), np.zeros(2)]
    kernels.add_waves(*fitting)
    wrong = {
        1: np.ones((1, 3)),
        3: np.array([4]),
        4: np.ones(2),
        6: np.ones(2),
        7: np.zeros(2),
        8: np.zeros(3),
    }
    for place, array in wrong.items():
        with pytest.raises(ValueError, match="must be"):
            kernels.add_waves(*fitting[:place], array, *fitting[place + 1 :])
    kernels.add_waves(*(np.zeros((1, 0)),) * 3, np.array([1]), one, one, np.ones(1), np.zeros(1), np.zeros(0))
