"""Images as data URLs for JSON and HTML, ``data:image/png;base64,...``, and back."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from limes.exceptions import InputError

if TYPE_CHECKING:
    from limes._arrays import Ints

# Larger photographs are written as JPEG, which is small and lossy
_LARGEST_PNG = 512 * 512


def to_data_url(pixels: Any, *, lossless: bool = True) -> str:
    """Return an image (H, W) or (H, W, 3 or 4) of uint8 as a data URL."""
    from PIL import Image

    buffer, image = io.BytesIO(), Image.fromarray(pixels)
    kind = "png" if lossless or pixels.shape[0] * pixels.shape[1] <= _LARGEST_PNG else "jpeg"
    image.save(buffer, kind, **({"quality": 92} if kind == "jpeg" else {"compress_level": 1}))
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def from_data_url(url: str) -> Any:
    """Return the image (H, W, C) of a data URL.

    Raises
    ------
    InputError
        If it cannot be decoded.
    """
    from PIL import Image

    try:
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.split(",", 1)[1], validate=True))))
    except (IndexError, ValueError, OSError) as error:
        raise InputError(f"the image of this explanation is damaged: {error}") from None


def labels_to_data_url(labels: Ints) -> str:
    """Return labels (H, W) below 2^24 as an image, one byte a pixel where that is enough, else three."""
    if labels.max(initial=0) < 256:
        return to_data_url(labels.astype(np.uint8))
    return to_data_url(np.stack([labels >> shift & 255 for shift in (0, 8, 16)], axis=-1).astype(np.uint8))


def labels_from_data_url(url: str) -> Ints:
    """Return the labels (H, W) of a data URL."""
    parts = from_data_url(url).astype(np.int64)
    if parts.ndim == 2:
        return np.asarray(parts)
    return np.asarray(parts[..., 0] | parts[..., 1] << 8 | parts[..., 2] << 16)
