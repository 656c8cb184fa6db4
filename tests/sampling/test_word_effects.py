"""Effects of words around random sets: against all sets of short texts, and exact forms of longer ones."""

from __future__ import annotations

import numpy as np
import pytest

import limes
from effort import repeats
from internals import Sampling, SharedWords, WordEffects, exact_expectation, has_word_effects
from limes.designs import ExchangeableDesign
from limes.models import forms
from oracle import ROUNDING

D = 9


def form(d=D, *, steep=4.0, outputs=0, shared=True, seed=0):
    """A logistic link of normalised words, two of which share a column, and one has no weight."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(0.5, 2.0, d)
    c = steep * np.sqrt(a)[:, None] * rng.normal(size=(d, max(outputs, 1)))
    a[-1], c[-1] = 0.0, 0.0
    groups = (SharedWords(np.array([1, 2]), np.array([0.0, 0.0, 0.0, 0.8])),) if shared else ()
    c, intercept = (c, rng.normal(size=outputs)) if outputs else (c[:, 0], np.array(0.3))
    margin = forms.NormalizedLinear(c, a, intercept=intercept, shared=groups)
    return (
        forms.Linked(margin, "logistic")
        if outputs
        else forms.Linked(margin, "logistic", coef=np.array([[-1.0, 1.0]]), intercept=np.array([1.0, 0.0]))
    )


def moments(model, design, seed=0):
    return WordEffects(model, Sampling(4096, seed=seed)).moments(design, design.at_instance)


def truth(model, design):
    """E_w f, β and Var_w f by all sets."""
    z, probability, weights = design.states(1 << 20)
    f = model.predict(z).reshape(len(z), -1)
    mean = probability @ f
    return mean, weights @ f, probability @ (f - mean) ** 2


@pytest.mark.parametrize("bandwidth", [0.1, 0.25, 1.0])
@pytest.mark.parametrize("outputs", [0, 3])
def test_moments_are_those_of_all_sets(bandwidth, outputs):
    model, design = form(outputs=outputs), ExchangeableDesign.word_deletions(D, bandwidth)
    mean, coef, variance = truth(model, design)
    result = moments(model, design)
    beta = design.solve(result.gamma)
    assert (np.abs(beta - coef) <= 4.0 * result.coef_errors + ROUNDING).all()
    assert result.coef_errors.max() < 0.02 * np.abs(coef).max()
    np.testing.assert_allclose(result.mean, mean, atol=0.01)
    r2, expected = (
        (b * g).sum(axis=0) / v
        for b, g, v in ((beta, result.gamma, result.variance), (coef, design.gamma(coef), variance))
    )
    assert (np.abs(r2 - expected) <= 4.0 * result.sampled.fidelity_errors + ROUNDING).all()
    assert result.sampled.fidelity_errors.max() < 0.05
    assert beta[-1] == pytest.approx(coef[-1], abs=4.0 * result.coef_errors[-1].max())
    assert result.calls == 0
    if not outputs:
        np.testing.assert_allclose(result.mean.sum(), 1.0, atol=ROUNDING)
        np.testing.assert_allclose(beta.sum(axis=1), 0.0, atol=ROUNDING)


@pytest.mark.parametrize("steep", [1.0, 10.0])
def test_intervals_cover(steep):
    model, design = form(steep=steep), ExchangeableDesign.word_deletions(D)
    mean, coef, variance = truth(model, design)
    explained = (coef * design.gamma(coef)).sum(axis=0)
    surrogate = mean + design.departure @ coef
    inside, at_row, fidelity = [], [], []
    for seed in range(repeats(200, 60)):
        result = moments(model, design, seed)
        sampled, beta = result.sampled, design.solve(result.gamma)
        inside.append(np.abs(beta - coef) <= 1.96 * result.coef_errors)
        its = result.mean + design.departure @ beta
        at_row.append(np.abs(its - surrogate) <= 1.96 * sampled.surrogate_errors)
        r2 = (beta * result.gamma).sum(axis=0) / result.variance
        fidelity.append(np.abs(r2 - explained / variance) <= 1.96 * sampled.fidelity_errors)
    # of 60 seeds, whose nine words share their sets: a standard error of 3 %
    for covered in (inside, at_row, fidelity):
        assert np.mean(covered) >= 0.95 - 0.05


@pytest.mark.parametrize("d", [60, 120])
def test_long_texts_agree_with_the_exact_expectation(d):
    model, design = form(d, steep=1.5), ExchangeableDesign.word_deletions(d)
    exact = exact_expectation(model, ExchangeableDesign).moments(design)
    result = moments(model, design)
    coef = design.solve(exact.gamma)
    errors = result.coef_errors
    assert (np.abs(design.solve(result.gamma) - coef) <= 4.5 * errors).all()
    assert errors.max() < 0.003 * np.abs(coef).max()


def test_same_seed_same_bits_and_another_seed_another_sample():
    model, design = form(40), ExchangeableDesign.word_deletions(40)
    one, again, other = (moments(model, design, seed).gamma for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_forms_that_have_word_effects():
    assert has_word_effects(form())
    assert has_word_effects(form(outputs=3))
    plain = form()
    assert not has_word_effects(plain.margin)
    mixed = forms.Linked(form(outputs=2).margin, "logistic", coef=np.array([0.5, 0.5]))
    assert not has_word_effects(mixed)
    assert not has_word_effects(forms.Linked(plain.margin, "probit"))


def test_long_texts_are_sampled_from_the_read_model_without_a_call():
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    vocabulary = [f"w{i:03d}" for i in range(700)]
    texts = [" ".join(rng.choice(vocabulary, size=80, replace=False)) for _ in range(60)]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=1000.0))
    model.fit(texts, rng.integers(2, size=60))
    model[-1].coef_ *= 3.0  # steep, as of many texts
    text = " ".join(rng.choice(vocabulary, size=320, replace=False))
    explanation = limes.TextExplainer(model)(text, progress=False)
    assert explanation.method == "sampled"
    assert "sampled from the read model" in explanation.reason
    assert explanation.model_calls == 0
    assert explanation.coefficients.row_converged.all()
    assert (
        explanation.coefficients.standard_errors.max() < 0.005 * np.abs(explanation.coefficients.values).max()
    )
    sampled = limes.TextExplainer(model, method="sampled")(text, progress=False)
    difference = (explanation.coefficients.values - sampled.coefficients.values)[0, :, 0]
    errors = np.hypot(explanation.coefficients.standard_errors, sampled.coefficients.standard_errors)[0, :, 0]
    assert (np.abs(difference) <= 4.5 * errors).all()
    account = explanation.contributions
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, atol=ROUNDING)
