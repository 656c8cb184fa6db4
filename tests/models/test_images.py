"""Composition: every pixel comes from the image or its fill, whatever the dtype and the layout."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internals import Composer, MaskedImage, TensorComposer

TYPES = (np.uint8, np.int16, np.float16, np.float32, np.float64, np.bool_)


def plain(shown, fill, labels, z):
    """Pixel by pixel, in Python."""
    result = np.empty((len(z), *shown.shape), shown.dtype)
    for i, row in enumerate(z):
        for at in np.ndindex(labels.shape):
            result[(i, *at)] = (shown if row[labels[at]] else fill)[at]
    return result


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(TYPES),
    channels=st.sampled_from([None, 1, 3, 4]),
    height=st.integers(1, 6),
    width=st.integers(1, 6),
    d=st.integers(1, 5),
)
def test_every_pixel_is_chosen(seed, kind, channels, height, width, d):
    rng = np.random.default_rng(seed)
    shape = (height, width) if channels is None else (height, width, channels)
    shown, fill = (rng.integers(0, 256, shape).astype(kind) for _ in range(2))
    labels = np.unique(rng.integers(0, d, (height, width)), return_inverse=True)[1].reshape(height, width)
    image = MaskedImage(shown, fill, labels)
    z = rng.integers(0, 2, (7, image.size)).astype(float)
    expected = plain(shown, fill, labels, z)
    np.testing.assert_array_equal(image.images(z), expected)
    if channels is not None:
        moved = (np.moveaxis(a, -1, 0) for a in (shown, fill))
        result = Composer(*moved, labels, channels_first=True)(z)
        np.testing.assert_array_equal(np.moveaxis(result, 1, -1), expected)


def test_a_buffer_is_used_again_and_grows_only_where_it_must():
    labels = np.arange(4).reshape(2, 2)
    compose = Composer(np.ones((2, 2)), np.zeros((2, 2)), labels)
    large = compose(np.ones((8, 4)))
    small = compose(np.zeros((3, 4)))
    assert np.shares_memory(large, small)
    assert not large[:3].any()
    assert large[3:].all()


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
def test_tensors_are_the_same(first, kind):
    torch = pytest.importorskip("torch", reason="pip install torch")
    rng = np.random.default_rng(0)
    shown, fill = rng.normal(size=(2, 5, 6, 3))
    labels = np.arange(30).reshape(5, 6) // 4
    z = rng.integers(0, 2, (9, 8)).astype(float)
    moved = [np.moveaxis(a, -1, 0) if first else a for a in (shown, fill)]
    like = torch.zeros(1, dtype=getattr(torch, kind))
    compose = TensorComposer(*moved, labels, channels_first=first, like=like)
    result = compose(z)
    assert result.dtype == like.dtype
    assert result.device == like.device
    expected = Composer(*moved, labels, channels_first=first)(z)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-2 if kind == "float16" else 1e-6)
    assert compose(z[:2]).data_ptr() == result.data_ptr()
