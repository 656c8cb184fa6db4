"""The drop-in's texts: both engines, against limes and against lime itself."""

from __future__ import annotations

import inspect
import pickle
import re
import warnings
from operator import attrgetter

import lime.lime_text
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import limes
from effort import crossed, repeats
from internals import deletions, distances
from limes.compat.lime import engine, lime_text
from limes.compat.lime.exceptions import LimeError
from limes.compat.lime.explanation import Explanation
from limes.compat.lime.lime_text import (
    IndexedCharacters,
    IndexedString,
    LimeTextExplainer,
    TextDomainMapper,
)
from limes.exceptions import InputError, ModelError, UnknownOptionError
from oracle import EXACT

REVIEWS = [
    "good food and good service",
    "bad food but a fine room",
    "the service was slow and the food was bad",
    "we liked the room and the view",
    "a slow dull evening with bad wine",
    "fine wine and a good evening",
] * 3
LIKED = [1, 0, 0, 1, 0, 1] * 3
TEXT = "Good food and a slow, slow evening: the wine was fine!"
WORDS = ["Good", "food", "and", "a", "slow", "evening", "the", "wine", "was", "fine"]
LETTERS = r"\w+"
MODEL = make_pipeline(TfidfVectorizer(token_pattern=LETTERS), LogisticRegression(C=10)).fit(REVIEWS, LIKED)
STARS = make_pipeline(CountVectorizer(), Ridge()).fit(REVIEWS, np.array(LIKED) * 4.0 + 1)
ENGINES = pytest.mark.parametrize("chosen", ["limit", "lime"])
CLASSES = pytest.mark.parametrize("make", [IndexedString, IndexedCharacters])


def probabilities(texts):
    """Probabilities that cannot be read, of a model that is quick."""
    good = np.array([text.count("ood") - text.count("slow") for text in texts], dtype=float)
    p = 1 / (1 + np.exp(-good + 0.3 * np.array(["wine" in text for text in texts])))
    return np.column_stack([1 - p, p])


def explained(predict=MODEL.predict_proba, text=TEXT, options=None, **call):
    explainer = LimeTextExplainer(**{"random_state": 0} | (options or {}))
    return explainer.explain_instance(text, predict, **call)


def in_order(result, label=1):
    return [value for _, value in sorted(result.as_map()[label])]


# -- the limit -----------------------------------------------------------------------------------------------


def test_a_bound_method_of_a_readable_model_is_exact():
    explanation = explained(MODEL.decision_function, options={"mode": "regression"}, num_features=99)
    exact = limes.TextExplainer(MODEL, output="margin")(TEXT)
    assert (explanation.engine, explanation.limes.method, explanation.engine_reason) == ("limit", "exact", "")
    np.testing.assert_allclose(in_order(explanation), exact.coefficients.values[0], rtol=EXACT)
    assert explanation.intercept[1] == pytest.approx(exact.coefficients.intercepts[0], rel=EXACT)
    assert explanation.local_pred == pytest.approx(exact.coefficients.surrogate_predictions[0], rel=EXACT)
    assert explanation.predicted_value == pytest.approx(MODEL.decision_function([TEXT])[0])
    assert {error for _, error in explanation.standard_errors[1]} == {0.0}
    assert [word for word, _ in sorted(explanation.as_list(), key=lambda pair: WORDS.index(pair[0]))] == WORDS


def test_any_other_function_is_sampled_with_error_bars_that_hold_the_limit():
    long = TEXT + " Then an old friend told us many true stories about this place"
    exact = explained(MODEL.decision_function, long, options={"mode": "regression"}, num_features=5)
    sampled = explained(
        lambda texts: MODEL.decision_function(texts),
        long,
        options={"mode": "regression"},
        num_features=5,
        num_samples=1000,
    )
    assert (exact.limes.method, sampled.limes.method) == ("exact", "sampled")
    errors, limit = dict(sampled.standard_errors[1]), dict(exact.as_map()[1])
    assert set(errors) == set(limit)
    assert all(0 < abs(value - limit[j]) < 5 * errors[j] for j, value in sampled.as_map()[1])
    # the variance of the exact model is that of 4096 answers, known to 2 %
    assert abs(sampled.score - exact.score) < 4 * (sampled.limes.fidelity_errors[0] + 0.02)


