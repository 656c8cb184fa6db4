"""Hidden parts filled from a background: against all subsets with all items, and within errors."""

from __future__ import annotations

from math import factorial

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge

import limes
import onnx_models as onnx
import words
from limes import (
    CompositeExplainer,
    ImageExplainer,
    ImagePart,
    Preprocess,
    SeriesExplainer,
    SeriesPart,
    TablePart,
)
from limes.exceptions import InputError, ModelError, NotReadableError

RNG = np.random.default_rng(0)
SERIES = RNG.normal(size=12)
OTHERS = RNG.normal(size=(7, 12)) + np.linspace(-1, 1, 12)
BANDWIDTH = 0.25


def peak(batch):
    """No sum over segments, and no mean over the background either."""
    batch = np.asarray(batch, dtype=float)
    return batch.reshape(len(batch), -1).max(axis=1) + batch[:, 0].reshape(len(batch), -1)[:, 0] ** 2


def hidden_by(shown, other, labels, z):
    return np.where(z[labels] > 0, shown, other)


def oracle(model, shown, others, labels, kind="words"):
    """Intercept, coefficients and mean of the mean answer over all items, one by one."""
    d = int(labels.max()) + 1
    means = [
        np.mean([model(hidden_by(shown, other, labels, z)[None])[0] for other in others], axis=0)
        for z in words.subsets(d)
    ]
    return words.surrogate(words.law(kind, d, BANDWIDTH), np.array(means))


def equal(steps, count):
    return np.arange(steps) * count // steps


# -- series --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("form", [list, np.asarray, pd.DataFrame], ids=["list", "array", "frame"])
def test_a_series_is_exact_over_all_subsets_and_all_series(count, form):
    seen = []

    def model(batch):
        seen.append(len(batch))
        return peak(batch)

    explainer = SeriesExplainer(
        model, count=count, hide="background", background=form(OTHERS), bandwidth=BANDWIDTH
    )
    explanation = explainer(SERIES)
    intercept, coef, _ = oracle(peak, SERIES, OTHERS, equal(12, count))
    assert explanation.method == "exact"
    np.testing.assert_allclose(explanation.coefficients.values[0], coef, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(explanation.coefficients.intercepts[0], intercept, rtol=1e-9, atol=1e-12)
    assert explanation.predictions[0] == peak(SERIES[None])[0]
    assert explanation.calls[0] == sum(seen)
    assert explanation.provenance["fill"] == "drawn from 7 series"
    account = explanation.contributions
    empty = np.mean([peak(other[None])[0] for other in OTHERS])
    np.testing.assert_allclose(account.base_values, empty)
    np.testing.assert_allclose(account.base_values + account.values.sum(axis=1), explanation.predictions)


@pytest.mark.parametrize("channels", ["together", "apart"])
def test_channels(channels):
    pair, others = RNG.normal(size=(9, 2)), RNG.normal(size=(3, 9, 2))
    labels = equal(9, 2)[:, None] + (2 * np.arange(2) if channels == "apart" else np.zeros(2, int))
    explainer = SeriesExplainer(peak, count=2, channels=channels, hide="background", background=others)
    _, coef, _ = oracle(peak, pair, others, labels)
    np.testing.assert_allclose(explainer(pair).coefficients.values[0], coef, rtol=1e-9, atol=1e-12)
    first = SeriesExplainer(
        lambda batch: peak(np.moveaxis(batch, 1, 2)),
        count=2,
        channels=channels,
        layout="first",
        hide="background",
        background=list(others),
    )
    np.testing.assert_allclose(first(pair).coefficients.values[0], coef, rtol=1e-9, atol=1e-12)


def test_the_mean_of_the_background_is_a_fill():
    """For a linear model both are the same; of others not."""
    weights = RNG.normal(size=12)
    for model, alike in ((lambda x: x @ weights, True), (peak, False)):
        drawn, mean, array = (
            SeriesExplainer(model, count=4, **options)(SERIES).coefficients.values
            for options in (
                {"hide": "background", "background": OTHERS},
                {"fill": "background mean", "background": OTHERS},
                {"fill": OTHERS.mean(axis=0)},
            )
        )
        np.testing.assert_array_equal(mean, array)
        assert np.allclose(drawn, mean) == alike


READABLE = {
    "ridge": lambda X, y: Ridge().fit(X, y),
    "forest": lambda X, y: RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y),
}


