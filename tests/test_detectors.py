"""The scores of ``examples/detectors.py`` against computations by hand."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "detectors.py"))


@pytest.mark.parametrize(
    ("box", "label", "score"),
    [
        ((0, 0, 8, 4), 1, 0.5),
        ((0, 0, 8, 4), 2, 0.9 * 0.5),
        ((0, 2, 8, 6), 1, 0.5 * 16 / 48),
        ((0, 4, 8, 8), 1, 0.0),
        ((0, 0, 8, 4), 3, 0.0),
    ],
)
def test_score_times_overlap(box, label, score):
    detections = {"boxes": [[0, 0, 8, 4], [0, 0, 8, 8]], "scores": [0.5, 0.9], "labels": [1, 2]}
    values = EXAMPLE["box_score"](lambda images: [detections for _ in images], box, label)([None])
    np.testing.assert_allclose(values, [score], rtol=1e-12)


def test_nothing_is_detected():
    nothing = {"boxes": [], "scores": [], "labels": []}
    assert EXAMPLE["box_score"](lambda _: [nothing], (0, 0, 1, 1), 1)([None]) == [0.0]


def test_share_of_pixels():
    labels = np.array([[[7, 7], [7, 0]], [[0, 0], [0, 7]]])
    assert EXAMPLE["mask_area"](lambda _: labels, 7)(None).tolist() == [0.75, 0.25]
