"""Contributions of words, superpixels, segments: against the model's answers to all 2^d subsets."""

from __future__ import annotations

from math import comb

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import ComplementNB, MultinomialNB
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVR

import limes
import words
from coalitions import shapley
from effort import repeats
from internals import requested
from limes import CompositeExplainer, ImageExplainer, SeriesExplainer, TablePart, TextExplainer
from limes.exceptions import InputError, ModelError
from oracle import EXACT

REVIEWS = [
    *("good food and good service", "bad food", "the service was not good", "slow and bad service"),
    *("food was good", "not bad at all", "a good and quick lunch", "slow lunch and bad coffee"),
]
STARS = np.array([5, 1, 2, 1, 4, 4, 5, 2])
TEXT = "Good food, but the slow service was not good"


def game(answers):
    """v(S) of answers (2^d, ...) in the order of `words.subsets`."""
    z = words.subsets(len(answers).bit_length() - 1).astype(int)
    v = np.empty((2,) * z.shape[1], dtype=object)
    for place, answer in zip(z, answers, strict=True):
        v[tuple(place)] = np.atleast_1d(answer)
    return v


def assert_shapley(explanation, answers, *, atol=EXACT):
    """Contributions are those of the game of these answers to all subsets, (2^d, ...), without a call."""
    account, v = explanation.contributions, game(answers)
    values, alone, last = shapley(v)
    size = np.abs(answers).max()
    for actual, expected in (
        (account.values[0], values),
        (account.alone[0], alone),
        (account.last[0], last),
        (account.base_values[0], v[(0,) * v.ndim]),
    ):
        expected = np.asarray(expected.tolist(), dtype=float).reshape(np.shape(actual))
        np.testing.assert_allclose(actual, expected, atol=atol * size, rtol=0)
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, atol=atol * size, rtol=0)
    assert (account.standard_errors == 0).all()
    assert account.calls.tolist() == [0]


# -- texts ---------------------------------------------------------------------------------------------------

SPELLINGS = ("good", "food", "but", "the", "slow", "service", "was", "not")


def texts_of_all_subsets():
    """The text without words: good stands in it twice."""
    text = [*SPELLINGS, "good"]
    return [
        " ".join(word for word, on in zip(text, [*z, z[0]], strict=True) if on)
        for z in words.subsets(len(SPELLINGS))
    ]


