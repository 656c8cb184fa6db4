"""Warnings about the answers: one answer to every input, and sums of answers that are no probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import limes
from internals import requested

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 3))
IMAGE = RNG.integers(0, 256, (12, 12, 3)).astype(np.uint8)
SERIES = RNG.normal(size=40)
FEW, MANY = "very good food", " ".join(f"word{i}" for i in range(15))


def grid(side):
    return {"segments": "grid", "segment_options": {"rows": side, "columns": side}, "fill": 0}


def on_texts(text, **options):
    return lambda f: limes.TextExplainer(f, **options)(text)


def on_images(side, **options):
    return lambda f: limes.ImageExplainer(f, **{**grid(side), **options})(IMAGE)


def on_series(segments, **options):
    return lambda f: limes.SeriesExplainer(f, count=segments, fill=0.0, **options)(SERIES)


def on_composites(text, **options):
    return lambda f: limes.CompositeExplainer(
        lambda batch: f(batch["review"]), {"review": "text"}, **options
    )({"review": text})


def on_tables(rows, **options):
    return lambda f: limes.TabularExplainer(f, X, **options)(X[:rows])


# what explains a function of batches, and the rows that the warning counts
WAYS = {
    "text, enumerated": (on_texts(FEW), "all 8 perturbed texts"),
    "text, sampled": (on_texts(MANY, max_calls=512), "perturbed texts"),
    "image, enumerated": (on_images(2), "all 16 perturbed images"),
    "image, two fills": (on_images(2, fill=["mean", 0]), "all 16 perturbed images"),
    "image, sampled": (on_images(4, max_calls=512), "perturbed images"),
    "series, enumerated": (on_series(4), "all 16 perturbed series"),
    "series, sampled": (on_series(20, max_calls=512), "perturbed series"),
    "composite, enumerated": (on_composites(FEW), "all 8 perturbed inputs"),
    "composite, sampled": (on_composites(MANY, max_calls=512), "perturbed inputs"),
    "row, pooled": (on_tables(1), "perturbed rows"),
    "rows, pooled": (on_tables(60), "perturbed rows"),
    "row, its draws": (on_tables(1, bins=None, max_calls=285, contributions=False), "all 256 perturbed rows"),
    "row, joint law": (on_tables(1, law="joint"), "all 100 background rows"),
}
WAY = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def size(one):
    """A number that depends on every part of an input."""
    return float(len(one)) if isinstance(one, str) else float(np.asarray(one, dtype=float).sum())


@WAY
def test_one_answer_is_reported_once(way):
    explain, rows = way
    explanation = explain(lambda batch: np.full(len(batch), 0.3))
    fills = 2 if "by_fill" in explanation.provenance else 1
    for warnings in explanation.coefficients.row_warnings:
        assert len(warnings) == fills
        assert all(w.startswith("the model answered the same in all ") and rows in w for w in warnings)
    np.testing.assert_allclose(explanation.coefficients.values, 0.0, atol=1e-12)
    if requested(explanation, "contributions") is not None:
        its = [w for row in explanation.contributions.row_warnings for w in row]
        assert not [w for w in its if w.code == "contribution order"]
        assert all("answer" in w for w in its)


@WAY
def test_several_answers_are_not(way):
    explain, _ = way
    explanation = explain(lambda batch: np.array([size(one) for one in batch]))
    assert not any("answered the same" in w for warnings in explanation.row_warnings for w in warnings)


@WAY
def test_the_output_with_one_answer_is_named(way):
    explain, _ = way
    explanation = explain(lambda batch: np.array([[size(one), 7.0] for one in batch]))
    for warnings in explanation.row_warnings:
        same = [w for w in warnings if "answered the same" in w]
        assert same
        assert all("(output 1)" in w for w in same)


def test_rules_of_one_answer():
    bits = np.sign(X)
    (warning,) = limes.SparseExplainer(lambda rows: np.full(len(rows), 0.3), k=2)(bits[:1]).warnings
    assert "the same in all 1,000 fresh rows" in warning
    rule = limes.SparseExplainer(lambda rows: rows[:, 0] + rows[:, 1], k=2)(bits[:1])
    assert not any("answered the same" in w for w in rule.warnings)


def test_a_constant_that_is_read_needs_no_warning():
    model = make_pipeline(CountVectorizer(), DummyRegressor(strategy="constant", constant=2.0))
    explanation = limes.TextExplainer(model.fit([FEW, MANY], [1.0, 2.0]))(FEW)
    assert explanation.calls[0] == 0
    assert explanation.warnings == ()


def test_an_answer_to_the_whole_alone():
    """The law of words always removes one: what all words together do is in no coefficient."""
    explanation = limes.TextExplainer(lambda texts: np.array([float(t == FEW) for t in texts]))(FEW)
    (warning,) = explanation.warnings
    assert "the same in all 7 perturbed texts, and otherwise to what is explained" in warning
    # superpixels may all be shown: then the whole has weight
    whole = IMAGE.astype(float).sum()
    explanation = limes.ImageExplainer(
        lambda images: (images.astype(float).sum(axis=(1, 2, 3)) == whole) * 1.0, **grid(2)
    )(IMAGE)
    assert explanation.warnings == ()
    assert (explanation.coefficients.values > 0.01).all()


@pytest.mark.parametrize("bandwidth", [1e-3, 3e-3, 0.01])
def test_narrow_bandwidths_are_no_constants(bandwidth):
    """Var_w f is below the least float64, and answers differ."""
    explanation = limes.ImageExplainer(
        lambda images: images.mean(axis=(1, 2, 3)), **grid(2), bandwidth=bandwidth
    )(IMAGE)
    assert explanation.warnings == ()


# -- sums of answers -----------------------------------------------------------------------------------------


def multilabel(kind):
    features, labels = make_multilabel_classification(120, 4, n_classes=3, random_state=0)
    return kind.fit(features, labels), features, {}


def iris(model, **options):
    table, y = load_iris(return_X_y=True)
    return model.fit(table, y), table, options


def shares_of_targets():
    table, y = load_iris(return_X_y=True)
    return LinearRegression().fit(table, np.column_stack([y == 0, y == 1]) * 0.2 + 0.3), table, {}


# answers between 0 and 1 that are no probabilities of classes that exclude each other
NO_SUMS = {
    "one of several against the rest": lambda: multilabel(OneVsRestClassifier(LogisticRegression())),
    "a network": lambda: multilabel(MLPClassifier((3,), max_iter=20, random_state=0)),
    "a Pipeline": lambda: multilabel(
        make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression()))
    ),
    "several targets": lambda: multilabel(RandomForestClassifier(5, random_state=0)),
    "two of three classes": lambda: iris(LogisticRegression(max_iter=1000), output=[0, 1]),
    "a regression": shares_of_targets,
}


@pytest.mark.parametrize("case", NO_SUMS.values(), ids=NO_SUMS)
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_answers_that_need_not_add_up(case):
    model, table, options = case()
    explanation = limes.TabularExplainer(model, table, max_calls=256, **options)(table[::10])
    sums = explanation.predictions.sum(axis=1)
    assert ((explanation.predictions >= 0) & (explanation.predictions <= 1)).all(axis=1).any()
    assert (np.abs(sums - 1) > 0.01).any()
    assert not any("add up" in w for warnings in explanation.row_warnings for w in warnings)


def test_answers_that_should_add_up():
    explanation = limes.TabularExplainer(lambda table: np.full((len(table), 3), 0.2) + 0.01 * (table > 0), X)(
        X[:3]
    )
    assert all(any("add up to 0.6" in w for w in warnings) for warnings in explanation.row_warnings)
    text = limes.TextExplainer(lambda texts: np.array([[0.2, 0.01 * len(t)] for t in texts]))(FEW)
    assert "add up to 0.34" in text.warnings[0]
    halves = limes.ImageExplainer(lambda images: images.mean(axis=(1, 2)) / 255, **grid(2))(IMAGE)
    assert "add up" in halves.warnings[0]
    # a sigmoid on each of several logits says that they do not exclude each other
    apart = limes.ImageExplainer(lambda images: images.mean(axis=(1, 2)) / 255, **grid(2), link="sigmoid")(
        IMAGE
    )
    assert apart.warnings == ()
