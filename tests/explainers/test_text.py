"""Text explainers against every deletion of words, by calls of the model; words and their positions."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, VotingRegressor
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import ComplementNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import limes
from effort import examples
from internals import CHECK_CALLS
from limes import Explanation, TextExplainer
from limes.exceptions import InputError, ModelError, NotReadableError
from reviews import LIKED, STARS, TEXT, TRAINING, assert_exact, enumerated

LINEAR = [
    CountVectorizer(),
    CountVectorizer(binary=True),
    CountVectorizer(max_features=12, stop_words=["the", "was"]),
    CountVectorizer(lowercase=False, strip_accents="unicode", token_pattern=r"[a-zA-Z]+"),  # noqa: S106
    TfidfVectorizer(),
    TfidfVectorizer(norm="l1", sublinear_tf=True),
    TfidfVectorizer(norm=None, use_idf=False),
    TfidfVectorizer(sublinear_tf=True, smooth_idf=False, stop_words="english"),
    TfidfVectorizer(binary=True, strip_accents="ascii", token_pattern=r"(?u)\b\w+\b"),  # noqa: S106
    HashingVectorizer(n_features=2**12),
    HashingVectorizer(n_features=2**12, norm=None, alternate_sign=False, binary=True),
]


def _id(value):
    return str(value).replace("\n", " ") if hasattr(value, "get_params") else None


@pytest.mark.parametrize("vectorizer", LINEAR, ids=_id)
def test_linear_margins_are_exact_behind_every_vectorizer(vectorizer):
    model = make_pipeline(vectorizer, LogisticRegression()).fit(TRAINING, LIKED)
    explanation = TextExplainer(model, output="margin")(TEXT)
    assert_exact(explanation, model.decision_function)
    np.testing.assert_allclose(explanation.predictions, model.decision_function([TEXT]), rtol=1e-9)


@pytest.mark.parametrize(
    "classifier",
    [LinearSVC(), SGDClassifier(random_state=0), RidgeClassifier(), LogisticRegression(C=1e4)],
    ids=_id,
)
def test_margins_of_linear_classifiers(classifier):
    model = make_pipeline(TfidfVectorizer(), classifier).fit(TRAINING, LIKED)
    assert_exact(TextExplainer(model, output="margin")(TEXT), model.decision_function)


@pytest.mark.parametrize("regressor", [LinearRegression(), Ridge()], ids=_id)
@pytest.mark.parametrize("bandwidth", [0.05, 0.1, 0.25, 1.0, float("inf")])
def test_regressors_at_any_bandwidth(regressor, bandwidth):
    model = make_pipeline(TfidfVectorizer(), regressor).fit(TRAINING, STARS)
    explanation = TextExplainer(model, bandwidth=bandwidth)(TEXT)
    assert_exact(explanation, model.predict, bandwidth=bandwidth)


@pytest.mark.parametrize("bayes", [MultinomialNB(), ComplementNB(norm=True)], ids=_id)
@pytest.mark.parametrize("target", [LIKED, np.arange(8) % 3], ids=["two", "three"])
@pytest.mark.parametrize("vectorizer", [CountVectorizer(), TfidfVectorizer()], ids=_id)
def test_log_odds_of_naive_bayes(bayes, target, vectorizer):
    model = make_pipeline(vectorizer, bayes).fit(TRAINING, target)

    def margin(texts):
        result = model[-1].predict_joint_log_proba(model[0].transform(texts))
        return result[:, 1] - result[:, 0] if result.shape[1] == 2 else result

    assert_exact(TextExplainer(model, output="margin")(TEXT), margin)


def test_several_classes():
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TRAINING, np.arange(8) % 3)
    explanation = TextExplainer(model, output="margin")(TEXT)
    assert explanation.output_names == ("0", "1", "2")
    assert_exact(explanation, model.decision_function)


@pytest.mark.parametrize(
    ("tree", "ask"),
    [
        (DecisionTreeClassifier(random_state=0), "predict_proba"),
        (RandomForestClassifier(20, random_state=0), "predict_proba"),
        (GradientBoostingClassifier(n_estimators=10, random_state=0), "decision_function"),
    ],
    ids=_id,
)
@pytest.mark.parametrize(
    "vectorizer", [CountVectorizer(), CountVectorizer(binary=True), TfidfVectorizer(norm=None)], ids=_id
)
def test_trees_on_counts(tree, ask, vectorizer):
    model = make_pipeline(vectorizer, tree).fit(TRAINING, LIKED)
    output = "margin" if ask == "decision_function" else None
    text = "Bad food, never again! The cake was lovely, the staff slow"
    assert_exact(TextExplainer(model, output=output)(text), getattr(model, ask), text=text)


@pytest.mark.parametrize("library", ["lightgbm", "catboost", "xgboost"])
def test_boosted_trees_of_other_libraries(library):
    pytest.importorskip(library)
    model = make_pipeline(CountVectorizer(dtype=np.float64), _booster(library)).fit(
        TRAINING * 10, list(STARS) * 10
    )
    text = "Bad food, never again! The cake was lovely, the staff slow"
    if library == "xgboost":
        with pytest.raises(NotReadableError, match="missing"):
            TextExplainer(model, method="exact", max_calls=64)(text)
        return
    assert_exact(TextExplainer(model)(text), model.predict, text=text)


def _booster(library):
    if library == "lightgbm":
        from lightgbm import LGBMRegressor

        return LGBMRegressor(n_estimators=5, min_child_samples=2, verbose=-1)
    if library == "catboost":
        from catboost import CatBoostRegressor

        return CatBoostRegressor(iterations=5, depth=3, verbose=0, allow_writing_files=False)
    from xgboost import XGBRegressor

    return XGBRegressor(n_estimators=5)


@pytest.mark.parametrize(
    "steps",
    [
        (CountVectorizer(), TfidfTransformer(), Ridge()),
        (HashingVectorizer(n_features=2**12, norm=None, alternate_sign=False), TfidfTransformer(), Ridge()),
        (TfidfVectorizer(), SelectKBest(f_regression, k=8), Ridge()),
        (TfidfVectorizer(), TruncatedSVD(4, random_state=0), Ridge()),
        (CountVectorizer(), MaxAbsScaler(), DecisionTreeRegressor(random_state=0)),
        (CountVectorizer(), VotingRegressor([("a", Ridge()), ("b", DecisionTreeRegressor(random_state=0))])),
        (CountVectorizer(), make_pipeline(TfidfTransformer(norm="l1"), Ridge())),
    ],
    ids=lambda steps: " ".join(type(step).__name__ for step in steps),
)
def test_longer_pipelines(steps):
    model = make_pipeline(*steps).fit(TRAINING, STARS)
    assert_exact(TextExplainer(model)(TEXT), model.predict)


GRAMS = [
    CountVectorizer(ngram_range=(1, 2)),
    CountVectorizer(ngram_range=(2, 2), lowercase=False),
    CountVectorizer(ngram_range=(1, 3), stop_words=["the", "was"]),
    CountVectorizer(ngram_range=(2, 3), token_pattern=r"(?u)\b\w+\b", max_features=90),  # noqa: S106
    TfidfVectorizer(ngram_range=(1, 2), norm=None),
    HashingVectorizer(ngram_range=(1, 2), norm=None, n_features=2**8),
]


@pytest.mark.parametrize("vectorizer", GRAMS, ids=_id)
@pytest.mark.parametrize("bag", [True, False])
def test_ngrams_of_words_that_become_neighbours(vectorizer, bag):
    """The bigram "bad food" appears when all between "bad" and "food" is removed, and only then."""
    model = make_pipeline(vectorizer, LogisticRegression()).fit(TRAINING, LIKED)
    text = "The food was bad, the bad food was slow; bad? bad" if bag else "Bad the food was bad, food"
    explanation = TextExplainer(model, output="margin", bag=bag)(text)
    assert_exact(explanation, model.decision_function, text=text)
    plain = TextExplainer(lambda texts: model.decision_function(texts), bag=bag)(text)
    np.testing.assert_allclose(plain.predictions, explanation.predictions)


@pytest.mark.parametrize("longest", [2, 3])
def test_ngrams_of_a_longer_text(longest):
    """Against the model's answers to strings, within the errors of a sample of them."""
    texts = [" ".join(np.random.default_rng(i).permutation(TRAINING).tolist()) for i in range(8)]
    vectorizer = CountVectorizer(ngram_range=(1, longest))
    model = make_pipeline(vectorizer, LogisticRegression()).fit(TRAINING, LIKED)
    text = " ".join(texts[:2])
    exact = TextExplainer(model, output="margin")(text)
    assert exact.method == "exact"
    sampled = TextExplainer(lambda texts: model.decision_function(texts), max_calls=2048)(text.lower())
    z = (sampled.coefficients.values - exact.coefficients.values) / sampled.coefficients.standard_errors
    assert np.abs(z).max() < 5
    assert (np.abs(z) < 2).mean() > 0.85