PIPELINES = {
    "sum": (CountVectorizer(), Ridge()),
    "tf-idf": (TfidfVectorizer(), Ridge()),
    "tf-idf, l1": (TfidfVectorizer(norm="l1"), Ridge()),
    "link": (CountVectorizer(), LogisticRegression(C=10.0)),
    "link of tf-idf": (TfidfVectorizer(), LogisticRegression()),
    "rare": (CountVectorizer(), LogisticRegression(C=10.0, class_weight={0: 1e6, 1: 1.0})),
    "naive Bayes": (CountVectorizer(), MultinomialNB()),
    "another naive Bayes": (CountVectorizer(), ComplementNB()),
    "trees": (CountVectorizer(), RandomForestClassifier(10, random_state=0)),
    "kernel": (CountVectorizer(binary=True), SVR()),
    "three classes": (CountVectorizer(), LogisticRegression()),
    "boosting": (CountVectorizer(), GradientBoostingClassifier(n_estimators=5, random_state=0)),
    "network": (
        CountVectorizer(),
        MLPRegressor(hidden_layer_sizes=(4,), activation="logistic", solver="lbfgs"),
    ),
    "pairs": (CountVectorizer(ngram_range=(1, 2)), LogisticRegression()),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_words_of_read_and_of_sampled_models(name):
    vectorizer, head = PIPELINES[name]
    target = STARS if isinstance(head, Ridge | SVR | MLPRegressor) else STARS > 3
    target = np.digitize(STARS, [2, 4]) if name == "three classes" else target
    model = make_pipeline(vectorizer, head).fit(REVIEWS, target)
    explanation = TextExplainer(model, method="exact")(TEXT, progress=False)
    ask = getattr(model, "predict_proba", None) or model.predict
    assert_shapley(explanation, ask(texts_of_all_subsets()))


@pytest.mark.parametrize("bandwidth", [0.1, np.inf])
def test_the_game_does_not_depend_on_the_bandwidth_or_the_penalty(bandwidth):
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(REVIEWS, STARS > 3)
    explanation = TextExplainer(model, bandwidth=bandwidth, ridge=1.0)(TEXT, progress=False)
    assert_shapley(explanation, model.predict_proba(texts_of_all_subsets()))


def test_one_word():
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(REVIEWS, STARS > 3)
    assert_shapley(TextExplainer(model)("good", progress=False), model.predict_proba(["", "good"]))
    ask = lambda texts: np.array([float(len(text)) for text in texts])  # noqa: E731
    assert_shapley(TextExplainer(ask)("good", progress=False), np.array([0.0, 4.0]))


def test_a_text_of_four_hundred_words():
    """Too many to enumerate: they add up, and words that the model treats alike have equal shares."""
    rng = np.random.default_rng(0)
    vocabulary = [f"w{j:03d}" for j in range(400)]
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    model.fit([" ".join(rng.choice(vocabulary, 60)) for _ in range(60)], np.arange(60) % 2)
    weights = model[-1].coef_[0]
    weights[:] = np.repeat(rng.normal(size=200), 2) * 0.4
    explanation = TextExplainer(model, method="exact")(" ".join(vocabulary), progress=False)
    account = explanation.contributions
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, atol=EXACT)
    np.testing.assert_allclose(account.values[0, ::2], account.values[0, 1::2], rtol=1e-9, atol=1e-12)
    empty, single = (model.predict_proba([text])[0] for text in ("", vocabulary[7]))
    np.testing.assert_allclose(account.base_values[0], empty, rtol=EXACT)
    np.testing.assert_allclose(account.alone[0, 7], single - empty, atol=1e-12)


# -- other inputs --------------------------------------------------------------------------------------------

LABELS = np.arange(6)[:, None] // 2 * 2 + np.arange(6)[None] // 3
PICTURE = np.random.default_rng(0).integers(0, 256, (6, 6)).astype(np.uint8)


def brightness(images):
    light = np.asarray(images, dtype=float).mean(axis=(1, 2))
    return np.stack([light, light**2 / 100, np.abs(np.asarray(images, dtype=float)[:, 0, 0] - light)], axis=1)


@pytest.mark.parametrize("sample", [0, 1])
def test_superpixels(sample):
    """Several outputs; the model is asked about all subsets, or read."""
    pixels = np.random.default_rng(1).random((60, 36)) * 255
    model = brightness if sample else RandomForestClassifier(5, random_state=0).fit(pixels, pixels[:, 0] > 99)
    explanation = ImageExplainer(model, segments=LABELS, fill=7)(PICTURE, progress=False)
    images = np.stack([np.where(z[LABELS] > 0, PICTURE, 7) for z in words.subsets(6)])
    answers = brightness(images) if sample else model.predict_proba(images.reshape(len(images), -1))
    assert_shapley(explanation, answers)


def test_several_fills_have_the_mean_of_their_contributions():
    explanation = ImageExplainer(brightness, segments=LABELS, fill=[7, "blur"])(PICTURE, progress=False)
    each = [ImageExplainer(brightness, segments=LABELS, fill=fill)(PICTURE) for fill in (7, "blur")]
    account, parts = explanation.contributions, [one.contributions for one in each]
    for name in ("values", "base_values", "alone", "last"):
        expected = np.mean([getattr(part, name) for part in parts], axis=0)
        np.testing.assert_allclose(getattr(account, name), expected, rtol=1e-12, atol=1e-9)
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, rtol=1e-12)


def test_segments_of_a_series():
    series = np.random.default_rng(2).normal(size=24)
    ask = lambda batch: np.asarray(batch).max(axis=1) - np.asarray(batch).min(axis=1) ** 2  # noqa: E731
    explanation = SeriesExplainer(ask, count=6, fill=0.5)(series, progress=False)
    shown = np.repeat(words.subsets(6), 4, axis=1) > 0
    assert_shapley(explanation, ask(np.where(shown, series, 0.5)))


