"""The Gaussian process of switches: its likelihood, its residuals, and its predictive variance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal, norm

import words
from internals import Covariance, ZeroControl, gaussian_process, switches
from limes.designs import ExchangeableDesign
from oracle import EXACT, Z_LIMIT

D = 8
DESIGN = ExchangeableDesign.superpixel_switches(D)
PARAMETERS = np.concatenate([np.linspace(-4, 0, D), [0.3, -2.0, -1.0, -2.0]])


def rows(n, seed=0):
    return DESIGN.sample(n, np.random.SeedSequence(seed))[0]


def probabilities(z):
    margin = 4 * z[:, 0] * z[:, 1] + 3 * z[:, 2] - 3 + 0.1 * z[:, 3:].sum(axis=1)
    p = 1 / (1 + np.exp(-margin))
    return np.stack([p, 1 - p], axis=1)


def margins(z):
    return 5.0 + 7.0 * z[:, :1] * z[:, 1:2] - 2.0 * z[:, 2:3]


def covariance(z, c, result):
    """k, one pair of rows at a time."""
    signs, differs = (2 * z - 1) * (2 * c - 1), z != c
    return (
        0.5
        + result.slope * (result.relevance * signs).sum()
        + result.rough * np.exp(-result.relevance[differs].sum())
    )


def test_the_covariance_is_the_formula():
    z, c, result = rows(5), rows(4, seed=1), Covariance.from_parameters(PARAMETERS)
    expected = [[covariance(a, b, result) for b in c] for a in z]
    np.testing.assert_allclose(result.between(z, c), expected, rtol=EXACT)
    single = result.between(z.astype(np.float32), c.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(
        single, expected, rtol=0, atol=8 * np.finfo(np.float32).eps * np.abs(expected).max()
    )


def test_the_likelihood_is_the_normal_density():
    z, result = rows(12), Covariance.from_parameters(PARAMETERS)
    t = np.random.default_rng(0).normal(size=(12, 2))
    gram = result.between(z, z) + result.noise * np.eye(12)

    def expected(parameters):
        covariance = Covariance.from_parameters(parameters)
        law = multivariate_normal(np.zeros(12), covariance.between(z, z) + covariance.noise * np.eye(12))
        prior = norm(parameters[-1], 1.0).logpdf(parameters[:-4]).sum() + norm(-2.5, 1.5).logpdf(
            parameters[-1]
        )
        return -law.logpdf(t.T).mean() - prior

    other = PARAMETERS + 0.1 * np.random.default_rng(1).normal(size=PARAMETERS.size)
    values = [switches._negative_log_posterior(p, z, t)[0] for p in (PARAMETERS, other)]
    assert values[1] - values[0] == pytest.approx(expected(other) - expected(PARAMETERS), rel=1e-9)
    assert np.linalg.cond(gram) < 1e6


def test_its_slope_is_its_derivative():
    z, t = rows(12), np.random.default_rng(0).normal(size=(12, 2))
    slope = switches._negative_log_posterior(PARAMETERS, z, t)[1]
    gap = check_grad(
        lambda p: switches._negative_log_posterior(p, z, t)[0],
        lambda p: switches._negative_log_posterior(p, z, t)[1],
        PARAMETERS,
    )
    assert gap < 1e-5 * np.linalg.norm(slope)


def test_it_finds_the_switches_that_matter():
    z = rows(200)
    p = probabilities(z)
    result = switches.Covariance.fit(z, (p - p.mean(axis=0)) / p.std(axis=0))
    assert result.relevance[:3].min() > 3 * result.relevance[3:].max()


@pytest.mark.parametrize("answers", [probabilities, margins])
@pytest.mark.parametrize("n", [60, 225, 1500])
def test_it_leaves_less_than_a_line(n, answers):
    z, fresh = rows(n), rows(1000, seed=1)
    remaining = ((answers(fresh) - gaussian_process(DESIGN, z, answers(z)).predict(fresh))[:, 0] ** 2).mean()
    line = np.column_stack([np.ones(n), z])
    beta = np.linalg.lstsq(line, answers(z)[:, 0])[0]
    linear = ((answers(fresh)[:, 0] - np.column_stack([np.ones(1000), fresh]) @ beta) ** 2).mean()
    assert remaining < 0.1 * linear


@pytest.mark.parametrize("answers", [probabilities, margins])
def test_the_process_predicts_within_its_stated_errors(answers):
    """Against all 2^d rows; errors are not too large either."""
    scores = []
    for seed in range(12):
        z = rows(100, seed)
        control = gaussian_process(DESIGN, z, answers(z))
        mean, coef, errors = control.expectation(DESIGN)
        _, beta, expected = words.surrogate(
            words.law("superpixels", D, 0.25), control.predict(words.subsets(D))
        )
        scores.append((np.vstack([mean, coef]) - np.vstack([expected, beta])) / errors)
    assert np.abs(scores).max() < Z_LIMIT
    assert np.sqrt(np.mean(np.square(scores))) > 0.5


def test_probabilities_stay_probabilities():
    z = rows(64)
    result = gaussian_process(DESIGN, z, np.round(probabilities(z))).predict(rows(500, seed=1))
    assert result.min() >= 0
    assert result.max() <= 1


def test_few_rows_constant_answers_and_a_constant_output():
    assert isinstance(gaussian_process(DESIGN, rows(16), probabilities(rows(16))), ZeroControl)
    z = rows(64)
    assert isinstance(gaussian_process(DESIGN, z, np.full((64, 1), 3.0)), ZeroControl)
    both = np.column_stack([margins(z), np.full(64, 3.0)])
    control = gaussian_process(DESIGN, z, both)
    np.testing.assert_allclose(control.predict(z)[:, 1], 3.0)
    np.testing.assert_allclose(control.expectation(DESIGN).coef[:, 1], 0.0, atol=1e-6)


def test_the_same_rows_give_the_same_control():
    z = rows(64)
    one, other = (gaussian_process(DESIGN, z, margins(z)).expectation(DESIGN) for _ in range(2))
    np.testing.assert_array_equal(one.coef, other.coef)
