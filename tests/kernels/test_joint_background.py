"""The background that is kept, against contributions coalition by coalition."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import plain_kernels as plain
from compiled import chain, close, kernels, nodes_of

# Bytes: masks alone have no room, some subtrees have tables, all have them
BYTES = {"nothing": 0, "some": 20_000, "all": 1 << 26}


def kept(trees, background, most=BYTES["all"], first=0, end=None, columns=4):
    nodes = kernels.Trees(columns, *nodes_of(trees)[1:])
    end = len(trees.roots) if end is None else end
    turned = np.ascontiguousarray(background.T)
    return kernels.JointBackground(nodes, trees.value, first, end, turned, most)


def against(its, x, outputs):
    base, sums = np.zeros((len(x), outputs)), np.zeros((len(x), 3, x.shape[1], outputs))
    kernels.add_against(its, x, base, sums)
    return base, sums


def values(rng, *shape):
    """Rows with missing values, on thresholds and between them, and codes of categories."""
    return np.where(rng.random(shape) < 0.1, np.nan, rng.integers(-4, 7, shape) / 2.0)


def grown(rng, trees, depth, outputs, codes=0, columns=4):
    drawn = plain.Trees.random(rng, trees, depth, columns, outputs, codes=codes)
    # a library that compares by "<" has thresholds next to 0
    drawn.threshold[drawn.threshold == 0.0] = -5e-324
    return drawn


@pytest.mark.parametrize("size", [1, 7, 60])
@pytest.mark.parametrize("codes", [0, 5])
@pytest.mark.parametrize("most", ["some", "all"])
def test_coalition_by_coalition(size, codes, most):
    """Four columns in up to seven tests of a path: most are tested again."""
    rng = np.random.default_rng(size)
    trees, outputs = grown(rng, 4, 7, 2, codes), 2
    x, background = values(rng, 6, 4), values(rng, size, 4)
    x[0] = background[0]
    x[1], background[-1] = np.nan, [np.inf, -np.inf, 1e300, 0.0]
    its = kept(trees, background, BYTES[most])
    assert its.end == len(trees.roots)
    base, sums = against(its, x, outputs)
    for i, row in enumerate(x):
        expected = plain.joint_contributions(trees, row, background, np.full(size, 1 / size))
        close(base[i], expected[0])
        close(sums[i], expected[1])


def test_paths_that_no_table_has():
    """Fourteen tests of nine columns: more than a table's."""
    rng = np.random.default_rng(1)
    trees = plain.Trees.random(rng, 1, 14, 9, 1, leaf=0.3)
    while np.bincount(trees.feature[trees.feature >= 0]).sum() < 60:
        trees = plain.Trees.random(rng, 1, 14, 9, 1, leaf=0.3)
    x, background = values(rng, 2, 9), values(rng, 25, 9)
    base, sums = against(kept(trees, background, columns=9), x, 1)
    for i, row in enumerate(x):
        expected = plain.joint_contributions(trees, row, background, np.full(25, 1 / 25))
        close(base[i], expected[0])
        close(sums[i], expected[1])


def test_more_masks_than_bits_of_a_word():
    """A leaf under eight columns has more than 64 masks; the compiled pass over pairs has the same sums."""
    rng = np.random.default_rng(2)
    trees = plain.Trees.random(rng, 3, 9, 12, 1, leaf=0.02)
    x, background = values(rng, 9, 12), values(rng, 3000, 12)
    base, sums = against(kept(trees, background, columns=12), x, 1)
    other = np.zeros_like(base), np.zeros_like(sums)
    turned = [np.ascontiguousarray(rows.T) for rows in (x, background)]
    weights = np.full((1, 3000), 1 / 3000)
    nodes = kernels.Trees(12, *nodes_of(trees)[1:])
    kernels.add_joint_contributions(nodes, trees.value, 0, 3, *turned, weights, *other)
    close(base, other[0])
    close(sums, other[1])


@pytest.mark.parametrize("most", ["some", "all"])
def test_the_bits_of_single_rows_in_every_batch_and_thread(most):
    rng = np.random.default_rng(3)
    trees = grown(rng, 10, 9, 2)
    x, background = values(rng, 700, 4), values(rng, 60, 4)
    its = kept(trees, background, BYTES[most])
    base, sums = against(its, x, 2)

    def same(start):
        rows = slice(start, start + 1 + start % 300)
        one = against(its, np.ascontiguousarray(x[rows]), 2)
        return np.array_equal(one[0], base[rows]) and np.array_equal(one[1], sums[rows])

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(same, range(0, 700, 23)))


def test_runs_of_trees_add_up_and_those_without_room_are_left_out():
    rng = np.random.default_rng(4)
    trees = grown(rng, 8, 8, 1)
    x, background = values(rng, 5, 4), values(rng, 40, 4)
    whole = against(kept(trees, background), x, 1)
    parts = [against(kept(trees, background, first=a, end=b), x, 1) for a, b in ((0, 3), (3, 8))]
    close(parts[0][0] + parts[1][0], whole[0])
    close(parts[0][1] + parts[1][1], whole[1])
    ends = [kept(trees, background, most).end for most in (0, 4000, 1 << 26)]
    assert ends == sorted(ends)
    assert ends[0] < 8 == ends[-1]
    for most in (0, 3000, 30_000):
        its = kept(trees, background, most)
        left = [np.zeros((5, 1)), np.zeros((5, 3, 4, 1))]
        kernels.add_against(its, x, *left)
        if its.end < 8:
            turned = [np.ascontiguousarray(rows.T) for rows in (x, background)]
            nodes = kernels.Trees(4, *nodes_of(trees)[1:])
            kernels.add_joint_contributions(
                nodes, trees.value, its.end, 8, *turned, np.full((1, 40), 1 / 40), *left
            )
        close(left[0], whole[0])
        close(left[1], whole[1])


def test_bytes_are_bounded():
    rng = np.random.default_rng(5)
    trees, background = grown(rng, 20, 9, 3), values(rng, 500, 4)
    free = kept(trees, background).bytes
    nodes = 80 * len(trees.feature)
    for most in (20_000, 200_000):
        assert kept(trees, background, most).bytes <= 2 * most + nodes < free


def test_very_long_and_very_wide_paths_are_left_out():
    feature, left, right = chain(4001)
    nodes = (np.zeros(4001), left, right, np.zeros(4001, np.bool_), np.full(4001, -1))
    rest = (np.zeros((0, 0), np.bool_), np.ones((4001, 1)), np.zeros(1, np.int64))
    assert kept(plain.Trees(feature, *nodes, *rest), np.zeros((2, 3)), columns=3).end == 0
    wide = np.where(feature >= 0, np.arange(4001) // 2 % 28, -1)
    assert kept(plain.Trees(wide, *nodes, *rest), np.zeros((2, 28)), columns=28).end == 0