def test_features_that_are_the_same_hidden_as_shown_contribute_nothing():
    table = pd.DataFrame({"stars": [1, 2, 2, 3], "source": ["shop"] * 4})
    parts = {"review": "text", "row": TablePart(background=table)}

    def ask(batch):
        good = np.array([1.0 + text.count("good") for text in batch["review"]])
        return good * batch["row"]["stars"].to_numpy(float)

    explanation = CompositeExplainer(ask, parts)(
        {"review": "good food", "row": table.iloc[3]}, progress=False
    )
    assert np.isnan(explanation.coefficients.values[0]).tolist() == [False, False, False, True]
    # stars 3, or 2 where they are hidden
    answers = np.array([(1 + z[0]) * (3.0 if z[2] else 2.0) for z in words.subsets(3)])
    values, _, last = shapley(game(answers))
    account = explanation.contributions
    np.testing.assert_allclose(account.values[0], [*values.astype(float).ravel(), 0.0], atol=1e-12)
    np.testing.assert_allclose(account.last[0], [*last.astype(float).ravel(), 0.0], atol=1e-12)
    assert account.base_values[0] == answers[0]
    assert account.alone[0, 3] == account.standard_errors[0, 3] == 0.0


def test_nothing_that_can_be_hidden():
    explanation = TextExplainer(lambda texts: np.ones(len(texts)), mask="food")("food", progress=False)
    account = explanation.contributions
    assert account.values.tolist() == [[0.0]]
    assert account.base_values.tolist() == [1.0]


def test_a_selection_has_its_contributions():
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(REVIEWS, np.digitize(STARS, [2, 4]))
    explanation = TextExplainer(model)(TEXT, progress=False)
    account, part = explanation.contributions, explanation[0, ["slow", "good"], 2].contributions
    np.testing.assert_array_equal(part.values, account.values[:, [4, 0], 2])
    np.testing.assert_array_equal(part.base_values, account.base_values[:, 2])


# -- samples -------------------------------------------------------------------------------------------------


def sentence(d):
    return " ".join(f"w{j:02d}" for j in range(d))


def asking(f, d, log=None):
    """A model of texts that is f of what is kept, z (n, d)."""
    names = np.array([f"w{j:02d}" for j in range(d)])

    def ask(texts):
        if log is not None:
            log.append(len(texts))
        return f(np.array([[name in text for name in names] for text in texts], dtype=float))

    return ask


def pairs(d, seed):
    """Sums of products of two, (f, exact contributions): half of each to either of its words."""
    rng = np.random.default_rng(seed)
    matrix = np.triu(rng.normal(size=(d, d)) * (rng.random((d, d)) < 0.3), 1)
    linear = rng.normal(size=d)
    values = linear + 0.5 * (matrix.sum(axis=0) + matrix.sum(axis=1))
    return (lambda z: 2.0 + z @ linear + ((z @ matrix) * z).sum(axis=1)), values


def threshold(d, seed):
    """Whether most of five words are there: each of them has a fifth."""
    chosen = np.random.default_rng(seed).choice(d, 5, replace=False)
    values = np.zeros(d)
    values[chosen] = 0.2
    return (lambda z: (z[:, chosen].sum(axis=1) >= 3).astype(float)), values


def largest(d, seed):
    """The largest weight of what is kept: with weights a₁ < a₂ < ... the steps between are shared."""
    weights = np.random.default_rng(seed).exponential(size=d)
    order = np.argsort(weights)
    steps = np.diff(weights[order], prepend=0.0) / (d - np.arange(d))
    values = np.empty(d)
    values[order] = np.cumsum(steps)
    return (lambda z: (z * weights).max(axis=1)), values


