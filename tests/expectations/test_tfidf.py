"""Normalised linear forms: against every subset in 150 digits, and in groups of equal words beyond."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import limes
import oracle
import strategies
import words
from effort import crossed, examples, repeats
from internals import LARGEST_GROUP, SharedWords, _threads, shared_words, word_expectations
from limes.designs import ExchangeableDesign
from limes.exceptions import InputError
from limes.models import forms
from oracle import EXACT

MAKE = {"words": ExchangeableDesign.word_deletions, "superpixels": ExchangeableDesign.superpixel_switches}
NORMS = ("l2", "l1")


def random_form(rng, d, norm, *, orders=6.0, unknown=0.2, outputs=()):
    """TF-IDF weights m_j v_j over ``orders`` orders of magnitude; some words are not in the vocabulary."""
    load = 10.0 ** rng.uniform(-orders / 2, orders / 2, d)
    load[rng.random(d) < unknown] = 0.0
    c = rng.normal(size=(d, *outputs)) * load.reshape(-1, *(1,) * len(outputs))
    return forms.NormalizedLinear(c, load**2 if norm == "l2" else load, norm, rng.normal(size=outputs))


def check(kind, d, bandwidth, form):
    """The limit is least squares over every subset; each output against its own size."""
    values = form.predict(words.subsets(d))
    intercept, coef, _ = words.surrogate(words.law(kind, d, bandwidth), values)
    explanation = limes.limit(MAKE[kind](d, bandwidth), form)
    assert explanation.coef.shape == explanation.standard_errors.shape == coef.shape
    for q in np.ndindex(values.shape[1:]):
        size = np.abs(values[:, *q]).max()
        assert oracle.error(explanation.coef[:, *q], coef[:, *q], size) < EXACT
        assert oracle.error(explanation.intercept[q], intercept[q], size) < EXACT
    assert not explanation.standard_errors.any()


# -- every subset -----------------------------------------------------------------------------------------


@settings(max_examples=examples(120))
@given(
    st.sampled_from(words.KINDS),
    st.integers(2, 7),
    st.sampled_from(words.BANDWIDTHS),
    strategies.rngs,
    st.sampled_from([(), (2,)]),
    st.sampled_from(NORMS),
)
def test_few_words(kind, d, bandwidth, rng, outputs, norm):
    check(kind, d, bandwidth, random_form(rng, d, norm, outputs=outputs))


@pytest.mark.parametrize(
    ("kind", "bandwidth", "norm", "unknown"), crossed(words.KINDS, words.BANDWIDTHS, NORMS, [0.0, 0.4])
)
def test_twelve_words(kind, bandwidth, norm, unknown):
    check(kind, 12, bandwidth, random_form(np.random.default_rng(12), 12, norm, unknown=unknown))


@pytest.mark.parametrize("norm", NORMS)
def test_weights_over_twelve_orders_of_magnitude(norm):
    for seed in range(5):
        check("words", 8, 0.25, random_form(np.random.default_rng(seed), 8, norm, orders=12.0))


@pytest.mark.parametrize("scale", [1e-150, 1e-12, 1e12, 1e150])
def test_the_unit_of_the_weights_does_not_matter(scale):
    form = random_form(np.random.default_rng(0), 9, "l2")
    design = ExchangeableDesign.word_deletions(9)
    other = forms.NormalizedLinear(form.c * scale, form.a * scale * scale, "l2", form.intercept)
    assert oracle.error(limes.limit(design, other).coef, limes.limit(design, form).coef) < EXACT


def test_texts_without_any_known_word_have_no_coefficients():
    form = forms.NormalizedLinear(np.zeros((5, 2)), np.zeros(5), intercept=[1.0, 2.0])
    surrogate = limes.limit(ExchangeableDesign.word_deletions(5), form)
    assert not surrogate.coef.any()
    assert surrogate.intercept.tolist() == [1.0, 2.0]


def test_one_known_word_is_a_presence():
    """c z / √(a z) is c/√a where the word is left."""
    form = forms.NormalizedLinear([0.0, 6.0, 0.0, 0.0], [0.0, 9.0, 0.0, 0.0])
    surrogate = limes.limit(ExchangeableDesign.word_deletions(4), form)
    assert oracle.error(surrogate.coef, [0.0, 2.0, 0.0, 0.0]) < EXACT


@pytest.mark.parametrize("kind", words.KINDS)
def test_a_single_word(kind):
    form = forms.NormalizedLinear([3.0], [9.0], intercept=1.0)
    surrogate = limes.limit(MAKE[kind](1, 0.25), form)
    assert surrogate.coef == pytest.approx(1.0)
    assert surrogate.intercept == pytest.approx(1.0)


# -- words that share columns -----------------------------------------------------------------------------


def sharing_form(rng, d, columns, outputs=()):
    """Words with up to two columns each, some of which meet in one; rows, and weights of the columns."""
    rows = np.zeros((d, columns))
    for word in range(d):
        for column in rng.choice(columns, rng.integers(0, 3), replace=False):
            rows[word, column] = 10.0 ** rng.uniform(-2, 2)
    weights = rng.normal(size=(columns, *outputs))
    form = forms.NormalizedLinear(
        rows @ weights,
        (rows**2).sum(axis=1),
        "l2",
        rng.normal(size=outputs),
        shared_words(csr_array(rows)),
    )
    return form, rows, weights


@settings(max_examples=examples(40))
@given(
    st.sampled_from(words.KINDS),
    st.integers(2, 7),
    st.sampled_from(words.BANDWIDTHS),
    strategies.rngs,
    st.sampled_from([(), (2,)]),
)
def test_words_that_share_columns(kind, d, bandwidth, rng, outputs):
    form, rows, weights = sharing_form(rng, d, max(3, d), outputs)
    z = words.subsets(d)
    norm = np.linalg.norm(z @ rows, axis=1)
    alone = np.where(norm > 0, norm, 1.0).reshape(-1, *(1,) * len(outputs))
    expected = (z @ rows @ weights) / alone + form.intercept
    np.testing.assert_allclose(form.predict(z), expected, rtol=EXACT, atol=EXACT * np.abs(expected).max())
    check(kind, d, bandwidth, form)


def test_shared_words_are_checked():
    with pytest.raises(InputError, match="subsets"):
        SharedWords(np.array([0, 1]), np.zeros(3))
    with pytest.raises(InputError, match="0 for sets of no word and of one"):
        SharedWords(np.array([0, 1]), np.array([0.0, 1.0, 0.0, 1.0]))
    pair = SharedWords(np.array([0, 1]), np.array([0.0, 0.0, 0.0, 2.0]))
    with pytest.raises(InputError, match="each in one group"):
        forms.NormalizedLinear([1.0, 1.0], [1.0, 1.0], shared=(pair, pair))
    assert shared_words(csr_array(np.ones((LARGEST_GROUP + 1, 1)))) is None


# -- many words -------------------------------------------------------------------------------------------


def of_groups(p, sizes, c, a, power, together=0.0):
    """Coefficients of groups of equal words: least squares over how many of each group are kept.

    s words of the last group add s (s - 1) ``together`` to the norm.
    """
    d = sum(sizes)
    kept = np.stack(np.meshgrid(*(np.arange(n + 1) for n in sizes), indexing="ij"), axis=-1)
    kept = kept.reshape(-1, len(sizes))
    ways = np.array([math.prod(map(math.comb, sizes, row)) / math.comb(d, sum(row)) for row in kept.tolist()])
    weights = ways * p[d - kept.sum(axis=1)]
    size = kept @ np.asarray(a) + together * kept[:, -1] * (kept[:, -1] - 1)
    values = np.divide(kept @ np.asarray(c), size**power, out=np.zeros(len(kept)), where=size > 0)
    root = np.sqrt(weights)
    design = np.column_stack([np.ones(len(kept)), kept]) * root[:, None]
    solution, *_ = np.linalg.lstsq(design, values * root, rcond=None)
    return solution[0], solution[1:]


@pytest.mark.parametrize(
    ("sizes", "kind", "bandwidth"),
    crossed([(30, 20, 10), (290, 7, 3), *repeats([(100, 60, 40)], [])], words.KINDS, words.BANDWIDTHS),
)
def test_groups_of_equal_words(sizes, kind, bandwidth):
    """Up to 300 words, one group of them unknown; enough for several blocks and threads."""
    c, a, d = (1.0, -30.0, 0.0), (1.0, 400.0, 0.0), sum(sizes)
    design = MAKE[kind](d, bandwidth)
    place = np.random.default_rng(0).permutation(np.repeat(np.arange(3), sizes))
    for norm, power in (("l2", 0.5), ("l1", 1.0)):
        form = forms.NormalizedLinear(np.array(c)[place], np.array(a)[place], norm)
        intercept, coef = of_groups(design.counts.law, sizes, c, a, power)
        surrogate = limes.limit(design, form)
        assert oracle.error(surrogate.coef, coef[place]) < EXACT
        assert oracle.error(surrogate.intercept, intercept, 1.0) < EXACT


@pytest.mark.parametrize(
    ("sizes", "kind", "bandwidth"), crossed([(20, 15, 2), (120, 90, 3)], words.KINDS, words.BANDWIDTHS)
)
def test_spellings_that_share_a_column_among_many_words(sizes, kind, bandwidth):
    c, a, load, d = (1.0, -30.0, 8.0), (1.0, 400.0, 9.0), 3.0, sum(sizes)
    design = MAKE[kind](d, bandwidth)
    place = np.random.default_rng(0).permutation(np.repeat(np.arange(3), sizes))
    rows = np.diag(np.sqrt(np.array(a)[place]))
    rows[place == 2, :] = 0.0
    rows[place == 2, np.argmax(place == 2)] = load
    form = forms.NormalizedLinear(
        np.array(c)[place], np.array(a)[place], shared=shared_words(csr_array(rows))
    )
    intercept, coef = of_groups(design.counts.law, sizes, c, a, 0.5, together=load**2)
    surrogate = limes.limit(design, form)
    assert oracle.error(surrogate.coef, coef[place]) < EXACT
    assert oracle.error(surrogate.intercept, intercept, 1.0) < EXACT


@pytest.mark.parametrize("kind", words.KINDS)
@pytest.mark.parametrize("bandwidth", [1e-200, 1e-3, *words.BANDWIDTHS])
def test_equal_words_share_one_slope(kind, bandwidth):
    """f = √r: each word has the slope of √r on r; between 399 and 398 words where ν → 0, ten digits of it."""
    d = 400
    design = MAKE[kind](d, bandwidth)
    surrogate = limes.limit(design, forms.NormalizedLinear(np.ones(d), np.ones(d)))
    law, kept = design.counts.law.astype(np.longdouble), np.arange(d, -1, -1).astype(np.longdouble)
    if bandwidth == 1e-200:
        # only the two likeliest numbers of kept words count
        top = d if kind == "superpixels" else d - 1
        law = np.where((kept == top) | (kept == top - 1), np.longdouble(0.5), 0)
    offset = kept - law @ kept
    slope = (law * offset) @ np.sqrt(kept) / (law @ offset**2)
    assert oracle.error(surrogate.coef, np.full(d, slope)) < EXACT


def test_order_of_words_does_not_matter():
    form = random_form(np.random.default_rng(0), 150, "l2")
    design, shuffled = ExchangeableDesign.word_deletions(150), np.random.default_rng(1).permutation(150)
    other = forms.NormalizedLinear(form.c[shuffled], form.a[shuffled], "l2", form.intercept)
    assert oracle.error(limes.limit(design, other).coef, limes.limit(design, form).coef[shuffled]) < EXACT


def test_unknown_words_equal_known_words_without_weight():
    """The hypergeometric shortcut, against words of next to no weight inside the recursion."""
    form = random_form(np.random.default_rng(3), 40, "l2", orders=1.0, unknown=0.3)
    design = ExchangeableDesign.word_deletions(40)
    tiny = np.where(form.a == 0, 1e-24, form.a)
    nearly = limes.limit(design, forms.NormalizedLinear(form.c, tiny, "l2", form.intercept))
    assert oracle.error(nearly.coef, limes.limit(design, form).coef) < EXACT


def test_blocks_change_nothing(monkeypatch):
    """For hypergeometric tables: ``tests/kernels`` has texts longer than a block of the recursion."""
    form = random_form(np.random.default_rng(4), 90, "l2")
    design = ExchangeableDesign.word_deletions(90)
    whole = limes.limit(design, form).coef
    monkeypatch.setattr(word_expectations, "_CELLS", 500)
    assert oracle.error(limes.limit(design, form).coef, whole) < oracle.ROUNDING


def test_any_number_of_threads_gives_the_same_digits(monkeypatch):
    form = random_form(np.random.default_rng(5), 180, "l2", outputs=(2,))
    design = ExchangeableDesign.word_deletions(180)
    whole = limes.limit(design, form).coef
    monkeypatch.setattr(_threads, "WORKERS", 1)
    assert np.array_equal(limes.limit(design, form).coef, whole)


# -- quadrature -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("smallest", [0.9, 1e-3, 1e-6, 1e-12, 1e-24])
def test_nodes_give_the_power_everywhere(power, smallest):
    t, weights = word_expectations.nodes(power, smallest)
    y = np.append(np.exp(np.linspace(np.log(smallest), 0, 2000)), [smallest, 1.0])
    result = np.exp(-np.outer(y, t)) @ weights
    assert np.abs(result * y**power - 1).max() < 1e-12
    assert len(t) < 45 + 4 * np.log(1 / smallest)


# -- the paper --------------------------------------------------------------------------------------------


def rule(d, bandwidth):
    """β_j / φ_j for f = φ_j, equal weights."""
    c = np.zeros(d)
    c[0] = 1.0
    design = ExchangeableDesign.word_deletions(d, bandwidth)
    return float(limes.limit(design, forms.NormalizedLinear(c, np.ones(d))).coef[0] * np.sqrt(d))


def test_the_rule_of_136():
    """It holds near ν = 0.25 to 0.35 only: equal weights and many words give 1.6 without weights."""
    assert rule(2000, np.inf) == pytest.approx(1.6, abs=1e-3)
    assert [rule(50, nu) for nu in (0.05, 0.1, 0.25)] == pytest.approx([1.05, 1.12, 1.29], abs=0.01)
    assert rule(50, 0.3) == pytest.approx(1.34, abs=0.02)


@pytest.mark.parametrize("d", [200, 800])
def test_proposition_15(d):
    """ν = ∞, equal weights, f = φ_1: E_j and E_jk from the law of how many words are kept."""
    kept = np.arange(d)
    one, two = kept / (kept.sum()), kept * (kept - 1) / (kept * (kept - 1)).sum()
    root = np.sqrt(d / np.maximum(kept, 1))
    ej, ejk = one @ root, two @ root
    phi, c = 1 / np.sqrt(d), np.zeros(d)
    c[0] = 1.0
    surrogate = limes.limit(
        ExchangeableDesign.word_deletions(d, np.inf), forms.NormalizedLinear(c, np.ones(d))
    )
    assert abs(surrogate.coef[0] / phi - (3 * ej - 2 * ejk)) < 10 / d
    assert abs(surrogate.coef[1] / phi - (2 * ejk - 2 * ejk)) < 10 / d
    # errata: the intercept has 2 E_j where 5 E_j is printed
    assert abs(surrogate.intercept / phi - (2 * ej - 2 * ejk)) < 10 / d
    assert abs(surrogate.intercept / phi - (5 * ej - 2 * ejk)) > 1
