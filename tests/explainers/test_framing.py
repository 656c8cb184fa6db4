"""Photographs and the part of them that a network sees: masks and heat maps at the photograph's pixels."""

from __future__ import annotations

import json

import numpy as np
import pytest

from internals import Framing
from limes import Explanation, ImageExplainer, Preprocess
from limes.exceptions import InputError

RNG = np.random.default_rng(0)
PHOTO = RNG.integers(0, 256, (30, 50, 3)).astype(np.uint8)
FITS = ("crop", "squash", "pad")


def corners(batch):
    """Return what an image of 8 x 8 has in its upper left and lower right quarters."""
    pixels = np.asarray(batch, dtype=float)
    return np.stack([pixels[:, :4, :4].mean((1, 2, 3)), -pixels[:, 4:, 4:].mean((1, 2, 3))], axis=1)


def explained(fit, photo=PHOTO):
    explainer = ImageExplainer(
        corners,
        preprocess=Preprocess(size=8, fit=fit, channels="last"),
        segments="grid",
        segment_options={"rows": 2, "columns": 2},
        fill=0,
        labels=["first", "last"],
    )
    return explainer(photo)


def place(fit, row, column):
    """The pixel of the explained image in which a pixel of the photograph lies, by hand; None outside."""
    if fit == "squash":
        down, across = (row + 0.5) * 8 / 30, (column + 0.5) * 8 / 50
    elif fit == "crop":
        down, across = (row + 0.5) * 8 / 30, (column + 0.5 - 10) * 8 / 30
    else:
        down, across = (row + 0.5 + 10) * 8 / 50, (column + 0.5) * 8 / 50
    inside = 0 <= down < 8 and 0 <= across < 8
    return (int(down), int(across)) if inside else None


@pytest.mark.parametrize("fit", FITS)
def test_arrays_at_the_pixels_of_the_photograph(fit):
    explanation = explained(fit)
    small, mask = explanation.heatmap("first"), explanation.mask("first", top=1)
    assert small.shape == mask.shape == (8, 8)
    assert mask[:4, :4].all()
    assert mask.sum() == 16
    values = explanation[..., "first"].contributions.values[0]
    assert small[0, 0] == pytest.approx(values[0], abs=1e-12)
    assert small[7, 7] == pytest.approx(values[3], abs=1e-12)
    whole = explanation.heatmap("first", of="image")
    selected = explanation.mask("first", top=1, of="image")
    assert whole.shape == selected.shape == PHOTO.shape[:2]
    for row in range(30):
        for column in range(50):
            pixel = place(fit, row, column)
            if pixel is None:
                assert np.isnan(whole[row, column])
                assert not selected[row, column]
            else:
                assert whole[row, column] == small[pixel]
                assert selected[row, column] == mask[pixel]
    # they survive a file, and select pixels of the photograph
    restored = Explanation.from_json(explanation.to_json())
    np.testing.assert_array_equal(restored.mask("first", top=1, of="image"), selected)
    assert len(PHOTO[selected]) == selected.sum()


@pytest.mark.parametrize("fit", FITS)
def test_framing_resizes_and_pads(fit):
    level = np.full((30, 50), 100, dtype=np.uint8)
    seen = Framing.of((30, 50), (8, 8), fit).apply(level)
    assert seen.shape == (8, 8)
    if fit == "pad":
        assert not seen[0].any()
        assert not seen[-1].any()
        assert (seen[3:5] == 100).all()
    else:
        assert (seen == 100).all()


def test_an_image_that_is_explained_as_it_is():
    explanation = ImageExplainer(corners, segments="grid", fill=0)(PHOTO)
    assert "photo" not in explanation.provenance
    np.testing.assert_array_equal(explanation.heatmap(0), explanation.heatmap(0, of="image"))


@pytest.mark.parametrize("fit", FITS)
def test_pictures_show_the_whole_photograph(fit):
    explanation = explained(fit)
    axes = explanation.plot.image("first", top=2)
    assert axes.images[0].get_array().shape == PHOTO.shape
    # the number of the only superpixel that matters to it
    assert [text.get_text() for text in axes.texts] == ["0"]
    figure = explanation.plot.images()
    assert len(figure.axes) == 4
    assert 'class="lx-marks"' in explanation.to_html()


@pytest.mark.parametrize(
    "damage",
    [
        lambda frame: frame.pop("box"),
        lambda frame: frame.update(size=[0, 8]),
        lambda frame: frame.update(photo=[10**6, 10**6]),
        lambda frame: frame.update(box=["a", 0, 1, 1]),
    ],
)
def test_a_damaged_frame_is_refused(damage):
    stored = json.loads(explained("crop").to_json())
    damage(stored["provenance"]["frame"])
    damaged = Explanation.from_json(json.dumps(stored))
    with pytest.raises(InputError, match="frame of this explanation is damaged"):
        damaged.mask(of="image")


def test_unknown_options():
    with pytest.raises(InputError, match="fit='cut' is not one of"):
        Preprocess(fit="cut")
    with pytest.raises(InputError, match="did you mean 'image'"):
        explained("crop").mask(of="images")


def test_pixels_beside_the_upper_and_left_edge_lie_outside():
    """For 10 x 10 pixels the inner 8 x 8 are seen one by one: the ring around them has no label."""
    framing = Framing((10, 10), (1, 1, 8, 8), (8, 8), "bilinear")
    labels = np.arange(64).reshape(8, 8)
    expected = np.full((10, 10), -7)
    expected[1:9, 1:9] = labels
    np.testing.assert_array_equal(framing.labels_on(labels, (10, 10), -7), expected)
