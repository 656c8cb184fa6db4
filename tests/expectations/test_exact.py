"""Every form under every product design, against plain sums over a grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limes
import oracle
import strategies
from effort import examples, repeats
from internals import ExactExpectation, binned, categorical, named_weights
from limes.designs import ProductDesign, ProductFamily
from limes.exceptions import ModelError
from limes.models import forms
from oracle import EXACT

OUTPUTS = st.sampled_from([(), (1,), (3,)])


def assert_exact(design, form, truth):
    explanation = limes.limit(design, form)
    assert oracle.error(explanation.coef, truth.coef, truth.size) < EXACT
    assert oracle.error(explanation.intercept, truth.intercept, truth.size) < EXACT
    assert not explanation.standard_errors.any()
    assert explanation.standard_errors.shape == explanation.coef.shape


# -- piecewise constant forms: one grid point between two breaks ------------------------------------------


@settings(max_examples=examples(150))
@given(strategies.designs(sizes=(1, 2, 3, 4)), strategies.rngs, st.integers(1, 6), OUTPUTS)
def test_boxes(stated, rng, count, outputs):
    places = strategies.cuts(rng, stated, 3)
    form = strategies.random_boxes(rng, places, count, outputs)
    truth = oracle.truth(stated.steps(places), strategies.in_boxes(form), stated.cells)
    assert_exact(stated.design(), form, truth)


@settings(max_examples=examples(100))
@given(strategies.designs(sizes=(1, 2, 3)), strategies.rngs, st.integers(0, 5), OUTPUTS)
def test_forests(stated, rng, depth, outputs):
    places = strategies.cuts(rng, stated, 3)
    trees = [strategies.random_tree(rng, places, depth, outputs) for _ in range(2)]
    form = strategies.as_forest(trees, stated.size, outputs)
    truth = oracle.truth(stated.steps(places), strategies.walked(trees), stated.cells)
    assert_exact(stated.design(), form, truth)
    boxes = limes.limit(stated.design(), strategies.leaf_boxes(form))
    assert oracle.error(boxes.coef, truth.coef, truth.size) < EXACT


@settings(max_examples=examples(60))
@given(strategies.designs(sizes=(1, 2, 3, 4)), strategies.rngs)
def test_one_box_to_the_last_digit(stated, rng):
    """A box is positive: nothing cancels but the contrast, so each coefficient has its own nine digits."""
    places = strategies.cuts(rng, stated, 3)
    form = strategies.random_boxes(rng, places, 1)
    form = forms.Boxes(form.lower, form.upper, np.ones(1))
    columns = stated.steps(places)
    truth = oracle.truth(columns, strategies.in_boxes(form), stated.cells)
    surrogate = limes.limit(stated.design(), form)
    parts = [
        oracle.truth([c], strategies.in_boxes(forms.Boxes([[a]], [[b]], [1.0])), [z])
        for c, a, b, z in zip(columns, form.lower[0], form.upper[0], stated.cells, strict=True)
    ]
    # a column's own contrast may be a small difference of two probabilities
    contrast = np.array([max(abs(p.coef[0]), 1e-3) for p in parts])
    means = np.array([p.mean for p in parts])
    size = contrast * [np.prod(np.delete(means, j)) for j in range(means.size)]
    # the oracle drops a column's tail below exp(-60)
    dropped = [np.prod(np.delete(means + 1e-25, j)) - np.prod(np.delete(means, j)) for j in range(means.size)]
    assert (np.abs(surrogate.coef - truth.coef) <= EXACT * size + dropped).all()


@pytest.mark.parametrize("bandwidth", [0.1, 0.01, 0.02])
@pytest.mark.parametrize("cell", [0, 1, 3])
@pytest.mark.parametrize("bins", [2, 4])
def test_a_narrow_bandwidth_where_printed_formulas_are_zero_over_zero(bandwidth, cell, bins):
    """p = 4, ν = 0.1: 1 - α = 5e-22, and pc/(pc - 1) is 1/0 in double precision."""
    cell = min(cell, bins - 1)
    edges, means, stds = np.arange(bins + 1.0), np.arange(bins) + 0.4, np.full(bins, 0.3)
    column = oracle.binned_column(edges, means, stds, breaks=[0.5, 1.5])
    instance = np.full(3, cell + 0.5)
    design = ProductDesign.from_bins([edges] * 3, [means] * 3, [stds] * 3, instance, bandwidth)
    f = forms.Boxes(
        [[0.5, -np.inf, 0.0], [-np.inf, 0.5, 1.5]], [[1.5, 1.5, 4.0], [9.0, 9.0, 9.0]], [2.0, -1.0]
    )
    columns = [oracle.bin_weighted(column, cell, bandwidth).collapsed([0.5, 1.5])] * 3
    truth = oracle.truth(columns, strategies.in_boxes(f), [cell] * 3)
    assert truth.variance.max() < 1e-10
    assert_exact(design, f, truth)
    linear = limes.limit(design, forms.Linear([1.0, 0.0, -3.0])).coef
    others = np.mean([oracle.cell_mean(means[b], stds[b], b, b + 1) for b in range(bins) if b != cell])
    row_mean = oracle.cell_mean(means[cell], stds[cell], cell, cell + 1)
    assert oracle.error(linear, [row_mean - others, 0.0, -3 * (row_mean - others)]) < EXACT


def test_a_constant_stays_constant_far_from_the_bins():
    """f = 1 in two boxes: β = 0 to the last digits, also where weights are exp(-12,500,000)."""
    edges, means, stds = [[0, 100, 200, 300]], [[50, 150, 250]], [[100, 100, 100]]
    design = ProductDesign.from_bins(edges, means, stds, [150.0], 0.01, weights="euclidean")
    form = forms.Boxes([[-np.inf], [170.0]], [[170.0], [np.inf]], [1.0, 1.0])
    assert abs(limes.limit(design, form).coef[0]) < oracle.ROUNDING


# -- smooth forms: the full grid --------------------------------------------------------------------------


@settings(max_examples=repeats(120, 60))
@given(
    strategies.designs(sizes=(1, 2), most_bins=4), strategies.rngs, st.sampled_from([0.05, 0.5, 3.0]), OUTPUTS
)
def test_gaussian_kernels(stated, rng, scale, outputs):
    centers = np.stack([rng.choice(places, 3) for places in strategies.cuts(rng, stated, 4)], axis=1)
    form = forms.GaussianKernels(centers, rng.normal(size=(3, *outputs)), scale, rng.normal(size=outputs))
    truth = oracle.truth(stated.columns(resolution=4 * scale), strategies.kernels(form), stated.cells)
    assert_exact(stated.design(), form, truth)


@settings(max_examples=examples(8))
@given(strategies.designs(sizes=(3,), most_bins=2, open_ends=False), strategies.rngs)
def test_gaussian_kernels_in_three_columns(stated, rng):
    centers = np.stack([rng.choice(places, 2) for places in strategies.cuts(rng, stated, 4)], axis=1)
    form = forms.GaussianKernels(centers, rng.normal(size=2), 1.5)
    truth = oracle.truth(stated.columns(resolution=6.0), strategies.kernels(form), stated.cells)
    assert_exact(stated.design(), form, truth)


@settings(max_examples=examples(100))
@given(strategies.designs(sizes=(1, 3, 6)), strategies.rngs, OUTPUTS)
def test_linear(stated, rng, outputs):
    """Additive: one column at a time."""
    form = forms.Linear(rng.normal(size=(stated.size, *outputs)), rng.normal(size=outputs))
    parts = [
        oracle.truth([c], lambda x: x[:, 0], [z]) for c, z in zip(stated.columns(), stated.cells, strict=True)
    ]
    contrast, mean = (np.array([getattr(p, name) for p in parts]).reshape(-1) for name in ("coef", "mean"))
    inclusion = np.array([p.inclusion[0] for p in parts])
    coef = contrast.reshape(-1, *(1,) * len(outputs)) * form.coef
    intercept = form.intercept + mean @ form.coef - inclusion @ coef
    surrogate = limes.limit(stated.design(), form)
    size = np.abs(form.coef).max() * max(p.size for p in parts)
    assert oracle.error(surrogate.coef, coef, size) < EXACT
    assert oracle.error(surrogate.intercept, intercept, size) < EXACT


SHAPES = [
    (np.sin, ()),
    (lambda x: np.exp(0.3 * x), ()),
    (lambda x: np.abs(x - 0.25), (0.25,)),
    (lambda x: np.where(x > 0.1, x**2, -1.0), (0.1,)),
    (lambda x: np.maximum(x - 1.0, 0.0) ** 0.5, (1.0,)),
]


@settings(max_examples=examples(25))
@given(strategies.designs(sizes=(1, 2), most_bins=3), strategies.rngs, st.sampled_from(["sum", "product"]))
def test_callables(stated, rng, kind):
    chosen = [SHAPES[i] for i in rng.choice(4, stated.size)]
    functions, breaks = [f for f, _ in chosen], [b for _, b in chosen]
    form = (forms.Additive if kind == "sum" else forms.Multiplicative)(functions, breaks)

    def f(x):
        values = [g(x[:, j]) for j, g in enumerate(functions)]
        return np.sum(values, axis=0) if kind == "sum" else np.prod(values, axis=0)

    truth = oracle.truth(stated.columns(breaks, resolution=2.0), f, stated.cells)
    assert_exact(stated.design(), form, truth)


def test_a_callable_with_an_integral_method():
    class Half:
        def __call__(self, x):
            return np.full((1, x.size), 0.5)

        def integrate(self, density):
            return 0.5 * density.interval(np.array([-np.inf]), np.array([np.inf]))

    design = ProductDesign.from_bins([[0, 1, 2]] * 2, [[0.5, 1.5]] * 2, [[1, 1]] * 2, [0.1, 1.1], 1.0)
    form = forms.Multiplicative([Half(), lambda x: x])
    half = limes.limit(design, forms.Linear([0.0, 0.5]))
    surrogate = limes.limit(design, form)
    assert oracle.error(surrogate.coef, half.coef) < EXACT
    assert np.allclose(form.predict([[3.0, 4.0]]), 2.0)


def test_many_columns_have_product_structure():
    """d = 40: one box and one kernel, each coefficient from one-column oracles."""
    rng = np.random.default_rng(5)
    d = 40
    stated = [strategies.stated_bins(rng, 1 + j % 4) for j in range(d)]
    edges, means, stds, frequencies = zip(*stated, strict=True)
    instance = np.array([e[-1] - 1e-3 if j % 2 else e[0] for j, e in enumerate(edges)])
    cells = [oracle.bin_of(e, x) for e, x in zip(edges, instance, strict=True)]
    design = ProductDesign.from_bins(edges, means, stds, instance, 2.0, frequencies=frequencies)
    columns = [
        oracle.bin_weighted(oracle.binned_column(*s, breaks=[s[0].mean()], resolution=2.0), z, 2.0)
        for s, z in zip(stated, cells, strict=True)
    ]
    cut = np.array([e.mean() for e in edges])
    above = np.array([c.law()[c.x > x].sum() for c, x in zip(columns, cut, strict=True)])
    lower = np.where(above > 0.01, cut, -np.inf)[None, :]
    assert np.isfinite(lower).sum() > 10
    center = np.array([[e.mean() for e in edges]])
    for form, one in (
        (forms.Boxes(lower, np.full((1, d), np.inf), [1.0]), lambda x, j: (x > lower[0, j]).astype(float)),
        (forms.GaussianKernels(center, [1.0], 5.0), lambda x, j: np.exp(-((x - center[0, j]) ** 2) / 50)),
    ):
        parts = [
            oracle.truth([c], lambda x, j=j: one(x[:, 0], j), [z])  # noqa: B023
            for j, (c, z) in enumerate(zip(columns, cells, strict=True))
        ]
        means_ = np.array([p.mean for p in parts])
        coef = np.array([p.coef[0] * np.prod(np.delete(means_, j)) for j, p in enumerate(parts)])
        assert oracle.error(limes.limit(design, form).coef, coef) < EXACT


# -- laws learnt from a background ------------------------------------------------------------------------


def learnt_column(x, edges, law, breaks, log_weight=None):
    """The oracle's own idea of a numeric column: statistics of each bin, missing values apart."""
    present = x[~np.isnan(x)]
    owner = np.array([oracle.bin_of(edges, v) for v in present])
    columns = []
    for b in range(edges.size - 1):
        inside = present[owner == b]
        if law == "empirical" or inside.min() == inside.max():
            part = oracle.atoms_column(inside, np.ones(inside.size), np.full(inside.size, b))
            if log_weight:
                part = part.weighted(log_weight)
        else:
            low = inside.min() if edges[b] == -np.inf and law == "uniform" else edges[b]
            high = inside.max() if edges[b + 1] == np.inf and law == "uniform" else edges[b + 1]
            std = np.inf if law == "uniform" else inside.std()
            part = oracle.binned_column(
                [low, high], [inside.mean()], [std], [1.0], log_weight=log_weight, breaks=breaks
            )
            part = oracle.Column(
                part.x, part.probability * inside.size, np.full(part.x.size, b), part.log_weight
            )
        columns.append(part)
    return columns, x.size - present.size


