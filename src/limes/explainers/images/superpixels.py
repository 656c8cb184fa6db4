"""Superpixels of an image, by the name of a segmentation, by labels, or by a callable.

A segmentation is a function of an RGB image (H, W, 3) of numbers between 0 and 1, and of its options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import check_choice, check_count, unknown_option
from limes._optional import require
from limes.exceptions import InputError
from limes.explainers.images.pixels import rgb

# the user's image -> labels (H, W)
Segment: TypeAlias = Callable[[Any], Any]


def segmenter(segments: Any, options: Mapping[str, Any] | None) -> Segment:
    """Return the option ``segments`` as a function from an image to labels.

    Raises
    ------
    InputError
        If it is neither a known name, nor labels, nor a callable; if options do not go with it.
    UnknownOptionError
        If the segmentation has no such option.
    """
    if isinstance(segments, str):
        check_choice("segments", segments, tuple(_SEGMENTATIONS))
        segment = _SEGMENTATIONS[segments]
        _check_options(segments, segment, options or {})
        return lambda image: segment(rgb(image), **(options or {}))
    if options:
        raise InputError("segment_options go with a segmentation that is named, such as segments='slic'")
    if callable(segments):
        return lambda image: segments(image)
    labels = checked_labels(segments)
    return lambda image: labels  # noqa: ARG005 - the same for every image


def superpixels(segment: Segment, image: Any) -> Ints:
    """Return labels (H, W) from 0 to d - 1, each of which occurs.

    Raises
    ------
    InputError
        If the labels are no whole numbers, or of another shape than the image.
    """
    labels = checked_labels(segment(image))
    if labels.shape != image.shape[:2]:
        raise InputError(
            f"the segments have shape {labels.shape}, the image is {image.shape[0]} x {image.shape[1]}: pass "
            "one label per pixel"
        )
    return np.unique(labels, return_inverse=True)[1].reshape(labels.shape).astype(np.int64)


def checked_labels(labels: Any) -> Ints:
    """Return any whole numbers, one per pixel; they need not start at 0 or follow each other."""
    array = np.asarray(labels)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    whole = array.dtype.kind in "iub" or (array.dtype.kind == "f" and (array == np.rint(array)).all())
    if array.ndim != 2 or not whole:
        raise InputError(
            f"segments must be one of {list(_SEGMENTATIONS)}, a callable image -> labels, or whole numbers (H, W); "
            f"got {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64)


def _check_options(name: str, segment: Segment, options: Mapping[str, Any]) -> None:
    names = list(inspect.signature(segment).parameters)[1:]
    for option in options:
        if option not in names:
            raise unknown_option(f"segments={name!r}", option, names)


# -- by name -------------------------------------------------------------------------------------------------

_segmentation = partial(require, "skimage.segmentation", "segments by name (but 'grid')")


def quickshift(
    image: Floats,
    kernel_size: float = 4.0,
    max_dist: float = 200.0,
    ratio: float = 0.2,
    sigma: float = 0.0,
    seed: int = 0,
) -> Ints:
    """Modes of colour and place, with the parameters of ``lime``; the seed breaks ties."""
    labels: Ints = _segmentation().quickshift(
        image, ratio=ratio, kernel_size=kernel_size, max_dist=max_dist, sigma=sigma, rng=seed
    )
    return labels


def slic(image: Floats, n_segments: int = 64, compactness: float = 10.0, sigma: float = 1.0) -> Ints:
    """K-means of colour and place."""
    labels: Ints = _segmentation().slic(
        image, n_segments=n_segments, compactness=compactness, sigma=sigma, start_label=0
    )
    return labels


def felzenszwalb(image: Floats, scale: float = 100.0, sigma: float = 0.5, min_size: int = 200) -> Ints:
    """Regions grown along a minimum spanning tree."""
    labels: Ints = _segmentation().felzenszwalb(image, scale=scale, sigma=sigma, min_size=min_size)
    return labels


def watershed(image: Floats, markers: int = 64, compactness: float = 0.001) -> Ints:
    """Basins of the gradient of lightness."""
    gradient = require("skimage.filters", "segments='watershed'").sobel(image.mean(axis=2))
    labels: Ints = _segmentation().watershed(gradient, markers=markers, compactness=compactness)
    return labels


def grid(image: Floats, rows: int = 8, columns: int = 8) -> Ints:
    """Rectangles of equal size."""
    cells = check_count("rows", rows), check_count("columns", columns)
    down, across = (np.arange(n) * k // n for n, k in zip(image.shape[:2], cells, strict=True))
    return np.asarray(down[:, None] * cells[1] + across)


_SEGMENTATIONS: Mapping[str, Callable[..., Ints]] = {
    function.__name__: function for function in (quickshift, slic, felzenszwalb, watershed, grid)
}
