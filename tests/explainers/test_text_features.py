"""Sentences, phrases and groups of words as features: right by enumeration, and shown at their positions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from internals import sentences
from limes import TextExplainer
from limes.exceptions import InputError, NotReadableError

TEXT = 'Dr. Lee ate here. "Not good at all!" he said. The bill? 3.5 dollars. Never again'
PARTS = ("Dr. Lee ate here.", '"Not good at all!" he said.', "The bill?", "3.5 dollars.", "Never again")


def count(texts):
    """A model with interactions between what is removed together."""
    return [len(t.split()) + 3.0 * ("good" in t and "bill" in t) - 2.0 * ("Not good" in t) for t in texts]


def enumerated(parts, whole, predict, bandwidth=0.25):
    """β = Σ⁻¹Γ over all deletions of parts (the features' texts, in order) of a text."""
    d = len(parts)
    rows = np.array([z for z in product([0, 1], repeat=d) if sum(z) < d], dtype=float)
    removed = d - rows.sum(axis=1).astype(int)
    sizes = np.bincount(removed, minlength=d + 1)
    w = np.exp(-((1 - np.sqrt(1 - removed / d)) ** 2) / (2 * bandwidth**2)) / sizes[removed]
    f = np.array(predict([whole(z) for z in rows]))
    a = np.column_stack([np.ones(len(rows)), rows])
    return np.linalg.solve(a.T @ (w[:, None] * a), a.T @ (w * f))[1:]


def without(z, parts=PARTS, text=TEXT):
    for part, keep in zip(parts, z, strict=True):
        if not keep:
            text = text.replace(part, "", 1)
    return text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (TEXT, PARTS),
        ("One. two is small. Three", ("One.", "two is small.", "Three")),
        ("this is good . that is bad . and more .", ("this is good .", "that is bad .", "and more .")),
        (
            "Well... maybe. “Really?” she said. e.g. so.",
            ("Well... maybe.", "“Really?” she said.", "e.g. so."),
        ),
        ("one a line\nanother here\nA third", ("one a line", "another here", "A third")),
        (
            "This line is so long that some mail program broke it to\nfit a page. Next.",
            ("This line is so long that some mail program broke it to\nfit a page.", "Next."),
        ),
        ("See No. 5 and Fig. 2, e.g. this. No. Yes", ("See No. 5 and Fig. 2, e.g. this.", "No.", "Yes")),
        ("A title\n\nfirst line\nsecond line. End.", ("A title", "first line", "second line.", "End.")),
        ("よい。悪い！はい", ("よい。", "悪い！", "はい")),
        ("J. K. Rowling wrote… Did she?!  Yes.", ("J. K. Rowling wrote…", "Did she?!", "Yes.")),
        ("no mark", ("no mark",)),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text, parts):
    assert tuple(text[start:end] for start, end in sentences(text)) == parts


def test_sentences_are_exact_by_enumeration_for_any_model():
    explanation = TextExplainer(count, split="sentence")(TEXT)
    assert explanation.feature_names == PARTS
    assert explanation.method == "exact"
    assert explanation.coefficients.values[0] == pytest.approx(
        enumerated(PARTS, without, count), rel=1e-9, abs=1e-12
    )


def test_sentences_of_a_read_pipeline():
    reviews = ["good food", "good service", "bad food", "bad and slow service", "a bill of 3 dollars"]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(reviews, [1, 1, 0, 0, 0])
    text = "The food was good. The service was slow. A bad bill!"
    parts = ("The food was good.", "The service was slow.", "A bad bill!")
    explanation = TextExplainer(model, split="sentence", output="margin")(text)
    truth = enumerated(parts, lambda z: without(z, parts, text), model.decision_function)
    assert explanation.feature_names == parts
    assert explanation.coefficients.values[0] == pytest.approx(truth, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("group", "names", "pieces"),
    [
        (
            ["not good"],
            ("Food", "not good", "bill", "good"),
            [["Food"], ["not good", "Not  good"], ["bill"], ["good"]],
        ),
        (
            {"taste": ["food", "GOOD"]},
            ("taste", "not", "bill", "Not"),
            [["Food", "good", "good", "good"], ["not"], ["bill"], ["Not"]],
        ),
        (lambda word: "b" if word == "bill" else None, ("Food", "not", "good", "b", "Not"), None),
    ],
)
def test_words_of_a_group_are_one_feature(group, names, pieces):
    text = "Food: not good, bill good. Not  good"
    explanation = TextExplainer(count, group=group)(text)
    assert explanation.feature_names == names
    spans = explanation.provenance["spans"]
    shown = [[text[a:b] for a, b in spans[c]] for c in explanation.conditions[0]]
    assert pieces is None or shown == pieces

    def whole(z):
        places = [
            place
            for c, keep in zip(explanation.conditions[0], z, strict=True)
            if not keep
            for place in spans[c]
        ]
        kept = text
        for start, end in sorted(places, reverse=True):
            kept = kept[:start] + kept[end:]
        return kept

    assert explanation.coefficients.values[0] == pytest.approx(
        enumerated(names, whole, count), rel=1e-9, abs=1e-12
    )


