"""limes.limit: identities of every surrogate, least squares without theory, and refused arguments."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limes
import oracle
import strategies
from effort import examples
from limes.designs import ProductDesign
from limes.exceptions import InputError, NotReadableError
from limes.models import forms
from oracle import EXACT

MODERATE = (0.5, 1.0, 5.0, np.inf)


def forest_and_places(rng, stated, outputs=(), depth=4):
    places = strategies.cuts(rng, stated, 3)
    trees = [strategies.random_tree(rng, places, depth, outputs) for _ in range(2)]
    return strategies.as_forest(trees, stated.size, outputs), trees, places


# -- least squares without theory --------------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(strategies.designs(sizes=(1, 2, 3), bandwidths=MODERATE), strategies.rngs, st.sampled_from([(), (2,)]))
def test_the_normal_equations_on_the_full_grid(stated, rng, outputs):
    """Nothing of the library's theory: weigh every cell of the grid, fit, compare."""
    form, trees, places = forest_and_places(rng, stated, outputs)
    columns = stated.steps(places)
    x, weights = oracle.grid(columns)
    z = oracle.features(columns, stated.cells)
    fixed = z.min(axis=0) == z.max(axis=0)
    variance = [
        oracle.truth([c], lambda v: v[:, 0] * 0, [k]).variance[0]
        for c, k in zip(columns, stated.cells, strict=True)
    ]
    if np.any(np.array(variance)[~fixed] < 1e-3):
        return  # too close to singular for normal equations
    values = strategies.walked(trees)(x)
    intercept, coef = oracle.least_squares(z[:, ~fixed], values, weights)
    surrogate = limes.limit(stated.design(), form)
    scale = max(np.abs(values).max(), 1e-300) / min([1.0, *np.array(variance)[~fixed]])
    assert np.abs(surrogate.coef[~fixed] - coef).max(initial=0) <= oracle.NORMAL_EQUATIONS * scale
    assert (
        np.abs(surrogate.intercept - found_shift(surrogate, fixed) - intercept).max()
        <= oracle.NORMAL_EQUATIONS * scale
    )
    assert not surrogate.coef[fixed].any()


def found_shift(surrogate, fixed):
    """Columns that cannot vary have no coefficient, and so leave the intercept alone."""
    return surrogate.coef[fixed].sum(axis=0) if fixed.any() else 0.0


def test_a_huge_sample_converges_to_the_limit():
    """A weighted draw as LIME makes it, 400,000 rows: each coefficient within 4.5 standard errors."""
    rng = np.random.default_rng(0)
    n, d, bandwidth = 400_000, 3, 1.2
    x = rng.uniform(0, 3, (n, d))
    cell = np.minimum(x.astype(int), 2)
    z = (cell == 1).astype(float)
    weights = np.exp(-0.5 * (d - z.sum(axis=1)) / bandwidth**2)
    y = (x[:, 0] > 1.4) * (x[:, 1] < 2.5) + np.where(x[:, 2] > 0.5, 0.7, 0.0) * (x[:, 0] < 2.2)
    intercept, coef = oracle.least_squares(z, y, weights)
    residual = y - intercept - z @ coef
    design = np.column_stack([np.ones(n), z])
    bread = np.linalg.inv(design.T @ (weights[:, None] * design))
    meat = design.T @ ((weights * residual)[:, None] ** 2 * design)
    errors = np.sqrt(np.diag(bread @ meat @ bread))
    flat = {"edges": [[0, 1, 2, 3]] * d, "means": [[0.5, 1.5, 2.5]] * d, "stds": [[1e4] * 3] * d}
    exact = ProductDesign.from_bins(**flat, instance=[1.5] * d, bandwidth=bandwidth)
    lower, upper = np.full((2, d), -np.inf), np.full((2, d), np.inf)
    lower[0, 0], upper[0, 1], lower[1, 2], upper[1, 0] = 1.4, 2.5, 0.5, 2.2
    surrogate = limes.limit(exact, forms.Boxes(lower, upper, [1.0, 0.7]))
    z_scores = (np.append(surrogate.intercept, surrogate.coef) - np.append(intercept, coef)) / errors
    assert np.abs(z_scores).max() < oracle.Z_LIMIT


