"""Quick shift has scikit-image's superpixels, pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import segmentation
from sklearn.datasets import load_sample_image

from limes.exceptions import InputError
from limes.explainers.quickshift import quickshift
from limes.explainers.quickshift_kernels import SQUARINGS, densities

RNG = np.random.default_rng(0)
PHOTOGRAPH = load_sample_image("china.jpg")[100:190, 200:320] / 255
IMAGES = {
    "photograph": PHOTOGRAPH,
    "noise": RNG.random((40, 30, 3)),
    "one colour": np.full((30, 40, 3), 0.3),
    "few colours": np.round(PHOTOGRAPH, 1),
    "a line": PHOTOGRAPH[:1],
    "a pixel": PHOTOGRAPH[:1, :1],
    "smaller than the reach": PHOTOGRAPH[:5, :7],
}


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize(
    "params",
    [
        {"kernel_size": 4.0, "max_dist": 200.0, "ratio": 0.2},
        {"kernel_size": 1.0, "max_dist": 6.0, "ratio": 0.5},
        {"kernel_size": 2.5, "max_dist": 10.0, "ratio": 1.0, "sigma": 1.0},
    ],
    ids=["lime's", "fine", "blurred"],
)
def test_superpixels_are_scikit_image_s(name, params):
    expected = segmentation.quickshift(IMAGES[name], rng=7, **params)
    np.testing.assert_array_equal(quickshift(IMAGES[name], seed=7, **params), expected)


def test_densities_are_sums_of_exponentials():
    planes = 30 * RNG.random((2, 9, 11))
    u = np.stack([*planes, *np.indices((9, 11))]).reshape(4, -1)
    squared = ((u[:, :, None] - u[:, None]) ** 2).sum(axis=0)
    near = (np.abs(u[2:, :, None] - u[2:, None]) <= 4).all(axis=0)
    expected = (np.exp(-squared / 50) * near).sum(axis=1).reshape(9, 11)
    np.testing.assert_allclose(densities(planes, 4, -1 / 50 / SQUARINGS), expected, rtol=1e-12)


def test_a_kernel_narrower_than_a_pixel_is_refused():
    with pytest.raises(InputError, match="at least 1 pixel"):
        quickshift(PHOTOGRAPH, kernel_size=0.5)
