"""Links of margins with interactions: pairs and small groups of columns, against grids and enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import erfc

import limes
import oracle
import slopes
import strategies
from effort import examples, repeats
from internals import (
    MOST_CELLS,
    BinWeights,
    LinkedExpectation,
    ProductFamily,
    Rows,
    SummedExpectation,
    as_margin,
    categorical,
    map_outputs,
)
from limes.exceptions import InputError, ModelError
from limes.models import forms
from oracle import EXACT

LONG = np.longdouble


def logistic(s):
    return 1 / (1 + np.exp(-np.asarray(s, dtype=LONG)))


def probit(s):
    return 0.5 * erfc(-np.asarray(s, dtype=float) / np.sqrt(2.0)).astype(LONG)


def assert_exact(design, form, truth):
    limit = limes.limit(design, form)
    assert oracle.error(limit.coef, truth.coef, truth.size) < EXACT
    assert oracle.error(limit.intercept, truth.intercept, truth.size) < EXACT


def trees_of(rng, places, scopes, size):
    """Trees that test the columns of a scope each, and an oracle that walks down them."""
    trees = []
    for scope in scopes:
        nodes = strategies.random_tree(rng, [places[j] for j in scope], 3)
        trees.append([(scope[feature] if feature >= 0 else -1, *rest) for feature, *rest in nodes])
    return strategies.as_forest(trees, size), strategies.walked(trees)


# -- steps in bins ----------------------------------------------------------------------------------------


@settings(max_examples=examples(40))
@given(strategies.designs(sizes=(2, 3), most_bins=3), strategies.rngs)
def test_links_of_trees_of_two_columns(stated, rng):
    places = strategies.cuts(rng, stated, 3)
    pairs = [(i, j) for i in range(stated.size) for j in range(i)]
    scopes = [pairs[i] for i in rng.integers(len(pairs), size=4)] + [(0,)]
    margin, walk = trees_of(rng, places, scopes, stated.size)
    truth = oracle.truth(stated.steps(places), lambda x: logistic(walk(x)), stated.cells)
    assert_exact(stated.design(), forms.Linked(margin, "logistic"), truth)


@settings(max_examples=examples(15))
@given(strategies.designs(sizes=(3,), most_bins=2), strategies.rngs)
def test_several_links_of_trees_and_a_column_beside_them(stated, rng):
    """Two margins, one output each and a sum: a pair in each, and a step of the third column."""
    places = strategies.cuts(rng, stated, 2)
    margin, walk = trees_of(rng, places, [(0, 1), (2,)], 3)
    other, walk_other = trees_of(rng, places, [(1, 2)], 3)

    def values(x):
        return logistic(walk(x)) - 0.5 * logistic(walk_other(x))

    form = forms.Combination(
        [forms.Linked(margin, "logistic"), forms.Linked(other, "logistic")], np.array([1.0, -0.5])
    )
    truth = oracle.truth(stated.steps(places), values, stated.cells)
    assert_exact(stated.design(), form, truth)


# -- against enumeration ----------------------------------------------------------------------------------


def random_pairs(rng, d):
    """A chain, a star, a ring or a forest of pairs."""
    kind = rng.integers(4)
    if kind == 0:
        return [(j, j + 1) for j in range(d - 1)]
    if kind == 1:
        return [(0, j) for j in range(1, d)]
    if kind == 2:
        return [(j, (j + 1) % d) for j in range(d)] if d > 2 else [(0, 1)]
    return [(j, int(rng.integers(j))) for j in range(1, d) if rng.random() < 0.6] or [(0, 1)]


def tables_form(singles, tables, d, outputs=()):
    """Σ_j singles[j][x_j] + Σ_ab tables[a, b][x_a, x_b] of codes, as a sum and a sum of products."""
    from internals import Lookup, Reduced, Sum, SumOfProducts

    def lookup(values):
        rows = np.atleast_2d(values)
        return Lookup(np.arange(rows.shape[1], dtype=float), rows, rows[:, 0], rows[:, 0])

    unit = np.ones((1, *outputs))
    parts = [Reduced(Sum(tuple(map(lookup, singles)), (unit,) * d, np.full(outputs, 0.25)))]
    for (a, b), table in tables.items():
        functions = [None] * d
        functions[a], functions[b] = lookup(np.eye(len(table))), lookup(table)
        coef = np.ones((len(table), *outputs))
        parts.append(Reduced(SumOfProducts(tuple(functions), coef, np.zeros(outputs))))
    return forms.Combination(parts, np.ones(len(parts)), np.zeros(outputs))


def random_case(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    levels = rng.integers(2, 3 if d > 6 else 4, size=d)
    matrix = np.stack(
        [np.concatenate([np.arange(k), rng.integers(k, size=60 - k)]) for k in levels], axis=1
    ).astype(float)
    bandwidth = float(rng.choice([0.3, 1.0, 0.75 * np.sqrt(d), 20.0]))
    size = float(rng.choice([0.1, 1.0, 8.0]))
    singles = [size * rng.normal(size=k) for k in levels]
    tables = {(a, b): size * rng.normal(size=(levels[a], levels[b])) for a, b in random_pairs(rng, d)}
    return rng, matrix, levels, bandwidth, singles, tables


def enumerated(matrix, levels, bandwidth, row, value):
    """E f and β by the sum over all states, in extended precision."""
    states = np.array(list(product(*map(range, levels))))
    masses = []
    for column, x, k in zip(matrix.T, row, levels, strict=True):
        share = np.bincount(column.astype(int), minlength=k).astype(LONG)
        masses.append(share * np.where(np.arange(k) == x, LONG(1), np.exp(LONG(-0.5) / LONG(bandwidth) ** 2)))
    law = np.prod([mass[states[:, j]] for j, mass in enumerate(masses)], axis=0)
    f, coef = value(states), []
    for j, x in enumerate(row):
        inside = states[:, j] == x
        coef.append(
            law[inside] @ f[inside] / law[inside].sum() - law[~inside] @ f[~inside] / law[~inside].sum()
        )
    return float(law @ f / law.sum()), np.array(coef, dtype=float), law / law.sum(), f


# Margins of about 30 to both sides of a mean of 3e-5, whose bound is 2e-9 of it
REFUSED = {(12, "logistic"), (12, "probit")}


@pytest.mark.parametrize("link", ["logistic", "probit", "exp"])
@pytest.mark.parametrize("seed", range(repeats(200, 12)))
def test_enumeration_of_pairs_of_up_to_eight_columns(seed, link):
    rng, matrix, levels, bandwidth, singles, tables = random_case(seed)
    scale = 0.2 if link == "exp" else 1.0
    singles = [scale * t for t in singles]
    tables = {pair: scale * t for pair, t in tables.items()}
    curve = {"logistic": logistic, "exp": np.exp, "probit": probit}[link]

    def value(states):
        margin = LONG(0.25) + sum(LONG(t)[states[:, j]] for j, t in enumerate(singles))
        return curve(margin + sum(LONG(t)[states[:, a], states[:, b]] for (a, b), t in tables.items()))

    row = matrix[rng.integers(60)]
    mean, coef, _, _ = enumerated(matrix, levels, bandwidth, row, value)
    family = ProductFamily(tuple(categorical(column) for column in matrix.T), BinWeights(bandwidth))
    form = forms.Linked(tables_form(singles, tables, len(levels)), link)
    design = family.at(row)
    if (seed, link) in REFUSED:
        with pytest.raises(ModelError, match="as the margin spreads far on both sides"):
            limes.limit(design, form)
        return
    limit = limes.limit(design, form)
    allowed = EXACT * max(np.abs(coef).max(), mean)
    assert np.abs(limit.coef - coef).max() <= allowed
    assert abs(limit.intercept + design.inclusion @ limit.coef - mean) <= allowed


@pytest.mark.parametrize("seed", range(repeats(60, 6)))
def test_enumeration_of_means_of_two_machines(seed):
    """Two margins in one output, one of them with pairs of other columns."""
    rng, matrix, levels, bandwidth, singles, tables = random_case(seed)
    d = len(levels)
    other = {(b, a): rng.normal(size=(levels[b], levels[a])) for a, b in random_pairs(rng, d)}

    def margin(states, pairs):
        total = LONG(0.25) + sum(LONG(t)[states[:, j]] for j, t in enumerate(singles))
        return total + sum(LONG(t)[states[:, a], states[:, b]] for (a, b), t in pairs.items())

    row = matrix[rng.integers(60)]
    mean, coef, _, _ = enumerated(
        matrix,
        levels,
        bandwidth,
        row,
        lambda states: 0.5 * (logistic(margin(states, tables)) + logistic(margin(states, other))),
    )
    both = [
        map_outputs(tables_form(singles, pairs, d), matrix_)
        for pairs, matrix_ in zip((tables, other), np.eye(2), strict=True)
    ]
    form = forms.Linked(forms.Combination(both, np.ones(2), np.zeros(2)), "logistic", [0.5, 0.5])
    family = ProductFamily(tuple(categorical(column) for column in matrix.T), BinWeights(bandwidth))
    design = family.at(row)
    moments = SummedExpectation(form).moments(design)
    allowed = EXACT * max(np.abs(coef).max(), mean)
    assert np.abs(moments.gamma / design.variance - coef).max() <= allowed
    assert abs(moments.mean - mean) <= allowed


@pytest.mark.parametrize("seed", range(repeats(60, 5)))
def test_variances_of_pairs(seed):
    from internals import link_variance

    rng, matrix, levels, bandwidth, singles, tables = random_case(seed)

    def value(states):
        margin = LONG(0.25) + sum(LONG(t)[states[:, j]] for j, t in enumerate(singles))
        return logistic(margin + sum(LONG(t)[states[:, a], states[:, b]] for (a, b), t in tables.items()))

    row = matrix[rng.integers(60)]
    mean, _, law, f = enumerated(matrix, levels, bandwidth, row, value)
    family = ProductFamily(tuple(categorical(column) for column in matrix.T), BinWeights(bandwidth))
    form = forms.Linked(tables_form(singles, tables, len(levels)), "logistic")
    computed = link_variance(form, np.ones(1)).variance(family.at(row))[0]
    true = float(law @ (f - mean) ** 2)
    assert np.isnan(computed) or abs(computed - true) <= 1e-6 * true


# -- slopes, bits, refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", [0.8, np.inf])
def test_slopes_of_pairs_of_steps(bandwidth):
    rng = np.random.default_rng(0)
    design, columns = slopes.normal_columns(rng, 2, bandwidth)
    box = forms.Boxes(
        [[0.1, -np.inf], [-0.4, 0.2]], [[np.inf, 0.3], [0.7, np.inf]], [1.5, -2.0], intercept=0.2
    )
    form = forms.Linked(box, "logistic")
    breaks = [[0.1, -0.4, 0.7], [0.3, 0.2]]
    slopes.assert_slopes(
        design, form, lambda x: logistic(box.predict(np.asarray(x, dtype=float))), columns(breaks)
    )


def test_rows_have_the_same_bits_alone_and_together():
    _, matrix, levels, _, singles, tables = random_case(3)
    form = forms.Linked(tables_form(singles, tables, len(levels)), "logistic", [[-1.0, 1.0]], [1.0, 0.0])
    family = ProductFamily(tuple(categorical(column) for column in matrix.T), BinWeights(1.0))
    cells = family.cells(matrix)
    together = LinkedExpectation(form).at(Rows.in_cells(family, cells))
    backwards = LinkedExpectation(form).at(Rows.in_cells(family, cells[::-1]))
    assert np.array_equal(together.gamma, backwards.gamma[::-1])
    for i in (0, 17, 59):
        alone = LinkedExpectation(form).moments(family.at(matrix[i]))
        assert np.array_equal(alone.gamma, together.gamma[i])
        assert np.array_equal(alone.mean, together.mean[i])


def test_too_many_pairs_are_refused():
    d, k = 6, 20
    rng = np.random.default_rng(0)
    pairs = {(a, b): rng.normal(size=(k, k)) for a in range(d) for b in range(a)}
    margin = tables_form([rng.normal(size=k)] * d, pairs, d)
    with pytest.raises(InputError, match=rf"join 6 columns in tables of .*at most {MOST_CELLS:,}"):
        forms.Linked(margin, "logistic")
    chain = {pair: table for pair, table in pairs.items() if pair[0] == pair[1] + 1}
    assert len(as_margin(tables_form([rng.normal(size=k)] * d, chain, d)).interactions) == d - 1


def test_a_kink_of_a_pair_is_refused():
    box = forms.Boxes([[0.0, 0.0]], [[1.0, 1.0]], [2.0], intercept=-1.0)
    family = ProductFamily((categorical(np.array([0.0, 1.0])),) * 2, BinWeights(1.0))
    with pytest.raises(InputError, match="columns interact"):
        limes.limit(family.at(np.array([0.0, 1.0])), forms.Linked(box, "relu"))


def test_words_that_interact_are_refused():
    from limes.designs import ExchangeableDesign

    box = forms.Boxes([[0.5, 0.5]], [[np.inf, np.inf]], [2.0])
    with pytest.raises(InputError, match="columns interact"):
        limes.limit(ExchangeableDesign.word_deletions(2, 0.25), forms.Linked(box, "logistic"))