# -- identities --------------------------------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(strategies.designs(), strategies.rngs)
def test_additivity(stated, rng):
    one, _, _ = forest_and_places(rng, stated)
    boxes = strategies.random_boxes(rng, strategies.cuts(rng, stated, 3), 5)
    other = forms.Boxes(
        np.concatenate([boxes.lower, strategies.leaf_boxes(one).lower]),
        np.concatenate([boxes.upper, strategies.leaf_boxes(one).upper]),
        np.concatenate([2.0 * boxes.value, -3.0 * strategies.leaf_boxes(one).value]),
        intercept=2.0 * boxes.intercept,
    )
    a, b, both = (limes.limit(stated.design(), f) for f in (boxes, one, other))
    size = float(np.abs(other.value).sum())
    assert oracle.error(both.coef, 2.0 * a.coef - 3.0 * b.coef, size) < EXACT
    assert oracle.error(both.intercept, 2.0 * a.intercept - 3.0 * b.intercept, size) < EXACT


@settings(max_examples=examples(60))
@given(strategies.designs(sizes=(2, 3, 5)), strategies.rngs)
def test_permuting_columns_permutes_coefficients(stated, rng):
    form = strategies.random_boxes(rng, strategies.cuts(rng, stated, 3), 4)
    order = rng.permutation(stated.size)
    moved = forms.Boxes(form.lower[:, order], form.upper[:, order], form.value, intercept=form.intercept)
    surrogate, permuted = (
        limes.limit(stated.design(), form),
        limes.limit(stated.permuted(order).design(), moved),
    )
    size = float(np.abs(form.value).sum())
    assert oracle.error(permuted.coef, surrogate.coef[order], size) < oracle.ROUNDING * 100
    assert oracle.error(permuted.intercept, surrogate.intercept, size) < oracle.ROUNDING * 100


@settings(max_examples=examples(60))
@given(
    strategies.designs(sizes=(2, 3, 5)),
    strategies.rngs,
    st.sampled_from(["boxes", "forest", "linear", "sum"]),
)
def test_a_column_that_is_not_read_gets_exactly_nothing(stated, rng, kind):
    ignored = int(rng.integers(stated.size))
    places = strategies.cuts(rng, stated, 3)
    boxes = strategies.random_boxes(rng, places, 4)
    boxes.lower[:, ignored], boxes.upper[:, ignored], boxes.missing[:, ignored] = -np.inf, np.inf, True
    trees = [[(-1 if f == ignored else f, *rest) for f, *rest in strategies.random_tree(rng, places, 4)]]
    coef = rng.normal(size=stated.size)
    coef[ignored] = 0.0
    form = {
        "boxes": lambda: boxes,
        "forest": lambda: strategies.as_forest(trees, stated.size),
        "linear": lambda: forms.Linear(coef),
        "sum": lambda: forms.Additive([None if j == ignored else np.tanh for j in range(stated.size)]),
    }[kind]()
    assert limes.limit(stated.design(), form).coef[ignored] == 0.0


@settings(max_examples=examples(60))
@given(strategies.designs(bandwidths=(np.inf,), sizes=(1, 2, 3)), strategies.rngs)
def test_an_infinite_bandwidth_is_the_plain_background(stated, rng):
    """No weights: conditional means under the training law, whatever the weights are called."""
    form, trees, places = forest_and_places(rng, stated)
    unweighted = [
        oracle.binned_column(e, m, s, f, breaks=b).collapsed(b)
        for e, m, s, f, b in zip(
            stated.edges, stated.means, stated.stds, stated.frequencies, places, strict=True
        )
    ]
    truth = oracle.truth(unweighted, strategies.walked(trees), stated.cells)
    design = stated.design()
    surrogate = limes.limit(design, form)
    assert oracle.error(surrogate.coef, truth.coef, truth.size) < EXACT
    assert oracle.error(surrogate.intercept, truth.intercept, truth.size) < EXACT
    assert design.log_weight == pytest.approx(0.0, abs=1e-12)


@settings(max_examples=examples(60))
@given(strategies.designs(weights=("bins",)), strategies.rngs)
def test_scaling_and_shifting_a_column_changes_nothing(stated, rng):
    """z does not know units; by 2 and 1/4 the arithmetic is exact but for the shift."""
    form = strategies.random_boxes(rng, strategies.cuts(rng, stated, 3), 4)
    factor, shift = 2.0 ** rng.integers(-3, 4, stated.size), rng.integers(-8, 9, stated.size).astype(float)
    moved = strategies.Stated(
        [e * a + b for e, a, b in zip(stated.edges, factor, shift, strict=True)],
        [m * a + b for m, a, b in zip(stated.means, factor, shift, strict=True)],
        [s * a for s, a in zip(stated.stds, factor, strict=True)],
        stated.frequencies,
        stated.instance * factor + shift,
        stated.bandwidth,
        stated.weights,
    )
    moved_form = forms.Boxes(
        form.lower * factor + shift, form.upper * factor + shift, form.value, intercept=form.intercept
    )
    surrogate, again = limes.limit(stated.design(), form), limes.limit(moved.design(), moved_form)
    # a shift by 8 of a bin 0.1 wide costs two digits
    assert oracle.error(again.coef, surrogate.coef, float(np.abs(form.value).sum())) < EXACT