@pytest.mark.parametrize(
    ("count", "selection"),
    crossed([1, 3, 7], ["auto", "forward_selection", "highest_weights", "lasso_path"]),
)
def test_the_limit_is_lime_s_with_many_samples(count, selection):
    options = {"feature_selection": selection}
    limit = explained(num_features=count, options=options)
    # 2^10 deletions are enumerated; lime draws many
    draws = repeats(60_000, 30_000)
    many = explained(num_features=count, num_samples=draws, options=options | {"engine": "lime"})
    assert limit.limes.method == "exact"
    assert set(dict(limit.as_map()[1])) == set(dict(many.as_map()[1]))
    errors = dict(many.standard_errors[1])
    for j, value in limit.as_map()[1]:
        assert abs(value - dict(many.as_map()[1])[j]) < 4 * errors[j] + 2e-5  # of lime's ridge
    assert limit.score == pytest.approx(many.score, abs=0.02)
    assert limit.local_pred == pytest.approx(many.local_pred, abs=0.01)


def test_spellings_that_the_vectorizer_takes_for_the_same_are_two_words_as_in_lime():
    text = "Slow food, slow wine and good food"
    explanation = explained(MODEL.decision_function, text, options={"mode": "regression"})
    assert sorted(word for word, _ in explanation.as_list()) == [
        "Slow",
        "and",
        "food",
        "good",
        "slow",
        "wine",
    ]
    assert explanation.limes.method == "exact"
    # all 2^6 deletions
    enumerated = explained(lambda texts: MODEL.decision_function(texts), text, options={"mode": "regression"})
    assert enumerated.limes.reason == "the model was asked about every subset of the words"
    np.testing.assert_allclose(in_order(explanation), in_order(enumerated), rtol=EXACT)


class OneColumn:
    """A network with two classes, and one column of probabilities."""

    classes_ = np.array([0, 1])

    def predict_proba(self, texts):
        assert isinstance(texts, list)
        return probabilities(texts)[:, 1:]

    def predict(self, texts):
        return probabilities(texts).argmax(axis=1)


def test_methods_of_models_that_cannot_be_taken_apart_are_functions():
    assert explained(OneColumn().predict_proba).as_map() == explained(probabilities).as_map()
    with pytest.raises(InputError, match="takes 19 numbers, not texts"):
        explained(MODEL[-1].predict_proba)


def test_a_classifier_s_scores_are_not_mistaken_for_probabilities():
    with pytest.raises(InputError, match='mode="regression" to explain a score'):
        explained(MODEL.decision_function)


# -- lime's own law ------------------------------------------------------------------------------------------


def test_the_engine_lime_has_lime_s_law():
    def runs(explainer, seeds):
        result = [
            explainer(random_state=seed).explain_instance(
                TEXT, probabilities, num_samples=100, num_features=len(WORDS)
            )
            for seed in seeds
        ]
        return np.array([[*in_order(e), e.intercept[1], e.score, np.ravel(e.local_pred)[0]] for e in result])

    with engine("lime"):
        ours = runs(LimeTextExplainer, range(repeats(200, 60)))
    theirs = runs(lime.lime_text.LimeTextExplainer, range(repeats(200, 60)))
    # two tests for each of ten coefficients, intercept, score and prediction, at 1 % together
    level = 0.01 / (2 * ours.shape[1])
    assert stats.ttest_ind(ours, theirs).pvalue.min() > level
    assert min(stats.levene(a, b).pvalue for a, b in zip(ours.T, theirs.T, strict=True)) > level


