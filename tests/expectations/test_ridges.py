"""Networks with one hidden layer: against enumeration, grids, and the polynomials of uniform laws."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf, ndtr

import limes
import oracle
import slopes
import strategies
from effort import examples, repeats
from internals import (
    CURVES,
    BinWeights,
    ProductFamily,
    Rows,
    binned,
    categorical,
    envelope,
    exact_expectation,
)
from limes.exceptions import InputError, ModelError
from limes.models import forms
from oracle import EXACT

CURVE = {
    "identity": lambda s: s,
    "logistic": lambda s: 1 / (1 + np.exp(-s)),
    "tanh": np.tanh,
    "relu": lambda s: np.maximum(s, 0),
    "erf": lambda s: erf(s.astype(float)),
    "cos": np.cos,
    "gelu": lambda s: s * ndtr(s.astype(float)),
    "silu": lambda s: s / (1 + np.exp(-s)),
    "softplus": lambda s: np.maximum(s, 0) + np.log1p(np.exp(-np.abs(s))),
}
BENDS = ["gelu", "silu", "softplus"]
SMOOTH = [name for name in CURVE if name != "relu"]


def network(rng, units, d, activation, size=1.0, outputs=()):
    return forms.Ridges(
        size * rng.normal(size=(units, d)),
        rng.normal(size=units),
        rng.normal(size=(units, *outputs)),
        activation,
        rng.normal(size=outputs),
    )


def evaluated(form, x):
    x = np.asarray(x, dtype=np.longdouble)
    return form.intercept + CURVE[form.activation](x @ form.weights.T + form.offsets) @ form.scales


# -- values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", CURVE)
@pytest.mark.parametrize("outputs", [(), (3,)])
def test_values_and_selected_outputs(activation, outputs):
    rng = np.random.default_rng(0)
    form, x = network(rng, 7, 4, activation, outputs=outputs), rng.normal(size=(50, 4))
    expected = evaluated(form, x).astype(float)
    assert np.allclose(form.predict(x), expected, rtol=0, atol=1e-13)
    assert np.allclose(form.expanded.predict(x), expected, rtol=0, atol=1e-13)
    if outputs:
        assert np.allclose(form.select([2, 0]).predict(x), expected[:, [2, 0]], rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["tanh", "erf", "cos", "relu", *BENDS])
@pytest.mark.parametrize("ends", [(-5.0, 7.0), (-0.1, 0.3), (2.0, 3.0), (-9.0, -1.0), (-40.0, 12.0)])
def test_an_activation_is_its_sum_of_exponentials_within_the_stated_error(name, ends):
    rule = CURVES[name].sum(*ends, 0.0, lambda t: 0.0 * t)  # a law of which all frequencies fall at once
    s = np.linspace(*ends, 501)
    waves = np.exp(np.multiply.outer(s, rule.nodes) + rule.log_weights) @ rule.weights
    gap = np.abs(rule.slope * s + rule.base + rule.rest + waves.real - CURVES[name].function(s))
    kink = 2 * max(-ends[0], ends[1]) / np.pi**2 / max(1, rule.nodes.size) if name == "relu" else 0.0
    assert gap.max() <= rule.error + kink + 1e-13 * (1 + np.abs(s).max())


# -- against enumeration ----------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", CURVE)
@pytest.mark.parametrize("seed", range(repeats(200, 5)))
def test_enumeration_of_up_to_twelve_columns(activation, seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 13))
    levels = rng.integers(2, 3 if d > 7 else 4, size=d)
    values = [np.sort(rng.normal(size=k)) for k in levels]
    matrix = np.stack(
        [v[np.r_[np.arange(v.size), rng.integers(v.size, size=40 - v.size)]] for v in values], axis=1
    )
    bandwidth = float(rng.choice([0.3, 1.0, 0.75 * np.sqrt(d), 20.0]))
    family = ProductFamily(tuple(categorical(column) for column in matrix.T), BinWeights(bandwidth))
    row = matrix[rng.integers(40)]
    form = network(rng, 5, d, activation, float(rng.choice([0.2, 1.0, 4.0])), outputs=[(), (2,)][seed % 2])
    mass = []
    for v, column, x in zip(values, matrix.T, row, strict=True):
        count = (column[:, None] == v).sum(axis=0)
        mass.append(count * np.where(v == x, 1.0, np.exp(-0.5 / np.longdouble(bandwidth) ** 2)))
    states = np.array(list(product(*values)))
    law = np.array([np.prod(each) for each in product(*mass)])
    f, coef = evaluated(form, states), []
    for j in range(d):
        inside = states[:, j] == row[j]
        coef.append(
            law[inside] @ f[inside] / law[inside].sum() - law[~inside] @ f[~inside] / law[~inside].sum()
        )
    limit = limes.limit(family.at(row), form)
    assert oracle.error(limit.coef, coef, np.abs(f).max()) < EXACT


# -- against grids ----------------------------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(strategies.designs(sizes=(1, 2), most_bins=3), strategies.rngs, st.sampled_from(SMOOTH))
def test_smooth_activations(stated, rng, activation):
    form = network(rng, 3, stated.size, activation)
    truth = oracle.truth(stated.columns(resolution=0.5), lambda x: evaluated(form, x), stated.cells)
    limit = limes.limit(stated.design(), form)
    assert oracle.error(limit.coef, truth.coef, truth.size) < EXACT
    assert oracle.error(limit.intercept, truth.intercept, truth.size) < EXACT


@settings(max_examples=15)
@given(strategies.rngs, st.sampled_from([1, 2]), st.sampled_from([0.5, np.inf]), st.sampled_from(SMOOTH))
def test_slopes(rng, d, bandwidth, activation):
    design, columns = slopes.normal_columns(rng, d, bandwidth)
    form = network(rng, 3, d, activation, 0.5)
    slopes.assert_slopes(design, form, lambda x: evaluated(form, x), columns(resolution=0.5))


@pytest.mark.parametrize("seed", range(6))
def test_a_kink_under_normal_laws(seed):
    """S is normal: E relu(S) = m Φ(m/s) + s φ(m/s), and its slope by x_j is w_j Φ(m/s)."""
    from scipy.stats import norm

    rng = np.random.default_rng(seed)
    d = 1 + seed
    design, _ = slopes.normal_columns(rng, d, np.inf)
    form = network(rng, 4, d, "relu")
    mean = design.inclusion
    variance = design.variance
    m, s = form.weights @ mean + form.offsets, np.sqrt(form.weights**2 @ variance)
    limit = limes.limit(design, form)
    coef = (form.weights * norm.cdf(m / s)[:, None]).T @ form.scales
    expected = form.intercept + (m * norm.cdf(m / s) + s * norm.pdf(m / s)) @ form.scales
    assert oracle.error(limit.coef, coef, np.abs(form.scales).sum()) < EXACT
    assert abs(limit.intercept + limit.coef @ mean - expected) < EXACT * np.abs(form.scales).sum()


def uniform_mean(weights, offset, boxes):
    """E relu(w·x + b) on a box: the (d + 1)-fold integral of a step, at its corners, in exact fractions."""
    total, volume, d = Fraction(0), Fraction(1), len(boxes)
    for w, (low, high) in zip(weights, boxes, strict=True):
        volume *= Fraction(w) * (Fraction(high) - Fraction(low))
    for corner in product((0, 1), repeat=d):
        s = Fraction(offset) + sum(
            Fraction(w) * Fraction(b[c]) for w, b, c in zip(weights, boxes, corner, strict=True)
        )
        total += (-1) ** (d - sum(corner)) * max(s, Fraction(0)) ** (d + 1)
    return total / (factorial(d + 1) * volume)


@pytest.mark.parametrize("seed", range(10))
def test_a_kink_under_uniform_laws(seed):
    """Cell by cell a polynomial: an oracle without any quadrature."""
    rng = np.random.default_rng(seed)
    d = 4 + seed % 2
    edges = [np.array([-1.0, rng.uniform(-0.5, 0.5), 1.0]) * rng.uniform(0.5, 3) for _ in range(d)]
    columns = [np.concatenate([rng.uniform(e[0], e[-1], size=48), e]) for e in edges]
    family = ProductFamily(
        tuple(binned(x, e, law="uniform") for x, e in zip(columns, edges, strict=True)), BinWeights(1.1)
    )
    row = np.array([rng.uniform(e[0], e[-1]) for e in edges])
    form = forms.Ridges(rng.normal(size=(2, d)), 0.3 * rng.normal(size=2), [1.0, -2.0], "relu", 0.25)
    design = family.at(row)
    mean, coef, masses = 0.25, np.zeros(d), [c.probability for c in design.coordinates]
    given_z = np.zeros((d, 2))
    for cells in product((0, 1), repeat=d):
        mass = np.prod([q[c] for q, c in zip(masses, cells, strict=True)])
        boxes = [(e[c], e[c + 1]) for e, c in zip(edges, cells, strict=True)]
        values = [uniform_mean(w, b, boxes) for w, b in zip(form.weights, form.offsets, strict=True)]
        f = mass * float(values[0] - 2 * values[1])
        mean += f
        for j, c in enumerate(cells):
            given_z[j, int(c == design.coordinates[j].cell[0])] += f
    coef = given_z[:, 1] / design.inclusion - given_z[:, 0] / (1 - design.inclusion)
    limit = limes.limit(design, form)
    size = np.abs(form.scales).sum()
    assert np.abs(limit.coef - coef).max() < EXACT * size
    assert abs(limit.intercept + design.inclusion @ limit.coef - mean) < EXACT * size


# -- what decides the number of terms ---------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(strategies.designs(sizes=(1,), most_bins=4))
def test_characteristic_functions_stay_below_their_envelopes(stated):
    (coordinate,) = stated.design().coordinates
    bounds = envelope(coordinate)
    tau = np.geomspace(0.01, 200.0, 60)
    # the constant keeps outputs away from 0, which has no relative accuracy
    form = forms.Ridges(tau[:, None], np.zeros(60), np.eye(60), "cos", np.ones(60))
    shifted = forms.Ridges(tau[:, None], np.full(60, -np.pi / 2), np.eye(60), "cos", np.ones(60))
    design = stated.design()
    parts = [exact_expectation(each).moments(design) for each in (form, shifted)]
    mean = np.hypot(*(part.mean - 1.0 for part in parts))
    assert (mean <= bounds.mean(tau) * (1 + 1e-9) + 1e-12).all()
    if design.variance[0] > 0:
        contrast = np.hypot(*(part.gamma[0] / design.variance[0] for part in parts))
        assert (contrast <= bounds.contrast(tau) * (1 + 1e-9) + 1e-9).all()


# -- the same bits, and refusals --------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_rows_have_the_same_bits_alone_and_together(activation):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(200, 6))
    form = network(rng, 40, 6, activation, 0.5, outputs=(2,))
    family = limes.TabularExplainer(lambda rows: rows[:, 0], x, method="sampled", max_calls=64)._model.family
    cells = family.cells(x)
    together = exact_expectation(form).at(Rows.in_cells(family, cells))
    backwards = exact_expectation(form).at(Rows.in_cells(family, cells[::-1]))
    assert np.array_equal(together.gamma, backwards.gamma[::-1])
    for i in (0, 17, 199):
        alone = exact_expectation(form).moments(family.at(x[i]))
        assert np.array_equal(alone.gamma, together.gamma[i])
        assert np.array_equal(alone.mean, together.mean[i])


@pytest.mark.parametrize("columns", [(binned, {}), (binned, {"law": "empirical"})])
def test_a_kink_of_too_many_combinations_is_refused(columns):
    """One number in bins has too little of a density for a series; its own values are too many."""
    rng = np.random.default_rng(0)
    make, options = columns
    number = make(rng.normal(size=300), np.array([-4.0, 0.0, 4.0]), **options)
    laws = (number, *(categorical(np.array([0.0, 1.0])) for _ in range(25)))
    family = ProductFamily(laws, BinWeights(1.0))
    form = forms.Ridges(rng.normal(size=(1, 26)), [-0.5], [1.0], "relu")
    with pytest.raises(InputError, match=r"too few columns have a density.*too many combinations"):
        limes.limit(family.at(np.zeros(26)), form)
    # where no sum changes its sign there is no kink
    constant = forms.Ridges(np.ones((1, 26)), [50.0], [1.0], "relu")
    assert np.allclose(limes.limit(family.at(np.zeros(26)), constant).coef[1:], -1.0, rtol=1e-12)


def test_kinks_of_values_of_the_background_against_enumeration():
    """law="empirical", two columns of numbers and one of categories: every combination of their values."""
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.normal(size=(40, 2)), rng.integers(3, size=40)])
    form = network(rng, 6, 3, "relu", outputs=(2,))
    explainer = limes.TabularExplainer(
        lambda rows: rows[:, 0], x, law="empirical", categorical=[2], method="sampled", max_calls=64
    )
    family, rows = explainer._model.family, x[:5]
    cells = family.cells(rows)
    moments = exact_expectation(form).at(Rows.in_cells(family, cells))
    background_cells = [law.cells.locate(column) for law, column in zip(family.marginals, x.T, strict=True)]
    states = np.array(list(product(*x.T)))
    f, t = evaluated(form, states), np.exp(-0.5 / family.weights.bandwidth**2)
    for i, row_cells in enumerate(cells):
        same = np.array(
            list(product(*(each == c for each, c in zip(background_cells, row_cells, strict=True))))
        )
        law = np.prod(np.where(same, 1.0, t), axis=1)
        mean = law @ f / law.sum()
        assert oracle.error(moments.mean[i], mean, np.abs(f).max()) < EXACT
        for j in range(3):
            z = same[:, j]
            coef = law[z] @ f[z] / law[z].sum() - law[~z] @ f[~z] / law[~z].sum()
            computed = moments.gamma[i, j] / family.features(cells).variance[i, j]
            assert oracle.error(computed, coef, np.abs(f).max()) < EXACT


def test_units_that_cancel_below_the_bound_are_refused():
    rng = np.random.default_rng(0)
    weights, offsets = rng.normal(size=(1, 3)), rng.normal(size=1)
    form = forms.Ridges(
        np.concatenate([weights, weights]), np.concatenate([offsets, offsets]), [1e9, -1e9], "tanh", 1e-6
    )
    design = ProductFamily(tuple(categorical(np.array([0.0, 1.0])) for _ in range(3)), BinWeights(1.0)).at(
        np.zeros(3)
    )
    with pytest.raises(ModelError, match="its terms cancel"):
        limes.limit(design, form)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0]], [0.0], [1.0], "mish"), "activation must be one of"),
        (([[1.0]], [0.0, 1.0], [1.0], "tanh"), "disagree"),
        (([[np.nan]], [0.0], [1.0], "tanh"), "weights must be finite"),
    ],
)
def test_arguments_that_disagree_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        forms.Ridges(*arguments)
