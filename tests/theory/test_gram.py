"""Σ and Σ⁻¹ of every kind of design against enumeration; the factor of TF-IDF against quadrature."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.integrate import quad

import limes
from limes.designs import ExchangeableDesign, ProductDesign
from limes.exceptions import InputError
from limes.models import forms
from limes.theory import gram, inverse_gram, tfidf_factor
from oracle import EXACT
from paper import paper


def weighted_moments(z, mass):
    """E[π Z Zᵀ] by the rows and their masses π · P."""
    rows = np.column_stack([np.ones(len(z)), z])
    return rows.T @ (mass[:, None] * rows)


def assert_both(design, expected):
    scale = np.abs(expected).max()
    assert gram(design) == pytest.approx(expected, rel=EXACT, abs=EXACT * scale)
    inverse = np.linalg.inv(expected)
    assert inverse_gram(design) == pytest.approx(inverse, rel=1e-8, abs=1e-8 * np.abs(inverse).max())


@pytest.mark.parametrize("bandwidth", [0.6, 2.0, np.inf])
@pytest.mark.parametrize("frequencies", [None, [[0.5, 0.2, 0.3]] * 3])
def test_the_gram_matrix_of_bins(bandwidth, frequencies):
    """All 3^3 patterns of bins, weighted by exp(-changed/(2ν²))."""
    design = ProductDesign.from_bins(
        [[0, 1, 2, 3]] * 3,
        [[0.5, 1.5, 2.5]] * 3,
        [[0.3] * 3] * 3,
        [0.2, 1.5, 2.9],
        bandwidth,
        frequencies=frequencies,
    )
    shares = np.array([1 / 3] * 3 if frequencies is None else frequencies[0])
    bins = np.array(list(product(range(3), repeat=3)))
    z = (bins == [0, 1, 2]).astype(float)
    changed = 3 - z.sum(axis=1)
    assert_both(
        design, weighted_moments(z, shares[bins].prod(axis=1) * np.exp(-changed / (2 * bandwidth**2)))
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_gram_matrix_of_smooth_weights(seed):
    """Lemmas 8.1 and 8.2 of 2020, by quadrature: E[π], E[π z_j] and E[π z_j z_k]."""
    setting = paper(seed, weights="euclidean")
    shares = [setting.e(j)[setting.cells[j]] / setting.p for j in range(setting.d)]
    whole = [setting.c(j) for j in range(setting.d)]
    means = np.array([1.0, *(a / c for a, c in zip(shares, whole, strict=True))])
    expected = np.outer(means, means)
    expected[np.diag_indices(setting.d + 1)] = means
    assert_both(setting.design(), expected * setting.C)


@pytest.mark.parametrize("kind", ["words", "superpixels"])
@pytest.mark.parametrize("bandwidth", [0.1, 0.25, np.inf])
def test_the_gram_matrix_of_removed_features(kind, bandwidth):
    """All 2^6 sets, by their definitions: s uniform on 1..d, or each feature switched off by a coin."""
    d = 6
    make = ExchangeableDesign.word_deletions if kind == "words" else ExchangeableDesign.superpixel_switches
    z = np.array(list(product([0.0, 1.0], repeat=d)))
    removed = (d - z.sum(axis=1)).astype(int)
    weight = np.exp(-((1 - np.sqrt(1 - removed / d)) ** 2) / (2 * bandwidth**2))
    if kind == "words":
        law = np.where(removed > 0, 1 / d / np.array([comb(d, s) for s in removed]), 0.0)
    else:
        law = np.full(len(z), 0.5**d)
    assert_both(make(d, bandwidth), weighted_moments(z, law * weight))


def test_the_gram_matrix_of_rows_that_occur():
    x = np.random.default_rng(0).integers(3, size=(60, 3)).astype(float)
    explainer = limes.TabularExplainer(
        lambda x: x[:, 0], x, law="joint", categorical=[0, 1, 2], bandwidth=1.2
    )
    z = (x == x[0]).astype(float)
    weight = np.exp(-(3 - z.sum(axis=1)) / (2 * 1.2**2)) / len(x)
    assert_both(explainer.design(x[:1]), weighted_moments(z, weight))


def test_the_gram_matrix_of_a_model_gives_its_coefficients():
    """β = Σ⁻¹ E[π Z f]."""
    design = ExchangeableDesign.word_deletions(5)
    surrogate = limes.limit(design, forms.PresenceProducts([([0, 1], [], 1.0)]))
    moments = gram(design)
    gamma = np.array(
        [moments[1, 2], moments[1, 2], moments[1, 2], *[np.exp(design.log_weight) * design.a(3, 0)] * 3]
    )
    beta = inverse_gram(design) @ gamma
    assert beta == pytest.approx([float(surrogate.intercept), *surrogate.coef], rel=EXACT, abs=EXACT)


def test_a_singular_gram_is_refused():
    design = ProductDesign.from_bins(
        [[0, 1], [0, 1, 2]], [[0.5], [0.5, 1.5]], [[0.3], [0.3, 0.3]], [0.2, 0.2], 1.0
    )
    assert np.linalg.matrix_rank(gram(design)) == 2
    with pytest.raises(InputError, match="no inverse"):
        inverse_gram(design)
    with pytest.raises(InputError, match=r"limes\.designs, got ndarray"):
        gram(np.eye(2))
    wide = ProductDesign.from_bins([[0, 1, 2]] * 1200, [[0.5, 1.5]] * 1200, [[1, 1]] * 1200, [0] * 1200, 0.1)
    with pytest.raises(InputError, match=r"E\[π\] = exp\(-831\.8\)"):
        gram(wide)


# -- the factor of TF-IDF -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", [1e-3, 0.05, 0.25, 0.35, 1.7, 40.0, np.inf])
def test_the_factor_is_the_ratio_of_its_integrals(bandwidth):
    def integral(power):
        weight = lambda u: np.exp(-((1 - np.sqrt(u)) ** 2) / (2 * bandwidth**2))  # noqa: E731
        near = max(0.0, 1 - 24 * bandwidth)  # below it the weight is less than 1e-31
        options = {"epsabs": 0.0, "epsrel": 1e-12, "limit": 200}
        return quad(lambda u: u**power * (1 - u) * weight(u), near, 1.0, **options)[0]

    assert tfidf_factor(bandwidth) == pytest.approx(integral(0.5) / integral(1.0), rel=1e-10)


@pytest.mark.parametrize("bandwidth", [0.05, 0.25, np.inf])
def test_the_factor_is_that_of_a_long_text(bandwidth):
    """2,000 words of equal weight: c λ φ with φ = 1/√d, but for terms of the order 1/d."""
    d = 2000
    design = ExchangeableDesign.word_deletions(d, bandwidth)
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=d)
    coef = limes.limit(design, forms.NormalizedLinear(slopes, np.ones(d))).coef
    slope, _ = np.polyfit(slopes / np.sqrt(d), coef, 1)
    assert slope == pytest.approx(tfidf_factor(bandwidth), rel=2e-3)


def test_an_invalid_bandwidth_is_refused():
    with pytest.raises(InputError, match="bandwidth"):
        tfidf_factor(0.0)
