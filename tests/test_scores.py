"""Scores of detections and segmentations, by hand and as what an image's superpixels explain."""

from __future__ import annotations

import numpy as np
import pytest

import words
from limes import ImageExplainer
from limes.exceptions import InputError
from limes.scores import Box, MaskArea

IMAGE = np.random.default_rng(0).integers(50, 200, (8, 8, 3)).astype(np.uint8)
QUARTERS = np.kron([[0, 1], [2, 3]], np.ones((4, 4), dtype=int))


def detector(images):
    """Finds a cat (1) in the upper half, the surer the brighter it is, and a dog (2) everywhere."""
    return [
        {
            "boxes": [[0, 0, 8, 4], [0, 0, 8, 8]],
            "scores": [image[:4].mean() / 255, 0.9],
            "labels": [1, 2],
        }
        for image in images
    ]


def segmentation(images):
    """Bright pixels are of class 1."""
    return (np.asarray(images).mean(axis=3) > 100).astype(int)


@pytest.mark.parametrize(
    ("box", "label", "score"),
    [
        ((0, 0, 8, 4), 1, 0.5),
        ((0, 0, 8, 4), 2, 0.9 * 0.5),
        ((0, 2, 8, 6), 1, 0.5 * 16 / 48),
        ((0, 4, 8, 8), 1, 0.0),
        ((0, 0, 8, 8), None, 0.9),
        ((0, 0, 8, 4), 3, 0.0),
    ],
)
def test_score_times_overlap(box, label, score):
    image = np.full((8, 8, 3), 127.5)
    np.testing.assert_allclose(Box(model=detector, box=box, label=label)([image]), [score], rtol=1e-12)


def test_nothing_is_detected():
    score = Box(model=lambda images: [{"boxes": [], "scores": [], "labels": []}], box=(0, 0, 1, 1), label=1)
    assert score([IMAGE]) == [0.0]


def test_share_of_pixels_and_mean_probability():
    labels = np.array([[[7, 7], [7, 0]], [[0, 0], [0, 7]]])
    region = [[True, False], [True, True]]
    assert MaskArea(model=lambda _: labels, label=7)(None).tolist() == [0.75, 0.25]
    assert MaskArea(model=lambda _: labels, label=7, region=region)(None).tolist() == [2 / 3, 1 / 3]
    chances = np.random.default_rng(0).random((2, 3, 2, 2))
    found = MaskArea(model=lambda _: chances, label=2, region=region)(None)
    np.testing.assert_allclose(found, [(a[0, 0] + a[1, 0] + a[1, 1]) / 3 for a in chances[:, 2]], rtol=1e-12)


@pytest.mark.parametrize(
    "score",
    [Box(model=detector, box=(0, 0, 8, 4), label=1), MaskArea(model=segmentation, label=1)],
    ids=["box", "area"],
)
def test_superpixels_explain_a_score(score):
    explanation = ImageExplainer(score, segments=QUARTERS, fill=0)(IMAGE)
    shown = [np.where(z[QUARTERS][..., None] > 0, IMAGE, 0) for z in words.subsets(4)]
    _, coef, _ = words.surrogate(words.law("superpixels", 4, 0.25), score(np.stack(shown)))
    assert np.abs(coef).max() > 0.05
    np.testing.assert_allclose(explanation.values[0], coef, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda: Box(model=detector, box=(4, 0, 0, 4)), "with an area"),
        (lambda: Box(model=lambda _: [[1, 2]], box=(0, 0, 1, 1))([IMAGE]), "mapping with boxes"),
        (
            lambda: Box(
                model=lambda _: [{"boxes": [[0, 0, 1, 1]], "scores": [], "labels": [1]}], box=(0, 0, 1, 1)
            )([IMAGE]),
            "1 boxes, 0 scores and 1 labels",
        ),
        (lambda: MaskArea(model=segmentation, label=1, region=np.zeros((8, 8))), "with a true pixel"),
        (
            lambda: MaskArea(model=segmentation, label=1, region=np.ones((4, 4)))([IMAGE]),
            r"region is \(4, 4\)",
        ),
        (lambda: MaskArea(model=lambda _: np.ones((1, 2, 4, 4)), label=5)([IMAGE]), "more than 5 classes"),
    ],
)
def test_mistakes(score, message):
    with pytest.raises(InputError, match=message):
        score()
