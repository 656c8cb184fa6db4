"""Forms over words: predictions, refused arguments, and trees as presence products."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import strategies
import words
from effort import examples
from internals import Switches, presence_products
from limes.exceptions import InputError
from limes.models import forms

# -- presence products ------------------------------------------------------------------------------------


def plainly(products, intercept, z):
    total = np.full(len(z), float(intercept))
    for on, off, coef in products:
        for i, row in enumerate(z):
            total[i] += coef * np.prod([row[j] for j in on]) * np.prod([1 - row[j] for j in off])
    return total


@given(strategies.rngs, st.integers(1, 6), st.integers(0, 8))
def test_presence_products_add_up(rng, d, count):
    """Words may be named twice, and on both sides."""
    products = [
        (rng.integers(0, d, rng.integers(0, 4)), rng.integers(0, d, rng.integers(0, 3)), rng.normal())
        for _ in range(count)
    ]
    form, z = forms.PresenceProducts(products, 0.5, d), words.subsets(d)
    assert form.size == d
    assert oracle.error(form.predict(z), plainly(products, 0.5, z), 1.0) < oracle.ROUNDING


def test_many_outputs_and_one():
    form = forms.PresenceProducts([([0], [], [1.0, 2.0]), ([], [1], [3.0, 4.0])], [0.0, 10.0])
    assert form.predict([[1, 0], [0, 1]]).tolist() == [[4.0, 16.0], [0.0, 10.0]]
    assert form.select(1).predict([[1, 0]]).tolist() == [16.0]
    assert form.select([1, 0]).predict([[1, 0]]).tolist() == [[16.0, 4.0]]


def test_size_is_the_largest_word_unless_it_is_passed():
    products = [([2], [], 1.0)]
    assert forms.PresenceProducts(products).size == 3
    assert forms.PresenceProducts(products, size=7).size == 7
    assert forms.PresenceProducts(products).predict(np.ones((2, 7))).tolist() == [1.0, 1.0]
    assert forms.PresenceProducts([]).predict(np.ones((2, 3))).tolist() == [0.0, 0.0]


def test_contradictions_are_dropped():
    form = forms.PresenceProducts([([0], [0], 5.0), ([1, 1], [], 2.0), ([], [], 1.0)])
    assert form.coef.tolist() == [2.0, 1.0]
    assert form.word.tolist() == [1]
    assert form.predict([[0, 1], [1, 0]]).tolist() == [3.0, 1.0]


def test_many_products_are_evaluated_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    products = [(rng.choice(8, 3, replace=False), [], rng.normal()) for _ in range(50)]
    z, form = words.subsets(8), forms.PresenceProducts(products)
    whole = form.predict(z)
    monkeypatch.setattr("limes.models.forms._base._BLOCK", 1000)
    assert oracle.error(form.predict(z), whole) < oracle.ROUNDING


@pytest.mark.parametrize(
    ("products", "options", "parts"),
    [
        ([([-1], [], 1.0)], {}, ["product 0", ">= 0", "-1"]),
        ([([0], [], 1.0), ([0.5], [], 1.0)], {}, ["product 1", "0.5"]),
        ([([0], ["word"], 1.0)], {}, ["product 0", "word"]),
        ([([5], [], 1.0)], {"size": 5}, ["word 5", "there are 5"]),
        ([([0], [], np.nan)], {}, ["coef", "nan"]),
        ([([0], [], 1.0), ([0], [], [1.0, 2.0])], {}, ["coefs", "shapes"]),
        ([([0], [], 1.0)], {"intercept": np.inf}, ["intercept", "inf"]),
    ],
)
def test_errors_of_presence_products(products, options, parts):
    with pytest.raises(InputError) as caught:
        forms.PresenceProducts(products, **options)
    for part in parts:
        assert part in str(caught.value)


def test_rows_need_a_column_a_word():
    with pytest.raises(InputError, match=r"rows must be \(n, 3 or more\).*\(1, 2\)"):
        forms.PresenceProducts([([2], [], 1.0)]).predict([[1, 0]])
    for z, message in (
        ([[1.0]], r"rows must be \(n, 2\)"),
        ([[1.0, 1.0, 1.0]], r"rows must be \(n, 2\)"),
        ([1.0, 1.0], "x must have 2 dimensions"),
    ):
        with pytest.raises(InputError, match=message):
            forms.NormalizedLinear([1.0, 1.0], [1.0, 1.0]).predict(z)


# -- normalised linear ------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_normalised_linear_is_what_scikit_learn_computes(norm):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LinearRegression

    texts = ["good food good wine", "bad food", "good service", "slow bad service", "wine wine"]
    vectorizer = TfidfVectorizer(norm=norm).fit(texts)
    model = LinearRegression().fit(vectorizer.transform(texts), [3.0, -1.0, 2.0, -2.0, 0.5])
    text = ["good", "good", "bad", "wine", "unknown", "good", "slow"]
    distinct = sorted(set(text))
    counts = np.array([text.count(w) for w in distinct])
    place = [vectorizer.vocabulary_.get(w) for w in distinct]
    mv = counts * np.array([0.0 if p is None else vectorizer.idf_[p] for p in place])
    lam = np.array([0.0 if p is None else model.coef_[p] for p in place])
    form = forms.NormalizedLinear(lam * mv, mv**2 if norm == "l2" else mv, norm, model.intercept_)
    z = words.subsets(len(distinct))
    kept = [" ".join(w for w in text if row[distinct.index(w)]) for row in z]
    theirs = model.predict(vectorizer.transform(kept))
    assert oracle.error(form.predict(z), theirs) < oracle.ROUNDING


def test_an_empty_text_has_the_intercept():
    form = forms.NormalizedLinear([1.0, 0.0], [4.0, 0.0], intercept=7.0)
    assert form.predict([[0, 0], [0, 1], [1, 0], [1, 1]]).tolist() == [7.0, 7.0, 7.5, 7.5]


def test_outputs_of_a_normalised_form():
    form = forms.NormalizedLinear([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0], "l1", [0.0, 1.0])
    assert form.predict([[1, 1]]).tolist() == [[2.0, 4.0]]
    assert form.select(1).predict([[1, 1]]).tolist() == [4.0]
    assert form.size == 2


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (([1.0, 2.0], [1.0]), ["c (d, ...)", "a (d)", "(2,)", "(1,)"]),
        (([1.0, 2.0], [1.0, -3.0]), ["a[1]", "-3"]),
        (([1.0, 2.0], [1.0, 0.0]), ["word 1", "a = 0", "c = 0"]),
        # the entry of one output is enough
        (([[1.0, 2.0], [0.0, 3.0]], [1.0, 0.0]), ["word 1", "a = 0", "c = 0"]),
        (([1.0], [np.nan]), ["a must be finite"]),
        (([np.inf], [1.0]), ["c must be finite"]),
        (([1.0], [[1.0]]), ["a must have 1 dim"]),
        (([1.0], [1.0], "max"), ["'l1'", "'l2'", "'max'"]),
    ],
)
def test_errors_of_normalised_forms(arguments, parts):
    with pytest.raises(InputError) as caught:
        forms.NormalizedLinear(*arguments)
    for part in parts:
        assert part in str(caught.value)


# -- trees and boxes --------------------------------------------------------------------------------------


def counts_of(z, columns, values, size):
    """The model's columns at every subset of words."""
    x = np.zeros((len(z), size))
    for j, column in enumerate(columns):
        if column >= 0:
            x[:, column] = values[j] * z[:, j]
    return x