FAMILIES = {"pairs": pairs, "threshold": threshold, "largest": largest}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("control", ["auto", "none"])
def test_intervals_cover(name, control):
    """95 % intervals of sampled contributions, on functions whose contributions are known by hand."""
    d, inside, shares = 18, [], []
    for seed in range(repeats(60, 24)):
        f, values = FAMILIES[name](d, seed)
        explainer = TextExplainer(asking(f, d), max_calls=700, control=control, rng=seed)
        account = explainer(sentence(d), progress=False).contributions
        errors = account.standard_errors[0]
        assert account.calls[0] <= 1 + 2 * d  # what coefficients have not asked about
        inside.append(np.abs(account.values[0] - values) <= 1.96 * errors + 1e-9)
        shares.append(errors.max() / np.abs(values).max())
        np.testing.assert_allclose(account.base_values[0], f(np.zeros((1, d)))[0], atol=1e-12)
        ends = f(np.eye(d)) - f(np.zeros((1, d))), f(np.ones((1, d))) - f(1.0 - np.eye(d))
        np.testing.assert_allclose([account.alone[0], account.last[0]], ends, atol=1e-12)
    assert np.mean(inside) >= 0.93
    assert np.median(shares) < 0.2


def test_base_and_sampled_contributions_add_up():
    f, _ = pairs(20, 0)
    model = asking(lambda z: np.stack([f(z), z[:, 0], z[:, 1] * z[:, 2]], axis=1), 20)
    explanation = TextExplainer(model, max_calls=600)(sentence(20), progress=False)
    account = explanation.contributions
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, rtol=1e-12, atol=1e-12)
    assert account.values.shape == (1, 20, 3)


def test_a_sample_ends_at_the_tolerance():
    log = []
    f, _ = threshold(20, 1)
    options = {"tolerance": 0.03, "max_calls": 100_000, "control": "none"}
    explainer = TextExplainer(asking(f, 20, log), contributions=False, **options)
    explanation = explainer(sentence(20), progress=False)
    before = sum(log)
    account = explanation.contributions
    assert account.standard_errors.max() <= 0.03
    assert sum(log) - before == account.calls[0] < 10_000
    assert explanation.contributions.values is account.values
    again = TextExplainer(asking(f, 20), contributions=False, **options)
    other = again(["w00 w01", sentence(20)], progress=False)[1].contributions
    np.testing.assert_array_equal(other.values, account.values)


def test_threads_batches_and_company_change_no_bit():
    f, _ = largest(16, 3)
    texts = [sentence(16), " ".join(reversed(sentence(16).split())), sentence(15)]
    explainers = [TextExplainer(asking(f, 16), max_calls=300, batch_size=size) for size in (7, 4096)]
    first, second = (one(texts, workers=n, progress=False) for one, n in zip(explainers, (3, 1), strict=True))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.contributions.values, other.contributions.values)
        np.testing.assert_array_equal(one.contributions.standard_errors, other.contributions.standard_errors)


def test_too_few_calls():
    f, _ = pairs(40, 0)
    with pytest.raises(
        InputError, match="max_calls=12 is too few to estimate 40 coefficients; use at least 14"
    ):
        TextExplainer(asking(f, 40), max_calls=12)(sentence(40), progress=False)
    explanation = TextExplainer(asking(f, 40), max_calls=13)(sentence(40), progress=False)
    with pytest.raises(InputError, match=r"max_calls=13 is too few for contributions of 40 .* least 14"):
        explanation.contributions  # noqa: B018 - computed when read
    account = TextExplainer(asking(f, 40), max_calls=14)(sentence(40), progress=False).contributions
    assert account.calls.tolist() == [0]  # the empty set was answered for coefficients
    account = TextExplainer(asking(f, 40), max_calls=339)(sentence(40), progress=False).contributions
    assert 1 < account.calls[0] <= 81
    assert np.isfinite(account.alone).all()


@pytest.mark.parametrize(("d", "calls"), [(40, 100), (120, 200)])
def test_fewer_calls_than_features(d, calls):
    f, phi = pairs(d, 0)
    covered = []
    for seed in range(repeats(100, 25)):
        explainer = TextExplainer(asking(f, d), max_calls=calls, control="kernel", rng=seed)
        explanation = explainer(sentence(d), progress=False)
        account = explanation.contributions
        assert account.calls[0] <= calls
        assert np.isnan(account.alone).all()
        assert np.isnan(account.last).all()
        np.testing.assert_allclose(
            account.base_values + account.values.sum(axis=1), explanation.predictions, rtol=1e-9, atol=1e-12
        )
        covered.append(np.abs(account.values[0] - phi) <= 1.96 * account.standard_errors[0] + 1e-12)
    assert np.mean(covered) >= 0.93


