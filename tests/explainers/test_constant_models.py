"""Models that do not vary around an instance: R² is 1, whatever the last bit of their answer."""

import itertools

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import limes
from internals import is_constant, r_squared
from limes.compat.lime.lime_image import LimeImageExplainer
from limes.compat.lime.lime_tabular import LimeTabularExplainer
from limes.compat.lime.lime_text import LimeTextExplainer

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
        limes.ImageExplainer(model, **grid)(np.arange(64.0).reshape(8, 8)),
        limes.SeriesExplainer(model)(np.arange(30.0)),
        *(limes.TabularExplainer(model, X, **options)(X[:2]) for options in ({}, {"bins": None})),
        limes.TabularExplainer(model, X, law="joint")(X[:2]),
    ]
    for explanation in explanations:
        assert (explanation.fidelity == 1.0).all()
        assert np.allclose(explanation.coefficients.intercepts, constant, rtol=1e-12, atol=0.0)
        assert (np.abs(explanation.coefficients.values) <= 1e-12 * abs(constant)).all()


def test_a_text_without_a_word_that_the_model_knows():
    texts = ["good food", "bad food", "good service", "bad service"]
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, [1, 0, 1, 0])
    explanation = limes.TextExplainer(model)("hello there my friend")[..., 1]
    assert explanation.method == "exact"
    assert explanation.fidelity.tolist() == [1.0]
    assert not explanation.warnings


def test_warnings_about_answers_that_are_all_alike_have_no_infinite_numbers():
    def model(batch):
        return np.zeros(len(batch))

    prompt = limes.Prompt(limes.sources(WORDS.split()), "?")
    explanations = [
        limes.TextExplainer(model, max_calls=50)(WORDS),
        limes.TextExplainer(model, max_calls=50, hierarchy=True)(WORDS),
        limes.PromptExplainer(model, max_calls=50)(prompt),
    ]
    for explanation in explanations:
        assert np.isinf(explanation.contributions.standard_errors).all()
        text = " ".join(explanation.row_warnings[0])
        assert "contributions are 0, or of any size where such a change is rarer" in text
        assert " inf " not in text


CONSTANTS = [0.25, 0.1, 1 / 3, -123.456, 1e-100, 0.0]
QUARTERS = np.arange(20)[:, None] // 10 * 2 + np.arange(20)[None] // 10


def every_r_squared(constant, d):
    """R² of a constant model by name: of all and of some features, of every law, measure and drop-in."""
    rows = np.random.default_rng(d).normal(size=(200, d))
    words = " ".join(f"w{i}" for i in range(d))
    image = np.random.default_rng(0).random((20, 20, 3))

    def model(batch):
        return np.full(len(batch), constant)

    def classes(batch):
        return np.tile([constant, 1.0 - constant], (len(batch), 1))

    for options in ({}, {"bins": None}, {"law": "joint"}, {"weights": "euclidean"}, {"ridge": 1.0}):
        explanation = limes.TabularExplainer(model, rows, max_calls=1024, **options)(rows[:2])
        yield f"table {options}", explanation.fidelity
        yield f"table {options}, effects", explanation.additive_fidelity
    fills = {"segments": QUARTERS, "fill": ["mean", 0.0]}
    yield "fills", limes.ImageExplainer(model, **fills)(image).fidelity
    yield "words", limes.TextExplainer(model)(words).additive_fidelity
    yield "maple", limes.MapleExplainer(model, rows)(rows[:2]).fidelity
    yield "designs", limes.suggest_design(limes.TabularExplainer(model, rows), rows[:2]).fidelity
    for engine, k in itertools.product(("limit", "lime"), (1, 2, d)):
        table = LimeTabularExplainer(rows, engine=engine).explain_instance(rows[0], classes, num_features=k)
        text = LimeTextExplainer(engine=engine).explain_instance(words, classes, num_features=k)
        picture = LimeImageExplainer(engine=engine).explain_instance(
            image, classes, num_features=k, segmentation_fn=lambda _: QUARTERS, num_samples=100
        )
        for name, explained in (("table", table), ("text", text)):
            yield f"lime's call, {name}, {engine}, {k} features", explained.score
        score = picture.score
        yield f"lime's call, image, {engine}, {k} features", score[1] if isinstance(score, dict) else score


@pytest.mark.parametrize(
    ("constant", "d"), [(0.1, 3), (0.1, 6), (1 / 3, 4), (-123.456, 3), (0.0, 3), (1e-100, 2)]
)
def test_r_squared_of_a_constant_model_is_one_everywhere(constant, d):
    wrong = {name: r2 for name, r2 in every_r_squared(constant, d) if not np.allclose(r2, 1.0, rtol=1e-12)}
    assert not wrong


@pytest.mark.parametrize("constant", CONSTANTS)
def test_measures_of_a_constant_model_are_unknown(constant):
    task = limes.evaluate.Task.of(lambda x: np.full(len(x), constant), X, X[:2])
    for measure in (limes.evaluate.fidelity, limes.evaluate.infidelity):
        assert np.isnan(measure(np.ones((2, 3)), task).rows).all()


@pytest.mark.parametrize("constant", CONSTANTS)
def test_the_surrogate_of_a_constant_model_misses_nothing(constant):
    for options in ({}, {"bins": None}, {"law": "joint"}):
        explanation = limes.TabularExplainer(lambda x: np.full(len(x), constant), X, **options)(X[:2])
        assert not any("misses the prediction" in text for row in explanation.row_warnings for text in row)


@pytest.mark.parametrize(
    ("explained", "variance", "size", "expected"),
    [
        (0.3, 1.0, 1.0, 0.3),
        (1.0 + 1e-15, 1.0, 1.0, 1.0),
        (-1.0, 1.0, 1.0, -1.0),
        (1e-34, 3e-34, 0.1, 1.0),
        (0.0, 0.0, 0.0, 1.0),
        (1e-200, 2e-200, 1e-100, 0.5),
        (np.nan, np.nan, 1.0, np.nan),
        (0.3, np.nan, 1.0, np.nan),
    ],
)
def test_the_one_rule(explained, variance, size, expected):
    value, error = r_squared(explained, variance, size, 0.1 * variance)
    assert value == pytest.approx(expected, rel=1e-12, nan_ok=True)
    constant = expected == 1.0 and variance < 1e-20
    assert is_constant(variance, size) == constant
    assert error == pytest.approx(
        0.0 if constant else abs(explained) / variance * 0.1, rel=1e-12, nan_ok=True
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_a_probability_whose_margin_has_no_column(classes):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = LogisticRegression().fit(X, np.arange(60) % classes)
    model.coef_[:] = 0.0
    explainer = limes.TabularExplainer(model, X)
    for rows in (X[:1], X[:4]):
        account = explainer.contributions(rows).contributions
        np.testing.assert_allclose(account.base_values, model.predict_proba(rows), rtol=1e-9)
        assert not account.values.any()
        assert not account.standard_errors.any()
