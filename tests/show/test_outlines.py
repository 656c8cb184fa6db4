"""Outlines of superpixels: filled, the path of a label covers that label's pixels and no others."""

from __future__ import annotations

import re

import numpy as np
import pytest

import limes
from internals import Outlines

RNG = np.random.default_rng(0)
RING = np.pad(np.pad(np.full((2, 2), 0), 2, constant_values=1), 1, constant_values=0)
CASES = {
    "one": np.zeros((3, 4), dtype=int),
    "checkerboard": np.indices((5, 6)).sum(axis=0) % 2,
    "ring": RING,
    "random": RNG.integers(0, 4, (12, 9)),
    "gaps": np.where(RNG.random((7, 7)) < 0.5, -1, 3),
}


def filled(path, shape):
    """Pixels inside of a path, by how often it turns around their middles."""
    turns = np.zeros(shape, dtype=int)
    for loop in re.findall(r"M(\d+) (\d+)([^z]*)z", path):
        points = [(float(loop[0]), float(loop[1]))]
        for letter, length in re.findall(r"([hv])(-?\d+)", loop[2]):
            x, y = points[-1]
            points.append((x + int(length), y) if letter == "h" else (x, y + int(length)))
        for (x, y), (_, below) in zip(points, [*points[1:], points[0]], strict=True):
            rows = slice(int(min(y, below)), int(max(y, below)))
            turns[rows, int(x) :] += int(np.sign(y - below))
    return turns != 0


@pytest.mark.parametrize("name", CASES)
def test_paths_fill_their_labels(name):
    labels = CASES[name]
    outlines = Outlines.of(labels)
    assert (outlines.height, outlines.width) == labels.shape
    assert set(outlines.paths) == set(np.unique(labels[labels >= 0]).tolist())
    for label, path in outlines.paths.items():
        np.testing.assert_array_equal(filled(path, labels.shape), labels == label)


def test_large_labels_are_drawn_coarsely():
    labels = np.repeat(np.repeat([[0, 1], [2, 3]], 400, axis=0), 300, axis=1)
    outlines = Outlines.of(labels)
    assert max(outlines.width, outlines.height) <= 256
    assert outlines.paths[0] == "M0 0h75v100h-75z"
    assert Outlines.of(labels).name == outlines.name != Outlines.of(labels.T).name


def explained(image, **options):
    def answers(images):
        pixels = np.asarray(images, dtype=float)
        light = pixels.mean(axis=(1, 2) if pixels.shape[-1] == 3 else (2, 3)) / 255
        return light**2

    return limes.ImageExplainer(answers, segments="grid", max_calls=200, **options)(image)


def test_a_page_has_a_tooltip_for_every_superpixel():
    image = RNG.integers(0, 256, (40, 60, 3)).astype(np.uint8)
    page = explained(image).to_html()
    assert page.count("<use ") == 3 * 64
    assert page.count("<path id=") == 64
    assert len(re.findall(r"<title>superpixel \d+: [+-]?\d[^<]* ± \d", page)) == 3 * 64
    assert "<script" not in page


def test_a_page_of_a_noisy_photograph_is_small():
    """The worst there is: pixels that no file makes smaller, at the largest size of a photograph."""
    smooth = RNG.integers(0, 256, (32, 32, 3)).astype(np.uint8)
    from PIL import Image

    image = np.asarray(Image.fromarray(smooth).resize((512, 512), Image.Resampling.BICUBIC))
    assert len(explained(image, preprocess=limes.Preprocess(size=224)).to_html()) < 150_000


def test_a_page_shows_the_photograph_outside_of_the_frame():
    image = RNG.integers(0, 256, (40, 60, 3)).astype(np.uint8)
    page = explained(image, preprocess=limes.Preprocess(size=20)).to_html()
    assert 'viewBox="0 0 60 40"' in page
    assert 'transform="translate(10 0) scale(2 2)"' in page
    assert 'd="M0 0h60v40h-60zM10 0h40v40h-40z"' in page


def test_words_have_tooltips_with_errors():
    text = " ".join(f"word{i}" for i in range(16))
    page = limes.TextExplainer(lambda texts: [len(t) ** 2 for t in texts], max_calls=200)(text).to_html()
    assert len(re.findall(r'title="[^"]* ± [^"]*"', page)) == 16
