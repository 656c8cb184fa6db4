"""Images as users pass them: grey, RGB or RGBA, whole numbers or fractions; anything else is refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError

_CHANNELS = (1, 3, 4)


def checked_image(image: Any) -> Any:
    """Return the image as an array (H, W) or (H, W, C) of the user's own numbers, C = 1, 3 or 4.

    Raises
    ------
    InputError
        If it is no such array, has no pixels, or a pixel is not finite: names the pixel.
    """
    pixels = np.asarray(image)
    if pixels.dtype.kind not in "biuf" or pixels.dtype.itemsize > 8:
        raise InputError(f"an image is an array of numbers, got {type(image).__name__} of {pixels.dtype}")
    if pixels.ndim not in (2, 3):
        raise InputError(f"an image is (height, width) or (height, width, channels), got {pixels.shape}")
    if pixels.ndim == 3 and pixels.shape[2] not in _CHANNELS:
        first = pixels.shape[0] in _CHANNELS
        advice = "move them there: np.moveaxis(image, 0, -1)" if first else "pass several images as a list"
        raise InputError(
            f"an image has 1, 3 or 4 channels, as its last axis; got shape {pixels.shape}: {advice}"
        )
    if pixels.size == 0:
        raise InputError(f"the image has no pixels: its shape is {pixels.shape}")
    if not np.isfinite(pixels).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(pixels))[0])
        raise InputError(
            f"the image has {pixels[where]} at row {where[0]}, column {where[1]}: every pixel must be finite"
        )
    return np.ascontiguousarray(pixels)


def as_list(images: Any) -> list[Any] | None:
    """Return several images as a list, None if it is one image."""
    if isinstance(images, list | tuple) and any(np.ndim(image) >= 2 for image in images):
        return list(images)
    return list(images) if isinstance(images, np.ndarray) and images.ndim == 4 else None


def unit(image: Any) -> Floats:
    """Return pixels between 0 and 1: whole numbers over their largest, floats as they are or over 255."""
    pixels = np.asarray(image, dtype=np.float64)
    kind = np.asarray(image).dtype
    if kind.kind in "iu":
        return np.clip(pixels / np.iinfo(kind).max, 0.0, 1.0)
    low, high = pixels.min(), pixels.max()
    if low < 0:
        return (pixels - low) / (high - low) if high > low else np.zeros_like(pixels)
    if high <= 1:
        return pixels
    return pixels / 255.0 if high <= 255 else pixels / high


def rgb(image: Any) -> Floats:
    """Return the image as people see it, (H, W, 3) between 0 and 1; transparent pixels are grey."""
    pixels = unit(image)
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.shape[2] == 1:
        return np.repeat(pixels, 3, axis=2)
    if pixels.shape[2] == 3:
        return pixels
    opaque = pixels[..., 3:]
    return pixels[..., :3] * opaque + 0.5 * (1.0 - opaque)
