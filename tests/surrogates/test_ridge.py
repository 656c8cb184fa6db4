"""The ridge fit of ``lime`` to a finite sample, against many such fits."""

from __future__ import annotations

import numpy as np
import pytest

import limes
import oracle
from internals import ExactExpectation, Moments
from limes.designs import ExchangeableDesign, ProductDesign
from limes.exceptions import InputError
from limes.models import forms
from limes.surrogates import least_squares, ridge
from oracle import EXACT

D, BINS = 3, 4
EDGES = np.arange(BINS + 1.0)
# a bin's law this flat is uniform
FLAT = 1e6
ROW = np.array([0.5, 1.5, 3.5])
FORM = forms.Boxes(
    [[-np.inf, 0.3, -np.inf], [0.2, -np.inf, 2.5], [1.0, 1.0, 1.0]],
    [[1.2, np.inf, np.inf], [np.inf, 2.0, np.inf], [np.inf, 3.0, 3.8]],
    [2.0, 1.0, -1.5],
)


def design(bandwidth):
    means, stds = EDGES[:-1] + 0.5, np.full(BINS, FLAT)
    return ProductDesign.from_bins([EDGES] * D, [means] * D, [stds] * D, ROW, bandwidth)


def moments(product, form=FORM):
    return ExactExpectation(form).moments(product)


def simulated(bandwidth, penalty, samples, seeds, form=FORM):
    """Weighted ridge fits of ``samples`` rows, the first of them the instance: (seeds, 1 + d)."""
    fits = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0, BINS, (samples, D))
        x[0] = ROW
        z = (np.ceil(x) == np.ceil(ROW)).astype(float)
        weights = np.exp(-0.5 * (D - z.sum(axis=1)) / bandwidth**2)
        intercept, coef = oracle.least_squares(z, form.predict(x), weights, penalty)
        fits.append(np.append(intercept, coef))
    return np.array(fits)


@pytest.mark.parametrize("bandwidth", [0.75 * np.sqrt(D), 0.6, np.inf])
@pytest.mark.parametrize("penalty", [1.0, 300.0])
def test_the_mean_of_many_fits(bandwidth, penalty):
    """A ratio of expected sums: its bias is of order 1/(nC), far below the standard error of 60."""
    samples = 20_000
    fits = simulated(bandwidth, penalty, samples, 60)
    product = design(bandwidth)
    surrogate = ridge(product, moments(product), FORM.predict(ROW[None])[0], penalty=penalty, samples=samples)
    errors = fits.std(axis=0, ddof=1) / np.sqrt(len(fits))
    z = (fits.mean(axis=0) - np.append(surrogate.intercept, surrogate.coef)) / errors
    assert np.abs(z).max() < oracle.Z_LIMIT, z


def test_a_narrow_bandwidth_is_ruled_by_the_instance():
    """ν = 0.2: only rows in the instance's own cell weigh anything, and the ridge sees next to nothing."""
    product, samples = design(0.2), 5000
    f_row = FORM.predict(ROW[None])[0]
    surrogate = ridge(product, moments(product), f_row, samples=samples)
    fits = simulated(0.2, 1.0, samples, 60)
    errors = fits.std(axis=0, ddof=1) / np.sqrt(len(fits))
    z = (fits.mean(axis=0) - np.append(surrogate.intercept, surrogate.coef)) / errors
    assert np.abs(z).max() < oracle.Z_LIMIT, z
    limit = limes.limit(product, FORM)
    assert np.abs(surrogate.coef).max() < 0.05 * np.abs(limit.coef).max()


def test_no_penalty_and_many_rows_are_least_squares():
    product = design(1.0)
    full = least_squares(product, moments(product))
    # the instance is one row of many
    for samples, tolerance in ((10**6, 1e-4), (10**9, 1e-7), (10**12, 1e-10)):
        surrogate = ridge(
            product, moments(product), FORM.predict(ROW[None])[0], penalty=1e-12, samples=samples
        )
        assert np.abs(surrogate.coef - full.coef).max() < tolerance
        assert np.abs(surrogate.intercept - full.intercept) < tolerance