def test_answers_are_kept_where_the_model_fails():
    f, _ = pairs(40, 0)
    log, fails = [], []

    def model(texts):
        if fails and sum(log) > fails[0]:
            raise RuntimeError("no more")
        return asking(f, 40, log)(texts)

    whole = TextExplainer(model, max_calls=600, batch_size=10)(sentence(40), progress=False)
    calls = whole.contributions.calls[0]
    # of more than 32 features single ones are asked about for contributions alone
    assert 40 < calls <= 81
    total = sum(log)
    log.clear()
    fails.append(total - 20)  # while contributions are computed
    explanation = TextExplainer(model, max_calls=600, batch_size=10)(sentence(40), progress=False)
    assert requested(explanation, "contributions") is None
    assert "no more" in explanation.row_warnings[0][-1]
    np.testing.assert_array_equal(explanation.coefficients.values, whole.coefficients.values)
    fails.clear()
    before = sum(log)
    account = explanation.contributions
    # a few sets are asked again: the model may be another one by now
    assert sum(log) - before < calls + 8
    np.testing.assert_array_equal(account.values, whole.contributions.values)


@pytest.mark.parametrize(("d", "seeds"), [(4, 150), (16, repeats(40, 6))])
def test_intervals_of_random_models_cover(d, seeds):
    """Their few subsets are asked several times, others once; the mean answers have known contributions."""
    inside, base = [], []
    for seed in range(seeds):
        f, values = pairs(d, seed)
        noise = np.random.default_rng(seed)
        ask = asking(lambda z, f=f, noise=noise: f(z) + noise.normal(size=len(z)), d)
        explanation = TextExplainer(ask, max_calls=700, rng=seed)(sentence(d), progress=False)
        account = explanation.contributions
        inside.append(np.abs(account.values[0] - values) <= 1.96 * account.standard_errors[0])
        total = account.base_values + account.values.sum(axis=1)
        np.testing.assert_allclose(total, explanation.predictions, atol=1e-9)
        assert (account.standard_errors > 0).all()
        base.append(np.abs(account.base_values[0] - f(np.zeros((1, d)))[0]) <= 1.96 * account.base_errors[0])
    assert np.mean(inside) >= 0.93
    assert np.mean(base) >= 0.93 - 2 * np.sqrt(0.05 / seeds)


def test_a_form_that_has_no_exact_expectation_is_sampled_without_a_call():
    """A steep link of normalised words."""
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(REVIEWS, STARS > 3)
    model[-1].coef_ *= 300.0
    explanation = TextExplainer(model)(f"{TEXT} and lunch coffee bad quick", progress=False)
    assert explanation.method == "sampled"
    account = explanation.contributions
    assert account.calls.tolist() == [0]
    total = account.base_values + account.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, atol=1e-9)
    sampled = TextExplainer(model, method="sampled")(explanation.provenance["text"], progress=False)
    assert sampled.calls[0] > 0
    assert sampled.contributions.calls[0] == 0  # the same answers serve both


def test_an_exact_form_whose_contributions_are_refused_is_sampled(monkeypatch):
    from internals import coalitions

    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(REVIEWS, STARS > 3)
    text = f"{TEXT} and lunch coffee bad quick"
    exact = TextExplainer(model)(text, progress=False).contributions
    monkeypatch.setattr(coalitions, "_TOTAL", -1.0)
    account = TextExplainer(model)(text, progress=False).contributions
    assert account.calls.tolist() == [0]
    np.testing.assert_allclose(account.values, exact.values, atol=0.02)
    with pytest.raises(ModelError, match="contributions miss the prediction"):
        TextExplainer(model, method="exact")(text, progress=False).contributions  # noqa: B018