@pytest.mark.parametrize("name", READABLE)
def test_estimators_are_read(name):
    X = RNG.normal(size=(80, 12))
    estimator = READABLE[name](X, X[:, 0] * X[:, 5] + X[:, 7])
    explanation = SeriesExplainer(estimator, count=6, hide="background", background=OTHERS, max_calls=80)(
        SERIES
    )
    _, coef, _ = oracle(estimator.predict, SERIES, OTHERS, equal(12, 6))
    assert explanation.method == "exact"
    assert explanation.calls[0] == 0
    np.testing.assert_allclose(explanation.coefficients.values[0], coef, rtol=1e-9, atol=1e-12)


def test_a_forest_is_read_for_a_background_of_some_size():
    X = RNG.normal(size=(80, 12))
    forest = READABLE["forest"](X, X[:, 0] * X[:, 5])
    options = {"count": 6, "hide": "background", "max_calls": 200}
    read = SeriesExplainer(forest, background=MANY[:128], **options)(SERIES)
    sampled = SeriesExplainer(forest, background=MANY[:129], **options)(SERIES)
    assert (read.method, sampled.method) == ("exact", "sampled")
    assert "up to 128 items of a background, and there are 129" in sampled.reason
    _, coef, _ = oracle(forest.predict, SERIES, MANY[:128], equal(12, 6))
    np.testing.assert_allclose(read.coefficients.values[0], coef, rtol=1e-9, atol=1e-12)


def test_probabilities_are_averaged_and_not_margins():
    X = RNG.normal(size=(80, 12))
    classifier = LogisticRegression().fit(X, X[:, 0] + X[:, 5] > 0)
    explanation = SeriesExplainer(classifier, count=3, hide="background", background=OTHERS, output=1)(SERIES)
    _, coef, _ = oracle(lambda x: classifier.predict_proba(x)[:, 1], SERIES, OTHERS, equal(12, 3))
    np.testing.assert_allclose(explanation.coefficients.values[0], coef, rtol=1e-8, atol=1e-11)


# -- samples -------------------------------------------------------------------------------------------------

MANY = RNG.normal(size=(300, 12)) * np.linspace(0.2, 2.0, 12)


def wavy(batch):
    batch = np.asarray(batch)
    return np.tanh(batch[:, :6].sum(axis=1)) + 0.3 * batch[:, 2] * batch[:, 9] + np.abs(batch[:, 11])


@pytest.mark.parametrize(
    ("count", "calls"), [(3, 600), (3, 40), (6, 300), (10, 400)], ids=["states", "few calls", "six", "ten"]
)
def test_errors_contain_the_draw_of_the_background(count, calls):
    """Over 24 seeds the intervals of 95 % cover what the mean over all 300 series has."""
    labels, z, z_shares = equal(12, count), [], []
    subsets = words.subsets(count)
    means = np.array([wavy(np.where(one[labels] > 0, SERIES, MANY)).mean() for one in subsets])
    _, coef, _ = words.surrogate(words.law("words", count, BANDWIDTH), means)
    shares = shapley(means, count)
    for seed in range(24):
        explanation = SeriesExplainer(
            wavy, count=count, hide="background", background=MANY, max_calls=calls, rng=seed
        )(SERIES)
        assert explanation.method == "sampled"
        assert explanation.calls[0] <= calls
        z.append((explanation.coefficients.values[0] - coef) / explanation.coefficients.standard_errors[0])
        account = explanation.contributions
        z_shares.append((account.values[0] - shares) / account.standard_errors[0])
        np.testing.assert_allclose(account.base_values + account.values.sum(axis=1), explanation.predictions)
    for ratios in (np.abs(z), np.abs(z_shares)):
        assert (ratios <= 1.96).mean() >= 0.9
        # neither are they many times too wide
        assert 0.4 < ratios.mean() < 1.1


def shapley(means, d):
    """For the mean answers to all subsets, by the orders in which a feature can come."""
    values = np.zeros(d)
    for j in range(d):
        for subset in range(2**d):
            if not subset >> j & 1:
                k = subset.bit_count()
                gain = means[subset | 1 << j] - means[subset]
                values[j] += gain * factorial(k) * factorial(d - k - 1) / factorial(d)
    return values


