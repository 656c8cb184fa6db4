"""Image metadata of an explanation: names, conditions, and the picture in ``Explanation.provenance``."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from limes._arrays import Ints, Objects
from limes.explainers.images.pixels import rgb
from limes.explanation.png import labels_to_data_url, to_data_url
from limes.models.images import SwitchedImage

MEANING = "change of the surrogate when the superpixel is shown against when it is filled"


def superpixel_names(size: int) -> tuple[str, ...]:
    """Return the names of d superpixels."""
    return tuple(f"superpixel {j}" for j in range(size))


def image_conditions(labels: Ints) -> tuple[str, ...]:
    """Return the condition of each superpixel, with the pixel in its middle, (row, column)."""
    count = np.bincount(labels.ravel())
    down, across = np.indices(labels.shape)
    rows, columns = (np.bincount(labels.ravel(), place.ravel()) / count for place in (down, across))
    return tuple(
        f"superpixel {j} at ({row:.0f}, {column:.0f}) shown"
        for j, (row, column) in enumerate(zip(rows, columns, strict=True))
    )


def image_areas(labels: Ints) -> Objects:
    """Return the size of each superpixel in pixels, (1, d)."""
    return np.array([[f"{count} px" for count in np.bincount(labels.ravel())]], dtype=object)


def image_picture(image: SwitchedImage, conditions: tuple[str, ...]) -> dict[str, Any]:
    """Return what ``show`` draws from: the image, its superpixels, and each condition's superpixel."""
    return {
        "image": to_data_url(np.rint(255 * rgb(image.shown)).astype(np.uint8), lossless=False),
        "labels": labels_to_data_url(image.labels),
        "superpixels": {condition: j for j, condition in enumerate(conditions)},
    }


def image_fingerprint(image: SwitchedImage) -> tuple[int, ...]:
    """Return whole numbers that identify an image, its fill and superpixels: keys, and seeds of streams."""
    digest = blake2b(image.shown.tobytes() + image.fill.tobytes() + image.labels.tobytes(), digest_size=16)
    return tuple(int(part) for part in np.frombuffer(digest.digest(), dtype=np.uint32))