def test_trigrams_that_the_vocabulary_does_not_know_cost_nothing():
    """400 words have ten million trigrams; the model knows a few."""
    model = make_pipeline(CountVectorizer(ngram_range=(1, 3)), Ridge()).fit(TRAINING, STARS)
    text = " ".join([*(f"word{i}" for i in range(400)), TRAINING[0]])
    explanation = TextExplainer(model, method="exact", max_calls=64)(text)
    assert explanation.method == "exact"
    alone = model.predict([TRAINING[0], text])
    np.testing.assert_allclose(alone[0], alone[1])
    unknown, in_vocabulary = (
        explanation.coefficients.values[0, :400],
        explanation.coefficients.values[0, 400:],
    )
    np.testing.assert_allclose(unknown, unknown[0], rtol=1e-9)
    assert np.abs(unknown).max() < 0.01 * np.abs(in_vocabulary).max()


def test_too_many_ngrams_are_not_read():
    vectorizer = HashingVectorizer(ngram_range=(1, 3), norm=None, n_features=2**10)
    model = make_pipeline(vectorizer, Ridge()).fit(TRAINING, STARS)
    text = " ".join(f"word{i}" for i in range(400))
    with pytest.raises(NotReadableError, match="too many n-grams"):
        TextExplainer(model, method="exact", max_calls=64)(text)


