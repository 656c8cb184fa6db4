"""Contributions of forests by one pass: against designs whose columns keep values, node by node."""

from __future__ import annotations

import numpy as np
import pytest

import plain_kernels as plain
from internals import (
    Atoms,
    BinCells,
    BinWeights,
    EuclideanWeights,
    ExactExpectation,
    ForestExpectation,
    KeptRows,
    Levels,
    ProductFamily,
    _kernels,
    _threads,
    exact_contributions,
    exact_expectation,
    interacting,
    marginal,
    quadrature,
)
from limes.models.forms import Combination, Forest

# numeric thresholds of `plain.Trees` are whole or half numbers from -1.5 to 1.5
VALUES = np.array([-2.0, -1.5, -1.0, -0.5, 0.0, 0.25, 1.0, 1.5, 2.0])
EDGES = [[-np.inf, np.inf], [-np.inf, 0.0, np.inf], [-np.inf, -1.0, 0.0, 1.0, np.inf]]


def forest(rng, *, trees=6, depth=5, columns=4, outputs=1, codes=0, leaf=0.2):
    nodes = plain.Trees.random(rng, trees, depth, columns, outputs, codes=codes, leaf=leaf)
    value = nodes.value if outputs > 1 else nodes.value[:, 0]
    arrays = {
        name: getattr(nodes, name) for name in ("feature", "threshold", "left", "right", "missing_left")
    }
    return Forest(
        **arrays,
        value=value,
        roots=nodes.roots,
        intercept=np.full(value.shape[1:], 0.5),
        size=columns,
        set_of=nodes.set_of,
        sets=nodes.sets,
    )


def law(rng, column, *, codes, missing):
    """Atoms in bins, with a cell of missing values; of categories, atoms that are cells."""
    if codes and column == 0:
        values = np.append(np.arange(codes + 1.0), [np.nan] * missing)
        return marginal(
            Levels(values),
            rng.random(values.size) + 0.1,
            [(Atoms(values, np.ones(values.size)), np.arange(values.size))],
        )
    cells = BinCells(np.array(EDGES[column % 3]), missing=missing)
    owner = BinCells(cells.edges).locate(VALUES)
    weight = rng.random(VALUES.size) + 0.1
    weight /= np.bincount(owner, weight)[owner]
    parts = [(Atoms(VALUES, weight), owner)]
    if missing:
        parts.append((Atoms(np.array([np.nan]), np.ones(1)), np.array([cells.count - 1])))
    return marginal(cells, rng.random(cells.count) + 0.1, parts)


def rows_of(rng, count, columns, *, codes, missing):
    x = rng.choice(np.append(VALUES, [-np.inf, np.inf, 0.3]), (count, columns))
    if codes:
        x[:, 0] = rng.integers(0, codes + 1, count)
    if missing:
        x[rng.random(x.shape) < 0.15] = np.nan
    return x


def by_nodes(expectation, form, family, x, cells):
    """Base, contributions, those alone, and last, by designs of columns that keep their values."""
    t, weights = quadrature(interacting(form))
    results = []
    for i in range(len(x)):
        row = slice(i, i + 1)
        moments = expectation.at(KeptRows.of(family, x[row], cells[row], t))
        beta = moments.gamma.reshape(t.shape[0], form.size, -1)
        base = moments.mean.reshape(t.shape[0], -1)[0]
        results.append((base, np.einsum("t,tdk->dk", weights, beta), beta[0], beta[-1]))
    return [np.array(each) for each in zip(*results, strict=True)]


def assert_agrees(form, family, x):
    cells = family.cells(x)
    account = exact_contributions(form, exact_expectation(form), family, x, cells)
    actual = account.base, account.values, account.alone, account.last
    for plain_one in (ForestExpectation(form), ExactExpectation(form)):
        for one, other in zip(actual, by_nodes(plain_one, form, family, x, cells), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * max(1.0, np.abs(other).max()))
    total = account.base + account.values.sum(axis=1)
    np.testing.assert_allclose(total, form.predict(x).reshape(total.shape), rtol=0, atol=1e-11)


