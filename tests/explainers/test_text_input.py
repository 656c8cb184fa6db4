"""Texts and options that text explainers refuse, with advice."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import limes
from limes import TextExplainer
from limes.exceptions import InputError, ModelError, UnknownOptionError
from reviews import LIKED, TRAINING


@pytest.fixture(scope="module")
def model():
    return make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TRAINING, LIKED)


@pytest.fixture(scope="module")
def exact(model):
    return TextExplainer(model, output="margin")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "empty"),
        (" \n", "empty"),
        (b"good food", "decode"),
        ("!!! ...", "no words"),
        (["good", b"food"], "text 1: the text is bytes"),
        (["good", ""], "text 1: the text is empty"),
        ([["good", "food"]], "not lists"),
        ([1.0], "text 0: expected a text, got float"),
        (3, "got int"),
        (None, "got NoneType"),
    ],
)
def test_bad_texts(exact, text, advice):
    with pytest.raises(InputError, match=advice):
        exact(text)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"split": "("}, "regular expression"),
        ({"split": 3}, "split=3"),
        ({"split": b"x"}, "split"),
        ({"bag": "yes"}, "bag"),
        ({"mask": 3}, "mask"),
        ({"bandwidth": 0}, "bandwidth"),
        ({"method": "exactly"}, "exact"),
        ({"ridge": -1}, "ridge"),
        ({"output": "nothing"}, "is not a class"),
        ({"vectorizer": "tfidf"}, "transform"),
    ],
)
def test_bad_options(model, options, advice):
    with pytest.raises(InputError, match=advice):
        TextExplainer(model, **options)


def test_unknown_options_are_refused(model):
    with pytest.raises(UnknownOptionError, match="bandwidth"):
        TextExplainer(model, bandwith=0.3)


@pytest.mark.parametrize(
    "spans",
    [[(0, 0)], [(4, 8), (0, 3)], [(0, 5), (3, 8)], [(0, 99)], [(-3, 2)], [1, 2], [(0, 1, 2)], 7],
)
def test_bad_spans(model, spans):
    with pytest.raises(InputError, match="split"):
        TextExplainer(model, output="margin", split=lambda text: spans)("good food")


def test_a_model_of_numbers_needs_a_vectorizer(model):
    with pytest.raises(InputError, match="vectorizer=vectorizer"):
        TextExplainer(model[-1])


def test_models_of_tables_say_what_is_missing(model):
    X = np.random.default_rng(0).normal(size=(20, 3))
    table = make_pipeline(MaxAbsScaler(), LogisticRegression()).fit(X, X[:, 0] > 0)
    with pytest.raises(ModelError, match=r"vectorizer=vectorizer.*callable"):
        TextExplainer(table)("good food")
    with pytest.raises(InputError, match=r"leave vectorizer= out"):
        TextExplainer(model, vectorizer=model[0])
    with pytest.raises(InputError, match=r"must be fitted.*TfidfVectorizer"):
        TextExplainer(model[-1], vectorizer=TfidfVectorizer)
    with pytest.raises(ModelError, match=r"not fitted"):
        TextExplainer(model[-1], vectorizer=TfidfVectorizer())("good food")


def test_columns_of_tables_are_texts(exact):
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    texts = ["good food", "bad"]
    for column in (
        pandas.Series(texts),
        polars.Series(texts),
        arrow.array(texts),
        np.array(texts),
        tuple(texts),
    ):
        assert [e.provenance["text"] for e in exact(column)] == texts
    with pytest.raises(InputError, match="one column"):
        exact(pandas.DataFrame({"review": texts}))


def test_models_that_fail_say_so():
    def broken(texts):
        raise ValueError("no tokens")

    with pytest.raises(ModelError, match="no tokens"):
        TextExplainer(broken)("good food")
    with pytest.raises(ModelError, match="returned shape"):
        TextExplainer(lambda texts: np.zeros(3))("good food")
    with pytest.raises(InputError, match="callable"):
        TextExplainer("model")


def test_unfitted_pipelines_say_so():
    with pytest.raises((ModelError, InputError), match="fit"):
        TextExplainer(make_pipeline(TfidfVectorizer(), Ridge()))("good food")


def test_the_public_name():
    assert limes.TextExplainer is TextExplainer
