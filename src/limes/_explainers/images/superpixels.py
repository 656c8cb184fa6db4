"""Superpixels of an image, and what a superpixel shows when it is switched off.

A segmentation, chosen by name, by labels or as a callable, is a function of an RGB image (H, W, 3) of numbers
between 0 and 1. A fill is a function (image, labels) -> an image of the same shape and type.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Floats, Ints, first_of_each
from limes._checks import check_choice, check_count, require, unknown_option
from limes._explainers.images.pixels import rgb
from limes.exceptions import InputError
from limes.models._hidden import changed
from limes.models._pictures import pixels_of

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
            f"segments must be one of {list(_SEGMENTATIONS)}, a callable image -> labels, or whole numbers "
            f"(H, W); got {array.dtype} of shape {array.shape}"
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


# (image (H, W) or (H, W, C), labels (H, W)) -> numbers of the image's shape
Fill: TypeAlias = Callable[[Any, Ints], Any]

# Of a blurred image: the standard deviation, as a share of the longer side
_BLUR = 0.05


def filler(fill: Any) -> Fill:
    """Return the option ``fill`` as a function.

    Raises
    ------
    InputError
        If it is neither a known name, nor a colour, nor an image, nor a callable.
    """
    if isinstance(fill, str):
        return _FILLS[check_choice("fill", fill, tuple(_FILLS))]
    if callable(fill):
        return lambda image, labels: fill(image, labels)
    constant = pixels_of(fill)
    if constant.dtype.kind not in "biuf" or not np.isfinite(constant).all():
        raise InputError(
            f"fill must be one of {list(_FILLS)}, a colour, an image, or a callable (image, labels) -> "
            f"image; got {fill!r}"
        )
    return lambda image, labels: constant  # noqa: ARG005 - the same for every image


def filled(fill: Fill, image: Any, labels: Ints) -> Any:
    """Return the image with every superpixel switched off, in the image's own shape and type.

    Raises
    ------
    InputError
        If the fill is neither a colour of the image's channels, nor of its shape, or is not finite.
    """
    pixels = np.asarray(fill(image, labels))
    channels = image.shape[2:] or (1,)
    colour = pixels.ndim == 0 or pixels.shape == channels
    if not colour and pixels.shape != image.shape:
        raise InputError(
            f"fill has shape {pixels.shape}: it must be one number, a colour of {channels[0]} numbers, or an "
            f"image of shape {image.shape}"
        )
    if pixels.dtype.kind not in "biuf" or not np.isfinite(pixels).all():
        raise InputError("fill has pixels that are not finite numbers")
    whole = np.broadcast_to(
        pixels if pixels.ndim == image.ndim or image.ndim == 3 else pixels.ravel()[0], image.shape
    )
    return _as(whole, image.dtype)


def _as(pixels: Any, kind: np.dtype[Any]) -> Any:
    """Round numbers to the image's type."""
    if kind.kind == "f":
        return pixels.astype(kind)
    limits = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    return np.clip(np.rint(pixels), *limits).astype(kind)


# -- by name -------------------------------------------------------------------------------------------------


def _mean(image: Any, labels: Ints) -> Floats:
    """Fill every superpixel with its mean colour; one that is plain with the mean colour of the image.

    A plain superpixel is its own mean: it would not be hidden.
    """
    means, planes = mean_colours(image, labels), (labels.size, -1)
    numbers = np.asarray(image, dtype=np.float64).reshape(planes)
    plain = ~changed(numbers, means.reshape(planes), labels.ravel())[labels.ravel()]
    return np.where(plain[:, None], numbers.mean(axis=0), means.reshape(planes)).reshape(image.shape)


def mean_colours(image: Any, labels: Ints) -> Floats:
    """Fill every superpixel with its mean colour."""
    place = labels.ravel()
    planes = np.asarray(image, dtype=np.float64).reshape(place.size, -1)
    count = np.bincount(place)
    means = np.stack([np.bincount(place, plane) / count for plane in planes.T], axis=1)
    # roundings of long sums would tell a large plain superpixel from its mean
    first = planes[first_of_each(place, count.size)]
    plain = np.bincount(place, (planes != first[place]).any(axis=1)) == 0
    means[plain] = first[plain]
    return means[place].reshape(image.shape)


def _blur(image: Any, labels: Ints) -> Floats:  # noqa: ARG001 - all alike
    """Blur the picture, so that only large shapes are left."""
    from scipy.ndimage import gaussian_filter

    sigma = _BLUR * max(image.shape[:2])
    return np.asarray(
        gaussian_filter(np.asarray(image, dtype=np.float64), (sigma, sigma, 0)[: image.ndim], mode="nearest")
    )


def _inpaint(image: Any, labels: Ints) -> Floats:
    """Continue the surroundings into each superpixel: Laplace's equation, with the pixels around as boundary.

    One sparse system serves all superpixels: neighbours in the same superpixel are both unknown, those in
    others are boundary values. A superpixel that is the whole image has no surroundings and shows its mean.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    if labels.max() == 0:
        return mean_colours(image, labels)
    planes = np.asarray(image, dtype=np.float64).reshape(labels.size, -1)
    first, second = _neighbours(labels.shape)
    inside = labels.ravel()[first] == labels.ravel()[second]
    degree = np.bincount(first, minlength=labels.size).astype(np.float64)
    boundary = np.zeros_like(planes)
    np.add.at(boundary, first[~inside], planes[second[~inside]])
    diagonal = np.arange(labels.size)
    matrix = coo_array(
        (
            np.concatenate([degree, np.full(int(inside.sum()), -1.0)]),
            (np.concatenate([diagonal, first[inside]]), np.concatenate([diagonal, second[inside]])),
        )
    )
    return np.asarray(splu(matrix.tocsc()).solve(boundary)).reshape(image.shape)


def _neighbours(shape: tuple[int, ...]) -> tuple[Ints, Ints]:
    """Return pairs of pixels that share an edge, both ways."""
    place = np.arange(shape[0] * shape[1]).reshape(shape)
    pairs = [(place[1:], place[:-1]), (place[:, 1:], place[:, :-1])]
    first = np.concatenate([a.ravel() for a, _ in pairs])
    second = np.concatenate([b.ravel() for _, b in pairs])
    return np.concatenate([first, second]), np.concatenate([second, first])


_FILLS: Mapping[str, Fill] = {"mean": _mean, "blur": _blur, "inpaint": _inpaint}
