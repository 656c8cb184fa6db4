"""Three classes behind a softmax: pointwise values, and expectations against grids and enumeration."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limes
import oracle
import slopes
import strategies
from effort import examples, repeats
from internals import (
    ORDERS,
    BinWeights,
    Lookup,
    ProductFamily,
    Rows,
    SoftmaxExpectation,
    Sum,
    categorical,
    copies_of,
    plane_sum,
)
from limes.exceptions import InputError, ModelError
from limes.models import forms
from oracle import EXACT

LONG = np.longdouble


def softmax(margins):
    margins = np.asarray(margins, dtype=LONG)
    powers = np.exp(margins - margins.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


# -- one point at a time ----------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [8.0, 12.0, 20.0, 31.0, 45.0, 70.0])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_a_probability_is_its_sum_of_exponentials_within_the_stated_error(period, order):
    nodes = plane_sum(period, order)
    assert nodes.period >= period
    # beyond the period, too: the bound is about all numbers
    rng = np.random.default_rng(0)
    points = rng.normal(size=(2, 300)) * rng.choice([0.3, 2.0, 8.0, 20.0, period], size=300)
    a, b = np.concatenate([points, [[0, 30, -30, 30, -30], [0, 30, -30, -30, 30]]], axis=1)
    z1, z2 = nodes.nodes
    exponents = np.multiply.outer(a, z1) + np.multiply.outer(b, z2)
    summed = (np.exp(exponents) @ nodes.weights).real
    vertices = (a, -a, b, -b) if order == 1 else (a, -a, b, -b, a - b, b - a)
    powers = sum(np.exp(order * (LONG(s) - LONG(nodes.period))) for s in vertices)
    sizes = np.abs(nodes.weights) * np.exp(exponents.real)
    rounding = 1e-15 * (2.0 + ((1.0 + np.abs(exponents)) * sizes).sum(axis=1))
    error = np.abs(summed - 1 / (1 + np.exp(LONG(1) * a) + np.exp(LONG(1) * b)))
    assert (error <= copies_of(order) * powers + nodes.error + rounding).all()
    # the bound is no bound of everything: the copies can be seen
    assert period > 25.0 / order or (error > 0.02 * powers).any()


@pytest.mark.parametrize("order", ORDERS)
def test_weights_of_powers_are_as_small_as_their_exponentials_are_large(order):
    """The stated size bounds every term at each point where the bound of the copies is below 1."""
    nodes = plane_sum(20.0, order)
    z1, z2 = nodes.nodes
    a, b = np.random.default_rng(1).uniform(-20.0, 20.0, size=(2, 500))
    inside = np.max(np.abs([a, b, a - b]), axis=0) < nodes.period
    assert 100 < inside.sum() < 500
    growth = np.outer(a, z1.real) + np.outer(b, z2.real)
    terms = np.abs(nodes.weights) * np.exp(growth)
    assert (terms[inside] <= nodes.sizes * (1 + 1e-12)).all()
    assert nodes.sizes.sum() < 20.0


# -- against grids ----------------------------------------------------------------------------------------


def assert_exact(design, form, outputs, columns, cells):
    surrogate = limes.limit(design, form)
    for k, f in enumerate(outputs):
        truth = oracle.truth(columns, f, cells)
        assert oracle.error(surrogate.coef[:, k], truth.coef, truth.size) < EXACT
        assert oracle.error(surrogate.intercept[k], truth.intercept, truth.size) < EXACT


@settings(max_examples=examples(60))
@given(
    strategies.designs(sizes=(1, 2), most_bins=3),
    strategies.rngs,
    st.sampled_from([0.0, 0.3, 3.0]),
    st.sampled_from([0.0, -8.0, 8.0]),
)
def test_linear_margins(stated, rng, size, shift):
    coef = size * rng.normal(size=(stated.size, 3))
    form = forms.Softmax(forms.Linear(coef, [0.0, 0.5, shift]))

    def probability(x, k):
        return softmax(x.astype(LONG) @ coef.astype(LONG) + np.array([0.0, 0.5, shift], dtype=LONG))[:, k]

    columns = stated.columns(resolution=1.0 / max(1.0, size))
    outputs = [lambda x, k=k: probability(x, k) for k in range(3)]
    assert_exact(stated.design(), form, outputs, columns, stated.cells)


@settings(max_examples=examples(20))
@given(strategies.designs(sizes=(1, 2), most_bins=3, open_ends=False), strategies.rngs)
def test_margins_of_curves_and_mixed_outputs(stated, rng):
    shapes = [(np.sin, ()), (lambda x: np.abs(x - 0.25), (0.25,)), (np.cos, ())]
    chosen = [shapes[i] for i in rng.choice(3, stated.size)]
    curves = forms.Additive([f for f, _ in chosen], [b for _, b in chosen], -0.5).reduce()
    matrix, shift = rng.normal(size=3), rng.normal(size=3)
    loadings = tuple(loading[:, None] * matrix for loading in curves.loadings)
    margin = forms.Reduced(Sum(curves.functions, loadings, shift))
    coef, intercept = rng.normal(size=(3, 2)), rng.normal(size=2)
    form = forms.Softmax(margin, coef, intercept)

    def f(x):
        total = np.sum([g(x[:, j]) for j, (g, _) in enumerate(chosen)], axis=0)
        return intercept + softmax(np.multiply.outer(total, matrix) + shift) @ coef

    columns = stated.columns([b for _, b in chosen], resolution=1.0)
    outputs = [lambda x, k=k: f(x)[:, k] for k in range(2)]
    assert_exact(stated.design(), form, outputs, columns, stated.cells)
    surrogate = limes.limit(stated.design(), form.select(1))
    truth = oracle.truth(columns, outputs[1], stated.cells)
    assert oracle.error(surrogate.coef, truth.coef, truth.size) < EXACT


@settings(max_examples=examples(15))
@given(strategies.rngs, st.sampled_from([1, 2]), st.sampled_from([0.1, 0.8, np.inf]))
def test_slopes(rng, d, bandwidth):
    design, columns = slopes.normal_columns(rng, d, bandwidth)
    coef = rng.normal(size=(d, 3)) * 0.5
    form = forms.Softmax(forms.Linear(coef, [0.3, 0.0, -0.2])).select(0)

    def f(x):
        return softmax(x.astype(LONG) @ coef + np.array([0.3, 0.0, -0.2], dtype=LONG))[:, 0]

    slopes.assert_slopes(design, form, f, columns(resolution=1.0))


# -- against enumeration ----------------------------------------------------------------------------------


def discrete(rng, levels, bandwidth):
    """A design over columns of categories; its row, and the law of each column under w."""
    matrix = np.stack(
        [np.concatenate([np.arange(k), rng.integers(k, size=60 - k)]) for k in levels], axis=1
    ).astype(float)
    family = ProductFamily(tuple(categorical(column) for column in matrix.T), BinWeights(bandwidth))
    row, laws = matrix[rng.integers(60)], []
    for j, k in enumerate(levels):
        mass = np.bincount(matrix[:, j].astype(int), minlength=k).astype(LONG)
        law = mass * np.where(np.arange(k) == row[j], LONG(1), np.exp(LONG(-0.5) / LONG(bandwidth) ** 2))
        laws.append(law / law.sum())
    return family.at(row), row.astype(int), laws


def enumerated(tables, shift, laws, row):
    """E p (3,) and contrasts (d, 3) by the sum over all states; tables are (levels, 3)."""
    states = np.array(list(product(*(range(law.size) for law in laws))))
    p = softmax(
        sum((LONG(1) * table[states[:, j]] for j, table in enumerate(tables)), np.asarray(shift, dtype=LONG))
    )
    mass = np.prod([law[states[:, j]] for j, law in enumerate(laws)], axis=0)
    contrasts = []
    for j in range(len(laws)):
        inside = states[:, j] == row[j]
        means = [mass[part] @ p[part] / mass[part].sum() for part in (inside, ~inside)]
        contrasts.append(means[0] - means[1])
    return (mass @ p).astype(float), np.array(contrasts, dtype=float)


def tables_form(tables, shift):
    functions = tuple(Lookup(np.arange(float(len(t))), t.T, t[0], t[0]) for t in tables)
    return forms.Softmax(forms.Reduced(Sum(functions, (np.eye(3),) * len(tables), np.asarray(shift))))


@pytest.mark.parametrize("seed", range(repeats(200, 40)))
def test_enumeration_of_eleven_columns(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 12))
    levels = rng.integers(2, 3 if d > 8 else 4, size=d)
    design, row, laws = discrete(rng, levels, float(rng.choice([1.0, 0.75 * np.sqrt(d), 20.0])))
    tables = [float(rng.choice([0.1, 1.0, 2.0])) * rng.normal(size=(k, 3)) for k in levels]
    shift = float(rng.choice([0.0, 5.0])) * rng.normal(size=3)
    mean, contrast = enumerated(tables, shift, laws, row)
    moments = SoftmaxExpectation(tables_form(tables, shift)).moments(design)
    result = moments.gamma / design.variance[:, None]
    allowed = EXACT * (mean + np.abs(contrast).max(axis=0))
    assert (np.abs(moments.mean - mean) <= allowed).all()
    assert (np.abs(result - contrast) <= allowed).all()
    assert abs(moments.mean.sum() - 1.0) < 1e-15


@pytest.mark.parametrize("order", ORDERS)
def test_each_order_alone_agrees_with_enumeration(order, monkeypatch):
    monkeypatch.setattr(sys.modules[SoftmaxExpectation.__module__], "ORDERS", (order,))
    rng = np.random.default_rng(7)
    for bandwidth in (0.3, 1.5):
        design, row, laws = discrete(rng, [3, 2, 4, 2, 3, 2], bandwidth)
        tables = [rng.normal(size=(law.size, 3)) for law in laws]
        mean, contrast = enumerated(tables, np.array([0.5, 0.0, -2.0]), laws, row)
        moments = SoftmaxExpectation(tables_form(tables, [0.5, 0.0, -2.0])).moments(design)
        result = moments.gamma / design.variance[:, None]
        allowed = EXACT * (mean + np.abs(contrast).max(axis=0))
        assert (np.abs(moments.mean - mean) <= allowed).all()
        assert (np.abs(result - contrast) <= allowed).all()


@pytest.mark.parametrize(
    "shift", [[-27.6, 0.0, 0.0], [0.0, -60.0, -28.0], [-40.0, -27.6, 0.0], [0.0, 45.0, 2.0]]
)
@pytest.mark.parametrize("bandwidth", [0.05, 0.5, 3.0])
def test_tiny_probabilities_keep_their_digits(shift, bandwidth):
    rng = np.random.default_rng(3)
    levels = [2, 3, 2, 3, 2]
    design, row, laws = discrete(rng, levels, bandwidth)
    tables = [rng.normal(size=(k, 3)) for k in levels]
    mean, contrast = enumerated(tables, shift, laws, row)
    moments = SoftmaxExpectation(tables_form(tables, shift)).moments(design)
    result = moments.gamma / design.variance[:, None]
    size = mean + np.abs(contrast).max(axis=0)
    assert (np.abs(moments.mean - mean) <= EXACT * size).all()
    tiny = mean < 1e-6
    assert tiny.any()
    assert (np.abs(result - contrast)[:, tiny] <= EXACT * size[tiny]).all()
    # the likely class is the complement of the others: its contrasts are as good as theirs
    assert np.abs(result.sum(axis=1)).max() <= 1e-15 * np.abs(result).max()


# -- batches, refusals ------------------------------------------------------------------------------------


def test_rows_have_the_same_bits_alone_and_together():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 4))
    form = forms.Softmax(forms.Linear(2.0 * rng.normal(size=(4, 3)), [0.0, 1.0, -1.0]))
    family = limes.TabularExplainer(lambda rows: rows[:, 0], x, method="sampled", max_calls=64)._model.family
    cells = family.cells(x)
    together = SoftmaxExpectation(form).at(Rows.in_cells(family, cells))
    backwards = SoftmaxExpectation(form).at(Rows.in_cells(family, cells[::-1]))
    assert np.array_equal(together.gamma, backwards.gamma[::-1])
    for i in (0, 17, 299):
        alone = SoftmaxExpectation(form).moments(family.at(x[i]))
        assert np.array_equal(alone.gamma, together.gamma[i])
        assert np.array_equal(alone.mean, together.mean[i])


def test_a_row_whose_error_cannot_be_bounded_is_refused():
    family = ProductFamily((categorical(np.array([0.0, 1.0])),), BinWeights(0.12))
    tables = [np.array([[-8000.0, 0.0, 0.0], [6000.0, 0.0, 0.0]])]
    with pytest.raises(ModelError, match="range too far"):
        SoftmaxExpectation(tables_form(tables, np.zeros(3))).moments(family.at(np.array([0.0])))


def test_margins_without_such_a_sum_are_refused():
    with pytest.raises(InputError, match="three margins"):
        forms.Softmax(forms.Linear(np.ones((2, 4))))
    with pytest.raises(InputError, match="not a sum of functions of one column"):
        forms.Softmax(forms.GaussianKernels([[0.0, 0.0]], [[1.0, 0.0, 0.0]], 1.0))
    with pytest.raises(InputError, match="rows of coef"):
        forms.Softmax(forms.Linear(np.ones((2, 3))), [1.0, 2.0])