def test_ngrams_and_masks():
    model = make_pipeline(CountVectorizer(ngram_range=(1, 2)), Ridge()).fit(TRAINING, STARS)
    dots = TextExplainer(model, mask="...")("bad slow food was bad")
    np.testing.assert_allclose(
        dots.coefficients.values, TextExplainer(model)("bad slow food was bad").coefficients.values
    )
    with pytest.raises(NotReadableError, match="between the words of n-grams"):
        TextExplainer(model, mask="UNK", method="exact", max_calls=4)("bad slow food was bad")


def test_trees_on_ngrams_are_not_read():
    model = make_pipeline(CountVectorizer(ngram_range=(1, 2)), DecisionTreeRegressor()).fit(TRAINING, STARS)
    with pytest.raises(NotReadableError, match="n-grams"):
        TextExplainer(model, method="exact", max_calls=64)(TEXT)


@pytest.mark.parametrize("vectorizer", [CountVectorizer, HashingVectorizer])
def test_a_text_without_a_known_ngram(vectorizer):
    options = {"norm": None} if vectorizer is HashingVectorizer else {}
    model = make_pipeline(
        vectorizer(ngram_range=(2, 2), stop_words=["alpha", "gamma"], **options), MaxAbsScaler(), Ridge()
    )
    model.fit(TRAINING, STARS)
    explanation = TextExplainer(model)("alpha beta gamma")
    assert explanation.method == "exact"
    np.testing.assert_allclose(explanation.coefficients.values, 0.0, atol=1e-12)


def test_searches_and_separate_vectorizers_are_the_same_model():
    search = GridSearchCV(make_pipeline(TfidfVectorizer(), Ridge()), {"ridge__alpha": [0.5, 2.0]}, cv=2)
    search.fit(TRAINING, STARS)
    best = search.best_estimator_
    inner = TextExplainer(best)(TEXT)
    for explainer in (TextExplainer(search), TextExplainer(best[-1], vectorizer=best[0])):
        np.testing.assert_array_equal(explainer(TEXT).coefficients.values, inner.coefficients.values)


# -- words and their places ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TRAINING, LIKED)


@pytest.fixture(scope="module")
def exact(model):
    return TextExplainer(model, output="margin")


def places(explanation, text):
    return {
        name: [text[start:end] for start, end in explanation.provenance["spans"][condition]]
        for name, condition in zip(explanation.feature_names, explanation.conditions[0], strict=True)
    }


def test_words_that_the_vectorizer_merges_are_one_word(exact):
    result = places(exact(TEXT), TEXT)
    assert result["food"] == ["FOOD", "food"]
    assert result["bad"] == ["bad"] * 3
    assert result["Good"] == ["Good"]
    assert list(result) == ["Good", "food", "bad", "the", "café", "zyzzyva", "was", "slow"]


def test_spellings_can_be_told_apart(model):
    explanation = TextExplainer(model, output="margin", bag="spelling")("Good food, good food: FOOD")
    assert explanation.feature_names == ("Good", "food", "good", "FOOD")
    assert explanation.data[0].tolist() == [1, 2, 1, 1]
    assert explanation.method == "exact"
    assert_exact(explanation, model.decision_function, text="Good food, good food: FOOD")


