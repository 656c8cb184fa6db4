"""β = Σ⁻¹Γ from moments alone."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from internals import Moments, SampledExpectation, Sampling, marginals_from_bins, named_weights
from limes.designs import ProductDesign, ProductFamily
from limes.surrogates import least_squares


def design(bandwidth=1.0, bins=3):
    edges, means, stds = np.arange(bins + 1.0), np.arange(bins) + 0.5, np.ones(bins)
    return ProductDesign.from_bins([edges] * 2, [means] * 2, [stds] * 2, [0.2, 1.2], bandwidth)


@pytest.mark.parametrize("outputs", [(), (1,), (4,)])
def test_gamma_over_variance(outputs):
    rng, product = np.random.default_rng(0), design()
    gamma, mean = rng.normal(size=(2, *outputs)), rng.normal(size=outputs)
    variance = 100 * np.ones(outputs)
    explanation = least_squares(product, Moments(mean, gamma, np.abs(gamma), variance))
    tall = product.variance.reshape(-1, *(1,) * len(outputs))
    assert oracle.error(explanation.coef, gamma / tall) < oracle.ROUNDING
    assert oracle.error(explanation.standard_errors, np.abs(gamma)) < oracle.ROUNDING
    assert (
        oracle.error(explanation.intercept, mean - np.tensordot(product.inclusion, gamma / tall, axes=1))
        < 1e-12
    )
    # R² = Σ γ²/v / Var f
    assert oracle.error(explanation.fidelity, (gamma**2 / tall).sum(axis=0) / 100) < oracle.ROUNDING
    assert oracle.error(explanation.shares, gamma**2 / tall / 100) < oracle.ROUNDING


def test_a_column_that_cannot_vary_has_no_coefficient():
    product = design(bins=1)
    surrogate = least_squares(product, Moments(np.array(1.0), np.ones(2), np.ones(2), np.array(1.0)))
    assert surrogate.coef.tolist() == [0.0, 0.0]
    assert surrogate.intercept == 1.0


def test_fidelity_is_unknown_where_the_variance_is_never_above_one_and_one_of_a_constant():
    product, gamma = design(), np.array([1.0, 0.0])
    for variance, expected in ((np.nan, np.nan), (0.0, 1.0), (1e-9, 1.0)):
        explanation = least_squares(product, Moments(np.array(0.0), gamma, gamma, np.array(variance)))
        assert np.array_equal(explanation.fidelity, expected, equal_nan=True)


def test_fidelity_is_the_weighted_r_squared():
    """For an additive function of z it is 1; of noise inside the bins it is the share that z explains."""
    product = design(2.0)
    expectation = SampledExpectation(lambda x: (x[:, 0] <= 1) + 2.0 * (x[:, 1] > 1), Sampling(4096))
    explanation = least_squares(product, expectation.moments(product, np.array([0.2, 1.2])))
    # x_1 > 1 holds in two bins of three, so z_1 does not tell all
    x, h = product.draw(np.random.default_rng(0).uniform(size=(200_000, 2)))
    y = (x[:, 0] <= 1) + 2.0 * (x[:, 1] > 1)
    intercept, coef = oracle.least_squares(h, y, np.ones(len(h)))
    residual = y - intercept - h @ coef
    assert explanation.fidelity == pytest.approx(1 - residual.var() / y.var(), abs=0.01)


def test_slopes_are_solved_with_their_own_variance():
    family = ProductFamily(
        marginals_from_bins([[-np.inf, np.inf]], [[1.0]], [[2.0]]),
        named_weights("euclidean", np.inf),
        slopes=np.array([True]),
    )
    product = family.at(np.array([0.0]))
    assert product.variance == pytest.approx(4.0)
    surrogate = least_squares(product, Moments(np.array(5.0), np.array([8.0]), np.zeros(1), np.array(np.nan)))
    assert surrogate.coef == pytest.approx(2.0)
    assert surrogate.intercept == pytest.approx(5.0 - 1.0 * 2.0)
