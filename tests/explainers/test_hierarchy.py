"""Contributions at two levels against enumeration and against many sets; their intervals cover."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limes
from limes.exceptions import InputError, ModelError

REVIEW = (
    "The food was good and the service was good too. I did not like the wine at all! We waited for an hour, "
    "which was far too long. The room is bright; the chairs are not. Would I go there again? Good question. "
    "Perhaps for the soup, which was hot, fresh and cheap. Perhaps not."
)


def _sums(explanation: limes.Explanation) -> Any:
    """Sums of the fine values over each coarse unit, (g, ...)."""
    shares = explanation.provenance["coarse"]["shares"]
    return np.array(
        [sum(share * explanation.coefficients.values[0, j] for j, share in parts) for parts in shares]
    )


def _shapley(f: Any, d: int) -> Any:
    """Contributions by all orders."""
    values = np.zeros(d)
    orders = list(permutations(range(d)))
    for order in orders:
        shown = np.zeros(d)
        before = f(shown)
        for j in order:
            shown[j] = 1.0
            after = f(shown)
            values[j] += after - before
            before = after
    return values / len(orders)


def _words_of(text: str) -> set[str]:
    return {"".join(c for c in word if c.isalpha()).casefold() for word in text.split()} - {""}


def _mood(texts: list[str]) -> Any:
    """A probability with a "not" that turns "good" round, and a sum of small effects."""
    answers = []
    for text in texts:
        words = _words_of(text)
        margin = 0.1 * sum(len(word) % 3 - 1 for word in sorted(words))
        margin += (2.0 if "good" in words else 0.0) * (-1.0 if "not" in words else 1.0)
        answers.append(1.0 / (1.0 + np.exp(-margin)))
    return np.column_stack([1.0 - np.array(answers), answers])


def test_words_and_sentences_add_up():
    explanation = limes.TextExplainer(_mood, hierarchy=True, max_calls=120)(REVIEW)
    coarse, fine = explanation.levels
    assert fine is explanation
    assert explanation.method == "sampled"
    assert explanation.model_calls <= 130
    assert len(coarse.feature_names) == 8
    assert len(set(explanation.feature_names)) == len(explanation.feature_names) > 30
    for level in (coarse, fine):
        total = level.coefficients.intercepts + level.coefficients.values.sum(axis=1)
        np.testing.assert_allclose(total, explanation.predictions, rtol=1e-12)
        np.testing.assert_array_equal(level.contributions.values, level.coefficients.values)
        assert not level.contributions.base_errors.any()
        assert (level.coefficients.standard_errors > 0).all()
    np.testing.assert_allclose(_sums(explanation), coarse.coefficients.values[0], atol=1e-14)
    np.testing.assert_allclose(
        explanation.coefficients.intercepts[0], _mood(["".join(c for c in REVIEW if not c.isalpha())])[0]
    )


@pytest.mark.parametrize("text", ["Good food. Not a good wine.", "Good", "Good. Not bad. Good, good."])
def test_few_words_are_exact(text):
    explainer = limes.TextExplainer(_mood, hierarchy=True, max_calls=300)
    explanation = explainer(text)
    names = explanation.feature_names

    def f(shown: Any) -> Any:
        kept = [name for name, on in zip(names, shown, strict=True) if on]
        return _mood([" ".join(kept)])[0, 1]

    assert explanation.method == "exact"
    assert not explanation.coefficients.standard_errors.any()
    values = explanation.coefficients.values[0, :, 1]
    coarse = explanation.levels[0]
    if text == "Good food. Not a good wine.":
        # sentences are deleted in all orders, and words that change nothing have nothing of it
        both = [["Good food.", "Not a good wine."][i] for i in range(2)]
        sums = _shapley(lambda shown: _mood([" ".join(np.array(both)[shown > 0])])[0, 1], 2)
        np.testing.assert_allclose(coarse.coefficients.values[0, :, 1], sums, atol=1e-12)
        alone = _shapley(f, len(names))
        np.testing.assert_allclose(values[np.abs(alone) < 1e-12], 0.0, atol=1e-8)
    else:
        np.testing.assert_allclose(values, _shapley(f, len(names)), atol=1e-12)
    np.testing.assert_allclose(_sums(explanation), coarse.coefficients.values[0], atol=1e-14)


def test_a_read_model_is_exact_at_both_levels():
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts = [REVIEW, "good soup", "not hot", "cheap wine", "a fresh room", "bad food"]
    model = make_pipeline(CountVectorizer(), LogisticRegression(C=5.0)).fit(texts, [1, 1, 0, 0, 1, 0])
    explanation = limes.TextExplainer(model, hierarchy=True)(REVIEW)
    usual = limes.TextExplainer(model)(REVIEW)
    assert (explanation.method, explanation.model_calls) == ("exact", 0)
    np.testing.assert_allclose(
        explanation.coefficients.values, usual.contributions.values, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(_sums(explanation), explanation.levels[0].coefficients.values[0], atol=1e-14)
    assert 0.5 < explanation.fidelity[0, 0] <= 1.0
    # the same model, by calls
    inside = []
    for seed in range(4):
        sampled = limes.TextExplainer(model, hierarchy=True, method="sampled", max_calls=2000, rng=seed)(
            REVIEW
        )
        far = np.abs(sampled.coefficients.values - usual.contributions.values)
        inside.append((far <= 1.96 * sampled.coefficients.standard_errors).mean())
        # a regression of log odds, as the model is
        assert far.max() < 1e-5 * np.abs(sampled.coefficients.values).max()
    assert np.mean(inside) > 0.93


def _products(words: list[str], d: int) -> Any:
    """f of words with products of three and a maximum, and exact contributions (d,).

    A product over a set J has 1/|J| for each of its words, and so has "any of J".
    """
    rng = np.random.default_rng(3)
    sets = [rng.choice(d, size, replace=False) for size in rng.integers(1, 4, 40)]
    size, is_any = rng.normal(size=40), rng.random(40) < 0.5

    def f(texts: list[str]) -> Any:
        shown = np.array([[word in text.split() for word in words] for text in texts])
        each = [
            (shown[:, columns].any(axis=1) if any_ else shown[:, columns].all(axis=1)) * s
            for columns, any_, s in zip(sets, is_any, size, strict=True)
        ]
        return np.sum(each, axis=0)

    exact = np.zeros(d)
    for columns, s in zip(sets, size, strict=True):
        exact[columns] += s / len(columns)
    return f, exact


@pytest.mark.parametrize("max_calls", [108, 300, 1500])
def test_intervals_of_words_cover(max_calls):
    words = [f"w{i}" for i in range(90)]
    text = ". ".join(" ".join(words[i : i + 6]) for i in range(0, 90, 6)).replace(". w", ". W")
    text = text.replace("W", "w").replace(". ", " .\n\n")
    f, exact = _products(words, 90)
    inside, largest, groups, far = [], [], [], []
    for seed in range(12):
        explanation = limes.TextExplainer(f, hierarchy=True, max_calls=max_calls, rng=seed)(text)
        assert explanation.feature_names == tuple(words)
        covers = (
            np.abs(explanation.coefficients.values[0] - exact)
            <= 1.96 * explanation.coefficients.standard_errors[0]
        )
        inside.append(covers.mean())
        largest.append(covers[np.argsort(-np.abs(explanation.coefficients.values[0]))[:16]].mean())
        coarse = explanation.levels[0]
        sums = exact.reshape(15, 6).sum(axis=1)
        groups.append(
            (
                np.abs(coarse.coefficients.values[0] - sums) <= 1.96 * coarse.coefficients.standard_errors[0]
            ).mean()
        )
        far.append(
            np.mean((explanation.coefficients.values[0] - exact) ** 2)
            / np.mean(explanation.coefficients.standard_errors**2)
        )
    assert np.mean(inside) >= 0.93
    assert np.mean(largest) >= 0.93
    assert np.mean(groups) >= 0.93
    # errors are no wider than twice what is needed, unless there are fewer sets than words
    assert (0.25 if max_calls >= 300 else 0.05) < np.mean(far) < 1.3


# -- images --------------------------------------------------------------------------------------------------

_SIDE = 64


def _spots(images: Any) -> Any:
    """A probability of two spots together, and of a third one without a fourth."""
    a, b, c, d = (
        images[:, r : r + 8, s : s + 8].mean(axis=(1, 2)) / 255
        for r, s in ((6, 6), (8, 50), (40, 20), (50, 50))
    )
    margin = -3.0 + 5.0 * a * b + 3.0 * c * (1.0 - d)
    p = 1.0 / (1.0 + np.exp(-margin))
    return np.column_stack([1.0 - p, p])


def _photograph() -> Any:
    return np.random.default_rng(0).integers(150, 256, (_SIDE, _SIDE)).astype(np.uint8)


def test_rectangles_add_up_and_are_finer_where_it_matters():
    explanation = limes.ImageExplainer(_spots, hierarchy=True, fill=0, max_calls=300)(_photograph())
    coarse, fine = explanation.levels
    assert len(coarse.feature_names) == 16 < len(fine.feature_names) <= 50
    for level in (coarse, fine):
        total = level.coefficients.intercepts + level.coefficients.values.sum(axis=1)
        np.testing.assert_allclose(total, explanation.predictions, rtol=1e-12)
        assert level.heatmap(1).shape == (_SIDE, _SIDE)
    np.testing.assert_allclose(_sums(explanation), coarse.coefficients.values[0], atol=1e-14)
    assert explanation.model_calls <= 301
    # each fine rectangle lies in its coarse one, and halves are where spots are
    parts = [len(its) for its in explanation.provenance["coarse"]["shares"]]
    assert sum(parts) == len(fine.feature_names)
    assert max(parts) > 1
    heat = fine.heatmap(1)
    assert heat[6:14, 6:14].mean() > heat[25:35, 50:60].mean()
    assert heat[50:58, 50:58].mean() < 0


def _faint(images: Any) -> Any:
    """A probability below a hundredth unless most of both halves of an object are shown."""
    upper, lower = (images[:, r : r + 8, 36:52].mean(axis=(1, 2)) / 255 for r in (18, 26))
    margin = 16.0 * upper * lower - 8.0
    p = 1.0 / (1.0 + np.exp(-margin))
    return np.column_stack([1.0 - p, p])


def test_rectangles_are_halved_where_a_faint_probability_rises():
    finer = []
    for seed in range(5):
        explainer = limes.ImageExplainer(_faint, hierarchy=True, fill=0, output=1, max_calls=150, rng=seed)
        labels = _labels(explainer(_photograph()))
        pixels = np.bincount(labels.ravel())[labels]
        finer.append(pixels[18:34, 36:52].mean() / pixels.mean())
    # halving at random leaves 1, and the rectangle of each pixel is halved once at least
    assert max(finer) < 0.5


@pytest.mark.parametrize("model", [_spots, _faint])
def test_intervals_of_rectangles_cover(model):
    photograph, inside, groups = _photograph(), [], []
    for seed in range(10):
        explainer = limes.ImageExplainer(model, hierarchy=True, fill=0, max_calls=200, rng=seed)
        explanation = explainer(photograph)
        labels = _labels(explanation)
        d = int(labels.max()) + 1
        exact = _by_orders(lambda z, labels=labels: model(photograph * z[:, labels].astype(np.uint8)), d)
        inside.append(
            np.abs(explanation.coefficients.values[0, :, 1] - exact)
            <= 1.96 * explanation.coefficients.standard_errors[0, :, 1]
        )
        shares = explanation.provenance["coarse"]["shares"]
        sums = np.array([sum(share * exact[j] for j, share in parts) for parts in shares])
        coarse = explanation.levels[0]
        groups.append(
            np.abs(coarse.coefficients.values[0, :, 1] - sums)
            <= 1.96 * coarse.coefficients.standard_errors[0, :, 1]
        )
    assert np.mean(np.concatenate(inside)) >= 0.93
    assert np.mean(np.concatenate(groups)) >= 0.93


def _labels(explanation: limes.Explanation) -> Any:
    from tests.internals import labels_from_data_url

    return labels_from_data_url(explanation.provenance["labels"])


def _by_orders(f: Any, d: int, orders: int = 1500) -> Any:
    """Contributions by many random orders with their reverses; errors are some thousandths."""
    rng, values = np.random.default_rng(0), np.zeros(d)
    steps = np.tri(d + 1, d, -1)
    for _ in range(orders // 2):
        order = rng.permutation(d)
        for its in (order, order[::-1]):
            z = np.zeros((d + 1, d))
            z[:, its] = steps
            values[its] += np.diff(f(z)[:, 1])
    return values / (orders // 2 * 2)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (5, 40), (33, 70, 3)])
def test_images_of_any_size(shape):
    image = np.random.default_rng(1).random(shape)
    explainer = limes.ImageExplainer(
        lambda images: images.reshape(len(images), -1).mean(axis=1) ** 2,
        hierarchy=True,
        fill=0,
        max_calls=100,
    )
    explanation = explainer(image)
    total = explanation.coefficients.intercepts + explanation.coefficients.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, rtol=1e-12)
    np.testing.assert_allclose(_sums(explanation), explanation.levels[0].coefficients.values[0], atol=1e-14)


# -- the same again, stored, refused -------------------------------------------------------------------------


def test_same_seed_same_bits_whatever_the_batch():
    first, second = (
        limes.TextExplainer(_mood, hierarchy=True, max_calls=100, batch_size=size, rng=4)
        for size in (7, 4096)
    )
    alone, (_, among) = first(REVIEW), second(["Not good at all.", REVIEW], workers=2)
    np.testing.assert_array_equal(alone.coefficients.values, among.coefficients.values)
    np.testing.assert_array_equal(alone.coefficients.standard_errors, among.coefficients.standard_errors)
    image = _photograph()
    one, other = (
        limes.ImageExplainer(_spots, hierarchy=True, max_calls=100, batch_size=size, rng=4)(image)
        for size in (7, 64)
    )
    np.testing.assert_array_equal(one.coefficients.values, other.coefficients.values)


def test_levels_are_stored_and_selected(tmp_path: Path):
    explanation = limes.TextExplainer(_mood, hierarchy=True, max_calls=100)(REVIEW)
    stored = limes.Explanation.from_json(explanation.to_json(tmp_path / "levels.json"))
    for level, its in zip(explanation.levels, stored.levels, strict=True):
        np.testing.assert_array_equal(level.coefficients.values, its.coefficients.values)
        np.testing.assert_array_equal(level.coefficients.standard_errors, its.coefficients.standard_errors)
        assert level.feature_names == its.feature_names
    (coarse, _), (chosen, _) = explanation.levels, explanation[..., 1].levels
    np.testing.assert_array_equal(coarse.coefficients.values[..., 1], chosen.coefficients.values)
    np.testing.assert_array_equal(
        explanation.top(3).levels[0].coefficients.values, coarse.coefficients.values
    )
    assert "question" in coarse.to_html()
    assert coarse.plot.text() is not None
    usual = limes.TextExplainer(_mood, max_calls=100)("not good")
    assert usual.levels == (usual,)


@pytest.mark.parametrize(
    "options",
    [
        {"hierarchy": "sentences"},
        {"hierarchy": True, "bandwidth": 1.0},
        {"hierarchy": True, "ridge": 1.0},
        {"hierarchy": True, "tolerance": 0.1},
        {"hierarchy": True, "control": "kernel"},
        {"hierarchy": True, "group": ["not good"]},
    ],
)
def test_options_that_are_not_used_are_refused(options):
    with pytest.raises(InputError, match="hierarchy"):
        limes.TextExplainer(_mood, **options)


@pytest.mark.parametrize(
    "options",
    [{"segments": "grid"}, {"segments": np.eye(4, dtype=int)}, {"fill": ["mean", "blur"]}, {"ridge": 1.0}],
)
def test_options_of_images_that_are_not_used_are_refused(options):
    with pytest.raises(InputError, match="hierarchy"):
        limes.ImageExplainer(_spots, hierarchy=True, **options)


@pytest.mark.parametrize(
    "ask",
    [limes.diagnose, lambda explanation: explanation.effects, lambda explanation: explanation.interactions()],
)
def test_attributes_without_a_meaning_at_two_levels_are_refused(ask):
    with pytest.raises(InputError, match="without hierarchy"):
        ask(limes.TextExplainer(_mood, hierarchy=True)("Not good."))


def test_too_few_calls_are_refused():
    with pytest.raises(InputError, match="raise it by 3"):
        limes.TextExplainer(_mood, hierarchy=True, max_calls=12)(REVIEW)


def test_answers_outlive_a_model_that_fails():
    sizes: list[int] = []

    def once(texts: list[str]) -> Any:
        if len(sizes) == 3:
            sizes.append(0)
            raise ValueError("no service")
        sizes.append(len(texts))
        return _mood(texts)

    explainer = limes.TextExplainer(once, hierarchy=True, max_calls=100, batch_size=30)
    with pytest.raises(ModelError, match="no service"):
        explainer(REVIEW)
    explanation = explainer(REVIEW)
    np.testing.assert_array_equal(
        explanation.coefficients.values,
        limes.TextExplainer(_mood, hierarchy=True, max_calls=100, batch_size=30)(REVIEW).coefficients.values,
    )
    assert sum(sizes) < 130


def test_a_model_that_answers_differently_is_never_exact():
    rng = np.random.default_rng(0)
    explanation = limes.TextExplainer(
        lambda texts: _mood(texts)[:, 1] + 0.05 * rng.normal(size=len(texts)), hierarchy=True, max_calls=100
    )("Good food. Not a good wine.")
    assert explanation.method == "sampled"
    assert (explanation.coefficients.standard_errors > 0).any()
    assert (explanation.contributions.base_errors > 0).all()
    assert explanation.row_warnings[0][0].code == "inconsistent"


# -- long texts ----------------------------------------------------------------------------------------------


def _long_text() -> str:
    """A review of 190 words in 24 sentences, all of which differ."""
    return " ".join(f"{REVIEW} The table numbered {i} has a cloth of colour{i}." for i in range(4))


def _marks(texts: list[str]) -> Any:
    return np.array([("good" in text) - 0.5 * ("colour2" in text) for text in texts])


def test_sentences_of_long_texts_are_explained_first():
    text = _long_text()
    assert len(text.split()) > 150
    explanation = limes.TextExplainer(_marks, max_calls=300)(text)
    coarse, fine = explanation.levels
    assert fine is explanation
    assert len(coarse.feature_names) < len(fine.feature_names)
    printed = " ".join(str(explanation).split())
    assert "By sentence, since the text has" in printed
    assert "hierarchy=False explains words alone" in printed
    again = limes.Explanation.from_json(explanation.to_json())
    assert "hierarchy=False explains words alone" in " ".join(str(again).split())
    named = dict(zip(fine.feature_names, fine.contributions.values[0], strict=True))
    assert named["colour2"] == pytest.approx(-0.5, abs=0.15)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"hierarchy": False}, _long_text()),
        ({"contributions": False}, _long_text()),
        ({"bandwidth": 1.0}, _long_text()),
        ({"tolerance": 0.5}, _long_text()),
        ({}, REVIEW),
        ({}, _long_text().replace(".", " ").replace("?", " ").replace("!", " ")),
    ],
)
def test_words_alone_are_explained_otherwise(options, text):
    explanation = limes.TextExplainer(_marks, max_calls=300, **options)(text)
    assert explanation.levels == (explanation,)
    assert "By sentence" not in str(explanation)


def test_long_texts_of_a_read_model_have_exact_words():
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    text = _long_text()
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit([text, "good colour2"], [0, 1])
    explanation = limes.TextExplainer(model)(text)
    assert explanation.method == "exact"
    assert explanation.levels == (explanation,)


def test_the_choice_of_levels_is_a_choice():
    with pytest.raises(InputError, match="hierarchy must be True, False or \"auto\", got 'always'"):
        limes.TextExplainer(_marks, hierarchy="always")


@pytest.mark.parametrize("is_transformed", [False, True])
def test_a_long_text_of_a_model_that_is_not_fitted_is_an_error_of_the_model(is_transformed):
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    vectorizer = CountVectorizer()
    if is_transformed:
        vectorizer.fit([_long_text()])
    with pytest.raises(ModelError, match="NotFittedError"):
        limes.TextExplainer(make_pipeline(vectorizer, LogisticRegression()))(_long_text())


def test_words_of_several_sentences_that_are_not_read_share_nothing():
    """Effects of "good" and "fine" cancel in the game of words, and not in that of sentences."""

    def model(texts: list[str]) -> Any:
        both = np.array(["good" in text and "fine" in text for text in texts], dtype=float)
        return (6.0 * np.array(["nice" in text for text in texts]) - 4.0) * both

    explanation = limes.TextExplainer(model, hierarchy=True)("It is nice. It was good fine so.")
    values = dict(zip(explanation.feature_names, explanation.contributions.values[0].tolist(), strict=True))
    assert explanation.method == "exact"
    np.testing.assert_allclose([values["nice"], values["good"], values["fine"]], [3.0, -0.5, -0.5], atol=1e-9)
    np.testing.assert_allclose([values[word] for word in ("It", "is", "was", "so")], 0.0, atol=1e-9)
