"""Products over switches against every subset, in 150 digits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limes
import words
from limes.designs import ExchangeableDesign
from limes.exceptions import InputError
from limes.models import forms
from oracle import EXACT, error

MAKE = {"words": ExchangeableDesign.word_deletions, "superpixels": ExchangeableDesign.superpixel_switches}


@given(
    kind=st.sampled_from(words.KINDS),
    d=st.integers(2, 7),
    bandwidth=st.sampled_from(words.BANDWIDTHS),
    products=st.integers(1, 4),
    outputs=st.sampled_from([(), (2,)]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=40)
def test_exact_against_every_subset(kind, d, bandwidth, products, outputs, seed):
    rng = np.random.default_rng(seed)
    on, off = rng.normal(size=(2, products, d)) * (rng.random((2, products, d)) < 0.9)
    form = forms.SwitchProducts(on, off, rng.normal(size=(products, *outputs)), rng.normal(size=outputs))
    values = form.predict(words.subsets(d))
    found = limes.limit(MAKE[kind](d, bandwidth), form)
    intercept, coef, _ = words.surrogate(words.law(kind, d, bandwidth), values)
    size = np.abs(values).max()
    assert error(found.coef, coef, size) < EXACT
    assert error(found.intercept, intercept, size) < EXACT


@pytest.mark.parametrize("kind", words.KINDS)
def test_gaussian_kernels_over_switches_are_such_products(kind):
    rng = np.random.default_rng(0)
    form = forms.GaussianKernels(rng.random((5, 6)), rng.normal(size=5), 0.7, 1.0)
    found = limes.limit(MAKE[kind](6), form)
    intercept, coef, _ = words.surrogate(words.law(kind, 6, 0.25), form.predict(words.subsets(6)))
    assert error(found.coef, coef) < EXACT
    assert error(found.intercept, intercept) < EXACT


def test_hundreds_of_superpixels_stay_finite():
    d = 300
    form = forms.SwitchProducts(np.ones((1, d)), np.full((1, d), 0.99), [1.0])
    found = limes.limit(ExchangeableDesign.superpixel_switches(d), form)
    # equal factors: every coefficient is the slope of 0.99^s on the number kept
    counts = ExchangeableDesign.superpixel_switches(d).counts
    slope = counts.between @ 0.99 ** np.arange(d + 1.0)
    assert error(found.coef, np.full(d, slope)) < EXACT


def test_bad_products_are_refused():
    with pytest.raises(InputError, match="row a product"):
        forms.SwitchProducts(np.ones((2, 3)), np.ones((2, 2)), [1.0, 1.0])
    with pytest.raises(InputError, match="must be finite"):
        forms.SwitchProducts([[np.nan]], [[1.0]], [1.0])
    with pytest.raises(InputError, match=r"\(n, 2\)"):
        forms.SwitchProducts([[1.0, 1.0]], [[1.0, 1.0]], [1.0]).predict([[1.0]])
    with pytest.raises(InputError, match="the design has 3 words, the form has 2"):
        limes.limit(
            ExchangeableDesign.superpixel_switches(3),
            forms.SwitchProducts(np.ones((1, 2)), np.ones((1, 2)), [1.0]),
        )