def joined(parts):
    return oracle.Column(
        np.concatenate([p.x for p in parts]),
        np.ones(sum(p.x.size for p in parts)),
        np.concatenate([p.cell for p in parts]),
        np.concatenate([p.log_mass for p in parts]),
    )


@settings(max_examples=examples(80))
@given(
    strategies.backgrounds(),
    strategies.rngs,
    st.sampled_from(["truncnorm", "uniform", "empirical"]),
    st.sampled_from(["bins", "euclidean"]),
    st.sampled_from([0.1, 0.5, 1.0, 5.0, np.inf]),
)
def test_forests_over_learnt_laws_categories_and_missing_values(background, rng, law, weights, bandwidth):
    matrix, kinds = background
    row = matrix[rng.integers(len(matrix))]
    scales = rng.uniform(0.5, 2.0, len(kinds))
    marginals, columns, cells, places = [], [], [], []
    for x, kind, value, scale in zip(matrix.T, kinds, row, scales, strict=True):
        present = x[~np.isnan(x)]
        middle = rng.choice(present) + 0.01 * rng.normal()
        places.append(np.unique(np.append(rng.choice(present, 2), middle)))
        if kind == "category":
            values, counts = np.unique(x, return_counts=True)
            cell = int(np.flatnonzero((values == value) | (np.isnan(values) & np.isnan(value)))[0])
            marginals.append(categorical(x))
            columns.append(oracle.bin_weighted(oracle.atoms_column(values, counts), cell, bandwidth))
            cells.append(cell)
            continue
        edges = np.unique(np.percentile(present, [0, 40, 70, 100]))
        edges = np.append(edges, edges) if edges.size == 1 else edges
        counts = [sum(oracle.bin_of(edges, v) == b for v in present) for b in range(edges.size - 1)]
        edges = np.append(edges[:-1][np.array(counts) > 0], edges[-1])
        if kind == "number" and rng.random() < 0.3:
            edges[0], edges[-1] = -np.inf, np.inf
        marginals.append(binned(x, edges, law=law))
        smooth = weights == "euclidean" and not np.isnan(value)
        log_weight = oracle.Smooth(value, bandwidth * scale) if smooth else None
        parts, missing = learnt_column(x, edges, law, places[-1], log_weight)
        cell = edges.size - 1 if np.isnan(value) else oracle.bin_of(edges, value)
        if missing:
            atom = oracle.atoms_column([np.nan], [missing], [edges.size - 1])
            # against a number, a missing value is one unit away
            parts.append(atom.weighted(np.full(1, -0.5 / bandwidth**2)) if smooth else atom)
        column = joined(parts)
        columns.append(column if smooth else oracle.bin_weighted(column, cell, bandwidth))
        cells.append(cell)
    family = ProductFamily(tuple(marginals), named_weights(weights, bandwidth), scales=scales)
    trees = [strategies.random_tree(rng, places, 4) for _ in range(2)]
    columns = [c.collapsed(p) for c, p in zip(columns, places, strict=True)]
    truth = oracle.truth(columns, strategies.walked(trees), cells)
    assert_exact(family.at(row), strategies.as_forest(trees, len(kinds)), truth)


