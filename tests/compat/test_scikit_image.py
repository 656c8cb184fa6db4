"""Segmentations with lime's signature."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import segmentation

from limes.compat.lime.utils.generic_utils import has_arg
from limes.compat.lime.wrappers.scikit_image import BaseWrapper, SegmentationAlgorithm
from limes.exceptions import InputError

IMAGE = np.random.default_rng(0).integers(0, 256, (24, 30, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("quickshift", {"kernel_size": 2, "max_dist": 5}),
        ("slic", {"n_segments": 6}),
        ("felzenszwalb", {"scale": 30}),
    ],
)
def test_segments_are_scikit_image_s(name, params):
    expected = getattr(segmentation, name)(IMAGE, **params)
    np.testing.assert_array_equal(SegmentationAlgorithm(name, **params)(IMAGE), expected)


def test_lime_s_name_of_the_seed_is_the_seed():
    flat = np.full((20, 20, 3), 0.5)
    params = {"kernel_size": 2, "max_dist": 2}
    result = [SegmentationAlgorithm("quickshift", random_seed=seed, **params)(flat) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(result[0], segmentation.quickshift(flat, rng=1, **params))
    np.testing.assert_array_equal(result[0], result[1])
    assert (result[0] != result[2]).any()
    assert SegmentationAlgorithm("slic", random_seed=1).target_params == {}


def test_misspelt_parameters_are_named():
    with pytest.raises(InputError, match="did you mean 'quickshift'"):
        SegmentationAlgorithm("quikshift")
    with pytest.warns(UserWarning, match=r"did you mean 'n_segments'\?: it is ignored, as in lime"):
        assert SegmentationAlgorithm("slic", n_segment=5).target_params == {}
    with pytest.warns(UserWarning, match="it has n_segments"):
        assert SegmentationAlgorithm("slic", multichannel=True, sigma=2).target_params == {"sigma": 2}
    with pytest.raises(InputError, match="did you mean 'kernel_size'"):
        SegmentationAlgorithm("quickshift").set_params(kernel=3)


def test_a_wrapper_of_nothing():
    with pytest.raises(TypeError, match="cannot be called"):
        BaseWrapper().set_params(a=1)
    with pytest.raises(TypeError, match="cannot be called"):
        BaseWrapper([1, 2])._check_params(["a"])


def test_functions_without_a_signature_take_no_names():
    assert not has_arg(min, "key")
    assert has_arg(lambda *, key: key, "key")
    assert not has_arg(lambda key, /: key, "key")
    assert not has_arg(lambda **options: options, "options")