def test_the_engine_lime_selects_as_lime_does():
    count = repeats(60, 20)

    def chosen(explainer, seeds):
        result = [
            explainer(random_state=seed).explain_instance(TEXT, probabilities, num_samples=40, num_features=2)
            for seed in seeds
        ]
        return np.array([[j in dict(e.as_map()[1]) for j in range(len(WORDS))] for e in result]).sum(axis=0)

    with engine("lime"):
        ours = chosen(LimeTextExplainer, range(count))
    theirs = chosen(lime.lime_text.LimeTextExplainer, range(count))
    assert all(
        stats.fisher_exact([[a, count - a], [b, count - b]]).pvalue > 0.001
        for a, b in zip(ours, theirs, strict=True)
    )


@pytest.mark.parametrize("d", [1, 2, 7])
def test_every_number_and_every_set_of_words_is_as_likely(d):
    z = deletions(d, 30_001, np.random.default_rng(0))
    assert z.shape == (30_001, d)
    assert z[0].all()
    removed = (1 - z[1:]).sum(axis=1)
    counts = np.bincount(removed.astype(int), minlength=d + 1)
    assert counts[0] == 0
    assert stats.chisquare(counts[1:]).pvalue > 1e-3 if d > 1 else counts[1] == 30_000
    if d == 7:
        pairs = np.packbits(z[1:][removed == 2].astype(bool), axis=1)[:, 0]
        assert stats.chisquare(np.unique(pairs, return_counts=True)[1]).pvalue > 1e-3
        assert len(np.unique(pairs)) == 21


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "manhattan", "jaccard"])
def test_distances_are_lime_s(metric):
    from sklearn.metrics import pairwise_distances

    z = deletions(6, 50, np.random.default_rng(0))
    rows = z.astype(bool) if metric == "jaccard" else z
    expected = pairwise_distances(rows, rows[:1], metric=metric).ravel()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers that become bools
        np.testing.assert_allclose(distances(z, metric, "cosine"), expected, atol=1e-9)


def test_standard_errors_of_the_engine_lime_are_the_spread_over_seeds():
    result = [
        explained(probabilities, options={"engine": "lime", "random_state": s}, num_samples=300)
        for s in range(150)
    ]
    spread = np.std([in_order(e) for e in result], axis=0, ddof=1)
    errors = np.mean([[error for _, error in sorted(e.standard_errors[1])] for e in result], axis=0)
    # 150 runs know a spread to 6 %
    np.testing.assert_allclose(errors, spread, rtol=0.25)


# -- options -------------------------------------------------------------------------------------------------


@ENGINES
def test_a_text_s_result_depends_on_seed_and_text_alone(chosen):
    explainer = LimeTextExplainer(random_state=3, engine=chosen)
    text = " ".join(f"word{i} ood" for i in range(15))
    first = explainer.explain_instance(text, probabilities, num_samples=300).as_map()
    explainer.explain_instance(TEXT, probabilities, num_samples=300)
    assert explainer.explain_instance(text, probabilities, num_samples=300).as_map() == first
    again = LimeTextExplainer(random_state=3, engine=chosen).explain_instance(
        text, probabilities, num_samples=300
    )
    assert again.as_map() == first
    other = LimeTextExplainer(random_state=4, engine=chosen).explain_instance(
        text, probabilities, num_samples=300
    )
    assert other.as_map() != first


@ENGINES
def test_words_by_place_are_masked(chosen):
    seen = set()

    def predict(texts):
        seen.update(texts)
        return probabilities(texts)

    options = {"bow": False, "mask_string": "[MASK]", "engine": chosen}
    explanation = explained(predict, "slow food, slow", options=options, num_samples=200)
    assert seen <= {
        f"{a} {b}, {c}" for a in ("slow", "[MASK]") for b in ("food", "[MASK]") for c in ("slow", "[MASK]")
    }
    assert sorted(explanation.as_list(positions=True))[1][0].startswith("slow_")
    assert [word for word, _ in sorted(explanation.as_list())] == ["food", "slow", "slow"]


