"""Composite inputs: exact against every subset of words, superpixels, segments and columns together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import limes
import words
from limes import CompositeExplainer, ImagePart, SeriesPart, TablePart, TextPart
from limes.exceptions import InputError, ModelError

RNG = np.random.default_rng(0)
HOUSES = pd.DataFrame(
    {
        "rooms": RNG.integers(1, 8, 41),
        "area": RNG.normal(80, 20, 41),
        "town": pd.Categorical(RNG.choice(["Ulm", "Bonn", "Trier"], 41, p=[0.2, 0.5, 0.3])),
    }
)
PHOTO = RNG.integers(0, 256, (4, 6)).astype(np.uint8)
LABELS = np.repeat([[0, 0, 0, 1, 1, 1]], 4, axis=0)
PULSE = RNG.standard_normal(9)
PARTS = {
    "advert": "text",
    "photo": ImagePart(segments=LABELS, fill=0),
    "pulse": SeriesPart(count=3, fill=0.0),
    "house": TablePart(background=HOUSES),
}
INPUT = {
    "advert": "bright, bright flat",
    "photo": PHOTO,
    "pulse": PULSE,
    "house": {"rooms": 7, "area": 91.5, "town": "Ulm"},
}
NAMES = (
    *("advert: bright", "advert: flat", "photo: superpixel 0", "photo: superpixel 1"),
    *("pulse: 0 to 2", "pulse: 3 to 5", "pulse: 6 to 8", "house: rooms", "house: area", "house: town"),
)


def price(batch):
    """Features of all parts meet in products."""
    bright = np.array([text.count("bright") for text in batch["advert"]], dtype=float)
    light = batch["photo"].astype(float).mean(axis=(1, 2)) / 100
    beat = np.abs(batch["pulse"]).max(axis=1)
    house = batch["house"]
    base = (
        house["rooms"].to_numpy() * (1 + (house["town"] == "Ulm").to_numpy()) + house["area"].to_numpy() / 9
    )
    return base + bright * light + 3 * beat * light


def every_input():
    """The inputs of all 2^10 subsets, one by one."""
    typical = {
        "rooms": sorted(HOUSES["rooms"])[20],
        "area": sorted(HOUSES["area"])[20],
        "town": HOUSES["town"].mode()[0],
    }
    texts, photos, pulses, rows = [], [], [], []
    for z in words.subsets(10):
        texts.append("".join(["bright, bright " if z[0] else ",  ", "flat" if z[1] else ""]))
        photos.append(np.where(LABELS == 0, z[2], z[3]) * PHOTO)
        pulses.append(PULSE * np.repeat(z[4:7], 3))
        rows.append(
            {k: INPUT["house"][k] if on else typical[k] for k, on in zip(typical, z[7:], strict=True)}
        )
    frame = pd.DataFrame(rows).astype({"town": HOUSES["town"].dtype})
    return {"advert": texts, "photo": np.stack(photos), "pulse": np.stack(pulses), "house": frame}


@pytest.mark.parametrize("bandwidth", [0.25, np.inf])
def test_exact_by_all_subsets(bandwidth):
    explanation = CompositeExplainer(price, PARTS, bandwidth=bandwidth)(INPUT)
    intercept, coef, _ = words.surrogate(words.law("words", 10, bandwidth), price(every_input()))
    assert explanation.feature_names == NAMES
    assert explanation.method == "exact"
    scale = np.abs(coef).max()
    np.testing.assert_allclose(explanation.coefficients.values[0], coef, rtol=1e-9, atol=1e-9 * scale)
    np.testing.assert_allclose(explanation.coefficients.intercepts[0], intercept, rtol=1e-9)
    assert explanation.predictions[0] == price({**every_input(), **_whole()})[-1]
    assert explanation.provenance["parts"]["house"] == [7, 10]


def _whole():
    """The input itself, as a batch of one."""
    frame = pd.DataFrame([INPUT["house"]]).astype({"town": HOUSES["town"].dtype})
    return {"advert": [INPUT["advert"]], "photo": PHOTO[None], "pulse": PULSE[None], "house": frame}


def test_the_model_gets_inputs_in_the_users_types():
    seen = []

    def model(batch):
        seen.append(batch)
        return np.arange(float(len(batch["advert"])))

    CompositeExplainer(model, PARTS)(INPUT)
    batch = seen[-1]
    assert isinstance(batch["advert"], list)
    assert batch["photo"].dtype == np.uint8
    assert batch["pulse"].shape[1:] == (9,)
    assert batch["house"].dtypes.equals(HOUSES.dtypes)


def test_sampled_within_its_errors():
    exact = CompositeExplainer(price, PARTS)(INPUT)
    sampled = CompositeExplainer(price, PARTS, method="sampled", max_calls=600)(INPUT)
    assert (
        np.abs(sampled.coefficients.values - exact.coefficients.values)
        < 5 * sampled.coefficients.standard_errors + 1e-9
    ).all()


def test_several_outputs_are_named():
    explainer = CompositeExplainer(
        lambda batch: np.stack([price(batch), -price(batch)], axis=1), PARTS, labels=["up", "down"]
    )
    explanation = explainer(INPUT)
    assert explanation.output_names == ("up", "down")
    np.testing.assert_allclose(
        explanation.coefficients.values[0, :, 0], -explanation.coefficients.values[0, :, 1], rtol=1e-9
    )


def test_the_five_largest_of_many_outputs_are_explained():
    """Output k is (k + 1) / 7 of the price, so that the last five of seven are the largest."""
    shares = np.arange(1, 8) / 7
    explanation = CompositeExplainer(lambda batch: np.multiply.outer(price(batch), shares), PARTS)(INPUT)
    assert sorted(explanation.output_names) == [str(k) for k in range(2, 7)]


def test_pictures_of_the_parts():
    explanation = CompositeExplainer(price, {**PARTS, "remark": TextPart()})({**INPUT, "remark": "none"})
    page = explanation.to_html()
    assert 'class="lx-text"' in page
    assert 'class="lx-image"' in page
    assert 'class="lx-series"' in page
    assert explanation.plot.text().get_title(loc="left")
    restored = limes.Explanation.from_json(explanation.to_json())
    assert restored.mask(None, top=1).shape == PHOTO.shape


def test_real_reviews_with_their_source():
    """A column of texts beside a column of categories, which one Pipeline takes as a frame."""
    from sklearn.compose import make_column_transformer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = pd.DataFrame(
        {
            "review": ["good food", "bad food", "good film", "a bad film", "very good", "very bad"] * 5,
            "source": ["yelp", "yelp", "imdb", "imdb", "imdb", "yelp"] * 5,
        }
    )
    columns = make_column_transformer((TfidfVectorizer(), "review"), (OneHotEncoder(), ["source"]))
    model = make_pipeline(columns, LogisticRegression()).fit(frame, [1, 0, 1, 0, 1, 0] * 5)

    def probability(batch):
        return model.predict_proba(batch["about"].assign(review=batch["review"]))[:, 1]

    parts = {"review": "text", "about": TablePart(background=frame[["source"]])}
    explanation = CompositeExplainer(probability, parts)(
        {"review": "a very bad film", "about": {"source": "yelp"}}
    )
    answers = []
    for z in words.subsets(5):
        kept = ["a", "very", "bad", "film"]
        text = " ".join(word if on else "" for word, on in zip(kept, z[:4], strict=True))
        # both sources are as frequent: the first of them stands for a hidden one
        row = pd.DataFrame({"review": [text], "source": ["yelp" if z[4] else "imdb"]})
        answers.append(model.predict_proba(row)[0, 1])
    _, coef, _ = words.surrogate(words.law("words", 5, 0.25), np.array(answers))
    np.testing.assert_allclose(
        explanation.coefficients.values[0], coef, rtol=1e-9, atol=1e-9 * np.abs(coef).max()
    )
    # the words are the features of the pipeline, too: what its steps do is no reason to call it
    sampled = CompositeExplainer(model, frame, max_calls=20)(frame[3:4])[0]
    assert (sampled.method, sampled.reason) == (
        "sampled",
        "limes reads models of one input, and calls those of several",
    )


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("a text", "pass a mapping"),
        ({**INPUT, "adverts": "x"}, "did you mean 'advert'"),
        ({"advert": "x"}, "'photo' is missing"),
        ({**INPUT, "advert": ""}, "part 'advert': the text is empty"),
        ({**INPUT, "house": {"rooms": 7, "area": 91.5, "town": "Köln"}}, "part 'house'"),
        ([INPUT, {**INPUT, "pulse": "x"}], "input 1: part 'pulse'"),
        ({**INPUT, "house": HOUSES[:2]}, "one row of a table, got 2"),
    ],
)
def test_bad_inputs(inputs, message):
    with pytest.raises(InputError, match=message):
        CompositeExplainer(price, PARTS)(inputs)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "parts must be a mapping"),
        ({"a": "texts"}, "did you mean 'text'"),
        ({"a": TextPart}, "or a part"),
        ({1: "text"}, "no text for a name"),
    ],
)
def test_bad_parts(parts, message):
    with pytest.raises(InputError, match=message):
        CompositeExplainer(price, parts)


@pytest.mark.parametrize(("option", "value"), [("bag", "speling"), ("mask", True), ("mask", 3)])
def test_bad_options_of_a_text(option, value):
    with pytest.raises(InputError, match=option):
        TextPart(**{option: value})


def test_a_model_that_fails_keeps_its_batch():
    def model(batch):
        if len(batch["advert"]) > 1:
            raise ValueError("too many")
        return np.zeros(1)

    with pytest.raises(ModelError, match="too many") as error:
        CompositeExplainer(model, PARTS)(INPUT)
    assert set(error.value.batch) == set(PARTS)
