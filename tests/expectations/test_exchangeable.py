"""Exact expectations under exchangeable designs: every subset in 150 digits, and the papers' propositions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limes
import oracle
import strategies
import words
from effort import crossed, examples
from internals import word_expectations
from limes.designs import ExchangeableDesign, ProductDesign
from limes.exceptions import InputError
from limes.models import forms
from oracle import EXACT

MAKE = {"words": ExchangeableDesign.word_deletions, "superpixels": ExchangeableDesign.superpixel_switches}


def random_products(rng, d, count, outputs=()):
    places = [np.split(rng.permutation(d), np.sort(rng.integers(0, d + 1, 2))) for _ in range(count)]
    products = [(on, off, rng.normal(size=outputs)) for on, off, _ in places]
    return forms.PresenceProducts(products, rng.normal(size=outputs), d)


def check(kind, d, bandwidth, form):
    """The limit is least squares over every subset."""
    values = form.predict(words.subsets(d))
    intercept, coef, _ = words.surrogate(words.law(kind, d, bandwidth), values)
    explanation = limes.limit(MAKE[kind](d, bandwidth), form)
    assert explanation.coef.shape == explanation.standard_errors.shape == coef.shape
    size = np.abs(values).max()
    assert oracle.error(explanation.coef, coef, size) < EXACT
    assert oracle.error(explanation.intercept, intercept, size) < EXACT
    assert not explanation.standard_errors.any()


# -- every form against enumeration -----------------------------------------------------------------------

grid = given(
    st.sampled_from(words.KINDS),
    st.integers(2, 7),
    st.sampled_from(words.BANDWIDTHS),
    strategies.rngs,
    st.sampled_from([(), (2,)]),
)


@settings(max_examples=examples(80))
@grid
def test_presence_products(kind, d, bandwidth, rng, outputs):
    check(kind, d, bandwidth, random_products(rng, d, int(rng.integers(1, 10)), outputs))


@pytest.mark.parametrize("kind", words.KINDS)
@pytest.mark.parametrize("bandwidth", words.BANDWIDTHS)
def test_presence_products_of_twelve_words(kind, bandwidth):
    check(kind, 12, bandwidth, random_products(np.random.default_rng(12), 12, 30))


@settings(max_examples=examples(40))
@grid
def test_forests_and_boxes(kind, d, bandwidth, rng, outputs):
    trees = [strategies.random_tree(rng, [np.array([-0.5, 0.0, 0.5])] * d, 4, outputs) for _ in range(3)]
    forest = strategies.as_forest(trees, d, outputs)
    check(kind, d, bandwidth, forest)
    check(kind, d, bandwidth, strategies.leaf_boxes(forest))


@settings(max_examples=examples(40))
@grid
def test_combinations(kind, d, bandwidth, rng, outputs):
    linear = forms.Linear(rng.normal(size=(d, *outputs)), rng.normal(size=outputs))
    parts = [random_products(rng, d, 3, outputs), linear]
    check(kind, d, bandwidth, forms.Combination(parts, rng.normal(size=2), rng.normal(size=outputs)))


@pytest.mark.parametrize(
    ("kind", "bandwidth", "d"),
    crossed(words.KINDS, [1e-200, 1e-3, *words.BANDWIDTHS], [2, 3, 12, 10_000]),
)
def test_sums_explain_themselves_at_any_bandwidth(kind, bandwidth, d):
    rng, design = np.random.default_rng(d), MAKE[kind](d, bandwidth)
    coef, intercept = rng.normal(size=(d, 2)), rng.normal(size=2)
    surrogate = limes.limit(design, forms.Linear(coef, intercept))
    assert oracle.error(surrogate.coef, coef) < EXACT
    # the difference of E f and αΣβ, both of the size of f
    assert np.abs(surrogate.intercept - intercept).max() < EXACT * np.abs(coef).sum()


def test_additive_functions_count_at_one_and_zero():
    design = ExchangeableDesign.word_deletions(3)
    surrogate = limes.limit(design, forms.Additive([np.cos, None, lambda z: 2 * z**3], intercept=1.0))
    assert oracle.error(surrogate.coef, [np.cos(1) - 1, 0.0, 2.0]) < EXACT
    assert surrogate.intercept == pytest.approx(2.0)


def test_a_single_word_and_a_single_superpixel():
    """f(1) - f(0): it was 0 for a word; lime, which keeps the original, gives 3 for any number of rows."""
    form = forms.PresenceProducts([([0], [], 3.0)], 1.0)
    for bandwidth in (1e-3, 0.05, 0.25, np.inf):
        text = limes.limit(ExchangeableDesign.word_deletions(1, bandwidth), form)
        assert text.coef[0] == pytest.approx(3.0, rel=EXACT)
        assert text.intercept == pytest.approx(1.0, rel=EXACT)
    image = limes.limit(ExchangeableDesign.superpixel_switches(1), form)
    assert image.coef[0] == pytest.approx(3.0)
    assert image.intercept == pytest.approx(1.0)


@pytest.mark.parametrize("make", MAKE.values())
def test_a_narrow_bandwidth_tends_to_the_limit(make):
    """From where float64 still sees two deletions to where it does not: nothing jumps."""
    form = random_products(np.random.default_rng(1), 6, 8)
    last = limes.limit(make(6, 1e-300), form).coef
    for bandwidth, tolerance in ((0.02, 1e-3), (0.01, 1e-9), (1e-3, 1e-9), (1e-20, 1e-9)):
        assert oracle.error(limes.limit(make(6, bandwidth), form).coef, last) < tolerance


def test_a_design_may_have_more_words_than_products_name():
    design = ExchangeableDesign.word_deletions(6)
    products = [([0, 1], [2], 1.0)]
    surrogate = limes.limit(design, forms.PresenceProducts(products))
    assert np.array_equal(surrogate.coef, limes.limit(design, forms.PresenceProducts(products, size=6)).coef)
    assert np.ptp(surrogate.coef[3:]) < 1e-12


def test_no_products_at_all():
    surrogate = limes.limit(ExchangeableDesign.word_deletions(4), forms.PresenceProducts([], 2.0))
    assert not surrogate.coef.any()
    assert surrogate.intercept == 2.0


def test_thousands_of_words_and_products(monkeypatch):
    """Blocks change nothing; a sum of single words is itself."""
    d, rng = 2000, np.random.default_rng(0)
    design = ExchangeableDesign.word_deletions(d)
    coef = rng.normal(size=d)
    single = forms.PresenceProducts([([j], [], c) for j, c in enumerate(coef)])
    assert oracle.error(limes.limit(design, single).coef, coef) < EXACT
    mixed = random_products(rng, d, 20)
    whole = limes.limit(design, mixed).coef
    monkeypatch.setattr(word_expectations, "_BLOCK", 5000)
    assert oracle.error(limes.limit(design, mixed).coef, whole) < oracle.ROUNDING


# -- the paper --------------------------------------------------------------------------------------------


class Paper:
    """α, σ and c_d of the paper, not divided by α₀."""

    def __init__(self, d, bandwidth):
        s = np.arange(1, d + 1)
        psi = np.exp(-((1 - np.sqrt(1 - s / d)) ** 2) / (2 * bandwidth**2))
        self.alpha = [
            np.mean(psi * np.prod([(d - s - k) / (d - k) for k in range(p)], axis=0)) for p in range(d + 1)
        ]
        a0, a1, a2 = self.alpha[:3]
        self.c = (d - 1) * a0 * a2 - d * a1**2 + a0 * a1
        self.sigma = (
            (d - 1) * a2 + a1,
            -a1,
            ((d - 2) * a0 * a2 - (d - 1) * a1**2 + a0 * a1) / (a1 - a2),
            (a1**2 - a0 * a2) / (a1 - a2),
        )


@pytest.mark.parametrize("d", [4, 9])
@pytest.mark.parametrize("bandwidth", [0.25, 1.0, np.inf])
def test_propositions_2_and_13(d, bandwidth):
    """β from E[π f] and E[π z_k f], with the paper's σ's."""
    form, paper = random_products(np.random.default_rng(d), d, 12), Paper(d, bandwidth)
    design = ExchangeableDesign.word_deletions(d, bandwidth)
    z, log_probability = design.enumerate()
    weighted = np.exp(log_probability + design.log_weight) * form.predict(z)
    total, each = weighted.sum(), weighted @ z
    s0, s1, s2, s3 = paper.sigma
    coef = (s1 * total + s2 * each + s3 * (each.sum() - each)) / paper.c
    surrogate = limes.limit(design, form)
    assert oracle.error(surrogate.coef, coef) < EXACT
    assert surrogate.intercept == pytest.approx((s0 * total + s1 * each.sum()) / paper.c, rel=EXACT)


@pytest.mark.parametrize("d", [6, 30])
@pytest.mark.parametrize("p", [0, 1, 2, 4])
@pytest.mark.parametrize("bandwidth", [0.25, np.inf])
def test_propositions_3_and_14(d, p, bandwidth):
    paper = Paper(d, bandwidth)
    s0, s1, s2, s3 = paper.sigma
    ap, aq = paper.alpha[p : p + 2]
    intercept = (s0 * ap + p * s1 * ap + (d - p) * s1 * aq) / paper.c
    inside = (s1 * ap + s2 * ap + (d - p) * s3 * aq + (p - 1) * s3 * ap) / paper.c
    outside = (s1 * ap + s2 * aq + (d - p - 1) * s3 * aq + p * s3 * ap) / paper.c
    form = forms.PresenceProducts([(np.arange(p), [], 1.0)])
    surrogate = limes.limit(ExchangeableDesign.word_deletions(d, bandwidth), form)
    assert surrogate.intercept == pytest.approx(intercept, rel=1e-7, abs=1e-9)
    assert surrogate.coef[:p] == pytest.approx(inside, rel=1e-7, abs=1e-9)
    assert surrogate.coef[p:] == pytest.approx(outside, rel=1e-7, abs=1e-9)
    # errata: the difference has σ₂ - σ₃, not σ₂ + σ₃
    mended, printed = ((s2 + sign * s3) * (ap - aq) / paper.c for sign in (-1, 1))
    if p > 0:
        assert surrogate.coef[0] - surrogate.coef[-1] == pytest.approx(mended, rel=1e-7)
        assert surrogate.coef[0] - surrogate.coef[-1] != pytest.approx(printed, rel=1e-3)
    # errata: a single word is p = 1; p = 0 is a constant
    expected = np.zeros(d)
    expected[:1] = 1.0
    if p < 2:
        assert surrogate.coef == pytest.approx(expected * p, abs=1e-9)


def test_equation_39():
    """ν = ∞, d large: β₀ ≈ 4 E f - (3/d) Σ E[f | z_k = 1]; printed with 2 E f."""
    d = 2000
    design = ExchangeableDesign.word_deletions(d, np.inf)
    form = forms.PresenceProducts([([0], [], 1.0), ([1, 2], [3], 2.0)])
    surrogate = limes.limit(design, form)
    mean = design.a(1, 0) + 2 * design.a(2, 1)
    limits = np.full(d, (design.a(2, 0) + 2 * design.a(3, 1)) / design.a(1, 0))
    limits[0] = 1 + 2 * design.a(3, 1) / design.a(1, 0)
    limits[1:3] = (design.a(2, 0) + 2 * design.a(2, 1)) / design.a(1, 0)
    limits[3] = design.a(2, 0) / design.a(1, 0)
    mended, printed = (factor * mean - 3 / d * limits.sum() for factor in (4, 2))
    assert abs(surrogate.intercept - mended) < 20 / d
    assert abs(surrogate.intercept - printed) > 0.5


# -- what does not go together ----------------------------------------------------------------------------

PRODUCT = ProductDesign.from_bins([[0, 1, 2]], [[0.5, 1.5]], [[0.3, 0.3]], [0.2], 1.0)


@pytest.mark.parametrize(
    ("design", "form", "parts"),
    [
        (PRODUCT, forms.PresenceProducts([([0], [], 1.0)]), ["PresenceProducts", "ProductDesign", "Exchang"]),
        (PRODUCT, forms.NormalizedLinear([1.0], [1.0]), ["NormalizedLinear", "ProductDesign", "words"]),
        (MAKE["words"](2), forms.Linear([1.0]), ["2 words", "form has 1"]),
        (MAKE["words"](2), forms.NormalizedLinear([1.0], [1.0]), ["2 words", "form has 1"]),
        (MAKE["words"](2), forms.PresenceProducts([([2], [], 1.0)]), ["2 words", "reads 3"]),
        (MAKE["words"](2), "a text", ["expected a form", "str"]),
        ("a text", forms.Linear([1.0]), ["expected a design", "ProductDesign", "str"]),
    ],
)
def test_errors_say_what_does_not_fit(design, form, parts):
    with pytest.raises(InputError) as caught:
        limes.limit(design, form)
    for part in parts:
        assert part in str(caught.value)


# -- products over switches ---------------------------------------------------------------------------------


@given(
    kind=st.sampled_from(words.KINDS),
    d=st.integers(2, 7),
    bandwidth=st.sampled_from(words.BANDWIDTHS),
    products=st.integers(1, 4),
    outputs=st.sampled_from([(), (2,)]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=examples(40))
def test_switch_products(kind, d, bandwidth, products, outputs, seed):
    rng = np.random.default_rng(seed)
    on, off = rng.normal(size=(2, products, d)) * (rng.random((2, products, d)) < 0.9)
    coef, intercept = rng.normal(size=(products, *outputs)), rng.normal(size=outputs)
    check(kind, d, bandwidth, forms.SwitchProducts(on, off, coef, intercept))


@pytest.mark.parametrize("kind", words.KINDS)
def test_gaussian_kernels_over_switches_are_such_products(kind):
    rng = np.random.default_rng(0)
    check(kind, 6, 0.25, forms.GaussianKernels(rng.random((5, 6)), rng.normal(size=5), 0.7, 1.0))


def test_hundreds_of_superpixels_stay_finite():
    d = 300
    form = forms.SwitchProducts(np.ones((1, d)), np.full((1, d), 0.99), [1.0])
    surrogate = limes.limit(ExchangeableDesign.superpixel_switches(d), form)
    # equal factors: every coefficient is the slope of 0.99^s on the number kept
    counts = ExchangeableDesign.superpixel_switches(d).counts
    slope = counts.between @ 0.99 ** np.arange(d + 1.0)
    assert oracle.error(surrogate.coef, np.full(d, slope)) < EXACT


def test_bad_products_are_refused():
    with pytest.raises(InputError, match=r"on \(m, d\) and off \(m, d\) and coef"):
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