@ENGINES
@pytest.mark.parametrize("bow", [True, False])
def test_characters(chosen, bow):
    def predict(texts):
        p = np.array([0.05 * t.count("a") + 0.1 * t.count("b") for t in texts])
        return np.column_stack([1 - p, p])

    options = {"char_level": True, "bow": bow, "engine": chosen}
    explanation = explained(predict, "abba c", options=options, num_samples=2000)
    expected = [0.1, 0.2, 0, 0] if bow else [0.05, 0.1, 0.1, 0.05, 0, 0]
    # lime's ridge takes a few hundredths away
    np.testing.assert_allclose(in_order(explanation), expected, atol=1e-12 if chosen == "limit" else 0.01)
    assert explanation.as_list()[0][0] == "b"


@ENGINES
def test_splits(chosen):
    by_tokens = explained(
        probabilities, "good-food slow", options={"split_expression": str.split, "engine": chosen}
    )
    assert sorted(word for word, _ in by_tokens.as_list()) == ["good-food", "slow"]
    by_regex = explained(
        probabilities, "good-food slow", options={"split_expression": r"(-)|( )", "engine": chosen}
    )
    assert sorted(word for word, _ in by_regex.as_list()) == ["food", "good", "slow"]


class Pieces:
    """As a tokenizer with offsets that can be called too: its tokens are no pieces of the text."""

    def __call__(self, text):
        return [f"##{word}" for word in text.split()]

    def encode(self, text):
        class Encoding:
            offsets = tuple(match.span() for match in re.finditer(r"\w+", text))

        return Encoding()


@ENGINES
@pytest.mark.parametrize("split", [re.compile(r"\W+"), Pieces()], ids=["pattern", "tokenizer"])
def test_compiled_patterns_and_offsets_split_as_expressions_do(chosen, split):
    plain, other = (
        explained(probabilities, options={"split_expression": option, "engine": chosen}, num_samples=300)
        for option in (r"\W+", split)
    )
    assert other.as_list() == plain.as_list()


@ENGINES
def test_probabilities_of_one_column(chosen):
    flat = explained(lambda texts: probabilities(texts)[:, 1], options={"engine": chosen}, num_samples=300)
    column = explained(lambda texts: probabilities(texts)[:, 1:], options={"engine": chosen}, num_samples=300)
    whole = explained(probabilities, options={"engine": chosen}, num_samples=300)
    np.testing.assert_allclose(in_order(flat), in_order(whole), rtol=1e-9)
    np.testing.assert_allclose(in_order(column), in_order(whole), rtol=1e-9)
    np.testing.assert_allclose(flat.predict_proba.sum(), 1.0)


@ENGINES
def test_many_labels_of_which_several_hold(chosen):
    both = np.column_stack([LIKED, [int("food" in review) for review in REVIEWS]])
    model = make_pipeline(CountVectorizer(), OneVsRestClassifier(LogisticRegression())).fit(REVIEWS, both)
    explanation = explained(
        model.predict_proba, options={"engine": chosen}, labels=(0, 1), num_features=2, num_samples=400
    )
    assert explanation.available_labels() == [0, 1]
    assert explanation.as_list(1)[0][0] == "food"
    np.testing.assert_allclose(explanation.predict_proba, model.predict_proba([TEXT])[0])


@ENGINES
def test_top_labels_come_largest_first(chosen):
    topics = np.array(["food", "room", "service", "view", "evening", "wine"] * 3)
    model = make_pipeline(CountVectorizer(), RandomForestClassifier(20, random_state=0)).fit(REVIEWS, topics)
    result = explained(model.predict_proba, options={"engine": chosen}, top_labels=3, num_samples=300)
    predictions = model.predict_proba([TEXT])[0]
    assert (
        result.available_labels() == result.top_labels == np.argsort(-predictions, kind="stable")[:3].tolist()
    )
    np.testing.assert_allclose(result.predict_proba, predictions)
    assert [result.score[k] for k in result.top_labels] == [
        pytest.approx(v) for v in result.limes.fidelity[0]
    ] or chosen == "limit"


