"""The compiled kernels, and valid arguments for them."""

from importlib import import_module
from importlib.util import find_spec

import numpy as np

import plain_kernels as plain

# `make kernels` and `make sanitize` put their own build on the path
kernels = import_module("_kernels" if find_spec("_kernels") else "limes._kernels")

EXACT = 1e-12  # sums of at most a few thousand terms, in another order


def close(actual, expected):
    expected = np.asarray(expected)
    np.testing.assert_allclose(
        actual, expected, rtol=0, atol=EXACT * max(1.0, np.abs(expected).max(initial=0))
    )


def nodes_of(trees):
    """Arguments of `kernels.Trees`."""
    columns = 1 + int(trees.feature.max(initial=0))
    tests = (trees.feature, trees.threshold, trees.left, trees.right, trees.missing_left)
    return [columns, *tests, trees.set_of, trees.sets, trees.roots]


def leaves_of(trees, x):
    total = np.zeros((len(x), trees.value.shape[1]))
    kernels.add_leaves(kernels.Trees(*nodes_of(trees)), x, trees.value, total)
    return total


def preorder_of(trees):
    edges, is_left = np.zeros((5, trees.feature.size), np.int64), np.zeros(trees.feature.size, np.bool_)
    count = kernels.preorder(trees.feature, trees.left, trees.right, trees.roots, edges, is_left)
    return edges[:, :count], is_left[:count]


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
    lowest = np.where(parent[split] < 0, np.arange(split.size), above[split])
    places = [a.astype(np.uint32) for a in (forest.feature[node[split]], lowest, ~is_left[split])]
    table = rng.random((split.size, 4, width))
    return [columns, level[split].astype(np.uint32), has_leaf, *places, leaves], table


def cell_by_cell(column, numbers):
    """Numbers of splits (S, m, W) as single rows read them: (W, S, m), with splits sorted by column."""
    return np.ascontiguousarray(numbers[np.argsort(column, kind="stable")].transpose(2, 0, 1))


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
        lowest = np.where(parent[split] < 0, np.arange(split.size), above[split])
        self.node = node[split]
        self.places = [a.astype(np.uint32) for a in (forest.feature[self.node], lowest, ~is_left[split])]
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


def search(p, seed=0):
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], (400, p))
    return signs.T @ signs / 400 + 1e-3, rng.normal(size=p), np.ones(p), np.array([0.3, 0.1, 0.2])


def chain(count):
    """One tree of ``count`` nodes whose right child is always a leaf."""
    node = np.arange(count)
    inner = node % 2 == 0
    inner[-1] = False
    feature = np.where(inner, node % 3, -1)
    left, right = np.where(inner, node + 2, -1), np.where(inner, node + 1, -1)
    return feature, left, right


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


def refuses(kernel, arguments):
    """Whether a kernel raises ValueError."""
    try:
        kernel(*arguments)
    except ValueError:
        return True
    return False
