"""Pairs of words and of superpixels, and R², against every subset."""

import math

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

import limes
import oracle
import words

ALPHABET = "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november"
WORDS = ALPHABET.split()
rng = np.random.default_rng(0)
TEXTS = [" ".join(np.array(WORDS)[rng.random(14) < 0.6]) or "alpha" for _ in range(300)]
ANSWERS = [
    2.0 * ("alpha" in t and "bravo" not in t) + ("golf" in t) * ("delta" in t) + 0.5 * ("echo" in t)
    for t in TEXTS
]


def black_box(texts):
    return np.array(
        [
            3.0 * ("alpha" in t and "charlie" in t) - ("bravo" in t) + ("delta" in t) * ("echo" in t)
            for t in texts
        ]
    )


def enumerated(kind, d, predict):
    """Every z, its probability under LIME's weights, answers, and what least squares leaves of them."""
    z = words.subsets(d)
    p = words.law(kind, d, 0.25)
    w = np.array([float(p[d - int(k)]) / math.comb(d, int(k)) for k in z.sum(axis=1)])
    f = predict(z)
    basis = np.column_stack([np.ones(len(z)), z])
    root = np.sqrt(w)
    return z, w, f, f - basis @ np.linalg.lstsq(basis * root[:, None], root * f, rcond=None)[0]


def of_features(explanation, names, top):
    """The pairs of some features, out of all pairs."""
    several = math.comb(len(explanation.feature_names), 2)
    return [p.features for p in explanation.interactions(several) if {*p.features} <= {*names}][:top]


def agrees(explanation, every, tolerance, top=4):
    z, w, f, rest = every
    variance = w @ (f - w @ f) ** 2
    gap = np.abs(explanation.fidelity[0] - (1 - w @ rest**2 / variance))
    assert gap <= tolerance + oracle.Z_LIMIT * explanation.fidelity_errors[0]
    pairs = explanation.interactions(top)
    assert len(pairs) == top
    names = list(explanation.feature_names)
    some = names[1:]
    assert [p.features for p in explanation[:, some].interactions(2)] == of_features(explanation, some, 2)
    for pair in pairs:
        i, j = (names.index(feature) for feature in pair.features)
        share = 0.0
        for a, b in np.ndindex(2, 2):
            inside = w * (z[:, i] == a) * (z[:, j] == b)
            expected = inside @ rest / inside.sum()
            share += inside.sum() * expected**2 / variance
            allowed = tolerance + oracle.Z_LIMIT * pair.standard_errors[a, b]
            assert abs(pair.values[a, b] - expected) <= allowed
            assert pair.masses[a, b] == pytest.approx(inside.sum())
        assert abs(pair.share - share) <= tolerance + oracle.Z_LIMIT * pair.share_error
    return pairs


@pytest.mark.parametrize("read", [True, False])
def test_pairs_of_few_words_are_those_of_enumeration(read):
    text = " ".join(WORDS[:6])
    tree = make_pipeline(CountVectorizer(binary=True), DecisionTreeRegressor(max_depth=4, random_state=0))
    model = tree.fit(TEXTS, ANSWERS).predict if read else black_box
    explanation = limes.TextExplainer(tree if read else black_box)(text, progress=False)

    def predict(z):
        return model([" ".join(np.array(WORDS[:6])[row > 0]) for row in z])

    pairs = agrees(explanation, enumerated("words", 6, predict), oracle.EXACT)
    assert set(pairs[0].features) == ({"alpha", "bravo"} if read else {"alpha", "charlie"})
    assert not any(pair.standard_errors.any() for pair in pairs)
    assert "removed" in str(pairs[0])


def test_pairs_of_a_sampled_text_lie_within_their_errors():
    text = " ".join(WORDS)
    explainer = limes.TextExplainer(black_box, method="sampled", control="none", max_calls=2048)

    def predict(z):
        return black_box([" ".join(np.array(WORDS)[row > 0]) for row in z])

    pairs = agrees(explainer(text, progress=False), enumerated("words", 14, predict), 0.0, top=2)
    assert {frozenset(pair.features) for pair in pairs} == {
        frozenset({"alpha", "charlie"}), frozenset({"delta", "echo"})
    }  # fmt: skip
    assert all(pair.share_error > 0 for pair in pairs)


def test_pairs_of_superpixels():
    image = rng.random((8, 12, 3))
    segments = np.repeat(np.repeat(np.arange(6).reshape(2, 3), 4, axis=0), 4, axis=1)

    def model(images):
        brightness = images.reshape(len(images), 2, 4, 3, 4, 3).mean(axis=(2, 4, 5)).reshape(len(images), 6)
        return brightness[:, 0] * brightness[:, 4] + brightness[:, 2]

    explainer = limes.ImageExplainer(model, segments=segments, fill=0.0)

    def predict(z):
        masks = z[:, segments]
        return model(image[None] * masks[..., None])

    (first, *_) = agrees(
        explainer(image, progress=False), enumerated("superpixels", 6, predict), oracle.EXACT
    )
    assert len(first.cells[0]) == 2


def test_a_sum_and_one_word_have_no_pairs():
    model = make_pipeline(TfidfVectorizer(norm=None), Ridge()).fit(TEXTS, ANSWERS)
    assert limes.TextExplainer(model)("alpha bravo charlie", progress=False).interactions() == ()
    assert limes.TextExplainer(black_box)("alpha", progress=False).interactions() == ()