# -- slopes -----------------------------------------------------------------------------------------------


@st.composite
def slope_designs(draw, sizes=(1, 2)):
    """Normal columns without bins, smooth weights, an instance anywhere: a design, and its oracle."""
    from internals import marginals_from_bins

    rng, d = draw(strategies.rngs), draw(st.sampled_from(sizes))
    bandwidth = draw(st.sampled_from([0.01, 0.1, 0.5, 1.0, 5.0, np.inf]))
    ends = draw(st.sampled_from(["open", "closed", "bins"]))
    mean, std, scales = rng.normal(size=d), rng.uniform(0.1, 3.0, d), rng.uniform(0.5, 2.0, d)
    row = mean + 2 * std * rng.normal(size=d)
    edges = {
        "open": [np.array([-np.inf, np.inf])] * d,
        "closed": [m + s * np.array([-1.5, 1.0]) for m, s in zip(mean, std, strict=True)],
        "bins": [m + s * np.array([-2.0, 0.0, 0.5, 3.0]) for m, s in zip(mean, std, strict=True)],
    }[ends]
    means = [np.full(e.size - 1, m) for e, m in zip(edges, mean, strict=True)]
    stds = [np.full(e.size - 1, s) for e, s in zip(edges, std, strict=True)]
    marginals = marginals_from_bins(edges, means, stds)
    slopes = np.ones(d, dtype=bool)
    if d > 1 and draw(st.booleans()):
        slopes[0] = False
    family = ProductFamily(marginals, named_weights("euclidean", bandwidth), slopes=slopes, scales=scales)
    smooth = [oracle.Smooth(x, bandwidth * s) for x, s in zip(row, scales, strict=True)]
    cells = [oracle.bin_of(e, x) for e, x in zip(edges, row, strict=True)]

    def columns(breaks=None, resolution=np.inf):
        breaks = [()] * d if breaks is None else breaks
        return [
            oracle.binned_column(e, m, s, log_weight=w, breaks=b, resolution=resolution)
            for e, m, s, w, b in zip(edges, means, stds, smooth, breaks, strict=True)
        ]

    places = [np.unique(rng.normal(size=3) * s + x) for x, s in zip(row, std, strict=True)]
    return family.at(row), columns, cells, list(slopes), places, rng


