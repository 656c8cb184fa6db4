"""Words that a readable model does not use are marked, and no others; their coefficients need not be 0."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

import limes

REVIEWS = ["good food here", "good service again", "bad food again", "bad and slow service here"] * 3
LIKED = [1, 1, 0, 0] * 3
TEXT = "good food and the quaint slow waiter"


def marked(explanation):
    return {
        name
        for name, condition in zip(explanation.feature_names, explanation.conditions[0], strict=True)
        if condition.endswith(", unused")
    }


MODELS = {
    "tf-idf": make_pipeline(TfidfVectorizer(), Ridge()),
    "l1": make_pipeline(TfidfVectorizer(norm="l1"), Ridge()),
    "counts": make_pipeline(CountVectorizer(), Ridge()),
    "bigrams": make_pipeline(CountVectorizer(ngram_range=(1, 2)), Ridge()),
    "probability": make_pipeline(CountVectorizer(), LogisticRegression()),
    "tf-idf, probability": make_pipeline(TfidfVectorizer(), LogisticRegression()),
    "votes": make_pipeline(
        CountVectorizer(),
        VotingClassifier(
            [("a", LogisticRegression()), ("b", RandomForestClassifier(5, random_state=0))], voting="soft"
        ),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_words_outside_the_vocabulary_are_marked(name):
    """Known: good, food, and, slow. Of a sum their coefficients are 0."""
    model = MODELS[name].fit(REVIEWS, LIKED)
    explanation = limes.TextExplainer(model)(TEXT)
    assert explanation.method == "exact"
    # between "and" and "slow" an unknown word separates a bigram
    assert marked(explanation) == ({"waiter"} if name == "bigrams" else {"the", "quaint", "waiter"})
    if name == "counts":
        assert explanation.coefficients.values[0][[3, 4, 6]] == pytest.approx(np.zeros(3), abs=1e-12)
    if name == "tf-idf":
        assert (np.abs(explanation.coefficients.values[0][[3, 4, 6]]) > 1e-4).all()


def test_words_that_no_tree_splits_are_marked():
    """Whether a word is marked is whether its removal ever changes an answer, by all 2^7 texts."""
    model = make_pipeline(CountVectorizer(), DecisionTreeRegressor(max_depth=1, random_state=0))
    model.fit(REVIEWS, LIKED)
    explanation = limes.TextExplainer(model)(TEXT)
    words = TEXT.split()
    kept = (np.arange(2**7)[:, None] >> np.arange(7)) & 1
    answers = model.predict([" ".join(np.compress(row, words)) for row in kept])
    matters = [(answers[kept[:, j] == 1] != answers[kept[:, j] == 0]).any() for j in range(7)]
    assert marked(explanation) == {word for word, does in zip(words, matters, strict=True) if not does}
    assert len(marked(explanation)) == 6


def test_a_word_without_a_coefficient_counts_in_the_norm():
    model = make_pipeline(TfidfVectorizer(), Ridge()).fit(REVIEWS, LIKED)
    model[-1].coef_[model[0].vocabulary_["food"]] = 0.0
    assert marked(limes.TextExplainer(model)(TEXT)) == {"the", "quaint", "waiter"}
    counts = make_pipeline(CountVectorizer(), Ridge()).fit(REVIEWS, LIKED)
    counts[-1].coef_[counts[0].vocabulary_["food"]] = 0.0
    assert marked(limes.TextExplainer(counts)(TEXT)) == {"food", "the", "quaint", "waiter"}


def test_nothing_is_marked_of_a_model_that_is_not_read():
    model = make_pipeline(CountVectorizer(), Ridge()).fit(REVIEWS, LIKED)
    assert not marked(limes.TextExplainer(lambda texts: model.predict(texts))(TEXT))
    assert not marked(limes.TextExplainer(lambda texts: np.array([len(t) for t in texts]))(TEXT))


def test_marks_are_in_every_channel():
    model = make_pipeline(TfidfVectorizer(), Ridge()).fit(REVIEWS, LIKED)
    explanation = limes.TextExplainer(model)(TEXT)
    printed = " ".join(str(explanation).split())
    assert '"waiter" present, unused' in printed or '"waiter", unused' in printed
    assert "unused" in explanation.to_html()
    assert limes.Explanation.from_json(explanation.to_json()).conditions == explanation.conditions
    assert explanation.to_frame()["condition"].str.endswith(", unused").sum() == 3
    pytest.importorskip("matplotlib").use("agg")
    explanation.plot.text()


def test_words_of_a_mask_that_change_nothing_are_apart():
    """A word that is the mask itself is in no design, and is not marked for it."""
    model = make_pipeline(CountVectorizer(), Ridge()).fit(REVIEWS, LIKED)
    explanation = limes.TextExplainer(model, mask="waiter")(TEXT)
    assert np.isnan(explanation.coefficients.values[0, 6])
    assert marked(explanation) == {"the", "quaint"}
