"""Kernels refuse arguments that make no sense, and read nothing beyond an array."""

import numpy as np
import pytest

import plain_kernels as plain
from compiled import (
    Routed,
    cell_by_cell,
    chain,
    close,
    errors_of,
    kernels,
    laid_out,
    leaves_of,
    nodes_of,
    pool,
    preorder_of,
    refuses,
    search,
)
from effort import repeats


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
        row = (splits, cell_by_cell(arguments[3], table), cells[0], *trees.tolist(), mean[0], contrast[0])
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
        kernels.explain_row(splits, np.zeros((4, 0, 4)), cells[0], 0, 0, mean[0], contrast[0])
        assert not mean.any()


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


def calls(rng):
    """Every kernel beside those of forests' moments, with arguments that make sense."""
    trees = plain.Trees.random(rng, 3, 5, 3, 1, codes=4)
    nodes = [3, *nodes_of(trees)[1:]]  # of all columns, though trees may by chance split fewer
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
    tests = kernels.Tests(kernels.Trees(*nodes_of(routed.forest)), routed.node)
    codes, weights = np.zeros((5, 3), np.uint32), rng.random((5, 6))
    return {
        "add_contributions": [
            *(routed.splits, routed.intervals, rng.random((len(routed.leaves), 2, 4)), codes, codes.copy()),
            *(np.zeros((0, 5), np.bool_), np.full(3, -1), np.arange(routed.trees, dtype=np.uint32)),
            *(rng.random((4, 2)), rng.random((3, 4)), np.zeros((5, 1)), np.zeros((5, 3, 3, 1)), ""),
        ],
        "add_between": [
            *(kernels.Trees(*nodes_of(trees)), trees.value, rng.normal(size=(5, 3))),
            *(rng.normal(size=3), np.zeros((5, 1)), np.zeros((5, 3, 3, 1))),
        ],
        "add_forest_pairs": [
            *(routed.splits, routed.intervals, rng.random((len(routed.leaves), 2, 4)), codes, codes.copy()),
            *(np.zeros((0, 5), np.bool_), np.full(3, -1), np.arange(routed.trees, dtype=np.uint32)),
            *(rng.random((4, 2)), rng.random(4), np.zeros((5, 3, 1)), ""),
        ],
        "add_joint_pairs": [
            *(kernels.Trees(*nodes_of(trees)), trees.value, 0, 3, rng.normal(size=(3, 5))),
            *(rng.normal(size=(3, 6)), weights, np.zeros((5, 3, 3, 1))),
        ],
        "add_single_rows": [
            *(routed.splits, routed.intervals, rng.random((4, len(routed.leaves), 2)), codes, codes.copy()),
            *(np.zeros((0, 5), np.bool_), np.full(3, -1), np.arange(routed.trees, dtype=np.uint32)),
            *(rng.random((4, 2)), rng.random((3, 4)), np.zeros((5, 1)), np.zeros((5, 3, 3, 1)), ""),
        ],
        "add_joint_contributions": [
            *(kernels.Trees(*nodes), trees.value, 0, 3, rng.normal(size=(3, 5))),
            *(rng.normal(size=(3, 6)), weights, np.zeros((5, 1)), np.zeros((5, 3, 3, 1))),
        ],
        "JointBackground": [
            *(kernels.Trees(*nodes), trees.value, 0, 3, rng.normal(size=(3, 6)), 2000),
        ],
        "add_against": [
            kernels.JointBackground(
                *(kernels.Trees(*nodes), trees.value, 0, 3, rng.normal(size=(3, 6)), 2000)
            ),
            *(rng.normal(size=(5, 3)), np.zeros((5, 1)), np.zeros((5, 3, 3, 1))),
        ],
        "preorder": [trees.feature, trees.left, trees.right, trees.roots, *edges],
        "intervals": [column, same, is_left, rank, flags, whole, ends, flags.copy()],
        "tabulate": [
            *(column, same, ends[0], ends[1] + 1, flags, above, is_left, rng.random((24, 2, 2))),
            *(np.arange(0, 25, 8), rng.random((3, 2, 2, 2)), np.zeros((int(is_split.sum()), 4, 4))),
        ],
        "add_leaves": [
            *(kernels.Trees(*nodes), rng.normal(size=(5, 3)), trees.value, np.zeros((5, 1))),
        ],
        "add_walks": [
            *(
                kernels.Trees(*nodes),
                trees.value,
                rng.normal(size=3),
                rng.normal(size=(2, 3)),
            ),
            *(np.array([[0, 1, 2], [2, 1, 0]]), np.zeros((2, 4, 1))),
        ],
        "Trees": nodes,
        "Tests": [kernels.Trees(*nodes_of(routed.forest)), routed.node.copy()],
        "test_rows": [tests, rng.normal(size=(3, 5)), np.zeros((len(routed.node), 5), np.bool_)],
        "tuple_masses": [
            *(routed.splits, routed.intervals, tests, np.arange(len(routed.node)), rng.normal(size=(3, 5))),
            *(np.ones(5, np.uint32), np.array([2, 2, 5]), rng.random((3, 2))),
            *(rng.random((len(routed.node), 2)), np.zeros((len(routed.node), 2, 4))),
        ],
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
                kernels.Trees(*nodes),
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


OBJECTS = kernels.Trees | kernels.Tests | kernels.Splits | kernels.Intervals | kernels.JointBackground


def spoiled(rng, argument):
    """An entry that makes no sense, or an array that is too short."""
    if isinstance(argument, OBJECTS):
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
