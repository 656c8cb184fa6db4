"""Pipelines with a ColumnTransformer on text columns, explained unchanged: against every subset."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import limes
import words
from limes import CompositeExplainer, SeriesPart, TablePart
from limes.exceptions import InputError

RNG = np.random.default_rng(0)
VOCABULARY = ["good", "bad", "food", "slow", "quick", "nice", "awful", "place"]
REVIEWS = pd.DataFrame(
    {
        "id": np.arange(150),
        "review": [" ".join(RNG.choice(VOCABULARY, 4, replace=False)) for _ in range(150)],
        "stars": RNG.integers(1, 6, 150),
        "price": RNG.normal(20.0, 5.0, 150),
        "city": RNG.choice(["x", "y", "z"], 150),
    }
)
SCORE = REVIEWS.review.str.count("good") - REVIEWS.review.str.count("bad") + REVIEWS.stars / 2
LABELS = np.where(SCORE + RNG.normal(size=150) > 1.5, "positive", "negative")
ROW = REVIEWS.iloc[3]
COLUMNS = ["stars", "price", "city"]


def columns(text="review", vectorizer=None):
    return ColumnTransformer(
        [
            ("text", vectorizer or TfidfVectorizer(), text),
            ("numbers", StandardScaler(), ["stars", "price"]),
            ("city", OneHotEncoder(), ["city"]),
        ]
    )


def pipeline(head=None, **options):
    steps = [("columns", columns(**options)), ("head", LogisticRegression() if head is None else head)]
    return Pipeline(steps).fit(REVIEWS, LABELS)


def typical(column):
    values = REVIEWS[column]
    if column == "city":
        first, second = values.value_counts().index[:2]
        return second if ROW[column] == first else first
    median = np.quantile(values, 0.5, method="lower")
    return np.quantile(values[values != median], 0.5, method="lower") if ROW[column] == median else median


def oracle(predict, names=COLUMNS):
    """Coefficients of the words and of the columns, from a table of every subset, one row at a time."""
    text, answers = ROW.review.split(), []
    for z in words.subsets(len(text) + len(names)):
        row = ROW.to_dict()
        row["review"] = " ".join(word for word, kept in zip(text, z, strict=False) if kept)
        row |= {name: typical(name) for name, kept in zip(names, z[len(text) :], strict=True) if not kept}
        answers.append(np.ravel(predict(pd.DataFrame([row])))[-1])
    _, coef, _ = words.surrogate(words.law("words", len(text) + len(names), 0.25), np.array(answers))
    return dict(
        zip([*(f"review: {word}" for word in text), *(f"row: {name}" for name in names)], coef, strict=True)
    )


def coefficients(explanation, output=-1):
    values = explanation.coefficients.values[0]
    values = values if values.ndim == 1 else values[:, output]
    return dict(zip(explanation.feature_names, values.tolist(), strict=True))


def searched():
    steps = [("columns", columns()), ("head", LogisticRegression())]
    return GridSearchCV(Pipeline(steps), {"head__C": [1.0]}, cv=2).fit(REVIEWS, LABELS)


def nested():
    inner = make_pipeline(columns(), StandardScaler(with_mean=False))
    return make_pipeline(inner, LogisticRegression()).fit(REVIEWS, LABELS)


MODELS = {
    "logistic": (pipeline, "predict_proba"),
    "forest": (lambda: pipeline(RandomForestClassifier(20, random_state=0)), "predict_proba"),
    "counts": (lambda: pipeline(vectorizer=CountVectorizer(ngram_range=(1, 2))), "predict_proba"),
    "hashes": (lambda: pipeline(vectorizer=HashingVectorizer(n_features=64)), "predict_proba"),
    "a pipeline of texts": (lambda: pipeline(vectorizer=make_pipeline(CountVectorizer())), "predict_proba"),
    "searched": (searched, "predict_proba"),
    "nested": (nested, "predict_proba"),
    "regression": (
        lambda: Pipeline([("columns", columns()), ("ridge", Ridge())]).fit(REVIEWS, SCORE),
        "predict",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_parts_are_chosen_by_the_columns(name):
    make, method = MODELS[name]
    model = make()
    explanation = CompositeExplainer(model, REVIEWS)(ROW)
    expected = oracle(getattr(model, method))
    assert explanation.method == "exact"
    assert coefficients(explanation) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    if method == "predict_proba":
        assert explanation.output_names == ("negative", "positive")


def test_parts_passed_by_the_user():
    model = pipeline()
    parts = {"review": "text", "row": TablePart(background=REVIEWS[COLUMNS])}
    raw = {"review": ROW.review, "row": ROW[COLUMNS]}
    composite = CompositeExplainer(model, parts)(raw)
    assert coefficients(composite) == pytest.approx(oracle(model.predict_proba), rel=1e-9, abs=1e-12)
    by_columns = CompositeExplainer(model, REVIEWS)
    flat = {"review": ROW.review} | ROW[COLUMNS].to_dict()
    for one in (raw, flat, ROW):
        np.testing.assert_array_equal(by_columns(one).coefficients.values, composite.coefficients.values)
    margin = CompositeExplainer(model, REVIEWS, output="margin")(ROW)
    assert coefficients(margin) == pytest.approx(oracle(model.decision_function), rel=1e-9, abs=1e-12)
    method = CompositeExplainer(model.predict_proba, REVIEWS)(ROW)
    np.testing.assert_array_equal(method.coefficients.values, composite.coefficients.values)


def test_a_probability_is_said_as_a_chance():
    of_class, of_margin = (
        CompositeExplainer(pipeline(), REVIEWS, output=output)(ROW) for output in ("positive", "margin")
    )
    assert "% chance of positive" in str(of_class)
    assert "percentage points" in str(of_class)
    assert "chance" not in str(of_margin)


def test_a_table_of_rows_is_a_list_of_explanations():
    explainer = CompositeExplainer(pipeline(), REVIEWS)
    several = explainer(REVIEWS.iloc[3:6])
    assert len(several) == 3
    np.testing.assert_array_equal(several[0].coefficients.values, explainer(ROW).coefficients.values)
    np.testing.assert_array_equal(
        several[2].coefficients.values, explainer([REVIEWS.iloc[5]])[0].coefficients.values
    )


def test_the_model_sees_the_dtypes_of_the_background():
    seen = []

    class Watched(LogisticRegression):
        pass

    class Columns(ColumnTransformer):
        def transform(self, X, **options):
            seen.append(X)
            return super().transform(X, **options)

    transformer = Columns([("text", TfidfVectorizer(), "review"), ("rest", OneHotEncoder(), ["city"])])
    frame = REVIEWS.assign(city=REVIEWS.city.astype("category"))
    model = make_pipeline(transformer, Watched()).fit(frame, LABELS)
    seen.clear()
    CompositeExplainer(model, frame)(frame.iloc[3])
    for table in seen:
        assert list(table.columns) == ["review", "city"]
        assert table.city.dtype == frame.city.dtype
        assert all(isinstance(text, str) for text in table.review)


def test_a_column_that_is_dropped_is_no_feature():
    names = CompositeExplainer(pipeline(), REVIEWS)(ROW).feature_names
    assert not any("id" in name for name in names)


def test_two_texts_and_nothing_else():
    frame = pd.DataFrame(
        {"question": ["is it good", "is it bad", "good"], "answer": ["yes", "no it is", "bad it is"]}
    )
    transformer = make_column_transformer((TfidfVectorizer(), "question"), (CountVectorizer(), "answer"))
    model = make_pipeline(transformer, Ridge()).fit(frame, [1.0, 2.0, 3.0])
    explanation = CompositeExplainer(model, frame)(frame.iloc[0])
    assert explanation.feature_names == ("question: is", "question: it", "question: good", "answer: yes")
    answers = []
    for z in words.subsets(4):
        kept = [word for word, on in zip(["is", "it", "good", "yes"], z, strict=True) if on]
        question = " ".join(word for word in kept if word != "yes")
        row = pd.DataFrame({"question": [question], "answer": ["yes" * int(z[3])]})
        answers.append(model.predict(row)[0])
    _, coef, _ = words.surrogate(words.law("words", 4, 0.25), np.array(answers))
    np.testing.assert_allclose(explanation.coefficients.values[0], coef, rtol=1e-9, atol=1e-12)
    restored = limes.Explanation.from_json(explanation.to_json())
    assert [*restored.provenance["pictures"]] == ["question", "answer"]


def test_polars():
    pl = pytest.importorskip("polars", reason="pip install polars")
    frame = pl.from_pandas(REVIEWS)
    model = Pipeline([("columns", columns()), ("head", LogisticRegression())]).fit(frame, LABELS)
    explanation = CompositeExplainer(model, frame)(frame[3:4])[0]
    expected = CompositeExplainer(pipeline(), REVIEWS)(ROW)
    np.testing.assert_allclose(
        explanation.coefficients.values, expected.coefficients.values, rtol=1e-9, atol=1e-12
    )


def test_columns_hidden_by_rows_of_the_background():
    model = pipeline()
    part = TablePart(background=REVIEWS[COLUMNS].iloc[:5], hide="background")
    explanation = CompositeExplainer(model, {"review": "text", "row": part})(ROW)
    text, answers = ROW.review.split(), []
    for z in words.subsets(7):
        rows = REVIEWS.iloc[:5].copy()
        rows["review"] = " ".join(word for word, kept in zip(text, z, strict=False) if kept)
        for name, kept in zip(COLUMNS, z[4:], strict=True):
            if kept:
                rows[name] = ROW[name]
        answers.append(model.predict_proba(rows)[:, 1].mean())
    _, coef, _ = words.surrogate(words.law("words", 7, 0.25), np.array(answers))
    assert explanation.method == "exact"
    np.testing.assert_allclose(explanation.coefficients.values[0, :, 1], coef, rtol=1e-9, atol=1e-12)


def test_a_long_review_is_sampled_within_its_errors():
    model = pipeline()
    exact = CompositeExplainer(model, REVIEWS, max_calls=128)(ROW)
    sampled = CompositeExplainer(model, REVIEWS, max_calls=100)(ROW)
    assert sampled.method == "sampled"
    z = (sampled.coefficients.values - exact.coefficients.values) / sampled.coefficients.standard_errors
    assert np.abs(z).max() < 5


TABLE = TablePart(background=REVIEWS[COLUMNS])


@pytest.mark.parametrize(
    ("parts", "raw", "message"),
    [
        (
            {"text": "text", "row": TABLE},
            {"text": "good", "row": ROW[COLUMNS]},
            "takes no column 'text'.*its column",
        ),
        ({"revew": "text", "row": TABLE}, {"revew": "good", "row": ROW[COLUMNS]}, "did you mean 'review'"),
        (
            {"review": "text"},
            {"review": "good"},
            r"also takes the columns \['stars', 'price', 'city'\], which no part has",
        ),
        (
            {"review": "text", "row": TABLE, "s": SeriesPart()},
            {"review": "good", "row": ROW[COLUMNS], "s": np.arange(5.0)},
            "the part 's' is neither",
        ),
        (REVIEWS, ROW.drop("stars"), "the part 'row' is missing"),
        (REVIEWS, {"review": "good", "stars": 1, "price": 2.0, "city": "x", "colour": 3}, "no part 'colour'"),
        (REVIEWS.drop(columns="price"), ROW, r"lacks the columns \['price'\]"),
        (REVIEWS, ROW.replace({ROW.review: None}), "part 'review'"),
    ],
)
def test_parts_that_make_no_table(parts, raw, message):
    with pytest.raises(InputError, match=message):
        CompositeExplainer(pipeline(), parts)(raw)


def test_a_table_for_a_model_without_texts():
    model = make_pipeline(make_column_transformer((StandardScaler(), ["price"])), Ridge()).fit(REVIEWS, SCORE)
    with pytest.raises(InputError, match=r"limes\.TabularExplainer"):
        CompositeExplainer(model, REVIEWS)
    with pytest.raises(InputError, match="no ColumnTransformer"):
        CompositeExplainer(lambda batch: batch, REVIEWS)
