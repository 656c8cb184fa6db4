"""Pictures of PIL as arrays of what a person sees, and the part of a photograph that a network sees.

A palette's numbers, ink or hue are no brightness. A part has a size for the network, and a way back to the
photograph.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from limes._arrays import Ints
from limes.exceptions import InputError

# PIL's modes whose numbers are brightness already: grey, colours, and colours with transparency
_AS_THEY_ARE = ("L", "RGB", "RGBA", "F")
# ... that are converted, and what to
_CONVERTED = {
    "1": "L",
    **dict.fromkeys(("RGBX", "CMYK", "YCbCr", "HSV"), "RGB"),
    **dict.fromkeys(("LA", "PA", "RGBa"), "RGBA"),
}


def pixels_of(image: Any) -> Any:
    """Return a picture of PIL as an array (H, W) or (H, W, 3 or 4); anything else as numpy reads it.

    Palettes become RGB, or RGBA with transparency. Whole numbers of 16 bits stay; those of 32 bits are PIL's
    0 to 255, or 16 bits if some are larger.
    """
    pil = sys.modules.get("PIL.Image")
    if pil is None or not isinstance(image, pil.Image):
        return np.asarray(image)
    mode = image.mode
    if mode in _AS_THEY_ARE:
        return np.asarray(image)
    if mode == "P":
        return np.asarray(image.convert("RGBA" if "transparency" in image.info else "RGB"))
    if mode in _CONVERTED:
        return np.asarray(image.convert(_CONVERTED[mode]))
    if mode.startswith("I;16"):
        return np.asarray(image).astype(np.uint16)
    if mode == "I":
        return _narrowed(np.asarray(image))
    raise InputError(
        f"the image has mode {mode!r} of PIL, whose colours limes does not know: pass image.convert('RGB'), "
        "or the array that the model takes"
    )


def _narrowed(pixels: Any) -> Any:
    low, high = int(pixels.min(initial=0)), int(pixels.max(initial=0))
    if low < 0 or high > np.iinfo(np.uint16).max:
        raise InputError(
            f"the image has mode 'I' of PIL and numbers from {low} to {high}, of which neither 255 nor 65535 "
            "is white: pass an array of the numbers that the model takes"
        )
    return pixels.astype(np.uint8 if high <= np.iinfo(np.uint8).max else np.uint16)


# Ways to resize, by PIL's numbers
RESAMPLINGS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
# How an image is brought to the size of a network
FITS = ("crop", "squash", "pad")


@dataclass(frozen=True)
class Framing:
    """A rectangle of a photograph, scaled to a size.

    Attributes
    ----------
    photo
        Height and width of the photograph.
    box
        First row, first column, height and width of the rectangle; with "pad" it reaches beyond the
        photograph, where it is 0.
    size
        Height and width to which the rectangle is scaled.
    resample
        Method of scaling, one of `RESAMPLINGS`.
    """

    photo: tuple[int, int]
    box: tuple[int, int, int, int]
    size: tuple[int, int]
    resample: str = "bicubic"

    @classmethod
    def of(
        cls,
        photo: tuple[int, int],
        size: tuple[int, int],
        fit: str,
        *,
        inner: float = 1.0,
        resample: str = "bicubic",
    ) -> Framing:
        """Return the largest middle part ("crop"), the whole ("squash"), or the whole with borders ("pad").

        ``inner`` is the share of the sides of the middle part, or of the whole, that is used.

        Examples
        --------
        >>> [Framing.of((10, 30), (5, 5), fit).box for fit in ("crop", "squash", "pad")]
        [(0, 10, 10, 10), (0, 0, 10, 30), (-10, 0, 30, 30)]
        """
        height, width = photo
        down, across = height / size[0], width / size[1]
        if fit == "crop":
            down = across = min(down, across)
        if fit == "pad":
            down = across = max(down, across)
        else:
            down, across = inner * down, inner * across
        tall, wide = max(1, round(size[0] * down)), max(1, round(size[1] * across))
        return cls(photo, ((height - tall) // 2, (width - wide) // 2, tall, wide), size, resample)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is cut off or added."""
        return self.box == (0, 0, *self.photo)

    def apply(self, image: Any) -> Any:
        """Return the rectangle of an image (H, W) or (H, W, C) at its new size; the type stays."""
        row, column, tall, wide = self.box
        before, beside = max(-row, 0), max(-column, 0)
        part = image[max(row, 0) : row + tall, max(column, 0) : column + wide]
        if part.shape[:2] != (tall, wide):
            padded = np.zeros((tall, wide, *image.shape[2:]), dtype=image.dtype)
            padded[before : before + part.shape[0], beside : beside + part.shape[1]] = part
            part = padded
        return _resized(part, self.size, self.resample)

    def labels_on(self, labels: Ints, shape: tuple[int, int], outside: int) -> Ints:
        """Return labels (h, w) at the places of the photograph, which is shown in a shape of its proportions.

        What lies outside of the rectangle gets the label ``outside``.
        """
        row, column, tall, wide = self.box
        places = []
        for first, length, whole, shown, size in (
            (row, tall, self.photo[0], shape[0], self.size[0]),
            (column, wide, self.photo[1], shape[1], self.size[1]),
        ):
            middles = (np.arange(shown) + 0.5) * whole / shown
            places.append(np.floor((middles - first) * size / length).astype(np.int64))
        down, across = places
        inside = ((down >= 0) & (down < self.size[0]))[:, None] & ((across >= 0) & (across < self.size[1]))
        near = labels[np.clip(down, 0, self.size[0] - 1)[:, None], np.clip(across, 0, self.size[1] - 1)]
        return np.where(inside, near, outside)


def _resized(image: Any, size: tuple[int, int], resample: str) -> Any:
    """Resize an image (H, W) or (H, W, C), clipped to its range."""
    from PIL import Image

    if image.shape[:2] == size:
        return image
    planes = image[..., None] if image.ndim == 2 else image
    # bytes as PIL rounds them; all other types without rounding in between
    kind = np.uint8 if image.dtype == np.uint8 else np.float32
    resized = [
        Image.fromarray(np.ascontiguousarray(planes[..., c], dtype=kind)).resize(
            size[::-1], Image.Resampling[resample.upper()]
        )
        for c in range(planes.shape[-1])
    ]
    pixels = np.stack([np.asarray(plane) for plane in resized], axis=-1)
    pixels = np.clip(pixels, image.min(), image.max())
    pixels = np.rint(pixels) if image.dtype.kind in "biu" else pixels
    return pixels.astype(image.dtype).reshape(*size, *image.shape[2:])