def test_the_expected_sums_themselves():
    """Dense normal equations from S and s: the fast solution is theirs."""
    product = design(0.8)
    m, f_row, n, penalty = moments(product), FORM.predict(ROW[None])[0], 50, 7.0
    total = (n - 1) * np.exp(product.log_weight)
    alpha = product.inclusion
    # second moments of (1, z) and of f under total rows of the law and one of the instance
    outer = np.outer(alpha, alpha) + np.diag(product.variance)
    gram = total * np.block([[np.ones((1, 1)), alpha[None]], [alpha[:, None], outer]])
    right = total * np.append(m.mean, m.gamma + alpha * m.mean)
    ones = np.ones(D + 1)
    gram, right = gram + np.outer(ones, ones), right + ones * f_row
    gram[np.arange(1, D + 1), np.arange(1, D + 1)] += penalty
    expected = np.linalg.solve(gram, right)
    surrogate = ridge(product, m, f_row, penalty=penalty, samples=n)
    assert oracle.error(np.append(surrogate.intercept, surrogate.coef), expected) < oracle.NORMAL_EQUATIONS


def test_a_large_penalty_leaves_the_mean():
    product = design(1.0)
    surrogate = ridge(product, moments(product), np.array(0.5), penalty=1e15)
    assert np.abs(surrogate.coef).max() < 1e-10
    drawn = 4999 * np.exp(product.log_weight)
    assert surrogate.intercept == pytest.approx((drawn * moments(product).mean + 0.5) / (drawn + 1))


def test_shrinking_is_the_same_for_every_output():
    product = design(1.0)
    several = forms.Boxes(FORM.lower, FORM.upper, np.column_stack([FORM.value, -2 * FORM.value]))
    f_row = several.predict(ROW[None])[0]
    explanation = ridge(product, moments(product, several), f_row)
    one = ridge(product, moments(product), f_row[0])
    assert explanation.coef.shape == explanation.standard_errors.shape == (D, 2)
    assert explanation.intercept.shape == explanation.fidelity.shape == (2,)
    assert oracle.error(explanation.coef, np.column_stack([one.coef, -2 * one.coef])) < oracle.ROUNDING
    assert np.isnan(explanation.fidelity).all()


def test_a_column_that_cannot_vary_has_no_coefficient():
    product = ProductDesign.from_bins(
        [EDGES, [0, 1]], [EDGES[:-1] + 0.5, [0.5]], [[FLAT] * 4, [1]], [0.5, 0.5], 1.0
    )
    form = forms.Boxes([[0.2, 0.2]], [[2.0, 0.7]], [1.0])
    surrogate = ridge(product, moments(product, form), np.array(1.0))
    assert surrogate.coef[1] == 0.0
    assert surrogate.coef[0] != 0.0


def test_standard_errors_shrink_as_the_coefficients_do():
    product = design(1.0)
    exact = moments(product)
    import dataclasses

    unsure = dataclasses.replace(exact, coef_errors=np.full(D, 0.01))
    full, explanation = least_squares(product, unsure), ridge(product, unsure, np.array(0.5), penalty=1000.0)
    assert (explanation.standard_errors < full.standard_errors).all()
    assert (explanation.standard_errors > 0).all()


@pytest.mark.parametrize("make", [ExchangeableDesign.word_deletions, ExchangeableDesign.superpixel_switches])
@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("bandwidth", [0.1, 0.25, np.inf])
@pytest.mark.parametrize("penalty", [1.0, 300.0])
def test_features_that_are_not_independent(make, d, bandwidth, penalty):
    """Texts and images: dense normal equations over every subset, weighted, and the instance."""
    text, samples, rng = make(d, bandwidth), 200, np.random.default_rng(d)
    z, log_probability = text.enumerate()
    weights, values = np.exp(log_probability), rng.normal(size=(2**d, 2))
    mean = weights @ values
    gamma = (z - weights @ z).T @ (weights[:, None] * (values - mean))
    f_row = values[-1]
    total = (samples - 1) * np.exp(text.log_weight)
    expected = oracle.least_squares(
        np.vstack([z, np.ones(d)]), np.vstack([values, f_row]), np.append(total * weights, 1.0), penalty
    )
    surrogate = ridge(text, Moments.exact(mean, gamma), f_row, penalty=penalty, samples=samples)
    assert oracle.error(surrogate.coef, expected[1]) < EXACT
    assert oracle.error(surrogate.intercept, expected[0], 1.0) < EXACT


def test_one_penalty_for_all_words():
    text, none = ExchangeableDesign.word_deletions(3), np.zeros(3)
    with pytest.raises(InputError, match="same penalty"):
        ridge(text, Moments.exact(np.zeros(()), none), np.zeros(()), penalty=np.ones(3))