def test_limes_of_tables_and_texts_agree_where_the_games_do():
    """A product law of one other value hides columns as a composite input does."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 5))
    model = GaussianProcessRegressor().fit(x, x[:, 0] * x[:, 1] + np.sin(x[:, 2]))
    row, hidden = x[0], np.median(x, axis=0)
    parts = {"row": TablePart(background=np.vstack([hidden] * 3))}
    ask = lambda batch: model.predict(np.asarray(batch["row"]))  # noqa: E731
    first = CompositeExplainer(ask, parts)({"row": row}, progress=False).contributions
    explainer = limes.TabularExplainer(
        model, np.vstack([hidden] * 3), bandwidth=np.inf, law="empirical", method="exact"
    )
    second = explainer(row[None], progress=False).contributions
    np.testing.assert_allclose(first.values, second.values, atol=1e-8)
    np.testing.assert_allclose(first.base_values, second.base_values, atol=1e-8)


# -- an answer to the empty set that stands out --------------------------------------------------------------


def surrogate(f, d):
    """LIME's coefficients, intercept and R² of f(z), by least squares on all deletions of d words."""
    z = (np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(float)
    kept = z.sum(axis=1).astype(int)
    # the number removed is uniform on 1 to d, and so is which; the cosine to the whole is sqrt(kept / d)
    law = np.array([1.0 / (d * comb(d, k)) if k < d else 0.0 for k in range(d + 1)])[kept]
    weights = law * np.exp(-(((1.0 - np.sqrt(kept / d)) / 0.25) ** 2) / 2.0)
    weights /= weights.sum()
    design = np.column_stack([np.ones(1 << d), z])
    roots = np.sqrt(weights)
    coef = np.linalg.lstsq(design * roots[:, None], f(z) * roots, rcond=None)[0]
    centred = f(z) - weights @ f(z)
    return coef[1:], coef[0], 1.0 - (weights @ (f(z) - design @ coef) ** 2) / (weights @ centred**2)


SLOPES_OF_WORDS = np.random.default_rng(3).normal(size=12)


def straight(z):
    return z @ SLOPES_OF_WORDS[: z.shape[1]]


@pytest.mark.parametrize("calls", [100, 300, 900])
@pytest.mark.parametrize("size", [20.0, 300.0])
def test_the_fit_knows_an_answer_to_no_word_that_stands_out(size, calls):
    """A sample misses the set without words: R² was .9900 ± .0004 where it is .9864."""
    d = 12

    def f(z):
        rough = np.sin(1e3 * (z @ np.arange(1.0, d + 1.0)) + 7.0 * z.sum(axis=1))
        return straight(z) + 0.3 * rough + size * (z.sum(axis=1) == 0)

    coef, intercept, r2 = surrogate(f, d)
    within, coefs, intercepts = [], [], []
    for seed in range(repeats(60, 20)):
        log = []
        explanation = TextExplainer(asking(f, d, log), max_calls=calls, rng=seed)(sentence(d), progress=False)
        assert sum(log) == explanation.model_calls <= calls
        its = explanation.coefficients
        within.append(abs(explanation.fidelity[0] - r2) <= 1.96 * explanation.fidelity_errors[0])
        coefs.append(np.abs(its.values[0] - coef) <= 1.96 * its.standard_errors[0])
        intercepts.append(its.intercepts[0] - intercept)
    assert np.mean(within) >= 0.9
    assert np.mean(coefs) >= 0.93
    assert abs(np.mean(intercepts)) <= 4.0 * np.std(intercepts) / np.sqrt(len(intercepts)) + 1e-9


@pytest.mark.parametrize("size", [0.0, 20.0, 3000.0])
def test_a_sum_and_a_known_answer_to_no_word_are_exact_from_a_sample(size):
    d = 12

    def f(z):
        return straight(z) + size * (z.sum(axis=1) == 0)

    coef, intercept, r2 = surrogate(f, d)
    explanation = TextExplainer(asking(f, d), max_calls=300, rng=4)(sentence(d), progress=False)
    np.testing.assert_allclose(explanation.coefficients.values[0], coef, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(explanation.coefficients.intercepts[0], intercept, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(explanation.fidelity[0], r2, rtol=1e-8)
    assert explanation.fidelity_errors[0] > 0.0 or size == 0.0
    # all effects together are the coefficients; their R² is a mean over the sample
    np.testing.assert_allclose(explanation.additive_fidelity, explanation.fidelity, rtol=1e-4)