@ENGINES
def test_a_score_in_its_own_units(chosen):
    explanation = explained(STARS.predict, options={"mode": "regression", "engine": chosen}, num_samples=2000)
    assert explanation.available_labels() == [1]
    assert explanation.predicted_value == pytest.approx(STARS.predict([TEXT])[0])
    assert explanation.min_value < explanation.predicted_value <= explanation.max_value
    weights = dict(zip(STARS[0].get_feature_names_out(), STARS[1].coef_, strict=True))
    coef = {word: value for word, value in explanation.as_list() if word in ("food", "fine", "wine")}
    for word, value in coef.items():
        assert value == pytest.approx(weights[word], rel=EXACT if chosen == "limit" else 0.05)


@pytest.mark.parametrize(
    ("option", "call"),
    [
        ({"kernel": lambda d, kernel_width: np.ones_like(d)}, {}),
        ({}, {"model_regressor": LinearRegression()}),
        ({}, {"distance_metric": "euclidean"}),
    ],
)
def test_options_of_engine_lime_alone_choose_it_with_a_reason(option, call):
    result = explained(options=option, num_samples=200, **call)
    assert result.engine == "lime"
    assert result.engine_reason == f"only lime's sampling supports {next(iter(option | call))}"


def test_few_samples_are_lime_s():
    long = " ".join(f"w{i}" for i in range(60))
    result = explained(probabilities, long, num_samples=100)
    assert (result.engine, result.engine_reason) == (
        "lime",
        "only lime's sampling supports fewer than 134 num_samples",
    )
    assert explained(MODEL.predict_proba, long, num_samples=100).engine == "limit"


@ENGINES
def test_verbose_prints_intercept_and_prediction(chosen, capsys):
    surrogate = explained(probabilities, options={"verbose": True, "engine": chosen}, num_samples=200)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Intercept {surrogate.intercept[1]}"
    assert lines[2] == f"Right: {probabilities([TEXT])[0, 1]}"


@ENGINES
def test_a_progress_bar_changes_nothing(chosen):
    shown = explained(probabilities, options={"engine": chosen}, num_samples=700, progress_bar=True)
    assert shown.as_map() == explained(probabilities, options={"engine": chosen}, num_samples=700).as_map()


def test_the_model_gets_no_more_calls_than_needed():
    asked_for = []

    def predict(texts):
        asked_for.extend(texts)
        return probabilities(texts)

    explained(predict, " ".join(f"w{i} good" for i in range(20)), num_samples=500)
    assert len(asked_for) <= 500 + 1
    asked_for.clear()
    explained(predict, options={"engine": "lime"}, num_samples=500)
    assert len(asked_for) == 500
    assert asked_for[0] == TEXT


@pytest.mark.parametrize(
    "name",
    ["LimeTextExplainer", "LimeTextExplainer.explain_instance", "IndexedString", "IndexedCharacters"],
)
def test_signatures_are_lime_s_and_more(name):
    ours, theirs = (
        [(p.name, p.default) for p in inspect.signature(attrgetter(name)(module)).parameters.values()]
        for module in (lime_text, lime.lime_text)
    )
    assert ours[: len(theirs)] == theirs


# -- results -------------------------------------------------------------------------------------------------