@pytest.mark.parametrize("bandwidth", [0.1, 0.75, np.inf])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize(("codes", "missing"), [(0, False), (0, True), (6, False), (6, True)])
def test_one_pass_agrees_with_designs_that_keep_values(bandwidth, outputs, codes, missing):
    rng = np.random.default_rng(outputs + codes)
    form = forest(rng, outputs=outputs, codes=codes)
    family = ProductFamily(
        tuple(law(rng, j, codes=codes, missing=missing) for j in range(4)), BinWeights(bandwidth)
    )
    assert_agrees(form, family, rows_of(rng, 5, 4, codes=codes, missing=missing))


@pytest.mark.parametrize(
    ("weights", "held"),
    [(BinWeights(0.75), np.array([True, False, True, False])), (EuclideanWeights(0.7), None)],
    ids=["held", "distance"],
)
def test_rows_with_separate_laws(weights, held):
    rng = np.random.default_rng(0)
    laws = tuple(law(rng, j, codes=0, missing=True) for j in range(4))
    family = ProductFamily(laws, weights, held=held)
    x = rows_of(rng, 3, 4, codes=0, missing=True)
    assert_agrees(forest(rng), family, np.where(np.isinf(x), 0.5, x))


@pytest.mark.parametrize("columns", [9, 20])
def test_paths_of_many_columns(columns):
    rng = np.random.default_rng(columns)
    trees = [forest(rng, trees=2, depth=depth, columns=columns, leaf=0.05) for depth in (2, 8)]
    if columns == 20:  # one path through all columns needs more nodes than registers hold
        feature, leaf = np.repeat(np.arange(20), 2), np.arange(20) * 2 + 1
        nodes = np.append(feature, -1)
        nodes[leaf] = -1
        inner = nodes >= 0
        left, right = (np.where(inner, np.arange(41) + step, -1) for step in (1, 2))
        chain = Forest(
            feature=nodes,
            threshold=np.zeros(41),
            left=left,
            right=right,
            missing_left=np.zeros(41, dtype=np.bool_),
            value=rng.normal(size=41),
            roots=np.array([0]),
            intercept=np.zeros(()),
            size=20,
        )
        trees.append(chain)
    form = Forest.joined(trees, intercept=np.zeros(()))
    nodes_of_passes = [len(t) for _, t, _ in ForestExpectation(form).passes]
    assert nodes_of_passes == ([4, 8] if columns == 9 else [4, 8, 8, 8])
    family = ProductFamily(
        tuple(law(rng, j, codes=0, missing=False) for j in range(columns)), BinWeights(0.75)
    )
    assert_agrees(form, family, rows_of(rng, 3, columns, codes=0, missing=False))


def test_trees_of_one_leaf_and_empty_forests():
    rng = np.random.default_rng(1)
    family = ProductFamily(tuple(law(rng, j, codes=0, missing=False) for j in range(2)), BinWeights(0.75))
    x = rows_of(rng, 3, 2, codes=0, missing=False)
    lone, grown = forest(rng, trees=2, depth=0, columns=2), forest(rng, trees=3, columns=2)
    assert_agrees(lone, family, x)
    assert_agrees(Forest.joined([lone, grown], intercept=np.array(2.0)), family, x)


def test_combinations_add_up_their_forests():
    rng = np.random.default_rng(2)
    parts = [forest(rng), forest(rng)]
    form = Combination(parts, np.array([0.25, -2.0]), np.array(3.0))
    family = ProductFamily(tuple(law(rng, j, codes=0, missing=False) for j in range(4)), BinWeights(0.75))
    x = rows_of(rng, 3, 4, codes=0, missing=False)
    cells = family.cells(x)
    account = exact_contributions(form, exact_expectation(form), family, x, cells)
    one, other = (exact_contributions(p, exact_expectation(p), family, x, cells) for p in parts)
    np.testing.assert_allclose(account.values, 0.25 * one.values - 2.0 * other.values, atol=1e-13)
    np.testing.assert_allclose(
        account.base[:, 0] + account.values.sum(axis=1)[:, 0], form.predict(x), atol=1e-12
    )


