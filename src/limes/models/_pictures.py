"""Pictures of PIL as arrays of what a person sees: a palette's numbers, ink or hue are no brightness."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

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

    Raises
    ------
    InputError
        If PIL has no colours for the picture's mode: names it.
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