@ENGINES
def test_explainers_and_explanations_can_be_pickled(chosen):
    explainer = LimeTextExplainer(random_state=0, engine=chosen, class_names=["bad", "good"])
    explanation = explainer.explain_instance(TEXT, MODEL.predict_proba, num_samples=300)
    again = pickle.loads(pickle.dumps(explainer)).explain_instance(TEXT, MODEL.predict_proba, num_samples=300)
    back = pickle.loads(pickle.dumps(explanation))
    assert back.as_list() == explanation.as_list() == again.as_list()
    assert back.score == explanation.score
    assert back.as_html() == explanation.as_html()
    scored = explained(lambda texts: MODEL.decision_function(texts), options={"mode": "regression"})
    assert pickle.loads(pickle.dumps(scored)).as_list() == scored.as_list()


@ENGINES
def test_pictures_and_pages(chosen, tmp_path):
    text = 'Good <script>alert("x")</script> food & </title> wine\n$x_1$ slow'
    options = {"class_names": ["</script>", "good"], "engine": chosen}
    explanation = explained(
        probabilities, text, options=options, num_samples=300, num_features=3, labels=(0, 1)
    )
    plt.close(explanation.as_pyplot_figure(label=0))
    explanation.save_to_file(tmp_path / "page.html", text=True)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>" not in page
    assert "</script>" not in page
    assert "&lt;/script&gt;" in page
    assert all(word in page for word, _ in explanation.as_list())
    assert "$" in page
    assert "$" not in explanation.as_html(text=False)
    with pytest.raises(UnknownOptionError, match="opacity, text"):
        explanation.as_html(texts=False)


@ENGINES
def test_the_page_has_the_numbers_of_the_list(chosen):
    explanation = explained(probabilities, options={"engine": chosen}, num_samples=400, num_features=2)
    shown = explanation._shown([1])
    assert shown.feature_names == tuple(word for word, _ in explanation.as_list())
    np.testing.assert_allclose(
        shown.coefficients.values[0, :, 0], [value for _, value in explanation.as_list()]
    )
    np.testing.assert_allclose(shown.coefficients.intercepts[0, 0], explanation.intercept[1])
    np.testing.assert_allclose(shown.coefficients.surrogate_predictions[0, 0], explanation.local_pred)


def test_the_way_back_is_diagnosed():
    result = explained(MODEL.decision_function, options={"mode": "regression"})
    assert "surrogate" in str(limes.diagnose(result.limes))


# -- texts ---------------------------------------------------------------------------------------------------


@CLASSES
@given(text=st.text(min_size=1, max_size=30), bow=st.booleans())
def test_nothing_removed_leaves_the_text(make, text, bow):
    try:
        indexed = make(text, bow=bow)
    except InputError:
        return
    assert indexed.raw_string() == text == "".join(indexed.as_list) == indexed.inverse_removing([])
    assert indexed.num_words() == len(indexed.inverse_vocab) == len(indexed.positions)
    for j, word in enumerate(indexed.inverse_vocab):
        assert all(text[start : start + len(word)] == word for start in indexed.string_position(j))
        places = indexed.positions[j] if bow else [indexed.positions[j]]
        assert [indexed.as_list[i] for i in places] == [word] * len(places)
        np.testing.assert_array_equal(indexed.string_start[places], indexed.string_position(j))


@CLASSES
@given(text=st.text("ab ,.\nä", min_size=1, max_size=20).filter(str.strip), bow=st.booleans(), data=st.data())
def test_remaining_texts_are_limes(make, text, bow, data):
    original = getattr(lime.lime_text, make.__name__)(text, bow=bow)
    if not original.num_words():
        return
    ours = make(text, bow=bow)
    gone = data.draw(st.lists(st.integers(0, ours.num_words() - 1), unique=True, min_size=1))
    assert ours.inverse_removing(gone) == original.inverse_removing(gone)
    assert ours.inverse_vocab == list(original.inverse_vocab)
    np.testing.assert_array_equal(ours.string_start, original.string_start)


def test_tokens_leave_the_rest_of_the_text():
    indexed = IndexedString("one two... ", str.split)
    assert indexed.inverse_removing([0]) == " two... "
    assert IndexedString("one (two) !?", lambda _: ["one", "two"]).inverse_removing([1]) == "one () !?"