def assert_slopes_exact(design, form, truth):
    """A slope has the size of f over that of x, and x itself has no more than sixteen digits."""
    surrogate = limes.limit(design, form)
    spread = np.sqrt(truth.variance[truth.variance > 0]).min(initial=1.0)
    place = np.abs(truth.inclusion).max()
    size = truth.size / spread * (1 + place / spread)
    assert oracle.error(surrogate.coef, truth.coef, size) < EXACT
    assert oracle.error(surrogate.intercept, truth.intercept, size * (1 + place)) < EXACT


@pytest.mark.parametrize(("start", "outside"), [(0.5, 1.0), (2.0, 5.0)])
def test_slopes_keep_their_digits_where_x_hardly_varies(start, outside):
    """f = 1 + x - start: β = 1, also where the instance lies outside of what the law knows."""
    from internals import marginals_from_bins

    marginals = marginals_from_bins([[start, start + 1.0]], [[start + 0.5]], [[1.0]])
    family = ProductFamily(marginals, named_weights("euclidean", 0.01), slopes=np.ones(1, dtype=bool))
    design = family.at(np.array([start - outside]))
    surrogate = limes.limit(design, forms.Additive([lambda x: 1.0 + (x - start)]))
    assert surrogate.coef[0] == pytest.approx(1.0, rel=EXACT)