def test_without_a_bag_each_place_has_a_word(model):
    counts = make_pipeline(CountVectorizer(), LogisticRegression()).fit(TRAINING, LIKED)
    text = "bad, bad food"
    explanation = TextExplainer(counts, output="margin", bag=False)(text)
    assert explanation.feature_names == ("bad", "bad", "food")
    assert explanation.conditions[0] == ('"bad" at 0 present', '"bad" at 5 present', '"food" at 9 present')
    assert_exact(explanation, counts.decision_function, text=text)
    by_place = TextExplainer(model, output="margin", bag=False, method="exact", max_calls=4)
    assert_exact(by_place(text), model.decision_function, text=text)
    with pytest.raises(NotReadableError, match="more than 10 words of the text share columns"):
        by_place("bad " * 11)


def test_a_callable_split_and_one_by_pattern_say_the_same(model, exact):
    by_words = TextExplainer(
        model, output="margin", split=lambda t: [m.span() for m in re.finditer(r"\w+", t)]
    )
    np.testing.assert_array_equal(by_words(TEXT).coefficients.values, exact(TEXT).coefficients.values)
    spaces = TextExplainer(model, output="margin", split=re.compile(r"\s+"))(TEXT)
    assert "(zyzzyva)" in spaces.feature_names
    assert_exact(
        TextExplainer(model, output="margin", split=r"\s+")("good,food bad the-café"),
        *[model.decision_function],
        text="good,food bad the-café",
    )


class Offsets:
    """As a tokenizer of the ``tokenizers`` library: encode gives offsets, special tokens stand nowhere."""

    def encode(self, text):
        class Encoding:
            offsets = ((0, 0), *[(i, i + 1) for i, c in enumerate(text) if c != " "], (0, 0))

        return Encoding()


def test_a_tokenizer_with_offsets_and_the_reason_why_it_is_not_exact(model):
    with pytest.raises(NotReadableError, match="touch each other"):
        TextExplainer(model, output="margin", split=Offsets(), method="exact", max_calls=64)("abcd efg")


def test_tokenizers_of_hugging_face():
    """Pieces of words, learnt here: offsets are those of the text, whatever the tokens look like."""
    tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=90, special_tokens=["[UNK]", "[CLS]"])
    tokenizer.train_from_iterator(TRAINING, trainer)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A", special_tokens=[("[CLS]", 1)]
    )
    text = "Good food, slow café 👍🏽!"
    explanation = TextExplainer(_letters, split=tokenizer, bag=False, max_calls=128)(text)
    pieces = [text[start:end] for spans in explanation.provenance["spans"].values() for start, end in spans]
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
    assert len(pieces) > len(text.split())
    np.testing.assert_allclose(
        explanation.coefficients.values[0], [piece.count("o") for piece in pieces], atol=1e-9
    )


def _letters(texts):
    return np.array([float(text.count("o")) for text in texts])


class Fast:
    """As a fast tokenizer of ``transformers``: called, it gives an offset mapping."""

    is_fast = True

    def encode(self, text):
        raise AssertionError("its encode gives numbers only")

    def __call__(self, text, *, return_offsets_mapping, add_special_tokens):
        assert return_offsets_mapping
        assert not add_special_tokens
        return {"offset_mapping": [(0, 4), (4, 8), (9, 13)]}


def test_tokenizers_of_transformers():
    assert TextExplainer(_letters, split=Fast())("goodfood wine").feature_names == ("good", "food", "wine")
    slow = type("Slow", (Fast,), {"is_fast": False})()
    with pytest.raises(InputError, match="fast variant"):
        TextExplainer(_letters, split=slow)("good food")


def test_a_mask_that_the_vectorizer_does_not_know_is_a_deletion(model, exact):
    masked = TextExplainer(model, output="margin", mask="UNKWORDZ")(TEXT)
    np.testing.assert_array_equal(masked.coefficients.values, exact(TEXT).coefficients.values)
    with pytest.raises(NotReadableError, match="is a token of the vectorizer"):
        TextExplainer(model, output="margin", mask="food", method="exact", max_calls=64)(TEXT)


