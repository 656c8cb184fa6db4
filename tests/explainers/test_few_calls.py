"""Texts with more words than half of the calls: each coefficient is estimated separately.

The oracle has moments of products of switches: of d words s are removed, s uniform on 1, ..., d and weighted,
so that m given words are all kept with probability Σ_s law_s ∏_{i<m} (d - s - i) / (d - i).
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from effort import repeats
from limes import TextExplainer

D = 60
WORDS = [f"w{j}" for j in range(D)]
TEXT = " ".join(WORDS)


def terms(seed):
    """A sum of products of one word and of two, by sets of words."""
    rng = np.random.default_rng(seed)
    single = {frozenset([j]): value for j, value in enumerate(rng.normal(size=D) * (rng.random(D) < 0.3))}
    pairs = {frozenset(rng.choice(D, 2, replace=False).tolist()): value for value in 2.0 * rng.normal(size=8)}
    return {words: value for words, value in (single | pairs).items() if value}


def asking(its):
    def f(texts):
        kept = [set(text.split()) for text in texts]
        sets = [({WORDS[j] for j in words}, value) for words, value in its.items()]
        return np.array([sum(value for words, value in sets if words <= text) for text in kept])

    return f


def truth(its, bandwidth):
    """Coefficients (d,) and R² of the limit."""
    removed = np.arange(1, D + 1)
    law = np.exp(-((1 - np.sqrt(1 - removed / D)) ** 2) / (2 * bandwidth**2))
    law /= law.sum()
    kept = [law @ np.prod([(D - removed - i) / (D - i) for i in range(m)], axis=0) for m in range(1, 5)]
    moment = dict(zip(range(1, 5), kept, strict=True))
    sigma = np.full((D, D), moment[2] - moment[1] ** 2)
    np.fill_diagonal(sigma, moment[1] - moment[1] ** 2)
    gamma = [
        sum(
            value * (moment[len(words | {j})] - moment[1] * moment[len(words)])
            for words, value in its.items()
        )
        for j in range(D)
    ]
    coef = np.linalg.solve(sigma, gamma)
    variance = sum(
        a * b * (moment[len(one | other)] - moment[len(one)] * moment[len(other)])
        for (one, a), (other, b) in product(its.items(), repeat=2)
    )
    return coef, coef @ gamma / variance


@pytest.mark.parametrize("control", ["none", "kernel"])
@pytest.mark.parametrize("bandwidth", [0.25, np.inf])
@pytest.mark.parametrize("calls", [73, 121])
def test_intervals_cover(control, bandwidth, calls):
    its = terms(0)
    coef, fidelity = truth(its, bandwidth)
    covered, of_fidelity, values = [], [], []
    for seed in range(repeats(200, 40)):
        options = {"control": control, "bandwidth": bandwidth, "max_calls": calls, "rng": seed}
        explanation = TextExplainer(asking(its), contributions=False, **options)(TEXT, progress=False)
        assert explanation.calls[0] <= calls
        values.append(explanation.coefficients.values[0])
        covered.append(np.abs(values[-1] - coef) <= 1.96 * explanation.coefficients.standard_errors[0])
        of_fidelity.append(abs(explanation.fidelity[0] - fidelity) <= 1.96 * explanation.fidelity_errors[0])
    assert np.mean(covered) >= 0.93
    assert np.mean(of_fidelity) >= 0.9
    # unbiased: the mean over seeds is as far off as its scatter allows
    scatter = np.std(values, axis=0, ddof=1) / np.sqrt(len(values))
    assert (np.abs(np.mean(values, axis=0) - coef) < 5.0 * scatter).all()


def test_coefficients_are_fitted_together_where_calls_allow():
    its = {words: value for words, value in terms(1).items() if len(words) == 1}
    explainer = TextExplainer(asking(its), contributions=False, control="none", max_calls=2 * (D + 2) + 2 + 9)
    explanation = explainer(TEXT, progress=False)
    expected = [its.get(frozenset([j]), 0.0) for j in range(D)]
    np.testing.assert_allclose(explanation.coefficients.values[0], expected, atol=1e-9)


@pytest.mark.parametrize("control", ["none", "process"])
def test_warnings_state_the_size_of_the_errors(control):
    explainer = TextExplainer(asking(terms(2)), contributions=False, control=control, max_calls=100)
    explanation = explainer(TEXT, progress=False)
    assert not explanation.converged
    assert any("the order of" in warning and "not certain" in warning for warning in explanation.warnings)
