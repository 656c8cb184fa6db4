"""What a superpixel shows when it is switched off.

A fill is a function (image, labels) -> an image of the same shape and type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from limes._arrays import Floats, Ints
from limes._checks import check_choice
from limes.exceptions import InputError

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
        return _FILLS[check_choice("fill", fill, tuple(_NAMED))]
    if callable(fill):
        return lambda image, labels: fill(image, labels)
    constant = np.asarray(fill)
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
    """Fill every superpixel with its mean colour."""
    place = labels.ravel()
    planes = np.asarray(image, dtype=np.float64).reshape(place.size, -1)
    count = np.bincount(place)
    means = np.stack([np.bincount(place, plane) / count for plane in planes.T], axis=1)
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
        return _mean(image, labels)
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
