"""Images as users have them: grey, RGB or RGBA, whole numbers or fractions; what is none is refused here."""

from __future__ import annotations

from typing import Any

import numpy as np

from limes._arrays import Floats
from limes.exceptions import InputError

_CHANNELS = (1, 3, 4)


def checked_image(image: Any) -> Any:
    """An array (H, W) or (H, W, C) of numbers, as the user gave it; C is 1, 3 or 4.

    Raises
    ------
    InputError
        If it is no such thing, has no pixels, or a pixel is not finite: says where.
    """
    found = np.asarray(image)
    if found.dtype.kind not in "biuf" or found.dtype.itemsize > 8:
        raise InputError(f"an image is an array of numbers, got {type(image).__name__} of {found.dtype}")
    if found.ndim not in (2, 3):
        raise InputError(f"an image is (height, width) or (height, width, channels), got {found.shape}")
    if found.ndim == 3 and found.shape[2] not in _CHANNELS:
        first = found.shape[0] in _CHANNELS
        advice = "move them there: np.moveaxis(image, 0, -1)" if first else "give several images as a list"
        raise InputError(
            f"an image has 1, 3 or 4 channels, as its last axis; got shape {found.shape}: {advice}"
        )
    if found.size == 0:
        raise InputError(f"the image has no pixels: its shape is {found.shape}")
    if not np.isfinite(found).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(found))[0])
        raise InputError(
            f"the image has {found[where]} at row {where[0]}, column {where[1]}: every pixel must be finite"
        )
    return np.ascontiguousarray(found)


def listed(images: Any) -> list[Any] | None:
    """Several images as a list; None if it is one image."""
    if isinstance(images, list | tuple) and any(np.ndim(one) >= 2 for one in images):
        return list(images)
    found = images if isinstance(images, np.ndarray) else None
    return list(found) if found is not None and found.ndim == 4 else None


def unit(image: Any) -> Floats:
    """Pixels between 0 and 1: whole numbers over their largest, floats as they are or over 255."""
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
    """What people see of an image, (H, W, 3) between 0 and 1; transparent pixels are grey there."""
    pixels = unit(image)
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.shape[2] == 1:
        return np.repeat(pixels, 3, axis=2)
    if pixels.shape[2] == 3:
        return pixels
    opaque = pixels[..., 3:]
    return pixels[..., :3] * opaque + 0.5 * (1.0 - opaque)