def test_the_same_seed_gives_the_same_bits_whatever_the_batches():
    def explained(batch_size, rng=0):
        explainer = SeriesExplainer(
            wavy, count=6, hide="background", background=MANY, max_calls=200, rng=rng, batch_size=batch_size
        )
        explainer(OTHERS[0])  # what was explained before does not matter
        return explainer(SERIES)

    one, other = explained(256), explained(7)
    np.testing.assert_array_equal(one.coefficients.values, other.coefficients.values)
    np.testing.assert_array_equal(one.contributions.values, other.contributions.values)
    assert not np.array_equal(one.coefficients.values, explained(256, rng=1).coefficients.values)
    alone = SeriesExplainer(wavy, count=6, hide="background", background=MANY, max_calls=200, rng=0)(SERIES)
    np.testing.assert_array_equal(one.coefficients.values, alone.coefficients.values)


def test_a_batch_that_failed_is_asked_again_with_the_same_series():
    failures = iter([False, True, False, True])

    def flaky(batch):
        if len(batch) > 20 and next(failures, False):
            raise OSError("busy")
        return wavy(batch)

    options = {"count": 6, "hide": "background", "background": MANY, "max_calls": 200, "batch_size": 50}
    again = SeriesExplainer(flaky, retry=lambda error, attempt: 0.0, **options)(SERIES)
    np.testing.assert_array_equal(
        again.coefficients.values, SeriesExplainer(wavy, **options)(SERIES).coefficients.values
    )


def test_a_model_that_fails_says_so():
    def fails(batch):
        if len(batch) > 1:
            raise ValueError("no batches")
        return peak(batch)

    with pytest.raises(ModelError, match="no batches"):
        SeriesExplainer(fails, count=3, hide="background", background=OTHERS)(SERIES)


def test_exact_needs_a_budget_for_all_series():
    explainer = SeriesExplainer(wavy, count=6, hide="background", background=MANY, method="exact")
    with pytest.raises(NotReadableError, match="each item of the background"):
        explainer(SERIES)


def test_every_item_comes_once_before_one_comes_again():
    """For a subset that is asked about n times, the mean is that over the whole background."""
    from internals import BackgroundAnswers

    items = []
    answers = BackgroundAnswers(lambda rows: items.extend(rows[:, -1].tolist()) or rows[:, -1], 60, 8, 0)
    first, second = np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])
    for _ in range(60):
        answers.drawn(np.concatenate([first, second]))
    assert sorted(items[::2]) == sorted(items[1::2]) == list(range(60))
    assert items[::2] != items[1::2]


def test_lazy_attributes_work_with_a_background():
    explanation = SeriesExplainer(wavy, count=8, hide="background", background=MANY, max_calls=300)(SERIES)
    assert 0.0 < explanation.additive_fidelity[0] < 1.0  # the draw of the background is in no effect
    assert len(explanation.effects) == 8
    assert limes.diagnose(explanation, progress=False).rows
    assert "drawn from 300 series" in explanation.to_html()
    restored = limes.Explanation.from_json(explanation.to_json())
    np.testing.assert_array_equal(restored.coefficients.values, explanation.coefficients.values)


# -- images --------------------------------------------------------------------------------------------------

PHOTO = RNG.integers(0, 256, (6, 8, 3)).astype(np.uint8)
PHOTOS = RNG.integers(0, 256, (5, 6, 8, 3)).astype(np.uint8)
LABELS = np.repeat(np.repeat([[0, 1], [2, 3]], 3, axis=0), 4, axis=1)


def contrast(batch):
    pixels = np.asarray(batch, dtype=float).reshape(len(batch), -1)
    return pixels[:, ::5].max(axis=1) * pixels[:, 3::7].mean(axis=1) / 100


@pytest.mark.parametrize("form", [list, np.asarray])
@pytest.mark.parametrize("calls", [84, 1000])
def test_images_are_exact_over_all_subsets_and_all_photographs(form, calls):
    explainer = ImageExplainer(
        contrast, segments=LABELS, hide="background", background=form(PHOTOS), max_calls=calls
    )
    explanation = explainer(PHOTO)
    _, coef, _ = oracle(contrast, PHOTO, PHOTOS, LABELS[..., None] * np.ones(3, int), "superpixels")
    assert explanation.method == "exact"
    np.testing.assert_allclose(explanation.coefficients.values[0], coef, rtol=1e-9)
    sampled = ImageExplainer(
        contrast, segments=LABELS, hide="background", background=form(PHOTOS), max_calls=83
    )
    z = (sampled(PHOTO).coefficients.values[0] - coef) / sampled(PHOTO).coefficients.standard_errors[0]
    assert np.abs(z).max() < 5


