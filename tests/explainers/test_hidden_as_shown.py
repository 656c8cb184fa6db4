"""A feature that looks the same hidden as shown has no coefficient; default fills differ from the input.

Oracles enumerate the subsets of the features that hiding changes, on inputs that are written down by hand.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import limes
import words
from limes import CompositeExplainer, ImageExplainer, SeriesExplainer, TablePart, TextExplainer
from limes.exceptions import InputError

EXACT = 1e-9


def assert_among(explanation, answers, same, kind):
    """Features ``same`` are unknown; the others are the surrogate of answers (2^k,) to their subsets."""
    values, errors = explanation.coefficients.values[0], explanation.coefficients.standard_errors[0]
    others = [j for j in range(len(values)) if j not in same]
    assert explanation.method == "exact"
    assert np.isnan(values[list(same)]).all()
    assert np.isinf(errors[list(same)]).all()
    np.testing.assert_array_equal(errors[others], 0.0)
    intercept, coef, mean = words.surrogate(words.law(kind, len(others), 0.25), answers)
    scale = np.abs(answers).max()
    np.testing.assert_allclose(values[others], coef, rtol=EXACT, atol=EXACT * scale)
    np.testing.assert_allclose(
        explanation.coefficients.intercepts[0], intercept, rtol=EXACT, atol=EXACT * scale
    )
    np.testing.assert_allclose(explanation.predictions[0], answers[-1], rtol=EXACT)
    np.testing.assert_allclose(
        explanation.coefficients.surrogate_predictions[0], intercept + coef.sum(), rtol=EXACT
    )
    z, p = words.subsets(len(others)), np.array(words.law(kind, len(others), 0.25), dtype=float)
    removed = (len(others) - z.sum(axis=1)).astype(int)
    weights = p[removed] / np.bincount(removed)[removed]
    rest = weights @ (answers - intercept - z @ coef) ** 2
    np.testing.assert_allclose(
        explanation.fidelity[0], 1 - rest / (weights @ (answers - mean) ** 2), rtol=1e-7
    )


# -- defaults that hide --------------------------------------------------------------------------------------

REVIEWS = pd.DataFrame(
    {
        "stars": [1, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5],
        "source": ["amazon"] * 6 + ["shop"] * 3 + ["ebay"] * 2,
    }
)


def opinion(batch):
    """Logistic in stars, source and one word."""
    table = batch["row"]
    good = np.array(["good" in text for text in batch["review"]], dtype=float)
    margin = 0.9 * (table["stars"].to_numpy(float) - 2.5) - (table["source"] == "amazon").to_numpy() + good
    return 1 / (1 + np.exp(-margin))


def test_the_commonest_row_is_explained():
    """Stars are the median and the source is the most frequent: both hide behind the typical other value."""
    explainer = CompositeExplainer(opinion, {"review": "text", "row": TablePart(background=REVIEWS)})
    row = {"review": "good food", "row": {"stars": 3, "source": "amazon"}}
    explanation = explainer(row)
    # of the stars other than 3 the lower median, of the other sources the most frequent
    assert explanation.conditions[0][2:] == ("row: stars = 3, not 4", "row: source = amazon, not shop")
    z = words.subsets(4)
    batch = {
        "review": [" ".join(np.array(["good", "food"])[one[:2] > 0]) for one in z],
        "row": pd.DataFrame(
            {
                "stars": np.where(z[:, 2] > 0, 3, 4),
                "source": np.where(z[:, 3] > 0, "amazon", "shop"),
            }
        ),
    }
    assert_among(explanation, opinion(batch), (), "words")
    assert explanation.warnings == ()
    # the same row is explained alike, whatever is explained beside it
    several = explainer([{"review": "bad", "row": {"stars": 5, "source": "ebay"}}, row])
    np.testing.assert_array_equal(several[1].coefficients.values, explanation.coefficients.values)
    assert several[0].conditions[0][1:] == ("row: stars = 5, not 3", "row: source = ebay, not amazon")


RED, BLUE = np.array([200, 10, 20]), np.array([10, 20, 220])
HALVES = np.repeat([[0, 0, 0, 0, 1, 1, 1, 1]], 6, axis=0)
TWO = np.where(HALVES[..., None] == 0, RED, BLUE).astype(np.uint8)


def blueness(images):
    return (images[..., 2].astype(float) - images[..., 0]).mean(axis=(1, 2)) / 255


@pytest.mark.parametrize("kind", [np.uint8, np.float64])
def test_plain_superpixels_show_the_mean_of_the_image(kind):
    image = TWO.astype(kind) if kind == np.uint8 else TWO / 255
    colour = image.reshape(-1, 3).astype(float).mean(axis=0).astype(kind)
    explanation = ImageExplainer(blueness, segments=HALVES)(image)
    shown = words.subsets(2)[:, HALVES][..., None] > 0
    assert_among(explanation, blueness(np.where(shown, image, colour)), (), "superpixels")
    assert np.abs(explanation.coefficients.values).min() > 1e-3
    assert explanation.warnings == ()


def test_a_segment_at_the_mean_is_raised():
    thirds = np.repeat([0.0, 2.0, 1.0], 10)

    def last(series):
        return series[:, 20:].mean(axis=1)

    explanation = SeriesExplainer(last, count=3)(thirds)
    # the mean is 1, the deviation √(2/3)
    np.testing.assert_allclose(explanation.coefficients.values[0], [0, 0, -np.sqrt(2 / 3)], atol=1e-12)
    assert explanation.warnings == ()


# -- features that are the same hidden as shown --------------------------------------------------------------

DAY = "a good day , good night"
RAMP = np.array([3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 5.0, 4.0, 6.0])
WAVE = np.cos(2 * np.pi * np.arange(24) / 24 * 2) + 3.0  # one frequency of twelve
QUARTERS = np.repeat(np.repeat([[0, 1], [2, 3]], 3, axis=0), 3, axis=1)
PLAIN = np.random.default_rng(0).random((6, 6))
PLAIN[QUARTERS == 2] = 0.3


def length(texts):
    return np.array([len(text) ** 1.5 + text.count("good") for text in texts], dtype=float)


def product(arrays):
    flat = np.asarray(arrays, dtype=float).reshape(len(arrays), -1)
    return np.tanh(flat @ np.linspace(0.2, 1, flat.shape[1]) / 9) + flat[:, 0] * flat[:, -1]


def of_table(frame):
    missing = frame["size"].isna().to_numpy(float)
    return frame["rooms"].to_numpy(float) ** 2 * (1 + missing) + (frame["town"] == "Ulm").to_numpy()


def texts_of(z):
    pairs = np.where(z > 0, ["a", "day", "night"], ["good", "good", "good"])
    return [f"{a} good {b} , good {c}" for a, b, c in pairs]


def filled(z, labels, image, fill):
    return np.where(z[:, labels] > 0, image, fill)


def blurred(image):
    from scipy.ndimage import gaussian_filter

    return gaussian_filter(image, 0.05 * max(image.shape), mode="nearest")


# A picture of which the left half is plain, so wide that its first superpixel is unchanged by a blur
WIDE = np.full((4, 60), 0.7)
WIDE[:, 40:] = np.random.default_rng(1).random((4, 20))
STRIPS = np.repeat([np.arange(60) // 20], 4, axis=0)
CELLS = pd.DataFrame({"rooms": [1, 2, 3, 4, 6], "town": ["Ulm"] * 5, "size": [None, None, None, "S", None]})
FLAT = pd.DataFrame({"left": [1.0, 2.0, 4.0, 8.0], "right": [5.0, 5.0, 5.0, 5.0]})

CASES = {
    "a mask that is the word": (
        TextExplainer(length, mask="good"),
        DAY,
        [1],
        lambda z: length(texts_of(z)),
        "words",
    ),
    "two texts": (
        CompositeExplainer(
            lambda batch: length(batch["one"]) + 2 * length(batch["two"]),
            {"one": limes.TextPart(mask="good"), "two": "text"},
        ),
        {"one": "good day", "two": "good night"},
        [0],
        lambda z: (
            length(["good day" if on else "good good" for on in z[:, 0]])
            + 2 * length([f"{'good' if a else ''} {'night' if b else ''}" for a, b in z[:, 1:]])
        ),
        "words",
    ),
    "a black patch filled with black": (
        ImageExplainer(product, segments=QUARTERS, fill=0),
        np.where(QUARTERS == 1, 0, PLAIN),
        [1],
        lambda z: product(filled(np.insert(z, 1, 1, axis=1), QUARTERS, np.where(QUARTERS == 1, 0, PLAIN), 0)),
        "superpixels",
    ),
    "an image for fill with the same part": (
        ImageExplainer(product, segments=QUARTERS, fill=np.where(QUARTERS == 3, PLAIN, 0.5)),
        PLAIN,
        [3],
        lambda z: product(filled(np.insert(z, 3, 1, axis=1), QUARTERS, PLAIN, 0.5)),
        "superpixels",
    ),
    "a blur of a plain part": (
        ImageExplainer(product, segments=STRIPS, fill="blur"),
        WIDE,
        [0],
        lambda z: product(filled(np.insert(z, 0, 1, axis=1), STRIPS, WIDE, blurred(WIDE))),
        "superpixels",
    ),
    "a segment at the fill": (
        SeriesExplainer(product, count=3, fill=0),
        RAMP,
        [1],
        lambda z: product(RAMP * np.repeat(np.insert(z, 1, 1, axis=1), 3, axis=1)),
        "words",
    ),
    "a channel without change": (
        SeriesExplainer(product, count=2, channels="apart"),
        FLAT,
        [2, 3],  # the segments of a channel follow each other
        lambda z: product(
            np.stack(
                [
                    np.where(np.repeat(z, 2, axis=1) > 0, FLAT["left"], FLAT["left"].mean()),
                    np.full((len(z), 4), 5.0),
                ],
                axis=2,
            )
        ),
        "words",
    ),
    "bands without energy": (
        SeriesExplainer(product, segments="frequency", count=4),
        WAVE,
        [1, 2, 3],
        lambda z: product(3.0 + z * (WAVE - 3.0)),
        "words",
    ),
    "a level and a missing value that all rows have": (
        CompositeExplainer(
            lambda batch: of_table(batch["row"]),
            {"row": TablePart(background=CELLS.assign(size=[None] * 4 + ["S"]).assign(town="Ulm"))},
        ),
        {"row": {"rooms": 6, "town": "Ulm", "size": None}},
        [1],
        lambda z: of_table(
            pd.DataFrame(
                {
                    "rooms": np.where(z[:, 0] > 0, 6, 3),
                    "town": "Ulm",
                    "size": np.where(z[:, 1] > 0, None, "S"),
                }
            )
        ),
        "words",
    ),
    "a column that is always missing": (
        CompositeExplainer(
            lambda batch: of_table(batch["row"]),
            {"row": TablePart(background=CELLS.assign(size=np.nan, town=["Ulm", "Bonn"] * 2 + ["Ulm"]))},
        ),
        {"row": {"rooms": 2, "town": "Ulm", "size": np.nan}},
        [2],
        lambda z: of_table(
            pd.DataFrame(
                {
                    "rooms": np.where(z[:, 0] > 0, 2, 3),
                    "town": np.where(z[:, 1] > 0, "Ulm", "Bonn"),
                    "size": np.nan,
                }
            )
        ),
        "words",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_others_are_explained_without_it(case):
    explainer, item, same, answers, kind = CASES[case]
    explanation = explainer(item)
    d = len(explanation.feature_names)
    assert_among(explanation, answers(words.subsets(d - len(same))), same, kind)
    (warning,) = (text for text in explanation.warnings if "unknown" in text)
    for j, name in enumerate(explanation.feature_names):
        assert (re.search(rf"(^|, | and ){re.escape(name)}(,| and|:)", warning) is not None) == (j in same)
    assert "use another" in warning


@pytest.mark.parametrize("case", CASES)
def test_everything_that_shows_an_explanation_takes_it(case):
    """Pages say "unknown"; nothing sums a NaN."""
    explainer, item, same, *_ = CASES[case]
    explanation = explainer(item)
    restored = limes.Explanation.from_json(explanation.to_json())
    np.testing.assert_array_equal(restored.coefficients.values, explanation.coefficients.values)
    json.loads(explanation.to_json(), parse_constant=pytest.fail)
    for text in (explanation.to_html(), str(explanation), repr(explanation)):
        assert not re.search(r"\bnan\b|\binf\b", re.sub(r"url\([^)]*\)|data:[^\"']*", "", text))
    assert "unknown" in explanation.to_html()
    assert "unknown" in str(explanation)
    unknown = [explanation.conditions[0][j] for j in same]
    assert not any(condition in reason for condition in unknown for reason in explanation.reasons(9))
    # what is the same hidden as shown contributes nothing
    assert not explanation.contributions.values[0, same].any()
    assert explanation.plot.waterfall(row=0)
    assert explanation.plot.bar(row=0)
    assert explanation.plot.beeswarm()
    assert "?" in str(explanation.effects)
    first = explanation.top(1)
    assert np.isfinite(first.coefficients.values).all()
    effects = explanation.effects
    for j, name in enumerate(explanation.conditions[0]):
        selected = explanation[:, j].effects[explanation.feature_names[j]]
        assert np.isnan(selected.values).all() == (j in same), name
    assert all(
        explanation.feature_names[j] not in pair.features
        for pair in explanation.interactions(3)
        for j in same
    )
    assert effects.to_frame().shape[0] == 2 * len(explanation.feature_names)
    assert {f for one in limes.diagnose(explanation, progress=False).findings for f in one.features} <= {
        name for j, name in enumerate(explanation.feature_names) if j not in same
    }


@pytest.mark.parametrize(
    ("explainer", "item"),
    [
        (ImageExplainer(blueness, segments=HALVES), np.full((6, 8, 3), 7, dtype=np.uint8)),
        (ImageExplainer(product, segments=QUARTERS, fill=["mean", 0.3]), np.full((6, 6), 0.3)),
        (SeriesExplainer(product, count=3), np.full(9, 0.1)),
        (SeriesExplainer(product, segments="frequency", count=3), np.full(9, 0.1)),
        (TextExplainer(length, mask="good"), "good, good"),
        (CompositeExplainer(lambda b: product(b["s"]), {"s": "series"}), {"s": np.zeros(20)}),
    ],
    ids=["one colour", "one colour, two fills", "series", "bands", "text", "composite"],
)
def test_nothing_can_be_hidden(explainer, item):
    explanation = explainer(item)
    assert np.isnan(explanation.coefficients.values).all()
    np.testing.assert_allclose(explanation.coefficients.intercepts, explanation.predictions, rtol=EXACT)
    np.testing.assert_allclose(
        explanation.coefficients.surrogate_predictions, explanation.predictions, rtol=EXACT
    )
    np.testing.assert_allclose(explanation.fidelity, 1.0)
    assert any("unknown" in text for text in explanation.warnings)
    assert "unknown" in explanation.to_html()
    if explanation.explainer is not None:
        with pytest.raises(InputError, match="nothing to diagnose"):
            limes.diagnose(explanation, progress=False)


def test_sampled_explanations_name_the_right_features():
    """Errors and ties are of the features that were varied; the others have no share of R²."""
    rng = np.random.default_rng(3)
    image = rng.random((8, 8))
    labels = np.arange(64).reshape(8, 8) // 4
    image[labels == 5] = image[labels == 11] = 0.0
    coef = rng.standard_normal(16)

    def model(images):
        totals = np.stack([images[:, labels == j].sum(axis=1) for j in range(16)], axis=1)
        return totals @ coef + 0.3 * totals[:, 0] * totals[:, 1]

    explanation = ImageExplainer(model, segments=labels, fill=0, max_calls=600, method="sampled")(image)
    assert explanation.method == "sampled"
    unknown = np.isin(np.arange(16), [5, 11])
    np.testing.assert_array_equal(np.isnan(explanation.coefficients.values[0]), unknown)
    np.testing.assert_array_equal(explanation.coefficients.shares[0, unknown], 0.0)
    without = np.where(np.isin(labels, [5, 11]), 0, labels)
    exact = ImageExplainer(model, segments=without, fill=0, max_calls=2**14)(image)
    away = (
        explanation.coefficients.values[0, ~unknown] - exact.coefficients.values[0]
    ) / explanation.coefficients.standard_errors[0, ~unknown]
    assert np.abs(away).max() < 5
    assert "superpixel 5 and superpixel 11: " in " ".join(explanation.warnings).replace(",", " and")
    assert "± inf" not in str(explanation) + explanation.to_html()


def test_several_fills_leave_out_what_one_of_them_does_not_hide():
    image = np.where(QUARTERS == 1, 0, PLAIN)
    both = ImageExplainer(product, segments=QUARTERS, fill=[0 * PLAIN, 0.5])(image)
    z = np.insert(words.subsets(3), 1, 1, axis=1)
    answers = (product(filled(z, QUARTERS, image, fill)) for fill in (0, 0.5))
    law = words.law("superpixels", 3, 0.25)
    parts = [words.surrogate(law, one) for one in answers]
    np.testing.assert_allclose(
        both.coefficients.values[0, [0, 2, 3]], np.mean([coef for _, coef, _ in parts], axis=0), rtol=EXACT
    )
    assert np.isnan(both.coefficients.values[0, 1])
    assert np.isfinite(both.fidelity).all()
    (warning,) = (text for text in both.warnings if "unknown" in text)
    assert warning.startswith("superpixel 1: ")
    assert warning.endswith("(fill ndarray 0)")


def test_a_users_own_part_is_compared():
    """A part by duck typing need not tell what hiding changes: its batches do."""

    class Digits:
        def parse(self, raw):
            return Piece(raw)

    class Piece:
        def __init__(self, raw):
            self.raw = np.asarray(raw, dtype=float)
            self.names = self.conditions = tuple(f"digit {j}" for j in range(len(raw)))
            self.data = np.asarray(raw, dtype=object)
            self.key, self.picture = tuple(raw), {}

        def compose(self, z):
            return self.raw * z

    explanation = CompositeExplainer(lambda batch: batch["n"].sum(axis=1), {"n": Digits()})({"n": [3, 0, 4]})
    np.testing.assert_allclose(explanation.coefficients.values[0], [3, np.nan, 4])


def test_a_read_model_is_read_without_it():
    rng = np.random.default_rng(0)
    X = rng.random((80, 9))
    model = LogisticRegression().fit(X, X[:, 0] + X[:, 4] > X[:, 8])
    row = X[0].copy()
    row[3:6] = 0.25
    explanation = SeriesExplainer(model, count=3, fill=0.25, output=True)(row)
    z = np.insert(words.subsets(2), 1, 1, axis=1)
    batch = np.where(np.repeat(z, 3, axis=1) > 0, row, 0.25)
    assert_among(explanation, model.predict_proba(batch)[:, 1], [1], "words")
    assert explanation.model_calls < 2


def test_shap_gets_contributions_that_add_up():
    shap = pytest.importorskip("shap")
    explanation = SeriesExplainer(product, count=3, fill=0)(RAMP)
    moved = explanation.to_shap()
    assert isinstance(moved, shap.Explanation)
    np.testing.assert_allclose(moved.values.sum() + moved.base_values, explanation.predictions)


@pytest.mark.parametrize("hide_color", [None, 0])
def test_the_drop_in_keeps_limes_zeros(hide_color):
    """lime fits every superpixel, and fills a plain one with its own colour."""
    from limes.compat.lime.lime_image import LimeImageExplainer

    image = np.where(HALVES[..., None] == 0, 0, TWO).astype(np.uint8)

    def classify(images):
        return np.column_stack([1 - blueness(images), blueness(images)])

    explanation = LimeImageExplainer(random_state=0).explain_instance(
        image, classify, hide_color=hide_color, segmentation_fn=lambda _: HALVES
    )
    values = dict(explanation.local_exp[1])
    np.testing.assert_allclose(values[0], 0, atol=1e-12)
    expected = 0.0 if hide_color is None else blueness(np.where(HALVES[..., None] == 1, TWO, 0)[None])[0]
    np.testing.assert_allclose(values[1], expected, atol=1e-12)


def test_the_drop_in_keeps_limes_zeros_of_words():
    from limes.compat.lime.lime_text import LimeTextExplainer

    def classify(texts):
        share = np.array(["day" in text for text in texts], dtype=float)
        return np.column_stack([1 - share, share])

    explanation = LimeTextExplainer(bow=False, mask_string="good").explain_instance("good day", classify)
    assert dict(explanation.as_list()) == pytest.approx({"day": 1.0, "good": 0.0}, abs=1e-9)
    assert np.isfinite(explanation.limes.coefficients.values).all()


# -- unknown coefficients and those that are 0 ---------------------------------------------------------------

GREY_IMAGE = np.full((4, 4, 3), 90, dtype=np.uint8)
HALF = np.where(np.arange(4)[:, None, None] < 2, GREY_IMAGE, np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
BANDS = {"segments": np.repeat([[0], [1]], 4, axis=1).repeat(2, axis=0)}


def constant(batch):
    return np.full(len(batch), 0.3)


def brightness(images):
    return np.asarray(images, dtype=float).mean(axis=(1, 2, 3))


# explain, which coefficients are unknown, whether a warning has it that the others are 0
ALIKE = {
    "a plain image": (lambda: ImageExplainer(brightness, **BANDS, fill="mean")(GREY_IMAGE), "all", False),
    "a plain image in its colour": (
        lambda: ImageExplainer(brightness, **BANDS, fill=90)(GREY_IMAGE),
        "all",
        False,
    ),
    "a plain blur": (lambda: ImageExplainer(brightness, **BANDS, fill="blur")(GREY_IMAGE), "all", False),
    "a constant model": (lambda: ImageExplainer(constant, **BANDS, fill="mean")(GREY_IMAGE), "all", False),
    "two plain fills": (
        lambda: ImageExplainer(constant, **BANDS, fill=["mean", "blur"])(GREY_IMAGE),
        "all",
        False,
    ),
    "a plain half": (lambda: ImageExplainer(brightness, **BANDS, fill=90)(HALF), "some", False),
    "a plain half, a constant model": (
        lambda: ImageExplainer(constant, **BANDS, fill=90)(HALF),
        "some",
        True,
    ),
    "no plain half, a constant model": (
        lambda: ImageExplainer(constant, **BANDS, fill=0)(GREY_IMAGE),
        "none",
        True,
    ),
    "masked words": (lambda: TextExplainer(constant, mask="good", bag=False)("good good good"), "all", False),
    "a masked word": (lambda: TextExplainer(constant, mask="good")("good food"), "some", True),
    "a series of 0": (lambda: SeriesExplainer(constant, count=2, fill=0.0)(np.zeros(8)), "all", False),
    "a half of 0": (
        lambda: SeriesExplainer(constant, count=2, fill=0.0)(np.repeat([0.0, 1.0], 4)),
        "some",
        True,
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_unknown_coefficients_are_not_zero(name):
    explain, unknown, is_zero = ALIKE[name]
    explanation = explain()
    is_unknown = np.isnan(explanation.coefficients.values)
    assert {"all": is_unknown.all(), "some": is_unknown.any(), "none": not is_unknown.any()}[unknown]
    zeros = [text for text in explanation.warnings if "are 0" in text]
    assert bool(zeros) == is_zero
    wording = "all coefficients are 0" if unknown == "none" else "all coefficients that are known are 0"
    assert all(wording in text for text in zeros)
    assert any("unknown" in text for text in explanation.warnings) == (unknown != "none")