@pytest.mark.parametrize(
    "text",
    [
        "good 👍🏽 food, bad 🍕 service",
        "الطعام good والخدمة bad food",
        "אוכל good food",
        "İstanbul good food straße bad",
        "good",
        "zyzzyva",
        "x\u200by good\nfood\t\x00bad",
        "½ good™ food",
    ],
)
def test_any_script(exact, model, text):
    explanation = exact(text)
    assert explanation.coefficients.values.shape == (1, len(explanation.feature_names))
    if len(explanation.feature_names) == 1:
        whole, nothing = model.decision_function([text, ""])
        assert explanation.coefficients.values[0, 0] == pytest.approx(whole - nothing, abs=1e-12)
        assert explanation.coefficients.intercepts[0] == pytest.approx(nothing, rel=1e-9)
        assert "one word" in explanation.warnings[0]
    else:
        assert_exact(explanation, model.decision_function, text=text)


def as_lime_fits(ask, d, bandwidth, rows=400):
    """Weighted least squares of lime's own rows: the original text, and others with some words deleted."""
    rng = np.random.default_rng(0)
    z = np.ones((rows, d))
    for row in z[1:]:
        row[rng.choice(d, rng.integers(1, d + 1), replace=False)] = 0.0
    distance = 1.0 - np.sqrt(z.mean(axis=1))
    root = np.exp(-((distance / bandwidth) ** 2) / 4.0)
    result, *_ = np.linalg.lstsq(
        np.column_stack([np.ones(rows), z]) * root[:, None], ask(z) * root, rcond=None
    )
    return result


@pytest.mark.parametrize("text", ["good", "Good! Good"])
@pytest.mark.parametrize("bandwidth", [0.1, 0.25, np.inf])
@pytest.mark.parametrize("kind", ["read", "probability", "callable", "masked", "sampled"])
def test_a_text_of_one_word_is_explained_by_its_absence(model, text, bandwidth, kind):
    """0 was called exact, though the prediction changes; lime finds f(1) - f(0) with any number of rows."""
    options = {"mask": "food"} if kind == "masked" else {}
    if kind == "sampled":
        options["method"] = "sampled"
    margin = {"output": "margin"} if kind == "read" else {"output": 1}
    ask = model.decision_function if kind == "read" else lambda texts: model.predict_proba(texts)[:, 1]
    explainer = (
        TextExplainer(ask, bandwidth=bandwidth)
        if kind == "callable"
        else TextExplainer(model, bandwidth=bandwidth, **margin, **options)
    )
    explanation = explainer(text)
    without = re.sub("(?i)good", options.get("mask", ""), text)
    expected = as_lime_fits(lambda z: np.where(z[:, 0] == 1, *ask([text, without])), 1, bandwidth)
    assert explanation.method == "exact"
    assert explanation.coefficients.values[0, 0] == pytest.approx(expected[1], rel=1e-9)
    assert explanation.coefficients.intercepts[0] == pytest.approx(expected[0], rel=1e-9)
    whole, nothing = ask([text, without])
    assert explanation.coefficients.values[0, 0] == pytest.approx(whole - nothing, rel=1e-9)
    assert any("one word" in warning for warning in explanation.warnings)


def test_the_ridge_of_one_word_is_lime_s(model):
    """5000 rows: one with the word, the others without it, and a penalty of 1."""
    result = TextExplainer(model, ridge=1.0, output="margin")("good")
    whole, nothing = model.decision_function(["good", ""])
    gone = 4999 * np.exp(-8.0)
    gram = gone / (1.0 + gone)
    assert result.coefficients.values[0, 0] == pytest.approx(
        (whole - nothing) * gram / (gram + 1.0), rel=1e-9
    )


def test_one_word_has_one_coefficient_at_all_bandwidths(model):
    """Diagnosed, it changed its sign at narrow ones: what weighs 1e-44 was rounded away."""
    explainer = TextExplainer(lambda texts: model.predict_proba(texts)[:, 1])
    diagnosis = limes.diagnose(explainer("good"))
    assert all(finding.kind != "bandwidth" for finding in diagnosis.findings)


def test_scripts_without_spaces(exact):
    """A sentence is one word for the default split; a warning names ``split``."""
    text = "我喜欢吃苹果但是太贵了"
    assert any("split=" in warning for warning in exact(text).warnings)
    split = TextExplainer(
        lambda texts: [len(t) for t in texts], split=lambda t: [(i, i + 1) for i in range(len(t))]
    )
    assert not any("split=" in warning for warning in split(text).warnings)
    assert not any("split=" in warning for warning in exact("good food").warnings)