@settings(max_examples=examples(40))
@given(strategies.designs(), strategies.rngs)
def test_a_constant_is_all_intercept(stated, rng):
    value = rng.normal()
    places = strategies.cuts(rng, stated, 3)
    nodes = [(*node[:5], np.array(value)) for node in strategies.random_tree(rng, places, 4)]
    for form in (
        strategies.as_forest([nodes], stated.size),
        strategies.leaf_boxes(strategies.as_forest([nodes], stated.size)),
    ):
        surrogate = limes.limit(stated.design(), form)
        assert np.abs(surrogate.coef).max() < 1e-8 * abs(value)
        assert surrogate.intercept == pytest.approx(value, rel=1e-8)


@settings(max_examples=examples(40))
@given(strategies.designs(sizes=(1, 2, 3)), strategies.rngs)
def test_several_outputs_are_several_explanations(stated, rng):
    form, _, _ = forest_and_places(rng, stated, (3,))
    whole = limes.limit(stated.design(), form)
    assert whole.coef.shape == (stated.size, 3)
    assert whole.intercept.shape == whole.fidelity.shape == (3,)
    for k in range(3):
        one = limes.limit(stated.design(), form.select(k))
        assert one.coef.shape == (stated.size,)
        assert one.intercept.shape == ()
        assert oracle.error(whole.coef[:, k], one.coef, 1.0) < oracle.ROUNDING * 100
    kept = limes.limit(stated.design(), form.select([1]))
    assert kept.coef.shape == (stated.size, 1)


def test_the_first_and_the_last_bin():
    """Bins (q, q']: an instance on an edge belongs to the bin below, and so does a box that ends there."""
    arguments = {"edges": [[0, 1, 2]], "means": [[0.5, 1.5]], "stds": [[1, 1]], "bandwidth": 1.0}
    form = forms.Boxes([[-np.inf]], [[1.0]], [1.0])
    for instance, expected in ((0.0, 1.0), (1.0, 1.0), (np.nextafter(1, 2), -1.0), (2.0, -1.0)):
        design = ProductDesign.from_bins(**arguments, instance=[instance])
        assert limes.limit(design, form).coef == expected


# -- refusals ----------------------------------------------------------------------------------------------

DESIGN = ProductDesign.from_bins([[0, 1, 2]] * 2, [[0.5, 1.5]] * 2, [[1, 1]] * 2, [0.1, 0.1], 1.0)


def test_a_black_box_has_no_limit():
    with pytest.raises(NotReadableError, match="no exact limit: it is a secret"):
        limes.limit(DESIGN, forms.BlackBox(lambda x: x[:, 0], "it is a secret"))


@pytest.mark.parametrize("form", [forms.Linear([1.0]), forms.Boxes([[0.0] * 3], [[1.0] * 3], [1.0])])
def test_sizes_must_agree(form):
    with pytest.raises(InputError) as caught:
        limes.limit(DESIGN, form)
    assert "2 columns" in str(caught.value)
    assert str(form.size) in str(caught.value)


def test_sizes_of_forests_must_agree():
    with pytest.raises(InputError, match="2 columns"):
        limes.limit(DESIGN, strategies.as_forest([[(-1, 0.0, -1, -1, False, np.array(1.0))]], 3))


@pytest.mark.parametrize("form", [lambda x: x[:, 0], None, "linear", np.ones(2)])
def test_other_objects_are_refused_as_forms(form):
    with pytest.raises(InputError, match="expected a form"):
        limes.limit(DESIGN, form)


def test_results_are_frozen_and_float64():
    surrogate = limes.limit(DESIGN, forms.Linear(np.array([1, 2], dtype=np.float32), 1))
    assert surrogate.coef.dtype == surrogate.intercept.dtype == np.float64
    with pytest.raises(dataclasses.FrozenInstanceError):
        surrogate.coef = np.zeros(2)