@settings(max_examples=examples(80))
@given(slope_designs(), OUTPUTS)
def test_slopes_of_forests(drawn, outputs):
    design, columns, cells, slopes, places, rng = drawn
    trees = [strategies.random_tree(rng, places, 3, outputs) for _ in range(2)]
    form = strategies.as_forest(trees, design.size, outputs)
    truth = oracle.truth(columns(places), strategies.walked_fast(trees), cells, slopes=slopes)
    assert_slopes_exact(design, form, truth)


@settings(max_examples=examples(40))
@given(slope_designs(), st.sampled_from([0.1, 1.0, 10.0]), OUTPUTS)
def test_slopes_of_gaussian_kernels(drawn, scale, outputs):
    design, columns, cells, slopes, places, rng = drawn
    centers = np.stack([rng.choice(p, 3) for p in places], axis=1)
    form = forms.GaussianKernels(centers, rng.normal(size=(3, *outputs)), scale, rng.normal(size=outputs))
    truth = oracle.truth(columns(resolution=4 * scale), strategies.kernels(form), cells, slopes=slopes)
    assert_slopes_exact(design, form, truth)


@settings(max_examples=examples(15))
@given(slope_designs(sizes=(2,)))
def test_slopes_of_callables(drawn):
    design, columns, cells, slopes, _, _ = drawn
    form = forms.Additive([np.sin, lambda x: np.abs(x - 0.2)], [(), (0.2,)], intercept=1.5)
    truth = oracle.truth(
        columns([(), (0.2,)], resolution=2.0),
        lambda x: 1.5 + np.sin(x[:, 0]) + np.abs(x[:, 1] - 0.2),
        cells,
        slopes=slopes,
    )
    assert_slopes_exact(design, form, truth)


@settings(max_examples=examples(80))
@given(slope_designs(), OUTPUTS)
def test_slopes_of_a_linear_model_are_its_coefficients(drawn, outputs):
    design, _, _, slopes, _, rng = drawn
    coef = rng.normal(size=(design.size, *outputs))
    surrogate = limes.limit(design, forms.Linear(coef, rng.normal(size=outputs)))
    assert oracle.relative_errors(surrogate.coef[slopes], coef[slopes]).max(initial=0) < EXACT