# fmt: off
PIECES = [
    "good", "Good", "GOOD", "food", "bad", "don't", "it's", "café", "cafe\u0301", "İs", "ıs", "ß",
    "SS", "ﬁne", "fine", "a", "I", "x_y", "_", "3", "3.5", "1,000", "naïve", "Ναι", "日本", "日本語",
    "ไทย", "हिन्दी", "אוכל", "الطعام", "👍🏽", "👨\u200d👩\u200d👧", "a\u200db", "a\u00adb", "\u0301",
    "ǅ", "ŉ", "²", "½", "①", "the", "was",
]
# fmt: on
GAPS = [" ", "  ", ", ", "\n", "-", "'", "…", "\u00a0", "\u2019", "/", "\u200b", "\x1f", "_ ", "!"]
mixtures = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(GAPS)), min_size=1, max_size=7)


@functools.cache
def fitted(number):
    texts = [*TRAINING, *(" ".join(PIECES[i:]) for i in range(0, len(PIECES), 4))]
    vectorizer = [*LINEAR, *GRAMS][number]
    return make_pipeline(vectorizer, Ridge(0.1)).fit(texts, np.random.default_rng(0).normal(size=len(texts)))


@settings(max_examples=examples(150), deadline=None)
@given(
    mixtures,
    st.integers(0, len(LINEAR) + len(GRAMS) - 1),
    st.sampled_from([r"\W+", r"\s+", r"[^\w']+"]),
    st.booleans(),
    st.sampled_from([0.05, 0.25, float("inf")]),
)
def test_read_texts_are_exact_and_the_others_are_refused(mixture, number, split, bag, bandwidth):
    text, model = "".join(piece + gap for piece, gap in mixture), fitted(number)
    assume(re.sub(split, "", text))
    options = {"split": split, "bag": bag, "bandwidth": bandwidth, "method": "exact", "max_calls": 1}
    try:
        explanation = TextExplainer(model, **options)(text)
    except NotReadableError:
        return
    if len(explanation.feature_names) > 1:
        _, coef, _ = enumerated(explanation, model.predict, bandwidth, text)
        np.testing.assert_allclose(
            explanation.coefficients.values[0], coef, rtol=1e-9, atol=1e-9 * (1 + np.abs(coef).max())
        )


def test_greek_capitals_are_not_read_but_refused(model):
    with pytest.raises(NotReadableError, match="Σ"):
        TextExplainer(model, output="margin", method="exact", max_calls=2)("ΟΔΟΣ good")


def test_ten_thousand_words():
    counts = make_pipeline(CountVectorizer(), LogisticRegression()).fit(TRAINING, LIKED)
    text = " ".join([f"word{i}" for i in range(9_998)] + ["good", "bad"])
    explanation = TextExplainer(counts, output="margin")(text)
    vectorizer, classifier = counts[0], counts[-1]
    expected = classifier.coef_[0, [vectorizer.vocabulary_["good"], vectorizer.vocabulary_["bad"]]]
    np.testing.assert_allclose(explanation.coefficients.values[0, -2:], expected, rtol=1e-9)
    np.testing.assert_allclose(explanation.coefficients.values[0, :-2], 0.0, atol=1e-9)


def test_a_list_gives_an_explanation_each(exact):
    texts = [TEXT, "good food", "bad"]
    result = exact(texts, progress=False)
    assert [len(e.feature_names) for e in result] == [8, 2, 1]
    for text, explanation in zip(texts, result, strict=True):
        np.testing.assert_array_equal(explanation.coefficients.values, exact(text).coefficients.values)
    assert exact([]) == []


def test_json_keeps_text_and_places(exact):
    explanation = exact("İ <b>good</b> &amp; 👍🏽 food")
    again = Explanation.from_json(explanation.to_json())
    assert again.provenance == explanation.provenance
    np.testing.assert_array_equal(again.coefficients.values, explanation.coefficients.values)
    assert again.provenance["text"] == "İ <b>good</b> &amp; 👍🏽 food"


# -- models that are asked -----------------------------------------------------------------------------------

LONG = "The food was great but we waited, waited and waited: slow service, cold coffee, bad cake & rude staff"


def _probability(model):
    return lambda texts: model.predict_proba(texts)[:, 1]


def test_few_words_are_asked_about_all_deletions_which_is_exact(model):
    ask = _probability(model)
    texts_seen = []

    def counted(texts):
        texts_seen.extend(texts)
        return ask(texts)

    explanation = TextExplainer(counted)("good food bad, never again")
    # the text is one of its deletions, as are three of the checks' texts; the words alone are asked about too
    assert (explanation.method, explanation.model_calls) == ("exact", 32 + CHECK_CALLS - 3 + 1)
    assert len(texts_seen) == explanation.model_calls
    intercept, coef, _ = enumerated(explanation, ask, text="good food bad, never again")
    np.testing.assert_allclose(explanation.coefficients.values[0], coef, rtol=1e-9)
    np.testing.assert_allclose(explanation.coefficients.intercepts[0], intercept, rtol=1e-9)
    assert np.isfinite(explanation.fidelity).all()
    assert "every subset of the words" in str(explanation)