def test_networks_and_estimators_of_pixels():
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    weights = RNG.normal(size=(PHOTO.size, 1))
    session = onnx.session(onnx.linear(weights, ("n", 3, 6, 8)))
    options = {"segments": LABELS, "hide": "background", "background": PHOTOS}
    preprocess = Preprocess(mean=[100, 120, 140], scale=50)
    explanation = ImageExplainer(session, preprocess=preprocess, output=0, **options)(PHOTO)

    def linear(batch):
        return np.stack([preprocess(one).ravel() for one in batch]).astype(float) @ weights[:, 0]

    _, coef, _ = oracle(linear, PHOTO, PHOTOS, LABELS[..., None] * np.ones(3, int), "superpixels")
    np.testing.assert_allclose(
        explanation.coefficients.values[0].ravel(), coef, rtol=1e-3, atol=1e-4 * np.abs(coef).max()
    )
    ridge = Ridge().fit(PHOTOS.reshape(5, -1).astype(float), np.arange(5.0))
    read = ImageExplainer(ridge, **options)(PHOTO)
    _, coef, _ = oracle(
        lambda batch: ridge.predict(batch.reshape(len(batch), -1).astype(float)),
        PHOTO,
        PHOTOS,
        LABELS[..., None] * np.ones(3, int),
        "superpixels",
    )
    assert read.calls[0] == 0
    np.testing.assert_allclose(read.coefficients.values[0], coef, rtol=1e-9)


def test_photographs_of_other_sizes_are_framed_alike():
    larger = [np.repeat(np.repeat(photo, 2, axis=0), 2, axis=1) for photo in PHOTOS]
    preprocess = Preprocess(size=(6, 8), channels="last", resample="nearest")
    framed = ImageExplainer(
        contrast, segments=LABELS, hide="background", background=larger, preprocess=preprocess
    )
    plain = ImageExplainer(contrast, segments=LABELS, hide="background", background=PHOTOS)
    np.testing.assert_allclose(framed(PHOTO).coefficients.values, plain(PHOTO).coefficients.values, rtol=1e-5)


# -- several inputs ------------------------------------------------------------------------------------------

HOUSES = pd.DataFrame(
    {"rooms": [2, 3, 5, 4], "city": ["x", "y", "y", "z"], "area": [40.0, 50.0, 90.0, np.nan]}
)
ROW = {"rooms": 6, "city": "y", "area": 120.0}


def price(batch):
    house, pulse = batch["house"], np.asarray(batch["pulse"])
    bright = np.array(["bright" in text for text in batch["advert"]], dtype=float)
    area = house["area"].fillna(0.0).to_numpy()
    return house["rooms"].to_numpy() * area * (1.0 + bright) + (house["city"] == "y") * pulse.max(axis=1) * 10


def composite(**options):
    parts = {
        "advert": "text",
        "house": TablePart(background=HOUSES, hide="background"),
        "pulse": SeriesPart(count=2, hide="background", background=OTHERS[:3]),
    }
    return CompositeExplainer(price, parts, bandwidth=BANDWIDTH, **options)


def composite_oracle():
    means = []
    for z in words.subsets(7):
        advert = " ".join(word for word, kept in zip(("bright", "flat"), z[:2], strict=True) if kept)
        answers = []
        for i in range(len(HOUSES)):
            house = {
                name: ROW[name] if kept else HOUSES[name].iloc[i]
                for name, kept in zip(ROW, z[2:5], strict=True)
            }
            for other in OTHERS[:3]:
                pulse = np.where(z[5:][equal(12, 2)] > 0, SERIES, other)
                batch = {"advert": [advert], "house": pd.DataFrame([house]), "pulse": pulse[None]}
                answers.append(float(np.asarray(price(batch))[0]))
        means.append(np.mean(answers))
    return words.surrogate(words.law("words", 7, BANDWIDTH), np.array(means))


def test_parts_draw_independently():
    raw = {"advert": "bright flat", "house": ROW, "pulse": SERIES}
    _, coef, _ = composite_oracle()
    explanation = composite(max_calls=2**7 * 12)(raw)
    assert explanation.method == "exact"
    np.testing.assert_allclose(explanation.coefficients.values[0], coef, rtol=1e-9, atol=1e-9)
    assert explanation.feature_names[2:5] == ("house: rooms", "house: city", "house: area")
    assert explanation.conditions[0][2] == "house: rooms = 6"
    sampled = composite(max_calls=1000)(raw)
    assert sampled.method == "sampled"
    assert np.abs((sampled.coefficients.values[0] - coef) / sampled.coefficients.standard_errors[0]).max() < 5


