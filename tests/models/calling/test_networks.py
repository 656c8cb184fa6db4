"""Input of networks and estimators of images."""

from __future__ import annotations

import numpy as np
import pytest

from internals import MaskedImage, Preprocess, flat


@pytest.mark.parametrize("channels", [None, "last", "first"])
def test_each_number_of_a_row_has_the_superpixel_of_its_pixel(channels):
    """Pixels whose numbers are their superpixels."""
    labels = np.array([[0, 0, 1, 2], [3, 0, 1, 2]])
    shown = np.repeat(labels[..., None], 3, axis=2).astype(float)
    preprocess = None if channels is None else Preprocess(mean=0.0, scale=1.0, channels=channels)
    row = flat(MaskedImage(shown, shown + 10.0, labels), preprocess, shown + 10.0)
    assert row.shown.shape == row.labels.shape == (24,)
    np.testing.assert_array_equal(row.shown, row.labels)
    np.testing.assert_array_equal(row.fill, row.labels + 10)
