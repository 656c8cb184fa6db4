"""Models that do not vary around an instance: R² is 1, whatever the last bit of their answer."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import limes

X = np.random.default_rng(0).normal(size=(200, 3))
WORDS = " ".join(f"w{i}" for i in range(20))


@pytest.mark.parametrize("constant", [0.7, 0.1, 1 / 3, -123.456, 1e-100])
def test_nothing_to_explain_is_explained_in_full(constant):
    def model(batch):
        return np.full(len(batch), constant)

    grid = {"segments": "grid", "segment_options": {"rows": 2, "columns": 2}}
    explanations = [
        limes.TextExplainer(model)("a b c"),
        limes.TextExplainer(model, max_calls=512)(WORDS),
        limes.ImageExplainer(model, **grid)(np.zeros((8, 8))),
        limes.SeriesExplainer(model)(np.arange(30.0)),
        *(limes.TabularExplainer(model, X, **options)(X[:2]) for options in ({}, {"bins": None})),
        limes.TabularExplainer(model, X, law="joint")(X[:2]),
    ]
    for explanation in explanations:
        assert (explanation.fidelity == 1.0).all()
        assert np.allclose(explanation.intercepts, constant, rtol=1e-12, atol=0.0)
        assert (np.abs(explanation.values) <= 1e-12 * abs(constant)).all()


def test_a_text_without_a_word_that_the_model_knows():
    texts = ["good food", "bad food", "good service", "bad service"]
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, [1, 0, 1, 0])
    explanation = limes.TextExplainer(model)("hello there my friend")[..., 1]
    assert explanation.method == "exact"
    assert explanation.fidelity.tolist() == [1.0]
    assert not explanation.warnings