def test_sampled_probabilities_lie_within_their_errors_of_the_exact_ones(model):
    exact = TextExplainer(model, output=1)(LONG)
    assert (exact.method, exact.model_calls) == ("exact", 0)
    enumerated = TextExplainer(_probability(model), max_calls=2**17)(LONG)
    assert enumerated.model_calls == CHECK_CALLS - 3 + 1 + 2 ** len(exact.feature_names)
    np.testing.assert_allclose(
        exact.coefficients.values,
        enumerated.coefficients.values,
        rtol=0,
        atol=1e-9 * np.abs(exact.coefficients.values).max(),
    )
    options = {"output": 1, "method": "sampled", "max_calls": 512}
    explanations = [TextExplainer(model, rng=seed, **options)(LONG) for seed in range(20)]
    assert {e.method for e in explanations} == {"sampled"}
    z = [
        (e.coefficients.values - exact.coefficients.values) / e.coefficients.standard_errors
        for e in explanations
    ]
    assert (np.abs(z) < 1.96).mean() > 0.9
    assert np.abs(z).max() < 6


def test_a_norm_that_is_not_exact_behind_a_link_is_sampled_with_its_margin():
    model = make_pipeline(TfidfVectorizer(norm="l1"), LogisticRegression()).fit(TRAINING, LIKED)
    explanation = TextExplainer(model, output=1, max_calls=256)(LONG)
    assert explanation.method == "sampled"
    assert "its expectation is not exact" in explanation.reason
    assert explanation.coefficients.controls == ("margin",)
    with pytest.raises(NotReadableError, match="its expectation is not exact"):
        TextExplainer(model, output=1, method="exact", max_calls=256)(LONG)


def test_the_margin_takes_variance_away(model):
    options = {"output": 1, "method": "sampled", "max_calls": 512}
    plain = TextExplainer(model, control="none", **options)(LONG)
    helped = TextExplainer(model, control="margin", **options)(LONG)
    assert helped.coefficients.controls == ("margin",)
    assert helped.coefficients.standard_errors.mean() < 0.7 * plain.coefficients.standard_errors.mean()
    with pytest.raises(InputError, match="margin"):
        TextExplainer(_probability(model), max_calls=512, control="margin")(LONG)


def test_rows_of_words_and_strings_say_the_same(model):
    # what was read is compared with more answers, which leaves as many
    by_rows = TextExplainer(model, output=1, method="sampled", max_calls=542, control="none")(LONG)
    by_strings = TextExplainer(_probability(model), max_calls=512, control="none")(LONG)
    assert by_rows.feature_names == tuple(
        name.replace("waited", "waited") for name in by_strings.feature_names
    )
    np.testing.assert_allclose(by_rows.coefficients.values, by_strings.coefficients.values, atol=1e-10)


def test_sampled_texts_depend_on_seed_and_text_alone(model):
    options = {"output": 1, "method": "sampled", "max_calls": 256}
    alone = TextExplainer(model, **options)(LONG)
    among = TextExplainer(model, batch_size=7, **options)([TEXT, LONG, LONG], progress=False)
    np.testing.assert_array_equal(alone.coefficients.values, among[1].coefficients.values)
    np.testing.assert_array_equal(alone.coefficients.values, among[2].coefficients.values)
    threads = TextExplainer(model, **options)([TEXT, LONG, LONG], progress=False, workers=3)
    assert [one.provenance["text"] for one in threads] == [one.provenance["text"] for one in among]
    np.testing.assert_array_equal(alone.coefficients.values, threads[2].coefficients.values)
    other = TextExplainer(model, rng=1, **options)(LONG)
    assert (other.coefficients.values != alone.coefficients.values).any()