@pytest.mark.parametrize("workers", [1, 3])
def test_a_row_has_the_same_bits_in_any_call(workers, monkeypatch):
    rng = np.random.default_rng(3)
    form = forest(rng, trees=40, depth=6, codes=6)
    family = ProductFamily(tuple(law(rng, j, codes=6, missing=True) for j in range(4)), BinWeights(0.75))
    x = rows_of(rng, 150, 4, codes=6, missing=True)
    cells = family.cells(x)
    monkeypatch.setattr("limes._expectations.forest._SPLITS_TOGETHER", 200)
    expectation = ForestExpectation(form)
    assert len(expectation.passes) > 2
    before = _threads.WORKERS
    _threads.set_threads(workers)
    try:
        base, sums = expectation.contributions(family, x, cells)
        for rows in (slice(0, 1), slice(7, 8), slice(70, 150), slice(149, 150), slice(20, 40)):
            alone = expectation.contributions(family, x[rows], cells[rows])
            assert np.array_equal(alone[0], base[rows])
            assert np.array_equal(alone[1], sums[rows])
    finally:
        _threads.set_threads(before)


def test_all_instructions_give_the_same_bits_and_wrong_shapes_are_refused():
    rng = np.random.default_rng(4)
    expectation = ForestExpectation(forest(rng, outputs=2, codes=6))
    family = ProductFamily(tuple(law(rng, j, codes=6, missing=True) for j in range(4)), BinWeights(0.75))
    x, layout = rows_of(rng, 70, 4, codes=6, missing=True), expectation
    places, (members, first) = layout.places(x), layout.members(x)
    masses, cells = expectation._edge_masses(family.columns, single=False), family.cells(x).astype(np.uint32)
    by_column = expectation._edge_masses(family.columns, single=True)
    (trees, t, weights), *_ = layout.passes

    def add(only="", kernel=_kernels.add_contributions, **changes):
        base, sums = np.zeros((70, 2)), np.zeros((70, 3, 4, 2))
        arguments = {
            "masses": masses,
            "cells": cells,
            "places": places,
            "members": members,
            "first": first,
            "trees": trees,
            "t": t,
            "weights": weights,
            "base": base,
            "sums": sums,
        }
        kernel(layout.splits, layout.intervals, *(arguments | changes).values(), only)
        return np.column_stack([base, sums.reshape(70, -1)])

    results = [add(name) for name in _kernels.instructions()]
    assert all(np.array_equal(result, results[0]) for result in results)
    # as do few rows together, and the pass for single ones, which looks up no number
    for name in _kernels.instructions():
        for rows in (slice(0, 1), slice(1, 4), slice(4, 8)):
            for kernel, its in ((_kernels.add_contributions, masses), (_kernels.add_single_rows, by_column)):
                some = members[:, rows].copy()
                count = rows.stop - rows.start
                base, sums = np.zeros((count, 2)), np.zeros((count, 3, 4, 2))
                its = its, cells[rows], places[rows], some, first, trees, t, weights, base, sums
                kernel(layout.splits, layout.intervals, *its, name)
                assert np.array_equal(base, results[0][rows, :2])
                assert np.array_equal(sums.reshape(len(sums), -1), results[0][rows, 2:])
    for changes in (
        {"cells": cells + np.uint32(50)},
        {"places": places[1:]},
        {"members": members[1:]},
        {"trees": trees + np.uint32(99)},
        {"t": t[:3]},
        {"sums": np.zeros((70, 3, 4, 1))},
        {"masses": masses[1:]},
        {"only": "none"},
    ):
        with pytest.raises(ValueError, match=r"must|range|tree|instructions"):
            add(**changes)
        by_itself = {"kernel": _kernels.add_single_rows, "masses": by_column}
        with pytest.raises(ValueError, match=r"must|range|tree|instructions"):
            add(**(by_itself | changes))