def test_a_column_that_equals_the_whole_background_is_unknown():
    frame = pd.DataFrame({"a": [1.0, 1.0], "b": [1.0, 2.0]})
    explainer = CompositeExplainer(
        lambda batch: batch["row"]["a"] + batch["row"]["b"],
        {"row": TablePart(background=frame, hide="background")},
    )
    explanation = explainer({"row": {"a": 1.0, "b": 2.0}})
    assert np.isnan(explanation.coefficients.values[0, 0])
    assert explanation.coefficients.values[0, 1] == pytest.approx(0.5)


def test_an_image_part_with_a_background():
    part = ImagePart(segments=LABELS, hide="background", background=PHOTOS)
    explanation = CompositeExplainer(lambda batch: contrast(batch["i"]), {"i": part}, bandwidth=BANDWIDTH)(
        {"i": PHOTO}
    )
    _, coef, _ = oracle(contrast, PHOTO, PHOTOS, LABELS[..., None] * np.ones(3, int))
    np.testing.assert_allclose(explanation.coefficients.values[0], coef, rtol=1e-9)


# -- a background of one, and options that do not fit --------------------------------------------------------


def test_a_background_of_one_is_a_fill():
    one = SeriesExplainer(peak, count=4, hide="background", background=OTHERS[:1])(SERIES)
    np.testing.assert_array_equal(
        one.coefficients.values, SeriesExplainer(peak, count=4, fill=OTHERS[0])(SERIES).coefficients.values
    )
    photo = ImageExplainer(contrast, segments=LABELS, hide="background", background=[PHOTOS[0]])(PHOTO)
    np.testing.assert_array_equal(
        photo.coefficients.values,
        ImageExplainer(contrast, segments=LABELS, fill=PHOTOS[0])(PHOTO).coefficients.values,
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SeriesExplainer(peak, hide="background"), "needs a background"),
        (lambda: SeriesExplainer(peak, fill="background mean"), "needs a background"),
        (lambda: SeriesExplainer(peak, background=OTHERS), "background= is not used"),
        (
            lambda: SeriesExplainer(peak, hide="background", background=OTHERS, fill=0.0),
            "fill= has no effect",
        ),
        (lambda: SeriesExplainer(peak, hide="backgrund", background=OTHERS), "did you mean 'background'"),
        (lambda: SeriesExplainer(peak, hide="background", background=OTHERS[0]), "several series"),
        (lambda: SeriesExplainer(peak, hide="background", background=[]), "several series"),
        (
            lambda: SeriesExplainer(peak, hide="background", background=[SERIES, SERIES[:5]]),
            "different shapes",
        ),
        (
            lambda: SeriesExplainer(peak, hide="background", background=[SERIES, ["x"] * 12]),
            "background, series 1",
        ),
        (
            lambda: SeriesExplainer(peak, segments="frequency", hide="background", background=OTHERS),
            "bands of frequencies",
        ),
        (
            lambda: SeriesExplainer(peak, hide="background", background=OTHERS)(SERIES[:6]),
            r"\(6, 1\).*\(12, 1\)",
        ),
        (lambda: ImageExplainer(contrast, hide="background"), "needs a background"),
        (lambda: ImageExplainer(contrast, hide="background", background=PHOTO), "several photographs"),
        (
            lambda: ImageExplainer(contrast, hide="background", background=PHOTOS, fill=["mean", "blur"]),
            "fill= has no effect",
        ),
        (
            lambda: ImageExplainer(contrast, segments=LABELS, hide="background", background=PHOTOS / 255)(
                PHOTO
            ),
            "photograph 0 of the background is float64",
        ),
        (
            lambda: ImageExplainer(
                contrast, segments=LABELS, hide="background", background=[PHOTO, PHOTO[:4]]
            )(PHOTO),
            "photograph 1 of the background is uint8 of shape",
        ),
        (lambda: ImagePart(hide="background", background=["no.png"]), "background, photograph 0: no.png"),
        (lambda: TablePart(background=HOUSES, hide="fill"), "hide='fill' is not one of"),
    ],
)
def test_options_that_do_not_fit(make, message):
    with pytest.raises(InputError, match=message):
        make()