def over_words(form, columns, values):
    """The form over words, of which word j makes column columns[j] values[j]."""
    columns = np.asarray(columns)
    read = columns >= 0
    switches = Switches(np.zeros(form.size), np.zeros(form.size), np.full(form.size, -1))
    switches.labels[columns[read]], switches.shown[columns[read]] = (
        np.flatnonzero(read),
        np.array(values)[read],
    )
    return presence_products(form, switches, len(columns))


@settings(max_examples=examples(150))
@given(strategies.rngs, st.integers(1, 5), st.sampled_from([(), (2,)]))
def test_trees_and_boxes_over_counts_are_presence_products(rng, d, outputs):
    """Words in any columns, some unknown to the model, columns that no word has, thresholds below 0."""
    size = 6
    cuts = [np.array([-0.5, 0.0, 0.5, 1.0, 1.5, 2.5])] * size
    forest = strategies.as_forest(
        [strategies.random_tree(rng, cuts, 5, outputs) for _ in range(3)], size, outputs
    )
    columns = rng.permutation(size)[:d]
    columns[rng.random(d) < 0.2] = -1
    values, z = rng.integers(1, 4, d).astype(float), words.subsets(d)
    expected = forest.predict(counts_of(z, columns, values, size))
    for form in (forest, strategies.leaf_boxes(forest)):
        result = over_words(form, columns, values)
        assert result.size == d
        assert oracle.error(result.predict(z), expected, 1.0) < oracle.ROUNDING


def test_each_column_is_its_word_by_default():
    forest = strategies.as_forest(
        [strategies.random_tree(np.random.default_rng(0), [np.array([0.5])] * 4, 4)], 4
    )
    z = words.subsets(4)
    assert oracle.error(presence_products(forest).predict(z), forest.predict(z)) < oracle.ROUNDING


def test_category_splits_read_counts_too():
    forest = forms.Forest(
        feature=np.array([0, -1, -1]),
        threshold=np.zeros(3),
        left=np.array([1, -1, -1]),
        right=np.array([2, -1, -1]),
        missing_left=np.zeros(3, dtype=bool),
        value=np.array([0.0, 1.0, 2.0]),
        roots=np.array([0]),
        intercept=np.zeros(()),
        size=1,
        set_of=np.array([0, -1, -1]),
        sets=np.array([[False, False, True]]),
    )
    assert over_words(forest, [0], [2.0]).predict([[0], [1]]).tolist() == [2.0, 1.0]
    assert presence_products(forest).predict([[0], [1]]).tolist() == [2.0, 2.0]


def test_paths_that_no_text_takes_are_left_out():
    """x_0 <= 0.5, else x_0 <= 1.5, else x_1 <= 0.5: a count of 1 never gets to the last test."""
    nothing = -np.ones(7, dtype=int)
    tree = forms.Forest(
        feature=np.array([0, -1, 0, -1, 1, -1, -1]),
        threshold=np.array([0.5, 0, 1.5, 0, 0.5, 0, 0]),
        left=np.array([1, -1, 3, -1, 5, -1, -1]),
        right=np.array([2, -1, 4, -1, 6, -1, -1]),
        missing_left=np.zeros(7, dtype=bool),
        value=np.arange(7.0),
        roots=np.array([0]),
        intercept=np.zeros(()),
        size=2,
        set_of=nothing,
    )
    once, twice = presence_products(tree), over_words(tree, [0, 1], [2.0, 1.0])
    assert sorted(once.coef) == [1.0, 3.0]
    assert sorted(twice.coef) == [1.0, 5.0, 6.0]
    assert np.bincount(twice.product).tolist() == [1, 2, 2]
    assert over_words(tree, [0, -1], [2.0, 1.0]).predict([[0, 0], [1, 1]]).tolist() == [1.0, 5.0]
    assert over_words(tree, [-1, -1], [1.0, 1.0]).coef.tolist() == [1.0]
