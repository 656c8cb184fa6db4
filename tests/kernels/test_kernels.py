"""Kernels of trees, forests and cells against their definitions, entry for entry."""

from itertools import product

import numpy as np
import pytest

import plain_kernels as plain
from compiled import Routed, chain, close, edge_above, kernels, laid_out, leaves_of, nodes_of, preorder_of

# -- trees -------------------------------------------------------------------------------------------------


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
    walked = np.zeros((walks, 5, outputs))
    nodes = kernels.Trees(4, *nodes_of(trees)[1:])
    kernels.add_walks(nodes, trees.value, end, starts, orders, walked)
    for start, order, its in zip(starts, orders, walked, strict=True):
        row = start.copy()
        for step in range(5):
            close(its[step], trees.predict(row))
            if step < 4:
                row[order[step]] = end[order[step]]
    alone = np.zeros_like(walked)
    for i in range(walks):
        one = slice(i, i + 1)
        kernels.add_walks(nodes, trees.value, end, starts[one], orders[one], alone[one])
    assert np.array_equal(walked, alone)


@pytest.mark.parametrize("columns", [254, 255, 600])
def test_walks_of_many_columns(columns):
    """Steps are bytes for up to 254 columns, and have two bytes beyond."""
    rng = np.random.default_rng(columns)
    trees = plain.Trees.random(rng, 30, 6, columns, 2, codes=6, leaf=0.05)
    # the last columns are split, too
    split = np.flatnonzero(trees.feature >= 0)
    trees.feature[split[trees.set_of[split] < 0][-3:]] = columns - 1
    starts, end = rng.normal(size=(70, columns)).round(1), rng.normal(size=columns).round(1)
    starts[:, 0], end[0] = rng.integers(-1, 7, 70), 2.0
    starts[rng.random(starts.shape) < 0.1] = np.nan
    orders = rng.permuted(np.tile(np.arange(columns), (70, 1)), axis=1)
    walked = np.zeros((70, columns + 1, 2))
    kernels.add_walks(kernels.Trees(columns, *nodes_of(trees)[1:]), trees.value, end, starts, orders, walked)
    for i in range(0, 70, 23):
        row = starts[i].copy()
        for step in range(columns + 1):
            close(walked[i, step], trees.predict(row))
            if step < columns:
                row[orders[i, step]] = end[orders[i, step]]


def test_walks_have_the_same_bits_where_columns_that_no_tree_splits_stand_beside():
    rng = np.random.default_rng(0)
    trees = plain.Trees.random(rng, 12, 6, 20, 2, codes=6)
    starts, end = rng.normal(size=(70, 300)).round(1), rng.normal(size=300).round(1)
    orders = rng.permuted(np.tile(np.arange(300), (70, 1)), axis=1)
    wide, narrow = np.zeros((70, 301, 2)), np.zeros((70, 21, 2))
    kernels.add_walks(kernels.Trees(300, *nodes_of(trees)[1:]), trees.value, end, starts, orders, wide)
    few = np.array([order[order < 20] for order in orders])
    kernels.add_walks(
        kernels.Trees(20, *nodes_of(trees)[1:]), trees.value, end[:20], starts[:, :20].copy(), few, narrow
    )
    # after each step of one of the 20 columns
    at = np.array([np.flatnonzero(np.append(True, order < 20) > 0) for order in orders])
    assert np.array_equal(np.take_along_axis(wide, at[..., None], axis=1), narrow)


def test_walks_number_their_steps_in_two_bytes():
    trees = plain.Trees.random(np.random.default_rng(0), 2, 3, 3, 1)
    order, ends = np.arange(65_535)[None], np.zeros((1, 65_535))
    for columns, match in ((65_535, "too many columns"), (65_534, None)):
        nodes, values = kernels.Trees(columns, *nodes_of(trees)[1:]), np.zeros((1, columns + 1, 1))
        its = (ends[0, :columns], ends[:, :columns].copy(), order[:, :columns].copy())
        if match is None:
            kernels.add_walks(nodes, trees.value, *its, values)
            close(values[0, -1], trees.predict(np.zeros(3)))
        else:
            with pytest.raises(ValueError, match=match):
                kernels.add_walks(nodes, trees.value, *its, values)


def test_walks_need_every_column_once():
    trees = plain.Trees.random(np.random.default_rng(0), 2, 3, 3, 1)
    nodes, row, values = kernels.Trees(3, *nodes_of(trees)[1:]), np.zeros((1, 3)), np.zeros((1, 4, 1))
    for order in ([0, 1, 1], [0, 1, 3], [-1, 0, 1]):
        with pytest.raises(ValueError, match="every column once"):
            kernels.add_walks(nodes, trees.value, row[0], row, np.array([order]), values)


