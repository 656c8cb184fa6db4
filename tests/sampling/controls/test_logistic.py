"""The logistic control of switches: its moments, its residuals of probabilities, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax

import limes
from internals import ZeroControl, linked_words, logistic_control, roots_of_weights
from limes.designs import ExchangeableDesign
from oracle import EXACT

D = 9
DESIGNS = [ExchangeableDesign.word_deletions(D), ExchangeableDesign.superpixel_switches(D, 0.4)]
SLOPES = np.linspace(-3, 3, D)


def rows(design, n=512):
    return design.sample(n, np.random.SeedSequence(0))[0]


def two_classes(z):
    p = expit(z @ SLOPES - 0.5)
    return np.stack([1 - p, p], axis=1)


def three_classes(z):
    return softmax(np.stack([z @ SLOPES, z @ SLOPES[::-1] + 1, -2 * z[:, 0]], axis=1), axis=1)


def single(z):
    return expit(z @ SLOPES + z[:, 0] * z[:, 1])[:, None]


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("answers", [two_classes, three_classes, single])
def test_moments_are_those_of_all_states(design, answers):
    z = rows(design)
    control = logistic_control(design, z, answers(z))
    moments = control.expectation(design)
    states, probability, weights = design.states(2**D)
    values = control.predict(states)
    np.testing.assert_allclose(moments.mean, probability @ values, rtol=EXACT)
    np.testing.assert_allclose(moments.coef, weights @ values, rtol=EXACT, atol=EXACT)
    assert not moments.errors.any()


def test_a_linear_model_of_the_log_odds_is_followed_to_the_end():
    design = DESIGNS[0]
    z = rows(design)
    control = logistic_control(design, z, two_classes(z))
    states = design.enumerate()[0]
    np.testing.assert_allclose(control.predict(states), two_classes(states), atol=1e-5)


@pytest.mark.parametrize("answers", [three_classes, single])
def test_other_probabilities_are_followed_closer_than_by_a_line(answers):
    design = DESIGNS[0]
    z, states = rows(design), design.enumerate()[0]
    f = answers(states)
    lines = np.column_stack([np.ones(len(states)), states])
    linear = f - lines @ np.linalg.lstsq(lines, f, rcond=None)[0]
    remaining = f - logistic_control(design, z, answers(z)).predict(states)
    assert remaining.var() < 0.5 * linear.var()


def test_answers_of_0_and_1_have_finite_log_odds():
    design = DESIGNS[0]
    z = rows(design)
    control = logistic_control(design, z, (two_classes(z) > 0.5).astype(float))
    moments = control.expectation(design)
    assert np.isfinite(moments.coef).all()
    assert control.predict(z).min() >= 0


def test_answers_that_are_no_probabilities_and_few_rows_get_no_control():
    design = DESIGNS[0]
    z = rows(design)
    assert isinstance(logistic_control(design, z, z @ SLOPES[:, None]), ZeroControl)
    assert isinstance(logistic_control(design, z[:16], two_classes(z[:16])), ZeroControl)


def test_texts_without_quadrature_are_sampled_without_it(monkeypatch):
    monkeypatch.setattr(linked_words, "MOST_STEPS", 1)
    z = rows(DESIGNS[0])
    assert isinstance(logistic_control(DESIGNS[0], z, two_classes(z)), ZeroControl)


def test_a_function_of_texts_is_explained_almost_exactly():
    """A classifier of words behind a function: 512 calls find what all deletions have."""
    words = [f"word{j}" for j in range(14)]

    def classifier(texts):
        margin = np.array(
            [[3.0 * np.cos(j) * (f"word{j} " in text + " ") for j in range(14)] for text in texts]
        )
        p = expit(margin.sum(axis=1) - 1.0)
        return np.stack([1 - p, p], axis=1)

    text = " ".join(words)
    exact = limes.TextExplainer(classifier, max_calls=2**14 + 8, method="exact")(text)
    sampled = limes.TextExplainer(classifier, max_calls=512)(text)
    assert (exact.method, sampled.method, sampled.coefficients.controls) == (
        "exact",
        "sampled",
        ("logistic",),
    )
    np.testing.assert_allclose(sampled.coefficients.values, exact.coefficients.values, atol=1e-5)
    plain = limes.TextExplainer(classifier, max_calls=512, control="none")(text)
    # what is left of the errors allows for answers that 512 calls do not show
    assert sampled.coefficients.standard_errors.max() < 0.3 * plain.coefficients.standard_errors.max()


def test_rows_weigh_as_the_mean_variance_of_their_labels():
    """A label that is 1 with probability p has the variance p - p², and so has its complement."""
    p = np.linspace(0.01, 0.99, 50)
    roots = roots_of_weights(np.column_stack([p, 1 - p]))
    assert roots.shape == (50, 1)
    np.testing.assert_allclose(roots[:, 0] ** 2, (p - p**2), rtol=EXACT)