# -- what the machinery around the formulas must hold -----------------------------------------------------


def test_tables_are_kept_for_one_law_only():
    """One expectation, many rows and two backgrounds: no table of one law is used for another."""
    rng = np.random.default_rng(0)
    form = forms.Boxes(rng.normal(size=(5, 2)) - 1, rng.normal(size=(5, 2)) + 1, rng.normal(size=5))
    expectation = ExactExpectation(form)
    edges = np.array([-2.0, 0.0, 2.0])
    families = [
        ProductFamily(
            tuple(binned(rng.normal(size=30).clip(-2, 2), edges) for _ in range(2)), named_weights(w, 0.7)
        )
        for w in ("bins", "euclidean", "bins")
    ]
    for _ in range(3):
        for family in families:
            row = rng.uniform(-2, 2, 2)
            kept, fresh = expectation.moments(family.at(row)), ExactExpectation(form).moments(family.at(row))
            assert np.array_equal(kept.gamma, fresh.gamma)
            assert np.array_equal(kept.mean, fresh.mean)


def test_many_terms_are_computed_in_blocks(monkeypatch):
    from internals import exact as module

    rng = np.random.default_rng(1)
    form = forms.Boxes(rng.normal(size=(50, 3)) - 1, rng.normal(size=(50, 3)) + 1, rng.normal(size=(50, 2)))
    design = ProductDesign.from_bins([[-2, 0, 2]] * 3, [[-1, 1]] * 3, [[1, 1]] * 3, [0.5] * 3, 1.0)
    whole = limes.limit(design, form)
    monkeypatch.setattr(module, "_BLOCK", 7 * 3)
    parts = limes.limit(design, form)
    assert oracle.error(parts.coef, whole.coef) < oracle.ROUNDING
    assert oracle.error(parts.intercept, whole.intercept) < oracle.ROUNDING


def test_no_boxes_at_all():
    design = ProductDesign.from_bins([[-2, 0, 2]] * 2, [[-1, 1]] * 2, [[1, 1]] * 2, [0.5] * 2, 1.0)
    form = forms.Boxes(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0), intercept=4.0)
    surrogate = limes.limit(design, form)
    assert surrogate.coef.tolist() == [0.0, 0.0]
    assert surrogate.intercept == 4.0


def test_a_linear_model_at_a_missing_value_is_refused():
    marginal = binned(np.array([0.0, 1.0, 2.0, np.nan]), np.array([0.0, 1.0, 2.0]))
    family = ProductFamily((marginal,), named_weights("bins", 1.0))
    with pytest.raises(ModelError, match=r"no finite value everywhere in column 0.*impute"):
        limes.limit(family.at(np.array([0.5])), forms.Linear([1.0]))


def test_a_column_that_is_zero_on_a_bin_costs_no_more_than_others():
    """Adaptive quadrature of 0 is 0 at once."""
    calls = []

    def relu(x):
        calls.append(x.size)
        return np.maximum(x - 1.0, 0.0)

    design = ProductDesign.from_bins([[0, 1, 2]], [[0.5, 1.5]], [[1, 1]], [0.5], 1.0)
    surrogate = limes.limit(design, forms.Additive([relu], [[1.0]]))
    assert surrogate.coef[0] < 0
    assert sum(calls) < 2_000


def test_a_jump_without_breaks_is_located_or_refused():
    design = ProductDesign.from_bins([[0, 1, 2]], [[0.5, 1.5]], [[1, 1]], [0.5], 1.0)
    jump = 1 / np.pi
    truth = limes.limit(design, forms.Boxes([[-np.inf]], [[jump]], [1.0])).coef
    try:
        result = limes.limit(design, forms.Additive([lambda x: (x <= jump).astype(float)])).coef
    except limes.exceptions.InputError as error:
        assert "breaks=" in str(error)  # noqa: PT017
    else:
        assert oracle.error(result, truth) < EXACT


def test_a_function_that_is_infinite_somewhere_is_refused():
    design = ProductDesign.from_bins([[0, 1, 2]], [[0.5, 1.5]], [[1, 1]], [0.5], 1.0)
    with pytest.raises(limes.exceptions.InputError, match="not finite"), np.errstate(all="ignore"):
        limes.limit(design, forms.Additive([lambda x: np.where(x < 0.5, np.nan, 1.0)]))