def test_nodes_come_depth_first_with_the_last_edge_on_their_column():
    trees = plain.Trees.random(np.random.default_rng(1), 5, 7, 3, 1)
    (node, parent, depth, column, same), is_left = preorder_of(trees)
    leaves = dict(trees.paths())
    assert [n for n in node if trees.feature[n] < 0] == list(leaves)
    for at, (split, above) in enumerate(zip(node, parent, strict=True)):
        path, edge = [], at
        while parent[edge] >= 0:
            path.append((node[parent[edge]], bool(is_left[edge])))
            edge = parent[edge]
        assert depth[at] == len(path)
        assert column[at] == (trees.feature[node[above]] if above >= 0 else -1)
        if trees.feature[split] < 0:
            assert path[::-1] == leaves[split]
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


@pytest.mark.parametrize("width", [4, 8, 12, 16, 17])
@pytest.mark.parametrize("outputs", [1, 3])
def test_means_given_cells_leaf_by_leaf(width, outputs):
    rng = np.random.default_rng(width)
    arguments, table = laid_out(rng, 6, 7, 5, outputs, width)
    places, leaves = arguments[3:6], arguments[6]
    reached, conditional = rng.uniform(0.1, 1.0, (2, len(leaves), 2, width))
    conditional[rng.random(conditional.shape) < 0.5] = 0.0  # an interval reaches few cells
    for s in range(len(leaves)):
        above = edge_above(places, s)
        table[s, :2] = reached[s] / (1.0 if above is None else reached[above])
    shares = np.ascontiguousarray(np.concatenate([1.0 / reached, conditional], axis=1))
    splits, cells = kernels.Splits(*arguments), rng.integers(0, width, (70, 5)).astype(np.uint32)
    expected = {
        i: plain.means_given_cells(places, leaves, reached, conditional, cells[i]) for i in (0, 63, 64, 69)
    }
    for only in kernels.instructions():
        means = np.zeros((70, 5, width, outputs))
        kernels.effects_block(splits, table, shares, cells, means, only)
        for i, of_row in expected.items():
            close(means[i], of_row)
        alone = np.zeros((3, 5, width, outputs))
        kernels.effects_block(splits, table, shares, np.ascontiguousarray(cells[60:63]), alone, only)
        assert np.array_equal(alone, means[60:63])


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


@pytest.mark.parametrize("nodes", [4, 8])
@pytest.mark.parametrize("outputs", [1, 3])
def test_pairs_of_a_forest_leaf_by_leaf(nodes, outputs):
    rng, columns, width = np.random.default_rng(nodes + outputs), 4, 5
    routed = Routed(rng, columns, outputs)
    x = np.where(rng.random((70, columns)) < 0.1, np.nan, rng.integers(-4, 5, (70, columns)) / 2.0)
    masses = rng.uniform(0.1, 1.0, (len(routed.leaves), 2, width))
    cells = rng.integers(0, width, x.shape).astype(np.uint32)
    inner, shares = np.polynomial.legendre.leggauss(nodes)
    t, weights = 0.5 * np.stack([1 + inner, 1 - inner], axis=1), 0.5 * shares
    members, first = np.zeros((0, 70), np.bool_), np.full(columns, -1)
    by_set = {}
    for only in kernels.instructions():
        pairs = np.zeros((70, 6, outputs))
        for trees in np.array_split(np.arange(routed.trees, dtype=np.uint32), 2):
            kernels.add_forest_pairs(
                *(routed.splits, routed.intervals, masses, cells, routed.places_of(x), members, first, trees),
                *(t, weights, pairs, only),
            )
        by_set[only] = pairs
    for i in (0, 1, 31, 32, 69):
        game = plain.forest_game(routed.places, routed.leaves, masses, routed.inside(x[i]), cells[i])
        expected = plain.shapley_indices(game, columns)[np.tril_indices(columns, -1)]
        for pairs in by_set.values():
            close(pairs[i], expected)
    assert len({pairs.tobytes() for pairs in by_set.values()}) == 1


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("codes", [0, 5])
def test_joint_pairs_coalition_by_coalition(outputs, codes):
    rng = np.random.default_rng(outputs)
    trees = plain.Trees.random(rng, 5, 6, 4, outputs, codes=codes)
    x, background = np.where(rng.random((2, 9, 4)) < 0.1, np.nan, rng.integers(-4, 6, (2, 9, 4)) / 2.0)
    x[0] = background[3]
    weights = rng.random((9, 9))
    of_columns = [np.ascontiguousarray(rows.T) for rows in (x, background)]
    pairs, shared = np.zeros((2, 9, 4, 4, outputs))
    for first, end in ((0, 2), (2, 5)):
        both = kernels.Trees(*nodes_of(trees)), trees.value, first, end, *of_columns
        kernels.add_joint_pairs(*both, weights, pairs)
        kernels.add_joint_pairs(*both, weights[:1], shared)
    for i in range(9):
        for its, weight in ((pairs, weights[i]), (shared, weights[0])):
            game = plain.joint_game(trees, x[i], background, weight)
            close(its[i], plain.shapley_indices(game, 4))


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
    lowest = np.where(parent[split] < 0, np.arange(split.size), above[split])
    places = [a.astype(np.uint32) for a in (trees.feature[node[split]], lowest, ~is_left[split])]
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