def test_calls_before_a_failure_are_kept(model):
    ask, sizes = _probability(model), []

    def flaky(texts):
        if len(sizes) == 3:
            sizes.append(0)
            raise ConnectionError("gone")
        sizes.append(len(texts))
        return ask(texts)

    explainer = TextExplainer(flaky, max_calls=256, batch_size=64, contributions=False)
    with pytest.raises(ModelError, match="gone") as caught:
        explainer([LONG], progress=False)
    assert caught.value.partial == []
    result = explainer([LONG], progress=False)[0]
    np.testing.assert_array_equal(
        result.coefficients.values,
        TextExplainer(ask, max_calls=256, batch_size=64, contributions=False)(LONG).coefficients.values,
    )
    assert sum(sizes) <= 256 + 4


def test_masks_and_tokens_of_black_boxes():
    seen = []

    def count(texts):
        seen.extend(texts)
        return np.array([float(text.count("a")) for text in texts])

    explanation = TextExplainer(count, mask="[MASK]")("ab ba")
    assert set(seen) == {"ab ba", "[MASK] ba", "ab [MASK]", "[MASK] [MASK]"}
    np.testing.assert_allclose(explanation.coefficients.values, 1.0)
    letters = TextExplainer(count, split=Offsets(), bag=False)("ab a")
    assert letters.feature_names == ("a", "b", "a")
    np.testing.assert_allclose(letters.coefficients.values, [[1.0, 0.0, 1.0]], atol=1e-12)


def test_kernels_take_variance_away_from_a_black_box(model):
    text = (
        "the food was great but we waited and waited: slow service, cold coffee, bad cake, rude staff, good"
    )

    def sharp(texts):
        return np.tanh(4 * model.decision_function(texts))

    errors = {
        control: TextExplainer(sharp, max_calls=1024, control=control, contributions=False)(
            text
        ).coefficients.standard_errors.mean()
        for control in ("none", "kernel", "process", "logistic", "auto")
    }
    assert errors["kernel"] < 0.8 * errors["none"]
    assert errors["process"] < errors["kernel"]
    # chosen by their estimated errors
    assert errors["auto"] in (errors["kernel"], errors["logistic"])
    assert errors["auto"] < 1.05 * min(errors["kernel"], errors["logistic"])
    additive = TextExplainer(_letters, max_calls=1024)(text)
    assert additive.coefficients.controls == ("none",)
    np.testing.assert_allclose(
        additive.coefficients.values[0], [name.count("o") for name in additive.feature_names], atol=1e-9
    )


# -- what cannot be read, and why ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vectorizer", "reason"),
    [
        (TfidfVectorizer(ngram_range=(1, 2)), "norm"),
        (CountVectorizer(ngram_range=(1, 2), binary=True), "binary"),
        (TfidfVectorizer(ngram_range=(1, 2), norm=None, sublinear_tf=True), "logarithms"),
        (CountVectorizer(analyzer="char_wb"), "char_wb"),
        (CountVectorizer(analyzer=str.split), "analyzer"),
        (CountVectorizer(tokenizer=str.split, token_pattern=None), "tokenizer"),
        (CountVectorizer(preprocessor=str.upper), "preprocessor"),
        (CountVectorizer(strip_accents=str.upper), "strip_accents"),
        (CountVectorizer(token_pattern=r"\w*"), "token_pattern"),  # noqa: S106
        (CountVectorizer(token_pattern=r"[A-z]+"), "token_pattern"),  # noqa: S106
        (CountVectorizer(token_pattern=r"\w+(?=\.)"), "token_pattern"),  # noqa: S106
    ],
    ids=_id,
)
def test_options_that_are_not_read_say_so(vectorizer, reason):
    model = make_pipeline(vectorizer, Ridge()).fit(TRAINING, STARS)
    with pytest.raises(NotReadableError, match=reason):
        TextExplainer(model, method="exact", max_calls=64)(TEXT)


def test_models_that_are_not_read_say_so():
    trees = make_pipeline(TfidfVectorizer(), DecisionTreeRegressor()).fit(TRAINING, STARS)
    with pytest.raises(NotReadableError, match="normalised"):
        TextExplainer(trees, method="exact", max_calls=64)(TEXT)
    classes = [min(int(star), 2) for star in range(len(TRAINING))]
    logistic = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TRAINING, classes)
    with pytest.raises(NotReadableError, match="margin"):
        TextExplainer(logistic, method="exact", max_calls=64)(TEXT)
    with pytest.raises(NotReadableError, match="only be called"):
        TextExplainer(lambda texts: [float(len(t)) for t in texts], method="exact", max_calls=64)(TEXT)
    few = make_pipeline(HashingVectorizer(n_features=2), Ridge()).fit(TRAINING, STARS)
    with pytest.raises(NotReadableError, match="share a column"):
        TextExplainer(few, method="exact", max_calls=64)(TEXT)
