"""Links of sums of words, with and without the norm, against enumeration of all subsets."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.sparse import csr_array

import limes
from internals import (
    LINKS,
    PANEL_ERROR,
    _of_margin,
    exact_expectation,
    functions,
    nodes_of,
    panel_nodes,
    shared_words,
)
from limes.designs import ExchangeableDesign
from limes.exceptions import InputError, ModelError
from limes.models import forms
from oracle import EXACT

LONG = np.longdouble
CURVES = {
    "logistic": lambda s: 1 / (1 + np.exp(-s)),
    "cloglog": lambda s: -np.expm1(-np.exp(s)),
    "exp": np.exp,
    "tanh": np.tanh,
    "cos": np.cos,
}
DESIGNS = [ExchangeableDesign.word_deletions, ExchangeableDesign.superpixel_switches]


def enumerated(design, f):
    """E f and β over all subsets, in extended precision."""
    d = design.size
    z = np.array(list(product((0, 1), repeat=d)), dtype=LONG)
    removed = (d - z.sum(axis=1)).astype(int)
    p = LONG(design.counts.law)[removed] / np.array([comb(d, int(s)) for s in removed], dtype=LONG)
    values = f(z)
    mean = p @ values
    centred = z - p @ z
    gamma = (centred * p[:, None]).T @ (values - mean)
    covariance = ((centred * p[:, None]).T @ centred).astype(float)
    return float(mean), np.linalg.solve(covariance, gamma.astype(float))


@pytest.mark.parametrize("make", DESIGNS)
@pytest.mark.parametrize("bandwidth", [0.25, 2.0])
def test_the_bound_of_a_coefficient_holds_whatever_the_error_of_the_link(make, bandwidth):
    """An error |e| <= ε of f moves β_j by ε times the sum of |dβ_j / df| over subsets, and E f by ε."""
    design = make(5, bandwidth)
    z = np.array(list(product((0, 1), repeat=5)), dtype=float)
    columns = [
        enumerated(design, lambda rows, i=i: LONG(np.arange(len(rows)) == i))[1] for i in range(len(z))
    ]
    worst = np.abs(columns).sum(axis=0).max()
    result = _of_margin(LINKS["logistic"], (0.0,), 0.2, np.linspace(-1.0, 1.5, 5), design)
    assert result.coef_error >= worst * result.mean_error * (1 - 1e-9) > 0


def assert_exact(design, form, f):
    mean, coef = enumerated(design, f)
    limit = limes.limit(design, form)
    size = max(abs(mean), np.abs(coef).max())
    assert np.abs(limit.coef - coef).max() <= EXACT * size
    assert abs(limit.intercept + design.inclusion @ limit.coef - mean) <= EXACT * size


@pytest.mark.parametrize("link", CURVES)
@pytest.mark.parametrize("make", DESIGNS)
@pytest.mark.parametrize("seed", range(6))
def test_sums_of_words(link, make, seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 12))
    effects, constant = float(rng.choice([0.1, 1.0, 3.0])) * rng.normal(size=d), rng.normal()
    effects = np.clip(effects, -2, 2) if link in ("exp", "cloglog") else effects
    form = forms.Linked(forms.Linear(effects, constant), link)
    assert_exact(
        make(d, float(rng.choice([0.1, 0.25, 2.0]))), form, lambda z: CURVES[link](constant + z @ effects)
    )


@pytest.mark.parametrize("constant", [-25.0, -60.0])
def test_tiny_probabilities_keep_their_digits(constant):
    rng = np.random.default_rng(1)
    effects, design = rng.normal(size=9), ExchangeableDesign.word_deletions(9, 0.25)
    form = forms.Linked(forms.Linear(effects, constant), "logistic", [[-1.0, 1.0]], [1.0, 0.0])
    mean, coef = enumerated(design, lambda z: CURVES["logistic"](constant + z @ effects))
    moments = exact_expectation(form, ExchangeableDesign).moments(design)
    assert abs(moments.mean[1] - mean) <= EXACT * mean
    assert moments.mean.sum() == 1.0
    assert np.abs(design.solve(moments.gamma)[:, 1] - coef).max() <= EXACT * max(np.abs(coef).max(), mean)


def test_networks_over_words():
    rng = np.random.default_rng(2)
    form = forms.Ridges(rng.normal(size=(4, 7)), rng.normal(size=4), rng.normal(size=4), "tanh", 0.5)
    f = lambda z: 0.5 + np.tanh(z @ form.weights.T + form.offsets) @ form.scales  # noqa: E731
    assert_exact(ExchangeableDesign.superpixel_switches(7, 0.25), form, f)
    with pytest.raises(InputError, match="no exact expectation"):
        limes.limit(
            ExchangeableDesign.word_deletions(7, 0.25),
            forms.Ridges(form.weights, form.offsets, form.scales, "relu"),
        )


# -- with the norm ----------------------------------------------------------------------------------------


def normalised(rng, d, size, constant, weightless=0):
    a = rng.gamma(2.0, 1.0, size=d)
    a[:weightless] = 0.0
    c = size * rng.normal(size=d) * np.sqrt(a)
    form = forms.Linked(forms.NormalizedLinear(c, a, intercept=constant), "logistic")

    def f(z):
        norm = np.sqrt(z @ LONG(a))
        margin = np.divide(z @ LONG(c), norm, out=np.zeros(len(z), dtype=LONG), where=norm > 0)
        return CURVES["logistic"](LONG(constant) + margin)

    return form, f


@pytest.mark.parametrize("size", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(8))
def test_probabilities_behind_the_norm(size, seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 12))
    form, f = normalised(rng, d, size, rng.normal(), weightless=seed % 3 if d > 3 else 0)
    assert_exact(DESIGNS[seed % 2](d, float(rng.choice([0.25, 1.0]))), form, f)


@pytest.mark.parametrize("sizes", [(2,), (3,), (2, 2), (2, 3), (3, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_words_that_share_columns(sizes, seed):
    """Spellings of one word: their counts are added before they are squared."""
    rng = np.random.default_rng(seed)
    d = 8
    places = np.split(rng.permutation(d)[: sum(sizes)], np.cumsum(sizes)[:-1])
    rows = np.diag(rng.uniform(0.3, 2.0, size=d))
    for group in places:  # all words of a group in its first word's column
        rows[group, group[0]], rows[group[1:], group[1:]] = np.diag(rows)[group], 0.0
    coef = rng.normal(size=d)
    shared = shared_words(csr_array(rows))
    margin = forms.NormalizedLinear(rows @ coef, (rows**2).sum(axis=1), intercept=0.2, shared=shared)
    form = forms.Linked(margin, "logistic")

    def f(z):
        x = z @ LONG(rows)
        norm = np.sqrt((x**2).sum(axis=1))
        margin = np.divide(x @ LONG(coef), norm, out=np.zeros(len(z), dtype=LONG), where=norm > 0)
        return CURVES["logistic"](LONG(0.2) + margin)

    if np.prod([2**k - k for k in sizes]) > 16 or len(shared) != len(sizes):
        with pytest.raises(InputError, match="too many words"):
            limes.limit(DESIGNS[0](d, 0.25), form)
        return
    assert_exact(DESIGNS[seed % 2](d, 0.25), form, f)


def test_words_without_any_weight():
    design = ExchangeableDesign.word_deletions(3, 0.25)
    form = forms.Linked(forms.NormalizedLinear(np.zeros(3), np.zeros(3), intercept=1.0), "logistic")
    limit = limes.limit(design, form)
    assert not limit.coef.any()
    assert limit.intercept == pytest.approx(1 / (1 + np.exp(-1.0)), rel=1e-15)


def test_margins_too_steep_for_the_expansion_are_refused():
    form, _ = normalised(np.random.default_rng(0), 10, 60.0, 0.0)
    with pytest.raises(ModelError, match=r"known to .* only"):
        limes.limit(ExchangeableDesign.word_deletions(10, 0.25), form)


@pytest.mark.parametrize("frequency", [0.45, 2.0, 6.0, 18.0, 36.0, 72.0])
def test_functions_of_the_margin_are_integrated_within_the_stated_error(frequency):
    """At any norm: panels double, so that norms between two of them are all that can differ."""
    x = frequency * np.linspace(0.0, 1.0, 9)
    exact = np.stack(functions(x))
    for root in np.geomspace(1.0, 2.0, 7):
        s, weight = panel_nodes(1.0, 16.0, int(nodes_of(np.array([frequency]))[0]))
        tilted, turns = weight * np.exp(-0.5 * (root * s) ** 2), np.multiply.outer(x, root * s)
        sums = np.stack([2.0 / np.pi * (np.sin(turns) @ tilted), (1.0 - np.cos(turns)) @ tilted])
        assert np.abs(sums - exact).max() <= PANEL_ERROR


def test_the_same_bits_whatever_the_number_of_threads():
    from internals import _threads

    form, _ = normalised(np.random.default_rng(0), 30, 0.5, 0.1)
    design, count = ExchangeableDesign.word_deletions(30, 0.25), _threads.WORKERS
    limits = []
    try:
        for threads in (1, 3):
            _threads.set_threads(threads)
            limits.append(limes.limit(design, form).coef)
    finally:
        _threads.set_threads(count)
    assert np.array_equal(*limits)