@ENGINES
@pytest.mark.parametrize(
    "text", ["Привет мир, привет", "你好 世界", "naïve café ☕ good", "a\u0301 b", "x\0y z"]
)
def test_any_script(chosen, text):
    explanation = explained(probabilities, text, options={"engine": chosen}, num_samples=200)
    assert all(word in text for word, _ in explanation.as_list())
    assert explanation.as_html()


@ENGINES
@pytest.mark.parametrize("selection", ["auto", "none", "highest_weights", "forward_selection", "lasso_path"])
@pytest.mark.parametrize("text", ["good", "Good! Good"])
def test_a_text_of_one_word(chosen, text, selection):
    """The limit said 0, lime 0.02 of 0.05: with its ridge, and f(1) - f(0) without."""
    options = {"engine": chosen, "feature_selection": selection}
    explanation = explained(probabilities, text, options=options, num_samples=200)
    nothing = probabilities([text.lower().replace("good", "")])[0, 1]
    change = probabilities([text])[0, 1] - nothing
    # lime's fit: 199 rows without the word, of weight exp(-8) each, the text itself, and a ridge penalty of 1
    gone = 199 * np.exp(-8.0)
    gram = gone / (1.0 + gone)
    expected = change if chosen == "limit" else change * gram / (gram + 1.0)
    assert [word.lower() for word, _ in explanation.as_list()] == ["good"]
    assert in_order(explanation)[0] == pytest.approx(expected, rel=EXACT)
    if chosen == "limit":
        assert explanation.intercept[1] == pytest.approx(nothing, rel=EXACT)
        assert "one word" in explanation.limes.warnings[0]


# -- errors --------------------------------------------------------------------------------------------------


@ENGINES
@pytest.mark.parametrize("text", ["", "   ", "?!..."])
def test_texts_without_words(chosen, text):
    with pytest.raises(InputError, match=r"empty|finds no words"):
        explained(text=text, options={"engine": chosen})


@ENGINES
@pytest.mark.parametrize("text", [None, 3, ["a", "b"], b"good food"])
def test_other_inputs_are_refused_as_no_text(chosen, text):
    with pytest.raises(InputError, match=r"expected a text|bytes"):
        explained(text=text, options={"engine": chosen})


@ENGINES
@pytest.mark.parametrize(
    ("predict", "error", "says"),
    [
        (lambda texts: np.ones((1, 2)), ModelError, "one line a row"),
        (lambda texts: np.ones((len(texts), 2, 2)), ModelError, "one line a row"),
        (lambda texts: np.ones((2, len(texts), 2)), ModelError, "one line a row"),
        (lambda texts: np.full((len(texts), 2), np.nan), ModelError, "not finite"),
        (lambda texts: ["good"] * len(texts), ModelError, "no number"),
        (lambda texts: 7.0 + np.arange(len(texts)), InputError, "no probability"),
        (MODEL, InputError, "cannot be called"),
        (None, InputError, "cannot be called"),
    ],
)
def test_answers_that_are_not_usable(chosen, predict, error, says):
    with pytest.raises(error, match=says):
        explained(predict, options={"engine": chosen}, num_samples=200)


