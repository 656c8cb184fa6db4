"""Links of sums: pointwise sums of exponentials, and their expectations against grids and enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erfc

import limes
import oracle
import slopes
import strategies
from effort import examples, repeats
from internals import (
    LINKS,
    NAMED_LINKS,
    SQUARES,
    BinWeights,
    ExponentialSum,
    Link,
    LinkedExpectation,
    ProductFamily,
    Rows,
    categorical,
)
from limes.designs import ProductDesign
from limes.exceptions import InputError, ModelError
from limes.models import forms
from oracle import EXACT

LONG = np.longdouble
RANGES = [(-5, 5), (-30, 2), (1, 40), (-90, 90), (-600, 500), (-0.1, 0.1), (0, 0)]


def logistic(s):
    return 1 / (1 + np.exp(-np.asarray(s, dtype=LONG)))


def probit(s):
    # no extended precision in scipy: for grids, whose errors are relative to the largest value
    return 0.5 * erfc(-np.asarray(s, dtype=float) / np.sqrt(2.0)).astype(LONG)


def cloglog(s):
    return -np.expm1(-np.exp(np.minimum(np.asarray(s, dtype=LONG), 700)))


CURVES = {"logistic": logistic, "probit": probit, "cloglog": cloglog, "exp": lambda s: np.exp(LONG(s))}
SQUARED = {
    f"{name} squared": lambda s, f=CURVES[name]: f(s) ** 2 for name in ("logistic", "probit", "cloglog")
}


# -- one number at a time ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["logistic", "probit", "cloglog", *SQUARED])
@pytest.mark.parametrize("ends", RANGES)
def test_a_link_is_its_sum_of_exponentials_within_the_stated_error(name, ends):
    link, curve = LINKS.get(name, SQUARES.get(name)), {**CURVES, **SQUARED}[name]
    s = np.linspace(*ends, repeats(301, 61)).astype(LONG)
    for tilt in link.tilts:
        rule = link.sum(*map(float, ends), tilt)
        # all in units of e^{tilt s}: in extended precision nothing overflows up to e^11000
        value = (curve(s) - LONG(rule.base) - LONG(rule.rest)) * np.exp(-LONG(tilt) * s)
        for z, weight, log_weight in zip(rule.nodes, rule.weights, rule.log_weights, strict=True):
            wave = np.exp((LONG(z.real) - LONG(tilt)) * s + LONG(log_weight))
            phase = LONG(z.imag) * s
            value -= wave * (LONG(weight.real) * np.cos(phase) - LONG(weight.imag) * np.sin(phase))
        # f itself, and phases of |z s|, are rounded, and below 1e-307 there is no float64
        rounding = np.abs(curve(s)) * np.exp(-LONG(tilt) * s) * 4e-16 + LONG(1e-307) * np.exp(-LONG(tilt) * s)
        allowed = rule.error * link.size(tilt) + 3e-16 * np.abs(s) * np.abs(rule.weights).sum()
        seen = np.abs(s) < 35 if "probit" in name else np.ones(s.size, dtype=bool)
        assert (np.abs(value) - rounding <= allowed)[seen].all(), (tilt, float(np.abs(value).max()))


def test_a_margin_that_ranges_too_far_is_refused():
    with pytest.raises(InputError, match="too far"):
        LINKS["logistic"].sum(-1e5, 1e5, 0.0)


# -- against grids ----------------------------------------------------------------------------------------


def assert_exact(design, form, truth):
    surrogate = limes.limit(design, form)
    assert oracle.error(surrogate.coef, truth.coef, truth.size) < EXACT
    assert oracle.error(surrogate.intercept, truth.intercept, truth.size) < EXACT


@settings(max_examples=examples(120))
@given(
    strategies.designs(sizes=(1, 2), most_bins=3),
    strategies.rngs,
    st.sampled_from(sorted(CURVES)),
    st.sampled_from([0.0, 0.3, 3.0]),
    st.sampled_from([0.0, -8.0, 8.0]),
)
def test_links_of_linear_margins(stated, rng, link, size, shift):
    coef = size * rng.normal(size=stated.size)
    shift = min(shift, 2.0) if link == "exp" else shift
    if link == "exp":
        coef = np.clip(coef, -2, 2)
    form = forms.Linked(forms.Linear(coef, shift), link)

    def f(x):
        return CURVES[link](LONG(shift) + x.astype(LONG) @ coef.astype(LONG))

    truth = oracle.truth(stated.columns(resolution=2.0 / max(1.0, size)), f, stated.cells)
    assert_exact(stated.design(), form, truth)


@settings(max_examples=examples(20))
@given(strategies.designs(sizes=(1, 2), most_bins=3), strategies.rngs)
def test_a_link_whose_nodes_are_not_equidistant(stated, rng):
    """cos s - 2 cos 2.7s + cos 3.1s: three nodes on one contour, two different steps apart."""
    heights, weights = np.array([1.0, 2.7, 3.1]), np.array([1.0, -2.0, 1.0])
    nodes = (1j * heights).astype(complex)
    rule = ExponentialSum(nodes, weights.astype(complex), np.zeros(3), 3, 0.0, 0.0, 0.0, 0.0)

    class Uneven(Link):
        def sum(self, lower, upper, tilt, decay=None):
            return rule

    coef = rng.normal(size=stated.size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            NAMED_LINKS, "uneven", Uneven(lambda s: np.cos(np.multiply.outer(s, heights)) @ weights)
        )
        form = forms.Linked(forms.Linear(coef, 0.3), "uneven")
        columns = stated.columns(resolution=0.5)
        truth = oracle.truth(columns, lambda x: form.curve.function(0.3 + x @ coef), stated.cells)
        assert_exact(stated.design(), form, truth)


@settings(max_examples=examples(10))
@given(strategies.designs(sizes=repeats((3,), (2,)), most_bins=2, open_ends=False), strategies.rngs)
def test_several_margins_and_outputs(stated, rng):
    margin = forms.Linear(rng.normal(size=(stated.size, 2)), rng.normal(size=2))
    coef, intercept = rng.normal(size=(2, 3)), rng.normal(size=3)
    form = forms.Linked(margin, "logistic", coef, intercept)

    def f(x):
        return intercept + logistic(margin.intercept + x @ margin.coef) @ coef

    truth = oracle.truth(stated.columns(resolution=2.0), f, stated.cells)
    assert_exact(stated.design(), form, truth)
    assert_exact(
        stated.design(),
        form.select(1),
        oracle.truth(stated.columns(resolution=2.0), lambda x: f(x)[:, 1], stated.cells),
    )


@settings(max_examples=examples(60))
@given(strategies.designs(sizes=(1, 2, 3)), strategies.rngs, st.sampled_from(sorted(CURVES)))
def test_links_of_stumps(stated, rng, link):
    places = strategies.cuts(rng, stated, 3)
    trees = []
    for j in rng.integers(stated.size, size=6):
        nodes = strategies.random_tree(rng, [places[j]], 2)
        trees.append([(j if feature == 0 else -1, *rest) for feature, *rest in nodes])
    margin = strategies.as_forest(trees, stated.size)
    form = forms.Linked(margin, link)
    walk = strategies.walked(trees)
    truth = oracle.truth(stated.steps(places), lambda x: CURVES[link](walk(x)), stated.cells)
    assert_exact(stated.design(), form, truth)


@settings(max_examples=examples(20))
@given(strategies.designs(sizes=(1, 2), most_bins=3, open_ends=False), strategies.rngs)
def test_links_of_curves(stated, rng):
    shapes = [
        (np.sin, ()),
        (lambda x: np.abs(x - 0.25), (0.25,)),
        (lambda x: np.where(x > 0.1, x**2, -1.0), (0.1,)),
    ]
    chosen = [shapes[i] for i in rng.choice(3, stated.size)]
    form = forms.Linked(forms.Additive([f for f, _ in chosen], [b for _, b in chosen], -0.5), "logistic")

    def f(x):
        return logistic(np.sum([g(x[:, j]) for j, (g, _) in enumerate(chosen)], axis=0) - 0.5)

    columns = stated.columns([b for _, b in chosen], resolution=1.0)
    assert_exact(stated.design(), form, oracle.truth(columns, f, stated.cells))


@settings(max_examples=examples(25))
@given(
    strategies.rngs,
    st.sampled_from([1, 2]),
    st.sampled_from([0.1, 0.8, np.inf]),
    st.sampled_from(sorted(CURVES)),
)
def test_slopes(rng, d, bandwidth, link):
    design, columns = slopes.normal_columns(rng, d, bandwidth)
    coef = rng.normal(size=d) * 0.5
    form = forms.Linked(forms.Linear(coef, 0.3), link)
    f = lambda x: CURVES[link](LONG(0.3) + x.astype(LONG) @ coef)  # noqa: E731
    slopes.assert_slopes(design, form, f, columns(resolution=1.0))


# -- against enumeration ----------------------------------------------------------------------------------


def discrete(rng, levels, bandwidth):
    """Columns of categories with random frequencies: a design, and (values, law) of each column under w."""
    d = len(levels)
    matrix = np.stack(
        [np.concatenate([np.arange(k), rng.integers(k, size=60 - k)]) for k in levels], axis=1
    ).astype(float)
    family = ProductFamily(tuple(categorical(column) for column in matrix.T), BinWeights(bandwidth))
    row = matrix[rng.integers(60)]
    laws = []
    for j in range(d):
        mass = np.bincount(matrix[:, j].astype(int), minlength=levels[j]).astype(LONG)
        laws.append(
            mass
            * np.where(np.arange(levels[j]) == row[j], LONG(1), np.exp(LONG(-0.5) / LONG(bandwidth) ** 2))
        )
    return family.at(row), row.astype(int), [law / law.sum() for law in laws]


def enumerated(tables, constant, laws, row, curve):
    """E f and β by the sum over all states, in extended precision; tables are f_j at the levels."""
    states = np.array(list(product(*(range(law.size) for law in laws))))
    margin = LONG(constant) + sum(LONG(t)[states[:, j]] for j, t in enumerate(tables))
    f = curve(margin)
    log = np.prod([law[states[:, j]] for j, law in enumerate(laws)], axis=0)
    coef = []
    for j in range(len(laws)):
        inside = states[:, j] == row[j]
        coef.append(
            f[inside] @ log[inside] / log[inside].sum() - f[~inside] @ log[~inside] / log[~inside].sum()
        )
    return float(f @ log), np.array(coef, dtype=float)


def tables_form(tables, constant, link="logistic", coef=None, intercept=0.0):
    functions = [lambda x, t=t: t[x.astype(int)] for t in map(np.asarray, tables)]
    return forms.Linked(forms.Additive(functions, intercept=constant), link, coef, intercept)


@pytest.mark.parametrize("seed", range(repeats(200, 60)))
def test_enumeration_of_twelve_columns(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 13))
    levels = rng.integers(2, 3 if d > 8 else 4, size=d)
    design, row, laws = discrete(rng, levels, float(rng.choice([0.3, 1.0, 0.75 * np.sqrt(d), 20.0])))
    size, shift = float(rng.choice([0.1, 1.0, 5.0, 60.0])), float(rng.choice([0.0, -25.0, 25.0]))
    tables = [size * rng.normal(size=k) for k in levels]
    mean, coef = enumerated(tables, shift, laws, row, logistic)
    surrogate = limes.limit(design, tables_form(tables, shift))
    # relative to the row's own expectations: a probability of 1e-12 has nine digits
    allowed = EXACT * max(np.abs(coef).max(), mean)
    assert np.abs(surrogate.coef - coef).max() <= allowed
    assert abs(surrogate.intercept + design.inclusion @ surrogate.coef - mean) <= allowed + EXACT * mean


@pytest.mark.parametrize("shift", [-27.6, -60.0, 27.6, 45.0])
@pytest.mark.parametrize("bandwidth", [0.02, 0.5, 3.0])
def test_tiny_probabilities_keep_their_digits(shift, bandwidth):
    """p = 1e-12 and 1e-26, and 1 - p: of both classes, each relative to itself."""
    rng = np.random.default_rng(3)
    levels = [2, 3, 2, 3, 2]
    design, row, laws = discrete(rng, levels, bandwidth)
    tables = [rng.normal(size=k) for k in levels]
    form = tables_form(tables, shift, coef=[[-1.0, 1.0]], intercept=[1.0, 0.0])
    moments = LinkedExpectation(form).moments(design)
    # of the unlikely class: 1 less a tiny probability has no digits to compare
    sign, output = (1, 1) if shift < 0 else (-1, 0)
    mean, coef = enumerated([sign * t for t in tables], sign * shift, laws, row, logistic)
    result = moments.gamma / design.variance[:, None]
    assert abs(moments.mean[output] - mean) <= EXACT * mean
    assert moments.mean.sum() == 1.0
    assert np.abs(result[:, output] - coef).max() <= EXACT * max(np.abs(coef).max(), mean)
    assert np.array_equal(result[:, 0], -result[:, 1])


def test_huge_margins():
    rng = np.random.default_rng(4)
    levels = [2] * 10
    design, row, laws = discrete(rng, levels, 2.0)
    tables = [150.0 * rng.normal(size=2) for _ in levels]
    assert sum(max(abs(t)) for t in tables) > 500
    mean, coef = enumerated(tables, 0.0, laws, row, logistic)
    surrogate = limes.limit(design, tables_form(tables, 0.0))
    assert np.abs(surrogate.coef - coef).max() <= EXACT * max(np.abs(coef).max(), mean)


def test_columns_without_effect_and_constants():
    design = ProductDesign.from_bins([[0, 1, 2]] * 2, [[0.5, 1.5]] * 2, [[1, 1]] * 2, [0.1, 1.1], 1.0)
    surrogate = limes.limit(design, forms.Linked(forms.Linear([0.0, 0.0], -2.0), "logistic"))
    assert not surrogate.coef.any()
    assert abs(surrogate.intercept - 1 / (1 + np.exp(2.0))) < 1e-13


def test_rows_have_the_same_bits_alone_and_together():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 6))
    model = forms.Linked(forms.Linear(rng.normal(size=6), -1.0), "logistic", [[-1.0, 1.0]], [1.0, 0.0])
    family = limes.TabularExplainer(lambda rows: rows[:, 0], x, method="sampled", max_calls=64)._model.family
    cells = family.cells(x)
    together = LinkedExpectation(model).at(Rows.in_cells(family, cells))
    backwards = LinkedExpectation(model).at(Rows.in_cells(family, cells[::-1]))
    assert np.array_equal(together.gamma, backwards.gamma[::-1])
    for i in (0, 17, 299):
        alone = LinkedExpectation(model).moments(family.at(x[i]))
        assert np.array_equal(alone.gamma, together.gamma[i])
        assert np.array_equal(alone.mean, together.mean[i])


# -- refusals ---------------------------------------------------------------------------------------------


def test_a_row_whose_error_cannot_be_bounded_is_refused():
    """Nearly all of the law at -80 and the rest at +60: no contour has all digits of the rest."""
    family = ProductFamily((categorical(np.array([0.0, 1.0])),), BinWeights(0.12))
    with pytest.raises(ModelError, match=r"known to .* only"):
        LinkedExpectation(tables_form([[-80.0, 60.0]], 0.0)).moments(family.at(np.array([0.0])))


def test_a_mean_that_float64_cannot_hold_is_refused():
    family = ProductFamily((categorical(np.array([0.0, 1.0])),), BinWeights(1.0))
    form = forms.Linked(tables_form([[0.0, 800.0]], 0.0).margin, "exp")
    with pytest.raises(ModelError, match="overflows float64"):
        LinkedExpectation(form).moments(family.at(np.array([0.0])))


def test_margins_that_are_no_sums_are_refused():
    kernel = forms.GaussianKernels([[0.0, 0.0]], [1.0], 1.0)
    with pytest.raises(InputError, match="not a sum of functions of one column"):
        forms.Linked(kernel, "logistic")
    with pytest.raises(InputError, match="link must be one of"):
        forms.Linked(forms.Linear([1.0]), "cauchit")
    with pytest.raises(InputError, match="as many rows of coef"):
        forms.Linked(forms.Linear([1.0]), "logistic", [1.0, 2.0])


def test_a_missing_value_that_the_margin_cannot_take_is_refused():
    from internals import binned

    x = np.array([0.0, 1.0, 2.0, np.nan])
    family = ProductFamily((binned(x, np.array([0.0, 1.0, 2.0])),), BinWeights(1.0))
    with pytest.raises(ModelError, match="no finite value"):
        LinkedExpectation(forms.Linked(forms.Linear([1.0]), "logistic")).moments(family.at(np.array([1.0])))
