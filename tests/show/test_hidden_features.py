"""Contributions of a text, an image or a series: the base is the model's answer with all of it hidden."""

from __future__ import annotations

import re

import numpy as np
import pytest

import limes

LABELS = np.arange(6)[:, None] // 3 * 2 + np.arange(6)[None] // 3
PICTURE = np.random.default_rng(0).integers(1, 256, (6, 6, 3)).astype(np.uint8)


def pair(texts):
    """Each word adds a half, both together two more, of which each has one."""
    both = [("good" in text, "not" in text) for text in texts]
    return np.array([1.0 + 0.5 * good + 0.5 * negated + 2.0 * (good and negated) for good, negated in both])


@pytest.fixture(scope="module")
def text():
    return limes.TextExplainer(pair)("not good food", progress=False)


def test_the_headline_says_what_is_hidden(text):
    page = text.to_html()
    for shown in (str(text), page):
        assert re.search(r"prediction 4\.0*; 1\.0* with every word removed", shown)
    assert "usual" not in page
    assert "with every word removed" not in str(limes.TextExplainer(pair))
    masked = limes.TextExplainer(pair, mask="___")("not good food", progress=False)
    assert "with every word masked" in str(masked)
    image = limes.ImageExplainer(lambda b: b.mean(axis=(1, 2, 3)), segments=LABELS, fill=0)(PICTURE)
    assert "with every superpixel filled" in str(image)
    series = limes.SeriesExplainer(lambda b: np.asarray(b).max(axis=1), count=3, fill=0.0)(np.arange(6.0))
    assert "with every segment hidden" in str(series)


def test_lines_are_the_features_that_are_shown(text):
    lines = {line.split()[0]: line.split()[1] for line in str(text).splitlines() if line.startswith(' "')}
    assert {word: float(share) for word, share in lines.items()} == {'"not"': 1.5, '"good"': 1.5, '"food"': 0}
    steps = [label.get_text() for label in text.plot.waterfall().get_yticklabels()]
    assert steps[0] == "every word removed"
    assert {'"not"', '"good"'} <= set(steps)


def test_words_have_the_colours_of_their_contributions():
    """A word that lowers alone and raises on average is red where its contribution is written."""
    ask = lambda texts: np.array([float("b" in t) * (2.0 * ("a" in t) - 0.4) for t in texts])  # noqa: E731
    one = limes.TextExplainer(ask, bandwidth=0.1)("a b", progress=False)
    assert one.contributions.values[0, 1] > 0
    page = one.to_html()
    assert 'title="+0.6' in page
    assert one.plot.text(of="contributions").get_title(loc="left").count("with every word removed")
    assert one.plot.text().get_title(loc="left").count("with every word removed")
    assert one.plot.text(of="coefficients").get_title(loc="left").count("LIME's surrogate")


def test_pictures_of_contributions():
    image = limes.ImageExplainer(lambda b: b[:, :3, :3].max(axis=(1, 2, 3)), segments=LABELS, fill=0)(PICTURE)
    axes = image.plot.image(of="contributions", top=1)
    assert axes.texts[0].get_text() == str(int(np.argmax(image.contributions.values[0])))
    figure = image.plot.images(of="contributions")
    assert any(ax.get_xlabel() == "contribution of a superpixel" for ax in figure.axes)
    figure = image.plot.images(of="coefficients")
    assert any(ax.get_xlabel() == "coefficient of a superpixel" for ax in figure.axes)
    series = limes.SeriesExplainer(lambda b: np.asarray(b).max(axis=1), count=3, fill=0.0)(np.arange(6.0))
    assert series.plot.series(of="contributions").patches
    assert series.plot.bar(of="contributions").patches
    with pytest.raises(limes.exceptions.InputError, match="of="):
        image.plot.image(of="shap")


def test_json_keeps_the_words(text):
    assert limes.Explanation.from_json(text.to_json()).provenance["base"] == "with every word removed"