@ENGINES
def test_errors_are_advice(chosen):
    def with_options(**options):
        return LimeTextExplainer(engine=chosen, **options)

    with pytest.raises(UnknownOptionError, match="split_expression"):
        with_options(split_expresion=" ")
    with pytest.warns(UserWarning, match="did you mean 'lasso_path'"):
        misspelt = with_options(feature_selection="lasso_paths")
    with pytest.raises(InputError, match="did you mean 'lasso_path'"):
        misspelt.explain_instance(TEXT, probabilities)
    with pytest.raises(InputError, match="kernel_width"):
        with_options(kernel_width=0)
    with pytest.raises(InputError, match="no regular expression"):
        with_options(split_expression="(")
    with pytest.raises(InputError, match="one of"):
        with_options(mode="multi")
    with pytest.raises(InputError, match="not in the text"):
        with_options(split_expression=lambda text: ["nowhere"]).explain_instance(TEXT, probabilities)
    with pytest.raises(InputError, match="0 to 1"):
        with_options().explain_instance(TEXT, probabilities, labels=(2,), num_samples=200)
    with pytest.raises(InputError, match="num_features"):
        with_options().explain_instance(TEXT, probabilities, num_features=0)
    with pytest.raises(InputError, match="num_samples"):
        with_options().explain_instance(TEXT, probabilities, num_samples=0)
    with pytest.raises(LimeError, match="only \\[1\\]"):
        explained(probabilities, options={"engine": chosen}, num_samples=200).as_list(label=0)
    with pytest.raises(InputError, match="engine"):
        LimeTextExplainer(engine="limits")
    with pytest.raises(InputError, match="'cosin' is no metric"):
        with_options().explain_instance(TEXT, probabilities, distance_metric="cosin", num_samples=200)


@ENGINES
def test_a_model_that_fails_says_so(chosen):
    broken = make_pipeline(FunctionTransformer(), LogisticRegression())
    with pytest.raises((ModelError, ValueError)):
        explained(lambda texts: broken.predict_proba(texts), options={"engine": chosen})

    def predict(texts):
        raise RuntimeError("no memory left")

    with pytest.raises((ModelError, RuntimeError), match="no memory left"):
        explained(predict, options={"engine": chosen}, num_samples=200)


def test_positions_are_ragged_as_in_limes_tests():
    by_words = IndexedString("Please, take your time. Please")
    assert by_words.positions == [[0, 8], [2], [4], [6]]
    by_tokens = IndexedString("aabbccddaa", lambda text: [text[i : i + 2] for i in range(0, len(text), 2)])
    assert by_tokens.positions == [[0, 4], [1], [2], [3]]


def test_results_made_by_hand_are_lists_figures_and_pages(tmp_path):
    """Forks and extensions of lime fill the attributes in themselves."""
    mapper = TextDomainMapper(IndexedString("good food and bad service"))
    explanation = Explanation(mapper, class_names=["neg", "pos"])
    explanation.local_exp, explanation.intercept = {1: [(0, 0.4), (3, -0.3)], 0: [(0, -0.4)]}, {1: 0.5}
    explanation.predict_proba, explanation.score = np.array([0.4, 0.6]), 0.8
    assert explanation.as_list() == [("good", 0.4), ("bad", -0.3)]
    explanation.save_to_file(tmp_path / "page.html", labels=(1,))
    page = (tmp_path / "page.html").read_text()
    for text in ("good", "+0.4000", "-0.3000", "prediction <b>0.6</b>", "R² <b>0.8</b>", "filled in by hand"):
        assert text in page
    assert "nan" not in page
    assert "neg" in explanation._repr_html_()
    score = Explanation(mapper, mode="regression")
    score.local_exp, score.intercept = {1: [(0, 0.4)], 0: [(0, -0.4)]}, {1: 2.0, 0: 2.0}
    score.min_value, score.max_value, score.predicted_value = 0, 5, 3.0
    assert (score.min_value, score.max_value) == (0, 5)
    assert "prediction <b>3</b>" in score.as_html()


@pytest.mark.parametrize(
    "expression", ["word", "words", "sentence", "chars", "token", "lines", r"\W+", "and"]
)
def test_names_of_splits_are_expressions_as_they_are_to_lime(expression):
    text = f"good {expression} bad; {expression}s and a word here"
    ours = IndexedString(text, split_expression=expression)
    theirs = lime.lime_text.IndexedString(text, split_expression=expression)
    assert [ours.word(j) for j in range(ours.num_words())] == [
        theirs.word(j) for j in range(theirs.num_words())
    ]
