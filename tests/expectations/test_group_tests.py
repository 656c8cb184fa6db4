"""Probabilities of the boxes of groups of columns, and ways of rows: against walks down every path."""

from __future__ import annotations

import numpy as np
import pytest

import plain_kernels as plain
from internals import (
    BinWeights,
    ColumnGroups,
    ForestExpectation,
    ForestOfTuples,
    ProductFamily,
    binned,
    categorical,
    law_of_tuples,
)
from limes.models.forms import Forest

CODES = 4
GROUPS = [[0, 2], [1], [3, 4, 5]]  # column 0 has categories
EDGES = np.array([-np.inf, -0.5, 0.5, np.inf])


def background_of(rng, n):
    x = rng.choice([-2.0, -1.0, -0.25, 0.0, 0.5, 1.0], (n, 6))
    x[:, 0] = rng.integers(0, CODES, n)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


def case(seed, *, outputs=1):
    """A forest, the groups of a background, and the family of designs."""
    rng = np.random.default_rng(seed)
    nodes = plain.Trees.random(rng, 8, 6, 6, outputs, codes=CODES, leaf=0.1)
    names = "feature", "threshold", "left", "right", "missing_left", "roots", "set_of", "sets"
    arrays = {name: getattr(nodes, name) for name in names}
    form = Forest(**arrays, value=nodes.value[:, 0], intercept=np.array(0.5), size=6)
    background = background_of(rng, 40)
    laws = [binned(x, EDGES[1:-1], law="empirical") for x in background.T]
    laws[0] = categorical(background[:, 0])
    grouping = ColumnGroups.of(GROUPS, background)
    marginals = tuple(
        laws[its[0]] if tuples is None else law_of_tuples(tuples, [laws[j].cells for j in its])
        for its, tuples in zip(GROUPS, grouping.tuples, strict=True)
    )
    return rng, form, background, ForestOfTuples(form, grouping), ProductFamily(marginals, BinWeights(0.75))


def goes_left(form, node, row):
    x = row[form.feature[node]]
    if np.isnan(x):
        return form.missing_left[node]
    if form.set_of[node] < 0:
        return x <= form.threshold[node]
    return x in np.flatnonzero(form.sets[form.set_of[node]])


def edges_of(form):
    """Splits depth first, and for either side the tests above, with the sides that they take."""
    waiting = [(root, ()) for root in form.roots[::-1].tolist()]
    while waiting:
        node, path = waiting.pop()
        if form.feature[node] >= 0:
            left, right = (*path, (node, True)), (*path, (node, False))
            yield node, left, right
            waiting += [(form.right[node], right), (form.left[node], left)]


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_probabilities_are_shares_of_the_background(seed, few):
    _, form, background, grouped, family = case(seed)
    masses = ForestExpectation(grouped)._edge_masses(family.columns, single=False, few=few)
    group_of = {j: g for g, its in enumerate(GROUPS) for j in its}
    codes = grouped.grouping.encode(background)
    cells = np.stack([law.cells.locate(x) for law, x in zip(family.marginals, codes.T, strict=True)], axis=1)
    compared = 0
    for split, (node, *sides) in enumerate(edges_of(form)):
        g = group_of[form.feature[node]]
        if len(GROUPS[g]) == 1:
            continue
        column = family.columns[g]
        for side, path in enumerate(sides):
            tests = [(n, left) for n, left in path if group_of[form.feature[n]] == g]
            is_in = np.array(
                [all(goes_left(form, n, row) == left for n, left in tests) for row in background]
            )
            for cell in range(family.marginals[g].cells.count):
                same = cells[:, g] == cell
                inside = is_in[same].mean() if same.any() else 0.0
                outside = is_in[~same].mean()
                truth = column.inclusion[cell] * inside + column.exclusion[cell] * outside
                assert masses[split, side, cell] == pytest.approx(truth, rel=1e-12, abs=1e-200)
                compared += 1
    assert compared > 1000


@pytest.mark.parametrize("count", [1, 30])
def test_rows_go_their_ways(count):
    """Also rows with categories and combinations that the background lacks, and with missing values."""
    rng, form, _, grouped, _ = case(7)
    rows = background_of(rng, count)
    rows[rng.random(count) < 0.3, 0] = CODES + 1
    expectation = ForestExpectation(grouped)
    members, first = expectation.members(grouped.grouping.encode(rows))
    assert (first >= 0).tolist() == [True, False, True]
    flags = expectation._groups.flags(grouped.grouping.encode(rows))
    for g, its in enumerate(GROUPS):
        if len(its) == 1:
            continue
        at = int(expectation._groups.start[g] - first[g])
        assert np.array_equal(members[at : at + len(flags[g])], flags[g])
        ways = {
            tuple(goes_left(form, n, row) for row in rows) for n in np.flatnonzero(np.isin(form.feature, its))
        }
        assert ways == set(map(tuple, flags[g].tolist()))