def test_groups_hold_without_bags_and_are_told_from_words_of_their_name():
    explanation = TextExplainer(count, group={"good": ["food"]}, bag=False)("good food good food")
    assert explanation.feature_names == ("good", "good", "good")
    assert sorted(len(spans) for spans in explanation.provenance["spans"].values()) == [1, 1, 2]


@pytest.mark.parametrize("group", [3, [], ["a", 1], {"stop": "the"}, {"": ["the"]}, {"stop": [1]}])
def test_a_group_of_another_kind_is_an_error(group):
    with pytest.raises(InputError, match="group"):
        TextExplainer(count, group=group)


def test_a_word_of_two_groups_is_an_error():
    with pytest.raises(InputError, match="'Ham' is in 'meat' and 'food': a word is in one group at most"):
        TextExplainer(count, group={"meat": ["ham", "beef"], "food": ["bread", "Ham"]})
    assert TextExplainer(count, group={"meat": ["ham", "Ham"]})("ham and Ham").feature_names == (
        "meat",
        "and",
    )


def test_a_group_without_a_name_is_an_error():
    with pytest.raises(InputError, match="returned 3 for 'ham'"):
        TextExplainer(count, group=lambda word: 3)("ham")


# -- words that are no features ------------------------------------------------------------------------------


@pytest.mark.parametrize("ignore", [["THE", "a"], {"the", "a"}, lambda word: word.lower() in ("the", "a")])
def test_ignored_words_stay_in_every_text(ignore):
    seen = []

    def watched(texts):
        seen.extend(texts)
        return count(texts)

    text = "The food was good, a bill"
    explanation = TextExplainer(watched, ignore=ignore)(text)
    parts = ("food", "was", "good", "bill")
    assert explanation.feature_names == parts
    assert all(one.startswith("The ") and ", a " in one for one in seen)
    truth = enumerated(parts, lambda z: without(z, parts, text), count)
    assert explanation.coefficients.values[0] == pytest.approx(truth, rel=1e-9, abs=1e-12)


def test_a_model_that_drops_the_ignored_words_is_read():
    reviews = ["good food", "good service", "bad food", "bad and slow service"]
    stopped = make_pipeline(TfidfVectorizer(stop_words=["the", "was"]), LogisticRegression())
    stopped.fit(reviews, [1, 1, 0, 0])
    text, parts = "The food was good, the service bad, was", ("food", "good", "service", "bad")
    explanation = TextExplainer(stopped, output="margin", ignore=["the", "was"], max_calls=64)(text)
    assert (explanation.method, explanation.reason) == ("exact", "")
    assert explanation.feature_names == parts
    truth = enumerated(parts, lambda z: without(z, parts, text), stopped.decision_function)
    assert explanation.coefficients.values[0] == pytest.approx(truth, rel=1e-9, abs=1e-12)


def test_a_model_that_counts_the_ignored_words_is_asked():
    reviews = ["good food", "good service", "bad food", "bad and slow service"]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(reviews, [1, 1, 0, 0])
    text = "good food and bad service, slow bill, fair price, kind staff, warm soup, cold tea"
    explainer = TextExplainer(model, output="margin", ignore=["food"], max_calls=64, method="exact")
    with pytest.raises(NotReadableError, match="letters between the words"):
        explainer(text)


def test_a_mapping_may_name_phrases_beside_words():
    def model(texts):
        return np.array([("not good" in t) + 0.5 * ("very" in t) for t in texts], dtype=np.float64)

    group = {"doubt": ["Not good", "very"], "praise": ["good"]}
    explanation = TextExplainer(model, group=group)("this is not good, very bad and good")
    assert explanation.feature_names == ("this", "is", "doubt", "bad", "and", "praise")
    np.testing.assert_allclose(explanation.contributions.values[0], [0, 0, 1.5, 0, 0, 0], atol=1e-9)


def test_an_ignored_word_may_be_in_a_phrase():
    explanation = TextExplainer(count, group=["not good"], ignore=["not"])("not good, not bad")
    assert explanation.feature_names == ("not good", "bad")


@pytest.mark.parametrize("ignore", ["the", [], [3], 3])
def test_words_that_cannot_be_ignored_are_refused(ignore):
    with pytest.raises(InputError, match="ignore="):
        TextExplainer(count, ignore=ignore)


def test_a_text_of_ignored_words():
    with pytest.raises(InputError, match="ignore leaves no word"):
        TextExplainer(count, ignore=["ham"])("ham, Ham")
